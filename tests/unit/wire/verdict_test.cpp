// SPDX-License-Identifier: BSD-3-Clause
//
// Verdict: three kinds that cannot be taken for each other, in a register.
#include "comm/wire/verdict.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>

#include "comm/wire/wire.hpp"

namespace {

namespace comm = canele::comm;
namespace wire = comm::wire;
using comm::Verdict;

static_assert(sizeof(Verdict) == sizeof(void*), "one word");
static_assert(std::is_trivially_copyable_v<Verdict> && std::is_trivially_destructible_v<Verdict>, "goes in a register");
static_assert(!std::is_default_constructible_v<Verdict>, "a verdict is said, never forgotten");
static_assert(!std::is_convertible_v<const char*, Verdict> && !std::is_convertible_v<std::nullptr_t, Verdict>);
static_assert(!std::is_convertible_v<Verdict, bool> && !std::is_constructible_v<bool, Verdict> &&
                  !std::is_constructible_v<Verdict, std::uintptr_t>,
              "its use says which of the three it asks for");
static_assert(Verdict::ok().is_ok() && Verdict::retry().is_retry());

TEST(Verdict, IsOneOfThree) {
  for (const auto& [verdict, ok, retry, violation] :
       {std::tuple{Verdict::ok(), true, false, false}, std::tuple{Verdict::retry(), false, true, false},
        std::tuple{Verdict::violation("a chunk is empty"), false, false, true}}) {
    EXPECT_EQ(verdict.is_ok(), ok);
    EXPECT_EQ(verdict.is_retry(), retry);
    EXPECT_EQ(verdict.is_violation(), violation);
  }
}

TEST(Verdict, HasItsReason) {
  EXPECT_STREQ(Verdict::violation("a chunk is empty").text(), "a chunk is empty");
  Verdict verdict = Verdict::ok();
  verdict = Verdict::violation("a chunk is cut");
  EXPECT_STREQ(verdict.text(), "a chunk is cut");
  verdict = Verdict::retry();
  EXPECT_FALSE(verdict.is_violation()) << "the text of an earlier verdict is gone";
}

TEST(VerdictDeathTest, OnlyAViolationHasAText) {
#ifdef NDEBUG
  GTEST_SKIP() << "built without assertions";
#else
  EXPECT_DEATH((void)Verdict::ok().text(), "only a violation has a text");
  EXPECT_DEATH((void)Verdict::retry().text(), "only a violation has a text");
#endif
}

TEST(Verdict, OfAChunkSaysWhereItIsCut) {
  std::byte bytes[sizeof(wire::Head) + 8]{};
  wire::put_head(bytes, {1, 2, 3, wire::Type::eager, 0}, 8);
  wire::Chunk chunk;
  const auto verdict_on = [&](std::size_t size) {
    std::span<const std::byte> packet(bytes, size);
    return wire::take_chunk(packet, chunk);
  };
  EXPECT_TRUE(verdict_on(sizeof bytes).is_ok());
  EXPECT_EQ(chunk.payload.size(), 8u);
  EXPECT_STREQ(verdict_on(sizeof bytes - 1).text(), "a chunk is longer than its packet");
  EXPECT_STREQ(verdict_on(sizeof(wire::Head) - 1).text(), "a chunk is cut inside its head");
}

}  // namespace

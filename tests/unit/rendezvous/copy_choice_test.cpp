// SPDX-License-Identifier: BSD-3-Clause
//
// The receiver of a large message takes the way that has been measured to be quicker. The test notes the costs, and
// looks at what copied the bytes.
#include <gtest/gtest.h>

#include "comm/rendezvous/rendezvous.hpp"
#include "tests/unit/rendezvous/rtr_fixture.hpp"

namespace canele::test {
namespace {

class CopyChoice : public rtrs::Rtrs {
 protected:
  static constexpr std::size_t size = 64 * 1024;
  CopyChoice() : Rtrs({"CANELE_VERBOSE=0", "CANELE_EXPERT_SHM_CMA_MIN=auto"}) {}

  void SetUp() override {
    comm::Engine& engine = job_.engine(1);
    if (!engine.peer(0).rail->instance->driver->capabilities().get) GTEST_SKIP() << "no cross-memory attach here";
    ASSERT_TRUE(comm::rendezvous::measures_copies(engine, engine.peer(0)));
  }

  /// Notes costs in nanoseconds for each KiB, as often as decides.
  void note(std::uint64_t kernel, std::uint64_t stream) {
    comm::CopyCosts& costs = job_.engine(1).peer(0).rail->instance->copy_costs;
    for (int i = 0; i < 200; ++i) {
      costs.kernel_copied(size, size, kernel * size / 1024);
      costs.piece_copied(size, stream * size / 1024);
    }
  }

  /// Moves a message. Returns how many of its bytes the kernel has copied.
  std::uint64_t copied_by_kernel(bool posted_first) {
    const std::uint64_t before = copied();
    move(rtrs::word_pattern(size, ++seed_), posted_first);
    return copied() - before;
  }

  std::uint64_t seed_ = 0;
};

TEST_F(CopyChoice, FollowsTheCosts) {
  for (const bool posted_first : {true, false}) {
    note(10, 1000);
    EXPECT_EQ(copied_by_kernel(posted_first), size) << "the kernel is quick";
    note(1000, 10);
    EXPECT_EQ(copied_by_kernel(posted_first), 0u) << "the kernel is slow";
  }
}

TEST_F(CopyChoice, TriesBothWays) {
  std::uint64_t copied = 0;
  for (int i = 0; i < 16; ++i) copied += copied_by_kernel(false);
  EXPECT_GT(copied, 0u);
  EXPECT_LT(copied, 16 * size) << "no stream";
}

TEST_F(CopyChoice, AReceiveThatWillBeStreamedSendsNoRtr) {
  note(1000, 10);
  EXPECT_EQ(copied_by_kernel(true), 0u);
  EXPECT_EQ(rtrs_to(0), nullptr);
}

}  // namespace
}  // namespace canele::test

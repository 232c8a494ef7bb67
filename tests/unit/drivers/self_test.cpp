// SPDX-License-Identifier: BSD-3-Clause
//
// Tests of the self driver: sizes, order, laps of the ring, back-pressure, reservations, bulk both ways, the doorbell.
//
// One thread. The only node's peer is itself.
#include "drivers/self/self.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <random>

#include "tests/conformance/driver_kit.hpp"

namespace canele::drivers {
namespace {

using conformance::Bytes;
using conformance::cut;
using conformance::Node;
using conformance::pattern;
using conformance::World;

class Self : public testing::Test {
 protected:
  World world{self_factory, 1};
  Node& node = world[0];
  Driver& driver = *node.driver;

  void SetUp() override {
    world.open();
    ASSERT_EQ(world.connect(0, 0), Status::pending);
    EXPECT_TRUE(node.up.empty());
    EXPECT_EQ(node.poll(), 1);
    EXPECT_EQ(node.up.count(0), 1u);
  }
  std::size_t limit() const { return driver.capabilities().max_packet; }
};

TEST_F(Self, OtherRanksAreOutOfReach) {
  World two(self_factory, 2);
  two.open();
  EXPECT_EQ(two.connect(0, 1), Status::failed);
  EXPECT_TRUE(driver.capabilities().memory_only && driver.capabilities().reaches_self);
  EXPECT_FALSE(driver.capabilities().reaches_remote || driver.capabilities().reaches_local);
  EXPECT_EQ(self_factory.unavailable(), "");
}

TEST_F(Self, SizesAroundTheLimitsForManyLaps) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 3000; ++i) {
    const std::size_t sizes[] = {1, 7, 8, 9, limit() - 1, limit(), 1 + random() % limit()};
    const std::size_t size = sizes[random() % std::size(sizes)];
    const Bytes bytes = pattern(size, static_cast<std::uint64_t>(i));
    ASSERT_EQ(node.send(0, bytes, 1 + static_cast<int>(random() % 3)), Status::ok);
    ASSERT_EQ(node.poll(), 1);
    ASSERT_EQ(node.packets.back().bytes, bytes);
  }
  EXPECT_EQ(node.poll(), 0);
}

TEST_F(Self, FullThenReadyAndNothingIsLost) {
  std::mt19937_64 random(2);
  std::vector<Bytes> sent;
  for (int round = 0; round < 50; ++round) {
    for (;;) {
      const Bytes bytes = pattern(1 + random() % limit(), sent.size());
      if (node.send(0, bytes) == Status::full) break;
      sent.push_back(bytes);
    }
    ASSERT_TRUE(node.ready_ranks.empty());
    while (node.poll(2) > 0) {
    }
    ASSERT_EQ(node.ready_ranks.size(), 1u);
    node.ready_ranks.clear();
  }
  ASSERT_EQ(node.packets.size(), sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) ASSERT_EQ(node.packets[i].bytes, sent[i]);
}

TEST_F(Self, ReservationsMayShrinkOrBeGivenBack) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 1000; ++i) {
    auto room = driver.reserve(0, limit());
    ASSERT_EQ(room.size(), limit());
    std::fill(room.begin(), room.end(), std::byte{0xab});
    driver.commit(0, 0);
    EXPECT_EQ(node.poll(), 0);
    const Bytes bytes = pattern(1 + random() % limit(), static_cast<std::uint64_t>(i));
    room = driver.reserve(0, limit());
    std::copy(bytes.begin(), bytes.end(), room.begin());
    driver.commit(0, bytes.size());
    ASSERT_EQ(node.poll(), 1);
    ASSERT_EQ(node.packets.back().bytes, bytes);
  }
}

TEST_F(Self, InlineSends) {
  for (std::size_t size = 1; size <= driver.capabilities().max_inline; ++size) {
    const Bytes bytes = pattern(size, size);
    ASSERT_EQ(driver.send_inline(0, bytes.data(), size / 2, bytes.data() + size / 2, size - size / 2), Status::ok);
    ASSERT_EQ(node.poll(), 1);
    ASSERT_EQ(node.packets.back().bytes, bytes);
  }
}

TEST_F(Self, APacketThatIsNotTakenIsPresentedAgainAndOneRejectedEndsIt) {
  int retries = 3;
  node.on_packet = [&](Rank, std::span<const std::byte>) { return retries-- > 0 ? Take::retry : Take::taken; };
  ASSERT_EQ(node.send(0, pattern(10, 1)), Status::ok);
  EXPECT_EQ(node.poll(), 0);
  EXPECT_FALSE(driver.arm());
  ASSERT_TRUE(world.until([&] { return node.packets.size() == 1; }));
  EXPECT_EQ(node.presented, 4u);
  node.on_packet = [](Rank, std::span<const std::byte>) { return Take::rejected; };
  ASSERT_EQ(node.send(0, pattern(10, 1)), Status::ok);
  ASSERT_EQ(node.send(0, pattern(10, 2)), Status::ok);
  node.poll();
  EXPECT_EQ(node.presented, 5u);
  EXPECT_EQ(node.send(0, pattern(10, 3)), Status::failed);
}

TEST_F(Self, BulkStreamKeepsItsPlaceAmongPackets) {
  const std::size_t most = driver.capabilities().max_bulk;
  for (const std::size_t size : {std::size_t{1}, most / 2, most - 1, most}) {
    Bytes target(size);
    node.expect_bulk(4, cut(target, 777));
    node.packets.clear();
    const Bytes source = pattern(size, size);
    ASSERT_EQ(node.send(0, pattern(9, 1)), Status::ok);
    ASSERT_EQ(node.bulk(0, 4, 0, source, 5000), Status::ok);
    ASSERT_EQ(node.send(0, pattern(9, 2)), Status::ok);
    ASSERT_TRUE(world.until([&] { return node.packets.size() == 2; }));
    EXPECT_EQ(target, source);
  }
  const Bytes unwanted = pattern(most, 1);
  while (node.bulk(0, 99, 0, unwanted) == Status::ok) {
  }
  ASSERT_TRUE(world.until([&] { return !node.ready_ranks.empty(); }));
  EXPECT_EQ(node.written_bytes.count(99), 0u);
}

TEST_F(Self, GetAndPutCopyAnyPartBetweenAnyPieces) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 500; ++i) {
    const std::size_t size = 1 + random() % 20000;
    Bytes source = pattern(size, size), target(size);
    const auto from = cut(source, 1 + size / (1 + random() % 14));
    MemoryKey rkey;
    ASSERT_EQ(driver.register_memory(0, drivers::RmaOp::get, from.data(), static_cast<int>(from.size()), &rkey),
              Status::ok);
    const std::size_t offset = random() % size, length = 1 + random() % (size - offset);
    const auto to = cut(target, 1 + random() % size);
    ASSERT_EQ(driver.rma(0, drivers::RmaOp::get, {rkey.bytes, rkey.size}, offset, to.data(),
                         static_cast<int>(to.size()), length, nullptr),
              Status::ok);
    ASSERT_TRUE(std::equal(target.begin(), target.begin() + static_cast<std::ptrdiff_t>(length),
                           source.begin() + static_cast<std::ptrdiff_t>(offset)));
    const Bytes other = pattern(size, size + 1);
    std::copy(other.begin(), other.end(), target.begin());
    ASSERT_EQ(driver.rma(0, drivers::RmaOp::put, {rkey.bytes, rkey.size}, offset, to.data(),
                         static_cast<int>(to.size()), length, nullptr),
              Status::ok);
    ASSERT_TRUE(std::equal(other.begin(), other.begin() + static_cast<std::ptrdiff_t>(length),
                           source.begin() + static_cast<std::ptrdiff_t>(offset)));
    EXPECT_EQ(driver.rma(0, drivers::RmaOp::get, {rkey.bytes, rkey.size}, offset + 1, to.data(),
                         static_cast<int>(to.size()), size, nullptr),
              Status::failed)
        << "beyond the end";
  }
}

TEST_F(Self, MalformedMemoryKeys) {
  Bytes memory(64);
  const auto many = cut(memory, 1);
  MemoryKey rkey = {};
  EXPECT_EQ(driver.register_memory(0, drivers::RmaOp::get, many.data(), 64, &rkey), Status::failed);
  ASSERT_EQ(driver.register_memory(0, drivers::RmaOp::get, many.data(), 15, &rkey), Status::ok);
  Bytes out(64);
  const iovec to = {out.data(), out.size()};
  for (std::size_t size = 0; size < rkey.size; ++size) {
    EXPECT_EQ(driver.rma(0, drivers::RmaOp::get, std::span(rkey.bytes).first(size), 0, &to, 1, 1, nullptr),
              Status::failed)
        << size;
  }
  rkey.bytes[7] = std::byte{0xff};
  EXPECT_EQ(driver.rma(0, drivers::RmaOp::get, {rkey.bytes, rkey.size}, 0, &to, 1, 1, nullptr), Status::failed);
}

TEST_F(Self, TheDoorbellRingsOnlyForASleeper) {
  ASSERT_EQ(node.send(0, pattern(1, 1)), Status::ok);
  EXPECT_FALSE(driver.wants_wake(0));
  EXPECT_FALSE(driver.arm()) << "a packet waits";
  node.poll();
  ASSERT_TRUE(driver.arm());
  ASSERT_EQ(node.send(0, pattern(1, 1)), Status::ok);
  EXPECT_TRUE(driver.wants_wake(0));
  EXPECT_FALSE(driver.wants_wake(0));
  pollfd one = {driver.descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&one, 1, 0), 0);
  driver.wake(0);
  EXPECT_EQ(::poll(&one, 1, 0), 1);
  driver.disarm();
  EXPECT_EQ(::poll(&one, 1, 0), 0);
}

}  // namespace
}  // namespace canele::drivers

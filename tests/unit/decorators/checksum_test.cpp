// SPDX-License-Identifier: BSD-3-Clause
//
// Checksums around drivers: an intact packet arrives, a damaged one never does. And the sum itself, against known
// values.
//
// One thread. The damage is done below the checksums, as a network would do it.
#include <cstring>
#include <random>

#include "drivers/decorators/crc32c.hpp"
#include "drivers/decorators/decorator.hpp"
#include "drivers/decorators/decorators.hpp"
#include "drivers/shm/shm.hpp"
#include "drivers/tcp/tcp.hpp"
#include "tests/conformance/driver_kit.hpp"

namespace canele::drivers {
namespace {

using conformance::Bytes;
using conformance::cut;
using conformance::pattern;
using conformance::World;

// RFC 3720, appendix B.4, and the check value of the polynomial.
TEST(Crc32c, KnownValues) {
  const Bytes zeros(32), ones(32, std::byte{0xff});
  EXPECT_EQ(crc32c(0, "123456789", 9), 0xe3069283u);
  EXPECT_EQ(crc32c(0, zeros.data(), zeros.size()), 0x8a9136aau);
  EXPECT_EQ(crc32c(0, ones.data(), ones.size()), 0x62a8ab43u);
  EXPECT_EQ(crc32c(0, nullptr, 0), 0u);
}

TEST(Crc32c, InstructionAndTableAgreeInPartsAndAtAnyAddress) {
  const Bytes bytes = pattern(5000, 7);
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    const std::size_t begin = random() % 64, size = random() % 4900, part = size == 0 ? 0 : random() % size;
    const std::byte* const at = bytes.data() + begin;
    const std::uint32_t whole = crc32c(0, at, size);
    ASSERT_EQ(whole, crc32c_by_table(0, at, size)) << begin << " " << size;
    ASSERT_EQ(whole, crc32c(crc32c_by_table(0, at, part), at + part, size - part)) << begin << " " << part;
  }
}

/// Damages one packet, once armed.
class Spoiler final : public Decorator {
 public:
  enum class Damage { none, flip, cut };
  inline static Damage damage = Damage::none;
  inline static double where = 0;  ///< 0: its beginning, 1: its end

  explicit Spoiler(std::unique_ptr<Driver> inner) : Decorator(std::move(inner)) {}

 private:
  Status send_packet_impl(Rank peer, const iovec* pieces, int count, std::size_t size, Token token) override {
    if (damage == Damage::none) return inner().send_packet(peer, pieces, count, size, token);
    bytes_ = gather(pieces, count, size);
    const auto at = static_cast<std::size_t>(where * static_cast<double>(size - 1));
    if (damage == Damage::flip) bytes_[at] ^= std::byte{0x10};
    if (damage == Damage::cut) bytes_.resize(at + 1);
    const iovec piece{bytes_.data(), bytes_.size()};
    return inner().send_packet(peer, &piece, 1, bytes_.size(), token);
  }
  Bytes bytes_;
};

class Checksum : public testing::TestWithParam<const DriverFactory*> {
 protected:
  Checksum() { begin(); }
  /// Starts two ranks, and connects them.
  void begin() {
    Spoiler::damage = Spoiler::Damage::none;
    world_ = World(*GetParam(), 2);
    for (const Rank rank : {0, 1}) {
      auto& driver = world_[rank].driver;
      driver = with_checksums(std::make_unique<Spoiler>(std::move(driver)));
    }
    world_.open();
    world_.join(0, 1);
  }
  /// Checks that rank 1 has given rank 0 up, with a reason, and that nothing has arrived.
  void expect_loss() {
    ASSERT_TRUE(world_.until([&] { return world_[1].failures.count(0) == 1; }));
    EXPECT_TRUE(world_[1].failures[0].first);
    const std::string& why = world_[1].failures[0].second;
    EXPECT_NE(why.find("rank 0 sent a packet"), std::string::npos) << why;
    EXPECT_NE(why.find("checksum is wrong"), std::string::npos) << why;
    EXPECT_TRUE(world_[1].packets.empty());
    EXPECT_TRUE(world_[1].written_bytes.empty());
    ASSERT_TRUE(world_.until([&] { return world_[0].failures.count(1) == 1; })) << "the sender must hear of it";
  }
  World world_{*GetParam(), 2};
};

TEST_P(Checksum, WholePacketsArrive) {
  Driver& driver = *world_[0].driver;
  std::vector<Bytes> sent;
  for (const std::size_t size : {std::size_t{1}, std::size_t{5}, std::size_t{1000}, driver.capabilities().max_packet}) {
    sent.push_back(pattern(size, size));
    ASSERT_TRUE(world_.until([&] { return world_[0].send(1, sent.back(), size > 10 ? 7 : 1) != Status::full; }));
  }
  if (driver.capabilities().max_inline > 0) {
    sent.push_back(pattern(driver.capabilities().max_inline, 3));
    const Bytes& line = sent.back();
    ASSERT_TRUE(world_.until(
        [&] { return driver.send_inline(1, line.data(), 10, line.data() + 10, line.size() - 10) == Status::ok; }));
  }
  if (driver.capabilities().reserves) {
    sent.push_back(pattern(100, 4));
    std::span<std::byte> room;
    ASSERT_TRUE(world_.until([&] { return !(room = driver.reserve(1, 200)).empty(); }));
    ASSERT_EQ(room.size(), 200u);
    std::copy(sent.back().begin(), sent.back().end(), room.begin());
    driver.commit(1, 100);
  }
  ASSERT_TRUE(world_.until([&] { return world_[1].packets.size() == sent.size(); })) << world_[1].failures[0].second;
  for (std::size_t i = 0; i < sent.size(); ++i) EXPECT_EQ(world_[1].packets[i].bytes, sent[i]) << i;
}

TEST_P(Checksum, BulkArrivesInParts) {
  const std::size_t most = world_[0].driver->capabilities().max_bulk;
  Bytes whole = pattern(2 * most + 100, 5), room(whole.size());
  world_[1].expect_bulk(9, cut(room, 777));
  world_[1].most_pieces = 2;
  for (std::size_t at = 0; at < whole.size(); at += most) {
    const Bytes part(whole.begin() + static_cast<std::ptrdiff_t>(at),
                     whole.begin() + static_cast<std::ptrdiff_t>(std::min(at + most, whole.size())));
    ASSERT_TRUE(world_.until([&] { return world_[0].bulk(1, 9, at, part, 333) != Status::full; }));
  }
  ASSERT_TRUE(world_.until([&] { return world_[1].written_bytes[9] == whole.size(); }));
  EXPECT_EQ(room, whole);
  EXPECT_TRUE(world_.until([&] { return world_[0].pending() == 0; }));
}

TEST_P(Checksum, WhatNobodyWantsIsDropped) {
  ASSERT_TRUE(world_.until([&] { return world_[0].bulk(1, 9, 0, pattern(500, 5)) != Status::full; }));
  ASSERT_TRUE(world_.until([&] { return world_[0].send(1, pattern(5, 1)) != Status::full; }));
  ASSERT_TRUE(world_.until([&] { return world_[1].packets.size() == 1; }));
  EXPECT_TRUE(world_[1].written_bytes.empty());
}

class DamagedChecksum : public Checksum {};

TEST_P(DamagedChecksum, ADamagedPacketIsNeverDelivered) {
  for (const double where : {0.0, 0.5, 0.97, 1.0}) {
    begin();
    Spoiler::where = where;
    Spoiler::damage = Spoiler::Damage::flip;
    ASSERT_EQ(world_[0].send(1, pattern(100, 1)), Status::ok);
    expect_loss();
  }
}

TEST_P(DamagedChecksum, DamagedBulkTouchesNoMemory) {
  Bytes room(100);
  world_[1].expect_bulk(9, cut(room, 100));
  Spoiler::where = 0.6;
  Spoiler::damage = Spoiler::Damage::flip;
  ASSERT_EQ(world_[0].bulk(1, 9, 0, pattern(100, 1)), Status::ok);
  expect_loss();
  EXPECT_EQ(room, Bytes(100));
}

TEST_P(DamagedChecksum, ACutPacketIsNeverDelivered) {
  Spoiler::where = 0;
  Spoiler::damage = Spoiler::Damage::cut;
  ASSERT_EQ(world_[0].send(1, pattern(100, 1)), Status::ok);
  expect_loss();
}

const auto name_of = [](const auto& test) { return std::string(test.param->name); };
INSTANTIATE_TEST_SUITE_P(Drivers, Checksum, testing::Values(&tcp_factory, &shm_factory), name_of);
INSTANTIATE_TEST_SUITE_P(Drivers, DamagedChecksum, testing::Values(&tcp_factory, &shm_factory), name_of);

}  // namespace
}  // namespace canele::drivers

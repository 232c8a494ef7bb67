// SPDX-License-Identifier: BSD-3-Clause
//
// Traffic over the psm2 driver: sizes, order, both directions, back-pressure, bulk data, many processes.
//
// One thread per process. Every rank is a process of its own (ranks.hpp).
#include <algorithm>
#include <fstream>

#include "ranks.hpp"
#include "tests/slowness.hpp"

extern "C" int psm2_shim_hides_units;

namespace canele::drivers::psm2 {
namespace {

TEST(Psm2, SaysWhyItIsNotAvailable) {
  EXPECT_EQ(psm2_factory.unavailable(), "");
  psm2_shim_hides_units = 1;
  EXPECT_EQ(psm2_factory.unavailable(), "no Omni-Path unit: there is no /dev/hfi1_0 (the kernel's driver is hfi1)");
  psm2_shim_hides_units = 0;
}

TEST(Psm2, OneEndpointPerProcess) {
  Ranks ranks;
  ranks.start(1, [](Self& self) {
    const Capabilities& can = self.node.driver->capabilities();
    EXPECT_EQ(can.name, "psm2");
    EXPECT_EQ(can.max_instances, 1);
    EXPECT_TRUE(can.reaches_local);
    EXPECT_FALSE(can.reaches_remote);
    EXPECT_FALSE(can.memory_only);
    Node second(psm2_factory, 0, 1);
    EXPECT_EQ(second.open(), Status::failed);
    EXPECT_EQ(second.reason, "this process has a psm2 endpoint already; libpsm2 can have one per process");
    self.node.close();
    Node third(psm2_factory, 0, 1);
    EXPECT_EQ(third.open(), Status::failed);
    EXPECT_EQ(third.reason, "this process had a psm2 endpoint before; libpsm2 can open one per process");
  });
  ranks.expect_success();
  EXPECT_EQ(files_in_dev_shm(), 0);
}

TEST(Psm2, BadSettingsAreNamed) {
  Ranks ranks;
  ranks.adjust = [](Self& self) { self.node.context.settings["PSM2_MEETING"] = "never"; };
  ranks.start(
      1,
      [](Self& self) {
        EXPECT_EQ(self.node.open(), Status::failed);
        EXPECT_EQ(self.node.reason, "CANELE_PSM2_MEETING is \"never\"; expected: auto or off");
      },
      false);
  ranks.expect_success();
}

TEST(Psm2, AnAddressThatDoesNotFitIsRejectedAtOnce) {
  Ranks ranks;
  ranks.start(2, [](Self& self) {
    EXPECT_EQ(self.node.driver->connect(self.rank, self.node.address), Status::failed);
    EXPECT_EQ(self.node.driver->connect(1 - self.rank, {}), Status::failed);
    Bytes other(self.board.addresses[1 - self.rank], self.board.addresses[1 - self.rank] + 64);
    other[16] ^= std::byte{1};  // another host
    EXPECT_EQ(self.node.driver->connect(1 - self.rank, other), Status::failed);
    other[16] ^= std::byte{1};
    other[4] ^= std::byte{1};  // another version
    EXPECT_EQ(self.node.driver->connect(1 - self.rank, other), Status::failed);
    other.resize(63);
    EXPECT_EQ(self.node.driver->connect(1 - self.rank, other), Status::failed);
  });
  ranks.expect_success();
}

/// How libpsm2 copies large messages.
/// With "offer", short packets are offered as well, as they are when a slot of libpsm2's queue may be lost.
class Psm2Modes : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string mode = GetParam();
    const bool offers = mode.ends_with(" offer"), fetches = mode != "default";
    ::setenv("PSM2_KASSIST_MODE", mode.substr(0, mode.find(' ')).c_str(), 1);
    if (!fetches) ::unsetenv("PSM2_KASSIST_MODE");
    ranks.adjust = [offers, fetches](Self& self) {
      self.node.context.settings["PSM2_EAGER"] = offers ? "off" : "auto";
      self.node.context.settings["PSM2_FETCH"] = fetches ? "on" : "auto";
    };
  }
  void TearDown() override { ::unsetenv("PSM2_KASSIST_MODE"); }
  Ranks ranks;
};
INSTANTIATE_TEST_SUITE_P(Kassist, Psm2Modes,
                         testing::Values("default", "cma-get", "cma-put", "none", "cma-get offer", "none offer"),
                         [](const auto& mode) {
                           std::string name = mode.param;
                           std::erase_if(name, [](char c) { return c == '-' || c == ' '; });
                           return name;
                         });

const std::vector<std::size_t> packet_sizes = {1,  2,   8,    23,   24,   25,   31,   32,   33,   63,   64,
                                               65, 255, 1023, 1024, 1025, 4095, 4096, 4097, 7998, 7999, 8000};

TEST_P(Psm2Modes, PacketsOfAllSizesBothWays) {
  ranks.start(2, [](Self& self) {
    self.join();
    const Rank peer = 1 - self.rank;
    ASSERT_EQ(self.node.driver->capabilities().max_packet, 8000u);
    for (const std::size_t size : packet_sizes) {
      for (const int pieces : {1, 3}) self.send(peer, pattern(size, size), pieces);
      if (size > self.node.driver->capabilities().max_inline) continue;
      const Bytes bytes = pattern(size, size + 1);
      const std::size_t head = size / 2;
      while (self.node.driver->send_inline(peer, bytes.data(), head, bytes.data() + head, size - head) ==
             Status::full) {
        self.poll();
      }
    }
    std::size_t expected = 0;
    for (const std::size_t size : packet_sizes) {
      for (int i = 0; i < (size > 1024 ? 2 : 3); ++i, ++expected) {
        self.await([&] { return self.node.packets.size() > expected; });
        ASSERT_TRUE(self.node.packets[expected].bytes == pattern(size, i < 2 ? size : size + 1)) << size;
      }
    }
    self.await([&] { return self.node.pending() == 0; });
    self.barrier(2);
    EXPECT_EQ(self.node.packets.size(), expected);
  });
  ranks.expect_success();
}

const std::vector<std::size_t> bulk_sizes = {1,     24,    7999,  8000,    8001,    15999,         16000,  16001,
                                             16384, 65535, 65536, 1000003, 1 << 19, (1 << 20) - 1, 1 << 20};

TEST_P(Psm2Modes, BulkOfAllSizesIntoOneOrManyPieces) {
  ranks.start(2, [](Self& self) {
    const Rank peer = 1 - self.rank;
    std::vector<Bytes> targets;
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < bulk_sizes.size(); ++i) {
      for (std::uint64_t way = 0; way < 3; ++way) {
        targets.emplace_back(bulk_sizes[i]);
        // Into one piece, into pieces, into pieces of which each bulk_destination() returns two.
        self.node.expect_bulk(i * 3 + way,
                              conformance::cut(targets.back(), way == 0 ? bulk_sizes[i] : bulk_sizes[i] / 5 + 1));
        total += bulk_sizes[i];
      }
    }
    self.join();
    const auto written = [&] {
      std::uint64_t sum = 0;
      for (const auto& [key, bytes] : self.node.written_bytes) sum += bytes;
      return sum;
    };
    for (std::uint64_t way = 0; way < 3; ++way) {
      self.node.most_pieces = way == 2 ? 2 : 1 << 20;
      for (std::size_t i = 0; i < bulk_sizes.size(); ++i) {
        const std::size_t piece = way == 1 ? bulk_sizes[i] / 7 + 1 : bulk_sizes[i];
        self.bulk(peer, i * 3 + way, 0, pattern(bulk_sizes[i], i + 100 * way), piece);
      }
      self.await([&] { return written() >= total / 3 * (way + 1) && self.node.pending() == 0; });
      self.barrier(2 + static_cast<int>(way));
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
      EXPECT_TRUE(targets[i] == pattern(targets[i].size(), i / 3 + 100 * (i % 3))) << targets[i].size();
      EXPECT_EQ(self.node.written_bytes[i], targets[i].size());
    }
  });
  ranks.expect_success();
}

TEST_P(Psm2Modes, ATransferInPiecesAtOffsetsAndOneThatNobodyWants) {
  ranks.start(2, [](Self& self) {
    Bytes target(5 << 20);
    self.node.expect_bulk(7, {{target.data(), target.size()}});
    self.join();
    if (self.rank == 0) {
      const Bytes source = pattern(target.size(), 5);
      for (std::size_t at = 0; at < source.size(); at += 1 << 20) {
        self.bulk(1, 8, at, Bytes(1 << 20));
        self.bulk(1, 7, at,
                  Bytes(source.begin() + static_cast<std::ptrdiff_t>(at),
                        source.begin() + static_cast<std::ptrdiff_t>(at + (1 << 20))));
      }
      self.send(1, pattern(10, 1));
      self.await([&] { return self.node.pending() == 0; });
    } else {
      self.await([&] { return !self.node.packets.empty(); });
      EXPECT_EQ(self.node.written_bytes[7], target.size());  // in order: all of it before the packet
      EXPECT_TRUE(target == pattern(target.size(), 5));
      EXPECT_EQ(self.node.written_bytes.count(8), 0u);
    }
    self.barrier(2);
  });
  ranks.expect_success();
}

/// Message `i` of the mixture: packets and bulk data of all sizes.
struct Mixed {
  bool bulk;
  std::size_t size;
};
Mixed mixed(std::uint64_t i) {
  const std::uint64_t draw = (i + 1) * 0x9e3779b97f4a7c15u >> 33;
  if (draw % 16 == 0) return {true, 1 + draw % 70000};
  return {false, draw % 3 == 0 ? 8 + draw % 7993 : 8 + draw % 100};
}

TEST_P(Psm2Modes, AMixtureStaysInOrderBothWays) {
  static constexpr std::uint64_t count = 20000 / test::slowness;
  ranks.start(2, [](Self& self) {
    const Rank peer = 1 - self.rank;
    std::uint64_t next = 0;
    Bytes target(70001);
    self.node.on_packet = [&](Rank, std::span<const std::byte> bytes) {
      EXPECT_TRUE(!mixed(next).bulk && bytes.size() == mixed(next).size) << next;
      std::uint64_t number;
      std::memcpy(&number, bytes.data(), sizeof number);
      EXPECT_EQ(number, next++);
      self.node.packets.clear();
      return Take::taken;
    };
    self.join();
    std::uint64_t expected = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const Mixed message = mixed(i);
      if (message.bulk) {
        self.node.expect_bulk(i, {{target.data(), message.size}});
      }
    }
    self.barrier(2);
    const auto skip_written = [&] {  // bulk data that is written, in its turn
      while (next < count && mixed(next).bulk && self.node.written_bytes[next] == mixed(next).size) ++next;
    };
    self.node.on_packet = [&, check = self.node.on_packet](Rank from, std::span<const std::byte> bytes) {
      skip_written();
      return check(from, bytes);
    };
    for (std::uint64_t i = 0; i < count; ++i) {
      Bytes bytes(mixed(i).size);
      if (!mixed(i).bulk) {
        std::memcpy(bytes.data(), &i, sizeof i);
        self.send(peer, bytes);
      } else {
        self.bulk(peer, i, 0, bytes);
      }
      ++expected;
    }
    self.await([&] { return skip_written(), next == count; });
    EXPECT_EQ(expected, count);
    self.barrier(3);
  });
  ranks.expect_success();
}

// The receiver does not poll. The sender is told so, is not stopped, and can continue when the receiver is back.
TEST(Psm2, AFullPeerAnswersFullAndOwesReady) {
  Ranks ranks;
  ranks.start(2, [](Self& self) {
    self.join();
    if (self.rank == 0) {
      std::uint64_t sent = 0;
      while (self.node.send(1, pattern(8000, sent)) != Status::full) ASSERT_LT(++sent, 1000u);
      EXPECT_GE(sent, 2u);
      for (int i = 0; i < 100; ++i) {
        self.node.poll();
        EXPECT_EQ(self.node.bulk(1, 1, 0, Bytes(100)), Status::full);
      }
      EXPECT_TRUE(self.node.ready_ranks.empty());
      self.board.numbers[0] = sent;
      self.board.flags[0] = 1;
      self.await([&] { return !self.node.ready_ranks.empty(); });
      self.send(1, pattern(9, 9));
    } else {
      while (self.board.flags[0] == 0) ::sched_yield();  // not polling
      self.await([&] { return self.node.packets.size() == self.board.numbers[0] + 1; });
      for (std::uint64_t i = 0; i < self.board.numbers[0]; ++i) {
        EXPECT_TRUE(self.node.packets[i].bytes == pattern(8000, i));
      }
    }
    self.barrier(2);
  });
  ranks.expect_success();
}

TEST(Psm2, WhatIsTakenLaterIsPresentedAgainInOrder) {
  Ranks ranks;
  ranks.start(2, [](Self& self) {
    Bytes target(100000);
    self.node.expect_bulk(1, {{target.data(), target.size()}});
    self.join();
    if (self.rank == 0) {
      for (std::uint64_t i = 0; i < 5; ++i) self.send(1, pattern(3000, i));
      self.bulk(1, 1, 0, pattern(target.size(), 77));
      for (std::uint64_t i = 5; i < 100; ++i) self.send(1, pattern(3000, i));
    } else {
      int retries = 0;
      self.node.on_packet = [&](Rank, std::span<const std::byte>) {
        if (self.node.packets.size() == 3 && ++retries < 50) return Take::retry;
        EXPECT_EQ(self.node.written_bytes[1], self.node.packets.size() >= 5 ? target.size() : 0u);
        return Take::taken;
      };
      self.await([&] { return self.node.packets.size() == 100; });
      for (std::uint64_t i = 0; i < 100; ++i) EXPECT_TRUE(self.node.packets[i].bytes == pattern(3000, i)) << i;
      EXPECT_EQ(retries, 50);
      EXPECT_TRUE(target == pattern(target.size(), 77));
    }
    self.barrier(2);
  });
  ranks.expect_success();
}

TEST(Psm2, ASendBeforeTheConnectionIsFullThenReady) {
  Ranks ranks;
  ranks.start(2, [](Self& self) {
    const Rank peer = 1 - self.rank;
    EXPECT_EQ(self.node.send(peer, pattern(10, 1)), Status::full);
    self.join();
    self.await([&] { return !self.node.ready_ranks.empty(); });
    self.send(peer, pattern(10, 1));
    self.await([&] { return self.node.packets.size() == 1; });
    self.barrier(2);
  });
  ranks.expect_success();
}

/// Reports where the first and the last wrong byte are, and their values.
void expect_same(const Bytes& got, const Bytes& wanted, std::size_t from) {
  if (got == wanted) return;
  std::size_t first = 0, last = got.size() - 1;
  while (got[first] == wanted[first]) ++first;
  while (got[last] == wanted[last]) --last;
  ADD_FAILURE() << "wrong data from rank " << from << ": bytes " << first << " to " << last << " of " << got.size()
                << ", which begin with " << std::to_integer<int>(got[first]) << " instead of "
                << std::to_integer<int>(wanted[first]);
}

TEST(Psm2, ManyProcessesAllToAll) {
  constexpr Rank count = 32 / test::slowness;
  constexpr std::uint64_t rounds = 10;
  Ranks ranks;
  ranks.start(count, [](Self& self) {
    std::vector<Bytes> targets(count, Bytes(20000));
    for (std::size_t from = 0; from < count; ++from) {
      self.node.expect_bulk(from, {{targets[from].data(), targets[from].size()}});
    }
    self.barrier(10);
    for (Rank peer = 0; peer < count; ++peer) {
      if (peer == self.rank) continue;
      ASSERT_EQ(self.connect(peer), Status::pending);  // both ends of each pair at once
    }
    self.await([&] { return self.node.up.size() == count - 1; });
    for (std::uint64_t round = 0; round < rounds; ++round) {
      for (Rank peer = 0; peer < count; ++peer) {
        if (peer != self.rank)
          self.send(peer, pattern(1 + round * 700, static_cast<std::uint64_t>(self.rank) * 100 + round));
      }
    }
    for (Rank peer = 0; peer < count; ++peer) {
      if (peer == self.rank) continue;
      self.bulk(peer, static_cast<std::uint64_t>(self.rank), 0, pattern(20000, static_cast<std::uint64_t>(self.rank)));
    }
    // Bulk data is reported part by part: the last part of each is waited for.
    const auto is_written = [](const auto& entry) { return entry.second == 20000; };
    self.await([&] {
      const auto& written = self.node.written_bytes;
      return self.node.packets.size() == rounds * (count - 1) && written.size() == count - 1 &&
             std::all_of(written.begin(), written.end(), is_written) && self.node.pending() == 0;
    });
    std::map<Rank, std::uint64_t> seen;
    for (const auto& [from, bytes] : self.node.packets) {
      const std::uint64_t round = seen[from]++;
      EXPECT_TRUE(bytes == pattern(1 + round * 700, static_cast<std::uint64_t>(from) * 100 + round));
    }
    self.barrier(11);
    for (std::size_t from = 0; from < count; ++from) {
      if (static_cast<Rank>(from) == self.rank) continue;
      expect_same(targets[from], pattern(20000, from), from);
    }
  });
  ranks.expect_success();
  EXPECT_EQ(files_in_dev_shm(), 0);
}

TEST(Psm2, LeavingDeliversEverythingFirst) {
  Ranks ranks;
  ranks.start(2, [](Self& self) {
    self.patient = true;
    Bytes target(1 << 20);
    self.node.expect_bulk(3, {{target.data(), target.size()}});
    self.join();
    if (self.rank == 0) {
      for (std::uint64_t i = 0; i < 10; ++i) self.send(1, pattern(5000, i));
      self.bulk(1, 3, 0, pattern(1 << 20, 3));
      self.node.close();
    } else {
      self.await([&] { return !self.node.failures.empty(); });
      EXPECT_EQ(self.node.packets.size(), 10u);
      EXPECT_TRUE(target == pattern(1 << 20, 3));
      EXPECT_TRUE(self.node.failures[0].first);
      EXPECT_NE(self.node.failures[0].second.find("psm2: rank 0: it left (pid "), std::string::npos);
      EXPECT_EQ(self.node.send(0, pattern(1, 1)), Status::failed);
    }
  });
  ranks.expect_success();
  EXPECT_EQ(files_in_dev_shm(), 0);
}

}  // namespace
}  // namespace canele::drivers::psm2

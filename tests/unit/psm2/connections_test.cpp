// SPDX-License-Identifier: BSD-3-Clause
//
// How psm2 peers find each other: at once, with a busy peer, wrong secrets, unauthenticated peers at the control socket
// and in the queue.
//
// One thread per process. "Coordinator off" makes local peers connect the way that peers of other hosts do, which
// cannot be tested here otherwise.
#include <psm2.h>
#include <psm2_mq.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdio>

#include "drivers/psm2/wire.hpp"
#include "ranks.hpp"

namespace canele::drivers::psm2 {
namespace {

class Psm2Connect : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ranks.adjust = [mode = GetParam()](Self& self) { self.node.context.settings["PSM2_MEETING"] = mode; };
  }
  Ranks ranks;
};
INSTANTIATE_TEST_SUITE_P(Coordinator, Psm2Connect, testing::Values("auto", "off"),
                         [](const auto& mode) { return std::string(mode.param); });

void exchange(Self& self, Rank peer, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) self.send(peer, pattern(1 + i * 77 % 8000, i));
  self.expected += count;  // some may have arrived already
  self.await([&] { return self.node.packets.size() >= self.expected; });
}

TEST_P(Psm2Connect, OneSideConnects) {
  for (const Rank active : {0, 1}) {
    Ranks two;
    two.adjust = ranks.adjust;
    two.start(2, [active](Self& self) {
      if (self.rank == active) {
        ASSERT_EQ(self.connect(1 - active), Status::pending);
      }
      self.await([&] { return self.node.up.size() == 1; });
      exchange(self, 1 - self.rank, 200);
      // It is up already: the call has no further effect.
      EXPECT_EQ(self.connect(1 - self.rank), Status::pending);
      self.barrier(2);
    });
    two.expect_success();
  }
}

/// Without the coordinator no peer can wake it; the driver says so.
TEST_P(Psm2Connect, AConnectRequestAndAPacketWakeASleeper) {
  ranks.start(2, [mode = std::string(GetParam())](Self& self) {
    EXPECT_EQ(self.node.driver->capabilities().wake_up, mode == "auto" ? WakeUp::descriptor : WakeUp::none);
    EXPECT_EQ(self.node.driver->descriptor() >= 0, mode == "auto");
    if (mode != "auto") return;
    if (self.rank == 0) {
      ASSERT_EQ(self.connect(1), Status::pending);
      while (self.node.up.empty()) self.sleep();
      self.send(1, pattern(100, 1));
      while (self.node.packets.empty()) self.sleep();
    } else {
      while (self.node.packets.empty()) self.sleep();
      self.send(0, pattern(100, 2));
    }
    self.barrier(2);
  });
  ranks.expect_success();
}

TEST_P(Psm2Connect, BothSidesConnectAtOnce) {
  for (int round = 0; round < 20; ++round) {
    Ranks two;
    two.adjust = ranks.adjust;
    two.start(2, [round](Self& self) {
      self.barrier(3);
      // At slightly different times, in each round by another amount.
      for (int i = 0; i < (self.rank == round % 2 ? round * 3 : 0); ++i) self.node.poll();
      ASSERT_EQ(self.connect(1 - self.rank), Status::pending);
      self.await([&] { return self.node.up.size() == 1; });
      exchange(self, 1 - self.rank, 20);
      self.barrier(2);
    });
    two.expect_success();
  }
}

TEST_P(Psm2Connect, AWrongSecretIsRejectedAndDisturbsNoRank) {
  ranks.adjust = [mode = GetParam()](Self& self) {
    self.node.context.settings["PSM2_MEETING"] = mode;
    if (self.rank == 2) self.node.context.key[3] ^= std::byte{1};
  };
  ranks.start(3, [](Self& self) {
    self.patient = self.rank == 2;
    if (self.rank == 2) {
      ASSERT_EQ(self.connect(0), Status::pending);
      self.await([&] { return self.node.failures.size() == 1; });
      EXPECT_FALSE(self.node.failures[0].first);
      EXPECT_NE(self.node.failures[0].second.find("the job's secret differs"), std::string::npos)
          << self.node.failures[0].second;
      EXPECT_EQ(self.node.send(0, pattern(1, 1)), Status::failed);
    } else {
      ASSERT_TRUE(self.rank != 0 || self.connect(1) == Status::pending);
      self.await([&] { return self.node.up.size() == 1; });
      exchange(self, 1 - self.rank, 200);
    }
    self.barrier(2);
    EXPECT_EQ(self.node.up.count(self.rank == 2 ? 0 : 2), 0u);
  });
  ranks.expect_success();
}

TEST_P(Psm2Connect, AnotherJobIsRejected) {
  ranks.adjust = [mode = GetParam()](Self& self) {
    self.node.context.settings["PSM2_MEETING"] = mode;
    self.node.context.job += static_cast<std::uint64_t>(self.rank);
  };
  ranks.start(2, [](Self& self) {
    self.patient = true;
    if (self.rank == 1) {
      ASSERT_EQ(self.connect(0), Status::pending);
      self.await([&] { return self.node.failures.size() == 1; });
      EXPECT_FALSE(self.node.failures[0].first);
      EXPECT_NE(self.node.failures[0].second.find("the peer rejected the connection"), std::string::npos);
    }
    self.barrier(2);
    EXPECT_TRUE(self.node.up.empty());
  });
  ranks.expect_success();
}

// libpsm2 would block for two seconds here. The polls of rank 0 continue, and the peer finds it when it is back.
TEST(Psm2Coordinator, ABusyPeerStopsNobody) {
  Ranks ranks;
  ranks.start(2, [](Self& self) {
    if (self.rank == 0) {
      ASSERT_EQ(self.connect(1), Status::pending);
      for (int i = 0; i < 20000; ++i) self.node.poll();  // at two seconds each: the limit of the test
      EXPECT_TRUE(self.node.up.empty());
      self.board.flags[0] = 1;
    } else {
      while (self.board.flags[0] == 0) ::sched_yield();
    }
    self.await([&] { return self.node.up.size() == 1; });
    exchange(self, 1 - self.rank, 10);
    self.barrier(2);
  });
  ranks.expect_success();
}

// The host waits for a seeker that computes: a moment each time, less and less often.
TEST(Psm2Coordinator, ASeekerThatIsBusyStopsNobody) {
  Ranks ranks;
  ranks.start(2, [](Self& self) {
    if (self.rank == 0) {
      ASSERT_EQ(self.connect(1), Status::pending);
      self.node.poll();  // probes the peer
      self.board.flags[0] = 1;
      while (self.board.flags[1] == 0) ::sched_yield();
    } else {
      while (self.board.flags[0] == 0) ::sched_yield();
      for (int i = 0; i < 20000; ++i) self.node.poll();
      EXPECT_TRUE(self.node.up.empty());
      self.board.flags[1] = 1;
    }
    self.await([&] { return self.node.up.size() == 1; });
    exchange(self, 1 - self.rank, 10);
    self.barrier(2);
  });
  ranks.expect_success();
}

TEST(Psm2Coordinator, AProcessThatIsGoneIsNamed) {
  Ranks ranks;
  ranks.start(2, [](Self& self) {
    self.patient = true;
    if (self.rank == 1) return;
    while (self.board.flags[0] == 0) ::sched_yield();
    ASSERT_EQ(self.connect(1), Status::pending);
    self.await([&] { return self.node.failures.size() == 1; });
    EXPECT_TRUE(self.node.failures[1].first) << self.node.failures[1].second;
    EXPECT_EQ(self.node.send(1, pattern(1, 1)), Status::failed);
    EXPECT_EQ(self.connect(1), Status::failed);
  });
  EXPECT_EQ(ranks.finish(1), 0);
  ranks.board->flags[0] = 1;
  EXPECT_EQ(ranks.finish(0), 0);
}

// Letters that are garbage, too short, too long, with descriptors, without a valid proof.
TEST(Psm2Coordinator, AFloodOfLettersDisturbsNoPeer) {
  Ranks ranks;
  ranks.start(3, [](Self& self) {
    if (self.rank == 2) {
      Whereabouts where;
      ASSERT_TRUE(unpack({self.board.addresses[0], self.board.address_sizes[0]}, &where));
      sockaddr_un address = {};
      address.sun_family = AF_UNIX;
      std::string name = "canele-psm2-";
      for (const std::byte b : where.control) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", std::to_integer<unsigned>(b));
        name += digits;
      }
      std::copy(name.begin(), name.end(), address.sun_path + 1);
      const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
      const int fd = ::socket(AF_UNIX, SOCK_DGRAM, 0);
      ASSERT_GE(fd, 0);
      for (std::uint64_t i = 0; i < 1000; ++i) {
        Bytes letter = pattern(i % 100 + 1, i);
        if (i % 3 == 0) {  // a valid beginning
          letter.resize(72);
          net::write_le(letter.data(), 0x726f6f44, 4);
          net::write_le(letter.data() + 4, format_version, 2);
          net::write_le(letter.data() + 6, 1 + i % 4, 2);
          net::write_le(letter.data() + 12, 1, 4);
          net::write_le(letter.data() + 16, 0, 4);
        }
        ::sendto(fd, letter.data(), letter.size(), 0, reinterpret_cast<sockaddr*>(&address), size);
      }
      ::close(fd);
    } else {
      ASSERT_TRUE(self.rank != 1 || self.connect(0) == Status::pending);
      self.await([&] { return self.node.up.size() == 1; });
      exchange(self, 1 - self.rank, 1000);
    }
    self.barrier(2);
    EXPECT_EQ(self.node.up.count(2), 0u);
  });
  ranks.expect_success();
}

psm2_mq_tag_t raw_tag(std::uint32_t first, std::uint32_t second) {
  psm2_mq_tag_t tag = {};
  tag.tag0 = first;
  tag.tag1 = second;
  return tag;
}

/// A program of the same user that speaks libpsm2 and not our protocol.
void be_unauthenticated(Board& board) {
  int major = PSM2_VERNO_MAJOR, minor = PSM2_VERNO_MINOR;
  psm2_error_register_handler(nullptr, PSM2_ERRHANDLER_NO_HANDLER);
  ASSERT_EQ(psm2_init(&major, &minor), PSM2_OK);
  psm2_uuid_t key = {1, 2, 3};
  psm2_ep_t endpoint;
  psm2_epid_t id;
  psm2_mq_t queue;
  ASSERT_EQ(psm2_ep_open(key, nullptr, &endpoint, &id), PSM2_OK);
  ASSERT_EQ(psm2_mq_init(endpoint, 0, nullptr, 0, &queue), PSM2_OK);
  Whereabouts where;
  ASSERT_TRUE(unpack({board.addresses[0], board.address_sizes[0]}, &where));
  psm2_epaddr_t address = nullptr;
  psm2_error_t error;
  ASSERT_EQ(psm2_ep_connect(endpoint, 1, &where.endpoint, nullptr, &error, &address, 0), PSM2_OK);
  Bytes large = pattern(1 << 20, 1);
  for (std::uint32_t i = 0; i < 2000; ++i) {
    // Every kind of our tags, then tags of no kind; short and long.
    psm2_mq_tag_t tag = raw_tag(i % 2 == 0 ? tag_magic | (i / 2 % 9) : i * 0x9e3779b9u, i);
    const auto size = static_cast<std::uint32_t>(i % 4 == 0 ? 0 : i % 7 == 0 ? 300 : 24);
    psm2_mq_req_t request;
    ASSERT_EQ(psm2_mq_isend2(queue, address, 0, &tag, large.data(), size, nullptr, &request), PSM2_OK);
    psm2_poll(endpoint);
  }
  psm2_mq_tag_t tag = raw_tag(tag_magic | static_cast<std::uint32_t>(Kind::bulk_data), 0);
  psm2_mq_req_t request;
  ASSERT_EQ(psm2_mq_isend2(queue, address, 0, &tag, large.data(), 1 << 20, nullptr, &request), PSM2_OK);
  psm2_mq_status2_t status;
  while (psm2_mq_test2(&request, &status) != PSM2_OK) psm2_poll(endpoint);  // removed, without its data
  ++board.flags[0];
  remove_own(id);
}

TEST_P(Psm2Connect, AnUnauthenticatedPeerInTheQueueDisturbsNoRank) {
  ranks.start(2, [](Self& self) {
    self.barrier(3);
    self.await([&] { return self.board.flags[0] == 1; });
    if (self.rank == 0) {
      ASSERT_EQ(self.connect(1), Status::pending);
    }
    self.await([&] { return self.node.up.size() == 1; });
    exchange(self, 1 - self.rank, 100);
    self.barrier(2);
    EXPECT_EQ(self.node.packets.size(), 100u);
  });
  while (ranks.board->arrived[3] < 2) ::sched_yield();
  Ranks others;
  others.start(
      1, [&](Self&) { be_unauthenticated(*ranks.board); }, false);
  others.expect_success();
  ranks.expect_success();
}

// An authenticated peer that sends malformed packets is failed by name; a third peer is not disturbed.
TEST_P(Psm2Connect, APacketThatTheEngineRejectsEndsThePeerSilently) {
  ranks.start(2, [](Self& self) {
    self.patient = true;
    if (self.rank == 0) {
      ASSERT_EQ(self.connect(1), Status::pending);
    } else {  // before it is up: the packets may come with the same poll
      self.node.on_packet = [](Rank, std::span<const std::byte>) { return Take::rejected; };
    }
    self.await([&] { return self.node.up.size() == 1; });
    if (self.rank == 0) {
      self.send(1, pattern(10, 1));
      self.send(1, pattern(10, 2));
    } else {
      self.await([&] { return self.node.failures.count(0) == 1; });
      for (int i = 0; i < 1000; ++i) self.node.poll();  // the kit detects any callback
      EXPECT_EQ(self.node.presented, 1u);
      EXPECT_EQ(self.node.send(0, pattern(1, 1)), Status::failed);
    }
    self.barrier(2);
  });
  ranks.expect_success();
}

}  // namespace
}  // namespace canele::drivers::psm2

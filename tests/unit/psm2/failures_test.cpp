// SPDX-License-Identifier: BSD-3-Clause
//
// Psm2 peers that are killed or stopped, and what is left of them.
//
// One thread per process. libpsm2's shared memory is not made for processes that die in it; drivers/psm2/README.md says
// what can happen. Here processes die outside its critical moments, except where a test says so.
#include <cstdio>

#include "ranks.hpp"

namespace canele::drivers::psm2 {
namespace {

/// Sends twenty packets to rank 0, and notes that on the board.
void send_twenty(Self& self) {
  for (std::uint64_t i = 0; i < 20; ++i) self.send(0, pattern(1 + i * 300, i));
  self.board.flags[0] = 1;
}

class Psm2Death : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ::setenv("PSM2_KASSIST_MODE", GetParam(), 1);
    ranks.adjust = [](Self& self) { self.node.context.settings["PSM2_FETCH"] = "on"; };
  }
  void TearDown() override { ::unsetenv("PSM2_KASSIST_MODE"); }
  Ranks ranks;
};
INSTANTIATE_TEST_SUITE_P(Kassist, Psm2Death, testing::Values("cma-get", "none"),
                         [](const auto& mode) { return std::string(mode.param[0] == 'c' ? "cmaget" : "none"); });

TEST_P(Psm2Death, AKilledPeerIsNamedAfterAllThatItHadSent) {
  ranks.start(2, [](Self& self) {
    self.patient = true;
    self.join();
    if (self.rank == 1) {
      send_twenty(self);
      for (;;) self.poll();
    }
    while (self.board.flags[1] == 0) ::sched_yield();  // dead by now
    self.await([&] { return !self.node.failures.empty(); });
    EXPECT_TRUE(self.node.failures[1].first);
    EXPECT_EQ(self.node.failures[1].second, "psm2: rank 1: it died (pid " + std::to_string(self.board.flags[2]) + ")");
    ASSERT_EQ(self.node.packets.size(), 20u);
    for (std::uint64_t i = 0; i < 20; ++i) EXPECT_TRUE(self.node.packets[i].bytes == pattern(1 + i * 300, i));
    EXPECT_EQ(self.node.send(1, pattern(8, 1)), Status::failed);
    for (int i = 0; i < 1000; ++i) self.node.poll();
  });
  while (ranks.board->flags[0] == 0) ::sched_yield();
  ranks.board->flags[2] = ranks.pids[1];
  ranks.kill(1, SIGKILL);
  EXPECT_EQ(ranks.finish(1), -SIGKILL);
  EXPECT_GE(files_in_dev_shm(), 1);  // files that libpsm2 leaves
  ranks.board->flags[1] = 1;
  EXPECT_EQ(ranks.finish(0), 0);
  EXPECT_EQ(files_in_dev_shm(), 0);  // the survivor has removed it
}

TEST_P(Psm2Death, ADeathWakesASleeper) {
  ranks.start(2, [](Self& self) {
    self.patient = true;
    self.join();
    if (self.rank == 1) {
      while (self.board.flags[0] == 0) self.poll();
      ::kill(::getpid(), SIGKILL);
    }
    self.board.flags[0] = 1;
    while (self.node.failures.empty()) self.sleep();
    EXPECT_TRUE(self.node.failures[1].first);
  });
  EXPECT_EQ(ranks.finish(1), -SIGKILL);
  EXPECT_EQ(ranks.finish(0), 0);
}

/// With hardware no driver sees a death; the launcher reports it.
TEST_P(Psm2Death, TheLauncherSaysThatAPeerDied) {
  ranks.start(2, [](Self& self) {
    self.patient = true;
    self.join();
    if (self.rank == 1) {
      send_twenty(self);
      while (self.board.flags[1] == 0) ::sched_yield();
      return;
    }
    while (self.board.flags[0] == 0) ::sched_yield();
    self.node.context.died = 1;
    self.await([&] { return !self.node.failures.empty(); });
    EXPECT_TRUE(self.node.failures[1].first);
    EXPECT_EQ(self.node.packets.size(), 20u) << "what it had sent still counts";
    self.board.flags[1] = 1;
  });
  ranks.expect_success();
}

// The peer dies while bulk data that it has offered waits, and while bulk data for it does.
TEST_P(Psm2Death, BulkDataOfTheDeadAndForTheDead) {
  ranks.start(3, [](Self& self) {
    self.patient = true;
    Bytes target(1 << 20);
    self.node.expect_bulk(1, {{target.data(), target.size()}});
    self.join();
    if (self.rank == 2) {
      self.bulk(0, 1, 0, pattern(1 << 20, 1));
      self.send(0, pattern(100, 1));
      self.board.flags[0] = 1;
      while (self.board.flags[3] < 2) ::sched_yield();  // for ever
    }
    if (self.rank == 0) {
      while (self.board.flags[1] == 0) ::sched_yield();
    }
    if (self.rank == 1) {
      self.bulk(2, 1, 0, pattern(1 << 20, 1));
      EXPECT_EQ(self.node.pending(), 1u);
      self.board.flags[2] = 1;
    }
    self.await([&] { return self.node.failures.count(2) == 1; });
    EXPECT_TRUE(self.node.failures[2].first);
    // The two survivors continue.
    self.send(1 - self.rank, pattern(500, 9));
    self.bulk(1 - self.rank, 1, 0, pattern(1 << 20, 7));
    self.await([&] { return self.node.written_bytes[1] == 1 << 20; });
    EXPECT_TRUE(target == pattern(1 << 20, 7));
    self.board.flags[4] += 1;
    self.await([&] { return self.board.flags[4] == 2; });
  });
  while (ranks.board->flags[0] == 0 || ranks.board->flags[2] == 0) ::sched_yield();
  ranks.kill(2, SIGKILL);
  EXPECT_EQ(ranks.finish(2), -SIGKILL);
  ranks.board->flags[1] = 1;
  EXPECT_EQ(ranks.finish(0), 0);
  EXPECT_EQ(ranks.finish(1), 0);
  EXPECT_EQ(files_in_dev_shm(), 0);
}

// A stopped process is alive.
TEST(Psm2Stopped, IsNeverFailed) {
  Ranks ranks;
  ranks.start(2, [](Self& self) {
    self.join();
    if (self.rank == 1) {
      self.board.flags[0] = 1;
      self.await([&] { return self.node.packets.size() == 300; });
      for (std::uint64_t i = 0; i < 300; ++i) EXPECT_TRUE(self.node.packets[i].bytes == pattern(2000, i));
    } else {
      while (self.board.flags[1] == 0) ::sched_yield();
      std::uint64_t sent = 0;
      while (self.node.send(1, pattern(2000, sent)) != Status::full) ++sent;
      for (int i = 0; i < 100000; ++i) self.node.poll();
      EXPECT_TRUE(self.node.failures.empty());
      self.board.flags[2] = 1;
      for (; sent < 300; ++sent) self.send(1, pattern(2000, sent));
    }
    self.barrier(2);
  });
  while (ranks.board->flags[0] == 0) ::sched_yield();
  ranks.kill(1, SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(ranks.pids[1], &status, WUNTRACED), ranks.pids[1]);
  ranks.board->flags[1] = 1;
  while (ranks.board->flags[2] == 0) ::sched_yield();
  ranks.kill(1, SIGCONT);
  ranks.expect_success();
}

/// Kills one of four amid traffic. The others report it, continue among themselves, and leave nothing. Returns true if
/// it died at a moment that damages a queue.
bool kill_amid_traffic(std::uint64_t after) {
  Ranks ranks;
  ranks.start(4, [](Self& self) {
    self.patient = true;
    Bytes target(60000);
    self.node.expect_bulk(1, {{target.data(), target.size()}});
    self.join();
    const auto chat = [&](std::uint64_t i) {
      const Rank peer = static_cast<Rank>((self.rank + 1 + static_cast<Rank>(i % 3)) % 4);
      if (self.node.failures.count(peer) == 0) {
        const Status status = i % 20 == 0 ? self.node.bulk(peer, 1, i % 50000, Bytes(8000))
                                          : self.node.send(peer, pattern(1 + i * 37 % 4000, i));
        if (status == Status::full) self.poll();
      }
      self.poll();
      ++self.board.numbers[0];
    };
    std::uint64_t i = 0;
    for (; self.node.failures.empty(); ++i) chat(i);
    self.await([&] { return self.node.failures.count(3) == 1; });
    for (const std::uint64_t end = i + 300; i < end; ++i) chat(i);
    for (const auto& [rank, failure] : self.node.failures) {
      if (rank == 3) continue;
      // It died inside libpsm2's queue of one of us. No rank hangs; the engine takes its next driver.
      EXPECT_FALSE(failure.first);
      EXPECT_NE(failure.second.find("may be damaged"), std::string::npos) << failure.second;
      ++self.board.numbers[1];
    }
    ++self.board.arrived[9];
    self.await([&] { return self.board.arrived[9] == 3; });
  });
  while (ranks.board->numbers[0] < after) ::sched_yield();
  ranks.kill(3, SIGKILL);
  EXPECT_EQ(ranks.finish(3), -SIGKILL);
  for (const Rank rank : {0, 1, 2}) EXPECT_EQ(ranks.finish(rank), 0) << "rank " << rank << " after " << after;
  EXPECT_EQ(files_in_dev_shm(), 0);
  return ranks.board->numbers[1] > 0;
}

TEST(Psm2Killed, AmidTraffic) {
  int damaged = 0;
  for (std::uint64_t round = 0; round < 10; ++round) damaged += kill_amid_traffic(500 + round * 137) ? 1 : 0;
  RecordProperty("damaged", damaged);
  std::printf("in %d of 10 deaths a queue may be damaged\n", damaged);
}

}  // namespace
}  // namespace canele::drivers::psm2

// SPDX-License-Identifier: BSD-3-Clause
//
// Conformance: a peer that is killed, busy or idle; a peer that is stopped and goes on.
//
// The waits sleep on the driver's descriptor, so a death that is only seen by polling fails here.
#include <cstdio>

#include "tests/conformance/suite.hpp"
#include "tests/conformance/traffic.hpp"

namespace canele::conformance {
namespace {

constexpr std::size_t enough = 500;  ///< items received from the victim before it dies

std::uint64_t seed_of(Rank from, Rank to) { return static_cast<std::uint64_t>(from * 10 + to) + 400; }

void add_pairs(Job& job, Exchange& exchange, std::size_t count) {
  for (Rank peer = 0; peer < job.size; ++peer) {
    if (peer == job.rank) continue;
    exchange.add(peer, random_script(job.can(), seed_of(job.rank, peer), count),
                 random_script(job.can(), seed_of(peer, job.rank), count));
  }
}

/// Checks what a survivor knows of rank 2.
void check_death(Job& job) {
  if (!job.can().detects_failure) return;
  ASSERT_TRUE(job.until([&] { return job.has_failed(2); }, "failed(2) after kill -9"));
  EXPECT_EQ(job.try_send(2, pattern(100, 1)), Status::failed);
  const Rank other = 1 - job.rank;
  if (job.may_fail.count(other) == 1 && job.has_failed(other)) {
    EXPECT_FALSE(job.node.failures[other].first) << "rank " << other << " lives, and is said to be lost";
    EXPECT_EQ(job.try_send(other, pattern(100, 1)), Status::failed);
    std::printf("rank %d: parted from a survivor: %s\n", job.rank, job.node.failures[other].second.c_str());
    return;  // nor need it know that rank 2 is lost: the engine asks its next driver
  }
  EXPECT_TRUE(job.node.failures[2].first) << "lost";
  EXPECT_NE(job.node.failures[2].second.find("rank 2"), std::string::npos) << job.node.failures[2].second;
  EXPECT_EQ(job.node.failures.size(), 1u);
}

// Rank 2 dies in the middle of traffic among three ranks; the other two finish theirs. Rank 2 dies only after every
// rank knows all its connections. A rank that does not know them yet may never learn of a connection with the dead
// rank.
void killed(Job& job) {
  const std::size_t count = job.options.slow ? 2000 : 10'000;
  Exchange exchange(job);
  add_pairs(job, exchange, count);
  job.may_fail.insert(2);
  if (!job.connect_all()) return;
  ASSERT_TRUE(job.barrier("all are connected"));
  const Rank other = 1 - job.rank;
  if (job.options.parts_survivors && job.rank != 2) job.may_fail.insert(other);
  if (job.rank == 2) {
    exchange.run("its death");
    ASSERT_TRUE(job.until([] { return false; }, "its death"));
  }
  if (job.rank == 0) {
    ASSERT_TRUE(job.until(
        [&] {
          exchange.step();
          return exchange.with(2).received() >= enough;
        },
        "traffic from rank 2"));
    ASSERT_TRUE(job.kill(2));
  }
  ASSERT_TRUE(job.until(
      [&] {
        exchange.step();
        return (exchange.with(other).all_sent() && exchange.with(other).all_received()) || job.has_failed(other);
      },
      "traffic among the survivors"));
  check_death(job);
}

// No rank sends and all sleep when rank 2 dies.
void killed_while_idle(Job& job) {
  if (!job.connect_all()) return;
  job.may_fail.insert(2);
  ASSERT_TRUE(job.barrier("all are idle"));
  if (job.rank == 2) {
    job.until([] { return false; }, "its death");
    return;
  }
  if (job.rank == 0) {
    ASSERT_TRUE(job.kill(2));
  }
  check_death(job);
  ASSERT_TRUE(job.send(1 - job.rank, pattern(100, 2)));
  ASSERT_TRUE(job.until([&] { return job.node.packets.size() == 1; }, "a packet between survivors"));
}

// Rank 1 is stopped for 5 s: no rank declares it dead, and everything arrives.
void stopped(Job& job) {
  Exchange exchange(job);
  add_pairs(job, exchange, job.options.slow ? 1000 : 5000);
  if (!job.connect_all()) return;
  if (job.rank == 0) {
    ASSERT_TRUE(job.until(
        [&] {
          exchange.step();
          return exchange.with(1).received() >= enough / 5;
        },
        "traffic from rank 1"));
    ASSERT_TRUE(job.stop(1));
    ASSERT_TRUE(job.until(
        [&] {
          exchange.step();
          return exchange.with(2).all_received() && job.has_continued();
        },
        "traffic with rank 2 while rank 1 is stopped"));
  }
  exchange.run("everything, after a stop of 5 s");
  EXPECT_TRUE(job.node.failures.empty());
}

std::string needs_detection(const Capabilities& can, const Options&) {
  if (is_only_self(can)) return "reaches only its own rank";
  return can.detects_failure ? "" : "detects_failure is not declared";
}

constexpr TestCase cases[] = {
    {"killed", 3, killed, needs_others},
    {"killed_while_idle", 3, killed_while_idle, needs_detection},
    {"stopped", 3, stopped, needs_others},
};

}  // namespace

std::span<const TestCase> failure_tests() { return cases; }

}  // namespace canele::conformance

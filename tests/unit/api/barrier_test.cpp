// SPDX-License-Identifier: BSD-3-Clause
//
// A barrier in which one rank has lost another: it reports that, and delays no other rank.
//
// One thread per rank. No rank dies; two ranks are told that the other one has.
#include <thread>

#include "comm/engine/connect.hpp"
#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

void loses(LocalJob& job, int rank, int other) {
  comm::Engine& engine = job.engine(rank);
  ASSERT_TRUE(engine.try_lock());
  comm::peers::launcher_failed(engine, other);
  engine.unlock();
}

/// Returns the barrier's result in each rank.
std::vector<int> meet(LocalJob& job, const std::vector<canele_session_t*>& sessions) {
  constexpr std::uint64_t far_away_ns = 60'000'000'000;
  std::vector<int> said(sessions.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < sessions.size(); ++rank) {
    threads.emplace_back([&, rank] {
      const std::uint64_t deadline_ns = job.engine(static_cast<int>(rank)).platform.now_ns() + far_away_ns;
      said[rank] = comm::api::barrier(comm::api::session_of(sessions[rank]), deadline_ns);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return said;
}

TEST(Barrier, HoldsNobodyUpWhoHasLostNobody) {
  JobOptions options;
  options.size = 8;
  options.settings = {"CANELE_VERBOSE=0"};
  LocalJob job(options);
  const auto sessions = job.open("barrier");
  loses(job, 0, 1);
  loses(job, 1, 0);
  // Rank 1 waits for rank 0 in the first round; ranks 3 and 5 wait for rank 1 in the later ones.
  const std::vector<int> said = meet(job, sessions);
  for (std::size_t rank = 0; rank < said.size(); ++rank) {
    EXPECT_EQ(said[rank], rank == 1 ? CANELE_EPEER : CANELE_OK) << "rank " << rank;
  }
}

TEST(Barrier, MeetsWhereNobodyIsLost) {
  JobOptions options;
  options.size = 5;
  LocalJob job(options);
  const auto sessions = job.open("barrier");
  for (int turn = 0; turn < 3; ++turn) EXPECT_EQ(meet(job, sessions), std::vector<int>(5, CANELE_OK));
}

}  // namespace
}  // namespace canele::test

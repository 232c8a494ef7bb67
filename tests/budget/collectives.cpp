// SPDX-License-Identifier: BSD-3-Clause
//
// Blocking collectives of 8 bytes, between two engines in this thread, for callgrind to count.
//
// A thread that blocks cannot step the other engine. So only calls whose messages have already arrived are counted:
// those of a root that only sends, and those of a leaf that comes late. Where each rank needs the other, the call of
// the second rank is counted; the first rank has then called without blocking.
#include "collectives.hpp"

#include <canele/collectives.h>

#include <array>

#include "comm/engine/poll_yield.hpp"
#include "counting.hpp"
#include "still_clock.hpp"
#include "tests/unit/engine/local_job.hpp"

namespace canele::test::budget {
namespace {

struct Pair {
  Pair() {
    for (int rank = 0; rank < 2; ++rank) {
      must(canele_group_create(job.handle(rank), "budget", nullptr, 0, &group[rank]) == CANELE_OK, "no group");
    }
    canele_operator_of(CANELE_SUM, CANELE_INT64, &sum);
  }
  ~Pair() {
    for (canele_group_t* one : group) canele_group_destroy(one);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  /// Forgets the fruitless polls of the steps before: after some of them a poll yields, which would then be counted.
  static void before_step() { comm::poller_state = {}; }

  LocalJob job;
  std::array<canele_group_t*, 2> group{};
  std::array<canele_request_t, 2> request{};
  std::array<std::int64_t, 2> in{1, 2}, out{};
  canele_operator_t sum{};
  int row = 1;  ///< collectives in a row
};

constexpr canele_collective_options_t blocking = {sizeof(canele_collective_options_t), 0, 0, 0, 0, 0, 1};

template <int rank>
void bcast(Pair& p) {
  for (int i = 0; i < p.row; ++i) {
    canele_ibcast(p.group[rank], rank == 0 ? p.in.data() : p.out.data(), 8, 0, &blocking, nullptr);
  }
}
template <int rank>
void reduce(Pair& p) {
  for (int i = 0; i < p.row; ++i)
    canele_ireduce(p.group[rank], &p.in[rank], p.out.data(), 1, &p.sum, 0, &blocking, nullptr);
}
template <int rank>
void allreduce(Pair& p) {
  canele_iallreduce(p.group[rank], &p.in[rank], &p.out[rank], 1, &p.sum, rank == 0 ? nullptr : &blocking,
                    rank == 0 ? &p.request[0] : nullptr);
}
template <int rank>
void barrier(Pair& p) {
  canele_ibarrier(p.group[rank], rank == 0 ? nullptr : &blocking, rank == 0 ? &p.request[0] : nullptr);
}

/// Ends a round; not counted. Also waits for the request of the rank that called first.
void finish(Pair& p) {
  must(p.job.finish(p.request[0]), "a collective has not ended");
  must(comm::request_of(&p.request[0]).status_error == CANELE_OK, "a collective has failed");
  for (int i = 0; i < 3; ++i) p.job.step_all();
}
void finish_bcast(Pair& p) {
  finish(p);
  must(p.out[0] == p.in[0], "a broadcast has changed what it carries");
  ++p.in[0];
}
void finish_reduction(Pair& p) {
  finish(p);
  must(p.out[0] == p.in[0] + p.in[1], "a reduction has a wrong result");
  ++p.in[0];
}

using PairSteps = std::vector<Step<Pair>>;

void count_case(const std::string& name, Pair& p, const PairSteps& steps) {
  warm_up(p, steps, 1000);
  count(name, p, steps, p.row);
}

/// Connects the ranks, because the first call of a rank would wait for the connection.
void connect(Pair& p) {
  for (const int rank : {0, 1}) canele_ibarrier(p.group[rank], nullptr, &p.request[rank]);
  must(p.job.finish(p.request[0]) && p.job.finish(p.request[1]), "no connection");
  own_the_locks(p.job);
}

}  // namespace

void count_collectives() {
  Pair pair;
  connect(pair);
  stop_clock(true);
  const PairSteps broadcast = {{"root", bcast<0>}, {"leaf", bcast<1>}, {nullptr, finish_bcast}};
  const PairSteps reduction = {{"leaf", reduce<1>}, {"root", reduce<0>}, {nullptr, finish_reduction}};
  count_case("bcast-8", pair, broadcast);
  count_case("reduce-8", pair, reduction);
  count_case("allreduce-8", pair, {{nullptr, allreduce<0>}, {"second", allreduce<1>}, {nullptr, finish_reduction}});
  count_case("barrier", pair, {{nullptr, barrier<0>}, {"second", barrier<1>}, {nullptr, finish}});
  pair.row = 16;
  count_case("16xbcast-8", pair, broadcast);
  stop_clock(false);
  must(!testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed(), "the job has failed");
}

}  // namespace canele::test::budget

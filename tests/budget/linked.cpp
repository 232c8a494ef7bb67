// SPDX-License-Identifier: BSD-3-Clause
//
// One post of 8 bytes that has to go on with what other threads have linked to the engine's lock, for callgrind to
// count. Far more is linked than one call may run or put in order, so no call of a flooded engine takes longer.
//
// One thread does it all: it links posts while it holds the lock itself, and then leaves the lock, which puts it down.
#include "linked.hpp"

#include <array>
#include <cstdint>

#include "comm/engine/poll_yield.hpp"
#include "counting.hpp"
#include "still_clock.hpp"
#include "tests/unit/engine/local_job.hpp"

namespace canele::test::budget {
namespace {

constexpr std::size_t linked = 1000;

/// Rank 0 sends to rank 1. Message i has tag i.
struct LinkedWorld {
  /// The owner of a biased lock enters it again, where another thread would link its post.
  LinkedWorld() : session(job.open("budget")) {
    for (int rank = 0; rank < job.size(); ++rank) job.engine(rank).enable_lock_bias(false);
  }

  void link(int rank, void (LinkedWorld::*post)(std::size_t)) {
    comm::Engine& engine = job.engine(rank);
    engine.lock_for_callback();
    for (std::size_t i = 0; i < linked; ++i) (this->*post)(i);
    engine.unlock();
    const auto run_for_others = [&] { return engine.counters.read(comm::Counter::lock_queued); };
    for (const std::uint64_t before = run_for_others(); run_for_others() == before;) {  // it puts them in order
      must(engine.lock.seems_put_down(), "one call has put all posts of others in order");
      canele_progress(job.handle(rank));
    }
    must(engine.lock.seems_put_down(), "one call has run all posts of others");
  }
  void send(std::size_t i) { canele_isend(session[0], 1, i, &sent[i], sizeof sent[i], &sends[i]); }
  void receive(std::size_t i) {
    canele_irecv(session[1], 0, i, CANELE_TAG_EXACT, &received[i], sizeof received[i], &receives[i]);
  }
  bool is_over() const {
    for (std::size_t i = 0; i <= linked; ++i) {
      if (!comm::request_of(&sends[i]).finalized() || !comm::request_of(&receives[i]).finalized()) return false;
    }
    return true;
  }

  /// Forgets the fruitless polls of the steps before: after some of them a poll yields, which would then be counted.
  static void before_step() { comm::poller_state = {}; }

  LocalJob job;
  std::vector<canele_session_t*> session;
  std::array<std::uint64_t, linked + 1> sent{}, received{};
  std::array<canele_request_t, linked + 1> sends{}, receives{};
};

void link_receives(LinkedWorld& w) { w.link(1, &LinkedWorld::receive); }
void link_sends(LinkedWorld& w) { w.link(0, &LinkedWorld::send); }
void send(LinkedWorld& w) { w.send(linked); }
void receive(LinkedWorld& w) { w.receive(linked); }
void send_all(LinkedWorld& w) {
  for (std::size_t i = 0; i <= linked; ++i) w.send(i);
}
void receive_all(LinkedWorld& w) {
  for (std::size_t i = 0; i <= linked; ++i) w.receive(i);
}
/// Ends a round; not counted.
void finish(LinkedWorld& w) {
  must(w.job.until([&] {
    w.job.step_all();
    return w.is_over();
  }),
       "a message has been lost");
  must(w.sent == w.received, "a message has arrived changed");
  ++w.sent.front();
}

}  // namespace

void count_linked() {
  LinkedWorld world;
  const std::vector<Step<LinkedWorld>> receives = {
      {nullptr, link_receives}, {"receive", receive}, {nullptr, send_all}, {nullptr, finish}};
  const std::vector<Step<LinkedWorld>> sends = {
      {nullptr, receive_all}, {nullptr, link_sends}, {"send", send}, {nullptr, finish}};
  constexpr int rounds = 8;
  stop_clock(true);
  for (const auto* const steps : {&receives, &sends}) {
    warm_up(world, *steps, 2);
    count("1000-linked", world, *steps, 1, rounds);
  }
  stop_clock(false);
  must(!testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed(), "the job has failed");
}

}  // namespace canele::test::budget

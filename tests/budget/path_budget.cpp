// SPDX-License-Identifier: BSD-3-Clause
//
// path_budget: messages from one engine to another in this thread, through shared memory, for callgrind to count.
//
// Usage: valgrind --tool=callgrind --collect-atstart=no ... path_budget
// Run by budget_test.py. One thread, beside two that start the engines and one that takes a lock away from it. Both
// engines are in one process, but a step touches the memory of its own side only, except for the ring. Nothing is
// timed: the clock stands still while steps are counted. Otherwise callgrind's slowness would decide how often the
// driver checks its sockets.
#include <array>
#include <cstring>
#include <thread>

#include "active.hpp"
#include "collectives.hpp"
#include "comm/engine/poll_yield.hpp"
#include "counting.hpp"
#include "linked.hpp"
#include "one_sided.hpp"
#include "still_clock.hpp"
#include "tests/unit/engine/local_job.hpp"

namespace canele::test::budget {
namespace {

constexpr std::size_t most = 64;         ///< messages outstanding at a time
constexpr std::size_t large = 64 << 10;  ///< bytes; sent by rendezvous

struct alignas(64) Line {
  std::array<std::byte, 64> bytes;
};

/// Rank 0 sends to rank 1: `count` messages of `size` bytes at a time, each with a tag of its own.
struct World {
  explicit World(const JobOptions& options) : job(options), session(job.open("budget")) {}

  const void* out(std::size_t i) const { return buffers[0].data() + i * stride() / sizeof(Line); }
  void* in(std::size_t i) { return buffers[1].data() + i * stride() / sizeof(Line); }
  std::size_t stride() const { return (size + sizeof(Line) - 1) / sizeof(Line) * sizeof(Line); }
  canele_engine_t* sender() { return job.handle(0); }
  canele_engine_t* receiver() { return job.handle(1); }

  /// Forgets the fruitless polls of the steps before: after some of them a poll yields, which would then be counted.
  static void before_step() { comm::poller_state = {}; }

  /// Sets the size and number of the messages from now on.
  World& with(std::size_t new_size, std::size_t new_count = 1) {
    size = new_size;
    count = new_count;
    return *this;
  }

  LocalJob job;
  std::vector<canele_session_t*> session;
  std::size_t size = 8, count = 1;
  std::array<canele_request_t, most> sends{}, receives{};
  std::array<std::vector<Line>, 2> buffers = {std::vector<Line>(large / sizeof(Line)),
                                              std::vector<Line>(large / sizeof(Line))};
  int callbacks = 0;
};

void post(World& w) {
  for (std::size_t i = 0; i < w.count; ++i)
    canele_irecv(w.session[1], 0, i, CANELE_TAG_EXACT, w.in(i), w.size, &w.receives[i]);
}
void send(World& w) {
  for (std::size_t i = 0; i < w.count; ++i) canele_isend(w.session[0], 1, i, w.out(i), w.size, &w.sends[i]);
}
/// Polls once. The message must have arrived, and be delivered.
void test(World& w) {
  int done = 0;
  canele_test(&w.receives[0], &done, nullptr);
  must(done == 1, "one look has not delivered the message");
}
void wait(World& w) { canele_wait(&w.receives[0], nullptr); }
void wait_all(World& w) {
  std::array<canele_request_t*, most> all;
  for (std::size_t i = 0; i < w.count; ++i) all[i] = &w.receives[i];
  canele_wait_all(w.count, all.data(), nullptr);
}
/// Polls as often as necessary: one poll takes at most 32 packets.
void arrive(World& w) {
  for (std::size_t taken = 0; taken < w.count; taken += 32) canele_progress(w.receiver());
}
void look(World& w) { must(canele_progress(w.receiver()) == 0, "a look that should be in vain has found something"); }
void ask(World& w) {
  const auto callback = [](canele_request_t*, unsigned, void* world) { ++static_cast<World*>(world)->callbacks; };
  canele_request_on_event(&w.receives[0], CANELE_EVENT_FINALIZED, callback, &w);
}
/// Polls both engines, the receiver first, until the message is received and its send complete.
void both(World& w) {
  const auto over = [](const canele_request_t& request) { return comm::request_of(&request).finalized(); };
  while (!over(w.receives[0]) || !over(w.sends[0])) {
    canele_progress(w.receiver());
    canele_progress(w.sender());
  }
}
/// Ends a round; not counted. Checks the messages, and changes the bytes that the next round sends.
void finish(World& w) {
  for (std::size_t i = 0; i < w.count; ++i) {
    must(canele_wait(&w.receives[i], nullptr) == CANELE_OK && canele_wait(&w.sends[i], nullptr) == CANELE_OK,
         "a message has failed");
    must(std::memcmp(w.in(i), w.out(i), w.size) == 0, "a message has arrived changed");
  }
  for (int i = 0; i < 3; ++i) w.job.step_all();
  auto& bytes = w.buffers[0].front().bytes;
  bytes.front() = static_cast<std::byte>(std::to_integer<int>(bytes.front()) + 1);
}
void finish_called(World& w) {
  must(std::exchange(w.callbacks, 0) == 1, "the callback has not run once");
  finish(w);
}
void nothing(World&) {}

using Steps = std::vector<Step<World>>;
const Steps posted = {{"post", post}, {"send", send}, {"receive", test}, {nullptr, finish}};
const Steps unexpected = {{"send", send}, {"store", arrive}, {"take", post}, {nullptr, finish}};

void exchange(World& w, const Steps& steps, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    for (const Step<World>& step : steps) step.run(w);
  }
}

/// Makes the locks be taken by atomic operations, as beside a worker or where threads share an engine.
void share_the_locks(World& w) {
  for (int rank = 0; rank < w.job.size(); ++rank) w.job.engine(rank).enable_lock_bias(false);
  std::thread([&] { w.job.step_all(); }).join();
}

void count_small(World& w) {
  count("none", w, {{"nothing", nothing}}, 1);
  count("none", w, {{"look", look}}, 1);
  count("8-posted", w.with(8), posted, 1);
  count("8-posted", w, {{nullptr, post}, {nullptr, send}, {"wait", wait}, {nullptr, finish}}, 1);
  count("8-posted", w, {{nullptr, post}, {"ask", ask}, {nullptr, send}, {"call", arrive}, {nullptr, finish_called}}, 1);
  count("8-unexpected", w, unexpected, 1);
  count("64-posted", w.with(64), posted, 1);
  count("1024-posted", w.with(1024), posted, 1);
  count("1024-unexpected", w, unexpected, 1);
  count("64x8-posted", w.with(8, most), {{"post", post}, {"send", send}, {"wait-all", wait_all}, {nullptr, finish}},
        most);
  count("64x8-unexpected", w, unexpected, most);
}

void count_large(const std::string& name, World& w) {
  count(name + "-posted", w, {{"post", post}, {"send", send}, {"both", both}, {nullptr, finish}}, 1, 16);
  count(name + "-unexpected", w, {{"send", send}, {"store", arrive}, {"take", post}, {"both", both}, {nullptr, finish}},
        1, 16);
}

/// Connects the engines, and biases the locks to this thread.
void prepare(World& w) {
  const Steps whole = {{nullptr, post}, {nullptr, send}, {nullptr, both}};
  exchange(w, whole, 64);
  own_the_locks(w.job);
  exchange(w.with(large), whole, 8);
}

void count_all() {
  World mapped({}), ring({.settings = {"CANELE_SHM_CMA=off"}});
  prepare(mapped);
  prepare(ring);
  stop_clock(true);
  count_small(mapped);
  count_large("65536-mapped", mapped.with(large));
  count_large("65536-ring", ring.with(large));
  share_the_locks(mapped);
  count("8-shared-lock", mapped.with(8), posted, 1);
  stop_clock(false);
  must(!testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed(), "the job has failed");
}

}  // namespace
}  // namespace canele::test::budget

int main() {
  canele::test::budget::count_all();
  canele::test::budget::count_collectives();
  canele::test::budget::count_one_sided();
  canele::test::budget::count_active();
  canele::test::budget::count_linked();
}

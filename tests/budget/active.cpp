// SPDX-License-Identifier: BSD-3-Clause
//
// Active messages with a header and a payload of 8 bytes each, from one engine to another in this thread, for callgrind
// to count.
//
// Rank 1 has a handler under one id, and a queue under another. Its progress calls the handler. What came to the queue
// is taken out, and given back.
#include "active.hpp"

#include <canele/active_message.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "comm/engine/poll_yield.hpp"
#include "counting.hpp"
#include "still_clock.hpp"
#include "tests/unit/engine/local_job.hpp"

namespace canele::test::budget {
namespace {

constexpr std::size_t most_messages = 64;  ///< in a row
constexpr std::uint64_t handler_id = 1, queue_id = 2;

/// Rank 0 sends to rank 1. The header of a message is its number, and so is its payload.
struct ActiveWorld {
  ActiveWorld() : session(job.open("budget")) {
    const canele_am_handler_t handler = {sizeof handler, handle, nullptr, this};
    must(canele_am_register(session[1], handler_id, &handler) == CANELE_OK &&
             canele_am_open(session[1], queue_id, &queue, nullptr) == CANELE_OK,
         "no place for active messages");
  }
  ~ActiveWorld() {
    for (const std::uint64_t id : {handler_id, queue_id}) canele_am_unregister(session[1], id);
  }
  ActiveWorld(const ActiveWorld&) = delete;
  ActiveWorld& operator=(const ActiveWorld&) = delete;

  static void handle(const canele_am_message_t* message, void* world) {
    static_cast<ActiveWorld*>(world)->check(message->header, message->payload);
  }
  void check(const void* header, const void* payload) {
    std::uint64_t first = 0, second = 0;
    std::memcpy(&first, header, sizeof first);
    std::memcpy(&second, payload, sizeof second);
    must(first == arrived && second == arrived, "a message has arrived changed, or out of order");
    ++arrived;
  }
  canele_engine_t* receiver() { return job.handle(1); }

  /// Forgets the fruitless polls of the steps before: after some of them a poll yields, which would then be counted.
  static void before_step() { comm::poller_state = {}; }

  LocalJob job;
  std::vector<canele_session_t*> session;
  canele_queue_t queue{};
  std::array<canele_am_t, most_messages> messages{};
  std::array<std::uint64_t, most_messages> numbers{};
  std::uint64_t sent = 0, arrived = 0;
  std::size_t count = 1;
};

void send_to(ActiveWorld& w, std::uint64_t id) {
  for (std::size_t i = 0; i < w.count; ++i) {
    w.numbers[i] = w.sent++;
    const canele_data_t payload = canele_data_contiguous(&w.numbers[i], sizeof w.numbers[i]);
    canele_am_send(w.session[0], 1, id, &w.numbers[i], sizeof w.numbers[i], &payload, nullptr, &w.messages[i]);
  }
}
void send(ActiveWorld& w) { send_to(w, handler_id); }
void send_to_queue(ActiveWorld& w) { send_to(w, queue_id); }
void inject(ActiveWorld& w) {
  for (std::size_t i = 0; i < w.count; ++i, ++w.sent)
    canele_am_inject(w.session[0], 1, handler_id, &w.sent, sizeof w.sent, &w.sent, sizeof w.sent);
}
/// Polls until all messages have been handled.
void handle(ActiveWorld& w) {
  while (w.arrived != w.sent) canele_progress(w.receiver());
}
/// Polls, takes messages out of the queue and gives them back until there are no more.
void take(ActiveWorld& w) {
  std::array<canele_entry_t, 16> entries;
  while (w.arrived != w.sent) {
    canele_progress(w.receiver());
    const int taken = canele_queue_take(w.receiver(), &w.queue, entries.data(), entries.size());
    for (int i = 0; i < taken; ++i) {
      w.check(canele_am_header(entries[i].payload, nullptr), entries[i].payload);
      canele_am_release(entries[i].payload);
    }
  }
}
/// Ends a round; not counted.
void finish(ActiveWorld& w) {
  for (std::size_t i = 0; i < w.count; ++i)
    must(canele_wait(&w.messages[i].request, nullptr) == CANELE_OK, "a message has failed");
  for (int i = 0; i < 3; ++i) w.job.step_all();
}

using ActiveSteps = std::vector<Step<ActiveWorld>>;

void count_case(const std::string& name, ActiveWorld& w, std::size_t in_a_row, const ActiveSteps& steps) {
  w.count = in_a_row;
  warm_up(w, steps, 100);
  count(name, w, steps, static_cast<int>(in_a_row));
}

/// Connects the ranks, and biases each engine's lock to this thread.
void connect(ActiveWorld& w) {
  send(w);
  w.job.until([&] { return w.arrived == w.sent; });
  finish(w);
  own_the_locks(w.job);
}

}  // namespace

void count_active() {
  ActiveWorld world;
  connect(world);
  stop_clock(true);
  const ActiveSteps handled = {{"send", send}, {"handle", handle}, {nullptr, finish}};
  const ActiveSteps injected = {{"inject", inject}, {nullptr, handle}, {nullptr, finish}};
  const ActiveSteps queued = {{nullptr, send_to_queue}, {"take", take}, {nullptr, finish}};
  for (const std::size_t in_a_row : {std::size_t{1}, most_messages}) {
    const std::string name = in_a_row == 1 ? "am-8" : std::to_string(in_a_row) + "xam-8";
    count_case(name, world, in_a_row, handled);
    count_case(name, world, in_a_row, injected);
    count_case(name, world, in_a_row, queued);
  }
  stop_clock(false);
  must(!testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed(), "the job has failed");
}

}  // namespace canele::test::budget

// SPDX-License-Identifier: BSD-3-Clause
//
// Active messages that are answered: three engines in one thread, over shared memory and over TCP.
#include <canele/active_message.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// A call and its memory.
struct Asked {
  canele_call_t call{};
  Bytes payload, reply;
};

class ActiveCall : public testing::TestWithParam<const char*> {
 public:
  ActiveCall()
      : job_({3, {comm::find_driver("self"), comm::find_driver(GetParam())}, "aggregate", {}}), s_(job_.open("test")) {}

  canele_session_t* session(int rank) { return s_[static_cast<std::size_t>(rank)]; }
  int ask(int from, std::uint64_t id, Asked& asked, const canele_completion_t& done = {}) {
    const canele_data_t payload = canele_data_contiguous(asked.payload.data(), asked.payload.size());
    const canele_data_t reply = canele_data_contiguous(asked.reply.data(), asked.reply.size());
    canele_post_options_t options{};
    options.struct_size = sizeof options;
    options.done = done;
    return canele_am_call(session(from), 1, id, "head", 4, &payload, &reply, &options, &asked.call);
  }
  canele_status_t finish(Asked& asked) {
    EXPECT_TRUE(job_.finish(asked.call.request));
    return status_of(asked.call.request);
  }
  void handle(std::uint64_t id, void (*arrived)(const canele_am_message_t*, void*), void* argument) {
    const canele_am_handler_t handler = {sizeof handler, arrived, nullptr, argument};
    ASSERT_EQ(canele_am_register(session(1), id, &handler), CANELE_OK) << canele_error_detail();
  }
  /// Opens rank 1's queue for the id.
  void open_queue(std::uint64_t id) {
    ASSERT_EQ(canele_am_open(session(1), id, &queue_, &queue_), CANELE_OK) << canele_error_detail();
  }
  canele_entry_t take() {
    canele_entry_t entry{};
    EXPECT_TRUE(job_.until([&] { return canele_queue_take(job_.handle(1), &queue_, &entry, 1) == 1; }));
    return entry;
  }
  static canele_am_token_t token_of(void* payload) {
    canele_am_token_t token{};
    EXPECT_EQ(canele_am_take_token(canele_am_message_of(payload), &token), CANELE_OK) << canele_error_detail();
    return token;
  }
  canele_queue_t* queue() { return &queue_; }

  LocalJob job_;
  std::vector<canele_session_t*> s_;
  canele_queue_t queue_{};
};

/// A handler that answers within its call: the payload reversed.
struct Reverser {
  canele_session_t* session;
  static void arrived(const canele_am_message_t* message, void* argument) {
    canele_am_token_t token{};
    ASSERT_EQ(canele_am_take_token(message, &token), CANELE_OK) << canele_error_detail();
    EXPECT_EQ(canele_am_take_token(message, &token), CANELE_ESTATE) << "twice";
    EXPECT_EQ(std::string(static_cast<const char*>(message->header), message->header_length), "head");
    const auto* const first = static_cast<const std::uint8_t*>(message->payload);
    const Bytes answer(std::make_reverse_iterator(first + message->payload_length), std::make_reverse_iterator(first));
    ASSERT_EQ(canele_am_inject_reply(static_cast<Reverser*>(argument)->session, &token, answer.data(), answer.size()),
              CANELE_OK)
        << canele_error_detail();
  }
};

TEST_P(ActiveCall, IsAnsweredByTheHandler) {
  Reverser reverser{session(1)};
  handle(7, Reverser::arrived, &reverser);
  Asked asked;
  for (int turn = 0; turn < 3; ++turn) {
    for (const int from : {0, 1, 2}) {
      for (const std::size_t size : {0, 1, 8, 100, 500, 512}) {
        asked.payload = pattern(size, static_cast<unsigned>(size));
        asked.reply.assign(size + static_cast<std::size_t>(turn), 0);
        ASSERT_EQ(ask(from, 7, asked), CANELE_OK) << canele_error_detail();
        const canele_status_t status = finish(asked);
        EXPECT_EQ(status.error, CANELE_OK);
        EXPECT_EQ(status.source, 1);
        EXPECT_EQ(status.tag, 7u);
        EXPECT_EQ(status.length, size);
        EXPECT_TRUE(std::equal(asked.payload.rbegin(), asked.payload.rend(), asked.reply.begin())) << size;
      }
    }
  }
}

/// Replies need not come in the order of the calls, and may have any length.
TEST_P(ActiveCall, IsAnsweredLater) {
  open_queue(8);
  const std::vector<std::size_t> sizes = {0, 8, 1024, 5000, 70'000, 3'000'000};
  std::deque<Asked> calls(sizes.size());
  std::vector<canele_am_token_t> tokens;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    calls[i].payload = pattern(sizes[i], 1);
    calls[i].reply.resize(sizes[sizes.size() - 1 - i]);
    ASSERT_EQ(ask(2, 8, calls[i]), CANELE_OK) << canele_error_detail();
    const canele_entry_t entry = take();
    tokens.push_back(token_of(entry.payload));
    EXPECT_EQ(entry.length, sizes[i]);
    EXPECT_EQ(canele_am_release(entry.payload), CANELE_OK);
  }
  for (std::size_t i = sizes.size(); i-- > 0;) {
    EXPECT_FALSE(comm::request_of(&calls[i].call.request).finalized());
    const Bytes answer = pattern(calls[i].reply.size(), 9);
    const canele_data_t data = canele_data_contiguous(answer.data(), answer.size());
    canele_request_t replied{};
    ASSERT_EQ(canele_am_reply(session(1), &tokens[i], &data, nullptr, &replied), CANELE_OK) << canele_error_detail();
    EXPECT_EQ(finish(calls[i]).error, CANELE_OK);
    EXPECT_TRUE(job_.finish(replied));
    EXPECT_EQ(calls[i].reply, answer);
  }
}

TEST_P(ActiveCall, EndsIfTheHandlerTakesNoToken) {
  handle(
      3, [](const canele_am_message_t*, void*) {}, nullptr);
  Asked asked;
  for (const std::size_t size : {0, 2000, 100'000}) {
    asked.payload.resize(size);
    ASSERT_EQ(ask(0, 3, asked), CANELE_OK);
    EXPECT_EQ(finish(asked).error, CANELE_ECANCELED);
  }
}

TEST_P(ActiveCall, EndsWhenItsMessageIsGivenBack) {
  open_queue(4);
  Asked asked;
  for (const std::size_t size : {0, 2000}) {
    asked.payload.resize(size);
    ASSERT_EQ(ask(0, 4, asked), CANELE_OK);
    const canele_entry_t entry = take();
    for (int i = 0; i < 100; ++i) job_.step_all();
    EXPECT_FALSE(comm::request_of(&asked.call.request).finalized());
    EXPECT_EQ(canele_am_release(entry.payload), CANELE_OK);
    EXPECT_EQ(finish(asked).error, CANELE_ECANCELED);
  }
}

TEST_P(ActiveCall, TellsOfAReplyThatIsTooLong) {
  Reverser reverser{session(1)};
  handle(7, Reverser::arrived, &reverser);
  Asked asked;
  asked.payload = pattern(100, 2);
  asked.reply.resize(60);
  ASSERT_EQ(ask(0, 7, asked), CANELE_OK);
  const canele_status_t status = finish(asked);
  EXPECT_EQ(status.error, CANELE_ETRUNC);
  EXPECT_EQ(status.length, 100u);
}

/// A message of a plain send has no token.
TEST_P(ActiveCall, OnlyCallsHaveTokens) {
  open_queue(5);
  canele_am_t message{};
  ASSERT_EQ(canele_am_send(session(0), 1, 5, "x", 1, nullptr, nullptr, &message), CANELE_OK);
  const canele_entry_t entry = take();
  canele_am_token_t token{};
  EXPECT_EQ(canele_am_take_token(canele_am_message_of(entry.payload), &token), CANELE_ESTATE);
  EXPECT_EQ(canele_am_release(entry.payload), CANELE_OK);
  alignas(16) static std::byte no_message[4096] = {};
  EXPECT_EQ(canele_am_message_of(no_message + sizeof no_message / 2), nullptr);
  EXPECT_EQ(canele_am_inject_reply(session(1), &token, nullptr, 0), CANELE_EINVAL) << "no call waits";
  EXPECT_TRUE(job_.finish(message.request));
}

TEST_P(ActiveCall, BadArguments) {
  Asked asked;
  canele_post_options_t options{};
  options.struct_size = sizeof options;
  const auto call = [&](int destination, const void* header, std::size_t length, const canele_data_t* reply) {
    return canele_am_call(session(0), destination, 1, header, length, nullptr, reply, &options, &asked.call);
  };
  const canele_data_t nowhere = canele_data_contiguous(nullptr, 8);
  EXPECT_EQ(call(3, nullptr, 0, nullptr), CANELE_ERANK);
  EXPECT_EQ(call(-1, nullptr, 0, nullptr), CANELE_ERANK);
  EXPECT_EQ(call(1, nullptr, 4, nullptr), CANELE_EINVAL);
  EXPECT_EQ(call(1, "", CANELE_AM_HEADER_MAX + 1, nullptr), CANELE_EINVAL);
  EXPECT_EQ(call(1, nullptr, 0, &nowhere), CANELE_EINVAL);
  options.flags = CANELE_POST_MAY_FINISH;
  EXPECT_EQ(call(1, nullptr, 0, nullptr), CANELE_EINVAL);
  options = {sizeof options, {}, 0, 0, 4};
  EXPECT_EQ(call(1, nullptr, 0, nullptr), CANELE_EINVAL);
  options = {sizeof options, {}, 0, 0, 0};
  EXPECT_EQ(canele_am_call(session(0), 1, 1, nullptr, 0, nullptr, nullptr, &options, nullptr), CANELE_EINVAL);
  handle(
      1, [](const canele_am_message_t*, void*) {}, nullptr);
  ASSERT_EQ(ask(0, 1, asked), CANELE_OK) << "nothing was taken before: " << canele_error_detail();
  EXPECT_EQ(ask(0, 1, asked), CANELE_EBUSY) << "the call is under way";
  EXPECT_EQ(finish(asked).error, CANELE_ECANCELED);
}

/// Neither side can close its session before the reply.
TEST_P(ActiveCall, KeepsItsSessionsOpen) {
  open_queue(6);
  Asked asked;
  asked.reply.resize(8);
  ASSERT_EQ(ask(0, 6, asked), CANELE_OK);
  const canele_entry_t entry = take();
  canele_am_token_t token = token_of(entry.payload);
  EXPECT_EQ(canele_am_release(entry.payload), CANELE_OK);
  EXPECT_EQ(canele_session_close(session(0)), CANELE_EBUSY);
  EXPECT_EQ(canele_session_close(session(1)), CANELE_EBUSY);
  ASSERT_EQ(canele_am_inject_reply(session(1), &token, "8 bytes.", 8), CANELE_OK) << canele_error_detail();
  EXPECT_EQ(finish(asked).error, CANELE_OK);
  EXPECT_EQ(std::memcmp(asked.reply.data(), "8 bytes.", 8), 0);
  EXPECT_EQ(canele_session_close(session(1)), CANELE_OK) << canele_error_detail();
  EXPECT_EQ(canele_session_close(session(0)), CANELE_OK) << canele_error_detail();
}

/// A close that plain messages hold back takes nothing away from calls.
TEST_P(ActiveCall, CallsGoOnAfterACloseThatIsRefused) {
  Reverser reverser{session(1)};
  handle(7, Reverser::arrived, &reverser);
  const Bytes large = pattern(2'000'000, 3);
  const canele_data_t data = canele_data_contiguous(large.data(), large.size());
  canele_am_t message{};
  ASSERT_EQ(canele_am_send(session(0), 1, 20, nullptr, 0, &data, nullptr, &message), CANELE_OK);
  for (int i = 0; i < 1000; ++i) job_.step_all();
  EXPECT_EQ(canele_session_close(session(0)), CANELE_EBUSY) << "no handler takes the message";
  Asked asked;
  asked.payload = pattern(32, 1);
  asked.reply.resize(32);
  ASSERT_EQ(ask(0, 7, asked), CANELE_OK) << canele_error_detail();
  EXPECT_EQ(finish(asked).error, CANELE_OK);
  handle(
      20, [](const canele_am_message_t*, void*) {}, nullptr);
  EXPECT_TRUE(job_.finish(message.request));
  EXPECT_EQ(canele_session_close(session(0)), CANELE_OK) << canele_error_detail();
}

/// The receiver closes its session, and no handler has seen the message.
TEST_P(ActiveCall, EndsWhenTheSessionOfTheReceiverCloses) {
  handle(
      9, [](const canele_am_message_t*, void*) {}, nullptr);
  Asked small, large;
  large.payload = pattern(2'000'000, 3);
  ASSERT_EQ(ask(0, 10, small), CANELE_OK);
  ASSERT_EQ(ask(0, 10, large), CANELE_OK);
  for (int i = 0; i < 1000; ++i) job_.step_all();
  ASSERT_EQ(canele_session_close(session(1)), CANELE_OK) << canele_error_detail();
  EXPECT_EQ(finish(small).error, CANELE_ECANCELED);
  EXPECT_EQ(finish(large).error, CANELE_ECANCELED);
}

TEST_P(ActiveCall, EndsWhenTheReceiverIsLost) {
  open_queue(11);
  Asked waiting, unseen;
  unseen.payload = pattern(2'000'000, 3);
  ASSERT_EQ(ask(0, 11, waiting), CANELE_OK);
  const canele_entry_t entry = take();
  token_of(entry.payload);
  EXPECT_EQ(canele_am_release(entry.payload), CANELE_OK);
  ASSERT_EQ(ask(0, 12, unseen), CANELE_OK);
  job_.destroy(1);
  const auto finalized = [&](Asked& one) { return comm::request_of(&one.call.request).finalized(); };
  EXPECT_TRUE(job_.until([&] { return finalized(waiting) && finalized(unseen); }));
  EXPECT_EQ(status_of(waiting.call.request).error, CANELE_EPEER);
  EXPECT_EQ(status_of(unseen.call.request).error, CANELE_EPEER);
}

/// Where the completion goes: a queue, a counter, a callback that makes the next call with the same memory.
TEST_P(ActiveCall, HasACompletion) {
  Reverser reverser{session(1)};
  handle(7, Reverser::arrived, &reverser);
  Asked asked;
  asked.payload = pattern(32, 1);
  asked.reply.resize(32);
  canele_queue_t ends{};
  ASSERT_EQ(ask(0, 7, asked, {CANELE_COMPLETE_QUEUE, 0, &ends, nullptr, &asked}), CANELE_OK);
  canele_entry_t entry{};
  ASSERT_TRUE(job_.until([&] { return canele_queue_take(job_.handle(0), &ends, &entry, 1) == 1; }));
  EXPECT_EQ(entry.user, &asked);
  EXPECT_EQ(entry.request, &asked.call.request);
  EXPECT_EQ(entry.error, CANELE_OK);
  EXPECT_EQ(entry.length, 32u);
  EXPECT_EQ(entry.source, 1);

  canele_completion_counter_t counter{};
  ASSERT_EQ(ask(0, 7, asked, {CANELE_COMPLETE_COUNTER, 3, &counter, nullptr, nullptr}), CANELE_OK);
  EXPECT_TRUE(job_.until([&] { return canele_completion_counter_value(&counter) == 3; }));

  struct Again {
    ActiveCall* test;
    Asked* asked;
    int left;
    static void call(canele_request_t* request, unsigned, void* argument) {
      auto& again = *static_cast<Again*>(argument);
      EXPECT_EQ(request, &again.asked->call.request);
      if (--again.left == 0) return;
      EXPECT_EQ(again.test->ask(0, 7, *again.asked, {CANELE_COMPLETE_CALLBACK, 0, nullptr, call, argument}), CANELE_OK)
          << canele_error_detail();
    }
  } again{this, &asked, 50};
  ASSERT_EQ(ask(0, 7, asked, {CANELE_COMPLETE_CALLBACK, 0, nullptr, Again::call, &again}), CANELE_OK);
  EXPECT_TRUE(job_.until([&] { return again.left == 0; }));
}

/// Threads of one rank call at the same time, and the payload says which call its reply is for.
TEST_P(ActiveCall, ManyThreadsCall) {
  open_queue(8);
  constexpr int callers = 3, turns = 200;
  std::atomic<int> over{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < callers; ++t) {
    threads.emplace_back([&, t] {
      Asked asked;
      for (int i = 0; i < turns; ++i) {
        asked.payload = pattern(i % 50 == 0 ? 9000 : 40, static_cast<unsigned>(t * turns + i));
        asked.reply.assign(asked.payload.size(), 0);
        ASSERT_EQ(ask(0, 8, asked), CANELE_OK) << canele_error_detail();
        ASSERT_EQ(canele_wait(&asked.call.request, nullptr), CANELE_OK);
        ASSERT_EQ(asked.reply, asked.payload);
      }
      ++over;
    });
  }
  canele_entry_t entry{};
  while (over.load() != callers) {
    if (canele_queue_take(job_.handle(1), queue(), &entry, 1) != 1) continue;
    const canele_am_token_t token = token_of(entry.payload);
    const canele_data_t data = canele_data_contiguous(entry.payload, entry.length);
    canele_request_t replied{};
    ASSERT_EQ(canele_am_reply(session(1), &token, &data, nullptr, &replied), CANELE_OK) << canele_error_detail();
    ASSERT_EQ(canele_wait(&replied, nullptr), CANELE_OK);
    ASSERT_EQ(canele_am_release(entry.payload), CANELE_OK);
  }
  for (std::thread& one : threads) one.join();
}

INSTANTIATE_TEST_SUITE_P(Drivers, ActiveCall, testing::Values("shm", "tcp"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace canele::test

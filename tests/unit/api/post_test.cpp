// SPDX-License-Identifier: BSD-3-Clause
//
// Posts that say where their completion goes. Each kind of completion is combined with each kind of operation, with a
// request of the program and without one, and each combination is used three times.
#include <canele/post.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test::posts {
namespace {

constexpr std::size_t large = 1 << 20;  // by rendezvous
constexpr std::uint32_t bit = 4, amount = 3;

enum class Operation { small_send, large_send, synchronous_send, receive, early_receive };
struct Case {
  const char* driver;
  Operation operation;
  canele_completion_kind kind;
  bool own;  ///< a request of the program
};

void count(canele_request_t*, unsigned events, void* user) {
  if (events == CANELE_EVENT_FINALIZED) ++*static_cast<int*>(user);
}

canele_post_options_t options_for(const canele_completion_t& done, std::uint32_t flags = 0) {
  canele_post_options_t options{};
  options.struct_size = sizeof options;
  options.done = done;
  options.flags = flags;
  return options;
}

class Post : public testing::TestWithParam<Case> {
 protected:
  Post()
      : job_({2, {comm::find_driver("self"), comm::find_driver(GetParam().driver)}, "aggregate", {}}),
        s_(job_.open("post")),
        here_(large, 'h'),
        there_(large, 't') {}

  canele_completion_t completion() {
    canele_completion_t done{};
    done.kind = GetParam().kind;
    done.user = &calls_;
    if (GetParam().kind == CANELE_COMPLETE_CALLBACK) done.callback = count;
    if (GetParam().kind == CANELE_COMPLETE_QUEUE) done.object = &queue_;
    if (GetParam().kind == CANELE_COMPLETE_COUNTER) done.object = &counter_, done.bits = amount;
    if (GetParam().kind == CANELE_COMPLETE_CONDITION) done.object = &condition_, done.bits = bit;
    return done;
  }
  /// Returns how many completions have come so far.
  int came() {
    canele_entry_t entry{};
    switch (GetParam().kind) {
      case CANELE_COMPLETE_CALLBACK:
        return calls_;
      case CANELE_COMPLETE_QUEUE:
        while (canele_queue_take(job_.handle(0), &queue_, &entry, 1) == 1) {
          EXPECT_EQ(entry.user, &calls_);
          EXPECT_EQ(entry.request, GetParam().own ? &request_ : nullptr);
          EXPECT_EQ(entry.kind, static_cast<std::uint32_t>(CANELE_ENTRY_REQUEST));
          EXPECT_EQ(entry.error, CANELE_OK);
          EXPECT_EQ(entry.source, 1);
          EXPECT_EQ(entry.tag, 7u);
          EXPECT_EQ(entry.length, length());
          ++calls_;
        }
        return calls_;
      case CANELE_COMPLETE_COUNTER:
        return static_cast<int>(canele_completion_counter_value(&counter_) / amount);
      case CANELE_COMPLETE_CONDITION:
        if (canele_condition_test(&condition_, bit) != 0) ++calls_, condition_ = {};
        return calls_;
      default:
        return comm::request_of(&request_).finalized() ? ++calls_ : calls_;
    }
  }
  std::size_t length() const { return GetParam().operation == Operation::large_send ? large : 8; }
  bool sends() const { return GetParam().operation <= Operation::synchronous_send; }

  void prepare() {
    if (GetParam().operation == Operation::small_send) other_receives();
    if (GetParam().operation != Operation::early_receive) return;
    other_sends();
    ASSERT_TRUE(job_.until([&] { return job_.engine(0).counters.read(comm::Counter::unexpected_now) == 1; }));
  }
  int post(std::uint32_t flags) {
    if (GetParam().operation == Operation::synchronous_send) flags |= CANELE_POST_SYNCHRONOUS;
    const canele_data_t data = canele_data_contiguous(here_.data(), length());
    const canele_post_options_t options = options_for(completion(), flags);
    canele_request_t* const request = GetParam().own ? &request_ : nullptr;
    return sends() ? canele_post_send(s_[0], 1, 7, &data, &options, request)
                   : canele_post_receive(s_[0], 1, 7, CANELE_TAG_EXACT, &data, &options, request);
  }
  void complete() {
    if (GetParam().operation == Operation::large_send || GetParam().operation == Operation::synchronous_send)
      other_receives();
    if (GetParam().operation == Operation::receive) other_sends();
  }
  void other_receives() {
    ASSERT_EQ(canele_irecv(s_[1], 0, 7, CANELE_TAG_EXACT, there_.data(), length(), &other_), CANELE_OK);
  }
  void other_sends() { ASSERT_EQ(canele_isend(s_[1], 0, 7, there_.data(), 8, &other_), CANELE_OK); }

  LocalJob job_;
  std::vector<canele_session_t*> s_;
  std::vector<char> here_, there_;
  canele_request_t request_{}, other_{};
  canele_queue_t queue_{};
  canele_completion_counter_t counter_{};
  canele_condition_t condition_{};
  int calls_ = 0;
};

TEST_P(Post, DeliversEachCompletionOnce) {
  for (int use = 1; use <= 3; ++use) {
    prepare();
    ASSERT_EQ(post(0), CANELE_OK) << canele_error_detail();
    complete();
    ASSERT_TRUE(job_.until([&] { return came() >= use; })) << "use " << use;
    ASSERT_TRUE(job_.finish(other_));
    for (int turn = 0; turn < 100; ++turn) job_.step_all();
    if (GetParam().kind != CANELE_COMPLETE_POLL) {
      EXPECT_EQ(came(), use);
    }
    if (!sends()) {
      EXPECT_EQ(here_[0], 't');
    }
  }
}

TEST_P(Post, FinishesWithoutACompletion) {
  for (int use = 1; use <= 3; ++use) {
    const int before = GetParam().kind == CANELE_COMPLETE_POLL ? 0 : came();
    prepare();
    const int code = post(CANELE_POST_MAY_FINISH);
    ASSERT_TRUE(code == CANELE_OK || code == CANELE_DONE) << canele_error_detail();
    if (GetParam().operation == Operation::early_receive) {
      EXPECT_EQ(code, CANELE_DONE);
    }
    complete();
    ASSERT_TRUE(job_.finish(other_));
    if (GetParam().own) {
      ASSERT_TRUE(job_.finish(request_));
    }
    if (GetParam().kind == CANELE_COMPLETE_POLL) continue;
    if (code == CANELE_OK) {
      ASSERT_TRUE(job_.until([&] { return came() > before; }));
    }
    for (int turn = 0; turn < 100; ++turn) job_.step_all();
    EXPECT_EQ(came(), code == CANELE_DONE ? before : before + 1);
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* driver : {"shm", "tcp"}) {
    for (const Operation operation : {Operation::small_send, Operation::large_send, Operation::synchronous_send,
                                      Operation::receive, Operation::early_receive}) {
      for (int kind = CANELE_COMPLETE_POLL; kind <= CANELE_COMPLETE_CONDITION; ++kind) {
        for (const bool own : {true, false}) {
          if (own || kind != CANELE_COMPLETE_POLL)
            all.push_back({driver, operation, static_cast<canele_completion_kind>(kind), own});
        }
      }
    }
  }
  return all;
}
std::string name_of(const testing::TestParamInfo<Case>& info) {
  const char* const operations[] = {"SmallSend", "LargeSend", "SynchronousSend", "Receive", "EarlyReceive"};
  const char* const kinds[] = {"Poll", "Callback", "Queue", "Counter", "Condition"};
  return std::string(info.param.driver) + operations[static_cast<int>(info.param.operation)] + kinds[info.param.kind] +
         (info.param.own ? "" : "WithoutRequest");
}
INSTANTIATE_TEST_SUITE_P(All, Post, testing::ValuesIn(cases()), name_of);

struct Two : testing::Test {
  LocalJob job;
  std::vector<canele_session_t*> s = job.open("two");
  char byte = 'x', there[large] = {};
  canele_data_t data = canele_data_contiguous(&byte, 1);
  canele_request_t request{}, other{};
  canele_queue_t queue{};

  canele_completion_t to_queue(void* user = nullptr) {
    canele_completion_t done{};
    done.kind = CANELE_COMPLETE_QUEUE;
    done.object = &queue;
    done.user = user;
    return done;
  }
};
using PostErrors = Two;
using PostRoom = Two;
using CompletionCounter = Two;
using QueueWait = Two;
using Waits = Two;

TEST_F(PostErrors, LeaveTheRequestUsable) {
  const canele_post_options_t options = options_for(to_queue());
  EXPECT_EQ(canele_post_send(s[0], 2, 7, &data, &options, &request), CANELE_ERANK);
  EXPECT_EQ(canele_post_receive(s[0], 5, 7, 0, &data, &options, &request), CANELE_ERANK);
  EXPECT_EQ(canele_post_send(s[0], 2, 7, &data, &options, nullptr), CANELE_ERANK);
  EXPECT_EQ(canele_post_send(s[0], 1, 7, nullptr, &options, &request), CANELE_EINVAL);
  EXPECT_EQ(canele_post_send(nullptr, 1, 7, &data, &options, &request), CANELE_EINVAL);
  EXPECT_EQ(canele_post_send(s[0], 1, 7, &data, nullptr, nullptr), CANELE_EINVAL);
  EXPECT_EQ(canele_post_receive(s[0], 1, 7, 0, nullptr, &options, nullptr), CANELE_EINVAL);
  // No registration is left: this use has no queue.
  ASSERT_EQ(canele_irecv(s[1], 0, 7, CANELE_TAG_EXACT, there, 1, &other), CANELE_OK);
  ASSERT_EQ(canele_isend(s[0], 1, 7, &byte, 1, &request), CANELE_OK);
  ASSERT_TRUE(job.finish(other) && job.finish(request));
  canele_entry_t entry;
  EXPECT_EQ(canele_queue_take(job.handle(0), &queue, &entry, 1), 0);
  int calls = 0;
  EXPECT_EQ(status_of(request).error, CANELE_OK);  // told: the registration is of the next use
  EXPECT_EQ(canele_request_on_event(&request, CANELE_EVENT_FINALIZED, count, &calls), CANELE_OK);
}

TEST_F(PostErrors, NameWhatIsWrongWithACompletion) {
  canele_completion_t done{};
  const auto answer = [&] {
    const canele_post_options_t options = options_for(done);
    return canele_post_send(s[0], 1, 7, &data, &options, &request);
  };
  done.kind = 17;
  EXPECT_EQ(answer(), CANELE_EINVAL);
  EXPECT_NE(std::string(canele_error_detail()).find("kind 17; expected"), std::string::npos) << canele_error_detail();
  for (const int kind : {CANELE_COMPLETE_CALLBACK, CANELE_COMPLETE_QUEUE, CANELE_COMPLETE_COUNTER}) {
    done.kind = static_cast<std::uint32_t>(kind);
    EXPECT_EQ(answer(), CANELE_EINVAL) << kind;
  }
  canele_condition_t condition{};
  done.kind = CANELE_COMPLETE_CONDITION;
  done.object = &condition;
  for (const std::uint32_t bits : {0u, 65536u}) {
    done.bits = bits;
    EXPECT_EQ(answer(), CANELE_EINVAL) << bits;
  }
}

TEST_F(PostErrors, RejectASecondRegistration) {
  int calls = 0;
  ASSERT_EQ(canele_request_on_event(&request, CANELE_EVENT_FINALIZED, count, &calls), CANELE_OK);
  const canele_post_options_t options = options_for(to_queue());
  EXPECT_EQ(canele_post_send(s[0], 1, 7, &data, &options, &request), CANELE_EBUSY);
  EXPECT_EQ(canele_post_send(s[0], 1, 7, &data, nullptr, &request), CANELE_OK);
  EXPECT_TRUE(job.until([&] { return calls == 1; }));
}

TEST_F(PostErrors, RejectARegistrationUntilTheEntryIsTaken) {
  int user = 0, calls = 0;
  const canele_post_options_t options = options_for(to_queue(&user));
  for (int round = 0; round < 2; ++round) {  // the second send ends within its post
    ASSERT_EQ(canele_irecv(s[1], 0, 7, CANELE_TAG_EXACT, there, 1, &other), CANELE_OK);
    ASSERT_EQ(canele_post_send(s[0], 1, 7, &data, &options, &request), CANELE_OK);
    ASSERT_TRUE(job.finish(request) && job.finish(other));
    EXPECT_EQ(canele_request_on_event(&request, CANELE_EVENT_FINALIZED, count, &calls), CANELE_EBUSY) << round;
    canele_entry_t entry{};
    ASSERT_TRUE(job.until([&] { return canele_queue_take(job.handle(0), &queue, &entry, 1) == 1; }));
    EXPECT_EQ(entry.user, &user);
  }
  ASSERT_EQ(canele_request_on_event(&request, CANELE_EVENT_FINALIZED, count, &calls), CANELE_OK) << "of the next use";
}

TEST_F(PostErrors, OfOperationsWithoutARequestGoToTheSession) {
  struct Heard {
    int peer = -1, error = 0;
  } heard;
  const auto hear = [](canele_session_t*, int peer, int error, void* argument) {
    *static_cast<Heard*>(argument) = {peer, error};
  };
  ASSERT_EQ(canele_session_on_error(s[0], hear, &heard), CANELE_OK);
  canele_completion_t none{};
  none.kind = CANELE_COMPLETE_NONE;
  const canele_post_options_t options = options_for(none);
  std::vector<char> memory(large);
  const canele_data_t all = canele_data_contiguous(memory.data(), large);
  ASSERT_EQ(canele_post_send(s[0], 1, 7, &all, &options, nullptr), CANELE_OK);
  ASSERT_TRUE(job.until([&] { return job.engine(1).counters.read(comm::Counter::unexpected_now) == 1; }));
  ASSERT_EQ(canele_session_close(s[1]), CANELE_OK);  // drops the message, and tells its sender
  ASSERT_TRUE(job.until([&] { return heard.peer != -1; }));
  EXPECT_EQ(heard.peer, 1);
  EXPECT_EQ(heard.error, CANELE_ECANCELED);
}

/// The receiver takes nothing, so the sender's credit ends.
TEST_F(PostRoom, EndsAndComesBack) {
  const canele_post_options_t options = options_for(to_queue(), CANELE_POST_TRY | CANELE_POST_MAY_FINISH);
  int sent = 0, code = CANELE_OK;
  for (; sent < 10'000'000; ++sent) {
    code = canele_post_send(s[0], 1, 7, &data, &options, nullptr);
    if (code == CANELE_EAGAIN) break;
    ASSERT_TRUE(code == CANELE_OK || code == CANELE_DONE) << canele_error_detail();
    if (sent % 64 == 0) job.step_all();
  }
  ASSERT_EQ(code, CANELE_EAGAIN);
  EXPECT_EQ(canele_send_room(s[0], 1, 1), 0);
  while (job.step_all() > 0) {  // grants that are on their way
  }
  EXPECT_EQ(canele_inject(s[0], 1, 7, &byte, 1), canele_send_room(s[0], 1, 1) == 1 ? CANELE_OK : CANELE_EAGAIN);
  for (int i = 0; i < sent; ++i) {
    ASSERT_EQ(canele_irecv(s[1], 0, 7, CANELE_TAG_EXACT, there, 1, &other), CANELE_OK);
    ASSERT_TRUE(job.finish(other));
  }
  EXPECT_TRUE(job.until([&] { return canele_send_room(s[0], 1, 1) == 1; }));
  EXPECT_TRUE(job.until([&] { return canele_inject(s[0], 1, 7, &byte, 1) == CANELE_OK; }));
}

TEST_F(PostRoom, InjectCopiesAndKeepsTheOrder) {
  constexpr int messages = 1000;
  std::vector<std::array<char, 512>> got(messages);
  for (int i = 0; i < messages; ++i) {
    std::array<char, 512> buffer;
    buffer.fill(static_cast<char>(i));
    const std::size_t length = i % 3 == 0 ? buffer.size() : 8;
    ASSERT_TRUE(job.until([&] { return canele_inject(s[0], 1, 7, buffer.data(), length) == CANELE_OK; }));
    buffer.fill('!');
    ASSERT_EQ(canele_irecv(s[1], 0, 7, CANELE_TAG_EXACT, got[i].data(), got[i].size(), &other), CANELE_OK);
    ASSERT_TRUE(job.finish(other));
    EXPECT_EQ(status_of(other).length, length);
    EXPECT_EQ(got[i][0], static_cast<char>(i)) << i;
  }
  EXPECT_EQ(canele_inject(s[0], 1, 7, there, 513), CANELE_EINVAL);
}

TEST_F(PostRoom, LimitsAreTold) {
  std::size_t inject = 0, eager = 0, header = 0, am = 0;
  ASSERT_EQ(canele_limit(job.handle(0), 1, CANELE_LIMIT_INJECT, &inject), CANELE_OK);
  ASSERT_EQ(canele_limit(job.handle(0), 1, CANELE_LIMIT_EAGER, &eager), CANELE_OK);
  ASSERT_EQ(canele_limit(job.handle(0), 1, CANELE_LIMIT_HEADER, &header), CANELE_OK);
  ASSERT_EQ(canele_limit(job.handle(0), 1, CANELE_LIMIT_AM_HEADER, &am), CANELE_OK);
  EXPECT_EQ(inject, 512u);
  EXPECT_EQ(header, static_cast<std::size_t>(CANELE_HEADER_MAX));
  EXPECT_EQ(am, static_cast<std::size_t>(CANELE_AM_HEADER_MAX));
  // A message of the limit goes eagerly, a longer one does not.
  for (const std::size_t more : {0, 1}) {
    const std::uint64_t before = job.engine(0).counters.read(comm::Counter::rendezvous_sent);
    ASSERT_EQ(canele_irecv(s[1], 0, 7, CANELE_TAG_EXACT, there, large, &other), CANELE_OK);
    std::vector<char> memory(eager + more);
    ASSERT_EQ(canele_isend(s[0], 1, 7, memory.data(), memory.size(), &request), CANELE_OK);
    ASSERT_TRUE(job.finish(other) && job.finish(request));
    EXPECT_EQ(job.engine(0).counters.read(comm::Counter::rendezvous_sent) - before, more);
  }
  EXPECT_EQ(canele_limit(job.handle(0), 2, CANELE_LIMIT_EAGER, &eager), CANELE_ERANK);
  EXPECT_EQ(canele_limit(job.handle(0), 1, static_cast<canele_limit_kind>(9), &eager), CANELE_EINVAL);
}

TEST_F(CompletionCounter, GivesOneEventForManyArrivals) {
  canele_completion_counter_t counter{};
  canele_completion_t then = to_queue(&byte);
  ASSERT_EQ(canele_completion_counter_init(&counter, 10, &then), CANELE_OK);
  canele_completion_t done{};
  done.kind = CANELE_COMPLETE_COUNTER;
  done.object = &counter;
  const canele_post_options_t options = options_for(done);
  for (int i = 0; i < 12; ++i) {
    ASSERT_EQ(canele_post_receive(s[0], 1, 7, CANELE_TAG_EXACT, &data, &options, nullptr), CANELE_OK);
  }
  for (int i = 0; i < 12; ++i) {
    ASSERT_EQ(canele_isend(s[1], 0, 7, there, 1, &other), CANELE_OK);
    ASSERT_TRUE(job.finish(other));
  }
  ASSERT_TRUE(job.until([&] { return canele_completion_counter_value(&counter) == 12; }));
  canele_entry_t entries[2];
  ASSERT_EQ(canele_queue_take(job.handle(0), &queue, entries, 2), 1);
  EXPECT_EQ(entries[0].user, &byte);
  EXPECT_EQ(entries[0].kind, static_cast<std::uint32_t>(CANELE_ENTRY_COUNTER));
  EXPECT_EQ(entries[0].error, CANELE_OK);
  EXPECT_GE(entries[0].immediate, 10u);
  EXPECT_EQ(canele_completion_counter_wait(job.handle(0), &counter, 12, UINT64_MAX), CANELE_OK);
  EXPECT_EQ(canele_completion_counter_wait(job.handle(0), &counter, 13, 0), CANELE_ETIMEOUT);
}

TEST_F(CompletionCounter, TellsTheFirstError) {
  canele_completion_counter_t counter{}, chained{};
  canele_completion_t then{};
  then.kind = CANELE_COMPLETE_COUNTER;
  then.object = &chained;
  ASSERT_EQ(canele_completion_counter_init(&counter, 2, &then), CANELE_OK);
  canele_completion_t done{};
  done.kind = CANELE_COMPLETE_COUNTER;
  done.object = &counter;
  const canele_post_options_t options = options_for(done);
  ASSERT_EQ(canele_post_receive(s[0], 1, 7, CANELE_TAG_EXACT, &data, &options, &request), CANELE_OK);
  ASSERT_EQ(canele_cancel(&request), CANELE_OK);
  canele_completion_counter_add(&counter, 1);
  ASSERT_TRUE(job.until([&] { return canele_completion_counter_value(&chained) == 1; }));
  int first = CANELE_OK;
  EXPECT_EQ(canele_completion_counter_errors(&counter, &first), 1u);
  EXPECT_EQ(first, CANELE_ECANCELED);
  EXPECT_EQ(canele_completion_counter_wait(job.handle(0), &counter, 2, UINT64_MAX), CANELE_ECANCELED);
  EXPECT_EQ(canele_completion_counter_errors(&chained, nullptr), 1u);
}

TEST_F(CompletionCounter, WakesEachThreadAtItsValue) {
  constexpr int threads = 4, rounds = 200;
  canele_completion_counter_t counter{};
  std::atomic<int> woken{0};
  std::vector<std::thread> waiting;
  for (int i = 0; i < threads; ++i) {
    waiting.emplace_back([&, i] {
      for (std::uint64_t round = 0; round < rounds; ++round) {
        const std::uint64_t value = round * threads + static_cast<std::uint64_t>(i) + 1;
        EXPECT_EQ(canele_completion_counter_wait(job.handle(0), &counter, value, UINT64_MAX), CANELE_OK);
        EXPECT_GE(canele_completion_counter_value(&counter), value);
        ++woken;
      }
    });
  }
  for (int i = 0; i < threads * rounds; ++i) {
    canele_completion_counter_add(&counter, 1);
    if (i % 8 == 0) std::this_thread::yield();
  }
  for (std::thread& thread : waiting) thread.join();
  EXPECT_EQ(woken, threads * rounds);
}

TEST_F(QueueWait, EachEntryWakesAThread) {
  constexpr int threads = 3, messages = 600;
  std::atomic<int> taken{0};
  std::vector<std::thread> waiting;
  for (int i = 0; i < threads; ++i) {
    waiting.emplace_back([&] {
      canele_entry_t entry{};
      while (taken < messages) {
        const std::uint64_t soon = canele_now(job.handle(0)) + 20'000'000;
        const int count = canele_queue_wait(job.handle(0), &queue, &entry, 1, soon);
        if (count == CANELE_ETIMEOUT) continue;
        ASSERT_EQ(count, 1) << canele_error_detail();
        ++taken;
      }
    });
  }
  const canele_post_options_t options = options_for(to_queue());
  char bytes[messages];
  std::vector<canele_request_t> sends(messages);
  for (int i = 0; i < messages; ++i) {
    const canele_data_t into = canele_data_contiguous(&bytes[i], 1);
    ASSERT_EQ(canele_post_receive(s[0], 1, 7, CANELE_TAG_EXACT, &into, &options, nullptr), CANELE_OK);
  }
  for (canele_request_t& send : sends) {
    ASSERT_EQ(canele_isend(s[1], 0, 7, &byte, 1, &send), CANELE_OK);
    if ((&send - sends.data()) % 16 == 0) std::this_thread::yield();
  }
  for (canele_request_t& send : sends) EXPECT_EQ(canele_wait(&send, nullptr), CANELE_OK);
  for (std::thread& thread : waiting) thread.join();
  EXPECT_EQ(taken, messages);
  canele_entry_t entry;
  EXPECT_EQ(canele_queue_take(job.handle(0), &queue, &entry, 1), 0);
}

TEST_F(QueueWait, GivesUpAtTheDeadline) {
  canele_entry_t entry;
  EXPECT_EQ(canele_queue_wait(job.handle(0), &queue, &entry, 1, 0), CANELE_ETIMEOUT);
  const std::uint64_t begin = canele_now(job.handle(0)), deadline = begin + 5'000'000;
  EXPECT_EQ(canele_queue_wait(job.handle(0), &queue, &entry, 1, deadline), CANELE_ETIMEOUT);
  EXPECT_GE(canele_now(job.handle(0)), deadline);
}

TEST_F(QueueWait, IsRefusedInACallback) {
  struct In {
    QueueWait* test;
    int code = 0;
  } in{this};
  canele_completion_t done{};
  done.kind = CANELE_COMPLETE_CALLBACK;
  done.user = &in;
  done.callback = [](canele_request_t*, unsigned, void* user) {
    auto& one = *static_cast<In*>(user);
    canele_entry_t entry;
    one.code = canele_queue_wait(one.test->job.handle(0), &one.test->queue, &entry, 1, UINT64_MAX);
  };
  const canele_post_options_t options = options_for(done);
  ASSERT_EQ(canele_post_send(s[0], 1, 7, &data, &options, nullptr), CANELE_OK);
  ASSERT_TRUE(job.until([&] { return in.code != 0; }));
  EXPECT_EQ(in.code, CANELE_EDEADLK);
}

TEST_F(Waits, HaveDeadlines) {
  ASSERT_EQ(canele_irecv(s[0], 1, 7, CANELE_TAG_EXACT, &byte, 1, &request), CANELE_OK);
  canele_status_t status{};
  EXPECT_EQ(canele_wait_until(&request, 0, &status), CANELE_ETIMEOUT);
  EXPECT_EQ(canele_wait_until(&request, canele_now(job.handle(0)) + 1'000'000, &status), CANELE_ETIMEOUT);
  ASSERT_EQ(canele_isend(s[1], 0, 7, there, 1, &other), CANELE_OK);
  ASSERT_TRUE(job.finish(other));
  EXPECT_EQ(canele_wait_until(&request, UINT64_MAX, &status), CANELE_OK);
  EXPECT_EQ(status.source, 1);
}

TEST_F(Waits, TellAllThatAreDone) {
  constexpr int count = 5;
  canele_request_t receives[count]{};
  canele_request_t* list[count + 1] = {};
  char bytes[count];
  for (int i = 0; i < count; ++i) {
    list[i] = &receives[i];
    ASSERT_EQ(canele_irecv(s[0], 1, static_cast<std::uint64_t>(i), CANELE_TAG_EXACT, &bytes[i], 1, list[i]), CANELE_OK);
  }
  std::size_t indexes[count + 1], done = 9, index = 0;
  canele_status_t statuses[count + 1];
  EXPECT_EQ(canele_wait_some(count + 1, list, indexes, statuses, &done, 0), CANELE_ETIMEOUT);
  EXPECT_EQ(done, 9u) << "an output is written on success only";
  EXPECT_EQ(canele_test_any(count + 1, list, &index, nullptr), CANELE_OK);
  EXPECT_EQ(index, static_cast<std::size_t>(count + 1));
  for (const std::uint64_t tag : {4, 1}) {
    ASSERT_EQ(canele_isend(s[1], 0, tag, there, 1, &other), CANELE_OK);
    ASSERT_TRUE(job.finish(other) && job.finish(receives[tag]));
  }
  ASSERT_EQ(canele_wait_some(count + 1, list, indexes, statuses, &done, UINT64_MAX), CANELE_OK);
  ASSERT_EQ(done, 2u);
  EXPECT_EQ(indexes[0], 1u);
  EXPECT_EQ(indexes[1], 4u);
  EXPECT_EQ(statuses[1].tag, 4u);
  ASSERT_EQ(canele_test_any(count + 1, list, &index, statuses), CANELE_OK);
  EXPECT_TRUE(index == 1 || index == 4);
  canele_request_t* nothing[1] = {nullptr};
  EXPECT_EQ(canele_wait_some(1, nothing, indexes, nullptr, &done, UINT64_MAX), CANELE_OK);
  EXPECT_EQ(done, 0u);
  for (canele_request_t& one : receives) {
    canele_cancel(&one);
    ASSERT_TRUE(job.finish(one));
  }
}

}  // namespace
}  // namespace canele::test::posts

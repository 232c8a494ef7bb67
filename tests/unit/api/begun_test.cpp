// SPDX-License-Identifier: BSD-3-Clause
//
// Requests that are pending before their operation is known, and requests that the program completes: two engines in
// one process, over shared memory and over TCP. A second thread waits where a test says so.
#include <canele/post.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

bool is_pending(canele_request_t& request) {
  canele_request_t* const one = &request;
  return canele_find_done(1, &one, 0) == 1;
}

/// Returns whether a thread sleeps until the request ends.
bool has_sleeper(const canele_request_t& request) {
  return comm::RequestWord::parker(comm::request_of(&request).word.load()) != nullptr;
}

void count(canele_request_t*, unsigned, void* calls) { ++*static_cast<int*>(calls); }

class Begun : public testing::TestWithParam<const char*> {
 public:
  Begun()
      : job_({2, {comm::find_driver("self"), comm::find_driver(GetParam())}, "aggregate", {}}), s_(job_.open("test")) {}

 protected:
  void begin() { ASSERT_EQ(canele_request_begin(job_.handle(0), &request_), CANELE_OK) << canele_error_detail(); }
  int send(const Bytes& data) { return canele_isend(s_[0], 1, 4, data.data(), data.size(), &request_); }
  int receive(Bytes& data, canele_request_t& request) {
    return canele_irecv(s_[1], 0, 4, CANELE_TAG_EXACT, data.data(), data.size(), &request);
  }

  LocalJob job_;
  std::vector<canele_session_t*> s_;
  canele_request_t request_{};
};

TEST_P(Begun, ASendGivesItItsOperation) {
  for (const std::size_t size : {0, 8, 3000, 300'000}) {
    for (unsigned turn = 0; turn < 4; ++turn) {
      const Bytes out = pattern(size, turn);
      Bytes in(size);
      canele_request_t received{};
      begin();
      job_.step_all();
      EXPECT_TRUE(is_pending(request_));
      ASSERT_EQ(send(out), CANELE_OK) << canele_error_detail();
      ASSERT_EQ(receive(in, received), CANELE_OK);
      ASSERT_TRUE(job_.finish(request_) && job_.finish(received));
      EXPECT_EQ(in, out);
      const canele_status_t status = status_of(request_);
      EXPECT_EQ(status.error, CANELE_OK);
      EXPECT_EQ(status.source, 1);
      EXPECT_EQ(status.tag, 4u);
      EXPECT_EQ(status.length, size);
    }
  }
}

TEST_P(Begun, ACallbackIsCalledOnceForEachUse) {
  const Bytes out = pattern(64, 1);
  int calls = 0;
  for (int turn = 1; turn <= 4; ++turn) {
    Bytes in(out.size());
    canele_request_t received{};
    const bool before = turn % 2 == 0;  // registered for the next use, before that begins
    if (!before) begin();
    ASSERT_EQ(canele_request_on_event(&request_, CANELE_EVENT_FINALIZED, count, &calls), CANELE_OK);
    if (before) begin();
    job_.step_all();
    EXPECT_EQ(calls, turn - 1);
    ASSERT_EQ(send(out), CANELE_OK) << canele_error_detail();
    ASSERT_EQ(receive(in, received), CANELE_OK);
    ASSERT_TRUE(job_.finish(received) && job_.until([&] { return calls == turn; }));
    EXPECT_EQ(in, out);
  }
}

TEST_P(Begun, AThreadThatSleepsIsWokenByTheEndOfTheSend) {
  for (const std::size_t size : {8, 300'000}) {
    const Bytes out = pattern(size, 2);
    Bytes in(size);
    canele_request_t received{};
    begin();
    int code = CANELE_EINVAL;
    std::thread waiter([&] { code = canele_wait(&request_, nullptr); });
    while (!has_sleeper(request_)) std::this_thread::yield();
    ASSERT_EQ(receive(in, received), CANELE_OK);
    ASSERT_EQ(send(out), CANELE_OK) << canele_error_detail();
    ASSERT_TRUE(job_.finish(received));
    ASSERT_TRUE(job_.finish(request_));
    waiter.join();
    EXPECT_EQ(code, CANELE_OK);
    EXPECT_EQ(in, out);
  }
}

TEST_P(Begun, TheProgramMayCompleteIt) {
  for (const int outcome : {CANELE_OK, CANELE_ECANCELED, CANELE_ENOENT}) {
    begin();
    int code = CANELE_EINVAL;
    std::thread waiter([&] { code = canele_wait(&request_, nullptr); });
    while (!has_sleeper(request_)) std::this_thread::yield();
    EXPECT_EQ(canele_request_complete(&request_, outcome), CANELE_OK) << canele_error_detail();
    waiter.join();
    EXPECT_EQ(code, outcome);
    const canele_status_t status = status_of(request_);
    EXPECT_EQ(status.error, outcome);
    EXPECT_EQ(status.source, -1);
    EXPECT_EQ(status.tag, 0u);
    EXPECT_EQ(status.length, 0u);
    EXPECT_EQ(canele_request_complete(&request_, outcome), CANELE_ESTATE);
  }
}

TEST_P(Begun, ItsEndIsAnEntryOfAQueue) {
  canele_queue_t queue{};
  canele_entry_t entry{};
  begin();
  ASSERT_EQ(canele_request_on_queue(&request_, &queue, &entry), CANELE_OK);
  EXPECT_EQ(canele_queue_take(job_.handle(0), &queue, &entry, 1), 0);
  ASSERT_EQ(canele_request_complete(&request_, CANELE_ETIMEOUT), CANELE_OK);
  ASSERT_TRUE(job_.until([&] { return canele_queue_take(job_.handle(0), &queue, &entry, 1) == 1; }));
  EXPECT_EQ(entry.request, &request_);
  EXPECT_EQ(entry.user, &entry);
  EXPECT_EQ(entry.error, CANELE_ETIMEOUT);
  begin();
  EXPECT_EQ(canele_request_complete(&request_, CANELE_OK), CANELE_OK);
}

TEST_P(Begun, WhatDoesNotFitIsRefusedAndLeavesItBegun) {
  const Bytes out = pattern(8, 3);
  const canele_data_t data = canele_data_contiguous(out.data(), out.size());
  Bytes in(8);
  canele_request_t received{};
  EXPECT_EQ(canele_request_complete(&request_, CANELE_OK), CANELE_ESTATE);
  begin();
  EXPECT_EQ(canele_request_begin(job_.handle(0), &request_), CANELE_EBUSY);
  EXPECT_EQ(receive(in, request_), CANELE_EBUSY);
  EXPECT_EQ(canele_isend(s_[1], 0, 4, out.data(), out.size(), &request_), CANELE_EBUSY) << "another engine";
  EXPECT_EQ(canele_isend(s_[0], 2, 4, out.data(), out.size(), &request_), CANELE_ERANK);
  EXPECT_EQ(canele_cancel(&request_), CANELE_EINVAL);
  EXPECT_EQ(canele_send_set_priority(&request_, 1), CANELE_ESTATE);
  EXPECT_EQ(canele_request_complete(&request_, 1), CANELE_EINVAL);
  EXPECT_EQ(canele_request_complete(&request_, CANELE_EDEVICE - 1), CANELE_EINVAL);
  canele_post_options_t options{};
  options.struct_size = sizeof options;
  int calls = 0;
  options.done = {CANELE_COMPLETE_CALLBACK, 0, nullptr, count, &calls};
  EXPECT_EQ(canele_post_send(s_[0], 1, 4, &data, &options, &request_), CANELE_EBUSY);
  EXPECT_TRUE(is_pending(request_));

  options.done = {};
  options.flags = CANELE_POST_MAY_FINISH;
  EXPECT_GE(canele_post_send(s_[0], 1, 4, &data, &options, &request_), CANELE_OK) << canele_error_detail();
  ASSERT_EQ(receive(in, received), CANELE_OK);
  ASSERT_TRUE(job_.finish(request_) && job_.finish(received));
  EXPECT_EQ(in, out);
  EXPECT_EQ(calls, 0);
}

TEST_P(Begun, ALostPeerEndsTheSend) {
  const Bytes out = pattern(300'000, 4);
  begin();
  ASSERT_EQ(send(out), CANELE_OK);
  job_.bury(1, 0);
  job_.destroy(1);
  ASSERT_TRUE(job_.finish(request_));
  EXPECT_NE(status_of(request_).error, CANELE_OK);
}

INSTANTIATE_TEST_SUITE_P(Drivers, Begun, testing::Values("shm", "tcp"),
                         [](const auto& driver) { return driver.param; });

}  // namespace
}  // namespace canele::test

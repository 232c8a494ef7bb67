// SPDX-License-Identifier: BSD-3-Clause
//
// The use of a request for which a callback or a queue is registered. Each kind of request is registered before its
// post and after it, ends within its post and later, and is used three times.
#include <functional>
#include <string>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

constexpr std::size_t large = 1 << 20;  // by rendezvous

enum class Kind { small_send, large_send, receive, early_receive, unbound_receive, multicast, active };
struct Case {
  const char* driver;
  Kind kind;
  bool queue, before;
};

void count(canele_request_t*, unsigned events, void* argument) {
  if ((events & CANELE_EVENT_FINALIZED) != 0) ++*static_cast<int*>(argument);
}
void arrived(const canele_am_message_t*, void*) {}

class Registration : public testing::TestWithParam<Case> {
 protected:
  Registration()
      : job_({2, {comm::find_driver("self"), comm::find_driver(GetParam().driver)}, "aggregate", {}}),
        s_(job_.open("registration")),
        here_(large, 'h'),
        there_(large, 't') {
    const canele_am_handler_t handler = {sizeof handler, arrived, nullptr, nullptr};
    EXPECT_EQ(canele_am_register(s_[1], 5, &handler), CANELE_OK);
  }

  canele_request_t& request() { return message_.request; }
  bool ended() { return comm::request_of(&request()).finalized(); }

  int ask() {
    return GetParam().queue ? canele_request_on_queue(&request(), &queue_, &told_)
                            : canele_request_on_event(&request(), CANELE_EVENT_FINALIZED, count, &told_);
  }
  /// Returns the number of events that have come.
  int told() {
    canele_request_t* found = nullptr;
    void* argument = nullptr;
    if (GetParam().queue && canele_queue_poll(job_.handle(0), &queue_, &found, &argument, 1) == 1) {
      EXPECT_EQ(found, &request());
      EXPECT_EQ(argument, &told_);
      ++told_;
    }
    return told_;
  }

  void other_receives(std::size_t length) {
    ASSERT_EQ(canele_irecv(s_[1], 0, 7, CANELE_TAG_EXACT, there_.data(), length, &other_), CANELE_OK);
  }
  void other_sends() { ASSERT_EQ(canele_isend(s_[1], 0, 7, there_.data(), 8, &other_), CANELE_OK); }

  /// Prepares the request so that it ends at once, where it can.
  void prepare(Kind kind) {
    if (kind == Kind::small_send || kind == Kind::multicast) other_receives(8);
    if (kind != Kind::early_receive) return;
    other_sends();
    ASSERT_TRUE(job_.until([&] { return job_.engine(0).counters.read(comm::Counter::unexpected_now) == 1; }));
  }
  void post(Kind kind) {
    const int one = 1;
    const canele_data_t data = canele_data_contiguous(here_.data(), 8);
    int code = CANELE_OK;
    switch (kind) {
      case Kind::small_send:
        code = canele_isend(s_[0], 1, 7, here_.data(), 8, &request());
        break;
      case Kind::large_send:
        code = canele_isend(s_[0], 1, 7, here_.data(), large, &request());
        break;
      case Kind::receive:
      case Kind::early_receive:
        code = canele_irecv(s_[0], 1, 7, CANELE_TAG_EXACT, here_.data(), 8, &request());
        break;
      case Kind::unbound_receive:
        code = canele_irecv_late(s_[0], 1, 7, CANELE_TAG_EXACT, &request());
        break;
      case Kind::multicast:
        code = canele_imulticast(s_[0], &one, 1, 7, &data, nullptr, &request());
        break;
      case Kind::active:
        code = canele_am_send(s_[0], 1, 5, nullptr, 0, &data, nullptr, &message_);
        break;
    }
    ASSERT_EQ(code, CANELE_OK) << canele_error_detail();
  }
  /// Does what is left until the request ends, after the post and the registration.
  void complete(Kind kind) {
    if (kind == Kind::large_send) other_receives(large);
    if (kind == Kind::receive || kind == Kind::unbound_receive) other_sends();
    if (kind != Kind::unbound_receive) return;
    canele_status_t envelope{};
    ASSERT_TRUE(job_.until([&] { return canele_receive_envelope(&request(), &envelope) == CANELE_OK; }));
    const canele_data_t data = canele_data_contiguous(here_.data(), 8);
    ASSERT_EQ(canele_receive_bind(&request(), &data), CANELE_OK);
  }
  void finish_other() {
    if (GetParam().kind != Kind::active) {
      ASSERT_TRUE(job_.finish(other_));
    }
  }
  void step_some() {
    for (int i = 0; i < 50; ++i) job_.step_all();
  }

  LocalJob job_;
  std::vector<canele_session_t*> s_;
  std::vector<char> here_, there_;
  canele_am_t message_{};
  canele_request_t other_{};
  canele_queue_t queue_{};
  int told_ = 0;
};

TEST_P(Registration, EachUseHasItsOwn) {
  for (int use = 1; use <= 3; ++use) {
    const Kind kind = GetParam().kind;
    prepare(kind);
    if (GetParam().before) {
      ASSERT_EQ(ask(), CANELE_OK) << canele_error_detail();
      EXPECT_EQ(ask(), CANELE_EBUSY);
      step_some();
      EXPECT_EQ(told(), use - 1) << "told of what has not been posted";
    }
    post(kind);
    if (!GetParam().before) {
      ASSERT_EQ(ask(), CANELE_OK) << canele_error_detail();
    }
    if (!ended()) {
      EXPECT_EQ(ask(), CANELE_EBUSY);
    }
    complete(kind);
    ASSERT_TRUE(job_.until([&] { return ended(); }));
    finish_other();
    ASSERT_TRUE(job_.until([&] { return told() == use; }));
    step_some();
    EXPECT_EQ(told(), use);
  }
}

TEST_P(Registration, IsOfTheNextUseOnceTheEndIsKnown) {
  const Kind kind = GetParam().kind;
  prepare(kind);
  post(kind);
  complete(kind);
  ASSERT_TRUE(job_.until([&] { return ended(); }));
  finish_other();
  int done = 0;
  ASSERT_EQ(canele_test(&request(), &done, nullptr), CANELE_OK);
  ASSERT_EQ(done, 1);
  ASSERT_EQ(ask(), CANELE_OK);
  step_some();
  EXPECT_EQ(told(), 0);
  prepare(kind);
  post(kind);
  complete(kind);
  ASSERT_TRUE(job_.until([&] { return told() == 1; }));
  finish_other();
}

TEST_P(Registration, IsOfTheLastUseWhileNothingHasToldOfItsEnd) {
  const Kind kind = GetParam().kind;
  for (int use = 1; use <= 2; ++use) {
    prepare(kind);
    post(kind);
    complete(kind);
    ASSERT_TRUE(job_.until([&] { return ended(); }));
    finish_other();
    ASSERT_EQ(ask(), CANELE_OK);
    ASSERT_TRUE(job_.until([&] { return told() == use; }));
  }
}

TEST_P(Registration, ARequestInAQueueIsNotPosted) {
  if (!GetParam().queue || GetParam().kind != Kind::small_send) GTEST_SKIP() << "of a queue, once";
  prepare(Kind::small_send);
  ASSERT_EQ(ask(), CANELE_OK);
  post(Kind::small_send);
  ASSERT_TRUE(job_.until([&] { return comm::request_of(&request()).stage == comm::Request::Stage::listed; }));
  EXPECT_EQ(canele_isend(s_[0], 1, 7, here_.data(), 8, &request()), CANELE_EBUSY);
  EXPECT_EQ(ask(), CANELE_EBUSY);
  EXPECT_EQ(told(), 1);
  EXPECT_EQ(ask(), CANELE_OK);
  finish_other();
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* driver : {"shm", "tcp"}) {
    for (const Kind kind : {Kind::small_send, Kind::large_send, Kind::receive, Kind::early_receive,
                            Kind::unbound_receive, Kind::multicast, Kind::active}) {
      for (const bool queue : {false, true}) {
        for (const bool before : {false, true}) all.push_back({driver, kind, queue, before});
      }
    }
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  constexpr const char* kinds[] = {"SmallSend",      "LargeSend", "Receive", "EarlyReceive",
                                   "UnboundReceive", "Multicast", "Active"};
  return std::string(info.param.driver) + kinds[static_cast<int>(info.param.kind)] +
         (info.param.queue ? "Queue" : "Callback") + (info.param.before ? "Before" : "After");
}

INSTANTIATE_TEST_SUITE_P(Uses, Registration, testing::ValuesIn(cases()), name_of);

}  // namespace
}  // namespace canele::test

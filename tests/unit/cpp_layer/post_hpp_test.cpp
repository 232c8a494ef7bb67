// SPDX-License-Identifier: BSD-3-Clause
//
// The C++ layer of posts on a job of one rank: functions as completions, with a request and without one; answers,
// errors, deadlines; destruction while pending.
//
// The main thread. All messages go to the own rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <canele/post.hpp>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "unit/cpp_layer/one_rank.hpp"

namespace canele::test::cpp_layer {
namespace {

/// Temporary functions would be gone before they are called.
template <typename F>
concept callable = requires(F&& function) {
  canele::call(std::forward<F>(function));
};
constexpr auto takes_nothing = [] {};
constexpr auto takes_text = [](std::string) {};
static_assert(callable<decltype(takes_nothing)&> && !callable<std::remove_const_t<decltype(takes_nothing)>>);
static_assert(!callable<decltype(takes_text)&>);

using CppPost = OneRank;
using CppPostDeathTest = OneRank;

// ---- completions ----------------------------------------------------------------------------------------------------

TEST_F(CppPost, AFunctionIsCalledWithTheOutcome) {
  int calls = 0;
  canele::status seen;
  auto ended = [&](const canele::status& outcome) { seen = outcome, ++calls; };
  EXPECT_EQ(canele::post_receive(session, 0, 1, canele::one(in), canele::call(ended)), canele::posted::taken);
  session.send(0, 1, canele::one(out));
  progress_until([&] { return calls != 0; });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(seen.code, CANELE_OK);
  EXPECT_EQ(seen.source, 0);
  EXPECT_EQ(seen.tag, 1u);
  EXPECT_EQ(seen.length, sizeof out);
  EXPECT_EQ(in, 42);
}

TEST_F(CppPost, AFunctionNeedNoArgument) {
  int calls = 0;
  const auto ended = [&calls] { ++calls; };
  canele::post_send(session, 0, 2, canele::one(out), canele::call(ended));
  EXPECT_EQ(receive(2), 42);
  progress_until([&] { return calls != 0; });
  EXPECT_EQ(calls, 1);
}

TEST_F(CppPost, ARequestMayBeginBeforeItsOperationIsKnown) {
  canele::request use, received;
  canele::begin(engine, use);
  EXPECT_FALSE(use.test().has_value());
  canele::send_begun(session, 0, 8, canele::one(out), use);
  session.irecv(0, 8, canele::one(in), received);
  received.wait();
  EXPECT_EQ(use.wait().tag, 8u);
  EXPECT_EQ(in, 42);

  canele::begin(engine, use);
  canele::complete(use, CANELE_ETIMEOUT);
  EXPECT_EQ(use.wait(std::nothrow).code, CANELE_ETIMEOUT);
  EXPECT_THROW(canele::complete(use), canele::error);
}

TEST_F(CppPost, AFunctionMayPostItsRequestAgain) {
  canele::request request;
  int calls = 0;
  struct Again {
    canele::session& session;
    canele::request& request;
    int &in, &calls;
    void operator()(const canele::status&) {
      if (++calls < 5) canele::post_receive(session, 0, 3, canele::one(in), request, canele::call(*this));
    }
  } again{session, request, in, calls};
  canele::post_receive(session, 0, 3, canele::one(in), request, canele::call(again));
  for (int i = 0; i < 5; ++i) session.send(0, 3, canele::one(i));
  progress_until([&] { return calls == 5; });
  EXPECT_EQ(in, 4);
}

TEST_F(CppPost, ARequestMayBeDestroyedInItsFunction) {
  auto request = std::make_unique<canele::request>();
  auto ended = [&] { request.reset(); };
  canele::post_receive(session, 0, 4, canele::one(in), *request, canele::call(ended));
  session.send(0, 4, canele::one(out));
  progress_until([&] { return request == nullptr; });
  EXPECT_EQ(in, 42);
}

TEST_F(CppPost, EventsOfAReceiveWithoutABuffer) {
  canele::request request;
  unsigned seen = 0;
  std::size_t length = 0;
  auto event = [&](canele_request_t* native, unsigned events) {
    EXPECT_EQ(native, request.native());
    seen |= events;
    if ((events & CANELE_EVENT_HEADER) == 0) return;
    length = request.envelope().length;
    request.bind(canele::one(in));
  };
  const auto done = canele::call(event, CANELE_EVENT_HEADER | CANELE_EVENT_FINALIZED);
  canele::post_receive_late(session, 0, 5, request, done);
  canele::request sent;
  session.isend(0, 5, canele::one(out), sent);
  progress_until([&] { return (seen & CANELE_EVENT_FINALIZED) != 0; });
  sent.wait();
  EXPECT_EQ(seen & CANELE_EVENT_HEADER, unsigned{CANELE_EVENT_HEADER});
  EXPECT_EQ(length, sizeof out);
  EXPECT_EQ(in, 42);
}

TEST_F(CppPost, AMatchedReceiveWithoutABufferMayBeDestroyed) {
  bool matched = false;
  auto event = [&](canele_request_t*, unsigned) { matched = true; };
  canele::request sent;
  {
    canele::request request;
    canele::post_receive_late(session, 0, 6, request, canele::call(event, CANELE_EVENT_HEADER));
    session.isend(0, 6, canele::one(out), {.synchronous = true}, sent);
    progress_until([&] { return matched; });
  }  // drops its message
  sent.wait();
  EXPECT_FALSE(session.iprobe(0, 6).has_value());
}

TEST_F(CppPostDeathTest, AnExceptionOutOfAFunctionEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto throws = [] { throw 1; };
  auto throws_at_event = [](canele_request_t*, unsigned) { throw 1; };
  const canele_completion_t plain = canele::call(throws).native();
  const canele_completion_t events = canele::call(throws_at_event, CANELE_EVENT_FINALIZED).native();
  EXPECT_DEATH(plain.callback(nullptr, CANELE_EVENT_FINALIZED, plain.user), "terminate");
  EXPECT_DEATH(events.callback(nullptr, CANELE_EVENT_FINALIZED, events.user), "terminate");
}

TEST_F(CppPostDeathTest, APendingRequestDestroyedInAFunctionEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto destroys = [&] {
    canele::request pending;  // without a receive it does not end
    session.isend(0, 7, canele::one(out), {.synchronous = true}, pending);
  };
  canele::completion_counter counter(1, canele::call(destroys));
  EXPECT_DEATH(counter.add(1), "a pending request was destroyed inside a completion callback");
}

// ---- posts ----------------------------------------------------------------------------------------------------------

TEST_F(CppPost, ARequestWithoutACompletionIsWaitedFor) {
  canele::request sent, received;
  EXPECT_EQ(canele::post_receive(session, 0, 30, canele::one(in), received), canele::posted::taken);
  EXPECT_EQ(canele::post_send(session, 0, 30, canele::one(out), sent, {}, {.priority = 1, .synchronous = true}),
            canele::posted::taken);
  canele::wait_all(sent, received);
  EXPECT_EQ(in, 42);
}

TEST_F(CppPost, APendingReceiveMayBeDestroyed) {
  {
    canele::request received;
    canele::post_receive(session, 0, 31, canele::one(in), received);
  }  // cancelled
  canele::request sent;
  canele::post_send(session, 0, 31, canele::one(out), sent);
  EXPECT_EQ(receive(31), 42);
  sent.wait();
  EXPECT_EQ(in, 0);
}

TEST_F(CppPost, APostMayFinish) {
  canele::queue<> queue(engine);
  std::array<canele::entry<>, 1> room;
  canele::request sent;
  const canele::post_options finish{.may_finish = true};
  for (const bool own : {false, true}) {
    canele::post_receive(session, 0, 32, canele::one(in), queue.entry_for());
    const auto answer = own ? canele::post_send(session, 0, 32, canele::one(out), sent, queue.entry_for(), finish)
                            : canele::post_send(session, 0, 32, canele::one(out), queue.entry_for(), finish);
    std::size_t entries = answer == canele::posted::done ? 1 : 0;  // of the send, none
    while (entries < 2) entries += queue.wait(room).size();
    EXPECT_TRUE(queue.take(room).empty());
  }
  session.isend(0, 32, canele::one(out), sent);
  EXPECT_EQ(receive(32), 42);
  sent.wait();
}

TEST_F(CppPost, AnErrorIsNoFinish) {
  const std::array<int, 2> two = {1, 2};
  auto sent = session.isend(0, 33, two);
  progress_until([&] { return session.iprobe(0, 33).has_value(); });
  canele::request received;
  const auto answer = canele::post_receive(session, 0, 33, canele::one(in), received, {}, {.may_finish = true});
  EXPECT_EQ(answer, canele::posted::taken);
  EXPECT_EQ(received.wait(std::nothrow).code, CANELE_ETRUNC);
  sent.wait();
}

TEST_F(CppPost, RoomEnds) {
  int sent = 0;
  canele::completion_counter counter;
  const canele::post_options tries{.only_if_room = true};
  while (sent < 10'000'000 &&
         canele::post_send(session, 0, 34, canele::one(out), counter.adding(), tries) == canele::posted::taken)
    ++sent;
  ASSERT_LT(sent, 10'000'000) << "no limit";
  EXPECT_FALSE(canele::send_room(session, 0, sizeof out));
  EXPECT_FALSE(canele::inject(session, 0, 34, canele::one(out)));
  canele::request request;
  const auto post = [&] { return canele::post_send(session, 0, 34, canele::one(out), request, {}, tries); };
  EXPECT_EQ(post(), canele::posted::no_room);
  for (int i = 0; i < sent; ++i) EXPECT_EQ(receive(34), 42);
  counter.wait(engine, static_cast<std::uint64_t>(sent));
  progress_until([&] { return canele::send_room(session, 0, sizeof out); });
  EXPECT_EQ(post(), canele::posted::taken) << "the request is usable";
  EXPECT_EQ(receive(34), 42);
  request.wait();
}

TEST_F(CppPost, InjectCopies) {
  std::array<int, 3> data = {1, 2, 3};
  ASSERT_TRUE(canele::inject(session, 0, 35, data));
  data.fill(9);
  session.recv(0, 35, data);
  EXPECT_EQ(data, (std::array<int, 3>{1, 2, 3}));
  const std::vector<char> much(canele::limit(engine, 0, CANELE_LIMIT_INJECT) + 1);
  EXPECT_EQ(code_of([&] { static_cast<void>(canele::inject(session, 0, 35, much)); }), CANELE_EINVAL);
}

TEST_F(CppPost, LimitsAreTold) {
  EXPECT_EQ(canele::limit(engine, 0, CANELE_LIMIT_HEADER), std::size_t{CANELE_HEADER_MAX});
  EXPECT_EQ(canele::limit(engine, 0, CANELE_LIMIT_AM_HEADER), std::size_t{CANELE_AM_HEADER_MAX});
  EXPECT_GT(canele::limit(engine, 0, CANELE_LIMIT_EAGER), 0u);
  EXPECT_EQ(code_of([&] { static_cast<void>(canele::limit(engine, 1, CANELE_LIMIT_EAGER)); }), CANELE_ERANK);
  EXPECT_EQ(code_of([&] { static_cast<void>(canele::send_room(session, 1, 1)); }), CANELE_ERANK);
}

TEST_F(CppPost, WrongPostsAreRefusedAndTheRequestStaysUsable) {
  canele::queue<> queue(engine);
  canele::request request;
  const auto one = canele::one(out);
  EXPECT_EQ(code_of([&] { canele::post_send(session, 1, 0, one, queue.entry_for()); }), CANELE_ERANK);
  EXPECT_EQ(code_of([&] { canele::post_send(session, 1, 0, one, request, queue.entry_for()); }), CANELE_ERANK);
  EXPECT_EQ(code_of([&] { canele::post_receive(session, 1, 0, canele::one(in), request); }), CANELE_ERANK);
  EXPECT_EQ(code_of([&] { canele::post_receive_late(session, 1, 0, request, {}); }), CANELE_ERANK);
  EXPECT_EQ(code_of([&] { canele::post_send(session, 0, 0, one, canele::completion{}); }), CANELE_EINVAL);
  const canele::post_options synchronous{.synchronous = true};
  EXPECT_EQ(code_of([&] { canele::post_receive(session, 0, 0, canele::one(in), request, {}, synchronous); }),
            CANELE_EINVAL);
  canele::post_send(session, 0, 36, one, request);
  EXPECT_EQ(receive(36), 42);
  request.wait();
  std::array<canele::entry<>, 1> room;
  EXPECT_TRUE(queue.take(room).empty());
}

TEST_F(CppPost, ErrorsOfUnwatchedOperationsGoToTheSession) {
  int heard = CANELE_OK;
  const auto hear = [](canele_session_t*, int, int error, void* into) { *static_cast<int*>(into) = error; };
  canele::on_error(session, hear, &heard);
  const std::array<int, 2> two = {1, 2};
  canele::post_receive(session, 0, 37, canele::one(in), canele::unwatched);
  session.send(0, 37, two);
  progress_until([&] { return heard != CANELE_OK; });
  EXPECT_EQ(heard, CANELE_ETRUNC);
  canele::on_error(session, nullptr);
}

// ---- waits with deadlines -------------------------------------------------------------------------------------------

TEST_F(CppPost, WaitUntilADeadline) {
  canele::request received;
  session.irecv(0, 40, canele::one(in), received);
  EXPECT_FALSE(canele::wait_until(received, 0).has_value());
  EXPECT_FALSE(canele::wait_until(received, engine.now() + 1'000'000).has_value());
  session.send(0, 40, canele::one(out));
  const auto outcome = canele::wait_until(received, canele::no_deadline);
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->length, sizeof out);
  const std::array<int, 2> two = {1, 2};
  session.irecv(0, 40, canele::one(in), received);
  session.send(0, 40, two);
  EXPECT_EQ(code_of([&] { static_cast<void>(canele::wait_until(received, canele::no_deadline)); }), CANELE_ETRUNC);
  session.irecv(0, 40, canele::one(in), received);  // it was told of the end
}

TEST_F(CppPost, WaitSomeTellsAllThatHaveEnded) {
  std::array<int, 4> got{};
  canele::request receives[4];
  EXPECT_TRUE(canele::wait_some(receives).empty()) << "none is pending";
  for (std::size_t i = 0; i < 4; ++i) session.irecv(0, i, canele::one(got[i]), receives[i]);
  EXPECT_TRUE(canele::wait_some(receives, 0).empty());
  const std::array<int, 2> two = {1, 2};
  session.send(0, 3, two);
  session.send(0, 1, canele::one(out));
  std::vector<canele::ended_request> ended;
  while (ended.size() < 2) {
    for (const auto& each : canele::wait_some(receives)) ended.push_back(each);
  }
  std::sort(ended.begin(), ended.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
  ASSERT_EQ(ended.size(), 2u);
  EXPECT_EQ(ended[0].index, 1u);
  EXPECT_EQ(ended[0].outcome.code, CANELE_OK);
  EXPECT_EQ(ended[1].index, 3u);
  EXPECT_EQ(ended[1].outcome.code, CANELE_ETRUNC);
  EXPECT_TRUE(canele::wait_some(receives, 0).empty()) << "each is told once";
}

TEST_F(CppPost, TestAnyFindsOne) {
  std::array<int, 2> got{};
  canele::request receives[2];
  EXPECT_FALSE(canele::test_any(receives).has_value());
  for (std::size_t i = 0; i < 2; ++i) session.irecv(0, i, canele::one(got[i]), receives[i]);
  EXPECT_FALSE(canele::test_any(receives).has_value());
  session.send(0, 1, canele::one(out));
  std::optional<std::size_t> found;
  progress_until([&] { return (found = canele::test_any(receives)).has_value(); });
  EXPECT_EQ(*found, 1u);
  receives[0].cancel();
  int code = CANELE_OK;
  progress_until([&] { return (code = code_of([&] { found = canele::test_any(receives); })) != CANELE_OK; });
  EXPECT_EQ(code, CANELE_ECANCELED);
  EXPECT_FALSE(canele::test_any(receives).has_value());
}

TEST_F(CppPost, AnOperationRepeats) {
  canele::persistent send, receive;
  canele::completion_counter sent;
  int value = 0;
  send.send(session, 0, 9, canele::one(value), sent.adding());
  receive.receive(session, 0, 9, canele::one(in));
  for (int turn = 1; turn <= 5; ++turn) {
    value = turn;
    EXPECT_EQ(receive.start(), canele::posted::taken);
    EXPECT_EQ(code_of([&] { receive.start(); }), CANELE_EBUSY);
    send.start();
    EXPECT_EQ(receive.wait().length, sizeof in);
    EXPECT_EQ(in, turn);
    sent.wait(engine, static_cast<std::uint64_t>(turn));
  }
  receive.start();  // its destructor cancels it
}

}  // namespace
}  // namespace canele::test::cpp_layer

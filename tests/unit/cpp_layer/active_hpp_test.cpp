// SPDX-License-Identifier: BSD-3-Clause
//
// The C++ layer of active messages that are kept, come to a queue, are injected, or posted with a completion, on a job
// of one rank.
#include <gtest/gtest.h>

#include <atomic>
#include <canele/active.hpp>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "unit/cpp_layer/one_rank.hpp"

namespace canele::test::cpp_layer {
namespace {

static_assert(std::is_nothrow_move_constructible_v<canele::kept_message> &&
              !std::is_copy_constructible_v<canele::kept_message>);
static_assert(!std::is_move_constructible_v<canele::active_queue>);

std::vector<int> numbers(int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), count);
  return all;
}

std::vector<int> ints_of(std::span<const std::byte> bytes) {
  std::vector<int> all(bytes.size() / sizeof(int));
  if (!all.empty()) std::memcpy(all.data(), bytes.data(), bytes.size());
  return all;
}

using CppActive = OneRank;

TEST_F(CppActive, AHandlerKeepsMessages) {
  std::vector<canele::kept_message> kept;
  {
    const canele::handler handler(session, 4, [&](const canele_am_message_t& message) { kept.emplace_back(message); });
    for (const int count : {0, 1, 100, 5000}) {
      const std::vector<int> payload = numbers(count);
      canele::active_message message;
      message.send(session, 0, 4, canele::one(count), payload);
      message.wait();
    }
    progress_until([&] { return kept.size() == 4; });
  }
  std::size_t i = 0;
  for (const int count : {0, 1, 100, 5000}) {
    EXPECT_EQ(ints_of(kept[i].header()), std::vector{count});
    EXPECT_EQ(ints_of(kept[i].payload()), numbers(count));
    EXPECT_EQ(kept[i].source(), 0);
    EXPECT_EQ(kept[i++].code(), CANELE_OK);
  }
}

TEST_F(CppActive, AConcurrentHandlerIsCalledOncePerMessage) {
  std::atomic<int> sum{0};
  const auto add = [&](const canele_am_message_t& message) {
    int number = 0;
    std::memcpy(&number, message.header, sizeof number);
    sum += number;
  };
  const canele::handler handler(session, 4, add, {.concurrent = true});
  constexpr int messages = 30;
  for (int number = 1; number <= messages; ++number) {
    canele::active_message message;
    message.send(session, 0, 4, canele::one(number));
    message.wait();
  }
  progress_until([&] { return sum == messages * (messages + 1) / 2; });
}

TEST_F(CppActive, AQueueHasMessagesAndTheEndsOfTheirPosts) {
  canele::queue<int> queue(engine);
  const canele::active_queue to_me(session, 5, queue, &in);
  EXPECT_EQ(code_of([&] { canele::active_queue(session, 5, queue); }), CANELE_EBUSY);
  const std::vector<int> payload = numbers(2000);
  canele::active_message message;
  int own = 0;
  EXPECT_EQ(message.post(session, 0, 5, canele::one(out), payload, queue.entry_for(&own)), canele::posted::taken);
  canele::kept_message kept;
  for (int ends = 0; ends < 2;) {
    const auto entry = queue.wait();
    if (entry.kind() == CANELE_ENTRY_ACTIVE_MESSAGE) {
      EXPECT_EQ(entry.user(), &in);
      kept = canele::kept_message(entry);
    } else {
      EXPECT_EQ(entry.user(), &own);
    }
    ++ends;
  }
  EXPECT_EQ(ints_of(kept.header()), std::vector{out});
  EXPECT_EQ(ints_of(kept.payload()), numbers(2000));
  canele::kept_message moved = std::move(kept);
  EXPECT_EQ(ints_of(moved.payload()), numbers(2000));
  moved = {};
  EXPECT_EQ(moved.header().size(), 0u);
}

TEST_F(CppActive, InjectedMessagesComeInOrder) {
  canele::queue<> queue(engine);
  const canele::active_queue to_me(session, 6, queue);
  for (int i = 0; i < 50; ++i) {
    const std::vector<int> payload = numbers(i % 3);
    ASSERT_TRUE(canele::inject_active(session, 0, 6, canele::one(i), payload));
  }
  for (int i = 0; i < 50; ++i) {
    const canele::kept_message message(queue.wait());
    ASSERT_EQ(ints_of(message.header()), std::vector{i});
    ASSERT_EQ(ints_of(message.payload()), numbers(i % 3));
  }
  const std::vector<int> large = numbers(1000);
  EXPECT_EQ(code_of([&] { static_cast<void>(canele::inject_active(session, 0, 6, canele::one(in), large)); }),
            CANELE_EINVAL);
  EXPECT_EQ(code_of([&] { static_cast<void>(canele::inject_active(session, 1, 6, canele::one(in))); }), CANELE_ERANK);
}

/// Each size is right after the memory of other messages was given back, and taken for this one.
TEST_F(CppActive, MemoryIsTakenAgain) {
  canele::queue<> queue(engine);
  const canele::active_queue to_me(session, 7, queue);
  std::vector<canele::kept_message> kept;
  for (int round = 0; round < 200; ++round) {
    const std::vector<int> payload = numbers(round * 7 % 400);
    canele::active_message message;
    message.send(session, 0, 7, canele::one(round), payload);
    kept.emplace_back(queue.wait());
    message.wait();
    if (kept.size() < 10) continue;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const int sent = round - 9 + static_cast<int>(i);
      ASSERT_EQ(ints_of(kept[i].header()), std::vector{sent});
      ASSERT_EQ(ints_of(kept[i].payload()), numbers(sent * 7 % 400));
    }
    kept.erase(kept.begin());
  }
}

/// Adds up the numbers of a payload.
int sum_of(std::span<const std::byte> payload) {
  const std::vector<int> all = ints_of(payload);
  return std::accumulate(all.begin(), all.end(), 0);
}

TEST_F(CppActive, AHandlerAnswersCalls) {
  const canele::handler handler(session, 8, [&](const canele_am_message_t& message) {
    const int sum = sum_of({static_cast<const std::byte*>(message.payload), message.payload_length});
    EXPECT_TRUE(canele::reply_token(message).inject(session, canele::one(sum)));
    EXPECT_EQ(code_of([&] { canele::reply_token{message}; }), CANELE_ESTATE);
  });
  canele::active_call call;
  for (const int count : {0, 10, 3000}) {
    const std::vector<int> payload = numbers(count);
    int sum = -1;
    call.post(session, 0, 8, canele::one(count), payload, canele::one(sum));
    EXPECT_EQ(call.wait(), sizeof sum);
    EXPECT_EQ(sum, sum_of(std::as_bytes(std::span(payload))));
  }
}

TEST_F(CppActive, ACallIsAnsweredFromAQueue) {
  canele::queue<> queue(engine);
  const canele::active_queue to_me(session, 9, queue);
  canele::completion_counter replies;
  canele::active_call answered, given_back;
  std::vector<int> reply(5000);
  answered.post(session, 0, 9, canele::one(out), std::span<const std::byte>{}, reply, replies.adding());
  given_back.post(session, 0, 9, canele::one(out), std::span<const std::byte>{}, reply);
  const std::vector<int> answer = numbers(5000);
  canele::request use;
  {
    const canele::kept_message first(queue.wait()), second(queue.wait());
    EXPECT_EQ(canele::reply_token(first).post(session, answer, use), canele::posted::taken);
  }
  use.wait();
  EXPECT_EQ(answered.wait(), reply.size() * sizeof(int));
  replies.wait(engine, 1);
  EXPECT_EQ(reply, answer);
  EXPECT_EQ(code_of([&] { given_back.wait(); }), CANELE_ECANCELED);
}

}  // namespace
}  // namespace canele::test::cpp_layer

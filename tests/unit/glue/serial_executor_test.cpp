// SPDX-License-Identifier: BSD-3-Clause
//
// Delivery of finalized sends: one at a time, in order, not nested.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "starpu_glue/nmad/internal.hpp"

namespace {

using canele::nmad::Request;
using canele::nmad::SerialExecutor;

/// What a callback sees. Plain ints on purpose: StarPU's are plain, too, and a race is for ThreadSanitizer to find.
struct Witness {
  SerialExecutor executor;
  int inside = 0;
  int deepest = 0;
  int delivered = 0;
  std::vector<int> order;
};

struct Send {
  Request request{};
  Witness* witness = nullptr;
  int number = 0;
  int children = 0;  // sends that the callback submits, which complete at once
};

void notifier(nm_sr_event_t events, const nm_sr_event_info_t* info, void* reference);

Send* make(Witness& witness, int number, int children = 0) {
  auto* send = new Send;
  send->witness = &witness;
  send->number = number;
  send->children = children;
  send->request.send = true;
  send->request.run = canele::nmad::notify_finalized;
  send->request.notifier = notifier;
  send->request.reference = send;
  return send;
}

void notifier(nm_sr_event_t events, const nm_sr_event_info_t* info, void* reference) {
  auto* send = static_cast<Send*>(reference);
  Witness& witness = *send->witness;
  EXPECT_EQ(events, NM_SR_EVENT_FINALIZED);
  EXPECT_EQ(static_cast<const void*>(info->p_request), static_cast<const void*>(&send->request));
  witness.deepest = std::max(witness.deepest, ++witness.inside);
  ++witness.delivered;
  witness.order.push_back(send->number);
  const int children = send->children;
  const int number = send->number;
  delete send;  // StarPU frees the request in the callback
  if (children > 0) witness.executor.deliver(make(witness, number + 1, children - 1)->request);
  --witness.inside;
}

TEST(SerialExecutor, DeliversOne) {
  Witness witness;
  witness.executor.deliver(make(witness, 5)->request);
  EXPECT_EQ(witness.order, (std::vector<int>{5}));
}

TEST(SerialExecutor, ALongChainOfSendsFromCallbacksDoesNotNest) {
  Witness witness;
  witness.executor.deliver(make(witness, 0, 100000)->request);
  EXPECT_EQ(witness.delivered, 100001);
  EXPECT_EQ(witness.deepest, 1);
  for (int i = 0; i < 100001; ++i) ASSERT_EQ(witness.order[static_cast<std::size_t>(i)], i);
}

TEST(SerialExecutor, ManyThreadsNeverOverlapAndLoseNothing) {
  Witness witness;
  constexpr int kThreads = 8;
  constexpr int kEach = 5000;
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([&witness, id] {
      for (int i = 0; i < kEach; ++i) {
        witness.executor.deliver(make(witness, id * kEach + i)->request);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(witness.delivered, kThreads * kEach);
  EXPECT_EQ(witness.deepest, 1);
  std::vector<int> last(kThreads, -1);
  for (int number : witness.order) {  // each thread's own sends stay in order
    int& before = last[static_cast<std::size_t>(number / kEach)];
    ASSERT_LT(before, number);
    before = number;
  }
}

}  // namespace

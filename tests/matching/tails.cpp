// SPDX-License-Identifier: BSD-3-Clause
//
// The benchmark of tail queues. It has two threads of its own.
//
// Each thread posts a receive and lets its message arrive, in turn, with tags of its own. So both threads are on both
// sides, and every match is behind the K entries with which both lists begin.
#include "tails.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "comm/matching/alternatives/tail_queues.hpp"

namespace canele::comm {
namespace {

using matching::QueueLock;

/// The same lists under one lock.
class OneLock {
 public:
  explicit OneLock(Platform& platform) : lock_(platform) {}
  UnexpectedNode* post(PostedNode& receive) {
    receive.match_class = static_cast<std::uint8_t>(classify(receive.source, receive.mask));
    const QueueLock::Hold hold(lock_);
    MatchNode* found = messages_.take_first(
        [&](const MatchNode& node) { return matching::fits(receive, static_cast<const UnexpectedNode&>(node)); });
    if (found == nullptr) receives_.append(receive);
    return static_cast<UnexpectedNode*>(found);
  }
  PostedNode* arrive(UnexpectedNode& message) {
    const QueueLock::Hold hold(lock_);
    MatchNode* found = receives_.take_first(
        [&](const MatchNode& node) { return matching::fits(static_cast<const PostedNode&>(node), message); });
    if (found == nullptr) messages_.append(message);
    return static_cast<PostedNode*>(found);
  }

 private:
  QueueLock lock_;
  NodeFifo receives_, messages_;
};

/// Makes one thread's pairs, until told to stop. Tags differ, so a receive can only be matched by a call of its own
/// thread. Each pair is therefore complete when its message has arrived.
template <typename Queues>
std::uint64_t pairs(Queues& queues, std::uint64_t tag, const std::atomic<bool>& stop) {
  std::uint64_t done = 0;
  PostedNode receive;
  UnexpectedNode message;
  for (; !stop.load(std::memory_order_relaxed); ++done) {
    receive.tag = message.tag = tag;
    if (queues.post(receive) != nullptr || queues.arrive(message) != &receive) std::abort();
  }
  return done;
}

template <typename Queues>
double rate(std::size_t depth, double seconds) {
  Queues queues(posix_platform());
  std::vector<PostedNode> receives(depth);
  std::vector<UnexpectedNode> messages(depth);
  for (std::size_t i = 0; i < depth; ++i) {
    receives[i].tag = 2 * i + 100;
    messages[i].tag = 2 * i + 101;
    queues.post(receives[i]);
    queues.arrive(messages[i]);
  }
  std::atomic<bool> stop{false};
  std::array<std::uint64_t, 2> done{};
  const auto begin = std::chrono::steady_clock::now();
  std::thread first([&] { done[0] = pairs(queues, 1, stop); });
  std::thread second([&] { done[1] = pairs(queues, 2, stop); });
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  first.join();
  second.join();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  return static_cast<double>(done[0] + done[1]) / passed.count();
}

}  // namespace

void compare_tails(double seconds) {
  constexpr int turns = 5;
  std::printf("|    K | one lock, M/s | tail queues, M/s | ratio |\n|---|---|---|---|\n");
  for (std::size_t depth = 1; depth <= 1024; depth *= 2) {
    std::vector<double> one, tails;
    for (int turn = 0; turn < turns; ++turn) {
      one.push_back(rate<OneLock>(depth, seconds));
      tails.push_back(rate<matching::TailQueues>(depth, seconds));
    }
    std::sort(one.begin(), one.end());
    std::sort(tails.begin(), tails.end());
    const double a = one[turns / 2] / 1e6, b = tails[turns / 2] / 1e6;
    std::printf("| %4zu | %.3f | %.3f | %.2f |\n", depth, a, b, b / a);
  }
}

}  // namespace canele::comm

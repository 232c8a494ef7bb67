// SPDX-License-Identifier: BSD-3-Clause
//
// Tail queues: one thread posts while another lets messages arrive. Nothing is lost, matched twice or out of order.
//
// Run by ctest, under ThreadSanitizer, too. Two threads. The checks follow from the order rule alone, whatever the
// threads do. Two messages of one source and tag fit the same receives, so the earlier one has the earlier receive. And
// two receives of one pattern fit the same messages, so the earlier one has the earlier message.
#include "comm/matching/alternatives/tail_queues.hpp"

#include <cstdio>
#include <map>
#include <random>
#include <thread>
#include <tuple>
#include <vector>

#include "matchers.hpp"

namespace canele::comm {
namespace {

using matching::TailQueues;

struct Receive : PostedNode {
  std::size_t number = 0, partner = 0;
  int matches = 0;
};
struct Message : UnexpectedNode {
  std::size_t number = 0, partner = 0;
  int matches = 0;
};

class TwoThreads : public testing::TestWithParam<bool> {
 protected:
  static constexpr std::size_t count = 50'000;

  TwoThreads() : seed_(from_environment("CANELE_TEST_SEED", 20'261'122)) {
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed_));
    std::mt19937_64 random(seed_);
    const bool wild = GetParam();
    for (std::size_t i = 0; i < count; ++i) {
      messages_[i].tag = random() % 5;
      messages_[i].source = static_cast<std::int32_t>(random() % 2);
      messages_[i].number = i;
      receives_[i].tag = random() % 5;
      receives_[i].source = wild && random() % 8 == 0 ? rank_any : static_cast<std::int32_t>(random() % 2);
      if (wild && random() % 8 == 0) receives_[i].mask = random() % 2;
      receives_[i].number = i;
    }
  }
  /// Runs both threads until all is posted and has arrived; each keeps what its own calls returned.
  void run(TailQueues& queues) {
    std::vector<std::pair<Receive*, Message*>> by_post, by_arrival;
    std::thread poster([&] {
      for (Receive& receive : receives_) {
        if (UnexpectedNode* got = queues.post(receive)) by_post.emplace_back(&receive, static_cast<Message*>(got));
      }
    });
    for (Message& message : messages_) {
      if (PostedNode* got = queues.arrive(message)) by_arrival.emplace_back(static_cast<Receive*>(got), &message);
    }
    poster.join();
    for (const auto* pairs : {&by_post, &by_arrival}) {
      for (const auto& [receive, message] : *pairs) {
        receive->partner = message->number;
        message->partner = receive->number;
        ++receive->matches;
        ++message->matches;
      }
    }
    matched_ = by_post.size() + by_arrival.size();
  }
  /// Checks that of all `items` that are equal in `key`, the earlier is not left out for the later, and has the earlier
  /// partner.
  template <typename Items, typename Key>
  static void expect_in_order(const Items& items, Key key) {
    std::map<decltype(key(items[0])), std::pair<bool, std::size_t>> last;  // left out; partner
    for (const auto& item : items) {
      ASSERT_LE(item.matches, 1) << item.number;
      auto [at, fresh] = last.try_emplace(key(item), item.matches == 0, item.partner);
      if (fresh) continue;
      if (item.matches != 0) {
        ASSERT_FALSE(at->second.first) << "an earlier one than " << item.number << " was left out";
        ASSERT_LT(at->second.second, item.partner) << item.number;
      }
      at->second = {item.matches == 0, item.partner};
    }
  }

  std::uint64_t seed_;
  std::vector<Receive> receives_ = std::vector<Receive>(count);
  std::vector<Message> messages_ = std::vector<Message>(count);
  std::size_t matched_ = 0;
};

TEST_P(TwoThreads, LoseNothingAndKeepTheOrder) {
  TailQueues queues(posix_platform());
  run(queues);
  EXPECT_GT(matched_, count / 2);
  EXPECT_GT(queues.inbox_visits(), 0u);
  for (const Receive& receive : receives_) {
    if (receive.matches == 0) continue;
    const Message& message = messages_[receive.partner];
    ASSERT_TRUE(Model::fits(receive.source, receive.tag, receive.mask, {message.source, message.tag, nullptr}));
  }
  expect_in_order(messages_, [](const Message& m) { return std::tuple(m.source, m.tag); });
  expect_in_order(receives_, [](const Receive& r) { return std::tuple(r.source, r.mask, r.tag & r.mask); });
  // An entry left on one side fits no entry left on the other.
  Model left;
  for (Message& m : messages_) {
    if (m.matches == 0) left.messages.push_back({m.source, m.tag, &m});
  }
  for (const Receive& r : receives_) {
    if (r.matches == 0) {
      ASSERT_EQ(left.find(r.source, r.tag, r.mask), nullptr) << r.number;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Wildcards, TwoThreads, testing::Bool(),
                         [](const auto& i) { return i.param ? "some" : "none"; });

TEST(TailQueuesTest, AgreesWithTheModelInOneThread) {
  std::mt19937_64 random(1);
  TailQueues queues(posix_platform());
  Model model;
  std::vector<PostedNode> receives(20'000);
  std::vector<UnexpectedNode> messages(20'000);
  for (std::size_t i = 0, p = 0, a = 0; i < 20'000; ++i) {
    if (random() % 2 == 0) {
      PostedNode& receive = receives[p++];
      receive.source = random() % 6 == 0 ? rank_any : static_cast<std::int32_t>(random() % 3);
      receive.mask = random() % 6 == 0 ? random() % 4 : ~std::uint64_t{0};
      receive.tag = random() % 8 & receive.mask;
      UnexpectedNode* right = model.find(receive.source, receive.tag, receive.mask);
      ASSERT_EQ(queues.post(receive), right);
      right != nullptr ? model.take(right)
                       : model.receives.push_back({receive.source, receive.tag, receive.mask, &receive});
    } else {
      UnexpectedNode& message = messages[a++];
      message.source = static_cast<std::int32_t>(random() % 3);
      message.tag = random() % 8;
      PostedNode* right = model.arrive(message.source, message.tag);
      ASSERT_EQ(queues.arrive(message), right);
      if (right == nullptr) model.messages.push_back({message.source, message.tag, &message});
    }
  }
}

}  // namespace
}  // namespace canele::comm

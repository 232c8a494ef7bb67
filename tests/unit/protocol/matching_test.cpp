// SPDX-License-Identifier: BSD-3-Clause
//
// What the two orders of a session promise, through a whole engine; and that a matched probe has one winner.
//
// Run by ctest, also under ThreadSanitizer. One thread, and those that probe. All messages are sent before the peers
// are connected. So the strategy has all of them, and may let any overtake any that the session's order allows.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

struct Case {
  const char* strategy;
  unsigned order;
  bool posted;  ///< the receives are posted first; else the messages are
};

class Order : public testing::TestWithParam<Case> {
 protected:
  static constexpr std::size_t count = 200;
  static constexpr std::uint64_t tags = 4;

  /// Sends values 0, 1, 2, ... with random tags and priorities. Returns them in the order in which the receives were
  /// posted.
  std::vector<std::uint64_t> values_as_received() {
    LocalJob job({2, {comm::find_driver("self"), comm::find_driver("shm")}, GetParam().strategy, {}});
    const auto s = job.open("order", GetParam().order);
    std::mt19937_64 random(20'261'122);
    std::vector<canele_request_t> sends(count), receives(count);
    std::vector<std::uint64_t> out(count), in(count);
    const auto post_all = [&] {
      for (std::size_t i = 0; i < count; ++i)
        canele_irecv(s[1], CANELE_ANY_SOURCE, 0, CANELE_TAG_ANY, &in[i], sizeof in[i], &receives[i]);
    };
    if (GetParam().posted) post_all();
    for (std::size_t i = 0; i < count; ++i) {
      out[i] = i;
      tag_of_.push_back(random() % tags);
      const canele_data_t data = canele_data_contiguous(&out[i], sizeof out[i]);
      canele_send_options_t options{};
      options.struct_size = sizeof options;
      options.priority = static_cast<std::int32_t>(random() % 5);
      EXPECT_EQ(canele_isend_data(s[0], 1, tag_of_[i], &data, &options, &sends[i]), CANELE_OK);
    }
    if (!GetParam().posted) {
      EXPECT_TRUE(job.until([&] { return job.engine(1).counters.read(comm::Counter::unexpected_now) == count; }));
      post_all();
    }
    for (std::size_t i = 0; i < count; ++i) EXPECT_TRUE(job.finish(receives[i]) && job.finish(sends[i]));
    return in;
  }

  std::vector<std::uint64_t> tag_of_;
};

TEST_P(Order, IsWhatTheSessionPromises) {
  const std::vector<std::uint64_t> got = values_as_received();
  std::vector<std::uint64_t> sorted = got;
  std::sort(sorted.begin(), sorted.end());
  for (std::uint64_t i = 0; i < count; ++i) ASSERT_EQ(sorted[i], i) << "each message once";
  if (GetParam().order == CANELE_ORDER_ACROSS_TAGS) {
    EXPECT_EQ(got, sorted);
    return;
  }
  std::vector<std::uint64_t> last(tags, 0);
  for (const std::uint64_t value : got) {
    std::uint64_t& before = last[tag_of_[value]];
    ASSERT_LE(before, value) << "of tag " << tag_of_[value];
    before = value;
  }
  if (GetParam().strategy == std::string("priority")) {
    EXPECT_NE(got, sorted) << "priorities let nothing overtake";
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* strategy : {"fifo", "aggregate", "priority"}) {
    for (const unsigned order : {CANELE_ORDER_PER_TAG, CANELE_ORDER_ACROSS_TAGS}) {
      for (const bool posted : {false, true}) all.push_back({strategy, order, posted});
    }
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Sessions, Order, testing::ValuesIn(cases()), [](const auto& i) {
  return std::string(i.param.strategy) + (i.param.order == CANELE_ORDER_PER_TAG ? "_per_tag" : "_across_tags") +
         (i.param.posted ? "_posted" : "_unexpected");
});

TEST(MatchedProbe, HasOneWinnerAmongThreads) {
  constexpr std::size_t count = 3'000, threads = 3;
  LocalJob job;
  const auto s = job.open("probe");
  std::vector<canele_request_t> sends(count);
  std::vector<std::uint64_t> out(count);
  std::vector<std::atomic<int>> won(count);
  std::atomic<std::size_t> taken{0};
  const auto probe = [&] {
    while (taken.load() < count) {
      int found = 0;
      canele_request_t receive{};
      canele_status_t status{};
      canele_improbe(s[1], CANELE_ANY_SOURCE, 0, CANELE_TAG_ANY, &found, &receive, &status);
      if (found == 0) {
        std::this_thread::yield();
        continue;
      }
      std::uint64_t in = count;
      const canele_data_t data = canele_data_contiguous(&in, sizeof in);
      if (canele_receive_bind(&receive, &data) != CANELE_OK || canele_wait(&receive, nullptr) != CANELE_OK) break;
      if (in < count && in == status.tag) ++won[in];
      ++taken;
    }
  };
  std::vector<std::thread> probing;
  for (std::size_t t = 0; t < threads; ++t) probing.emplace_back(probe);
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = i;
    canele_isend(s[0], 1, i, &out[i], sizeof out[i], &sends[i]);
    if (i % 16 == 0) job.step_all();
  }
  EXPECT_TRUE(job.until([&] { return taken.load() >= count; }));
  for (std::thread& thread : probing) thread.join();
  EXPECT_EQ(taken.load(), count);
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(won[i], 1) << "message " << i;
  for (const canele_request_t& send : sends) EXPECT_TRUE(job.finish(send));
}

}  // namespace
}  // namespace canele::test

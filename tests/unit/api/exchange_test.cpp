// SPDX-License-Identifier: BSD-3-Clause
//
// The exchange of published values among engines of one process, a thread for each rank, over shared memory and over
// TCP.
#include <canele/job.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

constexpr std::uint64_t never = UINT64_MAX;

class Exchanges : public testing::TestWithParam<const char*> {
 protected:
  static constexpr int ranks = 5;
  Exchanges() : job_({ranks, {comm::find_driver("self"), comm::find_driver(GetParam())}, "aggregate", {}}) {}

  canele_engine_t* engine(int rank) { return job_.handle(rank); }
  int publish(int rank, const std::string& key, const std::string& value) {
    return canele_publish(engine(rank), key.c_str(), value.data(), value.size());
  }
  /// Calls of all ranks but `without`, each in a thread of its own. Returns their answers.
  std::vector<int> all(const std::function<int(int)>& call, int without = -1) {
    std::vector<int> codes(ranks, CANELE_OK);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank != without) threads.emplace_back([&, rank] { codes[static_cast<std::size_t>(rank)] = call(rank); });
    }
    for (std::thread& one : threads) one.join();
    return codes;
  }
  std::vector<int> exchange() {
    return all([this](int rank) { return canele_exchange(engine(rank), never); });
  }
  std::string lookup(int at, int of, const std::string& key) {
    char value[100];
    std::size_t size = sizeof value;
    const int code = canele_lookup(engine(at), of, key.c_str(), value, &size);
    return code == CANELE_OK ? std::string(value, size) : canele_error_string(code);
  }

  LocalJob job_;
  const std::vector<int> well_ = std::vector<int>(ranks, CANELE_OK);
  const std::string missing_ = canele_error_string(CANELE_ENOENT);
};

TEST_P(Exchanges, EachRankSeesTheValuesOfAll) {
  for (int rank = 0; rank < ranks; ++rank) {
    ASSERT_EQ(publish(rank, "name", "rank " + std::to_string(rank)), CANELE_OK) << canele_error_detail();
  }
  ASSERT_EQ(publish(3, "only", "3"), CANELE_OK);
  ASSERT_EQ(exchange(), well_);
  for (int at = 0; at < ranks; ++at) {
    for (int of = 0; of < ranks; ++of) EXPECT_EQ(lookup(at, of, "name"), "rank " + std::to_string(of));
    EXPECT_EQ(lookup(at, 3, "only"), "3");
    EXPECT_EQ(lookup(at, 2, "only"), missing_);
  }
}

TEST_P(Exchanges, LaterExchangesAddAndReplace) {
  ASSERT_EQ(publish(0, "a", "first"), CANELE_OK);
  ASSERT_EQ(exchange(), well_);
  ASSERT_EQ(publish(0, "a", "second"), CANELE_OK);
  ASSERT_EQ(publish(1, "b", "new"), CANELE_OK);
  EXPECT_EQ(lookup(4, 0, "a"), "first") << "until the next exchange";
  EXPECT_EQ(lookup(4, 1, "b"), missing_);
  ASSERT_EQ(exchange(), well_);
  EXPECT_EQ(lookup(4, 0, "a"), "second");
  EXPECT_EQ(lookup(4, 1, "b"), "new");
  ASSERT_EQ(exchange(), well_);
  EXPECT_EQ(lookup(4, 0, "a"), "second") << "without a new publication, too";
}

/// A call that is late leaves the exchange under way, and the next call continues it. What is published meanwhile goes
/// with the next exchange.
TEST_P(Exchanges, ADeadlineLeavesItUnderWay) {
  ASSERT_EQ(publish(1, "a", "old"), CANELE_OK);
  for (int call = 0; call < 3; ++call) EXPECT_EQ(canele_exchange(engine(1), 0), CANELE_ETIMEOUT);
  EXPECT_NE(std::string(canele_error_detail()).find("the next call continues the exchange"), std::string::npos);
  ASSERT_EQ(publish(1, "a", "new"), CANELE_OK);
  const auto turns = [this](int rank) {
    int code = CANELE_ETIMEOUT;
    while (code == CANELE_ETIMEOUT) code = canele_exchange(engine(rank), canele_now(engine(rank)) + 1000);
    return code;
  };
  ASSERT_EQ(all(turns), well_);
  EXPECT_EQ(lookup(0, 1, "a"), "old");
  ASSERT_EQ(exchange(), well_);
  EXPECT_EQ(lookup(0, 1, "a"), "new");
}

TEST_P(Exchanges, ADeadRankIsAnError) {
  ASSERT_EQ(publish(2, "a", "2"), CANELE_OK);
  ASSERT_EQ(exchange(), well_);
  job_.destroy(2);
  job_.bury(2, 0);
  const auto call = [this](int rank) { return canele_exchange(engine(rank), never); };
  for (int turn = 0; turn < 2; ++turn) {
    const std::vector<int> codes = all(call, 2);
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank == 2) continue;
      EXPECT_EQ(codes[static_cast<std::size_t>(rank)], CANELE_EPEER) << "rank " << rank;
    }
  }
  EXPECT_EQ(lookup(0, 2, "a"), "2") << "earlier values stay";
}

/// Two allgathers with log2 of 5 messages each. A message from each rank to each would be 8.
TEST_P(Exchanges, ARankSendsFewMessages) {
  const auto sent = [this](int rank) {
    std::uint64_t messages = 0;
    EXPECT_EQ(canele_counter_read(engine(rank), static_cast<int>(comm::Counter::messages_sent), -1, nullptr, &messages),
              CANELE_OK);
    return messages;
  };
  for (int rank = 0; rank < ranks; ++rank) ASSERT_EQ(publish(rank, "a", std::string(100, 'a')), CANELE_OK);
  ASSERT_EQ(exchange(), well_);
  for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(sent(rank), 6u) << "rank " << rank;
}

TEST_P(Exchanges, WrongCalls) {
  std::size_t size = 0, count = 0;
  int index = 0;
  const std::string longest_key(CANELE_PUBLISH_KEY_MAX, 'k'), longest(CANELE_PUBLISH_VALUE_MAX, 'v');
  EXPECT_EQ(canele_lookup(engine(0), 0, "a", nullptr, &size), CANELE_ESTATE);
  EXPECT_EQ(canele_local_ranks(engine(0), nullptr, 0, &count), CANELE_ESTATE);
  EXPECT_EQ(canele_rank_host(engine(0), 0, &index, nullptr, 0), CANELE_ESTATE);
  EXPECT_EQ(publish(0, "", "v"), CANELE_EINVAL);
  EXPECT_EQ(publish(0, longest_key + "k", "v"), CANELE_EINVAL);
  EXPECT_EQ(publish(0, "canele.place", "v"), CANELE_EINVAL);
  EXPECT_EQ(publish(0, "a", longest + "v"), CANELE_EINVAL);
  EXPECT_EQ(publish(0, longest_key, longest), CANELE_OK) << canele_error_detail();
  int more = 0;
  while (publish(0, std::to_string(more), longest) == CANELE_OK) ++more;
  EXPECT_EQ(more, CANELE_PUBLISH_MAX / CANELE_PUBLISH_VALUE_MAX - 2);
  EXPECT_EQ(publish(0, "a", longest), CANELE_ENOMEM);
  ASSERT_EQ(exchange(), well_);
  std::string value(longest.size(), ' ');
  size = value.size();
  EXPECT_EQ(canele_lookup(engine(4), 0, longest_key.c_str(), value.data(), &size), CANELE_OK);
  EXPECT_EQ(value, longest);
  size = 0;
  EXPECT_EQ(canele_lookup(engine(4), 0, "0", nullptr, &size), CANELE_ETRUNC);
  EXPECT_EQ(size, longest.size());
  EXPECT_EQ(canele_lookup(engine(4), ranks, "0", value.data(), &size), CANELE_ERANK);
  EXPECT_EQ(canele_lookup(engine(4), 0, "canele.place", value.data(), &size), CANELE_EINVAL);
}

TEST_P(Exchanges, OneThreadOfARankAtATime) {
  int code = CANELE_EBUSY;
  std::thread other([&] {
    while (code == CANELE_EBUSY) code = canele_exchange(engine(0), never);
  });
  int mine = CANELE_ETIMEOUT;
  while (mine == CANELE_ETIMEOUT) mine = canele_exchange(engine(0), 0);
  EXPECT_EQ(mine, CANELE_EBUSY) << "the other thread waits for the other ranks";
  EXPECT_EQ(publish(0, "a", "1"), CANELE_OK) << "publishing is allowed meanwhile";
  std::vector<std::thread> threads;
  for (int rank = 1; rank < ranks; ++rank) {
    threads.emplace_back([this, rank] { EXPECT_EQ(canele_exchange(engine(rank), never), CANELE_OK); });
  }
  for (std::thread& one : threads) one.join();
  other.join();
  EXPECT_EQ(code, CANELE_OK);
}

TEST_P(Exchanges, NotInACallback) {
  canele_request_t request{};
  const std::vector<canele_session_t*> sessions = job_.open("test");
  struct Seen {
    canele_engine_t* engine;
    int exchange = CANELE_OK, publish = CANELE_EINVAL;
  } seen{engine(0)};
  const auto call = [](canele_request_t*, unsigned, void* argument) {
    auto& in = *static_cast<Seen*>(argument);
    in.exchange = canele_exchange(in.engine, 0);
    in.publish = canele_publish(in.engine, "from a callback", "x", 1);
  };
  ASSERT_EQ(canele_request_on_event(&request, CANELE_EVENT_FINALIZED, call, &seen), CANELE_OK);
  ASSERT_EQ(canele_isend(sessions[0], 0, 1, nullptr, 0, &request), CANELE_OK);
  ASSERT_TRUE(job_.until([&] { return seen.exchange != CANELE_OK; }));
  EXPECT_EQ(seen.exchange, CANELE_EDEADLK);
  EXPECT_EQ(seen.publish, CANELE_OK);
}

TEST_P(Exchanges, HostsAreKnownAfterAnExchange) {
  ASSERT_EQ(exchange(), well_);
  int found[ranks] = {};
  std::size_t count = 0;
  ASSERT_EQ(canele_local_ranks(engine(3), found, ranks, &count), CANELE_OK);
  EXPECT_EQ(std::vector<int>(found, found + count), (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(canele_local_ranks(engine(3), found, 2, &count), CANELE_ETRUNC);
  EXPECT_EQ(count, std::size_t{ranks});
  int index = -1;
  char name[CANELE_HOST_NAME_SIZE];
  ASSERT_EQ(canele_rank_host(engine(3), 1, &index, name, sizeof name), CANELE_OK);
  EXPECT_EQ(index, 0);
  EXPECT_STREQ(name, "here");
  index = -1;
  EXPECT_EQ(canele_rank_host(engine(3), 1, &index, name, 3), CANELE_ETRUNC);
  EXPECT_EQ(index, 0);
  EXPECT_STREQ(name, "he");
}

/// Ranks publish, look up and exchange in several threads at once.
TEST_P(Exchanges, ThreadsLookUpDuringExchanges) {
  for (int rank = 0; rank < ranks; ++rank) ASSERT_EQ(publish(rank, "n", "0"), CANELE_OK);
  ASSERT_EQ(exchange(), well_);
  std::atomic<bool> over{false};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    while (!over) {
      const std::string value = lookup(0, 4, "n");
      if (value.empty() || value.find_first_not_of("0123456789") != std::string::npos) ++wrong;
    }
  });
  const auto call = [this](int rank) -> int {
    for (int i = 1; i <= 50; ++i) {
      if (publish(rank, "n", std::string(static_cast<std::size_t>(i), '7')) != CANELE_OK) return -99;
      if (const int code = canele_exchange(engine(rank), never); code != CANELE_OK) return code;
    }
    return CANELE_OK;
  };
  EXPECT_EQ(all(call), well_);
  over = true;
  reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(lookup(2, 1, "n"), std::string(50, '7'));
}

INSTANTIATE_TEST_SUITE_P(Drivers, Exchanges, testing::Values("shm", "tcp"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace canele::test

// SPDX-License-Identifier: BSD-3-Clause
//
// Multicasts: every shape and size, receives before and after, unbound receives, order with other sends, priorities, a
// destination or a parent that dies, memory that is short.
//
// The ranks are engines of this process over tcp, because a rank that is reached through memory is always sent to
// directly. One test is about that.
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

using comm::Counter;

struct Received {
  std::vector<std::uint8_t> bytes;
  canele_request_t request{};
};

class Multicast : public testing::Test {
 protected:
  void start(int size, std::vector<std::string> settings = {}, bool all_meet = true, const char* driver = "tcp") {
    JobOptions options;
    options.size = size;
    options.drivers = {comm::find_driver("self"), comm::find_driver(driver)};
    options.settings = std::move(settings);
    job_ = std::make_unique<LocalJob>(options);
    sessions_ = job_->open("s");
    if (all_meet) meet_all();
  }
  /// Connects every rank with every other.
  void meet_all() {
    const auto n = static_cast<std::size_t>(job_->size());
    std::vector<canele_request_t> requests(2 * n * n);
    std::size_t used = 0;
    for (int a = 0; a < job_->size(); ++a) {
      for (int b = 0; b < job_->size(); ++b) {
        if (a == b) continue;
        EXPECT_EQ(canele_irecv(sessions_[at(b)], a, 9999, CANELE_TAG_EXACT, nullptr, 0, &requests[used++]), CANELE_OK);
        EXPECT_EQ(canele_isend(sessions_[at(a)], b, 9999, nullptr, 0, &requests[used++]), CANELE_OK);
      }
    }
    for (std::size_t i = 0; i < used; ++i) job_->finish(requests[i]);
  }
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

  int send(int root, const std::vector<int>& to, std::uint64_t tag, const std::vector<std::uint8_t>& bytes,
           canele_request_t* request, int shape = 0, int* outcomes = nullptr, std::size_t header = 0,
           const std::int32_t* priorities = nullptr) {
    const canele_data_t data = canele_data_contiguous(bytes.data(), bytes.size());
    canele_multicast_options_t options{};
    options.struct_size = sizeof options;
    options.shape = shape;
    options.outcomes = outcomes;
    options.header = header;
    options.priorities = priorities;
    return canele_imulticast(sessions_[at(root)], to.data(), to.size(), tag, &data, &options, request);
  }
  void post(int rank, int root, std::uint64_t tag, std::size_t size, Received* into) {
    into->bytes.assign(size, 0xee);
    ASSERT_EQ(canele_irecv(sessions_[at(rank)], root, tag, CANELE_TAG_EXACT, into->bytes.data(), size, &into->request),
              CANELE_OK);
  }
  /// Checks that the receive ends, with all of the data.
  void arrives(const Received& got, const std::vector<std::uint8_t>& bytes) {
    ASSERT_TRUE(job_->finish(got.request));
    EXPECT_TRUE(got.bytes == bytes);
  }
  /// Connects the two ranks.
  void meet(int from, int to) {
    const std::uint64_t word = 7;
    canele_request_t request{};
    Received got;
    post(to, from, 99, sizeof word, &got);
    ASSERT_EQ(canele_isend(sessions_[at(from)], to, 99, &word, sizeof word, &request), CANELE_OK);
    ASSERT_TRUE(job_->finish(got.request) && job_->finish(request));
  }
  void step(int turns) {
    for (int i = 0; i < turns; ++i) job_->step_all();
  }
  std::uint64_t sum(Counter counter) {
    std::uint64_t all = 0;
    for (int rank = 0; rank < job_->size(); ++rank) all += job_->engine(rank).counters.read(counter);
    return all;
  }
  static std::vector<int> others(int size, int root) {
    std::vector<int> to;
    for (int rank = 0; rank < size; ++rank) {
      if (rank != root) to.push_back(rank);
    }
    return to;
  }
  /// Checks that nothing is left of any multicast.
  void expect_clean() {
    for (int rank = 0; rank < job_->size(); ++rank) {
      comm::Engine& engine = job_->engine(rank);
      job_->until([&] { return engine.pending_sends == 0 && engine.multicasts.session.pending == 0; });
      EXPECT_EQ(engine.multicasts.relay_bytes, 0u) << rank;
      EXPECT_EQ(engine.transfers.used(), 0u) << rank;
      EXPECT_EQ(engine.sends.used(), 0u) << rank;
      for (const auto& [key, incoming] : engine.multicasts.incoming) {
        EXPECT_TRUE(incoming->closed) << "rank " << rank << " keeps multicast " << incoming->id << " of rank "
                                      << incoming->root;
      }
    }
  }
  std::unique_ptr<LocalJob> job_;
  std::vector<canele_session_t*> sessions_;
};

struct MulticastCase {
  int shape;
  std::size_t size;
};
class MulticastOf : public Multicast, public testing::WithParamInterface<MulticastCase> {};

// Destinations post before, after, or in between: all get the same bytes, and the root's request ends.
TEST_P(MulticastOf, ReachesAll) {
  constexpr int size = 10;  // so many that some rank forwards in every shape
  start(size);
  const auto bytes = pattern(GetParam().size, 1);
  for (int root = 0; root < 3; ++root) {
    const auto to = others(size, root);
    std::vector<Received> got(size);
    std::vector<int> outcomes(size, 77);
    canele_request_t request{};
    for (const int rank : to) {
      if (rank % 2 == 0) post(rank, root, 5, bytes.size(), &got[at(rank)]);
    }
    ASSERT_EQ(send(root, to, 5, bytes, &request, GetParam().shape, outcomes.data()), CANELE_OK)
        << canele_error_detail();
    step(200);
    for (const int rank : to) {
      if (rank % 2 != 0) post(rank, root, 5, bytes.size(), &got[at(rank)]);
    }
    for (const int rank : to) {
      ASSERT_TRUE(job_->finish(got[at(rank)].request)) << rank;
      const canele_status_t status = status_of(got[at(rank)].request);
      EXPECT_EQ(status.error, CANELE_OK);
      EXPECT_EQ(status.source, root);
      EXPECT_EQ(status.length, bytes.size());
      EXPECT_TRUE(got[at(rank)].bytes == bytes) << rank;
    }
    ASSERT_TRUE(job_->finish(request));
    EXPECT_EQ(status_of(request).error, CANELE_OK);
    for (std::size_t i = 0; i < to.size(); ++i) EXPECT_EQ(outcomes[i], CANELE_OK);
  }
  const bool tree = GetParam().shape > CANELE_SHAPE_FLAT && GetParam().size != 0;
  EXPECT_EQ(sum(Counter::multicasts_sent), 3u);
  if (tree) {
    EXPECT_GT(sum(Counter::multicasts_forwarded), 0u);
  }
  expect_clean();
}

std::vector<MulticastCase> multicast_cases() {
  std::vector<MulticastCase> all;
  for (int shape = CANELE_SHAPE_AUTO; shape <= CANELE_SHAPE_8_NOMIAL; ++shape) {
    for (const std::size_t size : {0ul, 1ul, 300ul, 20'000ul, 3'000'000ul}) all.push_back({shape, size});
  }
  return all;
}
std::string name_of(const testing::TestParamInfo<MulticastCase>& one) {
  constexpr const char* names[] = {"auto", "flat", "chain", "binomial", "nomial4", "nomial8"};
  return std::string(names[one.param.shape]) + "_" + std::to_string(one.param.size);
}
INSTANTIATE_TEST_SUITE_P(Shapes, MulticastOf, testing::ValuesIn(multicast_cases()), name_of);

// All ranks share one loop-back: a rank that forwards takes the processor from the root. A requested shape is kept.
TEST_F(Multicast, OnOneHostTheRootSendsToAll) {
  start(6);
  const auto bytes = pattern(4'000'000, 3);
  for (const int shape : {CANELE_SHAPE_AUTO, CANELE_SHAPE_BINOMIAL}) {
    Received got[6];
    canele_request_t request{};
    for (int rank = 1; rank < 6; ++rank) post(rank, 0, 5, bytes.size(), &got[rank]);
    ASSERT_EQ(send(0, others(6, 0), 5, bytes, &request, shape), CANELE_OK);
    for (int rank = 1; rank < 6; ++rank) arrives(got[rank], bytes);
    ASSERT_TRUE(job_->finish(request));
    EXPECT_EQ(sum(Counter::multicasts_forwarded) == 0, shape == CANELE_SHAPE_AUTO);
  }
  expect_clean();
}

// Through memory a short message has left when the call returns; if a ring is full it is queued, in order.
TEST_F(Multicast, ShortOnesAreSentFastThroughMemory) {
  start(3, {}, true, "shm");
  constexpr std::size_t count = 3000;  // more than a ring holds
  std::deque<Received> got[3];
  std::deque<canele_request_t> sent;
  std::deque<std::vector<std::uint8_t>> bytes;
  std::deque<std::array<int, 2>> outcomes(count, {77, 77});
  for (std::size_t i = 0; i < count; ++i) {
    bytes.push_back(pattern(8, static_cast<unsigned>(i)));
    ASSERT_EQ(send(0, others(3, 0), 5, bytes.back(), &sent.emplace_back(), 0, outcomes[i].data()), CANELE_OK);
    if (i == 0) {
      EXPECT_TRUE(comm::request_of(&sent[0]).finalized());
      EXPECT_EQ(outcomes[0], (std::array<int, 2>{CANELE_OK, CANELE_OK}));
    }
  }
  EXPECT_FALSE(comm::request_of(&sent.back()).finalized());
  for (std::size_t i = 0; i < count; ++i) {
    for (int rank = 1; rank < 3; ++rank) post(rank, 0, 5, 8, &got[rank].emplace_back());
  }
  for (std::size_t i = 0; i < count; ++i) {
    for (int rank = 1; rank < 3; ++rank) arrives(got[rank][i], bytes[i]);
    ASSERT_TRUE(job_->finish(sent[i]));
    EXPECT_EQ(status_of(sent[i]).error, CANELE_OK);
    EXPECT_EQ(outcomes[i], (std::array<int, 2>{CANELE_OK, CANELE_OK}));
  }
  EXPECT_EQ(sum(Counter::multicasts_sent), count);
  expect_clean();
}

// Through memory a long message lies in a broadcast segment, once for all, when the call returns. Later changes of the
// buffer do not matter, though no receive is posted yet (a program may not rely on it). A message for which the segment
// has no room goes the usual way. An ended multicast makes room.
TEST_F(Multicast, LiesInABroadcastSegmentOnceForAll) {
  constexpr int size = 4;
  start(size, {"CANELE_EXPERT_SHM_BROADCAST_SEGMENT=on"}, true, "shm");
  for (unsigned round = 0; round < 6; ++round) {
    for (const std::size_t length : {20'000u, 300'001u, 1u << 20, 4u << 20}) {
      const std::vector<std::uint8_t> right = pattern(length, round);
      std::vector<std::uint8_t> source = right;
      canele_request_t sent{};
      std::array<int, 3> outcomes{77, 77, 77};
      ASSERT_EQ(send(0, others(size, 0), 5, source, &sent, 0, outcomes.data()), CANELE_OK);
      std::fill(source.begin(), source.end(), 0x55);
      std::array<Received, size> got;
      for (int rank = 1; rank < size; ++rank) post(rank, 0, 5, length, &got[at(rank)]);
      for (int rank = 1; rank < size; ++rank) arrives(got[at(rank)], right);
      ASSERT_TRUE(job_->finish(sent));
      EXPECT_EQ(outcomes, (std::array<int, 3>{CANELE_OK, CANELE_OK, CANELE_OK}));
    }
  }
  expect_clean();
}

TEST_F(Multicast, TakesTheNormalPathWhereTheSegmentIsFull) {
  constexpr int size = 3;
  constexpr std::size_t count = 6, length = 3u << 20;  // two fit
  start(size, {"CANELE_EXPERT_SHM_BROADCAST_SEGMENT=on"}, true, "shm");
  std::deque<canele_request_t> sent;
  std::deque<std::vector<std::uint8_t>> bytes;
  std::deque<Received> got[size];
  for (std::size_t i = 0; i < count; ++i) {
    bytes.push_back(pattern(i == 4 ? 5u << 20 : length, static_cast<unsigned>(i)));  // one that is too long for the
                                                                                     // segment
    ASSERT_EQ(send(0, others(size, 0), 5, bytes.back(), &sent.emplace_back()), CANELE_OK);
  }
  for (std::size_t i = 0; i < count; ++i) {
    for (int rank = 1; rank < size; ++rank) post(rank, 0, 5, bytes[i].size(), &got[rank].emplace_back());
  }
  for (std::size_t i = 0; i < count; ++i) {
    for (int rank = 1; rank < size; ++rank) arrives(got[rank][i], bytes[i]);
    ASSERT_TRUE(job_->finish(sent[i]));
  }
  expect_clean();
}

// A receive that is too short, one that waits for its header, and order with plain sends: all as for other messages.
TEST_F(Multicast, InASegmentIsReceivedLikeAnyOther) {
  start(3, {"CANELE_EXPERT_SHM_BROADCAST_SEGMENT=on"}, true, "shm");
  const std::vector<std::uint8_t> first = pattern(100'000, 1), second = pattern(100'000, 2), third = pattern(70'000, 3);
  canele_request_t sent[3] = {};
  ASSERT_EQ(send(0, {1, 2}, 5, first, &sent[0]), CANELE_OK);
  ASSERT_EQ(canele_isend(sessions_[0], 1, 5, second.data(), second.size(), &sent[1]), CANELE_OK);
  ASSERT_EQ(send(0, {2, 1}, 5, third, &sent[2]), CANELE_OK);
  Received one[3], other[2];
  post(1, 0, 5, first.size() - 1, &one[0]);
  post(1, 0, 5, second.size(), &one[1]);
  post(1, 0, 5, third.size(), &one[2]);
  post(2, 0, 5, first.size(), &other[0]);
  post(2, 0, 5, third.size(), &other[1]);
  ASSERT_TRUE(job_->finish(one[0].request));
  EXPECT_EQ(status_of(one[0].request).error, CANELE_ETRUNC);
  EXPECT_TRUE(std::equal(one[0].bytes.begin(), one[0].bytes.end(), first.begin()));
  arrives(one[1], second);
  arrives(one[2], third);
  arrives(other[0], first);
  arrives(other[1], third);
  for (canele_request_t& request : sent) ASSERT_TRUE(job_->finish(request));
  expect_clean();
}

// A chain whose first two ranks have no receive: they forward from memory of their own, and deliver from it later.
TEST_F(Multicast, IsForwardedBeforeItIsReceived) {
  start(4);
  const auto bytes = pattern(1'000'000, 2);
  Received got[4];
  canele_request_t request{};
  post(3, 0, 5, bytes.size(), &got[3]);
  ASSERT_EQ(send(0, {1, 2, 3}, 5, bytes, &request, CANELE_SHAPE_CHAIN), CANELE_OK);
  arrives(got[3], bytes);
  EXPECT_EQ(job_->engine(1).counters.read(Counter::multicasts_forwarded), 1u);
  EXPECT_EQ(job_->engine(2).counters.read(Counter::multicasts_forwarded), 1u);
  ASSERT_TRUE(job_->finish(request)) << "the root waits for receives of others";
  for (const int rank : {1, 2}) {
    post(rank, 0, 5, bytes.size(), &got[rank]);
    arrives(got[rank], bytes);
  }
  expect_clean();
}

// A rank that asks before its parent's envelope has come gets the data nevertheless, also where nothing is received
// yet.
TEST_F(Multicast, AnswersACtsThatCameBeforeTheEnvelope) {
  start(3, {}, false);
  meet(0, 2);
  meet(1, 2);  // but not 0 and 1: the envelope waits for their connection
  const auto bytes = pattern(100'000, 9);
  Received got[3];
  canele_request_t request{};
  post(2, 0, 5, bytes.size(), &got[2]);
  ASSERT_EQ(send(0, {1, 2}, 5, bytes, &request, CANELE_SHAPE_CHAIN), CANELE_OK);
  for (int i = 0; i < 1000; ++i) {  // rank 1 receives nothing meanwhile
    job_->engine(0).step();
    job_->engine(2).step();
  }
  for (int i = 0; i < 100 && job_->engine(1).multicasts.unannounced == 0; ++i) job_->engine(1).step();
  ASSERT_EQ(job_->engine(1).multicasts.unannounced, 1u) << "rank 2 was to ask first";
  ASSERT_TRUE(job_->finish(got[2].request)) << "it was forgotten that rank 2 had asked";
  EXPECT_TRUE(got[2].bytes == bytes);
  EXPECT_EQ(job_->engine(1).counters.read(Counter::multicasts_forwarded), 1u);
  post(1, 0, 5, bytes.size(), &got[1]);
  ASSERT_TRUE(job_->finish(got[1].request));
  ASSERT_TRUE(job_->finish(request));
  expect_clean();
}

// Without memory for that, the ranks are redirected to the root.
TEST_F(Multicast, IsAskedOfTheRootWhereMemoryIsShort) {
  start(4, {"CANELE_MULTICAST_MEMORY=1000"});
  const auto bytes = pattern(100'000, 3);
  Received got[4];
  canele_request_t request{};
  post(3, 0, 5, bytes.size(), &got[3]);
  ASSERT_EQ(send(0, {1, 2, 3}, 5, bytes, &request, CANELE_SHAPE_CHAIN), CANELE_OK);
  arrives(got[3], bytes);
  EXPECT_EQ(sum(Counter::multicasts_forwarded), 0u);
  for (const int rank : {2, 1}) {
    post(rank, 0, 5, bytes.size(), &got[rank]);
    arrives(got[rank], bytes);
  }
  ASSERT_TRUE(job_->finish(request));
  expect_clean();
}

// A rank that asks after its parent has delivered, when the parent's user may change the data, gets it from the root.
TEST_F(Multicast, NeverWaitsForAThirdProgram) {
  start(3);
  const auto bytes = pattern(500'000, 4);
  Received got[3];
  canele_request_t request{};
  post(1, 0, 5, bytes.size(), &got[1]);
  ASSERT_EQ(send(0, {1, 2}, 5, bytes, &request, CANELE_SHAPE_CHAIN), CANELE_OK);
  ASSERT_TRUE(job_->finish(got[1].request)) << "a receive waits for that of another rank";
  std::fill(got[1].bytes.begin(), got[1].bytes.end(), 0);
  post(2, 0, 5, bytes.size(), &got[2]);
  arrives(got[2], bytes);
  ASSERT_TRUE(job_->finish(request));
  expect_clean();
}

// Multicasts and plain sends with one tag come in the order in which they were made.
TEST_F(Multicast, KeepsItsPlaceAmongSends) {
  start(4);
  constexpr int rounds = 20;
  std::vector<std::vector<std::uint8_t>> sent;
  std::deque<canele_request_t> requests;
  for (int i = 0; i < rounds; ++i) {
    sent.push_back(pattern(i % 3 == 0 ? 50'000 : 40, static_cast<unsigned>(i)));
    requests.emplace_back();
    if (i % 2 == 0) {
      ASSERT_EQ(send(0, {1, 2, 3}, 5, sent.back(), &requests.back(), 1 + i % 5), CANELE_OK);
    } else {
      ASSERT_EQ(canele_isend(sessions_[0], 3, 5, sent.back().data(), sent.back().size(), &requests.back()), CANELE_OK);
    }
  }
  for (int rank = 1; rank <= 3; ++rank) {
    for (int i = 0; i < rounds; ++i) {
      if (i % 2 != 0 && rank != 3) continue;
      Received got;
      post(rank, 0, 5, 60'000, &got);
      ASSERT_TRUE(job_->finish(got.request));
      ASSERT_EQ(status_of(got.request).length, sent[at(i)].size()) << "rank " << rank << ", message " << i;
      got.bytes.resize(sent[at(i)].size());
      ASSERT_TRUE(got.bytes == sent[at(i)]) << "rank " << rank << ", message " << i;
    }
  }
  for (const canele_request_t& request : requests) ASSERT_TRUE(job_->finish(request));
  expect_clean();
}

// A receive without a buffer sees the header, and then gets its buffer. Another one is too short, and is told so.
TEST_F(Multicast, MeetsUnboundAndShortReceives) {
  start(4);
  const auto bytes = pattern(300'000, 6);
  canele_request_t request{}, unbound{};
  Received got[4];
  ASSERT_EQ(canele_irecv_late(sessions_[1], 0, 5, CANELE_TAG_EXACT, &unbound), CANELE_OK);
  post(2, 0, 5, 1000, &got[2]);
  post(3, 0, 5, bytes.size(), &got[3]);
  ASSERT_EQ(send(0, {1, 2, 3}, 5, bytes, &request, CANELE_SHAPE_CHAIN, nullptr, 16), CANELE_OK);
  ASSERT_TRUE(job_->until([&] { return comm::request_of(&unbound).stage == comm::Request::Stage::matched_unbound; }));
  std::uint8_t header[16];
  ASSERT_EQ(canele_receive_peek(&unbound, header, sizeof header), CANELE_OK);
  EXPECT_TRUE(std::equal(std::begin(header), std::end(header), bytes.begin()));
  arrives(got[3], bytes);
  ASSERT_TRUE(job_->finish(got[2].request));
  EXPECT_EQ(status_of(got[2].request).error, CANELE_ETRUNC);
  EXPECT_TRUE(std::equal(got[2].bytes.begin(), got[2].bytes.end(), bytes.begin()));
  got[1].bytes.resize(bytes.size());
  const canele_data_t data = canele_data_contiguous(got[1].bytes.data(), bytes.size());
  ASSERT_EQ(canele_receive_bind(&unbound, &data), CANELE_OK);
  ASSERT_TRUE(job_->finish(unbound));
  EXPECT_TRUE(got[1].bytes == bytes);
  ASSERT_TRUE(job_->finish(request));
  expect_clean();
}

// In a chain the urgent destination comes first, wherever it was named.
TEST_F(Multicast, SendsToTheUrgentFirst) {
  start(4);
  const auto bytes = pattern(100'000, 7);
  Received got[4];
  for (int rank = 1; rank < 4; ++rank) post(rank, 0, 5, bytes.size(), &got[rank]);
  const std::int32_t priorities[] = {1, 2, 3};
  canele_request_t request{};
  ASSERT_EQ(send(0, {1, 2, 3}, 5, bytes, &request, CANELE_SHAPE_CHAIN, nullptr, 0, priorities), CANELE_OK);
  ASSERT_TRUE(job_->finish(request));
  for (int rank = 1; rank < 4; ++rank) ASSERT_TRUE(job_->finish(got[rank].request));
  EXPECT_EQ(job_->engine(3).counters.read(Counter::multicasts_forwarded), 1u);
  EXPECT_EQ(job_->engine(2).counters.read(Counter::multicasts_forwarded), 1u);
  EXPECT_EQ(job_->engine(1).counters.read(Counter::multicasts_forwarded), 0u);
  expect_clean();
}

// The middle rank dies at every point of the transfer: the others have the data, the root's request names it.
TEST_F(Multicast, OutlivesItsParent) {
  for (int turns = 0; turns < 300; turns += turns < 24 ? 1 : 40) {
    SCOPED_TRACE(turns);
    start(3);
    const auto bytes = pattern(200'000, static_cast<unsigned>(turns));
    Received got[3];
    for (const int rank : {1, 2}) post(rank, 0, 5, bytes.size(), &got[rank]);
    canele_request_t request{};
    int outcomes[2] = {77, 77};
    ASSERT_EQ(send(0, {1, 2}, 5, bytes, &request, CANELE_SHAPE_CHAIN, outcomes), CANELE_OK);
    step(turns);
    job_->destroy(1);
    ASSERT_TRUE(job_->finish(request));
    ASSERT_TRUE(job_->finish(got[2].request));
    EXPECT_EQ(status_of(got[2].request).error, CANELE_OK);
    EXPECT_TRUE(got[2].bytes == bytes);
    EXPECT_EQ(outcomes[1], CANELE_OK);
    EXPECT_TRUE(outcomes[0] == CANELE_OK || outcomes[0] == CANELE_EPEER) << outcomes[0];
    EXPECT_EQ(status_of(request).error, outcomes[0]);
  }
}

// The root dies: every receive ends, and those without an error have all of the data.
TEST_F(Multicast, EndsWithItsRoot) {
  for (int turns = 0; turns < 300; turns += turns < 24 ? 1 : 40) {
    SCOPED_TRACE(turns);
    start(4);
    const auto bytes = pattern(200'000, static_cast<unsigned>(turns));
    Received got[4];
    for (const int rank : {1, 2, 3}) {
      if (turns % 2 == 0 || rank != 1) post(rank, 0, 5, bytes.size(), &got[rank]);
    }
    canele_request_t request{};
    ASSERT_EQ(send(0, {1, 2, 3}, 5, bytes, &request, CANELE_SHAPE_CHAIN), CANELE_OK);
    step(turns);
    job_->destroy(0);
    if (turns % 2 != 0) post(1, 0, 5, bytes.size(), &got[1]);
    for (const int rank : {1, 2, 3}) {
      ASSERT_TRUE(job_->finish(got[rank].request)) << rank;
      const int error = status_of(got[rank].request).error;
      EXPECT_TRUE(error == CANELE_OK || error == CANELE_EPEER) << error;
      if (error == CANELE_OK) {
        EXPECT_TRUE(got[rank].bytes == bytes) << rank;
      }
    }
    for (const int rank : {1, 2, 3}) {
      EXPECT_EQ(job_->engine(rank).multicasts.session.pending, 0u);
      EXPECT_EQ(job_->engine(rank).multicasts.relay_bytes, 0u) << rank;
    }
  }
}

TEST_F(Multicast, RejectsMalformedPackets) {
  start(3);
  const auto bytes = pattern(10, 1);
  canele_request_t request{};
  EXPECT_EQ(send(0, {1, 3}, 5, bytes, &request), CANELE_ERANK);
  EXPECT_NE(std::string(canele_error_detail()).find("destination 3"), std::string::npos);
  EXPECT_EQ(send(0, {0, 1}, 5, bytes, &request), CANELE_ERANK);
  EXPECT_EQ(send(0, {1, 1}, 5, bytes, &request), CANELE_EINVAL);
  EXPECT_NE(std::string(canele_error_detail()).find("named twice"), std::string::npos);
  EXPECT_EQ(send(0, {1, 2}, 5, bytes, &request, 17), CANELE_EINVAL);
  EXPECT_EQ(send(0, {1, 2}, 5, bytes, &request, 0, nullptr, 11), CANELE_EINVAL);
  EXPECT_EQ(send(0, {}, 5, bytes, &request), CANELE_OK);
  EXPECT_TRUE(job_->finish(request));
}

}  // namespace
}  // namespace canele::test

// SPDX-License-Identifier: BSD-3-Clause
//
// Point-to-point through the C ABI: two and three engines in one thread, over shared memory and over TCP.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

class PointToPoint : public testing::TestWithParam<const char*> {
 protected:
  PointToPoint()
      : job_({3, {comm::find_driver("self"), comm::find_driver(GetParam())}, "aggregate", {}}), s_(job_.open("test")) {}

  LocalJob job_;
  std::vector<canele_session_t*> s_;
};

TEST_P(PointToPoint, EverySizePostedAndUnexpected) {
  std::vector<std::size_t> sizes = {0, 1, 7, 8, 39, 40, 41, 55, 56, 57, 254, 255, 256, 1000, 2047, 2048, 4096};
  for (std::size_t base : {8192u, 16384u, 32768u, 65536u}) {
    for (int d = -320; d <= 320; d += 40) sizes.push_back(base + static_cast<std::size_t>(d));
  }
  sizes.push_back(1 << 20);
  sizes.push_back((5 << 20) + 3);
  for (const std::size_t size : sizes) {
    for (const bool posted : {true, false}) {
      for (const int to : {0, 1}) {
        const auto out = pattern(size, static_cast<unsigned>(size));
        std::vector<std::uint8_t> in(size + 1, 0xee);
        canele_request_t send{}, receive{};
        const auto post = [&] {
          ASSERT_EQ(canele_irecv(s_[static_cast<std::size_t>(to)], 0, 5, CANELE_TAG_EXACT, in.data(), size, &receive),
                    0);
        };
        if (posted) post();
        ASSERT_EQ(canele_isend(s_[0], to, 5, out.data(), size, &send), CANELE_OK);
        if (!posted) {
          for (int i = 0; i < 200; ++i) job_.step_all();
          post();
        }
        ASSERT_TRUE(job_.finish(receive) && job_.finish(send));
        ASSERT_EQ(status_of(receive).length, size);
        ASSERT_EQ(status_of(receive).source, 0);
        ASSERT_TRUE(std::equal(out.begin(), out.end(), in.begin())) << size;
        ASSERT_EQ(in[size], 0xee) << "wrote behind the buffer";
      }
    }
  }
}

TEST_P(PointToPoint, WildcardsTakeTheOldest) {
  int a = 1, b = 2, c = 3, got = 0;
  canele_request_t sends[3]{}, receive{};
  const auto arrived = [&](std::uint64_t messages) {
    return job_.until([&] { return job_.engine(2).counters.read(comm::Counter::unexpected_now) == messages; });
  };
  canele_isend(s_[0], 2, 10, &a, sizeof a, &sends[0]);
  ASSERT_TRUE(arrived(1));
  canele_isend(s_[1], 2, 11, &b, sizeof b, &sends[1]);
  ASSERT_TRUE(arrived(2));
  canele_isend(s_[0], 2, 11, &c, sizeof c, &sends[2]);
  ASSERT_TRUE(arrived(3));
  canele_irecv(s_[2], CANELE_ANY_SOURCE, 11, CANELE_TAG_EXACT, &got, sizeof got, &receive);
  job_.finish(receive);
  EXPECT_EQ(got, 2);
  canele_irecv(s_[2], CANELE_ANY_SOURCE, 0, CANELE_TAG_ANY, &got, sizeof got, &receive);
  job_.finish(receive);
  EXPECT_EQ(got, 1);
  EXPECT_EQ(status_of(receive).tag, 10u);
  canele_irecv(s_[2], 0, 1, 1, &got, sizeof got, &receive);
  job_.finish(receive);
  EXPECT_EQ(got, 3);
}

TEST_P(PointToPoint, TruncationIsToldAndNothingIsOverwritten) {
  for (const std::size_t size : {100u, 300'000u}) {
    const auto out = pattern(size, 1);
    std::vector<std::uint8_t> in(size, 0xaa);
    canele_request_t send{}, receive{};
    canele_irecv(s_[1], 0, 1, CANELE_TAG_EXACT, in.data(), size / 2, &receive);
    canele_isend(s_[0], 1, 1, out.data(), size, &send);
    ASSERT_TRUE(job_.finish(receive) && job_.finish(send));
    EXPECT_EQ(status_of(receive).error, CANELE_ETRUNC);
    EXPECT_EQ(status_of(receive).length, size);
    EXPECT_EQ(std::memcmp(in.data(), out.data(), size / 2), 0);
    for (std::size_t i = size / 2; i < size; ++i) ASSERT_EQ(in[i], 0xaa);
  }
}

TEST_P(PointToPoint, SynchronousSendWaitsForTheMatch) {
  for (const std::size_t size : {8u, 200'000u}) {
    const auto out = pattern(size, 3);
    std::vector<std::uint8_t> in(size);
    canele_request_t send{}, receive{};
    const canele_data_t data = canele_data_contiguous(out.data(), size);
    canele_send_options_t options{sizeof options, 0, CANELE_SEND_SYNCHRONOUS, 0};
    ASSERT_EQ(canele_isend_data(s_[0], 1, 9, &data, &options, &send), CANELE_OK);
    for (int i = 0; i < 2000; ++i) job_.step_all();
    EXPECT_FALSE(comm::request_of(&send).finalized());
    canele_irecv(s_[1], 0, 9, CANELE_TAG_EXACT, in.data(), size, &receive);
    ASSERT_TRUE(job_.finish(receive) && job_.finish(send));
    EXPECT_EQ(in, out);
  }
}

/// The bytes that a sender sends ahead are the beginning of the message, and the rest follows them.
TEST_P(PointToPoint, AHeaderIsNotTheWholeMessage) {
  for (const std::size_t size : {300u, 20'000u, 400'000u}) {
    for (const std::size_t header : {8u, 256u}) {
      for (const bool posted : {true, false}) {
        const auto out = pattern(size, 7);
        std::vector<std::uint8_t> in(size);
        canele_request_t send{}, receive{};
        const canele_data_t data = canele_data_contiguous(out.data(), size);
        const canele_send_options_t options{sizeof options, 0, 0, header};
        if (posted) canele_irecv(s_[1], 0, 9, CANELE_TAG_EXACT, in.data(), size, &receive);
        ASSERT_EQ(canele_isend_data(s_[0], 1, 9, &data, &options, &send), CANELE_OK);
        for (int i = 0; i < 200 && !posted; ++i) job_.step_all();
        if (!posted) canele_irecv(s_[1], 0, 9, CANELE_TAG_EXACT, in.data(), size, &receive);
        ASSERT_TRUE(job_.finish(receive) && job_.finish(send));
        EXPECT_EQ(in, out) << size << " bytes, " << header << " ahead, " << (posted ? "posted" : "unexpected");
      }
    }
  }
}

struct Unbound {
  std::vector<std::uint8_t> memory;
  canele_data_t data{};
  std::uint64_t header = 0;
  unsigned events = 0;
};

void on_unbound(canele_request_t* request, unsigned events, void* argument) {
  auto& unbound = *static_cast<Unbound*>(argument);
  unbound.events |= events;
  if ((events & CANELE_EVENT_HEADER) == 0) return;
  canele_status_t envelope;
  ASSERT_EQ(canele_receive_envelope(request, &envelope), CANELE_OK);
  ASSERT_EQ(canele_receive_peek(request, &unbound.header, sizeof unbound.header), CANELE_OK) << canele_error_detail();
  EXPECT_EQ(unbound.header, envelope.length);
  unbound.memory.resize(envelope.length);
  unbound.data = canele_data_contiguous(unbound.memory.data(), unbound.memory.size());
  ASSERT_EQ(canele_receive_bind(request, &unbound.data), CANELE_OK);
}

TEST_P(PointToPoint, UnboundReceivePeeksThenBinds) {
  for (const std::size_t size : {16u, 5'000u, 400'000u}) {
    for (const bool posted : {true, false}) {
      auto out = pattern(size, 4);
      const std::uint64_t header = size;
      std::memcpy(out.data(), &header, sizeof header);
      const canele_data_t data = canele_data_contiguous(out.data(), size);
      const canele_send_options_t options{sizeof options, 0, 0, 8};
      canele_request_t send{}, receive{};
      Unbound unbound;
      const auto post = [&] {
        canele_request_on_event(&receive, CANELE_EVENT_HEADER | CANELE_EVENT_FINALIZED, on_unbound, &unbound);
        ASSERT_EQ(canele_irecv_late(s_[1], 0, 2, CANELE_TAG_EXACT, &receive), CANELE_OK);
      };
      if (posted) post();
      canele_isend_data(s_[0], 1, 2, &data, &options, &send);
      if (!posted) {
        for (int i = 0; i < 1000; ++i) job_.step_all();
        post();
      }
      ASSERT_TRUE(job_.finish(receive) && job_.finish(send));
      ASSERT_TRUE(job_.until([&] { return (unbound.events & CANELE_EVENT_FINALIZED) != 0; }));
      EXPECT_EQ(unbound.memory, out);
    }
  }
}

/// Every other byte of a block.
int strided(const void* context, std::size_t offset, iovec* out, int max) {
  auto* base = static_cast<std::uint8_t*>(const_cast<void*>(context));
  for (int i = 0; i < max; ++i) out[i] = {base + 2 * (offset + static_cast<std::size_t>(i)), 1};
  return max;
}

TEST_P(PointToPoint, DescribedDataAndPacks) {
  for (const auto& [size, to] : {std::pair{20u, 1}, {100'001u, 1}, {20u, 0}, {100'001u, 0}}) {
    canele_session_t* const there_session = s_[static_cast<std::size_t>(to)];
    const auto source = pattern(2 * size, 7);
    std::vector<std::uint8_t> target(2 * size, 0);
    canele_request_t send{}, receive{};
    const canele_data_t out = canele_data_segments(strided, source.data(), size);
    const canele_data_t in = canele_data_segments(strided, target.data(), size);
    canele_irecv_data(there_session, 0, 3, CANELE_TAG_EXACT, &in, &receive);
    canele_isend_data(s_[0], to, 3, &out, nullptr, &send);
    ASSERT_TRUE(job_.finish(receive) && job_.finish(send));
    for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(target[2 * i], source[2 * i]);

    canele_pack_t pack{}, unpack{};
    std::vector<std::uint8_t> there(2 * size);
    canele_pack_begin(&pack);
    canele_pack_begin(&unpack);
    for (std::size_t i = 0; i < 40; ++i) {
      const std::size_t begin = 2 * size * i / 40, end = 2 * size * (i + 1) / 40;
      canele_pack_add(&pack, source.data() + begin, end - begin);
    }
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t begin = 2 * size * i / 3, end = 2 * size * (i + 1) / 3;
      canele_pack_add(&unpack, there.data() + begin, end - begin);
    }
    canele_pack_irecv(there_session, 0, 4, CANELE_TAG_EXACT, &unpack, &receive);
    canele_pack_isend(s_[0], to, 4, &pack, nullptr, &send);
    ASSERT_TRUE(job_.finish(receive) && job_.finish(send));
    EXPECT_EQ(there, source);
    canele_pack_end(&pack);
    canele_pack_end(&unpack);
  }
}

TEST_P(PointToPoint, CancelAndProbe) {
  int value = 0, found = 0;
  canele_request_t receive{}, send{};
  canele_status_t status;
  canele_irecv(s_[1], 0, 6, CANELE_TAG_EXACT, &value, sizeof value, &receive);
  EXPECT_EQ(canele_cancel(&receive), CANELE_OK);
  ASSERT_TRUE(job_.finish(receive));
  EXPECT_EQ(status_of(receive).error, CANELE_ECANCELED);
  EXPECT_EQ(status_of(receive).cancelled, 1);

  const int sent = 77;
  canele_iprobe(s_[1], 0, 6, CANELE_TAG_EXACT, &found, &status);
  EXPECT_EQ(found, 0);
  canele_isend(s_[0], 1, 6, &sent, sizeof sent, &send);
  ASSERT_TRUE(job_.until([&] {
    canele_iprobe(s_[1], CANELE_ANY_SOURCE, 0, CANELE_TAG_ANY, &found, &status);
    return found == 1;
  }));
  EXPECT_EQ(status.length, sizeof sent);
  EXPECT_EQ(status.source, 0);
  canele_improbe(s_[1], 0, 6, CANELE_TAG_EXACT, &found, &receive, &status);
  ASSERT_EQ(found, 1);
  canele_request_t second{};
  canele_improbe(s_[1], 0, 6, CANELE_TAG_EXACT, &found, &second, &status);
  EXPECT_EQ(found, 0) << "a matched message belongs to one receive";
  const canele_data_t data = canele_data_contiguous(&value, sizeof value);
  ASSERT_EQ(canele_receive_bind(&receive, &data), CANELE_OK);
  ASSERT_TRUE(job_.finish(receive));
  EXPECT_EQ(value, 77);
}

struct Chain {
  canele_session_t* session;
  int left, deepest, depth;
  int value;
};

void next_in_chain(canele_request_t* request, unsigned, void* argument) {
  auto& chain = *static_cast<Chain*>(argument);
  ++chain.depth;
  chain.deepest = std::max(chain.deepest, chain.depth);
  delete request;
  if (chain.left-- > 0) {
    auto* next = new canele_request_t{};
    canele_request_on_event(next, CANELE_EVENT_FINALIZED, next_in_chain, &chain);
    canele_isend(chain.session, 1, 8, &chain.value, sizeof chain.value, next);
  }
  --chain.depth;
}

TEST_P(PointToPoint, CallbacksMaySendAndFreeWithoutNesting) {
  Chain chain{s_[0], 10'000, 0, 0, 5};
  auto* first = new canele_request_t{};
  canele_request_on_event(first, CANELE_EVENT_FINALIZED, next_in_chain, &chain);
  canele_isend(s_[0], 1, 8, &chain.value, sizeof chain.value, first);
  ASSERT_TRUE(job_.until([&] { return chain.left < 0; }));
  EXPECT_EQ(chain.deepest, 1);
  canele_request_t receive{};
  for (int i = 0; i <= 10'000; ++i) {
    int value = 0;
    canele_irecv(s_[1], 0, 8, CANELE_TAG_EXACT, &value, sizeof value, &receive);
    ASSERT_TRUE(job_.finish(receive));
    ASSERT_EQ(value, 5);
  }
}

TEST_P(PointToPoint, CompletionQueueGivesEachRequestOnce) {
  canele_queue_t queue{};
  std::vector<canele_request_t> receives(100), sends(100);
  std::vector<int> values(100), tokens(100), seen(100, 0);
  for (std::size_t i = 0; i < 100; ++i) {
    canele_request_on_queue(&receives[i], &queue, &tokens[i]);
    canele_irecv(s_[1], 0, i, CANELE_TAG_EXACT, &values[i], sizeof(int), &receives[i]);
  }
  for (std::size_t i = 0; i < 100; ++i) canele_isend(s_[0], 1, 99 - i, &tokens[i], sizeof(int), &sends[i]);
  int total = 0;
  ASSERT_TRUE(job_.until([&] {
    canele_request_t* done[7];
    void* arguments[7];
    const int n = canele_queue_poll(job_.handle(1), &queue, done, arguments, 7);
    for (int i = 0; i < n; ++i) ++seen[static_cast<std::size_t>(static_cast<int*>(arguments[i]) - tokens.data())];
    return (total += n) == 100;
  }));
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 100);
}

void blocks(canele_request_t* request, unsigned, void* argument) {
  canele_request_t other{};
  auto* result = static_cast<std::pair<int, canele_session_t*>*>(argument);
  int value;
  canele_irecv(result->second, 0, 999, CANELE_TAG_EXACT, &value, sizeof value, &other);
  result->first = canele_wait(&other, nullptr);
  canele_cancel(&other);
  static_cast<void>(request);
}

TEST_P(PointToPoint, BlockingInACallbackIsRefused) {
  std::pair<int, canele_session_t*> result{0, s_[1]};
  canele_request_t send{};
  canele_request_on_event(&send, CANELE_EVENT_FINALIZED, blocks, &result);
  canele_isend(s_[0], 1, 1, nullptr, 0, &send);
  ASSERT_TRUE(job_.until([&] { return result.first != 0; }));
  EXPECT_EQ(result.first, CANELE_EDEADLK);
}

TEST_P(PointToPoint, WrongArgumentsAreToldAtOnce) {
  canele_request_t request{};
  char byte = 0;
  EXPECT_EQ(canele_isend(s_[0], 3, 1, &byte, 1, &request), CANELE_ERANK);
  EXPECT_NE(std::string(canele_error_detail()).find("0 to 2"), std::string::npos);
  EXPECT_EQ(canele_isend(s_[0], 1, 1, nullptr, 1, &request), CANELE_EINVAL);
  EXPECT_EQ(canele_irecv(s_[0], -2, 1, CANELE_TAG_EXACT, &byte, 1, &request), CANELE_ERANK);
  canele_irecv(s_[0], 1, 1, CANELE_TAG_EXACT, &byte, 1, &request);
  EXPECT_EQ(canele_irecv(s_[0], 1, 1, CANELE_TAG_EXACT, &byte, 1, &request), CANELE_EBUSY);
  EXPECT_EQ(canele_session_close(s_[0]), CANELE_EBUSY);
  canele_cancel(&request);
  ASSERT_TRUE(job_.finish(request));
}

INSTANTIATE_TEST_SUITE_P(Drivers, PointToPoint, testing::Values("shm", "tcp"),
                         [](const auto& i) { return std::string(i.param); });

}  // namespace
}  // namespace canele::test

// SPDX-License-Identifier: BSD-3-Clause
//
// Lists of pieces. Each part is where a plain walk finds it, in whichever order and by however many threads the parts
// are requested. Requests in order visit each piece once.
//
// The test's own thread, and four that copy parts of one list. The cost of a walk shows in the place that it leaves
// behind: the next one begins there.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>
#include <vector>

#include "comm/state/payload.hpp"
#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

/// Pieces of 0 to 6 bytes, whose bytes count up.
struct List {
  explicit List(int count) {
    std::mt19937 dice(7);
    std::vector<std::size_t> lengths;
    for (int i = 0; i < count; ++i) lengths.push_back(dice() % 7);
    for (const std::size_t length : lengths) bytes.resize(bytes.size() + length + 1);  // a gap between any two
    std::size_t at = 0;
    for (const std::size_t length : lengths) {
      for (std::size_t i = 0; i < length; ++i) bytes[at + i] = static_cast<std::byte>(whole.size() + i);
      whole.insert(whole.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at),
                   bytes.begin() + static_cast<std::ptrdiff_t>(at + length));
      pieces.push_back({bytes.data() + at, length});
      at += length + 1;
    }
    vector = {pieces.data(), count};
  }
  bool is(std::size_t offset, std::size_t size, const canele_data_t& data) const {
    std::vector<std::byte> out(size + 1);
    const std::size_t got = comm::data::gather(data, offset, size, out.data());
    const std::size_t there = offset >= whole.size() ? 0 : std::min(size, whole.size() - offset);
    return got == there && std::equal(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(got),
                                      whole.begin() + static_cast<std::ptrdiff_t>(std::min(offset, whole.size())));
  }

  std::vector<std::byte> bytes, whole;
  std::vector<iovec> pieces;
  canele_iov_t vector;
};

TEST(Pieces, AnyPartIsWhereAPlainWalkFindsIt) {
  const List list(500);
  const canele_data_t data = canele_data_iov(&list.vector);
  ASSERT_EQ(data.length, list.whole.size());
  std::mt19937 dice(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t offset = dice() % (list.whole.size() + 3), size = dice() % 200;
    ASSERT_TRUE(list.is(offset, size, data)) << size << " bytes at " << offset;
  }
}

TEST(Pieces, WhoAsksInOrderBeginsWhereTheLastQuestionWas) {
  const List list(100'000);
  const canele_data_t data = canele_data_iov(&list.vector);
  iovec out[8];
  std::size_t walked = 0, covered = 0;
  for (std::size_t at = 0; at < data.length; at += covered) {
    const std::size_t before = comm::data::Place::load(data).index;
    ASSERT_GT(comm::data::pieces(data, at, data.length - at, out, 8, &covered), 0);
    const std::size_t now = comm::data::Place::load(data).index;
    ASSERT_GE(now, before);
    walked += now - before;
  }
  EXPECT_LT(walked, 100'000u);
}

TEST(Pieces, ThreadsCopyPartsOfOneList) {
  const List list(3000);
  const canele_data_t data = canele_data_iov(&list.vector);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 dice(t);
      for (int i = 0; i < 3000; ++i) wrong += list.is(dice() % list.whole.size(), 100, data) ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

int describes_nothing(const void*, std::size_t, iovec*, int) { return 0; }
int fails(const void*, std::size_t, iovec*, int) { return -1; }
int describes_half(const void* context, std::size_t offset, iovec* out, int) {
  if (offset >= 50) return 0;
  out[0] = {static_cast<char*>(const_cast<void*>(context)) + offset, 50 - offset};
  return 1;
}
int describes_more(const void* context, std::size_t offset, iovec* out, int) {
  out[0] = {static_cast<char*>(const_cast<void*>(context)) + offset, 1'000'000};
  return 1;
}

TEST(Pieces, AWrongDescriptionIsRefusedByTheCallThatIsGivenIt) {
  LocalJob job(JobOptions{});
  const auto s = job.open("pieces");
  char bytes[100] = {};
  for (const canele_segments_fn wrong : {describes_nothing, fails, describes_half}) {
    canele_request_t request{};
    const canele_data_t data = canele_data_segments(wrong, bytes, sizeof bytes);
    EXPECT_EQ(canele_isend_data(s[0], 0, 1, &data, nullptr, &request), CANELE_EINVAL);
    EXPECT_NE(std::string(canele_error_detail()).find("segments function describes only"), std::string::npos);
    EXPECT_EQ(canele_irecv_data(s[0], 0, 1, CANELE_TAG_EXACT, &data, &request), CANELE_EINVAL);
  }
  canele_request_t send{}, receive{};
  char in[100] = {1};
  const canele_data_t more = canele_data_segments(describes_more, bytes, sizeof bytes);  // what is beyond is not read
  ASSERT_EQ(canele_isend_data(s[0], 0, 1, &more, nullptr, &send), CANELE_OK);
  ASSERT_EQ(canele_irecv(s[0], 0, 1, CANELE_TAG_EXACT, in, sizeof in, &receive), CANELE_OK);
  ASSERT_TRUE(job.finish(send));
  ASSERT_TRUE(job.finish(receive));
  EXPECT_EQ(in[0], 0);
}

TEST(Pieces, SumsThatNoMemoryHoldsAreRefused) {
  LocalJob job(JobOptions{});
  const auto s = job.open("pieces");
  char byte = 0;
  const iovec pieces[] = {{&byte, SIZE_MAX / 2 + 2}, {&byte, SIZE_MAX / 2 + 2}};
  const canele_iov_t vector{pieces, 2};
  const canele_data_t data = canele_data_iov(&vector);
  canele_request_t request{};
  EXPECT_EQ(canele_isend_data(s[0], 0, 1, &data, nullptr, &request), CANELE_EINVAL);
  EXPECT_EQ(canele_irecv_data(s[0], 0, 1, CANELE_TAG_EXACT, &data, &request), CANELE_EINVAL);
  canele_pack_t pack{};
  canele_pack_begin(&pack);
  EXPECT_EQ(canele_pack_add(&pack, &byte, PTRDIFF_MAX), CANELE_OK);
  EXPECT_EQ(canele_pack_add(&pack, &byte, 1), CANELE_EINVAL);
  canele_pack_end(&pack);
}

}  // namespace
}  // namespace canele::test

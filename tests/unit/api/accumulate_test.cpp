// SPDX-License-Identifier: BSD-3-Clause
//
// Accumulates between two engines, over each driver, and into mapped memory. The expected elements come from the
// operators of collectives.h.
#include <canele/one_sided.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "tests/unit/api/one_sided_job.hpp"

namespace canele::test::one_sided_access {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr int elements = CANELE_LONG_DOUBLE_INT + 1, operations = CANELE_MINLOC + 1;

class Accumulate : public OneSidedJob {
 protected:
  /// Combines and waits. Returns the error. `before` gets the former elements, if it is not nullptr.
  int accumulate(std::uint64_t offset, const Bytes& data, int operation, int element, Bytes* before = nullptr) {
    const canele_data_t whole = canele_data_contiguous(data.data(), data.size());
    return accumulate(offset, whole, operation, element, before);
  }
  int accumulate(std::uint64_t offset, const canele_data_t& data, int operation, int element, Bytes* before) {
    if (before != nullptr) before->assign(data.length, 0xee);
    canele_request_t request{};
    const int code = canele_accumulate(key_, offset, &data, operation, static_cast<canele_element>(element),
                                       before != nullptr ? before->data() : nullptr, nullptr, &request);
    if (code != CANELE_OK) return code;
    EXPECT_TRUE(job_.finish(request));
    return status_of(request).error;
  }
  Bytes memory_at(std::uint64_t offset, std::size_t length) { return {base() + offset, base() + offset + length}; }
};

/// Bytes that are no NaN as numbers of any type.
Bytes numbers(std::size_t length, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes(length);
  for (std::uint8_t& one : bytes) one = static_cast<std::uint8_t>(random() & 0x3f);
  return bytes;
}

TEST_P(Accumulate, EveryOperationOfEveryElement) {
  unsigned tried = 0;
  for (int element = 0; element < elements; ++element) {
    for (int operation = 0; operation < operations; ++operation) {
      canele_operator_t plain{};
      if (canele_operator_of(static_cast<canele_operation>(operation), static_cast<canele_element>(element), &plain) !=
          CANELE_OK) {
        EXPECT_EQ(accumulate(0, Bytes(32), operation, element), CANELE_EINVAL);
        continue;
      }
      for (const std::size_t count : {1u, 7u, 400u}) {
        const Bytes data = numbers(count * plain.element, ++tried), there = numbers(data.size(), tried + 1000);
        std::copy(there.begin(), there.end(), base() + 64);
        Bytes expected = there, before;
        plain.combine(data.data(), expected.data(), count, plain.argument);
        ASSERT_EQ(accumulate(64, data, operation, element, tried % 2 == 0 ? &before : nullptr), CANELE_OK);
        EXPECT_EQ(memory_at(64, data.size()), expected) << "operation " << operation << " of element " << element;
        if (tried % 2 == 0) {
          EXPECT_EQ(before, there);
        }
      }
    }
  }
  EXPECT_GT(tried, 300u);
}

TEST_P(Accumulate, ReplacesAndOnlyReads) {
  for (int element = 0; element < elements; ++element) {
    const Bytes there = numbers(3200, 1), data = numbers(3200, 2);
    std::copy(there.begin(), there.end(), base());
    Bytes before;
    ASSERT_EQ(accumulate(0, data, CANELE_NO_OP, element, &before), CANELE_OK);
    EXPECT_EQ(before, there);
    EXPECT_EQ(memory_at(0, there.size()), there);
    ASSERT_EQ(accumulate(0, data, CANELE_REPLACE, element, &before), CANELE_OK);
    EXPECT_EQ(before, there);
    EXPECT_EQ(memory_at(0, data.size()), data);
  }
}

/// Longer than a packet, and than all answers that may be under way.
TEST_P(Accumulate, LongOnesAreCombinedInParts) {
  constexpr std::size_t length = window - 64, count = length / sizeof(double);
  std::vector<double> one(count), there(count), expected(count), former(count);
  for (std::size_t i = 0; i < count; ++i) {
    one[i] = static_cast<double>(i % 1000);
    there[i] = static_cast<double>(i % 77);
    expected[i] = one[i] + there[i];
  }
  std::memcpy(base() + 32, there.data(), length);
  const Bytes data(reinterpret_cast<const std::uint8_t*>(one.data()),
                   reinterpret_cast<const std::uint8_t*>(one.data()) + length);
  Bytes before;
  ASSERT_EQ(accumulate(32, data, CANELE_SUM, CANELE_DOUBLE, &before), CANELE_OK);
  EXPECT_EQ(std::memcmp(base() + 32, expected.data(), length), 0);
  EXPECT_EQ(std::memcmp(before.data(), there.data(), length), 0);
  ASSERT_EQ(accumulate(32, data, CANELE_SUM, CANELE_DOUBLE), CANELE_OK);
  for (std::size_t i = 0; i < count; ++i) expected[i] += one[i];
  EXPECT_EQ(std::memcmp(base() + 32, expected.data(), length), 0);
}

TEST_P(Accumulate, TakesPiecesOfData) {
  Bytes data = numbers(40'000, 5), expected(data.size()), before;
  std::copy(data.begin(), data.end(), expected.begin());
  const iovec pieces[] = {{data.data(), 3}, {data.data() + 3, 20'000}, {data.data() + 20'003, 19'997}};
  const canele_iov_t vector{pieces, 3};
  std::fill_n(base(), data.size(), std::uint8_t{0});
  ASSERT_EQ(accumulate(0, canele_data_iov(&vector), CANELE_SUM, CANELE_UINT32, &before), CANELE_OK);
  EXPECT_EQ(memory_at(0, data.size()), expected);
  EXPECT_EQ(before, Bytes(data.size(), 0));
}

TEST_P(Accumulate, IsOrderedInItsLane) {
  const std::uint32_t one = 1;
  const canele_data_t data = canele_data_contiguous(&one, sizeof one);
  std::fill_n(base(), 64, std::uint8_t{0});
  std::vector<std::uint32_t> former(500);
  for (std::uint32_t& value : former) {
    ASSERT_EQ(canele_accumulate(key_, 4, &data, CANELE_SUM, CANELE_UINT32, &value, nullptr, nullptr), CANELE_OK);
    ASSERT_EQ(canele_atomic(key_, 4, CANELE_ATOMIC_ADD, 4, 1, 0, nullptr, nullptr, nullptr), CANELE_OK);
  }
  EXPECT_EQ(flush(), CANELE_OK);
  for (std::size_t i = 0; i < former.size(); ++i) EXPECT_EQ(former[i], 2 * i);
}

/// A get reads while its answer is sent: what writes waits for that.
TEST_P(Accumulate, DoesNotOvertakeAGet) {
  constexpr std::size_t large = 500'000;
  for (int round = 0; round < 20; ++round) {
    std::fill_n(base(), large, std::uint8_t{1});
    Bytes got(large);
    const Bytes ones(large, 1);
    const canele_data_t into = canele_data_contiguous(got.data(), large),
                        data = canele_data_contiguous(ones.data(), large);
    ASSERT_EQ(canele_get(key_, 0, &into, nullptr, nullptr), CANELE_OK);
    ASSERT_EQ(canele_accumulate(key_, 0, &data, CANELE_SUM, CANELE_UINT8, nullptr, nullptr, nullptr), CANELE_OK);
    EXPECT_EQ(flush(), CANELE_OK);
    EXPECT_EQ(got, ones);
    EXPECT_EQ(memory_at(0, large), Bytes(large, 2));
  }
}

/// Threads of the origin combine into the same elements, by words and one at a time, while the engines make progress.
TEST_P(Accumulate, LosesNothingAmongThreads) {
  constexpr int threads = 4, times = 2000;
  std::atomic<int> running{threads};
  std::fill_n(base(), 64, std::uint8_t{0});
  std::vector<std::thread> all;
  const double number = 1;
  const struct { double re, im; } complex = {1, -1};
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&] {
      const canele_data_t small = canele_data_contiguous(&number, sizeof number),
                          large = canele_data_contiguous(&complex, sizeof complex);
      for (int n = 0; n < times; ++n) {
        EXPECT_EQ(canele_accumulate(key_, 0, &small, CANELE_SUM, CANELE_DOUBLE, nullptr, nullptr, nullptr), CANELE_OK);
        EXPECT_EQ(canele_accumulate(key_, 16, &large, CANELE_SUM, CANELE_COMPLEX_DOUBLE, nullptr, nullptr, nullptr),
                  CANELE_OK);
      }
      --running;
    });
  }
  while (running != 0) job_.step_all();
  for (std::thread& one : all) one.join();
  EXPECT_EQ(flush(), CANELE_OK);
  double sums[4];
  std::memcpy(sums, base(), sizeof sums);
  EXPECT_EQ(sums[0], threads * times);
  EXPECT_EQ(sums[2], threads * times);
  EXPECT_EQ(sums[3], -threads * times);
}

/// The threads combine mapped elements by themselves.
TEST_P(Accumulate, MappedElementsLoseNothing) {
  if (!mapped()) GTEST_SKIP() << "the target combines them";
  constexpr int threads = 4, times = 50'000;
  std::vector<std::thread> all;
  const float number = 1;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&] {
      const canele_data_t data = canele_data_contiguous(&number, sizeof number);
      for (int n = 0; n < times; ++n)
        EXPECT_EQ(canele_accumulate(key_, 4, &data, CANELE_SUM, CANELE_FLOAT, nullptr, nullptr, nullptr), CANELE_OK);
    });
  }
  for (std::thread& one : all) one.join();
  float sum = 0;
  std::memcpy(&sum, base() + 4, sizeof sum);
  EXPECT_EQ(sum, threads * times);
}

/// Elements of 1 to 4 bytes, of which not all fill words of 8 bytes.
TEST_P(Accumulate, BeginsAndEndsWithinAWord) {
  for (const int element : {CANELE_UINT8, CANELE_INT16, CANELE_FLOAT}) {
    const std::size_t size = element == CANELE_UINT8 ? 1 : element == CANELE_INT16 ? 2 : 4;
    canele_operator_t plain{};
    ASSERT_EQ(canele_operator_of(CANELE_SUM, static_cast<canele_element>(element), &plain), CANELE_OK);
    for (std::size_t from = 0; from <= 8; from += size) {
      for (std::size_t length = size; length <= 40; length += size) {
        const Bytes there = numbers(64, static_cast<unsigned>(from + length)), data = numbers(length, 7);
        for (const int operation : {static_cast<int>(CANELE_SUM), static_cast<int>(CANELE_REPLACE)}) {
          std::copy(there.begin(), there.end(), base());
          Bytes expected = there, before;
          if (operation == CANELE_SUM) {
            plain.combine(data.data(), expected.data() + from, length / size, plain.argument);
          } else {
            std::copy(data.begin(), data.end(), expected.begin() + static_cast<std::ptrdiff_t>(from));
          }
          ASSERT_EQ(accumulate(from, data, operation, element, &before), CANELE_OK);
          ASSERT_EQ(memory_at(0, there.size()), expected)
              << length << " bytes of element " << element << " at " << from;
          ASSERT_EQ(before, Bytes(there.begin() + static_cast<std::ptrdiff_t>(from),
                                  there.begin() + static_cast<std::ptrdiff_t>(from + length)));
        }
      }
    }
  }
}

/// Some threads combine many small elements at a time, others one of them.
TEST_P(Accumulate, MappedElementsOfOneWordLoseNothing) {
  if (!mapped()) GTEST_SKIP() << "the target combines them";
  constexpr std::size_t length = 45, first = 3;
  constexpr int threads = 4, times = 20'000;
  std::fill_n(base(), 64, std::uint8_t{0});
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      const std::size_t mine = i % 2 == 0 ? length : 1, at = i % 2 == 0 ? first : first + 20;
      const Bytes ones(mine, 1);
      const canele_data_t data = canele_data_contiguous(ones.data(), mine);
      for (int n = 0; n < times; ++n)
        EXPECT_EQ(canele_accumulate(key_, at, &data, CANELE_SUM, CANELE_UINT8, nullptr, nullptr, nullptr), CANELE_OK);
    });
  }
  for (std::thread& one : all) one.join();
  Bytes expected(64, 0);
  std::fill_n(expected.begin() + first, length, static_cast<std::uint8_t>(threads / 2 * times));
  expected[first + 20] = static_cast<std::uint8_t>(threads * times);
  EXPECT_EQ(memory_at(0, expected.size()), expected);
}

/// A put behind it is acknowledged before the former elements of a long accumulate are here: the lane is not flushed
/// yet.
TEST_P(Accumulate, ALaneIsFlushedAfterTheFormerElementsHaveCome) {
  constexpr std::size_t length = 96'000, behind = 128'000;
  canele_lane_t* lane = nullptr;
  ASSERT_EQ(canele_lane_open(job_.handle(0), &lane), CANELE_OK);
  canele_access_options_t in_lane = options();
  in_lane.lane = lane;
  Bytes before(length);
  const Bytes ones(8, 1);
  for (int round = 0; round < 50; ++round) {
    const auto former = static_cast<std::uint8_t>(round);
    std::fill_n(base(), length, former);
    before.assign(length, 0xee);
    const canele_data_t read = canele_data_contiguous(before.data(), length);
    ASSERT_EQ(canele_accumulate(key_, 0, &read, CANELE_NO_OP, CANELE_UINT64, before.data(), &in_lane, nullptr),
              CANELE_OK);
    canele_request_t request{};
    ASSERT_EQ(put(behind, ones, &request, &in_lane), CANELE_OK);
    ASSERT_TRUE(job_.until([&] { return canele_lane_try_flush(lane) == 1; }));
    EXPECT_EQ(std::count(before.begin(), before.end(), former), std::ptrdiff_t{length}) << "round " << round;
    ASSERT_TRUE(job_.finish(request));
  }
  EXPECT_EQ(canele_lane_close(lane), CANELE_OK) << canele_error_detail();
}

TEST_P(Accumulate, RejectsWhatItCannotDo) {
  std::fill_n(base(), 64, std::uint8_t{9});
  EXPECT_EQ(accumulate(0, Bytes(12), CANELE_SUM, CANELE_UINT64), CANELE_EINVAL) << "not a whole element";
  EXPECT_EQ(accumulate(0, Bytes(8), CANELE_NO_OP + 1, CANELE_UINT64), CANELE_EINVAL);
  EXPECT_EQ(accumulate(0, Bytes(8), -1, CANELE_UINT64), CANELE_EINVAL);
  EXPECT_EQ(accumulate(0, Bytes(8), CANELE_SUM, elements), CANELE_EINVAL);
  EXPECT_EQ(accumulate(window - 8, Bytes(16), CANELE_SUM, CANELE_UINT64), CANELE_EACCESS);
  EXPECT_EQ(accumulate(4, Bytes(8, 1), CANELE_SUM, CANELE_UINT64), CANELE_EACCESS) << "not aligned";
  EXPECT_EQ(accumulate(8, Bytes(32, 1), CANELE_SUM, CANELE_COMPLEX_LONG_DOUBLE), CANELE_EACCESS) << "not aligned";
  EXPECT_EQ(accumulate(0, Bytes(), CANELE_SUM, CANELE_UINT64), CANELE_OK) << "no element at all";
  EXPECT_EQ(memory_at(0, 64), Bytes(64, 9));
  canele_access_options_t notifying = options();
  notifying.slot = 1;
  const canele_data_t data = canele_data_contiguous(base(), 8);
  EXPECT_EQ(canele_accumulate(key_, 0, &data, CANELE_SUM, CANELE_UINT64, nullptr, &notifying, nullptr), CANELE_EINVAL);
}

TEST_P(Accumulate, MemoryThatIsRevokedIsNotTouched) {
  const Bytes data = numbers(100'000, 3);
  ASSERT_EQ(accumulate(0, data, CANELE_SUM, CANELE_UINT8), CANELE_OK);
  ASSERT_EQ(canele_memory_free(std::exchange(registered_, nullptr)), CANELE_OK);
  Bytes before;
  EXPECT_EQ(accumulate(0, data, CANELE_SUM, CANELE_UINT8, &before), CANELE_EREVOKED);
  EXPECT_EQ(accumulate(0, Bytes(8), CANELE_SUM, CANELE_UINT64), CANELE_EREVOKED);
}

INSTANTIATE_TEST_SUITE_P(All, Accumulate, every_way, name_of_way);

}  // namespace
}  // namespace canele::test::one_sided_access

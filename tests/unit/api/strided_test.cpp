// SPDX-License-Identifier: BSD-3-Clause
//
// Puts and gets of strided memory, over each driver, of a rank with itself, and in mapped memory.
#include <canele/one_sided.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tests/unit/api/one_sided_job.hpp"

namespace canele::test::one_sided_access {
namespace {

using Bytes = std::vector<std::uint8_t>;

struct Shape {
  std::size_t block, stride, count;
  std::size_t length() const { return block * count; }
  std::size_t extent() const { return count == 0 ? 0 : (count - 1) * stride + block; }
};

/// From one word to data that no packet holds.
constexpr Shape shapes[] = {{8, 16, 1},   {8, 24, 5},      {1, 3, 100},       {8, 8, 40},      {7, 1000, 30},
                            {8, 16, 900}, {100, 128, 200}, {3000, 4096, 100}, {64, 128, 8000}, {8, 16, 0}};

class Strided : public OneSidedJob {
 protected:
  canele_access_options_t of(const Shape& shape) {
    canele_access_options_t all = options();
    all.block = shape.block;
    all.stride = shape.stride;
    return all;
  }
  int put_blocks(std::uint64_t offset, const Bytes& data, const canele_access_options_t& how,
                 canele_request_t* request) {
    return put(offset, data, request, &how);
  }
  int get_blocks(std::uint64_t offset, Bytes& data, const canele_access_options_t& how, canele_request_t* request) {
    const canele_data_t into = canele_data_contiguous(data.data(), data.size());
    return canele_get(key_, offset, &into, &how, request);
  }
  /// Writes the blocks into `memory`, as a put does into the window.
  static void place(Bytes& memory, std::size_t offset, const Shape& shape, const Bytes& data) {
    for (std::size_t i = 0; i < shape.count; ++i)
      std::memcpy(memory.data() + offset + i * shape.stride, data.data() + i * shape.block, shape.block);
  }
  Bytes window_now() { return {base(), base() + window}; }
};

TEST_P(Strided, PutsWriteTheBlocksAndNothingElse) {
  Bytes expected(window, 0x11);
  std::copy(expected.begin(), expected.end(), base());
  unsigned seed = 0;
  for (const Shape& shape : shapes) {
    for (const std::size_t offset : {std::size_t{0}, std::size_t{5}, window - shape.extent()}) {
      const Bytes data = pattern(shape.length(), ++seed);
      canele_request_t request{};
      ASSERT_EQ(put_blocks(offset, data, of(shape), &request), CANELE_OK) << canele_error_detail();
      ASSERT_TRUE(job_.finish(request));
      ASSERT_EQ(status_of(request).error, CANELE_OK);
      place(expected, offset, shape, data);
      ASSERT_EQ(window_now(), expected) << shape.block << " by " << shape.stride << " at " << offset;
    }
  }
}

TEST_P(Strided, GetsReadTheBlocks) {
  const Bytes there = pattern(window, 3);
  std::copy(there.begin(), there.end(), base());
  for (const Shape& shape : shapes) {
    for (const std::size_t offset : {std::size_t{0}, std::size_t{5}, window - shape.extent()}) {
      Bytes data(shape.length()), again = there;
      canele_request_t request{};
      ASSERT_EQ(get_blocks(offset, data, of(shape), &request), CANELE_OK) << canele_error_detail();
      ASSERT_TRUE(job_.finish(request));
      ASSERT_EQ(status_of(request).error, CANELE_OK);
      place(again, offset, shape, data);
      ASSERT_EQ(again, there) << shape.block << " by " << shape.stride << " at " << offset;
    }
  }
  EXPECT_EQ(window_now(), there);
}

/// The data of the program lies in pieces that are no blocks.
TEST_P(Strided, BothSidesMayHavePieces) {
  for (const Shape& shape : {Shape{12, 20, 50}, Shape{1200, 2000, 400}}) {
    Bytes out = pattern(shape.length(), 1), in(shape.length());
    std::fill_n(base(), window, static_cast<unsigned char>(0));
    const auto in_pieces = [](Bytes& all) {
      const std::size_t cut = all.size() / 3 + 1;
      return std::vector<iovec>{{all.data(), cut}, {all.data() + cut, all.size() - cut}};
    };
    const std::vector<iovec> out_pieces = in_pieces(out), in_pieces_of = in_pieces(in);
    const canele_iov_t from{out_pieces.data(), 2}, into{in_pieces_of.data(), 2};
    const canele_data_t sent = canele_data_iov(&from), received = canele_data_iov(&into);
    const canele_access_options_t how = of(shape);
    canele_request_t written{}, read{};
    ASSERT_EQ(canele_put(key_, 4, &sent, &how, &written), CANELE_OK);
    ASSERT_EQ(canele_get(key_, 4, &received, &how, &read), CANELE_OK);
    ASSERT_TRUE(job_.finish(written) && job_.finish(read));
    EXPECT_EQ(in, out);
    Bytes expected(window, 0);
    place(expected, 4, shape, out);
    EXPECT_EQ(window_now(), expected);
  }
}

TEST_P(Strided, ANotificationComesAfterAllBlocks) {
  canele_queue_t queue{};
  const canele_completion_t then{CANELE_COMPLETE_QUEUE, 0, &queue, nullptr, nullptr};
  std::uint32_t slot = 0;
  ASSERT_EQ(canele_notification_open(job_.handle(target()), &then, &slot), CANELE_OK);
  for (const Shape& shape : {Shape{8, 16, 10}, Shape{640, 1024, 900}}) {
    const Bytes data = pattern(shape.length(), 8);
    canele_access_options_t how = of(shape);
    how.slot = slot;
    ASSERT_EQ(put_blocks(8, data, how, nullptr), CANELE_OK);
    canele_entry_t entry{};
    ASSERT_TRUE(job_.until([&] { return canele_queue_take(job_.handle(target()), &queue, &entry, 1) == 1; }));
    EXPECT_EQ(entry.tag, 8u);
    EXPECT_EQ(entry.length, shape.length());
    Bytes expected = window_now();
    place(expected, 8, shape, data);
    EXPECT_EQ(window_now(), expected);
    EXPECT_EQ(flush(), CANELE_OK);
  }
  EXPECT_EQ(canele_notification_close(job_.handle(target()), slot), CANELE_OK);
}

TEST_P(Strided, WrongShapesAreRejected) {
  const Bytes data(64);
  const std::uint64_t large = std::uint64_t{1} << 32;
  canele_request_t request{};
  const auto of_numbers = [&](std::uint64_t block, std::uint64_t stride) {
    canele_access_options_t how = options();
    how.block = block;
    how.stride = stride;
    return how;
  };
  for (const auto& [block, stride] : {std::pair<std::uint64_t, std::uint64_t>{0, 8},
                                      {8, 0},
                                      {8, 7},
                                      {7, 8},
                                      {128, 128},
                                      {8, large + 8},
                                      {large + 8, large + 8}}) {
    EXPECT_EQ(put_blocks(0, data, of_numbers(block, stride), &request), CANELE_EINVAL) << block << " by " << stride;
    Bytes into(64);
    EXPECT_EQ(get_blocks(0, into, of_numbers(block, stride), &request), CANELE_EINVAL) << block << " by " << stride;
  }
  EXPECT_EQ(put_blocks(window - 15, data, of_numbers(64, 64), &request), CANELE_EACCESS);
  EXPECT_EQ(put_blocks(1, data, of_numbers(1, (window - 64) / 63 + 8), &request), CANELE_EACCESS);
  EXPECT_EQ(put_blocks(0, data, of_numbers(1, large - 1), &request), CANELE_EACCESS);
  const canele_access_options_t how = of_numbers(8, 16);
  std::uint64_t before = 0;
  EXPECT_EQ(canele_atomic(key_, 0, CANELE_ATOMIC_ADD, 8, 1, 0, &before, &how, &request), CANELE_EINVAL);
  EXPECT_EQ(canele_flush(job_.handle(0), target(), &how, &request), CANELE_EINVAL);
}

INSTANTIATE_TEST_SUITE_P(Ways, Strided, every_way, name_of_way);

}  // namespace
}  // namespace canele::test::one_sided_access

// SPDX-License-Identifier: BSD-3-Clause
//
// The C++ layer of collectives on a job of one rank: every operation, its ranges, its errors.
//
// The main thread, and the library's worker. With one rank, every operation is a copy, or nothing.
#include <gtest/gtest.h>

#include <canele/collectives.hpp>
#include <numeric>
#include <type_traits>
#include <vector>

namespace {

static_assert(!std::is_copy_constructible_v<canele::group> && std::is_nothrow_move_constructible_v<canele::group>);
static_assert(canele::detail::element_of<int>() == CANELE_INT32 && canele::detail::element_of<char>() == CANELE_INT8);
static_assert(canele::detail::element_of<std::size_t>() == CANELE_UINT64);
static_assert(canele::detail::element_of<long double>() == CANELE_LONG_DOUBLE);
static_assert(canele::detail::element_of<std::complex<double>>() == CANELE_COMPLEX_DOUBLE);

class CppCollectives : public ::testing::Test {
 protected:
  CppCollectives() { std::iota(in_.begin(), in_.end(), 1.5); }
  void same(const char* what) {
    EXPECT_EQ(out_, in_) << what;
    out_.assign(in_.size(), 0);
  }
  canele::engine engine_;
  canele::group alone_{engine_, "alone"};
  std::vector<double> in_ = std::vector<double>(100), out_ = std::vector<double>(100), empty_;
  canele_operator_t sum_ = canele::operation<double>(CANELE_SUM);
};

TEST_F(CppCollectives, AloneEveryOperationGivesWhatItGot) {
  EXPECT_EQ(alone_.rank(), 0);
  EXPECT_EQ(alone_.size(), 1);
  alone_.ibarrier().wait();
  alone_.ibcast(in_, 0).wait();
  EXPECT_EQ(in_[99], 100.5);
  alone_.ireduce(in_, out_, sum_, 0).wait();
  same("reduce");
  alone_.iallreduce(in_, out_, sum_, {.algorithm = CANELE_ALGORITHM_RING, .priority = 2}).wait();
  same("allreduce");
  alone_.igather(in_, out_, 0).wait();
  same("gather");
  alone_.iscatter(in_, out_, 0).wait();
  same("scatter");
  alone_.iallgather(in_, out_).wait();
  same("allgather");
  alone_.ialltoall(in_, out_).wait();
  same("alltoall");
  const canele_edge_t all[] = {{0, 0, 100 * sizeof(double)}};
  alone_.ineighbor_exchange(in_, all, out_, all).wait();
  same("neighbor_exchange");
  alone_.ireduce_scatter(in_, out_, sum_).wait();
  same("reduce_scatter");
  alone_.iscan(in_, out_, sum_).wait();
  same("scan");
  alone_.iexscan(in_, out_, sum_).wait();
  EXPECT_EQ(out_, std::vector<double>(100)) << "untouched at position 0";
  const std::vector<double> before = in_;
  alone_.iallreduce(in_, sum_).wait();
  EXPECT_EQ(in_, before);
}

TEST_F(CppCollectives, ErrorsAreExceptions) {
  const auto code_of = [](auto call) {
    try {
      call();
    } catch (const canele::error& error) {
      return error.code();
    }
    return static_cast<int>(CANELE_OK);
  };
  EXPECT_EQ(code_of([&] { alone_.ibcast(in_, 1).wait(); }), CANELE_ERANK);
  EXPECT_EQ(code_of([&] { alone_.ibarrier({.algorithm = CANELE_ALGORITHM_RING}).wait(); }), CANELE_EINVAL);
  EXPECT_EQ(code_of([&] { canele::operation<float>(CANELE_BXOR); }), CANELE_EINVAL);
  EXPECT_EQ(code_of([&] { canele::group(engine_, "alone"); }), CANELE_EBUSY);
  EXPECT_EQ(code_of([&] { canele::group(engine_, "nobody", std::span<const int>{}); }), CANELE_EINVAL);
  canele::group moved = std::move(alone_);
  moved.ibarrier().wait();
  alone_ = std::move(moved);
}

}  // namespace

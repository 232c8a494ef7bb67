// SPDX-License-Identifier: BSD-3-Clause
//
// The choice between a copy by the kernel and a stream, by costs that the test invents.
#include "comm/state/copy_costs.hpp"

#include <gtest/gtest.h>

#include <initializer_list>

namespace canele::test {
namespace {

using comm::CopyCosts;

constexpr std::uint64_t kib = 1024, piece = 16 * kib;

/// A machine with these costs, in nanoseconds: of a call of the kernel, and of each KiB.
struct Machine {
  double call, kernel, stream;
};

/// Chooses for a message, and notes what it then costs. Returns true for the kernel.
bool receive(CopyCosts& costs, const Machine& machine, std::uint64_t length, float ratio = 1, bool alone = true) {
  const bool kernel = costs.kernel_pays(length, ratio, alone);
  if (kernel) {
    costs.kernel_copied(length, length,
                        static_cast<std::uint64_t>(machine.call + machine.kernel * static_cast<double>(length / kib)));
    return true;
  }
  for (std::uint64_t at = 0; at < length; at += piece) {
    if (costs.times_piece()) costs.piece_copied(piece, static_cast<std::uint64_t>(machine.stream * piece / kib));
  }
  return false;
}

/// Returns how many of `count` messages the kernel copied.
int by_kernel(CopyCosts& costs, const Machine& machine, std::uint64_t length, int count, float ratio = 1,
              bool alone = true) {
  int copied = 0;
  for (int i = 0; i < count; ++i) copied += receive(costs, machine, length, ratio, alone) ? 1 : 0;
  return copied;
}

/// So many messages tell the costs of their size; after them a trial is rare.
constexpr int enough = 600;

constexpr Machine quick_kernel{500, 40, 100}, slow_kernel{500, 120, 60}, dear_calls{5000, 40, 100};

TEST(CopyCosts, TriesBothAndThenTakesTheQuickerOne) {
  CopyCosts quick, slow;
  by_kernel(quick, quick_kernel, 64 * kib, enough);
  by_kernel(slow, slow_kernel, 64 * kib, enough);
  EXPECT_EQ(by_kernel(quick, quick_kernel, 64 * kib, 1000), 1000);
  EXPECT_EQ(by_kernel(slow, slow_kernel, 64 * kib, 1000), 0);
}

TEST(CopyCosts, AShortMessageMayGoTheOtherWayThanALongOne) {
  CopyCosts costs;
  for (const std::uint64_t length : {20 * kib, 128 * kib}) by_kernel(costs, dear_calls, length, enough);
  EXPECT_EQ(by_kernel(costs, dear_calls, 20 * kib, 1000), 0) << "5.8 us against 5.2";
  EXPECT_EQ(by_kernel(costs, dear_calls, 128 * kib, 1000), 1000) << "10.1 us against 16";
}

TEST(CopyCosts, TheRatioSaysHowMuchLongerTheKernelMayTake) {
  CopyCosts costs;
  by_kernel(costs, slow_kernel, 128 * kib, enough);
  EXPECT_EQ(by_kernel(costs, slow_kernel, 128 * kib, 100, 1), 0);
  EXPECT_EQ(by_kernel(costs, slow_kernel, 128 * kib, 100, 2), 100);
}

TEST(CopyCosts, TheStartOfAStreamCountsForAMessageAloneOnly) {
  CopyCosts costs;
  constexpr Machine machine{1000, 190, 90};
  by_kernel(costs, machine, 16 * kib, enough);
  EXPECT_EQ(by_kernel(costs, machine, 16 * kib, 200), 200) << "4.0 us against 4.3";
  EXPECT_EQ(by_kernel(costs, machine, 16 * kib, 200, 1, false), 0) << "4.0 us against 1.4";
}

TEST(CopyCosts, ColdMemoryAtTheStartDoesNotDecide) {
  CopyCosts costs;
  constexpr Machine cold{500, 120, 2000};  // the pages of the shared buffers have no memory yet
  for (int streams = 0; streams < 20;) streams += receive(costs, cold, 16 * kib) ? 0 : 1;
  by_kernel(costs, slow_kernel, 16 * kib, CopyCosts::period);
  EXPECT_EQ(by_kernel(costs, slow_kernel, 16 * kib, 1000, 1, false), 0);
}

TEST(CopyCosts, LearnsWithinAPeriodThatTheMachineHasChanged) {
  CopyCosts costs;
  by_kernel(costs, slow_kernel, 64 * kib, enough);
  for (int i = 0; i < 20; ++i) by_kernel(costs, quick_kernel, 64 * kib, CopyCosts::period);
  EXPECT_EQ(by_kernel(costs, quick_kernel, 64 * kib, 1000), 1000);
  // The kernel's own copies tell at once.
  constexpr Machine contended{500, 400, 100};
  by_kernel(costs, contended, 64 * kib, 40);
  EXPECT_LE(by_kernel(costs, contended, 64 * kib, 1000), static_cast<int>(CopyCosts::tried));
}

/// The first copies meet cold memory.
TEST(CopyCosts, AWrongFirstImpressionIsSoonCorrected) {
  for (const bool kernel_is_quicker : {true, false}) {
    const Machine &real = kernel_is_quicker ? quick_kernel : slow_kernel,
                  &cold = kernel_is_quicker ? slow_kernel : quick_kernel;
    CopyCosts costs;
    by_kernel(costs, cold, 64 * kib, 12);
    by_kernel(costs, real, 64 * kib, 150);
    EXPECT_EQ(by_kernel(costs, real, 64 * kib, 300), kernel_is_quicker ? 300 : 0);
  }
}

TEST(CopyCosts, FewMessagesGoTheOtherWay) {
  for (const Machine& machine : {quick_kernel, slow_kernel}) {
    CopyCosts costs;
    by_kernel(costs, machine, 64 * kib, enough);
    const int most = static_cast<int>(10 * CopyCosts::period), others = static_cast<int>(10 * CopyCosts::tried);
    const int copied = by_kernel(costs, machine, 64 * kib, most);
    EXPECT_EQ(copied, machine.kernel < machine.stream ? most - others : others);
  }
}

TEST(CopyCosts, NoLongMessageIsStreamedForATry) {
  CopyCosts costs;
  EXPECT_EQ(by_kernel(costs, slow_kernel, 4096 * kib, 10'000), 10'000) << "no stream has been measured";
  by_kernel(costs, quick_kernel, 64 * kib, enough);
  for (int i = 0; i < 10; ++i) costs.kernel_copied(4096 * kib, 4096 * kib, 4096 * 40);
  EXPECT_EQ(by_kernel(costs, quick_kernel, 4096 * kib, 10'000), 10'000);
}

TEST(CopyCosts, OneLongPauseChangesNothing) {
  CopyCosts costs;
  by_kernel(costs, quick_kernel, 64 * kib, enough);
  costs.kernel_copied(64 * kib, 64 * kib, 10'000'000);  // the thread lost its core
  EXPECT_EQ(by_kernel(costs, quick_kernel, 64 * kib, 100), 100);
}

TEST(CopyCosts, NothingIsNotedOfNothing) {
  CopyCosts costs;
  for (int i = 0; i < 10; ++i) {
    costs.kernel_copied(0, 0, 100);
    costs.piece_copied(0, 100);
    costs.piece_copied(64, 100);
  }
  EXPECT_TRUE(costs.kernel_pays(0, 1, true)) << "nothing is known";
  EXPECT_TRUE(costs.times_piece());
}

}  // namespace
}  // namespace canele::test

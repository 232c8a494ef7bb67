// SPDX-License-Identifier: BSD-3-Clause
//
// Tests of the page on which senders note that they are inside libpsm2.
//
// Who: unit_psm2. Threads: one; two ledgers on one page stand for two processes. Surprise: none.
#include "drivers/psm2/ledger.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace canele::drivers::psm2 {
namespace {

TEST(Psm2Ledger, OneThatStaysInsideStopsTheOthersFromTakingSlots) {
  net::UniqueFd page;
  Ledger zero, one;
  ASSERT_TRUE(Ledger::make(2, &page));
  ASSERT_TRUE(zero.map(page.get(), 2) && one.map(page.get(), 2));
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(zero.enter(0));
    zero.leave(0);
  }
  ASSERT_TRUE(one.enter(1));  // and is killed there
  std::uint32_t slots = 0;
  while (zero.enter(0)) {
    zero.leave(0);
    slots += Ledger::slots_per_message;
    ASSERT_LT(slots, 200u);  // of 256
  }
  EXPECT_GE(slots, Ledger::longest_stay);
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(zero.enter(0));
  one.leave(1);  // it was only slow
  EXPECT_TRUE(zero.enter(0));
}

TEST(Psm2Ledger, TicketsMayWrap) {
  net::UniqueFd page;
  Ledger zero, one;
  ASSERT_TRUE(Ledger::make(2, &page));
  ASSERT_TRUE(zero.map(page.get(), 2) && one.map(page.get(), 2));
  const std::uint32_t nearly = 0u - 50;
  ASSERT_EQ(::pwrite(page.get(), &nearly, sizeof nearly, 0), static_cast<ssize_t>(sizeof nearly));
  ASSERT_TRUE(one.enter(1));
  int taken = 0;
  for (; zero.enter(0); ++taken) zero.leave(0);
  EXPECT_GE(taken, static_cast<int>(Ledger::longest_stay / Ledger::slots_per_message) - 1);
  EXPECT_LT(taken, 100);
}

TEST(Psm2Ledger, APageThatCouldBeCutShortIsRefused) {
  net::UniqueFd page;
  Ledger ledger;
  ASSERT_TRUE(Ledger::make(2, &page));
  EXPECT_FALSE(ledger.map(page.get(), 3));
  EXPECT_FALSE(ledger.map(-1, 2));
  net::UniqueFd loose(::memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(loose.get(), 12), 0);
  EXPECT_FALSE(ledger.map(loose.get(), 2));
  EXPECT_FALSE(ledger);
}

}  // namespace
}  // namespace canele::drivers::psm2

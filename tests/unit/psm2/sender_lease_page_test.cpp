// SPDX-License-Identifier: BSD-3-Clause
//
// Tests of the page on which a sender notes that it is inside libpsm2. One thread; two objects on one page stand for
// two processes.
#include "drivers/psm2/sender_lease_page.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace canele::drivers::psm2 {
namespace {

TEST(Psm2SenderLeasePage, OneAtATime) {
  net::UniqueFd page;
  SenderLeasePage one, two;
  ASSERT_TRUE(SenderLeasePage::make(&page));
  ASSERT_TRUE(one.map(page.get()) && two.map(page.get()));
  EXPECT_EQ(two.holder(), 0);
  ASSERT_TRUE(one.acquire(11));
  EXPECT_FALSE(two.acquire(22));
  EXPECT_EQ(two.holder(), 11);
  one.release();
  EXPECT_TRUE(two.acquire(22));
  EXPECT_EQ(one.holder(), 22);
}

TEST(Psm2SenderLeasePage, AProcessIsGoneWhenItHasEndedThoughNobodyHasAskedForIt) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    char byte;
    ::close(ends[1]);
    ::_exit(::read(ends[0], &byte, 1) == 0 ? 0 : 1);
  }
  EXPECT_FALSE(has_exited(pid));
  ::close(ends[1]);
  siginfo_t ended = {};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(has_exited(pid));
  ::waitpid(pid, nullptr, 0);
  EXPECT_TRUE(has_exited(pid));
  EXPECT_FALSE(has_exited(::getpid()));
  ::close(ends[0]);
}

TEST(Psm2SenderLeasePage, OnlyASleeperIsRungFor) {
  net::UniqueFd page;
  SenderLeasePage owner, sender;
  ASSERT_TRUE(SenderLeasePage::make(&page));
  ASSERT_TRUE(owner.map(page.get()) && sender.map(page.get()));
  owner.hang(net::UniqueFd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)));
  sender.hang(net::UniqueFd(::fcntl(owner.bell(), F_DUPFD_CLOEXEC, 0)));
  eventfd_t rings = 0;
  sender.ring();
  EXPECT_NE(::eventfd_read(owner.bell(), &rings), 0) << "it is awake";
  owner.sleep();
  sender.ring();
  sender.ring();
  ASSERT_EQ(::eventfd_read(owner.bell(), &rings), 0);
  EXPECT_EQ(rings, 1u) << "once is enough";
  owner.sleep();
  sender.ring();
  owner.wake();
  EXPECT_NE(::eventfd_read(owner.bell(), &rings), 0) << "silent again";
  owner.sleep();
  owner.wake();
  sender.ring();
  EXPECT_NE(::eventfd_read(owner.bell(), &rings), 0) << "awake again";
}

TEST(Psm2SenderLeasePage, APageThatCouldBeCutShortIsRejected) {
  net::UniqueFd page;
  SenderLeasePage lease_page;
  EXPECT_FALSE(lease_page.map(-1));
  net::UniqueFd loose(::memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(loose.get(), 4), 0);
  EXPECT_FALSE(lease_page.map(loose.get()));
  EXPECT_FALSE(lease_page);
  ASSERT_TRUE(SenderLeasePage::make(&page));
  EXPECT_NE(::ftruncate(page.get(), 0), 0);
}

}  // namespace
}  // namespace canele::drivers::psm2

// SPDX-License-Identifier: BSD-3-Clause
//
// The production Platform: clock, randomness across threads and a fork, threads, parking, environment, log.
//
// Some tests start a few threads. No test waits for time to pass; a lost wake-up shows as the test's time limit.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <vector>

#include "ltask/platform.hpp"

namespace canele {
namespace {

constexpr std::uint64_t for_ever = ~std::uint64_t{0};

TEST(PosixPlatform, IsOneInstance) { EXPECT_EQ(&posix_platform(), &posix_platform()); }

TEST(PosixPlatform, ClockNeverGoesBack) {
  Platform& platform = posix_platform();
  std::uint64_t before = platform.now_ns();
  EXPECT_GT(before, 0u);
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t now = platform.now_ns();
    ASSERT_GE(now, before);
    before = now;
  }
}

TEST(PosixPlatform, SharesOutTheUnitsToWhoIsBoundToNone) {
  Platform& platform = posix_platform();
  cpu_set_t before, now;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const auto units = static_cast<unsigned>(CPU_COUNT(&before));
  if (units < platform.processors() || units < 2) GTEST_SKIP() << "bound, or one unit only";
  std::set<int> shares;
  for (unsigned share = 0; share < units; ++share) shares.insert(platform.share_of_units(share));
  EXPECT_EQ(shares.size(), units);
  EXPECT_EQ(shares.count(-1), 0u);
  EXPECT_EQ(platform.share_of_units(units + 1), platform.share_of_units(1));
  EXPECT_TRUE(platform.move_to_unit(platform.share_of_units(1)));
  ASSERT_EQ(sched_getaffinity(0, sizeof now, &now), 0);
  EXPECT_TRUE(CPU_EQUAL(&now, &before)) << "moved, not bound";
  CPU_ZERO(&now);
  CPU_SET(platform.share_of_units(0), &now);
  ASSERT_EQ(sched_setaffinity(0, sizeof now, &now), 0);
  EXPECT_EQ(platform.share_of_units(0), -1) << "bound";
  EXPECT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(PosixPlatform, RandomWordsDifferAcrossRefillsAndThreads) {
  Platform& platform = posix_platform();
  std::set<std::uint64_t> seen;
  std::vector<std::uint64_t> elsewhere(100);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(seen.insert(platform.random()).second);
  platform.start_thread("random", [&] {
    for (auto& word : elsewhere) word = platform.random();
  });  // joined by its destructor
  for (const auto word : elsewhere) EXPECT_TRUE(seen.insert(word).second);
}

constexpr std::uint64_t an_hour = 3'600'000'000'000;

TEST(PosixAlarm, EndsASleepWhenItsTimeIsMovedForward) {
  Platform& platform = posix_platform();
  const auto alarm = platform.make_alarm();
  for (int i = 0; i < 200; ++i) {
    alarm->set(an_hour);
    std::atomic<bool> over{false};
    const auto sleeper = platform.start_thread("sleeper", [&] {
      alarm->wait();
      over = true;
    });
    if (i % 2 == 0) alarm->set(an_hour / 2);
    alarm->set(1000);
    while (!over) platform.yield();  // if it never holds, the test's time limit ends this
  }
}

TEST(PosixAlarm, SleepsUntilTheLaterTime) {
  Platform& platform = posix_platform();
  const auto alarm = platform.make_alarm();
  constexpr std::uint64_t later = 2'000'000;
  for (int i = 0; i < 20; ++i) {
    alarm->set(1000);
    const std::uint64_t begin = platform.now_ns();
    alarm->set(later);
    alarm->wait();
    EXPECT_GE(platform.now_ns() - begin, later);
  }
}

TEST(PosixAlarm, HeedsADescriptorOnceAndNotWhenItIgnoresIt) {
  const auto alarm = posix_platform().make_alarm();
  EXPECT_FALSE(alarm->heed()) << "there is none";
  const int bell = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
  ASSERT_TRUE(alarm->watch(bell));
  alarm->set(1000);
  alarm->wait();
  EXPECT_FALSE(alarm->has_heard()) << "not yet heeded";
  alarm->set(an_hour);
  EXPECT_TRUE(alarm->heed());
  alarm->wait();
  EXPECT_TRUE(alarm->has_heard());
  alarm->set(1000);
  alarm->wait();
  EXPECT_FALSE(alarm->has_heard()) << "once";
  EXPECT_TRUE(alarm->heed() && alarm->ignore());
  alarm->set(1000);
  alarm->wait();
  EXPECT_FALSE(alarm->has_heard());
  close(bell);
}

TEST(PosixPlatform, AForkedChildDrawsOtherBitsThanItsParent) {
  Platform& platform = posix_platform();
  platform.random();  // the buffer is filled before the fork
  int channel[2];
  ASSERT_EQ(pipe(channel), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  const std::uint64_t word = platform.random();
  if (child == 0) _exit(write(channel[1], &word, sizeof word) == sizeof word ? 0 : 1);
  std::uint64_t of_child = 0;
  EXPECT_EQ(read(channel[0], &of_child, sizeof of_child), static_cast<ssize_t>(sizeof of_child));
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_NE(of_child, word);
  close(channel[0]);
  close(channel[1]);
}

TEST(PosixPlatform, ThreadHasNameIdAndNoSignals) {
  char name[16] = "";
  long id = 0;
  bool blocked = false;
  auto thread = posix_platform().start_thread("a-name-that-is-too-long", [&] {
    pthread_getname_np(pthread_self(), name, sizeof name);
    id = syscall(SYS_gettid);
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    blocked = sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGUSR1) == 1;
  });
  ASSERT_NE(thread, nullptr);
  const long told = thread->native_id();
  thread.reset();
  EXPECT_EQ(told, id);
  EXPECT_NE(id, syscall(SYS_gettid));
  EXPECT_STREQ(name, "a-name-that-is-");
  EXPECT_TRUE(blocked);
  sigset_t own;
  pthread_sigmask(SIG_SETMASK, nullptr, &own);
  EXPECT_EQ(sigismember(&own, SIGTERM), 0);  // the starter's mask is restored
}

TEST(PosixPlatform, ParkReturnsAtOnceWhenTheWordDiffersOrTimeIsZero) {
  Platform& platform = posix_platform();
  std::atomic<std::uint32_t> word{1};
  platform.park(word, 0, for_ever);
  platform.park(word, 1, 0);
  const std::uint64_t before = platform.now_ns();
  platform.park(word, 1, 2'000'000);
  EXPECT_GE(platform.now_ns(), before);
}

TEST(PosixPlatform, UnparkWakesEveryParkedThread) {
  Platform& platform = posix_platform();
  std::atomic<std::uint32_t> turn{0};
  std::atomic<int> through{0};
  constexpr std::uint32_t rounds = 2000;
  const auto follow = [&] {
    for (std::uint32_t round = 0; round < rounds; ++round) {
      while (turn.load(std::memory_order_acquire) == round) platform.park(turn, round, for_ever);
      through.fetch_add(1, std::memory_order_acq_rel);
      while (turn.load(std::memory_order_acquire) == round) platform.relax();
    }
  };
  auto one = platform.start_thread("one", follow);
  auto two = platform.start_thread("two", follow);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    turn.store(round + 1, std::memory_order_release);
    platform.unpark(turn);
    while (through.load(std::memory_order_acquire) < 2 * static_cast<int>(round + 1)) platform.yield();
  }
  one.reset();
  two.reset();
  EXPECT_EQ(through.load(), 2 * static_cast<int>(rounds));
}

TEST(PosixPlatform, EnvironmentIsReadByNameAndByPrefix) {
  Platform& platform = posix_platform();
  setenv("CANELE_TEST_ONE", "1=x", 1);
  setenv("CANELE_TEST_TWO", "", 1);
  unsetenv("CANELE_TEST_NONE");
  EXPECT_STREQ(platform.variable("CANELE_TEST_ONE"), "1=x");
  EXPECT_EQ(platform.variable("CANELE_TEST_NONE"), nullptr);
  std::set<std::string> seen;
  platform.each_variable("CANELE_TEST_", [&](std::string_view text) { seen.emplace(text); });
  EXPECT_TRUE(seen.contains("CANELE_TEST_ONE=1=x"));
  EXPECT_TRUE(seen.contains("CANELE_TEST_TWO="));
}

/// Returns what platform.log writes to stderr.
std::string logged(LogLevel level, std::string_view text) {
  int channel[2];
  EXPECT_EQ(pipe(channel), 0);
  const int saved = dup(STDERR_FILENO);
  dup2(channel[1], STDERR_FILENO);
  posix_platform().log(level, text);
  dup2(saved, STDERR_FILENO);
  close(saved);
  close(channel[1]);
  std::string all(4096, '\0');
  const ssize_t length = read(channel[0], all.data(), all.size());
  close(channel[0]);
  all.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
  return all;
}

TEST(PosixPlatform, LogNamesTheLevelOnEveryLine) {
  EXPECT_EQ(logged(LogLevel::warning, "look out"), "canele: warning: look out\n");
  EXPECT_EQ(logged(LogLevel::info, "so it is"), "canele: so it is\n");
  EXPECT_EQ(logged(LogLevel::error, "one\ntwo\n"), "canele: error: one\ncanele: error: two\n");
  EXPECT_EQ(logged(LogLevel::info, ""), "canele: \n");
}

TEST(PosixPlatform, ProcessIsThisOne) { EXPECT_EQ(posix_platform().process(), getpid()); }

TEST(PosixPlatform, ReadsSmallFilesOnly) {
  Platform& platform = posix_platform();
  const std::string directory = testing::TempDir() + "canele-files-" + std::to_string(getpid());
  ASSERT_EQ(mkdir(directory.c_str(), 0700), 0);
  const std::string name = directory + "/text", pipe = directory + "/pipe";
  FILE* out = std::fopen(name.c_str(), "w");
  ASSERT_NE(out, nullptr);
  std::fputs("five\n", out);
  std::fclose(out);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);

  FileText file = platform.read_file(name, 5);
  EXPECT_TRUE(file.there && file.whole);
  EXPECT_EQ(file.text, "five\n");
  file = platform.read_file(name, 4);
  EXPECT_TRUE(file.there && !file.whole && file.problem.empty());
  EXPECT_EQ(file.text, "five");
  for (const std::string& absent : {directory + "/none", name + "/none"}) {
    file = platform.read_file(absent, 5);
    EXPECT_FALSE(file.there || file.whole) << absent;
  }
  for (const std::string& other : {directory, pipe}) {  // must not wait for a writer
    file = platform.read_file(other, 5);
    EXPECT_TRUE(file.there && !file.whole);
    EXPECT_EQ(file.problem, "it is not a regular file");
  }
  EXPECT_TRUE(platform.read_file("/proc/sys/kernel/hostname", 300).whole);
  std::remove(name.c_str());
  std::remove(pipe.c_str());
  rmdir(directory.c_str());
}

}  // namespace
}  // namespace canele

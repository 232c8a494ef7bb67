// SPDX-License-Identifier: BSD-3-Clause
//
// A PMI-1 bootstrap with a thread of its own: answers and deaths come without any call; a fence receives its own
// answer.
//
// The bootstrap's thread, and one that plays the launcher.
#include "comm/bootstrap/attended.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "comm/bootstrap/pmi1.hpp"

namespace canele::comm {
namespace {

constexpr std::uint64_t long_time = 600'000'000'000;

constexpr const char* attended_hello =
    "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\ncmd=maxes keylen_max=64 vallen_max=1024\n"
    "cmd=my_kvsname kvsname=kvs_1\n";

/// A real descriptor, whose other end the test holds.
struct LauncherEnd {
  LauncherEnd() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0); }
  ~LauncherEnd() { close_other(); }
  void say(const std::string& text) {
    EXPECT_EQ(write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  /// Reads until `text` has come, now or before.
  void hear_until(std::string_view text) {
    char bytes[512];
    while (heard.find(text) == std::string::npos)
      heard.append(bytes, static_cast<std::size_t>(std::max<ssize_t>(0, read(ends[1], bytes, sizeof bytes))));
  }
  void close_other() {
    if (ends[1] >= 0) close(std::exchange(ends[1], -1));
  }
  Pmi1Place place() { return {ends[0], 0, 2, 0, 2}; }
  int ends[2] = {-1, -1};
  std::string heard;
};

struct Attended : testing::Test {
  void SetUp() override {
    connection.say(attended_hello);
    job = make_pmi1(posix_platform(), connection.place(), long_time, &why);
    ASSERT_NE(job, nullptr) << why;
  }
  LauncherEnd connection;
  std::string why;
  std::unique_ptr<ProcessBootstrap> job;
};

/// Waits until another thread has set it; the test's own time limit ends it if none does.
void wait_for(std::atomic<int>& counter, int value) {
  while (counter.load() < value) std::this_thread::yield();
}

TEST_F(Attended, TellsWithoutBeingCalled) {
  job = attend(posix_platform(), std::move(job));
  EXPECT_LT(job->descriptor(), 0) << "no engine need serve it";
  std::atomic<int> deaths{0}, answers{0};
  job->on_failure([&deaths](int rank) { deaths += rank; });
  job->get(1, "address", long_time,
           [&answers](bool ok, const Blob& blob, const std::string&) { answers += ok && blob.size() == 1 ? 1 : 100; });
  connection.hear_until("key=canele.1.address.0");
  connection.say("cmd=get_result rc=0 value=1:1:AQ\n");
  wait_for(answers, 1);
  EXPECT_EQ(answers, 1);
  job->get(1, "never", long_time, [&answers](bool ok, const Blob&, const std::string&) { answers += ok ? 100 : 1; });
  connection.hear_until("key=canele.1.never.0");
  connection.say("cmd=get_result rc=-1 msg=no\ncmd=canele_died rank=1\n");
  wait_for(deaths, 1);
  wait_for(answers, 2);
  EXPECT_EQ(answers, 2) << "the death ends the question";
  std::thread launcher([this] {
    connection.hear_until("cmd=finalize");
    connection.say("cmd=finalize_ack\n");
  });
  job->finalize();
  launcher.join();
}

TEST_F(Attended, LeavesTheAnswerOfAFenceToTheFence) {
  job = attend(posix_platform(), std::move(job));
  for (int round = 1; round <= 200; ++round) {
    std::thread launcher([this, round] {
      connection.hear_until("at-fence-" + std::to_string(round) + ".0 value");
      connection.say("cmd=put_result rc=0 msg=success\n");
      connection.hear_until("cmd=barrier_in");
      connection.heard.clear();
      connection.say("cmd=barrier_out\n");
    });
    EXPECT_TRUE(job->fence(long_time, &why)) << round << ": " << why;
    launcher.join();
  }
}

}  // namespace
}  // namespace canele::comm

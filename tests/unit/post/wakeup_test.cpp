// SPDX-License-Identifier: BSD-3-Clause
//
// Completion queues in a program's own poll(): armed, an entry or work makes the descriptor readable.
//
// Every wait for a descriptor has a limit of seconds that only a lost wake-up reaches.
#include <canele/wakeup.h>
#include <poll.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test::wakeups {
namespace {

constexpr int limit_ms = 20'000;

bool readable(const canele_wakeup_t* wakeup, int ms) {
  pollfd one{canele_wakeup_descriptor(wakeup), POLLIN, 0};
  return ::poll(&one, 1, ms) > 0;
}

/// An event loop of one thread: a queue, and its wakeup.
class Loop {
 public:
  Loop(LocalJob& job, int rank) : engine_(job.handle(rank)) {
    EXPECT_EQ(canele_wakeup_open(engine_, &queue_, &wakeup_), CANELE_OK) << canele_error_detail();
  }
  ~Loop() { EXPECT_EQ(canele_wakeup_close(wakeup_), CANELE_OK); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void receive(canele_session_t* session, int source, std::uint64_t tag, void* to, std::size_t size) {
    const canele_data_t data = canele_data_contiguous(to, size);
    const canele_post_options_t options = into_queue();
    ASSERT_EQ(canele_post_receive(session, source, tag, CANELE_TAG_EXACT, &data, &options, nullptr), CANELE_OK);
  }
  void send(canele_session_t* session, int destination, std::uint64_t tag, const void* from, std::size_t size) {
    const canele_data_t data = canele_data_contiguous(from, size);
    const canele_post_options_t options = into_queue();
    ASSERT_EQ(canele_post_send(session, destination, tag, &data, &options, nullptr), CANELE_OK);
  }
  /// Arms, and takes the entries that stand in the way. Returns how many there were.
  int arm() {
    int taken = 0, code = CANELE_EAGAIN;
    while ((code = canele_wakeup_arm(wakeup_)) == CANELE_EAGAIN) taken += take();
    EXPECT_EQ(code, CANELE_OK) << canele_error_detail();
    return taken;
  }
  int take() {
    canele_entry_t entries[4];
    const int count = canele_queue_take(engine_, &queue_, entries, 4);
    EXPECT_GE(count, 0);
    return count;
  }
  /// Sleeps in poll() until `count` entries have come. Returns false if a wake-up is lost.
  bool await(int count) {
    while (count > 0) {
      const int before = arm();
      if (before > 0) {
        count -= before;
        continue;
      }
      if (!readable(wakeup_, limit_ms)) return false;
      EXPECT_EQ(canele_wakeup_disarm(wakeup_), CANELE_OK);
      count -= take();
    }
    return count == 0;
  }
  canele_wakeup_t* wakeup() const { return wakeup_; }

 private:
  canele_post_options_t into_queue() {
    canele_post_options_t options{};
    options.struct_size = sizeof options;
    options.done = {CANELE_COMPLETE_QUEUE, 0, &queue_, nullptr, nullptr};
    return options;
  }

  canele_engine_t* engine_;
  canele_queue_t queue_{};
  canele_wakeup_t* wakeup_ = nullptr;
};

class Wakeups : public testing::TestWithParam<const char*> {
 protected:
  Wakeups()
      : job_({2, {comm::find_driver("self"), comm::find_driver(GetParam())}, "aggregate", {}}),
        sessions_(job_.open("s")) {
    canele_request_t send{}, receive{};
    canele_irecv(sessions_[1], 0, 1, CANELE_TAG_EXACT, nullptr, 0, &receive);
    canele_isend(sessions_[0], 1, 1, nullptr, 0, &send);
    EXPECT_TRUE(job_.finish(receive));
  }
  /// Lets rank 1 send to rank 0, without a step of rank 0.
  void tell(std::uint64_t tag) {
    canele_request_t send{};
    ASSERT_EQ(canele_isend(sessions_[1], 0, tag, &tag, sizeof tag, &send), CANELE_OK);
    ASSERT_EQ(canele_wait(&send, nullptr), CANELE_OK);
  }

  LocalJob job_;
  std::vector<canele_session_t*> sessions_;
};

TEST_P(Wakeups, ArrivalsWakeAProgramThatSleepsOnTheDrivers) {
  Loop loop(job_, 0);
  std::uint64_t got = 0;
  for (std::uint64_t tag = 2; tag < 50; ++tag) {
    loop.receive(sessions_[0], 1, tag, &got, sizeof got);
    loop.arm();
    for (int tries = 0; readable(loop.wakeup(), 0); ++tries) {  // for nothing: it sleeps in the end
      ASSERT_LT(tries, 1000);
      loop.arm();
    }
    tell(tag);
    ASSERT_TRUE(readable(loop.wakeup(), limit_ms)) << tag;
    ASSERT_TRUE(loop.await(1));
    EXPECT_EQ(got, tag);
  }
}

TEST_P(Wakeups, AnEntryThatIsThereMustBeTakenFirst) {
  Loop loop(job_, 0);
  std::uint64_t value = 7, got = 0;
  loop.receive(sessions_[0], 0, 2, &got, sizeof got);
  loop.send(sessions_[0], 0, 2, &value, sizeof value);
  ASSERT_TRUE(job_.until([&] { return got == 7; }));
  EXPECT_EQ(canele_wakeup_arm(loop.wakeup()), CANELE_EAGAIN);
  EXPECT_EQ(loop.arm(), 2);
}

/// Another thread makes progress: what it adds to the queue wakes the program.
TEST_P(Wakeups, EntriesOfOtherThreadsWakeTheProgram) {
  Loop loop(job_, 0);
  std::uint64_t got = 0;
  loop.receive(sessions_[0], 1, 2, &got, sizeof got);
  loop.arm();
  std::atomic<bool> over{false};
  std::thread other([&] {
    tell(2);
    while (!over) canele_progress(job_.handle(0));
  });
  EXPECT_TRUE(loop.await(1));
  over = true;
  other.join();
  EXPECT_EQ(got, 2u);
}

/// A thread that waits takes the drivers over from the program, and wakes it when it leaves.
TEST_P(Wakeups, AWaitingThreadTakesTheDriversOver) {
  Loop loop(job_, 0);
  std::uint64_t got = 0, of_thread = 0;
  for (std::uint64_t tag = 2; tag < 40; tag += 2) {
    loop.receive(sessions_[0], 1, tag, &got, sizeof got);
    loop.arm();
    canele_request_t request{};
    ASSERT_EQ(canele_irecv(sessions_[0], 1, tag + 1, CANELE_TAG_EXACT, &of_thread, sizeof of_thread, &request),
              CANELE_OK);
    std::atomic<bool> over{false};
    std::thread waits([&] {
      EXPECT_EQ(canele_wait(&request, nullptr), CANELE_OK);
      over = true;
    });
    while (job_.engine(0).progress.waiters.present() < 1) std::this_thread::yield();
    if (tag % 4 == 0) std::this_thread::yield();
    tell(tag + 1);
    waits.join();
    EXPECT_EQ(of_thread, tag + 1);
    tell(tag);
    ASSERT_TRUE(loop.await(1)) << tag;
    EXPECT_EQ(got, tag);
  }
}

TEST_P(Wakeups, TwoProgramsEachGetTheirEntries) {
  Loop first(job_, 0), second(job_, 0);
  constexpr int rounds = 200;
  const auto loop = [&](Loop& mine, std::uint64_t tag) {
    std::uint64_t got = 0;
    for (int i = 0; i < rounds; ++i) {
      mine.receive(sessions_[0], 1, tag, &got, sizeof got);
      ASSERT_TRUE(mine.await(1)) << "tag " << tag << ", round " << i;
    }
  };
  std::thread other(loop, std::ref(second), 3);
  std::thread sender([&] {
    for (int i = 0; i < rounds; ++i) {
      tell(2);
      tell(3);
    }
  });
  loop(first, 2);
  other.join();
  sender.join();
}

/// Two programs that answer each other, each asleep in its own poll between two messages.
TEST_P(Wakeups, NoneIsLostInManyCycles) {
  constexpr int cycles = 3000;
  const auto answer = [&](int rank, bool begins) {
    Loop loop(job_, rank);
    std::uint64_t out = 0, in = 0;
    for (int i = 0; i < cycles; ++i) {
      loop.receive(sessions_[static_cast<std::size_t>(rank)], 1 - rank, 5, &in, sizeof in);
      if (begins) loop.send(sessions_[static_cast<std::size_t>(rank)], 1 - rank, 5, &(++out), sizeof out);
      ASSERT_TRUE(loop.await(begins ? 2 : 1)) << "rank " << rank << ", cycle " << i;
      if (begins) continue;
      loop.send(sessions_[static_cast<std::size_t>(rank)], 1 - rank, 5, &(++out), sizeof out);
      ASSERT_TRUE(loop.await(1)) << "rank " << rank << ", cycle " << i;
    }
  };
  std::thread other(answer, 1, false);
  answer(0, true);
  other.join();
}

TEST_P(Wakeups, AreForProgramsNotForCallbacks) {
  Loop loop(job_, 0);
  struct Seen {
    canele_wakeup_t* wakeup;
    int codes[3] = {};
  } seen{loop.wakeup()};
  canele_request_t receive{};
  std::uint64_t got = 0;
  ASSERT_EQ(canele_irecv(sessions_[0], 1, 2, CANELE_TAG_EXACT, &got, sizeof got, &receive), CANELE_OK);
  canele_request_on_event(
      &receive, CANELE_EVENT_FINALIZED,
      [](canele_request_t*, unsigned, void* argument) {
        auto& in = *static_cast<Seen*>(argument);
        in.codes[0] = canele_wakeup_arm(in.wakeup);
        in.codes[1] = canele_wakeup_disarm(in.wakeup);
        in.codes[2] = canele_wakeup_close(in.wakeup);
      },
      &seen);
  tell(2);
  ASSERT_TRUE(job_.finish(receive));
  for (const int code : seen.codes) EXPECT_EQ(code, CANELE_EDEADLK);
  EXPECT_EQ(canele_wakeup_disarm(loop.wakeup()), CANELE_OK) << "not armed: nothing to do";
}

INSTANTIATE_TEST_SUITE_P(All, Wakeups, testing::Values("shm", "tcp"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace canele::test::wakeups

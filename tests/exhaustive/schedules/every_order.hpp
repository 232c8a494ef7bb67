// SPDX-License-Identifier: BSD-3-Clause
//
// What the worlds of exhaustive_schedules share: a run through every order, and instruments.
// They are used in the Explorer's threads.
//
// Each world runs three times: with memory as the source says, with x86's store buffers, and with views, as on ARM64.
// An instrument is no atomic operation: a read-modify-write would empty the store buffer of the thread under test, and
// hide its fault.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>

#include "ltask/task.hpp"
#include "tests/exhaustive/schedules/stand_ins.hpp"

namespace canele::exhaustive {

/// Which memories a world runs with. Where there are too many orders with views, `most_old` limits how many loads of
/// one order read a value that is not the newest. Where there are too many orders anyway, `most_preemptions` limits how
/// often an order leaves a thread that could continue.
struct Memories {
  bool store_buffers = true, views = true;
  unsigned most_old = ~0u, most_preemptions = ~0u;
};

constexpr Memories some_old{true, true, 3}, a_few_old{true, true, 1}, bounded{true, true, 1, 5};

template <typename World>
void in_every_order(const char* name, const Memories& memories = {}) {
  constexpr const char* names[] = {"in sequence", "store buffers", "views"};
  for (const Memory memory : {Memory::in_sequence, Memory::store_buffers, Memory::views}) {
    if (memory == Memory::store_buffers && !memories.store_buffers) continue;
    if (memory == Memory::views && !memories.views) continue;
    Explorer::Options options;
    options.memory = memory;
    options.most_old = memories.most_old;
    options.most_preemptions = memories.most_preemptions;
    const char* const how = names[static_cast<int>(memory)];
    const Explorer::Outcome outcome = Explorer::explore<World>(options);
    EXPECT_EQ(outcome.failure, "") << name << ", " << how << ", in order " << outcome.worlds + 1;
    EXPECT_GT(outcome.worlds, 1u);
    std::printf("%-50s %-13s: %8llu orders, %9llu steps\n", name, how, static_cast<unsigned long long>(outcome.worlds),
                static_cast<unsigned long long>(outcome.steps));
    std::fflush(stdout);
  }
}

/// A place for one thread at a time. A thread inside sees all that was done there before.
class Room {
 public:
  void enter() {
    Explorer::current()->step({"enter the room", this, true, false, false});
    if (std::exchange(taken_, true)) Explorer::current()->fail("two threads inside");
    if (!Explorer::current()->touch(this)) Explorer::current()->fail("a thread inside need not see the one before");
  }
  void leave() {
    Explorer::current()->step({"leave the room", this, true, false, false});
    if (!Explorer::current()->touch(this)) Explorer::current()->fail("a thread inside need not see the one before");
    taken_ = false;
  }

 private:
  bool taken_ = false;
};

/// Counts, without synchronising any thread.
class Tally {
 public:
  void add() {
    Explorer::current()->step({"count", this, true, false, false});
    ++count_;
  }
  int now() const { return count_; }
  /// Waits for a count. For tests: production code has no such wait.
  void await(int count) const {
    const std::function<bool()> reached = [&] { return count_ == count; };
    Explorer::current()->step({"wait for the others", this, false, false, false}, &reached);
  }

 private:
  int count_ = 0;
};

struct Counted : ltask::Task {
  Tally* ran = nullptr;
  explicit Counted(Tally& count) : ran(&count) {
    prepare([](ltask::Task& task) {
      auto& self = static_cast<Counted&>(task);
      if (!Explorer::current()->touch(&self.ran)) Explorer::current()->fail("a task runs before its data is seen");
      self.ran->add();
    });
  }
  /// Touches the task's memory; called before its submission.
  void fill() { Explorer::current()->touch(&ran); }
};

}  // namespace canele::exhaustive

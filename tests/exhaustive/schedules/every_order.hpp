// SPDX-License-Identifier: BSD-3-Clause
//
// What the worlds of exhaustive_schedules share: a run through every order, and a task that counts.
//
// Who: protocols_test.cpp, tasks_test.cpp. Threads: the Explorer's.
// Surprise: each world runs twice over, with memory as the source says and with x86's store buffers.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>

#include "ltask/task.hpp"
#include "tests/exhaustive/schedules/stand_ins.hpp"

namespace canele::exhaustive {

/// Without store buffers, and with them.
template <typename World>
void in_every_order(const char* name, bool also_with_buffers = true) {
  for (const bool buffers : {false, true}) {
    if (buffers && !also_with_buffers) continue;
    Explorer::Options options;
    options.store_buffers = buffers;
    const Explorer::Outcome outcome = Explorer::explore<World>(options);
    EXPECT_EQ(outcome.failure, "") << name << (buffers ? ", with store buffers" : "") << ", in order "
                                   << outcome.worlds + 1;
    EXPECT_GT(outcome.worlds, 1u);
    std::printf("%-40s %s: %8llu orders, %9llu steps\n", name, buffers ? "store buffers" : "in sequence  ",
                static_cast<unsigned long long>(outcome.worlds), static_cast<unsigned long long>(outcome.steps));
  }
}

struct Counted : ltask::Task {
  std::atomic<int>* ran = nullptr;
  explicit Counted(std::atomic<int>& count) : ran(&count) {
    prepare([](ltask::Task& task) { static_cast<Counted&>(task).ran->fetch_add(1); });
  }
};

}  // namespace canele::exhaustive

// SPDX-License-Identifier: BSD-3-Clause
//
// StartBarrier: ranks stop here until the simulator, which inspects all of them meanwhile, lets them continue.
//
// Threads: main fibers pass the barrier; the code that runs the world opens it. The barrier is outside of the engine: a
// rank that waits here sends nothing and polls nothing (its worker does).
#pragma once

#include <vector>

#include "apps/sim/scheduler.hpp"

namespace canele::sim {

class StartBarrier {
 public:
  explicit StartBarrier(Scheduler& scheduler) : scheduler_(scheduler) {}
  void pass() {
    ++arrived_;
    waiting_.push_back(scheduler_.current());
    while (!open_) scheduler_.sleep(~std::uint64_t{0}, "waits at a start barrier");
  }
  void open() {
    open_ = true;
    for (Scheduler::Thread* thread : waiting_) scheduler_.wake(*thread);
  }
  int arrived() const { return arrived_; }

 private:
  Scheduler& scheduler_;
  std::vector<Scheduler::Thread*> waiting_;
  int arrived_ = 0;
  bool open_ = false;
};

}  // namespace canele::sim

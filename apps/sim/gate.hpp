// SPDX-License-Identifier: BSD-3-Clause
//
// Gate: where ranks stop until the simulator, which looks at all of them meanwhile, lets them go on.
//
// Who: workloads. Threads: the main fibers pass; whoever runs the world opens.
// Surprise: it is outside of the engine: who stands here sends nothing and polls nothing (its worker does).
#pragma once

#include <vector>

#include "apps/sim/scheduler.hpp"

namespace canele::sim {

class Gate {
 public:
  explicit Gate(Scheduler& scheduler) : scheduler_(scheduler) {}
  void pass() {
    ++arrived_;
    waiting_.push_back(scheduler_.current());
    while (!open_) scheduler_.sleep(~std::uint64_t{0}, "stands at a gate");
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

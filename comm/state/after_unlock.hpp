// SPDX-License-Identifier: BSD-3-Clause
//
// System calls that became due under the engine's lock, and are made after it: threads to wake, doorbells to ring.
//
// Called by the thread that holds the engine's lock; run() by the thread that has just left it.
#pragma once

#include <utility>
#include <vector>

#include "drivers/driver.hpp"
#include "ltask/parker.hpp"
#include "ltask/platform.hpp"
#include "ltask/sleeper.hpp"

namespace canele::comm {

class PostUnlockActions {
 public:
  bool due() const { return due_; }
  void wake(ltask::Parker& parker) {
    due_ = true;
    parkers_.push_back(&parker);
  }
  void ring(drivers::Driver& driver, int rank) {
    due_ = true;
    doorbells_.emplace_back(&driver, rank);
  }
  void wake(ltask::Sleeper& sleeper) {
    due_ = true;
    sleeper_ = &sleeper;
  }
  /// Makes due that the holder goes on with what other threads have linked, or hands it over.
  void go_on() { due_ = true; }
  /// Moves the entries of `other` here. `other` keeps its memory for the next time.
  void take(PostUnlockActions& other) {
    parkers_.insert(parkers_.end(), other.parkers_.begin(), other.parkers_.end());
    doorbells_.insert(doorbells_.end(), other.doorbells_.begin(), other.doorbells_.end());
    other.parkers_.clear();
    other.doorbells_.clear();
    if (other.sleeper_ != nullptr) sleeper_ = std::exchange(other.sleeper_, nullptr);
    due_ = true;
    other.due_ = false;
  }
  /// Makes the system calls. Returns the number of threads that it has woken.
  int run(Platform& platform) {
    for (ltask::Parker* parker : parkers_) parker->signal(platform);
    for (const auto& [driver, rank] : doorbells_) driver->wake(rank);
    if (sleeper_ != nullptr) sleeper_->wake();
    return static_cast<int>(parkers_.size());
  }

 private:
  bool due_ = false;
  ltask::Sleeper* sleeper_ = nullptr;
  std::vector<ltask::Parker*> parkers_;
  std::vector<std::pair<drivers::Driver*, int>> doorbells_;
};

}  // namespace canele::comm

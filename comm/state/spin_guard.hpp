// SPDX-License-Identifier: BSD-3-Clause
//
// SpinGuard: holds a spin lock in a scope. For locks that are held for a few instructions, and never across a call that
// may block. A thread that finds the lock taken yields its core.
#pragma once

#include <atomic>

#include "ltask/platform.hpp"

namespace canele::comm {

class SpinGuard {
 public:
  SpinGuard(std::atomic<bool>& taken, Platform& platform) : taken_(taken) {
    while (taken_.exchange(true, std::memory_order_acquire)) platform.yield();  // partner: the store below
  }
  ~SpinGuard() { taken_.store(false, std::memory_order_release); }
  SpinGuard(const SpinGuard&) = delete;
  SpinGuard& operator=(const SpinGuard&) = delete;

 private:
  std::atomic<bool>& taken_;
};

}  // namespace canele::comm

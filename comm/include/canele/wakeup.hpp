// SPDX-License-Identifier: BSD-3-Clause
//
// wakeup.hpp - completion queues in a program's own event loop, in C++. Over wakeup.h, which has the reference.
#pragma once

#include <canele/wakeup.h>

#include <canele/post.hpp>

namespace canele {

/// Gives a queue a descriptor for poll, epoll and the like. Must be destroyed before its queue. One thread at a time.
class wakeup {
 public:
  /// Throws canele::error if a driver cannot wake a process, or no descriptors are left.
  template <typename User>
  wakeup(engine& owner, queue<User>& entries) {
    detail::check(canele_wakeup_open(owner.native(), entries.native(), &native_), "canele_wakeup_open");
  }
  wakeup(const wakeup&) = delete;
  wakeup& operator=(const wakeup&) = delete;
  ~wakeup() { canele_wakeup_close(native_); }

  /// Returns the descriptor. It belongs to the library.
  int descriptor() const noexcept { return canele_wakeup_descriptor(native_); }
  /// Returns true if the descriptor will tell of the next entry. False: take entries first, until there is none.
  [[nodiscard]] bool arm() {
    const int code = canele_wakeup_arm(native_);
    if (code == CANELE_EAGAIN) return false;
    detail::check(code, "canele_wakeup_arm");
    return true;
  }
  void disarm() { detail::check(canele_wakeup_disarm(native_), "canele_wakeup_disarm"); }

 private:
  canele_wakeup_t* native_ = nullptr;
};

}  // namespace canele

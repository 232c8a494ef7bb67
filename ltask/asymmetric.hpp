// SPDX-License-Identifier: BSD-3-Clause
//
// Asymmetric fences: of two threads that must not both miss what the other has just written, the frequent one pays
// nothing, the rare one makes a system call that has all processors of the program fence (membarrier(2)).
//
// Who: submit_lock.hpp.
// Threads: any.
// Surprise: light() is no instruction, it only forbids the compiler to reorder; it orders a store before a later load
//     only towards threads that call heavy(). ThreadSanitizer knows nothing of that: there it is not available.
#pragma once

#include <atomic>

namespace canele::ltask {

/// Told apart by where each one's is. The TLS model: the lock asks for it each time.
extern constinit thread_local char this_threads_own __attribute__((tls_model("initial-exec")));

struct AsymmetricFences {
  /// Does this system have them? Asks once, and announces the program to it.
  static bool available() noexcept;
  static void light() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }
  /// Some microseconds, and all running threads of the program are interrupted. Only where available().
  static void heavy() noexcept;
  /// Differs between threads that live at the same time.
  static const void* self() noexcept { return &this_threads_own; }
};

}  // namespace canele::ltask

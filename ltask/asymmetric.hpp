// SPDX-License-Identifier: BSD-3-Clause
//
// Asymmetric fences: for two threads that must not both miss what the other has just written. The frequent side pays
// nothing. The rare side makes a system call that executes a fence on all processors of the program (membarrier(2)).
//
// Used by submit_lock.hpp and event_count.hpp. Any thread.
//
// light() is no instruction; it only forbids the compiler to reorder. It orders a store before a later load only
// towards threads that call heavy(). ThreadSanitizer does not know that, so the fences are not available there.
#pragma once

#include <atomic>

namespace canele::ltask {

/// Its address identifies the thread. The TLS model is fast because the lock reads it each time.
extern constinit thread_local char this_threads_own __attribute__((tls_model("initial-exec")));

struct AsymmetricFences {
  /// Returns whether this system has the fences. The first call asks the system and registers the program.
  static bool available() noexcept;
  static void light() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }
  /// Interrupts all running threads of the program; takes some microseconds. Only where available().
  static void heavy() noexcept;
  /// Returns a value that differs between threads that live at the same time.
  static const void* self() noexcept { return &this_threads_own; }
};

}  // namespace canele::ltask

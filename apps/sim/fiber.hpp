// SPDX-License-Identifier: BSD-3-Clause
//
// Fiber: a thread of the simulated world, with a stack of its own, switched explicitly.
//
// The scheduler uses it; all fibers run in one thread. A fiber that is destroyed before its end is not unwound, like a
// process that was killed. What it owns leaks, and only its stack is freed.
//
// Rejected: swapcontext() for every switch. It makes a system call for the signal mask, and saves a kilobyte that is
// out of the cache when there are thousands of fibers. It is kept for builds that AddressSanitizer must follow.
#pragma once

#include <setjmp.h>  // NOLINT: _setjmp is not in <csetjmp>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#define CANELE_ASAN_FIBERS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CANELE_ASAN_FIBERS 1
#endif
#endif

#include <cstddef>
#include <functional>

namespace canele::sim {

class Fiber {
 public:
  static constexpr std::size_t stack_size = 256 * 1024;  ///< reserved; only touched pages take memory

  /// `body` runs at the first resume(). Throws std::bad_alloc if there is no memory for a stack.
  explicit Fiber(std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs the fiber until it pauses or ends. Called from outside.
  void resume();
  /// Returns to the caller of resume(). Called from inside.
  void pause();
  bool done() const { return done_; }
  /// Returns the bytes of its stack that have been touched.
  std::size_t resident_stack() const;

 private:
  static void enter(unsigned high, unsigned low);
  void make_context(ucontext_t* context);
  void run();

  std::function<void()> body_;
#ifdef CANELE_ASAN_FIBERS
  ucontext_t own_ = {}, outside_ = {};
#else
  jmp_buf own_ = {}, outside_ = {};
#endif
  char* stack_ = nullptr;
  bool begun_ = false, done_ = false;
  // What AddressSanitizer must know of a change of stacks.
  void *fake_own_ = nullptr, *fake_outside_ = nullptr;
  const void* outside_stack_ = nullptr;
  std::size_t outside_size_ = 0;
};

}  // namespace canele::sim

// SPDX-License-Identifier: BSD-3-Clause
//
// Fiber: a thread of the simulated world: a stack of its own, switched to and from by hand.
//
// Who: the scheduler. Threads: one; all fibers run in it.
// Surprise: a fiber that is destroyed before its end is not unwound, like a process that was killed: what it owns
//      leaks. Only its stack is given back.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>

namespace canele::sim {

class Fiber {
 public:
  static constexpr std::size_t stack_size = 256 * 1024;  ///< reserved; only what is touched takes memory

  /// `body` runs at the first resume(). Throws std::bad_alloc without memory for a stack.
  explicit Fiber(std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// From outside: runs it until it pauses or ends.
  void resume();
  /// From inside: back to who resumed it.
  void pause();
  bool over() const { return over_; }

 private:
  static void enter(unsigned high, unsigned low);
  void run();

  std::function<void()> body_;
  ucontext_t own_ = {}, outside_ = {};
  char* stack_ = nullptr;
  bool over_ = false;
  // What AddressSanitizer must know of a change of stacks.
  void *fake_own_ = nullptr, *fake_outside_ = nullptr;
  const void* outside_stack_ = nullptr;
  std::size_t outside_size_ = 0;
};

}  // namespace canele::sim

// SPDX-License-Identifier: BSD-3-Clause
//
// Changing stacks, see fiber.hpp. Threads: one.
// Surprise: below each stack lies a page that nobody may touch: an overflow is a crash, not a riddle.
#include "apps/sim/fiber.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define CANELE_ASAN_FIBERS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CANELE_ASAN_FIBERS 1
#endif
#endif
#ifdef CANELE_ASAN_FIBERS
#include <sanitizer/common_interface_defs.h>
#endif

namespace canele::sim {
namespace {

[[maybe_unused]] std::size_t page_size() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

void leaving([[maybe_unused]] void** fake, [[maybe_unused]] const void* to, [[maybe_unused]] std::size_t size) {
#ifdef CANELE_ASAN_FIBERS
  __sanitizer_start_switch_fiber(fake, to, size);
#endif
}

void arrived([[maybe_unused]] void* fake, [[maybe_unused]] const void** from, [[maybe_unused]] std::size_t* size) {
#ifdef CANELE_ASAN_FIBERS
  __sanitizer_finish_switch_fiber(fake, from, size);
#endif
}

}  // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)) {
  const std::size_t guard = page_size();
  void* const memory = ::mmap(nullptr, stack_size + guard, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  ::mprotect(memory, guard, PROT_NONE);
  stack_ = static_cast<char*>(memory) + guard;
  ::getcontext(&own_);
  own_.uc_stack.ss_sp = stack_;
  own_.uc_stack.ss_size = stack_size;
  own_.uc_link = nullptr;
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  ::makecontext(&own_, reinterpret_cast<void (*)()>(enter), 2, static_cast<unsigned>(self >> 32),
                static_cast<unsigned>(self & 0xffffffffu));
}

Fiber::~Fiber() {
  const std::size_t guard = page_size();
  ::munmap(stack_ - guard, stack_size + guard);
}

void Fiber::enter(unsigned high, unsigned low) {
  auto* const self = reinterpret_cast<Fiber*>((static_cast<std::uintptr_t>(high) << 32) | low);
  arrived(nullptr, &self->outside_stack_, &self->outside_size_);
  self->run();
}

void Fiber::run() {
  body_();
  over_ = true;
  leaving(nullptr, outside_stack_, outside_size_);  // null: this stack is not needed any more
  ::setcontext(&outside_);
}

void Fiber::resume() {
  leaving(&fake_outside_, stack_, stack_size);
  ::swapcontext(&outside_, &own_);
  arrived(fake_outside_, nullptr, nullptr);
}

void Fiber::pause() {
  leaving(&fake_own_, outside_stack_, outside_size_);
  ::swapcontext(&own_, &outside_);
  arrived(fake_own_, &outside_stack_, &outside_size_);
}

}  // namespace canele::sim

// SPDX-License-Identifier: BSD-3-Clause
//
// Changes stacks. One thread.
//
// Below each stack lies a page without access rights, so that an overflow crashes immediately.
#undef _FORTIFY_SOURCE  // its longjmp() takes another stack for an error
#include "apps/sim/fiber.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>
#include <utility>

#ifdef CANELE_ASAN_FIBERS
#include <sanitizer/common_interface_defs.h>
#endif

namespace canele::sim {
namespace {

[[maybe_unused]] std::size_t page_size() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

void before_switch([[maybe_unused]] void** fake, [[maybe_unused]] const void* to, [[maybe_unused]] std::size_t size) {
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
  if (::mprotect(memory, guard, PROT_NONE) != 0) {  // splits the mapping, and the number of mappings is limited
    ::munmap(memory, stack_size + guard);
    throw std::bad_alloc();
  }
  stack_ = static_cast<char*>(memory) + guard;
}

void Fiber::make_context(ucontext_t* context) {
  ::getcontext(context);
  context->uc_stack.ss_sp = stack_;
  context->uc_stack.ss_size = stack_size;
  context->uc_link = nullptr;
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  ::makecontext(context, reinterpret_cast<void (*)()>(enter), 2, static_cast<unsigned>(self >> 32),
                static_cast<unsigned>(self & 0xffffffffu));
}

Fiber::~Fiber() {
  const std::size_t guard = page_size();
  ::munmap(stack_ - guard, stack_size + guard);
}

std::size_t Fiber::resident_stack() const {
  std::array<unsigned char, stack_size / 4096> pages{};  // the smallest page size
  ::mincore(stack_, stack_size, pages.data());
  const auto touched = std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; });
  return static_cast<std::size_t>(touched) * page_size();
}

void Fiber::enter(unsigned high, unsigned low) {
  auto* const self = reinterpret_cast<Fiber*>((static_cast<std::uintptr_t>(high) << 32) | low);
  arrived(nullptr, &self->outside_stack_, &self->outside_size_);
  self->run();
}

void Fiber::run() {
  body_();
  done_ = true;
  before_switch(nullptr, outside_stack_, outside_size_);  // null: this stack is not needed any more
#ifdef CANELE_ASAN_FIBERS
  ::setcontext(&outside_);
#else
  ::_longjmp(outside_, 1);
#endif
}

void Fiber::resume() {
  before_switch(&fake_outside_, stack_, stack_size);
#ifdef CANELE_ASAN_FIBERS
  if (!std::exchange(begun_, true)) make_context(&own_);
  ::swapcontext(&outside_, &own_);
#else
  if (::_setjmp(outside_) == 0) {
    if (begun_) ::_longjmp(own_, 1);
    begun_ = true;
    ucontext_t first;
    make_context(&first);
    ::setcontext(&first);
  }
#endif
  arrived(fake_outside_, nullptr, nullptr);
}

void Fiber::pause() {
  before_switch(&fake_own_, outside_stack_, outside_size_);
#ifdef CANELE_ASAN_FIBERS
  ::swapcontext(&own_, &outside_);
#else
  if (::_setjmp(own_) == 0) ::_longjmp(outside_, 1);
#endif
  arrived(fake_own_, &outside_stack_, &outside_size_);
}

}  // namespace canele::sim

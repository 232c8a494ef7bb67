// SPDX-License-Identifier: BSD-3-Clause
//
// What the library's own allocations call instead of operator new: the same, and the reserve when that fails.
//
// Who: the linker, which is told --wrap for these two symbols where libcanele.so is made. Threads: any.
// Surprise: the library replaces nothing in the process. Memory comes from the program's operator new and goes back by
//     its operator delete; only the library's own calls pass through here. Why: most of what the engine allocates it
//     allocates under its lock, where an exception would leave work half done.
#include <cstddef>
#include <new>

#include "ltask/reserve.hpp"

// The names are the linker's: --wrap makes of operator new(size_t), _Znwm, these two.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
void* __real__Znwm(std::size_t size);
void* __real__ZnwmSt11align_val_t(std::size_t size, std::align_val_t alignment);
void* __wrap__Znwm(std::size_t size);
void* __wrap__ZnwmSt11align_val_t(std::size_t size, std::align_val_t alignment);
}

namespace {

using canele::ltask::memory_reserve;

template <typename Allocate>
void* allocate(std::size_t size, std::size_t alignment, Allocate from_process) {
  void* memory = nullptr;
  try {
    memory = from_process();
  } catch (const std::bad_alloc&) {
    memory = memory_reserve.take(size, alignment);
    if (memory == nullptr) throw;
    return memory;
  }
  if (memory_reserve.is_short()) [[unlikely]]
    memory_reserve.refill();
  return memory;
}

}  // namespace

void* __wrap__Znwm(std::size_t size) {
  return allocate(size, alignof(std::max_align_t), [=] { return __real__Znwm(size); });
}

void* __wrap__ZnwmSt11align_val_t(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment),
                  [=] { return __real__ZnwmSt11align_val_t(size, alignment); });
}
// NOLINTEND(bugprone-reserved-identifier)

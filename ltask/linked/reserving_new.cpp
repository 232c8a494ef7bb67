// SPDX-License-Identifier: BSD-3-Clause
//
// The operator new of the library's own allocations: calls that of the process, and takes from the reserve if that
// fails.
//
// The linker redirects the library's calls to these functions, by --wrap, where libcanele.so is made. Any thread.
//
// The library replaces nothing in the process. Memory comes from the program's operator new, and goes back to its
// operator delete. Only the library's own calls pass through here. The reason: the engine allocates mostly under its
// lock, where an exception would leave work half done.
#include <cassert>
#include <cstddef>
#include <new>

#include "ltask/reserve.hpp"

// The linker defines these names: with --wrap, operator new(size_t), which is _Znwm, becomes a pair of them.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
void* __real__Znwm(std::size_t size);
void* __real__Znam(std::size_t size);
void* __real__ZnwmSt11align_val_t(std::size_t size, std::align_val_t alignment);
void* __wrap__Znwm(std::size_t size);
void* __wrap__Znam(std::size_t size);
void* __wrap__ZnwmSt11align_val_t(std::size_t size, std::align_val_t alignment);
}

namespace {

using canele::ltask::memory_reserve;
using Kind = canele::ltask::MemoryReserve::Kind;

template <typename Allocate>
void* allocate(std::size_t size, Kind kind, Allocate from_process) {
  void* memory = nullptr;
  try {
    memory = from_process();
  } catch (const std::bad_alloc&) {
    memory = memory_reserve.take(size, kind);
    if (memory == nullptr) throw;
    return memory;
  }
  if (memory_reserve.is_short()) [[unlikely]]
    memory_reserve.refill();
  return memory;
}

}  // namespace

void* __wrap__Znwm(std::size_t size) {
  return allocate(size, Kind::plain, [=] { return __real__Znwm(size); });
}

void* __wrap__Znam(std::size_t size) {
  return allocate(size, Kind::array, [=] { return __real__Znam(size); });
}

void* __wrap__ZnwmSt11align_val_t(std::size_t size, std::align_val_t alignment) {
  assert(static_cast<std::size_t>(alignment) <= canele::ltask::MemoryReserve::cache_line);
  return allocate(size, Kind::aligned, [=] { return __real__ZnwmSt11align_val_t(size, alignment); });
}
// NOLINTEND(bugprone-reserved-identifier)

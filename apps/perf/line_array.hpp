// SPDX-License-Identifier: BSD-3-Clause
//
// LineArray: a vector whose memory begins at a cache line. Any thread.
//
// The buffers of messages: a copy to or from memory at another offset of a line costs up to a tenth more. Where the
// heap puts a buffer depends on the size of all that was allocated before.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace canele::perf {

template <typename Value>
struct AtLines {
  using value_type = Value;
  static constexpr std::align_val_t line{64};
  AtLines() = default;
  template <typename Other>
  AtLines(const AtLines<Other>&) {}

  Value* allocate(std::size_t count) { return static_cast<Value*>(::operator new(count * sizeof(Value), line)); }
  void deallocate(Value* memory, std::size_t) { ::operator delete(memory, line); }
  friend bool operator==(const AtLines&, const AtLines&) { return true; }
};

template <typename Value>
using LineArray = std::vector<Value, AtLines<Value>>;

}  // namespace canele::perf

// SPDX-License-Identifier: BSD-3-Clause
//
// What ltask's sources find under the names std::atomic, std::atomic_thread_fence and std::mutex in the program
// exhaustive_schedules: the same operations, each a step of the Explorer. The compiler includes it before all else.
//
// Who: exhaustive_schedules; nothing that is linked with the engine. Threads: fibers of one.
// Surprise: no macro, and no change in ltask: inside namespace canele, `std` is canele::std, and what that does not
//     replace is found in ::std.
#pragma once

// All that the sources include, before the names below exist.
#include <atomic>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/exhaustive/schedules/explorer.hpp"

namespace canele::std {

using namespace ::std;  // NOLINT: that is its purpose

inline void before(const exhaustive::Access& access, const function<bool()>* ready = nullptr) {
  if (exhaustive::Explorer* const explorer = exhaustive::Explorer::current()) explorer->step(access, ready);
}

template <typename T>
class atomic {
 public:
  constexpr atomic(T value = T()) noexcept : value_(value) {}  // NOLINT: implicit, as the real one
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  T load(memory_order = memory_order_seq_cst) const noexcept {
    before({"load", this, false, false, false});
    const exhaustive::Explorer* const explorer = exhaustive::Explorer::current();
    const uint64_t* const own = explorer != nullptr ? explorer->buffered(this) : nullptr;
    T value = value_;
    if (own != nullptr) memcpy(&value, own, sizeof value);
    return value;
  }
  void store(T value, memory_order order = memory_order_seq_cst) noexcept {
    exhaustive::Explorer* const explorer = exhaustive::Explorer::current();
    if (explorer == nullptr || !explorer->buffers() || order == memory_order_seq_cst) {
      before({"store", this, true, true, false});
      value_ = value;
      return;
    }
    before({"store, not in memory yet", nullptr, false, false, false});
    uint64_t bits = 0;
    static_assert(sizeof value <= sizeof bits);
    memcpy(&bits, &value, sizeof value);
    explorer->put(&value_, bits, sizeof value);
  }
  T exchange(T value, memory_order = memory_order_seq_cst) noexcept {
    before({"exchange", this, true, true, false});
    return ::std::exchange(value_, value);
  }
  bool compare_exchange_strong(T& expected, T desired, memory_order = memory_order_seq_cst,
                               memory_order = memory_order_seq_cst) noexcept {
    before({"compare-exchange", this, true, true, false});
    const bool equal = value_ == expected;
    if (equal) value_ = desired;
    if (!equal) expected = value_;
    return equal;
  }
  bool compare_exchange_weak(T& expected, T desired, memory_order a = memory_order_seq_cst,
                             memory_order b = memory_order_seq_cst) noexcept {
    return compare_exchange_strong(expected, desired, a, b);
  }
  T fetch_add(T more, memory_order = memory_order_seq_cst) noexcept {
    before({"fetch-add", this, true, true, false});
    return ::std::exchange(value_, static_cast<T>(value_ + more));
  }
  T fetch_sub(T less, memory_order = memory_order_seq_cst) noexcept {
    before({"fetch-sub", this, true, true, false});
    return ::std::exchange(value_, static_cast<T>(value_ - less));
  }
  T fetch_or(T bits, memory_order = memory_order_seq_cst) noexcept {
    before({"fetch-or", this, true, true, false});
    return ::std::exchange(value_, static_cast<T>(value_ | bits));
  }
  /// What is in memory, without a step: for conditions, and for checks at the end.
  T now() const noexcept { return value_; }

 private:
  T value_;  // first: Explorer's buffers know a store by the object's address
};

inline void atomic_thread_fence(memory_order order) noexcept {
  if (order == memory_order_seq_cst) before({"fence", nullptr, false, true, false});
}

class mutex {
 public:
  void lock() {
    const function<bool()> free = [this] { return !held_; };
    before({"lock", this, true, true, false}, &free);
    held_ = true;
  }
  void unlock() {
    before({"unlock", this, true, true, false});
    held_ = false;
  }

 private:
  bool held_ = false;
};

}  // namespace canele::std

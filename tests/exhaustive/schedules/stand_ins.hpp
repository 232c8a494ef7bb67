// SPDX-License-Identifier: BSD-3-Clause
//
// What ltask's sources find under the names std::atomic, std::atomic_thread_fence and std::mutex in the program
// exhaustive_schedules: the same operations, each a step of the Explorer. The compiler includes this file before all
// else.
//
// For exhaustive_schedules only, which is not linked with the engine. Its threads are fibers of one. Neither a macro
// nor a change in ltask is needed: inside namespace canele, `std` is canele::std, and a name that it does not replace
// is found in ::std.
#pragma once

// Everything that the sources include, before the names below exist.
#include <atomic>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/exhaustive/schedules/explorer.hpp"

namespace canele::std {

using namespace ::std;  // NOLINT: that is its purpose

/// Returns the explorer that runs a world, or nullptr.
inline exhaustive::Explorer* explorer() { return exhaustive::Explorer::current(); }
inline void before(const exhaustive::Access& access) {
  if (exhaustive::Explorer* const one = explorer()) one->step(access);
}
inline bool with_views() { return explorer() != nullptr && explorer()->views(); }

template <typename T>
class atomic {
 public:
  constexpr atomic(T value = T()) noexcept : value_(value) {}  // NOLINT: implicit, as the real one
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  T load(memory_order order = memory_order_seq_cst) const noexcept {
    before({"load", this, false, false, false, is_sequential(order), false, with_views()});
    if (with_views()) return value_of(explorer()->load(this, bits_of(value_), order));
    const uint64_t* const own = explorer() != nullptr ? explorer()->buffered(this) : nullptr;
    return own != nullptr ? value_of(*own) : value_;
  }
  void store(T value, memory_order order = memory_order_seq_cst) noexcept {
    if (explorer() != nullptr && explorer()->buffers() && !is_sequential(order)) {
      before({"store, not in memory yet", nullptr, false, false, false});
      explorer()->put(&value_, bits_of(value), sizeof value);
      return;
    }
    before({"store", this, true, true, false, is_sequential(order)});
    if (with_views()) explorer()->store(this, bits_of(value_), bits_of(value), order);
    value_ = value;
  }
  T exchange(T value, memory_order order = memory_order_seq_cst) noexcept { return update("exchange", value, order); }
  bool compare_exchange_strong(T& expected, T desired, memory_order success, memory_order failure) noexcept {
    const bool sequential = is_sequential(success) || is_sequential(failure);
    before({"compare-exchange", this, true, true, false, sequential});
    const uint64_t wanted = bits_of(expected);
    uint64_t seen = bits_of(value_);
    if (with_views()) seen = explorer()->compare(this, seen, wanted, failure);
    if (seen != wanted) {
      expected = value_of(seen);
      return false;
    }
    if (with_views()) explorer()->update(this, seen, bits_of(desired), success);
    value_ = desired;
    return true;
  }
  bool compare_exchange_strong(T& expected, T desired, memory_order order = memory_order_seq_cst) noexcept {
    const memory_order failure = order == memory_order_acq_rel   ? memory_order_acquire
                                 : order == memory_order_release ? memory_order_relaxed
                                                                 : order;
    return compare_exchange_strong(expected, desired, order, failure);
  }
  template <typename... Orders>
  bool compare_exchange_weak(T& expected, T desired, Orders... orders) noexcept {
    return compare_exchange_strong(expected, desired, orders...);
  }
  T fetch_add(T more, memory_order order = memory_order_seq_cst) noexcept {
    return update(
        "fetch-add", [more](T value) { return static_cast<T>(value + more); }, order);
  }
  T fetch_sub(T less, memory_order order = memory_order_seq_cst) noexcept {
    return update(
        "fetch-sub", [less](T value) { return static_cast<T>(value - less); }, order);
  }
  T fetch_or(T bits, memory_order order = memory_order_seq_cst) noexcept {
    return update(
        "fetch-or", [bits](T value) { return static_cast<T>(value | bits); }, order);
  }
  T fetch_and(T bits, memory_order order = memory_order_seq_cst) noexcept {
    return update(
        "fetch-and", [bits](T value) { return static_cast<T>(value & bits); }, order);
  }
  /// Returns the value in memory, without a step: for conditions, and for checks at the end.
  T now() const noexcept { return value_; }

 private:
  static_assert(sizeof(T) <= sizeof(uint64_t));
  static bool is_sequential(memory_order order) { return order == memory_order_seq_cst; }
  static uint64_t bits_of(const T& value) {
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
  }
  static T value_of(uint64_t bits) {
    T value;
    memcpy(&value, &bits, sizeof value);
    return value;
  }
  template <typename Change>
  T update(const char* what, Change change, memory_order order) noexcept {
    before({what, this, true, true, false, is_sequential(order)});
    T next;
    if constexpr (is_convertible_v<Change, T>) {
      next = change;
    } else {
      next = change(value_);
    }
    if (with_views()) explorer()->update(this, bits_of(value_), bits_of(next), order);
    return ::std::exchange(value_, next);
  }

  T value_;  // first: Explorer's buffers know a store by the object's address
};

inline void atomic_thread_fence(memory_order order) noexcept {
  const bool sequential = order == memory_order_seq_cst;
  if (sequential) before({"fence", nullptr, false, true, false, true, true});
  if (with_views()) explorer()->fence(order);
}

class mutex {
 public:
  void lock() {
    if (explorer() == nullptr) return;
    const function<bool()> free = [this] { return !held_; };
    explorer()->enter({"lock", this, true, true, false}, &free);
    held_ = true;
  }
  void unlock() {
    if (explorer() == nullptr) return;
    explorer()->leave({"unlock", this, true, true, false});
    held_ = false;
  }

 private:
  bool held_ = false;
};

}  // namespace canele::std

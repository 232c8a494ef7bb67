// SPDX-License-Identifier: BSD-3-Clause
//
// AccessPermit: a word that two processes share. It says whether an origin may access memory of the target by itself,
// and how many of its accesses are under way.
//
// The word lies in a shared line of the target (drivers/driver.hpp). Any thread of the origin calls enter() and
// leave(); the target calls the rest under its engine's lock.
//
//     bits:  63     62 … 32      31 … 0
//            open   generation   accesses under way
//
//     target: open(g) ──▶ … ──▶ close() ──▶ is_idle(g) ──▶ the memory may be freed
//     origin:            enter(g) ─▶ access ─▶ leave()
//
// The generation tells apart the uses of a word that follow each other. Leaving releases, and is_idle() acquires: after
// it, all accesses have ended.
#pragma once

#include <atomic>
#include <cstdint>

namespace canele::comm::one_sided {

class AccessPermit {
 public:
  using Word = std::atomic<std::uint64_t>;
  static constexpr std::uint32_t most_generations = 0x7fff'ffff;

  AccessPermit() = default;
  explicit AccessPermit(Word& word) : word_(&word) {}

  /// Returns true if the access may begin; leave() must follow it.
  bool enter(std::uint32_t generation) const {
    if (word_->fetch_add(1, std::memory_order_acquire) >> 32 == (open_bit >> 32 | generation)) return true;
    leave();
    return false;
  }
  void leave() const { word_->fetch_sub(1, std::memory_order_release); }  // acquire: is_idle()

  void open(std::uint32_t generation) const {
    word_->store(open_bit | std::uint64_t{generation} << 32, std::memory_order_release);  // acquire: enter()
  }
  /// Accesses that have not begun will not begin.
  void close() const { word_->fetch_and(~open_bit, std::memory_order_relaxed); }
  /// Returns true if no access of this generation is under way.
  bool is_idle(std::uint32_t generation) const {
    const std::uint64_t word = word_->load(std::memory_order_acquire);  // release: leave()
    return (word & ~open_bit) >> 32 != generation || (word & under_way) == 0;
  }

 private:
  static constexpr std::uint64_t open_bit = std::uint64_t{1} << 63, under_way = 0xffff'ffff;

  Word* word_ = nullptr;
};

}  // namespace canele::comm::one_sided

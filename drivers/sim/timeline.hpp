// SPDX-License-Identifier: BSD-3-Clause
//
// Timeline: virtual time, and the future events. Also Dice: every random choice of a simulated world.
//
// Used by the sim driver's fabrics and by the simulator, on one thread. Events that are due at one time happen in the
// order of their requests, so that a seed always gives the same run.
//
//   heap_:  (time, number) smallest first ──▶ Action        rejected: a calendar queue; the heap is no bottleneck
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "drivers/sim/counted.hpp"

namespace canele::drivers::sim {

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// Returns a number from 0 to below - 1.
  std::uint64_t under(std::uint64_t below) { return below == 0 ? 0 : next() % below; }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) { return low + under(high - low + 1); }
  bool chance(double probability) {
    return probability > 0 && static_cast<double>(next() >> 11) * 0x1p-53 < probability;
  }
  /// Returns another sequence, determined by this one and `salt`.
  Dice split(std::uint64_t salt) { return Dice(next() ^ (salt * 0xd6e8feb86659fd93u)); }

 private:
  std::uint64_t state_;
};

class Timeline {
 public:
  using Action = std::function<void()>;

  std::uint64_t now() const { return now_; }
  bool empty() const { return heap_.empty(); }
  /// Returns when the next action is due; ~0: there is none.
  std::uint64_t next() const { return heap_.empty() ? ~std::uint64_t{0} : heap_.front().time; }

  /// Schedules an action. `time` may be past: then as soon as possible.
  void at(std::uint64_t time, Action action) {
    heap_.push_back({std::max(time, now_), ++last_number_, std::move(action)});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  void after(std::uint64_t delay, Action action) { at(now_ + delay, std::move(action)); }

  /// Advances to the next action and runs it.
  void step() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    Entry entry = std::move(heap_.back());
    heap_.pop_back();
    now_ = entry.time;
    ++steps_;
    entry.action();
  }
  /// Advances the time without an action, not beyond next().
  void move_to(std::uint64_t time) { now_ = std::max(now_, std::min(time, next())); }
  std::uint64_t steps() const { return steps_; }

 private:
  struct Entry {
    std::uint64_t time, number;
    Action action;
  };
  static bool later(const Entry& a, const Entry& b) { return a.time != b.time ? a.time > b.time : a.number > b.number; }
  std::vector<Entry, Counted<Entry>> heap_;
  std::uint64_t now_ = 0, last_number_ = 0, steps_ = 0;
};

/// Virtual descriptors: numbers that are readable or not. They cannot be mistaken for the system's.
class Bells {
 public:
  static constexpr int first = 1 << 24;
  int make() {
    bells_.push_back({});
    return first + static_cast<int>(bells_.size()) - 1;
  }
  bool readable(int descriptor) const { return at(descriptor).rung; }
  void ring(int descriptor) {
    Bell& bell = bells_[index(descriptor)];
    bell.rung = true;
    if (bell.listener) bell.listener();
  }
  void quiet(int descriptor) { bells_[index(descriptor)].rung = false; }
  void listen(int descriptor, std::function<void()> listener) {
    bells_[index(descriptor)].listener = std::move(listener);
  }

 private:
  struct Bell {
    bool rung = false;
    std::function<void()> listener;
  };
  static std::size_t index(int descriptor) { return static_cast<std::size_t>(descriptor - first); }
  const Bell& at(int descriptor) const { return bells_[index(descriptor)]; }
  std::vector<Bell> bells_;
};

}  // namespace canele::drivers::sim

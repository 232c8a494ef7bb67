// SPDX-License-Identifier: BSD-3-Clause
//
// VirtualTime: a clock that the test moves, and the naps of one on-demand thread on it.
//
// For tests of when an on-demand thread checks. The test's thread moves the clock, the on-demand thread naps; any
// thread reads. Nothing but naps takes time. Naps that end by the time that the test has set follow each other at once,
// each at its own time. After run() the test alone acts, so the result does not depend on the machine.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "tests/unit/ltask/real_platform.hpp"

namespace canele::test {

class VirtualTime final : public RealPlatform {
 public:
  std::uint64_t now_ns() noexcept override { return now_.load(); }
  std::unique_ptr<Alarm> make_alarm() override { return std::make_unique<Nap>(*this); }

  /// Advances the clock. Naps until then may not have ended yet.
  void pass(std::uint64_t ns) {
    const std::lock_guard guard(mutex_);
    given_ += ns;
    if (rests())
      now_ = given_;
    else
      changed_.notify_all();
  }
  /// Advances the clock, and waits until all naps up to then have ended: the on-demand thread is in a longer one. Not
  /// usable if the on-demand thread may sleep elsewhere.
  void run(std::uint64_t ns) {
    pass(ns);
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [&] { return rests(); });
  }
  /// Returns the number of naps that have begun.
  int naps() {
    const std::lock_guard guard(mutex_);
    return naps_;
  }

 private:
  class Nap final : public Alarm {
   public:
    explicit Nap(VirtualTime& clock) : clock_(clock) {}
    void set(std::uint64_t ns) noexcept override {
      const std::lock_guard guard(clock_.mutex_);
      clock_.until_ = clock_.now_ + ns;
      clock_.changed_.notify_all();
    }
    void wait() noexcept override { clock_.nap(); }

   private:
    VirtualTime& clock_;
  };

  bool rests() const { return napping_ && until_ > given_; }
  void nap() {
    std::unique_lock guard(mutex_);
    napping_ = true;
    ++naps_;
    if (rests()) now_ = given_;
    changed_.notify_all();
    changed_.wait(guard, [&] { return !rests(); });
    now_ = std::max(now_.load(), until_);
    napping_ = false;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<std::uint64_t> now_{1};  // 0 means "never" in places
  std::uint64_t given_ = 1, until_ = 0;
  bool napping_ = false;
  int naps_ = 0;
};

}  // namespace canele::test

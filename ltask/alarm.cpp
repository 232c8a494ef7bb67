// SPDX-License-Identifier: BSD-3-Clause
//
// An alarm with park() and unpark(), for platforms without a better one. A thread that moves the time wakes the
// sleeping thread, which goes to sleep again.
#include <atomic>

#include "ltask/platform.hpp"

namespace canele {
namespace {

class ParkedAlarm final : public Alarm {
 public:
  explicit ParkedAlarm(Platform& platform) : platform_(platform) {}

  void set(std::uint64_t ns) noexcept override {
    until_.store(platform_.now_ns() + ns, std::memory_order_release);
    moved_.fetch_add(1, std::memory_order_acq_rel);
    platform_.unpark(moved_);
  }

  void wait() noexcept override {
    for (;;) {
      const std::uint32_t moved = moved_.load(std::memory_order_acquire);
      const std::uint64_t until = until_.load(std::memory_order_acquire), now = platform_.now_ns();
      if (now >= until) return;
      platform_.park(moved_, moved, until - now);
    }
  }

 private:
  Platform& platform_;
  std::atomic<std::uint64_t> until_{0};
  std::atomic<std::uint32_t> moved_{0};
};

}  // namespace

std::unique_ptr<Alarm> Platform::make_alarm() { return std::make_unique<ParkedAlarm>(*this); }

}  // namespace canele

// SPDX-License-Identifier: BSD-3-Clause
//
// Sleeping on descriptors. Threads: see sleeper.hpp.
// Surprise: the doorbell is an eventfd and keeps ringing until it is read, so a wake() before the sleep is not
//     lost.
#include "ltask/sleeper.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace canele::ltask {

Sleeper::Sleeper() : epoll_(epoll_create1(EPOLL_CLOEXEC)), event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (epoll_ < 0 || event_ < 0) {
    error_ = std::string("no descriptor for sleeping: ") + std::strerror(errno) + " (raise the limit, ulimit -n)";
  } else if (!watch(event_)) {
    error_ = std::string("epoll: ") + std::strerror(errno);
  }
}

Sleeper::~Sleeper() {
  if (epoll_ >= 0) close(epoll_);
  if (event_ >= 0) close(event_);
}

bool Sleeper::watch(int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  return epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

bool Sleeper::try_claim() noexcept {
  std::uint32_t expected = unclaimed;
  if (!claim_.compare_exchange_strong(expected, claimed, std::memory_order_seq_cst)) return false;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with occupied()
  return true;
}

void Sleeper::sleep(std::uint64_t timeout_ns) noexcept {
  if (marked_.exchange(false, std::memory_order_seq_cst)) return;
  epoll_event events[8];
  const std::uint64_t ms = (timeout_ns + 999'999) / 1'000'000;
  epoll_wait(epoll_, events, 8, ms > 3'600'000 ? 3'600'000 : static_cast<int>(ms));
}

void Sleeper::release(Platform& platform) noexcept {
  std::uint64_t value;
  [[maybe_unused]] const auto ignored = read(event_, &value, sizeof value);  // empty is fine
  marked_.store(false, std::memory_order_seq_cst);                           // the caller looks for work now
  if (claim_.exchange(unclaimed, std::memory_order_seq_cst) == awaited) platform.unpark(claim_);
}

void Sleeper::await_release(Platform& platform, std::uint64_t timeout_ns) noexcept {
  std::uint32_t expected = claimed;
  claim_.compare_exchange_strong(expected, awaited, std::memory_order_seq_cst);
  if (expected != unclaimed) platform.park(claim_, awaited, timeout_ns);
}

void Sleeper::wake() noexcept {
  marked_.store(true, std::memory_order_seq_cst);
  if (claim_.load(std::memory_order_seq_cst) == unclaimed) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto ignored = write(event_, &one, sizeof one);  // full counts as rung
}

}  // namespace canele::ltask

// SPDX-License-Identifier: BSD-3-Clause
//
// The inner epoll set, and the budget of unauthenticated peers. See accept_limiter.hpp.
//
// A failed epoll_ctl() does not disable the limiter: each turn tries again, and until then the engine does not sleep.
#include "drivers/net/accept_limiter.hpp"

#include <sys/resource.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>

namespace canele::drivers::net {

std::size_t pending_allowed() {
  constexpr rlim_t most = 64, least = 4, share = 8;
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return most;
  return static_cast<std::size_t>(std::clamp(limit.rlim_cur / share, least, most));
}

bool is_out_of_descriptors(int error) { return error == EMFILE || error == ENFILE; }

bool AcceptLimiter::open(int epoll, std::uint64_t tag) {
  epoll_ = epoll;
  tag_ = tag;
  inner_.reset(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = tag_;
  return inner_ && ::epoll_ctl(epoll_, EPOLL_CTL_ADD, inner_.get(), &event) == 0;
}

void AcceptLimiter::close() {
  inner_.reset();
  timer_.reset();
}

bool AcceptLimiter::watch(int fd, std::uint64_t tag) {
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.u64 = tag;
  return ::epoll_ctl(inner_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void AcceptLimiter::forget(int fd) { ::epoll_ctl(inner_.get(), EPOLL_CTL_DEL, fd, nullptr); }

bool AcceptLimiter::mute(bool on) {
  epoll_event event = {};
  event.events = on ? 0u : std::uint32_t{EPOLLIN};
  event.data.u64 = tag_;
  return ::epoll_ctl(epoll_, EPOLL_CTL_MOD, inner_.get(), &event) == 0;
}

bool AcceptLimiter::begin_turn(std::uint64_t now) {
  if (!is_due(now)) return false;
  if (muted_) muted_ = !mute(false);
  if (timer_set_) {
    const itimerspec never = {};
    timer_set_ = ::timerfd_settime(timer_.get(), 0, &never, nullptr) != 0;  // also clears an expiry
  }
  constexpr std::uint64_t ns_per_action = 1'000'000 / per_ms;
  const std::uint64_t earned = (now - refilled_ns_) / ns_per_action;
  if (earned >= static_cast<std::uint64_t>(most_saved - saved_)) {
    saved_ = most_saved;
    refilled_ns_ = now;
  } else {
    saved_ += static_cast<int>(earned);
    refilled_ns_ += earned * ns_per_action;
  }
  acts_ = 0;
  rang_ = rests_ = false;
  return true;
}

int AcceptLimiter::ready(epoll_event* out) { return std::max(0, ::epoll_wait(inner_.get(), out, most_events, 0)); }

void AcceptLimiter::end_turn(std::uint64_t now) {
  if (!rests_ && saved_ > 0) return;
  rest_until_ns_ = now + rest_ns;
  muted_ = mute(true);
}

bool AcceptLimiter::may_sleep(std::uint64_t now) {
  if (!muted_) return true;
  if (now >= rest_until_ns_) return false;
  if (!timer_) {
    timer_.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = tag_;
    if (!timer_ || ::epoll_ctl(epoll_, EPOLL_CTL_ADD, timer_.get(), &event) != 0) {
      timer_.reset();
      return false;
    }
  }
  itimerspec when = {};
  when.it_value.tv_nsec = static_cast<long>(std::min(rest_until_ns_ - now, rest_ns));
  timer_set_ = ::timerfd_settime(timer_.get(), 0, &when, nullptr) == 0;
  return timer_set_;
}

}  // namespace canele::drivers::net

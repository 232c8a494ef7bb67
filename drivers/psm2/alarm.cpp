// SPDX-License-Identifier: BSD-3-Clause
//
// An epoll descriptor with a timer in it. See alarm.hpp.
//
// Stopping the timer makes it unreadable as well, so it is never read.
#include "drivers/psm2/alarm.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>

namespace canele::drivers::psm2 {

bool Alarm::open(std::initializer_list<int> descriptors, std::string* reason) {
  all_ = net::UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  timer_ = net::UniqueFd(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  const auto watched = [this](int descriptor) { return watch(descriptor); };
  if (timer_ && watch(timer_.get()) && std::all_of(descriptors.begin(), descriptors.end(), watched)) return true;
  *reason = "no descriptor to sleep on: " + net::error_text(errno);
  close();
  return false;
}

void Alarm::close() {
  all_.reset();
  timer_.reset();
}

bool Alarm::watch(int descriptor) {
  epoll_event event = {};
  event.events = EPOLLIN;
  return all_ && ::epoll_ctl(all_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

bool Alarm::is_due() const {
  pollfd one = {all_.get(), POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

void Alarm::set(std::uint64_t nanoseconds) {
  itimerspec when = {};
  when.it_value.tv_sec = static_cast<time_t>(nanoseconds / 1'000'000'000);
  when.it_value.tv_nsec = static_cast<long>(nanoseconds % 1'000'000'000);
  ::timerfd_settime(timer_.get(), 0, &when, nullptr);
  set_ = true;
}

void Alarm::clear() {
  if (!set_) return;
  const itimerspec never = {};
  ::timerfd_settime(timer_.get(), 0, &never, nullptr);
  set_ = false;
}

}  // namespace canele::drivers::psm2

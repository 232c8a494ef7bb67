// SPDX-License-Identifier: BSD-3-Clause
//
// The list of sends that wait.
#include "comm/device/send_order.hpp"

#include <algorithm>

namespace canele::comm::device {

bool SendOrder::precedes(const WaitingSend& one, const Session& session, int destination, std::uint64_t tag) {
  const bool meets = one.destination == destination || one.destination == every_rank || destination == every_rank;
  return one.session == &session && meets && (session.order_across_tags || one.tag == tag);
}

bool SendOrder::must_wait_now(const Session& session, int destination, std::uint64_t tag) const {
  return std::any_of(sends_.begin(), sends_.end(),
                     [&](const WaitingSend& one) { return precedes(one, session, destination, tag); });
}

bool SendOrder::must_wait(const Session& session, int destination, std::uint64_t tag) {
  const SpinGuard guard(guard_, platform_);
  return must_wait_now(session, destination, tag);
}

void SendOrder::add(const WaitingSend& send) {
  const SpinGuard guard(guard_, platform_);
  sends_.push_back(send);
}

bool SendOrder::add_if_it_must_wait(const WaitingSend& send) {
  const SpinGuard guard(guard_, platform_);
  if (!must_wait_now(*send.session, send.destination, send.tag)) return false;
  sends_.push_back(send);
  return true;
}

void SendOrder::copied(const Request& request, int error) {
  const SpinGuard guard(guard_, platform_);
  for (WaitingSend& one : sends_) {
    if (one.request != &request || one.state != WaitingSend::State::copying) continue;
    one.state = WaitingSend::State::ready;
    one.error = error;
    return;
  }
}

std::vector<WaitingSend> SendOrder::take_ready() {
  std::vector<WaitingSend> ready;
  std::vector<const WaitingSend*> copying;
  const SpinGuard guard(guard_, platform_);
  for (WaitingSend& one : sends_) {
    const bool blocked = std::any_of(copying.begin(), copying.end(), [&](const WaitingSend* earlier) {
      return precedes(*earlier, *one.session, one.destination, one.tag);
    });
    if (blocked || one.state != WaitingSend::State::ready) {
      copying.push_back(&one);
      continue;
    }
    one.state = WaitingSend::State::leaving;
    ready.push_back(one);
  }
  return ready;
}

void SendOrder::remove_leaving() {
  const SpinGuard guard(guard_, platform_);
  sends_.remove_if([](const WaitingSend& one) { return one.state == WaitingSend::State::leaving; });
}

}  // namespace canele::comm::device

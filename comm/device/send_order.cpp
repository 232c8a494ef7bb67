// SPDX-License-Identifier: BSD-3-Clause
//
// The list of sends that wait.
#include "comm/device/send_order.hpp"

namespace canele::comm::device {

// ---- Predecessors ---------------------------------------------------------------------------------------------------

Predecessors::Key Predecessors::key_of(const Session& session, int destination, std::uint64_t tag) {
  return {&session, destination, session.order_across_tags ? 0 : tag};
}

std::size_t Predecessors::Hash::operator()(const Key& key) const {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;  // spreads what differs in few bits
  std::uint64_t mixed = reinterpret_cast<std::uintptr_t>(key.session) * odd;
  mixed = (mixed ^ static_cast<std::uint32_t>(key.destination)) * odd;
  return static_cast<std::size_t>((mixed ^ key.tag) * odd >> 17);
}

void Predecessors::add(const WaitingSend& send) {
  ++counts_[key_of(*send.session, send.destination, send.tag)];
  ++counts_[key_of(*send.session, some_rank, send.tag)];
}

void Predecessors::remove(const WaitingSend& send) {
  remove(key_of(*send.session, send.destination, send.tag));
  remove(key_of(*send.session, some_rank, send.tag));
}

void Predecessors::remove(const Key& key) {
  const auto found = counts_.find(key);
  if (--found->second == 0) counts_.erase(found);
}

bool Predecessors::keep_back(const Session& session, int destination, std::uint64_t tag) const {
  if (counts_.empty()) return false;
  const auto contains = [&](int rank) { return counts_.contains(key_of(session, rank, tag)); };
  return destination == every_rank ? contains(some_rank) : contains(destination) || contains(every_rank);
}

// ---- SendOrder ------------------------------------------------------------------------------------------------------

bool SendOrder::must_wait(const Session& session, int destination, std::uint64_t tag) {
  const SpinGuard guard(guard_, platform_);
  return waiting_.keep_back(session, destination, tag);
}

void SendOrder::add(const WaitingSend& send) {
  const SpinGuard guard(guard_, platform_);
  insert(send);
}

bool SendOrder::add_if_it_must_wait(const WaitingSend& send) {
  const SpinGuard guard(guard_, platform_);
  if (!waiting_.keep_back(*send.session, send.destination, send.tag)) return false;
  insert(send);
  return true;
}

void SendOrder::insert(const WaitingSend& send) {
  sends_.push_back(send);
  waiting_.add(send);
  may_leave_ |= leaving_ != 0;  // else one that is ready waits for another one's copy
}

void SendOrder::copied(const Request& request, int error) {
  const SpinGuard guard(guard_, platform_);
  for (WaitingSend& one : sends_) {
    if (one.request != &request || one.state != WaitingSend::State::copying) continue;
    one.state = WaitingSend::State::ready;
    one.error = error;
    may_leave_ = true;
    return;
  }
}

std::vector<WaitingSend> SendOrder::take_ready() {
  std::vector<WaitingSend> ready;
  Predecessors kept;
  const SpinGuard guard(guard_, platform_);
  if (!may_leave_) return ready;
  may_leave_ = false;
  for (WaitingSend& one : sends_) {
    if (one.state != WaitingSend::State::ready || kept.keep_back(*one.session, one.destination, one.tag)) {
      kept.add(one);
      continue;
    }
    one.state = WaitingSend::State::leaving;
    ready.push_back(one);
  }
  leaving_ = ready.size();
  return ready;
}

void SendOrder::remove_leaving() {
  const SpinGuard guard(guard_, platform_);
  leaving_ = 0;
  sends_.remove_if([&](const WaitingSend& one) {
    const bool leaves = one.state == WaitingSend::State::leaving;
    if (leaves) waiting_.remove(one);
    return leaves;
  });
}

}  // namespace canele::comm::device

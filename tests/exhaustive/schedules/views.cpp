// SPDX-License-Identifier: BSD-3-Clause
//
// Messages and views. A fence, a lock and a plain object have views, too, but no messages.
#include "tests/exhaustive/schedules/views.hpp"

#include <algorithm>

namespace canele::exhaustive {
namespace {

bool acquires(std::memory_order order) {
  return order != std::memory_order_relaxed && order != std::memory_order_release;
}
bool releases(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}

}  // namespace

void Views::begin() {
  threads_ = {};
  locations_.clear();
  locks_.clear();
  sequential_.clear();
}

void Views::start(int thread, int parent) {
  threads_[index(thread)] = Thread();
  if (parent >= 0) merge(threads_[index(thread)].now, threads_[index(parent)].now);
  threads_[index(thread)].acquired = threads_[index(thread)].now;
}

void Views::merge(View& into, const View& from) {
  if (into.size() < from.size()) into.resize(from.size(), 0);
  for (std::size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

void Views::merge(Thread& into, const Thread& from) {
  merge(into.now, from.now);
  merge(into.acquired, from.now);
}

void Views::raise(View& view, std::size_t location, Stamp stamp) {
  if (view.size() <= location) view.resize(location + 1, 0);
  view[location] = std::max(view[location], stamp);
}

Views::Location& Views::at(const void* address, std::uint64_t bits) {
  const auto [found, is_new] = locations_.try_emplace(address, Location{locations_.size(), {}});
  if (is_new) found->second.messages.push_back({bits, {}});
  return found->second;
}

// ------------------------------------------------------------------------------------------------------ accesses

std::vector<std::uint64_t> Views::readable(int thread, const void* address, std::uint64_t bits,
                                           std::memory_order order) {
  const Location& location = at(address, bits);
  Stamp oldest = of(threads_[index(thread)].now, location.number);
  if (order == std::memory_order_seq_cst) oldest = std::max(oldest, of(sequential_, location.number));
  std::vector<std::uint64_t> values;
  for (std::size_t i = location.messages.size(); i > oldest; --i) values.push_back(location.messages[i - 1].bits);
  return values;
}

std::uint64_t Views::read(int thread, const void* address, std::size_t age, std::memory_order order) {
  const Location& location = locations_.at(address);
  const std::size_t stamp = location.messages.size() - 1 - age;
  see(threads_[index(thread)], location, static_cast<Stamp>(stamp), order);
  return location.messages[stamp].bits;
}

void Views::see(Thread& thread, const Location& location, Stamp stamp, std::memory_order order) {
  raise(thread.now, location.number, stamp);
  raise(thread.acquired, location.number, stamp);
  merge(thread.acquired, location.messages[stamp].view);
  if (acquires(order)) merge(thread.now, location.messages[stamp].view);
}

/// Appends a message. `continues`: it belongs to a read-modify-write, and so to the release sequence that was read.
void Views::append(Thread& thread, Location& location, std::uint64_t bits, std::memory_order order, bool continues) {
  const auto stamp = static_cast<Stamp>(location.messages.size());
  raise(thread.now, location.number, stamp);
  raise(thread.acquired, location.number, stamp);
  Message message{bits, releases(order) ? thread.now : thread.released};
  raise(message.view, location.number, stamp);
  if (continues) merge(message.view, location.messages.back().view);
  location.messages.push_back(std::move(message));
  if (order == std::memory_order_seq_cst) raise(sequential_, location.number, stamp);
}

void Views::write(int thread, const void* address, std::uint64_t before, std::uint64_t bits, std::memory_order order) {
  append(threads_[index(thread)], at(address, before), bits, order, false);
}

void Views::update(int thread, const void* address, std::uint64_t before, std::uint64_t bits, std::memory_order order) {
  Location& location = at(address, before);
  see(threads_[index(thread)], location, static_cast<Stamp>(location.messages.size() - 1), order);
  append(threads_[index(thread)], location, bits, order, true);
}

// -------------------------------------------------------------------------------------------------- fences, locks

void Views::fence(int thread, std::memory_order order) {
  Thread& self = threads_[index(thread)];
  if (acquires(order)) merge(self.now, self.acquired);
  if (order == std::memory_order_seq_cst) {
    merge(self.now, sequential_);
    merge(self.acquired, self.now);
    sequential_ = self.now;
  }
  if (releases(order)) self.released = self.now;
}

void Views::fence_everywhere(int thread, int threads) {
  fence(thread, std::memory_order_seq_cst);
  const View before = sequential_;
  for (int i = 0; i < threads; ++i) {
    if (i == thread) continue;
    merge(threads_[index(i)].now, before);
    fence(i, std::memory_order_acq_rel);
    merge(sequential_, threads_[index(i)].now);
  }
  fence(thread, std::memory_order_seq_cst);
}

void Views::acquire(int thread, const void* object) {
  merge(threads_[index(thread)].now, locks_[object]);
  merge(threads_[index(thread)].acquired, locks_[object]);
}

void Views::release(int thread, const void* object) { merge(locks_[object], threads_[index(thread)].now); }

void Views::catch_up(int thread) {
  for (const auto& [address, location] : locations_) {
    const auto newest = static_cast<Stamp>(std::max<std::size_t>(location.messages.size(), 1) - 1);
    if (!location.messages.empty()) raise(threads_[index(thread)].now, location.number, newest);
  }
  merge(threads_[index(thread)].acquired, threads_[index(thread)].now);
}

bool Views::touch(int thread, const void* object) {
  Thread& self = threads_[index(thread)];
  Location& location = at(object, 0);
  const bool seen = of(self.now, location.number) + 1 == location.messages.size();
  append(self, location, 0, std::memory_order_relaxed, false);
  return seen;
}

}  // namespace canele::exhaustive

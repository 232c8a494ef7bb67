// SPDX-License-Identifier: BSD-3-Clause
//
// Requests that have ended.
#include "apps/sim/tracked_request.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "drivers/sim/timeline.hpp"

namespace canele::sim {
namespace {

constexpr std::size_t period = 64;

/// Returns random bytes, repeated. The library cannot write them by chance.
std::array<std::byte, period> pattern_of(std::uint64_t salt) {
  std::array<std::byte, period> pattern;
  drivers::sim::Dice dice(salt);
  for (std::byte& one : pattern) one = static_cast<std::byte>(dice.next());
  return pattern;
}

}  // namespace

std::uint64_t counter(canele_engine_t* engine, std::string_view name) {
  std::uint64_t value = 0;
  for (int i = 0; i < canele_counter_count(); ++i) {
    if (name == canele_counter_name(i)) canele_counter_read(engine, i, -1, nullptr, &value);
  }
  return value;
}

bool is_done(const canele_request_t& request) {
  canele_status_t ignored;
  return canele_request_status(&request, &ignored) == CANELE_OK;
}

void TrackedRequest::end_by_callback() {
  by_callback_ = true;
  canele_request_on_event(&request, CANELE_EVENT_FINALIZED, on_end, this);
}

void TrackedRequest::on_end(canele_request_t* request, unsigned /*events*/, void* argument) {
  auto& self = *static_cast<TrackedRequest*>(argument);
  if (++self.calls_ > 1) return;
  canele_request_status(request, &self.status_);
  self.fill_pattern(request->opaque, sizeof request->opaque);
}

bool TrackedRequest::done() const { return by_callback_ ? calls_ > 0 : is_done(request); }

canele_status_t TrackedRequest::status() const {
  if (by_callback_) return status_;
  canele_status_t status{};
  canele_request_status(&request, &status);
  return status;
}

void TrackedRequest::fill_pattern(void* memory, std::size_t size) const {
  const auto pattern = pattern_of(salt_);
  for (std::size_t at = 0; at < size; at += period) {
    std::memcpy(static_cast<std::byte*>(memory) + at, pattern.data(), std::min(period, size - at));
  }
}

bool TrackedRequest::untouched(const void* memory, std::size_t size) const {
  const auto pattern = pattern_of(salt_);
  for (std::size_t at = 0; at < size; at += period) {
    const auto* const slice = static_cast<const std::byte*>(memory) + at;
    if (std::memcmp(slice, pattern.data(), std::min(period, size - at)) != 0) return false;
  }
  return true;
}

std::string TrackedRequest::damage() const {
  if (calls_ > 1) return "the callback of a request ran twice";
  if (!untouched(request.opaque, sizeof request.opaque)) return "a request was written to after its end";
  if (!untouched(bytes.data(), bytes.size())) return "a buffer was written to after the end of its request";
  return "";
}

void EndedRequests::add(std::unique_ptr<TrackedRequest> tracked) {
  if (!tracked->ends_by_callback()) tracked->fill_pattern(tracked->request.opaque, sizeof tracked->request.opaque);
  tracked->fill_pattern(tracked->bytes.data(), tracked->bytes.size());
  bytes_ += tracked->bytes.size();
  requests_.push_back(std::move(tracked));
  while (bytes_ > most_bytes || requests_.size() > most_requests) free_oldest();
}

void EndedRequests::free_oldest() {
  const TrackedRequest& oldest = *requests_.front();
  if (const std::string damage = oldest.damage(); !damage.empty()) complain_(damage);
  bytes_ -= oldest.bytes.size();
  requests_.pop_front();
}

void EndedRequests::close() {
  while (!requests_.empty()) free_oldest();
}

}  // namespace canele::sim

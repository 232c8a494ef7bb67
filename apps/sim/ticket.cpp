// SPDX-License-Identifier: BSD-3-Clause
//
// Requests that have ended.
#include "apps/sim/ticket.hpp"

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

bool is_over(const canele_request_t& request) {
  canele_status_t ignored;
  return canele_request_status(&request, &ignored) == CANELE_OK;
}

void Ticket::end_by_callback() {
  by_callback_ = true;
  canele_request_on_event(&request, CANELE_EVENT_FINALIZED, on_end, this);
}

void Ticket::on_end(canele_request_t* request, unsigned /*events*/, void* argument) {
  auto& self = *static_cast<Ticket*>(argument);
  if (++self.calls_ > 1) return;
  canele_request_status(request, &self.status_);
  self.scribble(request->opaque, sizeof request->opaque);
}

bool Ticket::over() const { return by_callback_ ? calls_ > 0 : is_over(request); }

canele_status_t Ticket::status() const {
  if (by_callback_) return status_;
  canele_status_t status{};
  canele_request_status(&request, &status);
  return status;
}

void Ticket::scribble(void* memory, std::size_t size) const {
  const auto pattern = pattern_of(salt_);
  for (std::size_t at = 0; at < size; at += period) {
    std::memcpy(static_cast<std::byte*>(memory) + at, pattern.data(), std::min(period, size - at));
  }
}

bool Ticket::untouched(const void* memory, std::size_t size) const {
  const auto pattern = pattern_of(salt_);
  for (std::size_t at = 0; at < size; at += period) {
    const auto* const part = static_cast<const std::byte*>(memory) + at;
    if (std::memcmp(part, pattern.data(), std::min(period, size - at)) != 0) return false;
  }
  return true;
}

std::string Ticket::harm() const {
  if (calls_ > 1) return "the callback of a request ran twice";
  if (!untouched(request.opaque, sizeof request.opaque)) return "a request was written to after its end";
  if (!untouched(bytes.data(), bytes.size())) return "a buffer was written to after the end of its request";
  return "";
}

void Graveyard::bury(std::unique_ptr<Ticket> ticket) {
  if (!ticket->ends_by_callback()) ticket->scribble(ticket->request.opaque, sizeof ticket->request.opaque);
  ticket->scribble(ticket->bytes.data(), ticket->bytes.size());
  bytes_ += ticket->bytes.size();
  tickets_.push_back(std::move(ticket));
  while (bytes_ > most_bytes || tickets_.size() > most_tickets) free_oldest();
}

void Graveyard::free_oldest() {
  const Ticket& oldest = *tickets_.front();
  if (const std::string harm = oldest.harm(); !harm.empty()) complain_(harm);
  bytes_ -= oldest.bytes.size();
  tickets_.pop_front();
}

void Graveyard::close() {
  while (!tickets_.empty()) free_oldest();
}

}  // namespace canele::sim

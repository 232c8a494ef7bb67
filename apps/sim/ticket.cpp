// SPDX-License-Identifier: BSD-3-Clause
//
// Requests that have ended; see ticket.hpp (who, threads, surprise).
#include "apps/sim/ticket.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace canele::sim {
namespace {

constexpr std::byte scribble{0xA5};

bool all_scribbled(const void* memory, std::size_t size) {
  const auto* bytes = static_cast<const std::byte*>(memory);
  return std::all_of(bytes, bytes + size, [](std::byte one) { return one == scribble; });
}

}  // namespace

void Ticket::end_by_callback() {
  by_callback_ = true;
  canele_request_on_event(&request, CANELE_EVENT_FINALIZED, on_end, this);
}

void Ticket::on_end(canele_request_t* request, unsigned /*events*/, void* argument) {
  auto& self = *static_cast<Ticket*>(argument);
  if (++self.calls_ > 1) return;
  canele_request_status(request, &self.status_);
  self.scribble_request();
}

bool Ticket::over() const {
  if (by_callback_) return calls_ > 0;
  canele_status_t ignored;
  return canele_request_status(&request, &ignored) == CANELE_OK;
}

canele_status_t Ticket::status() const {
  if (by_callback_) return status_;
  canele_status_t status{};
  canele_request_status(&request, &status);
  return status;
}

void Ticket::scribble_request() { std::memset(request.opaque, static_cast<int>(scribble), sizeof request.opaque); }

std::string Ticket::harm() const {
  if (calls_ > 1) return "the callback of a request came twice";
  if (!all_scribbled(request.opaque, sizeof request.opaque)) return "a request was written to after its end";
  if (!all_scribbled(bytes.data(), bytes.size())) return "a buffer was written to after the end of its request";
  return "";
}

void Graveyard::bury(std::unique_ptr<Ticket> ticket) {
  if (!ticket->ends_by_callback()) ticket->scribble_request();
  std::fill(ticket->bytes.begin(), ticket->bytes.end(), scribble);
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

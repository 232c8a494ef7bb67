// SPDX-License-Identifier: BSD-3-Clause
//
// Arrivals.
//
// The number of a message counts those sent before it in its batch. Handlers of kind concurrent may get them in any
// order, so only the sum of the numbers is checked there.
#include "active_arrivals.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

namespace canele::perf {
namespace {

/// Reads the header. Returns false if it is no number.
bool read_number(const canele_am_message_t& message, std::uint64_t* number) {
  if (message.header_length != sizeof *number) return false;
  std::memcpy(number, message.header, sizeof *number);
  return true;
}

}  // namespace

Pattern::Pattern(std::size_t size) : bytes_(std::max<std::size_t>(size, 1)) {
  constexpr std::size_t values = 255, step = 7;
  for (std::size_t i = 0; i < bytes_.size(); ++i)
    bytes_[i] = static_cast<std::byte>(1 + (i * step + i / values) % values);
}

bool Pattern::fits(std::byte* bytes, std::size_t length, bool thorough) const {
  if (length == 0) return true;
  if (!thorough) return bytes[0] == bytes_[0] && bytes[length - 1] == bytes_[length - 1];
  const bool equal = std::memcmp(bytes, bytes_.data(), length) == 0;
  std::memset(bytes, 0, length);
  return equal;
}

Arrivals::Arrivals(Job& job, canele_session_t* session, const ActiveCase& one, const Plan& plan, Function function,
                   void* owner)
    : job_(job),
      session_(session),
      one_(one),
      plan_(plan),
      function_(function),
      owner_(owner),
      pattern_(plan.length),
      places_(std::max<std::size_t>(plan.length, 1) * plan.window) {
  must(canele_session_on_error(session, on_error, this), "canele_session_on_error");
  if (one.kind == ActiveKind::queue) {
    must(canele_am_open(session, plan.id, &queue_, nullptr), "canele_am_open");
    return;
  }
  const canele_am_handler_t handler = {sizeof handler, on_message, on_place, this};
  const bool concurrent = one.kind == ActiveKind::concurrent;
  const canele_am_options_t options = {sizeof options, concurrent ? unsigned{CANELE_AM_CONCURRENT} : 0u, nullptr};
  must(canele_am_register_with(session, plan.id, &handler, &options), "canele_am_register_with");
}

Arrivals::~Arrivals() {
  canele_am_unregister(session_, plan_.id);
  canele_session_on_error(session_, nullptr, nullptr);
}

void Arrivals::begin(bool thorough) {
  thorough_ = thorough;
  count_.store(0, std::memory_order_relaxed);
  sum_.store(0, std::memory_order_relaxed);
  clear();
}

void Arrivals::end(std::uint64_t messages) const {
  check_faults();
  const std::uint64_t count = count_.load(std::memory_order_acquire);  // partner: check(), on any thread
  if (count != messages) {
    throw std::runtime_error(std::to_string(count) +
                             " active messages have come; expected: " + std::to_string(messages));
  }
  const std::uint64_t sum = messages == 0 ? 0 : messages * (messages - 1) / 2;
  if (sum_.load(std::memory_order_relaxed) != sum) throw std::runtime_error("an active message has come twice");
}

void Arrivals::check_faults() const {
  const char* const fault = fault_.load(std::memory_order_acquire);  // partner: note(), on any thread
  if (fault == nullptr) return;
  throw std::runtime_error(std::string(name_of(one_.kind)) + ", " + std::to_string(one_.size) + " bytes, " +
                           name_of(one_.measure) + ": " + fault);
}

void Arrivals::wait() {
  const bool queue = one_.kind == ActiveKind::queue;
  if (!queue && !one_.poll) {
    must(canele_condition_wait(job_.engine.native(), &over_, 1), "canele_condition_wait");
    return;
  }
  while (canele_condition_test(&over_, 1) == 0) {
    queue ? take() : static_cast<void>(canele_progress(job_.engine.native()));
  }
}

void Arrivals::note(const char* fault) {
  const char* none = nullptr;
  fault_.compare_exchange_strong(none, fault, std::memory_order_release);  // partner: check_faults()
}

void Arrivals::require(int code, const char* call) const {
  if (code >= CANELE_OK) return;
  const std::string reason = std::string(call) + ": " + canele_error_string(code) + " (" + canele_error_detail() + ")";
  std::fprintf(stderr, "canele-perf: %s\n", reason.c_str());
  canele_abort(job_.engine.native(), 1, reason.c_str());
}

void Arrivals::on_message(const canele_am_message_t* message, void* arrivals) {
  Arrivals& self = *static_cast<Arrivals*>(arrivals);
  self.function_(*message, self.check(*message), self.owner_);
}

void* Arrivals::on_place(const canele_am_message_t* message, void* arrivals) {
  Arrivals& self = *static_cast<Arrivals*>(arrivals);
  std::uint64_t number = 0;
  if (!read_number(*message, &number) || message->payload_length != self.plan_.length) return nullptr;
  return self.places_.data() + number % self.plan_.window * self.plan_.length;
}

void Arrivals::on_error(canele_session_t*, int, int error, void* arrivals) {
  static_cast<const Arrivals*>(arrivals)->require(error, "an active message");
}

/// Checks a message. Returns the number of those that have come, this one included.
std::uint64_t Arrivals::check(const canele_am_message_t& message) {
  std::uint64_t number = 0;
  if (message.error != CANELE_OK) {
    note(canele_error_string(message.error));
  } else if (!read_number(message, &number) || message.payload_length != plan_.length) {
    note("an active message has a wrong length");
  } else if (!pattern_.fits(static_cast<std::byte*>(message.payload), plan_.length, thorough_)) {
    note("an active message has wrong data");
  }
  if (one_.kind == ActiveKind::concurrent) {
    sum_.fetch_add(number, std::memory_order_relaxed);
    return count_.fetch_add(1, std::memory_order_acq_rel) + 1;  // partner: the other handlers, and end()
  }
  const std::uint64_t before = count_.load(std::memory_order_relaxed);
  if (number != before) note("an active message has come out of order");
  sum_.store(sum_.load(std::memory_order_relaxed) + number, std::memory_order_relaxed);
  count_.store(before + 1, std::memory_order_release);  // partner: end()
  return before + 1;
}

/// Handles and releases what is in the queue.
void Arrivals::take() {
  constexpr int most = 16;
  canele_entry_t entries[most];
  const int taken = canele_queue_take(job_.engine.native(), &queue_, entries, most);
  must(taken < 0 ? taken : CANELE_OK, "canele_queue_take");
  for (int i = 0; i < taken; ++i) {
    on_message(canele_am_message_of(entries[i].payload), this);
    must(canele_am_release(entries[i].payload), "canele_am_release");
  }
}

}  // namespace canele::perf

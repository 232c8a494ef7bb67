// SPDX-License-Identifier: BSD-3-Clause
//
// The checks; see oracle.hpp. Threads: one. Surprise: a message shorter than its number cannot be told from others of
// its size, so those are only counted.
#include "apps/sim/oracle.hpp"

#include <algorithm>
#include <cstring>

namespace canele::sim {
namespace {

constexpr std::size_t number_size = sizeof(std::uint32_t);

std::string about(const PlannedMessage& message) {
  return "message " + std::to_string(message.id) + " (" + std::to_string(message.size) + " bytes from rank " +
         std::to_string(message.source) + " to rank " + std::to_string(message.destination) + ", session " +
         std::to_string(message.session) + ", tag " + std::to_string(message.tag) + ")";
}

std::uint64_t order_tag(const Group& group, std::uint64_t tag) { return group.session == 1 ? 0 : tag; }

}  // namespace

Oracle::Oracle(World& world, const Plan& plan)
    : world_(world), plan_(plan), times_received_(plan.messages.size()), times_sent_(plan.messages.size()) {}

bool Oracle::may_fail(int a, int b) const {
  const std::pair pair(std::min(a, b), std::max(a, b));
  if (world_.is_dead(a) || world_.is_dead(b) || forgiven_.contains(pair) || distrusted_.contains(pair)) return true;
  // Where ranks are lost, the barrier of finalize does not hold the others back.
  const bool apart = world_.deaths() > 0 || !forgiven_.empty() || !distrusted_.empty();
  return apart && (world_.is_leaving(a) || world_.is_leaving(b));
}

const PlannedMessage* Oracle::identify(const Group& group, const canele_status_t& status,
                                       std::span<const std::byte> bytes, std::size_t room) {
  std::uint32_t id = 0;
  if (std::min(status.length, room) < number_size) return nullptr;
  std::memcpy(&id, bytes.data(), number_size);
  const bool known = id < plan_.messages.size() && &plan_.groups[plan_.messages[id].group] == &group;
  if (!known) {
    world_.complain("rank " + std::to_string(group.destination) + " received " + std::to_string(status.length) +
                    " bytes from rank " + std::to_string(status.source) + " that nobody sent to this group");
    return nullptr;
  }
  return &plan_.messages[id];
}

bool Oracle::received(const Group& group, const canele_status_t& status, std::span<const std::byte> bytes,
                      std::size_t room, std::uint64_t posted, bool asked_to_cancel) {
  ++completed;
  world_.trace(status.length * 131 + static_cast<std::uint64_t>(static_cast<unsigned>(status.source)) * 31 +
               status.tag + static_cast<std::uint64_t>(-status.error));
  const std::string where = "rank " + std::to_string(group.destination) + ": a receive ";
  if (status.source >= 0 && distrusts(status.source, group.destination)) return status.error == CANELE_OK;
  if (status.error == CANELE_ECANCELED) {
    if (!asked_to_cancel) world_.complain(where + "was cancelled, but nobody asked for it");
    return false;
  }
  if (status.error != CANELE_OK && status.error != CANELE_ETRUNC) {
    if (status.source < 0 || !may_fail(status.source, group.destination)) {
      world_.complain(where + "ended with " + canele_error_string(status.error) + " though rank " +
                      std::to_string(status.source) + " lives");
    }
    return false;
  }
  const PlannedMessage* const message = identify(group, status, bytes, room);
  for (std::size_t i = room; i < bytes.size(); ++i) {
    if (bytes[i] != guard_byte) {
      world_.complain(where + "wrote beyond its buffer");
      break;
    }
  }
  if ((status.error == CANELE_ETRUNC) != (status.length > room)) {
    world_.complain(where + "of " + std::to_string(room) + " bytes got " + std::to_string(status.length) +
                    " and said " + canele_error_string(status.error));
  }
  if (message == nullptr) {
    const auto number = static_cast<std::uint32_t>(&group - plan_.groups.data());
    ++small_received_[{number, status.source, status.tag, status.length}];
    return true;
  }
  if (message->source != status.source || message->tag != status.tag || message->size != status.length) {
    world_.complain(where + "tells of rank " + std::to_string(status.source) + ", tag " + std::to_string(status.tag) +
                    ", " + std::to_string(status.length) + " bytes; it got " + about(*message));
  }
  if (++times_received_[message->id] > 1) world_.complain(about(*message) + " was received twice");
  check_bytes(*message, bytes, room);
  const auto number = static_cast<std::uint32_t>(&group - plan_.groups.data());
  taken_[{number, message->source, order_tag(group, message->tag)}].push_back({message->id, posted});
  return true;
}

void Oracle::check_bytes(const PlannedMessage& message, std::span<const std::byte> bytes, std::size_t room) {
  for (std::size_t i = number_size; i < std::min(message.size, room); ++i) {
    if (bytes[i] == pattern(message.id, i)) continue;
    world_.complain(about(message) + " has a wrong byte at " + std::to_string(i));
    return;
  }
}

void Oracle::sent(const PlannedMessage& message, const canele_status_t& status) {
  ++completed;
  world_.trace(message.id * 7919u + static_cast<std::uint64_t>(-status.error));
  if (++times_sent_[message.id] > 1) world_.complain(about(message) + " was completed twice at its sender");
  if (status.error != CANELE_OK && !may_fail(message.source, message.destination)) {
    world_.complain("the send of " + about(message) + " ended with " + canele_error_string(status.error));
  }
}

void Oracle::check_order() {
  for (auto& [key, all] : taken_) {
    std::sort(all.begin(), all.end(), [](const Taken& a, const Taken& b) { return a.id < b.id; });
    for (std::size_t i = 1; i < all.size(); ++i) {
      if (all[i - 1].posted < all[i].posted) continue;
      world_.complain(about(plan_.messages[all[i - 1].id]) + " was overtaken: it went to receive " +
                      std::to_string(all[i - 1].posted) + ", and the later " + about(plan_.messages[all[i].id]) +
                      " to receive " + std::to_string(all[i].posted));
    }
  }
}

void Oracle::final_check() {
  check_order();
  for (const PlannedMessage& message : plan_.messages) {
    if (may_fail(message.source, message.destination) || message.size < number_size) continue;
    if (times_received_[message.id] == 0) world_.complain(about(message) + " was never received");
  }
}

}  // namespace canele::sim

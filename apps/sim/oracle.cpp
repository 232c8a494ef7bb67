// SPDX-License-Identifier: BSD-3-Clause
//
// The checks. One thread.
//
// A message shorter than its number cannot be distinguished from others of its size, so those messages are only
// counted.
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

Oracle::Oracle(Environment& environment, const Plan& plan)
    : environment_(environment),
      plan_(plan),
      times_received_(plan.messages.size()),
      times_sent_(plan.messages.size()),
      place_(plan.messages.size()) {
  for (const auto& sends : plan.sends) {
    for (std::size_t i = 0; i < sends.size(); ++i) place_[sends[i]] = i;
  }
}

int& Oracle::count(std::vector<int>& times, std::uint32_t name) const {
  if (name >= times.size()) times.resize((name / plan_.messages.size() + 1) * plan_.messages.size());
  return times[name];
}

bool Oracle::may_fail(int a, int b) const {
  const std::pair pair(std::min(a, b), std::max(a, b));
  if (environment_.is_dead(a) || environment_.is_dead(b) || forgiven_.contains(pair) || distrusted_.contains(pair))
    return true;
  // If ranks are lost, the barrier of finalize does not hold the other ranks back.
  const bool apart = environment_.deaths() > 0 || !forgiven_.empty() || !distrusted_.empty();
  return apart && (environment_.is_disconnecting(a) || environment_.is_disconnecting(b));
}

/// Returns the message of a multicast to this rank, and its own name. All messages of a multicast carry one name.
const PlannedMessage* Oracle::copy_for(const PlannedMessage& message, int destination, std::uint32_t* name) const {
  const PlannedMulticast& multicast = plan_.multicasts[message.multicast - 1];
  for (std::uint32_t i = 0; i < multicast.count; ++i) {
    const PlannedMessage& one = plan_.messages[multicast.first + i];
    if (one.destination != destination) continue;
    *name += one.id - message.id;
    return &one;
  }
  return &message;
}

const PlannedMessage* Oracle::identify(const Group& group, const canele_status_t& status,
                                       std::span<const std::byte> bytes, std::size_t room, std::uint32_t* name) {
  if (std::min(status.length, room) < number_size) return nullptr;
  std::memcpy(name, bytes.data(), number_size);
  const std::size_t all = plan_.messages.size();
  const PlannedMessage* message = all == 0 ? nullptr : &plan_.messages[*name % all];
  if (message != nullptr && message->multicast != 0) message = copy_for(*message, group.destination, name);
  const bool known = message != nullptr && &plan_.groups[message->group] == &group &&
                     *name <= name_of(plan_, *message, environment_.life(message->source));
  if (!known) {
    environment_.complain("rank " + std::to_string(group.destination) + " received " + std::to_string(status.length) +
                          " bytes from rank " + std::to_string(status.source) + " that no rank sent to this group");
    return nullptr;
  }
  return message;
}

bool Oracle::received(const Group& group, const canele_status_t& status, std::span<const std::byte> bytes,
                      std::size_t room, std::uint64_t posted, bool asked_to_cancel) {
  ++completed;
  environment_.trace(status.length * 131 + static_cast<std::uint64_t>(static_cast<unsigned>(status.source)) * 31 +
                     status.tag + static_cast<std::uint64_t>(-status.error));
  const std::string where = "rank " + std::to_string(group.destination) + ": a receive ";
  if (status.source >= 0 && distrusts(status.source, group.destination)) return status.error == CANELE_OK;
  if (status.error == CANELE_ECANCELED) {
    if (!asked_to_cancel) environment_.complain(where + "was cancelled without a request");
    return false;
  }
  if (status.error == CANELE_ENOMEM && lacks_memory && status.source >= 0) {  // its message was lost with it
    dropped_.insert({status.source, group.destination});
    return true;
  }
  if (status.error != CANELE_OK && status.error != CANELE_ETRUNC) {
    if (status.source < 0 || !may_fail(status.source, group.destination)) {
      environment_.complain(where + "ended with " + canele_error_string(status.error) + ", although rank " +
                            std::to_string(status.source) + " lives");
    }
    return false;
  }
  std::uint32_t name = 0;
  const PlannedMessage* const message = identify(group, status, bytes, room, &name);
  for (std::size_t i = room; i < bytes.size(); ++i) {
    if (bytes[i] != guard_byte) {
      environment_.complain(where + "wrote beyond its buffer");
      break;
    }
  }
  if ((status.error == CANELE_ETRUNC) != (status.length > room)) {
    environment_.complain(where + "of " + std::to_string(room) + " bytes got " + std::to_string(status.length) +
                          " and reported " + canele_error_string(status.error));
  }
  if (message == nullptr) {
    const auto number = static_cast<std::uint32_t>(&group - plan_.groups.data());
    ++small_received_[{number, status.source, status.tag, status.length}];
    return true;
  }
  if (message->source != status.source || message->tag != status.tag || message->size != status.length) {
    environment_.complain(where + "reports rank " + std::to_string(status.source) + ", tag " +
                          std::to_string(status.tag) + ", " + std::to_string(status.length) + " bytes; it got " +
                          about(*message));
  }
  if (++count(times_received_, name) > 1) environment_.complain(about(*message) + " was received twice");
  check_bytes(*message, name, bytes, room);
  const int life = static_cast<int>(name / plan_.messages.size());
  check_lives(*message, life);
  const auto number = static_cast<std::uint32_t>(&group - plan_.groups.data());
  const int own_life = environment_.life(group.destination);
  taken_[{number, life, own_life, message->source, order_tag(group, message->tag)}].push_back({message->id, posted});
  return true;
}

void Oracle::check_lives(const PlannedMessage& message, int sender_life) {
  const int receiver_life = environment_.life(message.destination);
  const auto heard = heard_.try_emplace({message.destination, receiver_life, message.source}, sender_life).first;
  const auto by = heard_by_.try_emplace({message.source, sender_life, message.destination}, receiver_life).first;
  if (heard->second == sender_life && by->second == receiver_life) return;
  environment_.complain(about(message) + " crossed lives: its sender had died " + std::to_string(sender_life) +
                        " times, its receiver " + std::to_string(receiver_life) +
                        " times; each had met another life of the other");
}

void Oracle::check_bytes(const PlannedMessage& message, std::uint32_t name, std::span<const std::byte> bytes,
                         std::size_t room) {
  name += content_of(plan_, message).id - message.id;
  for (std::size_t i = number_size; i < std::min(message.size, room); ++i) {
    if (bytes[i] == pattern(name, i)) continue;
    environment_.complain(about(message) + " has a wrong byte at " + std::to_string(i));
    return;
  }
}

void Oracle::sent(const PlannedMessage& message, const canele_status_t& status, bool hopeless) {
  ++completed;
  environment_.trace(message.id * 7919u + static_cast<std::uint64_t>(-status.error));
  if (++count(times_sent_, name_of(plan_, message, environment_.life(message.source))) > 1) {
    environment_.complain(about(message) + " was completed twice at its sender");
  }
  if (hopeless && status.error == CANELE_OK) {
    environment_.complain(about(message) + " was sent without an error to a rank that its sender had lost");
  }
  if (status.error == CANELE_ENOMEM && lacks_memory) return;
  if (status.error != CANELE_OK && !may_fail(message.source, message.destination)) {
    environment_.complain("the send of " + about(message) + " ended with " + canele_error_string(status.error));
  }
}

void Oracle::check_order() {
  for (auto& [key, all] : taken_) {
    std::sort(all.begin(), all.end(), [this](const Taken& a, const Taken& b) { return place_[a.id] < place_[b.id]; });
    for (std::size_t i = 1; i < all.size(); ++i) {
      if (all[i - 1].posted < all[i].posted) continue;
      environment_.complain(about(plan_.messages[all[i - 1].id]) + " was overtaken: it went to receive " +
                            std::to_string(all[i - 1].posted) + ", and the later " + about(plan_.messages[all[i].id]) +
                            " to receive " + std::to_string(all[i].posted));
    }
  }
}

void Oracle::final_check(int at) {
  check_order();
  for (const PlannedMessage& message : plan_.messages) {
    if (at >= 0 && message.destination != at) continue;
    if (may_fail(message.source, message.destination) || message.size < number_size) continue;
    if (dropped_.contains({message.source, message.destination})) continue;
    if (times_received_[message.id] == 0) environment_.complain(about(message) + " was never received");
  }
}

}  // namespace canele::sim

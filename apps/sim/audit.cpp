// SPDX-License-Identifier: BSD-3-Clause
//
// Checks what an engine keeps twice.
#include "apps/sim/audit.hpp"

#include <map>

#include "comm/collectives/group.hpp"
#include "comm/engine/engine.hpp"

namespace canele::sim {
namespace {

std::string differ(const std::string& what, std::uint64_t kept, std::uint64_t counted) {
  if (kept == counted) return "";
  return what + ": " + std::to_string(kept) + " by its counter, " + std::to_string(counted) + " in fact; ";
}

std::string audit_peer(const comm::Peer& peer) {
  const std::string to = " to rank " + std::to_string(peer.rank);
  std::uint64_t queued = 0, sent = 0, early = 0;
  if (peer.backlog != nullptr) peer.backlog->each([&](const strategies::Item& item) { queued += item.size; });
  std::string wrong = differ("bytes queued" + to, peer.queued_bytes, queued);
  if (peer.rail_group == nullptr) return wrong;
  for (const auto& kept : peer.rail_group->sent) sent += kept->bytes.size();
  for (const auto& [number, bytes] : peer.rail_group->early) early += bytes.size();
  wrong += differ("bytes not acknowledged" + to, peer.rail_group->sent_bytes, sent);
  return wrong + differ("bytes that arrived early" + to, peer.rail_group->early_bytes, early);
}

std::uint64_t blocked_to(const comm::Peer& peer) {
  std::uint64_t count = 0;
  const comm::Request* one = peer.blocked_sends != nullptr ? peer.blocked_sends->first : nullptr;
  for (; one != nullptr; one = one->blocked_next) ++count;
  return count;
}

/// Checks the credit: the sum of what is reserved for peers, the charge of stored messages, and that the loan is below
/// the limit.
std::string audit_credit(comm::Engine& engine) {
  std::map<const comm::Peer*, std::uint64_t> stored;
  bool dropping = false;  // a group that has ended holds what it is about to drop
  for (std::uint32_t i = 0; i < engine.sessions.size(); ++i) {
    const auto* const group = static_cast<const comm::collectives::Group*>(engine.sessions.at(i).collectives.get());
    dropping = dropping || (group != nullptr && group->has_ended());
    engine.matcher.each_unexpected(engine.sessions.at(i).match, [&](const comm::UnexpectedNode& node) {
      const auto& message = static_cast<const comm::Message&>(node);
      if (message.charged()) stored[engine.peers[message.source]] += message.credit_cost();
    });
  }
  std::string wrong;
  std::uint64_t blocked = 0;
  std::uint64_t reserved =
      (static_cast<std::uint64_t>(engine.size) - engine.active_peers.size()) * comm::wire::first_credit;
  for (const auto& peer : engine.active_peers) {
    const comm::ReceiveWindow& window = peer->receive_window;
    const std::string from = " of rank " + std::to_string(peer->rank);
    // Only the table gives access to what it stores.
    if (engine.matcher.is_table() && !dropping)
      wrong += differ("credit cost of stored messages" + from, window.stored, stored[peer.get()]);
    if (window.size() > window.reserved) wrong += "more credit was granted than reserved, by the account" + from + "; ";
    reserved += window.reserved;
    blocked += blocked_to(*peer);
  }
  wrong += differ("reserved credit", engine.credit.reserved, reserved);
  wrong += differ("blocked sends", engine.counters.read(comm::Counter::credit_blocked_now), blocked);
  if (reserved > engine.credit.limit) wrong += "more memory is reserved than the limit; ";
  return wrong;
}

}  // namespace

std::string audit(comm::Engine& engine) {
  engine.lock_for_callback();
  std::string wrong;
  for (const auto& peer : engine.active_peers) wrong += audit_peer(*peer);
  std::uint64_t unexpected = 0;
  for (std::uint32_t i = 0; i < engine.sessions.size(); ++i) unexpected += engine.sessions.at(i).match.unexpected;
  wrong += differ("unexpected messages", engine.counters.read(comm::Counter::unexpected_now), unexpected);
  wrong += audit_credit(engine);
  engine.unlock();
  return wrong;
}

}  // namespace canele::sim

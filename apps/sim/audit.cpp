// SPDX-License-Identifier: BSD-3-Clause
//
// What an engine keeps twice; see audit.hpp (who, threads, surprise).
#include "apps/sim/audit.hpp"

#include "comm/core/engine.hpp"

namespace canele::sim {
namespace {

std::string differ(const std::string& what, std::uint64_t kept, std::uint64_t counted) {
  if (kept == counted) return "";
  return what + ": " + std::to_string(kept) + " by its count, " + std::to_string(counted) + " in fact; ";
}

std::string audit_peer(const comm::Peer& peer) {
  const std::string to = " to rank " + std::to_string(peer.rank);
  std::uint64_t queued = 0, sent = 0, early = 0;
  if (peer.backlog != nullptr) peer.backlog->each([&](const strategies::Item& item) { queued += item.size; });
  std::string wrong = differ("bytes queued" + to, peer.queued_bytes, queued);
  if (peer.bundle == nullptr) return wrong;
  for (const auto& kept : peer.bundle->sent) sent += kept->bytes.size();
  for (const auto& [number, bytes] : peer.bundle->early) early += bytes.size();
  wrong += differ("bytes not acknowledged" + to, peer.bundle->sent_bytes, sent);
  return wrong + differ("bytes that came early" + to, peer.bundle->early_bytes, early);
}

}  // namespace

std::string audit(comm::Engine& engine) {
  engine.lock_for_callback();
  std::string wrong;
  for (const auto& peer : engine.active_peers) wrong += audit_peer(*peer);
  std::uint64_t unexpected = 0;
  for (std::uint32_t i = 0; i < engine.sessions.size(); ++i) unexpected += engine.sessions.at(i).match.unexpected;
  wrong += differ("unexpected messages", engine.counters.read(comm::Counter::unexpected_now), unexpected);
  engine.unlock();
  return wrong;
}

}  // namespace canele::sim

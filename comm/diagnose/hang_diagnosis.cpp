// SPDX-License-Identifier: BSD-3-Clause
//
// The sentence of a hang report. The nearest causes come first: progress on this rank, then the connection to the peer,
// then a missing answer of the peer.
#include <algorithm>

#include "comm/diagnose/hang_report.hpp"

namespace canele::comm {
namespace {

using Report = HangReport;
using State = Report::State;

constexpr std::uint64_t second_ns = 1'000'000'000;

std::string rank_text(int rank) { return "rank " + std::to_string(rank); }
std::string for_seconds(std::uint64_t ns) { return "for " + std::to_string(ns / second_ns) + " s"; }

std::string message_text(const Report::Request& request) {
  const std::string tag = request.mask == 0 ? "any tag" : "tag " + std::to_string(request.tag);
  return tag + " of session \"" + request.session + "\"";
}

const Report::Peer* find_peer(const Report& report, int rank) {
  const auto found =
      std::find_if(report.peers.begin(), report.peers.end(), [&](const Report::Peer& one) { return one.rank == rank; });
  return found != report.peers.end() ? &*found : nullptr;
}

/// Returns the request that the report is about. First choice: one that a thread waits for; second choice: a send.
/// Otherwise none, since posted receives may wait.
const Report::Request* subject(const Report& report) {
  const Report::Request* first = nullptr;
  for (const auto* requests : {&report.receives, &report.sends}) {
    if (requests->rows.empty()) continue;
    const Report::Request& row = requests->rows.front();
    if (row.waited_for) return &row;
    if (row.send) first = &row;
  }
  return first;
}

std::string no_progress_here(const Report& report) {
  if (report.pending == 0) return "";
  const bool worker_on = report.worker != Report::WorkerState::off;
  if (!worker_on && report.all_waiters == 0 && report.unpolled_ns >= second_ns) {
    const bool has_on_demand = report.on_demand_progress != Report::OnDemandState::off;
    return "no thread makes progress: there is no worker, and no thread has called wait, test or canele_progress " +
           for_seconds(report.unpolled_ns) +
           (has_on_demand
                ? "; the on-demand progress thread has no core (expected: CANELE_WORKER=auto, which needs no idle one)"
                : " (expected: CANELE_WORKER=auto or bound, which starts a thread)");
  }
  if (report.worker == Report::WorkerState::polling &&
      report.worker_still_ns > std::max(second_ns, 3 * report.interval_ns)) {
    return "the worker has been in the same progress call " + for_seconds(report.worker_still_ns) +
           ": in a callback that does not return, or without a core";
  }
  return "";
}

std::string not_reached(const Report::Peer& peer) {
  if (peer.state == Report::PeerState::resolving) {
    return "the launcher has not given the address of " + rank_text(peer.rank);
  }
  if (peer.state != Report::PeerState::connecting) return "";
  std::string drivers;
  for (const Report::Rail& rail : peer.rails) {
    if (rail.state == Report::RailState::connecting) drivers += (drivers.empty() ? "" : " and ") + rail.driver;
  }
  return rank_text(peer.rank) + " is still connecting by " + drivers +
         ": it is stopped, makes no progress, or the network drops its packets";
}

std::string not_come(const Report& report, const Report::Request& request) {
  const std::string peer = request.peer == Report::any_peer ? "no rank" : rank_text(request.peer);
  if (constexpr std::string_view barrier = "barrier:"; request.session.starts_with(barrier)) {
    return peer + " has not entered the barrier of session \"" + request.session.substr(barrier.size()) +
           "\", or waits there for another rank";
  }
  if (request.session == "group:canele.exchange")
    return peer + " has not called canele_exchange, or waits there for another rank";
  if (constexpr std::string_view group = "group:"; request.session.starts_with(group)) {
    constexpr int slot_bits = 24;  // slot bits of the tag; the number of the collective is above them
    return peer + " has not begun collective " + std::to_string(request.tag >> slot_bits) + " of group \"" +
           request.session.substr(group.size()) + "\", or waits there for another rank";
  }
  if (request.session == "canele.finalize")
    return peer + " has not called canele_finalize, or waits there for another rank";
  for (const Report::Unexpected& other : report.unexpected) {
    if (other.session != request.session) continue;
    return "a thread waits for " + message_text(request) + ", and the message that has arrived there has tag " +
           std::to_string(other.tag) + " of " + rank_text(other.source);
  }
  return peer + (request.peer == Report::any_peer ? " has sent a message with " : " has sent no message with ") +
         message_text(request);
}

bool is_full(const Report::Rail& rail) { return rail.state == Report::RailState::full; }

std::string takes_no_more(const Report::Request& request) {
  return rank_text(request.peer) + " accepts no more packets: it is stopped, makes no progress, or the network is down";
}

/// The peer knows of the message and has not taken it.
std::string not_taken(const Report& report, const Report::Request& request) {
  const Report::Peer* peer = find_peer(report, request.peer);
  if (peer != nullptr && std::any_of(peer->rails.begin(), peer->rails.end(), is_full)) return takes_no_more(request);
  const bool alive = peer != nullptr && request.age_ns > peer->quiet_ns + 2 * report.interval_ns;
  if (alive) {
    return rank_text(request.peer) + " has posted no receive for " + message_text(request) +
           " (other packets have arrived from it since)";
  }
  return rank_text(request.peer) + " has posted no receive for " + message_text(request) +
         ", or is stopped or makes no progress: it has not answered";
}

std::string stuck(const Report& report, const Report::Request& request) {
  const std::string peer = rank_text(request.peer);
  switch (request.state) {
    case State::waits_for_message:
      return not_come(report, request);
    case State::waits_for_credit:
    case State::waits_for_cts:
    case State::waits_for_match:
      return not_taken(report, request);
    case State::queued_rail_full:
    case State::sends_data_rail_full:
    case State::in_packet:
      return takes_no_more(request);
    case State::waits_for_copy:
    case State::waits_for_device:
      return "the device that holds the data of " + message_text(request) +
             " does not copy it, or the event that the data waits for does not happen";
    case State::waits_for_turn:
      return "a send of device memory before " + message_text(request) + " waits for its device";
    case State::sends_data:
    case State::waits_for_end:
    case State::waits_for_data:
      return "the data of " + message_text(request) + " has stopped moving: " + peer +
             " is stopped, makes no progress, or the network is down";
    case State::copying:
      return "the copy of " + message_text(request) + " does not continue: " + peer +
             ", or the copying thread of this rank, is stopped";
    case State::waits_for_address:
    case State::waits_for_connection:
    case State::queued:
      break;
  }
  return "";
}

}  // namespace

std::string diagnose(const Report& report) {
  if (std::string here = no_progress_here(report); !here.empty()) return here;
  const Report::Request* request = subject(report);
  if (request == nullptr) return "";
  if (const Report::Peer* peer = find_peer(report, request->peer); peer != nullptr) {
    if (std::string there = not_reached(*peer); !there.empty()) return there;
  }
  return stuck(report, *request);
}

}  // namespace canele::comm

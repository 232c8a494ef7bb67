// SPDX-License-Identifier: BSD-3-Clause
//
// HangReport: what is pending in an engine and why, as values. Also the table for people that is made of them, and one
// sentence on the cause, where it is clear.
//
// hang_collect fills it under the engine's lock; the text is made afterwards. Reports are values: threads do not share
// them.
//
// The sentence accuses a peer only of what this rank can know. A rank that does not answer may not have called, or may
// be stopped; from here both look alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace canele::comm {

struct HangReport {
  static constexpr std::size_t most_rows = 20;  ///< of each kind; "and N more" tells how many are left out
  static constexpr int any_peer = -1;

  enum class State : std::uint8_t {
    // a send
    waits_for_copy,
    waits_for_turn,
    waits_for_address,
    waits_for_connection,
    waits_for_credit,
    queued,
    queued_rail_full,
    in_packet,
    waits_for_cts,
    waits_for_match,
    sends_data,
    sends_data_rail_full,
    waits_for_device,
    waits_for_end,
    // a receive
    waits_for_message,
    waits_for_data,
    // either
    copying,
  };
  struct Request {
    bool send = false;
    bool waited_for = false;  ///< a thread is blocked until it ends
    const void* address = nullptr;
    int peer = any_peer;
    std::string session;
    std::uint64_t tag = 0, mask = ~std::uint64_t{0};
    std::uint64_t length = 0;
    State state = State::queued;
    std::uint64_t moved = 0, wanted = 0;  ///< bytes, while data moves.
    std::uint64_t age_ns = 0;             ///< at least
  };
  /// Rows: first the requests with a waiting thread, then the oldest. `all`: the number of all requests.
  struct Requests {
    std::vector<Request> rows;
    std::uint64_t all = 0;
  };

  enum class RailState : std::uint8_t { unknown, connecting, up, full, sending, failed };
  struct Rail {
    std::string driver;
    RailState state = RailState::unknown;
  };
  enum class PeerState : std::uint8_t { resolving, connecting, up, disconnected, failed };
  struct Peer {
    int rank = 0;
    PeerState state = PeerState::resolving;
    std::vector<Rail> rails;
    std::uint64_t queued = 0, queued_bytes = 0;  ///< in the backlog.
    std::uint64_t unacknowledged = 0;            ///< packets; counted only with several rails
    std::uint64_t envelopes_out = 0, envelopes_in = 0;
    bool heard = false;          ///< a packet has arrived from it.
    std::uint64_t quiet_ns = 0;  ///< since the last packet; short by at most one interval
  };

  /// Messages that have arrived and that match no receive.
  struct Unexpected {
    std::string session;
    std::uint64_t count = 0;
    int source = 0;  ///< of the oldest
    std::uint64_t tag = 0, length = 0;
  };
  struct Driver {
    std::string label;
    int peers = 0;
    std::uint64_t dry_polls = 0;  ///< since its last event, or since the last sleep of a thread.
    bool heard = false;           ///< it has delivered an event.
    std::uint64_t quiet_ns = 0;   ///< since that event
  };
  enum class WorkerState : std::uint8_t { off, polling, sleeping };
  enum class OnDemandState : std::uint8_t { off, parked, checking, helping };
  enum class WaitKind : std::uint8_t { wait, barrier, finalize, condition, queue, counter };
  struct Waiter {
    WaitKind kind = WaitKind::wait;
    std::uint64_t for_ns = 0;
  };

  int rank = 0, size = 1;
  bool asked_for = false;  ///< by canele_report
  std::uint64_t limit_ns = 0, interval_ns = 0;
  std::uint64_t silent_ns = 0;    ///< since the last packet or completion.
  std::uint64_t unpolled_ns = 0;  ///< since a thread has polled in vain; 0 in a report that was not asked for.
  std::uint64_t pending = 0;      ///< all requests
  Requests sends, receives;
  std::uint64_t matched_unbound = 0;  ///< receives without a buffer that have their message.
  std::uint64_t collectives = 0;      ///< in progress; their messages are among the rows.
  std::vector<Peer> peers;            ///< the peers of the rows first
  std::uint64_t all_peers = 0;
  std::vector<Unexpected> unexpected;
  std::vector<Driver> drivers;
  bool armed = false;  ///< the last thread that went to sleep found nothing and had all drivers armed
  WorkerState worker = WorkerState::off;
  OnDemandState on_demand_progress = OnDemandState::off;
  std::uint64_t worker_heartbeats = 0, worker_still_ns = 0;  ///< how long its heartbeat has not moved.
  std::vector<Waiter> waiters;                               ///< longest first
  std::uint64_t all_waiters = 0;
};

/// Formats the report: several lines, without a final newline.
std::string to_text(const HangReport& report);

/// Returns one sentence on the cause, or "" where none is clear.
std::string diagnose(const HangReport& report);

}  // namespace canele::comm

// SPDX-License-Identifier: BSD-3-Clause
//
// The text of a hang report. Columns are as wide as their longest cell, so a report is complete before any of it is
// written.
#include "comm/diagnose/hang_report.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "comm/observe/text.hpp"

namespace canele::comm {
namespace {

using Report = HangReport;
using State = Report::State;

std::string seconds(std::uint64_t ns) {
  char text[32];
  if (ns < 10'000'000'000) {
    std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(ns / 100'000'000) / 10);
  } else {
    std::snprintf(text, sizeof text, "%llu s", static_cast<unsigned long long>(ns / 1'000'000'000));
  }
  return text;
}

std::string plural(std::uint64_t count, std::string_view word) {
  return std::to_string(count) + " " + std::string(word) + (count == 1 ? "" : "s");
}

std::string tag_text(std::uint64_t tag, std::uint64_t mask) {
  if (mask == 0) return "any";
  const std::string text = tag < 1'000'000'000 ? std::to_string(tag) : hexadecimal(tag);
  return mask == ~std::uint64_t{0} ? text : text + " in bits " + hexadecimal(mask);
}

std::string peer_text(int peer) { return peer == Report::any_peer ? "any" : std::to_string(peer); }

std::string state_text(const Report::Request& request) {
  const std::string moved = std::to_string(request.moved) + " of " + plural(request.wanted, "byte");
  switch (request.state) {
    case State::waits_for_address:
      return "queued, the launcher has not given the peer's address";
    case State::waits_for_connection:
      return "queued, waits for the connection";
    case State::queued:
      return "queued";
    case State::waits_for_credit:
      return "blocked: the receiver's memory for unexpected messages is full";
    case State::queued_rail_full:
      return "queued, rail full";
    case State::waits_for_copy:
      return "not sent, waits for its device to copy the data";
    case State::waits_for_turn:
      return "not sent, waits for an earlier send of device memory";
    case State::in_packet:
      return "in a packet that the driver holds";
    case State::waits_for_cts:
      return "announced, waits for the receiver (CTS or copy)";
    case State::waits_for_match:
      return "sent, waits for its receive";
    case State::sends_data:
      return "sends data, " + moved;
    case State::sends_data_rail_full:
      return "sends data, " + moved + ", rail full";
    case State::waits_for_device:
      return "sends data, " + moved + ", waits for its device to copy the rest";
    case State::waits_for_end:
      return "all data sent, waits for the end of transfer (FIN)";
    case State::waits_for_message:
      return "waits for a message";
    case State::waits_for_data:
      return "waits for data" + (request.wanted != 0 ? ", has " + moved : std::string());
    case State::copying:
      return "large copy under way";
  }
  return "";
}

std::string_view rail_text(Report::RailState state) {
  constexpr std::array<std::string_view, 6> words = {"not chosen yet", "connecting",        "up",
                                                     "full",           "packet on its way", "failed"};
  return words[static_cast<std::size_t>(state)];
}

std::string_view peer_state_text(Report::PeerState state) {
  constexpr std::array<std::string_view, 5> words = {"address requested", "connecting", "up", "has left", "lost"};
  return words[static_cast<std::size_t>(state)];
}

std::string_view wait_text(Report::WaitKind kind) {
  constexpr std::array<std::string_view, 6> words = {"a wait",
                                                     "a barrier",
                                                     "finalize",
                                                     "a condition wait",
                                                     "a wait for a completion queue",
                                                     "a wait for a completion counter"};
  return words[static_cast<std::size_t>(kind)];
}

std::string_view on_demand_text(Report::OnDemandState state) {
  constexpr std::array<std::string_view, 4> words = {"off", "sleeping", "checking", "polling"};
  return words[static_cast<std::size_t>(state)];
}

/// Lines of cells, aligned in columns.
class Table {
 public:
  void add(std::vector<std::string> cells) {
    if (widths_.size() < cells.size()) widths_.resize(cells.size(), 0);
    for (std::size_t i = 0; i < cells.size(); ++i) widths_[i] = std::max(widths_[i], cells[i].size());
    lines_.push_back(std::move(cells));
  }
  void write(std::string& text) const {
    for (const auto& cells : lines_) {
      std::string line = " ";
      for (std::size_t i = 0; i < cells.size(); ++i)
        line += " " + cells[i] + std::string(widths_[i] - cells[i].size() + 1, ' ');
      line.erase(line.find_last_not_of(' ') + 1);
      text += "\n" + line;
    }
  }

 private:
  std::vector<std::vector<std::string>> lines_;
  std::vector<std::size_t> widths_;
};

void and_more(std::string& text, std::uint64_t all, std::size_t shown, std::string_view what) {
  if (all > shown) text += "\n  and " + plural(all - shown, "more " + std::string(what));
}

void write_requests(std::string& text, const Report& report) {
  Table cells;
  cells.add({" ", "request", "peer", "session", "tag", "bytes", "age", "state"});
  for (const auto* requests : {&report.sends, &report.receives}) {
    for (const Report::Request& r : requests->rows) {
      const std::string name =
          (r.send ? "send " : "receive ") + hexadecimal(reinterpret_cast<std::uintptr_t>(r.address));
      cells.add({r.waited_for ? "*" : " ", name, peer_text(r.peer), r.session, tag_text(r.tag, r.mask),
                 std::to_string(r.length), seconds(r.age_ns), state_text(r)});
    }
  }
  if (!report.sends.rows.empty() || !report.receives.rows.empty()) cells.write(text);
  and_more(text, report.sends.all, report.sends.rows.size(), "send");
  and_more(text, report.receives.all, report.receives.rows.size(), "receive");
  if (report.collectives != 0)
    text += "\n  and " + plural(report.collectives, "collective") + ", whose messages belong to a group";
  if (report.matched_unbound != 0)
    text += "\n  and " + plural(report.matched_unbound, "receive") + " matched without a buffer";
}

void write_peers(std::string& text, const Report& report) {
  if (report.peers.empty()) return;
  Table cells;
  cells.add({"peer", "state", "rails", "backlog", "envelopes out, in", "last packet"});
  for (const Report::Peer& peer : report.peers) {
    std::string rails;
    for (const Report::Rail& rail : peer.rails) {
      rails += (rails.empty() ? "" : "; ") + (rail.driver.empty() ? "" : rail.driver + ": ") +
               std::string(rail_text(rail.state));
    }
    if (peer.unacknowledged != 0) rails += "; " + plural(peer.unacknowledged, "packet") + " not acknowledged";
    cells.add({std::to_string(peer.rank), std::string(peer_state_text(peer.state)), rails,
               std::to_string(peer.queued) + " (" + plural(peer.queued_bytes, "byte") + ")",
               std::to_string(peer.envelopes_out) + ", " + std::to_string(peer.envelopes_in),
               !peer.heard ? "none" : seconds(peer.quiet_ns) + " ago"});
  }
  cells.write(text);
  and_more(text, report.all_peers, report.peers.size(), "peer");
}

void write_threads(std::string& text, const Report& report) {
  text += "\n  worker: ";
  if (report.worker == Report::WorkerState::off) {
    text += "none";
  } else {
    text += report.worker == Report::WorkerState::polling ? "polling" : "sleeping";
    text += ", heartbeat " + std::to_string(report.worker_heartbeats) + ", " + seconds(report.worker_still_ns) + " ago";
  }
  if (report.on_demand_progress != Report::OnDemandState::off)
    text += "; on-demand thread: " + std::string(on_demand_text(report.on_demand_progress));
  text += "\n  blocked threads: ";
  if (report.waiters.empty()) text += "none";
  for (std::size_t i = 0; i < report.waiters.size(); ++i) {
    const Report::Waiter& waiter = report.waiters[i];
    text += (i == 0 ? "" : ", ") + std::string(wait_text(waiter.kind)) + " for " + seconds(waiter.for_ns);
  }
  and_more(text, report.all_waiters, report.waiters.size(), "blocked thread");
  for (const Report::Driver& driver : report.drivers) {
    text += "\n  driver " + driver.label + ": " + plural(driver.peers, "peer") + ", " +
            (driver.heard ? "last event " + seconds(driver.quiet_ns) + " ago" : "no event yet") + ", " +
            plural(driver.dry_polls, "poll") + " without an event, " + (report.armed ? "armed" : "not armed") +
            " for the last sleep";
  }
}

void write_unexpected(std::string& text, const Report& report) {
  for (const Report::Unexpected& one : report.unexpected) {
    text += "\n  no receive fits " + plural(one.count, "message") + " in session \"" + one.session +
            "\"; the oldest: tag " + tag_text(one.tag, ~std::uint64_t{0}) + " of rank " + std::to_string(one.source) +
            ", " + plural(one.length, "byte");
  }
}

}  // namespace

std::string to_text(const Report& report) {
  std::string text = report.asked_for ? "report" : "hang report";
  text += ": no packet and no completion for " + seconds(report.silent_ns) + ", " + plural(report.pending, "request") +
          " pending, rank " + std::to_string(report.rank) + " of " + std::to_string(report.size);
  if (!report.asked_for) text += " (CANELE_HANG_REPORT=" + std::to_string(report.limit_ns / 1'000'000'000) + ")";
  write_requests(text, report);
  write_unexpected(text, report);
  write_peers(text, report);
  write_threads(text, report);
  if (const std::string sentence = diagnose(report); !sentence.empty()) text += "\n  likely: " + sentence;
  return text;
}

}  // namespace canele::comm

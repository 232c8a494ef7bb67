// SPDX-License-Identifier: BSD-3-Clause
//
// Session: a name space for tags, and the table that finds it by label.
//
// Who: the engine, under its lock.
// Threads: under the engine's lock.
// Surprise: a session exists as soon as a peer has mentioned its label, also before it is opened here (its
//     messages wait as unexpected) and after it was closed here. When nothing refers to it any more its memory serves
//     the next one; it never goes back to the system, so that a stale handle leads to a session, if to another one.
//
//   label ──▶ Session ◀── number (local, in every match key)     never used twice
//                ▲   └──▶ wire (16 bits, while it is open)       given back at close; an opening raises its epoch
//                └── peer.names, by a number that the peer chose      announced once per peer, before first use
//
//   A session is needed while it is open, keeps messages, or a peer calls it by a number, or a deposit goes by `wire`.
//
// Rejected: to tell peers that a number was given back. Envelopes and announcements to a peer come in one order, so the
// next announcement of the number takes the place of the old one, and nothing sent before can be mistaken.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "comm/matching/matcher.hpp"

namespace canele::comm {

class Engine;
struct Message;

class Session {
 public:
  Engine* engine = nullptr;
  std::string label;
  std::uint32_t number = 0;  ///< local name, of no other session before or after
  std::uint32_t epoch = 0;   ///< of `wire`, raised at each opening: a peer that heard of an earlier one is told again
  std::uint32_t wire = 0;    ///< 16 bits: the index on the wire of what we send; while it is open, or `holds`
  bool open = false;
  bool order_across_tags = false;
  bool has_wire = false;
  std::uint64_t pending = 0;              ///< requests posted and not finalized
  std::uint32_t holds = 0;                ///< deposits of it that have not ended: they outlive its closing
  std::uint32_t mentions = 0;             ///< numbers by which peers call it
  std::int32_t maker = -1;                ///< the peer that mentioned it first, until it is opened here
  std::size_t place = 0;                  ///< in the table
  Session* barrier = nullptr;             ///< internal session of this session's barriers, opened at the first one
  std::shared_ptr<void> active_messages;  ///< api::ActiveMessages, made when they are first used
  std::atomic<Session*> active{nullptr};  ///< internal session of these, read without the lock
  std::vector<std::uint64_t> served;      ///< of such an internal session: ids that have a handler
  MatchSession match;
  std::shared_ptr<void> collectives;  ///< of an internal session: the collectives::Group that it belongs to
  void (*unmatched)(Session&, const Message&) = nullptr;  ///< told of each message that is kept, as nobody waits for it

  bool serves(std::uint64_t tag) const { return std::find(served.begin(), served.end(), tag) != served.end(); }
  /// canele_finalize itself takes what comes in it: see collectives/drain.hpp, and the last barrier.
  bool drained_at_end() const { return label.starts_with("group:") || label == "canele.finalize"; }
  bool needed() const { return open || has_wire || pending + holds + mentions + match.unexpected != 0; }
};

class SessionTable {
 public:
  static constexpr std::size_t most_open = 65'535;       ///< the wire index has 16 bits
  static constexpr std::size_t most_mentioned = 16'384;  ///< by one peer, that are not open here

  /// The session with this label; nullptr: there is none.
  Session* find(std::string_view label) const {
    const auto found = by_label_.find(label);
    return found != by_label_.end() ? found->second : nullptr;
  }
  /// The same; made if there is none.
  Session& find_or_make(Engine& engine, std::string_view label);
  /// Opens it under a wire number. False: all are taken.
  bool open(Session& session);
  /// It is open no longer. It may be gone afterwards.
  void close(Session& session);
  /// After one of the things that need it has ended. It may be gone afterwards.
  void settle(Session& session) {
    if (!session.open && session.has_wire && session.holds == 0) give_back_wire(session);
    if (!session.needed()) recycle(session);
  }

  /// Those that exist, in no order.
  Session& at(std::size_t index) { return *live_[index]; }
  std::size_t size() const { return live_.size(); }
  /// visit(Session&) for each; the one that is visited may be gone afterwards.
  template <typename Visit>
  void each(Visit visit) {
    for (std::size_t i = live_.size(); i-- > 0;) {
      if (i < live_.size()) visit(*live_[i]);
    }
  }
  /// How many have ever existed at once: what the table holds memory for.
  std::size_t capacity() const { return all_.size(); }
  /// Wire numbers that were ever used at once.
  std::size_t wires() const { return epochs_.size(); }
  /// How many sessions exist only because this peer has mentioned them.
  std::size_t made_by(std::int32_t peer) const;
  /// This one does.
  void note_maker(Session& session, std::int32_t peer);

  /// Requests posted and not finalized.
  std::uint64_t pending() const {
    std::uint64_t sum = 0;
    for (const Session* one : live_) sum += one->pending;
    return sum;
  }
  bool has_posted() const {
    return std::any_of(live_.begin(), live_.end(), [](const Session* one) { return one->match.posted != 0; });
  }

 private:
  void give_back_wire(Session& session);
  void recycle(Session& session);

  std::vector<std::unique_ptr<Session>> all_;
  std::vector<Session*> live_, free_;
  std::vector<std::uint32_t> epochs_;      ///< by wire number: of its last opening
  std::vector<std::uint16_t> free_wires_;  ///< the last one is the next to be used, so that tables stay short
  std::uint32_t next_number_ = 0;
  std::unordered_map<std::string_view, Session*> by_label_;  ///< the keys are those of the sessions
  std::unordered_map<std::int32_t, std::size_t> made_by_;
};

}  // namespace canele::comm

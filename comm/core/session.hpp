// SPDX-License-Identifier: BSD-3-Clause
//
// Session: a name space for tags, and the table that finds it by label.
//
// Who: the engine, under its lock.
// Threads: under the engine's lock.
// Surprise: a session exists as soon as a peer has mentioned its label, also before it is opened here (its
//     messages wait as unexpected) and after it was closed here.
//
//   label ──▶ Session ◀── number (local, in every match key)
//                ▲
//                └── peer.names, by a number that the peer chose      announced once per peer, before first use
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "comm/matching/matcher.hpp"

namespace canele::comm {

class Engine;
struct Message;

class Session {
 public:
  Engine* engine = nullptr;
  std::string label;
  std::uint32_t number = 0;  ///< local name, also the wire index of what we send
  std::uint32_t epoch = 0;   ///< raised at each opening: a peer that heard of an earlier one is told again
  bool open = false;
  bool order_across_tags = false;
  std::uint64_t pending = 0;              ///< requests posted and not finalized
  Session* barrier = nullptr;             ///< internal session of this session's barriers, opened at the first one
  std::shared_ptr<void> active_messages;  ///< api::ActiveMessages, made when they are first used
  std::atomic<Session*> active{nullptr};  ///< internal session of these, read without the lock
  MatchSession match;
  std::shared_ptr<void> collectives;  ///< of an internal session: the collectives::Group that it belongs to
  void (*unmatched)(Session&, const Message&) = nullptr;  ///< told of each message that is kept, as nobody waits for it
};

class SessionTable {
 public:
  static constexpr std::size_t most_sessions = 65'535;  ///< the wire index has 16 bits

  /// The session with this label; made if there is none. nullptr if there are too many.
  Session* find_or_make(Engine& engine, std::string_view label) {
    const auto found = by_label_.find(std::string(label));
    if (found != by_label_.end()) return found->second;
    if (sessions_.size() >= most_sessions) return nullptr;
    auto session = std::make_unique<Session>();
    session->engine = &engine;
    session->label = label;
    session->number = static_cast<std::uint32_t>(sessions_.size());
    session->match.id = session->number;
    Session* result = session.get();
    by_label_.emplace(session->label, result);
    sessions_.push_back(std::move(session));
    return result;
  }

  Session& at(std::uint32_t number) { return *sessions_[number]; }
  std::size_t size() const { return sessions_.size(); }
  /// Requests posted and not finalized.
  std::uint64_t pending() const {
    std::uint64_t sum = 0;
    for (const auto& one : sessions_) sum += one->pending;
    return sum;
  }
  bool has_posted() const {
    return std::any_of(sessions_.begin(), sessions_.end(), [](const auto& one) { return one->match.posted != 0; });
  }

 private:
  std::vector<std::unique_ptr<Session>> sessions_;
  std::unordered_map<std::string, Session*> by_label_;
};

}  // namespace canele::comm

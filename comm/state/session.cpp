// SPDX-License-Identifier: BSD-3-Clause
//
// The table of sessions: creation, numbers, and release.
#include "comm/state/session.hpp"

#include <algorithm>
#include <cassert>

namespace canele::comm {

/// Reserves room for `many` elements in all, so that adding them later allocates no memory.
template <typename T>
static void have_room(std::vector<T>& in, std::size_t many) {
  constexpr std::size_t least = 16;
  if (in.capacity() < many) in.reserve(std::max({many, 2 * in.capacity(), least}));
}

Session& SessionTable::find_or_make(Context& context, std::string_view label) {
  if (Session* const known = find(label); known != nullptr) return *known;
  if (free_.empty()) {
    all_.push_back(std::make_unique<Session>());
    have_room(free_, all_.size());  // recycle() then needs no memory
    free_.push_back(all_.back().get());
  }
  have_room(live_, live_.size() + 1);
  Session& session = *free_.back();
  session.label = label;
  by_label_.emplace(session.label, &session);
  free_.pop_back();
  session.context = &context;
  session.number = next_number_++;
  session.match.id = session.number;
  session.place = live_.size();
  live_.push_back(&session);
  return session;
}

bool SessionTable::open(Session& session) {
  assert(!session.open);
  if (!session.has_wire) {
    if (free_wires_.empty()) {
      if (epochs_.size() == most_open) return false;
      have_room(free_wires_, epochs_.size() + 1);  // give_back_wire() then needs no memory
      free_wires_.push_back(static_cast<std::uint16_t>(epochs_.size()));
      epochs_.push_back(0);
    }
    session.wire = free_wires_.back();
    free_wires_.pop_back();
    session.has_wire = true;
  }
  std::uint32_t& epoch = epochs_[session.wire];
  if (++epoch == 0) epoch = 1;  // 0 means that the peer has been told nothing
  session.epoch = epoch;
  session.open = true;
  session.posts_fast = !devices_present;
  if (session.maker >= 0) {
    --made_by_[session.maker];
    session.maker = -1;
  }
  return true;
}

void SessionTable::close(Session& session) {
  session.open = session.posts_fast = false;
  session.on_error = nullptr;
  release_if_unused(session);
}

std::size_t SessionTable::made_by(std::int32_t peer) const {
  const auto found = made_by_.find(peer);
  return found != made_by_.end() ? found->second : 0;
}

void SessionTable::note_maker(Session& session, std::int32_t peer) {
  session.maker = peer;
  ++made_by_[peer];
}

void SessionTable::give_back_wire(Session& session) {
  session.has_wire = false;
  free_wires_.push_back(session.wire);
}

/// Puts the session on the free list, in the state of a new session.
void SessionTable::recycle(Session& session) {
  assert(session.match.posted == 0);
  by_label_.erase(session.label);
  live_.back()->place = session.place;
  live_[session.place] = live_.back();
  live_.pop_back();
  if (session.maker >= 0) --made_by_[session.maker];
  session.maker = -1;
  session.barrier = nullptr;
  session.active_messages.reset();
  session.active.store(nullptr, std::memory_order_relaxed);
  session.served.clear();
  session.collectives.reset();
  session.unmatched = nullptr;
  session.takes_blocked = nullptr;
  std::destroy_at(&session.match);
  std::construct_at(&session.match);
  free_.push_back(&session);
}

}  // namespace canele::comm

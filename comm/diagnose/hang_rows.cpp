// SPDX-License-Identifier: BSD-3-Clause
//
// Finding the pending requests. Even of a million posted receives, only the twenty most telling become rows; the others
// are counted.
#include "comm/diagnose/hang_rows.hpp"

#include <algorithm>

#include "comm/device/devices.hpp"
#include "comm/engine/engine.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "comm/state/staged.hpp"

namespace canele::comm::hang {
namespace {

using State = HangReport::State;

/// What decides whether a request becomes a row, and the data for that row.
struct Candidate {
  bool waited_for;
  std::uint64_t age_ns;
  State state;
  const Request* request;
};

bool more_telling(const Candidate& a, const Candidate& b) {
  return a.waited_for != b.waited_for ? a.waited_for : a.age_ns > b.age_ns;
}

HangReport::Request row_of(const Candidate& one) {
  const Request& request = *one.request;
  HangReport::Request row;
  row.send = request.kind == Request::Kind::send;
  row.waited_for = one.waited_for;
  row.address = &request;
  row.session = request.session->label;
  row.length = request.data.length;
  row.state = one.state;
  row.age_ns = one.age_ns;
  if (one.state == State::waits_for_message) {
    row.peer = request.receive.node.source;
    row.tag = request.receive.node.tag;
    row.mask = request.receive.node.mask;
  } else {
    row.peer = request.rank;
    row.tag = request.status_tag;
  }
  if (one.state != State::copying) {  // while copying, these numbers belong to the copying thread
    row.moved = request.is_blocked() ? 0 : request.moved;
    row.wanted = request.is_blocked() ? 0 : request.expected;
  }
  return row;
}

/// Keeps the most telling of all requests that are added.
class Rows {
 public:
  Rows(const Engine& engine, const std::vector<const void*>& waited, std::uint64_t now_ns)
      : engine_(engine), waited_(waited), now_ns_(now_ns) {}

  void add(const Request& request, State state) {
    ++all_;
    const bool waited_for = std::binary_search(waited_.begin(), waited_.end(), static_cast<const void*>(&request.word));
    const Candidate one{waited_for, engine_.watch.age_ns(request.tick, now_ns_), state, &request};
    if (best_.size() == HangReport::most_rows) {
      if (!more_telling(one, best_.back())) return;
      best_.pop_back();
    }
    best_.insert(std::upper_bound(best_.begin(), best_.end(), one, more_telling), one);
  }
  HangReport::Requests take() const {
    HangReport::Requests requests{{}, all_};
    for (const Candidate& one : best_) requests.rows.push_back(row_of(one));
    return requests;
  }

 private:
  const Engine& engine_;
  const std::vector<const void*>& waited_;
  std::uint64_t now_ns_, all_ = 0;
  std::vector<Candidate> best_;
};

const Request& request_of_item(const strategies::Item& item) {
  return static_cast<const Request&>(*reinterpret_cast<const Direction*>(&item));
}

State state_of_queued(const Peer& peer) {
  switch (peer.state) {
    case Peer::State::resolving:
      return State::waits_for_address;
    case Peer::State::connecting:
      return State::waits_for_connection;
    default:
      return peer.rail->is_full() ? State::queued_rail_full : State::queued;
  }
}

/// Returns the state of a send that has left its backlog and its packet, and that the peer may refer to.
State state_of_named(const Peer& peer, const Request& request) {
  if (!request.rendezvous) return State::waits_for_match;
  if (request.copying) return State::copying;
  if (is_short_of_data(request) && request.moved == request.expected) return State::waits_for_device;
  if (request.expected == 0) return State::waits_for_cts;
  if (request.moved == request.expected) return State::waits_for_end;
  return peer.rail->is_full() ? State::sends_data_rail_full : State::sends_data;
}

/// Adds the sends whose envelope has not left its backlog or its packet. Data transfers wait there as well, but
/// add_named() adds them.
void add_queued(const Engine& engine, Rows& rows) CANELE_UNDER_LOCK {
  for (const auto& peer : engine.active_peers) {
    const auto add = [&](const strategies::Item& item, State state) {
      if (item.kind == strategies::Kind::control || item.kind == strategies::Kind::bulk) return;
      if (!request_of_item(item).is_blocked()) rows.add(request_of_item(item), state);
    };
    const Request* blocked = peer->blocked_sends != nullptr ? peer->blocked_sends->first : nullptr;
    for (; blocked != nullptr; blocked = blocked->blocked_next) rows.add(*blocked, State::waits_for_credit);
    const State state = state_of_queued(*peer);
    peer->backlog->each([&](const strategies::Item& item) { add(item, state); });
    for (const auto& rail : peer->rails) {
      const int count = rail->packet != nullptr && !rail->packet->bulk ? rail->packet->plan.count : 0;
      for (int i = 0; i < count; ++i) add(*rail->packet->plan.items[i], State::in_packet);
    }
  }
}

/// Adds the sends of device memory that are not in the engine yet, and those behind them.
void add_on_devices(Engine& engine, Rows& rows) CANELE_UNDER_LOCK {
  if (!device::present(engine)) return;
  device::of(engine).each_waiting_send([&](const device::WaitingSend& one) {
    const bool copied = one.state != device::WaitingSend::State::copying;
    rows.add(*one.request, copied ? State::waits_for_turn : State::waits_for_copy);
  });
}

void add_named(Engine& engine, Rows& rows) CANELE_UNDER_LOCK {
  engine.sends.each([&](const Request& request) CANELE_UNDER_LOCK {
    if (!request.is_moving()) return;  // its envelope is still in the backlog or in a packet
    rows.add(request, state_of_named(*engine.peers[request.rank], request));
  });
}

void add_posted(Engine& engine, Rows& rows) CANELE_UNDER_LOCK {
  const auto add = [&](PostedNode& node) { rows.add(request_of(node), State::waits_for_message); };
  engine.matcher.each_in_tables(add);
  for (std::uint32_t i = 0; i < engine.sessions.size(); ++i) Matcher::each_in_session(engine.sessions.at(i).match, add);
}

void add_arriving(Engine& engine, Rows& rows) CANELE_UNDER_LOCK {
  engine.transfers.each([&](const Request& request) {
    if (request.receive.node.queued) return;  // posted, with an RTR to its sender
    rows.add(request, request.copying ? State::copying : State::waits_for_data);
  });
  for (const auto& copy : engine.large.all_copies) {
    if (copy->request != nullptr && !copy->claims) rows.add(*copy->request, State::copying);
  }
}

}  // namespace

void collect_requests(Engine& engine, const std::vector<const void*>& waited, std::uint64_t now_ns,
                      HangReport& report) {
  Rows sends(engine, waited, now_ns), receives(engine, waited, now_ns);
  add_on_devices(engine, sends);
  add_queued(engine, sends);
  add_named(engine, sends);
  add_posted(engine, receives);
  add_arriving(engine, receives);
  report.sends = sends.take();
  report.receives = receives.take();
}

}  // namespace canele::comm::hang

// SPDX-License-Identifier: BSD-3-Clause
//
// Flow control, the receiver's half.
//
// The pool counts a matched message as reserved until its peer's window is checked again: an upper bound is enough.
#include "comm/protocol/credit_receiver.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "comm/link/queue.hpp"
#include "comm/protocol/send.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::credit_receiver {
namespace {

/// Gives the pool back what has been matched since the last check.
void release_matched(CreditPool& pool, ReceiveWindow& a) {
  assert(a.reserved >= a.size() && pool.reserved >= a.reserved);
  pool.reserved -= a.reserved - a.size();
  a.reserved = a.size();
}

void wait_in_queue(CreditPool& pool, Peer& peer) {
  if (std::exchange(peer.receive_window.in_queue, true)) return;
  CANELE_COVER(credit_pool_dry);
  pool.queue.push_back(&peer);
}

/// Returns the least credit that is granted. A smaller grant would take as many messages as it lets through.
std::uint64_t worth_a_message(const ReceiveWindow& a) { return a.target / 8; }

/// Returns whether the sender can send nothing more before a message that is kept here is taken. Neither the sender nor
/// the pool may have more.
bool is_stuck(const CreditPool& pool, const ReceiveWindow& a) {
  return a.sender_blocked && (a.in_queue || (a.target >= pool.per_peer && a.size() + worth_a_message(a) > a.target));
}

void send_solicit(Context& context, Peer& peer, const Wanted& wanted, bool probe) CANELE_UNDER_LOCK {
  Asking& asking = *peer.asking;
  const Session& session = *wanted.session;
  send_path::announce(context, peer, session);  // its index there is ours
  const wire::Solicit solicitation{wanted.tag & wanted.mask, wanted.mask, probe ? 1u : 0u, 0};
  link::send_control(context, peer,
                     {.type = wire::Type::solicit,
                      .tag = asking.solicit_id,
                      .seq = asking.episode,
                      .session = static_cast<std::uint16_t>(session.wire),
                      .payload = link::bytes_of(solicitation)});
}

bool is_open(const Wanted& wanted) { return wanted.session->number == wanted.number && wanted.session->open; }

/// Returns whether no receive waits any more for what was noted. (Whether a receive with a mask does is not looked up.)
bool is_stale(Context& context, const Peer& peer, const Wanted& wanted) CANELE_UNDER_LOCK {
  if (!is_open(wanted)) return true;
  if (wanted.mask != ~std::uint64_t{0}) return false;
  return context.matcher.peek(wanted.session->match, wanted.tag, peer.rank) == nullptr;
}

void drop_stale(Context& context, const Peer& peer, Asking& asking, int most) CANELE_UNDER_LOCK {
  for (; most > 0 && !asking.receives.empty() && is_stale(context, peer, asking.receives.front()); --most)
    asking.receives.pop_front();
}

/// Drops solicitations of closed sessions from the front, so that the next to be asked are of open ones.
void drop_closed(Asking& asking) {
  while (!asking.receives.empty() && !is_open(asking.receives.front())) asking.receives.pop_front();
  while (asking.probes.size() > asking.probes_out && !is_open(asking.probes[asking.probes_out]))
    asking.probes.erase(asking.probes.begin() + static_cast<std::ptrdiff_t>(asking.probes_out));
}

/// Asks what has not been asked yet, as long as more solicitations may be out. A solicit id says which receives have
/// been asked for: none that is still listed here.
void ask_more(Context& context, Peer& peer) CANELE_UNDER_LOCK {
  Asking& a = *peer.asking;
  drop_stale(context, peer, a, Asking::most_out);
  for (std::uint64_t out = a.asked - a.answered; out < Asking::most_out; ++out, ++a.asked) {
    drop_closed(a);
    const bool probe = a.probes.size() > a.probes_out && (a.asked % 2 == 0 || a.receives.empty());
    if (std::exchange(a.all, false)) {
      CANELE_COVER(all_solicited);
      a.receives.clear();
      a.solicit_id = context.matcher.take_post_order();
      link::send_control(context, peer, {.type = wire::Type::solicit, .tag = a.solicit_id, .seq = a.episode});
    } else if (probe) {
      CANELE_COVER_RARE(blocked_solicited_by_probe);
      send_solicit(context, peer, a.probes[a.probes_out++], true);
      a.out_for_probes |= std::uint64_t{1} << out;
      ++a.may_store;
    } else if (!a.receives.empty()) {
      CANELE_COVER(blocked_solicited);
      a.solicit_id = a.receives.front().solicit_id;
      send_solicit(context, peer, a.receives.front(), false);
      a.receives.pop_front();
    } else {
      return;
    }
  }
}

/// Notes what is wanted until its sender is asked for it. If too much is noted, or there is no memory, the sender is
/// asked for everything.
void note_wanted(Context& context, const Peer& peer, const Wanted& wanted) CANELE_UNDER_LOCK {
  Asking& asking = *peer.asking;
  if (asking.all) return;
  if (!asking.receives.empty()) {
    Wanted& newest = asking.receives.back();
    if (newest.number == wanted.number && newest.tag == wanted.tag && newest.mask == wanted.mask) {
      newest.solicit_id = wanted.solicit_id;
      return;
    }
  }
  drop_stale(context, peer, asking, 2);
  asking.all = asking.receives.size() == Asking::most_waiting;
  try {
    if (!asking.all) asking.receives.push_back(wanted);
  } catch (const std::bad_alloc&) {
    asking.all = true;
  }
  if (asking.all) asking.receives.clear();
}

void note_probe(Asking& asking, const Wanted& probe) {
  const auto same = [&](const Wanted& one) {
    return one.number == probe.number && one.tag == probe.tag && one.mask == probe.mask;
  };
  if (asking.probes.size() == Asking::most_probes || std::any_of(asking.probes.begin(), asking.probes.end(), same))
    return;
  try {
    asking.probes.push_back(probe);
  } catch (const std::bad_alloc&) {  // the probe will come again
  }
}

/// Forgets all solicitations, when the sender has no blocked messages any more.
void forget(Asking& asking) {
  asking.receives.clear();
  asking.probes.clear();
  asking.probes_out = asking.may_store = 0;
  asking.out_for_probes = 0;
  asking.all = false;
}

/// Fills the window up to its target, as far as the pool allows.
void refill(Context& context, Peer& peer) CANELE_UNDER_LOCK {
  ReceiveWindow& a = peer.receive_window;
  CreditPool& pool = context.credit;
  release_matched(pool, a);
  a.target = std::max(a.target, pool.first_target);
  if (a.sender_blocked && a.reserved + worth_a_message(a) > a.target) {
    a.target = std::max(a.target, std::min(2 * a.target, pool.per_peer));
  }
  const std::uint64_t want = a.target - std::min(a.target, a.reserved);
  if (want >= worth_a_message(a)) {
    const std::uint64_t grant = std::min(want, pool.room());
    if (grant < std::min(want, ReceiveWindow::least_grant)) {
      wait_in_queue(pool, peer);
    } else {
      CANELE_COVER(credit_granted);
      a.granted += grant;
      a.reserved += grant;
      pool.reserved += grant;
      link::send_control(context, peer, {.type = wire::Type::credit, .tag = a.granted});
    }
  }
  a.set_next_check();
  if (is_stuck(pool, a)) ask_more(context, peer);
}

/// Serves the peers that wait for the pool, in their order, while it has room.
void serve_queue(Context& context) CANELE_UNDER_LOCK {
  CreditPool& pool = context.credit;
  while (!pool.queue.empty() && pool.room() >= ReceiveWindow::least_grant) {
    Peer& peer = *pool.queue.front();
    pool.queue.erase(pool.queue.begin());
    peer.receive_window.in_queue = false;
    refill(context, peer);
    if (peer.receive_window.in_queue) return;
  }
}

}  // namespace

Verdict update_window(Context& context, Peer& peer) {
  ReceiveWindow& a = peer.receive_window;
  if (a.arrived > a.granted) return Verdict::violation("it sent more than it was granted");
  a.next_check = a.granted;
  context.credit.windows_due.push_back(&peer);
  context.mark_backlogged(peer);
  return Verdict::ok();
}

void refill_all(Context& context) {
  std::vector<Peer*>& windows_due = context.credit.windows_due;
  for (Peer* peer : windows_due) {
    if (!peer->disconnected()) refill(context, *peer);
  }
  windows_due.clear();
}

void stored(Peer& peer, std::uint64_t cost) {
  peer.receive_window.stored += cost;
  peer.receive_window.set_next_check();
}

void regrant(Context& context, Peer& peer) {
  if (!peer.disconnected() && peer.receive_window.arrived > peer.receive_window.next_check) refill(context, peer);
  if (!context.credit.queue.empty()) serve_queue(context);
}

Verdict on_blocked(Context& context, Peer& peer, bool is_blocked, std::uint32_t episode) {
  ReceiveWindow& a = peer.receive_window;
  CreditPool& pool = context.credit;
  if (a.sender_blocked == is_blocked) return Verdict::ok();
  if (!is_blocked) {
    CANELE_COVER(sender_unblocked);
    a.sender_blocked = false;
    std::erase(pool.blocked_senders, &peer);
    forget(*peer.asking);
    a.set_next_check();
    return Verdict::ok();
  }
  CANELE_COVER(sender_blocked);
  try {
    if (peer.asking == nullptr) peer.asking = std::make_unique<Asking>();
    pool.blocked_senders.push_back(&peer);
  } catch (const std::bad_alloc&) {
    return Verdict::retry();
  }
  a.sender_blocked = true;
  Asking& asking = *peer.asking;
  asking.asked = asking.answered = 0;
  asking.solicit_id = 1;
  asking.episode = episode;
  asking.all = context.sessions.wants_messages();
  refill(context, peer);
  return Verdict::ok();
}

Verdict on_solicit_done(Context& context, Peer& peer, std::uint64_t solicitations, std::uint32_t episode) {
  if (!peer.receive_window.sender_blocked || peer.asking->episode != episode)
    return Verdict::ok();  // the answer is of an earlier time
  Asking& asking = *peer.asking;
  if (solicitations < asking.answered || solicitations > asking.asked)
    return Verdict::violation("it completes what was not solicited");
  for (; asking.answered < solicitations; ++asking.answered, asking.out_for_probes >>= 1) {
    if ((asking.out_for_probes & 1) == 0) continue;
    asking.probes.pop_front();
    --asking.probes_out;
  }
  asking.may_store = std::min(asking.may_store, asking.probes_out);
  refill(context, peer);
  return Verdict::ok();
}

void ask(Context& context, Session& session, const Pattern& pattern) {
  for (Peer* peer : context.credit.blocked_senders) {
    if (pattern.source != rank_any && peer->rank != pattern.source) continue;
    const std::uint64_t id = context.matcher.take_post_order();
    note_wanted(context, *peer, {pattern.tag, pattern.mask, id, &session, session.number});
    refill(context, *peer);
  }
}

void missed(Context& context, Session& session, int source, std::uint64_t tag, std::uint64_t mask) {
  for (Peer* peer : context.credit.blocked_senders) {
    if (source != rank_any && peer->rank != source) continue;
    note_probe(*peer->asking, {tag & mask, mask, 0, &session, session.number});
    refill(context, *peer);
  }
}

bool matches_pending_probe(Peer& peer) {
  if (peer.asking->may_store == 0) return false;
  CANELE_COVER_RARE(blocked_envelope_kept_for_probe);
  --peer.asking->may_store;
  return true;
}

Verdict check(Peer& peer, const wire::BlockedEnvelope& blocked, std::uint32_t batch) {
  ReceiveWindow& a = peer.receive_window;
  if (!a.sender_blocked)
    return Verdict::violation("it sends a blocked envelope and has not reported that it is blocked");
  if (blocked.count == 0 || blocked.count > BlockedSends::most_advertised || blocked.index >= blocked.count ||
      blocked.solicit_id == 0) {
    return Verdict::violation("a blocked envelope has a wrong place in its batch");
  }
  if (a.seen != 0 && a.batch != batch)
    return Verdict::violation("it began a batch of blocked envelopes before the end of the last");
  a.batch = batch;
  if ((a.seen >> blocked.index & 1) != 0) return Verdict::violation("it sends a blocked envelope twice in a batch");
  return Verdict::ok();
}

void note_blocked_envelope(Context& context, Peer& peer, const wire::BlockedEnvelope& blocked, bool taken) {
  ReceiveWindow& a = peer.receive_window;
  a.seen |= std::uint64_t{1} << blocked.index;
  if (taken) a.taken |= std::uint64_t{1} << blocked.index;
  if (std::popcount(a.seen) < blocked.count) return;
  CANELE_COVER(blocked_replied);
  a.seen = 0;
  link::send_control(context, peer,
                     {.type = wire::Type::blocked_reply, .tag = std::exchange(a.taken, 0), .seq = a.batch});
}

void on_disconnected(Context& context, Peer& peer) {
  ReceiveWindow& a = peer.receive_window;
  CreditPool& pool = context.credit;
  a.granted = a.arrived;
  release_matched(pool, a);
  a.next_check = a.granted;
  a.sender_blocked = a.in_queue = false;
  if (peer.asking != nullptr) forget(*peer.asking);
  std::erase(pool.blocked_senders, &peer);
  std::erase(pool.queue, &peer);
}

}  // namespace canele::comm::credit_receiver

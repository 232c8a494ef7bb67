// SPDX-License-Identifier: BSD-3-Clause
//
// Flow control, the receiver's half.
//
// The pool counts a matched message as lent until its peer is looked at again: an upper bound is enough.
#include "comm/protocol/credit_receiver.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "comm/link/queue.hpp"
#include "comm/protocol/send.hpp"
#include "ltask/mark.hpp"

namespace canele::comm::flow_in {
namespace {

/// Gives the pool back what has been matched since the peer was looked at last.
void settle(CreditPool& pool, Allowance& a) {
  assert(a.lent >= a.window() && pool.lent >= a.lent);
  pool.lent -= a.lent - a.window();
  a.lent = a.window();
}

void wait_in_queue(CreditPool& pool, Peer& peer) {
  if (std::exchange(peer.allowance.in_queue, true)) return;
  CANELE_MARK(credit_pool_dry);
  pool.queue.push_back(&peer);
}

/// Returns the least charge that is granted. A smaller grant would take as many messages as it lets through.
std::uint64_t worth_a_message(const Allowance& a) { return a.target / 8; }

/// Returns whether the sender can send nothing more before a message that is kept here is taken. Neither the sender nor
/// the pool may have more.
bool is_stuck(const CreditPool& pool, const Allowance& a) {
  return a.starving && (a.in_queue || (a.target >= pool.per_peer && a.window() + worth_a_message(a) > a.target));
}

void resume(Context& context, Peer& peer, const Wanted& wanted, bool probe) {
  Asking& asking = *peer.asking;
  const Session& session = *wanted.session;
  send_path::announce(context, peer, session);  // its index there is ours
  const wire::Resume question{wanted.tag & wanted.mask, wanted.mask, probe ? 1u : 0u, 0};
  link::control(context, peer, wire::Type::resume, asking.stamp, asking.episode,
                static_cast<std::uint16_t>(session.wire), &question, sizeof question);
}

bool is_open(const Wanted& wanted) { return wanted.session->number == wanted.number && wanted.session->open; }

/// Returns whether no receive waits any more for what was noted. (Whether a receive with a mask does is not looked up.)
bool is_stale(Context& context, const Peer& peer, const Wanted& wanted) {
  if (!is_open(wanted)) return true;
  if (wanted.mask != ~std::uint64_t{0}) return false;
  return context.matcher.peek(wanted.session->match, wanted.tag, peer.rank) == nullptr;
}

void drop_stale(Context& context, const Peer& peer, Asking& asking, int most) {
  for (; most > 0 && !asking.receives.empty() && is_stale(context, peer, asking.receives.front()); --most)
    asking.receives.pop_front();
}

/// Drops questions of closed sessions from the front, so that the next to be asked are of open ones.
void drop_closed(Asking& asking) {
  while (!asking.receives.empty() && !is_open(asking.receives.front())) asking.receives.pop_front();
  while (asking.probes.size() > asking.probes_out && !is_open(asking.probes[asking.probes_out]))
    asking.probes.erase(asking.probes.begin() + static_cast<std::ptrdiff_t>(asking.probes_out));
}

/// Asks what has not been asked yet, as long as more questions may be out. A stamp says which receives have been asked
/// for: none that is still listed here.
void ask_more(Context& context, Peer& peer) {
  Asking& a = *peer.asking;
  drop_stale(context, peer, a, Asking::most_out);
  for (std::uint64_t out = a.asked - a.answered; out < Asking::most_out; ++out, ++a.asked) {
    drop_closed(a);
    const bool probe = a.probes.size() > a.probes_out && (a.asked % 2 == 0 || a.receives.empty());
    if (std::exchange(a.all, false)) {
      CANELE_MARK(everything_asked_for);
      a.receives.clear();
      a.stamp = context.matcher.take_stamp();
      link::control(context, peer, wire::Type::resume, a.stamp, a.episode, 0, nullptr, 0);
    } else if (probe) {
      CANELE_RARE_MARK(withheld_asked_for_by_probe);
      resume(context, peer, a.probes[a.probes_out++], true);
      a.out_for_probes |= std::uint64_t{1} << out;
      ++a.may_keep;
    } else if (!a.receives.empty()) {
      CANELE_MARK(withheld_asked_for);
      a.stamp = a.receives.front().stamp;
      resume(context, peer, a.receives.front(), false);
      a.receives.pop_front();
    } else {
      return;
    }
  }
}

/// Notes a receive until its sender is asked for it. With too many receives, or no memory, the sender is asked for
/// everything.
void note(Context& context, const Peer& peer, const PostedNode& receive) {
  Asking& asking = *peer.asking;
  Session* const session = request_of(receive).session;
  const Wanted wanted{receive.tag, receive.mask, context.matcher.take_stamp(), session, session->number};
  if (asking.all) return;
  if (!asking.receives.empty()) {
    Wanted& newest = asking.receives.back();
    if (newest.number == wanted.number && newest.tag == wanted.tag && newest.mask == wanted.mask) {
      newest.stamp = wanted.stamp;
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

void note(Asking& asking, const Wanted& probe) {
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

/// Forgets all questions, when the sender withholds nothing any more.
void forget(Asking& asking) {
  asking.receives.clear();
  asking.probes.clear();
  asking.probes_out = asking.may_keep = 0;
  asking.out_for_probes = 0;
  asking.all = false;
}

/// Fills the window up to its target, as far as the pool allows.
void refill(Context& context, Peer& peer) {
  Allowance& a = peer.allowance;
  CreditPool& pool = context.credit;
  settle(pool, a);
  a.target = std::max(a.target, pool.first_target);
  if (a.starving && a.lent + worth_a_message(a) > a.target) {
    a.target = std::max(a.target, std::min(2 * a.target, pool.per_peer));
  }
  const std::uint64_t want = a.target - std::min(a.target, a.lent);
  if (want >= worth_a_message(a)) {
    const std::uint64_t grant = std::min(want, pool.room());
    if (grant < std::min(want, Allowance::least_grant)) {
      wait_in_queue(pool, peer);
    } else {
      CANELE_MARK(credit_granted);
      a.granted += grant;
      a.lent += grant;
      pool.lent += grant;
      link::control(context, peer, wire::Type::credit, a.granted, 0, 0, nullptr, 0);
    }
  }
  a.set_next_look();
  if (is_stuck(pool, a)) ask_more(context, peer);
}

/// Serves the peers that wait for the pool, in their order, while it has room.
void serve_queue(Context& context) {
  CreditPool& pool = context.credit;
  while (!pool.queue.empty() && pool.room() >= Allowance::least_grant) {
    Peer& peer = *pool.queue.front();
    pool.queue.erase(pool.queue.begin());
    peer.allowance.in_queue = false;
    refill(context, peer);
    if (peer.allowance.in_queue) return;
  }
}

}  // namespace

const char* look(Context& context, Peer& peer) {
  Allowance& a = peer.allowance;
  if (a.arrived > a.granted) return "it sent more than it was granted";
  a.next_look = a.granted;
  context.credit.looks.push_back(&peer);
  context.mark_dirty(peer);
  return nullptr;
}

void refill_all(Context& context) {
  std::vector<Peer*>& looks = context.credit.looks;
  for (Peer* peer : looks) {
    if (!peer->gone()) refill(context, *peer);
  }
  looks.clear();
}

void stored(Peer& peer, std::uint64_t price) {
  peer.allowance.stored += price;
  peer.allowance.set_next_look();
}

void grant_again(Context& context, Peer& peer) {
  if (!peer.gone() && peer.allowance.arrived > peer.allowance.next_look) refill(context, peer);
  if (!context.credit.queue.empty()) serve_queue(context);
}

bool on_withheld(Context& context, Peer& peer, bool withholds, std::uint32_t episode) {
  Allowance& a = peer.allowance;
  CreditPool& pool = context.credit;
  if (a.starving == withholds) return true;
  if (!withholds) {
    CANELE_MARK(sender_starves_no_more);
    a.starving = false;
    std::erase(pool.starving, &peer);
    forget(*peer.asking);
    a.set_next_look();
    return true;
  }
  CANELE_MARK(sender_starves);
  try {
    if (peer.asking == nullptr) peer.asking = std::make_unique<Asking>();
    pool.starving.push_back(&peer);
  } catch (const std::bad_alloc&) {
    return false;
  }
  a.starving = true;
  Asking& asking = *peer.asking;
  asking.asked = asking.answered = 0;
  asking.stamp = 1;
  asking.episode = episode;
  asking.all = context.sessions.has_posted();
  refill(context, peer);
  return true;
}

const char* on_resumed(Context& context, Peer& peer, std::uint64_t questions, std::uint32_t episode) {
  if (!peer.allowance.starving || peer.asking->episode != episode) return nullptr;  // the answer is of an earlier time
  Asking& asking = *peer.asking;
  if (questions < asking.answered || questions > asking.asked) return "it answers what it was not asked";
  for (; asking.answered < questions; ++asking.answered, asking.out_for_probes >>= 1) {
    if ((asking.out_for_probes & 1) == 0) continue;
    asking.probes.pop_front();
    --asking.probes_out;
  }
  asking.may_keep = std::min(asking.may_keep, asking.probes_out);
  refill(context, peer);
  return nullptr;
}

void ask(Context& context, const PostedNode& receive) {
  for (Peer* peer : context.credit.starving) {
    if (receive.source != rank_any && peer->rank != receive.source) continue;
    note(context, *peer, receive);
    refill(context, *peer);
  }
}

void missed(Context& context, Session& session, int source, std::uint64_t tag, std::uint64_t mask) {
  for (Peer* peer : context.credit.starving) {
    if (source != rank_any && peer->rank != source) continue;
    note(*peer->asking, {tag & mask, mask, 0, &session, session.number});
    refill(context, *peer);
  }
}

bool may_keep(Peer& peer) {
  if (peer.asking->may_keep == 0) return false;
  CANELE_RARE_MARK(offer_kept_for_probe);
  --peer.asking->may_keep;
  return true;
}

const char* check(Peer& peer, const wire::Offer& offer, std::uint32_t batch) {
  Allowance& a = peer.allowance;
  if (!a.starving) return "it offers messages and has not said that it withholds any";
  if (offer.count == 0 || offer.count > Withheld::most_offered || offer.index >= offer.count || offer.stamp == 0) {
    return "an offer has a wrong place in its batch";
  }
  if (a.seen != 0 && a.batch != batch) return "it began a batch of offers before the end of the last";
  a.batch = batch;
  if ((a.seen >> offer.index & 1) != 0) return "it offers a message twice in a batch";
  return nullptr;
}

void offered(Context& context, Peer& peer, const wire::Offer& offer, bool taken) {
  Allowance& a = peer.allowance;
  a.seen |= std::uint64_t{1} << offer.index;
  if (taken) a.taken |= std::uint64_t{1} << offer.index;
  if (std::popcount(a.seen) < offer.count) return;
  CANELE_MARK(offers_answered);
  a.seen = 0;
  link::control(context, peer, wire::Type::answer, std::exchange(a.taken, 0), a.batch, 0, nullptr, 0);
}

void gone(Context& context, Peer& peer) {
  Allowance& a = peer.allowance;
  CreditPool& pool = context.credit;
  a.granted = a.arrived;
  settle(pool, a);
  a.next_look = a.granted;
  a.starving = a.in_queue = false;
  if (peer.asking != nullptr) forget(*peer.asking);
  std::erase(pool.starving, &peer);
  std::erase(pool.queue, &peer);
}

}  // namespace canele::comm::flow_in

// SPDX-License-Identifier: BSD-3-Clause
//
// Flow control, the receiver's half. See flow_in.hpp (who, threads).
// Surprise: the pool counts a matched message as lent until its peer is looked at again: an upper bound is enough.
#include "comm/protocol/flow_in.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "comm/protocol/send_path.hpp"
#include "ltask/mark.hpp"

namespace canele::comm::flow_in {
namespace {

/// The pool learns what has been matched since it was asked last.
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

/// Less than that is not granted: it would take as many messages as it lets through.
std::uint64_t worth_a_message(const Allowance& a) { return a.target / 8; }

/// The sender can send nothing more before something kept here is taken: neither it nor the pool may have more.
bool is_stuck(const CreditPool& pool, const Allowance& a) {
  return a.starving && (a.in_queue || (a.target >= pool.per_peer && a.window() + worth_a_message(a) > a.target));
}

/// Lets the sender walk through what it withholds, for the sake of receives that wait for some of it; if it does so
/// already, once more after that.
void resume(Engine& engine, Peer& peer) {
  Allowance& a = peer.allowance;
  if (std::exchange(a.resume_out, true)) {
    a.resume_due = true;
    return;
  }
  CANELE_MARK(withheld_asked_for);
  a.resume_stamp = engine.matcher.take_stamp();
  send_path::control(engine, peer, wire::Type::resume, a.resume_stamp, 0, 0, nullptr, 0);
}

/// Fills the window up to its target, as far as the pool allows.
void refill(Engine& engine, Peer& peer) {
  Allowance& a = peer.allowance;
  CreditPool& pool = engine.credit;
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
      send_path::control(engine, peer, wire::Type::credit, a.granted, 0, 0, nullptr, 0);
    }
  }
  a.set_next_look();
  if (is_stuck(pool, a) && (engine.sessions.has_posted() || !pool.missed.empty())) resume(engine, peer);
}

/// The pool has room again: those that waited for it, in their order.
void serve_queue(Engine& engine) {
  CreditPool& pool = engine.credit;
  while (!pool.queue.empty() && pool.room() >= Allowance::least_grant) {
    Peer& peer = *pool.queue.front();
    pool.queue.erase(pool.queue.begin());
    peer.allowance.in_queue = false;
    refill(engine, peer);
    if (peer.allowance.in_queue) return;
  }
}

/// The first probe from `from` on that wants this message, and was made before `stamp`.
std::vector<MissedProbe>::iterator next_wanting(std::vector<MissedProbe>& missed,
                                                std::vector<MissedProbe>::iterator from, std::uint64_t stamp,
                                                std::uint32_t session, int source, std::uint64_t tag) {
  return std::find_if(from, missed.end(), [&](const MissedProbe& probe) {
    return probe.stamp < stamp && probe.session == session && ((probe.tag ^ tag) & probe.mask) == 0 &&
           (probe.source == rank_any || probe.source == source);
  });
}

}  // namespace

const char* look(Engine& engine, Peer& peer) {
  Allowance& a = peer.allowance;
  if (a.arrived > a.granted) return "it sent more than it was granted";
  a.next_look = a.granted;
  engine.credit.looks.push_back(&peer);
  engine.mark_dirty(peer);
  return nullptr;
}

void refill_all(Engine& engine) {
  std::vector<Peer*>& looks = engine.credit.looks;
  for (Peer* peer : looks) {
    if (!peer->gone()) refill(engine, *peer);
  }
  looks.clear();
}

void stored(Peer& peer, std::uint64_t price) {
  peer.allowance.stored += price;
  peer.allowance.set_next_look();
}

void grant_again(Engine& engine, Peer& peer) {
  if (!peer.gone() && peer.allowance.arrived > peer.allowance.next_look) refill(engine, peer);
  if (!engine.credit.queue.empty()) serve_queue(engine);
}

void on_withheld(Engine& engine, Peer& peer, bool withholds) {
  Allowance& a = peer.allowance;
  CreditPool& pool = engine.credit;
  if (a.starving == withholds) return;
  a.starving = withholds;
  if (!withholds) {
    CANELE_MARK(sender_starves_no_more);
    std::erase(pool.starving, &peer);
    if (pool.starving.empty()) pool.missed.clear();
    a.resume_out = a.resume_due = false;
    a.set_next_look();
    return;
  }
  CANELE_MARK(sender_starves);
  pool.starving.push_back(&peer);
  refill(engine, peer);
}

void ask(Engine& engine, int source) {
  for (Peer* peer : engine.credit.starving) {
    if (source == rank_any || peer->rank == source) refill(engine, *peer);
  }
}

void missed(Engine& engine, MissedProbe probe) {
  CreditPool& pool = engine.credit;
  if (pool.starving.empty()) return;
  const auto same = [&](const MissedProbe& one) {
    return one.session == probe.session && one.source == probe.source && one.tag == probe.tag && one.mask == probe.mask;
  };
  if (std::none_of(pool.missed.begin(), pool.missed.end(), same)) {
    if (pool.missed.size() == CreditPool::most_missed) pool.missed.erase(pool.missed.begin());
    probe.stamp = engine.matcher.take_stamp();
    pool.missed.push_back(probe);
  }
  ask(engine, probe.source);
}

bool wanted_by_probe(Engine& engine, std::uint64_t stamp, std::uint32_t session, int source, std::uint64_t tag) {
  std::vector<MissedProbe>& missed = engine.credit.missed;
  const auto found = next_wanting(missed, missed.begin(), stamp, session, source, tag);
  if (found == missed.end()) return false;
  CANELE_RARE_MARK(offer_kept_for_probe);
  missed.erase(found);
  return true;
}

void refused(Engine& engine, std::uint64_t stamp, std::uint32_t session, int source, std::uint64_t tag) {
  std::vector<MissedProbe>& missed = engine.credit.missed;
  for (auto probe = missed.begin();; ++probe) {
    probe = next_wanting(missed, probe, stamp, session, source, tag);
    if (probe == missed.end()) return;
    CANELE_RARE_MARK(probe_must_ask_again);
    probe->stamp = engine.matcher.take_stamp();
  }
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

void offered(Engine& engine, Peer& peer, const wire::Offer& offer, bool taken) {
  Allowance& a = peer.allowance;
  a.seen |= std::uint64_t{1} << offer.index;
  if (taken) a.taken |= std::uint64_t{1} << offer.index;
  if (std::popcount(a.seen) < offer.count) return;
  CANELE_MARK(offers_answered);
  a.seen = 0;
  send_path::control(engine, peer, wire::Type::answer, std::exchange(a.taken, 0), a.batch, 0, nullptr, 0);
  if (offer.last == 0 || offer.stamp != a.resume_stamp) return;
  a.resume_out = false;
  if (std::exchange(a.resume_due, false)) resume(engine, peer);
}

void gone(Engine& engine, Peer& peer) {
  Allowance& a = peer.allowance;
  CreditPool& pool = engine.credit;
  a.granted = a.arrived;
  settle(pool, a);
  a.next_look = a.granted;
  a.starving = a.in_queue = a.resume_out = a.resume_due = false;
  std::erase(pool.starving, &peer);
  std::erase(pool.queue, &peer);
  if (pool.starving.empty()) pool.missed.clear();
}

}  // namespace canele::comm::flow_in

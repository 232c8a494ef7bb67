// SPDX-License-Identifier: BSD-3-Clause
//
// Checking and collecting. hang_rows.cpp has the requests. Drivers that are served outside of the lock go on counting
// meanwhile: the values read of them here are atomic.
#include "comm/diagnose/hang_collect.hpp"

#include <algorithm>

#include "comm/collectives/group.hpp"
#include "comm/diagnose/hang_rows.hpp"
#include "comm/engine/engine.hpp"

namespace canele::comm::hang {
namespace {

// Enumerators with equal values in a report and in the engine.
static_assert(static_cast<int>(HangReport::PeerState::failed) == static_cast<int>(Peer::State::failed));
static_assert(static_cast<int>(HangReport::WorkerState::sleeping) == static_cast<int>(ltask::Worker::State::sleeping));
static_assert(static_cast<int>(HangReport::WaitKind::counter) == static_cast<int>(BlockedThread::In::counter));

std::uint64_t packets_of(const Peer& peer) {
  return peer.counters.read(Counter::packets_received) + peer.counters.read(Counter::messages_received);
}

/// Returns the number of events that the engine has counted for a driver.
std::uint64_t events_of(const DriverInstance& instance) {
  return instance.driver->counters.packets_received + instance.driver->counters.bulk_bytes_received;
}

std::uint64_t polls_of(const DriverInstance& instance) {
  return instance.memory_only() ? instance.driver->polls() : instance.dry_polls.load(std::memory_order_relaxed);
}

/// Returns a number that changes with every packet and every completion. Under the engine's lock.
std::uint64_t pulse_of(const Engine& engine) CANELE_UNDER_LOCK {
  std::uint64_t sum = engine.watch.moves();
  for (const auto& peer : engine.active_peers) {
    sum += packets_of(*peer) + peer->counters.read(Counter::packets_sent) + (peer->state == Peer::State::up ? 1 : 0);
  }
  for (const Counter counter : {Counter::callbacks, Counter::cancelled, Counter::rma_get_bytes, Counter::rma_put_bytes,
                                Counter::peers_failed, Counter::rails_failed}) {
    sum += engine.counters.read(counter);
  }
  return sum;
}

/// Notes the event counts of peers, drivers and the worker. Under the engine's lock.
void note_events(Engine& engine, std::uint64_t now_ns) CANELE_UNDER_LOCK {
  for (const auto& peer : engine.active_peers) peer->last_event.update(packets_of(*peer), 0, now_ns);
  for (const auto& instance : engine.instances)
    instance->last_event.update(events_of(*instance), polls_of(*instance), now_ns);
  engine.diagnostics.watched_heartbeats.update(engine.progress.worker.heartbeats(), 0, now_ns);
}

/// The blocked threads, and the words that they wait for.
struct Waiting {
  std::vector<HangReport::Waiter> waiters;
  std::vector<const void*> words;  ///< sorted
  std::uint64_t since_ns = 0;      ///< start of the first wait for requests; 0: none
};

Waiting who_waits(Engine& engine, std::uint64_t now_ns) {
  Waiting all;
  engine.progress.waiters.each_blocked_thread([&](const BlockedThread& one) {
    all.waiters.push_back(
        {static_cast<HangReport::WaitKind>(one.in), now_ns > one.since_ns ? now_ns - one.since_ns : 0});
    one.awaited.any([&](const Target& target) {
      all.words.push_back(target.word);
      return false;
    });
    if (one.in >= BlockedThread::In::condition) return;  // its cause may be anything, also outside of the library
    all.since_ns = all.since_ns == 0 ? one.since_ns : std::min(all.since_ns, one.since_ns);
  });
  std::sort(all.words.begin(), all.words.end());
  std::sort(all.waiters.begin(), all.waiters.end(), [](const auto& a, const auto& b) { return a.for_ns > b.for_ns; });
  return all;
}

HangReport::RailState state_of(const Rail& rail) {
  if (rail.instance == nullptr) return HangReport::RailState::unknown;
  if (rail.connection == Connection::failed) return HangReport::RailState::failed;
  if (!rail.is_connected()) return HangReport::RailState::connecting;
  if (rail.is_full()) return HangReport::RailState::full;
  return rail.packet != nullptr ? HangReport::RailState::sending : HangReport::RailState::up;
}

HangReport::Peer describe(const Peer& peer, std::uint64_t now_ns) {
  HangReport::Peer out;
  out.rank = peer.rank;
  out.state = static_cast<HangReport::PeerState>(peer.state);
  for (const auto& rail : peer.rails) {
    out.rails.push_back({rail->instance != nullptr ? rail->instance->label : "", state_of(*rail)});
  }
  peer.backlog->each([&](const strategies::Item&) { ++out.queued; });
  out.queued_bytes = peer.queued_bytes;
  out.unacknowledged = peer.rail_group != nullptr ? peer.rail_group->sent.size() : 0;
  out.envelopes_out = peer.next_out - 1;
  out.envelopes_in = peer.next_in - 1;
  out.heard = packets_of(peer) != 0;
  out.quiet_ns = peer.last_event.quiet_ns(now_ns);
  return out;
}

/// Collects peers; those of the rows come first.
void collect_peers(const Engine& engine, std::uint64_t now_ns, HangReport& report) CANELE_UNDER_LOCK {
  const auto named = [&](int rank) {
    const auto names = [&](const HangReport::Request& row) { return row.peer == rank; };
    return std::any_of(report.sends.rows.begin(), report.sends.rows.end(), names) ||
           std::any_of(report.receives.rows.begin(), report.receives.rows.end(), names);
  };
  report.all_peers = engine.active_peers.size();
  for (const bool wanted : {true, false}) {
    for (const auto& peer : engine.active_peers) {
      if (report.peers.size() == HangReport::most_rows) return;
      if (named(peer->rank) == wanted) report.peers.push_back(describe(*peer, now_ns));
    }
  }
}

void collect_unexpected(Engine& engine, HangReport& report) CANELE_UNDER_LOCK {
  for (std::uint32_t i = 0; i < engine.sessions.size() && report.unexpected.size() < HangReport::most_rows; ++i) {
    Session& session = engine.sessions.at(i);
    const UnexpectedNode* oldest = engine.matcher.oldest(session.match);
    if (oldest == nullptr) continue;
    const auto& message = static_cast<const Message&>(*oldest);
    report.unexpected.push_back(
        {session.label, session.match.unexpected, message.source, message.tag, message.length()});
  }
}

HangReport::OnDemandState state_of(const ltask::OnDemandProgress& on_demand) {
  if (on_demand.kind() == ltask::OnDemandProgress::Kind::off) return HangReport::OnDemandState::off;
  if (on_demand.parked()) return HangReport::OnDemandState::parked;
  return on_demand.helping() ? HangReport::OnDemandState::helping : HangReport::OnDemandState::checking;
}

void collect_threads(const Engine& engine, std::uint64_t now_ns, HangReport& report) {
  report.worker = static_cast<HangReport::WorkerState>(engine.progress.worker.state());
  report.on_demand_progress = state_of(engine.progress.on_demand);
  report.worker_heartbeats = engine.progress.worker.heartbeats();
  report.worker_still_ns = engine.diagnostics.watched_heartbeats.quiet_ns(now_ns);
  report.armed = engine.watch.armed();
  for (const auto& instance : engine.instances) {
    const std::uint64_t polls = polls_of(*instance);
    report.drivers.push_back({instance->label, instance->connected_peers.load(std::memory_order_relaxed),
                              instance->memory_only() ? polls - instance->last_event.polls : polls,
                              events_of(*instance) != 0, instance->last_event.quiet_ns(now_ns)});
  }
}

/// A thread that waits for a collective waits for its messages: adds their words. Returns the number of collectives in
/// progress.
std::uint64_t inspect_collectives(Engine& engine, std::vector<const void*>& words) CANELE_UNDER_LOCK {
  std::uint64_t count = 0;
  std::vector<const void*> also;
  for (std::uint32_t i = 0; i < engine.sessions.size(); ++i) {
    const auto* const group = static_cast<const collectives::Group*>(engine.sessions.at(i).collectives.get());
    if (group != nullptr) count += group->describe(words, also);
  }
  words.insert(words.end(), also.begin(), also.end());
  std::sort(words.begin(), words.end());
  return count;
}

/// Collects a report. Under the engine's lock.
HangReport collect_locked(Engine& engine, Waiting waiting, std::uint64_t now_ns) CANELE_UNDER_LOCK {
  HangReport report;
  report.rank = engine.rank;
  report.size = engine.size;
  report.limit_ns = engine.watch.limit_ns();
  report.interval_ns = engine.watch.interval_ns();
  report.silent_ns = engine.watch.silent_ns(now_ns);
  report.pending = engine.sessions.pending();
  report.collectives = inspect_collectives(engine, waiting.words);
  collect_requests(engine, waiting.words, now_ns, report);
  const std::uint64_t told = report.sends.all + report.receives.all + report.collectives;
  report.matched_unbound = report.pending - std::min(report.pending, told);
  collect_unexpected(engine, report);
  collect_peers(engine, now_ns, report);
  collect_threads(engine, now_ns, report);
  report.waiters = waiting.waiters;
  report.all_waiters = waiting.waiters.size();
  if (report.waiters.size() > HangReport::most_rows) report.waiters.resize(HangReport::most_rows);
  return report;
}

void tell(Engine& engine, const HangReport& report, canele_hang_fn callback, void* argument) {
  const std::string text = to_text(report);
  if (callback == nullptr) {
    engine.log(LogLevel::warning, text);
    return;
  }
  ++callbacks_on_this_thread;
  callback(reinterpret_cast<canele_engine_t*>(&engine), text.c_str(), argument);
  --callbacks_on_this_thread;
}

}  // namespace

void check(Engine& engine) { check(engine, engine.platform.now_ns()); }

void check(Engine& engine, std::uint64_t now_ns) {
  if (!engine.watch.due(now_ns)) return;
  const Waiting waiting = who_waits(engine, now_ns);
  if (!engine.try_lock()) return;  // another thread is working
  note_events(engine, now_ns);
  const HangWatch::Sight sight{now_ns, pulse_of(engine), engine.sessions.pending(), engine.pending_sends,
                               waiting.since_ns};
  HangReport report;
  const bool hangs = engine.watch.see(sight);
  if (hangs) report = collect_locked(engine, waiting, now_ns);
  const canele_hang_fn callback = engine.diagnostics.hang_callback;
  void* const argument = engine.diagnostics.hang_argument;
  engine.unlock();
  if (hangs) tell(engine, report, callback, argument);
}

HangReport collect(Engine& engine, std::uint64_t now_ns) {
  const Waiting waiting = who_waits(engine, now_ns);
  engine.lock_for_callback();
  note_events(engine, now_ns);
  const std::uint64_t unpolled_ns = engine.watch.unpolled_ns(now_ns);
  engine.watch.note(pulse_of(engine), now_ns);
  HangReport report = collect_locked(engine, waiting, now_ns);
  engine.unlock();
  report.unpolled_ns = unpolled_ns;
  report.asked_for = true;
  return report;
}

std::string report(Engine& engine) { return to_text(collect(engine, engine.platform.now_ns())); }

}  // namespace canele::comm::hang

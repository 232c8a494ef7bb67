// SPDX-License-Identifier: BSD-3-Clause
//
// Injects the faults. One thread.
//
// Each run has its own mixture of faults. Each kind is absent in a part of the runs, so that it does not hide what
// another kind would show.
#include "apps/sim/adversary.hpp"

#include <algorithm>
#include <vector>

namespace canele::sim {
namespace {
constexpr std::uint64_t slowest_return_ns = 2'000'000;
}  // namespace

Adversary::Adversary(World& world, Oracle& oracle, FaultPlan plan, std::uint64_t until_ns)
    : world_(world),
      oracle_(oracle),
      plan_(plan),
      until_ns_(until_ns),
      dice_(world.dice.split(30'000)),
      returns_(Dice(world.options().seed).split(10)) {}

void Adversary::begin() {
  set_rates();
  plan_clogs();
  plan_starving();
  plan_deaths();
  plan_rails();
  world_.timeline.at(until_ns_, [this] { end(); });
}

void Adversary::set_rates() {
  const auto rate = [&](double usual, double weight) { return dice_.under(3) == 0 ? 0.0 : usual * weight; };
  for (const auto& fabric : world_.fabrics()) {
    auto& rates = fabric->rates;
    rates.delay = rate(0.05, plan_.network);
    rates.back_pressure = rate(0.03, plan_.network);
    rates.pending_send = rate(0.3, plan_.network);
    rates.short_write = rate(0.2, plan_.network);
    rates.duplicate = rate(0.02, plan_.network);
    rates.registration = rate(0.1, plan_.network);
    rates.copy_full = rate(0.1, plan_.network);
    rates.copy_failed = rate(0.03, plan_.network);
    rates.truncated = rate(0.0005, plan_.hostile);
    rates.corrupt = rate(0.0005, plan_.hostile);
    rates.payload = world_.options().checksums ? rate(0.001, plan_.payload) : 0;
    rates.longest_delay_ns = 1000 + dice_.under(500'000);
  }
}

void Adversary::plan_clogs() {
  const auto count = static_cast<std::uint64_t>(plan_.clogs * static_cast<double>(dice_.under(12)));
  for (std::uint64_t i = 0; i < count; ++i) {
    world_.timeline.at(some_time(), [this] {
      const std::uint64_t until = std::min(until_ns_, world_.timeline.now() + dice_.under(2'000'000));
      if (dice_.under(3) == 0) return swizzle();
      const int from = some_rank(), to = some_rank();
      const bool one_way = dice_.under(2) == 0;
      Fabric& fabric = some_fabric();
      fabric.delay(from, to, until, drivers::sim::Fault::partition);
      if (!one_way) fabric.delay(to, from, until, drivers::sim::Fault::clog);
    });
  }
}

/// Swizzle-clogging (FoundationDB): clogs some ranks one after the other, and frees them in another order.
void Adversary::swizzle() {
  ++done_["swizzle-clog"];
  Fabric& fabric = some_fabric();
  for (int rank = 0; rank < world_.options().ranks; ++rank) {
    if (dice_.under(2) == 0) continue;
    const std::uint64_t until = std::min(until_ns_, world_.timeline.now() + dice_.under(3'000'000));
    for (int peer = 0; peer < world_.options().ranks; ++peer) {
      fabric.delay(rank, peer, until, drivers::sim::Fault::clog);
      fabric.delay(peer, rank, until, drivers::sim::Fault::clog);
    }
  }
}

void Adversary::plan_starving() {
  if (world_.options().timer_factor > 1) ++done_["late-timers"];
  for (int rank = 0; rank < world_.options().ranks; ++rank) {
    if (plan_.starving > 0 && dice_.under(6) == 0) {
      world_.scheduler.slow_down(rank, 2 + static_cast<unsigned>(dice_.under(20)));
      ++done_["slow-peer"];
    }
    world_.platform(rank).busy_locks = plan_.starving > 0 && dice_.under(2) == 0 ? 0.05 : 0;
    if (world_.platform(rank).busy_locks > 0) ++done_["busy-lock"];
  }
  const auto count = static_cast<std::uint64_t>(plan_.starving * static_cast<double>(dice_.under(12)));
  for (std::uint64_t i = 0; i < count; ++i) {
    world_.timeline.at(some_time(), [this] {
      ++done_["starved"];
      world_.scheduler.starve(some_rank(), dice_.under(2'000'000));
    });
  }
}

void Adversary::plan_deaths() {
  if (plan_.deaths <= 0 || dice_.under(2) == 0) return;
  const auto most = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(world_.options().ranks) / 4);
  const std::uint64_t count = 1 + dice_.under(most);
  const bool returns = returns_.under(2) == 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    world_.timeline.at(some_time(), [this, returns] {
      const int rank = some_rank();
      const bool starts = world_.engine(rank) == nullptr;
      if (!world_.is_running(rank) || world_.is_through(rank)) return;
      if (starts && world_.options().latest_start_ns == 0) return;
      ++done_[starts ? "kill-at-start" : "kill"];
      world_.kill(rank);
      if (returns) come_back(rank);
    });
  }
}

/// Lets a killed rank return, mostly and soon. Uses dice of its own, so that all other faults stay the same.
void Adversary::come_back(int rank) {
  const std::uint64_t after = returns_.under(slowest_return_ns);
  if (returns_.under(4) == 0) return;
  world_.timeline.after(after, [this, rank] {
    ++done_["return"];
    world_.come_back(rank);
  });
}

void Adversary::plan_rails() {
  if (plan_.rails <= 0 || dice_.under(2) == 0) return;
  const std::uint64_t count = 1 + dice_.under(static_cast<std::uint64_t>(2 * world_.options().ranks));
  for (std::uint64_t i = 0; i < count; ++i) {
    world_.timeline.at(some_time(), [this] {
      const int a = some_rank(), b = some_rank();
      Fabric& fabric = some_fabric();
      if (a == b || fabric.is_memory()) return;  // memory has no connection to cut
      oracle_.forgive(a, b);
      note_loss(a, b);
      fabric.cut(a, b);
    });
  }
}

/// Stops injecting faults.
void Adversary::end() {
  for (const auto& fabric : world_.fabrics()) fabric->rates = {};
  for (int rank = 0; rank < world_.options().ranks; ++rank) {
    world_.platform(rank).busy_locks = 0;
    world_.scheduler.slow_down(rank, 1);
  }
  constexpr std::uint64_t check_every_ns = 10'000'000;
  for (std::uint64_t check = 1; check <= 20; ++check) {
    world_.timeline.after(check * check_every_ns, [this] { end_half_lost(); });
  }
}

/// Cuts connections that only one side has given up. A rank gives a peer up if it loses the last rail in use while
/// another one is being set up. The peer notices only when it sends (docs/simulation.md, "Known"). In a real job a
/// keep-alive ends such a connection sooner or later.
void Adversary::end_half_lost() {
  for (const auto& [a, b] : cut_) {
    if (gives_up(a, b) == gives_up(b, a)) continue;
    ++done_["half-lost"];
    for (const auto& fabric : world_.fabrics()) fabric->cut(a, b);
  }
}

bool Adversary::gives_up(int rank, int peer) const {
  const comm::Engine* const engine = world_.engine(rank);
  const comm::Peer* const known = engine != nullptr ? engine->peers[peer] : nullptr;
  return known != nullptr && known->disconnected();
}

std::map<std::string, std::uint64_t> Adversary::injected() const {
  std::map<std::string, std::uint64_t> all = done_;
  for (const auto& fabric : world_.fabrics()) {
    for (std::size_t kind = 0; kind < fabric->injected.size(); ++kind) {
      if (fabric->injected[kind] > 0) all[name_of(static_cast<drivers::sim::Fault>(kind))] += fabric->injected[kind];
    }
  }
  return all;
}

}  // namespace canele::sim

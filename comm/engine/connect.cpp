// SPDX-License-Identifier: BSD-3-Clause
//
// First contact and connection; failure.cpp has the end of a peer.
//
// Called under the engine's lock, except resolve_task(). The query to the launcher runs as an ltask, because PMIx must
// not be called under the lock.
#include "comm/engine/connect.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/link/sequencing.hpp"
#include "comm/protocol/send.hpp"
#include "comm/wire/wire.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm {

Peer& Engine::first_contact(int to) {
  assert(to >= 0 && to < size);
  Peer*& entry = peers[to];
  if (entry == nullptr) {
    active_peers.push_back(std::make_unique<Peer>());
    entry = active_peers.back().get();
    entry->rank = to;
    driver_set.connecting.fetch_add(1, std::memory_order_relaxed);
    entry->rail = &peers::add_rail(*entry, nullptr);
    entry->backlog = lifecycle.strategy.create();
    peers::resolve(*this, *entry);
  }
  return *entry;
}

namespace peers {
namespace {

/// Requests one address from the launcher. The object passes through a task, the launcher's thread, and the engine's
/// lock.
struct Resolve : ltask::Task, CallOp {
  Engine* engine = nullptr;
  int rank = 0;
  bool ok = false;
  Blob address;
  std::string why;
};

/// Handles a peer that cannot be reached. The bootstrap may already know that the peer has died, before the launcher's
/// own report arrives.
void unreachable(Engine& engine, Peer& peer, int error, const std::string& why) CANELE_UNDER_LOCK {
  CANELE_COVER(peer_unreachable);
  if (engine.lifecycle.bootstrap->has_died(peer.rank)) return launcher_failed(engine, peer.rank);
  engine.fail_peer(peer, error, true, why);
}

void resolved(Context& context, CallOp& op) CANELE_UNDER_LOCK {
  Engine& engine = engine_of(context);
  const std::unique_ptr<Resolve> resolve(static_cast<Resolve*>(&op));
  --engine.lifecycle.resolving;
  Peer& peer = engine.peer(resolve->rank);
  if (peer.state != Peer::State::resolving) {  // it connected first, or has failed
    CANELE_COVER(resolved_too_late);
    return;
  }
  if (!resolve->ok) {
    return unreachable(engine, peer, CANELE_EBOOTSTRAP, "the launcher does not know its address: " + resolve->why);
  }
  peer.address = std::move(resolve->address);
  peer.state = Peer::State::connecting;
  connect(engine, peer);
}

void resolve_task(ltask::Task& task) {
  auto& resolve = static_cast<Resolve&>(task);
  Engine& engine = *resolve.engine;
  const std::uint64_t timeout_ns = engine.lifecycle.settings->number(Setting::start_timeout) * 1'000'000'000;
  engine.lifecycle.bootstrap->get(resolve.rank, "address", timeout_ns, [&resolve](bool ok, Blob blob, std::string why) {
    Engine& e = *resolve.engine;
    resolve.ok = ok;
    resolve.address = std::move(blob);
    resolve.why = std::move(why);
    e.submit(resolve);  // the object may be gone now
    e.wake();
  });
}

void append(Blob& blob, const void* bytes, std::size_t size) {
  const std::size_t at = blob.size();
  blob.resize(at + size);  // insert() makes g++ 12 warn under -fsanitize=thread, without cause
  if (size != 0) std::memcpy(blob.data() + at, bytes, size);
}

template <typename T>
void put(Blob& blob, const T& value) {
  append(blob, &value, sizeof value);
}

void put_bytes(Blob& blob, const void* bytes, std::size_t size) {
  put(blob, static_cast<std::uint16_t>(size));
  append(blob, bytes, size);
}

/// Reads a u16 length and that many bytes. Returns false if the blob ends early.
bool take_bytes(std::span<const std::byte>& blob, std::span<const std::byte>& bytes) {
  std::uint16_t size;
  if (!wire::take(blob, size) || blob.size() < size) return false;
  bytes = blob.first(size);
  blob = blob.subspan(size);
  return true;
}

std::string_view text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Returns the bytes in a form safe to print: short, and without terminal control characters.
std::string shown(std::span<const std::byte> bytes) {
  constexpr std::size_t longest = 32;
  std::string words(text(bytes).substr(0, longest));
  std::replace_if(
      words.begin(), words.end(), [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
  return words;
}

/// Finds the address that `blob` holds for the driver `name`. Returns false and sets *why if the blob is malformed.
bool find_address(std::span<const std::byte> blob, std::string_view name, drivers::Address* address, std::string* why) {
  constexpr std::size_t most_address = 512;  // see drivers::Address
  std::uint32_t version;
  std::span<const std::byte> library;
  address->clear();
  if (!wire::take(blob, version) || !take_bytes(blob, library)) {
    *why = "its published address is cut";
    return false;
  }
  if (version != wire::version) {
    *why = "it runs canele " + shown(library) + " with wire version " + std::to_string(version) +
           ", this rank canele " CANELE_VERSION " with wire version " + std::to_string(wire::version) +
           ": use one version of the library in all ranks";
    return false;
  }
  std::span<const std::byte> driver, value;
  while (take_bytes(blob, driver) && take_bytes(blob, value)) {
    if (text(driver) == name && value.size() <= most_address) address->assign(value.begin(), value.end());
  }
  return true;
}

constexpr std::string_view checksum_label = "checksum";

/// Checks that both ranks use the same setting: one rank must remove the checksums that the other adds. Returns false
/// and sets *why if they differ.
bool agree_on_checksums(const Engine& engine, const Peer& peer, std::string* why) {
  drivers::Address theirs;
  std::string wrong;
  if (!find_address(peer.address, checksum_label, &theirs, &wrong)) return true;  // reported for the first driver
  if (theirs.empty() != engine.lifecycle.checksums) return true;
  const auto value = [](bool on) { return std::string("CANELE_CHECKSUM=") + (on ? "packets" : "off"); };
  *why = "it runs with " + value(!theirs.empty()) + ", this rank with " + value(engine.lifecycle.checksums) +
         ": set the same in all ranks";
  return false;
}

}  // namespace

Blob make_address(const Engine& engine) {
  Blob blob;
  put(blob, wire::version);
  put_bytes(blob, CANELE_VERSION, sizeof CANELE_VERSION - 1);
  for (const auto& instance : engine.instances) {
    put_bytes(blob, instance->label.data(), instance->label.size());
    put_bytes(blob, instance->address.data(), instance->address.size());
  }
  if (engine.lifecycle.checksums) {  // under a name that no driver has
    put_bytes(blob, checksum_label.data(), checksum_label.size());
    put_bytes(blob, "crc32c", 6);
  }
  return blob;
}

void resolve(Engine& engine, Peer& peer) {
  if (peer.rank == engine.rank) {
    peer.address = make_address(engine);
    peer.state = Peer::State::connecting;
    connect(engine, peer);
    return;
  }
  auto* task = new Resolve;
  task->engine = &engine;
  task->rank = peer.rank;
  task->kind = OpKind::call;
  task->call = resolved;
  task->prepare(resolve_task);
  ++engine.lifecycle.resolving;
  engine.tasks.submit(*task);
}

Rail& add_rail(Peer& peer, DriverInstance* instance) {
  // The first rail exists before its driver is known.
  if (peer.rails.size() == 1 && peer.rail->instance == nullptr) {
    peer.rail->instance = instance;
    return *peer.rail;
  }
  peer.rails.push_back(std::make_unique<Rail>());
  Rail& rail = *peer.rails.back();
  rail.peer = &peer;
  rail.instance = instance;
  if (peer.disconnected()) rail.connection = Connection::disconnected;
  rail.sent_op.kind = OpKind::sent;
  rail.sent_op.rail = &rail;
  std::sort(peer.rails.begin(), peer.rails.end(), [](const auto& a, const auto& b) {
    return a->instance != nullptr && b->instance != nullptr && a->instance->index < b->instance->index;
  });
  return rail;
}

namespace {

/// Starts to connect through one driver. If the driver cannot reach the peer, the rail is dead at once.
void try_driver(Engine& engine, Peer& peer, DriverInstance& instance, drivers::Address address) CANELE_UNDER_LOCK {
  Rail& rail = add_rail(peer, &instance);
  rail.address = std::move(address);
  if (!instance.memory_only()) {
    transition(rail, Transmit::connecting);
    instance.push_flush(rail);
    return;
  }
  if (peer.rank == engine.rank) {  // nothing could arrive from this rank itself before
    engine.driver_set.polled.push_back(&instance);
    engine.after_unlock.wake(engine.sleeper);
  }
  const bool reaches = instance.driver->connect(peer.rank, rail.address) != drivers::Status::failed;
  if (!reaches) transition(rail, Connection::failed);
}

/// Starts to connect through every driver of a group. Returns false if none of them may reach the peer, or if the peer
/// has failed meanwhile.
bool try_group(Engine& engine, Peer& peer, std::size_t group) CANELE_UNDER_LOCK {
  const bool self = peer.rank == engine.rank;
  for (const auto& instance : engine.instances) {
    if (instance->group != group || self != instance->driver->capabilities().reaches_self) continue;
    if (peer.rail_of(*instance) != nullptr) continue;  // the peer connected first
    drivers::Address address;
    std::string why;
    if (!find_address(peer.address, instance->label, &address, &why)) {
      engine.fail_peer(peer, CANELE_EVERSION, true, why);
      return false;
    }
    if (address.empty() && !self) continue;  // the peer does not use this driver
    try_driver(engine, peer, *instance, std::move(address));
  }
  return peer.connects();
}

}  // namespace

void connect(Engine& engine, Peer& peer) {
  const std::size_t groups = engine.instances.empty() ? 0 : engine.instances.back()->group + 1;
  if (std::string why; !agree_on_checksums(engine, peer, &why)) {
    engine.fail_peer(peer, CANELE_EVERSION, true, why);
    return;
  }
  while (peer.next_group < groups && !peer.disconnected()) {
    if (try_group(engine, peer, peer.next_group++)) return;
  }
  if (peer.state == Peer::State::up || peer.disconnected()) return;
  unreachable(engine, peer, CANELE_EDRIVER,
              "no driver of this rank reaches it (CANELE_DRIVERS=" + engine.lifecycle.settings->text(Setting::drivers) +
                  ")" + (peer.reason.empty() ? "" : "; " + peer.reason));
}

/// Chooses the rail for large transfers among those that are up. If all of them were measured, it is the one that
/// completes such a transfer first; else it is the first one. An estimate alone does not change the user's order.
static void choose_rail(Peer& peer) {
  constexpr std::uint64_t large = 1 << 20;
  const auto measured = [](const auto& rail) { return !rail->is_connected() || rail->instance->costs.measured; };
  const bool by_cost = std::all_of(peer.rails.begin(), peer.rails.end(), measured);
  Rail* best = nullptr;
  for (const auto& rail : peer.rails) {
    if (!rail->is_connected()) continue;
    if (best == nullptr || (by_cost && rail->instance->costs.time_ns(large) < best->instance->costs.time_ns(large))) {
      best = rail.get();
    }
  }
  if (best != nullptr) peer.rail = best;
}

/// Marks the rail as usable.
static void rail_up(Engine& engine, Rail& rail) {
  transition(rail, Connection::up);
  rail.instance->connected_peers.fetch_add(1, std::memory_order_relaxed);
  if (!rail.instance->memory_only()) {
    engine.driver_set.system_peers.fetch_add(1, std::memory_order_relaxed);
  } else if (rail.peer->rank != engine.rank) {
    engine.driver_set.memory_in_use.store(true, std::memory_order_relaxed);
  }
}

bool rail_down(Engine& engine, Rail& rail, Connection to) {
  const bool was_connected = rail.is_connected();
  transition(rail, to);
  if (!was_connected) return false;
  rail.instance->connected_peers.fetch_sub(1, std::memory_order_relaxed);
  if (!rail.instance->memory_only()) engine.driver_set.system_peers.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

/// Returns true if the process behind this connection is the one that is known, or the first one.
static bool is_same_process(Peer& peer, const DriverInstance& instance) {
  const std::uint64_t incarnation = instance.driver->incarnation_of(peer.rank);
  if (incarnation == 0 || incarnation == peer.incarnation) return true;
  return std::exchange(peer.incarnation, incarnation) == 0;
}

/// Divides the shared lines of a pair: the first ones are for messages, the others for permits.
void divide_lines(const drivers::SharedLines& all, Rail& rail) {
  constexpr int for_messages = 16;  // part of the wire format: both ends number permits from there
  rail.lines = rail.permits = all;
  rail.lines.count = std::min(all.count, for_messages);
  rail.permits.count = all.count - rail.lines.count;
  rail.permits.ours += rail.lines.count;
  rail.permits.theirs += rail.lines.count;
}

Rail* connected(Engine& engine, DriverInstance& instance, int rank) {
  Peer& peer = engine.peer(rank);
  if (!peer.disconnected() && !is_same_process(peer, instance)) {
    CANELE_COVER_RARE(another_process_connected);
    engine.fail_peer(peer, CANELE_EPEER, true, "another process has taken its place");
  }
  Rail* rail = peer.rail_of(instance);
  if (peer.disconnected()) return rail != nullptr ? rail : &add_rail(peer, &instance);
  if (rail != nullptr && rail->connection != Connection::connecting) return nullptr;
  // Only drivers of one group keep their packets in a common order. So the group that connected first stays.
  if (peer.state == Peer::State::up && peer.rail->instance->group != instance.group) return nullptr;
  if (rail == nullptr) rail = &add_rail(peer, &instance);
  rail->local = instance.driver->is_local(rank);
  rail_up(engine, *rail);
  const bool several = std::count_if(engine.instances.begin(), engine.instances.end(),
                                     [&](const auto& one) { return one->group == instance.group; }) > 1;
  if (several) {
    sequencing::begin(engine, peer, instance.group);
    rail->probe_due = !instance.memory_only();
  } else {
    send_path::update_fast_limits(engine, *rail);
    divide_lines(instance.driver->shared_lines(rank), *rail);
  }
  change_state(engine, peer, Peer::State::up);
  choose_rail(peer);
  if (engine.stage == Stage::leaving && rank != engine.rank) send_goodbye(engine, peer);
  engine.trace(Event::peer_connected, rank);
  engine.log(LogLevel::debug, "connected to rank " + std::to_string(rank) + " by " + instance.label);
  engine.mark_backlogged(peer);
  if (rank != engine.rank &&
      engine.lifecycle.bootstrap->has_died(rank)) {  // the launcher's report came before this rail did
    CANELE_COVER_RARE(rail_of_the_dead_came_up);
    report_failure(*rail);
  }
  return nullptr;
}

void rail_failed(Engine& engine, Rail& rail) {
  Peer& peer = *rail.peer;
  if (rail.connection == Connection::failed || peer.disconnected()) return;
  if (rail_down(engine, rail, Connection::failed)) {
    choose_rail(peer);
    CANELE_COVER(rail_lost);
    sequencing::rail_lost(engine, peer, rail);
  } else if (peer.state != Peer::State::up && !peer.connects()) {
    connect(engine, peer);
  }
}

void send_goodbye(Engine& engine, Peer& peer) {
  link::send_control(engine, peer, {.type = wire::Type::bye});
  sequencing::close_rails(engine, peer);
}

/// Returns whether the end of a connection to this peer is expected. A peer that has received this rank's bye closes
/// without a word. When all ranks leave, a peer that never communicated with this rank does so, too.
static bool closes_in_good_order(const Engine& engine, const Peer& peer) CANELE_UNDER_LOCK {
  if (engine.stage == Stage::leaving || peer.closing) return true;
  return engine.stage == Stage::finalizing && peer.counters.read(Counter::packets_received) == 0;
}

void driver_failed(Engine& engine, DriverInstance& instance, int rank, bool lost, std::string_view reason) {
  if (rank < 0 || rank >= engine.size) return;
  Peer& peer = engine.peer(rank);
  Rail* rail = peer.rail_of(instance);
  if (rail == nullptr || rail->connection == Connection::failed) return;
  if (peer.disconnected()) {
    CANELE_COVER(driver_releases_disconnected);
    return given_back(engine, *rail);
  }
  const bool leaving = closes_in_good_order(engine, peer);
  const bool others = std::any_of(peer.rails.begin(), peer.rails.end(),
                                  [&](const auto& one) { return one.get() != rail && one->is_connected(); });
  if (peer.state == Peer::State::up && !rail->is_connected()) {
    CANELE_COVER(unused_rail_failed);
    rail_failed(engine, *rail);  // it was not used
  } else if (peer.state == Peer::State::connecting && !lost) {
    CANELE_COVER(driver_does_not_reach);
    peer.reason = instance.label + ": " + std::string(reason);
    rail_failed(engine, *rail);
  } else if (peer.state == Peer::State::up && others) {
    if (!leaving && engine.stage == Stage::finalizing) {
      CANELE_COVER_RARE(rail_ended_before_the_bye);  // it may come by the others; if not, the peer counts as lost
    } else if (!leaving) {
      engine.counters.add(Counter::rails_failed);
      engine.log(LogLevel::warning, "the " + instance.label + " rail to rank " + std::to_string(rank) + " is lost (" +
                                        std::string(reason) + "); its messages continue on the other rails");
    }
    rail_failed(engine, *rail);
  } else {
    if (leaving) CANELE_COVER(connection_closed_in_good_order);
    engine.fail_peer(peer, CANELE_EPEER, !leaving, reason, &instance);
  }
}

}  // namespace peers
}  // namespace canele::comm

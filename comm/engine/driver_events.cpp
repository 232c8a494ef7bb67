// SPDX-License-Identifier: BSD-3-Clause
//
// Callbacks of the drivers: see drivers/driver.hpp.
//
// Called inside the driver's poll(). For a memory-only driver that is under the engine's lock. For any other driver it
// is under the instance's `call_lock`, so the callback takes the engine's lock itself.
//
// bulk_destination() gives out user memory, which the driver then writes without the lock. That is safe: the engine
// drops a transfer of a connected peer only within a callback of the driver itself.
#include "comm/engine/connect.hpp"
#include "comm/engine/engine.hpp"
#include "comm/link/pacing.hpp"
#include "comm/link/transmit.hpp"
#include "comm/protocol/receive.hpp"
#include "comm/protocol/receive_burst.hpp"
#include "comm/protocol/receive_packet.hpp"
#include "comm/rendezvous/async_get.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "comm/state/driver_instance.hpp"
#include "comm/state/under_lock.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm {
namespace {

/// Holds the engine's lock during a callback, unless the caller has it already.
class CANELE_SCOPED_CAPABILITY CallbackLock {
 public:
  explicit CallbackLock(DriverInstance& instance) CANELE_TAKES_LOCK
      : engine_(instance.memory_only() ? nullptr : &engine_of(instance.context)) {
    if (engine_ != nullptr) engine_->lock_for_callback();
  }
  ~CallbackLock() CANELE_RELEASE() {
    if (engine_ != nullptr) engine_->unlock();
  }
  CallbackLock(const CallbackLock&) = delete;
  CallbackLock& operator=(const CallbackLock&) = delete;

 private:
  Engine* engine_;
};

}  // namespace

DriverInstance::DriverInstance(Context& owner, const drivers::DriverFactory& from)
    : context(owner), factory(from), driver(from.create()) {
  const Engine& engine = engine_of(owner);
  rank = owner.rank;
  size = owner.size;
  oversubscribed = owner.oversubscribed;
  job = engine.lifecycle.bootstrap->job();
  incarnation = owner.incarnation;
  secret = engine.lifecycle.secret;
  events = this;
}

void DriverInstance::push_flush(Rail& rail) {
  assert(rail.in_flush());
  Rail* top = flush.load(std::memory_order_relaxed);
  do {
    rail.next_flush = top;
  } while (!flush.compare_exchange_weak(top, &rail, std::memory_order_release, std::memory_order_relaxed));
}

void DriverInstance::push_failed(Rail& rail) {
  rail.next_failed = failed_rails.load(std::memory_order_relaxed);
  while (!failed_rails.compare_exchange_weak(rail.next_failed, &rail, std::memory_order_release,
                                             std::memory_order_relaxed)) {
  }
}

Rail* DriverInstance::take_flush() {
  Rail* reversed = nullptr;
  for (Rail* rail = flush.exchange(nullptr, std::memory_order_acquire); rail != nullptr;) {
    Rail* next = rail->next_flush;
    rail->next_flush = reversed;
    reversed = rail;
    rail = next;
  }
  return reversed;
}

// Rare cases are out of line: the registers that they need would be saved and restored for every packet.
drivers::Take DriverInstance::packet(drivers::Rank from, std::span<const std::byte> bytes) {
  if (!memory_only()) return present_locked(from, bytes);
  assume_lock();  // a memory-only driver is polled under it
  wants_hints = context.matcher.is_huge();
  if (wants_hints) [[unlikely]]
    return present_with_prefetch(from, bytes);
  return present(from, bytes);
}

[[gnu::noinline]] drivers::Take DriverInstance::present_locked(drivers::Rank from, std::span<const std::byte> bytes) {
  const CallbackLock guard(*this);
  return present(from, bytes);
}

[[gnu::noinline]] drivers::Take DriverInstance::present_with_prefetch(drivers::Rank from,
                                                                      std::span<const std::byte> bytes) {
  context.packet_prefetch.begin(context.matcher, context.peer(from), bytes);
  const drivers::Take answer = present(from, bytes);
  context.packet_prefetch.end();
  return answer;
}

[[gnu::always_inline]] inline drivers::Take DriverInstance::present(drivers::Rank from,
                                                                    std::span<const std::byte> bytes) {
  Peer& peer = context.peer(from);
  ++driver->counters.packets_received;
  driver->counters.bytes_received += bytes.size();
  if (peer.disconnected()) [[unlikely]]
    return from_disconnected(peer);
  const Verdict verdict = receive_path::receive_packet(context, peer, bytes);
  return verdict.is_ok() ? drivers::Take::taken : rejected_packet(peer, verdict, bytes.size());
}

drivers::RunTaken DriverInstance::packets(drivers::Rank from, const drivers::PacketRun& run) {
  if (!memory_only()) [[unlikely]]
    return DriverEvents::packets(from, run);
  assume_lock();  // a memory-only driver is polled under it
  Peer* const peer = context.peers[from];
  wants_hints = context.matcher.is_huge();
  if (wants_hints || peer == nullptr || peer->disconnected()) [[unlikely]]
    return DriverEvents::packets(from, run);
  const std::size_t length = run.length;
  receive_path::ReceiveBurst messages(context, *peer, length);
  Verdict verdict = Verdict::ok();
  int taken = 0;
  const std::byte* packet = run.first;
  do {
    verdict = messages.take({packet, length});
    packet += run.apart;
    ++taken;
  } while (verdict.is_ok() && taken < run.count && !peer->disconnected());
  const auto count = static_cast<std::uint64_t>(taken);
  messages.count(count);
  driver->counters.packets_received += count;
  driver->counters.bytes_received += count * length;
  if (verdict.is_ok()) return {taken, drivers::Take::taken};
  return {taken - 1, rejected_packet(*peer, verdict, length)};
}

void DriverInstance::prefetch_hint(drivers::Rank from, std::span<const std::byte> bytes) noexcept {
  static_assert(hints_ahead < PacketPrefetch::most, "what a driver shows is remembered until it is presented");
  assume_lock();  // only memory-only drivers are asked for hints
  const Peer* peer = context.peers[from];
  if (peer != nullptr) context.packet_prefetch.show(*peer, bytes);
}

[[gnu::cold, gnu::noinline]] drivers::Take DriverInstance::from_disconnected(Peer& peer) {
  if (peer.state == Peer::State::left) return drivers::Take::taken;  // late bytes
  CANELE_COVER(packet_of_one_given_up);                              // the peer must learn of it on each of its rails
  Rail* rail = peer.rail_of(*this);
  if (rail != nullptr && rail->connection != Connection::failed)
    peers::given_back(engine_of(context), *rail);  // with this answer
  return drivers::Take::rejected;
}

[[gnu::cold, gnu::noinline]] drivers::Take DriverInstance::rejected_packet(Peer& peer, Verdict verdict,
                                                                           std::size_t bytes) {
  if (verdict.is_retry()) {  // it will be presented again, and counted then
    --driver->counters.packets_received;
    driver->counters.bytes_received -= bytes;
    peer.counters.sub(Counter::packets_received);
    return drivers::Take::retry;
  }
  context.counters.add(Counter::connections_rejected);
  context.fail_peer(peer, CANELE_EPROTOCOL, true, std::string("it sent a malformed packet: ") + verdict.text(), this);
  return drivers::Take::rejected;
}

int DriverInstance::bulk_destination(drivers::Rank from, std::uint64_t transfer_id, std::uint64_t offset,
                                     std::uint64_t length, iovec* out, int max) {
  const CallbackLock guard(*this);
  Peer& peer = context.peer(from);
  const int count = rendezvous::bulk_destination(context, peer, *this, {Handle{transfer_id}, offset, length},
                                                 {out, static_cast<std::size_t>(max)});
  if (count == 0) pacing::arrived(context, peer, *this, length);
  const bool timed = driver->capabilities().rma_min_is_guess && copy_costs.times_piece();
  piece_begin_ = timed ? now_ns() : 0;
  return count;
}

void DriverInstance::bulk_written(drivers::Rank from, std::uint64_t transfer_id, std::uint64_t offset,
                                  std::uint64_t length) {
  const CallbackLock guard(*this);
  driver->counters.bulk_bytes_received += length;
  if (piece_begin_ != 0) copy_costs.piece_copied(length, now_ns() - std::exchange(piece_begin_, 0));
  rendezvous::bulk_written(context, context.peer(from), *this, {Handle{transfer_id}, offset, length});
}

void DriverInstance::done(drivers::Token token, drivers::Status status) {
  const CallbackLock guard(*this);
  auto* const what = static_cast<DriverToken*>(token);
  if (what->is_get) {
    async_get::piece_done(*this, static_cast<rendezvous::RmaCopy&>(*what), status);
  } else {
    link::packet_done(context, static_cast<Rail&>(*what), status);
  }
}

void DriverInstance::ready(drivers::Rank to) {
  const CallbackLock guard(*this);
  Peer& peer = context.peer(to);
  Rail* rail = peer.rail_of(*this);
  if (rail == nullptr || rail->connection == Connection::failed || peer.disconnected()) return;
  if (rail->transmit == Transmit::full) {
    transition(*rail, Transmit::idle);
  } else if (rail->transmit == Transmit::blocked) {
    transition(*rail, Transmit::unblocked);
  } else if (rail->transmit == Transmit::refused) {
    transition(*rail, Transmit::staged);
    push_flush(*rail);
  }
  context.mark_backlogged(peer);
}

void DriverInstance::connected(drivers::Rank to) {
  Rail* unwanted = nullptr;
  {
    const CallbackLock guard(*this);
    unwanted = peers::connected(engine_of(context), *this, to);
  }
  if (unwanted != nullptr) reject(*unwanted);
}

/// Rejects the peer of this rail. Not called under the lock, because it may be a system call. If the driver is full,
/// the peer is told when it sends something.
void DriverInstance::reject(Rail& rail) {
  CANELE_COVER(disconnected_peer_rejected);
  static const wire::Head bye{0, 0, 0, wire::Type::bye, 0};
  const iovec piece{const_cast<wire::Head*>(&bye), sizeof bye};
  driver->send_packet(rail.peer->rank, &piece, 1, sizeof bye, static_cast<DriverToken*>(&rail));
}

void DriverInstance::failed(drivers::Rank to, bool lost, std::string_view reason) {
  const CallbackLock guard(*this);
  context.packet_prefetch.forget();
  peers::driver_failed(engine_of(context), *this, to, lost, reason);
}

std::uint64_t DriverInstance::now_ns() { return context.platform.now_ns(); }
std::uint64_t DriverInstance::random() { return context.platform.random(); }

std::string DriverInstance::setting(std::string_view name, std::string_view fallback) {
  return engine_of(context).lifecycle.settings->by_name(name, fallback);
}

drivers::Rank DriverInstance::next_failed_rank() {
  Rail* rail = failed_rails.load(std::memory_order_acquire);
  if (rail == nullptr) [[likely]]
    return -1;
  // Only this caller takes entries out, and each rail is put in once.
  while (!failed_rails.compare_exchange_weak(rail, rail->next_failed, std::memory_order_acquire)) {
  }
  return rail->peer->rank;
}

void DriverInstance::log(int level, std::string_view text) {
  context.log(static_cast<LogLevel>(level), std::string(factory.name) + ": " + std::string(text));
}

}  // namespace canele::comm

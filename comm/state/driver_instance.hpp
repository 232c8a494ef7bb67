// SPDX-License-Identifier: BSD-3-Clause
//
// DriverInstance: one open driver of an engine, the rule for calling it, and the packets that wait for a call.
//
// A memory-only driver is called under the engine's lock. Any other driver is called by the thread that holds
// `call_lock`, never under the lock. The callbacks are the same for both; those of a system-call driver take the
// engine's lock first.
//
//   flush(), locked ─▶ Rail staged ─▶ flush (lock-free LIFO) ─▶ holder of call_lock ─▶ driver ─▶ Rail::sent_op ─▶ lock
#pragma once

#include <atomic>
#include <string>

#include "comm/state/copy_costs.hpp"
#include "comm/state/peer.hpp"
#include "comm/state/under_lock.hpp"
#include "comm/wire/verdict.hpp"
#include "drivers/driver.hpp"
#include "ltask/submit_lock.hpp"

namespace canele::comm {

class Context;
namespace rendezvous {
struct RmaCopy;
}

struct DriverInstance final : drivers::DriverEvents, drivers::DriverContext {
  DriverInstance(Context& owner, const drivers::DriverFactory& from);
  virtual ~DriverInstance() = default;

  // ---- called by the driver: see drivers/driver.hpp
  drivers::Take packet(drivers::Rank from, std::span<const std::byte> bytes) override;
  drivers::RunTaken packets(drivers::Rank from, const drivers::PacketRun& run) override;
  void prefetch_hint(drivers::Rank from, std::span<const std::byte> bytes) noexcept override;
  int bulk_destination(drivers::Rank from, std::uint64_t transfer_id, std::uint64_t offset, std::uint64_t length,
                       iovec* out, int max) override;
  void bulk_written(drivers::Rank from, std::uint64_t transfer_id, std::uint64_t offset, std::uint64_t length) override;
  void done(drivers::Token token, drivers::Status status) override;
  void ready(drivers::Rank rank) override;
  void connected(drivers::Rank rank) override;
  void failed(drivers::Rank rank, bool lost, std::string_view reason) override;
  std::uint64_t now_ns() override;
  std::uint64_t random() override;
  std::string setting(std::string_view name, std::string_view fallback) override;
  drivers::Rank next_failed_rank() override;
  void log(int level, std::string_view text) override;

  void reject(Rail& rail);  ///< rejects a peer that this rank has given up, by telling it that this rank has left
  bool memory_only() const { return driver->capabilities().memory_only; }
  bool has_flush() const {
    return flush.load(std::memory_order_acquire) != nullptr || gets.load(std::memory_order_acquire) != nullptr;
  }
  /// Returns a byte that tells the rails of a pair apart; it is never 0, nor above 251.
  std::uint8_t driver_tag() const {
    unsigned sum = 0;
    for (const char c : label) sum = sum * 31 + static_cast<unsigned char>(c);
    return static_cast<std::uint8_t>(1 + sum % 251);
  }
  void push_flush(Rail& rail);
  Rail* take_flush();  ///< takes all of them, oldest first
  void push_failed(Rail& rail);

  Context& context;
  const drivers::DriverFactory& factory;
  std::unique_ptr<drivers::Driver> driver;
  drivers::Address address;
  std::string label;      ///< name under which the address is published: "tcp", the second one "tcp#1"
  std::size_t index = 0;  ///< in Context::instances
  std::size_t group = 0;  ///< equal for drivers that are used together
  ltask::CombiningTryLock call_lock;
  std::atomic<Rail*> flush{nullptr};
  std::atomic<Rail*> failed_rails{nullptr};         ///< rails of peers that the launcher has reported as dead
  std::atomic<rendezvous::RmaCopy*> gets{nullptr};  ///< see rendezvous/async_get.hpp
  std::vector<std::uint64_t>
      deregistrations;  ///< handles of registrations to end; accessed by the holder of `call_lock`
  std::atomic<int> connected_peers{0};
  std::atomic<unsigned> turns{0}, dry_polls{0};  ///< system-call drivers: polled less often when idle
  std::atomic<std::uint64_t> staged_sent{0};     ///< staged packets so far; written by the holder of `call_lock`
  LastEvent last_event;
  strategies::Costs costs;             ///< measured where there is a sample, else declared; constant after open()
  CopyCosts copy_costs CANELE_LOCKED;  ///< where Capabilities::rma_min is a guess

 private:
  std::uint64_t piece_begin_ CANELE_LOCKED = 0;  ///< when the copy of a piece that is timed began; 0: none is

  // parts of packet()
  drivers::Take present(drivers::Rank from, std::span<const std::byte> bytes) CANELE_UNDER_LOCK;
  drivers::Take present_locked(drivers::Rank from, std::span<const std::byte> bytes);
  drivers::Take present_with_prefetch(drivers::Rank from, std::span<const std::byte> bytes) CANELE_UNDER_LOCK;
  drivers::Take from_disconnected(Peer& peer) CANELE_UNDER_LOCK;
  drivers::Take rejected_packet(Peer& peer, Verdict verdict, std::size_t bytes) CANELE_UNDER_LOCK;
};

/// The bit of a rail in Request::bulk_rails. More than 64 drivers share bits: a lost rail then repeats more than it
/// must.
inline std::uint64_t bulk_bit(const Rail& rail) { return std::uint64_t{1} << (rail.instance->index % 64); }

}  // namespace canele::comm

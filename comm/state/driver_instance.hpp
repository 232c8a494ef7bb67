// SPDX-License-Identifier: BSD-3-Clause
//
// DriverSlot: one open driver of an engine, the rule for calling it, and the packets that wait for a call.
//
// A memory-only driver is called under the engine's lock. Any other driver is called by the thread that holds `gate`,
// never under the lock. The callbacks are the same for both; those of a system-call driver take the engine's lock
// first.
//
//   pump() under the lock ─▶ Rail staged ─▶ flush (lock-free LIFO) ─▶ holder of gate ─▶ driver ─▶ Rail::sent_op ─▶ lock
#pragma once

#include <atomic>
#include <string>

#include "comm/state/peer.hpp"
#include "drivers/driver.hpp"
#include "ltask/submit_lock.hpp"

namespace canele::comm {

class Context;
namespace rendezvous {
struct Pull;
}

struct DriverSlot final : drivers::DriverEvents, drivers::DriverContext {
  DriverSlot(Context& owner, const drivers::DriverFactory& from);
  virtual ~DriverSlot() = default;

  // ---- called by the driver: see drivers/driver.hpp
  drivers::Take packet(drivers::Rank from, std::span<const std::byte> bytes) override;
  drivers::RunTaken packets(drivers::Rank from, const drivers::PacketRun& run) override;
  void foresee(drivers::Rank from, std::span<const std::byte> bytes) noexcept override;
  int landing(drivers::Rank from, std::uint64_t key, std::uint64_t offset, std::uint64_t length, iovec* out,
              int max) override;
  void landed(drivers::Rank from, std::uint64_t key, std::uint64_t offset, std::uint64_t length) override;
  void done(drivers::Token token, drivers::Status status) override;
  void ready(drivers::Rank rank) override;
  void connected(drivers::Rank rank) override;
  void failed(drivers::Rank rank, bool lost, std::string_view reason) override;
  std::uint64_t now_ns() override;
  std::uint64_t random() override;
  std::string setting(std::string_view name, std::string_view fallback) override;
  drivers::Rank next_death() override;
  void log(int level, std::string_view text) override;

  void turn_away(Rail& rail);  ///< rejects a peer that this rank has given up, by telling it that this rank has left
  bool memory_only() const { return driver->capabilities().memory_only; }
  bool has_flush() const {
    return flush.load(std::memory_order_acquire) != nullptr || pulls.load(std::memory_order_acquire) != nullptr;
  }
  /// Returns a byte that tells the rails of a pair apart; it is never 0.
  std::uint8_t mark() const {
    unsigned sum = 0;
    for (const char c : label) sum = sum * 31 + static_cast<unsigned char>(c);
    return static_cast<std::uint8_t>(1 + sum % 255);
  }
  void push_flush(Rail& rail);
  Rail* take_flush();  ///< takes all of them, oldest first
  void push_death(Rail& rail);

  Context& context;
  const drivers::DriverFactory& factory;
  std::unique_ptr<drivers::Driver> driver;
  drivers::Address address;
  std::string label;      ///< name under which the address is published: "tcp", the second one "tcp#1"
  std::size_t index = 0;  ///< in Context::slots
  std::size_t group = 0;  ///< equal for drivers that are used together
  ltask::Gate gate;
  std::atomic<Rail*> flush{nullptr};
  std::atomic<Rail*> deaths{nullptr};             ///< rails of peers that the launcher has reported as dead
  std::atomic<rendezvous::Pull*> pulls{nullptr};  ///< see rendezvous/async_get.hpp
  std::vector<std::uint64_t> withdrawals;         ///< registrations (exposures) to end; accessed by the gate's holder
  std::atomic<int> connected_peers{0};
  std::atomic<unsigned> turns{0}, dry_polls{0};  ///< system-call drivers: polled less often when idle
  LastEvent last_event;
  strategies::Costs costs;  ///< measured where there is a sample, else declared; constant after open()

 private:  // parts of packet()
  drivers::Take present(drivers::Rank from, std::span<const std::byte> bytes);
  drivers::Take present_locked(drivers::Rank from, std::span<const std::byte> bytes);
  drivers::Take present_looking_ahead(drivers::Rank from, std::span<const std::byte> bytes);
  drivers::Take of_the_gone(Peer& peer);
  drivers::Take not_taken(Peer& peer, const char* wrong, std::size_t bytes);
};

}  // namespace canele::comm

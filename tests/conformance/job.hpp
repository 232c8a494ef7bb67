// SPDX-License-Identifier: BSD-3-Clause
//
// Job: a rank as its test sees it. It drives the driver as the engine does: polls, sleeps when nothing happens, waits
// for ready() after full, rings doorbells.
//
// Used by the kit's tests, in the ranks. One thread; a rank that is a thread has a Job of its own. A wait sleeps with
// no timeout short enough to hide a fault, so a wake-up that a driver loses fails the test in which it happens.
#pragma once

#include <chrono>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/conformance/driver_kit.hpp"
#include "tests/conformance/kit.hpp"
#include "tests/conformance/launch.hpp"

namespace canele::conformance {

/// The ways to send a packet.
enum class Way : std::uint8_t { packet, pieces, in_line, reserved, count };

class Job {
 public:
  Job(const drivers::DriverFactory& made_by, const Options& given, Rank own, Rank ranks, int channel, Place& place);

  /// Opens the driver and learns the addresses of all ranks. `adjust` may change the context before.
  bool start(const std::function<void(Node&)>& adjust);
  /// Waits for all ranks, closes, checks that nothing is left. Returns false if this rank's test has failed.
  bool finish();

  const drivers::Capabilities& can() const { return node.driver->capabilities(); }
  bool is_alone() const { return size == 1; }
  /// Returns the peer for tests that need one only: the neighbour, or this rank itself.
  Rank partner() const { return is_alone() ? rank : rank ^ 1; }
  /// Returns a rank that the job does not have.
  Rank absent() const { return size; }

  /// Drives the driver until `condition` holds. Returns false, and fails the test, after wait_limit_s seconds or if a
  /// peer failed that was not allowed to.
  bool until(const std::function<bool()>& condition, const char* what);
  /// Notes that the condition has done work: polls again before sleeping.
  void busy() { idle_ = 0; }
  /// Waits until all other ranks arrive here, and drives the driver meanwhile.
  bool barrier(const char* name);
  /// Waits until all other ranks arrive here, without touching the driver.
  void hold(const char* name);
  /// Does both: all ranks have received what they waited for, and nothing arrives before this returns. For use before
  /// the handlers of a Node change.
  bool align(const char* name) {
    const bool met = barrier(name);
    if (met) hold(name);
    return met;
  }

  Status connect(Rank peer) { return node.driver->connect(peer, addresses[static_cast<std::size_t>(peer)]); }
  bool is_up(Rank peer) const { return node.up.count(peer) == 1; }
  bool has_failed(Rank peer) const { return node.failures.count(peer) == 1; }
  /// Connects every pair, the lower rank to the higher, and each rank to itself where the driver can. Returns when all
  /// connections are up.
  bool connect_all();

  /// Makes one attempt. Remembers `full`: ready() must come before the next `full` counts.
  Status try_send(Rank to, const Bytes& bytes, Way way = Way::packet, int pieces = 1);
  Status try_bulk(Rank to, std::uint64_t key, std::uint64_t offset, const Bytes& bytes, int pieces = 1);
  Status try_bulk_lent(Rank to, std::uint64_t key, std::uint64_t offset, iovec piece);
  bool owed(Rank peer) const { return owed_.count(peer) == 1; }
  /// Tries until the driver takes the packet. Returns false if the peer failed.
  bool send(Rank to, const Bytes& bytes, Way way = Way::packet);

  /// Sleeps on the driver's descriptor and nothing else. Returns false if a wake-up was lost.
  bool sleep_strictly();
  /// Checks the channel to the parent once.
  void look_at_parent();
  /// Asks for `peer` to be killed, or stopped for stop_s seconds; returns when it is done.
  bool kill(Rank peer) { return ask(Message::kill, peer); }
  bool stop(Rank peer) { return ask(Message::stop, peer); }
  bool has_continued() const { return continued_; }
  void answer(std::span<const std::byte> bytes);
  void at(const char* where);

  const Rank rank, size;
  const Options& options;
  const drivers::DriverFactory& factory;
  Node node;
  std::vector<drivers::Address> addresses;
  std::set<Rank> may_fail;      ///< peers whose failed() is expected
  bool shares_process = false;  ///< with other ranks, as threads

 private:
  void step(std::chrono::steady_clock::time_point end);
  void sleep(int limit_ms);
  bool ask(Message::Kind kind, Rank peer);
  void wait_for_parent(const std::function<bool()>& condition, const char* what);
  Status account(Rank to, Status status);
  Status send_reserved(Rank to, const Bytes& bytes);
  bool surprised();
  std::string who_has_failed() const;

  int channel_;
  Place& place_;
  int idle_ = 0, descriptors_ = 0;
  std::set<Rank> owed_;
  unsigned released_ = 0, acknowledged_ = 0, addresses_known_ = 0;
  bool continued_ = false;
};

int open_descriptors();

}  // namespace canele::conformance

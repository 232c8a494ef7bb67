// SPDX-License-Identifier: BSD-3-Clause
//
// Fabric: one simulated network, or the shared memory of simulated nodes: which frame arrives where, when, and damaged
// how.
//
// The simulator makes it and plans its faults; the sim drivers of all ranks are attached to it. One thread runs
// everything.
//
//   Fabric ──▶ ports[rank]  (sender's and receiver's end of the wire: LogGP)
//          ──▶ channels[from][to] ──▶ Frame ─▶ Frame ─▶ …   in transit, oldest first
//          ──▶ drivers[rank]
//
// Frames keep their order in a channel, and none is lost while both ends live: the driver contract promises that.
// Faults are what the contract allows, or what a broken peer does (`corrupt`).
//
// Model of time: LogGP (Alexandrov, Ionescu, Schauser, Scheiman, SPAA 1995) with contention at both ports. A frame
// leaves when its sender's port is free, takes latency + size / bandwidth, and arrives when its receiver's port is
// free.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "drivers/driver.hpp"
#include "drivers/sim/counted.hpp"
#include "drivers/sim/timeline.hpp"

namespace canele::drivers::sim {

class SimDriver;

/// What a fabric's driver can do.
enum class Kind : std::uint8_t {
  memory,  ///< shared memory with one copy: reserves, inline, rma() by any thread, shared lines, doorbells.
  ring,    ///< shared memory without these copies: bulk data through packets.
  stream,  ///< a socket: system calls, bulk_send(), finds failures itself.
  rma,     ///< a network card: system calls, pending rma(); the launcher reports deaths.
  plain    ///< a socket that does not find failures: the launcher reports deaths.
};
const char* name_of(Kind kind);

struct Model {
  std::uint64_t latency_ns = 1000, gap_ns = 100;
  double bandwidth = 10.0;  ///< bytes per nanosecond
};

struct FabricOptions {
  std::string name;  ///< unique in the process; the driver's argument
  Kind kind = Kind::stream;
  Model model;
  int ranks = 1, ranks_per_node = 1;
  bool local = true, remote = true;          ///< which pairs it joins
  std::size_t in_flight_limit = 256 * 1024;  ///< bytes in flight from one rank to another
  std::size_t max_packet = 16 * 1024, max_inline = 64;
  bool measured = false;       ///< remote copies queue at the ports, and take exactly the time of the model
  bool may_duplicate = false;  ///< with several rails, whose packets are numbered
};

/// Kinds of faults, for counting.
enum class Fault : std::uint8_t {
  delay,
  back_pressure,
  pending_send,
  short_write,
  duplicate,
  truncated,
  corrupt,
  clog,
  partition,
  rail_loss,
  registration,
  copy_full,
  copy_failed,
  payload,
  count
};
const char* name_of(Fault fault);

/// Probabilities per opportunity; 0: never.
struct FaultRates {
  double delay = 0, back_pressure = 0, pending_send = 0, short_write = 0, duplicate = 0, truncated = 0, corrupt = 0;
  double registration = 0, copy_full = 0, copy_failed = 0;
  double payload = 0;  ///< a bit of any packet flipped, which a checksum must find
  std::uint64_t longest_delay_ns = 200'000;
};

struct Frame {
  enum class Type : std::uint8_t { hello, welcome, reject, packet, bulk, bye, lost };  // lost: never on the wire
  Type type = Type::packet;
  std::uint64_t time = 0;  ///< of arrival
  std::uint64_t incarnation = 0, peer_incarnation = 0;
  std::uint64_t transfer_id = 0, offset = 0;
  std::size_t done = 0;            ///< bulk: bytes delivered
  std::vector<iovec> destination;  ///< bulk: where the next bytes go; lent, nothing is written yet
  std::vector<std::byte> bytes;
  std::size_t charged = 0;    ///< bytes that it takes of the sender's limit
  std::vector<iovec> unread;  ///< pending: still in the sender's memory
  Token token = nullptr;      ///< pending
  std::string why = {};       ///< lost
  bool peer_lost = true;      ///< lost
};

/// Simulated memory that a peer may read or write: what an rkey names.
struct Region {
  std::vector<iovec> pieces;
  RmaOp op = RmaOp::get;
  std::vector<std::pair<Rank, std::uint64_t>> readers = {};  ///< copies in flight, by reading process.
  std::vector<std::byte> segment = {};                       ///< the memory, if it belongs to the fabric
};

class Fabric {
 public:
  /// `breathe`: called where a thread may lose its core. `complain`: a promise of the contract was broken.
  struct World {
    Timeline& timeline;
    Bells& bells;
    std::function<void(std::uint64_t ns)> breathe;
    std::function<void(const std::string&)> complain;
    std::function<void(std::uint64_t)> trace;      ///< a number for the trace hash.
    std::function<void(Rank, Rank)> broken = {};   ///< a packet from the first rank to the second was damaged.
    std::function<void(Rank, Rank)> spoiled = {};  ///< a packet was damaged by `payload`: the receiver must notice.
  };
  Fabric(World world, FabricOptions options, Dice dice);
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;
  /// Returns the fabric of that name.
  static Fabric* find(std::string_view name);

  const FabricOptions& options() const { return options_; }
  bool is_memory() const { return options_.kind == Kind::memory || options_.kind == Kind::ring; }
  FaultRates rates;
  std::array<std::uint64_t, static_cast<std::size_t>(Fault::count)> injected{};
  std::uint64_t frames = 0;

  // ---- faults, by the simulator -----------------------------------------------------------------------------------
  /// Delays everything from `from` to `to` until that time; then all of it arrives, in order.
  void delay(Rank from, Rank to, std::uint64_t until, Fault as);
  /// Cuts the rail between two ranks for good; both learn of it, each at its own time.
  void cut(Rank a, Rank b);
  bool is_cut(Rank a, Rank b) { return channel(a, b).cut; }
  /// Ends a process, as by SIGKILL.
  void kill(Rank rank);

  // ---- by the drivers ---------------------------------------------------------------------------------------------
  bool attach(SimDriver& driver);
  void detach(SimDriver& driver);
  SimDriver* driver_of(Rank rank) const { return drivers_[static_cast<std::size_t>(rank)]; }
  bool joins(Rank a, Rank b) const;
  /// Returns when `size` bytes that leave `from` now will have arrived at `to`; keeps the ports busy with them.
  std::uint64_t pass(Rank from, Rank to, std::size_t size);
  /// Sends a frame.
  void transmit(Rank from, Rank to, Frame frame);
  /// Reads the frames that are still in the sender's memory, which is about to go: a send that was taken counts as
  /// sent.
  void read_all_pending(Rank from, Rank to);
  /// Drops the frames to `to` that are still in the sender's memory, which must not be read any more.
  void forget_pending(Rank from, Rank to);
  bool strikes(Fault fault, double rate) {
    if (!dice.chance(rate)) return false;
    ++injected[static_cast<std::size_t>(fault)];
    return true;
  }
  std::uint64_t wire_time(std::size_t size) const {
    return static_cast<std::uint64_t>(static_cast<double>(size) / options_.model.bandwidth);
  }
  std::uint64_t now() const { return world.timeline.now(); }
  std::uint64_t add_region(Rank rank, Region region);
  /// Returns nullptr if there is no region of that name (any more).
  Region* region(Rank rank, std::uint64_t id);
  /// Ends a region. Complains if a peer is still copying, which is against the contract.
  void drop_region(Rank rank, std::uint64_t id);
  void drop_regions(Rank rank) { regions_[static_cast<std::size_t>(rank)].clear(); }
  /// Returns the lines of a pair of processes, as `rank` sees them. Another process of a rank has others.
  SharedLines lines(const SimDriver& driver, Rank peer, std::uint64_t incarnation, int count);

  World world;
  Dice dice;

 private:
  struct Channel {
    std::deque<Frame, Counted<Frame>> transit;
    std::uint64_t last_time = 0, delayed_until = 0;
    bool cut = false;
  };
  struct Port {
    std::uint64_t out_free = 0, in_free = 0;
  };
  Channel& channel(Rank from, Rank to) { return channels_[{from, to}]; }
  void no_way(Rank from, Rank to, std::uint64_t incarnation);
  void arrive(Rank from, Rank to);
  void damage(Rank from, Rank to, Frame& frame);
  void read_pending(Rank from, Rank to);

  FabricOptions options_;
  std::vector<SimDriver*> drivers_;
  std::vector<Port> ports_;
  CountedMap<std::pair<Rank, Rank>, Channel> channels_;
  std::vector<CountedMap<std::uint64_t, Region>> regions_;
  std::uint64_t last_region_ = 0;
  /// By incarnations.
  CountedMap<std::pair<std::uint64_t, std::uint64_t>, std::vector<SharedLine, Counted<SharedLine>>> lines_;
};

}  // namespace canele::drivers::sim

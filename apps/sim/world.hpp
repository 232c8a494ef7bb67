// SPDX-License-Identifier: BSD-3-Clause
//
// World: a whole job in one thread: its engines, its networks, and its faults, all from one seed.
//
// Used by canele-sim and tests/simulation. One thread. The engines are the production code, with their worker thread
// and blocking calls. A rank's `body` is written like any program, with canele_wait and all.
//
//   World ─┬─ Timeline, Bells, Scheduler ── a fiber per thread
//          ├─ Fabric per network ◀── SimDriver per rank
//          └─ ranks[] ── SimPlatform, SimBootstrap, Engine
#pragma once

#include <canele/canele.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/sim/device_memory.hpp"
#include "apps/sim/environment.hpp"
#include "apps/sim/scheduler.hpp"
#include "apps/sim/sim_platform.hpp"
#include "comm/engine/engine.hpp"
#include "drivers/sim/fabric.hpp"

namespace canele::sim {

using drivers::sim::Fabric;
using drivers::sim::FabricOptions;

/// A network, and whether it joins the one before it as another rail.
struct Network {
  FabricOptions options;
  bool with_previous = false;
};

struct WorldOptions {
  std::uint64_t seed = 1;
  int ranks = 2, ranks_per_node = 1;
  std::vector<Network> networks;  ///< in order of preference; names, ranks and nodes are filled in.
  std::vector<std::string> settings;
  std::string strategy = "aggregate";
  bool worker = true;                                ///< each engine has its bound worker.
  unsigned on_demand_progress = CANELE_WORKER_NONE;  ///< kind of on-demand progress, in addition.
  bool checksums = false;                            ///< CANELE_CHECKSUM=packets.
  unsigned timer_factor = 1;          ///< timed sleeps last so many times longer; see fault "late-timers".
  unsigned processors = 0;            ///< of a node; 0: enough for all its ranks.
  double comparison_ns = 0;           ///< time of each comparison of a matcher.
  std::uint64_t shuffled_tasks = 0;   ///< seed of the order in which tasks run; 0: as submitted.
  std::size_t trace_events = 0;       ///< events kept of each engine; 0: none, and messages may take the fast path.
  bool verbose = false;               ///< log lines go to stderr.
  std::uint64_t latest_start_ns = 0;  ///< ranks start up to this much late, and may die before they have started.
  std::uint64_t slowest_answer_ns = 200'000;  ///< of the launcher.
  bool deaths_break_fences = false;           ///< no rank starts if a rank dies while others wait for all to start.
};

class World final : public Environment {
 public:
  using Body = std::function<void(int rank, canele_engine_t* engine)>;

  explicit World(WorldOptions options);
  ~World() override;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Runs init, body and finalize on every rank. Call once.
  void start(Body body);
  /// Returns true if all live ranks are through; false if nothing happens any more, or virtual time has reached
  /// `until`.
  bool run(std::uint64_t until_ns);
  /// Runs until `done`, for workloads that stop on the way.
  bool run_until(const std::function<bool()>& done, std::uint64_t until_ns);

  // ---- what befalls it --------------------------------------------------------------------------------------------
  void kill(int rank);
  /// Lets another process take the place of a dead rank and run the same body. Its launcher allows that, but peers that
  /// knew the old process do not (docs/simulation.md, "A rank that comes back").
  void come_back(int rank);
  bool is_dead(int rank) const override { return board_->dead.contains(rank); }
  int life(int rank) const override { return ranks_[static_cast<std::size_t>(rank)].life; }
  bool is_running(int rank) const { return ranks_[static_cast<std::size_t>(rank)].running; }
  bool is_through(int rank) const { return ranks_[static_cast<std::size_t>(rank)].through; }
  bool is_disconnecting(int rank) const override { return ranks_[static_cast<std::size_t>(rank)].disconnecting; }
  int deaths() const override { return static_cast<int>(board_->dead.size()); }

  // ---- what is found ----------------------------------------------------------------------------------------------
  void complain(const std::string& what) override;
  const std::vector<std::string>& complaints() const { return complaints_; }
  /// Destroys the engines of ranks that were killed. Requests that were pending there must still exist.
  void destroy_killed() { killed_engines_.clear(); }
  /// Returns the first warning of any engine; "": there was none.
  const std::string& first_warning() const { return first_warning_; }
  /// Called when a packet between two ranks was damaged.
  std::function<void(int from, int to)> on_damage;
  /// Called when a packet was damaged in a world with checksums: the engine must find the damage.
  std::function<void(int from, int to)> on_spoiled;
  void trace(std::uint64_t what) override;
  std::uint64_t trace_hash() const { return hash_; }
  /// Returns the events of all engines, for Perfetto.
  std::string trace_json() const;
  /// Returns which thread waits for what, as text.
  std::string wait_graph() const;

  /// Returns the comparisons that the matchers of all ranks have made. The default matcher makes none.
  std::uint64_t comparisons() const;

  int ranks() const override { return options_.ranks; }
  bool has_worker() const override { return options_.worker; }
  std::uint64_t now_ns() const override { return timeline.now(); }
  void pause_for(std::uint64_t ns) override { scheduler.pause_for(ns); }
  void give_to_device(int rank, std::vector<std::byte>& bytes) override {
    if (devices != nullptr) devices->give(rank, bytes);
  }
  void take_from_device(std::vector<std::byte>& bytes) override {
    if (devices != nullptr) devices->take(bytes);
  }
  const WorldOptions& options() const { return options_; }
  std::vector<std::unique_ptr<Fabric>>& fabrics() { return fabrics_; }
  comm::Engine* engine(int rank) const { return ranks_[static_cast<std::size_t>(rank)].engine; }
  SimPlatform& platform(int rank) { return *ranks_[static_cast<std::size_t>(rank)].platform; }

  DeviceMemories* devices = nullptr;  ///< nullptr: the ranks have none
  Timeline timeline;
  Bells bells;
  Dice dice;
  Scheduler scheduler;
  Machine machine;

 private:
  struct Rank {
    std::unique_ptr<SimPlatform> platform;
    comm::Engine* engine = nullptr;
    int life = 0;
    std::uint64_t compared = 0;  ///< comparisons of its matcher at the last query
    bool disconnecting = false, through = false, running = true;
  };
  void live(int rank, const Body& body);
  bool all_through();
  std::unique_ptr<SimPlatform> make_platform(int rank);
  comm::Engine* make_engine(int rank);
  void log(int rank, LogLevel level, std::string_view text);
  std::uint64_t pay_for_comparisons();

  WorldOptions options_;
  std::string name_;  ///< of this world, in its fabrics' names
  std::vector<std::unique_ptr<Fabric>> fabrics_;
  std::shared_ptr<Board> board_ = std::make_shared<Board>();
  std::vector<Rank> ranks_;
  std::shared_ptr<Body> body_;
  bool recount_ = true;                                        ///< a rank has ended, so all_through() must count again
  std::vector<std::unique_ptr<SimPlatform>> old_platforms_;    ///< of ranks that came back; their engines are below
  std::vector<std::unique_ptr<comm::Engine>> killed_engines_;  ///< of ranks that were killed
  std::vector<std::pair<int, std::unique_ptr<comm::EventLog>>> logs_;  ///< of engines that have left
  std::vector<std::string> complaints_;
  std::string first_warning_;
  std::uint64_t hash_ = 0x9e3779b97f4a7c15u;
};

}  // namespace canele::sim

// SPDX-License-Identifier: BSD-3-Clause
//
// World: a whole job in one thread: its engines, its networks, and what befalls them; all from one seed.
//
// Who: canele-sim and tests/simulation. Threads: one.
// Surprise: the engines are the production code, with their worker thread and blocking calls; a rank's `body` is
//      written like any program, with canele_wait and all.
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
#include <vector>

#include "apps/sim/scheduler.hpp"
#include "apps/sim/sim_platform.hpp"
#include "comm/core/engine.hpp"
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
  std::vector<Network> networks;  ///< in order of preference; names, ranks and nodes are filled in
  std::vector<std::string> settings;
  std::string strategy = "aggregate";
  bool worker = true;         ///< each engine has its bound worker
  unsigned timer_factor = 1;  ///< timed sleeps last so many times longer; see fault "late-timers"
  unsigned processors = 0;    ///< of a node; 0: enough for all its ranks
  bool verbose = false;       ///< log lines go to stderr
};

class World {
 public:
  using Body = std::function<void(int rank, canele_engine_t* engine)>;

  explicit World(WorldOptions options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Every rank: init, body, finalize. To be called once.
  void start(Body body);
  /// True: all ranks that live are through. False: nothing happens any more, or virtual time has reached `until`.
  bool run(std::uint64_t until_ns);
  /// The same, until `done`, for workloads that stop on the way.
  bool run_until(const std::function<bool()>& done, std::uint64_t until_ns);

  // ---- what befalls it --------------------------------------------------------------------------------------------
  void kill(int rank);
  /// Another process takes the place of a dead rank, and greets those it knew.
  void come_back(int rank);
  bool is_dead(int rank) const { return board_->dead.contains(rank); }
  bool is_through(int rank) const { return ranks_[static_cast<std::size_t>(rank)].through; }
  /// Its body is over: it leaves, or has left.
  bool is_leaving(int rank) const { return ranks_[static_cast<std::size_t>(rank)].leaving; }
  int deaths() const { return static_cast<int>(board_->dead.size()); }

  // ---- what is found ----------------------------------------------------------------------------------------------
  /// Something is not as promised.
  void complain(const std::string& what);
  const std::vector<std::string>& complaints() const { return complaints_; }
  /// Called when a packet between two ranks was damaged.
  std::function<void(int from, int to)> on_damage;
  /// Part of what makes this run different from others.
  void trace(std::uint64_t what);
  std::uint64_t trace_hash() const { return hash_; }
  /// Who waits for what, for people.
  std::string wait_graph() const;

  const WorldOptions& options() const { return options_; }
  std::vector<std::unique_ptr<Fabric>>& fabrics() { return fabrics_; }
  comm::Engine* engine(int rank) const { return ranks_[static_cast<std::size_t>(rank)].engine; }
  SimPlatform& platform(int rank) { return *ranks_[static_cast<std::size_t>(rank)].platform; }

  Timeline timeline;
  Bells bells;
  Dice dice;
  Scheduler scheduler;
  Machine machine;

 private:
  struct Rank {
    std::unique_ptr<SimPlatform> platform;
    comm::Engine* engine = nullptr;
    bool leaving = false, through = false;
  };
  void live(int rank, const Body& body);
  bool all_through();
  comm::Engine* make_engine(int rank);
  void log(int rank, LogLevel level, std::string_view text);

  WorldOptions options_;
  std::string name_;  ///< of this world, in its fabrics' names
  std::vector<std::unique_ptr<Fabric>> fabrics_;
  std::shared_ptr<Board> board_ = std::make_shared<Board>();
  std::vector<Rank> ranks_;
  bool recount_ = true;                                   ///< somebody has come to an end: are all through?
  std::vector<std::unique_ptr<comm::Engine>> graveyard_;  ///< of ranks that were killed
  std::vector<std::string> complaints_;
  std::uint64_t hash_ = 0x9e3779b97f4a7c15u;
};

}  // namespace canele::sim

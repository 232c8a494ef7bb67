// SPDX-License-Identifier: BSD-3-Clause
//
// Engines on modelled cores.
//
// Ranks learn the end of a round by a barrier of the library. The waits in this barrier are what the engines learn
// from.
#include "apps/sim/core_engines.hpp"

#include <canele/collectives.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "apps/sim/world.hpp"
#include "comm/api/collective_call.hpp"
#include "comm/collectives/group.hpp"

namespace canele::sim {
namespace {

using comm::collectives::Operation;

/// State that all ranks share outside of the engines.
struct Rounds {
  std::uint64_t begins_ns = 0;
  int last = -1;  ///< the last round that a rank has ended
};

class Body {
 public:
  Body(World& world, const EngineCollective& collective, EngineTimes& times)
      : world_(world), collective_(collective), times_(times) {}

  void operator()(int rank, canele_engine_t* engine) {
    canele_group_t* group = nullptr;
    if (canele_group_create(engine, "cores", nullptr, 0, &group) != CANELE_OK) return world_.complain("no group");
    const auto n = static_cast<std::size_t>(world_.ranks());
    const bool has_blocks = collective_.operation == Operation::gather || collective_.operation == Operation::scatter;
    std::vector<std::byte> in(has_blocks && rank == 0 ? n * collective_.size : collective_.size), out(in.size());
    for (int round = 0; round < collective_.rounds; ++round) {
      meet(group);
      const std::uint64_t from = world_.now_ns();
      canele_request_t request{};
      if (start(group, in, out, &request) != CANELE_OK) return world_.complain(canele_error_detail());
      const double call_ns = static_cast<double>(world_.now_ns() - from);
      compute();
      if (canele_wait(&request, nullptr) != CANELE_OK) return world_.complain(canele_error_detail());
      world_.scheduler.pause_for(0);  // lets the time that it has worked pass
      ended(round, call_ns);
    }
    if (collective_.operation != Operation::scan) note_split(rank, group);
    canele_group_destroy(group);
  }

 private:
  /// Records the end of a round on this rank. The last rank counts, and the last round.
  void ended(int round, double call_ns) {
    if (std::exchange(rounds_.last, round) != round) times_.end_ns = times_.call_ns = 0;
    times_.end_ns = std::max(times_.end_ns, static_cast<double>(world_.now_ns() - rounds_.begins_ns));
    times_.call_ns = std::max(times_.call_ns, call_ns);
  }

  /// Lets all ranks continue at the same time. The first rank that leaves the barrier sets that time.
  void meet(canele_group_t* group) {
    constexpr std::uint64_t gap_ns = 500'000;  // long enough for workers to fall asleep
    canele_collective_options_t options{};
    options.struct_size = sizeof options;
    options.blocking = 1;
    if (canele_ibarrier(group, &options, nullptr) != CANELE_OK) return world_.complain(canele_error_detail());
    if (world_.now_ns() > rounds_.begins_ns) rounds_.begins_ns = world_.now_ns() + gap_ns;
    if (world_.now_ns() < rounds_.begins_ns) world_.scheduler.pause_for(rounds_.begins_ns - world_.now_ns());
  }

  void compute() {
    constexpr std::uint64_t at_a_time = 50'000;  // then another thread of the core may get its turn
    for (auto left = static_cast<std::uint64_t>(collective_.computation_ns); left > 0;) {
      const std::uint64_t now = std::min(left, at_a_time);
      world_.scheduler.spend(now);
      left -= now;
    }
  }

  int start(canele_group_t* group, std::vector<std::byte>& in, std::vector<std::byte>& out, canele_request_t* request) {
    canele_collective_options_t options{};
    options.struct_size = sizeof options;
    options.algorithm = static_cast<int>(collective_.algorithm);
    options.segment = collective_.segment == 0 ? ~std::size_t{0} >> 1 : collective_.segment;
    canele_operator_t sum{};
    canele_operator_of(CANELE_BXOR, CANELE_UINT8, &sum);
    canele_parts_t parts{};
    parts.length = collective_.size;
    switch (collective_.operation) {
      case Operation::bcast:
        return canele_ibcast(group, out.data(), collective_.size, 0, &options, request);
      case Operation::reduce:
        return canele_ireduce(group, in.data(), out.data(), collective_.size, &sum, 0, &options, request);
      case Operation::gather:
        return canele_igather(group, in.data(), collective_.size, out.data(), &parts, 0, &options, request);
      case Operation::scatter:
        return canele_iscatter(group, in.data(), &parts, out.data(), collective_.size, 0, &options, request);
      default:
        return canele_iscan(group, in.data(), out.data(), collective_.size, &sum, &options, request);
    }
  }

  void note_split(int rank, canele_group_t* group) {
    comm::collectives::Call call;
    call.operation = collective_.operation;
    call.size = world_.ranks();
    call.length = collective_.size;
    const auto* const known = comm::api::group_of(group).split_policy.find(call, 2);
    times_.split.resize(static_cast<std::size_t>(world_.ranks()));
    times_.split[static_cast<std::size_t>(rank)] = known == nullptr ? 0 : known->split();
  }

  World& world_;
  const EngineCollective& collective_;
  EngineTimes& times_;
  Rounds rounds_;
};

WorldOptions world_of(const CoreMachine& machine, const EngineCollective& collective) {
  WorldOptions options;
  options.ranks = options.ranks_per_node = static_cast<int>(machine.ranks);
  options.processors = machine.cores;
  Network memory;
  memory.options.kind = drivers::sim::Kind::memory;
  memory.options.model = {100, 10, 1 / machine.byte_ns};
  options.networks.push_back(memory);
  options.settings = {std::string("CANELE_EXPERT_RECEIVER_INITIATED=") + (collective.shared_copies ? "on" : "off"),
                      "CANELE_HANG_REPORT=0"};
  if (collective.split) options.settings.push_back("CANELE_EXPERT_SPLIT_TREE=" + std::to_string(*collective.split));
  return options;
}

/// The cores of one node: the ranks' own, then those for communication.
class NodeCores {
 public:
  explicit NodeCores(const CoreMachine& machine) : machine_(machine), cores_(machine.ranks + machine.cores) {
    if (left() > 0) cores_[machine.ranks].idle = machine.placing == Placing::shared ? left() : 1;
  }
  Scheduler::Core* of(const Scheduler::Thread& thread) {
    const auto rank = static_cast<std::uint32_t>(thread.rank);
    if (thread.name == "main" || machine_.placing == Placing::bind || left() == 0) return &cores_[rank];
    return &cores_[machine_.ranks + (machine_.placing == Placing::shared ? 0 : communication_core(machine_, rank))];
  }
  double busy_ns() const {
    double sum = 0;
    for (std::size_t core = machine_.ranks; core < cores_.size(); ++core)
      sum += static_cast<double>(cores_[core].busy_ns);
    return sum;
  }

 private:
  std::uint32_t left() const { return machine_.cores - machine_.ranks; }
  const CoreMachine& machine_;
  std::deque<Scheduler::Core> cores_;
};

}  // namespace

EngineTimes run_engines_on_cores(const CoreMachine& machine, const EngineCollective& collective) {
  constexpr std::uint64_t patience_ns = 100'000'000'000;
  EngineTimes times;
  NodeCores cores(machine);
  World world(world_of(machine, collective));
  world.scheduler.core_for = [&cores](const Scheduler::Thread& thread) { return cores.of(thread); };
  world.start(Body(world, collective, times));
  if (!world.run(patience_ns)) {
    times.problem =
        world.complaints().empty() ? "it has not ended:\n" + world.wait_graph() : world.complaints().front();
  }
  times.busy_ns = cores.busy_ns();
  return times;
}

}  // namespace canele::sim

// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives on modelled cores: overlapped times by number of ranks, split and placing, beside the model of split
// trees (comm/collectives/split_tree.hpp). See core_model.hpp for what is simulated.
//
// One thread. Times are in units of one message of the buffer, like the model's. The computation is sized to hide the
// blocking collective on all cores of a node, and fewer cores execute it; how long that takes is simulated, too.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "apps/sim/core_engines.hpp"
#include "apps/sim/core_model.hpp"
#include "apps/sim/cores_options.hpp"
#include "comm/collectives/algorithms/algorithms.hpp"
#include "comm/collectives/split_tree.hpp"

namespace canele::sim {
namespace {

namespace collectives = comm::collectives;
namespace split_tree = comm::collectives::split_tree;
using collectives::Algorithm;
using collectives::Operation;

constexpr std::array<const char*, 5> placing_names = {"bind", "numa", "nearest", "odd-even", "shared"};

struct Row {
  Placing placing = Placing::shared;
  std::uint32_t ranks = 0;
  double computation = 0, alone = 0;  ///< alone: S = 0 and no rank computes
  std::vector<double> overlapped;     ///< by split
  std::vector<double> model;          ///< by split; empty: there is no model
  double busy = 0;                    ///< busy share of the communication cores in the time `alone`
  double automatic = 0;               ///< engines: the time if they choose the split
  std::uint32_t chosen = 0;           ///< the split that most of them have chosen

  /// Returns Reynier's overhead ratio of the first split: 0: overlapped, 1: one after the other.
  double r_overhead() const {
    const double less = std::min(computation, alone);
    const double more = overlapped.front() - std::max(computation, alone);
    constexpr double nothing = 1e-9;
    return less == 0 || std::abs(more) < nothing ? 0 : more / less;
  }
};

/// Returns the index of the least time; of equal ones the first.
std::size_t best_of(const std::vector<double>& times) {
  constexpr double same = 1e-9;
  std::size_t best = 0;
  for (std::size_t i = 1; i < times.size(); ++i) {
    if (times[i] < times[best] - same) best = i;
  }
  return best;
}

class Cores {
 public:
  explicit Cores(const CoresOptions& options) : options_(options) {}

  /// Reads the options. Returns what is wrong, or "".
  std::string read();
  std::vector<Row> run();
  void print(const std::vector<Row>& rows) const;
  void print_json(const std::vector<Row>& rows) const;

 private:
  bool all_to_one() const { return operation_ == Operation::reduce || operation_ == Operation::gather; }
  bool rooted() const { return all_to_one() || operation_ == Operation::bcast || operation_ == Operation::scatter; }
  bool splits() const { return rooted() && choice_.algorithm == Algorithm::binomial; }
  split_tree::Sizes sizes() const {
    const bool has_blocks = operation_ == Operation::gather || operation_ == Operation::scatter;
    return has_blocks ? split_tree::Sizes::doubling : split_tree::Sizes::equal;
  }
  double unit_ns() const { return unit_ns_; }
  double measured_unit_ns() const;
  CoreMachine machine_of(Placing placing, std::uint32_t ranks) const;
  /// Times are in units.
  CoreTimes simulate(const CoreMachine& machine, std::uint32_t split, double computation) const;
  CoreTimes simulate_schedules(const CoreMachine& machine, std::uint32_t split, double computation) const;
  EngineTimes simulate_engines(const CoreMachine& machine, std::optional<std::uint32_t> split,
                               double computation) const;
  Row row_of(Placing placing, std::uint32_t ranks) const;
  std::string best_by_ranks(const std::vector<Row>& rows, Placing placing, std::vector<double> Row::*times) const;

  CoresOptions options_;
  Operation operation_ = Operation::reduce;
  collectives::Choice choice_;
  std::vector<Placing> placings_;
  double unit_ns_ = 0;
  double blocking_ = 0;  // on all cores of a node
};

std::string Cores::read() {
  constexpr std::array<Operation, 10> all = {
      Operation::bcast,     Operation::reduce,   Operation::allreduce,      Operation::gather, Operation::scatter,
      Operation::allgather, Operation::alltoall, Operation::reduce_scatter, Operation::scan,   Operation::exscan};
  const auto* const found =
      std::find_if(all.begin(), all.end(), [&](Operation one) { return name_of(one) == options_.operation; });
  if (found == all.end()) return "--operation: \"" + options_.operation + "\"; expected: bcast, reduce, scan …";
  operation_ = *found;
  choice_.algorithm = collectives::algorithm_named(options_.algorithm);
  if (choice_.algorithm == Algorithm::automatic && options_.algorithm != "auto") {
    return "--algorithm: \"" + options_.algorithm + "\"; expected: auto, binomial, chain, recursive …";
  }
  const bool scans = operation_ == Operation::scan || operation_ == Operation::exscan;
  if (choice_.algorithm == Algorithm::automatic && rooted()) choice_.algorithm = Algorithm::binomial;
  if (choice_.algorithm == Algorithm::automatic && scans) choice_.algorithm = Algorithm::chain;
  if (choice_.algorithm != Algorithm::automatic && !has(operation_, choice_.algorithm)) {
    return "--algorithm: a " + options_.operation + " has no " + options_.algorithm;
  }
  choice_.segment = options_.segment;
  if (options_.ranks.empty()) {
    for (std::uint32_t ranks = (options_.cores + 1) / 2; ranks + 2 <= options_.cores; ++ranks) {
      options_.ranks.push_back(ranks);
    }
  }
  for (const std::uint32_t ranks : options_.ranks) {
    if (ranks >= 1 && ranks <= options_.cores && ranks * options_.nodes >= 2) continue;
    return fmt::format("--node-ranks: {} of {} cores; expected: 1 to all cores of a node, and at least 2 in the job",
                       ranks, options_.cores);
  }
  if (options_.splits.empty()) options_.splits = splits() ? std::vector<std::uint32_t>{0, 1, 2, 3} : std::vector{0U};
  if (!splits() && options_.splits != std::vector{0U}) return "--split: only binomial trees from a root can be split";
  if (options_.engines && (options_.nodes != 1 || options_.copies != 1 || options_.levels_apart)) {
    return "--engines; expected: one node, without --copies and --levels-apart";
  }
  if (options_.engines && !rooted() && operation_ != Operation::scan) {
    return "--engines; expected: bcast, reduce, gather, scatter or scan";
  }
  if (!splits() && options_.levels_apart) return "--levels-apart: only binomial trees from a root have such levels";
  if (options_.placings.empty()) options_.placings = {"shared"};
  for (const std::string& name : options_.placings) {
    placings_.push_back(
        static_cast<Placing>(std::find(placing_names.begin(), placing_names.end(), name) - placing_names.begin()));
  }
  return "";
}

CoreMachine Cores::machine_of(Placing placing, std::uint32_t ranks) const {
  CoreMachine machine;
  machine.nodes = options_.nodes, machine.cores = options_.cores, machine.ranks = ranks;
  machine.placing = placing;
  machine.byte_ns = 1 / options_.core_gigabytes;
  machine.two_copies = options_.copies == 2;
  machine.nic_byte_ns = 1 / options_.nic_gigabytes;
  machine.nic_latency_ns = options_.nic_us * 1000;
  return machine;
}

CoreTimes Cores::simulate(const CoreMachine& machine, std::uint32_t split, double computation) const {
  if (!options_.engines) return simulate_schedules(machine, split, computation);
  const EngineTimes times = simulate_engines(machine, split, computation);
  return {times.end_ns / unit_ns(), times.busy_ns / unit_ns()};
}

EngineTimes Cores::simulate_engines(const CoreMachine& machine, std::optional<std::uint32_t> split,
                                    double computation) const {
  EngineCollective collective;
  collective.operation = operation_;
  collective.algorithm = choice_.algorithm;
  collective.size = options_.size;
  collective.segment = options_.segment;
  collective.split = split;
  collective.computation_ns = computation * unit_ns();
  collective.shared_copies = options_.shared_copies;
  if (!split) collective.rounds = 6;  // the engines choose by what they have seen in earlier rounds
  EngineTimes times = run_engines_on_cores(machine, collective);
  if (!times.problem.empty()) throw std::runtime_error(times.problem);
  return times;
}

/// Measures a message between two ranks that have spare cores.
double Cores::measured_unit_ns() const {
  CoreMachine machine = machine_of(Placing::nearest, 2);
  machine.cores = 4;
  return simulate_engines(machine, 0, 0).end_ns;
}

CoreTimes Cores::simulate_schedules(const CoreMachine& machine, std::uint32_t split, double computation) const {
  collectives::Call call;
  call.operation = operation_;
  call.size = static_cast<int>(machine.nodes * machine.ranks);
  call.length = call.input.length = call.output.length = options_.size;
  collectives::Choice choice = collectives::choose(call, choice_, {});
  choice.segment = options_.segment;
  std::vector<collectives::Schedule> schedules;
  for (call.rank = 0; call.rank < call.size; ++call.rank) schedules.push_back(schedule_of(call, choice));
  CoreCollective collective;
  collective.split = split;
  collective.late_first = all_to_one();
  collective.computation_ns = computation * unit_ns();
  if (options_.levels_apart) collective.levels_apart = all_to_one() ? 1 : -1;
  const CoreTimes times = run_on_cores(machine, collective, schedules);
  return {times.end_ns / unit_ns(), times.busy_ns / unit_ns()};
}

Row Cores::row_of(Placing placing, std::uint32_t ranks) const {
  const CoreMachine machine = machine_of(placing, ranks);
  Row row;
  row.placing = placing;
  row.ranks = ranks;
  row.computation = options_.computation * blocking_ * options_.cores / ranks;
  const CoreTimes alone = simulate(machine, 0, 0);
  row.alone = alone.end_ns;
  const std::uint32_t left = (options_.cores - ranks) * options_.nodes;
  if (left > 0) row.busy = alone.busy_ns / alone.end_ns / left;
  const bool modelled = splits() && options_.nodes == 1 && options_.copies == 1 && options_.computation == 1;
  if (options_.engines) row.busy = 0;  // it would cover several rounds
  if (options_.engines && splits()) {
    const EngineTimes times = simulate_engines(machine, {}, row.computation);
    row.automatic = times.end_ns / unit_ns();
    std::map<std::uint32_t, int> votes;
    for (const std::uint32_t split : times.split) ++votes[split];
    row.chosen =
        std::max_element(votes.begin(), votes.end(), [](auto& a, auto& b) { return a.second < b.second; })->first;
  }
  for (const std::uint32_t split : options_.splits) {
    row.overlapped.push_back(simulate(machine, split, row.computation).end_ns);
    if (modelled) row.model.push_back(split_tree::overlapped_time({options_.cores, ranks}, split, sizes()));
  }
  return row;
}

std::vector<Row> Cores::run() {
  unit_ns_ = static_cast<double>(options_.size) / options_.core_gigabytes;
  blocking_ = simulate_schedules(machine_of(Placing::bind, options_.cores), 0, 0).end_ns;
  if (options_.engines) unit_ns_ = measured_unit_ns();
  std::vector<Row> rows;
  for (const Placing placing : placings_) {
    for (const std::uint32_t ranks : options_.ranks) rows.push_back(row_of(placing, ranks));
  }
  return rows;
}

/// Returns "0: 33-51, 1: 52-57, …": which split is best for which ranks.
std::string Cores::best_by_ranks(const std::vector<Row>& rows, Placing placing, std::vector<double> Row::*times) const {
  std::string text;
  std::optional<std::uint32_t> split;
  std::uint32_t first = 0, last = 0;
  const auto close = [&] {
    if (!split) return;
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", *split, first);
    if (last != first) text += fmt::format("-{}", last);
  };
  for (const Row& row : rows) {
    if (row.placing != placing) continue;
    const std::uint32_t best = options_.splits[best_of(row.*times)];
    if (split != best) {
      close();
      split = best;
      first = row.ranks;
    }
    last = row.ranks;
  }
  close();
  return text;
}

void Cores::print(const std::vector<Row>& rows) const {
  const bool modelled = !rows.front().model.empty();
  fmt::print(
      "{}, {} bytes, {} node{} of {} cores, {} cop{} of a message{}{}; unit {:.1f} us; blocking on all cores {:.2f}\n",
      options_.operation, options_.size, options_.nodes, options_.nodes == 1 ? "" : "s", options_.cores,
      options_.copies, options_.copies == 1 ? "y" : "ies", options_.levels_apart ? ", levels apart" : "",
      options_.engines ? ", engines" : "", unit_ns() / 1e3, blocking_);
  std::string head = fmt::format("{:<9}{:>6}{:>6}{:>9}{:>9}{:>7}{:>7}", "placing", "ranks", "left", "compute", "alone",
                                 "busy", "r_over");
  for (const std::uint32_t split : options_.splits) {
    head += fmt::format("{:>9}", fmt::format("S={}", split));
    if (modelled) head += fmt::format("{:>8}", "model");
  }
  const bool chooses = options_.engines && splits();
  fmt::print("{}{:>6}{}{}\n", head, "best", modelled ? " model" : "", chooses ? "     auto    S" : "");
  for (const Row& row : rows) {
    fmt::print("{:<9}{:>6}{:>6}{:>9.3f}{:>9.3f}{:>7.2f}{:>7.2f}", placing_names[static_cast<std::size_t>(row.placing)],
               row.ranks, options_.cores - row.ranks, row.computation, row.alone, row.busy, row.r_overhead());
    for (std::size_t i = 0; i < row.overlapped.size(); ++i) {
      fmt::print("{:>9.3f}", row.overlapped[i]);
      if (modelled) fmt::print("{:>8.3f}", row.model[i]);
    }
    fmt::print("{:>6}", options_.splits[best_of(row.overlapped)]);
    if (modelled) fmt::print("{:>6}", options_.splits[best_of(row.model)]);
    if (chooses) fmt::print("{:>9.3f}{:>5}", row.automatic, row.chosen);
    fmt::print("\n");
  }
  if (options_.splits.size() == 1) return;
  for (const Placing placing : placings_) {
    fmt::print("best split by ranks, {}: {}\n", placing_names[static_cast<std::size_t>(placing)],
               best_by_ranks(rows, placing, &Row::overlapped));
  }
  if (modelled) fmt::print("best split by ranks, model: {}\n", best_by_ranks(rows, placings_.front(), &Row::model));
}

void Cores::print_json(const std::vector<Row>& rows) const {
  nlohmann::ordered_json all = {
      {"operation", options_.operation}, {"size", options_.size},     {"nodes", options_.nodes},
      {"cores", options_.cores},         {"copies", options_.copies}, {"levels_apart", options_.levels_apart},
      {"unit_us", unit_ns() / 1e3},      {"blocking", blocking_},     {"splits", options_.splits}};
  for (const Row& row : rows) {
    nlohmann::ordered_json one = {{"placing", placing_names[static_cast<std::size_t>(row.placing)]},
                                  {"ranks", row.ranks},
                                  {"computation", row.computation},
                                  {"alone", row.alone},
                                  {"busy", row.busy},
                                  {"r_overhead", row.r_overhead()},
                                  {"overlapped", row.overlapped},
                                  {"best", options_.splits[best_of(row.overlapped)]}};
    if (options_.engines && splits()) {
      one["automatic"] = row.automatic;
      one["chosen"] = row.chosen;
    }
    if (!row.model.empty()) {
      one["model"] = row.model;
      one["model_best"] = options_.splits[best_of(row.model)];
    }
    all["rows"].push_back(one);
  }
  fmt::print("{}\n", all.dump(2));
}

}  // namespace

std::string run_cores(const CoresOptions& options) {
  Cores cores(options);
  if (std::string wrong = cores.read(); !wrong.empty()) return wrong;
  const std::vector<Row> rows = cores.run();
  options.json ? cores.print_json(rows) : cores.print(rows);
  return "";
}

}  // namespace canele::sim

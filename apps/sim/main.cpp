// SPDX-License-Identifier: BSD-3-Clause
//
// canele-sim: whole jobs on virtual time, from one seed, while all possible faults happen.
//
// Usage: canele-sim [--seed N] [--runs N] [--first-only] [--ranks N] [--messages N] [--faults LIST] [--ticks NS]
//                   [--verbose]
//
// One thread. One seed always gives the same run to the last bit; `--check-repeat` runs a share of the seeds twice to
// prove it.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <limits>
#include <map>
#include <string>

#include "apps/cholesky/way.hpp"
#include "apps/sim/cores_options.hpp"
#include "apps/sim/coverage.hpp"
#include "apps/sim/run.hpp"
#include "apps/sim/shrink.hpp"

namespace {

using namespace canele::sim;

struct Arguments {
  RunOptions run;
  CoresOptions cores;
  std::string node_ranks, splits;
  std::uint64_t runs = 1;
  std::string workload = "random";
  std::string faults = "default";
  unsigned repeat = 20;
  std::string trace;
  std::size_t trace_events = 65536;
  bool all_coverage = false, rare_coverage = false, first_only = false, shrinks = false;
  std::string keep;
};

const std::map<std::string, Workload> workloads = {
    {name_of(Workload::random), Workload::random},      {name_of(Workload::flood), Workload::flood},
    {name_of(Workload::startup), Workload::startup},    {name_of(Workload::multicast), Workload::multicast},
    {name_of(Workload::mixed), Workload::mixed},        {name_of(Workload::scale), Workload::scale},
    {name_of(Workload::cholesky), Workload::cholesky},  {name_of(Workload::collectives), Workload::collectives},
    {name_of(Workload::cores), Workload::cores},        {name_of(Workload::shapes), Workload::shapes},
    {name_of(Workload::one_sided), Workload::one_sided}};

bool read_faults(const std::string& list, FaultPlan* plan, std::string* why) {
  if (list == "default") {
    plan->deaths = plan->rails = plan->payload = plan->memory = 1;
    return true;
  }
  *plan = {0, 0, 0, 0, 0, 0, 0, 0, 0};
  for (const std::string& name : CLI::detail::split(list, ',')) {
    if (name == "none" || name.empty()) continue;
    const auto* const found =
        std::find_if(fault_kinds.begin(), fault_kinds.end(), [&](const FaultKind& kind) { return kind.name == name; });
    if (found == fault_kinds.end()) {
      *why = "--faults: \"" + name + "\" is not a kind of fault; expected: default, none, network, clogs, starving, " +
             "deaths, rails, hostile, payload, memory, buggify";
      return false;
    }
    plan->*(found->weight) = 1;
  }
  return true;
}

void print_failure(const Outcome& outcome, const RunOptions& run) {
  std::printf("seed %llu FAILED, commit " CANELE_COMMIT ": %s\n", static_cast<unsigned long long>(run.seed),
              outcome.world.c_str());
  for (std::size_t i = 0; i < outcome.complaints.size() && i < 10; ++i) {
    std::printf("  %s\n", outcome.complaints[i].c_str());
  }
  std::printf("%s  again: %s --verbose\n", outcome.wait_graph.c_str(), command_of(run).c_str());
}

/// Whether a slice must reach a mark. Only the workload of one-sided operations reaches the marks named after them, and
/// it need not reach the others.
bool concerns(Workload workload, const Seen& mark) {
  return mark.name.starts_with("one_sided_") == (workload == Workload::one_sided);
}

/// Returns the coverage marks without hits, of those that every slice of the workload must reach.
std::string not_reached(Workload workload) {
  std::string names;
  for (const Seen& mark : coverage_marks()) {
    if (mark.hits == 0 && !mark.rare && concerns(workload, mark)) names += " " + mark.name;
  }
  return names;
}

/// Prints the coverage. Returns false if marks that are demanded were not reached.
bool report_coverage(Workload workload, bool demanded, bool rare_ones, double runs) {
  std::size_t reached = 0;
  std::string missing, rare;
  const auto marks = coverage_marks();
  for (const Seen& mark : marks) {
    reached += mark.hits > 0 ? 1 : 0;
    if (mark.hits == 0 && concerns(workload, mark)) (mark.rare && !rare_ones ? rare : missing) += " " + mark.name;
  }
  std::printf("coverage: %zu of %zu marks reached in %.0f runs", reached, marks.size(), runs);
  if (demanded && !missing.empty()) std::printf("; not:%s", missing.c_str());
  if (demanded && !rare.empty()) std::printf("; not, which takes long:%s", rare.c_str());
  std::printf("\n");
  return !demanded || missing.empty();
}

std::uint64_t current_seed = 0, current_run = 0;

/// Reports the run in which an assertion of the engine failed, or a signal came.
void on_crash(int signal) {
  char text[192];
  const int size = std::snprintf(
      text, sizeof text,
      "canele-sim: signal %d in seed %llu, commit " CANELE_COMMIT "\nruns until the first failure: %llu\n", signal,
      static_cast<unsigned long long>(current_seed), static_cast<unsigned long long>(current_run));
  [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, text, static_cast<std::size_t>(size));
  ::_exit(1);
}

/// Prints the last line. `first`: the run that failed, 0: none.
void report_first_failure(std::uint64_t first, std::uint64_t runs) {
  if (first != 0) {
    std::printf("runs until the first failure: %llu\n", static_cast<unsigned long long>(first));
  } else {
    std::printf("no failure in %llu runs\n", static_cast<unsigned long long>(runs));
  }
}

/// Returns the faults of a run. By default each eighth seed has hostile packets, too.
FaultPlan faults_of(const Arguments& arguments, std::uint64_t seed) {
  FaultPlan plan = arguments.run.faults;
  if (arguments.faults == "default" && seed % 8 == 7) plan.hostile = 1;
  return plan;
}

/// Shrinks one failing run as far as possible.
int shrink_one(const Arguments& arguments) {
  RunOptions failing = arguments.run;
  failing.faults = faults_of(arguments, failing.seed);
  const Shrunk found = shrink(failing, run, [](const std::string& step) {
    std::printf("%s\n", step.c_str());
    std::fflush(stdout);
  });
  if (found.failure.empty()) {
    std::fprintf(stderr, "canele-sim: seed %llu does not fail with these options: there is nothing to shrink\n",
                 static_cast<unsigned long long>(arguments.run.seed));
    return 2;
  }
  std::printf("smallest of %d attempts, which fails with: %s\n%s\n", found.attempts, found.failure.c_str(),
              command_of(found.run).c_str());
  return 1;
}

bool write_trace(const std::string& file, const std::string& json) {
  std::ofstream out(file);
  out << json << '\n';
  out.close();
  if (!out) std::fprintf(stderr, "canele-sim: --trace: cannot write %s\n", file.c_str());
  return static_cast<bool>(out);
}

using Clock = std::chrono::steady_clock;

/// Reports the progress of a campaign every ten seconds.
void tell_progress(Clock::time_point* told, std::uint64_t runs, std::uint64_t of, std::uint64_t failed) {
  const auto now = Clock::now();
  if (now - *told < std::chrono::seconds(10)) return;
  *told = now;
  std::fprintf(stderr, "canele-sim: %llu of %llu runs, %llu failed\n", static_cast<unsigned long long>(runs),
               static_cast<unsigned long long>(of), static_cast<unsigned long long>(failed));
}

int run_all(const Arguments& arguments) {
  std::map<std::string, std::uint64_t> injected;
  std::uint64_t failed = 0, first_failed = 0, completed = 0, events = 0, last_hash = 0;
  const auto begin = Clock::now();
  Clock::time_point told = begin;
  // If all marks are demanded, the slice continues until they are reached, up to a limit.
  const std::uint64_t most = arguments.all_coverage ? 8 * arguments.runs : arguments.runs;
  std::uint64_t i = 0;
  const Workload workload = arguments.run.workload;
  for (; i < arguments.runs || (i < most && !not_reached(workload).empty()); ++i) {
    if (i == arguments.runs)
      std::printf("coverage: goes on, until these marks are reached:%s\n", not_reached(workload).c_str());
    if (arguments.first_only && failed != 0) break;
    RunOptions options = arguments.run;
    options.seed += i;
    current_seed = options.seed;
    current_run = i + 1;
    options.faults = faults_of(arguments, options.seed);
    Outcome outcome = run(options);
    const bool again = arguments.repeat != 0 && options.seed % arguments.repeat == 0;
    if (again && run(options).trace_hash != outcome.trace_hash) {
      outcome.good = false;
      outcome.complaints.emplace_back("a second run with the same seed went another way");
    }
    failed += outcome.good ? 0 : 1;
    if (failed == 1 && first_failed == 0) first_failed = i + 1;
    completed += outcome.completed;
    events += outcome.events;
    last_hash = outcome.trace_hash;
    for (const auto& [kind, count] : outcome.injected) injected[kind] += count;
    if (!outcome.good) print_failure(outcome, options);
    if (!arguments.trace.empty() && !write_trace(arguments.trace, outcome.trace_json)) return 2;
    if (arguments.runs == 1 || options.verbose) {
      std::printf("seed %llu: %s; %.3f ms, %llu requests, trace hash %016llx\n",
                  static_cast<unsigned long long>(options.seed), outcome.world.c_str(),
                  static_cast<double>(outcome.virtual_ns) / 1e6, static_cast<unsigned long long>(outcome.completed),
                  static_cast<unsigned long long>(outcome.trace_hash));
    }
    std::fputs(outcome.report.c_str(), stdout);
    std::fflush(stdout);
    tell_progress(&told, i + 1, arguments.runs, failed);
  }
  if (faults_strike(workload)) {
    for (const Seen& place : all_buggify()) {
      injected[place.name.starts_with("no_memory") ? "memory" : "buggify " + place.name] += place.hits;
    }
  }
  const bool covered =
      report_coverage(workload, arguments.all_coverage, arguments.rare_coverage, static_cast<double>(i));
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  for (const auto& [kind, count] : injected) {
    std::printf("  %-16s %llu\n", kind.c_str(), static_cast<unsigned long long>(count));
  }
  std::printf(
      "%llu runs, %llu failed, %llu requests, %llu events, %.1f s (%.1f runs a second); last trace hash %016llx\n",
      static_cast<unsigned long long>(i), static_cast<unsigned long long>(failed),
      static_cast<unsigned long long>(completed), static_cast<unsigned long long>(events), seconds,
      static_cast<double>(i) / seconds, static_cast<unsigned long long>(last_hash));
  report_first_failure(first_failed, i);
  return failed == 0 && covered ? 0 : 1;
}

void add_cholesky_options(CLI::App& app, CholeskyOptions* options) {
  CLI::Option_group& group =
      *app.add_option_group("cholesky", "options of that workload; network and strategy also apply to shapes");
  const CLI::Range some(1, 100'000);
  const CLI::Range time(0.0, 1e9);
  group.add_option("--tiles", options->tiles, "tiles along one side of the matrix")->check(some)->capture_default_str();
  group.add_option("--cores", options->cores, "computing cores of a rank")->check(some)->capture_default_str();
  group.add_option("--core-gflops", options->core_gflops, "speed of a core, in sgemm")
      ->check(CLI::Range(0.001, 1e9))
      ->capture_default_str();
  group.add_option("--latency", options->latency_us, "latency of the network, us")->check(time)->capture_default_str();
  group.add_option("--gap", options->gap_us, "gap between two packets of a rank, us")
      ->check(time)
      ->capture_default_str();
  group.add_option("--bandwidth", options->gigabytes, "bandwidth of the network, GB/s each way; inf is allowed")
      ->check(CLI::Range(1e-6, std::numeric_limits<double>::infinity()))
      ->capture_default_str();
  group.add_flag("--shuffled", options->shuffled, "receives are posted in any order, not as they are needed");
  group.add_option("--way", options->way, "how a tile goes to several ranks")
      ->check(CLI::IsMember(canele::cholesky::way_names()))
      ->capture_default_str();
  group.add_option("--strategy", options->strategy, "strategy of all engines")
      ->check(CLI::IsMember({"fifo", "aggregate", "priority"}))
      ->capture_default_str();
  group.add_option("--comparison-ns", options->comparison_ns, "duration of a comparison of CANELE_EXPERT_MATCHER")
      ->check(time)
      ->capture_default_str();
  group
      .add_option(
          "--test-ns", options->test_ns,
          "duration of a test: without a worker, the rank's own thread tests all its requests in turn; 0: a worker")
      ->check(time)
      ->capture_default_str();
}

void add_cores_options(CLI::App& app, Arguments* arguments) {
  CLI::Option_group& group =
      *app.add_option_group("cores", "options of that workload; times are in units of one message");
  CoresOptions& options = arguments->cores;
  const CLI::Range rate(1e-3, 1e6);
  group.add_option("--operation", options.operation, "bcast, reduce, gather, scatter, scan …")->capture_default_str();
  group
      .add_option("--algorithm", options.algorithm,
                  "auto: binomial trees, chains for scans, or the choice of the engine")
      ->capture_default_str();
  group.add_option("--size", options.size, "size of the buffer, or of each block, bytes")
      ->transform(CLI::AsSizeValue(false) & CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40U))
      ->capture_default_str();
  group.add_option("--segment", options.segment, "segment of a chain, bytes; 0: the whole buffer")
      ->transform(CLI::AsSizeValue(false));
  group.add_option("--nodes", options.nodes)->check(CLI::Range(1, 1024))->capture_default_str();
  group.add_option("--node-cores", options.cores, "cores of each node")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  group.add_option("--node-ranks", arguments->node_ranks,
                   "computing ranks of each node, e.g. 51,57-62 (default: from half of the cores to all but two)");
  group.add_option("--split", arguments->splits,
                   "S: widest levels of the tree, executed by the calling threads (default: 0-3)");
  group
      .add_option("--placing", options.placings,
                  "placement of the other steps: bind, numa, nearest, odd-even, shared (default)")
      ->delimiter(',')
      ->check(CLI::IsMember({"bind", "numa", "nearest", "odd-even", "shared"}));
  group.add_option("--core-bandwidth", options.core_gigabytes, "copy bandwidth of a core, GB/s")
      ->check(rate)
      ->capture_default_str();
  group.add_option("--copies", options.copies, "copies of a message: 1, by either side; 2, by both at the same time")
      ->check(CLI::Range(1, 2))
      ->capture_default_str();
  group.add_flag("--levels-apart", options.levels_apart, "start a level when the previous one has ended on all ranks");
  group.add_flag(
      "--engines", options.engines,
      "run the production engine of each rank, its worker and calling thread; one node; and let it choose S");
  group.add_flag("--shared-copies", options.shared_copies,
                 "engines: both ends of a message copy (CANELE_EXPERT_RECEIVER_INITIATED=on)");
  group
      .add_option("--computation", options.computation,
                  "computation, relative to that which would hide the blocking collective on all cores")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  group.add_option("--nic-bandwidth", options.nic_gigabytes, "bandwidth of a node's card, GB/s each way")
      ->check(rate)
      ->capture_default_str();
  group.add_option("--nic-latency", options.nic_us, "us")->check(CLI::Range(0.0, 1e6))->capture_default_str();
  group.add_flag("--json", options.json, "print JSON");
}

int run_on_modelled_cores(Arguments* arguments) {
  std::string wrong;
  const auto read = [&](const char* option, const std::string& text, std::vector<std::uint32_t>* numbers) {
    if (!text.empty() && !read_ids(text, numbers))
      wrong = option + (": \"" + text + "\" is not a list; expected: e.g. 51,57-62");
  };
  read("--node-ranks", arguments->node_ranks, &arguments->cores.ranks);
  read("--split", arguments->splits, &arguments->cores.splits);
  if (wrong.empty()) wrong = run_cores(arguments->cores);
  if (!wrong.empty()) std::fprintf(stderr, "canele-sim: %s\n", wrong.c_str());
  return wrong.empty() ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Simulates jobs of Canelé's engine on virtual time under injected faults.");
  Arguments arguments;
  app.add_option("--workload", arguments.workload,
                 "random: all kinds of traffic under all faults; flood: most of it to few ranks that post late; "
                 "startup: ranks that come late, leave early, die at the start; "
                 "multicast: like random, with multicasts; mixed: random or multicast, by the seed; "
                 "scale: thousands of engines, without faults; "
                 "cholesky: the messages of a tile Cholesky, without faults; "
                 "shapes: one message to many, by each shape of a multicast and as the engine chooses, without faults; "
                 "collectives: collectives of all kinds under all faults; "
                 "one-sided: puts, gets, atomic operations and notifications under all faults; "
                 "cores: the duration of a collective on modelled cores that also compute, without faults, of its "
                 "schedule or of engines")
      ->check(CLI::IsMember(workloads))
      ->capture_default_str();
  app.add_option("--partners", arguments.run.partners, "scale: partners of each rank")->check(CLI::Range(1, 1000));
  app.add_option("--seed", arguments.run.seed, "the first seed")->capture_default_str();
  app.add_option("--runs", arguments.runs, "number of seeds, one after the other")->capture_default_str();
  app.add_flag("--first-only", arguments.first_only, "stop at the first run that fails");
  app.add_option("--ranks", arguments.run.ranks, "0: 8 to 32, by the seed; scale: 1024, cholesky: 4, shapes: 3 to 32")
      ->check(CLI::Range(0, 100'000));
  app.add_option("--messages", arguments.run.messages, "0: by the seed")->check(CLI::Range(0, 100'000'000));
  app.add_option(
      "--faults", arguments.faults,
      "default, none, or a list of network,clogs,starving,deaths,rails,hostile,payload,memory,buggify; none in scale");
  app.add_option("--ticks", arguments.run.ticks, "nanoseconds of virtual time in which faults happen");
  app.add_option("--check-repeat", arguments.repeat, "run each Nth seed twice; 0: none")->capture_default_str();
  app.add_flag("--all-coverage,--all-marks", arguments.all_coverage,
               "a transition of a protocol that no run has reached is a failure");
  app.add_flag("--rare-coverage,--rare-marks", arguments.rare_coverage,
               "with --all-coverage: also of those that take long");
  app.add_flag("--shrink", arguments.shrinks,
               "leave out kinds of faults, ranks and messages of a run that fails while it fails likewise");
  app.add_option("--keep", arguments.keep, "run only these messages of the plan, e.g. 3,7-9");
  app.add_option("--trace", arguments.trace,
                 "write the last events of all engines of the (only) run to this file, for Perfetto");
  app.add_option("--trace-events", arguments.trace_events, "number of events that each engine keeps")
      ->check(CLI::Range(16, 10'000'000))
      ->capture_default_str();
  app.add_option("--setting", arguments.run.settings, "setting of all engines, CANELE_NAME=value; may be repeated");
  add_cholesky_options(app, &arguments.run.cholesky);
  add_cores_options(app, &arguments);
  app.add_flag("--verbose", arguments.run.verbose, "log of the engines, on standard error");
  CLI11_PARSE(app, argc, argv);
  arguments.run.workload = workloads.at(arguments.workload);
  std::string why;
  if (!read_faults(arguments.faults, &arguments.run.faults, &why)) {
    std::fprintf(stderr, "canele-sim: %s\n", why.c_str());
    return 2;
  }
  if (!arguments.keep.empty() && !read_ids(arguments.keep, &arguments.run.keep)) {
    std::fprintf(stderr, "canele-sim: --keep: \"%s\" is not a list of messages; expected: e.g. 3,7-9\n",
                 arguments.keep.c_str());
    return 2;
  }
  if (arguments.run.workload == Workload::cores) return run_on_modelled_cores(&arguments);
  if (!arguments.trace.empty() && (arguments.runs != 1 || arguments.run.workload == Workload::scale)) {
    std::fprintf(stderr, "canele-sim: --trace; expected: one run, and a workload other than scale\n");
    return 2;
  }
  if (!arguments.trace.empty()) arguments.run.trace_events = arguments.trace_events;
  if (arguments.shrinks) return shrink_one(arguments);
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) std::signal(signal, on_crash);
  return run_all(arguments);
}

// SPDX-License-Identifier: BSD-3-Clause
//
// The command line of nbc, and the definitions of its figures.
//
// The definitions stand in the help, next to the numbers that they explain.
#include "options.hpp"

#include <CLI/CLI.hpp>
#include <map>

namespace canele::perf::nbc {
namespace {

const char* const explained =
    "Start a collective, compute, wait; between them no call of the library (F. Reynier, Bordeaux 2022, section 4).\n"
    "Times in us: from the first start to the last end over all ranks, medians over the iterations. The computation "
    "is\n"
    "a fixed number of rows of a matrix product on each core. Both are measured alone in every iteration, too, at the\n"
    "same places.\n"
    "  comm              the collective alone, waited for at once, its size chosen so that it takes --comm\n"
    "  comp              the computation alone, its rows chosen so that it takes --comp, or --ratio times comm\n"
    "  total             both together\n"
    "  r_overhead        (total - max(comp, comm)) / min(comp, comm); 0: overlapped, 1: one after the other\n"
    "  r_overhead_bare   the same of plain threads that copy and sum, without the library, what the collective has to, "
    "on\n"
    "                    the core for progress, in turn with it: what this machine takes from a computation for it. "
    "With\n"
    "                    a core for progress that does not compute; JSON has comm_bare and total_bare, too\n"
    "  r_comm            time in the library / comm, of the rank that has most; the best is 1 - comp / comm, at least "
    "0\n"
    "  r_comp_slowdown   computation beside the collective / alone, of the rank that has most\n"
    "  r_mpi_impact      computation beside the idle library / before it was started, a rank at a time; the largest\n"
    "  omb, imb          percent of overlap that the OSU and Intel benchmarks would print for these times\n"
    "--all-ranks shows each rank's own r_overhead (median, least, largest), and shares of call, computation and wait.\n"
    "A size or time that cannot be had with --memory is left out, and stderr says so.\n"
    "\n"
    "Configurations, a job each: none (no progress while the program computes), idle, timer (CANELE_WORKER), "
    "dedicated\n"
    "(CANELE_WORKER=bound on a core of its own), auto. Unless --cores says otherwise, ranks compute on all cores, or\n"
    "with dedicated on all but the worker's. Ranks of more threads than cores share them: the work then alternates, "
    "and\n"
    "each rank gives way once after its call, so that all of them have started.\n"
    "\n"
    "--cresta instead (CRESTA D4.5.x): sizes as they are; times by one clock after --warm-ups.\n"
    "  time              of the collective alone\n"
    "  b_<delay>         delay benefit (time + delay - delayed) / delayed: rank 0 starts that much later; 0: it shows "
    "in full\n"
    "  beta              overlap availability (time + comp - together) / together, comp being about as long as time";

const std::vector<std::string> configurations = {"none", "idle", "timer", "dedicated", "auto"};
const std::vector<std::string> operations = {"bcast", "reduce", "allreduce", "allgather", "alltoall", "barrier"};

CLI::Validator time_in_us() {
  return CLI::AsNumberWithUnit(
      std::map<std::string, double>{{"us", 1}, {"ms", 1e3}, {"s", 1e6}},
      CLI::AsNumberWithUnit::Options(CLI::AsNumberWithUnit::CASE_SENSITIVE | CLI::AsNumberWithUnit::UNIT_REQUIRED),
      "TIME");
}

/// Returns 500 us, 1 ms, 2 ms ... 1 s.
std::vector<double> axis() {
  std::vector<double> times;
  for (double ms = 0.5; ms <= 1024; ms *= 2) times.push_back(1e3 * ms);
  return times;
}

void complete(Options& o) {
  constexpr double ms = 1e3;
  if (o.configurations.empty()) o.configurations = {"none", "idle", "timer", "dedicated"};
  if (o.operations.empty()) o.operations = operations;
  if (o.comms.empty()) o.comms = o.sweep ? axis() : std::vector<double>{0.5 * ms, 1 * ms, 4 * ms, 16 * ms};
  if (o.comps.empty() && o.sweep) o.comps = axis();
  if (o.ratios.empty()) o.ratios = {1};
  if (o.sizes.empty()) o.sizes = {8, 1 << 10, 64 << 10, 1 << 20};
  if (o.delays.empty()) o.delays = {0.1 * ms, 1 * ms};
  if (o.iterations == 0) o.iterations = o.cresta ? 20 : 11;
  if (o.warm_ups < 0) o.warm_ups = o.cresta ? 100 : 2;
}

void add_what(CLI::App& sub, Options& options) {
  sub.add_option("--configuration", options.configurations,
                 "Mode of progress: none, idle, timer, dedicated, auto (default: the first four)")
      ->delimiter(',')
      ->check(CLI::IsMember(configurations));
  sub.add_option("--operation", options.operations,
                 "bcast, reduce, allreduce, allgather, alltoall, barrier (default: all)")
      ->delimiter(',')
      ->check(CLI::IsMember(operations));
  const auto times = [&sub](const char* name, std::vector<double>& values, const char* help) {
    sub.add_option(name, values, help)->delimiter(',')->transform(time_in_us() & CLI::PositiveNumber);
  };
  times("--comm", options.comms, "Durations of the collective, e.g. 500us,1ms (default: 500us,1ms,4ms,16ms)");
  times("--comp", options.comps, "Durations of the computation (default: by --ratio)");
  sub.add_option("--ratio", options.ratios, "Computation to collective (default: 1)")
      ->delimiter(',')
      ->check(CLI::Range(0.001, 1000.0));
  sub.add_flag("--sweep", options.sweep, "Both durations from 500us to 1.024s by powers of 2; see nbc/heatmap.py");
  sub.add_flag("--cresta", options.cresta, "Delay benefit and overlap availability instead");
  sub.add_option("--size", options.sizes, "cresta: bytes of a block (default: 8,1k,64k,1M)")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false) & CLI::Range(std::uint64_t{8}, std::uint64_t{1} << 34));
  times("--delay", options.delays, "cresta: delays of rank 0 (default: 100us,1ms)");
}

void add_where(CLI::App& sub, Options& options) {
  sub.add_option("--ranks", options.ranks, "Ranks of the job, all on one host")
      ->check(CLI::Range(2, 1000))
      ->capture_default_str();
  sub.add_option("--threads", options.threads, "Threads of a rank that compute (default: cores / ranks)")
      ->check(CLI::Range(1, 4096));
  sub.add_option("--cores", options.cores,
                 "OS indexes of the cores that compute, e.g. 0,1; assigned to threads in turn")
      ->delimiter(',')
      ->check(CLI::Range(0, 4095));
  sub.add_option("--worker-core", options.worker_core, "Core of progress threads (default, dedicated: the last one)")
      ->check(CLI::Range(0, 4095));
  sub.add_flag("!--no-pin", options.pin, "Do not pin the threads that compute");
  sub.add_flag("!--no-bare", options.bare, "Do not measure the cost of plain copies (halves the run time)");
}

}  // namespace

void add_subcommand(CLI::App& app, Options& options) {
  CLI::App* sub = app.add_subcommand("nbc", "Non-blocking collectives while the ranks compute");
  sub->footer(explained);
  add_what(*sub, options);
  add_where(*sub, options);
  sub->add_option("--iterations", options.iterations, "Iterations of each point (default: 11; cresta: 20)")
      ->check(CLI::Range(1, 100'000));
  sub->add_option("--warm-ups", options.warm_ups, "Iterations before the measured ones (default: 2; cresta: 100)")
      ->check(CLI::Range(0, 100'000));
  options.memory = std::uint64_t{512} << 20;
  sub->add_option("--memory", options.memory, "Limit of a rank's buffers (default: 512M)")
      ->transform(CLI::AsSizeValue(false));
  sub->add_flag("--all-ranks", options.all_ranks, "Print a table of the ranks instead of the ratios");
  sub->add_flag("--json", options.json, "Print JSON, a line for each row, with every sample");
  sub->callback([&options] { complete(options); });
}

}  // namespace canele::perf::nbc

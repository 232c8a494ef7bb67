// SPDX-License-Identifier: BSD-3-Clause
//
// canele-perf: latency, bandwidth and message rate between two ranks, beside the hardware baseline of the machine.
//
// It also makes samples of all drivers for the engine. Further benchmarks: one-sided operations, active messages,
// matching among many receives, floods of unexpected messages, broadcasts, callbacks, and collectives. Most of it can
// be compared with other libraries.
//
// Threads: the main thread, and those that the library starts. Outside a job it replaces itself by canele-run, which
// starts it twice.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "active.hpp"
#include "broadcast.hpp"
#include "callback.hpp"
#include "flood.hpp"
#include "gpu.hpp"
#include "job.hpp"
#include "launch.hpp"
#include "match.hpp"
#include "measure.hpp"
#include "nbc/nbc.hpp"
#include "one_sided.hpp"
#include "options.hpp"
#include "progress/benchmarks.hpp"
#include "report.hpp"
#include "sample.hpp"
#include "script.hpp"

namespace {

using namespace canele::perf;

/// Runs overlap, threads, overload, availability, alltoall, pairs, silence, passive, or clock.
int progress_in_job(const Options& options) {
  const progress::Clock clock;
  const double calm = progress::us_per_turn(clock);  // no library yet
  std::vector<std::string> settings;
  if (!options.driver.empty()) settings.push_back("CANELE_DRIVERS=" + options.driver);
  if (options.uses_gpu()) settings.emplace_back("CANELE_GPU=cuda");
  canele::engine engine = join(settings);
  canele::session session(engine, "canele-perf progress");
  std::unique_ptr<MessageMemory> memory;
  const auto allocate = [&](std::size_t size) {
    memory = std::make_unique<MessageMemory>(options.memory_of(engine.rank()), size);
    return memory->data();
  };
  try {
    progress::Link link(engine, session);
    progress::run(link, clock, options.progress, calm,
                  options.memory.empty() ? progress::MessageAllocator() : progress::MessageAllocator(allocate));
    session.barrier();
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "canele-perf: %s\n", problem.what());
    engine.abort(1, problem.what());
  }
  return 0;
}

/// Measures in a job, of two ranks except for floods and broadcasts. A failure ends the job, because the other rank may
/// be waiting for this one.
int run(Options options) {
  const bool matching = options.benchmark == Benchmark::match;
  if (options.benchmark == Benchmark::flood) return flood(options);
  if (options.benchmark == Benchmark::broadcast) return broadcast(options);
  if (options.benchmark == Benchmark::callback) return callback(options);
  if (options.benchmark == Benchmark::progress) return progress_in_job(options);
  if (options.benchmark == Benchmark::nbc) return nbc::in_job(options.nbc, options.driver);
  if (options.benchmark == Benchmark::sample) options.driver = only_driver(options);
  std::vector<std::string> settings = matching ? match_settings(options) : std::vector<std::string>{};
  if (options.uses_gpu()) settings.push_back("CANELE_GPU=cuda");
  Job job(options, settings);
  try {
    job.pin(options);
    if (options.benchmark == Benchmark::sample) {
      sample(job, options);
    } else if (is_one_sided(options.benchmark)) {
      const OneSidedResults results = measure_one_sided(job, options);
      if (job.first()) print_one_sided(job, options, results);
    } else if (options.benchmark == Benchmark::am) {
      const ActiveResults results = measure_active(job, options);
      if (job.first()) print_active(job, options, results);
    } else if (matching) {
      const MatchResults results = match(job, options);
      if (job.first()) print_match(job, options, results);
    } else {
      const Results results = measure(job, options);
      if (job.first()) print_report(job, options, results);
    }
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "canele-perf: %s\n", problem.what());
    job.engine.abort(1, problem.what());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  int code = 0;
  if (!parse_options(argc, argv, &options, &code)) return code;
  try {
    if (options.benchmark == Benchmark::script) return run_script(options);
    if (in_a_job()) return run(options);
    if (options.progress.bare) {
      progress::bare_alltoall(options.progress);
      return 0;
    }
    if (options.benchmark == Benchmark::sample) return sample_each(options);
    if (options.benchmark == Benchmark::flood) return flood_each(options);
    if (options.benchmark == Benchmark::broadcast) return broadcast_each(options);
    if (options.benchmark == Benchmark::callback) return callback_each(options);
    if (options.benchmark == Benchmark::match && options.match.every_matcher) {
      return match_each({argv + 1, argv + argc});
    }
    if (options.benchmark == Benchmark::nbc) return nbc::each_configuration(options.nbc, {argv + 1, argv + argc});
    std::fprintf(stderr, "canele-perf: %s\n",
                 start_job({argv + 1, argv + argc}, std::max(2, options.progress.ranks)).c_str());
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "canele-perf: %s\n", problem.what());
  }
  return 1;
}

// SPDX-License-Identifier: BSD-3-Clause
//
// Options of canele-perf: the command line, and how much work a batch is.
//
// Who and threads: see options.hpp.
// Surprise: sizes take k, M and G as powers of 1024.
#include "options.hpp"

#include <canele/canele.h>

#include <CLI/CLI.hpp>
#include <algorithm>

namespace canele::perf {
namespace {

constexpr std::uint64_t most_bytes_per_batch = 32u << 20;  // keeps a batch of large messages within some 10 ms
constexpr int small_rounds = 2000;

/// A subcommand with the options that all have.
CLI::App* add_common(CLI::App& app, Options& options, Benchmark benchmark, const char* help) {
  CLI::App* sub = app.add_subcommand(name_of(benchmark), help);
  sub->add_option("--iterations", options.iterations, "Ping-pongs or messages per batch (default: by the size)")
      ->check(CLI::Range(1, 100'000'000));
  sub->add_option("--batches", options.batches, "Batches; median and percentiles are taken over them")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  sub->add_option("--cores", options.cores, "OS indexes of the cores to pin the ranks of a host to, e.g. 0,1")
      ->delimiter(',')
      ->check(CLI::NonNegativeNumber);
  sub->add_flag("!--no-pin", options.pin, "Do not pin the ranks");
  return sub;
}

void add_subcommand(CLI::App& app, Options& options, Benchmark benchmark, const char* help,
                    std::vector<std::uint64_t> sizes) {
  CLI::App* sub = add_common(app, options, benchmark, help);
  sub->add_option("--driver", options.driver, "Driver to use, e.g. shm or tcp (default: as CANELE_DRIVERS says)");
  sub->add_option("--size", options.sizes, "Message sizes, e.g. 8,64,4k,1M")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false));
  sub->add_flag("--json", options.json, "Print JSON, with every sample");
  sub->add_flag("!--no-floor", options.floor, "Do not measure the machine's floor");
  sub->callback([&options, benchmark, sizes = std::move(sizes)] {
    options.benchmark = benchmark;
    if (options.sizes.empty()) options.sizes = sizes;
  });
}

void add_sample(CLI::App& app, Options& options) {
  CLI::App* sub = add_common(app, options, Benchmark::sample,
                             "Latency, gap and bandwidth of each driver, kept for the engine in this host's file");
  sub->add_option("--driver", options.drivers, "Drivers, e.g. shm,tcp:eth1 (default: all that canele-info shows)")
      ->delimiter(',');
  sub->callback([&options] { options.benchmark = Benchmark::sample; });
}

}  // namespace

int Options::window() const {
  switch (benchmark) {
    case Benchmark::latency:
    case Benchmark::sample:
      return 1;
    case Benchmark::bandwidth:
      return 16;
    case Benchmark::rate:
      return 64;
  }
  return 1;
}

int Options::rounds(std::uint64_t size) const {
  if (iterations > 0) return std::max(1, iterations / window());
  const std::uint64_t per_round = std::max<std::uint64_t>(1, size) * static_cast<std::uint64_t>(window());
  const int by_bytes = static_cast<int>(std::min<std::uint64_t>(most_bytes_per_batch / per_round, small_rounds));
  return std::clamp(by_bytes, 1, std::max(1, small_rounds / window()));
}

const char* name_of(Benchmark benchmark) {
  switch (benchmark) {
    case Benchmark::latency:
      return "latency";
    case Benchmark::bandwidth:
      return "bandwidth";
    case Benchmark::rate:
      return "rate";
    case Benchmark::sample:
      return "sample";
  }
  return "";
}

const char* unit_of(Benchmark benchmark) {
  switch (benchmark) {
    case Benchmark::latency:
    case Benchmark::sample:
      return "us";
    case Benchmark::bandwidth:
      return "MB/s";
    case Benchmark::rate:
      return "messages/s";
  }
  return "";
}

bool parse_options(int argc, char** argv, Options* options, int* code) {
  CLI::App app{
      "Measures Canelé between two ranks, beside the floor of the machine. Alone, it starts its two processes itself "
      "with canele-run; in a job of two ranks it uses those."};
  app.set_version_flag("--version", canele_version());
  app.require_subcommand(1);
  add_subcommand(app, *options, Benchmark::latency, "Time of one message one way (half a ping-pong)", {8});
  add_subcommand(app, *options, Benchmark::bandwidth, "Bytes per second of a stream", {64 << 10, 1 << 20, 4 << 20});
  add_subcommand(app, *options, Benchmark::rate, "Messages per second of a stream of small messages", {8});
  add_sample(app, *options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    *code = app.exit(problem);
    return false;
  }
  return true;
}

}  // namespace canele::perf

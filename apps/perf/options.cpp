// SPDX-License-Identifier: BSD-3-Clause
//
// Options of canele-perf: the command line, and how much work a batch is.
//
// Sizes take k, M and G as powers of 1024.
#include "options.hpp"

#include <canele/canele.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <map>

namespace canele::perf {
namespace {

constexpr std::uint64_t most_bytes_per_batch = 32u << 20;  // keeps a batch of large messages within about 10 ms
constexpr int small_rounds = 2000;

/// Adds a subcommand with the options that all have.
CLI::App* add_common(CLI::App& app, Options& options, Benchmark benchmark, const char* help) {
  CLI::App* sub = app.add_subcommand(name_of(benchmark), help);
  sub->add_option("--iterations", options.iterations,
                  "Ping-pongs, messages or operations per batch (default: by the size)")
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

CLI::Option* add_driver(CLI::App& sub, Options& options) {
  return sub.add_option("--driver", options.driver, "Driver to use, e.g. shm or tcp (default: CANELE_DRIVERS)");
}

const std::map<std::string, MemoryKind> memory_kinds = {
    {"host", MemoryKind::host}, {"device", MemoryKind::device}, {"managed", MemoryKind::managed}};

void add_memory(CLI::App& sub, Options& options) {
  sub.add_option("--memory", options.memory,
                 "Memory of the messages: host, device, managed (of a GPU); of both ranks, or rank 0's and rank 1's, "
                 "e.g. device,host (default: host)")
      ->delimiter(',')
      ->expected(1, 2)
      ->transform(CLI::CheckedTransformer(memory_kinds));
}

void add_subcommand(CLI::App& app, Options& options, Benchmark benchmark, const char* help,
                    std::vector<std::uint64_t> sizes) {
  CLI::App* sub = add_common(app, options, benchmark, help);
  add_driver(*sub, options);
  sub->add_option("--size", options.sizes, "Message sizes, e.g. 8,64,4k,1M")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false));
  add_memory(*sub, options);
  sub->add_flag("--json", options.json, "Print JSON, with every sample");
  sub->add_flag("!--no-floor", options.floor, "Do not measure the machine's floor");
  sub->add_flag("--bare-engine", options.bare_engine,
                "Measure the floor of shm with requests, tags and matching, the least that any engine does");
  if (benchmark != Benchmark::latency) {
    sub->add_option("--tags", options.tags, "Number of tags, used in turn")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 30));
    sub->add_option("--sessions", options.sessions, "Number of sessions, used in turn")->check(CLI::Range(1, 100'000));
  }
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

const std::map<std::string, Direction> directions = {{"posted", Direction::posted},
                                                     {"unexpected", Direction::unexpected}};
const std::map<std::string, Order> orders = {
    {"in-order", Order::in_order}, {"reverse", Order::reverse}, {"shuffled", Order::shuffled}, {"deep", Order::deep}};
const std::map<std::string, Load> loads = {{"fds", Load::fds}};

template <typename Value>
void add_choice(CLI::App& sub, const char* name, std::vector<Value>& values, const std::string& help,
                const std::map<std::string, Value>& known) {
  sub.add_option(name, values, help)->delimiter(',')->transform(CLI::CheckedTransformer(known));
}

/// Returns the matcher that the environment names, by the setting's name or its old name; nullptr: none.
const char* configured_matcher() {
  const char* const name = std::getenv("CANELE_EXPERT_MATCHER");
  return name != nullptr ? name : std::getenv("CANELE_MATCHER");
}

void add_match(CLI::App& app, Options& options) {
  constexpr std::uint64_t most = 1 << 21;  // tags are distinct up to that
  MatchOptions& match = options.match;
  CLI::App* sub =
      add_common(app, options, Benchmark::match, "Time per message with N receives posted, or N messages unexpected");
  add_driver(*sub, options);
  sub->add_option("--receives", match.receives,
                  "N, e.g. 16,4k (default: 16,256,4k,16k,64k,1M; with a matcher that searches, up to 16k)")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false) & CLI::Range(std::uint64_t{1}, most));
  add_choice(*sub, "--direction", match.directions, "posted: receives come first; unexpected: messages (default: both)",
             directions);
  add_choice(*sub, "--order", match.orders,
             "in-order, reverse, shuffled (default: these three); deep: shuffled, and none at the head of the list",
             orders);
  sub->add_option("--load", match.load,
                  "fds: lists of 128 to 8k entries and deep matches, as in an application with long lists; every "
                  "matcher in turn, unless one is named")
      ->transform(CLI::CheckedTransformer(loads));
  sub->add_option("--any-source", match.any_source, "Percentage of receives from any source")
      ->check(CLI::Range(0.0, 100.0));
  sub->add_option("--any-tag", match.any_tag, "Percentage of receives for any tag; these are posted last")
      ->check(CLI::Range(0.0, 100.0));
  sub->add_option("--matcher", match.matcher,
                  "Data structure that matches, e.g. table or bins (default: CANELE_EXPERT_MATCHER)");
  sub->add_option("--seed", match.seed, "Seed of the shuffle and of the choice of wildcards")->capture_default_str();
  sub->add_flag("--cold", match.cold, "Evict the receiver's caches before each round, which is then a batch");
  sub->add_flag("!--no-counts", match.counts, "Do not count attempts and cache lines");
  sub->add_flag("--json", options.json, "Print JSON, with every sample");
  sub->callback([&options, sub] {
    options.benchmark = Benchmark::match;
    const char* const configured = configured_matcher();
    const std::string matcher =
        options.match.matcher.empty() && configured != nullptr ? configured : options.match.matcher;
    std::vector<std::uint64_t>& receives = options.match.receives;
    const bool loaded = options.match.load != Load::none;
    options.match.every_matcher = loaded && matcher.empty();
    if (loaded && sub->count("--order") == 0) options.match.orders = {Order::deep};
    if (receives.empty() && loaded) receives = lengths_of(options.match.load);
    if (!receives.empty()) return;
    receives = {16, 256, 4'096, 16'384};
    if (matcher.empty() || matcher == "table") receives.insert(receives.end(), {65'536, 1'048'576});
  });
}

const std::map<std::string, TargetMemory> memories = {{"mapped", TargetMemory::mapped},
                                                      {"registered", TargetMemory::registered}};
const std::map<std::string, OneSidedOperation> atomic_operations = {
    {"fetch-and-add", OneSidedOperation::fetch_and_add}, {"compare-and-swap", OneSidedOperation::compare_and_swap}};
const std::map<std::string, Measure> measures = {{"latency", Measure::latency}, {"rate", Measure::rate}};
const std::map<std::string, Measure> measures_of_puts = {
    {"latency", Measure::latency}, {"rate", Measure::rate}, {"notified", Measure::notified}};

/// Adds put, get or atomics. Returns the subcommand; the caller adds the sizes.
CLI::App* add_one_sided(CLI::App& app, Options& options, Benchmark benchmark, const char* help,
                        std::vector<OneSidedOperation> operations, std::vector<std::uint64_t> sizes) {
  OneSidedOptions& one_sided = options.one_sided;
  CLI::App* sub = add_common(app, options, benchmark, help);
  add_driver(*sub, options);
  add_choice(
      *sub, "--memory", one_sided.memories,
      "Memory of the target: mapped (canele_memory_allocate), registered (canele_memory_register) (default: both)",
      memories);
  const bool is_put = benchmark == Benchmark::put;
  add_choice(*sub, "--measure", one_sided.measures,
             std::string("latency: one operation and the wait for it; rate: windows of operations, a flush each") +
                 (is_put ? "; notified: half a round trip of puts that notify a counter" : "") +
                 " (default: latency,rate)",
             is_put ? measures_of_puts : measures);
  sub->add_option("--window", one_sided.window, "Operations before a flush (default: 64; large ones fewer, at least 4)")
      ->check(CLI::Range(1, 4096));
  sub->add_flag("--json", options.json, "Print JSON, with every sample");
  sub->add_flag("!--no-floor", options.floor, "Do not measure the floor of mapped memory");
  sub->callback([&options, benchmark, operations = std::move(operations), sizes = std::move(sizes)] {
    options.benchmark = benchmark;
    if (options.sizes.empty()) options.sizes = sizes;
    if (options.one_sided.operations.empty()) options.one_sided.operations = operations;
  });
  return sub;
}

void add_put_get_atomics(CLI::App& app, Options& options) {
  constexpr std::uint64_t k = 1 << 10, m = 1 << 20, most = 1 << 30;
  using enum OneSidedOperation;
  const std::vector<std::uint64_t> sizes = {8, 4 * k, 64 * k, m};
  for (CLI::App* const sub :
       {add_one_sided(app, options, Benchmark::put, "Writes to the memory of another rank", {put}, sizes),
        add_one_sided(app, options, Benchmark::get, "Reads of the memory of another rank", {get}, sizes)}) {
    sub->add_option("--size", options.sizes, "Bytes of an operation (default: 8,4k,64k,1M)")
        ->delimiter(',')
        ->transform(CLI::AsSizeValue(false) & CLI::Range(std::uint64_t{1}, most));
  }
  CLI::App* const atomics =
      add_one_sided(app, options, Benchmark::atomics, "Atomic operations on a word of another rank",
                    {fetch_and_add, compare_and_swap}, {8});
  add_choice(*atomics, "--operation", options.one_sided.operations, "fetch-and-add, compare-and-swap (default: both)",
             atomic_operations);
  atomics->add_option("--size", options.sizes, "Bytes of the word: 4, 8 (default: 8)")
      ->delimiter(',')
      ->check(CLI::IsMember({4, 8}));
}

const std::map<std::string, ActiveKind> active_kinds = {{"handler", ActiveKind::handler},
                                                        {"queue", ActiveKind::queue},
                                                        {"concurrent", ActiveKind::concurrent},
                                                        {"inject", ActiveKind::inject},
                                                        {"call", ActiveKind::call}};

void add_active(CLI::App& app, Options& options) {
  constexpr std::uint64_t k = 1 << 10, most = 1 << 30;
  ActiveOptions& active = options.active;
  CLI::App* sub = add_common(app, options, Benchmark::am, "Active messages: handlers, queues, injections, calls");
  add_driver(*sub, options);
  add_choice(*sub, "--kind", active.kinds,
             "handler, queue (canele_am_open), concurrent (overlapping handlers), inject, call (default: all)",
             active_kinds);
  add_choice(*sub, "--measure", active.measures,
             "latency: half a round trip; rate: windows of messages, an empty answer each (default: both)", measures);
  sub->add_option("--size", options.sizes, "Bytes of a payload (default: 8,256,1k,4k,64k)")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false) & CLI::Range(std::uint64_t{0}, most));
  sub->add_option("--window", active.window, "Messages before an answer (default: 64; large ones fewer, at least 4)")
      ->check(CLI::Range(1, 4096));
  sub->add_flag("--poll", active.poll, "Wait by canele_progress in a loop (default: by canele_condition_wait)");
  sub->add_flag("--json", options.json, "Print JSON, with every sample");
  sub->add_flag("!--no-floor", options.floor, "Do not measure plain messages beside them");
  sub->callback([&options] {
    options.benchmark = Benchmark::am;
    if (options.sizes.empty()) options.sizes = {8, 256, k, 4 * k, 64 * k};
  });
}

void add_flood(CLI::App& app, Options& options) {
  FloodOptions& flood = options.flood;
  CLI::App* sub = app.add_subcommand(
      name_of(Benchmark::flood), "Messages to a rank that posts no receive until all are sent: memory, order, content");
  sub->add_option("--driver", options.drivers, "Drivers, one job each (default: shm,tcp)")->delimiter(',');
  sub->add_option("--senders", flood.senders, "Senders, one job each (default: 1,7)")
      ->delimiter(',')
      ->check(CLI::Range(1, 1000));
  sub->add_option("--size", options.sizes, "Message sizes, one job each; multiples of 8 (default: 8,1k,64k)")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false) & CLI::Validator(
                                                [](const std::string& text) {
                                                  const std::uint64_t size = std::strtoull(text.c_str(), nullptr, 10);
                                                  return size >= 8 && size % 8 == 0 && size <= 1u << 30
                                                             ? std::string()
                                                             : text + "; expected: a multiple of 8 from 8 to 1G";
                                                },
                                                "SIZE"));
  sub->add_option("--messages", flood.messages,
                  "Messages of each sender (default: 1000000; of 32 KiB and more, 100000)")
      ->check(CLI::Range(1, 100'000'000));
  sub->add_option("--limit", flood.limit, "CANELE_UNEXPECTED_MEMORY (default: 64M)")
      ->transform(CLI::AsSizeValue(false));
  sub->add_option("--per-peer", flood.per_peer, "CANELE_EXPERT_UNEXPECTED_PER_PEER (default: the engine's)")
      ->transform(CLI::AsSizeValue(false));
  sub->add_option("--allow", flood.allow, "Allowed growth of a receiver's memory (default: the limit and a tenth)")
      ->transform(CLI::AsSizeValue(false));
  sub->add_flag("--both", flood.both,
                "Also send as many messages from the receiver to the senders, which receive late, too");
  sub->add_flag("--json", options.json, "Print JSON, a line for each job");
  sub->callback([&options] {
    options.benchmark = Benchmark::flood;
    if (options.drivers.empty()) options.drivers = {"shm", "tcp"};
    if (options.sizes.empty()) options.sizes = {8, 1 << 10, 64 << 10};
  });
}

void add_broadcast(CLI::App& app, Options& options) {
  BroadcastOptions& broadcast = options.broadcast;
  CLI::App* sub = app.add_subcommand(name_of(Benchmark::broadcast),
                                     "One message to k ranks of this host: time until the last rank has it, by shape");
  sub->add_option("--driver", options.drivers, "Drivers, one job each (default: shm,tcp)")->delimiter(',');
  sub->add_option("--destinations", broadcast.destinations, "k, one job each (default: 1,3,7)")
      ->delimiter(',')
      ->check(CLI::Range(1, 1000));
  sub->add_option("--size", options.sizes, "Message sizes (default: 8,64k,1M,4M)")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false));
  sub->add_option("--shape", broadcast.ways,
                  "Ways, taken in turn: sends (k single ones), auto, flat, chain, binomial, 4-nomial, 8-nomial")
      ->delimiter(',')
      ->check(CLI::IsMember(broadcast_ways));
  sub->add_option("--batches", options.batches, "Broadcasts of each size and way")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  sub->add_flag("--json", options.json, "Print JSON, a line for each size, with every sample");
  sub->callback([&options] {
    options.benchmark = Benchmark::broadcast;
    if (options.drivers.empty()) options.drivers = {"shm", "tcp"};
    if (options.sizes.empty()) options.sizes = {8, 64 << 10, 1 << 20, 4 << 20};
  });
}

void add_callback(CLI::App& app, Options& options) {
  constexpr int usual = 100;
  CLI::App* sub = app.add_subcommand(name_of(Benchmark::callback),
                                     "Delay of a message while the bound worker runs another message's callback");
  sub->add_option("--driver", options.drivers, "Drivers, one job each (default: shm,tcp)")->delimiter(',');
  sub->add_option("--busy", options.busy_us, "Length of the callback, us")
      ->check(CLI::Range(100.0, 1e6))
      ->capture_default_str();
  CLI::Option* const batches = sub->add_option("--batches", options.batches, "Messages of each kind (default: 100)")
                                   ->check(CLI::Range(1, 100'000));
  sub->add_flag("!--no-pin", options.pin, "Pin neither the sender nor the worker");
  sub->add_flag("--json", options.json, "Print JSON, a line for each driver, with every sample");
  sub->callback([&options, batches] {
    options.benchmark = Benchmark::callback;
    if (options.drivers.empty()) options.drivers = {"shm", "tcp"};
    if (batches->count() == 0) options.batches = usual;
  });
}

/// Adds the benchmarks that the peers' programs have, too. Ours can choose the driver.
void add_progress(CLI::App& app, Options& options) {
  progress::add_subcommands(app, options.progress);
  for (const char* const name :
       {"overlap", "threads", "overload", "availability", "alltoall", "pairs", "silence", "passive", "clock"}) {
    CLI::App* const sub = app.get_subcommand(name);
    sub->add_option("--driver", options.driver, "CANELE_DRIVERS, e.g. shm or tcp (default: as configured)");
    sub->parse_complete_callback([&options] { options.benchmark = Benchmark::progress; });
  }
  add_memory(*app.get_subcommand("overlap"), options);
}

void add_nbc(CLI::App& app, Options& options) {
  nbc::add_subcommand(app, options.nbc);
  CLI::App* const sub = app.get_subcommand("nbc");
  sub->add_option("--driver", options.driver, "CANELE_DRIVERS, e.g. shm or tcp (default: as configured)");
  sub->parse_complete_callback([&options] { options.benchmark = Benchmark::nbc; });
}

/// Adds a script that starts many jobs. All words, --help too, are passed to it.
void add_script(CLI::App& app, Options& options, const char* name, const char* help) {
  CLI::App* const sub = app.add_subcommand(name, help);
  sub->set_help_flag();
  sub->prefix_command();
  sub->callback([&options, sub] {
    options.benchmark = Benchmark::script;
    options.script = sub->get_name() + ".py";
    options.words = sub->remaining();
  });
}

/// Returns the wanted window; 0: as many operations as a window of this size needs.
int window_by_size(int wanted, std::uint64_t size) {
  constexpr std::uint64_t most_bytes = 1 << 20, least = 4, most = 64;
  if (wanted > 0) return wanted;
  return static_cast<int>(std::clamp(most_bytes / std::max<std::uint64_t>(size, 1), least, most));
}

}  // namespace

int Options::window() const {
  switch (benchmark) {
    case Benchmark::latency:
    case Benchmark::put:  // these have a window for each row
    case Benchmark::get:
    case Benchmark::atomics:
    case Benchmark::am:
    case Benchmark::sample:
    case Benchmark::match:
    case Benchmark::flood:
    case Benchmark::broadcast:
    case Benchmark::callback:
    case Benchmark::progress:
    case Benchmark::nbc:
    case Benchmark::script:
      return 1;
    case Benchmark::bandwidth:
      return 16;
    case Benchmark::rate:
      return 64;
  }
  return 1;
}

int Options::rounds(std::uint64_t size, int window) const {
  if (iterations > 0) return std::max(1, iterations / window);
  const std::uint64_t per_round = std::max<std::uint64_t>(1, size) * static_cast<std::uint64_t>(window);
  const int by_bytes = static_cast<int>(std::min<std::uint64_t>(most_bytes_per_batch / per_round, small_rounds));
  return std::clamp(by_bytes, 1, std::max(1, small_rounds / window));
}

MemoryKind Options::memory_of(int rank) const {
  if (memory.empty()) return MemoryKind::host;
  return memory.size() == 1 ? memory[0] : memory[static_cast<std::size_t>(rank)];
}

int Options::window_of_one_sided(std::uint64_t size) const { return window_by_size(one_sided.window, size); }
int Options::window_of_active(std::uint64_t size) const { return window_by_size(active.window, size); }

bool is_one_sided(Benchmark benchmark) {
  return benchmark == Benchmark::put || benchmark == Benchmark::get || benchmark == Benchmark::atomics;
}

const char* name_of(Benchmark benchmark) {
  switch (benchmark) {
    case Benchmark::latency:
      return "latency";
    case Benchmark::bandwidth:
      return "bandwidth";
    case Benchmark::rate:
      return "rate";
    case Benchmark::put:
      return "put";
    case Benchmark::get:
      return "get";
    case Benchmark::atomics:
      return "atomics";
    case Benchmark::am:
      return "am";
    case Benchmark::sample:
      return "sample";
    case Benchmark::match:
      return "match";
    case Benchmark::flood:
      return "flood";
    case Benchmark::broadcast:
      return "broadcast";
    case Benchmark::callback:
      return "callback";
    case Benchmark::progress:
      return "progress";
    case Benchmark::nbc:
      return "nbc";
    case Benchmark::script:
      return "script";
  }
  return "";
}

const char* unit_of(Benchmark benchmark) {
  switch (benchmark) {
    case Benchmark::latency:
    case Benchmark::sample:
    case Benchmark::broadcast:
    case Benchmark::callback:
    case Benchmark::progress:
    case Benchmark::nbc:
      return "us";
    case Benchmark::match:
      return "ns";
    case Benchmark::flood:
      return "s";
    case Benchmark::bandwidth:
      return "MB/s";
    case Benchmark::rate:
      return "messages/s";
    case Benchmark::put:  // each row has its own
    case Benchmark::get:
    case Benchmark::atomics:
    case Benchmark::am:
    case Benchmark::script:
      break;
  }
  return "";
}

bool parse_options(int argc, char** argv, Options* options, int* code) {
  CLI::App app{
      "Measures Canelé between two ranks, and the floor of the machine: the same transfer without a library. Outside "
      "of a job it starts its two "
      "ranks by canele-run; in a job of two ranks it uses those."};
  app.set_version_flag("--version", canele_version());
  app.require_subcommand(1);
  add_subcommand(app, *options, Benchmark::latency, "Time of one message one way (half a ping-pong)", {8});
  add_subcommand(app, *options, Benchmark::bandwidth, "Bytes per second of a stream", {64 << 10, 1 << 20, 4 << 20});
  add_subcommand(app, *options, Benchmark::rate, "Messages per second of a stream of small messages", {8});
  add_put_get_atomics(app, *options);
  add_active(app, *options);
  add_sample(app, *options);
  add_match(app, *options);
  add_flood(app, *options);
  add_broadcast(app, *options);
  add_callback(app, *options);
  add_progress(app, *options);
  add_nbc(app, *options);
  add_script(app, *options, "compare",
             "These benchmarks with Canelé and every MPI, UCX and libfabric of this machine, compared");
  add_script(app, *options, "prebuild",
             "Compiles what compare and its kind need, for a machine without a compiler (--work DIR)");
  add_script(app, *options, "growth", "Cost of a message as ranks, requests, threads, tags and sessions grow");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    *code = app.exit(problem);
    return false;
  }
  return true;
}

}  // namespace canele::perf

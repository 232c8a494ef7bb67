// SPDX-License-Identifier: BSD-3-Clause
//
// Options of the benchmarks of progress, and what their figures mean.
//
// The definitions stand in the help, next to the numbers that they explain.
#include "options.hpp"

#include <CLI/CLI.hpp>

namespace canele::perf::progress {
namespace {

const char* const overlap_help =
    "Times in us, medians; a batch measures each of them once.\n"
    "  comm      transfer, both sides wait: latest end less earliest start of both ranks\n"
    "  one       the same while one side computes for longer than that: the other side moves the data alone\n"
    "  comp      the computation alone, between two transfers; fixed work in registers, no call of the library\n"
    "  total     post, compute (on the side named, or on both), wait: latest end less earliest start\n"
    "  bound     total / max(comp, one); the best there is is 1\n"
    "  serial    total / (comp + comm); 1: nothing overlapped\n"
    "and the ratios of F. Reynier's thesis (Bordeaux 2022, section 4.1), with comm as the transfer's reference:\n"
    "  r_overhead        (total - max(comp, comm)) / min(comp, comm); 0: overlapped, 1: one after the other\n"
    "  r_comm            time of the computing side in wait / comm; 0: the transfer was over by then\n"
    "  r_comp_slowdown   computation with transfer / computation alone\n"
    "  r_passive_impact  computation alone / the same before the library was started\n"
    "  cpu_send, cpu_recv  processor time (getrusage) of one transfer without computation, waiting included";

const char* const threads_help =
    "One-way times in us are half a ping-pong of 8 bytes, as the thread that asks sees it.\n"
    "  1-to-N    one thread of rank 0 asks N threads of rank 1 in turn; each waits in a receive with a tag of its own\n"
    "  N-to-N    N pairs of threads, all at once, for a fixed time\n"
    "  rate      messages a second of all pairs, both ways\n"
    "  slowest   messages of the slowest pair / mean of all\n"
    "  p99_to_median  of one-way times";

const char* const overload_help =
    "One thread of each rank plays ping-pong while others compute without end, on the same cores. Times in us, one "
    "way.\n"
    "  above     (max - median of the first number of threads given) / scheduler slice (slice_us)";

const char* const availability_help =
    "Post, work, wait (W. Lawry, C. Wilson, A. Maccabe, R. Brightwell: COMB, 2002; Sandia's SMB host overhead). Work\n"
    "grows until a message with it takes 1.5 times as long as without. Times in us.\n"
    "  base          one message without work\n"
    "  overhead      one message with that much work, less that work alone: the processor time of the host\n"
    "  availability  1 - overhead / base";

template <typename Value, typename... Values>
void otherwise(std::vector<Value>& values, Values... defaults) {
  if (values.empty()) values = {defaults...};
}

const char* const alltoall_help =
    "Each rank sends to every other one and waits for all messages; time of a round in us, as rank 0 sees it.\n"
    "  --bare    the same by flags in memory. looks: looks before a yield, of a rank that waits for other cores only;\n"
    "            switches: context switches of a rank in a round";

const char* const pairs_help =
    "Ranks 2 i and 2 i + 1 are a pair; all pairs communicate at once, each on its two of --cores.\n"
    "  latency    one way of a ping-pong in us, mean of the pairs; canele-perf latency explains it\n"
    "  bandwidth  MB/s of all pairs together, in windows of 16 messages, each answered\n"
    "  rate       messages/s of all pairs together, in windows of 64\n"
    "  slowest    time of the slowest pair / mean of all";

const char* const silence_help =
    "Rank 0 sleeps by itself, all others wait for a message of it. Medians; times in us.\n"
    "  cpu       processor time of all waiting ranks together, in percent of one core\n"
    "  first     one way of the first message after the silence\n"
    "  futex, epoll  a bare wake-up of a thread that has slept as long on the same core, in the same run\n"
    "  to_futex, to_epoll  first, to those";

const char* const passive_help =
    "Rank 1 computes and makes no call; rank 0 accesses its memory meanwhile. Rank 2 sleeps. Times in us, from the\n"
    "post until the operation is over at the target. By MPI: MPI_Win_create, MPI_Win_lock_all, MPI_Win_flush.\n"
    "  put       ours: also notifies the target\n"
    "  first     the first operation, with which rank 0 meets rank 1 (by MPI they have made the window together)";

const char* const clock_help =
    "Each rank's clock against rank 0's, by round trips: twice, --seconds apart, then the starts, then once more. A "
    "row "
    "for\neach rank, times in us; bound: limit of the error, for any network; error: the true error, known "
    "on "
    "one host.\n"
    "  offset, drift_ppm     this clock less rank 0's; what it runs fast by; drift_bound: of its error\n"
    "  bound, error          of one synchronisation\n"
    "  between_bound, _error the worst of all dates between two synchronisations, by interpolation\n"
    "  ahead_bound, _error   of the last date, by extrapolation of the first two\n"
    "  once_error            the same by the first offset alone, as if there were no drift\n"
    "Then a row for each way to start together: spread (median, p10, p90, most) of the dates at which ranks leave a "
    "barrier,\nand at which they begin by an agreed date of the extrapolated clock; bound: of the error of a spread; "
    "missed: starts\nthat do not count, because the date had passed on a rank when it heard of it.";

CLI::App* add_common(CLI::App& app, Options& options, const char* name, const char* help, const char* footer,
                     int batches, void (*complete)(Options&)) {
  CLI::App* sub = app.add_subcommand(name, help);
  sub->footer(footer);
  sub->add_option("--batches", options.batches, "Batches (default: " + std::to_string(batches) + ")")
      ->check(CLI::Range(1, 100'000));
  sub->add_option("--cores", options.cores, "OS indexes of the cores to pin the ranks of a host to, e.g. 0,1")
      ->delimiter(',')
      ->check(CLI::Range(0, 4095));
  sub->add_option("--cores-each", options.cores_each, "Cores of each rank, for its threads (default: 1)")
      ->check(CLI::Range(1, 4096));
  sub->add_flag("!--no-pin", options.pin, "Do not pin");
  sub->add_flag("--json", options.json, "Print JSON, a line for each row, with every sample");
  sub->callback([&options, name = std::string(name), batches, complete] {
    options.benchmark = name;
    if (options.batches == 0) options.batches = batches;
    complete(options);
  });
  return sub;
}

void add_sizes(CLI::App* sub, Options& options, const char* help) {
  sub->add_option("--size", options.sizes, help)->delimiter(',')->transform(CLI::AsSizeValue(false));
}

constexpr std::uint64_t k = 1024, m = k * k;

void add_overlap(CLI::App& app, Options& options) {
  CLI::App* sub =
      add_common(app, options, "overlap", "Transfers while the ranks compute", overlap_help, 31, [](Options& o) {
        otherwise(o.sizes, 4 * k, 64 * k, m, 4 * m, 16 * m);
        otherwise(o.sides, "sender", "receiver", "both");
        otherwise(o.ratios, 0.5, 1.0, 2.0, 3.0);
      });
  add_sizes(sub, options, "Message sizes (default: 4k,64k,1M,4M,16M)");
  sub->add_option("--side", options.sides, "Computing side: sender, receiver, both (default: all three)")
      ->delimiter(',')
      ->check(CLI::IsMember({"sender", "receiver", "both"}));
  sub->add_option("--ratio", options.ratios, "Computation to transfer (default: 0.5,1,2,3)")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 100.0));
}

void add_threads(CLI::App& app, Options& options) {
  CLI::App* sub = add_common(app, options, "threads", "Ping-pongs of many threads", threads_help, 5, [](Options& o) {
    otherwise(o.threads, 1, 2, 4, 16, 64, 256);
    otherwise(o.patterns, "1-to-N", "N-to-N");
    if (o.rounds == 0) o.rounds = 10'000;
    if (o.seconds == 0) o.seconds = 0.5;
  });
  sub->add_option("--threads", options.threads, "N (default: 1,2,4,16,64,256)")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  sub->add_option("--pattern", options.patterns, "1-to-N, N-to-N (default: both)")
      ->delimiter(',')
      ->check(CLI::IsMember({"1-to-N", "N-to-N"}));
  sub->add_option("--rounds", options.rounds, "1-to-N: ping-pongs of a batch (default: 10000)")
      ->check(CLI::Range(1, 100'000'000));
  sub->add_option("--seconds", options.seconds, "N-to-N: length of a batch (default: 0.5)")
      ->check(CLI::Range(0.001, 3600.0));
}

void add_overload(CLI::App& app, Options& options) {
  CLI::App* sub =
      add_common(app, options, "overload", "A ping-pong beside threads that compute", overload_help, 1, [](Options& o) {
        otherwise(o.sizes, m);
        otherwise(o.threads, 0, 1, 4, 16, 64);
        if (o.rounds == 0) o.rounds = 500;
      });
  add_sizes(sub, options, "Message sizes (default: 1M)");
  sub->add_option("--threads", options.threads, "Threads that compute, in each process (default: 0,1,4,16,64)")
      ->delimiter(',')
      ->check(CLI::Range(0, 4096));
  sub->add_option("--rounds", options.rounds, "Ping-pongs of a batch (default: 500)")
      ->check(CLI::Range(1, 100'000'000));
}

void add_availability(CLI::App& app, Options& options) {
  CLI::App* sub = add_common(app, options, "availability", "Processor time of the host per message", availability_help,
                             31, [](Options& o) {
                               otherwise(o.sizes, std::uint64_t{8}, 4 * k, 64 * k, m, 4 * m);
                               otherwise(o.sides, "sender", "receiver");
                             });
  add_sizes(sub, options, "Message sizes (default: 8,4k,64k,1M,4M)");
  sub->add_option("--side", options.sides, "Measured side: sender, receiver (default: both)")
      ->delimiter(',')
      ->check(CLI::IsMember({"sender", "receiver"}));
}

void add_alltoall(CLI::App& app, Options& options) {
  CLI::App* sub = add_common(app, options, "alltoall", "Messages of all ranks to all, more ranks than cores",
                             alltoall_help, 15, [](Options& o) {
                               otherwise(o.sizes, std::uint64_t{8}, 64 * k);
                               if (o.rounds == 0 && o.bare) o.rounds = 1000;
                               if (o.ranks == 0) o.ranks = 8;
                             });
  add_sizes(sub, options, "Message sizes (default: 8,64k)");
  sub->add_option("--ranks", options.ranks, "Ranks to start (default: 8)")->check(CLI::Range(2, 1000));
  sub->add_option("--rounds", options.rounds,
                  "Rounds of a batch (default: as many as take 5 ms, 50 to 10000; --bare: 1000)")
      ->check(CLI::Range(1, 100'000'000));
  sub->add_flag("--bare", options.bare,
                "Flags in memory and yields, without a library: the least cost of such a round");
}

void add_pairs(CLI::App& app, Options& options) {
  CLI::App* sub = add_common(app, options, "pairs", "Latency, bandwidth and rate of several pairs of ranks at once",
                             pairs_help, 15, [](Options& o) {
                               otherwise(o.measures, "latency", "bandwidth", "rate");
                               otherwise(o.sizes, std::uint64_t{8}, 64 * k);
                               if (o.ranks == 0) o.ranks = 2;
                             });
  add_sizes(sub, options, "Message sizes (default: 8,64k)");
  sub->add_option("--measure", options.measures, "latency, bandwidth, rate (default: all three)")
      ->delimiter(',')
      ->check(CLI::IsMember({"latency", "bandwidth", "rate"}));
  sub->add_option("--ranks", options.ranks, "Ranks to start, two for each pair (default: 2)")
      ->check(CLI::Range(2, 1000));
  sub->add_option("--rounds", options.rounds, "Messages of a pair in a batch (default: by measure and size)")
      ->check(CLI::Range(1, 100'000'000));
}

void add_silence(CLI::App& app, Options& options) {
  CLI::App* sub = add_common(app, options, "silence", "Cost of waiting, and of the first message after it",
                             silence_help, 7, [](Options& o) {
                               if (o.ranks == 0) o.ranks = 8;
                               if (o.seconds == 0) o.seconds = 1;
                             });
  sub->add_option("--ranks", options.ranks, "Ranks to start (default: 8)")->check(CLI::Range(2, 1000));
  sub->add_option("--seconds", options.seconds, "Length of a silence (default: 1)")->check(CLI::Range(0.001, 3600.0));
#ifndef CANELE_PERF_MPI
  sub->add_flag("--queue", options.queue, "Wait in canele_queue_wait, not in canele_wait");
#endif
}

void add_passive(CLI::App& app, Options& options) {
  CLI::App* sub = add_common(app, options, "passive", "One-sided operations on a rank that computes", passive_help, 100,
                             [](Options& o) {
                               otherwise(o.sizes, std::uint64_t{8});
                               if (o.ranks == 0) o.ranks = 3;
                               if (o.seconds == 0) o.seconds = 0.01;
                               if (o.operation.empty()) o.operation = "put";
                             });
  sub->add_option("--operation", options.operation, "put, get, accumulate (default: put)")
      ->check(CLI::IsMember({"put", "get", "accumulate"}));
  sub->add_option("--size", options.sizes, "Bytes of an operation, a multiple of 8 (default: 8)")
      ->expected(1)
      ->transform(CLI::AsSizeValue(false));
  sub->add_option("--seconds", options.seconds, "Length of a computation (default: 0.01)")
      ->check(CLI::Range(0.0001, 3600.0));
}

void add_clock(CLI::App& app, Options& options) {
  CLI::App* sub = add_common(app, options, "clock", "One clock for all ranks, and starts at an agreed date", clock_help,
                             200, [](Options& o) {
                               if (o.ranks == 0) o.ranks = 2;
                               if (o.seconds == 0) o.seconds = 1;
                             });
  sub->add_option("--ranks", options.ranks, "Ranks to start (default: 2)")->check(CLI::Range(2, 1000));
  sub->add_option("--seconds", options.seconds, "Between the first two synchronisations (default: 1)")
      ->check(CLI::Range(0.001, 3600.0));
  sub->add_option("--trips", options.trips, "Round trips of each rank, each time")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  sub->add_option("--margin", options.margin_us, "Time until the first agreed date, us; doubled after each missed one")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  sub->add_option("--offset", options.offset_s, "Set clocks wrong by up to this many seconds, on purpose")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  sub->add_option("--drift", options.drift_ppm, "Let clocks run wrong by up to this many ppm, on purpose")
      ->check(CLI::Range(0.0, 200.0))
      ->capture_default_str();
  sub->add_option("--seed", options.seed, "Seed of the errors of the clocks")->capture_default_str();
}

}  // namespace

void add_subcommands(CLI::App& app, Options& options) {
  add_overlap(app, options);
  add_threads(app, options);
  add_overload(app, options);
  add_availability(app, options);
  add_alltoall(app, options);
  add_pairs(app, options);
  add_silence(app, options);
  add_passive(app, options);
  add_clock(app, options);
}

}  // namespace canele::perf::progress

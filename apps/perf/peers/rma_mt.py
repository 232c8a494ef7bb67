#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""One-sided operations of several threads, in the patterns of RMA-MT: our MPI functions beside other MPIs, interleaved.

Runs one job at a time. A point is an operation, a synchronisation, a number of threads and a size. All contenders run
mpi_rma_mt.c, which explains the patterns and checks the data. For each point they take turns: A B C A B C ...

A rate counts the operations of all threads until the last thread is done. Rates are medians with p10 and p90 over the
batches of all repetitions. A ratio is our rate divided by the best rate of the others: the median of those of the
repetitions, so that phases in which the machine is slow cancel. A contender that crashes, hangs or delivers wrong data
at a point is reported there, and not measured again at that point.

Open MPI yields when idle if there are more threads than cores, which is its better setting.
"""

import argparse
import itertools
import os
import re
import sys
import typing

import command_line
import contenders as peers
from figures import quantile
from progress import run_rounds

OPERATIONS, SYNCS = ["put", "get"], ["lock_all_flush", "lock", "fence", "pscw"]
TARGETS = {"one": 2, "ring": 4, "halo": 4}  # and the number of ranks
MEMORY = {"allocate": "mapped", "create": "registered"}
OURS = "canele-mpi"
CONTENDERS = [OURS, "openmpi", "openmpi-ucx", "mpich"]
USUAL = [OURS, "openmpi", "mpich"]
MOST_BYTES = 128 << 20  # of a batch
GOAL = 0.9  # share of the points at which we are ahead
QUICK = {"threads": [1, 2, 4], "sizes": [8, 4096], "rounds": 2, "batches": 3, "count": 20000}
FULL = {"threads": [1, 2, 4, 8, 16], "sizes": [8, 64, 512, 4096, 65536], "rounds": 5, "batches": 5, "count": None}


class Point(typing.NamedTuple):
    """What one job measures."""

    operation: str
    sync: str
    threads: int
    size: int


class RmaMt(peers.Contender):
    """An MPI. `samples` has a list of rates for each job. `failures` says at which points it failed, and how."""

    def __init__(self, name, command):
        super().__init__(name, command, {}, lambda text: [[float(word) for word in text.split()]])
        self.failures = {}

    def run(self, case, time_limit):
        try:  # timeout ends the launcher by a signal, and the launcher ends its ranks; the rest of the time is for that
            super().run(case, time_limit + 30)
        except RuntimeError as problem:
            self.failures[case] = str(problem)
            raise


def work_of(options, point):
    """Returns (window, rounds) of a batch: as many operations as wanted, but bounded bytes."""
    window = peers.window_of(peers.Case(point.operation + peers.RATE, options.driver, "", point.size))
    usual = 100000 if point.sync == "lock_all_flush" else 20000
    operations = min(options.count or usual, MOST_BYTES // point.size)
    return window, max(1, operations // (point.threads * window))


def make_contender(options, name):
    """Returns None and the reason if it is not available."""
    library = peers.find_libraries(options)[name]
    program, why = peers.build(options, library, "mpi_rma_mt")
    if program is None:
        return None, why
    extra, environment = library.how[options.driver]
    ranks = TARGETS[options.target]
    variables = [f"{key}={value}" for key, value in environment.items()]

    def command(point):
        more = []
        if library.launch == peers.OPENMPI_LAUNCH:
            case = peers.Case(point.operation, options.driver, MEMORY[options.memory], point.size)
            more = peers.openmpi_rma(case, library.how is peers.UCX_DRIVER)
            if ranks * point.threads > len(os.sched_getaffinity(0)):
                more = [*more, *peers.OPENMPI_YIELD]
        window, rounds = work_of(options, point)
        asked = [point.operation, point.sync, point.threads, window, point.size, options.batches, rounds,
                 options.target, options.memory, options.cores]
        return ["timeout", "--kill-after=10", str(options.time_limit), "env", *variables, *library.launch, "-n",
                str(ranks), *extra, *more, program, *map(str, asked)]

    return RmaMt(name, command), ""


def reason(text):
    """Returns a failure in a few words."""
    if re.search(r"exit code (124|-?9|137) of|no end after", text):
        return "no end"
    if "wrong data" in text:
        return "wrong data"
    if "MPI_THREAD_MULTIPLE is not provided" in text:
        return "no threads"
    code = re.search(r"exit code (-?\d+) of", text)
    return f"exit code {code.group(1)}" if code else "failed"


def ratio_of(contenders, point):
    """Returns our rate divided by the best of the others; 0 if we failed. None: nothing to compare."""
    ours = [one for one in contenders if one.name == OURS]
    others = [one for one in contenders if one.name != OURS and one.samples.get(point)]
    if not ours or not others:
        return None
    if point in ours[0].failures:
        return 0
    ratios = []
    for number, job in enumerate(ours[0].samples.get(point, [])):
        medians = [quantile(one.samples[point][number], 0.5) for one in others if number < len(one.samples[point])]
        if medians:
            ratios.append(quantile(job, 0.5) / max(medians))
    return quantile(ratios, 0.5) if ratios else None


def summarise(options, contenders):
    """Returns a row for each point."""
    rows = []
    for point in options.cases:
        rates, failures = {}, {}
        for one in contenders:
            rates_here = [rate for job in one.samples.get(point, []) for rate in job]
            if rates_here:
                rates[one.name] = [quantile(rates_here, q) for q in (0.5, 0.1, 0.9)]
            if point in one.failures:
                failures[one.name] = one.failures[point]
        rows.append({**point._asdict(), "rates": rates, "failures": failures, "ratio": ratio_of(contenders, point)})
    return rows


def verdict(rows):
    """Returns (points ahead, points compared, points at which no other contender has a figure)."""
    compared = [row["ratio"] for row in rows if row["ratio"] is not None]
    alone = sum(row["ratio"] is None and set(row["rates"]) == {OURS} and bool(row["failures"]) for row in rows)
    return sum(ratio >= 1 for ratio in compared), len(compared), alone


def scaling(rows):
    """Returns {(operation, sync, size): {contender: {threads: its median rate to that of the fewest threads}}}."""
    tables = {}
    for row in rows:
        table = tables.setdefault((row["operation"], row["sync"], row["size"]), {})
        for name, (median, *_) in row["rates"].items():
            table.setdefault(name, {})[row["threads"]] = median
    for table in tables.values():
        for name, rates in table.items():
            table[name] = {threads: rate / rates[min(rates)] for threads, rate in rates.items()}
    return tables


def cell(row, name):
    """Returns a contender's rate at a point, and how it failed there."""
    words = ["{:.3g} ({:.3g} to {:.3g})".format(*(rate / 1e6 for rate in row["rates"][name]))] \
        if name in row["rates"] else []
    words += [reason(row["failures"][name])] if name in row["failures"] else []
    return ", ".join(words) or "-"


def print_tables(names, rows):
    """Prints rates, how they grow with the threads, and the verdict."""
    print(f"{'':<4} {'sync':<14} {'threads':>7} {'bytes':>6}" + "".join(f"{name:>30}" for name in names) + "   ratio")
    for row in rows:
        ratio = "" if row["ratio"] is None else f"{row['ratio']:8.2f}"
        print(f"{row['operation']:<4} {row['sync']:<14} {row['threads']:>7} {row['size']:>6}" +
              "".join(f"{cell(row, name):>30}" for name in names) + ratio)
    print("\nrates beside those of the fewest threads")
    for (operation, sync, size), table in scaling(rows).items():
        for name in (name for name in names if name in table):
            print(f"{operation:<4} {sync:<14} {size:>6} {name:<12}" +
                  "".join(f"{threads:>6}: {factor:.2f}" for threads, factor in table[name].items()))
    ahead, compared, alone = verdict(rows)
    if compared:
        print(f"\nahead at {ahead} of {compared} points, {100 * ahead / compared:.0f} % (goal: {100 * GOAL:.0f} %)")
    if alone:
        print(f"at {alone} points no other contender has a figure")
    for name in names:
        if failed := sum(name in row["failures"] for row in rows):
            print(f"{name} failed at {failed} points")


def measure_sends(options):
    """Returns {threads: messages/s of that many threads' ping-pongs by our native API}: the medians."""
    contender, why = peers.make_canele(options)
    if contender is None:
        print(f"sends: left out: {why}", file=sys.stderr)
        return {}
    cases = [peers.Case("threads", options.driver, "N-to-N", threads) for threads in options.threads]
    for _, case in itertools.product(range(options.rounds), cases):
        contender.run(case, 2 * options.time_limit)
    return {case.size: quantile(contender.samples[case], 0.5) for case in cases}


def result_of(options, names, rows, sends):
    """Returns the result in the form of the JSON."""
    about = {key: getattr(options, key) for key in ("driver", "target", "memory", "cores", "rounds", "batches")}
    ahead, compared, alone = verdict(rows)
    return {**about, "contenders": names, "rows": rows, "sends": sends, "ahead": ahead, "compared": compared,
            "alone": alone}


def print_report(result):
    """Prints the tables."""
    print(f"RMA-MT over {result['driver']}, target {result['target']}, memory {result['memory']}, cores "
          f"{result['cores']}, {result['rounds']} repetitions of {result['batches']} batches; M operations/s: median "
          "(p10 to p90)")
    print_tables(result["contenders"], result["rows"])
    sends = result["sends"]
    if sends:
        first = sends[min(sends)]
        print("threaded sends of the native API, M messages/s: " + ", ".join(
            f"{threads} threads {rate / 1e6:.3g} (x {rate / first:.2f})" for threads, rate in sends.items()))


def make_parser():
    """Returns the parser of the command line."""
    parser = argparse.ArgumentParser(description="One-sided operations of threads beside other MPIs, interleaved.")
    parser.add_argument("--threads", type=command_line.whole_numbers("threads", 1),
                        help=f"numbers of threads (default {command_line.listed(FULL['threads'])})")
    parser.add_argument("--sizes", type=command_line.whole_numbers("sizes", 1),
                        help=f"bytes of an operation (default {command_line.listed(FULL['sizes'])})")
    parser.add_argument("--operations", type=command_line.names("operation", OPERATIONS), default=OPERATIONS,
                        help="default: put,get")
    parser.add_argument("--sync", type=command_line.names("synchronisation", SYNCS), default=SYNCS[:1],
                        help=f"of {','.join(SYNCS)} (default the first)")
    parser.add_argument("--target", choices=sorted(TARGETS), default="one", help="ring, halo: 4 ranks (default one)")
    parser.add_argument("--memory", choices=sorted(MEMORY), default="allocate", help="default: %(default)s")
    parser.add_argument("--driver", choices=["shm", "tcp"], default="shm")
    parser.add_argument("--cores", help="for the ranks and their threads in turn, or none (default: all allowed)")
    parser.add_argument("--batches", type=int, help=f"batches per job (default {FULL['batches']})")
    parser.add_argument("--count", type=int, help="operations per batch (default 100000; with epochs 20000)")
    parser.add_argument("--sends", action="store_true", help="show how sends of threads scale, too")
    parser.add_argument("--quick", action="store_true", help="few points and repetitions: a look, no figures to keep")
    command_line.add_common(parser, CONTENDERS, USUAL, rounds=None, time_limit=60,
                            rounds_names=("--repetitions", "--rounds"))
    return parser


def parse_arguments(words=None):
    """Parses the command line. Ends with a message if it is malformed."""
    parser = make_parser()
    options = parser.parse_args(words)
    for name, usual in (FULL | QUICK if options.quick else FULL).items():
        if getattr(options, name) is None:
            setattr(options, name, usual)
    if options.cores not in (None, "none"):
        try:
            command_line.whole_numbers("cores")(options.cores)
        except argparse.ArgumentTypeError as problem:
            parser.error(str(problem))
    if max(options.threads) > 256 or max(options.sizes) > 16 << 20:
        parser.error("at most 256 threads and 16 MiB are possible")
    options.cores = options.cores or command_line.listed(sorted(os.sched_getaffinity(0)))
    counted = 1 if options.count is None else options.count
    if min(options.rounds, options.batches, counted) < 1 or options.time_limit <= 0:
        parser.error("at least one repetition, batch and operation, and some time are needed")
    options.cases = [Point(*case) for case in itertools.product(options.operations, options.sync, options.threads,
                                                                options.sizes)]
    return options


def measure(options):
    """Builds, runs, reports. Returns exit code 1 if ours failed at a point, or no contender is left."""
    contenders = peers.make_wanted(options, make_contender)
    run_rounds(options, contenders)
    sends = measure_sends(options) if options.sends else {}
    result = result_of(options, [one.name for one in contenders], summarise(options, contenders), sends)
    command_line.deliver(options, "rma-mt", result, print_report)
    return 1 if any(one.failures for one in contenders if one.name == OURS) else 0


def main():
    """Measures, with programs in the directory of --work or in a temporary one."""
    options = parse_arguments()
    with command_line.work_directory(options):
        return measure(options)


if __name__ == "__main__":
    sys.exit(command_line.run(main))

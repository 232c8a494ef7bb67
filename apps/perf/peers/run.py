#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Canelé beside other MPIs: the same measurement, interleaved, on the same two cores.

Runs one job at a time. Contenders run A B C A B C ..., a short run each, so that slow drifts of the machine affect all
of them.

Contenders: canele (canele-perf), canele-mpi (canele-mpicc), openmpi (mpicc.openmpi), openmpi-ucx (Open MPI on UCX),
mpich (mpicc.mpich). Those that are not installed are named and left out. Figures: median, 10th and 90th percentile over
all batches of all rounds. The ratio is to the first contender's median.
"""

import argparse
import os
import sys

import broadcast
import command_line
from contenders import CONTENDERS, SEED, Case, gather, make_canele, make_mpi
from figures import quantile

UNITS = {"latency": "us", "bandwidth": "MB/s", "rate": "messages/s", "match": "ns per message", "broadcast": "us"}
DEFAULT_SIZES = {"latency": [8, 1024, 65536], "bandwidth": [65536, 1 << 20], "rate": [8],
                 "match": [16, 256, 4096, 16384], "broadcast": [8, 65536, 1 << 20, 4 << 20]}
ORDERS = ["in-order", "reverse", "shuffled", "deep"]
# As canele-perf match --load fds, which names the sources (../match_plan.hpp): lengths and order of the lists.
LOADS = {"fds": ([128, 256, 512, 1024, 2048, 4096, 8192], "deep")}
MATCHERS = ["table", "list", "bins", "peers", "arrays", "vector", "fuzzy"]  # CANELE_EXPERT_MATCHER


def find_contenders(options):
    """Returns all contenders that are wanted and available. Prints which ones are not, and why."""
    source = "mpi_match" if options.benchmark == "match" else "mpi_perf"
    made = []
    for name in options.contenders:
        if name != "canele":
            made.append((name, make_mpi(options, name, [source])))
        elif options.load:
            made += [(f"canele-{matcher}", make_matcher(options, matcher)) for matcher in MATCHERS]
        else:
            made.append((name, make_canele(options)))
    return gather(made)


def make_matcher(options, matcher):
    """Returns ours with one of MATCHERS; None and the reason if it is not available."""
    one, why = make_canele(options, f"canele-{matcher}")
    if one:
        one.matcher = matcher
    return one, why


def run_rounds(contenders, options):
    """Runs A B C A B C ... A contender that fails is named and removed."""
    for number in range(options.rounds):
        for case in options.cases:
            for contender in list(contenders):
                try:
                    contender.run(case, options.time_limit or 120)
                except RuntimeError as problem:
                    print(problem, file=sys.stderr)
                    contenders.remove(contender)
        print(f"round {number + 1} of {options.rounds} done", file=sys.stderr)


def summarise(contenders, options):
    """Returns the rows of the report: one per case and contender."""
    rows = []
    for case in options.cases:
        first = quantile(contenders[0].samples[case], 0.5)
        for contender in contenders:
            samples = contender.samples[case]
            median = quantile(samples, 0.5)
            rows.append({"what": case.what, "size": case.size, "contender": contender.name, "median": median,
                         "p10": quantile(samples, 0.1),
                         "p90": quantile(samples, 0.9), "samples": len(samples), "ratio": median / first})
    return rows


def result_of(rows, options):
    """Returns the result in the form of the JSON."""
    about = {"benchmark": options.benchmark, "unit": UNITS[options.benchmark], "driver": options.driver or "default",
             "cores": options.cores, "rounds": options.rounds, "batches": options.batches}
    if options.benchmark == "match":
        about.update(order=options.order, seed=SEED, load=options.load)
    return {**about, "rows": rows}


def print_report(about):
    """Prints a table."""
    print(f"{about['benchmark']}, driver {about['driver']}, cores {about['cores']}, {about['rounds']} rounds of "
          f"{about['batches']} batches{', order ' + about['order'] if 'order' in about else ''} [{about['unit']}]")
    print(f"{'':>10} {'N' if 'order' in about else 'bytes':>8} {'contender':<18} {'median':>14} {'p10':>14} "
          f"{'p90':>14} {'ratio':>7}")
    for row in about["rows"]:
        print(f"{row['what']:>10} {row['size']:>8} {row['contender']:<18} {row['median']:>14.3f} {row['p10']:>14.3f} "
              f"{row['p90']:>14.3f} {row['ratio']:>7.2f}")


def parse_arguments():
    """Parses the command line. Ends with a message if it is malformed."""
    parser = argparse.ArgumentParser(description="Canelé beside other MPIs, interleaved, on the same two cores.")
    parser.add_argument("benchmark", choices=sorted(UNITS))
    parser.add_argument("--driver", choices=["shm", "tcp"], help="transport (default: the choice of each contender)")
    parser.add_argument("--size", type=command_line.whole_numbers("sizes"),
                        help="message sizes in bytes, comma-separated; match: numbers of receives")
    parser.add_argument("--destinations", type=command_line.whole_numbers("destinations", 1), default=list(range(1, 8)),
                        help="broadcast: numbers of ranks (default 1 to 7)")
    parser.add_argument("--from", nargs="+", metavar="FILE", dest="files",
                        help="broadcast: measure nothing, show earlier --json")
    parser.add_argument("--order", choices=ORDERS, help="match: (default shuffled)")
    parser.add_argument("--load", choices=list(LOADS), help="match: lists of an application, on each of our matchers")
    parser.add_argument("--batches", type=int, help="batches per run (default 15; broadcast: by size)")
    parser.add_argument("--cores", type=command_line.whole_numbers("cores"),
                        help="two OS indexes, e.g. 0,1 (default: the first two allowed)")
    command_line.add_common(parser, CONTENDERS, time_limit=None)
    options = parser.parse_args()
    if options.load and options.benchmark != "match":
        parser.error("--load: a load of match only")
    sizes, order = LOADS[options.load] if options.load else (DEFAULT_SIZES[options.benchmark], "shuffled")
    options.sizes, options.order = options.size or sizes, options.order or order
    options.cores = options.cores or (sorted(os.sched_getaffinity(0)) * 2)[:2]
    if options.benchmark != "broadcast":
        options.batches = 15 if options.batches is None else options.batches
    least = 1 if options.benchmark == "match" else 0
    if len(options.cores) != 2 or min(options.sizes) < least or options.rounds < 1 or (options.batches or 1) < 1:
        parser.error("two cores, sizes of at least 0 (match: 1), and at least one round and batch are needed")
    kinds = ["posted", "unexpected"] if options.benchmark == "match" else ["bytes"]
    options.cases = [Case(options.benchmark, options.driver, kind, size, options.batches) for kind in kinds
                     for size in options.sizes]
    return options


def compare_broadcasts(options):
    """Compares broadcasts. Returns exit code 1 if a job of ours has failed."""
    points, failed = (broadcast.load(options.files), False) if options.files else broadcast.run(options)
    command_line.deliver(options, "broadcast", broadcast.result_of(points), lambda _: broadcast.print_table(points))
    return 1 if failed else 0


def compare_pair(options):
    """Compares two ranks' benchmarks. Returns exit code 1 if a wanted contender failed in its run."""
    contenders = find_contenders(options)
    wanted = len(contenders)
    run_rounds(contenders, options)
    if not contenders:
        print("run.py: no contender is left to compare", file=sys.stderr)
        return 1
    rows = summarise(contenders, options)
    command_line.deliver(options, options.benchmark, result_of(rows, options), print_report)
    return 0 if len(contenders) == wanted else 1


def main():
    """Builds, runs, reports."""
    options = parse_arguments()
    with command_line.work_directory(options):
        return compare_broadcasts(options) if options.benchmark == "broadcast" else compare_pair(options)


if __name__ == "__main__":
    sys.exit(command_line.run(main))

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Blocking collectives of our MPI functions beside those of other MPIs, interleaved; also exchanges with neighbours.

Runs one job at a time. One job measures all operations and sizes with one library; jobs of the contenders take turns.

A time is that of the slowest rank, in us per call; medians over all batches of all rounds. Ranks are pinned to the
cores in turn, with every library. "ahead" is the best time of the others divided by ours, so it is above 1 where ours
is the fastest. It is the median of this ratio over the rounds, so that phases in which the machine is slow cancel. Open
MPI yields by itself if there are more ranks than cores.

`--operations exchanges` compares the ways to exchange a block with each neighbour in a ring: requests of each call,
persistent and partitioned requests, neighbourhood collectives. A last table has each contender's own times as ratios to
those of its plain requests.
"""

import argparse
import os
import sys

import command_line
import contenders as peers
from figures import quantile
from progress import run_rounds

OPERATIONS = ["barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall", "reduce_scatter",
              "scan"]
EXCHANGES = ["exchange", "exchange_persistent", "exchange_partitioned", "neighbor_alltoall", "neighbor_allgather"]
SIZES = [8, 1024, 65536, 1 << 20, 4 << 20]
CONTENDERS = [name for name in peers.CONTENDERS if name != "canele"]


def parse(text):
    """Returns {(operation, size): us of each batch} of what a job printed."""
    rows = [line.split() for line in text.splitlines() if line.strip()]
    return [{(row[0], int(row[1])): [float(word) for word in row[2:]] for row in rows}]


def make_contender(options, name):
    """Returns None and the reason if it is not available."""
    library = peers.find_libraries(options)[name]
    program, why = peers.build(options, library, "mpi_collectives")
    if program is None:
        return None, why
    extra, environment = library.how[options.driver]
    asked = [str(options.batches), *map(command_line.listed, (options.operations, options.size, options.cores))]

    def command(ranks):
        return [*library.launch, "-n", str(ranks), *extra, program, *asked]

    return peers.Contender(name, command, environment, parse), ""


def ahead_by(contenders, ranks, case):
    """Returns the best time of the others divided by ours, by the medians of each round; the median of that. None:
    nothing to compare.
    """
    ratios = []
    for jobs in zip(*(one.samples.get(ranks, []) for one in contenders if one.samples.get(ranks))):
        medians = [quantile(job[case], 0.5) for job in jobs if case in job]
        if len(medians) == len(jobs) and len(jobs) > 1:
            ratios.append(min(medians[1:]) / medians[0])
    return quantile(ratios, 0.5) if ratios and contenders[0].samples.get(ranks) else None


def forms_of(rows):
    """Returns [(ranks, size, operation, {contender: its median time to that of its plain exchange})]."""
    plain = {(row["ranks"], row["size"]): row["us"] for row in rows if row["operation"] == EXCHANGES[0]}
    table = []
    for row in rows:
        base = plain.get((row["ranks"], row["size"]))
        if base and row["operation"] in EXCHANGES[1:]:
            ratios = {name: us[0] / base[name][0] for name, us in row["us"].items() if name in base}
            table.append((row["ranks"], row["size"], row["operation"], ratios))
    return table


def summarise(options, contenders):
    """Returns a row for each number of ranks, operation and size. A barrier has one size."""
    rows = []
    for ranks in options.cases:
        cases = {}
        for contender in contenders:
            for job in contender.samples.get(ranks, []):
                for case, times in job.items():
                    cases.setdefault(case, {}).setdefault(contender.name, []).extend(times)
        smallest = min((size for _, size in cases), default=0)
        for (operation, size), times in cases.items():
            if operation == "barrier" and size != smallest:
                continue
            figures = {name: [quantile(all_of, q) for q in (0.5, 0.1, 0.9)] for name, all_of in times.items()}
            rows.append({"ranks": ranks, "operation": operation, "size": size, "us": figures,
                         "ahead": ahead_by(contenders, ranks, (operation, size))})
    return rows


def print_report(result):
    """Prints a table and how many points are ahead."""
    names, rows = result["contenders"], result["rows"]
    print(f"collectives over {result['driver']}, us per call: median (p10 to p90)")
    print(f"{'ranks':>5} {'operation':<20} {'bytes':>8}" + "".join(f"{name:>28}" for name in names) + "   ahead")
    for row in rows:
        cells = ["{:.2f} ({:.2f} to {:.2f})".format(*row["us"][name]) if name in row["us"] else "-" for name in names]
        ahead = f"{row['ahead']:8.2f}" if row["ahead"] else ""
        print(f"{row['ranks']:>5} {row['operation']:<20} {row['size']:>8}" + "".join(f"{c:>28}" for c in cells) + ahead)
    compared = [row["ahead"] for row in rows if row["ahead"]]
    if compared:
        print(f"ahead at {sum(ratio >= 1 for ratio in compared)} of {len(compared)} points")
    for ranks, size, operation, ratios in forms_of(rows):
        print(f"{ranks:>5} {operation:<20} {size:>8} to plain requests:" +
              "".join(f"  {name} {ratio:.2f}" for name, ratio in ratios.items()))


def operations(text):
    """Parses a list of operations, or the name of a kind."""
    kinds = {"collectives": OPERATIONS, "exchanges": EXCHANGES}
    return kinds.get(text) or command_line.names("operation", OPERATIONS + EXCHANGES)(text)


def parse_arguments():
    """Parses the command line. Ends with a message if it is malformed."""
    parser = argparse.ArgumentParser(description="Blocking collectives beside other MPIs, interleaved.")
    parser.add_argument("--driver", choices=["shm", "tcp"], default="shm")
    parser.add_argument("--operations", type=operations, default=OPERATIONS,
                        help=f"collectives (default), exchanges, or of {command_line.listed(OPERATIONS + EXCHANGES)}")
    parser.add_argument("--size", type=command_line.whole_numbers("sizes", 8), default=SIZES,
                        help=f"bytes of a part (default {command_line.listed(SIZES)})")
    parser.add_argument("--ranks", type=command_line.whole_numbers("ranks", 1), default=[2, 4, 8], dest="cases",
                        help="default 2,4,8")
    parser.add_argument("--batches", type=int, default=5, help="batches per run (default %(default)s)")
    command_line.add_common(parser, CONTENDERS, rounds=3)
    options = parser.parse_args()
    options.cores = sorted(os.sched_getaffinity(0))
    if any(size % 8 != 0 for size in options.size):
        parser.error("sizes are multiples of 8")
    if options.rounds < 1 or options.batches < 1:
        parser.error("at least one round and batch are needed")
    return options


def measure(options):
    """Builds, runs, reports. Returns exit code 1 if a wanted contender failed in its run."""
    contenders = peers.make_wanted(options, make_contender)
    failures = run_rounds(options, contenders)
    about = {key: getattr(options, key) for key in ("driver", "rounds", "batches")}
    result = {**about, "contenders": [one.name for one in contenders], "rows": summarise(options, contenders)}
    command_line.deliver(options, "collectives", result, print_report)
    return 1 if failures else 0


def main():
    """Measures, with programs in the directory of --work or in a temporary one."""
    options = parse_arguments()
    with command_line.work_directory(options):
        return measure(options)


if __name__ == "__main__":
    sys.exit(command_line.run(main))

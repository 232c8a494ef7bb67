#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Blocking collectives of our MPI functions beside those of other MPIs, interleaved.

Runs one job at a time. One job measures all operations and sizes with one library; jobs of the contenders take turns.

A time is that of the slowest rank, in us per call; medians over all batches of all rounds. Ranks are pinned to the
cores in turn, with every library. "ahead" is the best time of the others divided by ours, so it is above 1 where ours
is the fastest. It is the median of this ratio over the rounds, so that phases in which the machine is slow cancel. Open
MPI yields by itself if there are more ranks than cores.
"""

import argparse
import json
import os
import sys
import tempfile

import run
from progress import run_rounds

OPERATIONS = "barrier,bcast,reduce,allreduce,gather,scatter,allgather,alltoall,reduce_scatter,scan"
CONTENDERS = [name for name in run.CONTENDERS if name != "canele"]


def parse(text):
    """Returns {(operation, size): us of each batch} of what a job printed."""
    rows = [line.split() for line in text.splitlines() if line.strip()]
    return [{(row[0], int(row[1])): [float(word) for word in row[2:]] for row in rows}]


def make_contender(options, name, compiler, launch, how):
    """Returns None and the reason if it is not available."""
    program, why = run.build(options, name, compiler, launch, "mpi_collectives")
    if program is None:
        return None, why
    extra, environment = how.get(options.driver, ([], {}))

    def command(ranks):
        return launch + ["-n", str(ranks)] + extra + [program, str(options.batches), options.operations, options.size,
                                                      options.cores]

    return run.Contender(name, command, environment, parse), ""


def ahead_by(contenders, ranks, case):
    """Returns the best time of the others divided by ours, by the medians of each round; the median of that. None:
    nothing to compare.
    """
    ratios = []
    for jobs in zip(*(one.samples.get(ranks, []) for one in contenders if one.samples.get(ranks))):
        medians = [run.quantile(job[case], 0.5) for job in jobs if case in job]
        if len(medians) == len(jobs) and len(jobs) > 1:
            ratios.append(min(medians[1:]) / medians[0])
    return run.quantile(ratios, 0.5) if ratios and contenders[0].samples.get(ranks) else None


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
            figures = {name: [run.quantile(all_of, q) for q in (0.5, 0.1, 0.9)] for name, all_of in times.items()}
            rows.append({"ranks": ranks, "operation": operation, "size": size, "us": figures,
                         "ahead": ahead_by(contenders, ranks, (operation, size))})
    return rows


def print_report(options, contenders, rows):
    """Prints a table and how many points are ahead, or JSON."""
    if options.json:
        about = {key: getattr(options, key) for key in ("driver", "rounds", "batches")}
        print(json.dumps({**about, "rows": rows}, indent=2))
        return
    print(f"collectives over {options.driver}, us per call: median (p10 to p90)")
    names = "".join(f"{one.name:>28}" for one in contenders)
    print(f"{'ranks':>5} {'operation':<14} {'bytes':>8}{names}   ahead")
    for row in rows:
        cells = ["{:.2f} ({:.2f} to {:.2f})".format(*row["us"][one.name]) if one.name in row["us"] else "-"
                 for one in contenders]
        ahead = f"{row['ahead']:8.2f}" if row["ahead"] else ""
        print(f"{row['ranks']:>5} {row['operation']:<14} {row['size']:>8}" + "".join(f"{c:>28}" for c in cells) + ahead)
    compared = [row["ahead"] for row in rows if row["ahead"]]
    if compared:
        print(f"ahead at {sum(ratio >= 1 for ratio in compared)} of {len(compared)} points")


def numbers(text):
    """Parses whole numbers, comma-separated."""
    return [int(word) for word in text.split(",")]


def parse_arguments():
    """Parses the command line. Ends with a message if it is malformed."""
    parser = argparse.ArgumentParser(description="Blocking collectives beside other MPIs, interleaved.")
    parser.add_argument("--driver", choices=["shm", "tcp"], default="shm")
    parser.add_argument("--operations", default=OPERATIONS, help="default: all")
    parser.add_argument("--size", default="8,1024,65536,1048576,4194304", help="bytes of a part (default %(default)s)")
    parser.add_argument("--ranks", type=numbers, default=[2, 4, 8], dest="cases", help="default 2,4,8")
    parser.add_argument("--rounds", type=int, default=3, help="how often each runs (default %(default)s)")
    parser.add_argument("--batches", type=int, default=5, help="batches per run (default %(default)s)")
    parser.add_argument("--contenders", default=",".join(CONTENDERS), help="default: %(default)s")
    parser.add_argument("--prefix", help="where Canelé is installed (default: build/release, then PATH)")
    parser.add_argument("--time-limit", type=float, default=120, help="seconds for one run (default %(default)s)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.cores = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    if unknown := set(options.operations.split(",")) - set(OPERATIONS.split(",")):
        parser.error(f"unknown operation {', '.join(sorted(unknown))}; known: {OPERATIONS}")
    if unknown := set(options.contenders.split(",")) - set(CONTENDERS):
        parser.error(f"unknown contender {', '.join(sorted(unknown))}; known: {', '.join(CONTENDERS)}")
    if any(size < 8 or size % 8 != 0 for size in numbers(options.size)):
        parser.error("sizes are multiples of 8")
    if options.rounds < 1 or options.batches < 1 or min(options.cases) < 1:
        parser.error("at least one round, batch and rank are needed")
    return options


def main():
    """Builds, runs, reports. Returns exit code 1 if a wanted contender failed in its run."""
    options = parse_arguments()
    libraries = run.find_libraries(options)
    with tempfile.TemporaryDirectory(prefix="canele-peers-") as options.work:
        contenders = run.gather((name, make_contender(options, name, *libraries[name]))
                                for name in options.contenders.split(","))
        if not contenders:
            print("collectives.py: no contender is left to compare", file=sys.stderr)
            return 1
        failures = run_rounds(options, contenders)
        print_report(options, contenders, summarise(options, contenders))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

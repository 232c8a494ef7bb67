#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Non-blocking collectives beside computation: Canelé beside other MPIs, interleaved.

Runs one job at a time. All contenders run one source, ../nbc, and compute on the same cores. Each is compared with
itself alone there, so a library that is slow alone may look good. Its own times are therefore printed next to its
ratios.

For each case (operation, time wanted), the contenders take turns: A B C A B C ... Figures are medians over the rounds,
with the least and the largest r_overhead. canele-perf nbc --help explains the figures, and its other options are passed
on. By default the two ranks compute on core 0, and progress threads, if there are any, have core 1.
"""

import argparse
import itertools
import json
import sys

import command_line
import contenders as peers
from figures import quantile
from progress import run_rounds

OPERATIONS = "bcast,reduce,allreduce,allgather,alltoall"
# Contender: (library, configuration, environment).
CONTENDERS = {
    "canele": ("canele", "dedicated", {}),
    "canele-none": ("canele", "none", {}),
    "canele-mpi": ("canele-mpi", "dedicated", {"CANELE_WORKER": "bound"}),
    "openmpi": ("openmpi", "none", {}),
    "mpich": ("mpich", "none", {}),
    "mpich-async": ("mpich", "dedicated", {"MPICH_ASYNC_PROGRESS": "1"}),
}


def make_contender(options, name):
    """Returns one of CONTENDERS; None and the reason if it is not available."""
    mpi, configuration, environment = CONTENDERS[name]
    if mpi == "canele":
        program = peers.find_tool(options.prefix, "canele-perf")
        if program is None:
            return None, "canele-perf not found; build first, or give --prefix"
        before = [program, "nbc", "--driver", options.driver]
    else:
        library = peers.find_libraries(options)[mpi]
        program, why = peers.build(options, library, "mpi_nbc")
        if program is None:
            return None, why
        extra, more = library.how[options.driver]
        yields = peers.OPENMPI_YIELD if library.launch == peers.OPENMPI_LAUNCH else []
        before = [*library.launch, *yields, "-n", str(options.ranks), *extra, program, "nbc"]
        environment = {**environment, **more}
        if mpi == "canele-mpi":
            environment["CANELE_WORKER_CORE"] = str(options.worker_core)

    def command(case):
        words = [word for option, value in case for word in (f"--{option}", value)]
        return [*before, "--configuration", configuration, "--ranks", str(options.ranks), "--cores", options.cores,
                "--worker-core", str(options.worker_core), *words, *options.more, "--json"]

    def parse(text):
        rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        return [{"contender": name, **row} for row in rows]

    return peers.Contender(name, command, environment, parse), ""


def summarise(options, contenders):
    """Returns a row for each case and contender: medians over the rounds."""
    rows = []
    for case in options.cases:
        for contender in contenders:
            points = [row["figures"] for row in contender.samples.get(case, [])]
            if not points:
                continue
            names = [name for name, value in points[0].items() if not isinstance(value, str)]
            figures = {name: quantile([one[name] for one in points], 0.5) for name in names}
            ratios = [one["r_overhead"] for one in points]
            rows.append({**dict(case), "contender": contender.name, "figures": figures,
                         "r_overhead": [min(ratios), max(ratios)], "points": len(points)})
    return rows


def print_report(result):
    """Prints a table."""
    print(f"nbc over {result['driver']}, {result['ranks']} ranks on core {result['cores']}, progress threads on core "
          f"{result['worker_core']}; times in us")
    columns = ["comm", "comp", "total", "r_overhead_bare", "r_comm", "r_comp_slowdown", "r_mpi_impact"]
    print(f"{'operation':<10}{'wanted':>8}  {'contender':<12}{'r_overhead':>11} {'(least to largest)':<20}" +
          "".join(f"{name:>16}" for name in columns))
    for row in result["rows"]:
        least, largest = row["r_overhead"]
        print(f"{row['operation']:<10}{row['comm']:>8}  {row['contender']:<12}{row['figures']['r_overhead']:>11.3f} " +
              f"({least:.3f} to {largest:.3f})".ljust(20) +
              "".join(f"{row['figures'].get(name, float('nan')):>16.{1 if name in columns[:3] else 3}f}"
                      for name in columns))


def parse_arguments():
    """Parses the command line. Unknown options go to the programs."""
    parser = argparse.ArgumentParser(description="Non-blocking collectives beside other MPIs, interleaved.",
                                     epilog="Other options go to the programs: see canele-perf nbc --help.")
    parser.add_argument("--driver", choices=["shm", "tcp"], default="shm")
    parser.add_argument("--operations", default=OPERATIONS, help="default: %(default)s")
    parser.add_argument("--comm", default="1ms,4ms,16ms", help="durations of the collective (default %(default)s)")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--cores", default="0", help="cores that compute (default %(default)s)")
    parser.add_argument("--worker-core", type=int, default=1, help="core of progress threads (default %(default)s)")
    command_line.add_common(parser, list(CONTENDERS), rounds=3)
    options, options.more = parser.parse_known_args()
    if options.rounds < 1 or options.ranks < 2:
        parser.error("at least one round and two ranks are needed")
    cases = itertools.product(options.operations.split(","), options.comm.split(","))
    options.cases = [(("operation", operation), ("comm", comm)) for operation, comm in cases]
    return options


def measure(options):
    """Builds, runs, reports. Returns exit code 1 if a wanted contender failed in its run."""
    contenders = peers.make_wanted(options, make_contender)
    failures = run_rounds(options, contenders)
    about = {key: getattr(options, key) for key in ("driver", "ranks", "cores", "worker_core", "rounds")}
    command_line.deliver(options, "nbc", {**about, "rows": summarise(options, contenders)}, print_report)
    return 1 if failures else 0


def main():
    """Measures, with programs in the directory of --work or in a temporary one."""
    options = parse_arguments()
    with command_line.work_directory(options):
        return measure(options)


if __name__ == "__main__":
    sys.exit(command_line.run(main))

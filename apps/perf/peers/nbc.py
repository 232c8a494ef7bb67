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
import os
import sys
import tempfile

import run
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
SOURCES = ["options", "layout", "metrics", "operation", "work", "bare", "solo", "order", "overlap", "cresta", "run"]


def build(options, library):
    """Builds ../nbc on that MPI, once. Returns None and the reason if it cannot be built."""
    perf = run.HERE.parent
    files = [run.HERE / "mpi_nbc.cpp", perf / "progress" / "report.cpp",
             *(perf / "nbc" / f"{name}.cpp" for name in SOURCES)]
    return run.build_cpp(options, f"mpi_nbc.{library}", run.cpp_compilers(options)[library], files)


def launch_of(options, library):
    """Returns the command before the program, and the environment."""
    count = ["-n", str(options.ranks)]
    if library == "canele-mpi":
        return [run.find_tool(options.prefix, "canele-run"), *count], {"CANELE_DRIVERS": options.driver,
                                                                       "CANELE_WORKER_CORE": str(options.worker_core)}
    extra, environment = {"openmpi": run.OPENMPI_DRIVER, "mpich": run.MPICH_DRIVER}[library][options.driver]
    if library == "openmpi":
        return [*run.OPENMPI_LAUNCH, *run.OPENMPI_YIELD, *count, *extra], environment
    return ["mpiexec.mpich", *count, *extra], environment


def make_contender(options, name):
    """Returns one of CONTENDERS; None and the reason if it is not available."""
    library, configuration, environment = CONTENDERS[name]
    if library == "canele":
        program = run.find_tool(options.prefix, "canele-perf")
        if program is None:
            return None, "canele-perf not found; build first, or give --prefix"
        before = [program, "nbc", "--driver", options.driver]
    else:
        program, why = build(options, library)
        if program is None:
            return None, why
        launch, more = launch_of(options, library)
        before, environment = [*launch, program, "nbc"], {**environment, **more}

    def command(case):
        words = [word for option, value in case for word in (f"--{option}", value)]
        return [*before, "--configuration", configuration, "--ranks", str(options.ranks), "--cores", options.cores,
                "--worker-core", str(options.worker_core), *words, *options.more, "--json"]

    def parse(text):
        rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        return [{"contender": name, **row} for row in rows]

    return run.Contender(name, command, environment, parse), ""


def summarise(options, contenders):
    """Returns a row for each case and contender: medians over the rounds."""
    rows = []
    for case in options.cases:
        for contender in contenders:
            points = [row["figures"] for row in contender.samples.get(case, [])]
            if not points:
                continue
            names = [name for name, value in points[0].items() if not isinstance(value, str)]
            figures = {name: run.quantile([one[name] for one in points], 0.5) for name in names}
            ratios = [one["r_overhead"] for one in points]
            rows.append({**dict(case), "contender": contender.name, "figures": figures,
                         "r_overhead": [min(ratios), max(ratios)], "points": len(points)})
    return rows


def print_report(options, rows):
    """Prints a table, or JSON."""
    if options.json:
        about = {key: getattr(options, key) for key in ("driver", "ranks", "cores", "worker_core", "rounds")}
        print(json.dumps({**about, "rows": rows}, indent=2))
        return
    print(f"nbc over {options.driver}, {options.ranks} ranks on core {options.cores}, progress threads on core "
          f"{options.worker_core}; times in us")
    columns = ["comm", "comp", "total", "r_overhead_bare", "r_comm", "r_comp_slowdown", "r_mpi_impact"]
    print(f"{'operation':<10}{'wanted':>8}  {'contender':<12}{'r_overhead':>11} {'(least to largest)':<20}" +
          "".join(f"{name:>16}" for name in columns))
    for row in rows:
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
    parser.add_argument("--rounds", type=int, default=3, help="how often each contender runs (default %(default)s)")
    parser.add_argument("--contenders", default=",".join(CONTENDERS), help="default: %(default)s")
    parser.add_argument("--prefix", help="where Canelé is installed (default: build/release, then PATH)")
    parser.add_argument("--work", help="directory for the programs, kept (default: a temporary one)")
    parser.add_argument("--time-limit", type=float, default=120, help="seconds for one run (default %(default)s)")
    parser.add_argument("--json", action="store_true")
    options, options.more = parser.parse_known_args()
    options.contenders = options.contenders.split(",")
    unknown = set(options.contenders) - set(CONTENDERS)
    if unknown:
        parser.error(f"unknown contender {', '.join(sorted(unknown))}; known: {', '.join(CONTENDERS)}")
    if options.rounds < 1 or options.ranks < 2:
        parser.error("at least one round and two ranks are needed")
    cases = itertools.product(options.operations.split(","), options.comm.split(","))
    options.cases = [(("operation", operation), ("comm", comm)) for operation, comm in cases]
    return options


def measure(options):
    """Builds, runs, reports. Returns exit code 1 if a wanted contender failed in its run."""
    contenders = run.gather((name, make_contender(options, name)) for name in options.contenders)
    if not contenders:
        print("nbc.py: no contender is left to compare", file=sys.stderr)
        return 1
    failures = run_rounds(options, contenders)
    print_report(options, summarise(options, contenders))
    return 1 if failures else 0


def main():
    """Measures, in a temporary directory unless --work names one."""
    options = parse_arguments()
    if options.work:
        os.makedirs(options.work, exist_ok=True)
        return measure(options)
    with tempfile.TemporaryDirectory(prefix="canele-peers-") as options.work:
        return measure(options)


if __name__ == "__main__":
    sys.exit(main())

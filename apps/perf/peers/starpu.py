#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""StarPU's Cholesky (its example mpi_cholesky), or its communication benchmarks (--bench), on Canelé and on Open MPI,
interleaved.

Both use one version of StarPU. Runs one job at a time. Each process has as many StarPU workers as it has cores, at
least one, and no thread is bound. With more threads than cores, and StarPU's communication thread in addition, binding
by StarPU would put all processes on one core.

The two StarPUs are what `tests/starpu/build-starpu.sh --canele PREFIX` and `... --openmpi` leave. Open MPI runs with
mpi_yield_when_idle, its best setting here; with --bench both with it and without. Figures: GFlop/s, median, least and
most over the rounds. The last columns are the ratio to Open MPI, and to one process that has all cores.
"""

import argparse
import itertools
import json
import os
import pathlib
import re
import sys

import run
import starpu_bench

ROOT = run.HERE.parents[2]
PROGRAM = "mpi/examples/matrix_decomposition/mpi_cholesky"
OPENMPI_LINKS = {"shm": "self,vader", "tcp": "self,tcp"}


def make_contender(options, name):
    """Returns one of canele, openmpi, with --bench also openmpi-yields; None and the reason."""
    starpu = pathlib.Path(options.starpu[name]).resolve()
    program = starpu / PROGRAM
    if not options.bench and not program.exists():
        return None, f"no {program}: tests/starpu/build-starpu.sh builds it"
    benchmarks, why = starpu_bench.prepare(starpu) if options.bench else ({}, "")
    if why:
        return None, why
    if name == "canele":
        launcher = run.find_tool(options.prefix, "canele-run")
        if launcher is None:
            return None, "canele-run not found; build first, or give --prefix"
        start, environment = [launcher], {"CANELE_DRIVERS": options.driver}
    else:
        yields = [] if options.bench and name == "openmpi" else run.OPENMPI_YIELD
        start = [*run.OPENMPI_LAUNCH, *yields, "--mca", "pml", "ob1", "--mca", "btl", OPENMPI_LINKS[options.driver]]
        environment = {}
    if options.bench:  # with StarPU 1.4 and NOBIND its nmad part fails an assertion: it asks for the place of PU -1
        start = [*(word for word in start if word not in ("--bind-to", "none")), "--bind-to", "core"]
    else:
        environment |= {"STARPU_WORKERS_NOBIND": "1", "STARPU_MPI_NOBIND": "1"}
    environment |= {"STARPU_HOME": str(starpu / "home"), "OPENBLAS_NUM_THREADS": "1", "STARPU_SILENT": "1"}

    def command(case):
        if options.bench:
            variables = [f"{name}={value}" for name, value in environment.items()]
            return ["env", "STARPU_NCPU=1", *variables, *start, "-n", "2", *map(str, benchmarks[case])]
        processes, size = case
        workers = max(1, len(os.sched_getaffinity(0)) // processes)
        return ["env", f"STARPU_NCPU={workers}", *start, "-n", str(processes), str(program), "-size", str(size),
                "-nblocks", str(size // options.block)]

    return run.Contender(name, command, environment, speed), ""


def speed(text):
    """Returns the GFlop/s that the program printed, as the one sample of a run."""
    found = re.search(r"Synthetic GFlops : *([0-9.]+)", text)
    if found is None:
        raise RuntimeError(f"no GFlop/s in what mpi_cholesky printed:\n{text}")
    return [float(found[1])]


def summarise(options, contenders):
    """Returns rows by processes and size: the figures of each contender, and the ratios of the first one's median."""
    def median(contender, case):
        samples = contender.samples.get(case)
        return run.quantile(samples, 0.5) if samples else None

    rows = []
    for case in options.cases:
        medians = [median(contender, case) for contender in contenders]
        alone = median(contenders[0], (1, case[1]))
        ours, others = medians[0], [value for value in medians[1:] if value]
        rows.append({"processes": case[0], "size": case[1],
                     "gflops": {contender.name: [run.quantile(contender.samples[case], q) for q in (0.5, 0, 1)]
                                for contender in contenders if contender.samples.get(case)},
                     "ahead": ours / max(others) if ours and others else None,
                     "of_one": ours / alone if ours and alone else None})
    return rows


def print_report(options, rows):
    """Prints a table, or JSON."""
    if options.json:
        about = {key: getattr(options, key) for key in ("driver", "rounds", "block")}
        print(json.dumps({**about, "rows": rows}, indent=2))
        return
    print(f"mpi_cholesky over {options.driver}, blocks of {options.block}: GFlop/s")
    print(f"{'processes':>9} {'size':>6}" + "".join(f"{name:>26}" for name in options.starpu)
          + f"{'to Open MPI':>13}{'to one process':>16}")
    for row in rows:
        cells = ["{:.2f} ({:.2f} to {:.2f})".format(*row["gflops"][name]) if name in row["gflops"] else "-"
                 for name in options.starpu]
        ratios = [f"{row[key]:.2f}" if row[key] else "" for key in ("ahead", "of_one")]
        print(f"{row['processes']:>9} {row['size']:>6}" + "".join(f"{cell:>26}" for cell in cells)
              + f"{ratios[0]:>13}{ratios[1]:>16}")


def numbers(text):
    """Parses a list of positive numbers, such as "1,2,4"."""
    if not re.fullmatch(r"[1-9][0-9]*(,[1-9][0-9]*)*", text):
        raise argparse.ArgumentTypeError(f"wants numbers such as 1,2,4; not '{text}'")
    return [int(word) for word in text.split(",")]


def parse_arguments():
    """Parses the command line."""
    parser = argparse.ArgumentParser(description="StarPU's Cholesky on Canelé and on Open MPI, interleaved.")
    parser.add_argument("--canele", default=str(ROOT / "build/starpu/canele"), help="StarPU's build tree on Canelé")
    parser.add_argument("--openmpi", default=str(ROOT / "build/starpu/openmpi"), help="the same on Open MPI")
    parser.add_argument("--prefix", help="where Canelé is installed (default: build/release, then PATH)")
    parser.add_argument("--driver", choices=["shm", "tcp"], default="shm")
    parser.add_argument("--bench", nargs="?", const=",".join(starpu_bench.PROGRAMS), help="StarPU 1.4's benchmarks "
                        "instead: sendrecv_bench, burst (default both)")
    parser.add_argument("--processes", type=numbers, default=[1, 2, 4], help="default 1,2,4")
    parser.add_argument("--size", type=numbers, default=[960, 1920, 3840], help="orders (default 960,1920,3840)")
    parser.add_argument("--block", type=int, default=320, help="order of a tile (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each runs (default %(default)s)")
    parser.add_argument("--time-limit", type=float, default=120, help="seconds for one run (default %(default)s)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.rounds < 1 or options.block < 1:
        parser.error("at least one round, and blocks of at least 1, are needed")
    if options.bench and (unknown := set(options.bench.split(",")) - set(starpu_bench.PROGRAMS)):
        parser.error(f"unknown benchmark {', '.join(sorted(unknown))}; known: {', '.join(starpu_bench.PROGRAMS)}")
    if uneven := [size for size in options.size if size % options.block != 0]:
        parser.error(f"{uneven[0]} is no multiple of blocks of {options.block}")
    options.starpu = {"canele": options.canele, "openmpi": options.openmpi}
    if options.bench:
        options.starpu["openmpi-yields"] = options.openmpi
    options.cases = list(itertools.product(options.processes, options.size))
    return options


def main():
    """Runs, reports. Returns exit code 1 if a run failed, or no contender is available."""
    options = parse_arguments()
    contenders = run.gather((name, make_contender(options, name)) for name in options.starpu)
    if options.bench and contenders:
        return starpu_bench.bench(options, contenders)
    failures = 0
    for number in range(options.rounds if contenders else 0):
        for case, contender in itertools.product(options.cases, contenders):
            try:
                contender.run(case, options.time_limit)
            except RuntimeError as problem:
                print(problem, file=sys.stderr)
                failures += 1
        print(f"round {number + 1} of {options.rounds} done", file=sys.stderr)
    if not contenders:
        return 1
    print_report(options, summarise(options, contenders))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

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
import os
import pathlib
import re
import sys

import command_line
import contenders as peers
import starpu_bench
from figures import quantile

PROGRAM = "mpi/examples/matrix_decomposition/mpi_cholesky"
OPENMPI_LINKS = {"shm": "self,vader", "tcp": "self,tcp"}


def make_contender(options, name):
    """Returns one of canele, openmpi, with --bench also openmpi-yields; None and the reason."""
    starpu = pathlib.Path(options.starpu[name]).resolve()
    program = starpu / PROGRAM
    if not options.bench and not program.exists():
        return None, f"no {program}: tests/starpu/build-starpu.sh builds it"
    kept = name.removesuffix("-yields")
    benchmarks, why = starpu_bench.prepare(options, kept, starpu) if options.bench else ({}, "")
    if why:
        return None, why
    if name == "canele":
        launcher = peers.find_tool(options.prefix, "canele-run")
        if launcher is None:
            return None, "canele-run not found; build first, or give --prefix"
        start, environment = [launcher], {"CANELE_DRIVERS": options.driver}
    else:
        yields = [] if options.bench and name == "openmpi" else peers.OPENMPI_YIELD
        start = [*peers.OPENMPI_LAUNCH, *yields, "--mca", "pml", "ob1", "--mca", "btl", OPENMPI_LINKS[options.driver]]
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

    return peers.Contender(name, command, environment, speed), ""


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
        return quantile(samples, 0.5) if samples else None

    rows = []
    for case in options.cases:
        medians = [median(contender, case) for contender in contenders]
        alone = median(contenders[0], (1, case[1]))
        ours, others = medians[0], [value for value in medians[1:] if value]
        rows.append({"processes": case[0], "size": case[1],
                     "gflops": {contender.name: [quantile(contender.samples[case], q) for q in (0.5, 0, 1)]
                                for contender in contenders if contender.samples.get(case)},
                     "ahead": ours / max(others) if ours and others else None,
                     "of_one": ours / alone if ours and alone else None})
    return rows


def print_report(result):
    """Prints a table."""
    names = result["contenders"]
    print(f"mpi_cholesky over {result['driver']}, blocks of {result['block']}: GFlop/s")
    print(f"{'processes':>9} {'size':>6}" + "".join(f"{name:>26}" for name in names)
          + f"{'to Open MPI':>13}{'to one process':>16}")
    for row in result["rows"]:
        cells = ["{:.2f} ({:.2f} to {:.2f})".format(*row["gflops"][name]) if name in row["gflops"] else "-"
                 for name in names]
        ratios = [f"{row[key]:.2f}" if row[key] else "" for key in ("ahead", "of_one")]
        print(f"{row['processes']:>9} {row['size']:>6}" + "".join(f"{cell:>26}" for cell in cells)
              + f"{ratios[0]:>13}{ratios[1]:>16}")


def parse_arguments():
    """Parses the command line."""
    parser = argparse.ArgumentParser(description="StarPU's Cholesky on Canelé and on Open MPI, interleaved.")
    parser.add_argument("--canele", default=str(starpu_bench.TREES["canele"]), help="StarPU's build tree on Canelé")
    parser.add_argument("--openmpi", default=str(starpu_bench.TREES["openmpi"]), help="the same on Open MPI")
    command_line.add_places(parser)
    parser.add_argument("--driver", choices=["shm", "tcp"], default="shm")
    parser.add_argument("--bench", nargs="?", const=list(starpu_bench.PROGRAMS),
                        type=command_line.names("benchmark", starpu_bench.PROGRAMS), help="StarPU 1.4's benchmarks "
                        "instead: sendrecv_bench, burst (default both)")
    parser.add_argument("--processes", type=command_line.whole_numbers("processes", 1), default=[1, 2, 4],
                        help="default 1,2,4")
    parser.add_argument("--size", type=command_line.whole_numbers("sizes", 1), default=[960, 1920, 3840],
                        help="orders (default 960,1920,3840)")
    parser.add_argument("--block", type=int, default=320, help="order of a tile (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each runs (default %(default)s)")
    parser.add_argument("--time-limit", type=float, default=120, help="seconds for one run (default %(default)s)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.rounds < 1 or options.block < 1:
        parser.error("at least one round, and blocks of at least 1, are needed")
    if uneven := [size for size in options.size if size % options.block != 0]:
        parser.error(f"{uneven[0]} is no multiple of blocks of {options.block}")
    options.starpu = {"canele": options.canele, "openmpi": options.openmpi}
    if options.bench:
        options.starpu["openmpi-yields"] = options.openmpi
    options.cases = list(itertools.product(options.processes, options.size))
    return options


def measure(options):
    """Runs, reports. Returns exit code 1 if a run failed, or no contender is available."""
    contenders = peers.gather((name, make_contender(options, name)) for name in options.starpu)
    if not contenders:
        return 1
    if options.bench:
        return starpu_bench.bench(options, contenders)
    failures = 0
    for number in range(options.rounds):
        for case, contender in itertools.product(options.cases, contenders):
            try:
                contender.run(case, options.time_limit)
            except RuntimeError as problem:
                print(problem, file=sys.stderr)
                failures += 1
        print(f"round {number + 1} of {options.rounds} done", file=sys.stderr)
    about = {key: getattr(options, key) for key in ("driver", "rounds", "block")}
    result = {**about, "contenders": list(options.starpu), "rows": summarise(options, contenders)}
    command_line.deliver(options, "starpu", result, print_report)
    return 1 if failures else 0


def main():
    """Measures, with programs in the directory of --work or in a temporary one."""
    options = parse_arguments()
    with command_line.work_directory(options):
        return measure(options)


if __name__ == "__main__":
    sys.exit(command_line.run(main))

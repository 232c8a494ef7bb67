#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Canelé beside other MPIs: the same measurement, interleaved, on the same two cores.

Who: people, and the performance pages. Threads: one; one job at a time.
Surprise: contenders run A B C A B C ..., a short run each, so that slow drifts of the machine hit all of them.

Contenders: canele (canele-perf), canele-mpi (canele-mpicc), openmpi (mpicc.openmpi), openmpi-ucx (the same on UCX),
mpich (mpicc.mpich); those that are not installed are named and left out. Figures: median, 10th and 90th percentile over
all batches of all rounds; the ratio is to the first contender's median.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
UNITS = {"latency": "us", "bandwidth": "MB/s", "rate": "messages/s", "match": "ns per message", "broadcast": "us"}
DEFAULT_SIZES = {"latency": "8,1024,65536", "bandwidth": "65536,1048576", "rate": "8", "match": "16,256,4096,16384",
                 "broadcast": "8,65536,1048576,4194304"}
ORDERS = ["in-order", "reverse", "shuffled"]
SEED = 1  # of shuffles

CONTENDERS = ["canele", "canele-mpi", "openmpi", "openmpi-ucx", "mpich"]

# How each MPI is told which way the bytes go: launcher options, environment.
OPENMPI_DRIVER = {
    "shm": (["--mca", "pml", "ob1", "--mca", "btl", "self,vader"], {}),
    "tcp": (["--mca", "pml", "ob1", "--mca", "btl", "self,tcp"], {}),
}
MPICH_DRIVER = {  # Debian's is ch4:ucx
    "shm": ([], {}),
    "tcp": ([], {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self"}),
}
UCX = ["--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"]
UCX_DRIVER = {  # Open MPI on UCX, which it takes by itself for InfiniBand only
    "shm": (UCX, {"UCX_TLS": "shm,self"}),
    "tcp": (UCX, {"UCX_TLS": "tcp,self"}),
    None: (UCX, {}),
}
# Above as many ranks as cores Open MPI yields by itself, which is then its best setting.
OPENMPI_LAUNCH = ["mpirun.openmpi", "--bind-to", "none", "--oversubscribe", "--allow-run-as-root"]


class Contender:
    """One library: how to start one run of it, and the samples so far, by case.

    A case is (what, number): "bytes" and a size; match: a direction and the number of receives; broadcast: the number
    of destinations, as text, and a size."""

    def __init__(self, name, command, environment, parse):
        self.name = name
        self.command = command  # function (case) -> argument list
        self.environment = environment
        self.parse = parse
        self.samples = {}

    def run(self, case, time_limit):
        """One job; keeps its samples. Raises RuntimeError with what the job said if it fails."""
        command = self.command(case)
        try:
            done = subprocess.run(command, env={**os.environ, **self.environment}, timeout=time_limit,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        except subprocess.TimeoutExpired as expired:
            raise RuntimeError(f"{self.name}: no end after {time_limit} s: {' '.join(command)}") from expired
        if done.returncode != 0:
            raise RuntimeError(f"{self.name}: exit code {done.returncode} of: {' '.join(command)}\n{done.stderr}")
        self.samples.setdefault(case, []).extend(self.parse(done.stdout))


def iterations_for(benchmark, size):
    """Messages per batch; the rule of canele-perf (options.cpp), so that batches are alike."""
    if benchmark == "match":
        return max(4096, size)
    window = {"latency": 1, "bandwidth": 16, "rate": 64}[benchmark]
    rounds = min((32 << 20) // (max(1, size) * window), 2000)
    return max(1, min(rounds, max(1, 2000 // window))) * window


def canele_broadcast(options, way):
    """canele-perf broadcast: by `way`, auto (what its model chooses) or sends (one to each); None and why not."""
    program = find_tool(options.prefix, "canele-perf")
    if program is None:
        return None, "canele-perf not found; build first, or give --prefix"

    def command(case):
        destinations, size = case
        return [program, "broadcast", "--json", "--driver", options.driver, "--destinations", destinations, "--size",
                str(size), "--shape", way, "--batches", str(options.batches)]

    return Contender(f"canele-{way}", command, {}, lambda text: json.loads(text)["samples"][way]), ""


def mpi_broadcast(options, name, compiler, launch, how, way):
    """An MPI's MPI_Bcast (bcast), or an MPI_Isend to each (isend); None and why not."""
    program, why = build(options, name, compiler, launch, "mpi_broadcast")
    if program is None:
        return None, why
    extra, environment = how.get(options.driver, ([], {}))

    def command(case):
        destinations, size = case
        return launch + ["-n", str(int(destinations) + 1)] + extra + [program, way, str(size), str(options.batches)]

    return Contender(f"{name}-{way}", command, environment, lambda text: [float(word) for word in text.split()]), ""


def build(options, name, compiler, launch, source):
    """The program, built once per contender; None and the reason if it cannot be."""
    if compiler is None or shutil.which(launch[0]) is None:
        return None, "not installed"
    program = pathlib.Path(options.work) / f"{source}.{name}"
    if program.exists():
        return str(program), ""
    built = subprocess.run([compiler, "-std=c11", "-O2", str(HERE / f"{source}.c"), "-o", str(program)],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return (str(program), "") if built.returncode == 0 else (None, f"{compiler} failed:\n{built.stdout}")


def canele(options):
    """Our native API, by canele-perf; None and the reason if it is not there."""
    program = find_tool(options.prefix, "canele-perf")
    if program is None:
        return None, "canele-perf not found; build first, or give --prefix"

    def command(case):
        what, number = case
        words = [program, options.benchmark, "--json", "--batches", str(options.batches), "--iterations",
                 str(iterations_for(options.benchmark, number)), "--cores", ",".join(map(str, options.cores))]
        if options.benchmark == "match":
            words += ["--direction", what, "--receives", str(number), "--order", options.order, "--seed", str(SEED),
                      "--no-counts"]
        else:
            words += ["--no-floor", "--size", str(number)]
        return words + (["--driver", options.driver] if options.driver else [])

    return Contender("canele", command, {}, lambda text: json.loads(text)["results"][0]["samples"]), ""


def mpi(options, name, compiler, launch, how):
    """An MPI by its compiler wrapper and launcher; None and the reason if it is not there."""
    program, why = build(options, name, compiler, launch, "mpi_match" if options.benchmark == "match" else "mpi_perf")
    if program is None:
        return None, why
    extra, environment = how.get(options.driver or None, ([], {}))

    def command(case):
        what, number = case
        asked = [what, options.order, str(SEED)] if options.benchmark == "match" else [options.benchmark]
        return launch + ["-n", "2"] + extra + [program, *asked, str(number), str(options.batches),
                                 str(iterations_for(options.benchmark, number))] + [str(c) for c in options.cores]

    return Contender(name, command, environment, lambda text: [float(word) for word in text.split()]), ""


def find_tool(prefix, name):
    """A program of ours: in --prefix, else in the newest build, else in PATH."""
    places = [pathlib.Path(prefix) / "bin"] if prefix else []
    places += [HERE.parents[2] / "build" / "release" / "bin"]
    for place in places:
        if os.access(place / name, os.X_OK):
            return str(place / name)
    return shutil.which(name)


def find_libraries(options):
    """Of each MPI: compiler, launcher, how it is told which way the bytes go."""
    run, compiler = find_tool(options.prefix, "canele-run"), find_tool(options.prefix, "canele-mpicc")
    ours = {"CANELE_DRIVERS": options.driver} if options.driver else {}
    return {
        "canele-mpi": (compiler, [run or "canele-run"], {options.driver: ([], ours)}),
        "openmpi": (shutil.which("mpicc.openmpi"), OPENMPI_LAUNCH, OPENMPI_DRIVER),
        "openmpi-ucx": (shutil.which("mpicc.openmpi"), OPENMPI_LAUNCH, UCX_DRIVER),
        "mpich": (shutil.which("mpicc.mpich"), ["mpiexec.mpich"], MPICH_DRIVER),
    }


def find_contenders(options):
    """All that are wanted and present; says which are not, and why."""
    libraries = find_libraries(options)

    def makers(name):
        if options.benchmark != "broadcast":
            return [canele(options) if name == "canele" else mpi(options, name, *libraries[name])]
        if name == "canele":
            return [canele_broadcast(options, way) for way in ("auto", "sends")]
        return [mpi_broadcast(options, name, *libraries[name], way) for way in ("bcast", "isend")]

    found = []
    for name in options.contenders:
        for contender, why in makers(name):
            if contender is None:
                print(f"{name}: left out: {why}", file=sys.stderr)
            else:
                found.append(contender)
    return found


def run_rounds(contenders, options):
    """A B C A B C ...; a contender that fails is named and taken out."""
    for number in range(options.rounds):
        for case in options.cases:
            for contender in list(contenders):
                try:
                    contender.run(case, options.time_limit)
                except RuntimeError as problem:
                    print(problem, file=sys.stderr)
                    contenders.remove(contender)
        print(f"round {number + 1} of {options.rounds} done", file=sys.stderr)


def quantile(samples, fraction):
    """Interpolated between neighbours, as canele-perf does."""
    ordered = sorted(samples)
    place = fraction * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def summarise(contenders, options):
    """Rows of the report: one per case and contender."""
    rows = []
    for case in options.cases:
        first = quantile(contenders[0].samples[case], 0.5)
        for contender in contenders:
            samples = contender.samples[case]
            median = quantile(samples, 0.5)
            rows.append({"what": case[0], "size": case[1], "contender": contender.name, "median": median,
                         "p10": quantile(samples, 0.1),
                         "p90": quantile(samples, 0.9), "samples": len(samples), "ratio": median / first})
    return rows


def print_report(rows, options):
    """A table, or JSON."""
    about = {"benchmark": options.benchmark, "unit": UNITS[options.benchmark], "driver": options.driver or "default",
             "cores": options.cores, "rounds": options.rounds, "batches": options.batches}
    if options.benchmark == "match":
        about.update(order=options.order, seed=SEED)
    if options.benchmark == "broadcast":
        about["cores"] = "not pinned"
    if options.json:
        print(json.dumps({**about, "rows": rows}, indent=2))
        return
    print(f"{options.benchmark}, driver {about['driver']}, cores {about['cores']}, {options.rounds} rounds of "
          f"{options.batches} batches{', order ' + options.order if 'order' in about else ''} [{about['unit']}]")
    what = "to ranks" if options.benchmark == "broadcast" else ""
    print(f"{what:>10} {'N' if 'order' in about else 'bytes':>8} {'who':<18} {'median':>14} {'p10':>14} {'p90':>14} "
          f"{'ratio':>7}")
    for row in rows:
        print(f"{row['what']:>10} {row['size']:>8} {row['contender']:<18} {row['median']:>14.3f} {row['p10']:>14.3f} "
              f"{row['p90']:>14.3f} {row['ratio']:>7.2f}")


def parse_arguments():
    """The command line; ends with a message if it makes no sense here."""
    parser = argparse.ArgumentParser(description="Canelé beside other MPIs, interleaved, on the same two cores.")
    parser.add_argument("benchmark", choices=sorted(UNITS))
    parser.add_argument("--driver", choices=["shm", "tcp"], help="way of the bytes (default: each one's own choice)")
    parser.add_argument("--size", help="message sizes in bytes, comma-separated; match: numbers of receives")
    parser.add_argument("--destinations", default="1,3,7", help="broadcast: numbers of ranks (default %(default)s)")
    parser.add_argument("--order", choices=ORDERS, default="shuffled", help="match: (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each contender runs (default %(default)s)")
    parser.add_argument("--batches", type=int, default=15, help="batches per run (default %(default)s)")
    parser.add_argument("--cores", help="two OS indexes, e.g. 0,1 (default: the first two allowed)")
    parser.add_argument("--contenders", default=",".join(CONTENDERS), help="default: %(default)s")
    parser.add_argument("--prefix", help="where Canelé is installed (default: build/release, then PATH)")
    parser.add_argument("--time-limit", type=float, default=120, help="seconds for one run (default %(default)s)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    allowed = sorted(os.sched_getaffinity(0))
    try:
        sizes = [int(word) for word in (options.size or DEFAULT_SIZES[options.benchmark]).split(",")]
        destinations = [int(word) for word in options.destinations.split(",")]
        options.cores = [int(word) for word in options.cores.split(",")] if options.cores else (allowed * 2)[:2]
    except ValueError as problem:
        parser.error(f"sizes, destinations and cores are whole numbers: {problem}")
    if options.benchmark == "broadcast" and (options.driver is None or min(destinations) < 1):
        parser.error("broadcast needs a --driver, and at least one destination")
    least = 1 if options.benchmark == "match" else 0
    if len(options.cores) != 2 or min(sizes) < least or options.rounds < 1 or options.batches < 1:
        parser.error("two cores, sizes of at least 0 (match: 1), and at least one round and batch are needed")
    options.contenders = options.contenders.split(",")
    unknown = set(options.contenders) - set(CONTENDERS)
    if unknown:
        parser.error(f"unknown contender {', '.join(sorted(unknown))}; known: {', '.join(CONTENDERS)}")
    kinds = {"match": ["posted", "unexpected"], "broadcast": list(map(str, destinations))}.get(options.benchmark,
                                                                                               ["bytes"])
    options.cases = [(kind, size) for kind in kinds for size in sizes]
    return options


def main():
    """Builds, runs, reports. Exit code 1 if a wanted contender failed in its run."""
    options = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="canele-peers-") as options.work:
        contenders = find_contenders(options)
        wanted = len(contenders)
        run_rounds(contenders, options)
    if not contenders:
        print("run.py: nobody is left to compare", file=sys.stderr)
        return 1
    print_report(summarise(contenders, options), options)
    return 0 if len(contenders) == wanted else 1


if __name__ == "__main__":
    sys.exit(main())

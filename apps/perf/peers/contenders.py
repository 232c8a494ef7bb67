# SPDX-License-Identifier: BSD-3-Clause
"""Contenders: libraries found on this machine, how a job of theirs is started, and what it printed.

Used by run.py, compare.py, and the other comparisons of this directory. Runs one job at a time. A job of ours gets its
driver by an option. The MPIs get it by launcher options and variables, and a variable goes before a command as `env
NAME=value`.

    Case (what is measured) ─▶ Contender.command ─▶ a job ─▶ Contender.samples_of ─▶ samples
"""

import json
import os
import subprocess
import sys
import typing

# The other comparisons import some of these names from here.
from programs import OPENMPI_LAUNCH, OPENMPI_YIELD, UCX_DRIVER, build, find_libraries, find_tool

CONTENDERS = ["canele", "canele-mpi", "openmpi", "openmpi-ucx", "mpich"]
SEED = 1  # of shuffles

PROGRESS = ("overlap", "threads")  # of ../progress
ATOMICS = ("fetch-and-add", "compare-and-swap")
RATE = "-rate"  # of windows of one-sided operations; without it: the latency of one
ONE_SIDED = [operation + measure for operation in ("put", "get", *ATOMICS) for measure in ("", RATE)]
# Open MPI's component for shared windows is its fastest one there, and does not crash in MPI_Compare_and_swap
# (https://github.com/open-mpi/ompi/issues/11349). Over tcp only one component works without UCX.
OPENMPI_MAPPED, OPENMPI_TCP_RMA = ["--mca", "osc", "sm"], ["--mca", "osc", "pt2pt"]
OPENMPI_UCX_RMA = ["--mca", "osc", "ucx"]  # else it takes a component that copies within the host


class Case(typing.NamedTuple):
    """What one job measures. `what` is bytes, or distinct (tags), or else a direction of match, the destinations of a
    broadcast, a pattern of sandia or of threads, a side of overlap, the target's memory of a one-sided operation.
    """

    benchmark: str
    driver: str | None
    what: str
    size: int  # bytes; or the number of receives, of threads
    batches: int = 15


class Contender:
    """One library: how to start one run of it, and the samples so far, by case."""

    def __init__(self, name, command, environment, parse):
        self.name = name
        self.command = command  # function (case) -> argument list
        self.environment = environment
        self.parse = parse
        self.samples = {}

    def takes(self, _):
        """Tells whether it can do such a case at all."""
        return True

    def samples_of(self, _, text):
        """Returns the samples in what a job printed."""
        return self.parse(text)

    def measure(self, case, time_limit):
        """Runs one job and returns its samples. Raises RuntimeError with the job's message if it fails."""
        return self.samples_of(case, run_job(self.name, self.command(case), self.environment, time_limit))

    def run(self, case, time_limit):
        """Runs one job and keeps its samples."""
        self.samples.setdefault(case, []).extend(self.measure(case, time_limit))


def run_job(name, command, environment, time_limit):
    """Returns what the job printed. Raises RuntimeError if it fails."""
    try:
        done = subprocess.run(command, env={**os.environ, **environment}, timeout=time_limit, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    except subprocess.TimeoutExpired as expired:
        raise RuntimeError(f"{name}: no end after {time_limit} s: {' '.join(command)}") from expired
    if done.returncode != 0:
        raise RuntimeError(f"{name}: exit code {done.returncode} of: {' '.join(command)}\n{done.stderr}")
    return done.stdout


class Canele(Contender):
    """Our native API, by canele-perf. `before`: a launcher and its options. Without it, canele-perf starts its two
    ranks itself.
    """

    floor = ["--no-floor"]

    def __init__(self, options, program, name="canele", before=()):
        super().__init__(name, self.words, {}, None)
        self.options, self.program, self.before = options, program, list(before)
        self.matcher = None  # of match; None: the default one
        self.usual_driver = None  # the driver that it chooses by itself, so that no option is needed

    def takes(self, case):
        return case.benchmark != "sandia"  # these are plain MPI

    def words(self, case):
        """Returns the command of a job."""
        told = case.driver is not None and (case.driver != self.usual_driver or case.benchmark == "broadcast")
        driver = ["--driver", case.driver] if told else []  # without an option, broadcast measures each driver in turn
        if case.benchmark in PROGRESS:
            return [*self.before, self.program, *progress_words(case), *driver]
        start = [*self.before, self.program, subcommand(case), "--json", *driver]
        if case.benchmark == "broadcast":
            return start + ["--destinations", case.what, "--size", str(case.size), "--shape", self.shape(),
                            "--batches", str(case.batches)]
        pinned = [] if self.before else ["--cores", ",".join(map(str, self.options.cores))]
        start += ["--batches", str(case.batches), "--iterations", str(iterations_for(case)), *pinned]
        if case.benchmark in ONE_SIDED:
            return start + [*self.floor, *one_sided_words(case)]
        if case.benchmark == "match":
            chosen = ["--matcher", self.matcher] if self.matcher else []
            return start + ["--direction", case.what, "--receives", str(case.size), "--order", self.options.order,
                            "--seed", str(SEED), "--no-counts", *chosen]
        distinct = ["--tags", "64"] if case.what == "distinct" else []
        return start + [*self.floor, *distinct, "--size", str(case.size)]

    def shape(self):
        """Returns the shape of a broadcast: the choice of its model, or sends (one to each)."""
        return self.name.partition("-")[2] or "auto"

    def samples_of(self, case, text):
        report = json.loads(text)
        if case.benchmark in PROGRESS:
            return [report["figures"][progress_figure(case)]]
        if case.benchmark == "broadcast":
            return report["samples"][self.shape()]
        if case.driver not in (None, report["driver"]):
            raise RuntimeError(f"{self.name}: {report['driver']} carried the messages, not {case.driver}")
        return report["results"][0]["samples"]


class Floor(Canele):
    """The hardware baseline without a library, measured by canele-perf in turns with ours. Only the floor's samples are
    used. No batch of ours that counts has thus run beside it.
    """

    floor = []

    def takes(self, case):
        return case.benchmark in ("latency", "bandwidth") or (case.benchmark, case.driver) == ("rate", "shm") or \
            (case.benchmark in ONE_SIDED and case.what == "mapped")

    def samples_of(self, case, text):
        return json.loads(text)["results"][0]["floor"]["samples"]


class BareEngine(Floor):
    """The bare engine (../bare_engine.hpp), measured like a floor. It only fills requests, matches by tag, copies, and
    marks requests as complete.
    """

    floor = ["--bare-engine"]

    def takes(self, case):
        return case.driver == "shm" and case.benchmark in ("latency", "rate")


class Mpi(Contender):
    """An MPI: programs, by source; launcher. `how` selects a driver and `yields` the behaviour in idle times, both as
    {driver: (launcher options, environment)}.
    """

    def __init__(self, options, name, programs, launch, how, way="bcast"):
        super().__init__(name, self.words, {}, None)
        self.options, self.programs, self.launch, self.how, self.way = options, programs, launch, how, way
        self.yields = {}

    def takes(self, case):
        return mpi_work(case, self.options, self.way)[0] in self.programs

    def words(self, case):
        """Returns the command of a job."""
        extra, variables = self.how.get(case.driver, ([], {}))
        source, ranks, asked = mpi_work(case, self.options, self.way)
        more, others = self.yields.get(case.driver, ([], {}))
        if case.benchmark == "threads" and self.launch == OPENMPI_LAUNCH:
            more = OPENMPI_YIELD  # its better setting with more threads than cores
        if case.benchmark in ONE_SIDED and self.launch == OPENMPI_LAUNCH:
            extra = [*extra, *openmpi_rma(case, self.how is UCX_DRIVER)]
        env = [f"{name}={value}" for name, value in {**variables, **others}.items()]
        start = ["env", *env] if env else []
        return [*start, *self.launch, "-n", str(ranks), *extra, *more, self.programs[source], *asked]

    def samples_of(self, case, text):
        if case.benchmark in PROGRESS:
            return [json.loads(text)["figures"][progress_figure(case)]]
        return [float(word) for word in text.split()]


def mpi_work(case, options, way):
    """Returns (source, number of ranks, arguments) of the plain MPI program that measures a case."""
    if case.benchmark == "broadcast":
        return "mpi_broadcast", int(case.what) + 1, [way, str(case.size), str(case.batches)]
    if case.benchmark in PROGRESS:
        return "mpi_progress", 2, progress_words(case)
    tail = [str(case.size), str(case.batches), str(iterations_for(case)), *map(str, options.cores)]
    if case.benchmark in ONE_SIDED:
        return "mpi_rma", 2, [*split_one_sided(case), case.what, str(window_of(case)), *tail]
    if case.benchmark == "match":
        return "mpi_match", 2, [case.what, options.order, str(SEED), *tail]
    if case.benchmark == "sandia":
        return "mpi_sandia", 2, [case.what, *tail]
    return "mpi_perf", 2, [case.benchmark + ("-distinct" if case.what == "distinct" else ""), *tail]


def progress_words(case):
    """Returns the arguments of a program of ../progress: overlap of a side's computation; threads in a pattern."""
    if case.benchmark == "overlap":
        return ["overlap", "--side", case.what, "--size", str(case.size), "--ratio", "1", "--json"]
    return ["threads", "--pattern", case.what, "--threads", str(case.size), "--json"]


def progress_figure(case):
    """Returns the main figure of such a program."""
    if case.benchmark == "overlap":
        return "serial"
    return "median" if case.what == "1-to-N" else "rate"


def split_one_sided(case):
    """Returns (operation, latency or rate) of a one-sided benchmark."""
    operation = case.benchmark.removesuffix(RATE)
    return operation, "latency" if operation == case.benchmark else "rate"


def subcommand(case):
    """Returns the subcommand of canele-perf that measures a case."""
    if case.benchmark not in ONE_SIDED:
        return case.benchmark
    operation, _ = split_one_sided(case)
    return "atomics" if operation in ATOMICS else operation


def one_sided_words(case):
    """Returns the options of canele-perf put, get or atomics."""
    operation, measure = split_one_sided(case)
    chosen = ["--operation", operation] if operation in ATOMICS else []
    return ["--memory", case.what, "--measure", measure, "--window", str(window_of(case)), *chosen, "--size",
            str(case.size)]


def openmpi_rma(case, on_ucx):
    """Returns the options that select Open MPI's component for one-sided operations, where its own choice fails."""
    if case.what == "mapped":
        return OPENMPI_MAPPED
    if case.driver != "tcp":
        return []
    return OPENMPI_UCX_RMA if on_ucx else OPENMPI_TCP_RMA


def window_of(case):
    """Returns the messages before an answer, or the one-sided operations before a flush, by the rule of canele-perf."""
    if case.benchmark.endswith(RATE):
        return max(4, min(64, (1 << 20) // case.size))
    return {"bandwidth": 16, "rate": 64}.get(case.benchmark, 1)


def iterations_for(case):
    """Returns the messages per batch by the rule of canele-perf (options.cpp), so that batches are equal."""
    if case.benchmark == "match":
        return max(4096, case.size)
    if case.benchmark == "sandia":
        return 20  # windows
    window = window_of(case)
    rounds = min((32 << 20) // (max(1, case.size) * window), 2000)
    return max(1, min(rounds, max(1, 2000 // window))) * window


def brief(why):
    """Returns the first line of a reason, and a compiler's first error."""
    first, *more = why.splitlines()
    return " ".join([first, *[line for line in more if "error" in line][:1]])


def gather(made):
    """Returns the available contenders of (name, (contender or None, why)). Names those that are missing."""
    found = []
    for name, (contender, why) in made:
        if contender is None:
            print(f"{name}: left out: {why}", file=sys.stderr)
        else:
            found.append(contender)
    return found


def make_wanted(options, make):
    """Returns the available ones of options.contenders; `make` makes one. Ends the program if there is none."""
    found = gather((name, make(options, name)) for name in options.contenders)
    if not found:
        sys.exit(f"{os.path.basename(sys.argv[0])}: no contender is left to compare")
    return found


def make_canele(options, name="canele", before=()):
    """Returns ours; None and the reason if it is not available."""
    program = find_tool(options.prefix, "canele-perf")
    if program is None:
        return None, "canele-perf not found; build first, or give --prefix"
    kind = {"floor": Floor, "bare-engine": BareEngine}.get(name, Canele)
    return kind(options, program, name, before), ""


def make_mpi(options, name, sources, way=None):
    """Returns an MPI, with as many of these programs built as possible; None and the reason if none can be built."""
    library = find_libraries(options)[name]
    programs, why = {}, ""
    for source in sources:
        program, problem = build(options, library, source)
        if program is None:
            why = why or problem
        else:
            programs[source] = program
    if not programs:
        return None, why
    if why:
        print(f"{name}: not all can be measured: {brief(why)}", file=sys.stderr)
    return Mpi(options, f"{name}-{way}" if way else name, programs, library.launch, library.how, way or "bcast"), ""

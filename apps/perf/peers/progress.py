#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Progress of Canelé beside that of other MPIs, interleaved: overlap, threads, overload, availability, alltoall,
pairs, silence, passive.

Runs one job at a time. All contenders run one source, ../progress, on their own calls (link_canele.hpp, link_mpi.hpp).
They take the options of `canele-perf <benchmark> --help`, which also explains the figures.

For each case (one size, side, number of threads), the contenders take turns: A B C A B C ... Figures are medians over
the rounds, with the least and the largest. The last column compares the first contender's main figure with the best of
the others. Open MPI yields when idle where that is its better setting: with threads, and with more ranks than cores.
"""

import argparse
import itertools
import json
import sys

import command_line
import contenders as peers
from figures import quantile

# Main figure of each benchmark, and whether more of it is better.
MAIN = {"overlap": ("serial", False), "overload": ("median", False), "availability": ("overhead", False),
        "alltoall": ("median", False), "silence": ("first", False), "passive": ("worst", False),
        "1-to-N": ("median", False), "N-to-N": ("rate", True),
        "latency": ("median", False), "bandwidth": ("median", True), "rate": ("median", True)}  # of pairs
# Options whose values make cases of their own, and their defaults.
CASES = {
    "overlap": {"size": "1M,4M", "side": "sender,receiver,both", "ratio": "1"},
    "threads": {"pattern": "1-to-N,N-to-N", "threads": "1,2,4,16,64,256"},
    "overload": {"size": "1M", "threads": "0,1,4,16"},
    "availability": {"size": "8,4k,64k,1M,4M", "side": "sender,receiver"},
    "alltoall": {"size": "8,64k"},
    "pairs": {"measure": "latency,bandwidth,rate", "size": "8,64k"},
    "silence": {"seconds": "1"},
    "passive": {"operation": "put,get,accumulate", "size": "8"},
}
MANY = ("alltoall", "pairs", "silence")  # with any number of ranks
YIELDING = ("threads", "alltoall", "silence")  # more threads or ranks than cores
CONTENDERS = ["canele", "canele-mpi", "openmpi", "openmpi-ucx", "mpich"]
USUAL = ["canele", "canele-mpi", "openmpi", "mpich"]


def make_contender(options, name):
    """Returns one of CONTENDERS; None and the reason if it is not available."""
    if name == "canele":
        program = peers.find_tool(options.prefix, "canele-perf")
        if program is None:
            return None, "canele-perf not found; build first, or give --prefix"
        before = [program, options.benchmark, "--driver", options.driver]
        if options.benchmark in MANY:
            before += ["--ranks", str(options.ranks)]
        environment = {}
    else:
        library = peers.find_libraries(options)[name]
        program, why = peers.build(options, library, "mpi_progress")
        if program is None:
            return None, why
        extra, environment = library.how[options.driver]
        openmpi = library.launch == peers.OPENMPI_LAUNCH
        yields = peers.OPENMPI_YIELD if openmpi and options.benchmark in YIELDING else []
        before = [*library.launch, *yields, "-n", str(options.ranks), *extra, program, options.benchmark]

    def command(case):
        words = [word for option, value in case for word in (f"--{option}", value)]
        return [*before, *words, *options.more, "--json"]

    return peers.Contender(name, command, environment, lambda text: [json.loads(text)["figures"]]), ""


def run_rounds(options, contenders):
    """Runs A B C A B C ... A contender that fails in a case is named, and not measured in that case again. Returns how
    many have failed.
    """
    failed = set()
    for number in range(options.rounds):
        for case, contender in itertools.product(options.cases, contenders):
            if (contender.name, case) in failed:
                continue
            try:
                contender.run(case, options.time_limit)
            except RuntimeError as problem:
                print(problem, file=sys.stderr)
                failed.add((contender.name, case))
        print(f"round {number + 1} of {options.rounds} done", file=sys.stderr)
    return len(failed)


def summarise(options, contenders):
    """Returns the rows of the report: of each case and contender every figure's median, least and largest over the
    rounds.
    """
    rows = []
    for case in options.cases:
        kind = dict(case)
        name, more_is_better = MAIN[kind.get("pattern") or kind.get("measure") or options.benchmark]
        found = {}
        for contender in contenders:
            samples = contender.samples.get(case)
            if not samples:
                continue
            found[contender.name] = {figure: [quantile([one[figure] for one in samples], q) for q in (0.5, 0, 1)]
                                     for figure in samples[0]}
        first, *others = [figures[name][0] for figures in found.values()] or [None]
        best = (max if more_is_better else min)(others) if others else None
        ratio = None if not best else first / best if more_is_better else best / first
        rows.append({"case": dict(case), "main": name, "figures": found, "ahead": ratio})
    return rows


def print_report(result):
    """Prints a table for each case."""
    for row in result["rows"]:
        print(f"\n{result['benchmark']} over {result['driver']}: "
              + ", ".join(f"{key} {value}" for key, value in row["case"].items()))
        print(f"  {'':<16}" + "".join(f"{name:>30}" for name in row["figures"]))
        for figure in next(iter(row["figures"].values()), []):
            triples = [values[figure] for values in row["figures"].values()]
            cells = [f"{median:.4g} ({least:.4g} to {most:.4g})" for median, least, most in triples]
            print(f"  {figure:<16}" + "".join(f"{cell:>30}" for cell in cells))
        if row["ahead"] is not None:
            word = "ahead of" if row["ahead"] >= 1 else "behind"
            print(f"  {row['main']}: {word} the best of the others: {row['ahead']:.2f}")


def parse_arguments():
    """Parses the command line. Unknown options go to the programs."""
    parser = argparse.ArgumentParser(description="Progress of Canelé beside other MPIs, interleaved.",
                                     epilog="Other options go to the programs: see canele-perf <benchmark> --help.")
    parser.add_argument("benchmark", choices=sorted(CASES))
    parser.add_argument("--driver", choices=["shm", "tcp"], default="shm")
    parser.add_argument("--size", help="message sizes, comma-separated")
    parser.add_argument("--side", help="overlap: sender, receiver, both; availability: sender, receiver")
    parser.add_argument("--ratio", help="overlap: computation to transfer")
    parser.add_argument("--threads", help="threads: N; overload: those that compute, in each process")
    parser.add_argument("--pattern", help="threads: 1-to-N, N-to-N")
    parser.add_argument("--measure", help="pairs: latency, bandwidth, rate")
    parser.add_argument("--operation", help="passive: put, get, accumulate")
    parser.add_argument("--ranks", type=int, default=8, help="alltoall, pairs, silence: (default %(default)s)")
    parser.add_argument("--seconds", help="silence: length of one")
    command_line.add_common(parser, CONTENDERS, USUAL)
    options, options.more = parser.parse_known_args()
    if options.rounds < 1:
        parser.error("at least one round is needed")
    if options.benchmark not in MANY:
        options.ranks = 3 if options.benchmark == "passive" else 2
    lists = [[(name, value) for value in (getattr(options, name) or usual).split(",")]
             for name, usual in CASES[options.benchmark].items()]
    options.cases = list(itertools.product(*lists))
    return options


def measure(options):
    """Builds, runs, reports. Returns exit code 1 if a wanted contender failed in its run."""
    contenders = peers.make_wanted(options, make_contender)
    failures = run_rounds(options, contenders)
    about = {key: getattr(options, key) for key in ("benchmark", "driver", "ranks", "rounds")}
    command_line.deliver(options, options.benchmark, {**about, "rows": summarise(options, contenders)}, print_report)
    return 1 if failures else 0


def main():
    """Measures, with programs in the directory of --work or in a temporary one."""
    options = parse_arguments()
    with command_line.work_directory(options):
        return measure(options)


if __name__ == "__main__":
    sys.exit(command_line.run(main))

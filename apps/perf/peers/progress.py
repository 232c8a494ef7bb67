#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Progress of Canelé beside that of other MPIs, interleaved: overlap, threads, overload, availability, alltoall,
silence.

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
import tempfile

import run

# Main figure of each benchmark, and whether more of it is better.
MAIN = {"overlap": ("serial", False), "overload": ("median", False), "availability": ("overhead", False),
        "alltoall": ("median", False), "silence": ("first", False),
        "1-to-N": ("median", False), "N-to-N": ("rate", True)}
# Options whose values make cases of their own, and their defaults.
CASES = {
    "overlap": {"size": "1M,4M", "side": "sender,receiver,both", "ratio": "1"},
    "threads": {"pattern": "1-to-N,N-to-N", "threads": "1,2,4,16,64,256"},
    "overload": {"size": "1M", "threads": "0,1,4,16"},
    "availability": {"size": "8,4k,64k,1M,4M", "side": "sender,receiver"},
    "alltoall": {"size": "8,64k"},
    "silence": {"seconds": "1"},
}
MANY = ("alltoall", "silence")  # with any number of ranks
CONTENDERS = ["canele", "canele-mpi", "openmpi", "mpich"]


def launch_of(options, name, extra):
    """Returns the command before the program. `extra`: launcher options that select the transport."""
    count = ["-n", str(options.ranks)]
    if name == "canele-mpi":
        return [run.find_tool(options.prefix, "canele-run"), *count]
    if name == "openmpi":
        yields = run.OPENMPI_YIELD if options.benchmark in ("threads", "alltoall", "silence") else []
        return [*run.OPENMPI_LAUNCH, *yields, *count, *extra]
    return ["mpiexec.mpich", *count, *extra]


def make_contender(options, name):
    """Returns one of CONTENDERS; None and the reason if it is not available."""
    if name == "canele":
        program = run.find_tool(options.prefix, "canele-perf")
        if program is None:
            return None, "canele-perf not found; build first, or give --prefix"
        before = [program, options.benchmark, "--driver", options.driver]
        if options.benchmark in MANY:
            before += ["--ranks", str(options.ranks)]
        environment = {}
    else:
        program, why = run.build_progress(options, name, run.cpp_compilers(options)[name])
        if program is None:
            return None, why
        how = {"openmpi": run.OPENMPI_DRIVER, "mpich": run.MPICH_DRIVER}.get(name, {})
        extra, environment = how.get(options.driver, ([], {"CANELE_DRIVERS": options.driver}))
        before = [*launch_of(options, name, extra), program, options.benchmark]

    def command(case):
        words = [word for option, value in case for word in (f"--{option}", value)]
        return [*before, *words, *options.more, "--json"]

    return run.Contender(name, command, environment, lambda text: [json.loads(text)["figures"]]), ""


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
        name, more_is_better = MAIN[dict(case).get("pattern", options.benchmark)]
        found = {}
        for contender in contenders:
            samples = contender.samples.get(case)
            if not samples:
                continue
            found[contender.name] = {figure: [run.quantile([one[figure] for one in samples], q) for q in (0.5, 0, 1)]
                                     for figure in samples[0]}
        first, *others = [figures[name][0] for figures in found.values()] or [None]
        best = (max if more_is_better else min)(others) if others else None
        ratio = None if not best else first / best if more_is_better else best / first
        rows.append({"case": dict(case), "main": name, "figures": found, "ahead": ratio})
    return rows


def print_report(options, rows):
    """Prints a table for each case, or JSON."""
    if options.json:
        about = {key: getattr(options, key) for key in ("benchmark", "driver", "ranks", "rounds")}
        print(json.dumps({**about, "rows": rows}, indent=2))
        return
    for row in rows:
        print(f"\n{options.benchmark} over {options.driver}: " + ", ".join(f"{k} {v}" for k, v in row["case"].items()))
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
    parser.add_argument("--ranks", type=int, default=8, help="alltoall, silence: (default %(default)s)")
    parser.add_argument("--seconds", help="silence: length of one")
    parser.add_argument("--rounds", type=int, default=5, help="how often each contender runs (default %(default)s)")
    parser.add_argument("--contenders", default=",".join(CONTENDERS), help="default: %(default)s")
    parser.add_argument("--prefix", help="where Canelé is installed (default: build/release, then PATH)")
    parser.add_argument("--time-limit", type=float, default=120, help="seconds for one run (default %(default)s)")
    parser.add_argument("--json", action="store_true")
    options, options.more = parser.parse_known_args()
    options.contenders = options.contenders.split(",")
    unknown = set(options.contenders) - set(CONTENDERS)
    if unknown:
        parser.error(f"unknown contender {', '.join(sorted(unknown))}; known: {', '.join(CONTENDERS)}")
    if options.rounds < 1:
        parser.error("at least one round is needed")
    if options.benchmark not in MANY:
        options.ranks = 2
    lists = [[(name, value) for value in (getattr(options, name) or usual).split(",")]
             for name, usual in CASES[options.benchmark].items()]
    options.cases = list(itertools.product(*lists))
    return options


def main():
    """Builds, runs, reports. Returns exit code 1 if a wanted contender failed in its run."""
    options = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="canele-peers-") as options.work:
        contenders = run.gather((name, make_contender(options, name)) for name in options.contenders)
        if not contenders:
            print("progress.py: no contender is left to compare", file=sys.stderr)
            return 1
        failures = run_rounds(options, contenders)
        print_report(options, summarise(options, contenders))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

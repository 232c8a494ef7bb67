#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs MPICH's own tests in C and Fortran on Canelé, or on another MPI.

Usage: tests/mpi/mpich/suite.py [--bin DIR] [--driver shm|tcp] [--peer mpich|openmpi] [--only REGEX] ...  (see --help)

Used by tests/run.sh, stage mpich, and by hand. Each line of MPICH's lists names a program, its ranks and arguments. The
programs are built by the MPI's compiler, and run by its launcher under tests/with-timeout, one after the other.

A line whose program calls a function that the table of functions calls missing is counted, and not built. Lines that
fail are in expected.txt, with what they print then. Any other line that fails is an error. So is a line of that file
that passes, or fails in another way: what has passed once stays passed. With --peer nothing is expected.
"""
import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import lists
import programs
import sources

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.append(str(HERE.parent))

from peers import PEERS, canele

WITH_TIMEOUT = ROOT / "tests/with-timeout"
TIMED_OUT = 124
# The lines of the lists that are read, by version: another number is an error.
LISTED = {"4.0.2": 1111}
BAD = ("FAIL", "XPASS")


@dataclasses.dataclass
class Result:
    """What a line did. `problem` is empty if it passed."""

    line: lists.Line
    seconds: float
    problem: str
    output: str
    missing: tuple[str, ...] = ()  # functions for whose lack the program was not built, or has ended
    word: str = ""


def fail(text: str) -> None:
    sys.exit(f"error: {text}")


def environment(options: argparse.Namespace, line: lists.Line) -> dict[str, str]:
    values = {name: value for name, value in os.environ.items() if not name.startswith(("CANELE_", "MPITEST_"))}
    if options.driver:
        values["CANELE_DRIVERS"] = options.driver
    return values | dict(text.split("=", 1) for text in line.variables)


def run(options: argparse.Namespace, builder: programs.Builder, line: lists.Line, results: pathlib.Path) -> Result:
    """Runs a line and judges it."""
    stacks = results / (re.sub(r"\W", "_", line.name) + ".stacks")
    command = [str(WITH_TIMEOUT), "--stacks", str(stacks), str(line.limit), *options.launcher, "-n", str(line.ranks),
               str(builder.program(line)), *line.arguments]
    begin = time.monotonic()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", env=environment(options, line), check=False)
    seconds = time.monotonic() - begin
    if done.returncode == TIMED_OUT:
        problem = f"it reached its limit of {line.limit:.0f} s; stacks: {stacks}"
    else:
        problem = lists.problem_of(line, done.returncode, done.stdout)
    stopped = re.findall(r"^(MPI_\w+): missing$", done.stdout, re.MULTILINE) if problem else []
    return Result(line, seconds, problem, done.stdout, tuple(sorted(set(stopped) & builder.missing)))


def build_all(builder: programs.Builder, lines: list[lists.Line], jobs: int) -> dict[pathlib.Path, str]:
    """Builds all programs. Returns {program: why not}."""
    firsts = {builder.program(line): line for line in lines}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        problems = zip(firsts, pool.map(builder.build, firsts.values()))
        return {program: problem for program, problem in problems if problem}


def verdict(result: Result, expected: dict[str, str]) -> str:
    """PASS, KNOWN (it fails as expected.txt says), FAIL, XPASS (it passes against expected.txt), or LACKS (it was not
    built, or has ended, because a function is missing)."""
    if result.missing:
        return "LACKS"
    reason = expected.get(result.line.name)
    if reason is not None and reason.startswith(lists.HANGS):
        return "KNOWN"
    if not result.problem:
        return "PASS" if reason is None else "XPASS"
    return "KNOWN" if reason is not None and reason in result.problem + "\n" + result.output else "FAIL"


def show(number: int, count: int, result: Result) -> None:
    print(f"  {number:>3}/{count} {result.word:<5} {result.line.name:<64} {result.seconds:>7.2f} s", flush=True)
    if result.word in BAD:
        print(f"    {result.problem or 'expected.txt says that it fails'}")
        print("\n".join(f"    | {text}" for text in result.output.strip().splitlines()[:25]), flush=True)


def run_all(options: argparse.Namespace, builder: programs.Builder, lines: list[lists.Line],
            results: pathlib.Path) -> list[Result]:
    begin = time.monotonic()
    unbuilt = build_all(builder, lines, options.jobs)
    print(f"building the programs of {len(lines)} lines: done in {time.monotonic() - begin:.0f} s", flush=True)
    expected = {} if options.peer else lists.expected_failures()
    found = []
    for number, line in enumerate(lines, 1):
        why = unbuilt.get(builder.program(line))
        if expected.get(line.name, "").startswith(lists.HANGS):
            result = Result(line, 0.0, "it is not run", "")
        elif why is None:
            result = run(options, builder, line, results)
        else:
            result = Result(line, 0.0, "it cannot be built", why, tuple(builder.lacks(line)))
        result.word = verdict(result, expected)
        show(number, len(lines), result)
        found.append(result)
    return found


def report(found: list[Result], seconds: float) -> int:
    """Prints the counts by folder, what is known to fail, and which functions are missing. Returns the number of
    errors."""
    print(f"  {'folder':<18}{'lines':>6}{'pass':>6}{'known':>7}{'lacks':>7}{'failed':>8}")
    for part in lists.PARTS:
        words = [result.word for result in found if result.line.part == part]
        if words:
            bad = sum(words.count(word) for word in BAD)
            print(f"  {part:<18}{len(words):>6}{words.count('PASS'):>6}{words.count('KNOWN'):>7}"
                  f"{words.count('LACKS'):>7}{bad:>8}")
    for result in found:
        if result.word == "KNOWN":
            print(f"  known to fail: {result.line.name}: {lists.expected_failures()[result.line.name]}")
    missing = sorted({name for result in found for name in result.missing})
    if missing:
        print(f"  missing functions: {' '.join(missing)}")
    words = [result.word for result in found]
    skipped = words.count("KNOWN") + words.count("LACKS")
    failed = len(words) - words.count("PASS") - skipped
    share = 100 * words.count("PASS") / max(1, len(words))
    print(f"  {words.count('PASS')} of {len(words)} lines pass ({share:.1f} %), in {seconds:.0f} s")
    print(f"{words.count('PASS')} passed, {failed} failed, {skipped} skipped", flush=True)
    return failed


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Runs MPICH's tests in C and Fortran on Canelé, or on another MPI.")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/prefix/bin",
                        help="the folder of canele-mpicc and canele-run (default: build/prefix/bin)")
    parser.add_argument("--driver", default="", help="value of CANELE_DRIVERS (default: Canelé's own)")
    parser.add_argument("--peer", choices=PEERS, help="run on another MPI of this machine")
    parser.add_argument("--mpi-abi", action="store_true", help="build the programs for the standard ABI")
    parser.add_argument("--only", default="", metavar="REGEX", help="only the lines that match")
    parser.add_argument("--cache", type=pathlib.Path, default=ROOT / "build/mpich", help="sources and programs")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="compilers at a time")
    options = parser.parse_args()
    options.bin, options.cache = options.bin.resolve(), options.cache.resolve()
    options.name = options.peer or "canele"
    mpi = PEERS[options.peer] if options.peer else canele(options.bin)
    options.compiler, options.launcher, options.fortran = [mpi.compiler], [*mpi.launcher], [mpi.fortran]
    if options.mpi_abi:
        options.compiler, options.name = [*options.compiler, "-mpi-abi"], "canele-abi"
    if options.peer:
        options.fortran.append("-fallow-argument-mismatch")
    for command in (options.compiler[0], options.launcher[0]):
        if shutil.which(command) is None:
            parser.error(f"there is no {command}; tests/run.sh --only release,install makes Canelé's in build/prefix")
    return options


def main() -> int:
    options = parse_arguments()
    results = options.cache / f"results-{options.name}"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    begin = time.monotonic()
    try:
        version, place = sources.ensure(options.cache)
        lines = lists.read_lists(place)
        if len(lines) != LISTED.get(version, len(lines)):
            fail(f"MPICH {version} lists {len(lines)} lines, not {LISTED[version]}: were they read correctly?")
        unknown = sorted(set(lists.expected_failures()) - {line.name for line in lines})
        if unknown:
            fail(f"expected.txt has lines that MPICH {version} does not list: {', '.join(unknown)}")
        lines = [line for line in lines if re.search(options.only, line.name)]
        if not shutil.which("gfortran"):
            print("there is no gfortran: the lines in Fortran are left out", flush=True)
            lines = [line for line in lines if not line.language]
        print(f"MPICH {version}: {len(lines)} lines", flush=True)
        # The standard ABI has all functions: a call of a missing one ends as an error.
        missing = set() if options.peer or options.mpi_abi else programs.missing_functions()
        builder = programs.Builder(place, options.cache / f"programs-{options.name}", options.compiler,
                                   options.fortran, missing)
        builder.start()
    except (sources.SourcesError, programs.BuildError) as error:
        fail(str(error))
    found = run_all(options, builder, lines, results)
    table = {result.line.name: [result.word, result.problem, list(result.missing)] for result in found}
    (results / "results.json").write_text(json.dumps(table, indent=1), encoding="utf-8")
    return 1 if report(found, time.monotonic() - begin) or not lines else 0


if __name__ == "__main__":
    sys.exit(main())

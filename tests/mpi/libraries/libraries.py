#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds libraries of others on Canelé and runs their own checks, over each driver.

Usage: tests/mpi/libraries/libraries.py LIBRARY... [--bin DIR] [--peer mpich|openmpi] ...  (see --help)

Used by tests/run.sh, stages soak-hpcc and soak-libraries, and by hand. The sources are those of Debian's source
packages, unmodified. They are fetched, and no part of this tree. A library whose sources cannot be had is skipped; one
that cannot be built has failed.
"""
import argparse
import os
import pathlib
import shutil
import sys
import time

import library
from fftw import Fftw
from hpcc import Hpcc
from hypre import Hypre
from library import ROOT, Library, Result, sources
from peers import PEERS, canele
from petsc import Petsc

LIBRARIES: dict[str, type[Library]] = {"hpcc": Hpcc, "hypre": Hypre, "petsc": Petsc, "fftw": Fftw}
DRIVERS = ("shm", "tcp")
MOST_LINES = 40  # of the output of a check that failed


def show(name: str, driver: str, result: Result) -> None:
    where = f"{name}: {result.name} over {driver}"
    print(f"FAIL: {where}: {result.problem}" if result.problem else f"  {where}: passed", flush=True)
    if result.problem:
        print("\n".join(f"    | {line}" for line in result.output.splitlines()[:MOST_LINES]), flush=True)


def prepare(name: str, one: Library, keep: bool) -> str:
    """Fetches and builds a library. Returns its version."""
    begin = time.monotonic()
    if keep:
        return one.archives()[-1][1]
    version = one.fetch()
    one.build()
    print(f"{name} {version}: built in {time.monotonic() - begin:.0f} s", flush=True)
    return version


def check(name: str, one: Library, drivers: list[str]) -> list[bool]:
    """Runs a library's checks. Returns which have passed."""
    passed = []
    for driver in drivers:
        before = len(passed)
        for result in one.checks(driver):
            show(name, driver, result)
            passed.append(not result.problem)
        if len(passed) == before:
            show(name, driver, Result("all checks", "none was run"))
            passed.append(False)
    return passed


def run_all(libraries: dict[str, Library], drivers: list[str], keep: bool) -> int:
    """Builds and checks each library, and prints the count. Returns the exit code."""
    passed: list[bool] = []
    skipped = 0
    for name, one in libraries.items():
        begin = time.monotonic()
        try:
            prepare(name, one, keep)
        except sources.SourcesError as error:
            print(f"{name}: skipped: {error}", flush=True)
            skipped += 1
            continue
        except library.BuildError as error:
            print(f"FAIL: {name} cannot be built: {error}", flush=True)
            passed.append(False)
            continue
        found = check(name, one, drivers)
        print(f"{name}: {found.count(True)} of {len(found)} checks passed, in {time.monotonic() - begin:.0f} s",
              flush=True)
        passed += found
    print(f"{passed.count(True)} passed, {passed.count(False)} failed, {skipped} skipped", flush=True)
    return 0 if all(passed) else 1


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Builds libraries on Canelé and runs their own checks.")
    parser.add_argument("libraries", nargs="+", choices=LIBRARIES, metavar="LIBRARY", help=", ".join(LIBRARIES))
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/prefix/bin",
                        help="the folder of canele-mpicc and canele-run (default: build/prefix/bin)")
    parser.add_argument("--peer", choices=PEERS, help="build and run on another MPI of this machine")
    parser.add_argument("--driver", choices=DRIVERS, help="only this one (default: each)")
    parser.add_argument("--cache", type=pathlib.Path, default=ROOT / "build/libraries", help="sources and results")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="compilers at a time")
    parser.add_argument("--keep", action="store_true", help="run what was built before")
    options = parser.parse_args()
    options.mpi = PEERS[options.peer] if options.peer else canele(options.bin.resolve())
    for command in (options.mpi.compiler, options.mpi.launcher[0]):
        if shutil.which(command) is None:
            parser.error(f"there is no {command}; tests/run.sh --only release,install makes Canelé's in build/prefix")
    return options


def main() -> int:
    options = parse_arguments()
    cache = options.cache.resolve() / (options.peer or "canele")
    libraries = {name: LIBRARIES[name](options.mpi, cache / name, options.jobs) for name in options.libraries}
    return run_all(libraries, [options.driver] if options.driver else ["own"] if options.peer else [*DRIVERS],
                   options.keep)


if __name__ == "__main__":
    sys.exit(main())

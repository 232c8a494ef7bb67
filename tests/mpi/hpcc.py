#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds the HPC Challenge benchmark on Canelé and runs it, small. Its own checks say whether the results are right.

Usage: tests/mpi/hpcc.py [--bin DIR] [--cache DIR] [--jobs N]   (see --help)

Used by tests/run.sh, stage soak-hpcc, and by hand. The sources are those of Debian's source package hpcc, unmodified.
They are fetched, and no part of this tree. It has HPL, PTRANS, RandomAccess and FFT over all ranks, and the latency and
bandwidth of messages, and uses datatypes of MPI-1. Exit code 77: the sources cannot be had.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE / "mpich"))

import sources

LIMIT_S = 600
ELEMENTS = 400  # rows of the matrix of HPL; the other sizes follow from it
GRIDS = {2: (1, 2), 4: (2, 2)}  # processes of HPL's grid, by ranks
# What must be in the output.
PASSED = {"HPL": r"\|\|Ax-b\|\|.*PASSED", "PTRANS": r"^(WALL|CPU) .*PASSED"}
MAKEFILE = """SHELL = /bin/sh
CD = cd
CP = cp
LN_S = ln -s
MKDIR = mkdir -p
RM = /bin/rm -f
TOUCH = touch
ARCH = canele
TOPdir = ../../..
INCdir = $(TOPdir)/include
BINdir = $(TOPdir)/bin/$(ARCH)
LIBdir = $(TOPdir)/lib/$(ARCH)
HPLlib = $(LIBdir)/libhpl.a
HPL_LIBS = $(HPLlib) -lopenblas -lm
HPL_INCLUDES = -I$(INCdir) -I$(INCdir)/$(ARCH)
HPL_DEFS = -DAdd__ -DF77_INTEGER=int -DStringSunStyle $(HPL_INCLUDES)
CC = @compiler@
CCNOOPT = $(HPL_DEFS)
CCFLAGS = $(HPL_DEFS) -O2 -w
LINKER = $(CC)
LINKFLAGS = $(CCFLAGS)
ARCHIVER = ar
ARFLAGS = r
RANLIB = ranlib
"""


def unpack(cache: pathlib.Path) -> pathlib.Path:
    """Returns the folder of the sources, which it has fetched and unpacked if need be."""
    cache.mkdir(parents=True, exist_ok=True)
    if not list(cache.glob("hpcc_*.orig.tar.gz")):
        sources.fetch(cache, cache / "fetch.log", "hpcc", "HPCC", "--tar-only")
    archive = sorted(cache.glob("hpcc_*.orig.tar.gz"))[-1]
    place = cache / "sources"
    shutil.rmtree(place, ignore_errors=True)
    with tarfile.open(archive) as tar:
        tar.extractall(place, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(place)
    return next(place.iterdir())


def build(place: pathlib.Path, options: argparse.Namespace) -> None:
    text = MAKEFILE.replace("@compiler@", str(options.bin / "canele-mpicc"))
    (place / "hpl/Make.canele").write_text(text, encoding="utf-8")
    with open(options.cache / "build.log", "w", encoding="utf-8") as log:
        subprocess.run(["make", "arch=canele", f"-j{options.jobs}"], cwd=place, stdin=subprocess.DEVNULL, stdout=log,
                       stderr=subprocess.STDOUT, check=False)
    if not (place / "hpcc").exists():
        sys.exit(f"error: HPCC cannot be built; see {options.cache / 'build.log'}")


def make_input(place: pathlib.Path, run: pathlib.Path, ranks: int) -> None:
    """Writes hpccinf.txt: the benchmark's own, with a small matrix and our grid."""
    lines = (place / "_hpccinf.txt").read_text(encoding="utf-8").splitlines()
    values = {"Ns": ELEMENTS, "Ps": GRIDS[ranks][0], "Qs": GRIDS[ranks][1]}
    for number, line in enumerate(lines):
        name = line.split()[-1] if line.split() else ""
        if name in values:
            lines[number] = f"{values[name]} {name}"
    (run / "hpccinf.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def problems_of(text: str) -> list[str]:
    """Returns what is wrong with the benchmark's output."""
    found = [f"a check failed: {line.strip()}" for line in text.splitlines() if re.search(r"\bFAILED\b", line)]
    if "Success=1" not in text:
        found.append("the summary does not say Success=1")
    for name, pattern in PASSED.items():
        if not re.search(pattern, text, re.MULTILINE):
            found.append(f"{name} does not say that it passed")
    for count in re.findall(r"Found (\d+) errors in", text):
        if count != "0":
            found.append(f"RandomAccess has {count} errors")
    return found


def run_once(place: pathlib.Path, options: argparse.Namespace, ranks: int, driver: str) -> bool:
    run = options.cache / f"run-{ranks}-{driver}"
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir()
    make_input(place, run, ranks)
    command = [ROOT / "tests/with-timeout", LIMIT_S, options.bin / "canele-run", "-n", ranks, place / "hpcc"]
    done = subprocess.run([*map(str, command)], cwd=run, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
                          env=os.environ | {"CANELE_DRIVERS": driver, "OPENBLAS_NUM_THREADS": "1"})
    output = run / "hpccoutf.txt"
    text = output.read_text(encoding="utf-8", errors="replace") if output.exists() else ""
    problems = ([f"exit code {done.returncode}"] if done.returncode else []) + problems_of(text)
    print(f"  hpcc, {ranks} ranks over {driver}: {'; '.join(problems) or 'passed'}", flush=True)
    if problems:
        print("\n".join(f"    | {line}" for line in done.stdout.splitlines()[:25]), flush=True)
    return not problems


def main() -> int:
    parser = argparse.ArgumentParser(description="Builds the HPC Challenge benchmark on Canelé and runs it, small.")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/prefix/bin",
                        help="the folder of canele-mpicc and canele-run (default: build/prefix/bin)")
    parser.add_argument("--cache", type=pathlib.Path, default=ROOT / "build/hpcc", help="sources and results")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="compilers at a time")
    options = parser.parse_args()
    options.bin, options.cache = options.bin.resolve(), options.cache.resolve()
    try:
        place = unpack(options.cache)
    except sources.SourcesError as error:
        print(f"skipped: {error}", file=sys.stderr)
        return 77
    build(place, options)
    passed = [run_once(place, options, ranks, driver) for ranks in GRIDS for driver in ("shm", "tcp")]
    print(f"{passed.count(True)} passed, {passed.count(False)} failed")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Collectives drawn from a seed among 2, 4, 5 and 8 processes; or one of them is killed, and all others are told.

Usage: collectives_test.py --driver NAME [--death] [--times N] [--rounds N] [--first-seed S] [--longest BYTES]
Run by ctest, with some seeds per driver. CANELE_TEST_BIN: where the programs are. The seed decides the operations, the
victim and the moment, so a failure prints the command that repeats it.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys

BIN = pathlib.Path(os.environ.get("CANELE_TEST_BIN", "build/release/bin")).resolve()
WRAPPER = pathlib.Path(__file__).resolve().parents[2] / "with-timeout"
SIZES = (2, 4, 5, 8)
WORKERS = ("auto", "none", "bound")


def run_one(options, seed):
    """Returns "" and what was done, or what went wrong."""
    ranks = SIZES[seed % len(SIZES)]
    if options.death and ranks == 2:
        ranks = 3
    worker = WORKERS[seed // len(SIZES) % len(WORKERS)]
    command = [str(BIN / "canele-run"), "-n", str(ranks), "-x", f"CANELE_DRIVERS={options.driver}",
               "-x", "CANELE_VERBOSE=0", "-x", f"CANELE_WORKER={worker}"]
    if options.death:
        victim = seed * 7 % ranks
        command += ["--keep-going", str(BIN / "process_collectives"), "death", str(seed), str(victim)]
        line = re.compile(rf"^rank \d+: lost {victim} after (\d+) collectives$", re.MULTILINE)
    else:
        victim = None
        command += [str(BIN / "process_collectives"), "run", str(seed), str(options.rounds), str(options.longest)]
        line = re.compile(r"^rank \d+: (\d+) collectives$", re.MULTILINE)
    result = subprocess.run([str(WRAPPER), "100", *command], capture_output=True, text=True, check=False)
    done = [int(number) for number in line.findall(result.stdout)]
    expected = ranks if victim is None else ranks - 1
    if len(done) == expected and (victim is not None or result.returncode == 0):
        return "", f"seed {seed}: {ranks} ranks, worker {worker}, {max(done)} collectives"
    return f"exit code {result.returncode}\n{' '.join(command)}\n{result.stdout}{result.stderr}", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--driver", required=True)
    parser.add_argument("--death", action="store_true")
    parser.add_argument("--times", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--longest", type=int, default=1 << 20, help="bytes of a buffer (1 MiB)")
    options = parser.parse_args()
    for seed in range(options.first_seed, options.first_seed + options.times):
        problem, done = run_one(options, seed)
        if problem:
            print(f"FAIL: driver {options.driver}, seed {seed}: {problem}")
            return 1
        print(f"  {options.driver}, {done}", flush=True)
    print(f"{options.driver}: {options.times} jobs, all right")
    return 0


if __name__ == "__main__":
    sys.exit(main())

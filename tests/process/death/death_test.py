#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kills one rank of four in mid-traffic, again and again: the others name it, go on among themselves, leave nothing.

Usage: death_test.py --driver NAME [--times N] [--first-seed S]
Run by ctest, a few times per driver, and by tests/run.sh --soak, a hundred times. CANELE_TEST_BIN: where the programs
are. The seed decides the victim and the moment, so a failure prints the command that repeats it.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys

BIN = pathlib.Path(os.environ.get("CANELE_TEST_BIN", "build/release/bin")).resolve()
WRAPPER = pathlib.Path(__file__).resolve().parents[2] / "with-timeout"
RANKS = 4
# What a driver needs where its hardware is missing; the program itself answers libpsm2's question for hardware.
WITHOUT_HARDWARE = {"ofi": ["CANELE_OFI_PROVIDER=tcp;ofi_rxm"], "psm2": ["PSM2_DEVICES=self,shm"]}


def left_behind(output):
    """Returns the files in /dev/shm named by a process id of the ranks: in decimal, or as libpsm2 writes it
    (stale_shm.hpp).
    """
    pids = [int(line.split()[-1]) for line in output.splitlines() if line.startswith("process ")]
    names = [path.name for path in pathlib.Path("/dev/shm").iterdir()]
    ours = [re.compile(rf"(?<!\d){pid}(?!\d)|^psm2_shm\.{os.getuid()}{pid:08x}") for pid in pids]
    return [name for name in names if any(pattern.search(name) for pattern in ours)]


def one_death(driver, seed):
    """Returns "" or what went wrong."""
    victim = seed % RANKS
    needs = [setting for name in driver.split("+") for setting in WITHOUT_HARDWARE.get(name, [])]
    settings = [f"CANELE_DRIVERS={driver}", "CANELE_VERBOSE=0", *needs]
    command = [str(BIN / "canele-run"), "--keep-going", "-n", str(RANKS)]
    command += [word for setting in settings for word in ("-x", setting)]
    command += [str(BIN / "process_death"), str(victim), str(seed)]
    result = subprocess.run([str(WRAPPER), "60", *command], capture_output=True, text=True, check=False)
    survivors = [line for line in result.stdout.splitlines() if line.endswith(f"goes on without {victim}")]
    left = left_behind(result.stdout)
    if len(survivors) == RANKS - 1 and not left:
        return ""
    problem = f"{len(survivors)} of {RANKS - 1} ranks went on, left in /dev/shm: {left}, "
    return problem + f"exit code {result.returncode}\n{' '.join(command)}\n{result.stdout}{result.stderr}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--driver", required=True)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=1)
    options = parser.parse_args()
    for seed in range(options.first_seed, options.first_seed + options.times):
        problem = one_death(options.driver, seed)
        if problem:
            print(f"FAIL: driver {options.driver}, seed {seed}: {problem}")
            return 1
        if (seed - options.first_seed + 1) % 20 == 0:
            print(f"  {options.driver}: {seed - options.first_seed + 1} deaths", flush=True)
    print(f"{options.driver}: {options.times} deaths: the others named the rank and went on")
    return 0


if __name__ == "__main__":
    sys.exit(main())

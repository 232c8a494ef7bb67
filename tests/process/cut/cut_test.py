#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Three ranks in a chain; the middle one dies in mid-multicast, after 0, 1, 2, ... of its steps.

Usage: cut_test.py --driver NAME [--setting NAME=VALUE] [--bytes N] [--steps N] [--fewest N]
Run by ctest. CANELE_TEST_BIN: where the programs are. The number of steps differs from run to run, so a run may end
before it is cut. If too few are cut, the test has tested nothing, and fails. No thread of the library makes progress:
its steps would not be counted.
"""
import argparse
import os
import pathlib
import subprocess
import sys

BIN = pathlib.Path(os.environ.get("CANELE_TEST_BIN", "build/release/bin")).resolve()
WRAPPER = pathlib.Path(__file__).resolve().parents[2] / "with-timeout"


def run_cut(options, steps):
    """Returns whether the run was cut, or None and what went wrong."""
    settings = [f"CANELE_DRIVERS={options.driver}", "CANELE_VERBOSE=0", "CANELE_WORKER=none", *options.setting]
    command = [str(BIN / "canele-run"), "--keep-going", "-n", "3", *(word for one in settings for word in ("-x", one)),
               str(BIN / "process_cut"), str(steps), str(options.bytes)]
    result = subprocess.run([str(WRAPPER), "30", *command], capture_output=True, text=True, check=False)
    said = sorted(result.stdout.splitlines())
    if result.returncode == 0 and said[0] == "last: has it" and said[1].startswith("middle: lives after"):
        if said[2:] == ["root: the middle rank has it"]:
            return False, ""
    if result.returncode == 128 + 9 and said[:1] == ["last: has it"]:
        if said[1:] in (["root: the middle rank has it"], ["root: the middle rank is lost"]):
            return True, said[1]
    return None, f"exit code {result.returncode}\n{' '.join(command)}\n{result.stdout}{result.stderr}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--driver", required=True)
    parser.add_argument("--setting", action="append", default=[])
    parser.add_argument("--bytes", type=int, default=8_000_000)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--fewest", type=int, default=4, help="runs that must be cut")
    options = parser.parse_args()
    outcomes = []
    for steps in range(options.steps):
        cut, text = run_cut(options, steps)
        if cut is None:
            print(f"FAIL: driver {options.driver}, cut after {steps} steps: {text}")
            return 1
        if cut:
            outcomes.append(text)
    print(f"{options.driver}, {options.bytes} bytes: cut in {len(outcomes)} of {options.steps} runs; the root lost the "
          f"middle rank in {sum(text.endswith('lost') for text in outcomes)}; the last one always has the data")
    return 0 if len(outcomes) >= options.fewest else 1


if __name__ == "__main__":
    sys.exit(main())

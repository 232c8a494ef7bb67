#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Eight ranks send each other messages and multicasts at random; every byte and the order of all is checked.

Usage: stress_test.py --driver NAME [--rounds N] [--seeds N] [--first-seed S] [--disturb]
Run by ctest, one seed per driver; by tests/run.sh --soak, several. A seed has some 120,000 operations, counted from
what the ranks print.

Over tcp the test asks for a shape of multicasts, another for each seed, because on one host the root would send to all.
A
run in which no rank forwarded a multicast is a failure: it would not test what it is for. Through shared memory the
root sends to all whatever the shape.
"""
import argparse
import contextlib
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import disturb  # noqa: E402  (tests/process/disturb.py)

BIN = pathlib.Path(os.environ.get("CANELE_TEST_BIN", "build/release/bin")).resolve()
RANKS = 8
SHAPES = ("chain", "binomial", "4-nomial", "8-nomial")
LINE = re.compile(r"rank (\d+): seed (\d+), (\d+) operations, (\d+) unexpected, (\d+) multicasts, (\d+) forwarded, "
                  r"0 complaints$", re.MULTILINE)


def run_seed(options, seed):
    """Returns "" and the number of operations, or what went wrong."""
    forwards = options.driver == "tcp"
    command = [str(BIN / "canele-run"), "-n", str(RANKS), "-x", f"CANELE_DRIVERS={options.driver}",
               "-x", f"CANELE_EXPERT_MULTICAST={SHAPES[seed % len(SHAPES)]}",
               "-x", "CANELE_WORKER=none",  # the oracle has callbacks of one thread
               str(BIN / "process_stress"), str(seed), str(options.rounds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as job:
        with disturb.Disturbance(job.pid, seed) if options.disturb else contextlib.nullcontext():
            output, _ = job.communicate()
    lines = LINE.findall(output)
    operations, unexpected, multicasts, forwarded = (sum(int(line[i]) for line in lines) for i in (2, 3, 4, 5))
    seen = min(operations, unexpected, multicasts) > 0 and (forwarded > 0 or not forwards)
    if job.returncode == 0 and len(lines) == RANKS and seen:
        print(f"  {options.driver}, seed {seed}: {operations} operations, {unexpected} unexpected, "
              f"{multicasts} multicasts, "
              f"{forwarded} forwarded", flush=True)
        return "", operations
    return f"exit code {job.returncode}\n{' '.join(command)}\n{output}", operations


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--driver", required=True)
    parser.add_argument("--rounds", type=int, default=8, help="of some 15,000 operations each")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--disturb", action="store_true", help="hogs on the cores, and ranks are stopped now and then")
    options = parser.parse_args()
    total = 0
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        problem, operations = run_seed(options, seed)
        if problem:
            print(f"FAIL: driver {options.driver}, seed {seed}: {problem}")
            return 1
        total += operations
    print(f"{options.driver}: {total} operations, all right")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Each allocation of a small job fails: once, or together with the next ones. What is the outcome of the job?

Usage: memory_test.py --driver NAME --preload LIBRARY [--kind malloc|mmap] [--every N] [--row N] [--seed S]

Run by ctest, for every so many allocations from an offset drawn from the seed; by tests/run.sh --soak, for each.

Two outcomes are allowed: the job is right nevertheless, or a call reports an error. That need not be CANELE_ENOMEM (a
driver without memory is not used). A signal, a hang, wrong data or a silent end is a failure of the test.

The number of allocations differs from run to run, because ranks meet in other orders. The sweep ends where some jobs in
a row have made fewer.
"""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

BIN = pathlib.Path(os.environ.get("CANELE_TEST_BIN", "build/release/bin")).resolve()
LIMIT_S = 60
ENOUGH = 6  # jobs in a row that end before the allocation that was to fail


def run_job(options, first):
    """Returns the outcome of the job, and its output."""
    settings = {"LD_PRELOAD": options.preload, "CANELE_DRIVERS": options.driver, "CANELE_TEST_FAIL_RANK": "1",
                "CANELE_TEST_FAIL_FROM": first, "CANELE_TEST_FAIL_COUNT": options.row,
                "CANELE_TEST_FAIL_KIND": options.kind}
    command = [str(BIN / "canele-run"), "--timeout", str(LIMIT_S), "-n", "2"]
    for name, value in settings.items():
        command += ["-x", f"{name}={value}"]
    done = subprocess.run(command + [str(BIN / "memory_job")], capture_output=True, text=True, errors="replace",
                          stdin=subprocess.DEVNULL, timeout=3 * LIMIT_S, check=False)
    text = done.stdout + done.stderr
    if "injected:" not in text:
        return ("not reached" if done.returncode == 0 else "failed by itself"), text
    if "WRONG" in text or done.returncode == 99:
        return "wrong data", text
    if done.returncode == 124:
        return "hang", text
    if re.search(r"signal|terminate called|Assertion", text):
        return "signal", text
    if done.returncode == 0:
        return "right", text
    return ("told" if "told: " in text else "ended without a word"), text


def sweep(options):
    found, texts, missed = collections.Counter(), {}, 0
    first = 1 + options.seed % options.every
    with ThreadPoolExecutor(2) as pool:
        while missed < ENOUGH:
            numbers = [first + i * options.every for i in range(4)]
            first += 4 * options.every
            for number, (verdict, text) in zip(numbers, pool.map(lambda n: run_job(options, n), numbers)):
                found[verdict] += 1
                missed = missed + 1 if verdict == "not reached" else 0
                if verdict not in ("right", "told", "not reached"):
                    print(f"{options.kind} {number}: {verdict}\n{text}", flush=True)
                texts.setdefault(verdict, number)
    return found, texts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--driver", required=True)
    parser.add_argument("--preload", required=True)
    parser.add_argument("--kind", default="malloc", choices=("malloc", "mmap"))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--row", type=int, default=1, help="allocations that fail, one after the other")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    found, _ = sweep(options)
    print(f"{options.driver}, {options.kind}, every {options.every}, {options.row} in a row, seed {options.seed}: " +
          ", ".join(f"{count} {verdict}" for verdict, count in sorted(found.items())))
    bad = sum(found.values()) - found["right"] - found["told"] - found["not reached"]
    if found["right"] + found["told"] == 0:
        print("nothing was made to fail: the test tests nothing")
        return 1
    return 1 if bad else 0


sys.exit(main())

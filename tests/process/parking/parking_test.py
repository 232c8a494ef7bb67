#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Threads sleep and are woken while the machine is hard to them: no wake-up may be lost, no byte wrong.

Usage: parking_test.py --driver NAME --worker KIND [--rounds N] [--seed S] [--parks N]
Run by ctest, one seed for each driver and kind of worker; by tests/run.sh --soak, ten million parks. Sleeps have no
limit here (endless.c), so a lost wake-up is a hang, and the time limit shows the stacks. Under a sanitizer they keep
their limits: its runtime must be loaded first.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import disturb  # noqa: E402  (tests/process/disturb.py)

BIN = pathlib.Path(os.environ.get("CANELE_TEST_BIN", "build/release/bin")).resolve()
LINE = re.compile(r"rank \d: (\d+) messages, (\d+) parks, (\d+) without a limit$", re.MULTILINE)
# An on-demand thread polls now and then, so its naps end by themselves; beside a worker, nothing ends by itself.
ENDLESS_US = {"none": 1000, "bound": 1000}


def run_seed(options, seed):
    """Returns messages and parks; exits if anything is wrong."""
    threads = 1 + seed % 4
    settings = [f"CANELE_DRIVERS={options.driver}", f"CANELE_WORKER={options.worker}"]
    if options.preload:
        settings += [f"LD_PRELOAD={options.preload}",
                     f"CANELE_TEST_ENDLESS_US={ENDLESS_US.get(options.worker, 50000)}"]
    command = [str(BIN / "canele-run"), "-n", "2"]
    for setting in settings:
        command += ["-x", setting]
    command += [str(BIN / "process_parking"), str(seed), str(threads), str(options.rounds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as job:
        with disturb.Disturbance(job.pid, seed) as disturbance:
            output, _ = job.communicate()
    lines = LINE.findall(output)
    messages, parks, endless = (sum(int(line[i]) for line in lines) for i in (0, 1, 2))
    if job.returncode != 0 or len(lines) != 2 or parks == 0 or (endless == 0) == bool(options.preload):
        sys.exit(f"FAIL: exit code {job.returncode}\n{' '.join(command)}\n{output}")
    print(f"  {options.driver}, {options.worker}, seed {seed}, {threads} threads a rank: {messages} messages, "
          f"{parks} parks, {endless} without a limit, ranks stopped {disturbance.stops} times, "
          f"{len(disturbance.hogs)} hogs", flush=True)
    return messages, parks


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--driver", required=True)
    parser.add_argument("--worker", required=True)
    parser.add_argument("--rounds", type=int, default=4000, help="messages of each thread")
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--parks", type=int, default=1, help="go on with the next seeds until there were so many")
    parser.add_argument("--preload", help="the library made of endless.c")
    options = parser.parse_args()
    seed, messages, parks = options.seed, 0, 0
    while parks < options.parks:
        result = run_seed(options, seed)
        messages, parks, seed = messages + result[0], parks + result[1], seed + 1
    print(f"{options.driver}, {options.worker}: {messages} messages, {parks} parks, all right")


if __name__ == "__main__":
    main()

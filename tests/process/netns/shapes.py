#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""One message to many, one rank in each network name space, on links of limited rate: is the shape that the engine
chooses near the best one?

Usage: shapes.py [--ranks 4,8] [--rate 400] [--sizes 8,64k,1M,4M] [--batches 5] [--check]
By hand; needs root, iproute2. CANELE_TEST_BIN: where the programs are. The links are measured first (canele-perf
sample), as a user of such a network would do. Otherwise the choice knows only the bandwidth that the driver
declares. The name spaces share one clock and two cores, so that a measurement may start at one rank and end at
another. With --check, a choice that is not within 10 % of the best shape at 90 % of the points is an error.

The shapes alternate within one job, so that other load on the machine affects all of them alike.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from network import Network, launcher

BIN = pathlib.Path(os.environ.get("CANELE_TEST_BIN", "build/release/bin")).resolve()
CHOICE, SHAPES = "auto", ["flat", "chain", "binomial", "4-nomial", "8-nomial"]
NEAR, SHARE = 1.1, 0.9
TIME_LIMIT = 600


def run_in(network, ranks, samples, *arguments):
    """Runs canele-perf, one rank in each name space; returns its output."""
    command = [*launcher(BIN / "canele-run", network.ranks[:ranks], ranks), "-x", "CANELE_DRIVERS=tcp",
               "-x", f"CANELE_SAMPLES={samples}", str(BIN / "canele-perf"), *arguments]
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True,
                          timeout=TIME_LIMIT).stdout


def run_job(ranks, options):
    """Returns a report for each size."""
    network = Network(ranks)
    try:
        network.limit(options.rate)
        with tempfile.TemporaryDirectory() as samples:
            run_in(network, 2, samples, "sample", "--driver", "tcp", "--batches", "5")
            text = run_in(network, ranks, samples, "broadcast", "--driver", "tcp", "--size", options.sizes, "--shape",
                          ",".join([CHOICE, *SHAPES]), "--batches", str(options.batches), "--json")
    finally:
        network.close()
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def show(report):
    """Prints a line; returns the ratio of the choice to the best shape."""
    times = {way: statistics.median(samples) for way, samples in report["samples"].items()}
    ratio = times[CHOICE] / min(times[shape] for shape in SHAPES)
    columns = "".join(f"{times[way]:>11.0f}" for way in [CHOICE, *SHAPES])
    print(f"{report['destinations']:>6}{report['size']:>10}{columns}{ratio:>9.2f}", flush=True)
    return ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--ranks", default="4,8")
    parser.add_argument("--rate", type=int, default=400, help="Mbit/s of each link")
    parser.add_argument("--sizes", default="8,64k,1M,4M")
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    print(f"time until the last has it, us, links of {options.rate} Mbit/s, medians of {options.batches}\n"
          f"{'ranks':>6}{'bytes':>10}" + "".join(f"{way:>11}" for way in [CHOICE, *SHAPES]) + f"{'to best':>9}")
    ratios = [show(report) for ranks in map(int, options.ranks.split(",")) for report in run_job(ranks, options)]
    near = sum(ratio <= NEAR for ratio in ratios)
    print(f"within 10 % of the best at {near} of {len(ratios)} points")
    if options.check and near < SHARE * len(ratios):
        print(f"FAIL: {SHARE * 100:.0f} % wanted")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two links between two hosts (network name spaces), each with its rate and delay: what do both together bring, beside
each of them alone?

Usage: rails.py [--links 400,200] [--sizes 64k,1M,16M,64M] [--rounds 5] [--check]
By hand; needs root, iproute2. CANELE_TEST_BIN: where the programs are. A link is RATE or RATE/DELAY, in Mbit/s and ms;
a delay needs the kernel's netem. Jobs over the first link, the second one, and both take turns. `ideal`: the time of
both rates together, or of the better link if that is shorter. With --check, both together may take 1.08 times the ideal
from 4 MiB on, and 1.1 times the better link at every size.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

from network import Links, launcher

BIN = pathlib.Path(os.environ.get("CANELE_TEST_BIN", "build/release/bin")).resolve()
TIME_LIMIT = 600
NEAR_IDEAL, NEAR_BETTER, LARGE = 1.08, 1.1, 4 << 20
WAYS = {"first": "tcp:eth0", "second": "tcp:eth1", "both": "tcp:eth0+tcp:eth1", "both, turned": "tcp:eth1+tcp:eth0"}


def latency_us(links, drivers, sizes):
    """Returns the time of half a ping-pong of each size."""
    command = [*launcher(BIN / "canele-run", links.ranks, 2), "-x", f"CANELE_DRIVERS={drivers}", "-x",
               "CANELE_SAMPLES=off", str(BIN / "canele-perf"), "latency", "--no-floor", "--size", sizes, "--batches",
               "3", "--json"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True,
                          timeout=TIME_LIMIT)
    report = json.loads(done.stdout)
    return {row["size"]: row["median"] for row in report["results"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--links", default="400,200")
    parser.add_argument("--sizes", default="8,4k,64k,1M,16M,64M")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    rates = options.links.split(",")
    links = Links()
    try:
        links.limit_link("eth0", rates[0])
        links.limit_link("eth1", rates[1])
        rounds = [{way: latency_us(links, drivers, options.sizes) for way, drivers in WAYS.items()}
                  for _ in range(options.rounds)]
    finally:
        links.close()
    bytes_per_us = sum(float(rate.partition("/")[0]) for rate in rates) / 8
    print(f"one way, us, links of {' and '.join(rates)} Mbit/s, medians of {options.rounds}\n"
          f"{'bytes':>10}" + "".join(f"{way:>14}" for way in WAYS) + f"{'to better':>12}{'to ideal':>10}")
    bad = 0
    for size in rounds[0]["both"]:
        times = {way: statistics.median(one[way][size] for one in rounds) for way in WAYS}
        better, both = min(times["first"], times["second"]), max(times["both"], times["both, turned"])
        to_better, to_ideal = both / better, both / min(size / bytes_per_us, better)
        bad += to_better > NEAR_BETTER or (size >= LARGE and to_ideal > NEAR_IDEAL)
        print(f"{size:>10}" + "".join(f"{times[way]:>14.1f}" for way in WAYS) + f"{to_better:>12.2f}{to_ideal:>10.2f}",
              flush=True)
    return 1 if options.check and bad else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""canele-cholesky with one rank in each network name space, on links of limited rate: multicasts against single sends.

Usage: limited.py [--ranks 4,8] [--rate 400] [--n 2400] [--nb 240] [--runs 5] [--ways sends,auto,...] [--check]
By hand; needs root, iproute2. CANELE_TEST_BIN: where the programs are. The ranks form one row. So one rank has a whole
column of tiles, each of which goes to all others, and every rank waits for its link. With --check, a multicast that is
not 10 % faster than sends, or lets the rank send more than half as much of its own, is an error.

The ways alternate within one job, so that other load on the machine affects all of them alike.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "netns"))
from network import Network, launcher  # noqa: E402  pylint: disable=wrong-import-position

BIN = pathlib.Path(os.environ.get("CANELE_TEST_BIN", "build/release/bin")).resolve()
GAIN, OWN_SHARE = 1.10, 0.5
TIME_LIMIT = 600


def run_job(network, ranks, options):
    """Returns the report of every run."""
    command = [*launcher(BIN / "canele-run", network.ranks, ranks),
               "-x", "CANELE_DRIVERS=tcp", str(BIN / "canele-cholesky"), "--grid", f"1x{ranks}", "--json",
               "--n", str(options.n), "--nb", str(options.nb), "--way", options.ways, "--runs", str(options.runs)]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True,
                            timeout=TIME_LIMIT)
    return [json.loads(line) for line in result.stdout.splitlines()]


def own_bytes(report):
    """Returns the number of its own tiles that a rank has sent: the mean over the ranks that have sent any."""
    own = [rank["bytes_sent"] - rank["bytes_forwarded"] for rank in report["ranks"]]
    return statistics.mean(own)


def compare(ranks, options):
    """Prints a table; returns the ways that do not keep what multicasts promise."""
    network = Network(ranks)
    try:
        network.limit(options.rate)
        before = network.sent_bytes()
        reports = run_job(network, ranks, options)
        links = [(now - then) / 1e6 for now, then in zip(network.sent_bytes(), before)]
    finally:
        network.close()
    by_way = {way: [report for report in reports if report["way"] == way] for way in options.ways.split(",")}
    print(f"{ranks} ranks in a row, {options.rate} Mbit/s each, n = {options.n}, tiles of {options.nb}, "
          f"{options.runs} runs of each way in turn")
    print(f"  sent over each link in all [MB]: {' '.join(f'{link:.0f}' for link in links)}")
    print(f"  {'way':<10}{'GFlop/s':>10}{'least':>8}{'most':>8}{'to sends':>10}{'own MB':>10}{'of sends':>10}"
          f"{'wait %':>8}")
    base = statistics.median(one["gflops"] for one in by_way["sends"])
    base_own = own_bytes(by_way["sends"][0])
    late = []
    for way, runs in by_way.items():
        speeds = [one["gflops"] for one in runs]
        speed, own = statistics.median(speeds), statistics.median(own_bytes(one) for one in runs)
        wait = statistics.mean(rank["wait_s"] for one in runs for rank in one["ranks"])
        total = statistics.mean(one["seconds"] for one in runs)
        print(f"  {way:<10}{speed:>10.2f}{min(speeds):>8.2f}{max(speeds):>8.2f}{speed / base:>10.2f}{own / 1e6:>10.1f}"
              f"{own / base_own:>10.2f}{100 * wait / total:>8.0f}")
        if way == "auto" and (speed < GAIN * base or own > OWN_SHARE * base_own):
            late.append(way)
    return late


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--ranks", default="4,8")
    parser.add_argument("--rate", type=int, default=400, help="Mbit/s of each link")
    parser.add_argument("--n", type=int, default=2400)
    parser.add_argument("--nb", type=int, default=240)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--ways", default="sends,auto,flat,chain,binomial,4-nomial")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    late = [f"{ranks} ranks, {way}" for ranks in map(int, options.ranks.split(","))
            for way in compare(ranks, options)]
    for one in late:
        print(f"FAIL: {one}: less than {GAIN} times as fast as sends, or the root sends more than {OWN_SHARE} of its "
              "own")
    return 1 if late and options.check else 0


if __name__ == "__main__":
    sys.exit(main())

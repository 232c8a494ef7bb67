#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""canele-cholesky: right by every way; multicasts relieve the root; a damaged byte and a wrong grid are noticed.

Usage: cholesky_test.py --driver NAME [unittest's options]
Run by ctest. CANELE_TEST_BIN: where the programs are. The data that a rank sends of its own is counted in bytes, not
timed, so the result is the same on every machine.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import unittest

BIN = pathlib.Path(os.environ.get("CANELE_TEST_BIN", "build/release/bin")).resolve()
DRIVER = "tcp"
RESIDUAL = 30
WAYS = ["sends", "auto", "flat", "chain", "binomial", "4-nomial", "8-nomial"]


def run(ranks, *options, **settings):
    settings = {"CANELE_DRIVERS": DRIVER, **settings}
    words = [word for name, value in settings.items() for word in ("-x", f"{name}={value}")]
    command = [str(BIN / "canele-run"), "-n", str(ranks), *words, str(BIN / "canele-cholesky"), *options]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


class Cholesky(unittest.TestCase):
    def runs(self, ranks, *options):
        """Returns the report of each run, by way."""
        result = run(ranks, "--json", *options)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        reports = [json.loads(line) for line in result.stdout.splitlines()]
        for report in reports:
            self.assertLessEqual(report["residual"], RESIDUAL)
            self.assertEqual(len(report["ranks"]), ranks)
        return {report["way"]: report for report in reports}

    def test_every_way_is_right(self):
        for ranks, grid in ((4, "2x2"), (3, "3x1"), (1, "1x1")):
            reports = self.runs(ranks, "--n", "500", "--nb", "96", "--grid", grid, "--way", ",".join(WAYS),
                                "--look-ahead", "2", "--threads", "2")
            self.assertEqual(list(reports), WAYS)

    def test_multicasts_relieve_the_root(self):
        """In a row of four ranks, most tiles of the factor go to the three others. How much these forward depends on
        when the others ask: a rank that asks late asks the root.
        """
        if DRIVER == "shm":
            self.skipTest("readers copy from the root's memory themselves: no rank forwards")
        reports = self.runs(4, "--n", "1536", "--nb", "96", "--grid", "1x4", "--way", "sends,chain,binomial")

        def bytes_of(way, what):
            return sum(rank[what] for rank in reports[way]["ranks"])

        def own(way):
            return bytes_of(way, "bytes_sent") - bytes_of(way, "bytes_forwarded")

        self.assertEqual(bytes_of("sends", "bytes_forwarded"), 0)
        self.assertGreater(bytes_of("chain", "wide_sends"), 50)
        self.assertLess(own("chain"), 0.8 * own("sends"))
        self.assertLess(own("binomial"), 0.9 * own("sends"))
        for way in ("chain", "binomial"):  # nothing arrives twice
            self.assertEqual(bytes_of(way, "bytes_sent"), bytes_of("sends", "bytes_sent"))

    def test_a_damaged_byte_is_noticed(self):
        result = run(2, "--n", "400", "--nb", "100", CANELE_EXPERT_FAULT="flip-byte:1")
        self.assertNotEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertRegex(result.stderr, "the factor is wrong|not positive definite")

    def test_bad_grid(self):
        result = run(2, "--grid", "2x2")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("a grid of 2x2 does not fit 2 ranks", result.stderr)
        result = run(1, "--grid", "2x")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("'2x' is not a grid", result.stderr)


if __name__ == "__main__":
    PARSER = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    PARSER.add_argument("--driver", required=True)
    KNOWN, REST = PARSER.parse_known_args()
    DRIVER = KNOWN.driver
    unittest.main(argv=[sys.argv[0], *REST])

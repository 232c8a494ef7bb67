#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The simulated tile Cholesky: each optimisation pays where it should, and only while there is something to gain.

Run by ctest (label unit), where the simulator is built. Virtual time is equal on every machine, so times are compared
here, exactly.
"""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

SIM = pathlib.Path(os.environ["CANELE_TEST_BIN"]) / "canele-sim"
SMALL = ["--workload", "cholesky", "--ranks", "16", "--tiles", "24"]
LIST = ["--shuffled", "--setting", "CANELE_EXPERT_MATCHER=list"]


def sim(*arguments):
    done = subprocess.run([str(SIM), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


class Cholesky(unittest.TestCase):
    def figures(self, *options):
        status, text = sim(*SMALL, "--check-repeat", "0", *options)
        self.assertEqual(status, 0, text)
        line, = [line for line in text.splitlines() if line.startswith("cholesky:")]
        return dict(part.split("=") for part in line.split() if "=" in part)

    def milliseconds(self, *options):
        return float(self.figures(*options)["ms"])

    def test_multicasts_pay_because_bandwidth_is_limited(self):
        sends, multicasts = self.figures("--way", "sends"), self.figures("--way", "auto")
        self.assertGreater(float(sends["ms"]), 1.2 * float(multicasts["ms"]))
        self.assertEqual(sends["forwarded"], "0")
        self.assertGreater(int(multicasts["forwarded"]), int(multicasts["bytes"]) // 2)

        free = ["--bandwidth", "inf"]
        ratio = self.milliseconds("--way", "sends", *free) / self.milliseconds("--way", "auto", *free)
        self.assertTrue(0.95 < ratio < 1.05, ratio)

    def test_a_list_costs_what_its_comparisons_cost(self):
        table, free = self.figures("--shuffled"), self.figures(*LIST)
        self.assertEqual(table["ms"], free["ms"], "a matcher whose comparisons cost nothing is as good as the table")
        self.assertEqual(float(table["comparisons_per_message"]), 0)
        self.assertGreater(float(free["comparisons_per_message"]), 10)
        dear = self.milliseconds(*LIST, "--comparison-ns", "2000")
        self.assertGreater(dear, 1.03 * float(table["ms"]))

    def test_who_must_be_asked_is_late(self):
        worker = self.milliseconds()
        self.assertLess(self.milliseconds("--test-ns", "5"), 1.02 * worker)
        self.assertGreater(self.milliseconds("--test-ns", "5000"), 1.5 * worker)

    def test_the_same_seed_is_the_same_run(self):
        status, text = sim(*SMALL, "--check-repeat", "1")
        self.assertEqual(status, 0, text)
        self.assertNotIn("went another way", text)

    def test_events_are_those_of_a_real_run(self):
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory, "trace.json")
            status, text = sim(*SMALL, "--trace", str(file))
            self.assertEqual(status, 0, text)
            events = json.loads(file.read_text(encoding="utf-8"))["traceEvents"]
        self.assertEqual({event["pid"] for event in events}, set(range(16)))
        self.assertEqual(sum(event["name"] == "receive_done" for event in events), int(self.figures()["received"]))

        status, text = sim(*SMALL, "--trace", "/no/such/place")
        self.assertNotEqual(status, 0)
        self.assertIn("cannot write /no/such/place", text)
        status, text = sim(*SMALL, "--runs", "2", "--trace", "/dev/null")
        self.assertNotEqual(status, 0)
        self.assertIn("one run", text)

    def test_nothing_is_refused_without_a_reason(self):
        for wrong, reason in ((["--way", "pigeon"], "pigeon"), (["--bandwidth", "0"], "not in range"),
                              (["--tiles", "0"], "not in range"), (["--strategy", "lifo"], "lifo")):
            status, text = sim(*SMALL, *wrong)
            self.assertNotEqual(status, 0)
            self.assertIn(reason, text)


if __name__ == "__main__":
    unittest.main()

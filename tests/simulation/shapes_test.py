#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""One message to many in the simulator: the shape that the engine chooses is near the best one, and the test would
notice if it were not.

Run by ctest (label unit), where the simulator is built. Virtual time is equal on every machine, so the table is,
too.
"""
import os
import pathlib
import subprocess
import unittest

SIM = pathlib.Path(os.environ["CANELE_TEST_BIN"]) / "canele-sim"


def shapes(*options):
    done = subprocess.run([str(SIM), "--workload", "shapes", "--check-repeat", "0", *options], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


class Shapes(unittest.TestCase):
    def test_the_choice_is_near_the_best(self):
        for network in ([], ["--latency", "20", "--bandwidth", "0.05"]):
            status, text = shapes(*network)
            self.assertEqual(status, 0, text)
            self.assertIn("of 30 points", text)

    def test_a_bad_choice_is_noticed(self):
        status, text = shapes("--ranks", "8", "--setting", "CANELE_EXPERT_MULTICAST=flat")
        self.assertNotEqual(status, 0, text)
        self.assertIn("near the best shape at too few points", text)

    def test_a_world_that_does_not_start_is_told(self):
        status, text = shapes("--ranks", "3", "--setting", "CANELE_EXPERT_MULTICAST=pigeon")
        self.assertNotEqual(status, 0, text)
        self.assertIn("FAILED", text)


if __name__ == "__main__":
    unittest.main()

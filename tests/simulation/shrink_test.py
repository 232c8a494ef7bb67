#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""canele-sim --shrink finds the smallest job for a failure that the engine's own fault switch plants.

Run by ctest (label unit), where the simulator is built. CANELE_EXPERT_FAULT=flip-byte:N inverts one bit of the Nth
message of 1,024 bytes or more that a rank receives. So a few ranks and N messages suffice, without any fault of the
simulated world.
"""
import os
import pathlib
import subprocess
import unittest

SIM = pathlib.Path(os.environ["CANELE_TEST_BIN"]) / "canele-sim"
FLIP = ["--setting", "CANELE_EXPERT_FAULT=flip-byte:1"]
FLIP_THIRD = ["--setting", "CANELE_EXPERT_FAULT=flip-byte:3"]


def sim(*arguments):
    done = subprocess.run([str(SIM), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout.splitlines()


class Shrink(unittest.TestCase):
    def test_finds_the_smallest_job(self):
        status, lines = sim("--seed", "1", "--messages", "200", *FLIP_THIRD, "--shrink")
        self.assertEqual(status, 1, lines)
        self.assertIn("has a wrong byte at #", lines[-2])
        command = lines[-1].split()
        for option, value in (("--ranks", "2"), ("--faults", "none")):
            self.assertEqual(command[command.index(option) + 1], value, lines[-1])

        status, lines = sim(*command[1:])
        self.assertEqual(status, 1, "the command that was printed does not fail")
        self.assertRegex(lines[0], r", 3 messages$", "not one of the three can be left out, and no more are needed")
        self.assertRegex(lines[1], "has a wrong byte at")

    def test_says_that_a_good_run_has_nothing_to_shrink(self):
        status, lines = sim("--seed", "1", "--messages", "60", "--faults", "none", "--shrink")
        self.assertEqual(status, 2)
        self.assertIn("does not fail", lines[-1])


class Options(unittest.TestCase):
    def test_first_only_stops_at_the_failure(self):
        status, lines = sim("--seed", "1", "--runs", "50", "--messages", "60", *FLIP, "--first-only")
        self.assertEqual(status, 1)
        self.assertEqual(lines[-1], "runs until the first failure: 1")
        self.assertTrue(lines[-2].startswith("1 runs, 1 failed"), lines[-2])

    def test_a_good_slice_says_so_in_its_last_line(self):
        status, lines = sim("--seed", "1", "--runs", "2", "--messages", "60", "--faults", "none", "--first-only")
        self.assertEqual((status, lines[-1]), (0, "no failure in 2 runs"))

    def test_keep_sends_these_messages_only(self):
        _, lines = sim("--seed", "1", "--messages", "60", "--faults", "none", "--keep", "3,7-9")
        self.assertRegex(lines[0], r", 4 messages;")

    def test_a_malformed_list_is_refused(self):
        for wrong in ("x", "3,", "9-3", "3--4", "4294967296"):
            status, lines = sim("--keep", wrong)
            self.assertEqual(status, 2, wrong)
            self.assertIn("is not a list of messages", lines[-1])


if __name__ == "__main__":
    unittest.main()

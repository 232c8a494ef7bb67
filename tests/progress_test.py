#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests tests/progress.sh: what a step shows and returns, and that a script's last command runs once, in the script.

The script's last command is a race inside bash, so it is tried a thousand times beside processes that keep every
processor busy. A bare EXIT trap ran in one of a thousand children, sometimes of a hundred.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRESS = pathlib.Path(__file__).resolve().parent / "progress.sh"


def script(text):
    return subprocess.run(["bash", "-euo", "pipefail", "-c", f"source {PROGRESS}\n{text}"], capture_output=True,
                          text=True, check=False)


class StepTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.log = pathlib.Path(directory.name) / "logs" / "step"

    def test_returns_what_the_command_returns(self):
        self.assertEqual(script(f"step walk {self.log} true").returncode, 0)
        self.assertEqual(script(f"step walk {self.log} sh -c 'exit 7'").returncode, 7)

    def test_shows_the_log_of_a_failure_only(self):
        self.assertNotIn("a word", script(f"step walk {self.log} echo a word").stdout)
        self.assertEqual(self.log.read_text(encoding="utf-8"), "a word\n")
        self.assertIn("    | a word", script(f"step walk {self.log} sh -c 'echo a word; exit 1' || true").stdout)


class AtExitTest(unittest.TestCase):
    def setUp(self):
        for _ in range(2 * os.cpu_count()):
            busy = subprocess.Popen(["sh", "-c", "while :; do :; done"])
            self.addCleanup(busy.wait)
            self.addCleanup(busy.kill)

    def test_runs_in_the_script_and_in_no_child(self):
        result = script('''at_exit 'echo "$BASHPID"'
            echo "$$"
            for ((turn = 0; turn < 1000; ++turn)); do
              progress_ticker title log &
              kill $!
              wait $! || true
            done 2>/dev/null''')
        lines = result.stdout.split()
        self.assertEqual(len(lines), 2, lines)
        self.assertEqual(lines[0], lines[1])

    def test_runs_after_a_failure(self):
        result = script("at_exit 'echo over'\nfalse")
        self.assertEqual((result.returncode, result.stdout), (1, "over\n"))


if __name__ == "__main__":
    sys.argv += ["-v"]
    unittest.main()

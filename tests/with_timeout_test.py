#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests tests/with-timeout: exit codes, time limit with stacks, processes left behind in another session."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

WRAPPER = pathlib.Path(__file__).resolve().parent / "with-timeout"


def run(*arguments):
    return subprocess.run([str(WRAPPER), *arguments], capture_output=True, text=True, check=False)


def alive(pid):
    return os.path.exists(f"/proc/{pid}") and " Z " not in pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")


def state(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]


def has_child(pid):
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8") != ""


class WithTimeoutTest(unittest.TestCase):
    def test_passes_the_exit_code_on(self):
        self.assertEqual(run("20", "sh", "-c", "exit 0").returncode, 0)
        self.assertEqual(run("20", "sh", "-c", "exit 77").returncode, 77)

    def test_tells_a_signal(self):
        self.assertEqual(run("20", "sh", "-c", "kill -SEGV $$").returncode, 128 + 11)

    def test_names_a_command_that_is_not_there(self):
        result = run("20", "/nonexistent/program")
        self.assertEqual(result.returncode, 127)
        self.assertIn("/nonexistent/program", result.stderr)

    def test_shows_stacks_and_ends_all_processes_at_the_limit(self):
        # The inner shell runs in a session of its own, as launchers do with their ranks.
        script = "setsid sh -c 'echo $$; exec sleep 600' & exec sleep 600"
        result = run("1", "sh", "-c", script)
        self.assertEqual(result.returncode, 124)
        self.assertEqual(result.stderr.count("===== process"), 2, result.stderr)
        self.assertFalse(alive(int(result.stdout)))

    def test_lets_a_slow_command_end(self):
        # The command takes twice the limit, and sleeps a third of that time.
        script = "for i in 1 2 3 4; do timeout 1 sh -c 'while :; do :; done'; sleep 0.5; done; echo done"
        result = run("3", "sh", "-c", script)
        self.assertEqual((result.returncode, result.stdout), (0, "done\n"), result.stderr)

    def test_ends_what_works_for_ever(self):
        result = run("0.5", "sh", "-c", "while :; do :; done")
        self.assertEqual(result.returncode, 124)
        self.assertRegex(result.stderr, r"time limit of 0.5 s hit, it has (used|taken) [0-9]+ s")
        self.assertIn("===== process", result.stderr)

    def test_counts_what_short_processes_use(self):
        result = run("0.5", "sh", "-c", "while :; do /bin/true; done")
        self.assertEqual(result.returncode, 124)
        self.assertRegex(result.stderr, r"it has (used|taken) [0-9]+ s")

    def test_ends_what_only_wakes(self):
        result = run("2", "sh", "-c", "while :; do sleep 1; done")
        self.assertEqual(result.returncode, 124)
        self.assertRegex(result.stderr, r"it (stands still|has taken [0-9]+ s)")  # the latter beside much other work

    def test_writes_the_stacks_where_it_is_told(self):
        with tempfile.TemporaryDirectory() as directory:
            stacks = pathlib.Path(directory) / "stacks"
            self.assertEqual(run("--stacks", str(stacks), "1", "sleep", "600").returncode, 124)
            self.assertIn("===== process", stacks.read_text(encoding="utf-8"))

    def test_finds_processes_left_behind(self):
        result = run("20", "sh", "-c", "setsid sleep 600 >/dev/null 2>&1 & echo $!")
        self.assertEqual(result.returncode, 125)
        self.assertIn("left behind: sleep", result.stderr)
        self.assertFalse(alive(int(result.stdout)))

    def test_outlives_being_stopped(self):
        with subprocess.Popen([str(WRAPPER), "--stdin", "20", "cat"], stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as wrapper:
            while not (has_child(wrapper.pid) and state(wrapper.pid) == "S"):
                self.assertIsNone(wrapper.poll())
            wrapper.send_signal(signal.SIGSTOP)
            time.sleep(1.2)  # it looks at its command each second
            wrapper.send_signal(signal.SIGCONT)
            _, errors = wrapper.communicate()
        self.assertEqual((wrapper.returncode, errors), (0, ""))

    def test_gives_no_input(self):
        self.assertEqual(run("20", "cat").returncode, 0)


if __name__ == "__main__":
    sys.argv += ["-v"]
    unittest.main()

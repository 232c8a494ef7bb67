#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Provokes hangs, reads the reports, removes the causes, and checks that the jobs then end well.

Run by ctest. CANELE_TEST_BIN: where the programs are. No time is measured. A stopped rank is continued when the report
of the other one has been read; without a report the test runs into its time limit.
"""
import os
import pathlib
import re
import signal
import subprocess
import unittest

BIN = pathlib.Path(os.environ.get("CANELE_TEST_BIN", "build/release/bin")).resolve()


class Job:
    """Two ranks with one cause. `report`: the lines of rank 0's first whole report that has `wanted` in it."""

    def __init__(self, cause, settings, wanted):
        command = [str(BIN / "canele-run"), "-n", "2"]
        for setting in ("CANELE_HANG_REPORT=1", *settings):
            command += ["-x", setting]
        self.lines, self.report, self.stopped = [], [], 0
        self.wanted = wanted
        with subprocess.Popen(
            [*command, str(BIN / "process_hang"), cause], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            for line in process.stdout:
                self.take(line.rstrip("\n").replace("canele: warning: ", "", 1))
            self.code = process.wait()

    def take(self, line):
        self.lines.append(line)
        if line.startswith("stopping "):
            self.stopped = int(line.split()[1])
        if line.startswith("  likely: ") and not self.report:
            first = max(i for i, text in enumerate(self.lines) if "report: " in text)
            report = self.lines[first:]
            if "rank 0 of 2" in report[0] and self.wanted in line:
                self.report = report
                self.go_on()

    def go_on(self):
        if self.stopped:
            os.kill(self.stopped, signal.SIGCONT)

    def row(self, pattern):
        """Returns the groups of the only line of the report that matches."""
        found = [match for line in self.report if (match := re.fullmatch(pattern, line))]
        return found[0].groups() if len(found) == 1 else None

    def output(self):
        return "\n".join(self.lines)


class Hangs(unittest.TestCase):
    def job(self, cause, settings, wanted):
        job = Job(cause, settings, wanted)
        self.assertTrue(job.report, job.output())
        self.assertEqual(job.code, 0, job.output())
        self.assertEqual(sum(line.endswith(": done") for line in job.lines), 2, job.output())
        return job

    def check(self, job, row, peer):
        self.assertIsNotNone(job.row(row), f"{row}\n{job.output()}")
        self.assertIsNotNone(job.row(peer), f"{peer}\n{job.output()}")

    def test_a_receive_that_is_not_posted(self):
        for settings in (["CANELE_DRIVERS=shm"], ["CANELE_DRIVERS=tcp", "CANELE_WORKER=bound"]):
            driver = settings[0].split("=")[1]
            with self.subTest(settings=settings):
                job = self.job("unposted", settings, 'rank 1 has posted no receive for tag 7 of session "hang"')
                self.assertTrue(job.report[0].startswith("callback: hang report: "), job.output())
                self.assertIn("(CANELE_HANG_REPORT=1)", job.report[0])
                self.check(
                    job,
                    r"  \*  send 0x[0-9a-f]+ +1 +hang +7 +1048576 +[0-9.]+ s +announced, waits for the receiver .*",
                    rf"  1 +up +{driver}: up +0 \(0 bytes\) +\d+, \d+ +[0-9.]+ s ago",
                )
                self.assertIsNotNone(job.row(r"  blocked threads: a wait for [0-9.]+ s"), job.output())
                worker = r"(polling|sleeping), heartbeat \d+, .*"
                if len(settings) == 1:
                    worker = r"none; on-demand thread: (sleeping|checking|polling)"
                self.assertIsNotNone(job.row(r"  worker: " + worker), job.output())
                self.assertIn("rank 1: data of tag 7 right", job.lines)

    def test_a_sender_that_is_stopped(self):
        for settings in (["CANELE_DRIVERS=shm", "CANELE_WORKER=bound"], ["CANELE_DRIVERS=tcp"]):
            driver = settings[0].split("=")[1]
            with self.subTest(settings=settings):
                job = self.job("stopped", settings, 'rank 1 has sent no message with tag 7 of session "hang"')
                self.assertTrue(job.report[0].startswith("rank 0: hang report: "), job.output())
                self.check(
                    job,
                    r"  \*  receive 0x[0-9a-f]+ +1 +hang +7 +1048576 +[0-9.]+ s +waits for a message",
                    rf"  1 +up +{driver}: up +0 \(0 bytes\) +\d+, \d+ +[0-9.]+ s ago",
                )
                self.assertIsNotNone(job.row(rf"  driver {driver}: 1 peer, last event .*"), job.output())
                self.assertIn("rank 0: data of tag 7 right", job.lines)

    def test_a_connection_that_does_not_come_up(self):
        job = self.job("connecting", ["CANELE_DRIVERS=tcp"], "rank 1 is still connecting by tcp")
        self.check(
            job,
            r"  \*  send 0x[0-9a-f]+ +1 +hang +7 +3 +[0-9.]+ s +queued, waits for the connection",
            r"  1 +connecting +tcp: connecting +2 \(\d+ bytes\) +0, 0 +none",
        )
        self.assertIn("rank 1: data of tag 7 right", job.lines)

    def test_nobody_makes_progress(self):
        settings = ["CANELE_DRIVERS=shm", "CANELE_WORKER=none"]
        job = self.job("nobody", settings, "no thread makes progress: there is no worker")
        self.assertTrue(job.report[0].startswith("asked: report: "), job.output())
        self.check(
            job,
            r"     send 0x[0-9a-f]+ +1 +hang +7 +1048576 +[0-9.]+ s +announced, waits for the receiver .*",
            r"  blocked threads: none",
        )
        self.assertIn("rank 1: data of tag 7 right", job.lines)


if __name__ == "__main__":
    unittest.main(verbosity=2)

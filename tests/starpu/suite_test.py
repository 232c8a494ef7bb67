#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests the tools around StarPU themselves, without StarPU: the check of the traffic, verdicts, apt lines."""
import json
import pathlib
import tempfile
import unittest
from unittest import mock

import deb_src_lines
import run_suite
import traffic


def report(rank, size, driver, peers):
    """Returns counters of a rank that sent {peer: (messages, bytes)} over one driver."""
    return {
        "rank": rank,
        "size": size,
        "drivers": [{"name": driver, "packets_sent": 1, "bulk_bytes_sent": 0}],
        "peers": [
            {"rank": peer, "driver": driver, "counters": {"messages_sent": count, "bytes_sent": size_sent}}
            for peer, (count, size_sent) in peers.items()
        ],
    }


class TrafficTest(unittest.TestCase):
    def good(self):
        return [report(0, 2, "shm", {1: (3, 300), 0: (1, 1)}), report(1, 2, "shm", {0: (0, 0)})]

    def test_a_good_job(self):
        self.assertEqual(traffic.problems(self.good(), 2, "shm"), [])
        self.assertEqual(traffic.flows(self.good())[0, 1], ("shm", 3, 300))

    def test_a_missing_rank(self):
        self.assertIn("ranks [0] where", traffic.problems(self.good()[:1], 2, "shm")[0])

    def test_singletons_instead_of_a_job(self):
        reports = [report(0, 1, "self", {}), report(0, 1, "self", {})]
        self.assertTrue(any("in a job of 1, not of 2" in text for text in traffic.problems(reports, 2, "shm")))

    def test_another_driver(self):
        self.assertIn("rank 0 reached rank 1 over 'shm', not over 'tcp'", traffic.problems(self.good(), 2, "tcp"))

    def test_a_silent_pair(self):
        reports = [
            report(0, 3, "shm", {1: (1, 1), 2: (1, 1)}),
            report(1, 3, "shm", {2: (0, 0)}),
            report(2, 3, "shm", {}),
        ]
        self.assertEqual(traffic.problems(reports, 3, "shm"), ["ranks 1 and 2 exchanged no message"])

    def test_totals_leave_out_messages_to_oneself(self):
        with tempfile.TemporaryDirectory() as directory:
            for one in self.good():
                (pathlib.Path(directory) / f"{one['rank']}.json").write_text(json.dumps(one), encoding="utf-8")
            self.assertEqual(traffic.totals(directory), (3, 300))


class VerdictTest(unittest.TestCase):
    def test_exit_codes(self):
        self.assertEqual(
            [run_suite.verdict(code, False) for code in (0, 77, 1, 134, 124)], ["PASS", "SKIP", "FAIL", "FAIL", "HANG"]
        )
        self.assertEqual(
            [run_suite.verdict(code, True) for code in (0, 77, 134, 124)], ["XPASS", "XPASS", "XFAIL", "HANG"]
        )

    def outcome(self, codes):
        """Returns the result of a program whose runs end with these codes, and how often it was run."""
        runs = iter(codes)
        with mock.patch.object(run_suite, "run_once", lambda *_: (next(runs), 1.0, 0, 0, 0)):
            record = run_suite.run_program(None, "program", False, pathlib.Path("/nowhere"))
        return record["result"], len(record["attempts"])

    def test_a_hang_is_run_twice_more(self):
        self.assertEqual(self.outcome([124, 0, 0]), ("FLAKY", 3))
        self.assertEqual(self.outcome([124, 124, 0]), ("FLAKY", 3))
        self.assertEqual(self.outcome([124, 124, 124]), ("HANG", 3))

    def test_a_failure_is_never_excused(self):
        self.assertEqual(self.outcome([1]), ("FAIL", 1))
        self.assertEqual(self.outcome([124, 0, 1]), ("FAIL", 3))
        self.assertEqual(self.outcome([124, 1, 0]), ("FAIL", 3))


class AptTest(unittest.TestCase):
    def test_both_formats(self):
        line = "deb [signed-by=/k.gpg arch=amd64] http://x/debian bookworm main contrib # note\n#deb http://y z main\n"
        self.assertEqual(
            list(deb_src_lines.one_line_entries(line)),
            [("signed-by=/k.gpg arch=amd64", "http://x/debian", "bookworm", ["main", "contrib"])],
        )
        stanza = (
            "Types: deb deb-src\n# note\nURIs: http://x/debian\nSuites: bookworm\n bookworm-updates\nComponents: main\n"
        )
        disabled = "\n\nTypes: deb\nEnabled: no\nURIs: http://z\nSuites: s\nComponents: main\n"
        found = list(deb_src_lines.deb822_entries(stanza + disabled))
        self.assertEqual([entry[2] for entry in found], ["bookworm", "bookworm-updates"])


if __name__ == "__main__":
    unittest.main(verbosity=2)

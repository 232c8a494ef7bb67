# SPDX-License-Identifier: BSD-3-Clause
"""canele-perf am as users run it: the form of the output.

Run by ctest, which names the programs' directory in CANELE_TEST_BIN; by hand: see README.md. The program checks the
messages itself.
"""
import itertools
import json
import unittest

from tools_test import BIN, run

KINDS, MEASURES = ("handler", "queue", "concurrent", "inject", "call"), ("latency", "rate")
QUICK = ("--batches", "3", "--iterations", "20")
MOST_INJECTED = 496  # bytes: CANELE_LIMIT_INJECT, less the library's word and the program's header


class ActiveTest(unittest.TestCase):
    def measure(self, *arguments):
        return json.loads(run("canele-perf", "am", *arguments, *QUICK, "--json")[0])

    def check_row(self, row, floor):
        latency = row["measure"] == "latency"
        self.assertEqual(row["unit"], "us" if latency else "messages/s")
        self.assertEqual(("ratio" in row, "floor" in row), (floor, floor))
        if latency:
            self.assertEqual(row["window"], 1)
        self.assertEqual(row["messages_per_batch"], max(1, 20 // row["window"]) * row["window"])
        for samples in [row] + ([row["floor"]] if floor else []):
            self.assertEqual(len(samples["samples"]), 3)
            self.assertGreater(samples["p10"], 0)
            self.assertLessEqual(samples["p10"], samples["median"])
            self.assertLessEqual(samples["median"], samples["p90"])

    def test_all_kinds(self):
        """Each combination has its row, in the order of the options; messages too long to be injected are named."""
        sizes = (0, 8, MOST_INJECTED, MOST_INJECTED + 1, 2000, 102400)
        for driver in ("shm", "tcp"):
            with self.subTest(driver=driver):
                report = self.measure("--driver", driver, "--size", ",".join(map(str, sizes)))
                self.assertEqual((report["benchmark"], report["driver"]), ("am", driver))
                self.assertEqual((len(report["cores"]), report["waits"]), (2, "canele_condition_wait"))
                self.assertEqual(report["most_injected"], MOST_INJECTED)
                self.assertEqual(report["too_long_to_inject"], [size for size in sizes if size > MOST_INJECTED])
                found = [(row["kind"], row["size"], row["measure"]) for row in report["results"]]
                self.assertEqual(found, [(kind, size, measure)
                                         for kind, size, measure in itertools.product(KINDS, sizes, MEASURES)
                                         if kind != "inject" or size <= MOST_INJECTED])
                for row in report["results"]:
                    self.check_row(row, True)

    def test_usual_sizes_and_windows(self):
        rows = self.measure("--driver", "shm", "--kind", "handler", "--measure", "rate", "--no-floor")["results"]
        self.assertEqual([(row["size"], row["window"]) for row in rows],
                         [(8, 64), (256, 64), (1 << 10, 64), (4 << 10, 64), (64 << 10, 16)])

    def test_chosen_rows(self):
        """A window longer than a queue of active messages, which is 256."""
        rows = self.measure("--driver", "shm", "--kind", "queue,call", "--measure", "rate", "--window", "300", "--size",
                            "8", "--no-floor")["results"]
        self.assertEqual([(row["kind"], row["window"], row["messages_per_batch"]) for row in rows],
                         [("queue", 300, 300), ("call", 300, 300)])
        for row in rows:
            self.check_row(row, False)

    def test_main_threads_that_poll(self):
        report = self.measure("--poll", "--size", "8,2000")
        self.assertEqual(report["waits"], "canele_progress")
        for row in report["results"]:
            self.check_row(row, True)

    def test_with_a_worker(self):
        """Handlers then run on the worker, beside the main thread."""
        for kind in KINDS:
            with self.subTest(kind=kind):
                text, _ = run("canele-perf", "am", *QUICK, "--kind", kind, "--size", "8", "--json",
                              CANELE_WORKER="bound")
                for row in json.loads(text)["results"]:
                    self.check_row(row, True)

    def test_table(self):
        text, _ = run("canele-perf", "am", *QUICK, "--driver", "shm", "--size", "8,4k", "--kind", "handler,inject")
        for pattern in ("canele-perf am, driver shm", "rank 0 on core", "floor: the same exchange", "median .* ratio",
                        "inject: payloads of 4096 bytes are left out; at most 496 bytes",
                        r"handler +4096 latency +1 .* \d\.\d\d   us", r"inject +8 rate +64 .* \d\.\d\d   messages/s"):
            self.assertRegex(text, pattern)
        text, _ = run("canele-perf", "am", *QUICK, "--driver", "shm", "--size", "8", "--no-floor", "--kind", "call")
        self.assertRegex(text, r"call +8 rate .* -   messages/s")
        self.assertNotIn("left out", text)

    def test_uses_the_ranks_it_is_given(self):
        text, _ = run("canele-run", "-n", "2", str(BIN / "canele-perf"), "am", *QUICK, "--size", "8", "--no-pin",
                      "--json")
        report = json.loads(text)
        self.assertEqual((report["benchmark"], report["cores"]), ("am", [-1, -1]))

    def test_bad_input(self):
        for arguments, word in ((["--kind", "reply"], "reply"), (["--measure", "speed"], "speed"),
                                (["--size", "2G"], "not in range"), (["--window", "0"], "not in range"),
                                (["--window", "4097"], "not in range")):
            with self.subTest(arguments=arguments):
                self.assertIn(word, run("canele-perf", "am", *arguments, code=105)[1])
        self.assertIn("--memory", run("canele-perf", "am", "--memory", "mapped", code=109)[1])
        self.assertIn("smh", run("canele-perf", "am", "--driver", "smh", code=1)[1])
        self.assertIn("cannot pin", run("canele-perf", "am", "--cores", "4095", code=1)[1])
        _, errors = run("canele-run", "-n", "3", str(BIN / "canele-perf"), "am", code=1)
        self.assertIn("this job has 3 ranks; expected: two", errors)


if __name__ == "__main__":
    unittest.main()

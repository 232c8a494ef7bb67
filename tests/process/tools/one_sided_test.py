# SPDX-License-Identifier: BSD-3-Clause
"""canele-perf put, get and atomics as users run them, and the same measurement by other MPIs: the form of the output.

Run by ctest, which names the programs' directory in CANELE_TEST_BIN; by hand: see README.md. The programs check the
data themselves. The other MPIs may be installed or not.
"""
import itertools
import json
import os
import sys
import tempfile
import types
import unittest
import unittest.mock

from tools_test import BIN, SOURCE, run

sys.path.insert(0, str(SOURCE / "apps" / "perf" / "peers"))
# pylint: disable=wrong-import-position
import contenders

MEMORIES, MEASURES = ("mapped", "registered"), ("latency", "rate")
ATOMICS = ("fetch-and-add", "compare-and-swap")
QUICK = ("--batches", "3", "--iterations", "20")
FEW = 64  # operations of a batch. The ranks of some MPIs never yield, so each operation takes long if they share a core


class OneSidedTest(unittest.TestCase):
    """Both ranks are on this host, so that rank 0 can map the memory that rank 1 has allocated, over any driver."""

    def measure(self, *arguments):
        return json.loads(run("canele-perf", *arguments, *QUICK, "--json")[0])

    def check(self, report, driver, operations, sizes):
        """Checks that each combination has its row, in the order of the options."""
        self.assertEqual(report["driver"], driver)
        self.assertEqual(len(report["cores"]), 2)
        found = [(row["memory"], row["operation"], row["size"], row["measure"]) for row in report["results"]]
        self.assertEqual(found, list(itertools.product(MEMORIES, operations, sizes, MEASURES)))
        for row in report["results"]:
            self.check_row(row)

    def check_row(self, row):
        mapped, latency = row["memory"] == "mapped", row["measure"] == "latency"
        self.assertEqual(row["unit"], "us" if latency else "operations/s")
        self.assertEqual(row["mapped"], mapped)
        self.assertEqual(("ratio" in row, "floor" in row), (mapped, mapped))
        if latency:
            self.assertEqual(row["window"], 1)
        self.assertEqual(row["operations_per_batch"], max(1, 20 // row["window"]) * row["window"])
        self.assertEqual(len(row["samples"]), 3)
        self.assertGreater(row["p10"], 0)
        self.assertLessEqual(row["p10"], row["median"])
        self.assertLessEqual(row["median"], row["p90"])

    def test_put_and_get(self):
        for operation, driver in itertools.product(("put", "get"), ("shm", "tcp")):
            with self.subTest(operation=operation, driver=driver):
                report = self.measure(operation, "--driver", driver, "--size", "1,8,100k")
                self.assertEqual(report["benchmark"], operation)
                self.check(report, driver, [operation], [1, 8, 102400])

    def test_puts_that_notify(self):
        for driver in ("shm", "tcp"):
            with self.subTest(driver=driver):
                rows = self.measure("put", "--driver", driver, "--size", "8,100k", "--measure", "notified")["results"]
                self.assertEqual([(row["memory"], row["size"], row["measure"], row["unit"]) for row in rows],
                                 [(memory, size, "notified", "us") for memory in ("mapped", "registered")
                                  for size in (8, 102400)])
                self.assertTrue(all(row["median"] > 0 for row in rows))

    def test_atomics(self):
        for driver in ("shm", "tcp"):
            with self.subTest(driver=driver):
                self.check(self.measure("atomics", "--driver", driver, "--size", "4,8"), driver, ATOMICS, [4, 8])

    def test_usual_sizes_and_windows(self):
        rows = self.measure("put", "--driver", "shm", "--memory", "registered", "--measure", "rate")["results"]
        self.assertEqual([(row["size"], row["window"]) for row in rows],
                         [(8, 64), (4 << 10, 64), (64 << 10, 16), (1 << 20, 4)])
        rows = self.measure("atomics", "--driver", "shm", "--memory", "mapped", "--measure", "rate")["results"]
        self.assertEqual([(row["operation"], row["size"], row["window"]) for row in rows],
                         [(operation, 8, 64) for operation in ATOMICS])

    def test_chosen_rows(self):
        row, = self.measure("atomics", "--driver", "shm", "--operation", "compare-and-swap", "--memory", "mapped",
                            "--measure", "rate", "--window", "5", "--no-floor")["results"]
        self.assertEqual((row["operation"], row["window"], row["operations_per_batch"]), ("compare-and-swap", 5, 20))
        self.assertNotIn("floor", row)

    def test_table(self):
        text, _ = run("canele-perf", "get", *QUICK, "--driver", "shm", "--size", "4k")
        for pattern in ("canele-perf get, driver shm", "rank 0 on core", "floor: plain copies", "median .* ratio",
                        r"mapped +get +4096 latency .* \d\.\d\d   us",
                        r"registered +get +4096 rate .* -   operations/s"):
            self.assertRegex(text, pattern)

    def test_uses_the_ranks_it_is_given(self):
        text, _ = run("canele-run", "-n", "2", str(BIN / "canele-perf"), "put", *QUICK, "--no-pin", "--json")
        report = json.loads(text)
        self.assertEqual((report["benchmark"], report["cores"]), ("put", [-1, -1]))

    def test_bad_input(self):
        for arguments, word in ((["put", "--memory", "shared"], "shared"), (["put", "--measure", "speed"], "speed"),
                                (["get", "--measure", "notified"], "notified"),
                                (["get", "--size", "0"], "not in range"), (["get", "--window", "0"], "not in range"),
                                (["atomics", "--size", "16"], "16 not in"),
                                (["atomics", "--operation", "read"], "read")):
            with self.subTest(arguments=arguments):
                self.assertIn(word, run("canele-perf", *arguments, code=105)[1])
        self.assertIn("--operation", run("canele-perf", "put", "--operation", "get", code=109)[1])
        self.assertIn("smh", run("canele-perf", "put", "--driver", "smh", code=1)[1])
        self.assertIn("cannot pin", run("canele-perf", "get", "--cores", "4095", code=1)[1])
        _, errors = run("canele-run", "-n", "3", str(BIN / "canele-perf"), "atomics", code=1)
        self.assertIn("this job has 3 ranks; expected: two", errors)


class PeersTest(unittest.TestCase):
    """mpi_rma.c on each MPI that is installed, started and read as compare.py does."""

    def samples(self, name, work):
        """Measures each operation once, on memory of both kinds. Returns why the program cannot be built, or ''."""
        options = types.SimpleNamespace(work=work, prefix=str(BIN.parent), order="shuffled",
                                        cores=(sorted(os.sched_getaffinity(0)) * 2)[:2])
        mpi, why = contenders.make_mpi(options, name, ["mpi_rma"])
        if mpi is None:
            return why
        for benchmark, memory in itertools.product(contenders.ONE_SIDED, MEMORIES):
            case = contenders.Case(benchmark, "shm", memory, 8, 2)
            with unittest.mock.patch.object(contenders, "iterations_for", return_value=FEW):
                samples = mpi.measure(case, 100)
            self.assertEqual(len(samples), 2, case)
            self.assertGreater(min(samples), 0, case)
        return ""

    def test_every_mpi(self):
        left_out = []
        with tempfile.TemporaryDirectory() as work:
            for name in ("openmpi", "mpich"):
                with self.subTest(name=name):
                    left_out += [name] if (why := self.samples(name, work)) else []
                    self.assertRegex(why, "^($|not installed)")
        if len(left_out) == 2:
            self.skipTest("no other MPI is installed")


if __name__ == "__main__":
    unittest.main()

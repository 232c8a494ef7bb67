# SPDX-License-Identifier: BSD-3-Clause
"""The table of apps/perf/peers/rma_mt.py, from made-up jobs: rates, ratios, failures, and the command line.

Run by ctest. No MPI is started: the one job that is started, sleep, never ends by itself.
"""

import contextlib
import io
import pathlib
import sys
import types
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "apps" / "perf" / "peers"))
# pylint: disable=wrong-import-position
import contenders as peers
import rma_mt

POINT = rma_mt.Point("put", "lock_all_flush", 2, 8)
OTHER = POINT._replace(threads=4)


def contender(name, failures=None, **jobs):
    """Returns an MPI with the jobs that it has done at POINT (here) and OTHER (there)."""
    made = rma_mt.RmaMt(name, None)
    for point, key in ((POINT, "here"), (OTHER, "there")):
        if key in jobs:
            made.samples[point] = jobs[key]
    made.failures = failures or {}
    return made


def rows_of(*made, cases=(POINT, OTHER)):
    return rma_mt.summarise(types.SimpleNamespace(cases=cases), made)


def parse(words):
    """Returns the options; the message instead if they are malformed."""
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        try:
            return rma_mt.parse_arguments(words.split())
        except SystemExit:
            return errors.getvalue()


class Table(unittest.TestCase):
    def test_a_job_prints_the_rates_of_its_batches(self):
        self.assertEqual(contender("mpich").samples_of(POINT, "1e6 2500000 3\n"), [[1e6, 2.5e6, 3]])

    def test_a_rate_is_a_median_over_all_batches_of_all_jobs(self):
        row, = rows_of(contender("canele-mpi", here=[[1, 2, 3], [7, 8]]), cases=[POINT])
        median, least, most = row["rates"]["canele-mpi"]
        self.assertEqual((row["operation"], row["threads"], row["size"], median), ("put", 2, 8, 3))
        self.assertTrue(1 <= least < 3 < most <= 8)
        self.assertIsNone(row["ratio"])

    def test_a_ratio_is_to_the_best_of_the_others_in_each_repetition(self):
        ours = contender("canele-mpi", here=[[6], [30], [9]], there=[[10], [10], [10]])
        others = contender("openmpi", here=[[2], [15], [9]], there=[[1]]), contender("mpich", here=[[3], [1], [1]])
        here, there = rows_of(ours, *others)
        self.assertEqual(here["ratio"], 2)  # of 6 / 3, 30 / 15, 9 / 9
        self.assertEqual(there["ratio"], 10)  # a repetition without another figure does not count
        # A row without ours, or with ours only, has none.
        self.assertEqual([row["ratio"] for row in rows_of(*others)], [None, None])

    def test_a_failure_of_ours_is_a_point_that_is_not_ahead(self):
        ours = contender("canele-mpi", {POINT: "wrong data"}, here=[[9]], there=[[9]])
        theirs = contender("openmpi", here=[[1]], there=[[1]])
        rows = rows_of(ours, theirs)
        self.assertEqual([row["ratio"] for row in rows], [0, 9])
        self.assertEqual(rma_mt.verdict(rows), (1, 2, 0))

    def test_points_without_another_figure_are_counted_apart(self):
        theirs = contender("openmpi", {POINT: "exit code 1 of: x"}, there=[[2]])
        rows = rows_of(contender("canele-mpi", here=[[1]], there=[[1]]), theirs)
        self.assertEqual(rma_mt.verdict(rows), (0, 1, 1))

    def test_scaling(self):
        rows = rows_of(contender("canele-mpi", here=[[4]], there=[[6]]), contender("mpich", there=[[3]]))
        self.assertEqual(rma_mt.scaling(rows), {("put", "lock_all_flush", 8): {"canele-mpi": {2: 1, 4: 1.5},
                                                                              "mpich": {4: 1}}})

    def test_reasons(self):
        for text, reason in (("mpich: exit code 124 of: timeout 60", "no end"),
                             ("mpich: no end after 90 s: timeout 60", "no end"),
                             ("mpich: exit code 1 of: x\nrank 1: wrong data: put of thread 0", "wrong data"),
                             ("mpich: exit code 3 of: x\nMPI_THREAD_MULTIPLE is not provided", "no threads"),
                             ("mpich: exit code 139 of: x", "exit code 139"), ("could not convert", "failed")):
            self.assertEqual(rma_mt.reason(text), reason)

    def test_printed(self):
        options = types.SimpleNamespace(driver="shm", target="one", memory="allocate", cores="0,1", rounds=1, batches=1,
                                        json=False, cases=(POINT, OTHER))
        made = contender("canele-mpi", here=[[4e6]], there=[[8e6]]), \
            contender("mpich", {OTHER: "exit code 124 of: x"}, here=[[2e6]])
        rows = rma_mt.summarise(options, made)
        with contextlib.redirect_stdout(io.StringIO()) as told:
            rma_mt.print_report(rma_mt.result_of(options, ["canele-mpi", "mpich"], rows, {1: 1e6, 2: 3e6}))
        for pattern in (r"put +lock_all_flush +2 +8 +4 \(4 to 4\) +2 \(2 to 2\) +2\.00\n",
                        r"put +lock_all_flush +4 +8 +8 \(8 to 8\) +no end\n", r"canele-mpi +2: 1.00 +4: 2.00",
                        r"ahead at 1 of 1 points, 100 % \(goal: 90 %\)", "at 1 points no other contender has a figure",
                        "mpich failed at 1 points", r"2 threads 3 \(x 3.00\)"):
            self.assertRegex(told.getvalue(), pattern)
        result = rma_mt.result_of(options, ["canele-mpi", "mpich"], rows, {})
        self.assertEqual([result[key] for key in ("ahead", "compared", "alone")], [1, 1, 1])
        self.assertEqual(result["rows"][1]["failures"], {"mpich": "exit code 124 of: x"})


class Jobs(unittest.TestCase):
    def test_a_contender_that_does_not_end_stops_nothing(self):
        """A job that never ends is ended, reported, and not started again; the other contender goes on."""
        stuck = rma_mt.RmaMt("stuck", lambda _: ["timeout", "--kill-after=10", "0.1", "sleep", "1000"])
        quick = rma_mt.RmaMt("quick", lambda _: ["echo", "5 7"])
        options = types.SimpleNamespace(rounds=2, cases=[POINT], time_limit=1)
        with contextlib.redirect_stderr(io.StringIO()):
            rma_mt.run_rounds(options, [stuck, quick])
        self.assertEqual(rma_mt.reason(stuck.failures[POINT]), "no end")
        self.assertEqual(quick.samples[POINT], [[5, 7], [5, 7]])
        self.assertEqual(quick.failures, {})

    def test_a_batch_is_bounded(self):
        options = types.SimpleNamespace(driver="shm", count=None)
        self.assertEqual(rma_mt.work_of(options, POINT), (64, 781))
        self.assertEqual(rma_mt.work_of(options, POINT._replace(sync="fence")), (64, 156))
        self.assertEqual(rma_mt.work_of(options, POINT._replace(size=65536)), (16, 64))  # 128 MiB
        self.assertEqual(rma_mt.work_of(options, POINT._replace(threads=256, size=16 << 20)), (4, 1))

    def test_commands(self):
        options = parse("--threads 1,4 --sizes 8 --sync fence --target ring --memory create --cores 0 --batches 3")
        for name, words in (("canele-mpi", "env CANELE_DRIVERS=shm "), ("openmpi", "mpi_yield_when_idle 1")):
            with unittest.mock.patch.object(peers, "build", return_value=("program", "")), \
                 unittest.mock.patch.object(rma_mt.os, "sched_getaffinity", return_value={0, 1}):
                made, _ = rma_mt.make_contender(options, name)
                told = " ".join(made.command(options.cases[1]))
            self.assertIn(words, told)
            self.assertTrue(told.startswith("timeout --kill-after=10 60"), told)
            self.assertTrue(told.endswith("program put fence 4 64 8 3 78 ring create 0"), told)


class CommandLine(unittest.TestCase):
    def test_points(self):
        options = parse("--threads 1,2 --sizes 8,64 --operations get --sync lock,pscw")
        self.assertEqual(len(options.cases), 8)
        self.assertEqual(options.cases[1], rma_mt.Point("get", "lock", 1, 64))
        self.assertEqual(len(parse("").cases), 50)
        quick = parse("--quick --repetitions 3")
        self.assertEqual((len(quick.cases), quick.rounds, quick.batches, quick.count), (12, 3, 3, 20000))

    def test_bad_input_is_rejected(self):
        for words, told in (("--threads 0", "the least value is 1"), ("--sizes 8,x", "whole numbers"),
                            ("--cores a", "whole numbers"), ("--threads 257", "256 threads"),
                            ("--sync unlock", "unknown synchronisation unlock; known: lock_all_flush, lock, fence"),
                            ("--operations add", "known: put, get"), ("--contenders lam", "unknown contender lam"),
                            ("--repetitions 0", "at least one repetition"), ("--count 0", "at least one repetition"),
                            ("--target all", "invalid choice")):
            with self.subTest(words=words):
                self.assertIn(told, str(parse(words)))


if __name__ == "__main__":
    unittest.main()

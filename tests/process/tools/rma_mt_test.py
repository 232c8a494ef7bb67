# SPDX-License-Identifier: BSD-3-Clause
"""apps/perf/peers/mpi_rma_mt.c by our MPI functions: one-sided operations of threads, whose data the program checks.

Run by ctest, which names the programs' directory in CANELE_TEST_BIN; by hand: see README.md. The program is built by
canele-mpicc. Two or four ranks have two threads each. The other MPIs, of which rma_mt.py measures all that are
installed, may fail.
"""
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from tools_test import BIN, SOURCE, plain_build_only, run

PEERS = SOURCE / "apps" / "perf" / "peers"
SYNCS, OPERATIONS = ("lock_all_flush", "lock", "fence", "pscw"), ("put", "get")
FEW = ("16", "24", "2", "3")  # window, bytes, batches, rounds
TIME_LIMIT = 100
# Each stands before the program: operations of one place are left out, or no threads are provided.
LOST = """#include <mpi.h>
#define MPI_Put(local, count, type, rank, at, ...) ((at) == 24 ? 0 : MPI_Put(local, count, type, rank, at, __VA_ARGS__))
#define MPI_Get(local, count, type, rank, at, ...) ((at) == 24 ? 0 : MPI_Get(local, count, type, rank, at, __VA_ARGS__))
"""
SINGLE = """#include <mpi.h>
#define MPI_Init_thread(argc, argv, wanted, provided) (MPI_Init_thread(argc, argv, wanted, provided), *(provided) = 0)
"""


@plain_build_only
@unittest.skipUnless((BIN / "mpi_profile").exists(), "built without the MPI functions")
class ProgramTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.place.cleanup)
        cls.program = cls.build("mpi_rma_mt")

    @classmethod
    def build(cls, name, before=None):
        """Returns the program, with lines that stand before its own."""
        program, more = pathlib.Path(cls.place.name) / name, []
        if before is not None:
            header = program.with_suffix(".h")
            header.write_text("#define _GNU_SOURCE\n" + before + "#undef _GNU_SOURCE\n", encoding="utf-8")
            more = ["-include", str(header)]
        run("canele-mpicc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", *more,
            str(PEERS / "mpi_rma_mt.c"), "-o", str(program))
        return str(program)

    def measure(self, *arguments, ranks=2, code=0, program=None):
        """Returns the rates and the errors."""
        text, errors = run("canele-run", "-n", str(ranks), program or self.program, *arguments, code=code)
        return [float(word) for word in text.split()], errors

    def check(self, *arguments, ranks=2):
        rates, _ = self.measure(*arguments, ranks=ranks)
        self.assertEqual(len(rates), 2)
        self.assertGreater(min(rates), 0)

    def test_each_synchronisation(self):
        for sync, operation, memory in itertools.product(SYNCS, OPERATIONS, ("allocate", "create")):
            with self.subTest(sync=sync, operation=operation, memory=memory):
                self.check(operation, sync, "2", *FEW, "one", memory)

    def test_several_targets(self):
        for target, sync, operation in itertools.product(("ring", "halo"), SYNCS, OPERATIONS):
            with self.subTest(target=target, sync=sync, operation=operation):
                self.check(operation, sync, "2", *FEW, target, ranks=4)

    def test_large_gets_of_many_threads(self):
        """A target may learn later than the origin that a get is over."""
        run("canele-run", "-n", "4", "-x", "CANELE_DRIVERS=tcp", self.program, "get", "lock_all_flush", "16", "16",
            "32768", "2", "30", "halo", "create")

    def test_one_and_many_threads_on_one_core(self):
        core = str(min(os.sched_getaffinity(0)))
        self.check("put", "fence", "1", *FEW, "one", "allocate", core)
        self.check("get", "lock_all_flush", "8", *FEW, "one", "allocate", core)

    def test_lost_operations_are_found(self):
        program = self.build("lost", LOST)
        for sync, operation in itertools.product(SYNCS, OPERATIONS):
            with self.subTest(sync=sync, operation=operation):
                _, errors = self.measure(operation, sync, "2", *FEW, code=1, program=program)
                self.assertIn(f"wrong data: {operation} of thread 0, operation 1, byte 0 of 24, from rank ", errors)

    def test_an_mpi_without_threads_is_told(self):
        _, errors = self.measure("put", "lock", "2", *FEW, code=3, program=self.build("single", SINGLE))
        self.assertIn("MPI_THREAD_MULTIPLE is not provided", errors)

    def test_bad_input(self):
        for arguments, word in ((("add", "lock", "2", *FEW), "unknown operation: add"),
                                (("put", "unlock", "2", *FEW), "unknown synchronisation: unlock"),
                                (("put", "lock", "0", *FEW), "<threads>: not a whole number"),
                                (("put", "lock", "257", *FEW), "more than 256 threads"),
                                (("put", "lock", "2", "16", "x", "1", "1"), "<size>: not a whole number"),
                                (("put", "lock", "2", "2", "8", "1", "1", "halo"), "a window below 4"),
                                (("put", "lock", "2", *FEW, "all"), "unknown target: all"),
                                (("put", "lock", "2", *FEW, "one", "shared"), "unknown memory: shared"),
                                (("put", "lock", "2", *FEW, "one", "create", "0,x"), "<cores>: not a whole number"),
                                (("put", "lock"), "expected: put|get"),
                                (("put", "lock", "2", *FEW, "halo"), "2 ranks")):
            with self.subTest(arguments=arguments):
                self.assertIn(word, self.measure(*arguments, code=2)[1])


@plain_build_only
@unittest.skipUnless((BIN / "mpi_profile").exists(), "built without the MPI functions")
class ComparisonTest(unittest.TestCase):
    """The comparison as users run it, of few operations. No figure decides."""

    def compare(self, *arguments):
        return subprocess.run([sys.executable, "-B", PEERS / "rma_mt.py", "--prefix", BIN.parent, *arguments],
                              timeout=TIME_LIMIT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False)

    def test_json(self):
        done = self.compare("--threads", "1,2", "--sizes", "8", "--operations", "put", "--count", "64",
                            "--repetitions", "1", "--batches", "2", "--time-limit", "20", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual([(row["operation"], row["sync"], row["threads"], row["size"]) for row in result["rows"]],
                         [("put", "lock_all_flush", threads, 8) for threads in (1, 2)])
        for row in result["rows"]:
            median, least, most = row["rates"]["canele-mpi"]
            self.assertTrue(0 < least <= median <= most)
            self.assertEqual(row["ratio"] is not None, len(row["rates"]) > 1)
            self.assertNotIn("canele-mpi", row["failures"])
        self.assertLessEqual(result["ahead"], result["compared"])

    def test_table_of_ours_and_sends(self):
        done = self.compare("--threads", "2", "--sizes", "64", "--sync", "fence,pscw", "--count", "64", "--target",
                            "ring", "--repetitions", "1", "--contenders", "canele-mpi", "--sends")
        self.assertEqual(done.returncode, 0, done.stderr)
        for pattern in ("target ring", r"put +fence +2 +64 ", r"get +pscw +2 +64 ", "rates beside",
                        r"threaded sends .* 2 threads \d"):
            self.assertRegex(done.stdout, pattern)


if __name__ == "__main__":
    unittest.main(verbosity=2)

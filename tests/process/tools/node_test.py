# SPDX-License-Identifier: BSD-3-Clause
"""canele-perf pairs, compare --node, prebuild and exchanges as users run them: the form of the output, never figures.

Run by ctest, which names the programs' directory in CANELE_TEST_BIN; by hand: see README.md. The other MPIs may be
installed or not. One test measures where no compiler is in PATH, with programs that prebuild has made before.
"""
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest

from tools_test import BIN, SOURCE, plain_build_only, run

FEW = ("--batches", "2", "--rounds", "64")
PEERS = SOURCE / "apps" / "perf" / "peers"
EXCHANGES = ("exchange", "exchange_persistent", "exchange_partitioned", "neighbor_alltoall", "neighbor_allgather")
MPI_FUNCTIONS = (BIN / "mpi_profile").exists()


class PairsTest(unittest.TestCase):
    def test_every_measure(self):
        text, _ = run("canele-perf", "pairs", *FEW, "--ranks", "4", "--size", "0,8,5000", "--driver", "shm", "--json")
        rows = [json.loads(line) for line in text.splitlines()]
        self.assertEqual([(row["measure"], row["size"]) for row in rows],
                         [(measure, size) for measure in ("latency", "bandwidth", "rate") for size in (0, 8, 5000)])
        for row in rows:
            self.assertEqual((row["pairs"], len(row["samples"]["values"])), (2, 2))
            self.assertGreaterEqual(row["figures"]["slowest"], 1)
            if (row["measure"], row["size"]) != ("bandwidth", 0):
                self.assertGreater(row["figures"]["p10"], 0)

    def test_cores_of_each_rank(self):
        core = str(min(os.sched_getaffinity(0)))
        run("canele-perf", "threads", "--pattern", "N-to-N", "--threads", "2", "--seconds", "0.01", "--batches", "1",
            "--cores", core, "--cores-each", "2")
        self.assertIn("slowest", run("canele-perf", "pairs", *FEW, "--cores", core)[0])

    def test_bad_input(self):
        for arguments, word in ((("--measure", "speed"), "speed"), (("--ranks", "1"), "not in range"),
                                (("--cores-each", "0"), "not in range")):
            with self.subTest(arguments=arguments):
                self.assertIn(word, run("canele-perf", "pairs", *arguments, code=105)[1])
        self.assertIn("3 ranks; expected: pairs", run("canele-perf", "pairs", "--ranks", "3", code=1)[1])


class NodeTest(unittest.TestCase):
    """Only Python is in PATH: other MPIs and compilers are missing."""

    def node(self, *arguments, code=0):
        with tempfile.TemporaryDirectory() as path:
            os.symlink(sys.executable, pathlib.Path(path) / "python3")
            return run("canele-perf", "compare", "--node", "--patience", "0", *arguments, code=code, PATH=path)

    def test_ours_alone(self):
        with tempfile.TemporaryDirectory() as work:
            text, errors = self.node("--quick", "--rounds", "1", "--batches", "1", "--parts", "pairs,threads",
                                     "--pairs", "1", "--threads", "1,64", "--contenders",
                                     "canele,openmpi", "--work", work)
            kept, = pathlib.Path(work).glob("results/node-*.json")
            result = json.loads(kept.read_text(encoding="utf-8"))
        self.assertIn("openmpi: left out: not installed", errors)
        for pattern in (r"cores, caches .*, Linux .*, commit ", r"pairs latency 8 B \[us\], neighbours +2",
                        r"threads rate N-to-N, 8 B \[M/s\] +2\* +64", "no peer"):
            self.assertRegex(text, pattern)
        self.assertEqual((result["program"], result["contenders"], result["failures"]), ("node", ["canele"], []))
        self.assertEqual({(row["part"], row["ranks"], row["threads"]) for row in result["rows"]},
                         {("pairs", 2, 1), ("threads", 2, 1), ("threads", 2, 64)})
        for row in result["rows"]:
            self.assertGreater(row["figures"]["canele"]["value"], 0)

    def test_bad_input(self):
        for arguments, word in ((("--parts", "all"), "unknown part all; known: pairs"),
                                (("--ranks", "1"), "value is 2"), (("--rounds", "0"), "at least one round"),
                                (("--cores", "4095"), "are needed, not 4095")):
            with self.subTest(arguments=arguments):
                self.assertIn(word, self.node(*arguments, code=2)[1])
        self.assertIn("--node", run("canele-perf", "compare", "--help")[0])
        self.assertIn("expected: --work DIR", run("canele-perf", "prebuild", code=2)[1])

    @plain_build_only
    @unittest.skipUnless(MPI_FUNCTIONS, "built without the MPI functions")
    def test_a_machine_without_a_compiler(self):
        with tempfile.TemporaryDirectory() as work:
            one = ("--parts", "collectives", "--ranks", "2", "--quick", "--rounds", "1", "--batches", "1",
                   "--contenders", "canele-mpi", "--json", "-")
            _, errors = self.node(*one, code=1)
            self.assertRegex(errors, "canele-mpi: left out: .*canele-mpicc")
            text, _ = run("canele-perf", "prebuild", "--work", work, "--mpis", "canele-mpi", "--programs",
                          "mpi_collectives")
            self.assertTrue(re.search("^mpi_collectives.canele-mpi: ready$", text, re.MULTILINE), text)
            result = json.loads(self.node(*one, "--work", work)[0])
            rows = {row["what"]: row for row in result["rows"]}
            self.assertLessEqual({"barrier", "allreduce 8 B", "bcast 64 KiB"}, set(rows))
            self.assertEqual({(row["ranks"], len(row["figures"])) for row in rows.values()}, {(2, 1)})


@plain_build_only
@unittest.skipUnless(MPI_FUNCTIONS, "built without the MPI functions")
class ExchangesTest(unittest.TestCase):
    """Every way to exchange blocks with neighbours delivers what it should, which the program checks."""

    def test_any_number_of_ranks(self):
        with tempfile.TemporaryDirectory() as path:
            program = f"{path}/mpi_collectives"
            run("canele-mpicc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", str(PEERS / "mpi_collectives.c"),
                "-o", program)
            for ranks in (1, 2, 3, 4):
                text, _ = run("canele-run", "-n", str(ranks), program, "2", ",".join(EXCHANGES), "8,96", "0")
                self.assertEqual([line.split()[:2] for line in text.splitlines()],
                                 [[name, size] for size in ("8", "96") for name in EXCHANGES])

    def test_the_table(self):
        text, _ = run(sys.executable, "-B", str(PEERS / "collectives.py"), "--prefix", str(BIN.parent), "--contenders",
                      "canele-mpi", "--operations", "exchanges", "--size", "8", "--ranks", "2", "--rounds", "1",
                      "--batches", "1")
        for name in EXCHANGES[1:]:
            self.assertRegex(text, rf"(?m)^ +2 {name} +8 to plain requests:  canele-mpi \d+\.\d\d$")


if __name__ == "__main__":
    unittest.main(verbosity=2)

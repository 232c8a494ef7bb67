# SPDX-License-Identifier: BSD-3-Clause
"""What canele-perf and canele-model leave to programs and data beside them: compare, growth, and the thesis's model.

Run by ctest, which names the programs' directory in CANELE_TEST_BIN; by hand: see README.md. One thread. The other MPIs
may be installed or not: a missing one must be reported.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

from tools_test import BIN, SOURCE, TIME_LIMIT, plain_build_only, run


class CompareTest(unittest.TestCase):
    """A place where only Python is in PATH: our programs are beside canele-perf, all others are missing."""

    def compare(self, *arguments, code=0, **environment):
        with tempfile.TemporaryDirectory() as path:
            os.symlink(sys.executable, pathlib.Path(path) / "python3")
            return run("canele-perf", "compare", "--patience", "0", *arguments, code=code, PATH=path, **environment)

    def test_json(self):
        text, errors = self.compare("--only", "shm-latency-8,tcp-rate", "--rounds", "1", "--batches", "2",
                                    "--contenders", "canele,floor,openmpi,ucx_perftest", "--json", "-",
                                    CANELE_EAGER_LIMIT="16k")
        result = json.loads(text)
        self.assertEqual([row["key"] for row in result["rows"]], ["shm-latency-8", "tcp-rate-same"])
        self.assertEqual(result["missing"]["openmpi"], "not installed")
        self.assertIn("ucx-utils", result["missing"]["ucx_perftest"])
        for word in ("openmpi: left out: not installed", "not passed on to the jobs: ", "CANELE_EAGER_LIMIT"):
            self.assertIn(word, errors)
        latency, rate = result["rows"]
        self.assertEqual(set(latency["figures"]), {"canele", "floor"})
        self.assertEqual(set(rate["figures"]), {"canele"})  # such a rate has no floor
        line, = latency["verdicts"]
        self.assertEqual((line["who"], line["best"]), ("canele", None))
        self.assertEqual((line["target"], line["floor_target"]), (0.85, 1.35))
        self.assertGreater(line["floor_ratio"][0], 0)
        for record in result["records"]:
            self.assertEqual((len(record["samples"]), record["round"]), (2, 0))
            self.assertIsInstance(record["disturbed"], list)

    def test_table_and_what_was_kept(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "kept.json")
            told, _ = self.compare("--only", "shm-rate-same", "--rounds", "1", "--batches", "1", "--contenders",
                                   "canele,mpich", "--json", path)
            self.assertEqual(self.compare("--from", path)[0], told)
        for word in ("mpich: missing: not installed", "shm rate 8 B, one tag", "no peer",
                     "ahead in 0, behind in 0 of 1"):
            self.assertIn(word, told)

    def test_with_a_worker(self):
        text, _ = self.compare("--worker", "bound", "--only", "shm-latency-8", "--rounds", "1", "--batches", "1",
                               "--json", "-")
        row, = json.loads(text)["rows"]
        self.assertEqual(set(row["figures"]), {"canele", "canele-bound"})
        self.assertEqual([line["who"] for line in row["verdicts"]], ["canele-bound"])

    def test_names_of_rows_and_help(self):
        self.assertIn("match-unexpected-16384", self.compare("--list")[0])
        self.assertIn("--quick", self.compare("--help")[0])
        self.assertIn("compare", run("canele-perf", "--help")[0])

    def test_reader_that_has_gone(self):
        """As with `| head`, when it has seen enough."""
        reader, writer = os.pipe()
        os.close(reader)
        with subprocess.Popen([BIN / "canele-perf", "compare", "--list"], stdout=writer, stderr=subprocess.PIPE,
                              text=True) as program:
            os.close(writer)
            self.assertEqual(program.communicate()[1], "")
        self.assertEqual(program.returncode, 1)

    def test_bad_input(self):
        for arguments, word in ((["--only", "smh"], "no row begins with 'smh'; rows: shm-latency-8"),
                                (["--contenders", "lam"], "unknown contender lam; known: canele, "),
                                (["--cores", "0,x"], "cores are whole numbers"),
                                (["--cores", "0"], "two cores of "),
                                (["--rounds", "0"], "at least one round"), (["--speed"], "--speed"),
                                (["--docs", "/nowhere"], "/nowhere/performance.md")):
            with self.subTest(arguments=arguments):
                self.assertIn(word, self.compare(*arguments, code=2)[1])


class GrowthTest(unittest.TestCase):
    def test_json(self):
        text, _ = run("canele-perf", "growth", "--only", "ranks,tags,sessions,posted", "--most", "16", "--rounds", "1",
                      "--patience", "0", "--json")
        tables = {table["table"]: table for table in json.loads(text)["tables"]}
        self.assertEqual({name: [row["n"] for row in table["rows"]] for name, table in tables.items()},
                         {"ranks": [2, 4, 8, 16], "tags": [1, 16], "sessions": [1, 4, 16], "posted": [16]})
        self.assertIsInstance(tables["tags"]["slope"], float)
        self.assertIsNone(tables["posted"]["slope"])

    def test_bad_input(self):
        self.assertIn("unknown table size; known: ranks, ", run("canele-perf", "growth", "--only", "size", code=2)[1])


class ModelTest(unittest.TestCase):
    """canele-model: the thesis's values, our profiles, tables, wrong input. Unit tests check the figures."""

    THESIS = SOURCE / "apps/model/thesis.json"

    def test_values(self):
        text, _ = run("canele-model", "--json", "dedicated", "--values", str(self.THESIS), "--alpha", "0,1")
        judged = json.loads(text)
        self.assertEqual(len(judged), 6)
        for one in judged:
            self.assertEqual([p["alpha"] for p in one["predictions"]], [0, 1])
            for prediction in one["predictions"]:
                self.assertAlmostEqual(sum(prediction["terms"].values()), prediction["total_s"])
                self.assertAlmostEqual(prediction["total_s"] / one["measured_s"] - 1, prediction["error"])
        text, _ = run("canele-model", "dedicated", "--values", str(self.THESIS), "--alpha", "0:1:0.25")
        for word in ("predicted, s", "speed-up", "does not follow from its printed parameters", "warning: "):
            self.assertIn(word, text)

    @unittest.skipUnless((BIN / "mpi_profile").exists(), "built without the MPI functions")
    def test_a_profile(self):
        with tempfile.TemporaryDirectory() as place:
            run("canele-run", "-n", "2", str(BIN / "mpi_profile"), CANELE_PROFILE=f"{place}/%r.json")
            files = [f"{place}/0.json", f"{place}/1.json"]
            text, _ = run("canele-model", "dedicated", "--profile", *files, "--cores", "4", "--measured", "1")
            for word in ("2 ranks: 4 cores, 1 dedicated", "x 4/3", "measured, s", "error", "nothing hidden unless",
                         "threads other than the main one"):
                self.assertIn(word, text)
            judged = json.loads(run("canele-model", "dedicated", "--profile", *files, "--cores", "4", "--json",
                                    "--least-profile", *files, "--measured-profile", *files)[0])[0]
            self.assertEqual(judged["run"]["init"]["count"], 10)
            self.assertAlmostEqual(judged["measured_s"], judged["run"]["time_s"])
            _, errors = run("canele-model", "dedicated", "--profile", *files, code=1)
            self.assertIn("expected: --cores", errors)
            _, errors = run("canele-model", "dedicated", "--profile", *files, "--cores", "1", code=1)
            self.assertIn("none would be left to compute", errors)

    def test_tables(self):
        tables = json.loads(run("canele-model", "split-tree", "--cores", "16", "--json")[0])
        self.assertEqual([row["ranks"] for row in tables["rows"]], list(range(8, 16)))
        with tempfile.TemporaryDirectory() as place:
            text, _ = run("canele-model", "split-tree", "--variable", "--plot", f"{place}/a.svg")
            self.assertRegex(text, r"best of all: \d+ ranks, S = \d")
            self.assertTrue(xml.etree.ElementTree.parse(f"{place}/a.svg").getroot().tag.endswith("svg"))
        text, _ = run("canele-model", "placement", "--cores", "64", "--ranks", "62")
        self.assertIn("neighbours on one core: bind 0, numa 60, odd-even 0", text)

    def test_wrong_input_is_told(self):
        for arguments, answer in (
            (["dedicated"], "expected: --profile or --values"),
            (["dedicated", "--values", str(self.THESIS), "--alpha", "2"], "expected a share from 0 to 1"),
            (["dedicated", "--values", str(SOURCE / "README.md")], "is not JSON"),
            (["dedicated", "--values", str(self.THESIS), "--measured", "1"], "belongs to one run"),
            (["split-tree", "--cores", "8", "--to", "8"], "--to below the cores"),
            (["split-tree", "--plot", "a.png"], "ends in .svg"),
            (["placement", "--cores", "4", "--ranks", "5"], "5 ranks on 4 cores"),
        ):
            with self.subTest(arguments=arguments):
                self.assertIn(answer, run("canele-model", *arguments, code=1)[1])

    @plain_build_only
    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "needs two processing units")
    def test_a_program_is_predicted_and_measured(self):
        done = subprocess.run([SOURCE / "apps/model/predict.py", "--prefix", BIN.parent, "--batches", "1", "--rounds",
                               "2", "--compute", "1", "--size", "100000", "--json"], timeout=TIME_LIMIT, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads(done.stdout)
        self.assertEqual([(row["program"], row["alpha"]) for row in rows],
                         [("early", 0), ("tests", 0), ("blocking", 0), ("blocking", 1), ("late", 0)])
        for row in rows:
            self.assertIn("error", row["judged"]["predictions"][0])


if __name__ == "__main__":
    unittest.main(verbosity=2)

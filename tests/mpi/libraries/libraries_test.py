#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests libraries.py itself, without libraries: what is counted, how each library's output is judged, time limits."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import hpcc
import libraries
import petsc
from fftw import Fftw
from hypre import Hypre
from library import BuildError, Library, Result, sources
from peers import Mpi

NO_MPI = Mpi("cc", "c++", "gfortran", ("sh", "-c", "exit 0"))


class Fake(Library):
    """A library whose checks are given."""

    def __init__(self, results=(), error=None):
        self.results, self.error = results, error

    def fetch(self):
        return "1.0"

    def build(self):
        if self.error:
            raise self.error

    def checks(self, driver):
        yield from self.results


class Unfetched(Fake):
    def fetch(self):
        raise sources.SourcesError("no mirror")


def run_all(**fakes):
    """Returns the exit code and the lines of a run over both drivers."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = libraries.run_all(fakes, ["shm", "tcp"], False)
    return code, out.getvalue().splitlines()


class Counting(unittest.TestCase):
    def test_passed(self):
        code, lines = run_all(a=Fake([Result("x"), Result("y")]), b=Fake([Result("z")]))
        self.assertEqual((code, lines[-1]), (0, "6 passed, 0 failed, 0 skipped"))
        self.assertIn("  a: x over tcp: passed", lines)

    def test_one_failed_check_is_an_error(self):
        code, lines = run_all(a=Fake([Result("x"), Result("y", "wrong", "1\n2")]), b=Fake([Result("z")]))
        self.assertEqual((code, lines[-1]), (1, "4 passed, 2 failed, 0 skipped"))
        self.assertIn("FAIL: a: y over shm: wrong", lines)
        self.assertIn("    | 2", lines)

    def test_a_library_without_checks_is_an_error(self):
        code, lines = run_all(a=Fake())
        self.assertEqual((code, lines[-1]), (1, "0 passed, 2 failed, 0 skipped"))

    def test_a_library_that_cannot_be_built_is_an_error(self):
        code, lines = run_all(a=Fake(error=BuildError("cc")), b=Fake([Result("z")]))
        self.assertEqual((code, lines[-1]), (1, "2 passed, 1 failed, 0 skipped"))

    def test_a_library_that_cannot_be_had_is_skipped(self):
        code, lines = run_all(a=Unfetched(), b=Fake([Result("z")]))
        self.assertEqual((code, lines[-1]), (0, "2 passed, 0 failed, 1 skipped"))
        self.assertIn("a: skipped: no mirror", lines)


class InAFolder(unittest.TestCase):
    """Libraries whose sources are a few files."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.cache = pathlib.Path(directory.name).resolve()

    def write(self, path, text):
        file = self.cache / "sources/one-1.0" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def test_a_build_that_fails(self):
        self.write("a", "")
        one = Library(NO_MPI, self.cache, 1)
        with self.assertRaisesRegex(BuildError, "sh ended with exit code 3"):
            one.step("sh", "-c", "echo $WORD; exit 3", WORD="said")
        self.assertTrue(one.log.read_text(encoding="utf-8").endswith("said\n"))

    def test_what_hangs_is_ended(self):
        self.write("a", "")
        one = Library(Mpi("cc", "c++", "gfortran", ("sleep", "1000")), self.cache, 1)
        with mock.patch.object(one, "limit_s", 0.5), mock.patch.dict("os.environ", PATH="/usr/bin:/bin"):
            code, output = one.run(*one.limited(), driver="shm", cwd=self.cache)
        self.assertEqual(code, 124)
        self.assertIn("time limit of 0.5 s", output)

    def test_archives(self):
        for name in ("fftw3_3.3.10.orig.tar.gz", "fftw3_3.3.8.orig.tar.xz", "fftw3_3.3.10.orig.tar.gz.asc", "log"):
            (self.cache / name).touch()
        self.assertEqual([version for _, version in Fftw(NO_MPI, self.cache, 1).archives()], ["3.3.10", "3.3.8"])

    def hypre(self, script):
        self.write("src/test/TEST_ij/a.jobs", "#mpirun -np 8 ./ij > a.out.9\nmpirun -np 2 ./ij -x > a.out.0\n"
                   " mpirun -np 4  ./ij \\\n > a.out.1\n")
        self.write("src/test/TEST_ij/a.err", "old")
        self.write("src/test/runtest.sh", script)
        return Hypre(NO_MPI, self.cache, 1).check("tcp", "TEST_ij", "a")

    def test_hypre(self):
        runs = "cd TEST_ij; echo 1 | tee a.out.0 > a.out.1; "
        found = self.hypre(runs + ": > a.err")
        self.assertEqual((found.name, found.problem), ("TEST_ij/a, 2 jobs of 2, 4 ranks", ""))
        found = self.hypre(runs + "echo '(1) 3.0 4.0' > a.err")
        self.assertEqual((found.problem, found.output), ("differences or errors", "(1) 3.0 4.0\n"))
        self.assertEqual(self.hypre(runs + ": > a.err; rm a.out.1").problem, "no output: a.out.1")
        self.assertEqual(self.hypre(runs + "exit 1").problem, "exit code 1; differences or errors")
        self.assertIn("tcp", self.hypre("echo $CANELE_DRIVERS; echo $*; exit 1").output)

    def test_fftw(self):
        self.write("tests/check.pl", 'print "x --verify 1 --verify 2\\n";')
        self.assertEqual([(one.name, one.problem) for one in Fftw(NO_MPI, self.cache, 1).checks("shm")],
                         [("2 problems, 2 ranks", ""), ("2 problems, 4 ranks", "")])
        for script, problem in (('print "--verify 1\\nFAILED x\\n"; exit 1;', "exit code 1; FAILED x"),
                                ('print "--verify 1\\nkilled\\n"; exit 0;', "killed"), ("", "no problem was solved")):
            self.write("tests/check.pl", script)
            self.assertEqual(next(Fftw(NO_MPI, self.cache, 1).checks("shm")).problem, problem)

    def test_petsc(self):
        one = petsc.Petsc(NO_MPI, self.cache, 1)
        self.write("gmakefile.test", "test:\n\t@echo ' ok a-$(CANELE_DRIVERS)'\n")
        self.assertEqual([*one.checks("tcp")], 3 * [Result("a-tcp")])
        for recipe, problem in (("echo ' not ok a'; false", "it has failed"), ("true", "exit code 0, 0 results"),
                                ("echo ' ok a'; false", "exit code 2, 1 results")):
            self.write("gmakefile.test", f"test:\n\t@{recipe}\n")
            self.assertEqual([found.problem for found in one.checks("shm") if found.problem], 3 * [problem])


class Judging(unittest.TestCase):
    def test_hpcc(self):
        text = "||Ax-b||_oo/x = 0.1 ...... PASSED\nWALL 1 2 PASSED\nFound 0 errors in 4 locations\nSuccess=1\n"
        self.assertEqual(hpcc.problems_of(text), [])
        for old, new in (("PASSED\nWALL", "FAILED\nWALL"), ("Success=1", "Success=0"), ("WALL", "WALL? "),
                         ("Found 0", "Found 7")):
            self.assertNotEqual(hpcc.problems_of(text.replace(old, new)), [], old)

    def test_petsc(self):
        text = ("        TEST built/tests/counts/a.counts\n ok a-1\nnot ok diff-a-1 # Error code: 1\n#\t1c1\n#\t< 2\n"
                " ok b # SKIP Requires HDF5\n not ok c\n")
        self.assertEqual(petsc.results_of(text), [
            Result("a-1"), Result("diff-a-1", "Error code: 1", "#\t1c1\n#\t< 2"), Result("c", "it has failed")])


if __name__ == "__main__":
    sys.exit(unittest.main())

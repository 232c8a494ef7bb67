#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests mpich_rma.py itself, without MPICH: lines of lists, Makefiles, verdicts, sources that cannot be fetched."""
import contextlib
import io
import pathlib
import tarfile
import tempfile
import unittest
from unittest import mock

import mpich_rma
from mpich_rma import Line, Result

EXPECTED = {"rmanull 2": "no intercommunicators"}


def result(program: str, problem: str = "", output: str = "") -> Result:
    return Result(Line("rma", program, 2, (), (), 60), "windows", 0.1, problem, output)


class Lists(unittest.TestCase):
    def test_a_line(self):
        line = mpich_rma.read_line("rma", "manyrma2 2 timeLimit=500 arg=-a=1 arg=-b env=NAME=x=y  # why")
        self.assertEqual((line.program, line.ranks, line.limit), ("manyrma2", 2, 500))
        self.assertEqual((line.arguments, line.variables), (("-a=1", "-b"), ("NAME=x=y",)))
        self.assertEqual(line.name, "manyrma2 2 -a=1 -b")

    def test_a_short_limit_is_not_taken(self):
        self.assertEqual(mpich_rma.read_line("rma", "test1_dt 2 timeLimit=30").limit, mpich_rma.LIMIT_S)

    def test_lines_without_a_program(self):
        for text in ("", "  ", "# nb_test 2", "@largetest@win_large_shm 4"):
            self.assertIsNone(mpich_rma.read_line("rma", text), text)

    def test_the_table_names_lines(self):
        table = mpich_rma.expected_failures()
        self.assertIn("rmanull 2", table)
        for name, reason in table.items():
            self.assertRegex(name, r"^\w+ \d+( -\S+)*$")
            self.assertGreater(len(reason), 10)


class Building(unittest.TestCase):
    def make(self, directory):
        for part in mpich_rma.PARTS:
            (directory / part).mkdir(parents=True)
            (directory / part / "Makefile.am").write_text(
                "noinst_PROGRAMS = \\\n  a \\\n  b\nb_SOURCES = a.c c.c c.h\nb_CPPFLAGS = -DUSE_B $(AM_CPPFLAGS)\n",
                encoding="utf-8")
        (directory / "rma/a.c").write_text("MPI_Win_fence MPI_Win_fence MPI_Win_lock", encoding="utf-8")
        return mpich_rma.Builder(directory, directory / "programs", pathlib.Path("/bin/false"))

    def test_sources_flags_and_groups(self):
        with tempfile.TemporaryDirectory() as name:
            builder = self.make(pathlib.Path(name))
            names = {program: [path.name for path in builder.files(Line("rma", program, 1, (), (), 60))]
                     for program in ("a", "b")}
            self.assertEqual(names, {"a": ["a.c"], "b": ["a.c", "c.c"]})
            self.assertEqual(builder.variables["rma"]["b_CPPFLAGS"][0], "-DUSE_B")
            groups = [builder.group(Line(part, program, 1, (), (), 60)) for part, program in
                      (("rma", "a"), ("rma", "rput_a"), ("errors/rma", "a"), ("threads/rma", "a"))]
            self.assertEqual(groups, ["active", "requests", "errors", "threads"])
            self.assertTrue(set(groups) < set(mpich_rma.GROUPS))

    def test_a_program_that_does_not_compile(self):
        with tempfile.TemporaryDirectory() as name:
            builder = self.make(pathlib.Path(name))
            self.assertEqual(builder.build(Line("rma", "a", 1, (), (), 60)), "the compiler failed")

    def test_only_the_tests_are_unpacked(self):
        with tempfile.TemporaryDirectory() as name:
            place = pathlib.Path(name)
            with tarfile.open(place / "a.tar.xz", "w:xz") as tar:
                for path in ("test/mpi/rma/a.c", "test/mpi/rma/testlist", "test/mpi/pt2pt/a.c", "src/rma/a.c",
                             "test/mpi/rma/../../../../b.c", "test/mpi/f77/rma/testlist", "test/mpi/util/mtest.c"):
                    member = tarfile.TarInfo(f"mpich-1/{path}")
                    tar.addfile(member, io.BytesIO())
            (place / "out/include").mkdir(parents=True)
            with mock.patch("shutil.rmtree"):
                mpich_rma.unpack(place / "a.tar.xz", place / "out")
            found = sorted(str(path.relative_to(place / "out")) for path in (place / "out").rglob("*.?*")
                           if path.is_file() and path.suffix == ".c")
            self.assertEqual(found, ["rma/a.c", "util/mtest.c"])


class Verdicts(unittest.TestCase):
    def test_all_of_them(self):
        says = "MPI_Intercomm_create: no intercommunicators"
        for one, word in ((result("a"), "PASS"), (result("a", "exit code 1", says), "FAIL"),
                          (result("rmanull", "exit code 1", says), "KNOWN"), (result("rmanull"), "XPASS"),
                          (result("rmanull", "exit code 1", "Found 3 errors"), "FAIL")):
            self.assertEqual(mpich_rma.verdict(one, EXPECTED), word)

    def report(self, *words):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), mock.patch("mpich_rma.expected_failures", lambda: EXPECTED):
            failed = mpich_rma.report([(result("rmanull"), word) for word in words], 1)
        return failed, out.getvalue().splitlines()

    def test_the_closing_line(self):
        failed, lines = self.report("PASS", "PASS", "KNOWN")
        self.assertEqual((failed, lines[-1]), (0, "2 passed, 0 failed, 1 skipped"))
        self.assertIn("  known to fail: rmanull 2: no intercommunicators", lines)
        failed, lines = self.report("PASS", "FAIL", "XPASS")
        self.assertEqual((failed, lines[-1]), (2, "1 passed, 2 failed, 0 skipped"))


class Fetching(unittest.TestCase):
    def test_no_network(self):
        with tempfile.TemporaryDirectory() as name:
            place = pathlib.Path(name)
            nowhere = ["sh", "-c", "echo 'W: Failed to fetch http://mirror'; exit 100"]
            with mock.patch("mpich_rma.private_apt", lambda *_: nowhere):
                with self.assertRaises(SystemExit) as caught:
                    mpich_rma.fetch(place, place / "log")
            self.assertRegex(str(caught.exception), "^error: MPICH's source package cannot be fetched from Debian: "
                             "apt-get update ended with exit code 100. Failed to fetch http://mirror")


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests suite.py itself, without MPICH: lines of lists, Makefiles, verdicts, sources that cannot be fetched."""
import contextlib
import io
import pathlib
import tarfile
import tempfile
import unittest
from unittest import mock

import lists
import programs
import sources
import suite
from lists import Line

EXPECTED = {"rma/rmanull 2": "no intercommunicators", "rma/endless 2": "hangs: it waits for a message"}


def result(program, problem="", output="", missing=()):
    return suite.Result(Line("rma", program, 2), 0.1, problem, output, missing)


class Lists(unittest.TestCase):
    def test_a_line(self):
        line = lists.read_line("rma", "manyrma2 2 timeLimit=500 arg=-a=1 arg=-b env=NAME=x=y mem=1.5  # why")
        self.assertEqual((line.program, line.ranks, line.limit, line.memory), ("manyrma2", 2, 500, 1.5))
        self.assertEqual((line.arguments, line.variables), (("-a=1", "-b"), ("NAME=x=y",)))
        self.assertEqual(line.name, "rma/manyrma2 2 -a=1 -b")

    def test_a_short_limit_is_not_taken(self):
        self.assertEqual(lists.read_line("rma", "test1_dt 2 timeLimit=30").limit, lists.LIMIT_S)

    def test_a_line_without_ranks_has_two(self):
        self.assertEqual(lists.read_line("init", "exit resultTest=TestStatus").name, "init/exit 2")

    def test_lines_without_a_program(self):
        for text in ("", "  ", "# nb_test 2", "@largetest@win_large_shm 4", "!dtypes:dtypes"):
            self.assertIsNone(lists.read_line("rma", text), text)

    def test_the_table_names_lines(self):
        table = lists.expected_failures()
        for name, reason in table.items():
            self.assertRegex(name, r"^[\w/-]+/[\w-]+ \d+( \S+)*$")
            self.assertGreater(len(reason), 5)

    def test_how_the_output_is_judged(self):
        says = " No Errors\n"
        for verdict, code, output, passes in (
            ("", 0, says, True), ("", 1, says, False), ("", 0, "Found 3 errors\n", False),
            ("TestStatus", 3, "", True), ("TestStatus", 0, says, False), ("TestErrFatal", 1, "", True),
            ("TestStatusNoErrors", 1, says, True), ("TestStatusNoErrors", 1, "", False),
            ("TestBench", 0, "", True), ("TestAllowWarnings", 0, "WARNING: slow\n" + says, True),
        ):
            problem = lists.problem_of(Line("init", "a", 1, verdict=verdict), code, output)
            self.assertEqual(problem == "", passes, (verdict, code, output, problem))


class Building(unittest.TestCase):
    def make(self, directory):
        (directory / "rma").mkdir(parents=True)
        (directory / "rma/Makefile.am").write_text(
            "noinst_PROGRAMS = \\\n  a \\\n  b\nb_SOURCES = a.c c.c c.h\nb_CPPFLAGS = -DUSE_B $(AM_CPPFLAGS)\n",
            encoding="utf-8")
        (directory / "rma/a.c").write_text("MPI_Win_fence(0); MPI_File_open (1); MPI_Comm_spawn", encoding="utf-8")
        return programs.Builder(directory, directory / "programs", ["/bin/false"], ["/bin/false"],
                                {"MPI_File_open", "MPI_Comm_spawn"})

    def test_sources_and_flags(self):
        with tempfile.TemporaryDirectory() as name:
            builder = self.make(pathlib.Path(name).resolve())
            names = {program: [path.name for path in builder.files(Line("rma", program, 1))] for program in ("a", "b")}
            self.assertEqual(names, {"a": ["a.c"], "b": ["a.c", "c.c"]})
            self.assertEqual(builder.variables["rma"]["b_CPPFLAGS"][0], "-DUSE_B")
            self.assertEqual(builder.lacks(Line("rma", "a", 1)), ["MPI_File_open"])

    def test_fortran(self):
        with tempfile.TemporaryDirectory() as name:
            place = pathlib.Path(name).resolve()
            builder = self.make(place)
            for path, text in (("f08/ext/a.f90", "call mpi_file_open(x)\ninteger(MPI_COUNT_KIND) n; call MPI_SEND(n)"),
                               ("f77/ext/b.c", ""), ("f08/ext/b.f90", "")):
                (place / path).parent.mkdir(parents=True, exist_ok=True)
                (place / path).write_text(text, encoding="utf-8")
            builder.missing.add("MPI_Send_c")
            builder.variables["f08/ext"]["b_SOURCES"] = ["b.f90", "b.c"]
            self.assertEqual(builder.lacks(Line("f08/ext", "a", 1)), ["MPI_File_open", "MPI_Send_c"])
            found = [str(path.relative_to(place)) for path in builder.files(Line("f08/ext", "b", 1))]
            self.assertEqual(found, ["f08/ext/b.f90", "f77/ext/b.c"])
            self.assertEqual((Line("f08/ext", "b", 1).language, Line("ext", "b", 1).language), ("f08", ""))

    def test_templates_of_fortran_are_filled(self):
        with tempfile.TemporaryDirectory() as name:
            place = pathlib.Path(name)
            with tarfile.open(place / "a.tar.xz", "w:xz") as tar:
                member = tarfile.TarInfo("mpich-1/test/mpi/f77/attr/a.h.in")
                member.size = len(b"@F77_MPI_ADDRESS@ val")
                tar.addfile(member, io.BytesIO(b"@F77_MPI_ADDRESS@ val"))
            with mock.patch("shutil.rmtree"):
                sources.unpack(place / "a.tar.xz", place / "out")
            self.assertEqual((place / "out/f77/attr/a.h").read_text(encoding="utf-8"), "integer*8 val")

    def test_a_program_that_does_not_compile(self):
        with tempfile.TemporaryDirectory() as name:
            builder = self.make(pathlib.Path(name).resolve())
            self.assertEqual(builder.build(Line("rma", "a", 1)), "the compiler failed")

    def test_missing_functions_of_the_test_library_end_the_job(self):
        text = programs.stand_ins("MPI_File_open(x); MPI_Send(y); MPI_Comm_spawn;", {"MPI_File_open", "MPI_Comm_spawn"})
        self.assertIn("static inline int MPI_File_open(MPI_Comm comm, const char *filename,", text)
        self.assertIn('"MPI_File_open: missing\\n"', text)
        self.assertNotIn("MPI_Send", text)
        self.assertNotIn("MPI_Comm_spawn", text)

    def test_only_the_tests_are_unpacked(self):
        with tempfile.TemporaryDirectory() as name:
            place = pathlib.Path(name)
            with tarfile.open(place / "a.tar.xz", "w:xz") as tar:
                for path in ("test/mpi/rma/a.c", "test/mpi/rma/testlist", "test/mpi/errors/rma/a.c", "src/rma/a.c",
                             "test/mpi/rma/../../../../b.c", "test/mpi/cxx/rma/c.c", "test/mpi/util/mtest.c"):
                    member = tarfile.TarInfo(f"mpich-1/{path}")
                    tar.addfile(member, io.BytesIO())
            with mock.patch("shutil.rmtree"):
                sources.unpack(place / "a.tar.xz", place / "out")
            found = sorted(str(path.relative_to(place / "out")) for path in (place / "out").rglob("*.c"))
            self.assertEqual(found, ["errors/rma/a.c", "rma/a.c", "util/mtest.c"])


class Verdicts(unittest.TestCase):
    def test_all_of_them(self):
        says = "MPI_Intercomm_create: no intercommunicators"
        for one, word in ((result("a"), "PASS"), (result("a", "exit code 1", says), "FAIL"),
                          (result("rmanull", "exit code 1", says), "KNOWN"), (result("rmanull"), "XPASS"),
                          (result("rmanull", "exit code 1", "Found 3 errors"), "FAIL"),
                          (result("endless", "it is not run"), "KNOWN"),
                          (result("a", "it cannot be built", "error", ("MPI_File_open",)), "LACKS")):
            self.assertEqual(suite.verdict(one, EXPECTED), word)

    def report(self, *words):
        found = [result("rmanull", missing=("MPI_X",) if word == "LACKS" else ()) for word in words]
        for one, word in zip(found, words):
            one.word = word
        out = io.StringIO()
        with contextlib.redirect_stdout(out), mock.patch("lists.expected_failures", lambda: EXPECTED):
            failed = suite.report(found, 1)
        return failed, out.getvalue().splitlines()

    def test_the_closing_line(self):
        failed, lines = self.report("PASS", "PASS", "KNOWN", "LACKS")
        self.assertEqual((failed, lines[-1]), (0, "2 passed, 0 failed, 2 skipped"))
        self.assertIn("  known to fail: rma/rmanull 2: no intercommunicators", lines)
        self.assertIn("  missing functions: MPI_X", lines)
        failed, lines = self.report("PASS", "FAIL", "XPASS")
        self.assertEqual((failed, lines[-1]), (2, "1 passed, 2 failed, 0 skipped"))


class Fetching(unittest.TestCase):
    def test_no_network(self):
        with tempfile.TemporaryDirectory() as name:
            place = pathlib.Path(name)
            nowhere = ["sh", "-c", "echo 'W: Failed to fetch http://mirror'; exit 100"]
            with mock.patch("sources.private_apt", lambda *_: nowhere):
                with self.assertRaisesRegex(sources.SourcesError,
                                            "^MPICH's source package cannot be fetched from Debian: apt-get update "
                                            "ended with exit code 100. Failed to fetch http://mirror"):
                    sources.fetch(place, place / "log")


if __name__ == "__main__":
    unittest.main()

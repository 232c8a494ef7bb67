# SPDX-License-Identifier: BSD-3-Clause
"""Which stages canele-perf compare --node measures, where their ranks are, and its table, from made-up jobs.

Run by ctest. No job is started. Also the shared command lines, and programs that are taken from a kept directory.
"""

import argparse
import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import types
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "apps" / "perf" / "peers"))
# pylint: disable=wrong-import-position
import command_line
import node
import programs

SIXTEEN = list(range(16))


def stages(words, cores):
    with unittest.mock.patch.object(node.os, "sched_getaffinity", return_value=set(cores)):
        return node.stages(node.parse_arguments(words.split()), cores)


class Stages(unittest.TestCase):
    def test_all_numbers_up_to_the_cores(self):
        found = stages("", SIXTEEN)
        numbers = {part: [(one.ranks, one.threads) for one in found if one.part == part and one.place != node.FAR]
                   for part in node.PARTS}
        self.assertEqual(numbers["pairs"], [(2, 1), (4, 1), (8, 1), (16, 1)])
        self.assertEqual(numbers["collectives"], [(4, 1), (8, 1), (16, 1)])
        self.assertEqual(numbers["threads"], [(2, 1), (2, 2), (2, 4), (2, 8), (2, 16)])
        self.assertEqual([one.threads for one in found if one.shared], [16])
        self.assertEqual(node.doubling(4, 12), [4, 8, 12])

    def test_two_cores(self):
        found = stages("", [3, 5])
        self.assertEqual([(one.part, one.place, one.ranks, one.threads, one.shared) for one in found],
                         [("pairs", node.NEAR, 2, 1, False), ("collectives", "", 2, 1, False),
                          ("threads", "", 2, 1, False), ("threads", "", 2, 2, True)])
        self.assertEqual(found[0].cores, (3, 5))

    def test_what_is_asked_for_is_measured_and_marked(self):
        found = stages("--parts pairs,collectives --pairs 2 --ranks 8", [0, 1])
        self.assertEqual([(one.ranks, one.cores, one.shared) for one in found],
                         [(4, (0, 1, 0, 1), True), (8, (), True)])

    def test_cores_of_pairs(self):
        self.assertEqual(node.pair_cores(SIXTEEN, 2, node.NEAR), (0, 1, 2, 3))
        self.assertEqual(node.pair_cores(SIXTEEN, 2, node.FAR), (0, 8, 1, 9))
        for place in (node.NEAR, node.FAR):
            self.assertEqual(sorted(node.pair_cores(SIXTEEN, 8, place)), SIXTEEN)
        self.assertEqual(node.pair_cores([0], 1, node.NEAR), (0, 0))

    def test_threads_have_a_block_of_cores_for_each_rank(self):
        options = node.parse_arguments(["--quick"])
        for threads, each in ((1, "1"), (8, "8"), (16, "8")):
            case, = node.cases(options, node.Stage("threads", "", 2, threads, tuple(SIXTEEN), False))
            self.assertEqual(dict(case)["cores-each"], each)


class Table(unittest.TestCase):
    def test_what_jobs_print(self):
        lines = [{"benchmark": "pairs", "measure": "bandwidth", "size": 65536, "samples": {"values": [2000, 4000]}},
                 {"benchmark": "threads", "samples": {"rate": [1e6]}}]
        self.assertEqual(node.parse_progress("\n".join(map(json.dumps, lines))),
                         {("bandwidth 64 KiB", "GB/s", False): [2, 4], ("rate N-to-N, 8 B", "M/s", False): [1]})
        self.assertEqual(node.parse_collectives("barrier 8 1 2\nbcast 8 3 4\nbarrier 64 9 9\n"),
                         {("barrier", "us", True): [1, 2], ("bcast 8 B", "us", True): [3, 4]})

    def test_printed(self):
        stage = node.Stage("pairs", node.NEAR, 4, 1, (0, 1, 0, 1), True)
        records = {node.Row(stage, "latency 8 B", "us", True): {
            name: [{"round": 0, "samples": [time], "disturbed": []}]
            for name, time in (("canele", 1), ("canele-mpi", 3), ("openmpi", 2), ("mpich", 4))}}
        options = types.SimpleNamespace(contenders=["canele", "canele-mpi", "openmpi", "mpich"])
        rows = node.summarise(options, records)
        self.assertEqual([line["best"] for line in rows[0]["verdicts"]], ["openmpi", "openmpi"])
        about = {"processor": "a processor", "cores": 2, "caches": "", "kernel": "6", "commit": "abc"}
        result = {"machine": about, "rounds": 1, "driver": "shm", "minutes": 1, "contenders": options.contenders,
                  "missing": {}, "failures": [{"contender": "mpich", "stage": "pairs of 8 ranks", "why": "no end"}],
                  "rows": rows}
        with contextlib.redirect_stdout(io.StringIO()) as told:
            node.show(result)
        for pattern in ("a processor, 2 cores, caches not known, Linux 6, commit abc",
                        r"\*: more ranks and threads than cores",
                        r"pairs latency 8 B \[us\], neighbours +4\* +1 +1 \(1 to 1\) +3 \(3 to 3\)",
                        r"0\.50 \(0\.50 to 0\.50\) ahead +1\.50 .* behind", "mpich: failed in pairs of 8 ranks: no end",
                        "ahead in 1, behind in 1 of 2"):
            self.assertRegex(told.getvalue(), pattern)


class CommandLine(unittest.TestCase):
    def test_lists(self):
        self.assertEqual(command_line.whole_numbers("sizes")("1,0,3"), [1, 0, 3])
        for text, told in (("1,x", "sizes are whole numbers"), ("", "sizes are whole numbers"),
                           ("0", "least value is 1")):
            with self.assertRaisesRegex(argparse.ArgumentTypeError, told):
                command_line.whole_numbers("sizes", 1)(text)
        with self.assertRaisesRegex(argparse.ArgumentTypeError, "unknown place moon; known: here, there"):
            command_line.names("place", ["here", "there"])("here,moon")

    def test_results_are_kept_with_the_machine(self):
        with tempfile.TemporaryDirectory() as place:
            options = types.SimpleNamespace(work=place)
            with command_line.work_directory(options):
                path = command_line.keep(options, "growth", {"tables": []})
            whole = json.loads(path.read_text(encoding="utf-8"))
        self.assertEqual((whole["program"], whole["tables"]), ("growth", []))
        self.assertIn("processor", whole["machine"])

    def test_a_temporary_directory_keeps_nothing(self):
        options = types.SimpleNamespace(work=None)
        with command_line.work_directory(options):
            place = options.work
            self.assertIsNone(command_line.keep(options, "growth", {}))
        self.assertFalse(os.path.exists(place))


class Programs(unittest.TestCase):
    """Which program is used, and when it is compiled. The compiler and the launcher are scripts."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)
        (self.place / "bin").mkdir()
        self.options = types.SimpleNamespace(work=place.name, prefix=place.name)
        self.library = programs.Library("canele-mpi", [self.script("launcher", "")], {})

    def script(self, name, text):
        path = self.place / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
        path.chmod(0o755)
        return str(path)

    def build(self):
        with unittest.mock.patch.object(programs, "ROOT", self.place), unittest.mock.patch.dict(os.environ, PATH=""):
            return programs.build(self.options, self.library, "mpi_perf")

    def test_a_program_that_is_there_needs_no_compiler(self):
        program = self.place / "mpi_perf.canele-mpi"
        self.assertIn("nor " + str(program) + ", which prebuild makes", self.build()[1])
        program.touch()
        self.assertEqual(self.build(), (str(program), ""))

    def test_a_program_older_than_its_sources_is_compiled_again(self):
        program = self.place / "mpi_perf.canele-mpi"
        self.script("canele-mpicc", f"echo new > {program}")
        self.assertEqual(self.build(), (str(program), ""))
        program.write_text("kept", encoding="ascii")
        self.build()
        self.assertEqual(program.read_text(encoding="ascii"), "kept")
        os.utime(program, (1, 1))
        self.build()
        self.assertEqual(program.read_text(encoding="ascii"), "new\n")

    def test_a_failure_is_told(self):
        self.script("canele-mpicc", "echo no such header; exit 1")
        self.assertRegex(self.build()[1], "canele-mpicc failed:\nno such header")
        self.library = self.library._replace(launch=["nowhere"])
        self.assertEqual(self.build(), (None, "not installed"))


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: BSD-3-Clause
"""canele-perf nbc as users run it, and its heat maps: the form of the output, never its figures; bad input.

Run by ctest, which names the programs' directory in CANELE_TEST_BIN; by hand: see README.md. One thread. The requested
times need not be reached (a busy machine, a sanitizer): only the measurements must be complete.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

BIN = pathlib.Path(os.environ.get("CANELE_TEST_BIN", "build/release/bin")).resolve()
HEATMAP = pathlib.Path(__file__).resolve().parents[3] / "apps" / "perf" / "nbc" / "heatmap.py"
TIME_LIMIT = 600
QUICK = ("--iterations", "2", "--warm-ups", "0", "--driver", "shm")
RATIOS = {"comm", "comp", "total", "r_overhead", "r_comm", "r_comp_slowdown", "r_mpi_impact", "omb", "imb"}
BARE = {"r_overhead_bare", "comm_bare", "total_bare"}
RANKS = {"median", "least", "largest", "call", "computation", "wait"}


def run(*command, code=0, **options):
    """Returns output and errors of a command that must end with `code`."""
    done = subprocess.run(list(map(str, command)), timeout=TIME_LIMIT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False, **options)
    if done.returncode != code:
        raise AssertionError(f"exit code {done.returncode}, not {code}, of {command}:\n{done.stdout}\n{done.stderr}")
    return done.stdout, done.stderr


def nbc(*arguments, code=0):
    return run(BIN / "canele-perf", "nbc", *arguments, code=code)


def rows(*arguments):
    return [json.loads(line) for line in nbc(*QUICK, "--json", *arguments)[0].splitlines()]


class NbcTest(unittest.TestCase):
    def test_every_operation_and_configuration(self):
        configurations = ["none", "idle", "timer", "auto"]
        if len(os.sched_getaffinity(0)) > 1:
            configurations.append("dedicated")
        found = rows("--operation", "barrier", "--configuration", ",".join(configurations))
        self.assertEqual([row["configuration"] for row in found], configurations)
        # The results of these are checked; some may be too fast for 8 MiB.
        found += rows("--comm", "300us", "--ratio", "0.5", "--memory", "8M", "--configuration", "none")
        for row in found:
            self.assertEqual(set(row["figures"]), RATIOS | RANKS | {"diagnosis"})
            self.assertEqual({len(row["samples"][name]) for name in ("comm", "total")}, {2})
            self.assertEqual(len(row["samples"]["comp"]), 4, "one before each of the others")
            self.assertEqual(len(row["samples"]["ranks"]["r_overhead"]), 2)
            figures = row["figures"]
            self.assertGreater(figures["total"], 0)
            self.assertLessEqual(figures["least"], figures["median"])
            self.assertLessEqual(figures["median"], figures["largest"])

    def test_bare_copies_beside(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("no core for progress")
        one = ("--operation", "reduce,alltoall", "--comm", "100us", "--memory", "8M", "--configuration", "dedicated")
        for row in rows(*one):
            self.assertEqual(set(row["figures"]), RATIOS | RANKS | BARE | {"diagnosis"})
            counts = {name: len(row["samples"][name]) for name in ("comm_bare", "comp_bare", "total_bare")}
            self.assertEqual(counts, {"comm_bare": 2, "comp_bare": 4, "total_bare": 2})
            self.assertGreater(row["figures"]["comm_bare"], 0)
            self.assertGreater(row["figures"]["total_bare"], 0)
        for row in rows(*one, "--no-bare"):
            self.assertEqual(set(row["figures"]) & BARE, set())
        text, _ = nbc(*QUICK, *one)
        self.assertIn("r_overhead_bare", text)

    def test_a_small_sweep_and_its_heat_map(self):
        times = "100us,200us,400us,800us"
        found = rows("--sweep", "--comm", times, "--comp", times, "--operation", "bcast", "--configuration", "none")
        self.assertEqual({row["wanted_comp"] for row in found}, {100, 200, 400, 800})
        self.assertLessEqual(len(found), 16)
        with tempfile.TemporaryDirectory() as directory:
            svg = pathlib.Path(directory) / "map.svg"
            run(sys.executable, HEATMAP, "--svg", svg, input="".join(json.dumps(row) + "\n" for row in found))
            cells = xml.etree.ElementTree.parse(svg).getroot().findall(".//{*}title")
            self.assertEqual(len(cells), 3 * len(found))

    def test_cresta(self):
        found = rows("--cresta", "--size", "8,64k", "--delay", "50us", "--ranks", "3", "--operation",
                     "allreduce,barrier", "--configuration", "none")
        self.assertEqual([(row["operation"], row["size"]) for row in found],
                         [("allreduce", 8), ("allreduce", 65536), ("barrier", 0)])
        for row in found:
            self.assertLessEqual({"time", "comp", "together", "beta", "b_50us"}, set(row["figures"]))

    def test_tables(self):
        one = ("--operation", "barrier", "--configuration", "none", *QUICK)
        text, _ = nbc(*one)
        for word in ("r_overhead", "r_comp_slowdown", "barrier"):
            self.assertIn(word, text)
        text, _ = nbc(*one, "--all-ranks")
        for word in ("median", "largest", "call", "wait"):
            self.assertIn(word, text)

    def test_the_help_defines_the_figures(self):
        text, _ = nbc("--help")
        for word in RATIOS | BARE | {"beta", "dedicated"}:
            self.assertIn(word, text)

    def test_bad_input(self):
        self.assertIn("scatterv", nbc("--operation", "scatterv", code=105)[1])
        self.assertIn("unit", nbc("--comm", "500", code=105)[1])
        self.assertIn("cannot pin to core 4095", nbc("--cores", "4095", "--configuration", "none", code=1)[1])
        _, errors = run(BIN / "canele-run", "-n", "2", BIN / "canele-perf", "nbc", code=1)
        self.assertIn("one --configuration", errors)
        _, errors = run(sys.executable, HEATMAP, "--svg", "/dev/null", code=1, input='{"benchmark": "overlap"}\n')
        self.assertIn("line 1", errors)


if __name__ == "__main__":
    unittest.main()

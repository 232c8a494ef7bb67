#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""canele-perf with memory of a GPU, on the fake driver: the form of the output, never its figures; bad input."""
import itertools
import json
import os
import pathlib
import subprocess
import unittest

BIN = pathlib.Path(os.environ["CANELE_TEST_BIN"]).resolve()
KINDS = ("host", "device", "managed")
FEW = ["--batches", "2", "--iterations", "4", "--size", "8,64k"]


def run(*arguments, code=0, **environment):
    done = subprocess.run([BIN / "canele-perf", *arguments], env={**os.environ, "FAKE_CUDA_QUIET": "1", **environment},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != code:
        raise AssertionError(f"exit code {done.returncode}, not {code}, of {arguments}:\n{done.stdout}\n{done.stderr}")
    return done.stdout, done.stderr


class PerfTest(unittest.TestCase):
    def test_all_kinds_at_both_ranks(self):
        for benchmark, first, second in itertools.product(("latency", "bandwidth"), KINDS, KINDS):
            with self.subTest(benchmark=benchmark, first=first, second=second):
                memory = ["--memory", f"{first},{second}"]
                report = json.loads(run(benchmark, *memory, "--driver", "shm", "--json", *FEW)[0])
                self.assertEqual(report["memory"], [first, second])
                direct = "out of the sender's memory" in report["floor"]
                self.assertEqual(direct, first == second == "device")
                for row in report["results"]:
                    self.assertGreater(row["p10"], 0)
                    self.assertGreater(row["ratio"], 0)

    def test_table_and_one_kind_for_both(self):
        text, _ = run("latency", "--memory", "device", *FEW)
        self.assertIn("memory: device at rank 0, device at rank 1", text)

    def test_without_shared_memory(self):
        report = json.loads(run("latency", "--memory", "device", "--json", *FEW, FAKE_CUDA_NO_IPC="1")[0])
        self.assertIn("pinned host memory", report["floor"])

    def test_overlap(self):
        few = ["--size", "8,1M", "--batches", "2", "--ratio", "1", "--side", "receiver"]
        rows = [json.loads(line) for line in run("overlap", "--memory", "device", "--json", *few)[0].splitlines()]
        self.assertEqual([row["size"] for row in rows if "size" in row], [8, 1 << 20])

    def test_rate_has_no_floor(self):
        report = json.loads(run("rate", "--memory", "device", "--json", *FEW)[0])
        self.assertIn("none", report["floor"])

    def test_bad_input(self):
        self.assertIn("--memory", run("latency", "--memory", "disk", code=105)[1])
        errors = run("latency", "--memory", "device", code=1, CANELE_EXPERT_GPU_LIBRARY="no-such-library.so")[1]
        self.assertIn("no-such-library.so", errors)


if __name__ == "__main__":
    unittest.main()

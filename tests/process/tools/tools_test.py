# SPDX-License-Identifier: BSD-3-Clause
"""canele-info, canele-perf and the examples as users run them: the form of the output, never its figures; bad input.

Who: ctest, which names the programs' directory in CANELE_TEST_BIN; by hand: see README.md.
Surprise: canele-perf is run with very few iterations: whether it is fast is another test's affair.
"""
import json
import os
import pathlib
import subprocess
import unittest

BIN = pathlib.Path(os.environ.get("CANELE_TEST_BIN", "build/release/bin")).resolve()
SOURCE = pathlib.Path(__file__).resolve().parents[3]
TIME_LIMIT = 100


def run(*command, code=0, **environment):
    """Output and errors of a program that must end with `code`."""
    done = subprocess.run([BIN / command[0], *command[1:]], env={**os.environ, **environment}, timeout=TIME_LIMIT,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != code:
        raise AssertionError(f"exit code {done.returncode}, not {code}, of {command}:\n{done.stdout}\n{done.stderr}")
    return done.stdout, done.stderr


class InfoTest(unittest.TestCase):
    def test_json_is_complete(self):
        info = json.loads(run("canele-info", "--json")[0])
        drivers = {driver["name"]: driver for driver in info["drivers"]}
        self.assertLessEqual({"self", "shm", "tcp"}, set(drivers))
        for driver in drivers.values():
            self.assertEqual(driver["available"], driver["why_not"] == "", driver)
        self.assertEqual({"fifo", "aggregate", "priority"}, {s["name"] for s in info["strategies"]})
        for setting in info["settings"]:
            self.assertLessEqual({"variable", "value", "source", "default", "unit", "values", "help"}, set(setting))
        self.assertIn("PU", info["topology"]["summary"])
        self.assertNotEqual(info["worker"]["place"], "")

    def test_text_names_everything(self):
        text, _ = run("canele-info")
        info = json.loads(run("canele-info", "--json")[0])
        for name in [d["name"] for d in info["drivers"]] + [s["variable"] for s in info["settings"]]:
            self.assertIn(name, text)

    def test_source_of_a_value_is_shown(self):
        info = json.loads(run("canele-info", "--json", CANELE_STRATEGY="priority")[0])
        found = next(s for s in info["settings"] if s["variable"] == "CANELE_STRATEGY")
        self.assertEqual((found["value"], found["source"], found["default"]), ("priority", "environment", "aggregate"))

    def test_wrong_setting_is_told(self):
        _, errors = run("canele-info", code=1, CANELE_STRATEGY="agregate")
        self.assertIn("did you mean aggregate?", errors)
        _, errors = run("canele-info", CANELE_DRIVER="tcp")
        self.assertIn("did you mean CANELE_DRIVERS?", errors)


class PerfTest(unittest.TestCase):
    def measure(self, *arguments):
        return json.loads(run("canele-perf", *arguments, "--batches", "3", "--json")[0])

    def check(self, report, driver, sizes, with_floor):
        self.assertEqual(report["driver"], driver)
        self.assertEqual([row["size"] for row in report["results"]], sizes)
        self.assertEqual(len(report["cores"]), 2)
        for row in report["results"]:
            self.assertEqual(len(row["samples"]), 3)
            self.assertGreater(row["p10"], 0)
            self.assertLessEqual(row["p10"], row["median"])
            self.assertLessEqual(row["median"], row["p90"])
            self.assertEqual("ratio" in row, with_floor)

    def test_latency(self):
        for driver in ("shm", "tcp"):
            with self.subTest(driver=driver):
                report = self.measure("latency", "--driver", driver, "--size", "0,8,100k", "--iterations", "20")
                self.check(report, driver, [0, 8, 102400], True)

    def test_bandwidth(self):
        for driver in ("shm", "tcp"):
            with self.subTest(driver=driver):
                report = self.measure("bandwidth", "--driver", driver, "--size", "1M", "--iterations", "32")
                self.check(report, driver, [1 << 20], True)

    def test_rate(self):
        self.check(self.measure("rate", "--driver", "shm", "--iterations", "128"), "shm", [8], False)

    def test_table(self):
        text, _ = run("canele-perf", "latency", "--batches", "1", "--iterations", "10", "--driver", "shm")
        for word in ("driver shm", "rank 0 on core", "floor: flags in shared memory", "median", "ratio"):
            self.assertIn(word, text)

    def test_uses_the_ranks_it_is_given(self):
        text, _ = run("canele-run", "-n", "2", str(BIN / "canele-perf"), "rate", "--batches", "1", "--json")
        self.assertEqual(json.loads(text)["benchmark"], "rate")

    def test_bad_input(self):
        self.assertIn("subcommand", run("canele-perf", code=106)[1])
        _, errors = run("canele-perf", "latency", "--driver", "smh", code=1)
        self.assertIn("smh", errors)
        _, errors = run("canele-perf", "latency", "--cores", "4095", code=1)
        self.assertIn("cannot pin", errors)
        _, errors = run("canele-run", "-n", "3", str(BIN / "canele-perf"), "latency", code=1)
        self.assertIn("two ranks are needed, and this job has 3", errors)


class ExamplesTest(unittest.TestCase):
    def test_hello(self):
        for ranks in (1, 2, 4):
            with self.subTest(ranks=ranks):
                text, _ = run("canele-run", "-n", str(ranks), str(BIN / "canele-hello"))
                self.assertIn(f"came back with {ranks * (ranks - 1) // 2} from {ranks} rank", text)
                self.assertIn("is refused", text)

    def test_hello_alone(self):
        self.assertIn("came back with 0 from 1 rank", run("canele-hello")[0])

    def test_pingpong(self):
        text, _ = run("canele-run", "-n", "2", str(BIN / "canele-pingpong"))
        self.assertIn("us one way", text)
        self.assertIn("16 bytes into room for 4", text)

    def test_pingpong_wants_two(self):
        _, errors = run("canele-pingpong", code=2)
        self.assertIn("two ranks are needed, not 1", errors)

    def test_examples_are_short(self):
        for name in ("hello.c", "pingpong.cpp"):
            lines = (SOURCE / "apps/examples" / name).read_text(encoding="utf-8").count("\n")
            self.assertLess(lines, 100, name)


if __name__ == "__main__":
    unittest.main(verbosity=2)

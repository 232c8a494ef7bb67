# SPDX-License-Identifier: BSD-3-Clause
"""canele-info, canele-perf and the examples as users run them: the form of the output, never its figures; bad input.

Run by ctest, which names the programs' directory in CANELE_TEST_BIN; by hand: see README.md. canele-perf is run with
very few iterations: other tests check whether it is fast.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(os.environ.get("CANELE_TEST_BIN", "build/release/bin")).resolve()
SOURCE = pathlib.Path(__file__).resolve().parents[3]
TIME_LIMIT = 1000


def run(*command, code=0, **environment):
    """Returns output and errors of a program that must end with `code`."""
    done = subprocess.run([BIN / command[0], *command[1:]], env={**os.environ, **environment}, timeout=TIME_LIMIT,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != code:
        raise AssertionError(f"exit code {done.returncode}, not {code}, of {command}:\n{done.stdout}\n{done.stderr}")
    return done.stdout, done.stderr


# With its own heap, a sanitizer makes resident memory meaningless, and is slow where there are many messages.
SANITIZER = json.loads(run("canele-info", "--json")[0])["build"]["sanitizer"]
plain_build_only = unittest.skipIf(SANITIZER, f"built with -fsanitize={SANITIZER}")


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

    def test_info_network(self):
        """Every address that the driver tcp publishes is there, loopback first."""
        text, _ = run("canele-info", "--network")
        info = json.loads(run("canele-info", "--json")[0])
        tcp = next(driver for driver in info["drivers"] if driver["name"] == "tcp")
        self.assertEqual(tcp["network"][0]["kind"], "loopback")
        for one in tcp["network"]:
            self.assertRegex(text, rf"(?m)^ +{re.escape(one['interface'])} +{re.escape(one['address'])} +{one['kind']}")
        self.assertEqual(next(driver for driver in info["drivers"] if driver["name"] == "self")["network"], [])

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
        self.check(self.measure("rate", "--driver", "shm", "--iterations", "128"), "shm", [8], True)
        self.check(self.measure("rate", "--driver", "shm", "--iterations", "128", "--tags", "9"), "shm", [8], True)
        self.check(self.measure("rate", "--driver", "tcp", "--sessions", "5", "--tags", "3"), "tcp", [8], False)
        self.check(self.measure("rate", "--driver", "shm", "--iterations", "128", "--size", "4k"), "shm", [4096], False)
        self.check(self.measure("rate", "--driver", "tcp", "--iterations", "128"), "tcp", [8], False)

    def test_bare_engine(self):
        for arguments, sizes in (("latency --size 8,100,4k --iterations 20", [8, 100, 4096]),
                                 ("rate --iterations 128 --tags 64", [8])):
            report = self.measure(*arguments.split(), "--driver", "shm", "--bare-engine")
            self.check(report, "shm", sizes, True)
            self.assertEqual(report["floor"], "a bare engine")
        self.check(self.measure("latency", "--driver", "tcp", "--iterations", "20", "--bare-engine"), "tcp", [8], False)
        self.check(self.measure("bandwidth", "--size", "64k", "--iterations", "32", "--bare-engine", "--driver", "shm"),
                   "shm", [65536], False)

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
        self.assertIn("this job has 3 ranks; expected: two", errors)


class ProgressTest(unittest.TestCase):
    def rows(self, *arguments):
        return [json.loads(line) for line in run("canele-perf", *arguments, "--json")[0].splitlines()]

    def test_overlap(self):
        rows = self.rows("overlap", "--driver", "shm", "--size", "4k,256k", "--ratio", "1", "--batches", "2")
        self.assertEqual([(row["size"], row["side"]) for row in rows],
                         [(size, side) for size in (4096, 262144) for side in ("sender", "receiver", "both")])
        for row in rows:
            self.assertLessEqual({"comm", "one", "comp", "total", "bound", "serial", "r_overhead", "r_comm",
                                  "r_comp_slowdown", "r_passive_impact", "cpu_send", "cpu_recv"}, set(row["figures"]))
            self.assertEqual({len(samples) for samples in row["samples"].values()}, {2})
            self.assertGreater(row["figures"]["total"], 0)

    def test_threads(self):
        rows = self.rows("threads", "--driver", "shm", "--threads", "1,5", "--batches", "1", "--rounds", "50",
                         "--seconds", "0.05")
        self.assertEqual([(row["pattern"], row["threads"]) for row in rows],
                         [(pattern, n) for pattern in ("1-to-N", "N-to-N") for n in (1, 5)])
        for row in rows:
            self.assertGreater(row["figures"]["median"], 0)
        self.assertGreater(rows[-1]["figures"]["rate"], 0)

    def test_overload_and_availability(self):
        loaded = self.rows("overload", "--driver", "shm", "--size", "64k", "--threads", "0,1", "--rounds", "20")
        self.assertEqual([len(row["samples"]["times"]) for row in loaded], [20, 20])
        rows = self.rows("availability", "--driver", "shm", "--size", "64k", "--batches", "3")
        self.assertEqual([row["side"] for row in rows], ["sender", "receiver"])
        for row in rows:
            self.assertGreater(row["figures"]["with"], row["figures"]["base"])

    def test_alltoall(self):
        row, = self.rows("alltoall", "--driver", "shm", "--ranks", "3", "--size", "8", "--rounds", "5", "--batches",
                         "2")
        self.assertEqual((row["ranks"], len(row["samples"]["times"])), (3, 2))

    def test_alltoall_without_a_library(self):
        arguments = ("alltoall", "--bare", "--ranks", "3", "--rounds", "5", "--batches", "2")
        rows = self.rows(*arguments)
        self.assertEqual([row["looks"] for row in rows], [0, 200])
        for row in rows:
            self.assertEqual((row["ranks"], len(row["samples"]["times"])), (3, 2))
        _, errors = run("canele-run", "-n", "2", str(BIN / "canele-perf"), *arguments, code=1)
        self.assertIn("starts its ranks itself", errors)

    def test_silence(self):
        for wait in ([], ["--queue"]):
            row, = self.rows("silence", "--driver", "shm", "--ranks", "3", "--seconds", "0.05", "--batches", "2", *wait)
            self.assertEqual((row["ranks"], len(row["samples"]["first"])), (3, 2))
            for figure in ("first", "futex", "epoll", "to_futex", "to_epoll"):
                self.assertGreater(row["figures"][figure], 0, figure)

    def test_passive(self):
        for operation in ("put", "get", "accumulate"):
            row, = self.rows("passive", "--driver", "shm", "--operation", operation, "--size", "64", "--seconds",
                             "0.002", "--batches", "5")
            self.assertEqual((row["operation"], row["size"], len(row["samples"]["times"])), (operation, 64, 5))
            self.assertLessEqual(row["figures"]["first"], row["figures"]["worst"])

    def test_clock(self):
        rows = self.rows("clock", "--driver", "shm", "--ranks", "3", "--seconds", "0.05", "--batches", "3", "--trips",
                         "100", "--offset", "2", "--drift", "100", "--seed", "5")
        self.assertEqual([row.get("rank", row.get("start")) for row in rows], [1, 2, "barrier", "agreed-date"])
        for row in rows[:2]:
            figures = row["figures"]
            self.assertGreater(abs(figures["offset"]), 1000)
            for which in ("", "between_", "ahead_"):  # bounds hold on any machine, however busy
                self.assertLessEqual(figures[which + "error"], figures[which + "bound"] + 0.01, which)
        for row in rows[2:]:
            self.assertEqual(len(row["samples"]["spreads"]), 3)
            self.assertLessEqual({"median", "p10", "p90", "most", "bound", "missed"}, set(row["figures"]))

    def test_the_help_defines_the_figures(self):
        for name, word in (("overlap", "r_overhead"), ("threads", "p99_to_median"), ("availability", "overhead"),
                           ("clock", "between_bound")):
            self.assertIn(word, run("canele-perf", name, "--help")[0])

    def test_bad_input(self):
        _, errors = run("canele-run", "-n", "3", str(BIN / "canele-perf"), "overlap", code=1)
        self.assertIn("expected: two on one host", errors)
        _, errors = run("canele-run", "-n", "2", str(BIN / "canele-perf"), "passive", code=1)
        self.assertIn("expected: three on one host", errors)
        self.assertIn("multiple of 8", run("canele-perf", "passive", "--size", "9", code=1)[1])
        self.assertIn("sideways", run("canele-perf", "overlap", "--side", "sideways", code=105)[1])
        self.assertIn("cannot pin", run("canele-perf", "threads", "--cores", "4095", code=1)[1])


class MatchTest(unittest.TestCase):
    QUICK = ("--batches", "2", "--iterations", "1")

    def match(self, *arguments, **environment):
        return json.loads(run("canele-perf", "match", *self.QUICK, "--json", *arguments, **environment)[0])

    def test_every_direction_and_order(self):
        report = self.match("--driver", "shm", "--receives", "1,300")
        cases = [(row["direction"], row["order"], row["receives"]) for row in report["results"]]
        self.assertEqual(cases, [(direction, order, receives) for direction in ("posted", "unexpected")
                                 for order in ("in-order", "reverse", "shuffled") for receives in (1, 300)])
        self.assertEqual((report["driver"], report["matcher"], report["seed"]), ("shm", "table", 1))
        self.assertTrue(report["unexpected_memory_raised"])
        for row in report["results"]:
            self.assertEqual(len(row["samples"]), 2)
            self.assertLessEqual(0, row["p10"])
            self.assertLessEqual(row["p10"], row["p90"])
            self.assertLess(row["counts"]["lines"], 2.01)

    @plain_build_only
    def test_more_unexpected_messages_than_the_usual_limit(self):
        report = self.match("--receives", "300000", "--direction", "unexpected", "--order", "in-order", "--no-counts")
        self.assertGreater(int(report["unexpected_memory"]), 300000 * 264)
        self.assertNotIn("counts", report["results"][0])

    @plain_build_only
    def test_wildcards_of_all_kinds(self):
        for any_source, any_tag in (("1", "1"), ("100", "0"), ("0", "100"), ("100", "100")):
            with self.subTest(any_source=any_source, any_tag=any_tag):
                report = self.match("--receives", "500", "--any-source", any_source, "--any-tag", any_tag)
                self.assertEqual(report["any_tag_percent"], float(any_tag))

    @plain_build_only
    def test_every_matcher_cold_and_over_tcp(self):
        for matcher in ("list", "bins", "peers", "arrays", "vector", "fuzzy"):
            with self.subTest(matcher=matcher):
                report = self.match("--receives", "200", "--order", "shuffled", "--matcher", matcher)
                self.assertEqual(report["matcher"], matcher)
        self.assertEqual(self.match("--receives", "64", CANELE_EXPERT_MATCHER="bins")["matcher"], "bins")
        self.assertTrue(self.match("--receives", "64", "--cold", "--order", "reverse", "--driver", "tcp")["cold"])

    @plain_build_only
    def test_the_load_of_an_application_on_every_matcher(self):
        text, _ = run("canele-perf", "match", *self.QUICK, "--load", "fds", "--receives", "128", "--json")
        rows = [json.loads(line) for line in text.splitlines()]
        self.assertEqual([row["matcher"] for row in rows],
                         ["table", "list", "bins", "peers", "arrays", "vector", "fuzzy"])
        for row in rows:
            self.assertEqual(row["load"], "fds")
            self.assertEqual([(one["direction"], one["order"], one["receives"]) for one in row["results"]],
                             [("posted", "deep", 128), ("unexpected", "deep", 128)])
        counts = {row["matcher"]: row["results"][0]["counts"]["attempts"] for row in rows}
        self.assertGreater(counts["list"], 10 * counts["table"])
        one = json.loads(run("canele-perf", "match", *self.QUICK, "--load", "fds", "--matcher", "table", "--direction",
                             "posted", "--json")[0])
        self.assertEqual([row["receives"] for row in one["results"]], [128 << i for i in range(7)])

    def test_table(self):
        text, _ = run("canele-perf", "match", *self.QUICK, "--receives", "64", "--any-tag", "2", "--seed", "7")
        for word in ("matcher table", "seed 7", "for any tag: 2 %", "so that no message stays blocked", "attempts"):
            self.assertIn(word, text)

    def test_bad_input(self):
        for arguments, word in ((("--receives", "0"), "not in range"), (("--receives", "4M"), "not in range"),
                                (("--order", "sideways"), "sideways"), (("--load", "amg"), "amg"),
                                (("--direction", "up"), "up"),
                                (("--any-tag", "101"), "not in range"), (("--any-source", "-1"), "not in range")):
            with self.subTest(arguments=arguments):
                self.assertIn(word, run("canele-perf", "match", *arguments, code=105)[1])
        self.assertIn("did you mean table?", run("canele-perf", "match", "--matcher", "tabel", code=1)[1])
        _, errors = run("canele-run", "-n", "3", str(BIN / "canele-perf"), "match", code=1)
        self.assertIn("this job has 3 ranks; expected: two", errors)


class FloodTest(unittest.TestCase):
    def flood(self, *arguments):
        text, _ = run("canele-perf", "flood", "--json", *arguments)
        return [json.loads(line) for line in text.splitlines()]

    @plain_build_only
    def test_one_job_for_each_case(self):
        reports = self.flood("--senders", "1,3", "--size", "8,64k", "--messages", "2000", "--limit", "8M")
        cases = [(report["driver"], report["senders"], report["size"]) for report in reports]
        self.assertEqual(cases, [(driver, senders, size) for driver in ("shm", "tcp") for senders in (1, 3)
                                 for size in (8, 65536)])

    @plain_build_only
    def test_what_does_not_fit_stays_with_the_sender(self):
        for both in ((), ("--both",)):
            with self.subTest(both=both):
                (report,) = self.flood("--driver", "shm", "--senders", "1", "--size", "1k", "--messages", "20000",
                                       "--limit", "8M", *both)
                receiver, sender = report["ranks"]
                self.assertTrue(report["within"])
                self.assertLess(receiver["unexpected_bytes_most"], 8 << 20)
                self.assertEqual(report["limit"], 8 << 20)
                self.assertGreater(sender["credit_blocked_most"], 0)
                self.assertGreater(receiver["stored_at_rest"], 0)
                self.assertEqual(sender["stored_at_rest"] > 0, bool(both))

    @plain_build_only
    def test_text(self):
        text, _ = run("canele-perf", "flood", "--driver", "tcp", "--senders", "2", "--size", "8", "--messages", "1000")
        for word in ("2 senders", "resident", "unexpected_bytes_most", "credit_stalls", "in order"):
            self.assertIn(word, text)

    def test_too_much_memory_is_a_failure(self):
        one = ("--driver", "shm", "--senders", "1", "--size", "1k")
        _, errors = run("canele-perf", "flood", *one, "--messages", "20000", "--allow", "64k", code=1)
        self.assertIn("resident memory of a receiver grew by", errors)
        self.assertIn("has failed", errors)

    def test_bad_input(self):
        for arguments, word in ((("--size", "12"), "expected: a multiple of 8"), (("--senders", "0"), "not in range"),
                                (("--messages", "0"), "not in range")):
            with self.subTest(arguments=arguments):
                self.assertIn(word, run("canele-perf", "flood", *arguments, code=105)[1])
        _, errors = run("canele-perf", "flood", "--driver", "smh", "--senders", "1", "--size", "8", code=1)
        self.assertIn("smh", errors)
        _, errors = run("canele-run", "-n", "2", str(BIN / "canele-perf"), "flood", code=1)
        self.assertIn("in a job, flood measures one case", errors)
        one = ("--driver", "shm", "--senders", "1", "--size", "8")
        _, errors = run("canele-perf", "flood", *one, "--limit", "1k", code=1)
        self.assertIn("CANELE_UNEXPECTED_MEMORY", errors)


class BroadcastTest(unittest.TestCase):
    QUICK = ("--batches", "3", "--size", "8,300k")

    @plain_build_only
    def test_one_job_for_each_case(self):
        text, _ = run("canele-perf", "broadcast", "--json", "--destinations", "1,3", *self.QUICK)
        reports = [json.loads(line) for line in text.splitlines()]
        cases = [(report["driver"], report["destinations"], report["size"]) for report in reports]
        self.assertEqual(cases, [(driver, destinations, size) for driver in ("shm", "tcp") for destinations in (1, 3)
                                 for size in (8, 300 << 10)])
        for report in reports:
            self.assertEqual(set(report["samples"]), {"sends", "auto", "flat", "chain", "binomial", "4-nomial"})
            for samples in report["samples"].values():
                self.assertEqual(len(samples), 3)
                self.assertGreater(min(samples), 0)

    @plain_build_only
    def test_text(self):
        text, _ = run("canele-perf", "broadcast", "--driver", "tcp", "--destinations", "2", *self.QUICK)
        for word in ("root to 2 ranks over tcp", "median", "to sends", "chain"):
            self.assertIn(word, text)

    def test_bad_input(self):
        self.assertIn("not in range", run("canele-perf", "broadcast", "--destinations", "0", code=105)[1])
        self.assertIn("star", run("canele-perf", "broadcast", "--shape", "star", code=105)[1])
        _, errors = run("canele-run", "-n", "2", str(BIN / "canele-perf"), "broadcast", code=1)
        self.assertIn("in a job, broadcast measures one driver", errors)


class CallbackTest(unittest.TestCase):
    @plain_build_only
    def test_all_kinds_of_workers(self):
        text, _ = run("canele-perf", "callback", "--json", "--batches", "3", "--busy", "3000")
        reports = [json.loads(line) for line in text.splitlines()]
        self.assertEqual([report["driver"] for report in reports], ["shm", "tcp"])
        for report in reports:
            self.assertEqual(set(report["samples"]), {"free", "bound", "bound+idle"})
            for samples in report["samples"].values():
                self.assertEqual(len(samples), 3)
                self.assertGreater(min(samples), 0)
        text, _ = run("canele-perf", "callback", "--driver", "shm", "--batches", "1", "--no-pin")
        for word in ("over shm", "longest", "bound+idle"):
            self.assertIn(word, text)

    def test_bad_input(self):
        self.assertIn("not in range", run("canele-perf", "callback", "--busy", "1", code=105)[1])
        _, errors = run("canele-run", "-n", "2", str(BIN / "canele-perf"), "callback", code=1)
        self.assertIn("in a job, callback measures one driver", errors)


class SampleTest(unittest.TestCase):
    QUICK = ("--iterations", "2", "--batches", "3")

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(prefix="canele-samples-")
        self.addCleanup(self.directory.cleanup)
        self.cache = os.path.join(self.directory.name, "new", "cache")

    def sample(self, *arguments, **options):
        return run("canele-perf", "sample", *arguments, *self.QUICK, CANELE_SAMPLES=self.cache, **options)

    def info(self):
        info = json.loads(run("canele-info", "--json", CANELE_SAMPLES=self.cache)[0])
        return info["samples"], {driver["name"]: driver.get("costs") for driver in info["drivers"]}

    def only_file(self):
        (file,) = pathlib.Path(self.cache).iterdir()  # one, and nothing temporary
        return file

    def test_what_is_measured_is_what_the_library_reads(self):
        self.assertEqual(self.info()[0]["state"], "absent")
        text, _ = self.sample("--driver", "shm,tcp")
        self.assertIn(f"kept in {self.only_file()}", text)
        for word in ("latency/ns", "measured", "declared", "shm", "tcp"):
            self.assertIn(word, text)
        lines = self.only_file().read_text(encoding="utf-8").splitlines()
        self.assertEqual((lines[0], lines[-1]), ("canele-samples 1", "end"))
        self.assertEqual([line.split()[1] for line in lines if line.startswith("driver ")], ["shm", "tcp"])

        samples, costs = self.info()
        self.assertEqual((samples["state"], samples["problem"], samples["file"]), ("read", "", str(self.only_file())))
        for name in ("shm", "tcp"):
            self.assertTrue(costs[name]["measured"], name)
            self.assertEqual(len(costs[name]["times"]), 7)
            for figure in ("latency_ns", "gap_ns", "bytes_per_second"):
                self.assertGreater(costs[name][figure], 0)
        self.assertFalse(costs["self"]["measured"])
        text, _ = run("canele-info", "--drivers", CANELE_SAMPLES=self.cache)
        self.assertEqual(text.count("costs  measured 2"), 2, text)
        self.assertIn("(declared: latency 150", text)
        self.assertIn(f"samples    {self.only_file()}: shm, tcp", text)

    def test_one_driver_leaves_the_others_as_they_were(self):
        self.sample("--driver", "shm")
        before = self.info()[1]["shm"]
        arguments = ("--driver", "tcp", *self.QUICK)  # in a job that another launcher has started
        run("canele-run", "-n", "2", str(BIN / "canele-perf"), "sample", *arguments, CANELE_SAMPLES=self.cache)
        costs = self.info()[1]
        self.assertTrue(costs["tcp"]["measured"])
        self.assertEqual(costs["shm"], before)

    def test_samples_of_another_machine_do_not_count(self):
        self.sample("--driver", "shm")
        text = self.only_file().read_text(encoding="utf-8")
        self.only_file().write_text(text.replace("\nmachine ", "\nmachine Other "), encoding="utf-8")
        samples, costs = self.info()
        self.assertEqual(samples["state"], "stale")
        self.assertFalse(costs["shm"]["measured"])
        _, errors = run("canele-hello", CANELE_SAMPLES=self.cache)
        self.assertNotIn("machine", errors)  # no warning
        self.assertIn("machine Other", run("canele-hello", CANELE_SAMPLES=self.cache, CANELE_VERBOSE="3")[1])
        self.sample("--driver", "shm")
        self.assertTrue(self.info()[1]["shm"]["measured"])

    def test_a_bad_line_is_one_warning(self):
        self.sample("--driver", "shm")
        with open(self.only_file(), "a", encoding="utf-8") as file:
            file.write("time shm\n")
        _, errors = run("canele-run", "-n", "2", str(BIN / "canele-hello"), CANELE_SAMPLES=self.cache)
        self.assertEqual(errors.count(str(self.only_file())), 1, errors)
        self.assertIn("it comes after the end; expected: time NAME BYTES NS", errors)

    def test_bad_input(self):
        _, errors = self.sample("--driver", "shm+tcp,tpc", code=1)
        self.assertIn('"shm+tcp" is not one driver', errors)
        self.assertIn("did you mean tcp?", errors)
        self.assertFalse(os.path.exists(self.cache))
        _, errors = run("canele-perf", "sample", code=1, CANELE_SAMPLES="off")
        self.assertIn("no place for samples", errors)
        _, errors = self.sample("--driver", "shm", code=1, CANELE_EXPERT_DECORATORS="check")
        self.assertIn("CANELE_EXPERT_DECORATORS is set", errors)
        _, errors = run("canele-run", "-n", "2", str(BIN / "canele-perf"), "sample", code=1)
        self.assertIn("in a job, sample measures one driver", errors)
        pathlib.Path(self.directory.name, "new").touch()
        _, errors = self.sample("--driver", "shm", code=1)
        self.assertIn("cannot make the directory", errors)


class TraceTest(unittest.TestCase):
    """CANELE_TRACE: a file of each rank that Perfetto reads."""

    def test_what_each_rank_has_sent_and_received(self):
        with tempfile.TemporaryDirectory() as directory:
            run("canele-run", "-n", "2", str(BIN / "canele-pingpong"), CANELE_TRACE=f"{directory}/%r.json")
            events = [json.loads(pathlib.Path(directory, f"{rank}.json").read_text(encoding="utf-8"))["traceEvents"]
                      for rank in (0, 1)]
        for rank, own in enumerate(events):
            self.assertEqual({event["pid"] for event in own}, {rank})
            kinds = [event["name"] for event in own]
            for kind in ("peer_connected", "send_posted", "send_done", "receive_posted", "receive_done"):
                self.assertIn(kind, kinds)

    def test_the_newest_are_kept(self):
        with tempfile.TemporaryDirectory() as directory:
            run("canele-run", "-n", "2", str(BIN / "canele-pingpong"), CANELE_TRACE=f"{directory}/%r.json",
                CANELE_EXPERT_TRACE_EVENTS="16")
            trace = json.loads(pathlib.Path(directory, "0.json").read_text(encoding="utf-8"))
        self.assertEqual(len(trace["traceEvents"]), 1 + 16)
        self.assertGreater(trace["otherData"]["lost"], 100)

    def test_a_file_that_cannot_be_written_is_told(self):
        _, errors = run("canele-hello", CANELE_TRACE="/no/such/place/%r.json", code=1)
        self.assertIn('CANELE_TRACE="/no/such/place/%r.json": there is no directory /no/such/place', errors)
        # A destination that works at the start may still fail at the end.
        _, errors = run("canele-hello", CANELE_TRACE="/dev/full")
        self.assertIn('cannot write the trace (CANELE_TRACE) to "/dev/full"', errors)
        _, errors = run("canele-hello", CANELE_EXPERT_TRACE_EVENTS="3", code=1)
        self.assertIn("CANELE_EXPERT_TRACE_EVENTS", errors)


class ExamplesTest(unittest.TestCase):
    def test_hello(self):
        for ranks in (1, 2, 4):
            with self.subTest(ranks=ranks):
                text, _ = run("canele-run", "-n", str(ranks), str(BIN / "canele-hello"))
                self.assertIn(f"came back with {ranks * (ranks - 1) // 2} from {ranks} rank", text)
                self.assertIn("is refused", text)

    def test_examples_of_runtimes(self):
        for program, right in (("canele-halo", "the heat is 800.000000 (right)"), ("canele-work-queue", ": right"),
                               ("canele-key-value-table", ": right")):
            for driver, ranks in (("shm", 1), ("shm", 2), ("tcp", 2), ("shm", 4), ("tcp", 4), ("shm", 8), ("tcp", 8)):
                with self.subTest(program=program, driver=driver, ranks=ranks):
                    text, _ = run("canele-run", "-n", str(ranks), str(BIN / program), CANELE_DRIVERS=driver)
                    self.assertIn(right, text)

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

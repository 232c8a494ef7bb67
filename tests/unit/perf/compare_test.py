# SPDX-License-Identifier: BSD-3-Clause
"""The pure functions of `canele-perf compare`: summaries, ratios, verdicts, marks of a sample, a peer's output.

Run by ctest. Nothing is measured here.
"""
import contextlib
import io
import pathlib
import re
import sys
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(SOURCE / "apps" / "perf" / "peers"))
# pylint: disable=wrong-import-position
import contenders
import figures
import growth
import pairs
import programs
import report
import rows
import run


def record(number, *samples, disturbed=(), contender="canele", row="shm-latency-8"):
    return {"row": row, "contender": contender, "round": number, "samples": list(samples), "disturbed": list(disturbed)}


class Summaries(unittest.TestCase):
    def test_quantiles_are_those_of_canele_perf(self):  # statistics_test.cpp has the same values
        self.assertEqual(figures.quantile([4, 1, 3, 2], 0.5), 2.5)
        self.assertEqual(figures.quantile(range(0, 101, 10), 0.1), 10)
        self.assertAlmostEqual(figures.quantile([1, 2, 3, 4], 0.9), 3.7)
        self.assertEqual(figures.quantile([5], 0.37), 5)

    def test_disturbed_records_do_not_count(self):
        quiet, loud = record(0, 1.0), record(1, 9.0, disturbed=["steal"])
        self.assertEqual(figures.undisturbed([quiet, loud]), [quiet])
        self.assertEqual(figures.pooled(figures.undisturbed([quiet, loud])).value, 1.0)

    def test_unless_most_are(self):
        records = [record(0, 1.0), record(1, 9.0, disturbed=["x"]), record(2, 9.0, disturbed=["x"])]
        self.assertEqual(figures.undisturbed(records), records)


class Ratios(unittest.TestCase):
    def test_rounds_are_paired(self):
        """A machine that is twice as slow in one round changes no ratio."""
        ours = [record(0, 1.0, 1.0), record(1, 2.0, 2.0), record(2, 1.0)]
        theirs = [record(0, 2.0), record(1, 4.0), record(2, 2.0)]
        self.assertEqual(figures.ratio(ours, theirs), figures.Figure(0.5, 0.5, 0.5))

    def test_spread(self):
        value = figures.ratio([record(i, 1.0 + i) for i in range(3)], [record(i, 1.0) for i in range(3)])
        self.assertEqual(value.value, 2.0)
        self.assertAlmostEqual(value.p10, 1.2)
        self.assertAlmostEqual(value.p90, 2.8)

    def test_no_round_in_common(self):
        self.assertEqual(figures.ratio([record(0, 3.0)], [record(1, 2.0)]), figures.Figure(1.5, 1.5, 1.5))


class Verdicts(unittest.TestCase):
    def test_best_is_a_peer(self):
        medians = {"canele": 1, "canele-mpi": 2, "floor": 0.1, "openmpi": 5, "mpich": 4}
        self.assertEqual(figures.best_peer(True, medians), "mpich")
        self.assertEqual(figures.best_peer(False, medians), "openmpi")
        self.assertIsNone(figures.best_peer(True, {"canele": 1, "floor": 1}))

    def test_ahead_is_not_yet_the_target(self):
        self.assertEqual(figures.verdict(True, 0.9, 0.85), ("ahead", False))
        self.assertEqual(figures.verdict(True, 0.85, 0.85), ("ahead", True))
        self.assertEqual(figures.verdict(True, 1.01, None), ("behind", None))
        self.assertEqual(figures.verdict(False, 0.99, 0.97), ("behind", True))
        self.assertEqual(figures.verdict(False, 1.8, 1.7), ("ahead", True))

    def test_judge(self):
        records = {"canele": [record(0, 1.5)], "mpich": [record(0, 2.0)], "openmpi": [record(0, 3.0)],
                   "floor": [record(0, 1.0)]}
        line = figures.judge(True, 0.85, 1.35, records)
        self.assertEqual((line["best"], line["ratio"].value), ("mpich", 0.75))
        self.assertEqual((line["verdict"], line["met"]), ("ahead", True))
        self.assertEqual((line["floor_ratio"].value, line["floor_met"]), (1.5, False))
        self.assertIsNone(figures.judge(True, 0.85, 1.35, records, "canele-mpi"))

    def test_a_bare_engine_is_no_peer(self):
        records = {"canele": [record(0, 1.5)], "mpich": [record(0, 2.0)], "floor": [record(0, 1.0)],
                   "bare-engine": [record(0, 1.2)]}
        line = figures.judge(True, 0.7, 1.35, records)
        self.assertEqual((line["best"], line["bare_ratio"].value), ("mpich", 1.25))
        self.assertEqual((line["bare_to_best"].value, line["bare_to_floor"].value), (0.6, 1.2))
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            report.show_missed([{"label": "row", "unit": "us", "less": True, "verdicts": [line]}])
        for word in ("0.75 (0.75 to 0.75) of the best peer, <= 0.70 wanted", "1.50 (1.50 to 1.50) of the floor",
                     "floor               1 us: ours is 1.50", "bare engine       1.2 us: ours is 1.25",
                     "it is 0.60 (0.60 to 0.60) of the best peer"):
            self.assertIn(word, text.getvalue())

    def test_nobody_beside_us(self):
        line = figures.judge(True, 0.85, None, {"canele": [record(0, 1.5)]})
        self.assertEqual((line["best"], line["verdict"], line["met"], line["floor"]), (None, None, None, None))

    def test_our_mpi_functions_may_cost_a_tenth_more(self):
        latency, rate = rows.choose(["shm-latency-8"], False)[0], rows.choose(["shm-rate-same"], False)[0]
        self.assertAlmostEqual(latency.target_of("canele-mpi"), 0.85 * 1.1)
        self.assertAlmostEqual(rate.target_of("canele-mpi"), 1.7 / 1.1)
        self.assertEqual(rate.target_of("canele"), 1.7)

    def test_rows_of_the_report(self):
        result = {"records": [record(0, 1.0), record(0, 2.0, contender="mpich")], "worker": None}
        row, = report.verdicts(result)
        self.assertEqual((row["key"], [line["who"] for line in row["verdicts"]]), ("shm-latency-8", ["canele"]))
        result = {"records": [record(0, 1.0), record(0, 2.0, contender="canele-bound")], "worker": "bound"}
        line, = report.verdicts(result)[0]["verdicts"]
        self.assertEqual((line["who"], line["ratio"].value), ("canele-bound", 2.0))


class Marks(unittest.TestCase):
    LIMITS = {"steal": 0.01, "others": 0.1, "witness": 1.2, "switches": 100}

    def test_quiet(self):
        self.assertEqual(figures.disturbances(self.LIMITS, 0.01, 0.1, 1.2, 100), [])

    def test_each_is_told(self):
        seen = figures.disturbances(self.LIMITS, 0.05, 0.5, 1.5, 1000)
        self.assertEqual(len(seen), 4)
        for text, word in zip(seen, ("5.0%", "50%", "1.50", "1000")):
            self.assertIn(word, text)


class Growth(unittest.TestCase):
    def test_slope(self):
        self.assertAlmostEqual(growth.slope([(1, 5.0), (10, 5.0), (100, 5.0)]), 0)
        self.assertAlmostEqual(growth.slope([(2, 3.0), (8, 12.0), (32, 48.0)]), 1)
        self.assertAlmostEqual(growth.slope([(1, 1.0), (100, 10.0)]), 0.5)

    def test_one_point_has_none(self):
        self.assertIsNone(growth.slope([(4, 1.0)]))
        self.assertIsNone(growth.slope([]))

    def test_samples(self):
        self.assertEqual(growth.per_message({"ranks": 5, "samples": {"times": [8.0]}}), [2000.0])
        self.assertEqual(growth.from_rate({"results": [{"samples": [1e8]}]}), [10.0])


class Rows(unittest.TestCase):
    def test_keys_are_distinct(self):
        self.assertEqual(len({row.key for row in rows.ROWS}), len(rows.ROWS))

    def test_quick_rows_exist(self):
        self.assertEqual([row.key for row in rows.choose([], True)], list(rows.QUICK))

    def test_one_sided_rows(self):
        found = rows.choose(["one-sided"], False)
        self.assertEqual({row.case.benchmark for row in found}, set(contenders.ONE_SIDED) - {"compare-and-swap-rate"})
        self.assertEqual([row.case.size for row in rows.choose(["one-sided-tcp-registered-put"], False)],
                         [8, 4096, 65536, 1 << 20])
        self.assertEqual({(row.unit[0], row.less) for row in found}, {("us", True), ("M/s", False)})

    def test_labels_are_distinct(self):  # the page is read by label
        self.assertEqual(len({row.label for row in rows.ROWS}), len(rows.ROWS))

    def test_unknown(self):
        with self.assertRaisesRegex(ValueError, "no row begins with 'smh'; rows: shm-latency-8, "):
            rows.choose(["shm", "smh"], False)


class Peers(unittest.TestCase):
    UCX = ("iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n"
           "20000,5.5,16.8,54.2,3712.31,1000.0,59397,18437\n")

    def test_ucx(self):
        self.assertEqual(pairs.ucx_sample("latency", self.UCX), 54.2)
        self.assertAlmostEqual(pairs.ucx_sample("bandwidth", self.UCX), 1048.576)
        self.assertEqual(pairs.ucx_sample("rate", self.UCX), 18437)

    def test_libfabric(self):
        text = "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n" \
               "8       20k     =20k     312k        0.38s      0.85       9.45       0.11\n"
        self.assertEqual(pairs.fabric_sample(text), 9.45)

    def test_all_are_asked_for_the_same(self):
        case = contenders.Case("rate", "shm", "distinct", 8, 3)
        self.assertEqual(contenders.iterations_for(case), 31 * 64)
        options = type("Options", (), {"cores": [0, 1], "order": "shuffled"})
        self.assertEqual(contenders.mpi_work(case, options, "bcast"),
                         ("mpi_perf", 2, ["rate-distinct", "8", "3", "1984", "0", "1"]))

    def test_one_sided_operations(self):
        options = type("Options", (), {"cores": [0, 1], "order": "shuffled"})
        ours, floor = (kind(options, "perf") for kind in (contenders.Canele, contenders.Floor))
        put, add = contenders.Case("put", "shm", "mapped", 1 << 20, 3), contenders.Case("fetch-and-add-rate", "tcp",
                                                                                       "registered", 8, 3)
        self.assertEqual(contenders.mpi_work(put, options, "bcast"),
                         ("mpi_rma", 2, ["put", "latency", "mapped", "1", "1048576", "3", "32", "0", "1"]))
        self.assertEqual(contenders.mpi_work(add, options, "bcast"),
                         ("mpi_rma", 2, ["fetch-and-add", "rate", "registered", "64", "8", "3", "1984", "0", "1"]))
        self.assertEqual(ours.words(put), "perf put --json --driver shm --batches 3 --iterations 32 --cores 0,1 "
                         "--no-floor --memory mapped --measure latency --window 1 --size 1048576".split())
        self.assertEqual(ours.words(add)[1], "atomics")
        self.assertEqual(ours.words(add)[-8:], "--measure rate --window 64 --operation fetch-and-add --size 8".split())
        self.assertEqual([floor.takes(case) for case in (put, add)], [True, False])

    def test_one_sided_operations_of_open_mpi(self):
        def words(name, memory, driver):
            how = {"openmpi": programs.OPENMPI_DRIVER, "openmpi-ucx": programs.UCX_DRIVER}[name]
            options = type("Options", (), {"cores": [0, 1], "order": "shuffled"})
            mpi = contenders.Mpi(options, name, {"mpi_rma": "program"}, programs.OPENMPI_LAUNCH, how)
            return " ".join(mpi.words(contenders.Case("put", driver, memory, 8)))

        self.assertIn("osc sm program put", words("openmpi", "mapped", "shm"))
        self.assertIn("osc sm program put", words("openmpi-ucx", "mapped", "shm"))
        self.assertIn("osc pt2pt program put", words("openmpi", "registered", "tcp"))
        self.assertNotIn("osc", words("openmpi", "registered", "shm"))
        self.assertIn("osc ucx", words("openmpi-ucx", "registered", "tcp"))

    def test_a_contender_without_the_program_has_no_cell(self):
        mpi = contenders.Mpi(type("Options", (), {"cores": [0, 1]}), "canele-mpi", {"mpi_perf": "program"}, [], {})
        self.assertFalse(mpi.takes(contenders.Case("put", "shm", "mapped", 8)))
        self.assertTrue(mpi.takes(contenders.Case("latency", "shm", "bytes", 8)))

    def test_why_in_brief(self):
        self.assertEqual(contenders.brief("cc failed:\nIn function\na.c:1: error: no MPI_Win\nb.c:2: error: x"),
                         "cc failed: a.c:1: error: no MPI_Win")
        self.assertEqual(contenders.brief("not installed"), "not installed")


class LoadTest(unittest.TestCase):
    """What run.py match --load says twice, in Python and in C++, must be equal."""

    def test_matchers(self):
        text = (SOURCE / "comm/config/names.hpp").read_text(encoding="utf-8")
        known, = re.findall('known_matchers = "(.*)"', text)
        self.assertEqual(run.MATCHERS, known.split())

    def test_lengths_of_fds(self):
        text = (SOURCE / "apps/perf/match_plan.cpp").read_text(encoding="utf-8")
        lengths, = re.findall(r"return \{([0-9, ]+)\};  // of fds", text)
        self.assertEqual(run.LOADS["fds"][0], [int(word) for word in lengths.split(",")])


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: BSD-3-Clause
"""The table of apps/perf/peers/broadcast.py, from made-up jobs: which library is ahead, and which jobs are given up.

Run by ctest. No job is started.
"""

import json
import pathlib
import sys
import tempfile
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "apps" / "perf" / "peers"))
import broadcast  # pylint: disable=wrong-import-position


def point(ranks, size, driver="shm", **medians):
    """Returns a point that has been measured."""
    made = broadcast.Point(driver, ranks, size)
    made.medians = {name.replace("_", "-"): values for name, values in medians.items()}
    return made


class Table(unittest.TestCase):
    def test_a_figure_is_the_median_of_the_jobs_medians(self):
        one = broadcast.Point("shm", 1, 8)
        for samples in ([1, 2, 9], [7, 7, 7], [3, 4, 5]):
            one.add("auto", samples)
        self.assertEqual(one.figure("auto"), 4)

    def test_verdict_counts_and_names_what_is_far_behind(self):
        points = [point(1, 8, auto=[1], sends=[1], mpich_bcast=[2]), point(2, 8, auto=[3], sends=[4], mpich_bcast=[2]),
                  point(3, 8, auto=[2.1], sends=[2], mpich_bcast=[2])]
        self.assertEqual(broadcast.verdict(points, ("auto", "sends"), "all MPIs"),
                         "ahead of all MPIs at 1 of 3 points; above 1.1 at 1: 8 B to 2 (1.50)")
        self.assertEqual(broadcast.verdict(points, ("auto", "mpich-bcast"), "single sends"),
                         "ahead of single sends at 2 of 3 points; above 1.1 at 0")

    def test_a_cell_is_fat_where_we_are_not_behind(self):
        self.assertEqual(broadcast.cell(point(1, 8, auto=[1.234], sends=[1], a=[2])), "**1.23**, 2 (a)")
        self.assertEqual(broadcast.cell(point(1, 8, auto=[2345.6], a=[2])), "2346, 2 (a)")
        self.assertEqual(broadcast.cell(point(1, 8, auto=[2], sends=[1])), "2")

    def test_files_are_put_together(self):
        with tempfile.TemporaryDirectory() as directory:
            paths = []
            for number in (1, 2):
                paths.append(pathlib.Path(directory) / str(number))
                rows = [{"driver": "tcp", "ranks": 2, "size": 8, "medians": {"auto": [number]}}]
                paths[-1].write_text(json.dumps({"points": rows}), encoding="utf-8")
            (one,) = broadcast.load(paths)
        self.assertEqual((one.driver, one.ranks, one.size, one.medians), ("tcp", 2, 8, {"auto": [1, 2]}))

    def test_who_finds_no_end_is_not_asked_for_more_ranks(self):
        asked = []

        def measure(contender, one, _):
            asked.append((contender.name, one.ranks))
            if contender.name == "slow" and one.ranks == 2:
                raise RuntimeError("no end")

        both = [types.SimpleNamespace(name="slow"), types.SimpleNamespace(name="quick")]
        options = types.SimpleNamespace(driver="shm", destinations=[1, 2, 3], sizes=[8], rounds=2)
        kept = broadcast.take_part, broadcast.measure
        broadcast.take_part, broadcast.measure = lambda _: both, measure
        try:
            _, failed = broadcast.run(options)
        finally:
            broadcast.take_part, broadcast.measure = kept
        self.assertFalse(failed, "only ours would be a failure")
        self.assertEqual([ranks for name, ranks in asked if name == "slow"], [1, 2, 1])
        self.assertEqual([ranks for name, ranks in asked if name == "quick"], [1, 2, 3] * 2)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Collectives on modelled cores: the known results on split trees and placements on 64 cores are reproduced.

Run by ctest (label unit), where the simulator is built. Virtual time is equal on every machine, so times are compared
exactly. They are in units of one message.
"""
import json
import os
import pathlib
import subprocess
import unittest

SIM = pathlib.Path(os.environ["CANELE_TEST_BIN"]) / "canele-sim"
OPERATIONS = ("bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall", "reduce_scatter", "scan",
              "exscan")


def sim(*arguments):
    done = subprocess.run([str(SIM), "--workload", "cores", *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def figures(*arguments):
    status, text = sim(*arguments, "--json")
    if status != 0:
        raise AssertionError(text)
    return json.loads(text)


class SplitTree(unittest.TestCase):
    def rows(self, operation, *more):
        found = figures("--operation", operation, "--node-ranks", "33-62", *more)
        self.assertAlmostEqual(found["blocking"], 6)
        return {row["ranks"]: row for row in found["rows"]}

    def switches(self, rows, best="best"):
        """Returns the least numbers of ranks from which on S is 1, 2, 3; checks that S never decreases again."""
        values = [rows[ranks][best] for ranks in sorted(rows)]
        self.assertEqual(values, sorted(values))
        return [min(ranks for ranks in rows if rows[ranks][best] >= split) for split in (1, 2, 3)]

    def test_with_levels_apart_it_is_the_model(self):
        for operation in ("reduce", "bcast"):
            rows = self.rows(operation, "--levels-apart")
            for row in rows.values():
                for simulated, model in zip(row["overlapped"], row["model"]):
                    self.assertAlmostEqual(simulated, model, msg=row)
            self.assertEqual(self.switches(rows), [52, 58, 62])
            self.assertEqual([rows[ranks]["best"] for ranks in (51, 57, 60, 62)], [0, 1, 2, 3])
            least = min(rows, key=lambda ranks: min(rows[ranks]["overlapped"]))
            self.assertEqual((least, rows[least]["best"]), (51, 0))
            self.assertAlmostEqual(rows[least]["overlapped"][0], 7.53, 2)

    def test_so_it_is_where_each_rank_has_the_next_core_that_is_left(self):
        self.assertEqual(self.switches(self.rows("reduce", "--levels-apart", "--placing", "nearest")), [52, 58, 62])
        self.assertEqual(self.switches(self.rows("reduce", "--placing", "nearest")), [55, 60, 62])

    def test_levels_that_overlap_are_sooner_done_and_need_a_split_later(self):
        rows = self.rows("reduce")
        for ranks, row in rows.items():
            for simulated, model in zip(row["overlapped"], row["model"]):
                self.assertLess(simulated, model + 1e-6, row)
            # Communication cores moved all messages but the late ones, one at a time.
            self.assertAlmostEqual(row["busy"] * row["alone"] * (64 - ranks), ranks - 1)
        self.assertEqual(self.switches(rows), [55, 60, 62])
        self.assertEqual(self.switches(rows, "model_best"), [52, 58, 62])
        self.assertEqual([rows[ranks]["best"] for ranks in (51, 57, 60, 62)], [0, 1, 2, 3])

    def test_ranks_a_power_of_two_apart_are_on_one_core_of_four_by_odd_even(self):
        found = figures("--operation", "reduce", "--node-ranks", "59,60", "--split", "0", "--placing",
                        "shared,numa,odd-even")
        alone = {(row["placing"], row["ranks"]): row["alone"] for row in found["rows"]}
        self.assertGreater(alone["odd-even", 60], 1.4 * alone["numa", 60])
        self.assertGreater(alone["odd-even", 60], 1.8 * alone["shared", 60])
        self.assertLess(alone["odd-even", 59], alone["numa", 59])

    def test_the_same_on_many_nodes(self):
        found = figures("--operation", "reduce", "--nodes", "16", "--node-ranks", "51,57,60,62")
        self.assertEqual([row["best"] for row in found["rows"]], [0, 1, 2, 3])
        self.assertNotIn("model", found["rows"][0])


class Engines(unittest.TestCase):
    """The production engine of each rank, which has only seen how long the previous rounds took until the wait."""

    def rows(self, operation, ranks):
        found = figures("--engines", "--operation", operation, "--node-ranks", ranks, "--size", "200000",
                        "--core-bandwidth", "1")
        return {row["ranks"]: row for row in found["rows"]}

    def test_they_choose_the_split_of_the_model(self):
        for operation in ("reduce", "bcast"):
            rows = self.rows(operation, "51,52,57,58,60-62")
            chosen = {ranks: row["chosen"] for ranks, row in rows.items()}
            self.assertEqual(chosen, {51: 0, 52: 1, 57: 1, 58: 2, 60: 2, 61: 2, 62: 3})
            for row in rows.values():
                self.assertEqual(row["chosen"], row["model_best"])
                # Nothing separates the levels, so the collective may end sooner than by the model.
                self.assertLess(row["automatic"], 1.05 * min(row["model"]), row)

    def test_a_split_takes_what_the_model_says(self):
        for operation in ("reduce", "bcast"):
            for row in self.rows(operation, "60,62").values():
                for split, (simulated, model) in enumerate(zip(row["overlapped"], row["model"])):
                    self.assertLess(simulated, 1.03 * model, (operation, split, row))
                self.assertGreater(row["overlapped"][0], 1.6 * row["automatic"], row)

    def test_parts_for_the_root_are_split_too(self):
        for operation in ("gather", "scatter"):
            found = figures("--engines", "--operation", operation, "--node-cores", "18", "--node-ranks", "16",
                            "--size", "100000", "--core-bandwidth", "1")
            self.assertEqual(len(found["rows"]), 1)

    def test_what_they_cannot_do_is_refused(self):
        for wrong, reason in ((["--nodes", "2"], "one node"), (["--operation", "alltoall"], "scatter or scan")):
            status, text = sim("--engines", *wrong)
            self.assertNotEqual(status, 0)
            self.assertIn(reason, text)


class Chain(unittest.TestCase):
    def check(self, *more):
        rows = figures("--operation", "scan", "--node-ranks", "62", "--placing", "bind,numa,odd-even", *more)["rows"]
        bind, numa, odd_even = rows
        self.assertAlmostEqual(numa["alone"] / odd_even["alone"], 2, delta=0.06)
        self.assertLess(bind["alone"], odd_even["alone"] + 1e-6)
        self.assertGreater(bind["r_overhead"], 0.95, "its core computes")
        self.assertLess(odd_even["r_overhead"], 0.01)
        self.assertLess(odd_even["overlapped"][0], min(numa["overlapped"][0], bind["overlapped"][0]))
        return bind, numa, odd_even

    def test_odd_even_is_twice_as_fast_as_numa(self):
        bind, numa, odd_even = self.check("--copies", "2")
        self.assertEqual([round(row["alone"], 6) for row in (bind, numa, odd_even)], [61, 121, 61])

    def test_likewise_where_segments_follow_each_other(self):
        rows = figures("--operation", "scan", "--node-ranks", "62", "--placing", "numa,odd-even", "--segment",
                       "256k")["rows"]
        self.assertAlmostEqual(rows[0]["alone"] / rows[1]["alone"], 2, delta=0.06)


class All(unittest.TestCase):
    def test_every_operation_ends_on_every_number_of_ranks(self):
        for operation in OPERATIONS:
            found = figures("--operation", operation, "--node-cores", "18", "--node-ranks", "2-18", "--size", "72000",
                            "--placing", "bind,numa,nearest,odd-even,shared", "--split", "0")
            for row in found["rows"]:
                longest = max(row["computation"], row["alone"])
                self.assertGreaterEqual(row["overlapped"][0], longest - 1e-6, (operation, row))
                if row["ranks"] < 18 and row["placing"] == "shared":
                    self.assertAlmostEqual(row["overlapped"][0], longest, msg=(operation, row))

    def test_cards_carry_while_cores_compute(self):
        for operation in ("bcast", "reduce", "alltoall"):
            found = figures("--operation", operation, "--nodes", "64", "--node-cores", "2", "--node-ranks", "1",
                            "--placing", "bind,shared", "--split", "0")
            without, dedicated = found["rows"]
            self.assertGreater(without["r_overhead"], 0.8)
            self.assertAlmostEqual(dedicated["r_overhead"], 0)

    def test_a_thousand_ranks(self):
        found = figures("--operation", "allreduce", "--nodes", "16", "--node-ranks", "64")
        self.assertEqual(len(found["rows"]), 1)

    def test_nothing_is_refused_without_a_reason(self):
        for wrong, reason in ((["--operation", "fold"], "fold"), (["--algorithm", "chains"], "chains"),
                              (["--algorithm", "ring"], "has no ring"), (["--node-ranks", "65"], "65 of 64 cores"),
                              (["--node-ranks", "x"], "is not a list"), (["--placing", "here"], "here"),
                              (["--operation", "scan", "--split", "1"], "can be split"),
                              (["--operation", "scan", "--levels-apart"], "such levels")):
            status, text = sim(*wrong)
            self.assertNotEqual(status, 0)
            self.assertIn(reason, text)


if __name__ == "__main__":
    unittest.main()

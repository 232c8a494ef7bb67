# SPDX-License-Identifier: BSD-3-Clause
"""The core of a bound worker whose program is pinned.

Run by ctest; by hand as tools_test.py. It runs alone: other programs of this host that are pinned, or have a worker,
change the expected result.
"""
import os
import re
import unittest

from tools_test import BIN, run


@unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "needs two processing units")
class WorkerPlaceTest(unittest.TestCase):
    """Where the worker is, from the first line of each rank's output."""

    def places(self, ranks, *binding, **environment):
        _, errors = run("canele-run", "-n", str(ranks), *binding, str(BIN / "canele-hello"), CANELE_VERBOSE="2",
                        CANELE_WORKER="bound", **environment)
        return sorted(re.findall(r"worker bound: on PU (\d+)", errors)), errors

    def test_a_core_that_nobody_uses(self):
        own, _ = self.places(1, "--bind-to", "0", CANELE_WORKER_CORE="0")
        chosen, errors = self.places(1, "--bind-to", "0")
        self.assertEqual(len(chosen), 1, errors)
        self.assertNotEqual(chosen, own)
        self.assertNotIn("take turns", errors)

    @unittest.skipIf(os.cpu_count() != 2, "needs exactly two processing units")
    def test_never_the_same_for_two_while_another_is_free(self):
        places, errors = self.places(2, "--bind-to", "0")
        self.assertEqual(places, ["0", "1"])
        self.assertEqual(errors.count("so it shares PUs 0 with the program: they take turns"), 1, errors)

    def test_a_core_for_the_workers_of_several_is_known_as_such(self):
        places, errors = self.places(2, "--bind-to", "0", CANELE_WORKER_CORE="1")
        self.assertEqual(places, ["1", "1"])
        self.assertEqual(errors.count("bound: on PU 1, where no program computes"), 2, errors)
        _, errors = self.places(2, "--bind-to", "0,1", CANELE_WORKER_CORE="1")
        self.assertNotIn("where no program computes", errors)

    def test_a_program_that_is_not_pinned(self):
        places, errors = self.places(2)
        self.assertEqual(len(places), 2, errors)
        self.assertNotIn("where no program computes", errors)
        self.assertNotIn("take turns", errors)

    def test_who_pins_it_to_the_programs_only_core_is_told(self):
        _, errors = self.places(1, "--bind-to", "0", CANELE_WORKER_CORE="0")
        self.assertRegex(errors, r"warning: rank 0: the worker is pinned to PU \d+, which leaves no unit to the")

    def test_info_tells_where_it_would_go(self):
        self.assertIn("worker     bound: on any of PUs", run("canele-info", CANELE_WORKER="bound")[0])
        self.assertIn("worker     auto: ", run("canele-info")[0])


if __name__ == "__main__":
    unittest.main(verbosity=2)

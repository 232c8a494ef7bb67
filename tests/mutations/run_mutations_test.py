#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""All patches still apply, each with a catcher and a line in planted.md; and run_mutations.py detects when one does
not.

Run by ctest (label tools). Builds nothing: the campaign is `tests/run.sh --soak --only packages,soak-mutations`.
`git apply` needs no repository: a directory with the files is enough.
"""
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import run_mutations  # noqa: E402

PATCH = """{header}diff --git a/room/file.cpp b/room/file.cpp
--- a/room/file.cpp
+++ b/room/file.cpp
@@ -1,3 +1,3 @@
 int first;
-int second;
+int another;
 int third;
"""
HEADER = "# caught by: canele-sim --runs 3\n"


class Planted(unittest.TestCase):
    """The patches of this directory."""

    def test_all_apply(self):
        patches = sorted(HERE.glob("*.patch"))
        self.assertGreaterEqual(len(patches), 12)
        self.assertEqual(run_mutations.check(patches), [])

    def test_all_are_in_the_map(self):
        page = (HERE / "planted.md").read_text(encoding="utf-8")
        for patch in HERE.glob("*.patch"):
            self.assertRegex(page, rf"(?m)^\| {patch.stem[:2]} \|", patch.name)


class Check(unittest.TestCase):
    """What --check finds."""

    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.tree = pathlib.Path(made.name)
        (self.tree / "room").mkdir()
        self.source("int first;\nint second;\nint third;\n")

    def source(self, text):
        (self.tree / "room/file.cpp").write_text(text, encoding="utf-8")

    def check(self, text):
        patch = self.tree / "01-bug.patch"
        patch.write_text(text, encoding="utf-8")
        return run_mutations.check([patch], self.tree)

    def test_a_patch_that_applies(self):
        self.assertEqual(self.check(PATCH.format(header=HEADER)), [])

    def test_a_patch_whose_place_has_changed(self):
        self.source("int first;\nint changed;\nint third;\n")
        self.assertIn("does not apply", self.check(PATCH.format(header=HEADER))[0][1])

    def test_a_patch_without_a_catcher(self):
        self.assertIn("does not begin with", self.check(PATCH.format(header=""))[0][1])

    def test_a_catcher_that_is_none(self):
        wrong = self.check(PATCH.format(header="# caught by: canele-info\n"))
        self.assertIn('"canele-info" is no catcher', wrong[0][1])


class Verdict(unittest.TestCase):
    """What counts as caught."""

    def verdict(self, program, status, output):
        return run_mutations.verdict(program, status, output)

    def test_what_a_catcher_reports_is_caught(self):
        for program, output, much in (
            ("canele-sim", "seed 9 FAILED\nruns until the first failure: 1009\n", "1,009 runs"),
            ("exhaustive_worlds", "world 12: after this\nFailure\nworld 345: after that\n", "12 worlds"),
            ("exhaustive_schedules", "a: 1500 orders\nx.cpp:1: Failure\n  a, in order 1200\n", "1,200 orders"),
            ("exhaustive_worlds", "x.cpp:1: f(): Assertion `a' failed.", "by an assertion"),
            ("fuzz_packet", "==1==ERROR: AddressSanitizer: heap-use-after-free", "yes"),
        ):
            self.assertEqual(self.verdict(program, 1, output), (True, much), output)

    def test_a_unit_test_that_crashes_is_caught(self):
        self.assertEqual(self.verdict("unit_matching", -11, "[ RUN      ] A.B\n"), (True, "by a crash"))
        self.assertFalse(self.verdict("unit_matching", -15, "[ RUN      ] A.B\n")[0], "ended by another process")
        self.assertFalse(self.verdict("unit_matching", -11, "before the first test")[0])
        self.assertFalse(self.verdict("canele-sim", -11, "[ RUN      ] A.B\n")[0])

    def test_success_is_not_caught(self):
        self.assertEqual(self.verdict("canele-sim", 0, "no failure in 9 runs"), (False, "NOT CAUGHT"))

    def test_a_time_limit_is_not_caught(self):
        self.assertFalse(self.verdict("canele-sim", None, "runs until the first failure: 1")[0])

    def test_an_end_without_a_finding_is_not_caught(self):
        self.assertFalse(self.verdict("canele-sim", 2, "--faults: no such kind")[0])
        self.assertFalse(self.verdict("exhaustive_worlds", 127, "cannot open shared object")[0])


if __name__ == "__main__":
    unittest.main()

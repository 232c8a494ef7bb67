#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""commit_message.py accepts good messages, and names what is wrong with bad ones. Run by ctest."""
import unittest

import commit_message

GOOD = [
    "drivers/tcp: close the connection on a frame that is too long\n\nIt was read to its end.",
    "ltask, comm: pass the parker\n",
    "tests/process/{death,nemesis}: need no sleep\n",
    "Merge branch 'x' of somewhere into a place whose name makes the line longer than it may be",
    "comm: x\n# a comment of git's\n",
]
BAD = {
    "close the connection": "area",
    "Drivers: close the connection": "small letters",
    "drivers: closes the connection": "imperative",
    "drivers: closed the connection": "imperative",
    "drivers: closing the connection": "imperative",
    "drivers: close the connection.": "period",
    "drivers: close the connection\nat once": "blank",
    "drivers: close " + "x" * 70: "columns",
    "": "area",
}


class CommitMessage(unittest.TestCase):
    def test_good_ones_pass(self):
        for message in GOOD:
            self.assertEqual(commit_message.problems(message), [], message)

    def test_bad_ones_are_named(self):
        for message, word in BAD.items():
            self.assertIn(word, " ".join(commit_message.problems(message)), message)


if __name__ == "__main__":
    unittest.main()

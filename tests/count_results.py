#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counts the test cases of a ctest run: prints "PASSED FAILED SKIPPED".

Usage: count_results.py JUNIT-FILE GTEST-DIRECTORY

Run by tests/run.sh. JUNIT-FILE is the output of `ctest --output-junit`; GTEST-DIRECTORY has one <entry>.xml per
GoogleTest program. A ctest entry that is a GoogleTest program counts as its cases. If such a program crashed or hung,
it left no file (tests/run.sh deletes old ones) and counts as one failure. An entry that failed counts as at least one
failure.
"""
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def gtest_counts(path):
    """Returns (passed, failed, skipped) of the cases in one GoogleTest file."""
    passed = failed = skipped = 0
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        if case.find("failure") is not None:
            failed += 1
        elif case.get("result") == "skipped" or case.find("skipped") is not None:
            skipped += 1
        elif case.get("status") == "run":
            passed += 1
    return passed, failed, skipped


def entry_counts(entry, directory):
    """Returns (passed, failed, skipped) of one ctest entry."""
    status = entry.get("status")
    red = status not in ("run", "notrun", "disabled") or entry.find("failure") is not None
    path = directory / f"{entry.get('name')}.xml"
    if path.exists():
        passed, failed, skipped = gtest_counts(path)
        return passed, max(failed, 1) if red else failed, skipped
    if red:
        return 0, 1, 0
    return (0, 0, 1) if status != "run" or entry.find("skipped") is not None else (1, 0, 0)


def main():
    junit, directory = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    totals = [0, 0, 0]
    for entry in ElementTree.parse(junit).getroot().iter("testcase"):
        totals = [sum(pair) for pair in zip(totals, entry_counts(entry, directory))]
    print(*totals)


if __name__ == "__main__":
    main()

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints the table driver x test of the last conformance run, and writes it to conformance.txt beside the results.

Usage: table.py RESULTS-DIRECTORY VARIANT...

Run by ctest, after the conformance entries. Fails if a driver of this build has no results, if a test is missing for
one, or if a skip has no reason. Cells are milliseconds; "-" is a skip, with its reason below the table.
"""
import pathlib
import sys


def read(directory, variant):
    """Returns {test: (verdict, ms, reason)} of one driver."""
    rows = {}
    for line in (directory / f"{variant}.tsv").read_text().splitlines():
        _, test, verdict, milliseconds, reason = line.split("\t")
        rows[test] = (verdict, milliseconds, reason)
    return rows


def cell(row):
    verdict, milliseconds, _ = row
    return {"passed": milliseconds, "skipped": "-"}.get(verdict, "FAILED")


def render(results, tests):
    width = max(map(len, tests)) + 2
    columns = {variant: max(len(variant), len("FAILED")) + 2 for variant in results}
    yield "test".ljust(width) + "".join(variant.rjust(columns[variant]) for variant in results)
    for test in tests:
        yield test.ljust(width) + "".join(cell(rows[test]).rjust(columns[name]) for name, rows in results.items())
    counts = {verdict: 0 for verdict in ("passed", "FAILED", "skipped")}
    reasons = {}
    for variant, rows in results.items():
        for test, (verdict, _, reason) in rows.items():
            counts[verdict] += 1
            if verdict == "skipped":
                reasons.setdefault((variant, reason), []).append(test)
    yield "milliseconds; - is a skip. " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    for (variant, reason), skipped in reasons.items():
        yield f"  {variant}: {', '.join(skipped)}: {reason}"


def main():
    directory, variants = pathlib.Path(sys.argv[1]), sys.argv[2:]
    absent = [variant for variant in variants if not (directory / f"{variant}.tsv").exists()]
    if absent:
        sys.exit(f"no results of: {', '.join(absent)}; run ctest -L conformance")
    results = {variant: read(directory, variant) for variant in variants}
    tests = list(results[variants[0]])
    for variant, rows in results.items():
        if sorted(rows) != sorted(tests):
            sys.exit(f"{variant} has other tests than {variants[0]}: {sorted(set(rows) ^ set(tests))}")
        for test, (verdict, _, reason) in rows.items():
            if verdict == "skipped" and not reason:
                sys.exit(f"{variant}: {test} was skipped without a reason")
    text = "\n".join(render(results, tests))
    (directory / "conformance.txt").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()

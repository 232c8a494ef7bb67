#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The written budget: what each step of a message costs, counted by callgrind, against docs/budget.md.

Usage: budget_test.py [--allowance PERCENT] [--only TEXT] [--profile] [--write]

Run by ctest, and by hand with CANELE_TEST_BIN=build/release/bin. Exits with 77 (skipped) where valgrind is not
installed, or where its headers were not when the programs were built. The limits are the tables of docs/budget.md;
there are no others. A step without a row fails, and so does a row without a step.

--profile shows for each step in which functions its instructions are. --only TEXT leaves the other steps out. --write
puts the counts into the table, for a commit that says why. The figures of the table are those of g++ 12 on x86-64;
other compilers get a larger allowance.
"""
import argparse
import os
import pathlib
import re
import shutil
import sys
import tempfile

import callgrind

DOCUMENT = pathlib.Path(__file__).resolve().parent.parent.parent / "docs/budget.md"
# Per message: the callgrind events that make up each figure, and the absolute allowance beside the percentage.
FIGURES = {"instructions": (("Ir",), 1), "branches": (("Bc", "Bi"), 1), "atomics": (("Ge",), 0.05),
           "lines": (("D1mr", "D1mw"), 2), "instructions in the C library": (("system",), 0.5)}
ROW = re.compile(r"^\| `([^`]+)` \|" + r" ([\d.]+) \|" * len(FIGURES), re.MULTILINE)  # readers: more columns
PROGRAMS = ("path_budget", "mpi_budget")
# Nothing of the caller's environment is passed on: its names move the stack, and thus decide what shares a cache line.
ENVIRONMENT = {"CANELE_SAMPLES": "off", "LD_BIND_NOW": "1"}
MOST_FUNCTIONS = 20


class Step:
    """What a message costs in one step. For a step of MPI: the cost of the MPI layer, without the engine below."""

    def __init__(self, dump):
        case, step, rounds, messages = dump.title.split()
        self.name, self.rounds, self.messages = f"{case} {step}", int(rounds), int(messages)
        self.counts, self.functions = callgrind.Counts(dump.total), dump.own
        self.counts.subtract(dump.copies())
        ours = "libcanele_mpi.so" if case.startswith("mpi") else "path_budget"
        self.counts.subtract(dump.below(ours, "libcanele.so"))
        self.counts["system"] = dump.below(ours, callgrind.SYSTEM)["Ir"]

    def without(self, nothing):
        """Subtracts the cost of counting itself."""
        for event, number in nothing.counts.items():
            self.counts[event] -= number * self.rounds // nothing.rounds
        return self

    def figure(self, which):
        return sum(self.counts[event] for event in FIGURES[which][0]) / self.messages

    def row(self):
        numbers = [self.figure(which) for which in FIGURES]
        return f"| `{self.name}` | " + " | ".join(f"{n:.0f}" if n >= 100 else f"{n:.3g}" for n in numbers) + " |"

    def print_profile(self):
        by_cost = sorted(self.functions.items(), key=lambda item: -item[1]["Ir"])
        for name, counts in by_cost[:MOST_FUNCTIONS]:
            if counts["Ir"]:
                print(f"    {counts['Ir'] / self.messages:8.1f} {counts['Ge'] / self.messages:6.2f}  {name[:103]}")


def steps_of(program):
    with tempfile.TemporaryDirectory(prefix="canele-budget-") as directory:
        steps = [Step(dump) for dump in callgrind.run(program, ENVIRONMENT, pathlib.Path(directory))]
    nothing = next((step for step in steps if step.name == "none nothing"), None)
    return [step.without(nothing) for step in steps if step is not nothing]


def complaints(step, budget, allowance):
    """Yields what costs more in this step than the budget allows."""
    for which, written in zip(FIGURES, budget):
        now, limit = step.figure(which), written * (1 + allowance / 100) + FIGURES[which][1]
        if now > limit:
            grown = f"{100 * (now / written - 1):.1f} %" if written else f"{now:.2f}"
            yield (f"{step.name}: {now:.1f} {which} a message; docs/budget.md says {written:g}, "
                   f"so it has grown by {grown} (the limit is {limit:.1f})")


def budgets_written():
    """Returns the figures of the table, by step."""
    return {row[0]: [float(number) for number in row[1:]] for row in ROW.findall(DOCUMENT.read_text("utf-8"))}


def compare(steps, allowance):
    """Prints each complaint, and returns their number."""
    budgets = budgets_written()
    wrong = 0
    for step in steps:
        if step.name not in budgets:
            print(f"{step.name}: not in the table of docs/budget.md; its row:\n{step.row()}")
            wrong += 1
            continue
        found = list(complaints(step, budgets.pop(step.name), allowance))
        for complaint in found:
            print(complaint)
        if found:
            print("  its instructions and atomics a message, by function:")
            step.print_profile()
        wrong += len(found)
    return wrong, budgets


def count(programs, allowance):
    """Counts all steps. If some cost too much, counts again and takes the cheaper count of each. The hash table has
    another seed each time, and about one seed in fifty is unlucky; what really costs more does so both times.
    """
    def once():
        return [step for program in programs for step in steps_of(program)]

    steps, budgets = once(), budgets_written()
    if not any(list(complaints(step, budgets.get(step.name, []), allowance)) for step in steps):
        return steps
    print("some steps cost more than is written: all are counted once more")
    return [min(pair, key=lambda step: step.figure("instructions")) for pair in zip(steps, once())]


def write(steps):
    rows = {step.name: step.row() for step in steps}
    text = DOCUMENT.read_text("utf-8")
    DOCUMENT.write_text(ROW.sub(lambda found: rows.get(found[1], found[0]), text), "utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--allowance", type=float, default=5, metavar="PERCENT", help="above what is written (5)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only steps whose name has this in it")
    parser.add_argument("--profile", action="store_true", help="show each step's functions")
    parser.add_argument("--write", action="store_true", help="put the figures into the table")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("valgrind is not installed (Debian package: valgrind)")
        return 77
    binaries = pathlib.Path(os.environ["CANELE_TEST_BIN"])
    programs = [binaries / name for name in PROGRAMS if (binaries / name).exists()]
    steps = count(programs, options.allowance)
    if not steps:
        print("nothing was counted: the programs were built without valgrind/callgrind.h (Debian package: valgrind)")
        return 77
    steps = [step for step in steps if options.only in step.name]
    print("step: " + ", ".join(FIGURES))
    for step in steps:
        print(step.row())
        if options.profile:
            step.print_profile()
    if options.write:
        write(steps)
    wrong, left = compare(steps, options.allowance)
    if len(programs) == len(PROGRAMS) and not options.only:
        for name in left:
            print(f"{name}: in the table of docs/budget.md, but no such step was counted")
        wrong += len(left)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every function of the library has its place in entry_points.cpp: the symbols of the library against that list.

Usage: entry_points_test.py LIBRARY PROGRAM [MARKER]

Run by ctest. A new function fails here until entry_points.cpp gives its answer in the child of a fork. With MARKER only
symbols that begin with it count.
"""
import subprocess
import sys


def exported(library, marker):
    listed = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True)
    words = [line.split() for line in listed.stdout.splitlines()]
    names = {word[2].split("@")[0] for word in words if len(word) == 3 and word[1] in "TW"}
    return {name for name in names if name.startswith(marker)}


def main():
    library, program = sys.argv[1:3]
    marker = sys.argv[3] if len(sys.argv) > 3 else "canele_"
    known = set(subprocess.run([program, "--list"], check=True, capture_output=True, text=True).stdout.split())
    symbols = exported(library, marker)
    if not symbols:
        print(f"{library} exports nothing that begins with {marker}")
        return 1
    for name in sorted(symbols - known):
        print(f"{name}: exported, but {program} does not call it")
    for name in sorted(known - symbols):
        print(f"{name}: called by {program}, but not exported")
    return 0 if symbols == known else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Instructions of a match, counted by callgrind: as many among 65,536 entries as among 256, within 5 %, and no more
among 16.

Run by ctest, and by hand. Exits with 77 (skipped) where valgrind is not installed. The ceilings are a little more
than what the table costs: a change that makes a match dearer must raise them here. A few receives are in no table,
but in the session's window; that they cost less is no fault.
"""

import os
import re
import shutil
import subprocess
import sys

MATCHES = 65536
SPREAD = 1.05
CEILING = {"posted": 290, "unexpected": 340}  # with the loop around it; for g++ 12, rounded up


def instructions(kind, entries):
    program = os.path.join(os.environ["CANELE_TEST_BIN"], "match_campaign")
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*match_phase*",
               program, "instructions", kind, str(entries), str(MATCHES)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    return int(re.search(r"Collected : (\d+)", output).group(1)) / MATCHES


def main():
    if shutil.which("valgrind") is None:
        print("valgrind is not installed (Debian package: valgrind)")
        return 77
    wrong = 0
    for kind, ceiling in CEILING.items():
        few, some, many = (instructions(kind, entries) for entries in (16, 256, 65536))
        print(f"{kind}: {few:.1f} instructions a match among 16 entries, {some:.1f} among 256, {many:.1f} among 65,536")
        if max(some, many) > SPREAD * min(some, many):
            print("  the last two differ by more than 5 %")
            wrong += 1
        if few > SPREAD * min(some, many):
            print("  few entries cost more than many")
            wrong += 1
        if max(few, some, many) > ceiling:
            print(f"  that is more than {ceiling}")
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

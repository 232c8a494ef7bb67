# SPDX-License-Identifier: BSD-3-Clause
"""System calls of a stream of small messages through shared memory, counted by strace: none for a message.

Who: ctest, which names canele-run and canele-perf; by hand: system_calls.py CANELE_RUN CANELE_PERF.
Surprise: a run of few messages is subtracted from one of many, so that the start and the end do not count. There is a
    bound instead of zero, one call in MESSAGES_A_CALL messages: the driver looks at its sockets some thousand times a
    second, and a rank that loses its core sleeps. Only without a worker: strace makes every call so slow that the time
    for which a worker yields is over after a few.
"""
import collections
import os
import re
import subprocess
import sys
import tempfile

FEW, MANY, MESSAGES_A_CALL = 20_000, 1_020_000, 20
TIME_LIMIT = 100


def count(run, perf, messages):
    """Calls by name of both ranks and their threads, without those of the launcher."""
    with tempfile.TemporaryDirectory(prefix="canele-strace-") as place:
        command = [run, "-n", "2", "-x", "CANELE_WORKER=none", "strace", "-f", "-qq", "-ff", "-o", f"{place}/calls",
                   perf, "rate", "--driver", "shm", "--no-floor", "--batches", "1", "--iterations", str(messages // 2)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIME_LIMIT,
                              check=False)
        if done.returncode != 0:
            raise SystemExit(f"exit code {done.returncode} of {' '.join(command)}:\n{done.stdout}")
        calls = collections.Counter()
        for name in os.listdir(place):
            with open(os.path.join(place, name), encoding="utf-8", errors="replace") as lines:
                calls.update(match[1] for match in map(re.compile(r"(\w+)\(").match, lines) if match)
    return calls


def main():
    """Exit code 1 if there are more calls than the bound allows."""
    run, perf = sys.argv[1:]
    try:
        tried = subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], stderr=subprocess.PIPE, text=True,
                               check=False)
    except FileNotFoundError:
        print("there is no strace")
        return 77
    if tried.returncode != 0:
        print(f"strace may not trace here: {tried.stderr.strip()}")
        return 77
    few, many = (count(run, perf, messages) for messages in (FEW, MANY))
    extra = {name: many[name] - few[name] for name in many if many[name] > few[name]}
    print(f"{MANY - FEW} messages more, {sum(extra.values())} system calls more: {extra}")
    return 1 if sum(extra.values()) > (MANY - FEW) / MESSAGES_A_CALL else 0


if __name__ == "__main__":
    sys.exit(main())

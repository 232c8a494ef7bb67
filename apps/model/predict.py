#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares predictions of canele-model with measured runs of mpi_loop. The prediction is made from a run without
progress. The measured run has workers on a core that is given up for communication.

Called by people; figures are in docs/notes. Single-threaded: one job at a time.
Surprise: the prediction leaves out the factor N/(N-1) for computation. On two cores that factor is two, and no program
scales by it. So the computing threads of all runs are on core 0, also those without progress. Workers have core 1.
Only the change of the communication time is predicted.

    without progress    core 0: computes, communicates in its calls      core 1: idle       CANELE_WORKER=none
    dedicated core      core 0: computes                                 core 1: workers    CANELE_WORKER=bound

All ranks compute on one core, so a rank's computation takes as long as that of all of them together. The least time of
a wait comes from a run with messages of 8 bytes. The program's own profile has no such wait, because here every wait
does the communication itself. The thesis assumes that the profile has one.

The blocking program is measured as it is (alpha = 0). It is measured once more as `early`, the program in which all of
its calls are converted (alpha = 1).
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
WORKERS = {"none": {"CANELE_WORKER": "none"}, "dedicated": {"CANELE_WORKER": "bound"}}
# program, alpha, and the program that is measured with a dedicated core
CASES = [("early", 0, "early"), ("tests", 0, "tests"), ("blocking", 0, "blocking"), ("blocking", 1, "early"),
         ("late", 0, "late")]


def tool(options, name):
    """Returns a program of the build or the prefix."""
    for place in (pathlib.Path(options.prefix) / "bin", HERE.parents[1] / "build" / "release" / "bin"):
        if (place / name).exists():
            return str(place / name)
    found = shutil.which(name)
    if found is None:
        sys.exit(f"{name} not found; build first, or give --prefix")
    return found


def output_of(command, environment=None):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=170,
                          env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} has failed:\n{done.stdout}{done.stderr}")
    return done.stdout


class Loop:
    """mpi_loop, built once. Every run leaves the profiles of its ranks."""

    def __init__(self, options, work):
        self.options, self.work, self.number = options, work, 0
        self.program = work / "mpi_loop"
        output_of([tool(options, "canele-mpicc"), "-O2", str(HERE / "mpi_loop.c"), "-o", str(self.program)])
        first = min(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {first})
        self.turns_per_ms = int(output_of([str(self.program), "calibrate"]))
        os.sched_setaffinity(0, range(os.cpu_count()))

    def run(self, worker, form, size, compute_ms, rounds):
        """Runs the loop once. Returns the files, one of each rank."""
        self.number += 1
        turns = int(compute_ms * self.turns_per_ms / self.options.ranks)
        pattern = self.work / f"{self.number}-%r.json"
        environment = {"CANELE_DRIVERS": self.options.driver, "CANELE_PROFILE": str(pattern), "CANELE_VERBOSE": "0",
                       "CANELE_WORKER_CORE": "1", **WORKERS[worker]}
        output_of([tool(self.options, "canele-run"), "-n", str(self.options.ranks), "--bind-to", "0", str(self.program),
                   form, self.options.operation, str(size), str(turns), str(rounds)], environment)
        return [str(pattern).replace("%r", str(rank)) for rank in range(self.options.ranks)]


def time_of(files):
    return statistics.mean(json.loads(pathlib.Path(file).read_text())["wall_s"] for file in files)


def middle(runs):
    """Returns the run whose time is the median."""
    return sorted(runs, key=time_of)[len(runs) // 2]


def measure(options, loop):
    """Returns {(worker, form): files}. The runs take turns."""
    forms = sorted({form for case in CASES for form in (case[0], case[2])})
    runs = {}
    for number in range(options.batches):
        for form in forms:
            for worker in WORKERS:
                files = loop.run(worker, form, options.size, options.compute, options.rounds)
                runs.setdefault((worker, form), []).append(files)
        print(f"batch {number + 1} of {options.batches} done", file=sys.stderr)
    return {key: middle(of_one) for key, of_one in runs.items()}


def judge(options, runs, least):
    """Returns a row for each of CASES."""
    rows = []
    for form, alpha, becomes in CASES:
        text = output_of([tool(options, "canele-model"), "--json", "dedicated", "--cores", "1", "--dedicated", "0",
                          "--alpha", str(alpha), "--profile", *runs["none", form], "--least-profile", *least,
                          "--measured-profile", *runs["dedicated", becomes]])
        judged = json.loads(text)[0]
        rows.append({"program": form, "alpha": alpha, "judged": judged})
    return rows


def print_report(options, rows):
    print(f"mpi_loop {options.operation}, {options.size} bytes, {options.rounds} rounds of {options.compute} ms, "
          f"{options.ranks} ranks over {options.driver}; all compute on core 0, workers on core 1; s")
    print(f"{'program':<10}{'alpha':>6}{'without':>10}{'predicted':>11}{'measured':>10}{'error':>9}"
          f"{'of that hidden':>16}{'error':>9}")
    for row in rows:
        judged = row["judged"]
        one = judged["predictions"][0]
        print(f"{row['program']:<10}{row['alpha']:>6}{judged['run']['time_s']:>10.3f}{one['total_s']:>11.3f}"
              f"{judged['measured_s']:>10.3f}{100 * one['error']:>+8.1f}%{one['total_with_unhidden_s']:>16.3f}"
              f"{100 * one['error_with_unhidden']:>+8.1f}%")
    print("predicted: the thesis's formula; of that hidden: waits are hidden only as far as was computed beside them")
    for row in rows:
        for doubt in row["judged"]["doubts"]:
            print(f"{row['program']}, alpha {row['alpha']}: {doubt}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", default="/usr/local", help="where Canelé is installed, if it was not built here")
    parser.add_argument("--driver", default="shm")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--operation", choices=["exchange", "bcast", "allreduce"], default="allreduce")
    parser.add_argument("--size", type=int, default=32_000_000, help="bytes")
    parser.add_argument("--compute", type=float, default=100, help="ms a round, of all ranks together")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--batches", type=int, default=3, help="runs of each kind; the median one counts")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if len(os.sched_getaffinity(0)) < 2:
        sys.exit("predict.py needs two cores: one to compute on, one to give up")
    with tempfile.TemporaryDirectory() as directory:
        loop = Loop(options, pathlib.Path(directory))
        least = loop.run("none", "tests", 8, 1, 200)
        rows = judge(options, measure(options, loop), least)
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        print_report(options, rows)


if __name__ == "__main__":
    main()

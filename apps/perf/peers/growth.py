#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The cost of a message as one quantity grows: ranks of a host, outstanding requests, threads, tags in use, sessions.

Started by `canele-perf growth`. Runs one job at a time. The slope is the exponent b of the best fit cost = a N^b over
all N of a table: 0 is flat, 1 is linear. Whole tables are run again in each round, so that a slow drift of the machine
does not look like growth.

If there are more ranks or threads than cores, they take turns on them. The growth may then be the scheduler's share.
"""

import argparse
import json
import math
import os
import sys

import command_line
import contenders
import figures
import machine

MATCH = ["match", "--no-counts", "--order", "shuffled", "--batches", "3"]
RATE = ["rate", "--no-floor"]


def of_results(report):
    """Returns the samples of canele-perf's simpler benchmarks."""
    return report["results"][0]["samples"]


def per_message(report):
    """Returns a rank's time for one of its messages of alltoall, in ns."""
    return [time * 1e3 / (report["ranks"] - 1) for time in report["samples"]["times"]]


def from_rate(report):
    """Returns ns per message."""
    return [1e9 / sample for sample in of_results(report)]


# Name: (title, arguments of canele-perf, the option for N, values of N, the samples in its report, ns).
TABLES = {
    "ranks": ("ranks of this host, all to all, 8 B", ["alltoall", "--size", "8", "--batches", "5"], "--ranks",
              (2, 4, 8, 16, 32, 64), per_message),
    "posted": ("receives posted", [*MATCH, "--direction", "posted"], "--receives", (16, 256, 4096, 65536, 1 << 20),
               of_results),
    "unexpected": ("messages unexpected", [*MATCH, "--direction", "unexpected"], "--receives",
                   (16, 256, 4096, 65536, 1 << 20), of_results),
    "threads": ("threads of each of two ranks, in pairs", ["threads", "--pattern", "N-to-N", "--seconds", "0.2",
                                                           "--batches", "3"], "--threads", (1, 2, 4, 16, 64, 256),
                lambda report: [1e9 / report["figures"]["rate"]]),
    "tags": ("tags that messages take in turn", RATE, "--tags", (1, 16, 256, 4096, 65536), from_rate),
    "sessions": ("sessions that messages take in turn", RATE, "--sessions", (1, 4, 16, 64, 256, 1024), from_rate),
}


def slope(points):
    """Returns the slope of log(cost) over log(N) by least squares; None for fewer than two N."""
    logs = [(math.log(number), math.log(cost)) for number, cost in points]
    mean_x, mean_y = (sum(values) / len(logs) for values in zip(*logs)) if logs else (0, 0)
    width = sum((x - mean_x) ** 2 for x, _ in logs)
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / width if width > 0 else None


def measure(options, program):
    """Returns {table: {N: samples}}, and what failed."""
    found, failures = {name: {} for name in options.tables}, []
    watch = machine.Watch(sorted(os.sched_getaffinity(0)))
    for number in range(options.rounds):
        for name in options.tables:
            _, words, option, numbers, samples_of = TABLES[name]
            for count in numbers:
                if count > options.most:
                    continue
                watch.wait_until_quiet(options.patience)
                command = [program, *words, option, str(count), "--driver", options.driver, "--json"]
                try:
                    report = json.loads(contenders.run_job("canele", command, {}, options.time_limit))
                    found[name].setdefault(count, []).extend(samples_of(report))
                except RuntimeError as problem:
                    print(problem, file=sys.stderr)
                    failures.append(str(problem).splitlines()[0])
        print(f"round {number + 1} of {options.rounds} done", file=sys.stderr)
    return found, failures


def summarise(found):
    """Returns [{table, title, rows: [{n, value, p10, p90}], slope}]."""
    tables = []
    for name, by_number in found.items():
        rows = [{"n": number, **figures.summary(samples)._asdict()} for number, samples in sorted(by_number.items())]
        tables.append({"table": name, "title": TABLES[name][0], "unit": "ns", "rows": rows,
                       "slope": slope([(row["n"], row["value"]) for row in rows])})
    return tables


def show(result):
    """Prints the tables on the terminal."""
    for table in result["tables"]:
        told = "" if table["slope"] is None else f": slope {table['slope']:+.2f}"
        print(f"{table['title']}{told}")
        print(f"{'N':>10} {'ns a message':>14} {'p10':>10} {'p90':>10}")
        for row in table["rows"]:
            print(f"{row['n']:>10} {row['value']:>14.1f} {row['p10']:>10.1f} {row['p90']:>10.1f}")
        print()


def parse_arguments():
    """Parses the command line. Ends with a message if it is malformed."""
    parser = argparse.ArgumentParser(prog="canele-perf growth", description="What a message costs as ranks, "
                                     "outstanding requests, threads, tags, sessions grow; the slope is N's exponent.")
    parser.add_argument("--driver", choices=["shm", "tcp"], default="shm")
    parser.add_argument("--only", type=command_line.names("table", TABLES), default=list(TABLES), dest="tables",
                        help=f"of {command_line.listed(TABLES)} (default: all)")
    parser.add_argument("--most", type=int, default=1 << 20, help="largest N (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="jobs for each N (default %(default)s)")
    parser.add_argument("--patience", type=float, default=2, help="most seconds to wait for a quiet machine "
                        "before a job (default %(default)s)")
    parser.add_argument("--time-limit", type=float, default=120, help="seconds for one job (default %(default)s)")
    command_line.add_places(parser)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.rounds < 1 or options.most < 2:
        parser.error("at least one round, and N up to at least 2, are needed")
    return options


def main():
    """Returns exit code 1 if a job failed."""
    options = parse_arguments()
    command_line.forget_settings()
    program = contenders.find_tool(options.prefix, "canele-perf")
    if program is None:
        print("canele-perf growth: canele-perf not found; build first, or give --prefix", file=sys.stderr)
        return 1
    with command_line.work_directory(options):
        found, failures = measure(options, program)
        result = {"driver": options.driver, "rounds": options.rounds, "tables": summarise(found), "failures": failures}
        command_line.deliver(options, "growth", result, show)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(command_line.run(main))

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reads the counter files of a job (CANELE_COUNTERS=DIR/%r.json): what each rank sent to each other, over which driver.

Usage: traffic.py DIRECTORY --ranks N --driver NAME     prints a table; exit code 1 if something is not as asked

Used by apps/demo.sh by the command line, and by run_suite.py as a module. A pair is silent if neither of the two sent a
message to the other. One direction alone may be silent in a right run: in a 2 x 2 distribution the Cholesky sends
nothing from rank 0 to rank 3.
"""
import argparse
import itertools
import json
import pathlib
import sys


def read_job(directory):
    """Returns the counter files of a job as a list of dictionaries, by rank."""
    reports = []
    for path in sorted(pathlib.Path(directory).glob("*.json")):
        try:
            reports.append(json.loads(path.read_text(encoding="utf-8")))
        except ValueError as error:
            raise ValueError(f"{path} is no JSON: {error}") from error
    return sorted(reports, key=lambda report: report["rank"])


def flows(reports):
    """Returns {(from, to): (driver, messages, bytes)} between different ranks."""
    table = {}
    for report in reports:
        for peer in report["peers"]:
            if peer["rank"] != report["rank"]:
                counters = peer["counters"]
                table[report["rank"], peer["rank"]] = (
                    peer["driver"],
                    counters["messages_sent"],
                    counters["bytes_sent"],
                )
    return table


def totals(directory):
    """Returns (messages, bytes) that the ranks of a job sent to each other."""
    values = flows(read_job(directory)).values()
    return sum(value[1] for value in values), sum(value[2] for value in values)


def multicasts(directory):
    """Returns the number of multicasts of which the ranks of a job were the roots."""
    return sum(report["counters"].get("multicasts_sent", 0) for report in read_job(directory))


def problems(reports, ranks, driver):
    """Returns what is not as asked: world size, silent pairs, another driver."""
    found = []
    present = [report["rank"] for report in reports]
    if present != list(range(ranks)):
        found.append(f"counters of ranks {present} where those of 0 to {ranks - 1} were expected")
    for report in reports:
        if report["size"] != ranks:
            found.append(f"rank {report['rank']} was in a job of {report['size']}, not of {ranks}")
    table = flows(reports)
    for first, second in itertools.combinations(range(ranks), 2):
        if not any(table.get(pair, ("", 0, 0))[1] for pair in ((first, second), (second, first))):
            found.append(f"ranks {first} and {second} exchanged no message")
    for (sender, receiver), (used, messages, _) in sorted(table.items()):
        if messages and used != driver:
            found.append(f"rank {sender} reached rank {receiver} over '{used}', not over '{driver}'")
    for report in reports:
        for one in report["drivers"]:
            if one["name"] not in (driver, "self") and (one["packets_sent"] or one["bulk_bytes_sent"]):
                found.append(f"rank {report['rank']} sent packets over '{one['name']}', not over '{driver}'")
    return found


def print_table(reports, out=sys.stdout):
    print(f"    {'from':>4} {'to':>4} {'driver':>7} {'messages':>9} {'bytes':>13}", file=out)
    for (sender, receiver), (driver, messages, size) in sorted(flows(reports).items()):
        print(f"    {sender:>4} {receiver:>4} {driver:>7} {messages:>9} {size:>13,}", file=out)


def main():
    parser = argparse.ArgumentParser(description="Shows and checks the counter files of a job.")
    parser.add_argument("directory")
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--driver", required=True)
    options = parser.parse_args()
    try:
        reports = read_job(options.directory)
        print_table(reports)
        found = problems(reports, options.ranks, options.driver)
    except (ValueError, KeyError) as error:
        found = [f"counter files in {options.directory} cannot be read: {error!r}"]
    for problem in found:
        print(f"    wrong: {problem}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

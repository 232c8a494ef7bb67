#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Canelé beside every MPI, UCX and libfabric on this machine, and beside the hardware baselines: one run, one table.

Started by `canele-perf compare`. Runs one job at a time. No CANELE_* variable is set, and those that are set here do
not reach the jobs. The only exception is that our MPI functions get tcp by a variable, because they have no options.

Jobs run A B C A B C ..., each in fresh processes, with rank i pinned to the i-th core. Before a round the program waits
for a quiet machine. A job that was disturbed nevertheless is marked and does not count, unless most are.

    rows.ROWS ─▶ for each round, row, contender: a job ─▶ records ─▶ figures.judge ─▶ report, JSON, plots, docs
"""

import argparse
import json
import math
import os
import pathlib
import signal
import sys
import time

import command_line
import contenders
import docs_page
import figures
import machine
import node
import pairs
import plots
import report
import rows

# Every MPI's settings for idle times: (name, options, variables). The setting with the best latency in this run is
# used.
YIELDS = {
    "openmpi": [("never yields", ["--mca", "mpi_yield_when_idle", "0"], {}), ("yields when idle",
                                                                              contenders.OPENMPI_YIELD, {})],
    "mpich": [("yields after 1000 polls", [], {}), ("never yields", [], {"MPIR_CVAR_POLLS_BEFORE_YIELD": "0"})],
}
YIELDS["openmpi-ucx"] = YIELDS["openmpi"]
MPIS = ["canele-mpi", "openmpi", "openmpi-ucx", "mpich"]
NAMES = ["canele", *MPIS, "ucx_perftest", "fi_pingpong", figures.FLOOR, figures.BARE]
SOURCES = {"match": "mpi_match", "sandia": "mpi_sandia", "broadcast": "mpi_broadcast", "overlap": "mpi_progress",
           "threads": "mpi_progress", **dict.fromkeys(contenders.ONE_SIDED, "mpi_rma")}


def say(text):
    """Prints progress on stderr, apart from the table."""
    print(text, file=sys.stderr, flush=True)


def find_contenders(options):
    """Returns [(name, contender or None, reason)] of all that are wanted."""
    sources = sorted({"mpi_perf", *(SOURCES.get(row.case.benchmark, "mpi_perf") for row in options.rows)})
    found = []
    if options.worker:
        run = contenders.find_tool(options.prefix, "canele-run") or "canele-run"
        start = [run, "-n", "2", "--bind-to", "core"]
        found = [("canele", *contenders.make_canele(options, "canele", start)),
                 (f"canele-{options.worker}", *contenders.make_canele(
                     options, f"canele-{options.worker}", [*start, "-D", f"CANELE_WORKER={options.worker}"]))]
    else:
        for name in [one for one in ("canele", *MPIS, figures.FLOOR, figures.BARE) if one in options.contenders]:
            made = (contenders.make_mpi(options, name, sources) if name in MPIS else
                    contenders.make_canele(options, name))
            found.append((name, *made))
        found += pairs.find_pairs(options)
    found = [(name, one, why) for name, one, why in found if options.worker or name in options.contenders]
    for name, one, _ in found:
        if isinstance(one, contenders.Canele):
            one.usual_driver = "shm"  # must be its own choice: samples_of checks
        elif name == "canele-mpi" and one:
            one.how = {**one.how, "shm": ([], {})}
    return found


def choose_yields(options, present):
    """Gives each MPI, for each driver in use, the setting with its best latency. Returns {name: {driver: setting}}."""
    chosen = {}
    for one in present:
        for driver in sorted({row.case.driver for row in options.rows}) if one.name in YIELDS else ():
            case, best = contenders.Case("latency", driver, "bytes", 8, 5), None
            for name, *setting in YIELDS[one.name]:
                one.yields[driver] = setting
                try:
                    taken = figures.quantile(one.measure(case, options.time_limit), 0.5)
                except RuntimeError as problem:
                    say(problem)
                    continue
                if best is None or taken < best[0]:
                    best = taken, name, setting
            if best:
                one.yields[driver] = best[2]
                chosen.setdefault(one.name, {})[driver] = best[1]
    return chosen


class Run:
    """The rounds: the records so far, and what failed."""

    def __init__(self, options, present):
        self.options, self.present = options, present
        # A worker that shares its core with the program switches by design.
        self.watch = machine.Watch(options.cores, {**machine.LIMITS, "switches": math.inf} if options.worker else None)
        self.records, self.failures = [], {}
        self.start = time.monotonic()

    def rounds(self):
        """Runs A B C A B C ... A contender that fails in a row is named, and not measured in that row again."""
        for number in range(self.options.rounds):
            waited, seen = self.watch.wait_until_quiet(self.options.patience)
            if seen:
                say(f"not quiet after {waited:.0f} s: {', '.join(seen)}; going on, such samples are marked")
            for row in self.options.rows:
                if row.target is None and number >= max(1, self.options.rounds // 2):
                    continue  # plots need fewer rounds
                for contender in self.present:
                    if contender.takes(row.case) and (row.key, contender.name) not in self.failures:
                        self.one(number, row, contender)
            say(f"round {number + 1} of {self.options.rounds}, {time.monotonic() - self.start:.0f} s")

    def one(self, number, row, contender):
        """Runs one job."""
        case = row.case._replace(batches=min(row.case.batches, self.options.batches))
        try:
            samples, disturbed = self.watch.measure(lambda: contender.measure(case, self.options.time_limit))
        except (RuntimeError, ValueError, KeyError) as problem:
            say(problem)
            self.failures[row.key, contender.name] = str(problem).splitlines()[0]
            return
        scale = row.unit[1]
        self.records.append({"row": row.key, "contender": contender.name, "round": number,
                             "samples": [sample * scale for sample in samples], "disturbed": disturbed})


def measure(options):
    """Builds, chooses settings, measures. Returns the result in the form of the JSON."""
    with command_line.work_directory(options):
        say("building the programs of the other libraries")
        found = find_contenders(options)
        missing = {name: why for name, one, why in found if one is None}
        for name, why in missing.items():
            say(f"{name}: left out: {why}")
        present = [one for _, one, _ in found if one is not None]
        yields = {} if options.quick else choose_yields(options, present)
        run = Run(options, present)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            run.rounds()
        except KeyboardInterrupt:
            say("interrupted: this is what was measured so far")
    failures = [{"row": row, "contender": name, "why": why} for (row, name), why in run.failures.items()]
    about = {**machine.about(options.work), "pinned": options.cores, "beside": machine.slowdown_beside(options.cores)}
    return {"date": time.strftime("%Y-%m-%d"), "minutes": (time.monotonic() - run.start) / 60, "machine": about,
            "rounds": options.rounds, "batches": options.batches, "contenders": [one.name for one in present],
            "missing": missing, "yields": yields, "worker": options.worker, "failures": failures,
            "records": run.records}


def load(paths):
    """Returns the results of earlier runs as one. Rows of later files win."""
    whole = None
    for path in paths:
        one = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        if whole is None:
            whole = one
            continue
        again = {record["row"] for record in one["records"]}
        whole["records"] = [record for record in whole["records"] if record["row"] not in again] + one["records"]
        whole["failures"] = [f for f in whole["failures"] if f["row"] not in again] + one["failures"]
        whole["contenders"] += [name for name in one["contenders"] if name not in whole["contenders"]]
        whole["yields"] = {name: {**whole["yields"].get(name, {}), **one["yields"].get(name, {})}
                           for name in {**whole["yields"], **one["yields"]}}
        whole["missing"] |= one["missing"]
    return whole


def parse_arguments():
    """Parses the command line. Ends with a message if it is malformed."""
    parser = argparse.ArgumentParser(prog="canele-perf compare", description="Canelé beside every MPI, UCX and "
                                     "libfabric on this machine, and beside the machine's floors, interleaved.")
    parser.add_argument("--quick", action="store_true", help=f"in half a minute: {', '.join(rows.QUICK)}")
    parser.add_argument("--node", action="store_true", help="a whole node: pairs, collectives and threads up to all "
                        "cores; has options of its own (--node --help)")
    parser.add_argument("--only", help="prefixes of rows, comma-separated, e.g. shm-latency,tcp (see --list)")
    parser.add_argument("--list", action="store_true", help="print the names of all rows")
    parser.add_argument("--rounds", type=int, help="jobs of each contender and row (default 5; --quick: 2)")
    parser.add_argument("--batches", type=int, default=21, help="batches of a job (default %(default)s)")
    parser.add_argument("--cores", type=command_line.whole_numbers("cores"),
                        help="two OS indexes, e.g. 0,1 (default: the first two allowed)")
    parser.add_argument("--contenders", type=command_line.names("contender", NAMES), default=NAMES,
                        help=f"of {command_line.listed(NAMES)} (default: all)")
    parser.add_argument("--worker", choices=["bound", "idle", "timer"],
                        help="ours with that worker beside ours without, one core a process")
    parser.add_argument("--patience", type=float, default=20, help="most seconds to wait for a quiet machine before a "
                        "round (default %(default)s)")
    parser.add_argument("--time-limit", type=float, default=60, help="seconds for one job (default %(default)s)")
    command_line.add_places(parser)
    command_line.add_json_file(parser)
    parser.add_argument("--plots", metavar="DIR", help="write SVG and PNG there (needs Python's matplotlib)")
    parser.add_argument("--docs", metavar="DIR", help="write the table into DIR/performance.md, between its two marks, "
                        "and the plots of that table into DIR/plots")
    parser.add_argument("--from", nargs="+", metavar="FILE", dest="files", help="measure nothing: show earlier --json")
    options = parser.parse_args()
    if options.list:
        print("\n".join(f"{row.key:<37} {row.label}" for row in rows.ROWS))
        sys.exit(0)
    options.order = "shuffled"
    options.rounds = options.rounds if options.rounds is not None else 2 if options.quick else 5
    allowed = sorted(os.sched_getaffinity(0))
    try:
        options.rows = rows.choose(options.only.split(",") if options.only else [], options.quick)
    except ValueError as problem:
        parser.error(str(problem))
    options.cores = options.cores or (allowed * 2)[:2]
    if len(options.cores) != 2 or not set(options.cores) <= set(allowed):
        parser.error(f"two cores of {','.join(map(str, allowed))} are needed, not {options.cores}")
    if options.rounds < 1 or options.batches < 1:
        parser.error("at least one round and one batch are needed")
    if options.plots and (why := plots.missing()):
        parser.error(f"--plots: {why}")
    if options.docs and options.worker:
        parser.error("--docs: the table of --worker has no place in the page: leave one of them out")
    if options.docs and (why := docs_page.missing(options.docs)):
        parser.error(f"--docs: {why}")
    return options


def main():
    """Returns exit code 1 if a job failed, or there is nothing to show."""
    if "--node" in sys.argv:
        return node.main([word for word in sys.argv[1:] if word != "--node"])
    options = parse_arguments()
    command_line.forget_settings()
    result = load(options.files) if options.files else measure(options)
    if not result["records"]:
        say("canele-perf compare: nothing was measured")
        return 1
    if options.docs and result["worker"]:
        say("canele-perf compare: --docs: this result compares workers, which has no place in the page")
        return 1
    verdicts = report.verdicts(result)
    command_line.keep(options, "compare", {**result, "rows": verdicts})
    if command_line.write_json(options.json, {**result, "rows": verdicts}):
        report.show(result, verdicts)
    if options.plots:
        for path in plots.write(result, options.plots):
            say(f"wrote {path}")
    if options.docs:
        for path in docs_page.write(result, verdicts, options.docs):
            say(f"wrote {path}")
    return 1 if result["failures"] else 0


if __name__ == "__main__":
    sys.exit(command_line.run(main))

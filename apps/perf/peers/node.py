# SPDX-License-Identifier: BSD-3-Clause
"""A whole node: Canelé beside other MPIs as the number of ranks and threads grows to that of the cores.

Started by `canele-perf compare --node`. Runs one job at a time; contenders take turns, A B C A B C ... Three parts:

- pairs of ranks at once (progress.py pairs): neighbours on cores i and i + 1, far ones on cores i and i + n / 2;
- blocking collectives (collectives.py), of 4, 8, ... ranks;
- pairs of threads of two ranks (progress.py threads, N-to-N), each rank on a block of cores of its own.

A stage is a part with a number of ranks or threads. Ranks and threads have a core each. Where they are more than the
cores, the stage is marked. Of pairs and collectives, such stages are measured only if they are asked for.

    stages ─▶ each round: each stage: each contender: its jobs ─▶ records ─▶ figures.judge ─▶ table, JSON
"""

import argparse
import json
import math
import os
import sys
import time
import typing

import collectives
import command_line
import figures
import machine
import progress
from report import number, spread
from rows import bytes_name

NEAR, FAR = "neighbours", "far"
PARTS = ["pairs", "collectives", "threads"]
UNITS = {"latency": ("us", 1), "bandwidth": ("GB/s", 1e-3), "rate": ("M/s", 1e-6)}  # and the factor from a sample
# jobs: measures and sizes of pairs; seconds: of a batch of threads; operations, size: of collectives.
FULL = {"jobs": [("latency,rate", "8"), ("latency", "4096"), ("bandwidth", "65536,1048576")], "seconds": 0.3,
        "operations": collectives.OPERATIONS, "size": [8, 65536, 1 << 20], "rounds": 3, "time_limit": 60}
QUICK = {"jobs": [("latency,rate", "8"), ("bandwidth", "65536")], "seconds": 0.1,
         "operations": ["barrier", "bcast", "allreduce", "allgather", "alltoall"], "size": [8, 65536], "rounds": 2,
         "time_limit": 20}


class Stage(typing.NamedTuple):
    """What is measured at one number of ranks and threads."""

    part: str
    place: str  # of pairs: NEAR or FAR
    ranks: int
    threads: int  # of each rank
    cores: tuple  # in the order of the ranks; empty: collectives pin themselves to all cores in turn
    shared: bool  # more ranks and threads than cores


class Row(typing.NamedTuple):
    """One line of the table."""

    stage: Stage
    what: str
    unit: str
    less: bool  # less is better


def doubling(least, most):
    """Returns least, twice that, and so on, and `most`."""
    counts = []
    while least < most:
        counts.append(least)
        least *= 2
    return [*counts, most]


def pair_cores(cores, pairs, place):
    """Returns the core of each rank; ranks 2 i and 2 i + 1 are a pair. Pairs above the cores begin again."""
    half = max(1, len(cores) // 2)
    order = [core for i in range(half) for core in (cores[2 * i:2 * i + 2] if place == NEAR else cores[i::half][:2])]
    return tuple((order * (2 * pairs))[:2 * pairs])


def stages(options, cores):
    """Returns the stages, by part and number."""
    found, count = [], len(cores)
    for pairs in options.pairs or doubling(1, max(1, count // 2)):
        found += [Stage("pairs", place, 2 * pairs, 1, pair_cores(cores, pairs, place), 2 * pairs > count)
                  for place in (NEAR, FAR) if place == NEAR or count >= 4]
    for ranks in options.ranks or (doubling(4, count) if count >= 4 else [max(2, count)]):
        found.append(Stage("collectives", "", ranks, 1, (), ranks > count))
    for threads in options.threads or doubling(1, count):
        found.append(Stage("threads", "", 2, threads, tuple(cores), 2 * threads > count))
    return [stage for stage in found if stage.part in options.parts]


def cases(options, stage):
    """Returns what the jobs of a stage measure, in the form that the command of a contender takes."""
    if stage.part == "collectives":
        return [stage.ranks]
    cores = ("cores", command_line.listed(stage.cores))
    batches = ("batches", str(options.batches))
    if stage.part == "pairs":
        return [(("measure", measures), ("size", sizes), cores, batches) for measures, sizes in options.jobs]
    each = min(stage.threads, max(1, len(stage.cores) // 2))
    return [(("pattern", "N-to-N"), ("threads", str(stage.threads)), ("seconds", str(options.seconds)), cores,
             ("cores-each", str(each)), batches)]


def parse_progress(text):
    """Returns {(what, unit, less): samples} of what a job of pairs or threads printed, a line of JSON for each."""
    found = {}
    for line in map(json.loads, text.splitlines()):
        if line["benchmark"] == "threads":
            what, measure, samples = "rate N-to-N, 8 B", "rate", line["samples"]["rate"]
        else:
            measure, samples = line["measure"], line["samples"]["values"]
            what = f"{measure} {bytes_name(line['size'])}"
        unit, factor = UNITS[measure]
        found[what, unit, measure == "latency"] = [sample * factor for sample in samples]
    return found


def parse_collectives(text):
    """Returns {(what, unit, less): us of each batch} of what a job of collectives printed; a barrier once."""
    found = {}
    for (operation, size), times in collectives.parse(text)[0].items():
        what = operation if operation == "barrier" else f"{operation} {bytes_name(size)}"
        found.setdefault((what, "us", True), times)
    return found


def make_contender(options, stage, name):
    """Returns one of progress.USUAL for a stage; None and the reason if it is not available."""
    if stage.part == "collectives":
        made, why = collectives.make_contender(options, name)
        parse = parse_collectives
    else:
        told = argparse.Namespace(**{**vars(options), "benchmark": stage.part, "ranks": stage.ranks, "more": []})
        made, why = progress.make_contender(told, name)
        parse = parse_progress
    if made:
        made.parse = parse
    return made, why


def prepare(options, found):
    """Compiles. Returns ({(stage, name): contender}, {name: reason} of those that are missing in a part)."""
    made, missing = {}, {}
    for stage in found:
        for name in options.contenders:
            if stage.part == "collectives" and name == figures.OURS:
                continue
            one, why = make_contender(options, stage, name)
            if one is None:
                missing.setdefault(name, why)
            else:
                made[stage, name] = one
    return made, missing


class Run:
    """The rounds: records by row, and what failed."""

    def __init__(self, options, found, made):
        self.options, self.stages, self.made = options, found, made
        # More ranks than cores switch by design, and a launcher with many ranks does.
        self.watch = machine.Watch(options.cores, {**machine.LIMITS, "switches": math.inf})
        self.records, self.failures = {}, {}
        self.start = time.monotonic()

    def rounds(self):
        """Runs A B C A B C ... A contender that fails in a stage is named, and not measured there again."""
        for number_of_round in range(self.options.rounds):
            self.watch.wait_until_quiet(self.options.patience)
            for stage in self.stages:
                for case in cases(self.options, stage):
                    for name in self.options.contenders:
                        if (stage, name) in self.made and (stage, name) not in self.failures:
                            self.one(number_of_round, stage, name, case)
            print(f"round {number_of_round + 1} of {self.options.rounds}, {time.monotonic() - self.start:.0f} s",
                  file=sys.stderr, flush=True)

    def one(self, number_of_round, stage, name, case):
        """Runs one job."""
        contender = self.made[stage, name]
        try:
            found, disturbed = self.watch.measure(lambda: contender.measure(case, self.options.time_limit))
        except (RuntimeError, ValueError, KeyError) as problem:
            print(problem, file=sys.stderr, flush=True)
            self.failures[stage, name] = str(problem).splitlines()[0]
            return
        for (what, unit, less), samples in found.items():
            row = self.records.setdefault(Row(stage, what, unit, less), {})
            row.setdefault(name, []).append({"round": number_of_round, "samples": samples, "disturbed": disturbed})


def summarise(options, records):
    """Returns the rows of the JSON: the figures of all contenders, and the verdicts on ours."""
    rows = []
    for row, found in records.items():
        lines = [figures.judge(row.less, None, None, found, who) for who in (figures.OURS, figures.OURS_MPI)]
        rows.append({"part": row.stage.part, "place": row.stage.place, "what": row.what, "ranks": row.stage.ranks,
                     "threads": row.stage.threads, "shared": row.stage.shared, "unit": row.unit, "less": row.less,
                     "figures": {name: {**figures.pooled(figures.undisturbed(found[name]))._asdict(),
                                        "jobs": len(found[name]),
                                        "disturbed": sum(bool(one["disturbed"]) for one in found[name])}
                                 for name in options.contenders if name in found},
                     "verdicts": [line for line in lines if line]})
    order = {part: index for index, part in enumerate(PARTS)}
    return sorted(rows, key=lambda row: (order[row["part"]], row["place"] == FAR))


def show(result):
    """Prints the table: a line for each figure, by number of ranks and threads."""
    about, names = result["machine"], result["contenders"]
    print(f"{about['processor']}, {about['cores']} cores, caches {about['caches'] or 'not known'}, Linux "
          f"{about['kernel']}, commit {about['commit'] or 'not known'}")
    print(f"{result['rounds']} rounds over {result['driver']}, {result['minutes']:.1f} minutes; median (p10 to p90); "
          "ratio: ours to the best peer, round by round (spread)")
    if any(row["shared"] for row in result["rows"]):
        print("*: more ranks and threads than cores, which they share")
    for name, why in result["missing"].items():
        print(f"{name}: missing: {why.splitlines()[0]}")
    for failure in result["failures"]:
        print(f"{failure['contender']}: failed in {failure['stage']}: {failure['why']}")
    print(f"\n{'':<42} {'ranks':>6} {'threads':>7}" + "".join(f"  {name:>26}" for name in names)
          + f"  {'ratio (native)':<24} {'ratio (MPI functions)':<24}")
    for row in result["rows"]:
        label = ", ".join(part for part in (f"{row['part']} {row['what']} [{row['unit']}]", row["place"]) if part)
        cells = ["{} ({} to {})".format(*(number(row["figures"][name][key]) for key in ("value", "p10", "p90")))
                 if name in row["figures"] else "-" for name in names]
        ratios = {line["who"]: f"{spread(line['ratio'])} {line['verdict'] or 'no peer'}".strip()
                  for line in row["verdicts"]}
        print(f"{label:<42} {row['ranks']}{'*' if row['shared'] else ' '}".ljust(49) + f"{row['threads']:>8}"
              + "".join(f"  {cell:>26}" for cell in cells)
              + "".join(f"  {ratios.get(who, ''):<23}" for who in (figures.OURS, figures.OURS_MPI)))
    lines = [line["verdict"] for row in result["rows"] for line in row["verdicts"]]
    print(f"\nahead in {lines.count('ahead')}, behind in {lines.count('behind')} of {len(lines)}")


def parse_arguments(words=None):
    """Parses the command line. Ends with a message if it is malformed."""
    parser = argparse.ArgumentParser(prog="canele-perf compare --node", description="Canelé beside other MPIs on a "
                                     "whole node: pairs of ranks, collectives and threads, up to all cores.")
    command_line.add_common(parser, progress.CONTENDERS, progress.USUAL, rounds=None, time_limit=None, json_file=True)
    parser.add_argument("--quick", action="store_true", help="in some three minutes: fewer sizes, operations, rounds")
    parser.add_argument("--driver", choices=["shm", "tcp"], default="shm")
    parser.add_argument("--parts", type=command_line.names("part", PARTS), default=PARTS, help="default: all of "
                        f"{command_line.listed(PARTS)}")
    parser.add_argument("--pairs", type=command_line.whole_numbers("pairs", 1), help="(default: 1, 2, 4 ... cores / 2)")
    parser.add_argument("--ranks", type=command_line.whole_numbers("ranks", 2), help="of collectives (default: 4, 8 "
                        "... cores; below 4 cores: as many as cores)")
    parser.add_argument("--threads", type=command_line.whole_numbers("threads", 1), help="of each of two ranks "
                        "(default: 1, 2, 4 ... cores)")
    parser.add_argument("--batches", type=int, default=5, help="batches of a job (default %(default)s)")
    parser.add_argument("--cores", type=command_line.whole_numbers("cores"), help="OS indexes (default: all allowed)")
    parser.add_argument("--patience", type=float, default=20, help="most seconds to wait for a quiet machine before a "
                        "round (default %(default)s)")
    options = parser.parse_args(words)
    allowed = sorted(os.sched_getaffinity(0))
    options.cores = options.cores or allowed
    for name, usual in (QUICK if options.quick else FULL).items():
        if getattr(options, name, None) is None:
            setattr(options, name, usual)
    if not set(options.cores) <= set(allowed):
        parser.error(f"cores of {command_line.listed(allowed)} are needed, not {command_line.listed(options.cores)}")
    if options.rounds < 1 or options.batches < 1:
        parser.error("at least one round and one batch are needed")
    return options


def measure(options):
    """Compiles and measures. Returns the result in the form of the JSON."""
    found = stages(options, options.cores)
    made, missing = prepare(options, found)
    for name, why in missing.items():
        print(f"{name}: left out: {why}", file=sys.stderr, flush=True)
    run = Run(options, found, made)
    try:
        run.rounds()
    except KeyboardInterrupt:
        print("interrupted: this is what was measured so far", file=sys.stderr)
    failures = [{"contender": name, "why": why,
                 "stage": f"{stage.part} of {stage.ranks} ranks of {stage.threads} threads"}
                for (stage, name), why in run.failures.items()]
    return {"date": time.strftime("%Y-%m-%d"), "minutes": (time.monotonic() - run.start) / 60,
            "machine": machine.about(options.work), "driver": options.driver, "rounds": options.rounds,
            "quick": options.quick, "missing": missing,
            "contenders": [name for name in options.contenders if any(name == other for _, other in made)],
            "failures": failures, "rows": summarise(options, run.records)}


def main(words=None):
    """Returns exit code 1 if a job failed, or there is nothing to show."""
    options = parse_arguments(words)
    command_line.forget_settings()
    with command_line.work_directory(options):
        result = measure(options)
        if not result["rows"]:
            print("canele-perf compare --node: nothing was measured", file=sys.stderr)
            return 1
        command_line.keep(options, "node", result)
    if command_line.write_json(options.json, result):
        show(result)
    return 1 if result["failures"] else 0

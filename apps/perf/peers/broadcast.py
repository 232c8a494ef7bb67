# SPDX-License-Identifier: BSD-3-Clause
"""One message to many beside other MPIs: root to k ranks of this host, every size, shm and tcp, in one run.

Called by run.py broadcast. Runs one job at a time. The figure of a point is the median of its jobs' medians, because
the kernel places ranks that share cores differently from job to job. Short messages are many, so that a job outlasts
its start. Ours and a loop of single sends take turns inside one job. A library that does not yield (MPICH) needs some
milliseconds per message if ranks share cores, so it gets fewer messages. A library that does not end in time is not
measured with more ranks.

    for each round, driver, k, size:  canele (auto, sends) ─▶ each MPI by MPI_Bcast ─▶ by MPI_Isend to each
"""

import json
import os
import sys

import contenders as peers
from figures import quantile

OURS, SENDS = "auto", "sends"
DRIVERS = ["shm", "tcp"]
LARGE, SHORT = 1 << 20, 4096  # bytes
FEW, MANY, MOST, FEWEST = 30, 500, 10000, 10  # batches of large, of other, of short, of endless messages
LIMIT = 1.1
LONGEST_JOB = 20  # seconds; usual ones take half a second


def batches_for(options, name, ranks, size):
    """Returns the number of messages that count in a job."""
    if options.batches:
        return options.batches
    if name.startswith("mpich") and ranks >= len(os.sched_getaffinity(0)):
        return FEWEST
    if size <= SHORT:
        return MOST
    return FEW if size >= LARGE else MANY


class Point:
    """Medians of jobs, by contender."""

    def __init__(self, driver, ranks, size):
        self.driver, self.ranks, self.size = driver, ranks, size
        self.medians = {}

    def figure(self, name):
        """Returns the figure over all jobs."""
        return quantile(self.medians[name], 0.5)

    def best(self, but=(OURS,)):
        """Returns (name, figure) of the fastest other contender; None if there is none."""
        return min(((name, self.figure(name)) for name in self.medians if name not in but), key=lambda pair: pair[1],
                   default=None)

    def add(self, name, samples):
        self.medians.setdefault(name, []).append(quantile(samples, 0.5))


def take_part(options):
    """Returns the contenders: one of ours, and of each MPI one for each way."""
    made = []
    for name in options.contenders:
        if name == "canele-mpi":
            continue  # a collective of ours: collectives.py
        if name == "canele":
            made.append((name, peers.make_canele(options, "canele-auto,sends")))
        else:
            made += [(name, peers.make_mpi(options, name, ["mpi_broadcast"], way)) for way in ("bcast", "isend")]
    return peers.gather(made)


def measure(contender, point, options):
    """Runs one job and adds its medians to the point."""
    case = peers.Case("broadcast", point.driver, str(point.ranks), point.size,
                      batches_for(options, contender.name, point.ranks, point.size))
    text = peers.run_job(contender.name, contender.command(case), contender.environment,
                         options.time_limit or LONGEST_JOB)
    if isinstance(contender, peers.Canele):
        for name, samples in json.loads(text)["samples"].items():
            point.add(name, samples)
    else:
        point.add(contender.name, contender.samples_of(case, text))


def run(options):
    """Runs all jobs. Returns the points, and whether one of ours has failed."""
    points = [Point(driver, ranks, size) for driver in ([options.driver] if options.driver else DRIVERS)
              for ranks in options.destinations for size in options.sizes]
    given_up = {}  # (contender, driver): the number of ranks at which it has failed, or has not ended in time
    found = take_part(options)
    for number in range(options.rounds):
        for point in points:
            for contender in found:
                kind = (contender.name, point.driver)
                if point.ranks >= given_up.get(kind, point.ranks + 1):
                    continue
                try:
                    measure(contender, point, options)
                except RuntimeError as problem:
                    print(f"{problem}\nnot measured over {point.driver} to {point.ranks} and more", file=sys.stderr)
                    given_up[kind] = point.ranks
        print(f"round {number + 1} of {options.rounds} done", file=sys.stderr)
    return points, any(who.startswith("canele") for who, _ in given_up)


def load(paths):
    """Returns the points of earlier runs, with their jobs combined."""
    points = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for row in json.load(file)["points"]:
                key = (row["driver"], row["ranks"], row["size"])
                point = points.setdefault(key, Point(*key))
                for name, medians in row["medians"].items():
                    point.medians.setdefault(name, []).extend(medians)
    return [points[key] for key in sorted(points)]


def size_name(size):
    """Returns the size as in tables."""
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} B"


def verdict(points, but, against):
    """Returns how often ours is ahead, and where it is above the limit."""
    ratios = [(point.figure(OURS) / point.best(but)[1], point) for point in points if point.best(but) is not None]
    ahead = sum(ratio <= 1 for ratio, _ in ratios)
    above = [f"{size_name(point.size)} to {point.ranks} ({ratio:.2f})" for ratio, point in ratios if ratio > LIMIT]
    text = f"ahead of {against} at {ahead} of {len(ratios)} points; above {LIMIT} at {len(above)}"
    return text + (": " + ", ".join(above) if above else "")


def cell(point):
    """Returns a cell: ours, the best of the MPIs. Ours is bold if it is not behind."""
    ours, best = point.figure(OURS), point.best((OURS, SENDS))
    shown = f"{ours:.3g}" if ours < 1000 else f"{ours:.0f}"
    if best is None:
        return shown
    theirs = f"{best[1]:.3g}" if best[1] < 1000 else f"{best[1]:.0f}"
    return (f"**{shown}**" if ours <= best[1] else shown) + f", {theirs} ({best[0]})"


def print_table(points):
    """Prints a table for each driver, and its verdict."""
    for driver in DRIVERS:
        mine = [point for point in points if point.driver == driver and OURS in point.medians]
        if not mine:
            continue
        sizes = sorted({point.size for point in mine})
        jobs = max(len(point.medians[OURS]) for point in mine)
        print(f"{driver}: time until the last has it [us], ours and the best MPI; medians of {jobs} jobs\n")
        print("| to ranks | " + " | ".join(map(size_name, sizes)) + " |\n|" + "---|" * (len(sizes) + 1))
        for ranks in sorted({point.ranks for point in mine}):
            cells = [cell(point) for size in sizes for point in mine if (point.ranks, point.size) == (ranks, size)]
            print(f"| {ranks} | " + " | ".join(cells) + " |")
        print()
        print(verdict(mine, (OURS, SENDS), "all MPIs"))
        sends = tuple(name for point in mine for name in point.medians if name != SENDS)
        print(verdict(mine, sends, "single sends") + "\n")


def result_of(points):
    """Returns the result in the form of the JSON: the median of every job."""
    rows = [{"driver": point.driver, "ranks": point.ranks, "size": point.size, "medians": point.medians}
            for point in points]
    return {"benchmark": "broadcast", "unit": "us", "points": rows}

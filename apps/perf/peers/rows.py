# SPDX-License-Identifier: BSD-3-Clause
"""The rows of the comparison: what is measured, and the targets of Canelé.

Used by compare.py, report.py and plots.py. A target is a ratio, ours divided by the best peer's of the same run: below
one for times, above one for rates. Our MPI functions may cost a tenth more. They are judged only in rows with `mpi`.
Rows without a target are for the plots.
"""

import typing

from contenders import ATOMICS, ONE_SIDED, RATE, Case

MPI_COST = 1.1
UNITS = {"latency": ("us", 1), "bandwidth": ("GB/s", 1e-3), "rate": ("M/s", 1e-6), "match": ("ns", 1),
         "sandia": ("M/s", 1e-6), "broadcast": ("us", 1), "overlap": ("of serial", 1),
         **{name: ("M/s", 1e-6) if name.endswith(RATE) else ("us", 1) for name in ONE_SIDED}}
QUICK = ("shm-latency-8", "shm-bandwidth-64k", "shm-rate-same", "tcp-rate-same", "tcp-latency-8")


class Row(typing.NamedTuple):
    """One line of the table."""

    key: str
    label: str
    case: Case
    less: bool  # less is better
    target: float | None = None  # of the ratio to the best peer
    floor_target: float | None = None
    mpi: bool = False  # our MPI functions are judged, too

    @property
    def unit(self):
        """Returns (name of the unit, factor from a sample to it)."""
        if self.case.benchmark == "threads":
            return ("us", 1) if self.less else ("M/s", 1e-6)
        return UNITS[self.case.benchmark]

    @property
    def family(self):
        """Returns the name of the plot to which the row belongs."""
        return self.key.rpartition("-")[0]

    def target_of(self, who):
        """Returns the target of our native API, or of our MPI functions."""
        if self.target is None or who == "canele":
            return self.target
        return self.target * MPI_COST if self.less else self.target / MPI_COST

    def floor_target_of(self, who):
        """Returns the target of the ratio to the floor. Floors have targets in times only."""
        return self.floor_target if self.floor_target is None or who == "canele" else self.floor_target * MPI_COST


def size_name(size):
    """Returns 8, 64k, 4M."""
    for unit, letter in ((1 << 20, "M"), (1 << 10, "k")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{letter}"
    return str(size)


def bytes_name(size):
    """Returns 8 B, 64 KiB, 4 MiB."""
    name = size_name(size)
    return f"{name[:-1]} {name[-1].upper()}iB" if name[-1] in "kM" else f"{name} B"


def sized(driver, benchmark, targets, **more):
    """Returns rows by size; targets: {size: target}."""
    less = benchmark == "latency"
    return [Row(f"{driver}-{benchmark}-{size_name(size)}", f"{driver} {benchmark} {bytes_name(size)}",
                Case(benchmark, driver, "bytes", size), less, target, **more) for size, target in targets.items()]


def judged():
    """Returns the rows with targets."""
    k, m = 1 << 10, 1 << 20
    rows = sized("shm", "latency", {8: 0.85}, floor_target=1.35, mpi=True)
    rows += sized("shm", "latency", {64: 0.8, k: 0.8, 4 * k: 0.8}, mpi=True)
    rows += sized("shm", "bandwidth", {16 * k: 1.3, 64 * k: 1.5, 256 * k: 1.5, m: 1.15, 4 * m: 1.0}, mpi=True)
    for driver, target, mpi in (("shm", 1.7, True), ("tcp", 10, False)):
        rows.append(Row(f"{driver}-rate-same", f"{driver} rate 8 B, one tag", Case("rate", driver, "bytes", 8), False,
                        target, None, mpi))
        if driver == "shm":
            rows.append(Row("shm-rate-distinct", "shm rate 8 B, distinct tags", Case("rate", driver, "distinct", 8),
                            False, target, None, mpi))
    rows += sized("tcp", "latency", {8: 0.95}, floor_target=1.15)
    rows += sized("tcp", "bandwidth", {64 * k: 0.97, m: 0.97, 4 * m: 0.97})
    for direction in ("posted", "unexpected"):
        rows += [Row(f"match-{direction}-{count}", f"match {direction} {count:,}, shuffled",
                     Case("match", "shm", direction, count, 3 if count > 4096 else 7), True, 1.0)
                 for count in (16, 256, 4096, 16384)]
    return rows


def others():
    """Returns rows for the plots and for information."""
    rows = [Row(f"sandia-{pattern}", f"Sandia's rate 8 B, {pattern}", Case("sandia", "shm", pattern, 8), False)
            for pattern in ("single", "pair", "prepost", "allstart", "cold")]
    rows += [Row(f"broadcast-{size_name(size)}", f"shm broadcast to 3, {bytes_name(size)}",
                 Case("broadcast", "shm", "3", size), True) for size in (8, 64 << 10, 1 << 20)]
    rows += [Row(f"overlap-{side}", f"shm overlap 1 MiB, {side} computes", Case("overlap", "shm", side, 1 << 20), True)
             for side in ("sender", "receiver", "both")]
    rows += [Row(f"threads-{count}", f"shm rate, {count} thread{'s' * (count > 1)} each",
                 Case("threads", "shm", "N-to-N", count), False) for count in (1, 2, 16)]
    return rows


def one_sided():
    """Returns rows for information: one-sided operations on memory that the origin maps, and on registered memory."""
    rows = []
    for driver, memory in (("shm", "mapped"), ("shm", "registered"), ("tcp", "registered")):
        key = f"one-sided-{driver}-{memory}"
        rows += [Row(f"{key}-{operation}-{size_name(size)}", f"{driver} {operation} {bytes_name(size)}, {memory}",
                     Case(operation, driver, memory, size), True)
                 for operation in ("put", "get") for size in (8, 4 << 10, 64 << 10, 1 << 20)]
        rows += [Row(f"{key}-atomics-{short}", f"{driver} {operation}, {memory}", Case(operation, driver, memory, 8),
                     True) for operation, short in zip(ATOMICS, ("add", "cas"))]
        rows += [Row(f"{key}-rate-{short}", f"{driver} {operation} rate, {memory}",
                     Case(operation + RATE, driver, memory, 8), False)
                 for operation, short in (("put", "put"), ("get", "get"), (ATOMICS[0], "add")) if driver == "shm"]
    return rows


ROWS = judged() + others() + one_sided()


def choose(only, quick):
    """Returns the rows whose key begins with one of `only`, or all. Raises ValueError, which names what is unknown."""
    if not only:
        return [row for row in ROWS if row.key in QUICK] if quick else ROWS
    unknown = [word for word in only if not any(row.key.startswith(word) for row in ROWS)]
    if unknown:
        raise ValueError(f"no row begins with '{unknown[0]}'; rows: {', '.join(row.key for row in ROWS)}")
    return [row for row in ROWS if any(row.key.startswith(word) for word in only)]

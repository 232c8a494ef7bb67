# SPDX-License-Identifier: BSD-3-Clause
"""Figures: quantiles, ratios with their spread, verdicts. Pure functions.

The spread of a ratio is that of the ratios of each round, whose jobs ran next to each other. If the machine is slow for
some rounds, both sides are slow, and the effect cancels.

A record is the result of one job: {"row", "contender", "round", "samples", "disturbed": [reasons]}.
"""

import typing

OURS, OURS_MPI, FLOOR, BARE = "canele", "canele-mpi", "floor", "bare-engine"


class Figure(typing.NamedTuple):
    """A median or a ratio, with the 10th and the 90th percentile."""

    value: float
    p10: float
    p90: float


def quantile(samples, fraction):
    """Returns a quantile, interpolated between neighbours, as canele-perf does."""
    ordered = sorted(samples)
    place = fraction * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def summary(samples):
    """Returns median, 10th and 90th percentile."""
    return Figure(*(quantile(samples, fraction) for fraction in (0.5, 0.1, 0.9)))


def undisturbed(records):
    """Returns the records that count: the undisturbed ones, or all of them if fewer than half are undisturbed."""
    quiet = [record for record in records if not record["disturbed"]]
    return quiet if 2 * len(quiet) >= len(records) else records


def pooled(records):
    """Returns the figure over all samples of these records."""
    return summary([sample for record in records for sample in record["samples"]])


def ratio(ours, theirs):
    """Returns ours divided by theirs: median and spread over the rounds that both have. Without such rounds, uses the
    medians over all.
    """
    def by_round(records):
        rounds = {}
        for record in records:
            rounds.setdefault(record["round"], []).extend(record["samples"])
        return {number: quantile(samples, 0.5) for number, samples in rounds.items()}

    first, second = by_round(ours), by_round(theirs)
    each = [first[number] / second[number] for number in first if number in second]
    return summary(each or [pooled(ours).value / pooled(theirs).value])


def best_peer(less, medians):
    """Returns the name with the best median among those that are neither ours nor a floor; None if there is none."""
    peers = {name: value for name, value in medians.items()
             if name not in (FLOOR, BARE) and not name.startswith(OURS)}
    return (min if less else max)(peers, key=peers.get) if peers else None


def verdict(less, value, target):
    """Returns ("ahead" or "behind", whether the target is met; None without a target). `value` is ours divided by
    theirs.
    """
    ahead = value <= 1 if less else value >= 1
    met = None if target is None else value <= target if less else value >= target
    return "ahead" if ahead else "behind", met


def judge(less, target, floor_target, records, who=OURS):
    """Compares contender `who` in one row with the best peer and with the floor. `records`: {contender: its records}.

    Keys: `who`, figure, best, best_figure, ratio, verdict, met. floor, floor_ratio, floor_met. disturbed (a count).
    bare (the bare engine), bare_ratio (ours divided by it), bare_to_best, bare_to_floor: what the targets require of
    ours.
    """
    counted = {name: undisturbed(own) for name, own in records.items() if own}
    if who not in counted:
        return None
    best = best_peer(less, {name: pooled(own).value for name, own in counted.items()})
    row = {"who": who, "figure": pooled(counted[who]), "best": best, "ratio": None, "verdict": None, "met": None,
           "floor": None, "floor_ratio": None, "floor_met": None, "target": target, "floor_target": floor_target,
           "disturbed": sum(bool(record["disturbed"]) for own in records.values() for record in own)}
    if best:
        row["best_figure"], row["ratio"] = pooled(counted[best]), ratio(counted[who], counted[best])
        row["verdict"], row["met"] = verdict(less, row["ratio"].value, target)
    if FLOOR in counted:
        row["floor"], row["floor_ratio"] = pooled(counted[FLOOR]), ratio(counted[who], counted[FLOOR])
        row["floor_met"] = verdict(less, row["floor_ratio"].value, floor_target)[1]
    if BARE in counted:
        row["bare"], row["bare_ratio"] = pooled(counted[BARE]), ratio(counted[who], counted[BARE])
        row["bare_to_best"] = ratio(counted[BARE], counted[best]) if best else None
        row["bare_to_floor"] = ratio(counted[BARE], counted[FLOOR]) if FLOOR in counted else None
    return row


def disturbances(limits, steal, foreign, slowdown, switches):
    """Returns why a job's samples cannot be trusted, in words; empty: they can. steal, foreign: shares of the cores'
    time. slowdown: of the witness, relative to its best. switches: involuntary ones per second of the job.
    """
    seen = {"steal": steal, "others": foreign, "witness": slowdown, "switches": switches}
    words = {"steal": "{:.1%} of the time was stolen", "others": "others used {:.0%} of the cores",
             "witness": "the witness loop took {:.2f} times its best", "switches": "{:.0f} involuntary switches/s"}
    return [words[name].format(value) for name, value in seen.items() if value > limits[name]]

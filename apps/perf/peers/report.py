# SPDX-License-Identifier: BSD-3-Clause
"""The report of compare.py: every figure, then the rows with their verdicts, those behind as plainly as those ahead.

"ahead" and "behind" refer to the best peer. A target may ask for more than being ahead, and is met or not.
"""

import figures
import rows

SHARED = 1.3


def by_row(result):
    """Returns {key: {contender: its records}}, in the order of the rows."""
    found = {row.key: {} for row in rows.ROWS}
    for record in result["records"]:
        found[record["row"]].setdefault(record["contender"], []).append(record)
    return {key: records for key, records in found.items() if records}


def verdicts(result):
    """Returns for each row its verdicts, by our native API and by our MPI functions, and the figures of all."""
    named = {row.key: row for row in rows.ROWS}
    judged = []
    for key, records in by_row(result).items():
        row = named[key]
        if result["worker"]:
            lines = [beside_itself(row, records, f"{figures.OURS}-{result['worker']}")]
        else:
            wanted = [figures.OURS, *([figures.OURS_MPI] if row.mpi or figures.OURS not in records else [])]
            lines = [figures.judge(row.less, row.target_of(who), row.floor_target_of(who), records, who)
                     for who in wanted]
        everyone = {name: {**figures.pooled(figures.undisturbed(own))._asdict(), "jobs": len(own),
                           "disturbed": sum(bool(record["disturbed"]) for record in own)}
                    for name, own in records.items()}
        judged.append({"key": key, "label": row.label, "unit": row.unit[0], "less": row.less, "figures": everyone,
                       "verdicts": [line for line in lines if line]})
    return judged


def beside_itself(row, records, who):
    """Returns what the worker changes: the ratio with it to without it."""
    if figures.OURS not in records or who not in records:
        return None
    line = figures.judge(row.less, None, None, {who: records[who], "without": records[figures.OURS]}, who)
    return {**line, "best": "canele without"}


def spread(figure, form="{:.2f}"):
    """Returns a ratio with its spread."""
    return "" if figure is None else f"{form} ({form} to {form})".format(*figure)


def number(value):
    """Returns a number with three significant digits."""
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def show_figures(result, judged):
    """Prints medians, p10 and p90 of all contenders."""
    print("\nFigures: median (p10 to p90)")
    for row in judged:
        print(f"{row['label']} [{row['unit']}]")
        for name in result["contenders"]:
            if name in row["figures"]:
                one = row["figures"][name]
                marked = f"   {one['disturbed']} of {one['jobs']} jobs disturbed" if one["disturbed"] else ""
                spread_of = f"({number(one['p10'])} to {number(one['p90'])})"
                print(f"    {name:<14} {number(one['value']):>9} {spread_of}{marked}")


def target_words(less, target, met):
    """Returns the target and whether it is met."""
    if target is None or met is None:
        return ""
    return f"{bound(less, target)} {'met' if met else 'MISSED'}"


def bound(less, target):
    """Returns "<= target" or ">= target"."""
    return f"{'<=' if less else '>='} {target:.2f}"


def show_verdicts(judged):
    """Prints the last table."""
    print(f"\n{'':<35} {'by':<12} {'ours':>8} {'':<9} {'best peer':>9} {'which':<15} {'to it (spread)':<23} "
          f"{'target':<15} {'':<7} to the floor (spread), target")
    for row in judged:
        for line in row["verdicts"]:
            best = line["best"]
            cells = [f"{row['label']:<35} {line['who']:<12} {number(line['figure'].value):>8} {row['unit']:<9}"]
            cells.append(f"{number(line['best_figure'].value):>9} {best:<15}" if best else f"{'':>9} {'no peer':<15}")
            cells.append(f"{spread(line['ratio']):<23} {target_words(row['less'], line['target'], line['met']):<15} "
                         f"{line['verdict'] or '':<7}")
            cells.append(f"{spread(line['floor_ratio'])} "
                         f"{target_words(row['less'], line['floor_target'], line['floor_met'])}".rstrip())
            print(" ".join(cells).rstrip())


def show_missed(judged):
    """Prints what stands in the way of each missed target: the floor, and a bare engine, measured in the same run."""
    missed = [(row, line) for row in judged for line in row["verdicts"] if False in (line["met"], line["floor_met"])]
    if missed:
        print("\nMissed, and what stands in the way (medians; ratios round by round)")
    for row, line in missed:
        words = []
        if line["met"] is False:
            words.append(f"{spread(line['ratio'])} of the best peer, {bound(row['less'], line['target'])} wanted")
        if line["floor_met"] is False:
            words.append(f"{spread(line['floor_ratio'])} of the floor, "
                         f"{bound(row['less'], line['floor_target'])} wanted")
        print(f"{row['label']}, {line['who']}: {'; '.join(words)}")
        for name, key in (("floor", "floor"), ("bare engine", "bare")):
            if line.get(key):
                print(f"    {name:<12} {number(line[key].value):>8} {row['unit']}: ours is "
                      f"{spread(line[key + '_ratio'])} of it" + bare_words(line if key == "bare" else {}))


def bare_words(line):
    """Returns how a bare engine itself compares."""
    to = [(name, line.get(f"bare_to_{key}")) for name, key in (("the best peer", "best"), ("the floor", "floor"))]
    return "".join(f"; it is {spread(value)} of {name}" for name, value in to if value)


def show(result, judged):
    """Prints the report on the terminal."""
    about = result["machine"]
    print(f"{about['processor']}, {about['cores']} cores, ranks on {about['pinned']}, Linux {about['kernel']}; "
          f"{result['rounds']} rounds of {result['batches']} batches")
    print(f"a loop takes {about['beside']:.2f} times as long while the other core is busy"
          + (": these two are threads of one core" if about["beside"] > SHARED else ""))
    for name, why in result["missing"].items():
        print(f"{name}: missing: {why.splitlines()[0]}")
    for name, drivers in result["yields"].items():
        print(f"{name}: " + ", ".join(f"{driver}: {setting}" for driver, setting in drivers.items()))
    for failure in result["failures"]:
        print(f"{failure['contender']}: failed in {failure['row']}: {failure['why']}")
    disturbed = sum(bool(record["disturbed"]) for record in result["records"])
    print(f"{disturbed} of {len(result['records'])} jobs were disturbed, and do not count unless most of a row's were")
    show_figures(result, judged)
    show_verdicts(judged)
    show_missed(judged)
    lines = [line for row in judged for line in row["verdicts"]]
    ahead, judged_lines = [line["verdict"] for line in lines], [line for line in lines if line["met"] is not None]
    if not result["worker"]:
        print(f"\nahead in {ahead.count('ahead')}, behind in {ahead.count('behind')} of {len(lines)}; target to the "
              f"best peer met in {sum(line['met'] for line in judged_lines)} of {len(judged_lines)}")

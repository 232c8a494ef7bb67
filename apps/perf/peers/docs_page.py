#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The page docs/performance.md: writes the table of compare.py's result into it, and draws the plots of its table.

Used by compare.py (--docs), or alone: docs_page.py DOCS draws the plots anew from the table that the page has. The part
of the page between two marks is written; all other text stays. Plots are always drawn from the page, never from the
result, so the two cannot differ. tests/unit/perf/docs_page_test.py checks this for the plots in the tree.

    result, verdicts ─▶ block ─▶ performance.md ─▶ read_page ─▶ latency.svg, bandwidth.svg, peers.svg
"""

import pathlib
import re
import sys

import figures
import report
import rows
import svg

BEGIN, END = "<!-- canele-perf compare --docs: begin -->", "<!-- canele-perf compare --docs: end -->"
PAGE = "performance.md"
# Contenders in the order of the tables, with their names and colours in plots.
NAMES = {"canele": ("Canelé", 0), "canele-mpi": ("Canelé's MPI functions", 1), "openmpi": ("Open MPI", 2),
         "openmpi-ucx": ("Open MPI on UCX", 3), "mpich": ("MPICH", 4), "ucx_perftest": ("UCX", 5),
         "fi_pingpong": ("libfabric", 6), "floor": ("bare machine", 6)}
DRIVERS = {"shm": "shared memory", "tcp": "TCP on one host"}
# The bars of peers.svg: some rows of each kind, those behind included.
BARS = {"shm-latency-8": "shared memory: latency, 8 B", "shm-latency-4k": "shared memory: latency, 4 KiB",
        "shm-bandwidth-64k": "shared memory: bandwidth, 64 KiB", "shm-bandwidth-1M": "shared memory: bandwidth, 1 MiB",
        "shm-rate-same": "shared memory: messages a second, 8 B", "match-posted-4096": "matching, 4,096 receives",
        "match-unexpected-16": "matching, 16 early messages", "overlap-sender": "overlap, sender computes",
        "overlap-receiver": "overlap, receiver computes", "overlap-both": "overlap, both compute",
        "tcp-latency-8": "TCP: latency, 8 B", "tcp-bandwidth-1M": "TCP: bandwidth, 1 MiB",
        "tcp-rate-same": "TCP: messages a second, 8 B"}
ROW_OF = {row.label: row for row in rows.ROWS}


def target_cell(less, target, met):
    """Returns a target and whether it is met, as a cell of the table."""
    if target is None or met is None:
        return ""
    return f"{'≤' if less else '≥'} {target:.2f}: {'met' if met else '**missed**'}"


def verdict_row(row, line):
    """Returns one row of the table of verdicts."""
    best = f"{report.number(line['best_figure'].value)}, {line['best']}" if line["best"] else ""
    verdict = {"ahead": "ahead", "behind": "**behind**", None: ""}[line["verdict"]]
    floor = [report.spread(line["floor_ratio"]), target_cell(row["less"], line["floor_target"], line["floor_met"])]
    cells = [row["label"], line["who"], f"{report.number(line['figure'].value)} {row['unit']}", best,
             report.spread(line["ratio"]), target_cell(row["less"], line["target"], line["met"]), verdict,
             ", ".join(part for part in floor if part)]
    return "| " + " | ".join(cells) + " |"


def verdict_table(judged):
    """Returns the table: ours, the best peer, the targets."""
    return ["| row | by | ours | best peer | to it | target | | to the floor |", "|---|---|---|---|---|---|---|---|",
            *(verdict_row(row, line) for row in judged for line in row["verdicts"])]


def sized_rows(judged):
    """Returns the rows that have a place in the plots over the size: latency and bandwidth."""
    return [row for row in judged if ROW_OF[row["label"]].case.benchmark in ("latency", "bandwidth")]


def median_table(judged):
    """Returns the table of all contenders' medians, of the rows with a place in the plots."""
    sized = sized_rows(judged)
    names = [name for name in NAMES if any(name in row["figures"] for row in sized)]
    lines = ["| median | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"] if sized else []
    for row in sized:
        cells = [report.number(row["figures"][name]["value"]) if name in row["figures"] else "" for name in names]
        lines.append(f"| {row['label']}, {row['unit']} | " + " | ".join(cells) + " |")
    return lines


def missed_row(row, line):
    """Returns one row of the table of missed targets."""
    sign = "≤" if row["less"] else "≥"
    targets = [f"{sign} {line[target]:.2f} x {of}" for met, target, of in (
        ("met", "target", "best peer"), ("floor_met", "floor_target", "floor")) if line[met] is False]
    whose = "" if line["who"] == figures.OURS else " by our MPI functions"
    cells = [f"{row['label']}{whose}, {', '.join(targets)}",
             f"{report.number(line['figure'].value)} {row['unit']}",
             report.number(line["floor"].value) if line["floor"] else "",
             report.number(line["bare"].value) if line.get("bare") else "",
             report.spread(line.get("bare_ratio")), report.spread(line.get("bare_to_best"))]
    return "| " + " | ".join(cells) + " |"


def missed_table(judged):
    """Returns the table of missed targets, with the floor and the bare engine of the same rounds."""
    missed = [(row, line) for row in judged for line in row["verdicts"] if False in (line["met"], line["floor_met"])]
    return ["| target missed | ours | floor | bare engine | ours to it | it to the best peer |",
            "|---|---|---|---|---|---|", *(missed_row(row, line) for row, line in missed)] if missed else []


def summary(result):
    """Returns the sentences above the table: when, where, how long, how quiet."""
    about = result["machine"]
    took = f", {result['minutes']:.1f} minutes" if "minutes" in result else ""
    disturbed = sum(bool(record["disturbed"]) for record in result["records"])
    return (f"{result.get('date', 'Undated')}: `canele-perf compare`, {result['rounds']} rounds of {result['batches']} "
            f"batches{took}. {disturbed} of {len(result['records'])} jobs were disturbed. The machine: "
            f"{about['processor']}, {about['cores']} cores, Linux {about['kernel']}.")


def count(judged):
    """Returns the sentences that say how often we are ahead, and how many targets are met."""
    lines = [line for row in judged for line in row["verdicts"]]
    compared = [line for line in lines if line["verdict"]]
    peer, floor = ([line[key] for line in lines if line[key] is not None] for key in ("met", "floor_met"))
    return (f"**Ahead in {sum(line['verdict'] == 'ahead' for line in compared)} of {len(compared)} rows. Met: "
            f"{sum(peer)} of {len(peer)} targets to the best peer, {sum(floor)} of {len(floor)} to the floor.**")


def wrapped(text, columns=100):
    """Returns the lines of a paragraph."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > columns:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return lines


def block(result, judged):
    """Returns the part of the page between the marks, the marks included."""
    plots = [f"![{text}](plots/{name}.svg)" for name, text in (
        ("latency", "Latency over the size of the message"), ("bandwidth", "Bandwidth over the size of the message"))]
    parts = [wrapped(summary(result)), wrapped(count(judged)), plots, verdict_table(judged), median_table(judged),
             missed_table(judged)]
    return "\n\n".join([BEGIN, *("\n".join(part) for part in parts if part), END])


def parts_of(text):
    """Returns (text before the block, the block, text after it). Raises ValueError if the page has no marks."""
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin:
        raise ValueError(f"{PAGE} has no lines '{BEGIN}' and '{END}', between which the table belongs")
    return text[:begin], text[begin:end + len(END)], text[end + len(END):]


def leading_number(cell):
    """Returns the number at the beginning of a cell; None if there is none."""
    match = re.match(r"\**(\d+(?:\.\d+)?(?:e[+-]?\d+)?)", cell)
    return float(match.group(1)) if match else None


def tables_of(text):
    """Yields (header cells, cells) of each row of each table."""
    header = None
    for row in text.splitlines():
        cells = [cell.strip() for cell in row.strip().strip("|").split("|")] if row.startswith("|") else None
        if cells is None:
            header = None
        elif header is None:
            header = cells
        elif not re.fullmatch(r"[-:| ]+", row):
            yield header, cells


def read_page(text):
    """Returns what the tables of the block say: {row: {contender: median}}, {row: (ratio to the best, its name)}, and
    whether all contenders are there. The ratio is that of our native API.
    """
    medians, ratios, complete = {}, {}, False
    for header, cells in tables_of(parts_of(text)[1]):
        if header[0] == "row" and cells[0] in ROW_OF:
            key, (value, _, name) = ROW_OF[cells[0]].key, cells[3].partition(", ")
            medians.setdefault(key, {})[cells[1]] = leading_number(cells[2])
            if name:
                medians[key].setdefault(name, leading_number(value))
            if name and (cells[1] == figures.OURS or key not in ratios):
                ratios[key] = leading_number(cells[4]), name
        elif header[0] == "median" and (label := cells[0].rpartition(", ")[0]) in ROW_OF:
            complete = True
            for name, cell in zip(header[1:], cells[1:]):
                if cell:
                    medians.setdefault(ROW_OF[label].key, {})[name] = leading_number(cell)
    return medians, ratios, complete


def series_of(places, medians, less, complete):
    """Returns the lines of one panel. If the page names only the best peer of each size, a dashed line joins them. The
    mark at each size then has that peer's colour.
    """
    found = []
    for name, (shown, colour) in NAMES.items():
        points = {row.case.size: medians[row.key][name] for row in places if name in medians[row.key]}
        if points and (name.startswith(figures.OURS) or complete):
            found.append(svg.Series(shown, colour, points, name == figures.FLOOR))
        elif points and name != figures.FLOOR:
            found += [svg.Series(shown, colour, {size: value}) for size, value in points.items()]
    if not complete:
        best = {}
        for row in places:
            peers = {name: value for name, value in medians[row.key].items() if not name.startswith(figures.OURS)}
            if name := figures.best_peer(less, peers):
                best[row.case.size] = peers[name]
        found.append(svg.Series("best of them", 6, best, True))
    return found


def over_size(benchmark, medians, complete):
    """Returns the chart of one benchmark over the size, a panel for each driver with at least two sizes; None without
    any.
    """
    panels, less = [], benchmark == "latency"
    for driver, place in DRIVERS.items():
        found = [row for row in rows.ROWS if row.case.benchmark == benchmark and row.case.driver == driver
                 and row.key in medians]
        if len(found) > 1:
            ticks = {row.case.size: rows.bytes_name(row.case.size) for row in found}
            panels.append(svg.Panel(place, "µs" if less else "GB/s", less, ticks,
                                    series_of(found, medians, less, complete)))
    title = f"{benchmark.capitalize()} over the size of the message; {'less' if less else 'more'} is better"
    remark = "Medians of one run, two processes on two cores of one host."
    if not complete:
        remark += " Of the others, only the best of each size is shown."
    return svg.line_chart(title, panels, remark) if panels else None


def peers(ratios):
    """Returns the chart of how many times faster we are than the best peer; None without a row of it."""
    bars = []
    for key, label in BARS.items():
        if key in ratios and ratios[key][0]:
            ratio, name = ratios[key]
            less = next(row.less for row in rows.ROWS if row.key == key)
            factor = 1 / ratio if less else ratio
            bars.append(svg.Bar(label, factor, f"{report.number(factor)} × {NAMES.get(name, (name, 0))[0]}"))
    remark = "Each bar: the best of these libraries in one run on two cores of one host. Left of 1 ×: Canelé is slower."
    return svg.bar_chart("How many times faster Canelé is than the best of Open MPI, MPICH and UCX", bars,
                         remark) if bars else None


def plots_of(text):
    """Returns {file name: SVG} of the plots of a page."""
    medians, ratios, complete = read_page(text)
    found = {"latency.svg": over_size("latency", medians, complete),
             "bandwidth.svg": over_size("bandwidth", medians, complete), "peers.svg": peers(ratios)}
    return {name: chart for name, chart in found.items() if chart}


def draw(directory):
    """Draws the plots of the page in a directory. Returns the paths of all files written."""
    folder = pathlib.Path(directory)
    (folder / "plots").mkdir(exist_ok=True)
    written = []
    for name, chart in plots_of((folder / PAGE).read_text(encoding="utf-8")).items():
        written.append(folder / "plots" / name)
        written[-1].write_text(chart, encoding="utf-8")
    return written


def missing(directory):
    """Returns why the page in a directory cannot be written, or an empty string."""
    try:
        parts_of((pathlib.Path(directory) / PAGE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        return str(problem)
    return ""


def write(result, judged, directory):
    """Writes the table into the page and draws its plots. Returns the paths of all files written."""
    page = pathlib.Path(directory) / PAGE
    before, _, after = parts_of(page.read_text(encoding="utf-8"))
    page.write_text(before + block(result, judged) + after, encoding="utf-8")
    return [page, *draw(directory)]


if __name__ == "__main__":
    for path in draw(sys.argv[1]):
        print(path)

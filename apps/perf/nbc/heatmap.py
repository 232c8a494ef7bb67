#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Heat maps of `canele-perf nbc --sweep --json`: a page of SVG, and PNG if a program that can draw it is installed.

Usage: canele-perf nbc --sweep --json > sweep.json; heatmap.py sweep.json --svg sweep.svg --png sweep.png

Also reads the output of peers/nbc.py. The SVG needs Python alone. For PNG it is converted by rsvg-convert, inkscape or
ImageMagick, or drawn by matplotlib, whichever is installed.

One row of maps for each configuration and operation. Each map has the collective's time to the right and the
computation's upwards. r_overhead: green 0, yellow 1, red above, blue below 0. r_comm: blue 0, red 1 and above.
r_comp_slowdown: blue 1, red 2 and above.
"""

import argparse
import json
import shutil
import subprocess
import sys
from xml.sax.saxutils import escape

GREEN, YELLOW, RED, BLUE = (26, 150, 65), (255, 230, 60), (215, 25, 28), (44, 123, 182)
# Of each figure: colours at values. In between they are mixed, beyond they stay.
SCALES = {
    "r_overhead": [(-0.5, BLUE), (0, GREEN), (1, YELLOW), (2, RED)],
    "r_comm": [(0, BLUE), (1, RED)],
    "r_comp_slowdown": [(1, BLUE), (2, RED)],
}
CELL, LEFT, TOP, GAP = 44, 70, 46, 30


def colour(figure, value):
    """Returns #rrggbb."""
    scale = SCALES[figure]
    below = [point for point in scale if point[0] <= value]
    above = [point for point in scale if point[0] > value]
    if not below or not above:
        mixed = (above[0] if above else below[-1])[1]
    else:
        (low, dark), (high, light) = below[-1], above[0]
        part = (value - low) / (high - low)
        mixed = [round(a + part * (b - a)) for a, b in zip(dark, light)]
    return "#{:02x}{:02x}{:02x}".format(*mixed)


def time_text(microseconds):
    """Returns 500us, 1ms, 1.02s."""
    for unit, factor in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= factor:
            return f"{microseconds / factor:.3g}{unit}"
    return f"{microseconds:.3g}us"


def read_rows(lines):
    """Returns {(configuration, operation): {(wanted comm, wanted comp): figures}}. Raises ValueError with the reason.
    """
    maps = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            where = (row.get("contender", row["configuration"]), row["operation"])
            figures = {name: float(row["figures"][name]) for name in SCALES}
            maps.setdefault(where, {})[(float(row["wanted_comm"]), float(row["wanted_comp"]))] = figures
        except (json.JSONDecodeError, KeyError, TypeError) as problem:
            raise ValueError(f"line {number} is no row of canele-perf nbc --json: {problem!r}") from problem
    if not maps:
        raise ValueError("no row at all; canele-perf nbc --sweep --json writes them")
    return maps


def text(x, y, words, anchor="middle", size=11):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(words)}</text>'


def draw_map(points, figure, left, top):
    """Returns one map. Its lower left corner is at the shortest times."""
    across = sorted({comm for comm, _ in points})
    upwards = sorted({comp for _, comp in points})
    bottom = top + CELL * len(upwards)
    parts = [text(left + CELL * len(across) / 2, top - 8, figure, size=12)]
    for (comm, comp), figures in points.items():
        x, y = left + CELL * across.index(comm), bottom - CELL * (upwards.index(comp) + 1)
        value = figures[figure]
        parts.append(f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="{colour(figure, value)}">'
                     f"<title>comm {time_text(comm)}, comp {time_text(comp)}: {value:.3f}</title></rect>")
        parts.append(text(x + CELL / 2, y + CELL / 2 + 4, f"{value:.2f}"))
    parts += [text(left + CELL * (i + 0.5), bottom + 14, time_text(comm), size=9) for i, comm in enumerate(across)]
    parts += [text(left - 4, bottom - CELL * (i + 0.5) + 3, time_text(comp), "end", 9)
              for i, comp in enumerate(upwards)]
    parts.append(text(left + CELL * len(across) / 2, bottom + 28, "collective", size=10))
    return "\n".join(parts)


def draw(maps):
    """Returns the page, as SVG."""
    width = max(len({comm for comm, _ in points}) for points in maps.values()) * CELL + LEFT + GAP
    parts, top = [], 0
    for (who, operation), points in maps.items():
        parts.append(text(10, top + 20, f"{operation}, {who}", "start", 14))
        parts += [draw_map(points, figure, LEFT + i * width, top + TOP) for i, figure in enumerate(SCALES)]
        top += TOP + CELL * len({comp for _, comp in points}) + GAP + 20
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * len(SCALES)}" height="{top}" '
            'font-family="sans-serif">\n<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) +
            "\n</svg>\n")


def plot_png(maps, path):
    """Draws with matplotlib. Raises ImportError if it is not installed."""
    import matplotlib  # pylint: disable=import-outside-toplevel
    matplotlib.use("Agg")
    from matplotlib import pyplot  # pylint: disable=import-outside-toplevel
    figure, axes = pyplot.subplots(len(maps), len(SCALES), figsize=(5 * len(SCALES), 4.5 * len(maps)), squeeze=False)
    for row, ((who, operation), points) in zip(axes, maps.items()):
        across, upwards = sorted({comm for comm, _ in points}), sorted({comp for _, comp in points})
        for axis, name in zip(row, SCALES):
            for (comm, comp), figures in points.items():
                x, y = across.index(comm), upwards.index(comp)
                axis.add_patch(pyplot.Rectangle((x, y), 1, 1, color=colour(name, figures[name])))
                axis.text(x + 0.5, y + 0.5, f"{figures[name]:.2f}", ha="center", va="center", fontsize=7)
            axis.set(xlim=(0, len(across)), ylim=(0, len(upwards)), title=f"{operation}, {who}: {name}",
                     xlabel="collective", ylabel="computation")
            axis.set_xticks([i + 0.5 for i in range(len(across))], map(time_text, across), fontsize=7)
            axis.set_yticks([i + 0.5 for i in range(len(upwards))], map(time_text, upwards), fontsize=7)
    figure.tight_layout()
    figure.savefig(path)


def write_png(maps, picture, path):
    """Writes the PNG. Returns why there is none, or an empty string."""
    converters = {"rsvg-convert": ["-o", path], "convert": ["svg:-", path],
                  "inkscape": ["--pipe", "--export-type=png", f"--export-filename={path}"]}
    for name, arguments in converters.items():
        if shutil.which(name) is None:
            continue
        done = subprocess.run([name, *arguments], input=picture.encode(), stderr=subprocess.PIPE, check=False)
        return "" if done.returncode == 0 else f"{name} failed: {done.stderr.decode(errors='replace')}"
    try:
        plot_png(maps, path)
    except ImportError:
        return "nothing here makes PNG: install matplotlib (python3-matplotlib) or rsvg-convert (librsvg2-bin)"
    return ""


def main():
    """Draws. Returns exit code 1 if a file could not be drawn."""
    parser = argparse.ArgumentParser(description="Heat maps of canele-perf nbc --sweep --json.")
    parser.add_argument("rows", nargs="?", type=argparse.FileType("r"), default=sys.stdin, help="default: stdin")
    parser.add_argument("--svg", help="file to write")
    parser.add_argument("--png", help="file to write, if something here can")
    options = parser.parse_args()
    if not options.svg and not options.png:
        parser.error("name a file: --svg, --png, or both")
    try:
        maps = read_rows(options.rows)
    except ValueError as problem:
        print(f"heatmap.py: {problem}", file=sys.stderr)
        return 1
    picture = draw(maps)
    if options.svg:
        with open(options.svg, "w", encoding="utf-8") as file:
            file.write(picture)
    why = write_png(maps, picture, options.png) if options.png else ""
    if why:
        print(f"heatmap.py: no {options.png}: {why}", file=sys.stderr)
    return 1 if why else 0


if __name__ == "__main__":
    sys.exit(main())

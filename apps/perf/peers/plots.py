# SPDX-License-Identifier: BSD-3-Clause
"""Plots of the result of compare.py: a chart of each family of rows.

Used by compare.py, or alone: plots.py RESULT.json DIRECTORY. It runs in a Python of its own, the first one that has
matplotlib. Debian's package serves /usr/bin/python3 only, which need not be the one in PATH. Everything else works
without it.
"""

import json
import math
import pathlib
import subprocess
import sys
import tempfile

import figures
import report
import rows

LOGARITHMIC = ("latency", "rate", "match", "broadcast", "threads", "one-sided")


def find_python():
    """Returns a Python with matplotlib; None if there is none."""
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            if subprocess.run([python, "-c", "import matplotlib"], capture_output=True, check=False).returncode == 0:
                return python
        except OSError:
            continue
    return None


def missing():
    """Returns why there can be no plots, or an empty string."""
    return "" if find_python() else "Python's matplotlib is not installed (Debian: python3-matplotlib)"


def write(result, directory):
    """Draws the plots of a result. Returns the paths of all files written."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(result, file)
        file.flush()
        done = subprocess.run([find_python(), "-B", __file__, file.name, directory], stdout=subprocess.PIPE, text=True,
                              check=True)
    return done.stdout.splitlines()


def families(result):
    """Returns {family: [(row, {contender: Figure})]}."""
    named, found = {row.key: row for row in rows.ROWS}, {}
    for key, records in report.by_row(result).items():
        values = {name: figures.pooled(figures.undisturbed(own)) for name, own in records.items()}
        found.setdefault(named[key].family, []).append((named[key], values))
    return found


def tick(row):
    """Returns the label below a row's bars."""
    return row.key.rpartition("-")[2]


def draw_family(axes, family, points, names):
    """Draws groups of bars, one for each row, with p10 to p90 as whiskers. A contender keeps its colour in all plots.
    """
    width = 0.8 / max(1, len(names))
    for index, name in enumerate(names):
        places = [(place, values[name]) for place, (_, values) in enumerate(points) if name in values]
        if not places:
            continue
        heights = [figure.value for _, figure in places]
        whiskers = [[max(0, figure.value - figure.p10) for _, figure in places],
                    [max(0, figure.p90 - figure.value) for _, figure in places]]
        axes.bar([place + (index - (len(names) - 1) / 2) * width for place, _ in places], heights, width, yerr=whiskers,
                 label=name, color=f"C{index}", error_kw={"linewidth": 0.7})
    first = points[0][0]
    axes.set_xticks(range(len(points)), [tick(row) for row, _ in points])
    axes.set_title(f"{family}: {'less' if first.less else 'more'} is better")
    axes.set_ylabel(first.unit[0])
    heights = [figure.value for _, values in points for figure in values.values() if figure.value > 0]
    if any(word in family for word in LOGARITHMIC) and heights and max(heights) > 20 * min(heights):
        axes.set_yscale("log")
        axes.set_ylim(10 ** math.floor(math.log10(min(heights))))
    axes.legend(fontsize="small")


def draw(result, directory):
    """Draws all plots. Returns the paths of all files written."""
    import matplotlib  # pylint: disable=import-outside-toplevel
    matplotlib.use("Agg")
    from matplotlib import pyplot  # pylint: disable=import-outside-toplevel

    folder = pathlib.Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for family, points in families(result).items():
        drawing, axes = pyplot.subplots(figsize=(max(6.0, 2.0 * len(points)), 4.5), layout="constrained")
        draw_family(axes, family, points, result["contenders"])
        for kind in ("svg", "png"):
            written.append(folder / f"{family}.{kind}")
            drawing.savefig(written[-1], dpi=120)
        pyplot.close(drawing)
    return written


if __name__ == "__main__":
    for path in draw(json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")), sys.argv[2]):
        print(path)

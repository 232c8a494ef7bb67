# SPDX-License-Identifier: BSD-3-Clause
"""Draws small charts as SVG text: lines over message sizes, and bars beside one. Pure functions, no libraries.

Used by docs_page.py. A chart has a background of its own, and a second set of colours for readers in dark mode. The
same figures always give the same text, so a chart can be compared with the one in the tree.
"""

import math
import typing

# For each colour: light mode, dark mode. The series colours can be told apart by colour-blind readers.
COLOURS = {"paper": ("#ffffff", "#0d1117"), "ink": ("#1f2328", "#e6edf3"), "faint": ("#59636e", "#9198a1"),
           "grid": ("#d1d9e0", "#3d444d"), "s0": ("#d55e00", "#ff8c42"), "s1": ("#b38600", "#f0c040"),
           "s2": ("#0072b2", "#58a6ff"), "s3": ("#3a93c4", "#8fd0ff"), "s4": ("#00875f", "#3fcf9f"),
           "s5": ("#a8508a", "#e39bcb"), "s6": ("#6e7781", "#afb8c1")}
SHAPES = ("circle", "diamond", "square", "triangle", "circle", "square", "diamond")
FONT = "font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif"
WIDTH, PANEL_HEIGHT, LEFT, TOP = 760, 260, 56, 72


class Series(typing.NamedTuple):
    """One line of a chart: its name, its colour (a number), its points {x: y}, and whether only a line is drawn."""

    name: str
    colour: int
    points: dict
    dashed: bool = False


class Panel(typing.NamedTuple):
    """One pair of axes: title, name of the y axis, whether it is logarithmic, {x: its label}, [Series]."""

    title: str
    unit: str
    logarithmic: bool
    ticks: dict
    series: list


class Bar(typing.NamedTuple):
    """One bar: label, factor (above one: to the right), the words beside it."""

    label: str
    factor: float
    words: str


def escaped(text):
    """Returns a text as XML wants it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def style():
    """Returns the style sheet: light colours, and dark ones for readers that prefer them."""
    def rules(mode):
        return "".join(f".{name}{{fill:{colour[mode]}}}.{name}-line{{stroke:{colour[mode]}}}"
                       for name, colour in COLOURS.items())

    return f"<style>text{{{FONT}}}{rules(0)}@media(prefers-color-scheme:dark){{{rules(1)}}}</style>"


def number(value):
    """Returns a coordinate."""
    return f"{value:.1f}".removesuffix(".0")


def words(x, y, text, colour="ink", anchor="start", size=13, bold=False):
    """Returns a text element."""
    weight = ' font-weight="600"' if bold else ""
    return (f'<text class="{colour}" x="{number(x)}" y="{number(y)}" font-size="{size}" text-anchor="{anchor}"{weight}>'
            f"{escaped(text)}</text>")


def line(points, colour, width=1.0, dashed=False):
    """Returns a line through points [(x, y)]."""
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    text = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    return f'<polyline class="{colour}-line" fill="none" stroke-width="{number(width)}"{dash} points="{text}"/>'


def shape(kind, x, y, colour):
    """Returns a mark of some 8 units at a point."""
    if kind == "circle":
        return f'<circle class="{colour}" cx="{number(x)}" cy="{number(y)}" r="4"/>'
    corners = {"square": [(-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)], "diamond": [(0, -5), (5, 0), (0, 5),
               (-5, 0)], "triangle": [(0, -5), (4.8, 3.8), (-4.8, 3.8)]}[kind]
    text = " ".join(f"{number(x + dx)},{number(y + dy)}" for dx, dy in corners)
    return f'<polygon class="{colour}" points="{text}"/>'


def page(width, height, title, elements):
    """Returns the whole SVG."""
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {number(width)} {number(height)}" '
                      f'width="{number(width)}" height="{number(height)}" role="img" aria-label="{escaped(title)}">',
                      f"<title>{escaped(title)}</title>", style(),
                      f'<rect class="paper" width="{number(width)}" height="{number(height)}" rx="6"/>',
                      *elements, "</svg>"]) + "\n"


def steps(low, high, logarithmic):
    """Returns the values of the grid lines, from at most `low` to at least `high`. A linear axis begins at zero."""
    if logarithmic:
        marks = [factor * 10.0 ** power for power in range(-6, 9) for factor in (1, 2, 5)]
        first = max(index for index, mark in enumerate(marks) if mark <= low)
        last = min(index for index, mark in enumerate(marks) if mark >= high)
        return marks[first:last + 1]
    step = next(factor * 10.0 ** power for power in range(-6, 9) for factor in (1, 2, 5)
                if high <= 6 * factor * 10.0 ** power)
    return [step * index for index in range(math.ceil(high / step) + 1)]


def label_of(value):
    """Returns the label of a grid line."""
    return f"{value:.6g}"


def draw_panel(panel, left, width):
    """Returns the elements of one pair of axes, whose left edge is at x = `left`."""
    places = {x: left + LEFT + 24 + (width - LEFT - 64) * index / max(1, len(panel.ticks) - 1)
              for index, x in enumerate(panel.ticks)}
    values = [y for one in panel.series for y in one.points.values()]
    grid = steps(min(values), max(values), panel.logarithmic)
    bottom = TOP + PANEL_HEIGHT

    def height(value):
        low, high, value = [math.log(v) for v in (grid[0], grid[-1], value)] if panel.logarithmic else (
            grid[0], grid[-1], value)
        return bottom - PANEL_HEIGHT * (value - low) / (high - low)

    elements = [words(left + LEFT, TOP - 14, f"{panel.title}, {panel.unit}", bold=True)]
    for value in grid:
        elements.append(line([(left + LEFT, height(value)), (left + width - 16, height(value))], "grid"))
        elements.append(words(left + LEFT - 8, height(value) + 4, label_of(value), "faint", "end", 12))
    elements += [words(places[x], bottom + 20, label, "faint", "middle", 12) for x, label in panel.ticks.items()]
    for one in reversed(panel.series):  # the first is drawn last, on top
        points = [(places[x], height(one.points[x])) for x in panel.ticks if x in one.points]
        if len(points) > 1:
            elements.append(line(points, f"s{one.colour}", 1.5 if one.dashed else 2.2, one.dashed))
        if not one.dashed:
            elements += [shape(SHAPES[one.colour], x, y, f"s{one.colour}") for x, y in points]
    return elements


def line_chart(title, panels, remark):
    """Returns a chart of panels side by side, with one legend for all, and a remark below it."""
    elements = [words(16, 26, title, bold=True, size=15)]
    for index, panel in enumerate(panels):
        elements += draw_panel(panel, index * WIDTH / len(panels), WIDTH / len(panels))
    legend, left, top = {}, 16, TOP + PANEL_HEIGHT + 52
    for panel in panels:
        legend.update({one.name: one for one in panel.series})
    for one in sorted(legend.values(), key=lambda one: (one.dashed, one.colour)):
        length = 48 + 7.2 * len(one.name)
        if left + length > WIDTH:
            left, top = 16, top + 22
        elements.append(line([(left, top - 4), (left + 20, top - 4)], f"s{one.colour}", 2.2, one.dashed))
        if not one.dashed:
            elements.append(shape(SHAPES[one.colour], left + 10, top - 4, f"s{one.colour}"))
        elements.append(words(left + 26, top, one.name))
        left += length
    elements.append(words(16, top + 24, remark, "faint", size=12))
    return page(WIDTH, top + 40, title, elements)


def bar_chart(title, bars, remark):
    """Returns a chart of factors on a logarithmic axis. A bar goes from one to its factor."""
    label_width, plot_width, row_height, top = 300, 320, 24, 66
    marks = [mark for mark in (0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64)
             if min(1, *(bar.factor for bar in bars)) / 2 < mark < 2 * max(1, *(bar.factor for bar in bars))]
    marks = marks if len(marks) > 1 else [0.5, 1, 2]
    low, high = math.log(marks[0]), math.log(marks[-1])

    def place(factor):
        return label_width + plot_width * (math.log(factor) - low) / (high - low)

    bottom = top + row_height * len(bars)
    elements = [words(16, 26, title, bold=True, size=15)]
    for mark in marks:
        elements.append(line([(place(mark), top - 4), (place(mark), bottom)], "ink" if mark == 1 else "grid"))
        elements.append(words(place(mark), top - 12, f"{label_of(mark)} ×", "faint", "middle", 12))
    for index, bar in enumerate(bars):
        y, begin, end = top + row_height * index, *sorted((place(1), place(bar.factor)))
        elements.append(words(label_width - 12, y + 16, bar.label, anchor="end"))
        elements.append(f'<rect class="{"s0" if bar.factor >= 1 else "s6"}" x="{number(begin)}" y="{number(y + 4)}" '
                        f'width="{number(max(1.0, end - begin))}" height="{row_height - 8}" rx="2"/>')
        elements.append(words(end + 8, y + 16, bar.words, "faint", size=12))
    elements.append(words(16, bottom + 26, remark, "faint", size=12))
    return page(WIDTH, bottom + 42, title, elements)

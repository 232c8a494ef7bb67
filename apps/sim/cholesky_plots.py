#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The figures of docs/simulation-cholesky.md: runs canele-sim, prints a table, draws the plots.

Usage: cholesky_plots.py [--sim PROGRAM] [--jobs N] [--into DIRECTORY] [--results FILE] [--quick]

Run by hand; takes about 40 minutes on two cores. Needs python3-matplotlib for the plots only. Runs that --results
already holds are not repeated, so that the script can be stopped and called again.
"""
import argparse
import concurrent.futures
import pathlib
import subprocess
import sys

LIST = "--shuffled --setting CANELE_EXPERT_MATCHER=list --comparison-ns"
# plot: (title, ranks, tiles, {label: options}). The first label is the base of the comparison.
PLOTS = {
    "multicast-4": ("4 nodes: a tile to its readers", 4, (20, 40, 80, 120),
                    {"sends": "--way sends", "multicast": "--way auto"}),
    "multicast-64": ("64 nodes: a tile to its readers", 64, (50, 100, 150, 200, 250),
                     {"sends": "--way sends", "multicast": "--way auto"}),
    "multicast-64-free": ("64 nodes, no limit of bandwidth", 64, (50, 100, 150),
                          {"sends": "--way sends --bandwidth inf", "multicast": "--way auto --bandwidth inf"}),
    "multicast-196": ("196 nodes: a tile to its readers", 196, (100, 150, 200),
                      {"sends": "--way sends", "multicast": "--way auto"}),
    "matching-4": ("4 nodes: matching", 4, (80, 160, 240),
                   {"list, 100 ns": f"{LIST} 100", "list, 5 ns": f"{LIST} 5", "list, free": f"{LIST} 0",
                    "table": "--shuffled"}),
    "matching-196": ("196 nodes: matching", 196, (100, 150, 200),
                     {"list, 100 ns": f"{LIST} 100", "list, 5 ns": f"{LIST} 5", "list, free": f"{LIST} 0",
                      "table": "--shuffled"}),
    "progress-196": ("196 nodes: who makes progress", 196, (100, 150),
                     {"tests of 100 ns": "--way auto --test-ns 100", "tests of 20 ns": "--way auto --test-ns 20",
                      "worker": "--way auto"}),
    "mpi-like-196": ("196 nodes: all together", 196, (100, 150),
                     {"sends, list 5 ns, tests 20 ns": f"--way sends {LIST} 5 --test-ns 20", "Canelé": "--shuffled"}),
    "strategy-64": ("64 nodes: strategies", 64, (50, 100),
                    {"fifo": "--way auto --strategy fifo", "aggregate": "--way auto"}),
}
NOT_DRAWN = ("multicast-4", "matching-4", "strategy-64", "mpi-like-196")  # a table is enough for these
QUICK = {"multicast-64": (50,), "strategy-64": (50,)}


def command(ranks, tiles, options):
    return f"--workload cholesky --check-repeat 0 --ranks {ranks} --tiles {tiles} {options}".strip()


def run(sim, arguments):
    """Returns the line of figures of one run."""
    done = subprocess.run([sim, *arguments.split()], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("cholesky:")]
    if done.returncode != 0 or len(lines) != 1:
        sys.exit(f"{sim} {arguments} has failed:\n{done.stdout}")
    return lines[0]


def read_results(path):
    if path is None or not path.exists():
        return {}
    return dict(line.split("\t") for line in path.read_text().splitlines())


def all_results(options, wanted):
    results = read_results(options.results)
    missing = [arguments for arguments in wanted if arguments not in results]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        pending = {pool.submit(run, options.sim, arguments): arguments for arguments in missing}
        for number, future in enumerate(concurrent.futures.as_completed(pending), 1):
            arguments = pending[future]
            results[arguments] = future.result()
            print(f"  {number} of {len(missing)} runs: {arguments}", file=sys.stderr, flush=True)
            if options.results is not None:
                options.results.write_text("".join(f"{key}\t{value}\n" for key, value in results.items()))
    return results


def figure(line, name):
    return float(dict(part.split("=") for part in line.split() if "=" in part)[name])


def print_table(name, title, tiles, rows):
    """Prints a table. rows: label to lines of canele-sim, by tiles."""
    print(f"\n{title} ({name})\n")
    print("| matrix | " + " | ".join(rows) + " |")
    print("|---" * (len(rows) + 1) + "|")
    base = next(iter(rows))
    for tile in tiles:
        cells = []
        for label, lines in rows.items():
            speed, first = figure(lines[tile], "tflops"), figure(rows[base][tile], "tflops")
            gain = "" if label == base else f" ({100 * (speed / first - 1):+.0f} %)"
            cells.append(f"{speed:.2f}{gain}")
        print(f"| {tile * 320:,} | " + " | ".join(cells) + " |")


def draw(path, title, tiles, rows):
    import matplotlib  # needed for drawing only
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "canele"  # equal figures give equal files
    from matplotlib import pyplot
    shape, axes = pyplot.subplots(figsize=(5, 3.2))
    for label, lines in rows.items():
        axes.plot([tile * 320 for tile in tiles], [figure(lines[tile], "tflops") for tile in tiles], marker="o",
                  label=label)
    axes.set(title=title, xlabel="order of the matrix", ylabel="TFlop/s")
    axes.set_ylim(bottom=0)
    axes.legend()
    shape.tight_layout()
    shape.savefig(path, metadata={"Date": None})
    pyplot.close(shape)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sim", default="build/release/bin/canele-sim", help="the simulator")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--into", type=pathlib.Path, help="draw the plots into this directory")
    parser.add_argument("--results", type=pathlib.Path, help="keep the lines of canele-sim here")
    parser.add_argument("--quick", action="store_true", help="a few small runs")
    options = parser.parse_args()
    plots = PLOTS
    if options.quick:
        plots = {name: (*PLOTS[name][:2], tiles, PLOTS[name][3]) for name, tiles in QUICK.items()}
    wanted = [command(ranks, tile, extra) for _, ranks, tiles, ways in plots.values() for tile in tiles
              for extra in ways.values()]
    results = all_results(options, list(dict.fromkeys(wanted)))
    for name, (title, ranks, tiles, ways) in plots.items():
        rows = {label: {tile: results[command(ranks, tile, extra)] for tile in tiles} for label, extra in ways.items()}
        print_table(name, title, tiles, rows)
        if options.into is not None and name not in NOT_DRAWN:
            draw(options.into / f"cholesky-{name}.svg", title, tiles, rows)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""StarPU's own communication benchmarks, sendrecv_bench and burst, on Canelé and on Open MPI, interleaved.

Called by starpu.py --bench. Runs one job at a time. Each process has one core, which StarPU's communication thread, its
one worker and the main thread share. Both programs came with StarPU 1.4 (`build-starpu.sh --suite forky`).

sendrecv_bench is built once more with sizes of our own. A StarPU for tests ends at 64 bytes, and one for users sends
10,000 of each size. Our build also sends more messages of the long sizes, whose first ones take the time of new pages.
It runs without -p, its own option to pause the workers. With -p it waits for ever for tasks that fill its buffers
(StarPU 1.4.10, on any MPI).

For a burst the figure is the time that StarPU prints; the slower rank counts. Otherwise it is the time between the
first and the last line. A burst is four phases of messages of 400 KB with priorities: both ways, one way, the other,
both in two halves.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import time

import command_line
import figures
from contenders import run_job
from programs import ROOT

TREES = {name: ROOT / "build" / "starpu" / name for name in ("canele", "openmpi")}  # of build-starpu.sh
FOLDER = "mpi/examples/benchs"
PROGRAMS = ("sendrecv_bench", "burst")
SIZES = (1, 16, 64, 1024, 4096, 65536, 1 << 18, 1 << 20, 4 << 20)
REQUESTS = 50  # of each kind in each phase of a burst
LOOPS, MOST_BYTES = 200, 16 << 20  # of sendrecv_bench: messages of each size, and the longest
MOST_DATA = 128 << 20  # of each size in total: 32 messages of 4 MiB


def variable(makefile, name):
    """Returns the variable's value in a Makefile that configure has made."""
    found = re.search(rf"^{name} = (.*)$", makefile.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1].strip() if found else ""


def prepare(options, name, starpu):
    """Returns the two programs of a StarPU's build tree, {name: path}, and "" or the reason why they are missing."""
    if not (starpu / FOLDER / "burst").exists():
        return {}, f"no {starpu / FOLDER / 'burst'}: tests/starpu/build-starpu.sh --suite forky builds it"
    program = pathlib.Path(options.work) / f"sendrecv_bench.{name}"
    why = "" if program.exists() else build_sized(starpu, program)
    return ({} if why else {"sendrecv_bench": [program], "burst": [starpu / FOLDER / "burst", "-nreqs", REQUESTS]}), why


def copy_sized(source, own):
    """Copies StarPU's benchmarks with sizes of our own. Returns "", or the reason why that is impossible."""
    own.mkdir(exist_ok=True)
    for file in (source / FOLDER).glob("*bench*.[ch]"):
        shutil.copy(file, own)
    header = own / "bench_helper.h"
    header.write_text(header.read_text(encoding="utf-8") + "#undef LOOPS_DEFAULT\n#undef NX_MAX\n"
                      f"#define LOOPS_DEFAULT {LOOPS}\n#define NX_MAX {MOST_BYTES}\n", encoding="utf-8")
    helper = own / "bench_helper.c"
    counted, found = re.subn(r"max_data = NX_MAX", f"max_data = {MOST_DATA}", helper.read_text(encoding="utf-8"))
    if found != 1:
        return f"{helper} does not limit the data of a size as that of StarPU 1.4.10 does"
    helper.write_text(counted, encoding="utf-8")
    return ""


def build_sized(starpu, program):
    """Compiles sendrecv_bench. Returns "", or the reason why it cannot be compiled."""
    makefile = starpu / "mpi/examples/Makefile"
    source = pathlib.Path(variable(makefile, "abs_top_srcdir"))
    own = program.with_name(program.name + ".sources")
    if why := copy_sized(source, own):
        return why
    places = [own, source / "mpi/examples", *(tree / part for tree in (source, starpu)
                                              for part in ("include", "src", "mpi/include", "mpi/src"))]
    libraries = [next((starpu / part / ".libs").glob(name), "missing")
                 for part, name in (("mpi/src", "libstarpumpi-*.so"), ("src", "libstarpu-*.so"))]
    built = subprocess.run(
        [*variable(makefile, "MPICC").split(), "-O2", "-w", *(f"-I{place}" for place in places),
         *(str(own / name) for name in ("sendrecv_bench.c", "abstract_sendrecv_bench.c", "bench_helper.c")),
         *(str(library) for library in libraries),
         *(f"-Wl,-rpath,{starpu / part / '.libs'}" for part in ("mpi/src", "src")), "-o", str(program)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return "" if built.returncode == 0 else f"sendrecv_bench cannot be built:\n{built.stdout}"


def sendrecv_times(text):
    """Returns {bytes: median us one way} of the table that sendrecv_bench prints. Its header names the columns."""
    header = next((line for line in text.splitlines() if line.startswith("#") and "median" in line), None)
    if header is None:
        raise RuntimeError(f"no table in what sendrecv_bench printed:\n{text}")
    place = [cell.strip() for cell in header.split("|")].index("median")
    rows = [line.split() for line in text.splitlines() if re.match(r"\s*\d+\s+[\d.]+\s", line)]
    return {int(row[0]): float(row[place]) for row in rows}


def burst_time(lines):
    """Returns the ms of all bursts, from (seconds, line) pairs as they came."""
    told = [float(found[1]) for _, line in lines if (found := re.search(r"All bursts took (\d+) ms", line))]
    if told:
        return max(told)
    marks = [when for when, line in lines if re.search(r"\.\s*(start|end|done)", line)]
    if len(marks) < 2:
        raise RuntimeError("burst printed no line at the start and the end of a phase")
    return (max(marks) - min(marks)) * 1e3


def measure_burst(contender, command, time_limit):
    """Returns [ms] of one job. Reads its lines as they come."""
    start = time.monotonic()
    with subprocess.Popen(["timeout", str(time_limit), *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, text=True) as job:
        lines = [(time.monotonic() - start, line) for line in job.stdout]
    if job.returncode != 0:
        raise RuntimeError(f"{contender}: exit code {job.returncode} of: {' '.join(command)}\n"
                           + "".join(line for _, line in lines[-20:]))
    return [burst_time(lines)]


def measure(contender, what, time_limit):
    """Returns the samples of a job, by row."""
    command = contender.command(what)
    if what == "burst":
        return {"burst": measure_burst(contender.name, command, time_limit)}
    times = sendrecv_times(run_job(contender.name, command, contender.environment, time_limit))
    nearest = {size: min(times, key=lambda measured, size=size: abs(measured - size)) for size in SIZES}
    return {f"sendrecv {size}": [times[size]] for size in sorted(set(nearest.values()))}


def summarise(samples):
    """Returns the rows: {contender: median, least, most}, and the best of the others divided by ours: above 1 if we are
    ahead.
    """
    rows = []
    for key, by_name in samples.items():
        values = {name: [figures.quantile(own, q) for q in (0.5, 0, 1)] for name, own in by_name.items()}
        ours, others = values.get("canele"), [value[0] for name, value in values.items() if name != "canele"]
        rows.append({"row": key, "figures": values, "ahead": min(others) / ours[0] if ours and others else None})
    return rows


def print_report(result):
    """Prints a table."""
    rows = result["rows"]
    names = list(dict.fromkeys(name for row in rows for name in row["figures"]))
    print(f"StarPU's benchmarks over {result['driver']}: us one way by bytes, ms of all bursts: median (least to most)")
    print(f"{'':<20}" + "".join(f"{name:>32}" for name in names) + f"{'to the best':>14}")
    for row in rows:
        cells = ["{:.4g} ({:.4g} to {:.4g})".format(*row["figures"][name]) if name in row["figures"] else "-"
                 for name in names]
        word = "" if row["ahead"] is None else f"{row['ahead']:.2f} {'ahead' if row['ahead'] >= 1 else 'behind'}"
        print(f"{row['row']:<20}" + "".join(f"{cell:>32}" for cell in cells) + f"{word:>14}")


def bench(options, contenders):
    """Runs A B C A B C ... Returns exit code 1 if a job failed."""
    samples, failures = {}, 0
    for number in range(options.rounds):
        for what in options.bench:
            for contender in contenders:
                try:
                    for key, values in measure(contender, what, options.time_limit).items():
                        samples.setdefault(key, {}).setdefault(contender.name, []).extend(values)
                except RuntimeError as problem:
                    print(problem, file=sys.stderr)
                    failures += 1
        print(f"round {number + 1} of {options.rounds} done", file=sys.stderr)
    result = {"driver": options.driver, "rounds": options.rounds, "rows": summarise(samples)}
    command_line.deliver(options, "starpu-bench", result, print_report)
    return 1 if failures or not samples else 0

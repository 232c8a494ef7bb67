# SPDX-License-Identifier: BSD-3-Clause
"""The machine: whether it is quiet, and whether other processes disturbed a job.

Time used by others is what the kernel counts as busy minus what our own children used. Load from outside this container
is thus included, as far as /proc/stat shows it.
"""

import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time
import typing

import figures

# Limits above which a sample is marked. Ticks count CPU time in steps of 10 ms, hence `others` is coarse. A launcher
# and two ranks that spin on two cores switch some thousand times a second while they start and end.
LIMITS = {"steal": 0.01, "others": 0.12, "witness": 1.25, "switches": 5000}
LOOPS, LOOKS = 20_000, 5
BESIDE_LOOKS = 200
CALM = 0.5  # seconds to wait for the witness before a job: effects of the job before have ended by then
HERE = pathlib.Path(__file__).resolve().parent
COMMIT = "commit"  # a file that prebuild.py leaves among the programs
TICK = 1 / os.sysconf("SC_CLK_TCK")


class Reading(typing.NamedTuple):
    """Sums since the start, seconds: of the machine; of this process and of its ended children."""

    time: float
    busy: float
    steal: float
    own: float
    switches: int


def read():
    """Returns a reading."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, steal = [int(word) * TICK for word in file.readline().split()[1:9]]
    children, self = resource.getrusage(resource.RUSAGE_CHILDREN), resource.getrusage(resource.RUSAGE_SELF)
    own = children.ru_utime + children.ru_stime + self.ru_utime + self.ru_stime
    return Reading(time.monotonic(), user + nice + system + irq + softirq, steal, own, children.ru_nivcsw)


class Watch:
    """The state of one run: the witness's best time, on each core."""

    def __init__(self, cores, limits=None):
        self.cores, self.limits, self.best = cores, limits or LIMITS, {}

    def witness(self):
        """Returns the worst ratio, over the cores, of a short loop's time to its best so far there."""
        allowed, worst = os.sched_getaffinity(0), 1.0
        for core in set(self.cores):
            os.sched_setaffinity(0, {core})
            taken = min(loop() for _ in range(LOOKS))
            self.best[core] = min(self.best.get(core, taken), taken)
            worst = max(worst, taken / self.best[core])
        os.sched_setaffinity(0, allowed)
        return worst

    def between(self, before, after, slowdown):
        """Returns what disturbed the time between two readings, in words."""
        wall = max(after.time - before.time, TICK)
        cores = os.cpu_count() or 1
        others = (after.busy - before.busy) - (after.own - before.own)
        return figures.disturbances(self.limits, (after.steal - before.steal) / wall / cores,
                                    max(0.0, others) / wall / cores, slowdown,
                                    (after.switches - before.switches) / wall)

    def measure(self, work):
        """Returns (what work() returns, what disturbed it)."""
        end, slowdown = time.monotonic() + CALM, self.witness()
        while slowdown > self.limits["witness"] and time.monotonic() < end:
            slowdown = self.witness()
        before = read()
        done = work()
        return done, self.between(before, read(), slowdown)

    def wait_until_quiet(self, patience):
        """Returns the seconds waited, and what still disturbs after `patience` seconds. A check takes 0.1 s."""
        start = time.monotonic()
        while True:
            before = read()
            time.sleep(0.1)
            seen = self.between(before, read(), self.witness())
            waited = time.monotonic() - start
            if not seen or waited > patience:
                return waited, seen


def loop():
    """Returns the seconds of a fixed computation of some hundred microseconds."""
    start = time.perf_counter()
    total = 0
    for i in range(LOOPS):
        total += i
    return time.perf_counter() - start


def slowdown_beside(cores):
    """Returns a loop's time on the first core while another runs on the second, divided by its time alone. It is near 2
    if the two are threads of one core, whatever the system calls them. Both then share that core's caches and units.
    """
    allowed, beside = os.sched_getaffinity(0), None
    os.sched_setaffinity(0, {cores[0]})
    try:
        alone = min(loop() for _ in range(BESIDE_LOOKS))
        beside = subprocess.Popen([sys.executable, "-c", "while True: pass"],
                                  preexec_fn=lambda: os.sched_setaffinity(0, {cores[1]}))
        return statistics.median(loop() for _ in range(BESIDE_LOOKS)) / alone
    finally:
        if beside is not None:
            beside.kill()
            beside.wait()
        os.sched_setaffinity(0, allowed)


def caches():
    """Returns the caches of the first core, such as "L1d 32K, L2 2048K, L3 33792K of 8 threads"."""
    words = []
    for place in sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level, kind, size, shared = ((place / name).read_text(encoding="ascii").strip()
                                         for name in ("level", "type", "size", "shared_cpu_list"))
        except OSError:
            continue
        if kind != "Instruction":
            letter = "d" if kind == "Data" else ""
            words.append(f"L{level}{letter} {size}" + (f" of {shared}" if shared != "0" else ""))
    return ", ".join(words)


def commit(work=None):
    """Returns the commit of these programs, as git or a prebuilt directory has it; "" if neither has."""
    try:
        done = subprocess.run(["git", "-C", str(HERE), "describe", "--always", "--broken"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=False)
    except OSError:
        done = None
    if done is not None and done.returncode == 0:
        return done.stdout.strip()
    left = pathlib.Path(work or ".") / COMMIT
    return left.read_text(encoding="ascii").strip() if work and left.exists() else ""


def about(work=None):
    """Describes the machine and the source, for the record. `work`: a directory of prebuilt programs."""
    model = ""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return {"processor": model, "cores": len(os.sched_getaffinity(0)), "caches": caches(),
            "kernel": os.uname().release, "load": os.getloadavg()[0], "commit": commit(work)}

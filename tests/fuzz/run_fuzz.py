#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the fuzz targets, each from its corpus: a number of inputs, or for some processor time; prints lines covered.

Usage: run_fuzz.py [--build DIR] [--targets LIST] [--seed N] [--jobs N] [--runs-factor F] [--seconds S]
  [--coverage DIR]

Used by tests/run.sh (stages fuzz, soak-fuzz), and by hand. The last line is "N passed, N failed". The seed is new in
each run, so that each run tries other inputs. It is printed, and --seed repeats a run. Inputs found with --seconds are
kept in DIR/corpus, from which the next such run begins; a run by number begins with the committed corpus alone.
"""
import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# target: (inputs in a bounded run, longest input, the files that decode)
TARGETS = {
    "packet": (
        80_000,
        1024,
        "comm/wire/wire.hpp comm/protocol/receive.cpp comm/rendezvous/rendezvous.cpp "
        "comm/rendezvous/receiver_initiated.cpp comm/rendezvous/shared_copy.cpp comm/link/sequencing.cpp "
        "comm/rendezvous/async_get.cpp comm/engine/driver_events.cpp comm/engine/failure.cpp",
    ),
    "address": (20_000, 1024, "comm/engine/connect.cpp"),
    "handshake": (60_000, 1024, "drivers/net/handshake.cpp drivers/net/pending_connections.cpp"),
    "tcp": (50_000, 4096, "drivers/tcp/receiver.cpp drivers/tcp/address.cpp"),
    "shm": (200_000, 2048, "drivers/shm/ring.hpp drivers/shm/fd_exchange.cpp"),
    "ofi": (300_000, 1024, "drivers/ofi/wire.cpp drivers/ofi/address.cpp"),
    "psm2": (300_000, 128, "drivers/psm2/wire.hpp"),
    "pmi1": (80_000, 2048, "comm/bootstrap/pmi1_wire.cpp comm/bootstrap/pmi1_client.cpp"),
    "pmix": (80_000, 1024, "comm/bootstrap/pmix_calls.cpp comm/bootstrap/pmix_shared.cpp"),
    "published": (200_000, 512, "comm/bootstrap/published.cpp"),
    "settings": (12_000, 512, "comm/config/settings.cpp comm/registry/modules.cpp drivers/decorators/decorate.cpp"),
    "samples": (80_000, 1024, "comm/config/samples.cpp"),
}
MEMORY_MB, ALLOCATION_MB = 2048, 256
HANG_SECONDS = 100  # for one input: ends what hangs
TAIL = 60


def environment(**more):
    return dict(os.environ, UBSAN_OPTIONS="print_stacktrace=1", **more)


def program(build, target):
    return build / "bin" / f"fuzz_{target}"


def corpus_of(target):
    path = HERE / "corpus" / target
    return [str(path)] if path.is_dir() else []


def command(options, target, new, limit, seed):
    findings = options.build / "findings"
    findings.mkdir(parents=True, exist_ok=True)
    return [
        str(program(options.build, target)),
        limit,
        f"-seed={seed}",
        f"-max_len={TARGETS[target][1]}",
        f"-rss_limit_mb={MEMORY_MB}",
        f"-malloc_limit_mb={ALLOCATION_MB}",
        f"-timeout={HANG_SECONDS}",
        f"-artifact_prefix={findings}/{target}-",
        "-print_final_stats=1",
        str(new),
        *corpus_of(target),
    ]


def run_once(arguments, log):
    """Returns (exit status, processor time, output)."""
    with open(log, "w", encoding="utf-8") as out:
        child = subprocess.Popen(arguments, env=environment(), stdout=out, stderr=out, stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, usage.ru_utime + usage.ru_stime, log.read_text(encoding="utf-8", errors="replace")


def run_target(options, target):
    """Runs one target. Returns True if nothing was found. The whole output is in a log beside the program."""
    new = options.build / ("corpus" if options.seconds else "new") / target
    if not options.seconds:
        shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True, exist_ok=True)
    log = options.build / f"fuzz-{target}.log"
    runs, used, status, slices = 0, 0.0, 0, 0
    while status == 0 and (slices == 0 or used < options.seconds):
        # Beside other work, a slice of so many seconds gives less processor time; then another slice follows.
        limit = f"-max_total_time={max(5, int(options.seconds - used))}"
        if not options.seconds:
            limit = f"-runs={int(TARGETS[target][0] * options.runs_factor)}"
        seed = options.seed + slices
        status, time, text = run_once(command(options, target, new, limit, seed), log)
        done = re.search(r"stat::number_of_executed_units:\s*(\d+)", text)
        runs, used, slices = runs + int(done.group(1) if done else 0), used + time, slices + 1
    edges = re.findall(r" cov: (\d+) ", text)
    print(
        f"{target:10} {'ok' if status == 0 else 'FOUND SOMETHING'}: {runs} inputs, {used:.0f} s of processor time, "
        f"{edges[-1] if edges else '?'} edges, seed {options.seed}" + (f" to {seed}" if slices > 1 else ""),
        flush=True,
    )
    if status != 0:
        lines = [line for line in text.splitlines() if not re.search(r"\b(NEW|REDUCE|pulse|NEW_FUNC)\b", line)]
        print("\n".join("  | " + line[:400] for line in lines[-TAIL:]))
        found = re.search(r"Test unit written to (\S+)", text)
        if found:
            print(f"  again: {program(options.build, target)} {found.group(1)}", flush=True)
    return status == 0


def tool(name):
    """Returns the path of llvm-cov or llvm-cov-14: Debian has either."""
    for candidate in (name, f"{name}-14", f"{name}-15", f"{name}-16"):
        if shutil.which(candidate):
            return candidate
    sys.exit(f"run_fuzz.py: {name} is missing; Debian package: llvm")


def print_coverage(options, target):
    """Prints the lines of each decoder that the committed and the found inputs run, by a build that counts them."""
    work = options.coverage / "profiles"
    work.mkdir(parents=True, exist_ok=True)
    raw, merged = work / f"{target}.raw", work / f"{target}.merged"
    inputs = corpus_of(target)
    for name in ("corpus", "new"):
        found = options.build / name / target
        inputs += [str(found)] if found.is_dir() else []
    binary = str(program(options.coverage, target))
    subprocess.run(
        [binary, "-runs=0", *inputs], env=environment(LLVM_PROFILE_FILE=str(raw)), check=True, capture_output=True
    )
    subprocess.run([tool("llvm-profdata"), "merge", "-sparse", str(raw), "-o", str(merged)], check=True)
    files = [str(ROOT / name) for name in TARGETS[target][2].split()]
    report = subprocess.run(
        [tool("llvm-cov"), "export", "-summary-only", f"-instr-profile={merged}", binary, *files],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name, count, covered in re.findall(
        r'"filename":"([^"]+)","summary":\{.*?"lines":\{"count":(\d+),"covered":(\d+)', report
    ):
        share = 100 * int(covered) / int(count)
        path = str(pathlib.Path(name).relative_to(ROOT))
        print(f"{target:10} {path:40} {covered:>4} of {count:>4} lines {share:5.1f} %")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/fuzz", help="of the preset fuzz")
    parser.add_argument("--targets", default="all", help="some of: " + " ".join(TARGETS))
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, 2**31))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--runs-factor", type=float, default=1.0, help="times the number of inputs")
    parser.add_argument("--seconds", type=int, default=0, help="of processor time, each target; 0: by number")
    parser.add_argument("--coverage", type=pathlib.Path, help="of the preset fuzz-coverage: print lines, run nothing")
    return parser.parse_args()


def main():
    options = parse()
    wanted = list(TARGETS) if options.targets == "all" else options.targets.split(",")
    if unknown := [name for name in wanted if name not in TARGETS]:
        sys.exit(f"run_fuzz.py: there is no target {', '.join(unknown)}; there are: {' '.join(TARGETS)}")
    there = [name for name in wanted if program(options.coverage or options.build, name).exists()]
    for name in wanted:
        if name not in there:
            print(f"{name:10} skipped: not built (its fabric's or launcher's library is missing)")
    if options.coverage:
        for name in there:
            print_coverage(options, name)
        return 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda name: run_target(options, name), there))
    skipped = len(wanted) - len(there)
    print(
        f"{results.count(True)} passed, {results.count(False)} failed" + (f", {skipped} skipped" if skipped else ""),
        flush=True,
    )
    return 1 if not there or False in results else 0


if __name__ == "__main__":
    sys.exit(main())

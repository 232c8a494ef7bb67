#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs StarPU's own MPI tests or examples on Canelé, as StarPU's `make check` does, and keeps the results.

Usage: tests/starpu/run_suite.py [--driver shm|tcp] [--examples] [--runs N] [--nobind] [--hooks] ...   (see --help)

Used by tests/run.sh, and by hand. StarPU must have been built by build-starpu.sh.

A program that hangs is run twice more. It is red if it never passes or if any run failed otherwise. If it passes then,
it counts as passed and is listed as flaky, with the stacks of the hang. A wrong result is never retried. A program that
sent no byte between ranks must be explained in silent.txt, else the run fails.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import traffic

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TIMED_OUT = 124
SKIPPED = 77
# The number of programs in StarPU's Makefiles for the nmad backend, without Fortran, with a BLAS.
LISTED = {("1.3.10", "tests"): 56, ("1.3.10", "examples"): 17, ("1.4.10", "tests"): 80}
# Settings for programs that StarPU itself gets wrong: {(release, program): (variable, value, why)}.
WORKAROUNDS = {
    ("1.4", "mpi_data_cpy"): (
        "STARPU_MPI_COOP_SENDS",
        "0",
        "StarPU 1.4 joins sends with different tags into one multicast, which then has the tag of the first",
    ),
}


def parse_arguments():
    parser = argparse.ArgumentParser(description="Runs StarPU's MPI tests on Canelé.")
    parser.add_argument("--driver", default="shm", help="value of CANELE_DRIVERS (default: shm)")
    parser.add_argument("--strategy", default="", help="value of CANELE_STRATEGY (default: Canelé's own)")
    parser.add_argument("--examples", action="store_true", help="mpi/examples instead of mpi/tests")
    parser.add_argument("--runs", type=int, default=1, help="run the whole list N times")
    parser.add_argument("--processes", type=int, default=4, help="ranks per program (upstream: 4)")
    parser.add_argument("--nobind", action="store_true", help="STARPU_MPI_NOBIND=1: StarPU never binds the worker")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="set this for the ranks")
    parser.add_argument("--hooks", action="store_true", help="StarPU's idle and progression hooks make progress, too")
    parser.add_argument("--multicasts", default="", metavar="REGEX",
                        help="programs that must have sent multicasts to be right")
    parser.add_argument("--only", default="", metavar="REGEX", help="only the programs whose name matches")
    parser.add_argument("--jobs", type=int, default=1, help="programs at a time")
    parser.add_argument("--limit", type=float, default=120, metavar="SECONDS", help="time limit of one program")
    parser.add_argument("--starpu", type=pathlib.Path, help="StarPU's build tree (default: build/starpu/canele)")
    parser.add_argument("--prefix", type=pathlib.Path, default=ROOT / "build/prefix", help="the installed Canelé")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "build/starpu-results")
    parser.add_argument("--openmpi", action="store_true", help="as a yardstick: the StarPU built on Debian's Open MPI")
    options = parser.parse_args()
    if options.starpu is None:
        options.starpu = ROOT / "build/starpu" / ("openmpi" if options.openmpi else "canele")
    for path in ("starpu", "prefix", "results"):  # the programs run elsewhere
        setattr(options, path, getattr(options, path).resolve())
    options.part = "examples" if options.examples else "tests"
    options.directory = options.starpu / "mpi" / options.part
    if not (options.directory / "loader").exists():
        parser.error(f"{options.directory} is not built; run tests/starpu/build-starpu.sh first")
    return options


def make_variable(directory, name):
    """Returns the value of a variable of a Makefile, as a list of words."""
    rule = f"include Makefile\nprint-variable:\n\t@echo $({name})\n"
    result = subprocess.run(
        ["make", "-s", "--no-print-directory", "-C", directory, "-f", "-", "print-variable"],
        input=rule,
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout.split()


def program_list(options):
    """Returns (programs, those that must fail), in StarPU's order."""
    name = "starpu_mpi_EXAMPLES" if options.examples else "starpu_mpi_TESTS"
    programs = make_variable(options.directory, name)
    must_fail = [] if options.examples else make_variable(options.directory, "XFAIL_TESTS")
    version = starpu_version(options)
    listed = LISTED.get((version, options.part))
    if listed is not None and len(programs) != listed and not options.openmpi:
        sys.exit(
            f"error: StarPU {version} lists {len(programs)} {options.part}, not {listed}: "
            "was it configured without BLAS, or for another backend?"
        )
    return [name for name in programs if re.search(options.only, name)], set(must_fail)


def starpu_version(options):
    text = (options.starpu / "src/common/config.h").read_text(encoding="utf-8")
    match = re.search(r'#define PACKAGE_VERSION "([^"]+)"', text)
    return match.group(1) if match else "unknown"


def explained_silence():
    """Returns {program: why it may send nothing} from silent.txt."""
    table = {}
    for line in (HERE / "silent.txt").read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            name, reason = line.split(None, 1)
            table[name] = reason
    return table


def environment(options, counters):
    """Returns the environment: what upstream's make check sets, and what was asked for."""
    values = {key: value for key, value in os.environ.items() if not key.startswith(("CANELE_", "STARPU_"))}
    values.update(
        {
            "top_builddir": str(options.starpu),
            "top_srcdir": make_variable(options.directory, "abs_top_srcdir")[0],
            "STARPU_WORKERS_NOBIND": "1",
            "STARPU_NCPU": "3",
            "STARPU_QUICK_CHECK": "1",
            "STARPU_HOME": str(options.starpu / "home"),
            "OPENBLAS_NUM_THREADS": "1",
            # StarPU's loader must not end a program first: its limit shows no stacks.
            "STARPU_TIMEOUT_ENV": str(int(options.limit) + 600),
        }
    )
    if options.openmpi:
        values.update(
            {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
        )
    else:
        values.update({"CANELE_DRIVERS": options.driver, "CANELE_COUNTERS": str(counters / "%r.json")})
    if options.strategy:
        values["CANELE_STRATEGY"] = options.strategy
    if options.nobind:
        # StarPU 1.4 looks up the core of its thread even if it does not bind it, and aborts without one.
        values.update({"STARPU_MPI_NOBIND": "1", "STARPU_MPI_THREAD_CPUID": "0"})
    if options.hooks:
        values.update({"STARPU_MPI_NMAD_PROG_HOOKS": "FORCED", "STARPU_MPI_NMAD_IDLE_HOOKS": "FORCED"})
    return values


def workaround(options, program):
    """Returns (variable, value, why) for a program that fails on every backend without it, or None."""
    return WORKAROUNDS.get((".".join(starpu_version(options).split(".")[:2]), program))


def launch_command(options, program, stacks):
    limit = [str(ROOT / "tests/with-timeout"), "--stacks", str(stacks), str(options.limit)]
    launcher = [str(options.prefix / "lib/canele/bin/mpiexec")]
    if options.openmpi:
        launcher = ["/usr/bin/mpiexec.openmpi", "--oversubscribe"]
    ranks = ["-np", str(options.processes)] + [word for value in options.env for word in ("-x", value)]
    return limit + launcher + ranks + [str(options.directory / "loader"), f"./{program}"]


def run_once(options, program, place):
    """Runs a program once. Returns (exit code, seconds, messages, bytes, multicasts)."""
    shutil.rmtree(place, ignore_errors=True)
    (place / "counters").mkdir(parents=True)
    help_out = workaround(options, program)
    begin = time.monotonic()
    with open(place / "output.log", "wb") as log:
        code = subprocess.run(
            launch_command(options, program, place / "stacks.txt"),
            cwd=options.directory,
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=environment(options, place / "counters") | dict([help_out[:2]] if help_out else []),
            check=False,
        ).returncode
    seconds = time.monotonic() - begin
    messages, size = traffic.totals(place / "counters")
    return code, seconds, messages, size, traffic.multicasts(place / "counters")


def verdict(code, must_fail):
    """Returns the verdict on one run of a program."""
    if code == TIMED_OUT:
        return "HANG"
    if must_fail:
        return "XPASS" if code in (0, SKIPPED) else "XFAIL"
    return {0: "PASS", SKIPPED: "SKIP"}.get(code, "FAIL")


def run_program(options, program, must_fail, place):
    """Runs a program, again twice if it hangs. Returns its record."""
    record = {"program": program, "attempts": []}
    for attempt in range(3):
        where = place / program.replace("/", "-") / f"attempt-{attempt + 1}"
        code, seconds, messages, size, multicasts = run_once(options, program, where)
        result = verdict(code, must_fail)
        record["attempts"].append({"result": result, "exit": code, "seconds": round(seconds, 2), "log": str(where)})
        record.update({"seconds": round(seconds, 2), "messages": messages, "bytes": size, "multicasts": multicasts})
        record["log"] = str(where)
        if result != "HANG" and attempt == 0:
            record["result"] = result
            return record
    results = [attempt["result"] for attempt in record["attempts"]]
    others = [result for result in results if result != "HANG"]
    good = others and all(result in ("PASS", "XFAIL", "SKIP") for result in others)
    record["result"] = "FLAKY" if good else ("HANG" if not others else "FAIL")
    record["log"] = str(place / program.replace("/", "-"))
    return record


def show(number, count, record):
    print(
        f"  {number:>3}/{count} {record['result']:<5} {record['program']:<44} {record['seconds']:>7.2f} s "
        f"{record['messages']:>8} messages {record['bytes']:>13,} bytes"
        + (f" {record['multicasts']:>6} multicasts" if record["multicasts"] else ""),
        flush=True,
    )


def show_failure(record):
    """Prints the end of the output, and of the stacks, of a program that is red or flaky."""
    for path in sorted(pathlib.Path(record["log"]).rglob("*")):
        if path.name in ("output.log", "stacks.txt") and path.stat().st_size:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            lines = lines[-25:] if path.name == "output.log" else lines[:150]
            print(f"    --- {path}")
            print("\n".join(f"    | {line}" for line in lines), flush=True)


def run_list(options, programs, must_fail, place):
    """Runs all programs once over, `--jobs` at a time."""
    records = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = [pool.submit(run_program, options, name, name in must_fail, place) for name in programs]
        for number, future in enumerate(concurrent.futures.as_completed(futures), 1):
            record = future.result()
            show(number, len(programs), record)
            if record["result"] in ("FAIL", "HANG", "XPASS", "FLAKY"):
                show_failure(record)
            records.append(record)
    return records


def silent_problems(options, records):
    """Lists the programs that sent nothing; returns the number of those that silent.txt does not explain."""
    if options.openmpi:
        return 0
    reasons = explained_silence()
    unexplained = 0
    for record in records:
        if record["bytes"] == 0 and record["result"] in ("PASS", "SKIP", "FLAKY"):
            reason = reasons.get(record["program"])
            unexplained += reason is None
            print(f"  silent: {record['program']}: {reason or 'NOT EXPLAINED in tests/starpu/silent.txt'}")
    return unexplained


def without_multicast(options, records):
    """Lists the programs that should have sent multicasts and have not; returns their number."""
    if not options.multicasts:
        return 0
    expected = [record for record in records if re.search(options.multicasts, record["program"])]
    missing = [record for record in expected if record["result"] == "PASS" and not record["multicasts"]]
    for record in missing:
        print(f"  no multicast: {record['program']}, which should send some (--multicasts '{options.multicasts}')")
    sent = sum(record["multicasts"] for record in expected)
    print(f"  multicasts: {sent} in the {len(expected)} programs that match '{options.multicasts}'")
    return len(missing) + (not expected)


def run_name(options, number):
    words = ["openmpi" if options.openmpi else options.driver.replace(",", "+"), options.part, options.strategy]
    words += ["nobind"] * options.nobind + ["hooks"] * options.hooks + ["only"] * bool(options.only)
    return "-".join(word for word in words if word) + f"-run{number}"


def count(records, *results):
    return sum(record["result"] in results for record in records)


def one_run(options, programs, must_fail, number):
    """Runs the list, prints and keeps the results. Returns (passed, failed, skipped)."""
    name = run_name(options, number)
    place = options.results / name
    begin = time.monotonic()
    print(f"StarPU {starpu_version(options)} mpi/{options.part}, {options.processes} processes: {name}", flush=True)
    records = run_list(options, programs, must_fail, place)
    for program in programs:
        help_out = workaround(options, program)
        if help_out:
            print(f"  with {help_out[0]}={help_out[1]}: {program}: {help_out[2]}")
    unexplained = silent_problems(options, records)
    lacking = without_multicast(options, records)
    flaky = [record["program"] for record in records if record["result"] == "FLAKY"]
    seconds = time.monotonic() - begin
    print(
        f"  {name}: {count(records, 'PASS', 'FLAKY')} pass, {count(records, 'XFAIL')} expected failures, "
        f"{count(records, 'SKIP')} skipped, {count(records, 'FAIL', 'HANG', 'XPASS')} failed, {len(flaky)} flaky"
        f"{' (' + ', '.join(flaky) + ')' if flaky else ''}, {unexplained} silent without reason, "
        f"{len(records)} in all, {seconds:.0f} s",
        flush=True,
    )
    summary = {
        "name": name,
        "starpu": starpu_version(options),
        "processes": options.processes,
        "seconds": round(seconds, 1),
        "records": records,
    }
    (options.results / f"{name}.json").write_text(json.dumps(summary, indent=1), encoding="utf-8")
    return (
        count(records, "PASS", "FLAKY", "XFAIL"),
        count(records, "FAIL", "HANG", "XPASS") + unexplained + lacking,
        count(records, "SKIP"),
    )


def main():
    options = parse_arguments()
    programs, must_fail = program_list(options)
    if not programs:
        sys.exit(f"error: no program matches --only '{options.only}'")
    options.results.mkdir(parents=True, exist_ok=True)
    passed = failed = skipped = 0
    for number in range(1, options.runs + 1):
        results = one_run(options, programs, must_fail, number)
        passed, failed, skipped = passed + results[0], failed + results[1], skipped + results[2]
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Plants each bug of this directory's patches in a copy of the sources, and demands that its catchers find it.

Usage: run_mutations.py [NAME...] [--jobs N] [--seconds S] [--check] [--directory DIR]

Used by tests/run.sh (stage soak-mutations), and by hand. ctest runs it with --check, which only checks whether all
patches still apply. NAME is a patch or its beginning: 24 or 24-. The last line is "N passed, N failed".

A catcher counts only if it reports a finding itself; a unit test that crashes does. A program that is not built, that
runs into the time limit or that ends in another way has caught nothing. And each catcher must find nothing where no bug
is planted.

A patch begins with lines of the form
  # caught by: PROGRAM ARGUMENTS
each of which must catch it. The copy is a git worktree of HEAD in build/mutations. Each patch uses it again, so that
only the files that a patch touches are compiled.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = ROOT / "build/mutations"
TREE = WORK / "tree"
HEADER = re.compile(r"^# caught by: (\S+)\s*(.*)$", re.MULTILINE)

# Kinds of catchers, by the name of the program: the text that reports a finding, and the text that says after how much.
CATCHERS = {
    "canele-sim": (r"runs until the first failure: (\d+)", "runs"),
    "exhaustive_multicasts": (r"world (\d+): |Assertion .* failed", "worlds"),
    "exhaustive_worlds": (r"world (\d+): |Assertion .* failed", "worlds"),
    "exhaustive_schedules": (r"in order (\d+)$", "orders"),
    "fuzz_": (r"(?:ERROR: |SUMMARY: |runtime error: |deadly signal)", "inputs"),
    "unit_": (r"\[  FAILED  \]|Assertion .* failed", "tests"),
}
CRASHES = (signal.SIGSEGV, signal.SIGBUS)
BY_FILTER = ("exhaustive_", "unit_")  # the filter of the tests is their only argument


class Mistake(Exception):
    """A fault of a patch or of a catcher."""


def catcher_kind(program):
    for name, kind in CATCHERS.items():
        if program.startswith(name):
            return kind
    raise Mistake(f'"{program}" is no catcher; there are: {", ".join(CATCHERS)}')


def read_catchers(patch):
    """Returns [(program, arguments)] of the lines at the top of the patch."""
    top = patch.read_text(encoding="utf-8").split("\ndiff ", 1)[0]
    found = [(program, shlex.split(rest)) for program, rest in HEADER.findall(top)]
    if not found:
        raise Mistake('it does not begin with "# caught by: PROGRAM ARGUMENTS"')
    for program, arguments in found:
        catcher_kind(program)
        if program.startswith(BY_FILTER) and (len(arguments) > 1 or arguments[:1] and arguments[0].startswith("-")):
            raise Mistake(f'"{" ".join(arguments)}": after {program} comes a filter for its tests, no option')
    return found


def applies(patch, tree):
    """Returns None if the patch applies, else the reason why not."""
    done = subprocess.run(["git", "apply", "--check", str(patch)], cwd=tree, capture_output=True, text=True)
    return None if done.returncode == 0 else "it does not apply: " + done.stderr.strip().splitlines()[-1]


def verdict(program, status, output):
    """Returns (caught, how much it took). `status` None: the time limit."""
    pattern, what = catcher_kind(program)
    if status is None:
        return False, "the time limit was hit, and nothing reported"
    if status == 0:
        return False, "NOT CAUGHT"
    found = re.search(pattern, output, re.MULTILINE)
    if found is None and program.startswith("unit_") and -status in CRASHES and "[ RUN " in output:
        return True, "by a crash"
    if found is None:
        return False, f"it ended with {status}, but reports no finding"
    count = next((group for group in found.groups() if group), None)
    return True, f"{int(count):,} {what}" if count else "by an assertion" if "ssertion" in found.group(0) else "yes"


def run(command, cwd, log=None):
    """Runs a command; its output goes to a log, and a failure shows the end of the log."""
    log = log or WORK / "log.txt"
    with open(log, "w", encoding="utf-8") as out:
        status = subprocess.run(command, cwd=cwd, stdout=out, stderr=subprocess.STDOUT).returncode
    if status != 0:
        tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])
        raise Mistake(f"{' '.join(command[:4])} … failed:\n{tail}")


class Tree:
    """The copy of the sources and its builds."""

    def __init__(self, jobs):
        self.jobs, self.head = jobs, None

    def prepare(self):
        WORK.mkdir(parents=True, exist_ok=True)
        git = ["git", "-C", str(ROOT)]
        asked = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
        self.head = asked.stdout.strip()
        subprocess.run([*git, "worktree", "prune"], check=True)
        if not (TREE / ".git").exists():
            run([*git, "worktree", "add", "--force", "--detach", str(TREE), self.head], ROOT)
        self.restore()

    def restore(self):
        run(["git", "checkout", "--force", "--detach", self.head], TREE)

    def apply(self, patch):
        run(["git", "apply", str(patch)], TREE)

    def build(self, programs):
        """Returns {program: file}, of copies: the next patch can be compiled while they run."""
        built = {}
        for program in programs:
            preset = "fuzz" if program.startswith("fuzz_") else "release"
            if not (TREE / "build" / preset / "build.ninja").exists():
                # Without optimisation at link time, which would take most of the time of each build.
                fast = ["-DCANELE_WERROR=OFF", "-DCANELE_WHOLE_PROGRAM=OFF"]
                run(["cmake", "--preset", preset, "-G", "Ninja", *fast], TREE)
            run(["ninja", "-C", f"build/{preset}", "-j", str(self.jobs), program], TREE)
            made = TREE / "build" / preset / "bin" / program
            copy = WORK / "programs" / f"{time.monotonic_ns()}-{program}"
            copy.parent.mkdir(exist_ok=True)
            shutil.copy2(made, copy)
            built[program] = copy
        return built


def call(binary, program, arguments, seconds):
    """Returns (status or None, output, time)."""
    command = [str(binary), *arguments]
    if program.startswith(BY_FILTER):
        command = [str(binary), f"--gtest_filter={arguments[0] if arguments else '*'}", "--gtest_fail_fast"]
    begin = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=TREE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds, check=False
        )
        status, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        status, output = None, late.stdout or b""
    return status, output.decode(errors="replace"), time.monotonic() - begin


def try_catcher(options, name, binary, program, arguments, planted):
    """Prints one line of the table; returns True if all is as it must be."""
    status, output, took = call(binary, program, arguments, options.seconds)
    if planted:
        good, words = verdict(program, status, output)
    else:
        good, words = status == 0, "clean" if status == 0 else "FAILS WITHOUT A BUG"
    (WORK / "logs").mkdir(exist_ok=True)
    (WORK / "logs" / f"{name}-{program}.txt").write_text(output, encoding="utf-8")
    print(f"{name:58.58} {program:20} {words:>24} {took:7.1f} s", flush=True)
    if not good:
        print("\n".join("  | " + line[:200] for line in output.splitlines()[-10:]), flush=True)
    return good


def submit_all(pool, options, tree, name, catchers, planted):
    """Builds; the catchers then run beside the next build."""
    begin = time.monotonic()
    built = tree.build(dict.fromkeys(program for program, _ in catchers))
    print(f"{name:58.58} built in {time.monotonic() - begin:.0f} s", flush=True)
    return [
        pool.submit(try_catcher, options, name, built[program], program, arguments, planted)
        for program, arguments in catchers
    ]


def plant(pool, options, tree, patch):
    """Returns the futures of one patch's catchers."""
    catchers = read_catchers(patch)
    tree.restore()
    if wrong := applies(patch, TREE):
        raise Mistake(wrong)
    tree.apply(patch)
    return submit_all(pool, options, tree, patch.stem, catchers, True)


def check(patches, tree=ROOT):
    """Checks everything that needs no build; returns [(name, what is wrong)]."""
    wrong = []
    for patch in patches:
        try:
            read_catchers(patch)
            if why := applies(patch, tree):
                raise Mistake(why)
        except Mistake as mistake:
            wrong.append((patch.name, str(mistake)))
    return wrong


def campaign(options, patches):
    """Returns (passed, failed)."""
    tree, results, mistakes = Tree(options.jobs), [], 0
    tree.prepare()
    shutil.rmtree(WORK / "programs", ignore_errors=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        if options.baseline:
            all_of_them = [catcher for patch in patches for catcher in read_catchers(patch)]
            clean = sorted({(program, tuple(arguments)) for program, arguments in all_of_them})
            results += submit_all(pool, options, tree, "no bug planted", clean, False)
        for number, patch in enumerate(patches):
            print(f"[{number + 1}/{len(patches)}] {patch.stem}", flush=True)
            try:
                results += plant(pool, options, tree, patch)
            except Mistake as mistake:
                print(f"{patch.stem}: {mistake}", flush=True)
                mistakes += 1
    tree.restore()
    shutil.rmtree(WORK / "programs", ignore_errors=True)
    outcomes = [result.result() for result in results]
    return outcomes.count(True), outcomes.count(False) + mistakes


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these patches; default: all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="to compile with, and catchers at once")
    parser.add_argument("--seconds", type=int, default=1800, help="for one catcher: ends what hangs")
    parser.add_argument("--no-baseline", dest="baseline", action="store_false", help="do not run them without a bug")
    parser.add_argument("--check", action="store_true", help="only look whether all patches apply; nothing is built")
    parser.add_argument("--directory", type=pathlib.Path, default=HERE, help="where the patches are")
    return parser.parse_args()


def main():
    options = parse()
    patches = sorted(options.directory.resolve().glob("*.patch"))
    chosen = [patch for patch in patches if not options.names or patch.stem.startswith(tuple(options.names))]
    for name in options.names:
        if not any(patch.stem.startswith(name) for patch in patches):
            sys.exit(f"run_mutations.py: no patch begins with {name}; they are in {options.directory}")
    wrong = check(chosen)
    for name, why in wrong:
        print(f"{name}: {why}")
    if options.check or wrong:
        print(f"{len(chosen) - len(wrong)} passed, {len(wrong)} failed")
        return 1 if wrong or not chosen else 0
    passed, failed = campaign(options, chosen)
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())

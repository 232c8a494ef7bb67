#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs MPICH's own tests of one-sided operations on Canelé: test/mpi/rma, errors/rma and threads/rma.

Usage: tests/mpi/mpich_rma.py [--bin DIR] [--driver shm|tcp] [--only REGEX] ...   (see --help)

Used by tests/run.sh, stage mpich-rma, and by hand. The sources are those of Debian's source package mpich, fetched by a
private apt configuration below build/mpich-rma, and verified by apt. Nothing of them is part of this tree. Each line
of MPICH's lists names a program, its ranks and arguments. The programs are built by canele-mpicc, and run by
canele-run under tests/with-timeout, one after the other.

Lines that cannot pass are in mpich_rma.txt, with what they print then. Any other line that fails is an error. So is a
line of that file that passes, or fails in another way.
"""
import argparse
import concurrent.futures
import dataclasses
import hashlib
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys
import tarfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WITH_TIMEOUT = ROOT / "tests/with-timeout"
TIMED_OUT = 124
LIMIT_S = 180  # as MPICH has it
# The lines of the lists that MPICH's default configuration runs, by version: another number is an error.
LISTED = {"4.0.2": 210}
PARTS = ("rma", "errors/rma", "threads/rma")
NEEDED = (*PARTS, "util", "include")
GROUPS = ("active", "passive", "accumulate", "windows", "requests", "errors", "threads")
# The group of a program by its name. Other programs: what they call more often.
NAMES = (
    ("requests", r"req|rput|racc|rget"),
    ("accumulate", r"acc|atomic|fetch|fop_|cas_|gacc_|compare_and_swap|linked_list_fop|large_small|overlap_wins_[^p]"),
    ("windows", r"win|attr|fkeyval|aint|allocmem|badrma|getgroup"),
)
UTILITIES = ("mtest", "mtest_common", "mtest_thread", "dtypes")
# What MPICH's configure would write to mpitestconf.h.
CONFIGURATION = ("STDC_HEADERS HAVE_STDLIB_H HAVE_STRING_H HAVE_STRINGS_H HAVE_STDIO_H HAVE_UNISTD_H HAVE_STDINT_H "
                 "HAVE_INTTYPES_H HAVE_STDARG_H HAVE_SYS_TIME_H HAVE_SYS_RESOURCE_H HAVE_PTHREAD_H HAVE_GETRUSAGE "
                 "HAVE_USLEEP HAVE_LONG_LONG HAVE_LONG_DOUBLE HAVE_FLOAT__COMPLEX HAVE_DOUBLE__COMPLEX "
                 "HAVE_MACRO_VA_ARGS HAVE_MPI_WIN_CREATE USE_STRICT_MPI THREAD_PACKAGE_NAME=THREAD_PACKAGE_POSIX "
                 "MPI_UNIVERSE_SIZE=3").split()


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of a list: a program with its ranks and arguments."""

    part: str
    program: str
    ranks: int
    arguments: tuple[str, ...]
    variables: tuple[str, ...]
    limit: float

    @property
    def name(self) -> str:
        return " ".join((self.program, str(self.ranks), *self.arguments))


@dataclasses.dataclass
class Result:
    """What a line did. `problem` is empty if it passed."""

    line: Line
    group: str
    seconds: float
    problem: str
    output: str


def fail(text: str) -> None:
    sys.exit(f"error: {text}")


# --- the sources ------------------------------------------------------------------------------------------------------

def private_apt(place: pathlib.Path, *arguments: str) -> list[str]:
    """Returns an apt-get command with sources, lists and cache below `place`. Proxies and keys stay the system's."""
    settings = {"Dir::Etc::sourcelist": place / "sources.list", "Dir::Etc::sourceparts": "-",
                "Dir::State::lists": place / "lists", "Dir::Cache": place / "cache",
                "APT::Sandbox::User": pwd.getpwuid(os.getuid()).pw_name, "Acquire::Retries": "3",
                "APT::Update::Error-Mode": "any"}
    return ["apt-get", *(word for name, value in settings.items() for word in ("-o", f"{name}={value}")), *arguments]


def fetch(place: pathlib.Path, log: pathlib.Path) -> None:
    """Downloads the source package. apt checks the signature of the release, and the checksums of the files."""
    apt = place / "apt"
    for directory in (apt / "lists/partial", apt / "cache/archives/partial"):
        directory.mkdir(parents=True, exist_ok=True)
    lines = subprocess.run([sys.executable, str(ROOT / "tests/starpu/deb_src_lines.py")], capture_output=True,
                           text=True, check=False)
    if lines.returncode != 0:
        fail(f"MPICH's source package cannot be fetched: {lines.stderr.strip()}")
    (apt / "sources.list").write_text(lines.stdout, encoding="utf-8")
    with open(log, "w", encoding="utf-8") as file:
        for arguments in (("update",), ("source", "--download-only", "mpich")):
            code = subprocess.run(private_apt(apt, *arguments), cwd=place, stdin=subprocess.DEVNULL, stdout=file,
                                  stderr=subprocess.STDOUT, check=False).returncode
            if code != 0:
                reasons = re.findall(r"^[EW]: (.*)$", log.read_text(encoding="utf-8"), re.MULTILINE)
                fail(f"MPICH's source package cannot be fetched from Debian: apt-get {arguments[0]} ended with exit "
                     f"code {code}. {reasons[0] if reasons else ''}\nAll that it says is in {log}")


def archives(place: pathlib.Path) -> list[pathlib.Path]:
    return sorted(place.glob("mpich_*.orig.tar.xz"))


def unpack(archive: pathlib.Path, sources: pathlib.Path) -> None:
    """Unpacks the tests and their library."""
    shutil.rmtree(sources, ignore_errors=True)
    pattern = re.compile(r"[^/]+/test/mpi/((?:" + "|".join(NEEDED) + r")/[^/]+\.(?:c|h|am|in)|(?:" + "|".join(PARTS) +
                         r")/testlist)")
    with tarfile.open(archive) as tar:
        for member in tar:
            found = pattern.fullmatch(member.name)
            content = tar.extractfile(member) if found and member.isfile() else None
            if found and content:
                to = sources / found.group(1)
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_bytes(content.read())
    (sources / "include/mpitestconf.h").write_text("", encoding="utf-8")  # see CONFIGURATION
    (sources / ".ready").touch()


def ensure_sources(place: pathlib.Path) -> tuple[str, pathlib.Path]:
    """Returns MPICH's version and the folder of its tests."""
    if not archives(place):
        begin = time.monotonic()
        fetch(place, place / "fetch.log")
        print(f"fetching MPICH's source package: done in {time.monotonic() - begin:.0f} s", flush=True)
    archive = archives(place)[-1]
    version = archive.name.removeprefix("mpich_").removesuffix(".orig.tar.xz")
    sources = place / f"tests-{version}"
    if not (sources / ".ready").exists():
        unpack(archive, sources)
    return version, sources


# --- the lists --------------------------------------------------------------------------------------------------------

def read_line(part: str, text: str) -> Line | None:
    """Reads a line of a list. None: it names no program, or one that MPICH's default configuration leaves out."""
    words = text.partition("#")[0].split()
    if not words or words[0].startswith("@"):
        return None
    options = [word.partition("=")[::2] for word in words[2:]]

    def values(wanted: str) -> tuple[str, ...]:
        return tuple(value for name, value in options if name == wanted)

    return Line(part, words[0], int(words[1]), values("arg"), values("env"),
                max([LIMIT_S, *map(float, values("timeLimit"))]))


def read_lists(sources: pathlib.Path) -> list[Line]:
    lines = []
    for part in PARTS:
        names = [sources / part / name for name in ("testlist.in", "testlist")]
        path = next(name for name in names if name.exists())
        lines += [read_line(part, text) for text in path.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line]


def expected_failures() -> dict[str, str]:
    """Returns {line: what it prints} of mpich_rma.txt."""
    table = {}
    for text in (HERE / "mpich_rma.txt").read_text(encoding="utf-8").splitlines():
        if text.strip() and not text.startswith("#"):
            name, reason = re.split(r"\s{2,}", text.strip(), maxsplit=1)
            table[name] = reason
    return table


# --- building ---------------------------------------------------------------------------------------------------------

class Builder:
    """Builds MPICH's programs as its Makefiles do. Objects and programs are kept until compiler or header change."""

    def __init__(self, sources: pathlib.Path, place: pathlib.Path, mpicc: pathlib.Path) -> None:
        self.sources, self.place = sources, place
        self.compiler = [str(mpicc), "-O1", "-w", "-pthread", "-DMPITESTCONF_H_INCLUDED",
                         *(f"-D{name}" if "=" in name else f"-D{name}=1" for name in CONFIGURATION),
                         "-include", str(HERE / "mpich_shim.h"), f"-I{sources / 'include'}"]
        self.variables = {part: self.read_makefile(part) for part in PARTS}

    def read_makefile(self, part: str) -> dict[str, list[str]]:
        """Returns {variable: words} of Makefile.am."""
        text = (self.sources / part / "Makefile.am").read_text(encoding="utf-8").replace("\\\n", " ")
        return {name: value.split() for name, value in re.findall(r"^(\w+) *= *(.*)$", text, re.MULTILINE)}

    def files(self, line: Line) -> list[pathlib.Path]:
        """Returns the sources of a program."""
        names = self.variables[line.part].get(f"{line.program}_SOURCES", [f"{line.program}.c"])
        return [self.sources / line.part / name for name in names if name.endswith(".c")]

    def group(self, line: Line) -> str:
        if line.part != "rma":
            return line.part.split("/")[0]
        for group, pattern in NAMES:
            if re.search(pattern, line.program):
                return group
        text = "".join(path.read_text(encoding="utf-8") for path in self.files(line))
        fences, locks = (len(re.findall(rf"MPI_Win_({names})", text))
                         for names in ("fence|post|start|complete|wait", "lock|unlock|flush"))
        return "active" if fences > locks else "passive"

    def start(self) -> None:
        """Forgets what another compiler or header has built, and builds the library."""
        shown = subprocess.run([*self.compiler, "-show"], capture_output=True, text=True, check=True).stdout
        key = hashlib.sha256(shown.encode())
        for directory in re.findall(r"-I(\S+)", shown):
            header = pathlib.Path(directory) / "mpi.h"
            key.update(header.read_bytes() if header.exists() else b"")
        key.update((HERE / "mpich_shim.h").read_bytes())
        known = self.place / "key"
        if not known.exists() or known.read_text(encoding="utf-8") != key.hexdigest():
            shutil.rmtree(self.place, ignore_errors=True)
            self.place.mkdir(parents=True)
            for name in UTILITIES:
                problem = self.compile(self.place / f"{name}.o", ["-c", str(self.sources / f"util/{name}.c")])
                if problem:
                    fail(f"MPICH's test library cannot be built: {problem}")
            known.write_text(key.hexdigest(), encoding="utf-8")

    def compile(self, made: pathlib.Path, words: list[str]) -> str:
        result = subprocess.run([*self.compiler, *words, "-o", str(made)], capture_output=True, text=True, check=False)
        return "" if result.returncode == 0 else (result.stderr.strip() or "the compiler failed")

    def build(self, line: Line) -> str:
        """Builds the program of a line. Returns what the compiler says if it cannot be built."""
        program = self.place / line.program
        if program.exists():
            return ""
        flags = [word for word in self.variables[line.part].get(f"{line.program}_CPPFLAGS", []) if word[:2] == "-D"]
        objects = [str(self.place / f"{name}.o") for name in UTILITIES]
        return self.compile(program, [*flags, *map(str, self.files(line)), *objects, "-lm"])


# --- running ----------------------------------------------------------------------------------------------------------

def environment(driver: str, line: Line) -> dict[str, str]:
    values = {name: value for name, value in os.environ.items() if not name.startswith(("CANELE_", "MPITEST_"))}
    if driver:
        values["CANELE_DRIVERS"] = driver
    return values | dict(text.split("=", 1) for text in line.variables)


def run(options: argparse.Namespace, builder: Builder, line: Line, results: pathlib.Path) -> Result:
    """Runs a line. It passes if the program ends well and says that it has found no errors."""
    stacks = results / f"{line.name.replace(' ', '_')}.stacks"
    command = [str(WITH_TIMEOUT), "--stacks", str(stacks), str(line.limit), str(options.bin / "canele-run"), "-n",
               str(line.ranks), str(builder.place / line.program), *line.arguments]
    begin = time.monotonic()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", env=environment(options.driver, line), check=False)
    seconds = time.monotonic() - begin
    problem = ""
    if done.returncode == TIMED_OUT:
        problem = f"it reached its limit of {line.limit:.0f} s; stacks: {stacks}"
    elif done.returncode != 0:
        problem = f"exit code {done.returncode}"
    elif not re.search(r"^ *No Errors *$", done.stdout, re.MULTILINE):
        problem = "it does not say 'No Errors'"
    return Result(line, builder.group(line), seconds, problem, done.stdout)


def build_all(builder: Builder, lines: list[Line], jobs: int) -> dict[str, str]:
    """Builds all programs. Returns {program: why not}."""
    firsts = {line.program: line for line in lines}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        problems = zip(firsts, pool.map(builder.build, firsts.values()))
        return {program: problem for program, problem in problems if problem}


def verdict(result: Result, expected: dict[str, str]) -> str:
    """PASS, KNOWN (it fails as mpich_rma.txt says), FAIL, or XPASS (it passes against mpich_rma.txt)."""
    reason = expected.get(result.line.name)
    if not result.problem:
        return "PASS" if reason is None else "XPASS"
    return "KNOWN" if reason is not None and reason in result.output else "FAIL"


def show(number: int, count: int, result: Result, word: str) -> None:
    print(f"  {number:>3}/{count} {word:<5} {result.group:<10} {result.line.name:<58} {result.seconds:>7.2f} s",
          flush=True)
    if word in ("FAIL", "XPASS"):
        print(f"    {result.problem or 'mpich_rma.txt says that it fails'}")
        print("\n".join(f"    | {text}" for text in result.output.strip().splitlines()[:25]), flush=True)


def run_all(options: argparse.Namespace, builder: Builder, lines: list[Line],
            results: pathlib.Path) -> list[tuple[Result, str]]:
    begin = time.monotonic()
    unbuilt = build_all(builder, lines, options.jobs)
    print(f"building the programs of {len(lines)} lines: done in {time.monotonic() - begin:.0f} s", flush=True)
    expected = expected_failures()
    found = []
    for number, line in enumerate(lines, 1):
        if line.program in unbuilt:
            result = Result(line, builder.group(line), 0.0, "it cannot be built", unbuilt[line.program])
        else:
            result = run(options, builder, line, results)
        word = verdict(result, expected)
        show(number, len(lines), result, word)
        found.append((result, word))
    return found


def report(found: list[tuple[Result, str]], seconds: float) -> int:
    """Prints the counts by group, and what is known to fail. Returns the number of errors."""
    print(f"  {'group':<12}{'lines':>6}{'pass':>6}{'known':>7}{'failed':>8}")
    for group in GROUPS:
        words = [word for result, word in found if result.group == group]
        bad = words.count("FAIL") + words.count("XPASS")
        print(f"  {group:<12}{len(words):>6}{words.count('PASS'):>6}{words.count('KNOWN'):>7}{bad:>8}")
    words = [word for _, word in found]
    for result, word in found:
        if word == "KNOWN":
            print(f"  known to fail: {result.line.name}: {expected_failures()[result.line.name]}")
    failed = len(words) - words.count("PASS") - words.count("KNOWN")
    share = 100 * words.count("PASS") / max(1, len(words))
    print(f"  {words.count('PASS')} of {len(words)} lines pass ({share:.1f} %), in {seconds:.0f} s")
    print(f"{words.count('PASS')} passed, {failed} failed, {words.count('KNOWN')} skipped", flush=True)
    return failed


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Runs MPICH's tests of one-sided operations on Canelé.")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/prefix/bin",
                        help="the folder of canele-mpicc and canele-run (default: build/prefix/bin)")
    parser.add_argument("--driver", default="", help="value of CANELE_DRIVERS (default: Canelé's own)")
    parser.add_argument("--only", default="", metavar="REGEX", help="only the lines that match")
    parser.add_argument("--cache", type=pathlib.Path, default=ROOT / "build/mpich-rma", help="sources and programs")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="compilers at a time")
    options = parser.parse_args()
    options.bin, options.cache = options.bin.resolve(), options.cache.resolve()
    for name in ("canele-mpicc", "canele-run"):
        if not (options.bin / name).exists():
            parser.error(f"{options.bin} has no {name}; tests/run.sh --only release,install makes it")
    return options


def main() -> int:
    options = parse_arguments()
    results = options.cache / "results"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    begin = time.monotonic()
    version, sources = ensure_sources(options.cache)
    lines = read_lists(sources)
    if len(lines) != LISTED.get(version, len(lines)):
        fail(f"MPICH {version} lists {len(lines)} lines, not {LISTED[version]}: were they read correctly?")
    unknown = sorted(set(expected_failures()) - {line.name for line in lines})
    if unknown:
        fail(f"mpich_rma.txt has lines that MPICH {version} does not list: {', '.join(unknown)}")
    lines = [line for line in lines if re.search(options.only, line.name)]
    print(f"MPICH {version}: {len(lines)} lines of {', '.join(PARTS)}", flush=True)
    builder = Builder(sources, options.cache / "programs", options.bin / "canele-mpicc")
    builder.start()
    return 1 if report(run_all(options, builder, lines, results), time.monotonic() - begin) or not lines else 0


if __name__ == "__main__":
    sys.exit(main())

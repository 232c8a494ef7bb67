# SPDX-License-Identifier: BSD-3-Clause
"""MPICH's lists of tests: which program runs with how many ranks, and how its output is judged.

A line is `PROGRAM RANKS [KEY=VALUE]...`. MPICH's runtests describes the keys.
"""
import dataclasses
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_S = 180  # as MPICH has it
HANGS = "hangs: "  # begins the reason of a line that would never end, so that it is not run
LANGUAGES = ("f77", "f90", "f08")  # mpif.h, the module mpi, the module mpi_f08
# The folders that each way to use MPI in Fortran has.
FORTRAN = ("attr", "coll", "comm", "datatype", "ext", "info", "init", "profile", "pt2pt", "rma", "topo")
# The folders of programs for what Canelé has or will have. Not those of files, of spawned processes, and of MPICH's own
# extensions.
PARTS = ("attr", "basic", "coll", "comm", "datatype", "errhan", "group", "info", "init", "mpi_t", "part", "pt2pt",
         "rma", "topo", "errors/attr", "errors/basic", "errors/coll", "errors/comm", "errors/datatype", "errors/group",
         "errors/init", "errors/pt2pt", "errors/rma", "errors/topo", "threads/comm", "threads/init", "threads/mpi_t",
         "threads/part", "threads/pt2pt", "threads/rma",
         *(f"f77/{folder}" for folder in FORTRAN),
         *(f"f90/{folder}" for folder in (*FORTRAN, "f90types", "misc", "timer")),
         *(f"f08/{folder}" for folder in (*FORTRAN, "misc", "subarray", "timer")))


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of a list: a program with its ranks and arguments."""

    part: str
    program: str
    ranks: int
    arguments: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    limit: float = LIMIT_S
    verdict: str = ""  # the function of MPICH's runtests that judges the output
    memory: float = 0  # GB that it needs

    @property
    def language(self) -> str:
        """f77, f90 or f08; "" for C."""
        return self.part[:3] if self.part[:3] in LANGUAGES else ""

    @property
    def name(self) -> str:
        return " ".join((f"{self.part}/{self.program}", str(self.ranks), *self.arguments))


def read_line(part: str, text: str) -> Line | None:
    """Reads a line of a list. None: it names no program, or one that MPICH's default configuration leaves out."""
    words = text.partition("#")[0].split()
    if not words or words[0].startswith(("@", "!")):
        return None
    options = [word.partition("=")[::2] for word in words[1:] if "=" in word]
    ranks = next((int(word) for word in words[1:2] if word.isdigit()), 2)

    def values(wanted: str) -> tuple[str, ...]:
        return tuple(value for name, value in options if name == wanted)

    return Line(part, words[0], ranks, values("arg"), values("env"), max([LIMIT_S, *map(float, values("timeLimit"))]),
                next(iter(values("resultTest")), ""), max([0.0, *map(float, values("mem"))]))


def read_lists(sources: pathlib.Path) -> list[Line]:
    lines = []
    for part in PARTS:
        paths = [sources / part / name for name in ("testlist.in", "testlist")]
        path = next((path for path in paths if path.exists()), None)
        texts = path.read_text(encoding="utf-8").splitlines() if path else []
        lines += [line for line in (read_line(part, text) for text in texts) if line and not folder(sources, line)]
    return lines


def folder(sources: pathlib.Path, line: Line) -> bool:
    """Returns whether the line names a folder with a list of its own."""
    return (sources / line.part / line.program).is_dir()


def expected_failures(path: pathlib.Path = HERE / "expected.txt") -> dict[str, str]:
    """Returns {line: why it fails} of expected.txt."""
    table = {}
    for text in path.read_text(encoding="utf-8").splitlines():
        if text.strip() and not text.startswith("#"):
            name, reason = re.split(r"\s{2,}", text.strip(), maxsplit=1)
            table[name] = reason
    return table


def problem_of(line: Line, code: int, output: str) -> str:
    """Judges a program that has ended, as MPICH's runtests does. Returns what is wrong; "" if it passed."""
    has_passed = re.search(r"^ *No Errors *$", output, re.MULTILINE) is not None
    if line.verdict in ("TestStatus", "TestErrFatal"):
        return "" if code != 0 else "it ends with exit code 0"
    if line.verdict == "TestStatusNoErrors":
        return "" if code != 0 and has_passed else f"exit code {code}, or it does not say 'No Errors'"
    if code != 0:
        return f"exit code {code}"
    if line.verdict == "TestBench" or has_passed:
        return ""
    return "it does not say 'No Errors'"

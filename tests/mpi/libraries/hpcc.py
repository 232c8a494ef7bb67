# SPDX-License-Identifier: BSD-3-Clause
"""The HPC Challenge benchmark, small. Its own checks say whether the results are right.

It has HPL, PTRANS, RandomAccess and FFT over all ranks, and the latency and bandwidth of messages, and uses datatypes
of MPI-1.
"""
import collections.abc
import pathlib
import re
import shutil

from library import BuildError, Library, Result

ELEMENTS = 400  # rows of the matrix of HPL; the other sizes follow from it
GRIDS = {2: (1, 2), 4: (2, 2)}  # processes of HPL's grid, by ranks
# What must be in the output.
PASSED = {"HPL": r"\|\|Ax-b\|\|.*PASSED", "PTRANS": r"^(WALL|CPU) .*PASSED"}
MAKEFILE = """SHELL = /bin/sh
CD = cd
CP = cp
LN_S = ln -s
MKDIR = mkdir -p
RM = /bin/rm -f
TOUCH = touch
ARCH = canele
TOPdir = ../../..
INCdir = $(TOPdir)/include
BINdir = $(TOPdir)/bin/$(ARCH)
LIBdir = $(TOPdir)/lib/$(ARCH)
HPLlib = $(LIBdir)/libhpl.a
HPL_LIBS = $(HPLlib) -lopenblas -lm
HPL_INCLUDES = -I$(INCdir) -I$(INCdir)/$(ARCH)
HPL_DEFS = -DAdd__ -DF77_INTEGER=int -DStringSunStyle $(HPL_INCLUDES)
CC = @compiler@
CCNOOPT = $(HPL_DEFS)
CCFLAGS = $(HPL_DEFS) -O2 -w
LINKER = $(CC)
LINKFLAGS = $(CCFLAGS)
ARCHIVER = ar
ARFLAGS = r
RANLIB = ranlib
"""


def problems_of(text: str) -> list[str]:
    """Returns what is wrong with the benchmark's output."""
    found = [f"a check failed: {line.strip()}" for line in text.splitlines() if re.search(r"\bFAILED\b", line)]
    if "Success=1" not in text:
        found.append("the summary does not say Success=1")
    for name, pattern in PASSED.items():
        if not re.search(pattern, text, re.MULTILINE):
            found.append(f"{name} does not say that it passed")
    for count in re.findall(r"Found (\d+) errors in", text):
        if count != "0":
            found.append(f"RandomAccess has {count} errors")
    return found


class Hpcc(Library):
    package = "hpcc"
    limit_s = 600

    def build(self) -> None:
        text = MAKEFILE.replace("@compiler@", self.mpi.compiler)
        (self.place / "hpl/Make.canele").write_text(text, encoding="utf-8")
        self.step("make", "arch=canele", f"-j{self.jobs}")
        if not (self.place / "hpcc").exists():
            raise BuildError(f"make has not built hpcc; see {self.log}")

    def make_input(self, run: pathlib.Path, ranks: int) -> None:
        """Writes hpccinf.txt: the benchmark's own, with a small matrix and our grid."""
        lines = (self.place / "_hpccinf.txt").read_text(encoding="utf-8").splitlines()
        values = {"Ns": ELEMENTS, "Ps": GRIDS[ranks][0], "Qs": GRIDS[ranks][1]}
        for number, line in enumerate(lines):
            name = line.split()[-1] if line.split() else ""
            if name in values:
                lines[number] = f"{values[name]} {name}"
        (run / "hpccinf.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def checks(self, driver: str) -> collections.abc.Iterator[Result]:
        for ranks in GRIDS:
            run = self.cache / f"run-{ranks}-{driver}"
            shutil.rmtree(run, ignore_errors=True)
            run.mkdir()
            self.make_input(run, ranks)
            code, output = self.run(*self.limited(), "-n", ranks, self.place / "hpcc", driver=driver, cwd=run)
            file = run / "hpccoutf.txt"
            text = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
            problems = ([f"exit code {code}"] if code else []) + problems_of(text)
            yield Result(f"{ranks} ranks", "; ".join(problems), output)

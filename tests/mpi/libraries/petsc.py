# SPDX-License-Identifier: BSD-3-Clause
"""PETSc: distributed vectors, matrices and solvers in C.

Its star forests exchange data in every way that MPI has: messages, persistent requests, neighborhood collectives, and
windows of each kind with each synchronisation. Its own tests compare what programs print with stored output; the number
of ranks belongs to the test.
"""
import collections.abc
import itertools
import re

from library import Library, Result

ARCH = "built"
# Which tests, as PETSc's makefile searches for them.
SEARCH = ("vec_is_sf_t*", "ksp_ksp_tutorials-ex2_*", "snes_tutorials-ex19_[1-5]*")
LEFT_OUT = r"[A-Z]{4}\b"  # a directive of TAP: why a test is not run
LINE = re.compile(r"^\s*(not ok|ok) (\S+)(?: # (.*))?$", re.MULTILINE)


def results_of(text: str) -> list[Result]:
    """Reads the lines of the protocol TAP. Tests that PETSc itself skips are left out."""
    found = []
    for match in LINE.finditer(text):
        verdict, name, comment = match.groups()
        following = text[match.end() + 1:].splitlines()
        said = itertools.takewhile(lambda line: line.lstrip().startswith("#"), following)
        if verdict == "not ok":
            found.append(Result(name, comment or "it has failed", "\n".join(said)))
        elif not re.match(LEFT_OUT, comment or ""):
            found.append(Result(name))
    return found


class Petsc(Library):
    package = "petsc"

    def build(self) -> None:
        launcher = self.cache / "mpiexec"  # PETSc wants one word
        launcher.write_text(f'#!/bin/sh\nexec {" ".join(self.limited())} "$@"\n', encoding="utf-8")
        launcher.chmod(0o755)
        self.step("/usr/bin/python3", "./configure", f"PETSC_ARCH={ARCH}", f"--with-cc={self.mpi.compiler}",
                  "--with-cxx=0", "--with-fc=0", f"--with-mpiexec={launcher}", "--with-debugging=0", "--with-x=0",
                  "COPTFLAGS=-O1", f"--with-make-np={self.jobs}", PETSC_DIR=str(self.place))
        self.step("make", "all", PETSC_DIR=str(self.place), PETSC_ARCH=ARCH)

    def checks(self, driver: str) -> collections.abc.Iterator[Result]:
        for search in SEARCH:
            code, output = self.run("make", "-k", f"-j{self.jobs}", "-f", "gmakefile.test", "test", f"search={search}",
                                    "NO_RM=1", f"TIMEOUT={10 * self.limit_s}", driver=driver, cwd=self.place,
                                    PETSC_DIR=str(self.place), PETSC_ARCH=ARCH)
            found = results_of(output)
            yield from found
            if not found or (code and not any(one.problem for one in found)):
                yield Result(f"make search={search}", f"exit code {code}, {len(found)} results", output)

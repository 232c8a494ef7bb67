# SPDX-License-Identifier: BSD-3-Clause
"""hypre: parallel multigrid solvers in C, with messages of all lengths to ranks that find each other.

Its own script runs the jobs of a group and compares the numbers that they print with those that its authors have
stored. The number of ranks belongs to the job.
"""
import collections.abc
import re

from library import Library, Result

# Groups of jobs, by folder: those of 2 to 4 ranks that take seconds, and a few of more ranks. Of TEST_ams the authors
# themselves have numbers that differ by machine.
GROUPS = {
    "TEST_ij": ("air", "amgdd", "coarsening", "default", "elast", "ilu", "interp", "matrix", "smoother", "vector"),
    "TEST_struct": ("periodic", "pfmgbase2d", "smgbase2d", "vcpfmgRedBlackGS"),
    "TEST_sstruct": ("addtovalues", "default3d", "emptyProc", "miller", "neighborpart", "neumann", "solvers", "wide"),
    "TEST_lobpcg": ("ijdefault", "struct"),
}
PROGRAMS = ("ij", "struct", "sstruct")
TOLERANCE = "1e-6"  # how much numbers may differ from those of the authors' machine


class Hypre(Library):
    package = "hypre"

    def build(self) -> None:
        tree = self.place / "src"
        self.step("./configure", "--disable-fortran", f"CC={self.mpi.compiler}", f"CXX={self.mpi.cxx}", cwd=tree)
        self.step("make", f"-j{self.jobs}", cwd=tree)
        self.step("make", f"-j{self.jobs}", *PROGRAMS, cwd=tree / "test")

    def checks(self, driver: str) -> collections.abc.Iterator[Result]:
        for folder, groups in GROUPS.items():
            for group in groups:
                yield self.check(driver, folder, group)

    def check(self, driver: str, folder: str, group: str) -> Result:
        tests = self.place / "src/test"
        for old in (*(tests / folder).glob(f"{group}.out*"), *(tests / folder).glob(f"{group}.err*")):
            old.unlink()
        text = (tests / folder / f"{group}.jobs").read_text(encoding="utf-8").replace("\\\n", " ")
        jobs = re.findall(r"^ *mpirun +-np +(\d+) .*> *(\S+)", text, re.MULTILINE)
        code, output = self.run("bash", "runtest.sh", "-rtol", TOLERANCE, "-atol", TOLERANCE, "-mpi",
                                " ".join((*self.limited(), "-n")), f"{folder}/{group}.sh", driver=driver, cwd=tests)
        errors = tests / folder / f"{group}.err"
        said = errors.read_text(encoding="utf-8", errors="replace") if errors.exists() else "the script has no result"
        files = [tests / folder / name for _, name in jobs]
        silent = [file.name for file in files if not file.exists() or file.stat().st_size == 0]
        problems = [f"exit code {code}"] if code else []
        problems += [f"no output: {', '.join(silent)}"] if silent else []
        problems += ["differences or errors"] if said else []
        problems += [] if jobs else ["no jobs"]
        ranks = ", ".join(sorted({ranks for ranks, _ in jobs}))
        return Result(f"{folder}/{group}, {len(jobs)} jobs of {ranks} ranks", "; ".join(problems), said + output)

# SPDX-License-Identifier: BSD-3-Clause
"""FFTW's transforms over all ranks: collectives of all ranks, and exchanges by pairs.

Its own script makes random problems, and its program compares the results with properties of the transform.
"""
import collections.abc
import shlex

from library import Library, Result

RANKS = (2, 4)
SEED = 1
PROBLEMS = 10  # as many sizes as in FFTW's own check
BAD = ("FAILED", "killed", "hangup", "interrupted")


class Fftw(Library):
    package = "fftw3"

    def build(self) -> None:
        self.step("./configure", "--enable-mpi", "--disable-fortran", "--disable-doc", "CC=cc",
                  f"MPICC={self.mpi.compiler}")
        self.step("make", f"-j{self.jobs}")

    def checks(self, driver: str) -> collections.abc.Iterator[Result]:
        for ranks in RANKS:
            program = shlex.join((*self.limited(), "-n", str(ranks), str(self.place / "mpi/mpi-bench")))
            # The script itself has no way to fix its random numbers.
            code, output = self.run("perl", "-e", f"srand({SEED}); do shift", "./tests/check.pl", "--verbose",
                                    "--random", "--maxsize=10000", f"-c={PROBLEMS}", "--mpi", program,
                                    driver=driver, cwd=self.place)
            count = output.count("--verify")
            problems = [f"exit code {code}"] if code else []
            problems += [line.strip() for line in output.splitlines() if line.startswith(BAD)]
            problems += ["no problem was solved"] if count == 0 else []
            yield Result(f"{count} problems, {ranks} ranks", "; ".join(problems), output)

# SPDX-License-Identifier: BSD-3-Clause
"""What all libraries have: the fetched sources, the commands that build them, and programs with a time limit.

A library is a class with two methods, `build` and `checks`, and a line in libraries.py. Nothing of its sources is part
of this tree.
"""
import collections.abc
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path += [str(ROOT / "tests/mpi"), str(ROOT / "tests/mpi/mpich")]

import sources
from peers import Mpi

WITH_TIMEOUT = ROOT / "tests/with-timeout"
ARCHIVE = r"_(.+)\.orig\.tar\.(?:gz|xz|bz2)"


class BuildError(Exception):
    """The library cannot be built, and why."""


@dataclasses.dataclass(frozen=True)
class Result:
    """What a check said. `problem` is empty if it passed."""

    name: str
    problem: str = ""
    output: str = ""


class Library:
    """A library in its folder below the cache. `package` is Debian's name of its source package."""

    package = ""
    limit_s = 120  # of each program, as tests/with-timeout counts

    def __init__(self, mpi: Mpi, cache: pathlib.Path, jobs: int) -> None:
        self.mpi, self.cache, self.jobs = mpi, cache, jobs
        self.log = cache / "build.log"

    def build(self) -> None:
        """Builds the library and its checks, with the MPI's compilers. Raises BuildError."""
        raise NotImplementedError

    def checks(self, driver: str) -> collections.abc.Iterator[Result]:
        """Runs the library's own checks over a driver."""
        raise NotImplementedError

    @property
    def place(self) -> pathlib.Path:
        """The folder of the unpacked sources, in which the library is built."""
        return next((self.cache / "sources").iterdir())

    def fetch(self) -> str:
        """Fetches the sources if need be, and unpacks them anew. Returns the version. Raises SourcesError."""
        self.cache.mkdir(parents=True, exist_ok=True)
        if not self.archives():
            sources.fetch(self.cache, self.cache / "fetch.log", self.package, self.package, "--tar-only")
        name, version = self.archives()[-1]
        shutil.rmtree(self.cache / "sources", ignore_errors=True)
        with tarfile.open(self.cache / name) as tar:
            tar.extractall(self.cache / "sources", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        self.log.write_text("", encoding="utf-8")
        return version

    def archives(self) -> list[tuple[str, str]]:
        """Returns the fetched archives: file names and versions."""
        found = ((path.name, re.fullmatch(re.escape(self.package) + ARCHIVE, path.name)) for path in
                 self.cache.iterdir())
        return sorted((name, match.group(1)) for name, match in found if match)

    def step(self, *command: object, cwd: pathlib.Path | None = None, **variables: str) -> None:
        """Runs a command of the build; its output is in build.log. Raises BuildError if it fails."""
        words = [*map(str, command)]
        with open(self.log, "a", encoding="utf-8") as log:
            print("$", *words, file=log, flush=True)
            done = subprocess.run(words, cwd=cwd or self.place, stdin=subprocess.DEVNULL, stdout=log,
                                  stderr=subprocess.STDOUT, env=os.environ | variables, check=False)
        if done.returncode != 0:
            raise BuildError(f"{words[0]} ended with exit code {done.returncode}; see {self.log}")

    def limited(self) -> list[str]:
        """Returns the launcher under its time limit; -n RANKS PROGRAM follows."""
        return [str(WITH_TIMEOUT), str(self.limit_s), *self.mpi.launcher]

    def run(self, *command: object, driver: str, cwd: pathlib.Path, **variables: str) -> tuple[int, str]:
        """Runs a command of the checks. Returns its exit code and output."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CANELE_")}
        environment |= {"CANELE_DRIVERS": driver, "OPENBLAS_NUM_THREADS": "1"} | variables
        done = subprocess.run([*map(str, command)], cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", env=environment, check=False)
        return done.returncode, done.stdout

# SPDX-License-Identifier: BSD-3-Clause
"""Builds MPICH's test programs with any MPI's compiler, as their Makefiles do.

MPICH's test library calls functions of intercommunicators and others that an MPI may lack. They become functions that
say so and end the job, in the test library only. A program that calls such a function is not built, and the table of
functions (starpu_glue/mpi/functions) tells that from a fault. Fortran has a test library for each way to use MPI.
"""
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys

import lists

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "starpu_glue/mpi/functions"))

import table

SUFFIXES = {"": ".c", "f77": ".f", "f90": ".f90", "f08": ".f90"}  # of the sources, by language
UTILITIES = ("mtest", "mtest_common", "mtest_thread", "dtypes")
# What MPICH's configure would write to mpitestconf.h.
CONFIGURATION = ("STDC_HEADERS HAVE_STDLIB_H HAVE_STRING_H HAVE_STRINGS_H HAVE_STDIO_H HAVE_UNISTD_H HAVE_STDINT_H "
                 "HAVE_INTTYPES_H HAVE_STDARG_H HAVE_SYS_TIME_H HAVE_SYS_RESOURCE_H HAVE_PTHREAD_H HAVE_GETRUSAGE "
                 "HAVE_USLEEP HAVE_LONG_LONG HAVE_LONG_DOUBLE HAVE_FLOAT__COMPLEX HAVE_DOUBLE__COMPLEX "
                 "HAVE_LONG_DOUBLE__COMPLEX HAVE_INT8_T HAVE_INT16_T HAVE_INT32_T HAVE_INT64_T HAVE_UINT8_T "
                 "HAVE_UINT16_T HAVE_UINT32_T HAVE_UINT64_T HAVE__BOOL HAVE_MACRO_VA_ARGS HAVE_MPI_WIN_CREATE "
                 "USE_STRICT_MPI F77_NAME_LOWER_USCORE "
                 "THREAD_PACKAGE_NAME=THREAD_PACKAGE_POSIX").split()


class BuildError(Exception):
    """MPICH's test library cannot be built."""


def missing_functions() -> set[str]:
    """Returns the names of the standard's functions that Canelé does not have, with those for large counts."""
    names = set()
    for function in (function for chapter in table.read_table() for function in chapter.functions):
        names |= set() if function.exists else {f"MPI_{function.name}"}
        has_none = function.has_large_form or not function.marks & {"large", "large missing"}
        names |= set() if has_none else {f"MPI_{function.name}_c"}
    return names


def stand_ins(text: str, missing: set[str]) -> str:
    """Returns C that defines each missing function that `text` calls: it says so and ends the job."""
    called = sorted(set(re.findall(r"\b(MPI_\w+)\s*\(", text)) & missing)
    known = {f"MPI_{one.name}": one for chapter in table.read_table() for one in chapter.functions}
    lines = ["#include <mpi.h>", "#include <stdio.h>"]
    for name in called:
        arguments = ", ".join(one.declaration() for one in known[name].arguments) or "void"
        lines.append(f"static inline int {name}({arguments}) {{ fprintf(stderr, \"{name}: missing\\n\"); "
                     "return MPI_Abort(MPI_COMM_WORLD, 1); }")
    return "\n".join(lines) + "\n"


class Builder:
    """Builds programs. Objects and programs are kept until compiler or header change."""

    def __init__(self, sources: pathlib.Path, place: pathlib.Path, compiler: list[str], fortran: list[str],
                 missing: set[str]) -> None:
        self.sources, self.place, self.missing = sources, place, missing
        self.fortran = [*fortran, "-O1", "-w"]
        self.compiler = [*compiler, "-O1", "-w", "-pthread", "-DMPITESTCONF_H_INCLUDED",
                         *(f"-D{name}" if "=" in name else f"-D{name}=1" for name in CONFIGURATION),
                         f"-I{sources / 'include'}", "-Werror=implicit-function-declaration"]
        self.variables = {part: self.read_makefile(part) for part in lists.PARTS}

    def read_makefile(self, part: str) -> dict[str, list[str]]:
        """Returns {variable: words} of Makefile.am."""
        path = self.sources / part / "Makefile.am"
        text = path.read_text(encoding="utf-8").replace("\\\n", " ") if path.exists() else ""
        return {name: value.split() for name, value in re.findall(r"^(\w+) *= *(.*)$", text, re.MULTILINE)}

    def files(self, line: lists.Line) -> list[pathlib.Path]:
        """Returns the sources of a program."""
        suffix = SUFFIXES[line.language]
        names = self.variables[line.part].get(f"{line.program}_SOURCES", [line.program + suffix])
        return [self.find(line.part, name).resolve() for name in names if name.endswith((".c", suffix))]

    def find(self, part: str, name: str) -> pathlib.Path:
        """Returns where a source lies: some that Makefiles copy lie in the folders of the languages before."""
        others = [f"{language}/{part[4:]}" for language in ("f90", "f77")] if part[:3] in lists.LANGUAGES else []
        places = [self.sources / folder / name for folder in [part, *others]]
        return next((place for place in places if place.exists()), places[0])

    def start(self) -> None:
        """Forgets what another compiler or header has built, and builds the library."""
        shown = subprocess.run([*self.compiler, "-show"], capture_output=True, text=True, check=True).stdout
        key = hashlib.sha256((shown + " ".join(sorted(self.missing))).encode())
        for directory in re.findall(r"-I(\S+)", shown):
            for header in sorted(pathlib.Path(directory).glob("mpi*.h")):
                key.update(header.read_bytes())
        known = self.place / "key"
        if not known.exists() or known.read_text(encoding="utf-8") != key.hexdigest():
            shutil.rmtree(self.place, ignore_errors=True)
            self.place.mkdir(parents=True)
            text = "".join((self.sources / f"util/{name}.c").read_text(encoding="utf-8") for name in UTILITIES)
            (self.place / "missing.h").write_text(stand_ins(text, self.missing), encoding="utf-8")
            for name in UTILITIES:
                problem = self.compile(self.place / f"{name}.o", ["-include", str(self.place / "missing.h"), "-c",
                                                                  str(self.sources / f"util/{name}.c")])
                if problem:
                    raise BuildError(f"MPICH's test library cannot be built: {problem}")
            if shutil.which("gfortran"):
                self.build_libraries_for_fortran()
            known.write_text(key.hexdigest(), encoding="utf-8")

    def build_libraries_for_fortran(self) -> None:
        """Builds the test library of each language. Modules lie beside it."""
        for language in lists.LANGUAGES:
            place = self.place / language
            place.mkdir()
            source = self.sources / f"util/mtest_{language}{SUFFIXES[language]}"
            problem = self.compile(place / "mtest.o", [f"-J{place}", "-c", str(source)], self.fortran)
            if problem:
                raise BuildError(f"MPICH's test library in {language} cannot be built: {problem}")

    def compile(self, made: pathlib.Path, words: list[str], compiler: list[str] | None = None) -> str:
        result = subprocess.run([*(compiler or self.compiler), *words, "-o", str(made)], capture_output=True, text=True,
                                check=False)
        return "" if result.returncode == 0 else (result.stderr.strip() or "the compiler failed")

    def program(self, line: lists.Line) -> pathlib.Path:
        return self.place / line.part / line.program

    def build(self, line: lists.Line) -> str:
        """Builds the program of a line. Returns what the compiler says if it cannot be built."""
        program = self.program(line)
        if program.exists():
            return ""
        program.parent.mkdir(parents=True, exist_ok=True)
        variables = self.variables[line.part]
        flags = [word for name in (f"{line.program}_CPPFLAGS", f"{line.program}_CFLAGS")
                 for word in variables.get(name, []) if word[:2] == "-D"]
        objects = [str(self.place / f"{name}.o") for name in UTILITIES]
        if any(path.suffix != ".c" for path in self.files(line)):
            return self.build_with_fortran(line, program, flags)
        return self.compile(program, [*flags, *map(str, self.files(line)), *objects, "-lm"])

    def build_with_fortran(self, line: lists.Line, program: pathlib.Path, flags: list[str]) -> str:
        """Builds a program in Fortran, which may have parts in C. Its modules lie beside it."""
        modules = program.with_suffix(".modules")
        modules.mkdir(exist_ok=True)
        library = self.place / line.language
        words = [f"-J{modules}", f"-I{library}", f"-I{self.sources / line.part}",
                 *(f"-I{self.sources / 'f77' / folder}" for folder in lists.FORTRAN)]
        for path in self.files(line):
            if path.suffix == ".c":
                words.append(str(modules / f"{path.stem}.o"))
                problem = self.compile(pathlib.Path(words[-1]), [*flags, "-c", str(path)])
                if problem:
                    return problem
        # A module comes before what uses it: Makefiles name the program first.
        sources = [str(path) for path in self.files(line) if path.suffix != ".c"]
        return self.compile(program, [*words, *reversed(sources), str(library / "mtest.o")], self.fortran)

    def lacks(self, line: lists.Line) -> list[str]:
        """Returns the functions that the program of a line calls and Canelé does not have."""
        text = "".join(path.read_text(encoding="utf-8", errors="replace") for path in self.files(line))
        called = set(re.findall(r"\b(MPI_\w+)\s*\(", text, re.IGNORECASE))
        if line.language:  # Fortran does not tell small letters from capitals
            lower = {name.lower() for name in called}
            if "mpi_count_kind" in text.lower():
                lower |= {f"{name}_c" for name in lower}
            return sorted(name for name in self.missing if name.lower() in lower)
        return sorted(called & self.missing)

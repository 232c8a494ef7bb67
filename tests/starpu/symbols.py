#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Does our library have every communication symbol that StarPU uses: nm_*, piom_*, padico_*, puk_*, MPI_*, PMPI_*?

Usage: symbols.py --library LIB... [--starpu DIR]... [--list FILE]... [--write FILE]
    --library   a shared library of ours; a symbol that one of them exports counts as present
    --starpu    a build tree of StarPU: the symbols that its library, tests and examples leave undefined are needed
    --list      a file of names that are needed; with --starpu, the file must name what that build needs, and no other
    --write     writes the needed names to a file, for --list

Run by ctest (the lists, against the library just built), and by tests/run.sh (stage starpu: the build, against its
list). A program that the linker has tied to a symbol would not exist without it. But a library may leave a symbol
undefined that no program of the suite reaches. StarPU 1.4 is not built in every run, so its names are kept in a list.
"""
import argparse
import pathlib
import re
import subprocess
import sys

OURS = re.compile(r"(nm|piom|padico|puk|tbx)_\w+|P?MPIX?_\w+|mpi_\w+_")
ELF = b"\x7fELF"


def symbols(path, option):
    """Returns the names of the dynamic symbols: --undefined-only or --defined-only."""
    command = ["nm", "-D", "--format=posix", option, str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return {line.split()[0].split("@")[0] for line in result.stdout.splitlines()}


def is_elf(path):
    if not path.is_file() or path.suffix in (".o", ".lo", ".a"):
        return False
    with path.open("rb") as file:
        return file.read(4) == ELF


def wanted_by(build):
    """Returns the symbols that the MPI side of a build of StarPU leaves undefined, without those that it defines
    itself.
    """
    files = [path for path in sorted((build / "mpi").rglob("*")) if is_elf(path) and not path.is_symlink()]
    if not any("libstarpumpi" in path.name for path in files):
        raise SystemExit(f"error: {build} is no build of StarPU: there is no libstarpumpi below its mpi directory")
    own = set().union(*(symbols(path, "--defined-only") for path in files if "libstarpumpi" in path.name))
    wanted = set().union(*(symbols(path, "--undefined-only") for path in files)) - own
    return {name for name in wanted if OURS.fullmatch(name)}, len(files)


def read_list(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    return {line.strip() for line in lines if line.strip() and not line.startswith("#")}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--library", type=pathlib.Path, nargs="+", required=True)
    parser.add_argument("--starpu", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--list", type=pathlib.Path, action="append", default=[], dest="lists")
    parser.add_argument("--write", type=pathlib.Path)
    options = parser.parse_args()
    exported = set().union(*(symbols(library, "--defined-only") for library in options.library))
    failed = 0
    built = set()
    for build in options.starpu:
        names, files = wanted_by(build)
        print(f"{build}: {len(names)} symbols in {files} files")
        built |= names
    listed = set().union(*(read_list(path) for path in options.lists))
    if options.starpu and options.lists and built != listed:
        print(f"FAIL: the list lacks {sorted(built - listed)}, and names {sorted(listed - built)}, which is not wanted")
        failed = 1
    wanted = built | listed
    missing = sorted(wanted - exported)
    if not wanted or missing:
        print(f"FAIL: {len(wanted)} symbols are wanted, and we have not: {' '.join(missing) or '(nothing was wanted)'}")
        failed = 1
    else:
        print(f"all {len(wanted)} symbols are there")
    if options.write:
        options.write.write_text("".join(f"{name}\n" for name in sorted(wanted)), encoding="utf-8")
    return failed


if __name__ == "__main__":
    sys.exit(main())

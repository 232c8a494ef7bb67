#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compiles what the comparisons need, for a machine without a compiler: every program for every MPI found here.

Started by `canele-perf prebuild --work DIR`. The programs of this directory then take them from there, by the same
--work DIR, and compile nothing. DIR also gets the commit of the sources, for the results' description of the machine,
because that machine has no repository. Ours, the other MPIs and their launchers have to be installed there, at the
paths that they have here.
"""

import argparse
import pathlib
import sys

import command_line
import machine
import programs
import starpu_bench


def parse_arguments():
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="canele-perf prebuild", description="Compiles the programs of the other "
                                     "libraries into --work DIR. compare and its kind take them from there.")
    command_line.add_places(parser)
    parser.add_argument("--mpis", type=command_line.names("MPI", programs.COMPILERS), default=list(programs.COMPILERS),
                        help=f"of {command_line.listed(programs.COMPILERS)} (default: all)")
    parser.add_argument("--programs", type=command_line.names("program", programs.sources()),
                        default=list(programs.sources()), help="default: all")
    options = parser.parse_args()
    if not options.work:
        parser.error("expected: --work DIR, the directory that gets the programs")
    return options


def build_starpu(options):
    """Compiles StarPU's sendrecv_bench for each StarPU here. Yields (name, program or None, reason)."""
    for name, tree in starpu_bench.TREES.items():
        found, why = starpu_bench.prepare(options, name, tree)
        yield f"sendrecv_bench.{name}", found or None, why


def build_all(options):
    """Compiles. Yields (name, program or None, reason)."""
    libraries = programs.find_libraries(options)
    for mpi in options.mpis:
        for name in options.programs:
            yield f"{name}.{mpi}", *programs.build(options, libraries[mpi], name)
    yield from build_starpu(options)


def main():
    """Returns exit code 1 if a compilation failed, or nothing was compiled."""
    options = parse_arguments()
    there, failed = 0, 0
    with command_line.work_directory(options):
        for name, program, why in build_all(options):
            print(f"{name}: " + ("ready" if program else f"left out: {why}"), flush=True)
            there += bool(program)
            failed += "failed:" in why
        if there:
            (pathlib.Path(options.work) / machine.COMMIT).write_text(machine.commit() + "\n", encoding="ascii")
    return 1 if failed or not there else 0


if __name__ == "__main__":
    sys.exit(command_line.run(main))

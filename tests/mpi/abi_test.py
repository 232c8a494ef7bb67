# SPDX-License-Identifier: BSD-3-Clause
"""The standard ABI: what libmpi_abi exports, and programs that are built for it by canele-mpicc -mpi-abi."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(os.environ["CANELE_TEST_BIN"])
LIB = pathlib.Path(os.environ["CANELE_TEST_BUILD"]) / "lib"
SOURCE = pathlib.Path(os.environ["CANELE_TEST_SOURCE"])
sys.path.insert(0, str(SOURCE / "starpu_glue/mpi/functions"))

import standard_abi
import table

RUN = BIN / "canele-run"
SANITIZED = "-fsanitize" in os.environ.get("CANELE_TEST_FLAGS", "")
# Counts the sends of a program, as tools do.
TOOL = """
#include <mpi.h>
#include <stdio.h>
static int sends;
int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  ++sends;
  return PMPI_Send(buffer, count, type, to, tag, comm);
}
int MPI_Finalize(void) {
  printf("%d sends\\n", sends);
  fflush(stdout);
  return PMPI_Finalize();
}
"""
PROGRAM = """
#include <mpi.h>
int main(int argc, char **argv) {
  int rank, value = 3;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return MPI_Finalize();
}
"""
# A program of the ABI, in which another part uses the library under its own name, as StarPU does.
TWO_NAMES = """
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
  int runs = 0;
  int (*initialized)(int *);
  void *other = dlopen("libcanele_mpi.so.1", RTLD_NOW | RTLD_LOCAL);
  MPI_Init(&argc, &argv);
  if (other == NULL) return puts(dlerror()), 1;
  *(void **)&initialized = dlsym(other, "MPI_Initialized");
  if (initialized != MPI_Initialized || initialized(&runs) != 0 || !runs) return puts("two copies"), 1;
  return MPI_Finalize();
}
"""
# What an extension of Python does: it names every function, and is loaded with all its names resolved.
BY_NAME = """
import ctypes, os, sys
library = ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW | os.RTLD_LOCAL)
flag = ctypes.c_int(7)
assert library.MPI_Initialized(ctypes.byref(flag)) == 0 and flag.value == 0
for name in sys.argv[2:]:
    getattr(library, "MPI_" + name), getattr(library, "PMPI_" + name)
version = [ctypes.c_int(), ctypes.c_int(7)]
assert library.MPI_Abi_get_version(*map(ctypes.byref, version)) == 0
print(version[0].value, version[1].value)
"""


def run(*command, **variables):
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=500, check=False,
                          env={**os.environ, **variables})


def functions():
    return standard_abi.functions_of(table.read_table())


def names():
    return [name for one in functions() for name in standard_abi.names_of(one)]


class Library(unittest.TestCase):
    def test_names(self):
        found = {}
        for line in run("nm", "-D", "--defined-only", LIB / "libmpi_abi.so.1").stdout.splitlines():
            _, kind, name = line.split()[-3:]
            found[name] = kind
        expected = {"MPI_" + name: "W" for name in names()} | {"PMPI_" + name: "T" for name in names()}
        self.assertEqual(found, expected, "no symbol has a version: other MPIs have none")
        self.assertGreaterEqual(len(names()), 664)

    def test_it_has_no_types_of_fortran_and_no_names_of_mpi_1(self):
        for name in ("Comm_c2f", "Type_f2c", "Status_c2f", "Type_struct", "Errhandler_set"):
            self.assertNotIn(name, names())
        for name in ("Comm_toint", "Attr_get", "Wtime", "Send_c", "File_open", "T_init_thread"):
            self.assertIn(name, names())

    def test_its_name_and_what_it_needs(self):
        text = run("readelf", "-d", LIB / "libmpi_abi.so").stdout
        self.assertIn("soname: [libmpi_abi.so.1]", text)
        self.assertIn("Filter library: [libcanele_mpi.so.1]", text)
        self.assertEqual((LIB / "libmpi_abi.so.0").resolve(), (LIB / "libmpi_abi.so.1").resolve())

    def test_every_name_is_found_at_run_time(self):
        if SANITIZED:
            self.skipTest("the interpreter is not instrumented")
        result = run(sys.executable, "-c", BY_NAME, LIB / "libmpi_abi.so.1", *names())
        self.assertEqual((result.returncode, result.stdout.split()), (0, ["1", "0"]), result.stderr)


class Programs(unittest.TestCase):
    def setUp(self):
        if SANITIZED:
            self.skipTest("the wrappers do not know the sanitizers")
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)

    def build(self, name, text, *options, compiler="canele-mpicc"):
        source = self.place / f"{name}.c"
        source.write_text(text, encoding="utf-8")
        result = run(BIN / compiler, "-mpi-abi", "-Wall", "-Werror", source, "-o", self.place / name, *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return self.place / name

    def test_what_a_program_needs(self):
        needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", self.build("program", PROGRAM)).stdout)
        self.assertEqual([name for name in needed if not name.startswith("libc.")], ["libmpi_abi.so.1"])

    def test_the_wrapper_says_so(self):
        shown = run(BIN / "canele-mpicc", "-mpi-abi", "-show", "a.c").stdout
        self.assertRegex(shown, r"^cc -I\S+/standard_abi a.c -L\S+ -Wl,-rpath,\S+ -lmpi_abi$")
        self.assertEqual(run(LIB / "canele/bin/mpicc_abi", "-show", "a.c").stdout, shown)
        self.assertEqual(run(BIN / "canele-mpicxx", "-mpi-abi", "--showme:libs").stdout.strip(), "mpi_abi")
        self.assertEqual(run(BIN / "canele-mpifort", "-mpi-abi", "-show").returncode, 2)

    def test_a_tool_counts_calls(self):
        """It replaces functions before the library, and calls them by their other names."""
        tool = self.build("tool.so", TOOL, "-shared", "-fPIC")
        for compiler in ("canele-mpicc", "canele-mpicxx"):
            program = self.build("program", PROGRAM, compiler=compiler)
            result = run(RUN, "-n", 2, "env", f"LD_PRELOAD={tool}", program)
            self.assertEqual((result.returncode, sorted(result.stdout.split("\n"))), (0, ["", "0 sends", "1 sends"]),
                             result.stderr)

    def test_one_library_under_two_names(self):
        program = self.build("two", TWO_NAMES, "-ldl")
        result = run(program, LD_LIBRARY_PATH=str(LIB))
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_a_missing_function_ends_the_job(self):
        result = run(RUN, "-n", 2, BIN / "mpi_abi_abi", "missing")
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"MPI_Open_port failed: MPI_ERR_UNSUPPORTED_OPERATION.*MPI_Open_port does not")

    def test_the_header_has_nothing_else(self):
        """No types of Fortran, no names of Canelé, no functions that MPI-3.0 removed."""
        source = self.place / "empty.c"
        source.write_text("#include <mpi.h>\n", encoding="utf-8")
        text = run(BIN / "canele-mpicc", "-mpi-abi", "-E", "-dD", source).stdout
        declared = set(re.findall(r"\bPMPI_(\w+)\(", re.sub(r"#define.*", "", text)))
        self.assertEqual(declared, set(names()))
        self.assertNotRegex(text, r"MPI_Fint|MPI_F08_status|MAD_MPI|define CANELE_MPI ")
        self.assertRegex(text, r"define MPI_ABI_VERSION 1\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[1:], verbosity=2)

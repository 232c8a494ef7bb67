# SPDX-License-Identifier: BSD-3-Clause
"""Runs programs that must end badly, the wrappers, and what the library exports: tests/mpi's other half.

A program that must die also has no way to end well: it waits for a message that no rank sends.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BIN = os.environ["CANELE_TEST_BIN"]
BUILD = os.environ["CANELE_TEST_BUILD"]
SOURCE = os.environ["CANELE_TEST_SOURCE"]
LIB = os.path.join(BUILD, "lib")
sys.path.insert(0, os.path.join(SOURCE, "starpu_glue/mpi/functions"))

import fortran
import fortran_modules
import table  # what the library has

RUN = os.path.join(BIN, "canele-run")
SANITIZED = "-fsanitize" in os.environ.get("CANELE_TEST_FLAGS", "")


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=500, check=False, **more)


class Deaths(unittest.TestCase):
    """Fatal errors: a message that names the rank and the fault, and a job that ends."""

    def die(self, how, processes=3):
        return run(RUN, "-n", str(processes), os.path.join(BIN, "mpi_dies"), how)

    def test_wrong_rank(self):
        result = self.die("wrong-rank")
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"rank 0: MPI_Send failed: MPI_ERR_RANK.*destination is 1000.*ranks 0 to 2")
        self.assertIn("last words of rank 0\n", result.stdout)

    def test_abort(self):
        result = self.die("abort")
        self.assertEqual(result.returncode, 7, result.stderr)
        self.assertRegex(result.stderr, "rank 2: MPI_Abort was called with code 7")
        self.assertIn("last words of rank 2\n", result.stdout)

    def test_abort_while_a_stream_is_read(self):
        result = self.die("abort-locked")
        self.assertEqual(result.returncode, 7, result.stderr)

    @unittest.skipIf(SANITIZED or not shutil.which("gfortran"), "no gfortran, or sanitized libraries")
    def test_abort_in_fortran(self):
        with tempfile.TemporaryDirectory() as directory:
            source, program = os.path.join(directory, "a.f90"), os.path.join(directory, "a")
            with open(source, "w", encoding="utf-8") as file:
                file.write("program a\n  include 'mpif.h'\n  integer ierr\n  call mpi_init(ierr)\n"
                           "  write(*, *) 'last words'\n  call mpi_abort(MPI_COMM_WORLD, 7, ierr)\nend program\n")
            result = run(os.path.join(BIN, "canele-mpifort"), source, "-o", program)
            self.assertEqual(result.returncode, 0, result.stderr)
            result = run(RUN, "-n", "1", program)
        self.assertEqual((result.returncode, result.stdout), (7, " last words\n"))

    def test_an_error_handler_that_aborts(self):
        result = self.die("errors-abort")
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"rank 1: MPI_Comm_call_errhandler failed: MPI_ERR_TAG")

    def test_before_init(self):
        result = self.die("before-init")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("MPI_Comm_rank was called before MPI_Init", result.stderr)

    def test_after_finalize(self):
        result = self.die("after-finalize")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("MPI_Comm_size was called after MPI_Finalize", result.stderr)


    def test_a_broadcast_of_unequal_lengths(self):
        result = self.die("unequal")
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"rank [12]: MPI_Wait failed: MPI_ERR_TRUNCATE.*rank \d of MPI_COMM_WORLD")

    def test_a_starpu_message_too_long(self):
        result = run(RUN, "-n", "2", os.path.join(BIN, "mpi_nmad"), "truncated")
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"a StarPU receive from rank \d \(tag 8, 100 bytes\) failed: .*longer")


class Survivors(unittest.TestCase):
    """A rank is killed: the others get errors for what needs it, and do the rest."""

    def test_any_victim(self):
        for driver in ("shm", "tcp"):
            for victim in range(4):
                with self.subTest(driver=driver, victim=victim):
                    result = run(RUN, "--keep-going", "-n", "4", os.path.join(BIN, "mpi_survivors"), str(victim),
                                 env={**os.environ, "CANELE_DRIVERS": driver})
                    survivors = sorted(re.findall(r"rank (\d) has survived", result.stdout))
                    self.assertEqual(survivors, [str(rank) for rank in range(4) if rank != victim], result.stderr)


class Apart(unittest.TestCase):
    """Ranks that cannot map memory of each other, as on several hosts: each has its own numbers of processes."""

    UNSHARE = ("unshare", "--user", "--map-root-user", "--fork", "--pid", "--mount-proc")

    def run_apart(self, program, processes=2, **variables):
        if SANITIZED:
            self.skipTest("the sanitizers need the outer /proc")
        if not shutil.which("unshare") or run(*self.UNSHARE, "true").returncode != 0:
            self.skipTest("this machine has no namespaces for it")
        return run(RUN, "-n", str(processes), *self.UNSHARE, os.path.join(BIN, program),
                   env={**os.environ, "CANELE_DRIVERS": "tcp", **variables})

    def test_windows(self):
        """Locks, too, are taken by packets here."""
        for program in ("mpi_windows", "mpi_one_sided", "mpi_accumulates", "mpi_active_target", "mpi_dynamic_windows"):
            result = self.run_apart(program)
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_ranks_that_share_no_memory_are_split(self):
        result = self.run_apart("mpi_communicators", CANELE_TEST_APART="1")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_they_cannot_share_memory(self):
        result = self.run_apart("mpi_shared_windows")
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr, "MPI_Win_allocate_shared failed: MPI_ERR_RMA_SHARED.*expected: ranks of one")


class Settings(unittest.TestCase):
    """NewMadeleine's variables; the user's own values win."""

    def strategy(self, **variables):
        environment = {**os.environ, "CANELE_VERBOSE": "2", **variables}
        result = run(os.path.join(BIN, "mpi_environment"), "1", env=environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return re.search(r"strategy (\w+)", result.stderr).group(1), result.stderr

    def test_starpu_without_a_worker(self):
        """No thread would make progress: an error at the start."""
        environment = {**os.environ, "PIOM_DEDICATED": "1", "CANELE_WORKER": "none"}
        result = run(os.path.join(BIN, "mpi_environment"), "1", env=environment)
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr, "CANELE_WORKER=none.*expected: CANELE_WORKER unset, bound or auto")

    def test_strategy(self):
        fallback, _ = self.strategy()
        for name, ours in (("prio", "priority"), ("aggreg", "aggregate"), ("default", "fifo")):
            self.assertEqual(self.strategy(NMAD_STRATEGY=name)[0], ours)
        self.assertEqual(self.strategy(NMAD_STRATEGY="prio", CANELE_STRATEGY="fifo")[0], "fifo")
        chosen, text = self.strategy(NMAD_STRATEGY="nonsense")
        self.assertEqual(chosen, fallback)
        self.assertRegex(text, "NMAD_STRATEGY=nonsense is unknown.*prio, aggreg, default")


class Profile(unittest.TestCase):
    """CANELE_PROFILE: calls, classes, and times of which none is counted twice."""

    RANKS = 2

    def profiles(self, **variables):
        with tempfile.TemporaryDirectory() as directory:
            result = run(RUN, "-n", str(self.RANKS), os.path.join(BIN, "mpi_profile"),
                         env={**os.environ, "CANELE_PROFILE": f"{directory}/profile-%r.json", **variables})
            self.assertEqual(result.returncode, 0, result.stderr)
            found = []
            for rank in range(self.RANKS):
                with open(f"{directory}/profile-{rank}.json", encoding="utf-8") as file:
                    found.append(json.load(file))
            return found

    def test_counts(self):
        for rank, profile in enumerate(self.profiles()):
            self.assertEqual((profile["canele_profile"], profile["rank"], profile["ranks"]), (1, rank, self.RANKS))
            counts = {one["name"]: one["count"] for one in profile["functions"]}
            self.assertEqual(counts, {
                "MPI_Comm_rank": 1, "MPI_Comm_size": 1, "MPI_Irecv": 5, "MPI_Isend": 5, "MPI_Waitall": 5, "MPI_Test": 7,
                "MPI_Op_create": 1, "MPI_Reduce_local": 1, "MPI_Type_size": 3, "MPI_Op_free": 1, "MPI_Sendrecv": 4,
                "MPI_Barrier": 1})
            classes = {name: one["count"] for name, one in profile["classes"].items()}
            self.assertEqual(classes, {"blocking": 5, "init": 10, "test": 7, "wait": 5, "other": 8})
            between = profile["between_call_and_wait"]
            self.assertEqual((between["count"], between["by_other_threads"]), (10, 0))
            self.assertGreater(between["min_s"], 0)

    def test_times(self):
        """The times of a thread add up to its time in MPI, which is no more than the wall time."""
        for profile in self.profiles():
            functions, classes = profile["functions"], profile["classes"]
            main, others = [[one["mpi_s"] for one in profile["threads"] if one["main"] == which] for which in (1, 0)]
            self.assertEqual((len(main), len(others), profile["threads_not_counted"]), (1, 1, 0))
            self.assertEqual(main[0], profile["mpi_s"])
            self.assertLessEqual(max(main + others), profile["wall_s"])
            total = sum(one["total_s"] for one in functions)
            self.assertAlmostEqual(total, sum(main + others), delta=1e-7)
            self.assertAlmostEqual(total, sum(one["total_s"] for one in classes.values()), delta=1e-7)
            self.assertAlmostEqual(profile["mpi_s"] + profile["application_s"], profile["wall_s"], delta=1e-7)
            self.assertLessEqual(profile["overlappable_s"], profile["application_s"])
            self.assertGreaterEqual(profile["overlappable_s"], profile["between_call_and_wait"]["max_s"])
            for one in functions:
                self.assertLessEqual(one["min_s"] * one["count"], one["total_s"] + 1e-7, one)
                self.assertGreaterEqual(one["max_s"] * one["count"], one["total_s"] - 1e-7, one)

    def test_a_file_that_cannot_be_written_is_told(self):
        result = run(os.path.join(BIN, "mpi_environment"), "1",
                     env={**os.environ, "CANELE_PROFILE": "/no/such/directory/profile.json"})
        self.assertNotEqual(result.returncode, 0, "it is found out at the start, not after hours")
        self.assertIn('CANELE_PROFILE="/no/such/directory/profile.json": there is no directory', result.stderr)


class Wrappers(unittest.TestCase):
    """What StarPU's configure and CMake's FindMPI ask the wrappers."""

    def ask(self, name, *arguments):
        result = run(os.path.join(BIN, name), *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.strip()

    def test_questions(self):
        link = self.ask("canele-mpicc", "--showme:link")
        self.assertRegex(link, rf"^-L{LIB} -Wl,-rpath,{LIB} -lcanele_mpi -lcanele$")
        self.assertEqual(link, self.ask("canele-mpicc", "-showme:link"))
        self.assertRegex(self.ask("canele-mpicc", "--showme:compile"), r"^-I\S+ -I\S+$")
        self.assertEqual(self.ask("canele-mpicc", "-link_info").split(" ", 1)[1], link)
        directories = self.ask("canele-mpicxx", "--showme:incdirs").split()
        for directory, header in zip(directories, ("mpi.h", "canele/canele.h")):
            self.assertTrue(os.path.exists(os.path.join(directory, header)))
        self.assertEqual(self.ask("canele-mpicc", "--showme:libs"), "canele_mpi canele")
        self.assertIn("canele-mpifort", self.ask("canele-mpifort", "--showme:version"))
        shown = self.ask("canele-mpicc", "--showme", "a.c")
        self.assertNotIn("pioman", shown)
        self.assertIn("a.c", shown)
        self.assertNotIn("-lcanele_mpi", self.ask("canele-mpicc", "-show", "-c", "a.c"))
        self.assertNotEqual(run(os.path.join(BIN, "canele-mpicc"), "--showme:nonsense").returncode, 0)

    def test_compile_and_run(self):
        for wrapper, name, variable in (("mpicc", "a.c", "CANELE_CC"), ("mpicxx", "a.cpp", "CANELE_CXX")):
            with tempfile.TemporaryDirectory() as directory:
                program = os.path.join(directory, "a b")
                source = os.path.join(directory, name)
                with open(source, "w", encoding="utf-8") as file:
                    file.write("#include <mpi.h>\n")
                    file.write("int main(int c, char **v) { MPI_Init(&c, &v); return MPI_Finalize(); }\n")
                plain = os.path.join(LIB, "canele", "bin", wrapper)
                result = run(plain, source, "-o", program)
                self.assertEqual(result.returncode, 0, result.stderr)
                if not SANITIZED:
                    self.assertEqual(run(RUN, "-n", "2", program).returncode, 0)
                result = run(plain, "-c", source, "-o", program + ".o", env={**os.environ, variable: "false"})
                self.assertNotEqual(result.returncode, 0)  # the variable names the compiler

    def test_who_compiles(self):
        """The option wins, then our variable, then those of the other two, whose build scripts set them."""
        ask = {}
        for name, option, suffix in (("mpicc", "-cc", "CC"), ("mpicxx", "-cxx", "CXX"), ("mpif77", "-fc", "FC")):
            plain = os.path.join(LIB, "canele", "bin", name)
            for variables, arguments, expected in (
                    ({}, [option + "=mine"], "mine"), ({"MPICH_": "its"}, [], "its"), ({"OMPI_": "its"}, [], "its"),
                    ({"MPICH_": "its", "CANELE_": "ours"}, [], "ours"),
                    ({"CANELE_": "ours"}, [option + "=mine"], "mine")):
                ask = {prefix + suffix: value for prefix, value in variables.items()}
                result = run(plain, *arguments, "--showme:command", env={**os.environ, **ask})
                self.assertEqual(result.stdout.strip(), expected, (name, variables, arguments))

    def test_help_and_echo(self):
        for name in ("canele-mpicc", "canele-mpicxx", "canele-mpifort"):
            self.assertTrue(self.ask(name, "-help").startswith("usage: " + name))
        self.assertRegex(self.ask("canele-mpicc", "-echo", "-cc=true", "-c", "a.c"), r"^true -I\S+ -I\S+ -c a.c$")

    def test_mpi_and_native_calls_in_one_program(self):
        with tempfile.TemporaryDirectory() as directory:
            source = os.path.join(directory, "a.c")
            with open(source, "w", encoding="utf-8") as file:
                file.write("#include <canele/canele.h>\n#include <mpi.h>\nint main(int c, char **v) {\n"
                           "  MPI_Init(&c, &v);\n  MPI_Finalize();\n  return canele_version() == NULL;\n}\n")
            result = run(os.path.join(BIN, "canele-mpicc"), source, "-o", os.path.join(directory, "a"))
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_missing_function_is_an_error(self):
        with tempfile.TemporaryDirectory() as directory:
            source = os.path.join(directory, "a.c")
            with open(source, "w", encoding="utf-8") as file:
                file.write("#include <mpi.h>\nint MPI_Comm_spawn(void);\nint main(void) { return MPI_Comm_spawn(); }\n")
            result = run(os.path.join(BIN, "canele-mpicc"), source, "-o", os.path.join(directory, "a"))
            self.assertNotEqual(result.returncode, 0)
            self.assertIn("MPI_Comm_spawn", result.stderr)


class Nulls(unittest.TestCase):
    """nulls.c and its siblings give NULL for each argument of mpi.h that points to a result or an array."""

    def test_all_are_there(self):
        text = ""
        for name in ("nulls.c", "nulls_persistent.c", "nulls_windows.c"):
            with open(os.path.join(SOURCE, "tests/mpi", name), encoding="utf-8") as file:
                text += file.read()
        refused = re.findall(r"(?:REFUSED|CHECK_EQ)\(\s*MPI_(\w+)\(([^;]*)\);", text)
        functions = table.existing(table.read_table())
        self.assertGreater(len(functions), 100)
        for function in functions:
            if function.chapter == "tools":  # NULL is allowed for many outputs: tools.c
                continue
            pointers = [one.name for one in function.arguments if must_be_given(one)]
            if function.call_class == "init" and "request" in pointers:
                pointers = ["request"]  # the function for single requests checks the arrays, too
            given = [name for name, rest in refused if name == function.name and "NULL" in rest]
            if function.name != "Init_thread":  # before MPI runs
                self.assertGreaterEqual(len(given), len(pointers), (function.name, pointers))


def must_be_given(argument):
    """Returns whether NULL is an error for this argument: all pointers but buffers, statuses, and functions."""
    if argument.is_function or argument.kind in ("choice", "argument_count", "arguments", "program_arguments", "state",
                                                 "optional_text"):
        return False
    if argument.kind == "status":
        return argument.direction != "out"
    return argument.is_pointer and not (argument.kind == "attribute" and argument.direction == "in")


class Symbols(unittest.TestCase):
    """The library exports MPI_, PMPI_, MPIX_, canele_mpi_, nm_, piom_, padico_, and Fortran's mpi_..._ names only."""

    def test_exports(self):
        lines = run("nm", "-D", "--defined-only", os.path.join(LIB, "libcanele_mpi.so")).stdout.splitlines()
        names = {}
        for line in lines:
            _, kind, name = line.split()[-3:]
            if kind != "A":
                names[name.split("@")[0]] = kind
        odd = [name for name in names if not re.match(r"^(P?MPIX?_|canele_mpi_|nm_|piom_|padico_|p?mpi_)", name)]
        self.assertEqual(odd, [])
        functions = table.existing(table.read_table())
        declared = [one.name for one in functions] + [one.name + "_c" for one in functions if one.has_large_form]
        self.assertGreater(len(declared), 80)
        for name in declared:
            self.assertEqual(names.get("PMPI_" + name), "T", name)
            self.assertEqual(names.get("MPI_" + name), "W", name)
        in_c = {name for name in names if re.match(r"MPI_\w*[a-z]", name)}  # others are Fortran's: MPI_SEND
        self.assertEqual(in_c, {"MPI_" + name for name in declared})
        for name in (one.name for one in functions if fortran.in_fortran(one)):
            for form in ("mpi_{}", "mpi_{}_", "mpi_{}__", "pmpi_{}", "pmpi_{}_", "pmpi_{}__"):
                self.assertIn(form.format(name.lower()), names)
            self.assertLessEqual({f"MPI_{name.upper()}", f"PMPI_{name.upper()}"}, set(names))
        self.assertEqual(self.procedures_of_modules() - set(names), set())

    def procedures_of_modules(self):
        """The symbols of all procedures that the Fortran modules declare."""
        header = "".join(pathlib.Path(SOURCE, f"starpu_glue/mpi/include/{name}.h").read_text(encoding="utf-8")
                         for name in ("mpi", "mpi_constants"))
        text = fortran_modules.modules(table.read_table(), header)
        text = re.sub(r"^ *abstract interface$.*?^ *end interface$", "", text, flags=re.MULTILINE | re.DOTALL)
        head = r"^ *(?:pure elemental )?(?:subroutine|function) (\w+)\(([^()]*\) bind)?"
        found = re.findall(head, text, re.MULTILINE)
        self.assertGreater(len(found), 1000)
        return {name.lower() + ("" if bind else "_") for name, bind in found}

    def test_load_and_unload_without_mpi(self):
        code = (
            "import _ctypes, ctypes, sys\n"
            "for _ in range(5):\n"
            "    library = ctypes.CDLL(sys.argv[1])\n"
            "    flag = ctypes.c_int(7)\n"
            "    assert library.MPI_Initialized(ctypes.byref(flag)) == 0 and flag.value == 0\n"
            "    assert library.piom_ltask_schedule(1) != 0\n"
            "    _ctypes.dlclose(library._handle)\n"
        )
        if SANITIZED:
            self.skipTest("the interpreter is not instrumented")
        result = run(sys.executable, "-c", code, os.path.join(LIB, "libcanele_mpi.so"))
        self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[1:], verbosity=2)

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests the install as users meet it: pkg-config, find_package, a moved prefix, exported symbols, Open MPI beside us,
the pages README.md and docs/start.md, followed as they stand.

Usage: package_test.py [--build DIRECTORY] [unittest arguments]; ctest gives the directory by CANELE_TEST_BUILD.
The prefix is moved after the install and before the programs are built. So an absolute path that leaks into
canele.pc or CaneleConfig.cmake is found.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from page_blocks import programs_of, steps_of

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("CANELE_TEST_BUILD", ROOT / "build/release"))
WRAPPER = ROOT / "tests/with-timeout"
# What each library may export. `mpi_`, `pmpi_`: Fortran. The last alternative is the name of the symbol version.
EXPORTS = {
    "libcanele.so": r"canele_\w+|CANELE_\d+(\.\d+)*",
    "libmpi_abi.so": r"P?MPI_\w+",
    "libcanele_mpi.so": r"P?MPIX?_\w+|canele_mpi_\w+|p?mpi_\w+|nm_\w+|piom_\w+|padico_\w+|[A-Z]+(_[A-Z]+)*_\d+(\.\d+)*",
}


def run(*command, environment=None, directory=None, limit=120):
    """Runs a command with a limit; shows its output if it fails."""
    result = subprocess.run(
        [str(WRAPPER), str(limit), *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
        cwd=directory,
        env={**os.environ, **(environment or {})},
    )
    if result.returncode != 0:
        raise AssertionError(
            f"{' '.join(map(str, command))}: exit code {result.returncode}\n{result.stdout}{result.stderr}"
        )
    return result.stdout


class Install:
    """One install of the build, moved to another place afterwards."""

    def __init__(self):
        self.place = tempfile.TemporaryDirectory(prefix="canele-package-")
        first = pathlib.Path(self.place.name) / "first"
        self.prefix = pathlib.Path(self.place.name) / "moved here"  # with a blank: users have such paths, too
        run("cmake", "--install", BUILD, "--prefix", first)
        first.rename(self.prefix)
        self.lib = next(self.prefix.glob("lib*/**/libcanele.so")).parent
        self.environment = {
            "PKG_CONFIG_PATH": str(self.lib / "pkgconfig"),
            "LD_LIBRARY_PATH": str(self.lib),
            "CMAKE_PREFIX_PATH": str(self.prefix),
            "PATH": f"{self.prefix}/bin:{os.environ['PATH']}",
        }

    def flags(self, *options):
        text = run("pkg-config", *options, "canele", environment=self.environment)
        return [word.replace("\\ ", " ") for word in re.findall(r"(?:\\.|\S)+", text)]

    def compile(self, compiler, *arguments):
        run(*compiler, *arguments, *self.flags("--cflags", "--libs"), environment=self.environment)


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.install = Install()

    @classmethod
    def tearDownClass(cls):
        cls.install.place.cleanup()

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="canele-user-")
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)

    def test_c_program_with_pkg_config(self):
        program = self.scratch / "selfsend"
        self.install.compile(
            ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-Wpedantic"], HERE / "selfsend.c", "-o", program
        )
        self.assertIn("hello", run(program, environment=self.install.environment))

    def compiles_alone(self, header, compiler, standard):
        """Compiles a program that includes one header, and nothing else. Every warning is an error."""
        source = self.scratch / ("alone.c" if compiler == "gcc" else "alone.cpp")
        arguments = "void" if compiler == "gcc" else ""
        source.write_text(f"#include <canele/{header}>\nint main({arguments}) {{ return 0; }}\n", encoding="utf-8")
        self.install.compile([compiler, f"-std={standard}", "-pedantic", "-Wall", "-Wextra", "-Werror"],
                             source, "-o", self.scratch / "program")

    def test_headers_in_every_standard(self):
        """The C headers work with old compilers; the C++ headers say what they need."""
        headers = sorted(path.name for path in self.install.prefix.glob("include/canele/*.h*"))
        self.assertGreater(len([name for name in headers if name.endswith(".h")]), 3, headers)
        self.assertGreater(len([name for name in headers if name.endswith(".hpp")]), 3, headers)
        for header in headers:
            standards = {"gcc": ("c99", "c11", "gnu17"), "g++": ("c++98", "c++11", "c++20")}
            if header.endswith(".hpp"):
                standards = {"g++": ("c++20",)}
            for compiler, names in standards.items():
                for standard in names:
                    with self.subTest(header=header, standard=standard):
                        self.compiles_alone(header, compiler, standard)
            if header.endswith(".hpp") and header != "driver.hpp":  # that is for authors of drivers
                with self.assertRaisesRegex(AssertionError, "canele.hpp needs C\\+\\+20"):
                    self.compiles_alone(header, "g++", "c++17")

    def test_a_program_finds_the_library(self):
        """Builds with what pkg-config says, and runs without LD_LIBRARY_PATH."""
        program = self.scratch / "selfsend"
        self.install.compile(["gcc"], HERE / "selfsend.c", "-o", program)
        self.assertIn("hello", run(program, environment={"LD_LIBRARY_PATH": ""}))

    def test_cxx_program_with_find_package(self):
        run("cmake", "-S", HERE / "cmake_user", "-B", self.scratch / "b", environment=self.install.environment)
        run("cmake", "--build", self.scratch / "b", environment=self.install.environment)
        self.assertEqual(run(self.scratch / "b/user").strip(), "right")  # finds the library by its build rpath

    def test_wrong_version_is_refused(self):
        listing = (HERE / "cmake_user/CMakeLists.txt").read_text(encoding="utf-8").replace("Canele 0.1", "Canele 99.1")
        (self.scratch / "CMakeLists.txt").write_text(listing, encoding="utf-8")
        shutil.copy(HERE / "cmake_user/user.cpp", self.scratch)
        with self.assertRaisesRegex(AssertionError, "99.1"):
            run("cmake", "-S", self.scratch, "-B", self.scratch / "b", environment=self.install.environment)

    def test_cmake_finds_an_mpi_in_three_languages(self):
        if not (ROOT / "starpu_glue/CMakeLists.txt").exists():
            self.skipTest("this build has no MPI")
        prefix = self.scratch / "prefix"  # FindMPI splits what a wrapper prints at its blanks
        run("cmake", "--install", BUILD, "--prefix", prefix)
        wrappers = prefix / "lib/canele/bin"
        build = self.scratch / "mpi"
        environment = {"PATH": f"{wrappers}:{os.environ['PATH']}"}
        run("cmake", "-S", HERE / "mpi_user", "-B", build, environment=environment)
        self.assertIn(f"={prefix}/lib/libcanele_mpi.so", (build / "CMakeCache.txt").read_text(encoding="utf-8"))
        run("cmake", "--build", build, environment=environment)
        for language in ("in_c", "in_cxx", "in_f77", "in_f90"):
            output = run(wrappers / "mpiexec", "-n", "2", build / language)
            self.assertEqual(sorted(output.splitlines()), ["rank 0 of 2", "rank 1 of 2"], language)

    def test_programs_of_the_pages(self):
        """Pages that are not followed command by command have programs, too: all are built and run."""
        for page in ("completion.md", "job.md", "one-sided.md"):
            programs = programs_of((ROOT / "docs" / page).read_text(encoding="utf-8"))
            self.assertTrue(programs, page)
            for source in programs:
                (self.scratch / source.name).write_text(source.text, encoding="utf-8")
                program = self.scratch / pathlib.Path(source.name).stem
                self.install.compile(["g++", "-std=c++20", "-pedantic", "-Wall", "-Wextra", "-Werror"],
                                     self.scratch / source.name, "-o", program)
                for ranks in (1, 3):
                    with self.subTest(page=page, line=source.line, ranks=ranks):
                        output = run("canele-run", "-n", ranks, program, environment=self.install.environment)
                        triangle = ranks * (ranks + 1) // 2
                        total = {"arrivals.cpp": 8, "contacts.cpp": triangle, "contexts.cpp": 10,
                                 "row.cpp": triangle}[source.name]
                        self.assertEqual(output.count(f": the sum is {total}\n"), ranks, output)

    def test_no_absolute_path_in_the_package_files(self):
        for path in [*self.install.lib.glob("pkgconfig/canele.pc"), *self.install.lib.glob("cmake/Canele/*.cmake")]:
            text = path.read_text(encoding="utf-8")
            self.assertNotIn(str(ROOT), text, path)
            self.assertNotIn(self.install.place.name, text, path)

    def test_exported_symbols(self):
        for name, pattern in EXPORTS.items():
            library = self.install.lib / name
            if name != "libcanele.so" and not library.exists():
                self.assertFalse((ROOT / "starpu_glue/CMakeLists.txt").exists(), f"{name} was not installed")
                continue
            symbols = run("nm", "-D", "--defined-only", library).split("\n")
            names = [line.split()[-1].split("@")[0] for line in symbols if line.strip()]
            self.assertGreater(len(names), 5, name)
            self.assertEqual([symbol for symbol in names if not re.fullmatch(pattern, symbol)], [], name)

    def test_installed_tools_run_from_the_moved_prefix(self):
        tools = [
            path for path in self.install.prefix.glob("bin/canele-*") if path.name in ("canele-info", "canele-run")
        ]
        self.assertTrue(tools, "no tool was installed")
        for tool in tools:
            run(tool, "--help")

    def test_sources_of_the_comparison_find_their_headers(self):
        sources = list(self.install.prefix.glob("share/canele/perf/*/*.[ch]*"))
        self.assertTrue(sources, "no source was installed")
        missing = [
            f"{source.name} includes {name}"
            for source in sources
            for name in re.findall(r'^#include "(.*)"', source.read_text(), re.MULTILINE)
            if not (source.parent / name).exists()
        ]
        self.assertEqual(missing, [])

    def test_installed_comparison(self):
        words = ["--only", "shm-latency-8", "--contenders", "canele,canele-mpi", "--rounds", 1, "--batches", 1]
        said = run(self.install.prefix / "bin/canele-perf", "compare", *words, "--patience", 0,
                   environment=self.install.environment)
        self.assertIn("shm latency 8 B", said)

    def test_beside_open_mpi(self):
        compiler = shutil.which("mpicc.openmpi")
        if compiler is None:
            self.skipTest("Open MPI is not installed (Debian package libopenmpi-dev)")
        program = self.scratch / "neighbour"
        self.install.compile([compiler], HERE / "neighbour.c", "-o", program)
        self.assertIn(
            "both right",
            run(
                program,
                environment={
                    **self.install.environment,
                    "OMPI_ALLOW_RUN_AS_ROOT": "1",
                    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                },
            ),
        )

    def conforms(self, module):
        """The kit, without its longest test: the driver is to be a model."""
        kit = BUILD / "bin/conformance_module"
        if not kit.exists():
            return print("the conformance kit is not built: not run over the driver from outside", file=sys.stderr)
        table = run(kit, module, "--gtest_filter=-*.bulk_2gib")
        for test in ("reject_secret", "order", "wake_up", "close_delivers", "close_unseen", "killed"):
            self.assertRegex(table, rf"{test} +passed")

    def test_driver_from_outside_the_tree(self):
        environment = self.install.environment
        run("cmake", "-S", HERE / "outside", "-B", self.scratch / "b", environment=environment)
        run("cmake", "--build", self.scratch / "b", environment=environment)
        environment = {**environment, "CANELE_DRIVERS": "seqpacket", "CANELE_DRIVER_PATH": str(self.scratch / "b")}
        self.assertRegex(run("canele-info", environment=environment), r"seqpacket +yes +unix sockets")
        for program, ranks in (("mpi_point_to_point", 4), ("mpi_types", 2)):
            run("canele-run", "-n", ranks, BUILD / "bin" / program, environment=environment)
        self.conforms(self.scratch / "b/canele-driver-seqpacket.so")
        with self.assertRaisesRegex(AssertionError, "seqpackets: .*did you mean|no canele-driver-seqpackets.so"):
            environment["CANELE_DRIVERS"] = "seqpackets"
            run("canele-run", "-n", 2, BUILD / "bin/mpi_types", environment=environment)


class Clone:
    """A clone of this tree as it is now, changes that are not committed included, and a home of its own."""

    def __init__(self):
        self.place = tempfile.TemporaryDirectory(prefix="canele-clone-")
        self.tree, self.home = (pathlib.Path(self.place.name) / name for name in ("clone", "home"))
        self.home.mkdir()
        self.began = int(time.time())
        if not (ROOT / ".git").exists():  # an unpacked archive
            shutil.copytree(ROOT, self.tree, ignore=shutil.ignore_patterns("build", ".cache", "__pycache__"))
            return
        run("git", "clone", "--quiet", ROOT, self.tree)
        changed = run("git", "diff", "--name-only", "--no-renames", "HEAD", directory=ROOT)
        changed += run("git", "ls-files", "--others", "--exclude-standard", directory=ROOT)
        for name in changed.splitlines():
            (self.tree / name).unlink(missing_ok=True)
            if (ROOT / name).is_file():
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.tree / name)


class PagesTest(unittest.TestCase):
    """docs/start.md and README.md, followed as they stand, in a clone and a home of their own: every command is run,
    every program saved under its name. Only three things differ by default: packages are not installed, the preset is
    configured but not compiled, and this build is installed in its place. CANELE_TEST_LITERALLY=1 follows every
    command, and prints the time from the clone to the first message.
    """

    LITERALLY = os.environ.get("CANELE_TEST_LITERALLY") == "1"

    @classmethod
    def setUpClass(cls):
        cls.clone = Clone()

    @classmethod
    def tearDownClass(cls):
        cls.clone.place.cleanup()

    def line_of(self, command):
        """Returns what to run for a command of a page."""
        if self.LITERALLY:
            return command
        if command.startswith(("cmake --build --preset ", "tests/install-packages.sh")):
            return ":"
        return command.replace(" build/user ", f" {shlex.quote(str(BUILD))} ") if "--install" in command else command

    def follow(self, page):
        """Follows a page. Returns its steps, and the seconds from the clone to its first message."""
        steps = steps_of((self.clone.tree / page).read_text(encoding="utf-8"))
        script = ["set -e"]
        for step in steps:
            if step.name:
                script.append(f"mkdir -p {shlex.quote(os.path.dirname(step.name) or '.')}\n"
                              f"cat >{shlex.quote(step.name)} <<'END OF {step.name}'\n{step.text}END OF {step.name}")
                continue
            script.append(f"echo {page}:{step.line}: >&2\n{self.line_of(step.text)}")
            if step.text.startswith("canele-run"):
                script.append('[[ -n ${first:-} ]] || first=$(date +%s)')
        script.append('echo "first message: $first"')
        output = run("bash", "-c", "\n".join(script), directory=self.clone.tree,
                     environment={"HOME": str(self.clone.home)}, limit=3600 if self.LITERALLY else 300)
        first = re.search(r"^first message: (\d+)$", output, re.MULTILINE)
        return steps, int(first.group(1)) - self.clone.began

    def test_1_start_page(self):
        steps, seconds = self.follow("docs/start.md")
        if self.LITERALLY:
            print(f"from the clone to the first message: {seconds} s on {os.cpu_count()} cores", flush=True)
        self.assertTrue(steps[0].text.startswith("tests/install-packages.sh"))
        self.assertIn("libhwloc-dev", run(ROOT / "tests/install-packages.sh", "--list"))
        self.assertTrue((self.clone.home / "canele/bin/canele-run").exists())
        for program in ("hello", "project/build/ring"):
            self.assertTrue((self.clone.tree / program).exists(), program)

    def test_2_readme(self):
        steps, _ = self.follow("README.md")
        self.assertEqual([step.name for step in steps if step.name], ["ring.cpp"])
        self.assertTrue((self.clone.tree / "ring").exists())

    def test_commands_of_the_readme_exist(self):
        """The blocks that are skipped name programs of this tree: tests/run.sh has stages for both."""
        page = (ROOT / "README.md").read_text(encoding="utf-8")
        for command in ("apps/demo.sh", "tests/run.sh"):
            self.assertRegex(page, rf"(?m)^{command}\b")
            self.assertTrue(os.access(ROOT / command, os.X_OK), command)


class PageBlocksTest(unittest.TestCase):
    """The finder of blocks itself."""

    def test_finds_commands_and_files(self):
        page = "x\n```sh\na  # b\nc \\\n  d\n\n```\ny\n<!-- test: save p/m.c -->\n\n```c\nint a;\n```\n"
        page += "~~~text\nz\n~~~\n"
        self.assertEqual([tuple(step) for step in steps_of(page)],
                         [(3, None, "a  # b"), (4, None, "c \\\n  d"), (11, "p/m.c", "int a;\n")])

    def test_skips(self):
        self.assertEqual(steps_of("<!-- test: skip shown only -->\n```cpp\nb\n```\n"), [])

    def test_finds_the_programs_that_are_saved(self):
        page = "```c\nint part;\n```\n<!-- test: save m.c -->\n```c\nint a;\n```\n<!-- test: skip x -->\n```c\n```\n"
        self.assertEqual([tuple(step) for step in programs_of(page)], [(5, "m.c", "int a;\n")])

    def test_a_directive_is_for_the_next_block(self):
        with self.assertRaisesRegex(ValueError, "line 3: a program without"):
            steps_of("<!-- test: skip this -->\nwords\n```c\nb\n```\n")

    def test_a_program_that_would_not_be_tested(self):
        for language in ("c", "cpp", "cmake"):
            with self.assertRaisesRegex(ValueError, "line 1: a program without '<!-- test: save NAME -->'"):
                steps_of(f"```{language}\nb\n```\n")

    def test_directives_that_mean_nothing(self):
        for directive in ("run x", "skip", "save"):
            with self.assertRaisesRegex(ValueError, "expected: save NAME, or skip REASON"):
                steps_of(f"<!-- test: {directive} -->\n```sh\nb\n```\n")


if __name__ == "__main__":
    if "--build" in sys.argv:
        position = sys.argv.index("--build")
        BUILD = pathlib.Path(sys.argv[position + 1]).resolve()
        del sys.argv[position : position + 2]
    unittest.main(verbosity=2)

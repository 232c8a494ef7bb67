#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests the install as users meet it: pkg-config, find_package, a moved prefix, exported symbols, Open MPI beside us,
the programs of README.md.

Usage: package_test.py [--build DIRECTORY] [unittest arguments]; ctest gives the directory by CANELE_TEST_BUILD.
The prefix is moved after the install and before the programs are built. So an absolute path that leaks into
canele.pc or CaneleConfig.cmake is found.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from readme_blocks import blocks_of, commands_of

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("CANELE_TEST_BUILD", ROOT / "build/release"))
WRAPPER = ROOT / "tests/with-timeout"
# What each library may export. `mpi_`, `pmpi_`: Fortran. The last alternative is the name of the symbol version.
EXPORTS = {
    "libcanele.so": r"canele_\w+|CANELE_\d+(\.\d+)*",
    "libcanele_mpi.so": r"P?MPIX?_\w+|p?mpi_\w+|nm_\w+|piom_\w+|padico_\w+|[A-Z]+(_[A-Z]+)*_\d+(\.\d+)*",
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

    def test_headers_in_every_standard(self):
        """The C headers work with old compilers; the C++ headers say what they need."""
        for header in ("canele.h", "collectives.h"):
            text = f"#include <canele/{header}>\nint main(void) {{ return 0; }}\n"
            for compiler, name, standards in (("gcc", "h.c", ("c99", "c11", "gnu17")),
                                              ("g++", "h.cpp", ("c++98", "c++11", "c++20"))):
                (self.scratch / name).write_text(text, encoding="utf-8")
                for standard in standards:
                    self.install.compile([compiler, f"-std={standard}", "-pedantic", "-Wall", "-Wextra", "-Werror"],
                                         self.scratch / name, "-o", self.scratch / "program")
        for header in ("canele.hpp", "active.hpp", "collectives.hpp"):
            (self.scratch / "h.cpp").write_text(f"#include <canele/{header}>\nint main() {{}}\n", encoding="utf-8")
            with self.assertRaisesRegex(AssertionError, "canele.hpp needs C\\+\\+20"):
                self.install.compile(["g++", "-std=c++17"], self.scratch / "h.cpp", "-o", self.scratch / "program")

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
        for test in ("refuse_secret", "order", "wake_up", "close_delivers", "close_unseen", "killed"):
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


class ReadmeTest(unittest.TestCase):
    """Every C, C++ and CMake block of README.md is compiled, and its program run."""

    @classmethod
    def setUpClass(cls):
        cls.install = Install()
        cls.blocks = blocks_of((ROOT / "README.md").read_text(encoding="utf-8"))

    @classmethod
    def tearDownClass(cls):
        cls.install.place.cleanup()

    def build_and_run(self, block, scratch):
        source = scratch / ("main.c" if block.language == "c" else "main.cpp")
        source.write_text(block.text, encoding="utf-8")
        compiler = ["gcc", "-std=c11"] if block.language == "c" else ["g++", "-std=c++20"]
        self.install.compile(compiler, source, "-o", scratch / "program")
        run(*block.launcher, scratch / "program", environment=self.install.environment)

    def build_with_cmake(self, block, program, scratch):
        text = block.text
        if "cmake_minimum_required" not in text:
            text = "cmake_minimum_required(VERSION 3.25)\nproject(readme C CXX)\n" + text
        (scratch / "CMakeLists.txt").write_text(text, encoding="utf-8")
        for name in re.findall(r"[\w-]+\.(?:cpp|c)\b", text):
            (scratch / name).write_text(program.text, encoding="utf-8")
        run("cmake", "-S", scratch, "-B", scratch / "b", environment=self.install.environment)
        run("cmake", "--build", scratch / "b", environment=self.install.environment)

    def test_blocks(self):
        program, tested = None, 0
        for block in self.blocks:
            if block.language != "cmake":
                program = block
            if block.skipped:
                continue
            with self.subTest(line=block.line), tempfile.TemporaryDirectory() as directory:
                if block.language == "cmake":
                    self.assertIsNotNone(program, "a CMake block needs a program block before it")
                    self.build_with_cmake(block, program, pathlib.Path(directory))
                else:
                    self.build_and_run(block, pathlib.Path(directory))
                tested += 1
        self.assertGreater(tested, 0, "README.md has no program that could be tested")


class StartPageTest(unittest.TestCase):
    """The commands of docs/start.md, as they stand there, with a home of their own. Only the compilation of the tree is
    left out, because this build exists already; its preset is configured. CANELE_TEST_LITERALLY=1 leaves nothing out
    but the packages.
    """

    def test_commands(self):
        if not (ROOT / ".git").exists():
            self.skipTest("this tree is no clone")
        literally = os.environ.get("CANELE_TEST_LITERALLY") == "1"
        page = (ROOT / "docs/start.md").read_text(encoding="utf-8")
        commands = commands_of(page)
        self.assertEqual(commands[0].split("#")[0].strip(), "tests/install-packages.sh")
        self.assertIn("libhwloc-dev", run(ROOT / "tests/install-packages.sh", "--list"))
        with tempfile.TemporaryDirectory(prefix="canele-start-") as place:
            clone, home = pathlib.Path(place) / "clone", pathlib.Path(place) / "home"
            home.mkdir()
            files = run("git", "ls-files", "-co", "--exclude-standard", directory=ROOT).splitlines()
            for name in files:
                if (ROOT / name).is_file():
                    (clone / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(ROOT / name, clone / name)
            script = ["set -e"]
            for command in commands[1:]:
                if command.startswith("cmake --build") and not literally:
                    continue
                if command.startswith("cmake --install") and not literally:
                    self.assertIn(" build/user ", command)
                    command = command.replace("build/user", f"'{BUILD}'")
                script.append(command)
            run("bash", "-c", "\n".join(script), directory=clone, environment={"HOME": str(home)},
                limit=3600 if literally else 300)
            self.assertTrue((home / "canele/bin/canele-run").exists())
            self.assertTrue((clone / "hello").exists())


class ReadmeBlocksTest(unittest.TestCase):
    """The finder of blocks itself."""

    def test_finds_blocks_and_directives(self):
        page = "x\n```c\nint a;\n```\n<!-- test: skip shown only -->\n\n```cpp\nb\n```\n```sh\nls\n```\n"
        page += "<!-- test: run x -n 4 -->\n~~~c\n~~~\n"
        found = blocks_of(page)
        self.assertEqual(
            [(block.language, block.skipped, block.line) for block in found],
            [("c", False, 2), ("cpp", True, 7), ("c", False, 14)],
        )
        self.assertEqual(found[0].launcher, ["canele-run", "-n", "2"])
        self.assertEqual(found[2].launcher, ["x", "-n", "4"])
        self.assertEqual(found[0].text, "int a;\n")
        page = "```sh\na  # b\nc \\\n  d\n```\nx\n```c\ne\n```\n```sh\nf\n```\n"
        self.assertEqual(commands_of(page), ["a  # b", "c \\\n  d", "f"])


if __name__ == "__main__":
    if "--build" in sys.argv:
        position = sys.argv.index("--build")
        BUILD = pathlib.Path(sys.argv[position + 1]).resolve()
        del sys.argv[position : position + 2]
    unittest.main(verbosity=2)

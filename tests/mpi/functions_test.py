# SPDX-License-Identifier: BSD-3-Clause
"""The table of MPI's functions: that it has all of the standard, agrees with the docs, and names its own errors."""
import os
import pathlib
import re
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["CANELE_TEST_SOURCE"])
sys.path.insert(0, str(SOURCE / "starpu_glue/mpi/functions"))

import fortran
import fortran_modules
import generate
import table

# Names of another MPI's header that are no functions of the standard.
FOREIGN = re.compile(r"MPI_(Type_create_(f90|keyval)_?$|Comm_(copy|delete)_attr_function|.*_function$)")


class Standard(unittest.TestCase):
    """Debian's Open MPI declares all of MPI-3.1."""

    HEADER = pathlib.Path("/usr/lib/x86_64-linux-gnu/openmpi/include/mpi.h")

    def test_all_functions_are_in_the_table(self):
        if not self.HEADER.exists():
            self.skipTest(f"{self.HEADER} is not installed")
        text = re.sub(r"/\*.*?\*/", "", self.HEADER.read_text(encoding="utf-8"), flags=re.S)
        names = set(re.findall(r"OMPI_DECLSPEC\s+[\w ]+?\*?\s*\bMPI_(\w+)\s*\(", text))
        self.assertGreater(len(names), 380)
        known = {function.name for chapter in table.read_table() for function in chapter.functions}
        self.assertEqual({name for name in names - known if not FOREIGN.match("MPI_" + name)}, set())


class Version(unittest.TestCase):
    def test_all_of_the_version_exists_but_what_is_left_out(self):
        header = (SOURCE / "starpu_glue/mpi/include/mpi.h").read_text(encoding="utf-8")
        own = header[header.index("#define MAD_MPI"):]
        version = tuple(int(re.search(rf"#define {name} (\d+)", own)[1]) for name in ("MPI_VERSION", "MPI_SUBVERSION"))
        chapters = table.read_table()
        self.assertEqual({chapter.name for chapter in chapters if chapter.left_out}, {"files", "processes"})
        lacking = {function.name for chapter in chapters if not chapter.left_out for function in chapter.functions
                   if not function.exists or "large missing" in function.marks
                   if tuple(map(int, function.since.split("."))) <= version}
        self.assertEqual(lacking, set(), f"MPI_VERSION is {version}")


class Docs(unittest.TestCase):
    def test_the_list_is_that_of_the_table(self):
        page = (SOURCE / "docs/mpi-functions.md").read_text(encoding="utf-8")
        listed = page[page.index("## Functions\n\n") + len("## Functions\n\n"):]
        self.assertEqual(listed, generate.list_of_functions(table.read_table()),
                         "run: starpu_glue/mpi/functions/generate.py --list")


class Fortran(unittest.TestCase):
    """Each function is in mpif.h (as a stub), in the module mpi and in the module mpi_f08, or in none for a reason."""

    # Of C only: conversions of handles and statuses between the languages; truth values of Fortran; tools.
    C_ONLY = re.compile(r"\w+_([cf]2[cf]|toint|fromint|f082c|c2f08|c2f|f2c)$|T_\w+$|Abi_[gs]et_fortran_booleans$|"
                        r"Abi_set_fortran_info$")
    # Not in mpi_f08: the deprecated names of MPI-1.
    DEPRECATED = {"Attr_delete", "Attr_get", "Attr_put", "Keyval_create", "Keyval_free"}

    def setUp(self):
        chapters = table.read_table()
        self.functions = [one for one in table.existing(chapters) if one.is_declared]
        self.stubs = fortran.stubs(chapters)
        source = fortran_modules.modules(chapters, "")
        self.mpi = source[source.index("\nmodule mpi\n"):source.index("\nmodule mpi_f08\n")]
        self.f08 = source[source.index("\nmodule mpi_f08\n"):]

    def test_a_function_exists_everywhere(self):
        for one in self.functions:
            if one.is_large_only or self.C_ONLY.match(one.name):
                continue
            with self.subTest(one.name):
                self.assertTrue(one.name in fortran.BY_HAND or f" mpi_{one.name.lower()}_(" in self.stubs)
                if one.result == "int":
                    self.assertIn(f"subroutine MPI_{one.name}(", self.mpi)
                    self.assertIn(f"subroutine PMPI_{one.name}(", self.mpi)
                present = f"interface MPI_{one.name}\n" in self.f08 and f"interface PMPI_{one.name}\n" in self.f08
                self.assertEqual(present, one.name not in self.DEPRECATED)

    def test_a_form_for_large_counts_exists_where_it_can_be_told_apart(self):
        for one in self.functions:
            if one.has_large_form and fortran.in_f08(one) and any(
                    argument.has_large_form() and argument.value_type() == "int" for argument in one.arguments):
                with self.subTest(one.name):
                    self.assertRegex(self.stubs, rf" mpi_{one.name.lower()}_(f08_c|c_f08)_\(")
                    self.assertRegex(self.f08, rf"subroutine MPI_{one.name}_(f08_c|c_f08)\(")

    def test_an_argument_without_a_rule_is_an_error(self):
        with tempfile.TemporaryDirectory() as directory:
            (pathlib.Path(directory) / "c.txt").write_text("Strange(state extra_state)\n", encoding="utf-8")
            with self.assertRaisesRegex(table.TableError, "c.txt:1: Strange: no rule .* converts extra_state"):
                fortran.stubs(table.read_table(directory))


class Format(unittest.TestCase):
    """Lines that are not in the format, and what is said about each."""

    def read(self, text):
        with tempfile.TemporaryDirectory() as directory:
            (pathlib.Path(directory) / "chapter.txt").write_text(text, encoding="utf-8")
            return table.read_table(directory)

    def test_wrong_lines(self):
        for line, said in (
            ("Send comm comm", r"expected: NAME\(ARGUMENTS\)"),
            ("Send(comm)", r"expected: \[in\|out\|inout\] KIND NAME"),
            ("Send(com comm)", "'com' is no kind of argument"),
            ("Send(comm comm): blokcing", "'blokcing' is no mark"),
            ("Send(integer ranks[n])", "has no argument n"),
            ("Send(in pointer base)", "has another direction"),
            ("Send()\nSend()", "is in the table already, at chapter.txt:1"),
        ):
            with self.subTest(line), self.assertRaisesRegex(table.TableError, r"^chapter\.txt:[12]: .*" + said):
                self.read(line + "\n")

    def test_a_chapter_that_is_left_out_has_no_functions(self):
        self.assertEqual(table.existing(self.read("# Files.\nleft out\n\nFile_open(comm comm)\n")), [])

    def test_an_entry_point_checks_what_its_table_says(self):
        chapter = self.read("Group_incl(group group, length n, rank ranks[n], out group newgroup)\n")[0]
        text = generate.entries(chapter)
        for step in ("get_group(group, &found_group)", 'check_length("n", n)', 'given({{"newgroup", newgroup}})',
                     'n > 0) code = given({{"ranks", ranks}})', "calls::group_incl(found_group, n, ranks, newgroup)"):
            self.assertIn(step, text)

    def test_a_variadic_function_passes_on_what_has_a_name(self):
        chapter = self.read("Pcontrol(integer level, ...): any time\n")[0]
        self.assertIn("int MPI_Pcontrol(int level, ...);", generate.functions_header([chapter]))
        self.assertIn("calls::pcontrol(level)", generate.entries(chapter))
        self.assertIn("int pcontrol(int level);", generate.calls_header(chapter))

    def test_an_undeclared_function_is_exported_only(self):
        chapter = self.read("Errhandler_get(comm comm, out errhandler errhandler): removed, undeclared\n")[0]
        self.assertNotIn("Errhandler_get", generate.functions_header([chapter]))
        self.assertIn("CANELE_MPI_API int PMPI_Errhandler_get(MPI_Comm comm", generate.entries(chapter))
        self.assertIn("MPI_Errhandler_get", generate.function_names([chapter]))

    def test_a_call_that_frees_a_communicator_ends_by_its_error_handler(self):
        chapter = self.read("Comm_free(inout comm comm)\n")[0]
        self.assertIn("return call.end(code, comm_behind(comm));", generate.entries(chapter))

    def test_the_kind_of_a_communicator_is_checked_last(self):
        text = generate.entries(self.read("Comm_remote_size(intercomm comm, out integer size)\n")[0])
        self.assertLess(text.index('given({{"size", size}})'), text.index("expect_intercommunicator(*found_comm)"))
        self.assertIn("return call.end(code, found_comm);", text)

    def test_the_communicator_comes_first_because_its_error_handler_ends_the_call(self):
        text = generate.entries(self.read("Gather(count count, comm comm): blocking\n")[0])
        self.assertLess(text.index("get_communicator("), text.index("check_count("))

    def test_a_large_form_shares_the_function_behind(self):
        chapter = self.read("Get_count(status status, datatype datatype, out count count): large\n")[0]
        text = generate.entries(chapter)
        self.assertIn("int PMPI_Get_count(const MPI_Status *status, MPI_Datatype datatype, int *count)", text)
        self.assertIn("int PMPI_Get_count_c(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count)", text)
        self.assertIn("*count = narrow<int>(wide_count)", text)
        self.assertIn("int get_count(const MPI_Status *status, Type& datatype, MPI_Count *count);",
                      generate.calls_header(chapter))

    def test_arrays_and_positions_of_both_forms(self):
        chapter = self.read("Pack(length n, blocklength lengths[n], inout size position): large, form\n")[0]
        text = generate.entries(chapter)
        self.assertIn("int PMPI_Pack(int n, const int lengths[], int *position)", text)
        self.assertIn("int PMPI_Pack_c(int n, const MPI_Count lengths[], MPI_Count *position)", text)
        self.assertIn("calls::pack(n, Integers(lengths, n), &wide_position, Form::small)", text)
        self.assertIn("wide_position = *position;", text)
        self.assertIn("*position = narrow<int>(wide_position)", text)
        self.assertIn("calls::pack(n, Integers(lengths, n), position, Form::large)", text)
        self.assertIn("int pack(int n, const Integers& lengths, MPI_Count *position, Form form);",
                      generate.calls_header(chapter))

    def test_an_undeclared_function_is_declared_at_its_entry_point_only(self):
        chapter = self.read("Type_lb(datatype datatype, out address displacement): removed, undeclared\n")[0]
        self.assertNotIn("Type_lb", generate.functions_header([chapter]))
        self.assertIn("CANELE_MPI_API int MPI_Type_lb(MPI_Datatype datatype, MPI_Aint *displacement);",
                      generate.entries(chapter))
        self.assertIn("MPI_Type_lb", generate.function_names([chapter]))


if __name__ == "__main__":
    unittest.main(verbosity=2)

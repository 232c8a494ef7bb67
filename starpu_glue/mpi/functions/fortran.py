# SPDX-License-Identifier: BSD-3-Clause
"""Makes MPI for Fortran from the table of functions: the stubs that Fortran calls, mpif.h, and the module mpi.

A stub converts its arguments and calls the function in C, so that a tool that replaces MPI_X in C sees the calls of
Fortran programs, too. PMPI_X in Fortran is the same stub. A function with arguments that no rule here converts is
written by hand, or does not exist in Fortran: see `has_stub`.
"""
import re
import textwrap

import table

LICENSE = "SPDX-License-Identifier: BSD-3-Clause"
# Written by hand in fortran/by_hand.cpp, because their arguments mean something else in Fortran.
BY_HAND = {"Init", "Init_thread"}
# Integers that count from 1 in Fortran.
INDEXES = {"indx", "array_of_indices"}
# Lengths of arrays that the table does not name.
LENGTHS = {"array_of_datatypes": "max_datatypes"}
# Those that the topology of the communicator says: functions of convert.hpp.
LENGTHS_OF_TOPOLOGY = {"remain_dims": "dimensions_of", "sendtypes": "destinations_of", "recvtypes": "sources_of"}
# Kinds of arguments that no rule here converts.
WITHOUT_RULE = {"...", "attribute", "state", "optional_text", "program_arguments"}
ADDRESSES = {"bytes", "address", "offset", "big"}


def has_stub(function):
    """Whether the function exists in Fortran, made from the table."""
    if not function.is_declared or function.name in BY_HAND or function.chapter == "handles":
        return False
    if function.name.endswith("_c"):  # Fortran has forms for large counts in mpi_f08 only
        return False
    for one in function.arguments:
        if one.kind in WITHOUT_RULE or one.kind.startswith("MPI_T_"):
            return False
        if one.is_function and one.kind != "MPI_User_function":
            return False
        if one.kind == "text" and one.is_array:
            return False
    return not function.name.startswith("T_")


class Argument:
    """How a stub takes and passes one argument."""

    def __init__(self, one, function):
        self.one, self.name, self.function = one, one.name, function

    def parameter(self):
        one = self.one
        if one.kind in ("choice", "pointer"):
            return f"void* {one.name}"
        if one.kind == "text":
            return f"char* {one.name}"
        if one.kind == "MPI_User_function":
            return f"MPI_User_function* {one.name}"
        if one.kind in ADDRESSES:
            return f"{one.value_type()}* {one.name}"
        return f"MPI_Fint* {one.name}"

    def length(self):
        """The C++ expression for the number of elements of an array of handles or flags."""
        if self.one.length or self.name in LENGTHS:
            return f"*{self.one.length or LENGTHS[self.name]}"
        comm = next((one.name for one in self.function.arguments if one.kind in ("comm", "intracomm")), None)
        if self.function.chapter == "topologies":
            return f"{LENGTHS_OF_TOPOLOGY[self.name]}(*{comm})"
        return f"size_of(*{comm})"

    def before(self):
        """The statements before the call."""
        one, name = self.one, self.name
        if one.kind in table.HANDLES:
            handle = one.value_type()
            if one.is_array:
                return [f"Handles<{handle}> c_{name}({name}, {self.length()});"]
            if one.direction != "in":
                return [f"{handle} c_{name} = to_handle<{handle}>(*{name});"]
        if one.kind == "flag" and one.is_array and one.direction == "in":
            return [f"const Flags c_{name}({name}, {self.length()});"]
        if one.kind == "text":
            if one.direction == "in":
                return [f"const Text c_{name}({name}, length_of_{name});"]
            return [f"TextRoom c_{name}(length_of_{name});"]
        return []

    def passed(self):
        one, name = self.one, self.name
        if one.kind == "choice":
            return f"to_buffer({name})"
        if one.kind == "weights":
            return f"to_weights({name})"
        if one.kind in ("pointer", "MPI_User_function"):
            return name
        if one.kind == "text":
            return f"c_{name}.get()"
        if one.kind == "status":
            return f"to_statuses({name})" if one.is_array else f"to_status({name})"
        if one.kind == "ranges":
            return f"reinterpret_cast<int(*)[3]>({name})"
        if one.kind in table.HANDLES:
            if one.is_array:
                return f"c_{name}.get()"
            return f"&c_{name}" if one.direction != "in" else f"to_handle<{one.value_type()}>(*{name})"
        if one.kind == "flag" and one.direction == "in":
            return f"c_{name}.get()" if one.is_array else f"*{name} != 0"
        return name if one.is_array or one.direction != "in" else f"*{name}"

    def after(self):
        """The statements after the call: (whether they are for success only, statement)."""
        one, name = self.one, self.name
        if one.kind in table.HANDLES and one.direction != "in":
            text = f"c_{name}.write_back({name});" if one.is_array else f"*{name} = to_integer(c_{name});"
            return [(one.direction == "out", text)]
        if one.kind == "text" and one.direction == "out":
            return [(True, f"c_{name}.write({name});")]
        if name in INDEXES and one.direction == "out" and self.function.chapter == "completion":
            text = f"count_from_one({name}, *outcount);" if one.is_array else f"count_from_one({name}, 1);"
            return [(True, text)]
        return []


def stub(function):
    arguments = [Argument(one, function) for one in function.arguments]
    lower = function.name.lower()
    texts = [one.name for one in arguments if one.one.kind == "text"]
    returns = function.result != "int"
    parameters = [one.parameter() for one in arguments] + ([] if returns else ["MPI_Fint* ierror"])
    parameters += [f"std::size_t length_of_{name}" for name in texts]
    call = f"MPI_{function.name}({', '.join(one.passed() for one in arguments)})"
    before = [f"  {text}" for one in arguments for text in one.before()]
    head = f"CANELE_FORTRAN {function.result if returns else 'void'} mpi_{lower}_({', '.join(parameters)})"
    lines = [f"{head} {'try ' if before else ''}{{", *before]
    if returns:
        lines.append(f"  return {call};")
    else:
        lines.append(f"  *ierror = {call};")
        for only_success, text in (step for one in arguments for step in one.after()):
            lines.append(f"  if (*ierror == MPI_SUCCESS) {text}" if only_success else f"  {text}")
    if before:
        lines.append("} catch (const std::bad_alloc&) {\n  *ierror = MPI_ERR_NO_MEM;")
    lines += ["}", f"CANELE_FORTRAN_NAMES({lower}, {function.name.upper()});", ""]
    return "\n".join(lines)


def stubs(chapters):
    """The C++ source of all stubs."""
    lines = [f"// {LICENSE}", "//", "// What Fortran programs call, made from starpu_glue/mpi/functions.",
             '#include "starpu_glue/mpi/fortran/convert.hpp"', "", "using namespace canele::mpi::fortran;", ""]
    lines += [stub(function) for chapter in chapters for function in chapter.functions if has_stub(function)]
    return "\n".join(lines)


# ------------------------------------------------------------------------------------------------ constants, modules


def constants(header):
    """[(name, integer)] of the macros of mpi_constants.h that Fortran has, too."""
    values = {}
    for name, text in re.findall(r"^#define (MPI(?!_F_)\w+) (.+?)(?: +/\*.*)?$", header, re.MULTILINE):
        match = re.fullmatch(r"\(?(?:\(MPI_(?:Comm|Group|Datatype|Op|Request|Errhandler|Win|Info|Message|Session|"
                             r"File)\))?(-?(?:0x)?[0-9a-fA-F]+)\)?", text)
        if match:
            values[name] = int(match[1], 0)
        elif text in values:
            values[name] = values[text]
    return list(values.items())


def include_file(header):
    """mpif.h: valid in fixed and in free form, so no line is continued, and none is longer than 72 columns."""
    lines = [f"! {LICENSE}", "!", "! mpif.h: constants of MPI for Fortran, made from mpi_constants.h.",
             "! It is read in fixed and in free form."]
    for name, value in constants(header) + [("MPI_STATUS_SIZE", 8), ("MPI_SOURCE", 1), ("MPI_TAG", 2),
                                            ("MPI_ERROR", 3), ("MPI_ADDRESS_KIND", 8), ("MPI_OFFSET_KIND", 8),
                                            ("MPI_COUNT_KIND", 8), ("MPI_INTEGER_KIND", 4)]:
        lines += [f"      integer {name}", f"      parameter ({name}={value})"]
    lines += ["      logical MPI_SUBARRAYS_SUPPORTED", "      parameter (MPI_SUBARRAYS_SUPPORTED=.false.)",
              "      logical MPI_ASYNC_PROTECTS_NONBLOCKING",
              "      parameter (MPI_ASYNC_PROTECTS_NONBLOCKING=.false.)"]
    for name, shape, common in (("MPI_BOTTOM", "", "bottom"), ("MPI_IN_PLACE", "", "in_place"),
                                ("MPI_STATUS_IGNORE", "(MPI_STATUS_SIZE)", "status_ignore"),
                                ("MPI_STATUSES_IGNORE", "(MPI_STATUS_SIZE,1)", "statuses_ignore"),
                                ("MPI_UNWEIGHTED", "(1)", "unweighted"),
                                ("MPI_WEIGHTS_EMPTY", "(1)", "weights_empty")):
        lines += [f"      integer {name}{shape}", f"      common /canele_mpi_{common}/ {name}"]
    lines += ["      double precision MPI_WTIME, MPI_WTICK, PMPI_WTIME, PMPI_WTICK",
              "      external MPI_WTIME, MPI_WTICK, PMPI_WTIME, PMPI_WTICK",
              "      integer*8 MPI_AINT_ADD, MPI_AINT_DIFF", "      external MPI_AINT_ADD, MPI_AINT_DIFF"]
    return "\n".join(lines) + "\n"


def declaration_in_fortran(one):
    """The declaration of an argument in an interface of the module mpi."""
    shape = "(*)" if one.is_array or one.kind == "weights" else ""
    if one.kind == "status":
        shape = "(MPI_STATUS_SIZE, *)" if one.is_array else "(MPI_STATUS_SIZE)"
    if one.kind == "ranges":
        shape = "(3, *)"
    if one.kind in ("choice",):
        return [f"!GCC$ ATTRIBUTES NO_ARG_CHECK :: {one.name}", f"type(*), dimension(*) :: {one.name}"]
    if one.kind == "text":
        return [f"character(len=*) :: {one.name}"]
    if one.kind in ADDRESSES or one.kind == "pointer":
        kind = {"offset": "MPI_OFFSET_KIND", "big": "MPI_COUNT_KIND"}.get(one.kind, "MPI_ADDRESS_KIND")
        return [f"integer(kind={kind}) :: {one.name}{shape}"]
    if one.kind == "flag":
        return [f"logical :: {one.name}{shape}"]
    if one.is_function:
        return [f"external :: {one.name}"]
    return [f"integer :: {one.name}{shape}"]


def interface(function):
    names = [one.name for one in function.arguments] + ["ierror"]
    head = f"subroutine MPI_{function.name}({', '.join(names)})"
    lines = textwrap.wrap(head, 90, break_long_words=False, subsequent_indent="    ")
    lines = [f"{line} &" for line in lines[:-1]] + [lines[-1], "  import"]
    for one in function.arguments:
        lines += [f"  {text}" if text[0] != "!" else text for text in declaration_in_fortran(one)]
    return [*lines, "  integer :: ierror", f"end subroutine MPI_{function.name}"]


def module(chapters):
    """The module mpi."""
    lines = [f"! {LICENSE}", "!",
             "! The module mpi, made from starpu_glue/mpi/functions. A compiled module fits one major",
             "! version of gfortran; with another compiler mpif.h still serves.", "module mpi", "  implicit none",
             "  include 'mpif.h'", "  interface"]
    lines += ["    subroutine MPI_Init(ierror)", "      integer :: ierror", "    end subroutine MPI_Init",
              "    subroutine MPI_Init_thread(required, provided, ierror)",
              "      integer :: required, provided, ierror", "    end subroutine MPI_Init_thread"]
    for function in (function for chapter in chapters for function in chapter.functions):
        if has_stub(function) and function.result == "int":
            lines += [line if line[0] == "!" else f"    {line}" for line in interface(function)]
    return "\n".join([*lines, "  end interface", "end module mpi"]) + "\n"

# SPDX-License-Identifier: BSD-3-Clause
"""Makes the stubs that Fortran calls from the table of functions. fortran_modules.py makes mpif.h and the modules.

A stub converts its arguments and calls the function in C, so that a tool that replaces MPI_X in C sees the calls of
Fortran programs, too. PMPI_X in Fortran is the same stub. mpif.h and the modules mpi and mpi_f08 share the stubs,
because a handle of mpi_f08 is a structure with one integer. Forms for large counts exist in mpi_f08 only.
"""
import re

import table

LICENSE = "SPDX-License-Identifier: BSD-3-Clause"
# Written by hand in fortran/*.cpp, because their arguments mean something else in Fortran.
BY_HAND = {"Init", "Init_thread", "Pcontrol", "Info_create_env", "Info_get_string", "Grequest_start",
           "Session_get_nth_pset"}
# Of the conversions, those of a status and the questions on the ABI have a form in Fortran. The others are for C.
HANDLES_IN_FORTRAN = {"Status_f2f08", "Status_f082f", "Abi_get_version", "Abi_get_info", "Abi_get_fortran_info"}
# Integers that count from 1 in Fortran.
INDEXES = {"indx", "array_of_indices"}
# Lengths of arrays that the table does not name.
LENGTHS = {"array_of_datatypes": "max_datatypes"}
# Those that the topology of the communicator says: functions of convert.hpp.
LENGTHS_OF_TOPOLOGY = {"remain_dims": "dimensions_of", "sendtypes": "destinations_of", "recvtypes": "sources_of"}
# Kinds of arguments that no rule here converts: functions that have them are written by hand.
WITHOUT_RULE = {"...", "state", "optional_text", "program_arguments", "argument_count", "arguments"}
# Arguments of main, which do not exist in Fortran.
OF_MAIN = {"argc", "argv", "..."}
ADDRESSES = {"bytes", "address", "offset", "big"}


def in_fortran(function):
    """Whether the function exists in mpif.h and in the module mpi."""
    if not function.is_declared or function.name.startswith("T_") or function.is_large_only:
        return False
    return function.chapter != "handles" or function.name in HANDLES_IN_FORTRAN


def in_f08(function):
    """Whether the function exists in the module mpi_f08."""
    return in_fortran(function) and not function.marks & {"deprecated", "removed"}


def has_large_overload(function):
    """Whether mpi_f08 has a form for large counts: Fortran tells the forms apart by the sizes of their integers."""
    if not in_f08(function) or not function.has_large_form:
        return False
    return function.name == "Op_create" or any(
        one.value_type(True) in ("MPI_Count", "MPI_Aint") and one.value_type() == "int"
        for one in function.arguments if one.has_large_form())


def differs_in_f08(function):
    """Whether mpi_f08 has a stub of its own: elsewhere, the address of a detached buffer is not returned."""
    return any(one.kind == "pointer" and one.name == "buffer_addr" for one in function.arguments)


def has_pointer(function):
    """Whether it returns the address of memory, in all forms."""
    return any(one.kind == "pointer" for one in function.arguments) and not differs_in_f08(function)


def check(function):
    """Raises an error if the function has an argument that no rule converts."""
    for one in function.arguments:
        if one.kind in WITHOUT_RULE or one.kind.startswith("MPI_T_") or one.kind == "text" and one.is_array:
            raise table.TableError(f"{function.place}: {function.name}: no rule of fortran.py converts {one.name}; "
                                   "expected: a stub by hand, in BY_HAND")


class Argument:
    """How a stub takes and passes one argument."""

    def __init__(self, one, function, form):
        self.one, self.name, self.function, self.form = one, one.name, function, form

    def parameter(self):
        one = self.one
        if one.kind in ("choice", "pointer"):
            return f"void* {one.name}"
        if one.kind == "text":
            return f"char* {one.name}"
        if one.is_function:
            return f"{one.kind}{'_c' if self.form == 'large' else ''}* {one.name}"
        if one.kind in ADDRESSES or self.form == "large" and one.has_large_form():
            return f"{one.value_type(self.form == 'large')}* {one.name}"
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
        if self.is_unused_address():
            return [f"void* c_{name} = nullptr;", f"static_cast<void>({name});"]
        return []

    def is_unused_address(self):
        return self.form == "small" and self.one.kind == "pointer" and differs_in_f08(self.function)

    def passed(self):
        one, name = self.one, self.name
        if one.kind == "choice":
            return f"to_buffer({name})"
        if one.kind == "weights":
            return f"to_weights({name})"
        if one.kind == "pointer":
            return f"&c_{name}" if self.is_unused_address() else name
        if one.is_function:
            return name
        if one.kind == "text":
            return f"c_{name}.get()"
        if one.kind == "status":
            return f"to_statuses({name})" if one.is_array else f"to_status({name})"
        if one.kind == "f08_status":
            return f"reinterpret_cast<MPI_F08_status*>({name})"
        if one.kind == "f_status":
            return name
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
        """The statements after the call: (condition, statement)."""
        one, name = self.one, self.name
        if one.kind in table.HANDLES and one.direction != "in":
            text = f"c_{name}.write_back({name});" if one.is_array else f"*{name} = to_integer(c_{name});"
            return [("code == MPI_SUCCESS" if one.direction == "out" else "", text)]
        if one.kind == "text" and one.direction == "out":
            there = any(other.kind == "flag" and other.direction == "out" for other in self.function.arguments)
            return [("code == MPI_SUCCESS" + (" && *flag != 0" if there else ""), f"c_{name}.write({name});")]
        if name in INDEXES and one.direction == "out" and self.function.chapter == "completion":
            text = f"count_from_one({name}, *outcount);" if one.is_array else f"count_from_one({name}, 1);"
            return [("code == MPI_SUCCESS", text)]
        return []


def symbol(function, form):
    """The name of a stub without mpi_ and the last underscore."""
    lower = function.name.lower()
    if form == "small":
        return lower
    if form == "f08":
        return f"{lower}_f08"
    return f"{lower.removesuffix('_c')}_f08_c" if function.name != "Op_create" else "op_create_c_f08"


def is_of_attributes(function):
    """Whether it makes a key of attributes, or sets or gets one."""
    return any(one.kind == "attribute" for one in function.arguments) or any(
        re.fullmatch(r"MPI_(\w+_)?[Cc]opy(_attr)?_function", one.kind) for one in function.arguments)


def stub_of_attributes(function):
    """A stub of a function on attributes: attributes.hpp has what they do."""
    integer = "MPI_Fint" if "deprecated" in function.marks else "MPI_Aint"
    first = function.arguments[0]
    handle = first.value_type() if first.kind in table.HANDLES else \
        {"Type": "MPI_Datatype", "Win": "MPI_Win"}.get(function.name.split("_")[0], "MPI_Comm")
    parameters, passed = [], []
    for one in function.arguments:
        if one.is_function:
            parameters.append(f"Key<{integer}>::{'Copy' if 'opy' in one.kind else 'Delete'}* {one.name}")
            passed.append(one.name)
        else:
            parameters.append(f"{integer if one.kind in ('attribute', 'state') else 'MPI_Fint'}* {one.name}")
            passed.append(one.name if one.direction == "out" else f"*{one.name}")
    does = "create_key" if first.is_function else \
        "get_attribute" if any(one.kind == "flag" for one in function.arguments) else "set_attribute"
    types = f"{handle}, {integer}" if does != "set_attribute" else handle
    return "\n".join([
        f"CANELE_FORTRAN void mpi_{function.name.lower()}_({', '.join(parameters)}, MPI_Fint* ierror) {{",
        f"  answer(ierror, {does}<{types}>(MPI_{function.name}, {', '.join(passed)}));", "}",
        *names(function, "small"), ""])


def stub(function, form):
    if is_of_attributes(function):
        return stub_of_attributes(function)
    check(function)
    arguments = [Argument(one, function, form) for one in function.arguments]
    name = symbol(function, form)
    texts = [one.name for one in arguments if one.one.kind == "text"]
    returns = function.result != "int"
    parameters = [one.parameter() for one in arguments] + ([] if returns else ["MPI_Fint* ierror"])
    parameters += [f"std::size_t length_of_{text}" for text in texts]
    suffix = "_c" if form == "large" and not function.name.endswith("_c") else ""
    call = f"MPI_{function.name}{suffix}({', '.join(one.passed() for one in arguments)})"
    before = [f"  {text}" for one in arguments for text in one.before()]
    head = f"CANELE_FORTRAN {function.result if returns else 'void'} mpi_{name}_({', '.join(parameters)})"
    lines = [f"{head} {'try ' if before else ''}{{", *before]
    if returns:
        lines.append(f"  return {call};")
    else:
        lines.append(f"  const int code = {call};")
        for condition, text in (step for one in arguments for step in one.after()):
            lines.append(f"  if ({condition}) {text}" if condition else f"  {text}")
        lines.append("  answer(ierror, code);")
    if before:
        lines.append("} catch (const std::bad_alloc&) {\n  answer(ierror, MPI_ERR_NO_MEM);")
    return "\n".join([*lines, "}", *names(function, form), ""])


def names(function, form):
    """The other names of a stub."""
    name = symbol(function, form)
    if form != "small":
        return [f"CANELE_F08_NAME({name});"]
    lines = [f"CANELE_FORTRAN_NAMES({name}, {function.name.upper()});"]
    if has_pointer(function):  # for the module mpi, where memory is an integer or a C pointer
        lines += [f"CANELE_FORTRAN_NAME({prefix}{name}_cptr_, mpi_{name}_);" for prefix in ("mpi_", "pmpi_")]
    return lines if differs_in_f08(function) else [*lines, f"CANELE_F08_NAMES({name});"]


def stubs_of(function):
    """The forms of a function that have stubs made here."""
    if function.is_large_only and function.is_declared:
        return ["large"]
    if not in_fortran(function) or function.name in BY_HAND:
        return []
    forms = ["small"]
    if in_f08(function) and differs_in_f08(function):
        forms.append("f08")
    return forms + (["large"] if has_large_overload(function) else [])


def stubs(chapters):
    """The C++ source of all stubs."""
    lines = [f"// {LICENSE}", "//", "// What Fortran programs call, made from starpu_glue/mpi/functions.",
             '#include "starpu_glue/mpi/fortran/attributes.hpp"', "", "using namespace canele::mpi::fortran;", ""]
    functions = [function for chapter in chapters for function in chapter.functions]
    lines += [stub(function, form) for function in functions for form in stubs_of(function)]
    return "\n".join(lines)

# SPDX-License-Identifier: BSD-3-Clause
"""Makes what Fortran programs include or use: mpif.h, the module mpi and the module mpi_f08.

The modules only declare: each procedure is a stub in C++ (fortran.py), so no Fortran code is compiled into the library.
Data of any type is an argument that gfortran does not check (NO_ARG_CHECK), as in other MPIs. The stub gets an
address. A section with gaps is a copy that the compiler makes for the time of the call.
"""
import re
import textwrap

import fortran
import table

LICENSE = fortran.LICENSE
# Constants that stand for an address are variables: their names in Fortran, their shapes, and the names of the blocks.
ADDRESSES = (("MPI_BOTTOM", "", "bottom"), ("MPI_IN_PLACE", "", "in_place"),
             ("MPI_BUFFER_AUTOMATIC", "", "buffer_automatic"),
             ("MPI_STATUS_IGNORE", "(MPI_STATUS_SIZE)", "status_ignore"),
             ("MPI_STATUSES_IGNORE", "(MPI_STATUS_SIZE,1)", "statuses_ignore"),
             ("MPI_UNWEIGHTED", "(1)", "unweighted"), ("MPI_WEIGHTS_EMPTY", "(1)", "weights_empty"))
# Numbers that only Fortran has.
IN_FORTRAN_ONLY = [("MPI_STATUS_SIZE", 8), ("MPI_SOURCE", 1), ("MPI_TAG", 2), ("MPI_ERROR", 3),
                   ("MPI_ADDRESS_KIND", 8), ("MPI_OFFSET_KIND", 8), ("MPI_COUNT_KIND", 8), ("MPI_INTEGER_KIND", 4)]
HANDLE_TYPES = tuple(dict.fromkeys(table.HANDLES.values()))
# Kinds of objects with attributes: the type of their handles, and the first argument of the copy function.
ATTRIBUTED = (("Comm", "oldcomm"), ("Type", "oldtype"), ("Win", "oldwin"))
HANDLERS = (("Comm", "comm"), ("Win", "win"), ("Session", "session"), ("File", "file"))
TYPE_OF = {"Type": "MPI_Datatype"}


def constants(header):
    """[(name, number, type of the handle or "")] of the macros of mpi.h and mpi_constants.h that Fortran has, too."""
    values = {}
    for name, text in re.findall(r"^#define (MPI(?!_F_|_T_|X_)\w+) (.+?)(?: +/\*.*)?$", header, re.MULTILINE):
        match = re.fullmatch(rf"\(?(?:\(({'|'.join(HANDLE_TYPES)})\))?(-?(?:0x)?[0-9a-fA-F]+)\)?", text)
        if match:
            values[name] = (int(match[2], 0), match[1] or "")
        elif text in values:
            values[name] = values[text]
    return [(name, *value) for name, value in values.items()]


def predefined_functions():
    """The functions for attributes that MPI has: (name, kind of object, what it is)."""
    for kind in ("Comm", "Type", "Win"):
        for function, what in (("NULL_COPY_FN", "copy"), ("DUP_FN", "copy"), ("NULL_DELETE_FN", "delete")):
            yield f"MPI_{kind.upper()}_{function}", kind, what


def include_file(header):
    """mpif.h: valid in fixed and in free form, so no line is continued, and none is longer than 72 columns."""
    lines = [f"! {LICENSE}", "!", "! mpif.h: constants of MPI for Fortran, made from mpi_constants.h.",
             "! It is read in fixed and in free form."]
    for name, value in [one[:2] for one in constants(header)] + IN_FORTRAN_ONLY:
        lines += [f"      integer {name}", f"      parameter ({name}={value})"]
    for name in ("SUBARRAYS_SUPPORTED", "ASYNC_PROTECTS_NONBLOCKING"):
        lines += [f"      logical MPI_{name}", f"      parameter (MPI_{name}=.false.)"]
    for name, shape, common in ADDRESSES:
        lines += [f"      integer {name}{shape}", f"      common /canele_mpi_{common}/ {name}"]
    lines += ["      double precision MPI_WTIME, MPI_WTICK, PMPI_WTIME, PMPI_WTICK",
              "      external MPI_WTIME, MPI_WTICK, PMPI_WTIME, PMPI_WTICK",
              "      integer*8 MPI_AINT_ADD, MPI_AINT_DIFF", "      external MPI_AINT_ADD, MPI_AINT_DIFF",
              "      integer*8 PMPI_AINT_ADD, PMPI_AINT_DIFF", "      external PMPI_AINT_ADD, PMPI_AINT_DIFF"]
    names = [name for name, _, _ in predefined_functions()]
    names += ["MPI_NULL_COPY_FN", "MPI_DUP_FN", "MPI_NULL_DELETE_FN"]
    return "\n".join(lines + [f"      external {name}" for name in names]) + "\n"


# ------------------------------------------------------------------------------------------------------ interfaces


def types_module():
    """The module with the types of handles, which the modules mpi and mpi_f08 share."""
    lines = ["module canele_mpi_types", "  implicit none"]
    for handle in HANDLE_TYPES:
        lines += [f"  type, bind(C) :: {handle}", "    integer :: MPI_VAL", f"  end type {handle}"]
    lines += ["  type, bind(C) :: MPI_Status", "    integer :: MPI_SOURCE, MPI_TAG, MPI_ERROR",
              "    integer, private :: internal(5)", "  end type MPI_Status"]
    for operator, name in (("==", "equal"), ("/=", "differ")):
        lines.append(f"  interface operator({operator})")
        for handle in HANDLE_TYPES:
            procedure = f"canele_mpi_{name}_{handle.removeprefix('MPI_').lower()}"
            lines += [f"    pure elemental function {procedure}(a, b) result(holds)", "      import",
                      f"      type({handle}), intent(in) :: a, b", "      logical :: holds",
                      f"    end function {procedure}"]
        lines.append(f"  end interface operator({operator})")
    lines += ["  interface MPI_Sizeof", "    subroutine canele_mpi_sizeof(x, size, ierror) bind(C)",
              "      type(*), dimension(..) :: x", "      integer, intent(out) :: size",
              "      integer, optional, intent(out) :: ierror", "    end subroutine canele_mpi_sizeof",
              "  end interface MPI_Sizeof"]
    return [*lines, "end module canele_mpi_types"]


class Dummy:
    """The declaration of an argument in an interface: of the module mpi, or of mpi_f08."""

    def __init__(self, one, function, in_f08, large=False, pointers=False):
        self.one, self.function, self.in_f08, self.large, self.pointers = one, function, in_f08, large, pointers

    def type_name(self):
        one, kind = self.one, self.one.kind
        if kind in table.HANDLES:
            return f"type({one.value_type()})" if self.in_f08 else "integer"
        if kind == "status":
            return "type(MPI_Status)" if self.in_f08 else "integer"
        if kind == "f08_status":
            return "type(MPI_Status)"
        if kind in ("text", "optional_text"):
            return "character(len=*)"
        if kind == "flag":
            return "logical"
        if kind == "pointer":
            return "type(c_ptr)" if self.in_f08 or self.pointers else "integer(kind=MPI_ADDRESS_KIND)"
        if kind in ("attribute", "state"):
            return "integer" if "deprecated" in self.function.marks else "integer(kind=MPI_ADDRESS_KIND)"
        kinds = {"MPI_Aint": "MPI_ADDRESS_KIND", "MPI_Offset": "MPI_OFFSET_KIND", "MPI_Count": "MPI_COUNT_KIND"}
        value = one.value_type(self.large)
        return f"integer(kind={kinds[value]})" if value in kinds else "integer"

    def shape(self):
        one = self.one
        if one.kind == "status" and not self.in_f08:
            return "(MPI_STATUS_SIZE, *)" if one.is_array else "(MPI_STATUS_SIZE)"
        if one.kind == "f_status":
            return "(MPI_STATUS_SIZE)"
        if one.kind == "ranges":
            return "(3, *)"
        return "(*)" if one.is_array or one.kind == "weights" else ""

    def attributes(self):
        """Those that only mpi_f08 has."""
        one, attributes = self.one, []
        if one.kind == "choice" and one.direction == "in" and one.name != "location":
            attributes.append("intent(in)")
        elif one.kind not in ("choice", "status"):
            attributes.append(f"intent({one.direction})")
        if self.is_kept():
            attributes.append("asynchronous")
        return "".join(f", {attribute}" for attribute in attributes)

    def is_kept(self):
        """Whether the library may use the argument after the call."""
        one = self.one
        starts = self.function.call_class == "init" or self.function.chapter == "windows" or any(
            other.kind == "request" and other.direction == "out" for other in self.function.arguments)
        if one.kind == "choice":
            return starts or one.name in ("location", "base", "buffer")
        return starts and one.is_array and one.direction == "in" and self.function.chapter != "completion"

    def declaration(self):
        one = self.one
        if one.is_function:
            name = one.kind + ("_c" if self.large else "")
            return [f"procedure({name}) :: {one.name}" if self.in_f08 else f"external :: {one.name}"]
        attributes = self.attributes() if self.in_f08 else ""
        if one.kind == "choice" or one.kind == "pointer" and not self.in_f08 and fortran.differs_in_f08(self.function):
            return [f"!GCC$ ATTRIBUTES NO_ARG_CHECK :: {one.name}", f"type(*), dimension(*){attributes} :: {one.name}"]
        return [f"{self.type_name()}{attributes} :: {one.name}{self.shape()}"]


def interface(function, name, in_f08, large=False, pointers=False):
    """The interface of one procedure."""
    arguments = [one for one in function.arguments if one.name not in fortran.OF_MAIN]
    returns = function.result != "int"
    has_error = not returns and function.name != "Pcontrol"
    what = "function" if returns else "subroutine"
    names = [one.name for one in arguments] + (["ierror"] if has_error else [])
    head = f"{what} {name}({', '.join(names)})" + (" result(answer)" if returns else "")
    lines = textwrap.wrap(head, 90, break_long_words=False, subsequent_indent="    ")
    lines = [f"{line} &" for line in lines[:-1]] + [lines[-1]]
    if any(one.kind == "pointer" for one in arguments):
        lines.append("  use, intrinsic :: iso_c_binding, only: c_ptr")
    lines.append("  import")
    for one in arguments:
        texts = Dummy(one, function, in_f08, large, pointers).declaration()
        lines += [f"  {text}" if text[0] != "!" else text for text in texts]
    if has_error:
        lines.append(f"  integer{', optional, intent(out)' if in_f08 else ''} :: ierror")
    if returns:
        result = "double precision" if function.result == "double" else "integer(kind=MPI_ADDRESS_KIND)"
        lines.append(f"  {result} :: answer")
    return indented([*lines, f"end {what} {name}"])


def indented(lines):
    return [line if line[0] == "!" else f"    {line}" for line in lines]


def generic(name, procedures):
    return [f"  interface {name}", *(line for lines in procedures for line in lines), f"  end interface {name}"]


def module_mpi(chapters):
    """The module mpi. Memory is returned as an integer or as a C pointer."""
    lines = ["module mpi", "  use canele_mpi_types", "  implicit none", "  include 'mpif.h'"]
    functions = [function for chapter in chapters for function in chapter.functions if fortran.in_fortran(function)]
    for function in functions:
        if function.result != "int":  # mpif.h declares it
            continue
        for prefix in ("MPI_", "PMPI_"):
            name = prefix + function.name
            if fortran.has_pointer(function):
                lines += generic(name, [interface(function, name, False),
                                        interface(function, f"{name}_cptr", False, pointers=True)])
            else:
                lines += ["  interface", *interface(function, name, False), "  end interface"]
    return [*lines, "end module mpi"]


# --------------------------------------------------------------------------------------------------------- mpi_f08


def abstract_interface(name, arguments):
    """arguments: [(names, declaration)]."""
    names = ", ".join(one for one, _ in arguments)
    lines = [f"subroutine {name}({names})", "  use, intrinsic :: iso_c_binding, only: c_ptr", "  import"]
    lines += [f"  {text} :: {one}" for names, text in arguments for one in names.split(", ")]
    return indented([*lines, f"end subroutine {name}"])


def attribute_function(kind, first, what, name):
    word = "integer(kind=MPI_ADDRESS_KIND)"
    handle = f"type({TYPE_OF.get(kind, 'MPI_' + kind)})"
    keyval = f"{kind.lower()}_keyval"
    if what == "delete":
        arguments = [(first.removeprefix("old"), handle), (keyval, "integer"), ("attribute_val, extra_state", word)]
        if kind == "Type":
            arguments[0] = ("datatype", handle)
    else:
        arguments = [(first, handle), (keyval, "integer"),
                     ("extra_state, attribute_val_in, attribute_val_out", word), ("flag", "logical")]
    return abstract_interface(name, [*arguments, ("ierror", "integer")])


def callback_interfaces():
    lines = ["  abstract interface"]
    for suffix, kind in (("", ""), ("_c", "(kind=MPI_COUNT_KIND)")):
        lines += abstract_interface(f"MPI_User_function{suffix}", [
            ("invec, inoutvec", "type(c_ptr), value"), ("len", f"integer{kind}"), ("datatype", "type(MPI_Datatype)")])
    for kind, first in ATTRIBUTED:
        for what in ("copy", "delete"):
            lines += attribute_function(kind, first, what, f"MPI_{kind}_{what}_attr_function")
    for kind, name in HANDLERS:
        lines += abstract_interface(f"MPI_{kind}_errhandler_function",
                                    [(name, f"type(MPI_{kind})"), ("error_code", "integer")])
    state = ("extra_state", "integer(kind=MPI_ADDRESS_KIND)")
    lines += abstract_interface("MPI_Grequest_query_function",
                                [state, ("status", "type(MPI_Status)"), ("ierror", "integer")])
    lines += abstract_interface("MPI_Grequest_free_function", [state, ("ierror", "integer")])
    lines += abstract_interface("MPI_Grequest_cancel_function",
                                [state, ("complete", "logical"), ("ierror", "integer")])
    lines += ["  end interface", "  interface"]
    for name, kind, what in predefined_functions():
        lines += attribute_function(kind, dict(ATTRIBUTED)[kind], what, name)
    return [*lines, "  end interface"]


def constants_of_f08(header):
    lines = []
    for name, value, handle in constants(header):
        declared, text = (f"type({handle})", f"{handle}({value})") if handle else ("integer", value)
        lines.append(f"  {declared}, parameter :: {name} = {text}")
    lines += [f"  integer, parameter :: {name} = {value}" for name, value in IN_FORTRAN_ONLY]
    lines += ["  logical, parameter :: MPI_SUBARRAYS_SUPPORTED = .false.",
              "  logical, parameter :: MPI_ASYNC_PROTECTS_NONBLOCKING = .true."]
    for name, shape, common in ADDRESSES:
        declared = "integer"
        if "STATUS_SIZE" in shape:
            declared, shape = "type(MPI_Status)", "(1)" if "," in shape else ""
        lines.append(f'  {declared}, bind(C, name="canele_mpi_{common}_") :: {name}{shape}')
    return lines


def module_f08(chapters, header):
    """The module mpi_f08."""
    lines = ["module mpi_f08", "  use canele_mpi_types", "  implicit none", *constants_of_f08(header),
             *callback_interfaces()]
    functions = [function for chapter in chapters for function in chapter.functions if function.is_declared]
    large_only = {function.name.removesuffix("_c"): function for function in functions if function.is_large_only}
    for function in (function for function in functions if fortran.in_f08(function)):
        for prefix in ("MPI_", "PMPI_"):
            name = prefix + function.name
            procedures = [interface(function, f"{name}_f08", True)]
            if function.name in large_only:
                procedures.append(interface(large_only[function.name], f"{name}_f08_c", True))
            elif function.name == "Op_create" and fortran.has_large_overload(function):
                # The two forms differ in a procedure only, which does not tell them apart.
                lines += generic(f"{name}_c", [interface(function, f"{name}_c_f08", True, True)])
            elif fortran.has_large_overload(function):
                procedures.append(interface(function, f"{name}_f08_c", True, True))
            lines += generic(name, procedures)
    return [*lines, "end module mpi_f08"]


def modules(chapters, header):
    """The source of all modules."""
    lines = [f"! {LICENSE}", "!", "! The modules of MPI for Fortran, made from starpu_glue/mpi/functions. A compiled "
             "module fits one", "! major version of gfortran; with another compiler mpif.h still serves.",
             *types_module(), *module_mpi(chapters), *module_f08(chapters, header)]
    return "\n".join(lines) + "\n"

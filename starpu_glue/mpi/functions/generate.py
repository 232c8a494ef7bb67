# SPDX-License-Identifier: BSD-3-Clause
"""Makes C and C++ from the table of MPI's functions. The build calls it: generate.py DIRECTORY. With --list it prints
the list in the docs.

It writes into DIRECTORY
    include/mpi_functions.h  declarations, which mpi.h includes
    function_names.hpp       the names and their classes, for profiles
    calls/CHAPTER.hpp        declarations of the functions behind the generated entry points
    entries_in_fortran.cpp   what Fortran programs call
    include/mpif.h, mpi.f90  the include file and the modules for Fortran
    include/standard_abi     declarations of all functions of the standard ABI
    standard_abi.cpp         the library libmpi_abi
    entries_CHAPTER.cpp      the entry points: each looks its handles up, checks its arguments, and calls the function

A file is written only if its content has changed, so that nothing is compiled without need.
"""
import pathlib
import re
import sys
import textwrap

import fortran
import fortran_modules
import standard_abi
import table

LICENSE = "SPDX-License-Identifier: BSD-3-Clause"
COLUMNS = 120

# Objects behind handles: the variable that holds one, how it is looked up, how it is passed, and where it is declared.
OBJECTS = {
    "comm": ("Communicator* {} = nullptr;", "get_communicator({0}, &{1})", "*{}", "Communicator& {}",
             "communicators/communicator.hpp"),
    "any_comm": ("Communicator* {} = nullptr;", "get_communicator({0}, &{1})", None, None, None),
    "group": ("RanksPointer {};", "get_group({0}, &{1})", "{}", "const RanksPointer& {}", "communicators/group.hpp"),
    "datatype": ("Type* {} = nullptr;", "get_type({0}, &{1})", "*{}", "Type& {}", "datatypes/type.hpp"),
    "session": ("Session* {} = nullptr;", "get_session({0}, &{1})", "*{}", "Session& {}", "communicators/session.hpp"),
    "win": ("Window* {} = nullptr;", "get_window({0}, &{1})", "*{}", "Window& {}", "windows/window.hpp"),
}
# Communicators of one kind: they are looked up like others, and their kind is checked after all other arguments.
KINDS_OF_COMMUNICATORS = {"intracomm": "expect_intracommunicator", "intercomm": "expect_intercommunicator"}
OBJECTS |= dict.fromkeys(KINDS_OF_COMMUNICATORS, OBJECTS["comm"])
# Objects with an error handler.
COMMUNICATORS = ("comm", "any_comm", *KINDS_OF_COMMUNICATORS)
HANDLER_KINDS = COMMUNICATORS + ("session", "win")


def wrap(head, parts, tail):
    """Returns head + parts + tail as lines, broken between parts, as clang-format does it."""
    lines, line = [], head
    for i, part in enumerate(parts):
        text = part + (", " if i + 1 < len(parts) else tail)
        if len(line) + len(text.rstrip()) > COLUMNS and line.strip() != head.strip():
            lines.append(line.rstrip())
            line = " " * len(head)
        line += text
    return "\n".join(lines + [(line if parts else head + tail).rstrip()])


def is_object(argument):
    return argument.kind in OBJECTS and argument.direction == "in" and not argument.is_array


def is_passed(argument):
    """Whether the function behind the entry point has the argument."""
    return argument.kind != "any_comm" and not argument.is_rest


def snake_case(name):
    return name[0].lower() + name[1:]


# ------------------------------------------------------------------------------------------------- mpi_functions.h


def declare(function, large=False):
    arguments = [one.declaration(large) for one in function.arguments] or ["void"]
    name = function.name + ("_c" if large else "")
    lines = []
    for prefix in ("MPI_", "PMPI_"):
        lines.append(wrap(f"CANELE_MPI_API {function.result} {prefix}{name}(", arguments, ");"))
    return "\n".join(lines)


def functions_header(chapters):
    parts = [f"/* {LICENSE}\n *\n * Declarations of all MPI functions, made from starpu_glue/mpi/functions.\n */"]
    for chapter in chapters:
        functions = [function for function in chapter.functions if function.is_declared]
        if functions:
            parts.append(f"/* {chapter.title}. */")
        for function in functions:
            parts.append(declare(function))
            if function.has_large_form:
                parts.append(declare(function, True))
    return "\n".join(parts) + "\n"


# ---------------------------------------------------------------------------------------------- function_names.hpp

# Entry points of this library that are no MPI functions. Their calls have names, too.
NO_MPI_FUNCTIONS = (
    "nm_mpi_comm",
    "nm_mpi_nmad_dest",
    "canele_mpi_comm_rank",
    "canele_mpi_data_get",
    "canele_mpi_data_release",
    "canele_mpi_engine",
    "canele_mpi_job_rank",
    "canele_mpi_session",
)


def function_names(chapters):
    classes = dict.fromkeys(NO_MPI_FUNCTIONS, "other")
    for function in table.existing(chapters):
        classes["MPI_" + function.name] = function.call_class
        if function.has_large_form:
            classes[f"MPI_{function.name}_c"] = function.call_class
    text = f"// {LICENSE}\n//\n// Names of the functions in the order of strcmp(), and the class of each, made from\n"
    text += "// starpu_glue/mpi/functions. Included by core/function.hpp, within its namespace.\n"
    text += "inline constexpr FunctionName kFunctions[] = {\n"
    text += "".join(f'    {{"{name}", CallClass::{classes[name]}}},\n' for name in sorted(classes))
    return text + "};\n"


# ---------------------------------------------------------------------------------------------------------- calls


def parameter(argument, large):
    """The argument as the function behind the entry point has it."""
    if large and argument.is_function:
        return f"const Either<{argument.kind}, {argument.kind}_c>& {argument.name}"
    if is_object(argument):
        return OBJECTS[argument.kind][3].format(argument.name)
    if large and argument.is_list:
        return f"const Integers& {argument.name}"
    return argument.declaration(large and not argument.is_array)


def parameters(function):
    parts = [parameter(one, function.has_large_form) for one in function.arguments if is_passed(one)]
    return parts + (["Form form"] if "form" in function.marks else [])


def calls_header(chapter):
    functions = [function for function in chapter.functions if function.is_generated]
    functions = [one for one in functions if "conversion" not in one.marks and not one.is_collective]
    used = {OBJECTS[one.kind][4] for function in functions for one in function.arguments if is_object(one)} - {None}
    passed_on = [part for function in functions for part in parameters(function)]
    if any(re.match("const Integers&|const Either<|Form ", part) for part in passed_on):
        used.add("core/integers.hpp")
    lines = [f"// {LICENSE}", "//",
             f"// The functions behind the entry points of the chapter {chapter.name}, made from",
             f"// starpu_glue/mpi/functions/{chapter.name}.txt. They return MPI codes. Their arguments are checked.",
             "#pragma once", "", "#include <mpi.h>", ""]
    lines += [f'#include "starpu_glue/mpi/{path}"' for path in sorted(used)]
    lines += ["", "namespace canele::mpi::calls {", ""]
    for function in functions:
        lines.append(wrap(f"int {snake_case(function.name)}(", parameters(function), ");"))
    return "\n".join(lines + ["", "}  // namespace canele::mpi::calls", ""])


# -------------------------------------------------------------------------------------------------------- entries


def check_steps(function):
    """Returns the checks of the arguments, in their order: (condition besides success, call).

    The object whose error handler ends the call comes first.
    """
    for one in sorted(function.arguments, key=lambda one: not (one.kind in HANDLER_KINDS and is_object(one))):
        if is_object(one):
            yield "", OBJECTS[one.kind][1].format(one.name, "found_" + one.name)
        elif one.kind in ("length", "count") and one.direction == "in" and not one.is_array:
            yield "", f'check_{one.kind}("{one.name}", {one.name})'
        elif one.is_array and one.length:
            if one.kind == "status":  # may be MPI_STATUSES_IGNORE
                continue
            yield f" && {one.length} > 0", f'given({{{{"{one.name}", {one.name}}}}})'
        elif one.is_pointer and not one.is_function and not one.is_array and one.kind in table.SPECIAL:
            given = one.kind in ("text", "pointer", "f_status", "f08_status")
            if given or one.kind == "attribute" and one.direction == "out":
                yield "", f'given({{{{"{one.name}", {one.name}}}}})'
            elif one.kind == "status" and one.direction != "out":
                yield "", f'given({{{{"{one.name}", {one.name}}}}})'
        elif one.direction != "in" and not one.is_array:
            yield "", f'given({{{{"{one.name}", {one.name}}}}})'
    for one in function.arguments:
        if one.kind in KINDS_OF_COMMUNICATORS:
            yield "", f"{KINDS_OF_COMMUNICATORS[one.kind]}(*found_{one.name})"
    if function.blocks:
        yield "", "may_block()"


def passed(argument, has_large_form=False):
    if is_object(argument):
        return OBJECTS[argument.kind][2].format("found_" + argument.name)
    if has_large_form and argument.is_list:
        return f"Integers({argument.name}, {argument.length or 0})"
    return argument.name


def ending(function):
    """How the call ends: by the error handler of its object, by one that it is given, or by that of MPI_COMM_WORLD."""
    endings = {"win": "call.end(code, comm_of(found_{}))", "session": "end_with_session(call, code, found_{})"}
    endings |= dict.fromkeys(COMMUNICATORS, "call.end(code, found_{})")
    for kind, text in endings.items():
        for one in function.arguments:
            if one.kind == kind and is_object(one):
                return text.format(one.name)
    if function.arguments and (function.arguments[0].kind, function.arguments[0].direction) == ("comm", "inout"):
        return f"call.end(code, comm_behind({function.arguments[0].name}))"
    if function.arguments and (function.arguments[0].kind, function.arguments[0].direction) == ("session", "inout"):
        return f"end_with_session(call, code, session_behind({function.arguments[0].name}))"
    for one in function.arguments:
        if (one.kind, one.direction) == ("errhandler", "in"):  # of the object that the call makes
            return f"call.end_with(code, {{{one.name}, nullptr}})"
    return "call.end(code)"


def narrowing(function):
    """The outputs that are wide in the function behind, but not in the entry point without _c."""
    return [one for one in function.arguments if one.direction != "in" and one.has_large_form() and not one.is_array]


def conversion(function):
    """The entry point of a function that turns a handle into an integer, or back."""
    one = function.arguments[0]
    made = f"to_handle<{function.result}>" if one.kind in table.INTEGERS else "to_integer"
    return "\n".join([
        f'extern "C" {function.result} PMPI_{function.name}({one.declaration()}) {{ return {made}({one.name}); }}',
        f"CANELE_MPI_NAME({function.name});", ""])


def groups_of_data(function):
    """Returns the arguments of a collective as its function takes them: the data of one side as one argument.

    A reduction takes its arguments as they are.
    """
    arguments = [one for one in function.arguments if one.kind not in ("comm", "info", "request")]
    if any(one.kind == "op" for one in arguments):
        return [f"Integers({one.name}, 0)" if one.is_list else one.name for one in arguments]
    parts = []
    while arguments:
        one = arguments.pop(0)
        if one.kind != "choice":
            parts.append(one.name)
            continue
        count = arguments.pop(0)
        place = arguments.pop(0) if count.is_array else None
        data_type = arguments.pop(0)
        if not count.is_array:
            parts.append(f"CallBuffer{{{one.name}, {count.name}, {data_type.name}}}")
        else:
            lists = f"Integers({count.name}, 0), Integers({place.name}, 0)"
            types = f"MPI_DATATYPE_NULL, {data_type.name}" if data_type.is_array else data_type.name
            parts.append(f"CallBufferV{{{one.name}, {lists}, {types}}}")
    return parts


def collective_entry(function, large):
    name = function.name + ("_c" if large else "")
    parts = [f'"MPI_{name}"', "comm"]
    if function.name.endswith("_init"):
        base, how, parts = function.name[:-len("_init")], "plan", parts + ["info", "request", "start_{}<Plan>"]
    elif function.call_class == "init":
        base, how, parts = function.name[1:], "begin", parts + ["request", "start_{}<Start>"]
    else:
        base, how, parts = function.name, "run", parts + ["start_{}<Start>"]
    parts[-1] = parts[-1].format(base.lower())
    return "\n".join([
        wrap(f'extern "C" int PMPI_{name}(', [one.declaration(large) for one in function.arguments], ") {"),
        wrap(f"  return {how}_collective(", parts + groups_of_data(function), ");"), "}",
        f"CANELE_MPI_NAME({name});", ""])


def tool(function):
    """The entry point of a function for tools. Errors are returned only, and the function behind checks arguments."""
    head = wrap(f'extern "C" int PMPI_{function.name}(', [one.declaration() for one in function.arguments], ") {")
    starts = "true" if function.name == "T_init_thread" else "false"
    call = f"calls::{snake_case(function.name)}({', '.join(one.name for one in function.arguments)})"
    return "\n".join([head, f"  return tools::perform({starts}, [&] {{ return {call}; }});", "}",
                      f"CANELE_MPI_NAME({function.name});", ""])


def entry(function, large):
    if "conversion" in function.marks:
        return conversion(function)
    if function.is_collective:
        return collective_entry(function, large)
    if function.chapter == "tools":
        return tool(function)
    name = function.name + ("_c" if large else "")
    narrow = narrowing(function) if function.has_large_form and not large else []
    lines = [wrap(f'extern "C" int PMPI_{name}(', [one.declaration(large) for one in function.arguments], ") {")]
    if "any time" in function.marks:
        lines.append(f'  const Call call = Call::any_time("MPI_{name}");')
    else:
        lines.append(f'  const Call call("MPI_{name}");')
        lines.append("  if (call.rejected()) [[unlikely]]\n    return call.end(reject_in_child());")
    for one in function.arguments:
        if is_object(one):
            lines.append("  " + OBJECTS[one.kind][0].format("found_" + one.name))
    for one in narrow:
        lines.append(f"  {one.value_type(True)} wide_{one.name} = 0;")
    begin = "  int code = "
    for condition, step in check_steps(function):
        lines.append(f"{begin}{step};" if not condition and "int" in begin else
                     f"  if (code == MPI_SUCCESS{condition}) code = {step};")
        begin = "  "
    for one in narrow:
        if one.direction == "inout":
            lines.append(f"  if (code == MPI_SUCCESS) wide_{one.name} = *{one.name};")
    parts = [f"&wide_{one.name}" if one in narrow else passed(one, function.has_large_form)
             for one in function.arguments if is_passed(one)]
    if "form" in function.marks:
        parts.append("Form::large" if large else "Form::small")
    lines.append(wrap(f"  const auto perform = [&] {{ return calls::{snake_case(function.name)}(", parts, "); };"))
    lines.append(f"{begin}without_memory_error(perform);" if "int" in begin else
                 "  if (code == MPI_SUCCESS) code = without_memory_error(perform);")
    for one in narrow:
        lines.append(f"  if (code == MPI_SUCCESS) *{one.name} = narrow<{one.value_type()}>(wide_{one.name});")
    lines += [f"  return {ending(function)};", "}", f"CANELE_MPI_NAME({name});", ""]
    return "\n".join(lines)


def entries(chapter):
    begins = "tools/tool_state.hpp" if chapter.name == "tools" else "entry.hpp"
    lines = [f"// {LICENSE}", "//", f"// Entry points of the chapter {chapter.name}, made from",
             f"// starpu_glue/mpi/functions/{chapter.name}.txt.", f'#include "calls/{chapter.name}.hpp"', "",
             f'#include "starpu_glue/mpi/{begins}"']
    if any(function.is_collective for function in chapter.functions):
        lines.append('#include "starpu_glue/mpi/collectives/entry.hpp"')
    lines += ["", "using namespace canele::mpi;", ""]
    for function in chapter.functions:
        if function.is_generated:
            if not function.is_declared:
                lines += ['extern "C" {', declare(function), "}"]
            lines.append(entry(function, False))
            if function.has_large_form:
                lines.append(entry(function, True))
    return "\n".join(lines)


# ----------------------------------------------------------------------------------------- the list in the docs


def names_of(functions):
    return textwrap.wrap(", ".join(sorted(function.name for function in functions)), 88)


def list_of_functions(chapters):
    """Markdown: which functions exist, by chapter."""
    total = [function for chapter in chapters for function in chapter.functions]
    lines = [f"{sum(one.exists for one in total)} of {len(total)} functions exist.", ""]
    for chapter in chapters:
        there = [function for function in chapter.functions if function.exists]
        lines += [f"### {chapter.title.split('. ')[0]}", ""]
        if chapter.left_out:
            lines += ["None, and none is planned.", ""]
            continue
        lines += [f"{len(there)} of {len(chapter.functions)}.", ""]
        lines += [*names_of(there), ""] if there else []
        missing = names_of([function for function in chapter.functions if not function.exists])
        lines += ["Missing: " + missing[0], *missing[1:], ""] if missing else []
    return "\n".join(lines)


def write(path, text):
    if path.is_symlink():
        path.unlink()  # of an older build, into the source tree
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def main(directory):
    target = pathlib.Path(directory)
    chapters = table.read_table()
    write(target / "include" / "mpi_functions.h", functions_header(chapters))
    write(target / "function_names.hpp", function_names(chapters))
    include = table.HERE.parent / "include"
    header = "".join((include / name).read_text(encoding="utf-8") for name in ("mpi.h", "mpi_constants.h"))
    write(target / "include" / "mpif.h", fortran_modules.include_file(header))
    write(target / "mpi.f90", fortran_modules.modules(chapters, header))
    write(target / "include/standard_abi/mpi_functions.h", standard_abi.header(chapters, declare))
    write(target / "standard_abi.cpp", standard_abi.library(chapters))
    made = {target / "entries_in_fortran.cpp": fortran.stubs(chapters)}
    for chapter in chapters:
        if any(function.is_generated for function in chapter.functions):
            made[target / "calls" / f"{chapter.name}.hpp"] = calls_header(chapter)
            made[target / f"entries_{chapter.name}.cpp"] = entries(chapter)
    for path in set(target.glob("calls/*.hpp")) | set(target.glob("entries_*.cpp")):
        if path not in made:
            path.unlink()
    for path, text in made.items():
        write(path, text)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: generate.py DIRECTORY, or generate.py --list (for docs/mpi-functions.md)")
    try:
        if sys.argv[1] == "--list":
            print(list_of_functions(table.read_table()), end="")
        else:
            main(sys.argv[1])
    except table.TableError as error:
        sys.exit(f"generate.py: {error}")

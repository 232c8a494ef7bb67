# SPDX-License-Identifier: BSD-3-Clause
"""The standard ABI of MPI 5.0: declarations of all its functions, and the library libmpi_abi.

The ABI has all functions but those with types of Fortran, and those that MPI-3.0 has removed. A program of the ABI, or
an extension of Python that names every function, is loaded only if each name is found. So the library has those, too,
that do not exist here: a call ends as an error with the function's name.

libmpi_abi is a filter (see ld --filter): the loader looks each name up in libcanele_mpi first. A function that exists
there is defined here for the linker only.
"""
OF_FORTRAN = {"fint", "f_status", "f08_status"}


def functions_of(chapters):
    """Returns the functions of the ABI, with those that only its header has."""
    return [one for chapter in chapters for one in chapter.functions
            if ("undeclared" not in one.marks or one.is_large_only) and one.result != "MPI_Fint" and
            not any(argument.kind in OF_FORTRAN for argument in one.arguments)]


def names_of(function):
    """Returns the function's names in the ABI: its own, and that of the form for large counts."""
    return [function.name] + ([f"{function.name}_c"] if function.marks & {"large", "large missing"} else [])


def header(chapters, declare):
    """Declarations of all functions. `declare(function, large)` makes one."""
    lines = ["/* SPDX-License-Identifier: BSD-3-Clause", " *",
             " * Declarations of all functions of the standard ABI, made from starpu_glue/mpi/functions.", " */"]
    for one in functions_of(chapters):
        lines += [declare(one, name != one.name) for name in names_of(one)]
    return "\n".join(lines) + "\n"


def library(chapters):
    """The sources of libmpi_abi."""
    lines = ["// SPDX-License-Identifier: BSD-3-Clause", "//",
             "// libmpi_abi: all names of the standard ABI, made from starpu_glue/mpi/functions.",
             'extern "C" int canele_mpi_lacks(const char* function);', "",
             "#define CANELE_LACKS(name, result, value)                                      \\",
             '  extern "C" __attribute__((visibility("default"))) result PMPI_##name(void);  \\',
             '  extern "C" result PMPI_##name(void) {                                        \\',
             '    const int code = canele_mpi_lacks("MPI_" #name);                           \\',
             "    return (void)code, value;                                                  \\",
             "  }                                                                            \\",
             '  extern "C" __attribute__((visibility("default"), weak, alias("PMPI_" #name))) result MPI_##name(void)',
             ""]
    for one in functions_of(chapters):
        result = "void*" if one.result.startswith("MPI_") and one.result not in ("MPI_Aint", "MPI_Fint") else one.result
        value = {"int": "code", "void*": "nullptr"}.get(result, "0")
        result = {"MPI_Aint": "long"}.get(result, result)
        lines += [f"CANELE_LACKS({name}, {result}, {value});" for name in names_of(one)]
    return "\n".join(lines) + "\n"

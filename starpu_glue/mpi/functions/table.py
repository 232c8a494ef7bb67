# SPDX-License-Identifier: BSD-3-Clause
"""The table of MPI's functions: reads the chapters (*.txt) into objects. README.md has the format.

Used by generate.py and by tests. Errors name file and line, and what was expected.
"""
import dataclasses
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent

# Kind of an argument: its type in C, and the type in the form for large counts if that differs.
INTEGERS = {
    "count": ("int", "MPI_Count"),  # elements, at least 0
    "blocklength": ("int", "MPI_Count"),  # in elements, at least 0
    "distance": ("int", "MPI_Count"),  # in elements, may be negative
    "displacement": ("int", "MPI_Aint"),  # of a part of a buffer, in elements
    "size": ("int", "MPI_Count"),  # bytes
    "bytes": ("MPI_Aint", "MPI_Count"),  # bytes, as an address
    "unit": ("int", "MPI_Aint"),  # bytes of a displacement unit
    "address": ("MPI_Aint", None),
    "offset": ("MPI_Offset", None),
    "big": ("MPI_Count", None),
    "fint": ("MPI_Fint", None),
    "length": ("int", None),  # of the arrays that name it, at least 0
    "integer": ("int", None),
    "flag": ("int", None),
    "rank": ("int", None),
    "source": ("int", None),
    "root": ("int", None),
    "tag": ("int", None),
    "keyval": ("int", None),
    "assert": ("int", None),
    "error": ("int", None),
}
HANDLES = {
    "comm": "MPI_Comm",
    "any_comm": "MPI_Comm",  # checked, and not used
    "intracomm": "MPI_Comm",  # no intercommunicator
    "intercomm": "MPI_Comm",  # an intercommunicator
    "peer_comm": "MPI_Comm",  # significant on one rank only; not looked up
    "peer_group": "MPI_Group",  # likewise
    "group": "MPI_Group",
    "datatype": "MPI_Datatype",
    "op": "MPI_Op",
    "request": "MPI_Request",
    "errhandler": "MPI_Errhandler",
    "win": "MPI_Win",
    "info": "MPI_Info",
    "message": "MPI_Message",
    "session": "MPI_Session",
    "file": "MPI_File",
}
# Kinds with a type of their own for each direction: in, out, inout.
SPECIAL = {
    "choice": ("const void *", "void *", "void *"),  # data of any type
    "pointer": (None, "void *", None),  # the address of a pointer
    "attribute": ("void *", "void *", None),
    "state": ("void *", None, None),
    "weights": ("const int *", "int *", None),  # no array in C: compilers would warn of MPI_UNWEIGHTED
    "text": ("const char *", "char *", None),
    "optional_text": (None, "char *", None),  # may be NULL
    "status": ("const MPI_Status *", "MPI_Status *", "MPI_Status *"),
    "f_status": ("const MPI_Fint *", "MPI_Fint *", None),  # in Fortran
    "f08_status": ("const MPI_F08_status *", "MPI_F08_status *", None),
    "argument_count": (None, None, "int *"),
    "arguments": (None, None, "char ***"),
    "program_arguments": ("char **", None, None),  # those of main, or NULL
    "argument_lists": (None, "char **", None),  # of several programs
}
# Functions of the program that are the same for large counts.
ONE_FORM = ("MPI_Datarep_extent_function",)
CLASSES = ("blocking", "init", "test", "wait")
MARKS = CLASSES + ("large", "missing", "large missing", "by hand", "conversion", "any time", "may block")
MARKS += ("deprecated", "removed", "undeclared", "form", "collective")
DIRECTIONS = ("in", "out", "inout")


class TableError(Exception):
    """A line of the table that is not in the format."""


@dataclasses.dataclass(frozen=True)
class Argument:
    direction: str
    kind: str
    name: str
    length: str | None  # of an array: the argument that gives it, or ""; else None

    @property
    def is_array(self):
        return self.length is not None

    @property
    def is_pointer(self):
        return self.direction != "in" or self.is_array or self.kind in SPECIAL or self.is_function

    @property
    def is_rest(self):
        """The arguments of a variadic function that its prototype does not name."""
        return self.kind == "..."

    @property
    def is_function(self):
        return self.kind.startswith("MPI_") and self.kind.endswith("_function")

    def has_large_form(self):
        return self.kind in INTEGERS and INTEGERS[self.kind][1] is not None

    @property
    def is_list(self):
        """Whether it is an array that has integers of another size in the form for large counts."""
        return self.direction == "in" and self.is_array and self.has_large_form()

    def value_type(self, large=False):
        """The C type of the value itself."""
        if self.kind in INTEGERS:
            small, big = INTEGERS[self.kind]
            return big if large and big else small
        return HANDLES.get(self.kind, self.kind)

    def declaration(self, large=False):
        """The argument as a C prototype has it."""
        if self.is_rest:
            return "..."
        if self.kind == "ranges":
            return f"int {self.name}[][3]"
        if self.is_function:
            return f"{self.value_type() + ('_c' if large and self.kind not in ONE_FORM else '')} *{self.name}"
        if self.kind in SPECIAL:
            text = SPECIAL[self.kind][DIRECTIONS.index(self.direction)]
            if not self.is_array:
                return text + self.name
            if self.kind == "argument_lists":
                return f"char **{self.name}[]"
            return f"char *{self.name}[]" if self.kind == "text" else f"{text.rstrip('* ')} {self.name}[]"
        type_name = self.value_type(large)
        if self.is_array:
            return f"{'const ' if self.direction == 'in' else ''}{type_name} {self.name}[]"
        if self.direction == "in":
            return f"{type_name} {self.name}"
        return f"{type_name} *{self.name}"


@dataclasses.dataclass(frozen=True)
class Function:
    name: str  # without MPI_
    chapter: str
    arguments: tuple
    result: str
    marks: frozenset
    since: str  # version of the standard
    place: str  # file and line

    @property
    def exists(self):
        return "missing" not in self.marks

    @property
    def is_generated(self):
        return self.exists and "by hand" not in self.marks

    @property
    def is_collective(self):
        return self.exists and "collective" in self.marks

    @property
    def has_large_form(self):
        return self.exists and "large" in self.marks

    @property
    def is_declared(self):
        """Whether mpi.h has it. The library exports the others for old programs, which declare them themselves."""
        return self.exists and "undeclared" not in self.marks

    @property
    def is_large_only(self):
        """Whether it is the form for large counts of another function, with arguments of its own."""
        return self.name.endswith("_c")

    @property
    def call_class(self):
        return next((mark for mark in CLASSES if mark in self.marks), "other")

    @property
    def blocks(self):
        return "may block" in self.marks or self.call_class in ("blocking", "wait")


@dataclasses.dataclass(frozen=True)
class Chapter:
    name: str
    title: str
    left_out: bool
    functions: tuple


def parse_argument(text, place):
    words = text.split()
    direction = words.pop(0) if words and words[0] in DIRECTIONS else "in"
    if words == ["..."]:
        return Argument("in", "...", "...", None)
    if len(words) != 2:
        raise TableError(f"{place}: '{text}': expected: [in|out|inout] KIND NAME, or NAME[LENGTH] for an array")
    kind, name = words
    if kind not in INTEGERS and kind not in HANDLES and kind not in SPECIAL and kind != "ranges" and kind[:4] != "MPI_":
        raise TableError(f"{place}: '{kind}' is no kind of argument; table.py lists them")
    match = re.fullmatch(r"(\w+)(?:\[(\w*)\])?", name)
    if match is None:
        raise TableError(f"{place}: '{name}': expected: NAME or NAME[LENGTH]")
    if kind in SPECIAL and SPECIAL[kind][DIRECTIONS.index(direction)] is None:
        raise TableError(f"{place}: '{text}': an argument of the kind {kind} has another direction")
    return Argument(direction, kind, match[1], match[2])


def parse_function(text, chapter, place):
    match = re.fullmatch(r"(\w+)\((.*)\)(?: -> ([\w ]+))?(?:: (.*))?", text)
    if match is None:
        raise TableError(f"{place}: '{text}': expected: NAME(ARGUMENTS)[ -> RESULT][: MARKS]")
    name, arguments, result, marks = match.groups()
    parts = [part.strip() for part in arguments.split(",")] if arguments else []
    since, kept = "3.1", []
    for mark in (marks or "").split(", ") if marks else []:
        if mark.startswith("since "):
            since = mark[len("since "):]
        elif mark in MARKS:
            kept.append(mark)
        else:
            raise TableError(f"{place}: '{mark}' is no mark; expected: 'since VERSION' or one of {', '.join(MARKS)}")
    return Function(name, chapter, tuple(parse_argument(part, place) for part in parts), result or "int",
                    frozenset(kept), since, place)


def read_chapter(path):
    title, left_out, functions, text, begin = "", False, [], "", 0
    lines = path.read_text(encoding="utf-8").splitlines() + [""]
    for number, line in enumerate(lines, 1):
        if text and not line.startswith("    "):
            functions.append(parse_function(text, path.stem, f"{path.name}:{begin}"))
            text = ""
        if line.startswith("#"):
            title = title or line.lstrip("# ").rstrip(".")
        elif line == "left out":
            left_out = True
        elif line.startswith("    "):
            text += " " + line.strip()
        elif line:
            text, begin = line, number
    if left_out:
        functions = [dataclasses.replace(function, marks=function.marks | {"missing"}) for function in functions]
    return Chapter(path.stem, title, left_out, tuple(functions))


def read_table(directory=HERE):
    """Returns all chapters, in the order of their names."""
    chapters = [read_chapter(path) for path in sorted(pathlib.Path(directory).glob("*.txt"))]
    places = {}
    for function in (function for chapter in chapters for function in chapter.functions):
        if function.name in places:
            raise TableError(f"{function.place}: {function.name} is in the table already, at {places[function.name]}")
        places[function.name] = function.place
        names = {argument.name for argument in function.arguments}
        for argument in function.arguments:
            if argument.length and argument.length not in names:
                raise TableError(f"{function.place}: {function.name} has no argument {argument.length}")
    return chapters


def existing(chapters):
    """Returns the functions that the library has."""
    return [function for chapter in chapters for function in chapter.functions if function.exists]

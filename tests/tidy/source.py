# SPDX-License-Identifier: BSD-3-Clause
"""The sources as the tidy rules see them: the file list, code without comments and strings, functions, includes.

tidy.py makes one Tree, which every rule reads. This is no C++ parser. `code` is the text with comments and literals
blanked out, line structure kept. Functions are found by their braces in clang-formatted code. Two things are not seen:
functions made by macros, and code that a preprocessor branch leaves with unbalanced braces (reported as a finding of
its own).
"""
import ast
import functools
import pathlib
import re

CPP = (".cpp", ".hpp", ".c", ".h")
SKIPPED_DIRECTORIES = {".git", "build", ".cache", "__pycache__", ".vscode", ".idea"}


class File:
    """One source file: its path inside the repository and its text."""

    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.lines = text.splitlines()

    @property
    def suffix(self):
        return pathlib.PurePosixPath(self.path).suffix

    @property
    def room(self):
        """The first directory of the path."""
        return self.path.split("/")[0] if "/" in self.path else ""

    @property
    def is_cpp(self):
        return self.suffix in CPP

    @functools.cached_property
    def is_python(self):
        return self.suffix == ".py" or (not self.suffix and self.text.startswith("#!/usr/bin/python3"))

    @functools.cached_property
    def is_shell(self):
        return self.suffix == ".sh" or (not self.suffix and bool(re.match(r"#!.*\b(ba)?sh\b", self.text)))

    @property
    def is_cmake(self):
        return self.suffix == ".cmake" or self.path.endswith("CMakeLists.txt")

    @property
    def is_code(self):
        return self.is_cpp or self.is_python or self.is_shell or self.is_cmake

    @functools.cached_property
    def code(self):
        """C and C++: the text with comments, strings and characters blanked out."""
        return blank_literals(self.text)

    @functools.cached_property
    def includes(self):
        """[(line, name, True if in angle brackets)]."""
        found = []
        for number, line in enumerate(self.lines, 1):
            match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            if match:
                found.append((number, match.group(2), match.group(1) == "<"))
        return found

    @functools.cached_property
    def functions(self):
        """[(name, first line, last line)]; None stands for braces that do not match."""
        if self.is_cpp:
            return cpp_functions(self.code)
        if self.is_python:
            return python_functions(self.text)
        return shell_functions(self.lines) if self.is_shell else []


class Tree:
    """All files of the repository, by path."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.files = {}
        for path in sorted(self.root.rglob("*")):
            relative = path.relative_to(self.root)
            if path.is_file() and not SKIPPED_DIRECTORIES.intersection(relative.parts):
                try:
                    self.files[relative.as_posix()] = File(relative.as_posix(), path.read_text(encoding="utf-8"))
                except UnicodeDecodeError:
                    continue  # binary: test data

    def select(self, predicate):
        return [file for file in self.files.values() if predicate(file)]

    @property
    def cpp(self):
        return self.select(lambda file: file.is_cpp)

    @property
    def code(self):
        return self.select(lambda file: file.is_code)

    def resolve(self, file, name):
        """Returns the repository path that an include names, or None if it is not ours."""
        here = str(pathlib.PurePosixPath(file.path).parent)
        for candidate in (name if here == "." else f"{here}/{name}", name, f"comm/include/{name}"):
            if candidate in self.files:
                return candidate
        return None

    def with_included(self, file):
        """Returns the file and all of ours that it includes, directly or not."""
        seen, todo = {}, [file]
        while todo:
            member = todo.pop()
            if member.path not in seen:
                seen[member.path] = member
                targets = (self.resolve(member, name) for _, name, _ in member.includes)
                todo += [self.files[target] for target in targets if target]
        return list(seen.values())


LITERAL = re.compile(
    r"""(?P<raw>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)")"""
    r"""|(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)"""
    r"""|(?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")"""
    r"""|(?P<include>^[ \t]*\#[ \t]*include[^\n]*)"""
    r"""|(?P<separator>(?<=[0-9a-fA-F])'(?=[0-9a-fA-F]))"""
    r"""|(?P<character>'(?:\\.|[^'\\\n])+')""",
    re.DOTALL | re.MULTILINE,
)


def blank_literals(text, keep_comments=False):
    """Returns C++ text with comments and literals replaced by blanks of the same length and line structure."""

    def blank(match):
        if keep_comments and match.group("comment"):
            return match.group(0)
        if match.group("include"):
            return match.group(0)
        return re.sub(r"[^\n]", " ", match.group(0))

    return LITERAL.sub(blank, text)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


# Text before the `{` of a block that is no function body.
NO_FUNCTION = re.compile(
    r"^\s*(?:(?:export|inline|static|typedef|template\s*<.*>|alignas\s*\([^)]*\)|\[\[.*?\]\])\s*)*"
    r"(?:namespace|class|struct|union|enum|extern\s*)\b(?!.*\)\s*(?:const|noexcept|override|final"
    r"|->.*)*\s*$)",
    re.DOTALL,
)
CONTROL = re.compile(r"^\s*(?:if|for|while|switch|do|else|try|catch)\b")


def is_function_head(head):
    """Returns whether the text before a `{` at namespace or class level opens a function body."""
    head = re.sub(r"^\s*#[^\n]*$", "", head, flags=re.MULTILINE).strip()
    if not head or "(" not in head or head.endswith(("=", ",", "(", "return")) or NO_FUNCTION.match(head):
        return False
    return not CONTROL.match(head) and head.count("(") == head.count(")")


def function_name(head):
    match = re.search(r"([~\w:]+(?:\s*operator\s*\S+?)?)\s*\(", head)
    return match.group(1) if match else "?"


# `y_{1}` in the initialiser list of a constructor: a brace after a member's name, which follows `:` or `,`.
MEMBER_INITIALISER = re.compile(r"\).*?(?<!:)[:,]\s*\w+(?:::\w+)*(?:<[^<>]*>)?\s*$", re.DOTALL)


def cpp_functions(code):
    """Returns [(name, first line, last line)] of the outermost functions; lambdas count with the function around them.
    """
    found, stack, begin = [], [], 0
    inside = None  # (depth, name, first line) of the function that is open
    for match in re.finditer(r"[{};]", code):
        position, char, head = match.start(), match.group(0), code[begin : match.start()]
        if char == "{":
            stack.append("initialiser" if MEMBER_INITIALISER.search(head) else "block")
            if inside is None and stack[-1] == "block" and is_function_head(head):
                start = begin + len(head) - len(re.sub(r"^(?:\s|#[^\n]*(?:\n|$))+", "", head))
                inside = (len(stack), function_name(head), line_of(code, start))
        elif char == "}":
            if not stack:
                return [*found, None]
            kind = stack.pop()
            if inside is not None and len(stack) < inside[0]:
                found.append((inside[1], inside[2], line_of(code, position)))
                inside = None
            elif inside is None and kind == "initialiser":
                continue  # still the head of a constructor
        if inside is None and not (stack and stack[-1] == "initialiser"):
            begin = position + 1
    return found + ([None] if stack else [])


def python_functions(text):
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return [None]
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [(node.name, node.lineno, node.end_lineno) for node in ast.walk(tree) if isinstance(node, kinds)]


def shell_functions(lines):
    found, open_function = [], None
    for number, line in enumerate(lines, 1):
        match = re.match(r"(?:function\s+)?([\w-]+)\s*\(\)\s*\{", line)
        if match:
            open_function = (match.group(1), number)
        elif line.rstrip() == "}" and open_function:
            found.append((*open_function, number))
            open_function = None
    return found

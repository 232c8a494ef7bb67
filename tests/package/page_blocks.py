# SPDX-License-Identifier: BSD-3-Clause
"""The code blocks of a Markdown page, as a reader follows them: commands to run, files to save.

Used by package_test.py: for README.md and docs/start.md, and for the programs of other pages. Blocks of `sh` are
commands. Blocks of C, C++ and CMake are files. The line before a block may have a directive, which readers of the page
do not see:
  <!-- test: save NAME -->     the file is saved under this name; the page tells the reader this name, too
  <!-- test: skip REASON -->   the block is not followed
A block of a program without a directive is an error: it would not be tested. Blocks of other languages are ignored.
"""
import re
import typing

PROGRAMS = ("c", "cpp", "c++", "cmake")


class Step(typing.NamedTuple):
    """One command, or one file to save: then `name` is its name and `text` its content."""

    line: int
    name: str | None
    text: str


class Block(typing.NamedTuple):
    """One fenced block: the line of its fence, its language, its lines, its directive."""

    line: int
    language: str
    lines: list
    directive: str


def blocks_of(text):
    """Returns all fenced blocks of a page, in order."""
    found, directive, block, fence = [], "", None, ""
    for number, line in enumerate(text.splitlines(), 1):
        comment = re.match(r"\s*<!--\s*test:\s*(.*?)\s*-->\s*$", line)
        opening = re.match(r"\s*(```+|~~~+)\s*([\w+]*)", line)
        if block is not None:
            if line.strip().startswith(fence):
                found.append(block)
                block = None
            else:
                block.lines.append(line)
        elif opening:
            fence, block = opening.group(1), Block(number, opening.group(2).lower(), [], directive)
            directive = ""
        elif comment:
            directive = comment.group(1)
        elif line.strip():
            directive = ""
    return found


def commands_of(block):
    """Returns the commands of a block as steps. A command continued after a backslash is one."""
    found, whole = [], True
    for number, line in enumerate(block.lines, block.line + 1):
        if not whole:
            found[-1] = found[-1]._replace(text=f"{found[-1].text}\n{line}")
        elif line.strip():
            found.append(Step(number, None, line))
        whole = not line.endswith("\\")
    return found


def programs_of(text):
    """Returns the files that a page says to save, as steps. The parts of programs that it shows are left out."""
    return [
        Step(block.line, block.directive.split(" ", 1)[1], "\n".join(block.lines) + "\n")
        for block in blocks_of(text)
        if block.directive.startswith("save ")
    ]


def steps_of(text):
    """Returns the steps of a page, in order. Raises ValueError for a program that would not be tested, and for a
    directive that means nothing.
    """
    found = []
    for block in blocks_of(text):
        verb, _, rest = block.directive.partition(" ")
        if verb not in ("", "save", "skip") or (verb and not rest):
            raise ValueError(f"line {block.line}: directive '{block.directive}'; expected: save NAME, or skip REASON")
        if verb == "skip":
            continue
        if verb == "save":
            found.append(Step(block.line, rest, "\n".join(block.lines) + "\n"))
        elif block.language == "sh":
            found += commands_of(block)
        elif block.language in PROGRAMS:
            raise ValueError(f"line {block.line}: a program without '<!-- test: save NAME -->' before it")
    return found

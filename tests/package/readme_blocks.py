# SPDX-License-Identifier: BSD-3-Clause
"""The code blocks of a Markdown page, as a test wants them.

Used by package_test.py, for README.md and for the commands of docs/start.md. A block of C, C++ or CMake is tested
unless the line before it says why not:
  <!-- test: skip REASON -->          the block is not compiled
  <!-- test: run COMMAND PREFIX -->   how the program is started; without it: canele-run -n 2
A CMake block is built together with the program block that comes before it in the page.
"""
import re

LANGUAGES = {"c": "c", "cpp": "cpp", "c++": "cpp", "cmake": "cmake"}


class Block:
    def __init__(self, line, language, text, directive):
        self.line = line
        self.language = language
        self.text = text
        self.directive = directive

    @property
    def skipped(self):
        return self.directive.startswith("skip ")

    @property
    def launcher(self):
        """Returns the command that starts the program."""
        return self.directive[4:].split() if self.directive.startswith("run ") else ["canele-run", "-n", "2"]


def commands_of(text):
    """Returns the commands of the `sh` blocks of a page, in order; a command continued after a backslash is one."""
    found, inside, whole = [], False, True
    for line in text.splitlines():
        if line.startswith("```"):
            inside = line.strip() == "```sh"
        elif inside and line.strip():
            if whole:
                found.append(line)
            else:
                found[-1] += "\n" + line
            whole = not line.endswith("\\")
    return found


def blocks_of(text):
    """Returns the blocks of C, C++ and CMake of a page, in order."""
    found, directive, lines = [], "", text.splitlines()
    index = 0
    while index < len(lines):
        comment = re.match(r"\s*<!--\s*test:\s*(.*?)\s*-->\s*$", lines[index])
        fence = re.match(r"\s*(```+|~~~+)\s*([\w+]*)", lines[index])
        if comment:
            directive = comment.group(1)
        elif fence:
            begin = index + 1
            index = next(
                (number for number in range(begin, len(lines)) if lines[number].strip().startswith(fence.group(1))),
                len(lines),
            )
            if fence.group(2).lower() in LANGUAGES:
                code = "\n".join(lines[begin:index]) + "\n"
                found.append(Block(begin, LANGUAGES[fence.group(2).lower()], code, directive))
            directive = ""
        elif lines[index].strip():
            directive = ""
        index += 1
    return found

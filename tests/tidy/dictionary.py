#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Finds names that this project no longer uses, because the field has another word.

Usage: tests/tidy/dictionary.py [--list] [WORD]...

The list is tests/tidy/dictionary.txt, one row a line:

    old word | new word | names or words [| except: REGULAR EXPRESSION]

`names`: no identifier may contain the old word: snake_case, CamelCase and CONSTANTS are taken apart, so `put off` finds
put_off, PutOff and CANELE_PUT_OFF_X. `words`: comments, pages and messages may not contain it either. What the
exception matches, as "path:identifier" or "path:line of text", is left out.
Without --list: the number of findings of each row. With it: FILE:LINE: old name -> new word.
The tidy rule `dictionary` (rules_text.py) demands that there is none.
"""
import argparse
import collections
import pathlib
import re
import sys

from source import Tree

LIST = pathlib.Path(__file__).with_name("dictionary.txt")


class Row(collections.namedtuple("Row", "old new prose exception")):
    """One row of the list: `old` as words, `exception` as a regular expression or None."""

    __slots__ = ()

    def forbids(self, path, text):
        return self.exception is None or not self.exception.search(f"{path}:{text}")


# What tells of the past, or compares vocabularies, uses old names on purpose.
HISTORY = ("docs/notes/", "CHANGELOG.md", "docs/glossary.md", "tests/tidy/dictionary", "tests/tidy/rules_text.py",
           "tests/fuzz/corpus/")
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def read_rows(text):
    rows = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split(" | ")]
        exception = cells[3].removeprefix("except:").strip() if len(cells) > 3 else None
        rows.append(Row(tuple(cells[0].split()), cells[1], cells[2] == "words", exception and re.compile(exception)))
    return rows


def parts_of(identifier):
    return [part.lower() for part in PART.findall(identifier)]


def contains(parts, old):
    return any(tuple(parts[i : i + len(old)]) == old for i in range(len(parts) - len(old) + 1))


def names_in(file):
    """[(line, identifier)] of the code, and of what pages and comments put in backquotes."""
    text = file.code if file.is_cpp else file.text
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        spans = re.findall(r"`([^`]+)`", line) if file.suffix == ".md" else [line]
        found += [(number, name) for span in spans for name in IDENTIFIER.findall(span)]
    return found


class Index:
    """The rows by their first word: most identifiers have none of them."""

    def __init__(self, rows):
        self.by_first = collections.defaultdict(list)
        for row in rows:
            self.by_first[row.old[0]].append(row)
        self.prose = [(row, re.compile(r"\b" + r"[\s_-]+".join(map(re.escape, row.old)) + r"\b", re.IGNORECASE))
                      for row in rows if row.prose]
        self.seen = {}

    def rows_of(self, identifier):
        if identifier not in self.seen:
            parts = parts_of(identifier)
            self.seen[identifier] = [row for part in set(parts) for row in self.by_first.get(part, [])
                                     if contains(parts, row.old)]
        return self.seen[identifier]


def findings(file, index):
    """[(line, what was found, row)]."""
    found = []
    for line, name in names_in(file):
        for row in index.rows_of(name):
            if row.forbids(file.path, name):
                found.append((line, name, row))
    here = [(row, pattern) for row, pattern in index.prose if pattern.search(file.text)]
    for number, text in enumerate(file.lines, 1) if here else []:
        for row, pattern in here:
            match = pattern.search(text)
            if match and row.forbids(file.path, text):
                found.append((number, match.group(0), row))
    return found


def is_checked(file):
    return not file.path.startswith(HISTORY) and (file.is_code or file.suffix in (".md", ".patch"))


def all_rows():
    return read_rows(LIST.read_text(encoding="utf-8"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    rows = [row for row in all_rows()
            if not options.words or set(options.words) & {" ".join(row.old), *row.old}]
    index, count = Index(rows), collections.Counter()
    for file in Tree(options.root).select(is_checked):
        for line, name, row in findings(file, index):
            count[row.old] += 1
            if options.list:
                print(f"{file.path}:{line}: {name} -> {row.new}")
    for row in rows:
        if not options.list and count[row.old]:
            print(f"{count[row.old]:6} {' '.join(row.old)} -> {row.new}")
    print(f"dictionary: {len(rows)} rows, {sum(count.values())} findings")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())

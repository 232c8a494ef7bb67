#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures the English of comments and pages: words for persons, and long sentences.

Usage: tests/tidy/english.py [--list] [--root DIRECTORY] [PATH]...

Without --list: one row a directory. With --list: every finding, as FILE:LINE: what. A PATH limits it to what begins so.
"Who", "nobody" and their like stand for persons in this project's text. A thread, a caller, a rank or a driver has a
name (CONTRIBUTING.md, section English). The tidy rule `english` (rules_text.py) holds the whole
tree to its limits, and allows none of these words in messages.
"""
import argparse
import collections
import pathlib
import re
import sys

from source import LITERAL, Tree, line_of

WHO = re.compile(r"\b(who|whoever|whom)\b", re.IGNORECASE)
BODY = re.compile(r"\b(some|any|no|every)body\b", re.IGNORECASE)
LONG, TOO_LONG = 25, 30  # words of a sentence: more than wished, more than counted

Prose = collections.namedtuple("Prose", "line text")


def is_picture(line):
    """Drawings, tables, code and commands have no sentences."""
    return bool(re.search(r"[│─├└┌┐┘┤┬┴┼▶◀▲▼═]|──|-->|<--|^\s*[|+]|^\s{4,}\S.*\s{3,}\S|^[-=~*]{4,}", line))


def comment_lines(file):
    """[Prose] of a source file, a line each, without the marks of the comment."""
    found = []
    if file.is_cpp:
        for match in LITERAL.finditer(file.text):
            if match.group("comment"):
                first = file.text.count("\n", 0, match.start()) + 1
                for offset, line in enumerate(match.group("comment").split("\n")):
                    found.append(Prose(first + offset, re.sub(r"^\s*(///?<?|/\*+|\*(?!/))|\*/\s*$", "", line)))
    elif file.is_python or file.is_shell or file.is_cmake:
        inside = False
        for number, line in enumerate(file.lines, 1):
            quotes = line.count('"""') if file.is_python else 0
            if inside or quotes:
                found.append(Prose(number, line.replace('"""', "")))
                inside = inside != (quotes % 2 == 1)
            elif match := re.match(r"^(?:[^'\"#]|'[^']*'|\"[^\"]*\")*#(?!!)\s?(.*)$", line):
                found.append(Prose(number, match.group(1)))
    return found


def page_lines(file):
    """[Prose] of a Markdown page: no code blocks, no tables, no headings."""
    found, fenced = [], False
    for number, line in enumerate(file.lines, 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith(("    ", "|", "#", "<")):
            found.append(Prose(number, line))
    return found


def prose_of(file):
    lines = page_lines(file) if file.suffix == ".md" else comment_lines(file)
    return [line for line in lines if line.text.strip() and "SPDX-" not in line.text]


def sentences(lines):
    """[Prose] of whole sentences; a blank line, a gap, a picture and a list item end one."""
    found, words, begin, last = [], [], 0, -1

    def close():
        if words:
            found.append(Prose(begin, " ".join(words)))
        words.clear()

    for number, text in lines:
        if is_picture(text):
            close()
            continue
        if number != last + 1 or re.match(r"^\s*([-*]|\d+[.)]|@?\w+:)\s", text):
            close()
        last = number
        plain = re.sub(r"`[^`]*`", "code", text)
        for word in plain.split():
            if not words:
                begin = number
            words.append(word)
            if re.search(r"[.!?][)\"'”]?$", word) and not re.search(r"\b(e\.g|i\.e|etc|vs|cf|[A-Z])\.$", word):
                close()
    close()
    return found


def findings(file):
    """[(line, kind, text)] with kind in "who", "body", "long", "too long"."""
    lines = prose_of(file)
    found = []
    for number, text in lines:
        plain = re.sub(r"`[^`]*`", "", text)
        found += [(number, "who", match.group(0)) for match in WHO.finditer(plain)]
        found += [(number, "body", match.group(0)) for match in BODY.finditer(plain)]
    every = sentences(lines)
    for number, text in every:
        count = len(text.split())
        if count > LONG:
            found.append((number, "too long" if count > TOO_LONG else "long", f"{count} words: {text[:60]}..."))
    return found, len(lines), len(every)


def persons_in_messages(file):
    """[(line, word)] of words for persons in the messages of a C or C++ file: literals of more than one word."""
    if not file.is_cpp:
        return []
    return [(line_of(file.text, match.start()), word.group(0)) for match in LITERAL.finditer(file.text)
            if not match.group("comment") and " " in match.group(0).strip() for pattern in (WHO, BODY)
            for word in pattern.finditer(match.group(0))]


def is_text(file):
    return (file.is_code or file.suffix == ".md") and not file.path.startswith("tests/mutations/")


def measure(files):
    """{kind: number} of the files, with "lines" and "sentences"."""
    total = collections.Counter()
    for file in files:
        found, lines, every = findings(file)
        total.update(kind for _, kind, _ in found)
        total.update(lines=lines, sentences=every)
    return total


def row(name, total):
    lines, every = max(total["lines"], 1), max(total["sentences"], 1)
    return (f"{name:<28} {total['lines']:6} {1000 * total['who'] / lines:6.1f} {1000 * total['body'] / lines:6.1f} "
            f"{100 * total['too long'] / every:6.1f} {100 * (total['long'] + total['too long']) / every:6.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("paths", nargs="*")
    options = parser.parse_args()
    files = [file for file in Tree(options.root).files.values()
             if is_text(file) and (not options.paths or file.path.startswith(tuple(options.paths)))]
    if options.list:
        for file in files:
            for line, kind, text in sorted(findings(file)[0]):
                print(f"{file.path}:{line}: {kind}: {text}")
        return 0
    groups = collections.defaultdict(list)
    for file in files:
        parts = file.path.split("/")
        groups["/".join(parts[: 2 if parts[0] in ("comm", "drivers", "tests", "apps", "starpu_glue") else 1][:-1] or
                        ["."])].append(file)
    print(f"{'directory':<28} {'lines':>6} {'who':>6} {'-body':>6} {'>30 %':>6} {'>25 %':>6}   "
          "(who, -body: per 1,000 lines of comment and prose)")
    for name, members in sorted(groups.items()):
        print(row(name, measure(members)))
    print(row("all", measure(files)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

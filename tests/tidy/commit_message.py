#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks commit messages: a subject `area: imperative` of at most 72 columns, a blank line, a body.

Usage: tests/tidy/commit_message.py FILE            # one message, as git's hook commit-msg passes it
       tests/tidy/commit_message.py --new           # all commits since the rule exists (in a clone with history)

Install the hook: ln -s ../../tests/tidy/commit_message.py .git/hooks/commit-msg
Merges, reverts and fixup commits carry git's own words and are not checked.
"""
import argparse
import pathlib
import re
import subprocess
import sys

SINCE = "12ab85f"  # the last commit before the rule
COLUMNS = 72
GIT_WORDS = re.compile(r"^(Merge |Revert |fixup! |squash! |amend! )")
SUBJECT = re.compile(r"^[a-z0-9_./, *{}-]+: \S")
# Third person and past tense: "adds", "added". An imperative that ends so is listed.
NOT_IMPERATIVE = re.compile(r"^(?!(?:pass|address|process|access|cross|press|express|bypass|focus|miss|need|embed|feed|"
                            r"speed|shed|seed|bring|string|ring|spring|discuss|guess|compress|assess|toss)\b)"
                            r"[a-z]+(?:[^s]s|ed|ing)\b")


def problems(message):
    """What is wrong with a message, as a list of texts."""
    lines = [line for line in message.split("\n") if not line.startswith("#")]
    subject = lines[0] if lines else ""
    if GIT_WORDS.match(subject):
        return []
    found = []
    if len(subject) > COLUMNS:
        found.append(f"the subject has {len(subject)} columns; expected: at most {COLUMNS}")
    if not SUBJECT.match(subject):
        found.append(f'the subject is "{subject}"; expected: "area: imperative", the area in small letters')
    elif match := NOT_IMPERATIVE.match(subject.split(": ", 1)[1]):
        found.append(f'the subject goes on with "{match.group(0)}"; expected: an imperative, such as "add"')
    if subject.endswith("."):
        found.append("the subject ends with a period; expected: none")
    if len(lines) > 1 and lines[1].strip():
        found.append("the second line is not blank; expected: a blank line between subject and body")
    return found


def new_commits(root):
    """[(hash, message)] since the rule exists; [] where there is no such history."""
    command = ["git", "-C", str(root), "log", "--no-merges", "--format=%h%n%B%x00", f"{SINCE}..HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    entries = [entry.strip("\n") for entry in done.stdout.split("\0") if entry.strip()] if done.returncode == 0 else []
    return [tuple(entry.split("\n", 1)) for entry in entries if "\n" in entry]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("file", nargs="?", type=pathlib.Path)
    parser.add_argument("--new", action="store_true", help="all commits since the rule exists")
    options = parser.parse_args()
    if options.new == (options.file is not None):
        parser.error("expected: a file with a message, or --new")
    root = pathlib.Path(__file__).resolve().parents[2]
    messages = new_commits(root) if options.new else [("this commit", options.file.read_text(encoding="utf-8"))]
    failed = 0
    for name, message in messages:
        for problem in problems(message):
            print(f"{name}: {problem}", file=sys.stderr)
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

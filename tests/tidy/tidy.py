#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks our own sources against the house rules.

Usage: tests/tidy/tidy.py [--all | --self-test | --list] [--rule NAME]... [--root DIRECTORY]

Run by ctest (label tidy), by tests/run.sh, and by hand before a commit. Needs only Python's standard library. Every
rule brings snippets that it must catch and snippets that it must let pass. --self-test runs them, so a rule that no
longer finds anything is itself a failure.
"""
import argparse
import pathlib
import sys
import tempfile
import time

import rules_calls
import rules_docs
import rules_layers
import rules_locks
import rules_standard
import rules_text
import rules_tools
from source import Tree

FAMILIES = (rules_layers, rules_standard, rules_calls, rules_text, rules_docs, rules_locks, rules_tools)
RULES = [rule for family in FAMILIES for rule in family.RULES]


def parse_arguments():
    parser = argparse.ArgumentParser(description="Checks Canelé's sources against the house rules.")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--all", action="store_true", help="check the sources (the default)")
    parser.add_argument("--self-test", action="store_true", help="test the rules themselves")
    parser.add_argument("--list", action="store_true", help="list the rules")
    parser.add_argument("--rule", action="append", default=[], metavar="NAME", help="only these rules")
    parser.add_argument("--without", action="append", default=[], metavar="NAME", help="all but these rules")
    options = parser.parse_args()
    unknown = set(options.rule + options.without) - {rule[0] for rule in RULES}
    if unknown:
        parser.error(f"no such rule: {', '.join(sorted(unknown))} (see --list)")
    return options


def findings_in(files, check):
    """Returns what a rule finds in a repository that holds just these files."""
    with tempfile.TemporaryDirectory() as directory:
        for name, text in files.items():
            path = pathlib.Path(directory) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return list(check(Tree(directory)))


def self_test(rules):
    """Runs every rule on its snippets. Returns (passed, failed)."""
    passed = failed = 0
    for name, check, _, tests in rules:
        if not any(expected for _, expected in tests) and name not in ("format", "shell", "thread-safety"):
            print(f"{name}: has no snippet that it must catch")
            failed += 1
        for files, expected in tests:
            found = findings_in(files, check)
            if len(found) == expected:
                passed += 1
            else:
                failed += 1
                print(f"{name}: {expected} findings expected, {len(found)} found in {files}: {found}")
    return passed, failed


def check_sources(root, rules):
    """Runs the rules on the repository and prints what they find. Returns (passed, failed)."""
    tree, passed, failed = Tree(root), 0, 0
    for name, check, _, _ in rules:
        begin = time.monotonic()
        found = sorted(set(check(tree)))
        for path, line, text in found:
            print(f"{path}:{line}: {name}: {text}")
        passed, failed = passed + (not found), failed + bool(found)
        if time.monotonic() - begin > 2:
            print(f"({name}: {time.monotonic() - begin:.1f} s)", flush=True)
    return passed, failed


def main():
    options = parse_arguments()
    rules = [rule for rule in RULES if rule[0] not in options.without and (not options.rule or rule[0] in options.rule)]
    if options.list:
        for name, _, text, tests in rules:
            print(f"{name:<22} {text} ({len(tests)} snippets)")
        return 0
    passed, failed = self_test(rules) if options.self_test else check_sources(options.root, rules)
    print(f"{'rules' if options.self_test else 'tidy'}: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

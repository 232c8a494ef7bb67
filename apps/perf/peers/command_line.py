# SPDX-License-Identifier: BSD-3-Clause
"""What the command lines of the comparisons share: lists, the place of programs and results, and how a run ends.

Used by every program of this directory that measures. One thread. `--work DIR` names a directory that is kept. It has
the programs of the other libraries, which prebuild.py compiles there, and gets the results. Without it, programs are
compiled into a temporary directory at each start.

    add_common ─▶ options ─▶ work_directory ─▶ measure ─▶ deliver ─▶ table or JSON
                                                             └─▶ DIR/results/<program>-<date>.json
"""

import argparse
import contextlib
import json
import os
import pathlib
import sys
import tempfile
import time

import machine


def run(main):
    """Runs the main() of a program. Returns its exit code; 1 if the reader of its output has gone, as head does."""
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter writes the rest at its end
        return 1
    return code


def whole_numbers(what, least=0):
    """Returns a parser of whole numbers, comma-separated. `what` names them in the message if they are malformed."""
    def parse(text):
        try:
            found = [int(word) for word in text.split(",")]
        except ValueError as problem:
            raise argparse.ArgumentTypeError(f"{what} are whole numbers, such as 1,2: {problem}") from problem
        if min(found) < least:
            raise argparse.ArgumentTypeError(f"{what}: the least value is {least}, not {min(found)}")
        return found
    return parse


def names(what, known):
    """Returns a parser of names, comma-separated. `what` names one of them in the message if it is unknown."""
    def parse(text):
        if unknown := [word for word in text.split(",") if word not in known]:
            raise argparse.ArgumentTypeError(f"unknown {what} {', '.join(unknown)}; known: {', '.join(known)}")
        return text.split(",")
    return parse


def listed(values):
    """Returns values as the programs take lists: with commas."""
    return ",".join(map(str, values))


def add_json_file(parser):
    """Adds --json FILE, of the programs that print their table beside it."""
    parser.add_argument("--json", metavar="FILE", help="write all samples and verdicts there; - is the output")


def add_places(parser):
    """Adds the options that say where programs and results are."""
    parser.add_argument("--prefix", help="where Canelé is installed (default: build/release, then PATH)")
    parser.add_argument("--work", metavar="DIR", help="directory of compiled programs (prebuild) and of results, kept "
                        "(default: a temporary one)")


def add_common(parser, contenders, chosen=None, rounds=5, time_limit=120, rounds_names=("--rounds",),
               json_file=False):
    """Adds the options of a comparison: where programs are, which contenders take part, how often and how long."""
    add_places(parser)
    parser.add_argument("--contenders", type=names("contender", contenders), default=chosen or contenders,
                        help=f"of {listed(contenders)} (default: {listed(chosen) if chosen else 'all'})")
    parser.add_argument(*rounds_names, type=int, dest="rounds", default=rounds, help="how often each contender runs "
                        f"(default {rounds or 'by benchmark'})")
    parser.add_argument("--time-limit", type=float, default=time_limit, help="seconds for one job "
                        f"(default {time_limit or 'by benchmark'})")
    if json_file:
        add_json_file(parser)
    else:
        parser.add_argument("--json", action="store_true", help="print JSON")


def forget_settings():
    """Removes the settings of Canelé from the environment, and names them: every job runs with the defaults."""
    if ignored := sorted(name for name in os.environ if name.startswith("CANELE_")):
        print(f"not passed on to the jobs: {', '.join(ignored)}", file=sys.stderr, flush=True)
        for name in ignored:
            del os.environ[name]


@contextlib.contextmanager
def work_directory(options):
    """Sets options.work to the directory of programs, and options.kept to whether it outlives the run."""
    options.kept = bool(options.work)
    if options.kept:
        os.makedirs(options.work, exist_ok=True)
        yield
        return
    with tempfile.TemporaryDirectory(prefix="canele-peers-") as options.work:
        yield
    options.work = None


def keep(options, program, result):
    """Writes a result, with a description of the machine, into a directory of --work. Returns the path; None without
    such a directory.
    """
    if not getattr(options, "kept", False):
        return None
    folder = pathlib.Path(options.work) / "results"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{program}-{time.strftime('%Y-%m-%d-%H%M%S')}-{os.getpid()}.json"
    whole = {"program": program, "date": time.strftime("%Y-%m-%d"), "machine": machine.about(options.work), **result}
    path.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    return path


def write_json(place, result):
    """Writes a result as JSON: into a file, or on the output if `place` is -. Returns whether a table may follow."""
    text = json.dumps(result, indent=1)
    if place == "-":
        print(text)
    elif place:
        pathlib.Path(place).write_text(text + "\n", encoding="utf-8")
    return place != "-"


def deliver(options, program, result, show):
    """Prints a result: JSON, or what `show` prints of it. Keeps it in a directory of --work."""
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        show(result)
    keep(options, program, result)

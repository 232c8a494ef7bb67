# SPDX-License-Identifier: BSD-3-Clause
"""What callgrind has counted: runs it, and reads its output files.

The format has two traps. A line of costs after "calls=" is the total cost of the call, and no part of the caller's own
cost. A name is written out once in a file, then referred to by its number.
"""
import collections
import re
import subprocess

# The simulated cache holds everything that a step touches, so a miss is a line touched for the first time (see
# counting.hpp). The events: Ir instructions, Bc conditional branches, Bi indirect jumps, D1mr and D1mw misses, Ge
# locked instructions. (Callgrind also counts calls and system calls, but includes those of the steps that are not
# collected.)
OPTIONS = ["--tool=callgrind", "--collect-atstart=no", "--cache-sim=yes", "--D1=262144,8,64", "--branch-sim=yes",
           "--collect-bus=yes"]
# The C library has a variant of these for each kind of processor, so their lines count and their instructions do not.
COPIES = re.compile(r"__mem(cpy|move|set)_")
START = "__libc_start_main"  # all costs are below this function
SYSTEM = ("libc.so", "libstdc++.so", "libpthread.so")
NAME = re.compile(r"\((\d+)\)(?: (.*))?")
COSTS = re.compile(r"[\d+*-]\S* ?([\d ]*)$")


class Counts(collections.Counter):
    """Counts of events, by name."""

    def only(self, *events):
        return Counts({event: self[event] for event in events})


class Profile:
    """One dump. `title`: as the program has named it. `own`: by function, its own costs. `calls`: by object of the
    caller, object and function of the callee, the total cost of these calls. Objects are names of files.
    """

    def __init__(self, path):
        self.title, self.total = "", Counts()
        self.own, self.calls = collections.defaultdict(Counts), collections.defaultdict(Counts)
        self._events, self._names, self._at, self._is_call = [], {}, {}, False
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self._read(line.rstrip("\n"))

    def copies(self):
        """Returns the instructions spent in copies."""
        cost = Counts()
        for name, counts in self.own.items():
            if COPIES.match(name):
                cost.update(counts.only("Ir", "Bc", "Bi"))
        return cost

    def below(self, caller, callees):
        """Returns the total cost of the calls from one object to others, without copies."""
        cost = Counts()
        for (source, target, function), counts in self.calls.items():
            left_out = COPIES.match(function) or function.startswith(START)
            if source.startswith(caller) and target.startswith(callees) and not left_out:
                cost.update(counts)
        return cost

    def _read(self, line):
        key, _, value = line.partition("=")
        if key in ("ob", "fn", "cob", "cfn"):
            self._at[key] = self._name(key[-2:], value)
        elif key == "calls":
            self._is_call = True
        elif line.startswith("desc: Trigger: Client Request: "):
            self.title = line.split(": ", 3)[3]
        elif line.startswith("events: "):
            self._events = line.split()[1:]
        elif line.startswith("totals: "):
            self.total = self._counts(line.split()[1:])
        elif "fn" in self._at and (costs := COSTS.match(line)):
            self._add(self._counts(costs[1].split()))

    def _add(self, counts):
        if self._is_call:
            where = self._at["ob"]
            callee = (self._at.pop("cob", where), self._at["cfn"])  # without "cob" the callee is in the caller's object
            self.calls[(where, *callee)].update(counts)
            self._is_call = False
        else:
            self.own[self._at["fn"]].update(counts)

    def _counts(self, words):
        return Counts({event: int(word) for event, word in zip(self._events, words)})

    def _name(self, kind, text):
        number, name = NAME.match(text).groups()
        if name is not None:
            self._names[kind, number] = name.rsplit("/", 1)[-1] if kind == "ob" else name
        return self._names[kind, number]


def run(program, environment, directory):
    """Runs the program under callgrind and returns its dumps. The environment is this one only: names in it move the
    stack.
    """
    command = ["valgrind", *OPTIONS, f"--callgrind-out-file={directory}/counts", str(program)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"exit code {done.returncode} of {' '.join(command)}:\n{done.stdout}{done.stderr}")
    dumps = sorted(directory.glob("counts.*"), key=lambda path: int(path.suffix[1:]))
    return [profile for profile in map(Profile, dumps) if profile.title]

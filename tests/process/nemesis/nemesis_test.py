#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of four ranks to which everything is done, from a seed: right data or a clean error, no hang, nothing left.

Usage: nemesis_test.py --preload LIBRARY [--jobs N | --seconds S] [--seed S] [--kinds LIST] [--verbose]
Who: ctest, a short run; tests/run.sh --soak (stage soak-nemesis), an hour. CANELE_TEST_BIN: where the programs are.
Surprise: the seed names what is done to which job, and in which order; the moments are the system's. Each kind that is
asked for must have happened, or the run fails: it would not test what it is for. A kind counts when it was done to a
living process, or when the preloaded library says that it has struck.
"""
import argparse
import collections
import os
import pathlib
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
BIN = pathlib.Path(os.environ.get("CANELE_TEST_BIN", "build/release/bin")).resolve()
WRAPPER = HERE.parents[1] / "with-timeout"
PROGRAM = "process_nemesis"
RANKS = 4
LIMIT = 60  # as of with-timeout
MOST_TRIES = 12  # jobs of one kind alone, until it has happened
VERDICT = re.compile(r"^rank (-?\d+): (right|clean: .*|WRONG: .*)$", re.MULTILINE)
# libevent, which libpmix uses, ends a process that it finds without descriptors.
LIBEVENT = re.compile(r"^\[err\] evsig_init_: socketpair: Too many open files$", re.MULTILINE)
# kind: must all ranks end well?
KINDS = {
    "kill": False,  # SIGKILL for a rank; the others go on until they need it
    "stop": True,  # SIGSTOP, and SIGCONT after a while
    "descriptors": False,  # RLIMIT_NOFILE, of a rank that has begun or is up
    "flood": True,  # connections to the ports of the ranks, by a process that does not know the secret
    "threads": False,  # a thread that the library starts cannot be had
    "memory": False,  # an allocation of the library's fails
    "address-space": False,  # RLIMIT_AS
    "stderr": False,  # the launcher's standard error is a pipe that is not read any more; with a kill
    "fork": True,  # a rank forks, and calls the library in the child
    "engines": True,  # each rank starts and ends several engines, one after the other
}


def processes():
    """{pid: (parent, name)}"""
    table = {}
    for entry in os.listdir("/proc"):
        try:
            text = pathlib.Path(f"/proc/{int(entry)}/stat").read_text(encoding="utf-8", errors="replace")
        except (ValueError, OSError):
            continue
        table[int(entry)] = (int(text[text.rindex(")") + 2 :].split()[1]), text[text.index("(") + 1 : text.rindex(")")])
    return table


def ranks_below(pid):
    table = processes()
    found, level = [], [pid]
    while level:
        level = [child for child, (parent, _) in table.items() if parent in level]
        found += level
    return sorted(child for child in found if table[child][1] == PROGRAM[:15])


def ports_of(pids):
    """TCP ports on which these processes listen."""
    inodes = set()
    for pid in pids:
        try:
            inodes |= {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
        except OSError:
            continue
    ports = []
    for line in pathlib.Path("/proc/net/tcp").read_text(encoding="utf-8").splitlines()[1:]:
        words = line.split()
        if words[3] == "0A" and f"socket:[{words[9]}]" in inodes:
            ports.append(int(words[1].split(":")[1], 16))
    return ports


class Job:
    def __init__(self, options, seed, kinds):
        self.dice = random.Random(seed)
        self.seed, self.kinds, self.options = seed, kinds, options
        self.done, self.killed, self.output = collections.Counter(), 0, []
        self.up, self.over = threading.Event(), threading.Event()
        self.stacks = tempfile.NamedTemporaryFile("r", prefix="nemesis-")

    def command(self):
        driver = "tcp" if "flood" in self.kinds else self.dice.choice(["shm", "tcp", "shm+tcp"])
        settings = {"CANELE_DRIVERS": driver, "CANELE_WORKER": self.dice.choice(["none", "auto", "bound"])}
        for kind, most in (("memory", 400), ("threads", 4)):
            if kind in self.kinds:
                settings.update(LD_PRELOAD=self.options.preload, CANELE_TEST_FAIL_RANK=str(self.dice.randrange(RANKS)),
                                CANELE_TEST_FAIL_KIND={"memory": "malloc", "threads": "pthread_create"}[kind],
                                CANELE_TEST_FAIL_FROM=str(self.dice.randint(1, most)))
        if "threads" in self.kinds:
            settings["CANELE_WORKER"] = "bound"
        command = [str(WRAPPER), "--stacks", self.stacks.name, str(LIMIT), str(BIN / "canele-run"), "--keep-going",
                   "-n", str(RANKS)]
        command += [word for name, value in settings.items() for word in ("-x", f"{name}={value}")]
        cycles = self.dice.randint(2, 4) if "engines" in self.kinds else 1
        return command + [str(BIN / PROGRAM), str(self.seed), str(self.options.rounds), str(cycles)]

    def read(self, stream):
        for line in stream:
            self.output.append(line)
            if sum("is up" in one for one in self.output) == RANKS:
                self.up.set()
        self.up.set()

    def run(self):
        """"" or what went wrong."""
        command = self.command()
        errors = subprocess.PIPE if "stderr" in self.kinds else subprocess.STDOUT
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, errors="replace") as job:
            reader = threading.Thread(target=self.read, args=(job.stdout,))
            reader.start()
            self.strike(job)
            code = job.wait()
            reader.join()
        text = "".join(self.output)
        for kind in ("memory", "threads"):
            self.done[kind] += kind in self.kinds and "injected: " in text
        self.done["fork"] += text.count(": forked")
        self.done["engines"] += "engines" in self.kinds
        problem = self.judge(code, text)
        return f"{problem}\n{' '.join(command)}\n{text}{self.stacks.read()}" if problem else ""

    # ------------------------------------------------------------------------------------------------- injections

    def strike(self, job):
        strikes = [kind for kind in self.kinds if kind not in ("memory", "threads", "engines")]
        self.dice.shuffle(strikes)
        if "descriptors" in strikes and self.dice.random() < 0.5:
            while job.poll() is None and not ranks_below(job.pid):
                time.sleep(0.001)
            self.strike_once("descriptors", job)
            strikes.remove("descriptors")
        self.up.wait()
        for kind in strikes:
            time.sleep(self.dice.uniform(0, 0.02))
            self.strike_once(kind, job)

    def strike_once(self, kind, job):
        try:
            getattr(self, kind.replace("-", "_"))(job)
        except (ProcessLookupError, FileNotFoundError):
            pass  # the victim has just ended

    def victim(self, job):
        ranks = ranks_below(job.pid)
        return self.dice.choice(ranks) if ranks else None

    def kill(self, job):
        pid = self.victim(job)
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            self.killed += 1
            self.done["kill"] += 1

    def stop(self, job):
        for _ in range(self.dice.randint(1, 4)):
            pid = self.victim(job)
            if pid is None:
                return
            os.kill(pid, signal.SIGSTOP)
            time.sleep(self.dice.uniform(0.001, 0.1))
            os.kill(pid, signal.SIGCONT)
            self.done["stop"] += 1

    def descriptors(self, job):
        pid = self.victim(job)
        if pid is None:
            return
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        few = len(os.listdir(f"/proc/{pid}/fd")) + self.dice.randint(0, 3)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (min(few, before[1]), before[1]))
        self.done["descriptors"] += 1
        time.sleep(self.dice.uniform(0.01, 0.2))
        if self.dice.random() < 0.5:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)

    def address_space(self, job):
        pid = self.victim(job)
        if pid is None:
            return
        pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[0])
        most = resource.prlimit(pid, resource.RLIMIT_AS)[1]
        few = pages * resource.getpagesize() + self.dice.randint(0, 1 << 20)
        resource.prlimit(pid, resource.RLIMIT_AS, (few, most))
        self.done["address-space"] += 1

    def flood(self, job):
        ports = ports_of(ranks_below(job.pid))
        held = []
        for _ in range(300 if ports else 0):
            outsider = socket.socket()
            outsider.settimeout(0.2)
            try:
                outsider.connect(("127.0.0.1", self.dice.choice(ports)))
                if self.dice.random() < 0.5:
                    outsider.send(bytes(self.dice.randrange(256) for _ in range(self.dice.randint(1, 64))))
                self.done["flood"] += 1
            except OSError:
                pass
            held.append(outsider)
            if self.dice.random() < 0.7:
                held.pop(self.dice.randrange(len(held))).close()
        for outsider in held:
            outsider.close()

    def stderr(self, job):
        job.stderr.close()
        self.done["stderr"] += 1
        self.kill(job)  # the launcher has something to say

    def fork(self, job):
        pid = self.victim(job)
        if pid is not None:
            os.kill(pid, signal.SIGUSR1)

    # -------------------------------------------------------------------------------------------------- judgement

    def judge(self, code, text):
        verdicts = VERDICT.findall(text) + [("-1", "clean: libpmix: its libevent ends the process: no descriptors")
                                            for _ in LIBEVENT.findall(text)]
        wrong = [words for _, words in verdicts if words.startswith("WRONG")]
        silent = [words for _, words in verdicts if words.startswith("clean") and words.count(": ") < 3]
        self.right = sum(words == "right" for _, words in verdicts)
        self.clean = [words for _, words in verdicts if words.startswith("clean")]
        if code == 124:
            return "it hangs"
        if code == 125:
            return "it left processes behind"
        if wrong:
            return wrong[0]
        if silent:
            return f"an error without a reason: {silent[0]}"
        if len(verdicts) + self.killed < RANKS:
            return (f"{len(verdicts)} ranks of {RANKS} have ended by themselves, {self.killed} were killed; "
                    f"exit code {code}")
        if all(KINDS[kind] for kind in self.kinds) and (self.right != RANKS or code != 0):
            return f"nothing was taken away, and {self.right} of {RANKS} ranks ended well; exit code {code}"
        if code not in (0, 3, 128 + signal.SIGKILL) and not LIBEVENT.search(text):
            return f"exit code {code}"
        return ""


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--preload", default="", help="the library that takes memory and threads away")
    parser.add_argument("--jobs", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=0, help="for so long, and not so many jobs")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default="all", help=f"of {', '.join(KINDS)}; all is the default")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    options.kinds = list(KINDS) if options.kinds == "all" else options.kinds.split(",")
    for kind in options.kinds:
        if kind not in KINDS:
            parser.error(f"there is no kind '{kind}'; there are: {', '.join(KINDS)}")
    return options


def kinds_of(options, number, dice):
    """One in turn, and sometimes others; of what is preloaded one."""
    kinds = [options.kinds[number % len(options.kinds)]]
    kinds += [kind for kind in options.kinds if kind not in kinds and dice.random() < 0.2]
    if "memory" in kinds and "threads" in kinds:
        kinds.remove("threads" if kinds[0] == "memory" else "memory")
    return kinds


def main():
    options = parse()
    done, ended, reasons, begin = collections.Counter(), collections.Counter(), collections.Counter(), time.monotonic()
    number = failures = 0
    print(f"seed {options.seed}, kinds: {', '.join(options.kinds)}", flush=True)

    def run(kinds):
        nonlocal done, reasons, number, failures
        job = Job(options, options.seed * 1_000_000 + number, kinds)
        problem = job.run()
        done += job.done
        ended["failed" if problem else "all right" if job.right == RANKS else "clean"] += 1
        reasons += collections.Counter(re.sub(r"\d+", "N", words)[:100] for words in job.clean)
        if options.verbose or problem:
            print(f"job {number}, {' '.join(job.kinds)}: {problem or f'{job.right} right, {len(job.clean)} clean'}",
                  flush=True)
        failures += bool(problem)
        number += 1

    while time.monotonic() - begin < options.seconds if options.seconds else number < options.jobs:
        run(kinds_of(options, number, random.Random(options.seed * 1_000_000 + number)))
    for kind in options.kinds:  # another kind can end a job before this one strikes
        tries = number + MOST_TRIES
        while done[kind] == 0 and number < tries:
            run([kind])
    missing = [kind for kind in options.kinds if done[kind] == 0]
    print("done: " + ", ".join(f"{kind} {done[kind]}" for kind in options.kinds))
    print("jobs: " + ", ".join(f"{count} {how}" for how, count in ended.items()))
    for reason, count in reasons.most_common(12):
        print(f"  {count} ranks: {reason}")
    if missing:
        print(f"FAIL: never done: {', '.join(missing)}")
    if failures:
        print(f"FAIL: {failures} of {number} jobs; again: --seed {options.seed} --kinds {','.join(options.kinds)}")
    return 1 if failures or missing else 0


if __name__ == "__main__":
    sys.exit(main())

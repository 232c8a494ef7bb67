# SPDX-License-Identifier: BSD-3-Clause
"""Disturbs a job: processes take its cores, and ranks are stopped at any moment.

Used by parking_test.py, stress_test.py. The moments and the stopped ranks are drawn from a seed. But the ranks run as
the system schedules them, so a seed names a kind of disturbance and does not repeat it.
"""
import os
import pathlib
import random
import signal
import subprocess
import threading

HOG = "while True: pass"


def idle_class():
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def children_of(pid):
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(word) for word in task.read_text().split()]
        except OSError:
            pass
    return found


class Disturbance:
    """While entered, hogs run on the cores, and now and then one of the launcher's children is stopped for a while."""

    def __init__(self, launcher, seed):
        self.launcher = launcher
        self.dice = random.Random(seed)
        self.hogs, self.stops = [], 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.stop_and_go)

    def __enter__(self):
        cores = os.cpu_count()
        for number in range(cores + self.dice.randrange(2)):
            prepare = idle_class if number < cores else None  # an idle one for each core, and perhaps an ordinary one
            self.hogs.append(subprocess.Popen(["/usr/bin/python3", "-c", HOG], preexec_fn=prepare))
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        for hog in self.hogs:
            hog.kill()
            hog.wait()

    def stop_and_go(self):
        while not self.over.wait(self.dice.uniform(0.005, 0.040)):
            ranks = children_of(self.launcher)
            if not ranks:
                continue
            rank = self.dice.choice(ranks)
            try:
                os.kill(rank, signal.SIGSTOP)
                self.over.wait(self.dice.uniform(0.0005, 0.020))
                os.kill(rank, signal.SIGCONT)
                self.stops += 1
            except ProcessLookupError:
                pass

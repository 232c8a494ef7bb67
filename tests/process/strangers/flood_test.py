#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Floods the listeners of three ranks with connections that do not know the secret: the job ends right nevertheless.

Usage: flood_test.py DRIVER (tcp, shm) MODE (close, hold, hello) [--descriptors N]
Run by ctest. CANELE_TEST_BIN: where the programs are. tests/unit/drivers/unauthenticated_test.cpp counts how much such
connections may cost; there is no clock here but the time limit. A late rank connects to another one for the first time
in mid-flood.
"""
import argparse
import collections
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading

BIN = pathlib.Path(os.environ.get("CANELE_TEST_BIN", "build/release/bin")).resolve()
LIMIT = 600  # with-timeout ends a hang before that
HELLO = b"ELNC\x01\x00\x01\x00" + bytes(24)  # drivers/net/handshake.cpp: magic, version 1, an initiator


def sockets_of(launcher):
    """Returns the inodes of the sockets of the launcher's descendants. The launcher's own listeners are not for this
    test.
    """
    found, own, todo = set(), set(), [launcher]
    while todo:
        one = todo.pop()
        try:
            for task in pathlib.Path(f"/proc/{one}/task").iterdir():
                todo += [int(child) for child in (task / "children").read_text().split()]
            for link in pathlib.Path(f"/proc/{one}/fd").iterdir():
                match = re.match(r"socket:\[(\d+)\]", os.readlink(link))
                if match:
                    (own if one == launcher else found).add(match.group(1))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found - own  # ranks may have inherited some


def targets(driver, pid):
    """Returns the addresses at which the ranks listen."""
    own = sockets_of(pid)
    if driver == "tcp":
        rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return {("127.0.0.1", int(row[1].split(":")[1], 16)) for row in rows if row[3] == "0A" and row[9] in own}
    rows = [line.split() for line in pathlib.Path("/proc/net/unix").read_bytes().decode("latin-1").splitlines()[1:]]
    return {"\0" + row[7][1:] for row in rows if len(row) == 8 and row[7].startswith("@canele-") and row[6] in own}


def pour(driver, target, mode, job, made):
    held = collections.deque()
    while job.poll() is None:
        one = socket.socket(socket.AF_INET if driver == "tcp" else socket.AF_UNIX)
        one.settimeout(0.2)
        try:
            one.connect(target)
            if mode == "hello":
                one.send(HELLO)
        except OSError:
            one.close()
            job_over.wait(0.01)
            continue
        made[0] += 1
        if mode == "close":
            one.close()
        else:
            held.append(one)
        if len(held) > 300:
            held.popleft().close()


job_over = threading.Event()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("driver", choices=["tcp", "shm"])
    parser.add_argument("mode", choices=["close", "hold", "hello"])
    parser.add_argument("--descriptors", type=int, default=0)
    options = parser.parse_args()
    limit = ["prlimit", f"--nofile={options.descriptors}"] if options.descriptors else []
    command = [str(BIN / "canele-run"), "--timeout", str(LIMIT), "-n", "3", "-x", f"CANELE_DRIVERS={options.driver}",
               "-x", "CANELE_TCP_INTERFACE=lo", *limit, str(BIN / "strangers_flood_job"), "3000", "3000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as job:
        made, flooded = [0], set()
        reader = threading.Thread(target=lambda: made.append(job.communicate()[0]))
        reader.start()
        while job.poll() is None:
            for target in targets(options.driver, job.pid) - flooded:
                flooded.add(target)
                threading.Thread(target=pour, args=(options.driver, target, options.mode, job, made),
                                 daemon=True).start()
            job_over.wait(0.02)
        job_over.set()
        reader.join()
    text = made[1]
    print(f"{options.driver}, {options.mode}: exit {job.returncode}, {len(flooded)} targets, {made[0]} connections")
    lines = text.splitlines()
    repeated = [line for line, count in collections.Counter(lines).items() if count > 3]
    if job.returncode != 0 or not flooded or not made[0] or repeated:
        print(f"FAIL: exit {job.returncode}; lines said more than once per rank: {repeated}\n{text[-4000:]}")
        return 1
    return 0


sys.exit(main())

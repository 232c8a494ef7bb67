#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fails each system call of a small job once: the job ends right, or with an error that a call reports. Never
otherwise.

Usage: syscall_sweep.py DRIVERS [--calls NAME,...] [--most N] [--on]
DRIVERS: shm, tcp ...; --most: the first N calls of each function (default: all); --on: all later calls fail, too

Run by ctest; by hand for one function. CANELE_TEST_BIN: where the programs are. The fault is in rank 1 only; a hang
or a crash of either rank fails the test.
"""
import argparse
import collections
import concurrent.futures
import errno
import os
import pathlib
import re
import subprocess
import sys

BIN = pathlib.Path(os.environ.get("CANELE_TEST_BIN", "build/release/bin")).resolve()
LIMIT = 60  # seconds for a job of half a second
AT_ONCE = 4  # jobs: each mostly waits for its processes to start
# Errors of the kernel when a resource is exhausted; and harmless ones that must not be taken for more.
FAULTS = {
    "socket": "EMFILE ENOMEM", "bind": "ENOMEM", "listen": "ENOMEM", "connect": "EAGAIN ENOMEM",
    "accept4": "EMFILE EAGAIN ENOMEM", "shutdown": "ENOTCONN", "getsockopt": "ENOMEM", "setsockopt": "ENOMEM",
    "getsockname": "ENOBUFS", "getpeername": "ENOBUFS", "send": "EAGAIN ENOBUFS", "recv": "EAGAIN ENOMEM",
    "sendmsg": "EAGAIN ENOMEM", "recvmsg": "EAGAIN ENOMEM", "readv": "EAGAIN ENOMEM",
    "epoll_create1": "EMFILE ENOMEM", "epoll_ctl": "ENOSPC ENOMEM", "epoll_wait": "EINTR",
    "timerfd_create": "EMFILE ENOMEM", "memfd_create": "EMFILE ENOMEM", "ftruncate": "ENOSPC",
    "fallocate": "ENOSPC EINTR", "mmap_file": "ENOMEM EAGAIN", "madvise": "ENOMEM EAGAIN", "fstat": "ENOMEM",
    "stat": "ENOMEM", "open": "EMFILE", "fcntl": "ENOMEM", "ioctl": "ENOMEM", "pidfd_open": "EMFILE ENOMEM ENOSYS",
    "membarrier": "ENOMEM", "process_vm_readv": "ENOMEM EPERM", "process_vm_writev": "ENOMEM EPERM",
}


# With --on: to wait is right where a kernel answers for ever that the other end does nothing, that no event has come,
# that a signal came in between, or that the memory for a list of processors is lacking.
WAITS = {("epoll_wait", "EINTR"), ("fallocate", "EINTR"), ("membarrier", "ENOMEM")}
WAITS |= {(call, "EAGAIN") for call in "send sendmsg recv recvmsg readv accept4 connect".split()}


def job(drivers, call, error, at, on):
    """Runs a job. Returns its outcome, and all its output."""
    settings = {"LD_PRELOAD": BIN / "libstrangers_syscall_inject.so", "FAULT_CALL": call, "FAULT_AT": at,
                "FAULT_RANK": 1, "FAULT_ERRNO": getattr(errno, error), "CANELE_DRIVERS": drivers, "CANELE_VERBOSE": 1}
    if on:
        settings["FAULT_ON"] = 1
    command = [str(BIN / "canele-run"), "--timeout", str(LIMIT), "-n", "2"]
    for name, value in settings.items():
        command += ["-x", f"{name}={value}"]
    done = subprocess.run([*command, str(BIN / "strangers_syscall_job")], capture_output=True, text=True,
                          errors="replace", timeout=LIMIT + 20, check=False)
    text = done.stdout + done.stderr
    if "injected:" not in text:
        return "not reached", text
    if "WRONG DATA" in text:
        return "wrong data", text
    if done.returncode == 124 or "time limit" in text:
        return "hang", text
    if re.search(r"signal (4|6|7|8|11|25)\b|terminate called|Assertion", text):
        return "crash", text
    return ("right" if done.returncode == 0 else "clean"), text


def sweep(options, call, error):
    """Runs one job for each call of a function, until a job makes fewer of them."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for first in range(1, options.most + 1, AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, options.most + 1))
            results = list(pool.map(lambda at: job(options.drivers, call, error, at, options.on), numbers))
            yield from ((at, result) for at, result in zip(numbers, results) if result[0] != "not reached")
            if any(verdict == "not reached" for verdict, _ in results):
                return


def told(seen):
    return ", ".join(f"{number} {verdict}" for verdict, number in sorted(seen.items())) or "none"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("drivers")
    parser.add_argument("--calls", default=",".join(FAULTS))
    parser.add_argument("--most", type=int, default=1000)
    parser.add_argument("--on", action="store_true")
    options = parser.parse_args()
    total, bad = collections.Counter(), 0
    for call in options.calls.split(","):
        for error in FAULTS[call].split():
            if options.on and (call, error) in WAITS:
                continue
            seen = collections.Counter()
            for at, (verdict, text) in sweep(options, call, error):
                seen[verdict] += 1
                if verdict not in ("right", "clean"):
                    bad += 1
                    print(f"FAIL: {options.drivers}: {call} call {at} with {error}: {verdict}\n{text}", flush=True)
            total += seen
            print(f"{options.drivers}: {call} {error}: {told(seen)}", flush=True)
    print(f"{options.drivers}: {sum(total.values())} faults: {told(total)}")
    return bad > 0


sys.exit(main())

# SPDX-License-Identifier: BSD-3-Clause
"""The benchmarks of UCX (ucx_perftest, Debian: ucx-utils) and of libfabric (fi_pingpong, Debian: libfabric-bin).

Used by compare.py. Runs one pair of processes at a time. The programs are a server and a client without a launcher, and
give one sample per job: the mean over its messages. They show the cost of a library without an MPI on top.
"""

import os
import shutil
import socket
import subprocess
import time

from contenders import Contender, iterations_for

SHARED = {"UCX_WARN_UNUSED_ENV_VARS": "n"}
UCX_TLS = {"shm": "shm,self", "tcp": "tcp,self"}
PROVIDERS = {"shm": "shm", "tcp": "tcp;ofi_rxm"}
UCX_TEST = {"latency": ("tag_lat", []), "bandwidth": ("tag_bw", ["-O", "16"]), "rate": ("tag_bw", ["-O", "64"])}
MESSAGES = 20  # batches' worth of messages in a job


def free_port():
    """Returns a port that no process listens on at this moment."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def listens(port):
    """Tells whether a process listens on that port: a state of 0A in the kernel's table."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table, encoding="ascii") as lines:
                rows = [line.split() for line in lines][1:]
        except OSError:
            continue
        if any(row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == port for row in rows):
            return True
    return False


class Pair(Contender):
    """A server and a client, one on each core."""

    def __init__(self, options, name, program):
        super().__init__(name, self.words, SHARED, None)
        self.options, self.program = options, program

    def words(self, case, port=0, client=False):
        """Returns the command of one side."""
        raise NotImplementedError

    def start(self, case, port, client):
        """Starts one side, on its core."""
        core = self.options.cores[1 if client else 0]
        environment = {**os.environ, **self.environment, "UCX_TLS": UCX_TLS[case.driver]}
        return subprocess.Popen(self.words(case, port, client), env=environment, text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                preexec_fn=lambda: os.sched_setaffinity(0, {core}))

    def measure(self, case, time_limit):
        port, end = free_port(), time.monotonic() + time_limit
        with self.start(case, port, False) as server:
            client = None
            try:
                while not listens(port):
                    if server.poll() is not None or time.monotonic() > end:
                        raise RuntimeError(f"{self.name}: the server does not listen: {server.communicate()[1]}")
                    time.sleep(0.002)
                client = self.start(case, port, True)
                text, errors = client.communicate(timeout=max(0.1, end - time.monotonic()))
                if client.returncode != 0:
                    raise RuntimeError(f"{self.name}: exit code {client.returncode} of: "
                                       f"{' '.join(client.args)}\n{errors}")
                server.communicate(timeout=max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired as expired:
                raise RuntimeError(f"{self.name}: no end after {time_limit} s") from expired
            finally:
                for process in (client, server):
                    if process is not None and process.poll() is None:
                        process.kill()
                        process.communicate()
        return [self.sample(case, text)]

    def sample(self, case, text):
        """Returns the sample in what the client printed."""
        raise NotImplementedError


class UcxPerftest(Pair):
    """Tagged messages: latency is half a ping-pong; bandwidth and rate with as many messages in flight as the others
    have.
    """

    def takes(self, case):
        return case.benchmark in UCX_TEST and case.what == "bytes"

    def words(self, case, port=0, client=False):
        if not client:
            return [self.program, "-p", str(port)]
        test, more = UCX_TEST[case.benchmark]
        count = iterations_for(case) * MESSAGES
        return [self.program, "localhost", "-p", str(port), "-t", test, "-s", str(case.size), "-n", str(count), "-w",
                str(max(1, count // 10)), "-f", "-v", *more]

    def sample(self, case, text):
        return ucx_sample(case.benchmark, text)


class FiPingpong(Pair):
    """Tagged messages of a reliable endpoint, half a ping-pong."""

    def takes(self, case):
        return case.benchmark == "latency"

    def words(self, case, port=0, client=False):
        count = iterations_for(case) * 4
        start = [self.program, "-p", PROVIDERS[case.driver], "-e", "rdm", "-m", "tagged", "-I", str(count), "-S",
                 str(case.size)]
        return [*start, "-P", str(port), "127.0.0.1"] if client else [*start, "-B", str(port)]

    def sample(self, case, text):
        return fabric_sample(text)


def ucx_sample(benchmark, text):
    """Returns us, MB/s or messages/s over the whole job. A MB of ucx_perftest has 1,048,576 bytes."""
    header, values = [line.split(",") for line in text.splitlines() if "," in line][-2:]
    row = dict(zip(header, values))
    if benchmark == "latency":
        return float(row["overall_lat"])
    return float(row["overall_bw"]) * 1.048576 if benchmark == "bandwidth" else float(row["overall_mr"])


def fabric_sample(text):
    """Returns the us of a transfer one way."""
    header, values = [line.split() for line in text.splitlines() if line.strip()][-2:]
    return float(dict(zip(header, values))["usec/xfer"])


def find_pairs(options):
    """Returns [(contender or None, reason)] of both programs."""
    found = []
    for name, program, kind, package in (("ucx_perftest", "ucx_perftest", UcxPerftest, "ucx-utils"),
                                         ("fi_pingpong", "fi_pingpong", FiPingpong, "libfabric-bin")):
        path = shutil.which(program)
        found.append((name, kind(options, name, path) if path else None, f"not installed (Debian: {package})"))
    return found

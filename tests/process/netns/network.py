# SPDX-License-Identifier: BSD-3-Clause
"""Network name spaces on a bridge, one for each rank, for as long as a Network lives.

Used by the tests and campaigns in this directory and tests/process/cholesky. Needs root, iproute2 and iptables. The
name spaces have no names: each lives as long as a process of ours that does nothing (`cat` on a pipe). So even
`kill -9` of this test leaves nothing behind. canele-run enters them by /proc/PID/ns/net.

    rank name space 0        switch name space          rank name space 1
      eth0 10.77.0.1 ─────── port0 ─┐       ┌─ port1 ─────── eth0 10.77.0.2
                                    bridge ─┤
                             port3 ─┘       └─ port2
"""
import re
import subprocess
import unittest


class Space:
    """A network name space, which lives as long as this object."""

    def __init__(self):
        self.holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec cat"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE)
        if self.holder.stdout.readline() != b"\n":
            raise unittest.SkipTest("no network name space can be made here (unshare --net)")
        self.path = f"/proc/{self.holder.pid}/ns/net"

    def sent_by(self, name):
        """Returns the bytes that were sent by this interface so far."""
        text = subprocess.run(["nsenter", f"--net={self.path}", "cat", "/proc/net/dev"], stdout=subprocess.PIPE,
                              text=True, check=True).stdout
        line = next(line for line in text.splitlines() if line.strip().startswith(f"{name}:"))
        return int(line.split(":")[1].split()[8])

    def run(self, command):
        subprocess.run(["nsenter", f"--net={self.path}", *command.split()], check=True)

    def close(self):
        self.holder.stdin.close()
        self.holder.wait()
        self.holder.stdout.close()


def launcher(run, spaces, ranks):
    """Returns the command that starts so many ranks in these name spaces; the program is to follow it. run: canele-run.
    """
    return [str(run), "--netns", ",".join(space.path for space in spaces), "-n", str(ranks)]


class Network:
    """The network of the picture above."""

    def __init__(self, ranks=4):
        self.spaces = []
        try:
            self.switch = self.make()
            self.switch.run("ip link add bridge type bridge")
            self.switch.run("ip link set bridge up")
            self.ranks = [self.make() for _ in range(ranks)]
            for number, space in enumerate(self.ranks):
                space.run("ip link set lo up")
                space.run(f"ip link add eth0 type veth peer name port{number} netns {self.switch.holder.pid}")
                space.run(f"ip address add 10.77.0.{number + 1}/24 dev eth0")
                space.run("ip link set eth0 up")
                self.switch.run(f"ip link set port{number} master bridge up")
        except BaseException:
            self.close()
            raise

    def make(self):
        self.spaces.append(Space())
        return self.spaces[-1]

    def lose(self, share):
        """Makes every rank drop this share of what arrives."""
        for space in self.ranks:
            space.run(f"iptables -A INPUT -i eth0 -m statistic --mode random --probability {share} -j DROP")

    def lost_packets(self):
        total = 0
        for space in self.ranks:
            text = subprocess.run(["nsenter", f"--net={space.path}", "iptables", "-L", "INPUT", "-v", "-n", "-x"],
                                  stdout=subprocess.PIPE, text=True, check=True).stdout
            total += sum(int(count) for count in re.findall(r"^\s*(\d+)\s+\d+\s+DROP", text, re.MULTILINE))
        return total

    def received_packets(self):
        """Returns the counts of all ports of the switch."""
        text = subprocess.run(["nsenter", f"--net={self.switch.path}", "cat", "/proc/net/dev"], stdout=subprocess.PIPE,
                              text=True, check=True).stdout
        return sum(int(line.split()[2]) for line in text.splitlines() if line.strip().startswith("port"))

    def limit(self, megabits):
        """Limits what each rank sends to so many Mbit/s; what it receives is limited by the senders."""
        for space in self.ranks:
            space.run(f"tc qdisc replace dev eth0 root tbf rate {megabits}mbit burst 128kb latency 200ms")

    def sent_bytes(self):
        """Returns the bytes that each rank has sent over its link so far."""
        return [space.sent_by("eth0") for space in self.ranks]

    def set_link(self, rank, state):
        self.switch.run(f"ip link set port{rank} {state}")

    def cut(self, rank):
        """Cuts a rank off, without loss of carrier and without error: data sent there vanishes."""
        self.switch.run(f"ip link set port{rank} nomaster")

    def close(self):
        for space in self.spaces:
            space.close()


class Links(Network):
    """Two ranks with a second link between them: eth1, 10.78.0.1 and 10.78.0.2."""

    def __init__(self):
        super().__init__(2)
        first, second = self.ranks
        first.run(f"ip link add eth1 type veth peer name eth1 netns {second.holder.pid}")
        for number, space in enumerate(self.ranks, start=1):
            space.run(f"ip address add 10.78.0.{number}/24 dev eth1")
            space.run("ip link set eth1 up")

    def limit_link(self, name, link):
        """Limits what both ranks send by this interface. link: RATE or RATE/DELAY, in Mbit/s and ms."""
        rate, _, delay = link.partition("/")
        for space in self.ranks:
            space.run(f"tc qdisc replace dev {name} root handle 1: tbf rate {rate}mbit burst 128kb latency 100ms")
            if delay:
                space.run(f"tc qdisc replace dev {name} parent 1:1 netem delay {delay}ms limit 10000")

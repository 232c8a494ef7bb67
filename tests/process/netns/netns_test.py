# SPDX-License-Identifier: BSD-3-Clause
"""Four ranks in four network name spaces on a bridge, while the network loses packets, goes down, or a part of it is
gone.

Usage: netns_test.py [--driver tcp] [--repeat N] [unittest's options, e.g. NetworkTest.test_link_down]
Run by ctest; it names the programs' directory in CANELE_TEST_BIN. Needs root, iproute2 and iptables; else exit code
77. canele-run tells the ranks to enter the name spaces of network.py, so each has an address of its own.
"""
import argparse
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time
import unittest

from network import Links, Network, launcher

BIN = pathlib.Path(os.environ.get("CANELE_TEST_BIN", "build/release/bin")).resolve()
RUN, RANK = str(BIN / "canele-run"), str(BIN / "netns_rank")
RANKS = 4
DOWN_SECONDS = 3.0
TIME_LIMIT = 550
SILENCE = 9  # seconds
LOST_WITHIN = 25.0  # seconds: the silence, the check every sixth of it, and the rest for a busy machine
SKIPPED = 77
OPTIONS = argparse.Namespace(driver="tcp", repeat=1)


class Ranks:
    """A job in the name spaces, whose lines of output are awaited."""

    def __init__(self, spaces, *order, ranks=RANKS, **environment):
        command = ["setpriv", "--pdeathsig", "KILL",  # the job dies with this process
                   *launcher(RUN, spaces, ranks), RANK, *map(str, order)]
        variables = {"CANELE_OFI_PROVIDER": "tcp;ofi_rxm", **os.environ, "CANELE_DRIVERS": OPTIONS.driver,
                     "CANELE_TCP_PEER_TIMEOUT": str(SILENCE), "CANELE_OFI_PEER_TIMEOUT": str(SILENCE), **environment}
        self.process = subprocess.Popen(command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        self.lines, self.changed, self.ended = [], threading.Condition(), False
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line.rstrip("\n"))
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def count(self, pattern):
        return sum(re.search(pattern, line) is not None for line in self.lines)

    def wait_for(self, pattern, times):
        with self.changed:
            self.changed.wait_for(lambda: self.ended or self.count(pattern) >= times, TIME_LIMIT)
            if self.count(pattern) < times:
                raise AssertionError(f"not {times} times '{pattern}':\n" + "\n".join(self.lines))

    def tell(self, text):
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def finish(self):
        """Returns the whole output of a job that must end well."""
        try:
            code = self.process.wait(TIME_LIMIT)
        except subprocess.TimeoutExpired:
            code = "none: it does not end"
        self.close()
        if code != 0:
            raise AssertionError(f"exit code {code}:\n" + "\n".join(self.lines))
        return "\n".join(self.lines)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()  # its guard ends the ranks
            self.process.wait()
        self.reader.join()
        self.process.stdin.close()
        self.process.stdout.close()


def ranks_that_were_right(text):
    """Returns how many ranks say so in the output of a job."""
    return len(re.findall(r"^rank \d+: \d+ rounds right$", text, re.MULTILINE))


class NetworkTest(unittest.TestCase):
    def setUp(self):
        self.network = Network()
        self.addCleanup(self.network.close)

    def start(self, *order, **options):
        job = Ranks(self.network.ranks, *order, **options)
        self.addCleanup(job.close)
        return job

    def check_rounds(self, text, ranks=RANKS):
        self.assertEqual(ranks_that_were_right(text), ranks, text)

    def test_all_to_all(self):
        before = self.network.received_packets()
        self.check_rounds(self.start("exchange", 20).finish())
        self.assertGreater(self.network.received_packets() - before, 1000, "the messages did not go over the bridge")

    def test_all_to_all_by_a_worker(self):
        self.check_rounds(self.start("exchange", 20, CANELE_WORKER="bound").finish())

    def test_two_ranks_in_each(self):
        """A common setup: ranks in one name space reach each other by memory, the others over the bridge."""
        drivers = "shm," + OPTIONS.driver
        self.check_rounds(self.start("exchange", 5, ranks=2 * RANKS, CANELE_DRIVERS=drivers).finish(), 2 * RANKS)

    def test_named_name_space(self):
        name = f"canele-test-{os.getpid()}"
        variables = {"CANELE_OFI_PROVIDER": "tcp;ofi_rxm", **os.environ, "CANELE_DRIVERS": OPTIONS.driver}
        subprocess.run(["ip", "netns", "add", name], check=True)
        try:
            subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
            done = subprocess.run([RUN, "--netns", name, "-n", "2", RANK, "exchange", "2"], stdout=subprocess.PIPE,
                                  stdin=subprocess.DEVNULL, text=True, check=True, timeout=TIME_LIMIT,
                                  env=variables)
        finally:
            subprocess.run(["ip", "netns", "delete", name], check=True)
        self.check_rounds(done.stdout, 2)

    def test_loss(self):
        """Loses two of a hundred packets."""
        self.network.lose(0.02)
        self.check_rounds(self.start("exchange", 4).finish())
        self.assertGreater(self.network.lost_packets(), 0, "nothing was lost: that was no test")

    def test_link_down(self):
        """Takes a link down for some seconds, then up again: no rank is declared dead, nothing is lost."""
        job = self.start("until-stop")
        job.wait_for(r"^round \d+$", 3)
        self.network.set_link(2, "down")
        seen = job.count(r"^round")
        time.sleep(DOWN_SECONDS)  # the length of the outage, not a wait for something
        self.assertLessEqual(job.count(r"^round"), seen + 2, "rounds went on: the link was not down")
        self.network.set_link(2, "up")
        job.wait_for(r"^round \d+$", seen + 6)
        job.tell("stop\n")
        self.check_rounds(job.finish())


class GoneTest(unittest.TestCase):
    """A name space that cannot be reached any more. In its own class, because it lasts as long as a driver waits."""

    def test_gone_for_good(self):
        network = Network()
        self.addCleanup(network.close)
        odd = 2
        job = Ranks(network.ranks, "gone", odd)
        self.addCleanup(job.close)
        job.wait_for("^connected$", RANKS)
        network.cut(odd)
        job.tell("cut\n")
        text = job.finish()
        for rank in range(RANKS):
            if rank == odd:
                continue
            for line in (rf"rank {rank}: send to rank {odd}: lost", rf"rank {rank}: receive from rank {odd}: lost",
                         rf"rank {odd}: receive from rank {rank}: lost", rf"rank {rank}: fetch from rank {odd}: lost",
                         rf"rank {odd}: announced send to rank {rank}: lost",
                         rf"rank {rank}: goes on without rank {odd}"):
                self.assertRegex(text, line)
        longest = max(float(seconds) for seconds in re.findall(r"lost after ([0-9.]+) s", text))
        self.assertLess(longest, LOST_WITHIN, text)
        print(f"all requests ended within {longest:.1f} s", file=sys.stderr)


class InterfacesTest(unittest.TestCase):
    """Two ranks whose hosts have further networks: a bridge that leads nowhere, a tunnel, a second subnet, a listener
    of another program. The kernel lists the networks in every order."""

    # What each host has besides the link. NUMBER: the host's; SWITCH: the process that holds the switch's name space.
    EXTRAS = {
        "bridge": ["ip link add br-here type bridge", "ip address add 172.17.0.1/16 dev br-here",
                   "ip address add 172.17.9.NUMBER/16 dev br-here", "ip link set br-here up"],
        "tunnel": ["ip link add vpn type vxlan id 5 remote 192.0.2.NUMBER dstport 4789",
                   "ip address add 10.9.0.NUMBER/24 dev vpn", "ip link set vpn up"],
        "hole": ["ip link add hole type veth peer name holeNUMBER netns SWITCH",
                 "nsenter --net=/proc/SWITCH/ns/net ip link set holeNUMBER up",
                 "ip address add 10.5.0.NUMBER/24 dev hole", "ip link set hole up"],
        "link": ["ip link add eth0 type veth peer name realNUMBER netns SWITCH",
                 "nsenter --net=/proc/SWITCH/ns/net ip link set realNUMBER master bridge up",
                 "ip address add 10.77.0.NUMBER/24 dev eth0", "ip link set eth0 up"],
    }

    def start(self, extras, prepare=lambda space: None):
        """Runs the job with these networks made in this order; returns its output and the seconds that it took."""
        network = Network(2)
        self.addCleanup(network.close)
        for number, space in enumerate(network.ranks, start=1):
            space.run("ip link delete eth0")
            for extra in extras:
                for command in self.EXTRAS[extra]:
                    space.run(command.replace("NUMBER", str(number)).replace("SWITCH", str(network.switch.holder.pid)))
            prepare(space)
        begin = time.monotonic()
        job = Ranks(network.ranks, "exchange", 1, ranks=2, CANELE_VERBOSE="1")
        self.addCleanup(job.close)
        text = job.finish()
        self.assertEqual(ranks_that_were_right(text), 2, text)
        return text, time.monotonic() - begin

    def test_networks_that_lead_nowhere_in_all_orders(self):
        for order in itertools.permutations(self.EXTRAS):
            with self.subTest(order=order):
                text, seconds = self.start(order)
                print(f"{' '.join(order)}: {seconds:.2f} s", file=sys.stderr)
                self.assertNotIn("lost", text)

    def test_ipv6_only(self):
        def only_v6(space):
            space.run("ip -4 address flush dev eth0")
            space.run(f"ip address add fd00:77::{1 + self.seen}/64 dev eth0 nodad")
            self.seen += 1

        self.seen = 0
        for order in (["link", "bridge", "hole"], ["hole", "bridge", "link"]):
            with self.subTest(order=order):
                self.seen = 0
                _, seconds = self.start(order, only_v6)
                print(f"IPv6 only, {' '.join(order)}: {seconds:.2f} s", file=sys.stderr)

    def test_packets_that_a_filter_swallows(self):
        """The best subnet of both hosts does not let connections through; another one does."""
        def swallow(space):
            space.run(f"ip address add 10.66.0.{1 + self.seen}/24 dev eth0")
            space.run("iptables -A INPUT -p tcp -d 10.77.0.0/24 -j DROP")
            self.seen += 1

        self.seen = 0
        _, seconds = self.start(["link"], swallow)
        print(f"filter: {seconds:.2f} s", file=sys.stderr)

    def test_a_listener_that_intercepts_and_says_nothing(self):
        """A proxy accepts every connection to the best subnet, as service meshes do."""
        holders = []

        def intercept(space):
            space.run("ip link set lo up")
            space.run(f"ip address add 10.66.0.{len(holders) + 1}/24 dev eth0")
            space.run("iptables -t nat -A OUTPUT -p tcp -d 10.77.0.0/24 -j REDIRECT --to-ports 9")
            proxy = ("import socket,sys; s = socket.create_server(('', 9), backlog=100); print(flush=True); "
                     "sys.stdin.read()")
            holder = subprocess.Popen(["nsenter", f"--net={space.path}", sys.executable, "-c", proxy],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            holders.append(holder)
            self.addCleanup(lambda: (holder.stdin.close(), holder.wait(), holder.stdout.close()))
            self.assertEqual(holder.stdout.readline(), b"\n")

        _, seconds = self.start(["link"], intercept)
        print(f"proxy: {seconds:.2f} s", file=sys.stderr)


class RailsTest(unittest.TestCase):
    """Two ranks with two links of different rates, both of which carry each large message."""

    def start(self, *order, **environment):
        self.links = Links()
        self.addCleanup(self.links.close)
        self.links.limit_link("eth0", "400")
        self.links.limit_link("eth1", "200")
        job = Ranks(self.links.ranks, *order, ranks=2, CANELE_DRIVERS="tcp:eth0+tcp:eth1", **environment)
        self.addCleanup(job.close)
        return job

    def check_rounds(self, text):
        self.assertEqual(ranks_that_were_right(text), 2, text)

    def test_both_links_carry_large_messages(self):
        rounds = 30
        self.check_rounds(self.start("exchange", rounds).finish())
        sent = {name: self.links.ranks[0].sent_by(name) for name in ("eth0", "eth1")}
        print(f"sent: {sent}", file=sys.stderr)
        for name in sent:
            self.assertGreater(sent[name], rounds * 300_000 / 10, f"{name} has carried hardly anything: {sent}")

    def test_a_link_goes_down_for_good(self):
        """The other one carries everything from then on: nothing is lost, nothing is wrong."""
        job = self.start("until-stop", CANELE_TCP_PEER_TIMEOUT="3")
        job.wait_for(r"^round \d+$", 3)
        self.links.ranks[0].run("ip link set eth1 down")
        seen = job.count(r"^round")
        job.wait_for(r"its messages continue on the other rails", 1)
        job.wait_for(r"^round \d+$", seen + 6)
        job.tell("stop\n")
        self.check_rounds(job.finish())


def why_not():
    """Returns "" or why this cannot run here."""
    if os.geteuid() != 0:
        return "only root may make network name spaces"
    missing = [name for name in ("ip", "iptables", "unshare", "nsenter", "setpriv") if shutil.which(name) is None]
    if missing:
        return f"not installed: {', '.join(missing)} (Debian: iproute2, iptables, util-linux)"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", default="tcp")
    parser.add_argument("--repeat", type=int, default=1)
    rest = parser.parse_known_args(namespace=OPTIONS)[1]
    reason = why_not()
    if reason:
        print(f"skipped: {reason}", file=sys.stderr)
        sys.exit(SKIPPED)
    for _ in range(OPTIONS.repeat):
        result = unittest.main(argv=[sys.argv[0], "-v", *rest], exit=False).result
        if not result.wasSuccessful():
            sys.exit(1)
    if result.testsRun == len(result.skipped):
        sys.exit(SKIPPED)


if __name__ == "__main__":
    main()

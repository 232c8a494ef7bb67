# SPDX-License-Identifier: BSD-3-Clause
"""System calls of a stream of small messages through shared memory, counted: none for a message.

Run by ctest, which names canele-run and canele-perf. By hand: system_calls.py [--worker KIND] [--preload LIBRARY]
CANELE_RUN CANELE_PERF. Without a library strace counts. A run of few messages is subtracted from one of many, so that
the start and the end do not count.

The bound is not zero, but one call in MESSAGES_A_CALL messages plus CALLS_A_SECOND. The driver checks its sockets some
thousand times a second. A thread that loses its core to others sleeps, which takes some calls, and on a busy machine a
second may pass between few messages.

Beside a worker strace is of no use. It makes every call so slow that the time for which a thread yields is over after a
few calls. There count_calls.c counts, and yields do not count.

A thread that has lost the core to other work for a millisecond (counter core_losses) sleeps instead of yielding, for
up to a second. That costs a wait, a doorbell and more for each message. So on a busy machine the count is repeated,
three times at most. If the machine was busy each time, the bound is that of threads that sleep. unit_ltask shows that
no thread sleeps without a lost turn.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

FEW, MESSAGES_A_CALL, CALLS_A_SECOND, ATTEMPTS = 20_000, 20, 10_000, 3
CALLS_OF_A_SLEEP = 10  # at most: both ends, and the thread that polls the sockets meanwhile.
TIME_LIMIT, ENOUGH_SECONDS = 1000, 30  # of a run; of all attempts.
# Functions of the C library that enter the kernel, and may be called for a message.
CALLS = set("""epoll_pwait epoll_pwait2 epoll_wait epoll_ctl read pread write pwrite readv writev preadv pwritev poll
    ppoll select pselect recv recvfrom recvmsg recvmmsg send sendto sendmsg sendmmsg process_vm_readv process_vm_writev
    madvise mmap munmap mremap mprotect brk ioctl fcntl timerfd_settime timer_settime setitimer sched_yield nanosleep
    clock_nanosleep usleep syscall futex membarrier io_submit getrusage kill tgkill pause sigsuspend""".split())


def command_of(options, messages, place, before, settings):
    command = [options.run, "-n", "2"]
    for setting in [f"CANELE_WORKER={options.worker}", *settings]:
        command += ["-x", setting]
    command += ["-x", f"CANELE_COUNTERS={place}/counters-%r"]
    return [*command, *before, options.perf, "rate", "--driver", "shm", "--no-floor", "--batches", "1", "--iterations",
            str(messages // 2)]


def carry_out(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIME_LIMIT,
                          check=False)
    if done.returncode != 0:
        raise SystemExit(f"exit code {done.returncode} of {' '.join(command)}:\n{done.stdout}")


def count_by_strace(options, messages, place):
    """Returns the calls by name of both ranks and their threads, without those of the launcher."""
    carry_out(command_of(options, messages, place, ["strace", "-f", "-qq", "-ff", "-o", f"{place}/calls"], []))
    calls = collections.Counter()
    for file in pathlib.Path(place).glob("calls*"):
        with file.open(encoding="utf-8", errors="replace") as lines:
            calls.update(match[1] for match in map(re.compile(r"(\w+)\(").match, lines) if match)
    return calls


def count_by_library(options, messages, place):
    """Returns the calls by name that libcanele makes, without yields."""
    file = pathlib.Path(place) / "calls"
    carry_out(command_of(options, messages, place, [], [f"LD_PRELOAD={options.preload}", f"CANELE_TEST_CALLS={file}"]))
    calls = collections.Counter()
    for line in file.read_text(encoding="utf-8").splitlines():
        name, number = line.split()
        calls[name] += int(number)
    if calls["epoll_wait"] == 0:
        raise SystemExit(f"nothing was counted: {calls}")
    del calls["sched_yield"]
    return calls


def uncounted(options):
    """Returns the functions that the library may call and count_calls.c does not know."""
    library = next(line.split()[2] for line in subprocess.run(["ldd", options.perf], stdout=subprocess.PIPE, text=True,
                                                              check=True).stdout.splitlines() if "libcanele.so" in line)

    def symbols(which, file):
        output = subprocess.run(["nm", "-D", which, file], stdout=subprocess.PIPE, text=True, check=True).stdout
        return {line.split()[-1].split("@")[0] for line in output.splitlines()}

    return sorted((symbols("--undefined-only", library) & CALLS) - symbols("--defined-only", options.preload))


def strace_works():
    """Returns "" if strace may trace here, else the reason why not."""
    try:
        tried = subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], stderr=subprocess.PIPE, text=True,
                               check=False)
    except FileNotFoundError:
        return "there is no strace"
    return "" if tried.returncode == 0 else f"strace may not trace here: {tried.stderr.strip()}"


def core_losses(place):
    """Returns how often a thread of either rank lost its core."""
    return sum(json.loads((pathlib.Path(place) / f"counters-{rank}").read_text(encoding="utf-8"))["counters"]
               ["core_losses"] for rank in range(2))


def count(options):
    """Prints the counts. Returns whether they are within the bound, and whether within that of a busy machine."""
    more = 200_000 if options.preload else 1_000_000  # a worker that shares its core is slow
    counted = []
    for messages in (FEW, FEW + more):
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="canele-calls-") as place:
            counted.append((count_by_library if options.preload else count_by_strace)(options, messages, place))
            lost = core_losses(place)
        seconds = time.monotonic() - start
    few, many = counted
    extra = {name: many[name] - few[name] for name in many if many[name] > few[name]}
    calls, bound = sum(extra.values()), more / MESSAGES_A_CALL + CALLS_A_SECOND * seconds
    print(f"{options.worker}: {more} messages more, {calls} calls more (limit {bound:.0f}), {lost} turns lost: {extra}")
    return calls <= bound, lost > 0 and calls <= bound + CALLS_OF_A_SLEEP * more


def main():
    """Exits with code 1 if each attempt makes more calls than the bound allows, and a lack of cores is not the reason.
    """
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--worker", default="none")
    parser.add_argument("--preload", help="the library made of count_calls.c")
    parser.add_argument("run")
    parser.add_argument("perf")
    options = parser.parse_args()
    if options.preload:
        if missing := uncounted(options):
            print(f"count_calls.c does not count {', '.join(missing)}")
            return 1
    elif why := strace_works():
        print(why)
        return 77
    busy, start = True, time.monotonic()
    for attempt in range(ATTEMPTS):
        if attempt > 0 and time.monotonic() - start > ENOUGH_SECONDS:
            break
        quiet, acceptable = count(options)
        if quiet:
            return 0
        busy = busy and acceptable
    print("others had the cores all the time: the bound of threads that sleep holds" if busy else "too many calls")
    return 0 if busy else 1


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: BSD-3-Clause
"""What can happen to a job of canele-run, one misfortune after the other, with the real launcher and real ranks.

Usage: misfortunes_test.py [-v] [name ...]     (no name: all; -v: also the output of each)
Run by ctest, process_misfortunes; CANELE_TEST_BIN names the directory of the programs. Prints a table. A few
misfortunes run at a time, each a job of its own.

Every process of a case carries the case's token, in its environment or in its arguments, so that one left behind is
found wherever it went. A case waits for a line of output or for an end, never for a time to pass.
"""
import array
import concurrent.futures
import fcntl
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
import uuid

BIN = pathlib.Path(os.environ.get("CANELE_TEST_BIN", "build/release/bin")).resolve()
RUN, RANK, HELLO = str(BIN / "canele-run"), str(BIN / "run_rank_program"), str(BIN / "canele-hello")
LIMIT = 600  # seconds for one case; with-timeout ends a hang before that
AT_ONCE = 4
F_SETPIPE_SZ = 1031
IDLE = "while :; do sleep 0.2; done"
DEAF = f"trap '' INT TERM; echo ready; {IDLE}"
ONE_DIES = '[ "$PMI_RANK" = 1 ] && kill -9 $$; exec sleep 1000'


class Failed(Exception):
    pass


class Case:
    """One job in a directory of its own. The case's function starts the job and says what must be seen."""

    def __init__(self):
        self.token = "misfortune-" + uuid.uuid4().hex
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="misfortune."))
        self.tmp = self.place / "tmp"
        self.tmp.mkdir()
        self.environment = {**os.environ, "TMPDIR": str(self.tmp), "MISFORTUNE": self.token}
        self.process = None

    def start(self, *command, source=subprocess.DEVNULL, out=None, err=None, **more):
        """Starts a command. Standard output and error go to files, unless given."""
        with open(self.place / "out", "ab") as own_out, open(self.place / "err", "ab") as own_err:
            self.process = subprocess.Popen(command, stdin=source, stdout=own_out if out is None else out,
                                            stderr=own_err if err is None else err, env=self.environment, **more)
        return self.process

    def text(self, name):
        return (self.place / name).read_text(errors="replace")

    def until(self, holds, what):
        end = time.monotonic() + LIMIT
        while not holds():
            if time.monotonic() > end:
                raise Failed(f"waited in vain for {what}")
            time.sleep(0.02)

    def until_ready(self, ranks):
        self.until(lambda: self.text("out").count("ready") >= ranks, "the ranks")

    def end(self, *codes):
        """Waits for the end; the exit code must be one of these."""
        try:
            code = self.process.wait(LIMIT)
        except subprocess.TimeoutExpired as late:
            raise Failed("it does not end") from late
        if code not in codes:
            raise Failed(f"exit code {code} instead of {codes}")
        return code

    def run(self, codes, *command, **more):
        self.start(*command, **more)
        return self.end(*(codes if isinstance(codes, tuple) else (codes,)))

    def marked(self, mark=None):
        """Returns the processes with the token, oldest first."""
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) == os.getpid():
                continue
            for name in ("environ", "cmdline"):
                try:
                    with open(f"/proc/{entry}/{name}", "rb") as file:
                        if (mark or self.token).encode() in file.read():
                            found.append(int(entry))
                            break
                except OSError:
                    pass
        return sorted(found)

    def children(self, name):
        """Returns the processes of the job with this name."""
        found = []
        for pid in self.marked():
            try:
                if pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip() == name:
                    found.append(pid)
            except OSError:
                pass
        return found

    def check_traces(self):
        self.until(lambda: not self.marked(), f"the end of {self.marked()}")
        self.until(lambda: not list(self.tmp.iterdir()), "an empty TMPDIR")

    def clean(self):
        for pid in self.marked():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.process is not None:
            self.process.wait()
        shutil.rmtree(self.place, ignore_errors=True)


def full_pipe():
    """Makes a full pipe. Returns (reader, writer)."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x")
    except BlockingIOError:
        pass
    os.set_blocking(writer, True)
    return reader, writer


CASES = []


def misfortune(what, said=None, needs=None):
    """Adds a case. `said`: what standard error must show. `needs`: a command that must work here (as root), else the
    case is skipped.
    """
    def add(function):
        CASES.append((what, said, needs, function))
        return function
    return add


# --- what becomes of canele-run's own output


@misfortune("stderr closed; a rank is killed")
def stderr_closed(case):
    return case.run(137, "sh", "-c", 'exec "$0" -n 2 sh -c "$1" 2>&-', RUN, ONE_DIES)


@misfortune("stderr is a full disk; a rank is killed")
def stderr_on_full_disk(case):
    with open("/dev/full", "wb") as full:
        return case.run(137, RUN, "-n", "2", "sh", "-c", ONE_DIES, err=full)


@misfortune("stderr is a pipe whose reader has gone; a rank is killed")
def stderr_without_reader(case):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as pipe:
        return case.run(137, RUN, "-n", "2", "sh", "-c", ONE_DIES, err=pipe)


@misfortune("stderr is a full pipe; a rank is killed")
def stderr_full(case):
    reader, writer = full_pipe()
    with open(writer, "wb") as pipe, open(reader, "rb"):
        return case.run(137, RUN, "-n", "3", "sh", "-c", ONE_DIES, err=pipe)


@misfortune("stderr is a full pipe; --timeout")
def stderr_full_at_timeout(case):
    reader, writer = full_pipe()
    with open(writer, "wb") as pipe, open(reader, "rb"):
        return case.run(124, RUN, "-n", "2", "--timeout", "0.3", "sleep", "1000", err=pipe)


@misfortune("stderr is a full disk; a wrong option")
def usage_on_full_disk(case):
    with open("/dev/full", "wb") as full:
        return case.run(2, RUN, "--no-such-option", err=full)


@misfortune("the help on a full disk", r"standard output: No space left on device")
def help_on_full_disk(case):
    with open("/dev/full", "wb") as full:
        return case.run(1, RUN, "--help", out=full)


@misfortune("2>&1 | head -n 2")
def head(case):
    script = 'i=0; while [ $i -lt 100000 ]; do echo "line $i"; i=$((i+1)); done'
    return case.run(141, "bash", "-c", '"$0" -n 1 sh -c "$1" 2>&1 | head -n 2; exit ${PIPESTATUS[0]}', RUN, script)


@misfortune("--tag-output into a full pipe; SIGTERM", r"last output of the ranks was dropped")
def tagged_output_full(case):
    reader, writer = full_pipe()
    with open(writer, "wb") as pipe, open(reader, "rb"):
        script = 'echo lost; echo ready >>"$MISFORTUNE_OUT"; exec sleep 1000'
        case.environment["MISFORTUNE_OUT"] = str(case.place / "out")
        case.start(RUN, "-n", "2", "-l", "sh", "-c", script, out=pipe)
        case.until_ready(2)
        case.process.terminate()
        return case.end(143)


@misfortune("--tag-output 2>&1 | head -n 2")
def head_of_tagged_output(case):
    script = 'i=0; while :; do echo "line $i"; i=$((i+1)); done'
    return case.run(141, "bash", "-c", '"$0" -n 1 -l sh -c "$1" 2>&1 | head -n 2; exit ${PIPESTATUS[0]}', RUN, script)


@misfortune("stdin, stdout and stderr closed")
def all_closed(case):
    return case.run(0, "sh", "-c", 'exec "$0" -n 2 "$1" <&- >&- 2>&-', RUN, HELLO)


# --- a start that fails


@misfortune("10 open files allowed", r"^canele-run: cannot start rank 0 \('/.*'\): .*ulimit -n.*: Too many open files$")
def few_descriptors(case):
    return case.run(126, "sh", "-c", f"ulimit -n 10; exec {RUN} -n 2 true")


@misfortune("32 open files allowed, 100 ranks",
            r"^canele-run: cannot start rank \d+ .*ulimit -n.*: Too many open files$")
def too_few_descriptors(case):
    return case.run(126, "sh", "-c", f"ulimit -n 32; exec {RUN} -n 100 sleep 1000")


@misfortune("5 open files allowed", r"Too many open files")
def hardly_any_descriptors(case):
    return case.run(126, "sh", "-c", f"ulimit -n 5; exec {RUN} -n 2 true")


@misfortune("64 open files by the soft limit, 100 ranks")
def soft_limit(case):
    return case.run(0, "sh", "-c", f"ulimit -Sn 64; exec {RUN} -n 100 true")


@misfortune("no such program", r"there is no program 'no-such-program' in PATH")
def no_program(case):
    return case.run(127, RUN, "-n", "2", "no-such-program")


@misfortune("a script whose interpreter is missing", r"cannot start rank 0 .*: execute: No such file or directory")
def no_interpreter(case):
    script = case.place / "script"
    script.write_text("#!/no/such/interpreter\n", encoding="ascii")
    script.chmod(0o700)
    return case.run(127, RUN, "-n", "2", str(script))


@misfortune("a program of another machine", r"cannot start rank 0 .*: execute: Exec format error")
def no_format(case):
    program = case.place / "program"
    program.write_bytes(b"\x7fELF of another machine")
    program.chmod(0o700)
    return case.run(126, RUN, "-n", "2", str(program))


@misfortune("TMPDIR does not exist", r"cannot make a directory .*TMPDIR can name another place")
def no_tmp(case):
    case.environment["TMPDIR"] = str(case.place / "gone")
    return case.run(126, RUN, "-n", "2", "true")


@misfortune("the working directory was removed")
def no_directory(case):
    gone = case.place / "gone"
    return case.run(0, "sh", "-c", f"mkdir {gone}; cd {gone}; rmdir {gone}; exec {RUN} -n 2 /bin/true")


@misfortune("the variables of another launcher around it")
def other_launcher(case):
    case.environment.update({"PMI_FD": "77", "PMI_RANK": "3", "PMI_SIZE": "9", "PMIX_RANK": "3", "PMIX_NAMESPACE": "x",
                             "OMPI_COMM_WORLD_RANK": "3"})
    return case.run(0, RUN, "-n", "2", HELLO)


# --- ranks that fail


@misfortune("kill -9 of a rank", r"rank 1 \(pid \d+\) died by signal 9 \(Killed\)")
def rank_killed(case):
    return case.run(137, RUN, "-n", "3", RANK, "lose-one", "1", "9")


@misfortune("a rank exits without finalize",
            r"rank 1 \(pid \d+\) exited with code 0, but without canele_finalize \(MPI_Finalize\)")
def no_finalize(case):
    return case.run(1, RUN, "-n", "3", RANK, "exit-joined", "1", "0")


@misfortune("a rank never calls init", r"rank 2 \(pid \d+\) exited with code 0 without canele_init \(MPI_Init\)")
def no_init(case):
    return case.run(1, RUN, "-n", "3", RANK, "missing", "2")


@misfortune("abort with a reason", r"rank 1 \(pid \d+\) aborted the job with code 7: for a test")
def abort(case):
    return case.run(7, RUN, "-n", "3", RANK, "abort", "1", "7")


@misfortune("abort with code 0", r"aborted the job with code 0 \(exit code 1: ")
def abort_with_zero(case):
    return case.run(1, RUN, "-n", "3", RANK, "abort", "1", "0")


@misfortune("20 ranks fail alike", r"^canele-run: all 20 ranks exited with code 3$")
def all_fail(case):
    return case.run(3, RUN, "-n", "20", "sh", "-c", "exit 3")


@misfortune("one fails, the others never end", r"rank 1 \(pid \d+\) exited with code 5")
def others_stay(case):
    return case.run(5, RUN, "-n", "3", "--grace", "0.2", "sh", "-c", '[ "$PMI_RANK" = 1 ] && exit 5; exec sleep 1000')


@misfortune("kill -9 of a rank, --keep-going", r"rank 1 \(pid \d+\) died by signal 9")
def keep_going(case):
    code = case.run(137, RUN, "-n", "4", "--keep-going", RANK, "lose-one", "1", "9")
    if case.text("out").count("told that rank 1 has died") != 3:
        raise Failed("the others were not told: " + case.text("out"))
    return code


@misfortune("a rank sends rubbish to the launcher",
            r"rank 0 has sent 'GET / HTTP/1.0', which canele-run does not serve")
def rubbish(case):
    return case.run(0, RUN, "-n", "1", "bash", "-c", 'echo "GET / HTTP/1.0" >&$PMI_FD; cat <&$PMI_FD')


# --- ends that are asked for


@misfortune("one SIGTERM to ranks that ignore it",
            r"SIGTERM was passed on 0.3 s ago \(--grace\), but .*: killing them")
def one_term(case):
    case.start(RUN, "-n", "2", "--grace", "0.3", "sh", "-c", DEAF)
    case.until_ready(2)
    case.process.terminate()
    return case.end(143)


@misfortune("two SIGINT to ranks that ignore it")
def two_interrupts(case):
    again = DEAF.replace("trap '' INT TERM", "trap '' TERM; trap 'echo ready' INT")
    case.start(RUN, "-n", "2", "--grace", "1000", "sh", "-c", again)
    case.until_ready(2)
    case.process.send_signal(signal.SIGINT)
    case.until_ready(4)
    case.process.send_signal(signal.SIGINT)
    return case.end(130)


@misfortune("SIGTERM while a rank is stopped")
def term_when_stopped(case):
    case.start(RUN, "-n", "2", "--grace", "1000", "sh", "-c", "echo ready; kill -STOP $$; exec sleep 1000")
    case.until_ready(2)
    case.process.terminate()
    return case.end(143)


@misfortune("a rank is stopped at the time limit", r"ending it; .*rank 1 is stopped")
def stopped_at_timeout(case):
    script = '[ "$PMI_RANK" = 1 ] && kill -STOP $$; exec sleep 1000'
    return case.run(124, RUN, "-n", "2", "--timeout", "1", "sh", "-c", script)


@misfortune("kill -9 of canele-run, whose ranks have daemons")
def launcher_killed(case):
    daemons = "setsid sleep 1000 & (setsid setsid sleep 1000 &) ; sleep 1000 & echo ready; sleep 1000"
    case.start(RUN, "-n", "2", "sh", "-c", daemons)
    case.until_ready(2)
    case.process.kill()
    return case.end(-9)


@misfortune("the guard is killed")
def guard_killed(case):
    case.start(RUN, "-n", "2", "sh", "-c", 'echo ready; while [ ! -e "$TMPDIR/go" ]; do sleep 0.05; done')
    case.until_ready(2)
    for guard in case.children("canele-guard"):
        os.kill(guard, signal.SIGKILL)
    (case.tmp / "go").touch()
    code = case.end(0)
    (case.tmp / "go").unlink()
    return code


@misfortune("the guard is stopped")
def guard_stopped(case):
    case.start(RUN, "-n", "2", "sh", "-c", "echo ready; exec sleep 1000")
    case.until_ready(2)
    for guard in case.children("canele-guard"):
        os.kill(guard, signal.SIGSTOP)
    case.process.terminate()
    return case.end(143)


@misfortune("ranks leave daemons")
def daemons(case):
    return case.run(0, RUN, "-n", "2", "sh", "-c", "(setsid setsid sleep 1000 &) ; sleep 1000 & exit 0")


@misfortune("ranks leave daemons that have cleared their environment")
def clean_daemons(case):
    script = f"env -i setsid sh -c '(sleep 1000; :)' {case.token} & exit 0"
    return case.run(0, RUN, "-n", "2", "sh", "-c", script)


MAY_GIVE_BACK = '[ $(id -u) = 0 ] || [ "$(cat /proc/sys/dev/tty/legacy_tiocsti 2>/dev/null || echo 1)" = 1 ]'


@misfortune("text typed ahead that no rank reads", needs=MAY_GIVE_BACK)
def typed_ahead(case):
    terminal, other = pty.openpty()
    script = 'echo ready; while [ ! -e "$TMPDIR/go" ]; do sleep 0.05; done'
    job = f'"{RUN}" -n 2 sh -c \'{script}\'; code=$?; IFS= read -r line; echo "for the shell: $line"; exit $code'
    case.start("setsid", "-c", "sh", "-c", job, source=other)
    case.until_ready(2)
    os.write(terminal, b"typed ahead\n")
    waiting = array.array("i", [0])

    def taken():
        fcntl.ioctl(other, termios.FIONREAD, waiting)
        return waiting[0] == 0

    case.until(taken, "canele-run to read the terminal")
    (case.tmp / "go").touch()
    case.until(lambda: "for the shell: typed ahead" in case.text("out"), "the text")
    code = case.end(0)
    (case.tmp / "go").unlink()
    for end in (terminal, other):
        os.close(end)
    return code


# --- hosts that are not as others


LONG = "h" * 64


@misfortune("a host name of 64 characters", needs="unshare -u true")
def long_name(case):
    return case.run(0, "unshare", "-u", "sh", "-c", f"hostname {LONG}; exec {RUN} -n 2 {HELLO}")


@misfortune("a host name of 64 characters, --pmix", needs=f"unshare -u true && {RUN} --pmix true")
def long_name_pmix(case):
    return case.run(0, "unshare", "-u", "sh", "-c", f"hostname {LONG}; exec {RUN} --pmix -n 2 {HELLO}")


@misfortune("no loop-back", needs="unshare -n true")
def no_loopback(case):
    return case.run(0, "unshare", "-n", RUN, "-n", "2", HELLO)


@misfortune("no loop-back, --pmix", r"--pmix needs the loop-back address 127.0.0.1, .*leave --pmix out",
            needs=f"unshare -n true && {RUN} --pmix true")
def no_loopback_pmix(case):
    return case.run(126, "unshare", "-n", RUN, "--pmix", "-n", "2", HELLO)


@misfortune("IPv6 only", needs="unshare -n ip link set lo up")
def only_ipv6(case):
    script = f"ip link set lo up; ip -4 addr flush dev lo; exec {RUN} -n 2 {HELLO}"
    return case.run(0, "unshare", "-n", "sh", "-c", script)


@misfortune("an outsider looks for a port to connect to: there is none")
def no_port(case):
    case.start(RUN, "-n", "2", "sh", "-c", f"echo ready; exec sleep 1000")
    case.until_ready(2)
    inodes = set()
    for pid in case.marked():
        for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            found = re.match(r"socket:\[(\d+)\]", os.readlink(entry))
            inodes |= {found.group(1)} if found else set()
    for table in ("tcp", "tcp6", "udp", "udp6"):
        lines = pathlib.Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()
        rows = [line.split() for line in lines[1:]]
        if inodes & {row[9] for row in rows}:
            raise Failed(f"a socket of {table} is open")
    names = [line.split() for line in pathlib.Path("/proc/net/unix").read_text(encoding="ascii").splitlines()[1:]]
    if any(row[6] in inodes for row in names if len(row) > 7):  # an eighth column: the socket has a name
        raise Failed("a socket with a name is open")
    case.process.terminate()
    return case.end(143)


def attempt(entry):
    """Runs one case. Returns (what, outcome, exit code, what was said, all output)."""
    what, said, needs, function = entry
    if needs and subprocess.run(needs, shell=True, capture_output=True, check=False).returncode != 0:
        return what, "skipped", "", f"needs '{needs}'", ""
    case = Case()
    code, outcome = "", "right"
    try:
        code = function(case)
        if said and not re.search(said, case.text("err"), re.MULTILINE):
            raise Failed(f"it does not say '{said}'")
        if not said and "canele-run:" in re.sub(r".*(died by signal|line \d).*", "", case.text("err")):
            raise Failed("it says something")
        case.check_traces()
    except (Failed, OSError) as wrong:
        outcome = f"WRONG: {wrong}"
    finally:
        err = case.text("err")
        written = f"{case.text('out')[-2000:]}\n{err[-2000:]}"
        case.clean()
    first = next((line for line in err.splitlines() if line.startswith("canele-run: ")), "canele-run: ")
    return what, outcome, code, re.sub(r"/\S*/", "", first[len("canele-run: "):]), written


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "-v"]
    chosen = [entry for entry in CASES if not arguments or entry[3].__name__ in arguments]
    if not chosen:
        sys.exit("no such misfortune; there are: " + " ".join(entry[3].__name__ for entry in CASES))
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(attempt, chosen))
    wide = max(len(row[0]) for row in results)
    for what, outcome, code, said, written in results:
        left = "nothing left" if outcome == "right" else outcome
        print(f"{what:{wide}} | {code!s:4} | {left} | {said[:100]}")
        if outcome.startswith("WRONG") or "-v" in sys.argv:
            print(written)
    outcomes = [row[1] for row in results]
    print(f"{len(results)} misfortunes in {time.monotonic() - begin:.0f} s: {outcomes.count('right')} right, "
          f"{outcomes.count('skipped')} skipped")
    sys.exit(any(outcome.startswith("WRONG") for outcome in outcomes))


if __name__ == "__main__":
    main()

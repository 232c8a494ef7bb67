# SPDX-License-Identifier: BSD-3-Clause
"""Every setting with wrong values: canele_init returns the right code and one line that names variable, value and what
is right; and a job prints a warning once.

Usage: settings_test.py [unittest's options]
Run by ctest, which names the programs' directory in CANELE_TEST_BIN and the tree in CANELE_TEST_SOURCE. The settings
come from docs/settings.md and docs/settings-expert.md, so that one without wrong values here fails the test.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(os.environ.get("CANELE_TEST_BIN", "build/release/bin")).resolve()
SOURCE = pathlib.Path(os.environ.get("CANELE_TEST_SOURCE", ".")).resolve()
PROGRAM = str(BIN / "process_engines")
EINVAL, EDRIVER = -1, -11
NOWHERE = "/nowhere/at/all/file-%r"
NUMBER = ("x", "-1", "1.5", "99999999999999999999999")
CHOICE = ("on-off", "OFF!")
WRONG = {
    "DRIVERS": ("shm,", "../evil", "shm tcp", "shmm", "nonesuch", "shm,shm"),
    "EXPERT_DECORATORS": ("zzz", "delay:us=x", "check,zzz"),
    "STRATEGY": CHOICE,
    "EXPERT_MATCHER": CHOICE,
    "EXPERT_CACHE_WARMER": NUMBER,
    "WORKER": (*CHOICE, "bound+timer"),
    "EXPERT_WORKER_INTERVAL": (*NUMBER, "0"),
    "WORKER_CORE": (*NUMBER, "99999", "4294967296"),
    "WORKER_PLACE": CHOICE,
    "HOST_THREADS": CHOICE,
    "RANK_AFFINITY": CHOICE,
    "EAGER_LIMIT": (*NUMBER, "8q"),
    "UNEXPECTED_MEMORY": (*NUMBER, "1"),
    "EXPERT_UNEXPECTED_PER_PEER": NUMBER,
    "EXPERT_MULTICAST": CHOICE,
    "MULTICAST_MEMORY": NUMBER,
    "COLLECTIVES": ("zzz", "bcast=zzz", "zzz=ring"),
    "EXPERT_SPLIT_TREE": NUMBER,
    "EXPERT_RECEIVER_INITIATED": CHOICE,
    "CHECKSUM": (*CHOICE, "on"),
    "SPIN": NUMBER,
    "START_TIMEOUT": (*NUMBER, "0"),
    "FINALIZE_TIMEOUT": NUMBER,
    "COUNTERS": (NOWHERE, "/"),
    "PROFILE": (NOWHERE, "/"),
    "TRACE": (NOWHERE, "/"),
    "EXPERT_TRACE_EVENTS": NUMBER,
    "VERBOSE": (*NUMBER, "4"),
    "TCP_PORT": (*NUMBER, "65536"),
    "TCP_PEER_TIMEOUT": NUMBER,
    "EXPERT_TCP_SEND_BUFFER": (*NUMBER, "4k"),
    "SHM_CMA": (*CHOICE, "on"),
    "EXPERT_SHM_CMA_MIN": (*NUMBER, "4k"),
    "EXPERT_SHM_BROADCAST_SEGMENT": CHOICE,
    "EXPERT_SHM_MEMBARRIER": CHOICE,
    "EXPERT_OFI_MULTI_RECV": CHOICE,
    "OFI_PEER_TIMEOUT": NUMBER,
    "HANG_REPORT": NUMBER,
    "GPU": (*CHOICE, "on"),
    "EXPERT_GPU_EXPORT_MIN": NUMBER,
    "EXPERT_GPU_FRAGMENT": NUMBER,
    "EXPERT_GPU_STAGING": NUMBER,
    "EXPERT_FAULT": ("flip-byte", "zzz:1"),
}
# Any text may be valid: whether it is shows when a driver looks for it, or when a warning says that it does not exist.
FREE = {"EXPERT_GPU_LIBRARY", "DRIVER_PATH", "SAMPLES", "TCP_INTERFACE", "OFI_PROVIDER", "OFI_DOMAIN"}


def start(command, **environment):
    done = subprocess.run(command, env={**os.environ, **environment}, timeout=600, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    done.all = f"exit code {done.returncode} of {command} with {environment}:\n{done.stdout}\n{done.stderr}"
    return done


def job(ranks, **environment):
    return start([str(BIN / "canele-run"), "-n", str(ranks), PROGRAM, "init"], **environment)


class Alone(unittest.TestCase):
    def test_each_setting_is_here(self):
        pages = [(SOURCE / "docs" / name).read_text(encoding="utf-8") for name in ("settings.md", "settings-expert.md")]
        self.assertEqual(set(re.findall(r"^### CANELE_(\w+)$", "\n".join(pages), re.MULTILINE)), set(WRONG) | FREE)

    def test_wrong_values(self):
        for name, values in WRONG.items():
            for value in values:
                with self.subTest(name=name, value=value):
                    done = start([PROGRAM, "init"], **{f"CANELE_{name}": value})
                    self.assertEqual(done.returncode, 3, done.all)
                    self.assertIn(f"code {EINVAL}: ", done.stderr)
                    self.assertEqual(len(done.stderr.splitlines()), 1, done.all)
                    self.assertIn(f"CANELE_{name}", done.stderr)
                    self.assertIn(value.split(":")[0].split(",")[-1], done.stderr)
                    self.assertNotIn("launcher", done.stderr)

    def test_options_that_are_none(self):
        done = start([PROGRAM, "options"])
        self.assertEqual(done.returncode, 0, done.all)
        for word in ('"CANELE_VERBOSE" (in the options of canele_init) has no "="', "options->settings[1] is NULL",
                     "settings_count is 1", "struct_size"):
            self.assertIn(word, done.stdout)

    def test_off_is_not_meant_by_on(self):
        done = start([PROGRAM, "init"], CANELE_CHECKSUM="on")
        self.assertNotIn("did you mean", done.stderr)

    def test_names_of_others(self):
        done = start([PROGRAM, "init"], CANELE_X_MINE="1", CANELE_DRIVER="tcp")
        self.assertEqual(done.stderr.count("unknown variable"), 1, done.all)
        self.assertIn("CANELE_DRIVER ignored; did you mean CANELE_DRIVERS?", done.stderr)

    def test_files_that_can_be_written(self):
        with tempfile.TemporaryDirectory() as place:
            for target in ("-", "/dev/null", f"{place}/%r.json"):
                for name in ("COUNTERS", "TRACE", "PROFILE"):
                    self.assertEqual(start([PROGRAM, "init"], **{f"CANELE_{name}": target}).returncode, 0)


class Jobs(unittest.TestCase):
    """Four ranks of one host."""

    def check_driver(self, words, **environment):
        done = job(4, **environment)
        self.assertNotEqual(done.returncode, 0, done.all)
        ours = [line for line in done.stderr.splitlines() if "canele_init: code" in line]
        self.assertGreater(len(ours), 0, done.all)
        for line in ours:
            self.assertIn(f"code {EDRIVER}: ", line)
            for word in words:
                self.assertIn(word, line)
        self.assertNotIn("launcher not reached", done.stderr)
        self.assertNotIn("a driver is not used", done.stderr, "the error says it")

    def test_no_driver(self):
        self.check_driver(("CANELE_DRIVERS", "tcp:nowhere0", "nowhere0"), CANELE_DRIVERS="tcp:nowhere0")
        self.check_driver(("CANELE_DRIVERS", "self"), CANELE_DRIVERS="self")
        self.check_driver(("CANELE_TCP_INTERFACE", "10.254.9.9"), CANELE_DRIVERS="tcp",
                          CANELE_TCP_INTERFACE="10.254.9.9")

    def test_too_little_memory(self):
        done = job(4, CANELE_UNEXPECTED_MEMORY="20k")
        self.assertIn(f"code {EINVAL}: CANELE_UNEXPECTED_MEMORY is 20480 bytes; 4 ranks need", done.stderr)

    def check_warning(self, words, **environment):
        """One line for the job."""
        done = job(4, **environment)
        self.assertEqual(done.returncode, 0, done.all)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, done.all)
        for word in words:
            self.assertIn(word, lines[0])

    def test_old_names(self):
        done = job(4, CANELE_SPREAD="off", CANELE_VERBOSE="2")
        self.assertEqual(done.stderr.count("CANELE_SPREAD is an old name; expected: CANELE_RANK_AFFINITY"), 1, done.all)
        done = job(4, CANELE_SPREAD="off", CANELE_RANK_AFFINITY="off")
        self.assertIn(f"code {EINVAL}: CANELE_SPREAD and CANELE_RANK_AFFINITY are the old and the new", done.stderr)

    def test_warnings_are_said_once(self):
        self.check_warning(("a driver is not used: tcp", "10.254.9.9"), CANELE_TCP_INTERFACE="10.254.9.9")
        self.check_warning(("unknown variable CANELE_DRIVER",), CANELE_DRIVER="tcp")
        self.check_warning(("CANELE_DRIVER_PATH", "/nowhere"), CANELE_DRIVER_PATH="/nowhere")
        self.check_warning(("CANELE_SAMPLES", "/nowhere"), CANELE_SAMPLES="/nowhere")
        self.check_warning(("CANELE_UNEXPECTED_MEMORY", "more than this machine's memory"),
                           CANELE_UNEXPECTED_MEMORY="999999G")
        with tempfile.TemporaryDirectory() as place:
            self.check_warning(("all 4 ranks write to this one file", "%r"), CANELE_COUNTERS=f"{place}/c.json")


if __name__ == "__main__":
    sys.exit(not unittest.main(verbosity=2, exit=False).result.wasSuccessful())

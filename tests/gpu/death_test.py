#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kills one rank of four while their messages of device memory are under way. The others go on among themselves.

Usage: death_test.py --library FAKE_CUDA --driver DRIVERS [--times N] [--seed S]
"""
import argparse
import os
import pathlib
import signal
import subprocess
import sys

BIN = pathlib.Path(os.environ["CANELE_TEST_BIN"]).resolve()
RANKS = 4


def run(options, seed):
    """Returns what went wrong, or ""."""
    settings = {"CANELE_DRIVERS": options.driver, "CANELE_GPU": "cuda", "CANELE_EXPERT_GPU_LIBRARY": options.library,
                "FAKE_CUDA_QUIET": "1", "FAKE_CUDA_NO_PAGEABLE": "1", "FAKE_CUDA_DELAY_US": "3000",
                "FAKE_CUDA_SEED": str(seed)}
    if seed % 2 == 0:  # long messages are copied and sent in fragments, within a host, too
        settings |= {"CANELE_EXPERT_GPU_FRAGMENT": "8K", "FAKE_CUDA_NO_IPC": "1"}
    command = [str(BIN / "canele-run"), "--keep-going", "-n", str(RANKS)]
    for name, value in settings.items():
        command += ["-x", f"{name}={value}"]
    command += [str(BIN / "gpu_death"), str(seed % RANKS), str(seed)]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    passed = ended.stdout.count(": passed")
    if ended.returncode == 128 + signal.SIGKILL and passed == RANKS - 1:
        return ""
    return f"exit code {ended.returncode}, {passed} ranks passed:\n{' '.join(command)}\n{ended.stdout}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--library", required=True, help="the fake driver")
    parser.add_argument("--driver", required=True)
    parser.add_argument("--times", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for seed in range(options.seed, options.seed + options.times):
        if problem := run(options, seed):
            print(f"seed {seed}: {problem}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

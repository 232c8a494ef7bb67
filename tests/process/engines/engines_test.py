# SPDX-License-Identifier: BSD-3-Clause
"""Several engines in a process, under one launcher: side by side, and one after the other.

Usage: engines_test.py Run|Pmix|OpenMpi|Hydra|Alone [unittest's options]
CANELE_TEST_CYCLES: how many engines are made and ended in a loop (25; 1000 in a soak, where memory must not grow).

Run by ctest, one entry for each launcher; the programs' directory is in CANELE_TEST_BIN. mpiexec.hydra lets no process
join twice, so there the second cycle must be refused in words.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

BIN = pathlib.Path(os.environ.get("CANELE_TEST_BIN", "build/release/bin")).resolve()
SKIPPED = 77
PROGRAM = str(BIN / "process_engines")
CONTEXTS = str(BIN / "process_contexts")
MANY = 16  # engines
CYCLES = int(os.environ.get("CANELE_TEST_CYCLES", "25"))
TIME_LIMIT = 100 * max(1, CYCLES // 25)


class Launcher(unittest.TestCase):
    prefix = []
    drivers = ("shm", "tcp")
    kib_per_cycle = 2  # KiB; an engine that is not freed takes 150

    def start(self, *words, ranks=2, code=0, program=PROGRAM, **environment):
        command = [word.format(ranks=ranks) for word in self.prefix] + [program, *words]
        done = subprocess.run(command, env={**os.environ, **environment}, timeout=TIME_LIMIT, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        done.all = f"exit code {done.returncode} of {command} with {environment}:\n{done.stdout}\n{done.stderr}"
        self.assertEqual(done.returncode, code, done.all)
        return done

    def check_side_by_side(self, *ways):
        for driver in self.drivers:
            for way in ways:
                with self.subTest(way=way, driver=driver):
                    self.start(way, CANELE_DRIVERS=driver)

    def check_loop(self):
        for driver in self.drivers:
            done = self.start("loop", str(CYCLES), str(self.kib_per_cycle if CYCLES >= 200 else 1e9),
                              CANELE_DRIVERS=driver)
            print(done.stdout, end="")


class Contexts:
    """Many engines in a process, each used by a thread of its own."""

    sizes = (1, 2, 4)  # numbers of ranks

    def test_traffic_on_all(self):
        for driver in self.drivers:
            with self.subTest(driver=driver):
                self.start("traffic", str(MANY), program=CONTEXTS, CANELE_DRIVERS=driver)

    def test_beside_mpi_and_threads(self):
        for ranks, engines in ((2, MANY), (4, 2)):
            for driver in self.drivers:
                with self.subTest(ranks=ranks, driver=driver):
                    self.start("beside-mpi", str(engines), ranks=ranks, program=CONTEXTS, CANELE_DRIVERS=driver)

    def test_values_on_two_at_once(self):
        for ranks in self.sizes:
            for driver in self.drivers:
                with self.subTest(ranks=ranks, driver=driver):
                    self.start("values", "2", ranks=ranks, program=CONTEXTS, CANELE_DRIVERS=driver)

    def test_values_on_many(self):
        self.start("values", str(MANY), program=CONTEXTS)

    def test_cost(self):
        done = self.start("cost", "4", program=CONTEXTS)
        self.assertRegex(done.stdout, "one engine: .* KiB of memory, .* threads, .* descriptors")


class SideBySide:
    def test_an_exchange_that_one_rank_never_begins(self):
        for driver in self.drivers:
            with self.subTest(driver=driver):
                self.start("abandoned", "1", ranks=4, program=CONTEXTS, CANELE_DRIVERS=driver)

    def test_two_native(self):
        self.check_side_by_side("native")

    def test_beside_mpi(self):
        self.check_side_by_side("mpi", "mpi-first")

    def test_by_two_threads(self):
        self.check_side_by_side("threads")

    def test_workers(self):
        """The launcher's answers to one engine may be received by the worker of another one."""
        for worker in ("none", "bound"):
            self.start("native", ranks=3, CANELE_WORKER=worker, CANELE_DRIVERS="tcp")

    def test_an_end_in_a_destructor(self):
        self.start("late")


class OneAfterTheOther:
    def test_loop(self):
        self.check_loop()

    def test_after_a_failure(self):
        """An engine that was never created does not count."""
        self.start("after-failure", ranks=3)


class Deaths:
    def test_values_after_a_death(self):
        """The other ranks get an error, and their earlier values stay. 137: a rank was killed."""
        prefix = self.prefix
        self.prefix = [prefix[0], "--keep-going", *prefix[1:]]
        self.addCleanup(setattr, self, "prefix", prefix)
        for driver in self.drivers:
            with self.subTest(driver=driver):
                done = self.start("death", "2", ranks=4, code=137, program=CONTEXTS, CANELE_DRIVERS=driver)
                self.assertEqual(done.stdout.count("exchange without rank 2: peer died or left"), 3, done.all)


class Run(SideBySide, Contexts, Deaths, OneAfterTheOther, Launcher):
    prefix = [str(BIN / "canele-run"), "--pmi1", "-n", "{ranks}"]


class Pmix(SideBySide, Contexts, Deaths, OneAfterTheOther, Launcher):
    """libpmix keeps what each engine has published, some KiB, until the process ends."""

    kib_per_cycle = 16

    def setUp(self):
        words = subprocess.run([BIN / "canele-run", "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
        on_request = ["--pmix"] if "--pmix" in words else []
        self.prefix = [str(BIN / "canele-run"), *on_request, "-n", "{ranks}"]


class OpenMpi(SideBySide, Contexts, OneAfterTheOther, Launcher):
    kib_per_cycle = 16
    prefix = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "{ranks}"]

    @classmethod
    def setUpClass(cls):
        if shutil.which(cls.prefix[0]) is None:
            raise unittest.SkipTest("mpirun.openmpi is not installed (Debian: openmpi-bin)")


class Hydra(SideBySide, Contexts, Launcher):
    prefix = ["mpiexec.hydra", "-n", "{ranks}"]

    @classmethod
    def setUpClass(cls):
        if shutil.which("mpiexec.hydra") is None:
            raise unittest.SkipTest("mpiexec.hydra is not installed (Debian: mpich)")

    def test_a_second_life_is_refused(self):
        done = self.start("loop", "2", code=3)
        self.assertEqual(done.stderr.count("mpiexec.hydra lets no process join twice"), 2, done.all)


class Alone(Contexts, OneAfterTheOther, Launcher):
    sizes = (1,)

    def test_two_native(self):
        self.start("native")


def main():
    names = ("Run", "Pmix", "OpenMpi", "Hydra", "Alone")
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        sys.exit("which one? engines_test.py " + "|".join(names))
    result = unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]], exit=False).result
    if result.wasSuccessful() and result.testsRun <= len(result.skipped):  # a class that is skipped runs none
        sys.exit(SKIPPED)
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    main()

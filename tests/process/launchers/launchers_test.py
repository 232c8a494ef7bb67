# SPDX-License-Identifier: BSD-3-Clause
"""The launchers that start our ranks: mpiexec.hydra (PMI-1), canele-run (both), srun (PMIx) on a Slurm of our own.

Usage: launchers_test.py Hydra|Pmi1|Pmix|Slurm|HydraCholesky|SlurmCholesky [unittest's options]
Run by ctest, one entry for each of the first four; it names the programs' directory in CANELE_TEST_BIN. Run by
tests/run.sh, stage launched, for StarPU's Cholesky. By hand: see README.md. with-timeout, around all of this, fails the
test if a process is left behind.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(os.environ.get("CANELE_TEST_BIN", "build/release/bin")).resolve()
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
STARPU = ROOT / "build/starpu/canele"
RANK = str(BIN / "run_rank_program")
TIME_LIMIT = 1000
SKIPPED = 77
JOINED = re.compile(r"^(\w+) rank (\d+) of (\d+), local (\d+) of (\d+), job ([0-9a-f]{16})$", re.MULTILINE)


class Done:
    def __init__(self, command, environment):
        result = subprocess.run(command, env={**os.environ, **environment}, timeout=TIME_LIMIT, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, check=False)
        self.code, self.out, self.err = result.returncode, result.stdout, result.stderr
        self.all = f"exit code {self.code} of {command}:\n{self.out}\n{self.err}"


class Launcher(unittest.TestCase):
    """What every launcher must be able to do. A subclass says how ranks are started."""

    protocol = ""

    def command(self, ranks, *program):
        raise NotImplementedError

    def start(self, ranks, *program, code=0, **environment):
        done = Done(self.command(ranks, *program), environment)
        if code is not None:
            self.assertEqual(done.code, code, done.all)
        return done


class EveryLauncher:
    """The tests that all launchers share."""

    def check_exchange(self, ranks):
        done = self.start(ranks, RANK, "exchange")
        found = JOINED.findall(done.out)
        self.assertEqual(sorted(int(rank) for _, rank, *_ in found), list(range(ranks)), done.all)
        self.assertEqual({name for name, *_ in found}, {self.protocol})
        self.assertEqual(sorted(int(local) for *_, local, _, _ in found), list(range(ranks)))
        self.assertEqual({(size, local) for _, _, size, _, local, _ in found}, {(str(ranks), str(ranks))})
        self.assertEqual(len({job for *_, job in found}), 1, "all are of one job")
        return found[0][5]

    def test_exchange(self):
        jobs = {self.check_exchange(ranks) for ranks in (1, 2, 4, 16)}
        self.assertEqual(len(jobs), 4, "every job has a name of its own")

    def test_examples(self):
        done = self.start(4, str(BIN / "canele-hello"))
        self.assertIn("came back with 6 from 4 ranks", done.out)
        for driver in ("shm", "tcp"):
            done = self.start(2, str(BIN / "canele-pingpong"), CANELE_DRIVERS=driver)
            self.assertIn("us one way", done.out)
            self.assertNotIn("canele:", done.err)

    def test_worker(self):
        """The answers of the launcher must also reach a rank whose worker sleeps."""
        done = self.start(4, str(BIN / "canele-hello"), CANELE_WORKER="bound", CANELE_DRIVERS="tcp")
        self.assertIn("came back with 6 from 4 ranks", done.out)

    def test_mpi(self):
        program = BIN / "mpi_collectives"
        if not program.exists():
            self.skipTest("mpi_collectives is not built")
        self.start(4, str(program))

    def test_a_key_that_comes_late_or_never(self):
        self.start(2, RANK, "early-get")


class ByHydra(Launcher):
    """mpiexec.hydra of Debian's mpich (mpiexec may be Open MPI's: the full name)."""

    protocol = "pmi1"

    @classmethod
    def setUpClass(cls):
        if shutil.which("mpiexec.hydra") is None:
            raise unittest.SkipTest("mpiexec.hydra is not installed (Debian: mpich)")

    def command(self, ranks, *program):
        return ["mpiexec.hydra", "-n", str(ranks), *program]


class Hydra(EveryLauncher, ByHydra):
    def test_a_missing_rank_is_noticed(self):
        done = self.start(4, RANK, "late-for-fence", "2", code=None)
        expected = "fence: not all 4 ranks have come in the time given; the launcher does not name the missing"
        self.assertEqual(done.out.count(expected), 3, done.all)

    def test_a_death_ends_the_job(self):
        done = self.start(4, RANK, "lose-one", "2", str(int(signal.SIGKILL)), code=None)
        self.assertNotEqual(done.code, 0, done.all)

    def test_abort(self):
        self.start(4, RANK, "abort", "1", "7", code=7)  # hydra may discard output written just before

    def test_exit_code(self):
        self.start(4, RANK, "exit-after", "-1", "5", code=5)

    def test_through_a_script(self):
        done = self.start(2, "sh", "-c", f"{RANK} exchange; true")
        self.assertEqual(len(JOINED.findall(done.out)), 2, done.all)

    def test_cleared_environment(self):
        done = self.start(2, "env", "-u", "PMI_FD", RANK, "exchange", code=None)
        self.assertIn("but PMI_FD, the descriptor to it, is missing", done.err)

    def test_closed_descriptor(self):
        done = self.start(2, "bash", "-c", f"exec {{PMI_FD}}>&-; exec {RANK} exchange", code=None)
        self.assertRegex(done.err, "that PMI_FD=[0-9]+ names is not open")

    def test_children_are_no_ranks(self):
        """canele-run in a rank of hydra makes a job of its own."""
        done = self.start(1, str(BIN / "canele-run"), "-n", "2", RANK, "exchange")
        self.assertEqual({(name, size) for name, _, size, *_ in JOINED.findall(done.out)}, {("pmi1", "2")}, done.all)


class Pmi1(EveryLauncher, Launcher):
    """canele-run, which serves PMI-1: what it also does with PMIx, and what hydra does not report."""

    protocol = "pmi1"

    def command(self, ranks, *program):
        return [str(BIN / "canele-run"), "--pmi1", "-n", str(ranks), *program]

    def keep_going(self, *program, **arguments):
        return self.start(4, "--keep-going", *program, **arguments)

    def test_a_missing_rank_is_named(self):
        done = self.start(4, RANK, "late-for-fence", "2")
        self.assertEqual(done.out.count("fence: only 3 of 4 ranks have come; rank 2 is missing"), 3, done.all)

    def test_a_death_is_told(self):
        done = self.keep_going(RANK, "lose-one", "2", str(int(signal.SIGKILL)), code=137)
        self.assertEqual(done.out.count("told that rank 2 has died"), 3, done.all)

    def test_a_death_in_a_fence_is_told(self):
        done = self.keep_going(RANK, "lose-in-fence", "2", code=137)
        self.assertEqual(done.out.count("fence: rank 2 has died"), 3, done.all)

    def test_a_death_before_the_others_join_is_told(self):
        script = f'[ "$PMI_RANK" = 2 ] && exit 3; exec {RANK} missing 9'
        done = self.keep_going("sh", "-c", script, code=3)
        told = re.findall(r"fence: ranks? [\d, and]*\b2\b[\d, and]* ha(?:s|ve) died", done.err)
        self.assertEqual(len(told), 3, done.all)  # others may have ended by then, and are named, too

    def test_a_death_ends_requests(self):
        for environment in ({"CANELE_DRIVERS": "tcp"}, {"CANELE_DRIVERS": "shm"}, {"CANELE_WORKER": "bound"}):
            with self.subTest(environment=environment):
                done = self.keep_going(str(BIN / "netns_rank"), "killed", "2", code=137, **environment)
                self.assertEqual(done.out.count("receive from rank 2: lost"), 3, done.all)
                self.assertEqual(done.out.count("goes on without rank 2"), 3, done.all)

    def test_many_ranks(self):
        """More than the usual limit on descriptors would allow."""
        done = Done(["sh", "-c", f"ulimit -Sn 64; exec {BIN / 'canele-run'} --pmi1 -n 100 sh -c 'ulimit -Sn'"], {})
        self.assertEqual((done.code, done.out), (0, "64\n" * 100), done.err)

    def test_a_rank_that_ends_without_leaving(self):
        done = self.start(4, RANK, "exit-joined", "2", "0", code=1)
        self.assertRegex(done.err, r"rank 2 \(pid \d+\) exited with code 0, but without canele_finalize")

    def test_a_rank_that_never_joins(self):
        done = self.start(4, RANK, "missing", "2", code=1)
        self.assertRegex(done.err, r"rank 2 \(pid \d+\) exited with code 0 without canele_init")

    def test_abort(self):
        done = self.start(4, RANK, "abort", "1", "7", code=7)
        self.assertRegex(done.err, r"rank 1 \(pid \d+\) aborted the job with code 7: for a test")

    def test_malformed_bytes_end_the_connection_only(self):
        script = 'echo "GET / HTTP/1.0" >&$PMI_FD; cat <&$PMI_FD; echo went on'
        done = self.start(1, "bash", "-c", script)
        self.assertIn("rank 0 has sent 'GET / HTTP/1.0', which canele-run does not serve", done.err)
        self.assertEqual(done.out, "went on\n")

    def test_nobody_fills_the_memory(self):
        for attack, expected in (("values", ["value_too_long", "this_rank_has_put_too_much"]), ("line", ["closed"]),
                                 ("questions", ["held up", "all answered"])):
            with self.subTest(attack=attack):
                done = self.start(1, sys.executable, "-B", str(HERE / "greedy_rank.py"), attack, code=None)
                self.assertEqual(done.out.splitlines(), expected, done.all)

    def test_bad_namespaces(self):
        run = str(BIN / "canele-run")
        for names, expected in (("no-such-namespace", "no network name space '/run/netns/no-such-namespace'"),
                                ("/etc/passwd", "'/etc/passwd' is not a network name space"), ("a,,b", "--netns")):
            done = Done([run, "--netns", names, "-n", "2", "true"], {})
            self.assertEqual(done.code, 2, done.all)
            self.assertIn(expected if os.geteuid() == 0 else "only root", done.err)


class Pmix(EveryLauncher, Launcher):
    """canele-run --pmix."""

    protocol = "pmix"

    def command(self, ranks, *program):
        return [str(BIN / "canele-run"), "--pmix", "-n", str(ranks), *program]

    def test_a_death_is_told(self):
        done = self.start(4, "--keep-going", RANK, "lose-one", "2", str(int(signal.SIGKILL)), code=137)
        self.assertEqual(done.out.count("told that rank 2 has died"), 3, done.all)

    def test_a_rank_that_ends_without_leaving(self):
        done = self.start(4, RANK, "exit-joined", "2", "0", code=1)
        self.assertRegex(done.err, r"rank 2 \(pid \d+\) exited with code 0, but without canele_finalize")

    def test_a_rank_that_never_joins(self):
        done = self.start(4, RANK, "missing", "2", code=1)
        self.assertRegex(done.err, r"rank 2 \(pid \d+\) exited with code 0 without canele_init")

    def test_a_missing_rank_is_named(self):
        done = self.start(4, RANK, "late-for-fence", "2")
        self.assertEqual(done.out.count("fence: only 3 of 4 ranks have come; rank 2 is missing"), 3, done.all)


class BySlurm(Launcher):
    """srun on a Slurm of our own."""

    protocol = "pmix"

    @classmethod
    def setUpClass(cls):
        if "SLURM_CONF" not in os.environ:
            raise unittest.SkipTest("needs a Slurm of its own: with-slurm python3 launchers_test.py Slurm")

    def command(self, ranks, *program):
        return ["srun", "-n", str(ranks), "--overcommit", f"--mpi={os.environ.get('SRUN_MPI', 'pmix')}", *program]


class Slurm(EveryLauncher, BySlurm):
    """Slurm starts once: all of these tests run in one."""

    def test_a_death_ends_the_job(self):
        done = self.start(4, RANK, "lose-one", "2", str(int(signal.SIGKILL)), code=None)
        self.assertNotEqual(done.code, 0, done.all)

    def test_a_missing_rank_is_named(self):
        done = self.start(4, RANK, "late-for-fence", "2")
        self.assertEqual(done.out.count("fence: only 3 of 4 ranks have come; rank 2 is missing"), 3, done.all)

    def test_without_pmix_it_says_what_to_do(self):
        for kind in ("pmi2", "none"):
            os.environ["SRUN_MPI"] = kind
            self.addCleanup(os.environ.pop, "SRUN_MPI", None)
            done = self.start(2, RANK, "exchange", code=4)
            self.assertEqual(done.err.count("use srun --mpi=pmix, or canele-run"), 2, done.all)


class Cholesky:
    """StarPU's Cholesky, which checks its result. The StarPU is that of tests/starpu/build-starpu.sh."""

    def test_cholesky(self):
        program = STARPU / "mpi/examples/matrix_decomposition/mpi_cholesky"
        self.assertTrue(program.exists(), f"{program} is not built: tests/run.sh --only release,install,starpu")
        with tempfile.TemporaryDirectory(prefix="launchers.") as counters:
            done = self.start(4, str(program), "-size", "960", "-nblocks", "6", "-check",
                              CANELE_COUNTERS=f"{counters}/%r.json", STARPU_NCPU="1", STARPU_WORKERS_NOBIND="1",
                              STARPU_HOME=str(STARPU / "home"), OPENBLAS_NUM_THREADS="1")
            self.assertIn("comparing results", done.out + done.err, done.all)
            self.assertNotIn("Error[", done.out + done.err, done.all)
            traffic = Done([sys.executable, "-B", str(ROOT / "tests/starpu/traffic.py"), counters, "--ranks", "4",
                            "--driver", "shm"], {})
            self.assertEqual(traffic.code, 0, traffic.all)


class HydraCholesky(Cholesky, ByHydra):
    pass


class SlurmCholesky(Cholesky, BySlurm):
    pass


def main():
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in ("Hydra", "Pmi1", "Pmix", "Slurm", "HydraCholesky", "SlurmCholesky"):
        sys.exit("which one? launchers_test.py Hydra|Pmi1|Pmix|Slurm|HydraCholesky|SlurmCholesky")
    if name.startswith("Slurm") and "SLURM_CONF" not in os.environ:
        os.execv(HERE / "with-slurm", ["with-slurm", sys.executable, "-B", *sys.argv])
    result = unittest.main(argv=[sys.argv[0], "-v", name, *sys.argv[2:]], exit=False).result
    if result.wasSuccessful() and result.testsRun <= len(result.skipped):  # a class that is skipped runs none
        sys.exit(SKIPPED)
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    main()

// SPDX-License-Identifier: BSD-3-Clause
//
// canele-run with real processes: codes, signals, output, failures, and that nothing is left behind.
//
// One thread. Every run() also checks that no process and no temporary file has outlived the job.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <tuple>

#include "launched.hpp"
#include "tests/slowness.hpp"

namespace canele::test {
namespace {

const std::string launcher = CANELE_RUN;
const std::string rank_program = RANK_PROGRAM;

using Words = std::vector<std::string>;

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Runs canele-run with options, then the test's rank program with its orders.
Result ranks(const Words& options, const Words& orders) {
  return run(with(with({launcher}, options), with({rank_program}, orders)));
}

Result shell(const Words& options, const std::string& script, const std::string& input = "") {
  return run(with(with({launcher}, options), {"sh", "-c", script}), {}, input);
}

/// The rank of a script, under either server.
const std::string this_rank = "${PMI_RANK:-$PMIX_RANK}";

/// Returns whether the launcher says `what` of a rank: "canele-run: rank 2 (pid 1234) ", followed by `what`.
bool says(const std::string& text, int rank, const std::string& what) {
  const std::string begin = "canele-run: rank " + std::to_string(rank) + " (pid ";
  const std::size_t at = text.find(begin);
  if (at == std::string::npos) return false;
  const std::size_t pid = at + begin.size();
  const std::size_t end = text.find_first_not_of("0123456789", pid);
  return end > pid && text.compare(end, what.size() + 2, ") " + what) == 0;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) result.push_back(line);
  return result;
}

void exchange(const Words& options, const std::string& protocol, int size) {
  const Result result = ranks(with({"-n", std::to_string(size)}, options), {"exchange"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  std::set<std::string> jobs;
  for (int rank = 0; rank < size; ++rank) {
    const std::string mine = protocol + " rank " + std::to_string(rank) + " of " + std::to_string(size) + ", local " +
                             std::to_string(rank) + " of " + std::to_string(size) + ", job ";
    ASSERT_EQ(count(result.out, mine), 1) << result.out;
    jobs.insert(result.out.substr(result.out.find(mine) + mine.size(), 16));
  }
  EXPECT_EQ(jobs.size(), 1u) << "ranks disagree on the job's identity";
}

TEST(Exchange, OneFourAndSixtyFourRanks) {
  for (const int size : {1, 4, 64}) exchange({}, "pmi1", size);
  exchange({"--pmi1"}, "pmi1", 4);
  for (const int size : {1, 4, 16}) exchange({"--pmix"}, "pmix", size);
}

/// A rank that is a script joins once for each program; nothing of the first program may be found in the second.
TEST(Exchange, OneProgramAfterTheOther) {
  const std::string twice =
      rank_program + " exchange && " + rank_program + " early-get && " + rank_program + " exchange";
  const Result result = shell({"-n", "3"}, twice);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(count(result.out, "pmi1 rank "), 6) << result.out;
  std::set<std::string> jobs;
  for (const std::string& line : lines(result.out)) jobs.insert(line.substr(line.find(", job ")));
  EXPECT_EQ(jobs.size(), 2u) << "each life of the job has a name of its own: " << result.out;
}

TEST(Exchange, EarlyAndImpossibleGets) {
  const Result result = ranks({"-n", "2"}, {"early-get"});
  EXPECT_EQ(result.code, 0) << result.err;
}

TEST(Exchange, UnderOpenMpi) {
  if (!installed("mpirun.openmpi")) GTEST_SKIP() << "mpirun.openmpi is not installed";
  const Words mpirun = {"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "4", rank_program};
  const Result exchanged = run(with(mpirun, {"exchange"}));
  EXPECT_EQ(exchanged.code, 0) << exchanged.err;
  EXPECT_EQ(count(exchanged.out, "pmix rank "), 4) << exchanged.out;
  const Result early = run(with(mpirun, {"early-get"}));
  EXPECT_EQ(early.code, 0) << early.err;
  const Result late = run(with(mpirun, {"late-for-fence", "2"}));
  EXPECT_EQ(count(late.out, "only 3 of 4 ranks have come; rank 2 is missing"), 3) << late.out << late.err;
}

TEST(Exchange, ManyStartsInARow) {
  for (int start = 0; start < 50 / slowness; ++start) {
    const Result result = ranks({"-n", "4"}, {"exchange"});
    ASSERT_EQ(result.code, 0) << "start " << start << "\n" << result.err;
  }
}

TEST(Singleton, WithoutLauncher) {
  const Result result = run({rank_program, "exchange"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(count(result.out, "singleton rank 0 of 1, local 0 of 1"), 1) << result.out;
}

TEST(Singleton, NeverUnderAnotherLauncher) {
  const std::vector<std::pair<Words, std::string>> cases = {
      {{"PMI_FD=7"}, "its variables are malformed: PMI_FD=7, PMI_RANK is not set, PMI_SIZE is not set"},
      {{"PMI_FD=99", "PMI_RANK=0", "PMI_SIZE=2"}, "that PMI_FD=99 names is not open, or no socket"},
      {{"PMI_FD=0", "PMI_RANK=0", "PMI_SIZE=1"}, "that PMI_FD=0 names is not open, or no socket"},
      {{"PMI_FD=7", "PMI_RANK=0", "PMI_SIZE=2", "PMI_JOBID=1.0"},
       "by srun with PMI-2 (PMI_FD is set): use srun --mpi="},
      {{"PMI_RANK=0"}, "mpiexec.hydra (PMI_RANK is set)"},
      {{"MPI_LOCALNRANKS=2"}, "mpiexec.hydra (MPI_LOCALNRANKS is set)"},
      {{"OMPI_COMM_WORLD_RANK=0"}, "Open MPI (OMPI_COMM_WORLD_RANK is set), but its PMIx variables"},
      {{"SLURM_PROCID=0", "SLURM_STEP_ID=1"}, "use srun --mpi=pmix"},
      {{"PMIX_RANK=0"}, "PMIX_NAMESPACE and PMIX_RANK are not both set"},
      {{"PMIX_NAMESPACE=gone", "PMIX_RANK=0"}, "of job gone, cannot be joined: UNREACHABLE"},
      {{"PMIX_NAMESPACE=gone", "PMIX_RANK=0", "PMIX_SERVER_URI21=x.0;tcp4://127.0.0.1:1",
        "PMIX_SERVER_URI2=x.0;tcp4://127.0.0.1:1"},
       "of job gone, cannot be joined: UNREACHABLE"}};
  for (const auto& [variables, expected] : cases) {
    const Result result = run({rank_program, "exchange"}, variables);
    EXPECT_EQ(result.code, 4) << variables[0];
    EXPECT_NE(result.err.find(expected), std::string::npos) << variables[0] << ": " << result.err;
    EXPECT_EQ(result.out, "");
  }
}

TEST(ExitCode, OfPlainPrograms) {
  EXPECT_EQ(shell({"-n", "3"}, "exit 0").code, 0);
  for (const int code : {3, 77}) {
    const Result result = shell({"-n", "3"}, "exit " + std::to_string(code));
    EXPECT_EQ(result.code, code);
    EXPECT_EQ(result.err, "canele-run: all 3 ranks exited with code " + std::to_string(code) + "\n");
  }
  const Result killed = shell({"-n", "1"}, "kill -9 $$");
  EXPECT_EQ(killed.code, 137);
  EXPECT_TRUE(says(killed.err, 0, "died by signal 9 (Killed)")) << killed.err;
}

TEST(ExitCode, OneRankFailsBeforeJoining) {
  const Result result = ranks({"-n", "4"}, {"exit-before", "2", "3"});
  EXPECT_EQ(result.code, 3);
  EXPECT_TRUE(says(result.err, 2, "exited with code 3")) << result.err;
}

TEST(ExitCode, OneRankFailsAlone) {
  // The others would run for long: the grace time ends them.
  const Result result = shell({"-n", "3", "--grace", "0.2"}, "[ " + this_rank + " = 1 ] && exit 5; sleep 1000");
  EXPECT_EQ(result.code, 5);
  EXPECT_TRUE(says(result.err, 1, "exited with code 5")) << result.err;
  EXPECT_EQ(count(result.err, "\n"), 1) << result.err;
}

TEST(ExitCode, AfterJoining) {
  const Result failed = ranks({"-n", "4"}, {"exit-joined", "2", "77"});
  EXPECT_EQ(failed.code, 77) << failed.err;
  EXPECT_EQ(count(failed.err, "canele-run: rank 2 (pid "), 1) << failed.err;
  const Result unclean = ranks({"-n", "4"}, {"exit-joined", "2", "0"});
  EXPECT_EQ(unclean.code, 1);
  EXPECT_NE(unclean.err.find("without canele_finalize (MPI_Finalize)"), std::string::npos) << unclean.err;
}

TEST(ExitCode, AfterLeaving) {
  const Result all = ranks({"-n", "4"}, {"exit-after", "-1", "77"});
  EXPECT_EQ(all.code, 77);
  EXPECT_EQ(all.err, "canele-run: all 4 ranks exited with code 77\n");
  const Result one = ranks({"-n", "4"}, {"exit-after", "1", "3"});
  EXPECT_EQ(one.code, 3);
  EXPECT_EQ(count(one.err, "canele-run: rank 1 (pid "), 1) << one.err;
}

TEST(ExitCode, OfAbort) {
  for (const char* server : {"--pmi1", "--pmix"}) {
    const Result result = ranks({server, "-n", "4"}, {"abort", "1", "7"});
    EXPECT_EQ(result.code, 7);
    EXPECT_TRUE(says(result.err, 1, "aborted the job with code 7: for a test")) << result.err;
  }
  const Result none = ranks({"-n", "2"}, {"abort", "1", "0"});
  EXPECT_EQ(count(none.err, "for a test"), 1) << "said once: " << none.err;
  EXPECT_EQ(none.code, 1) << "an aborted job has not succeeded";
}

TEST(Failure, MissingRankEndsTheJob) {
  const Result result = ranks({"-n", "4"}, {"missing", "2"});
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(says(result.err, 2, "exited with code 0 without canele_init (MPI_Init)")) << result.err;
}

TEST(Failure, MissingRankIsNamedToTheOthers) {
  const Result late = ranks({"-n", "4"}, {"late-for-fence", "2"});
  EXPECT_EQ(late.code, 0) << late.err;
  EXPECT_EQ(count(late.out, "fence: only 3 of 4 ranks have come; rank 2 is missing"), 3) << late.out;
  const Result gone = ranks({"-n", "4", "--keep-going"}, {"missing", "2"});
  EXPECT_EQ(gone.code, 1);
  EXPECT_GE(count(gone.err, "fence: rank 2 has died"), 1) << gone.err;
}

TEST(Failure, DeathEndsTheJob) {
  const Result result = ranks({"-n", "4"}, {"lose-one", "2", "6"});
  EXPECT_EQ(result.code, 134);
  EXPECT_TRUE(says(result.err, 2, "died by signal 6 (Aborted)")) << result.err;
}

TEST(Failure, KeepGoingTellsTheOthers) {
  const Result told = ranks({"-n", "4", "--keep-going"}, {"lose-one", "2", "9"});
  EXPECT_EQ(told.code, 137);
  EXPECT_EQ(count(told.out, "told that rank 2 has died"), 3) << told.out << told.err;
  EXPECT_EQ(count(told.err, "canele-run:"), 1) << told.err;
  const Result fence = ranks({"-n", "4", "--keep-going"}, {"lose-in-fence", "1"});
  EXPECT_EQ(fence.code, 137);
  // Three events race: the launcher's report, libpmix's loss of the connection, and the others' call.
  EXPECT_EQ(count(fence.out, "fence: rank 1 has died\n") + count(fence.out, "; rank 1 is missing") +
                count(fence.out, "fence: rank 1 was left out\n"),
            3)
      << fence.out << fence.err;
}

TEST(Failure, StubbornRanksAreKilled) {
  // Rank 1 fails only after rank 0 has begun to ignore SIGTERM.
  const std::string script = "if [ " + this_rank +
                             " = 0 ]; then trap '' TERM; : >$TMPDIR/deaf; while :; do sleep 0.1; done; fi;"
                             "while [ ! -e $TMPDIR/deaf ]; do sleep 0.01; done; rm $TMPDIR/deaf; kill -6 $$";
  const Result result = shell({"-n", "2"}, script);
  EXPECT_EQ(result.code, 134) << result.err;
  EXPECT_EQ(count(result.err, "died by signal 6"), 1) << result.err;
}

TEST(Output, LinesStayWholeAndKeepTheirRank) {
  const Result result = ranks({"-n", "4", "--tag-output"}, {"lines", "25000"});
  EXPECT_EQ(result.code, 0);
  for (const auto& [text, name] : {std::pair(result.out, "out"), std::pair(result.err, "err")}) {
    std::vector<int> next(4, 0);
    const std::vector<std::string> all = lines(text);
    EXPECT_EQ(all.size(), 100'000u);
    for (const std::string& line : all) {
      const int rank = line[1] - '0';
      ASSERT_TRUE(rank >= 0 && rank < 4) << line;
      int& number = next[static_cast<std::size_t>(rank)];
      const std::string tag = "[" + std::to_string(rank) + "] ";
      ASSERT_EQ(line, tag + name + " " + std::to_string(number) + " of " + std::to_string(rank));
      ++number;
    }
  }
}

TEST(Output, TagsAnUnfinishedLastLine) {
  const Result result = shell({"-n", "2", "-l"}, "printf 'a\\nb'");
  const std::vector<std::string> all = lines(result.out);
  EXPECT_EQ(std::multiset<std::string>(all.begin(), all.end()),
            (std::multiset<std::string>{"[0] a", "[0] b", "[1] a", "[1] b"}));
}

TEST(Output, PassesUntouchedAndAtOnce) {
  Launched launched({launcher, "-n", "1", "sh", "-c", "printf x; cat; printf y >&2"});
  EXPECT_TRUE(launched.wait_for("x", 1)) << "a partial line is held back";
  launched.write_input("input\n");
  launched.close_input();
  const Result result = launched.finish();
  EXPECT_EQ(result.out, "xinput\n");
  EXPECT_EQ(result.err, "y");
}

TEST(Input, GoesToRankZeroOnly) {
  const Result result = shell({"-n", "3", "-l"}, "wc -c", "some input\n");
  EXPECT_EQ(count(result.out, "[0] 11\n"), 1) << result.out;
  EXPECT_EQ(count(result.out, "] 0\n"), 2) << result.out;
}

/// Starts three ranks, waits until each says "ready", sends the signals one after the other, and waits for the end.
Result signalled(const std::string& script, const std::vector<int>& signals) {
  Launched launched({launcher, "-n", "3", "--grace", "1000", "sh", "-c", script});
  for (std::size_t i = 0; i < signals.size(); ++i) {
    if (!launched.wait_for("ready", 3 * static_cast<int>(i + 1))) break;
    launched.send(signals[i]);
  }
  Result result = launched.finish();
  EXPECT_GE(count(result.out, "ready"), 3 * static_cast<int>(signals.size())) << result.out << result.err;
  EXPECT_EQ(launched.traces(), "");
  return result;
}

const std::string idle = "while :; do sleep 0.1; done";

TEST(Signals, ReachTheRanks) {
  for (const auto& [name, number] : {std::pair("INT", SIGINT), std::pair("TERM", SIGTERM), std::pair("HUP", SIGHUP),
                                     std::pair("USR1", SIGUSR1), std::pair("USR2", SIGUSR2)}) {
    const std::string script = std::string("trap 'echo got ") + name + "; exit 0' " + name + "; echo ready; " + idle;
    const Result result = signalled(script, {number});
    EXPECT_EQ(count(result.out, std::string("got ") + name), 3) << result.out << result.err;
    EXPECT_EQ(result.code, 0) << name;
  }
}

TEST(Signals, EndRanksThatDoNotCare) {
  const Result interrupted = signalled("echo ready; " + idle, {SIGINT});
  EXPECT_EQ(interrupted.code, 130);
  EXPECT_EQ(count(interrupted.err, "canele-run:"), 0) << "the user knows: " << interrupted.err;
  EXPECT_EQ(signalled("echo ready; exec sleep 1000", {SIGTERM}).code, 143);
}

TEST(Signals, TheSecondInterruptKills) {
  const Result result = signalled("trap 'echo ready again' INT; echo ready; " + idle, {SIGINT, SIGINT});
  EXPECT_EQ(result.code, 130);
}

/// The signal usually arrives while ranks are still being started.
TEST(Signals, AskTheRanksThatHaveStarted) {
  Launched launched(
      {launcher, "-n", "100", "--grace", "1000", "sh", "-c", "trap 'echo got TERM; exit 0' TERM; echo ready; " + idle});
  ASSERT_TRUE(launched.wait_for("ready", 1));
  launched.send(SIGTERM);
  const Result result = launched.finish();
  EXPECT_GE(count(result.out, "got TERM"), 1) << result.out << result.err;
  EXPECT_TRUE(result.code == 143 || (result.code == 0 && count(result.out, "ready") == 100)) << result.code;
  EXPECT_EQ(launched.traces(), "");
}

TEST(Traces, GrandchildrenEndWithTheJob) {
  EXPECT_EQ(shell({"-n", "2"}, "setsid sleep 1000 & sleep 1001 & exit 0").code, 0);
  EXPECT_EQ(shell({"-n", "2"}, "(setsid sh -c 'sleep 1000 & exec sleep 1001' &) ; kill -9 $$").code, 137);
}

TEST(Traces, AFilterMayFinishItsWork) {
  if (!installed("bash")) GTEST_SKIP() << "bash is not installed";
  const Result result = run({launcher, "-n", "2", "bash", "-c", "exec > >(sleep 0.2; cat); echo filtered"});
  EXPECT_EQ(result.out, "filtered\nfiltered\n");
}

TEST(Traces, NothingOutlivesAKilledLauncher) {
  Launched launched({launcher, "-n", "3", "sh", "-c", "sleep 1000 & echo ready; sleep 1001"});
  ASSERT_TRUE(launched.wait_for("ready", 3));
  launched.send(SIGKILL);
  EXPECT_EQ(launched.finish().signal, SIGKILL);
  EXPECT_EQ(launched.traces(), "");
}

TEST(Timeout, EndsTheJob) {
  const Result result = shell({"-n", "2", "--timeout", "0.5"}, "sleep 1000");
  EXPECT_EQ(result.code, 124);
  EXPECT_EQ(count(result.err, "canele-run: the job has run for 0.5 s (--timeout): ending it"), 1) << result.err;
}

TEST(Timeout, PrintsStacks) {
  if (!installed("gdb")) GTEST_SKIP() << "gdb is not installed";
  const Result result = run({launcher, "-n", "2", "--timeout", "0.5", "--stacks", "sleep", "1000"});
  EXPECT_EQ(result.code, 124);
  EXPECT_EQ(count(result.err, "canele-run: stacks of rank "), 2) << result.err;
  EXPECT_GE(count(result.err, "Thread 1"), 2) << result.err;
}

TEST(Options, ReachTheRanks) {
  const Result variables = run(
      {launcher, "-np", "1", "-x", "A=1", "-x", "B", "-DC=3", "-D", "D=4", "sh", "-c", "echo $A $B $C $D"}, {"B=2"});
  EXPECT_EQ(variables.out, "1 2 3 4\n") << variables.err;
  const Result directory = run({launcher, "-wdir", "/", "sh", "-c", "pwd; echo $PWD"});
  EXPECT_EQ(directory.out, "/\n/\n") << directory.err;
  const Result foreign =
      run({launcher, "-n", "2", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "--map-by", "slot",
           "--mca", "btl", "self", "--host", "localhost:2", "echo", "-n", "--x"});
  EXPECT_EQ(foreign.out, "--x--x");
  EXPECT_EQ(foreign.err, "");
}

/// Returns the number of processing units that this process may run on.
int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

TEST(Options, BindToCore) {
  const std::string script = "echo " + this_rank + " $(grep Cpus_allowed_list /proc/self/status | cut -f 2)";
  const Result bound = shell({"-n", "2", "--bind-to", "core"}, script);
  const Result first = shell({"-n", "2", "--bind-to", "0"}, script);
  EXPECT_EQ(lines(bound.out).size(), 2u) << bound.err;
  std::set<std::string> cores;
  for (const std::string& line : lines(first.out)) cores.insert(line.substr(2));
  EXPECT_EQ(cores.size(), 1u) << "both ranks were to run on core 0: " << first.out;
  if (usable_cores() < 2) return;
  for (const std::string& line : lines(bound.out)) cores.insert(line.substr(2));
  EXPECT_EQ(cores.size(), 2u) << bound.out << first.out;
}

TEST(Options, RanksThatShareUnitsHaveNoRestartableSequences) {
  const Result alone = ranks({"-n", "1", "--bind-to", "0"}, {"sequences"});
  if (alone.out == "too old\n") GTEST_SKIP() << "glibc before 2.35";
  const Result two = ranks({"-n", "2", "--bind-to", "0"}, {"sequences"});
  EXPECT_EQ(two.out, "not registered\nnot registered\n") << two.err;
  const Result kept = run({launcher, "-n", "2", "--bind-to", "0", rank_program, "sequences"},
                          {"GLIBC_TUNABLES=glibc.malloc.check=0:glibc.pthread.rseq=1"});
  EXPECT_EQ(kept.out, alone.out + alone.out) << "the user's own choice holds";
  const Result units = shell({"-n", std::to_string(sysconf(_SC_NPROCESSORS_ONLN) + 1)}, "echo $GLIBC_TUNABLES");
  EXPECT_EQ(count(units.out, "glibc.pthread.rseq=0\n"), sysconf(_SC_NPROCESSORS_ONLN) + 1) << units.out << units.err;
}

TEST(Options, MistakesAreNamed) {
  const std::vector<std::tuple<Words, int, std::string>> cases = {
      {{}, 2, "no program; expected: canele-run"},
      {{"-n", "0", "true"}, 2, "-n 0; expected: a number from 1 to 4096"},
      {{"-n", "two", "true"}, 2, "-n two; expected: a number from 1 to 4096"},
      {{"-n", "2x", "true"}, 2, "-n 2x; expected: a number"},
      {{"-n", "", "true"}, 2, "expected: a number"},
      {{"--timeout", "0", "true"}, 2, "--timeout 0; expected: a number above 0"},
      {{"--timeout", "nan", "true"}, 2, "--timeout nan; expected: a number above 0"},
      {{"--grace", "-1", "true"}, 2, "--grace -1; expected: a number from 0"},
      {{"--pmix", "--pmi1", "true"}, 2, "expected: one of them"},
      {{"--pmix", "--netns", "x", "true"}, 2, "leave --pmix out"},
      {{"--no-such", "true"}, 2, "unknown option '--no-such'"},
      {{"-n", "2", "no-such-program"}, 127, "there is no program 'no-such-program' in PATH"},
      {{"-n", "2", "/no/such"}, 127, "there is no program '/no/such'"},
      {{"-n", "2", "/etc/passwd"}, 126, "'/etc/passwd' cannot be executed"},
      {{"-n", "1", "true", ":", "-n", "1", "true"}, 2, "(':') are not supported"},
      {{"--host", "elsewhere", "true"}, 2, "this host only; for several hosts use mpirun of Open MPI, or srun"},
      {{"--hostfile", "/no/such", "true"}, 2, "--hostfile /no/such: cannot read it"},
      {{"--wdir", "/no/such", "true"}, 2, "--wdir /no/such: there is no such directory"},
      {{"--bind-to", "999999", "true"}, 2, "there is no core 999999"},
      {{"--bind-to", "moon", "true"}, 2, "expected: none, core,"},
      {{"-D", "X", "true"}, 2, "the value is missing; expected: -D X=VALUE"},
      {{"--stacks", "true"}, 2, "expected: --timeout"}};
  for (const auto& [arguments, code, expected] : cases) {
    const Result result = run(with({launcher}, arguments));
    EXPECT_EQ(result.code, code) << expected << "\n" << result.err;
    EXPECT_NE(result.err.find(expected), std::string::npos) << expected << "\n" << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err.rfind("canele-run: ", 0), 0u) << result.err;
  }
}

TEST(Options, AScriptWithoutInterpreterIsReported) {
  const std::string script = testing::TempDir() + "/no-interpreter";
  std::ofstream(script) << "#!/no/such/interpreter\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const Result result = run({launcher, "-n", "2", script});
  std::filesystem::remove(script);
  EXPECT_EQ(result.code, 127);
  EXPECT_EQ(count(result.err, "canele-run: cannot start rank 0 ('" + script + "'): execute: "), 1) << result.err;
}

}  // namespace
}  // namespace canele::test

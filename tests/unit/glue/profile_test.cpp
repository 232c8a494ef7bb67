// SPDX-License-Identifier: BSD-3-Clause
//
// Profiles: threads that come and go, more of them than are counted, calls inside calls, requests between threads.
//
// Many threads. No MPI is started: the profile knows of calls only what Profiled reports. tests/mpi has the real ones.
#include "starpu_glue/mpi/core/profile.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <latch>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace canele::mpi::profile {
namespace {

void call(Function function) { const Profiled one(function); }

/// Ends the profile and returns its output.
std::string ended() {
  const std::string pattern = testing::TempDir() + "canele-profile-%r.json",
                    file = testing::TempDir() + "canele-profile-7.json";
  EXPECT_TRUE(stop(pattern.c_str(), 7, 8));
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  std::remove(file.c_str());
  return text.str();
}

std::size_t times(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(Function, KnowsItsNameAndClass) {
  constexpr Function send("MPI_Send"), first("MPI_Abi_get_fortran_booleans"), last("nm_mpi_nmad_dest");
  EXPECT_STREQ(send.name(), "MPI_Send");
  EXPECT_EQ(send.call_class(), CallClass::blocking);
  EXPECT_EQ(first.index(), 0U);
  EXPECT_EQ(Function("MPI_Iallreduce").call_class(), CallClass::init);
  EXPECT_EQ(Function("MPI_Iprobe").call_class(), CallClass::test);
  EXPECT_EQ(Function("MPI_Waitsome").call_class(), CallClass::wait);
  EXPECT_EQ(Function("MPI_Comm_dup").call_class(), CallClass::other);
  EXPECT_EQ(last.index() + 1, kFunctionCount) << "every function has an index of its own";
  for (std::size_t i = 1; i < kFunctionCount; ++i) {
    EXPECT_LT(kFunctions[i - 1].name, kFunctions[i].name) << "a Function is found by bisection";
  }
}

TEST(Profile, IsOffUntilItIsStarted) {
  call("MPI_Send");
  start();
  const std::string text = ended();
  EXPECT_EQ(times(text, "MPI_Send"), 0U) << text;
  EXPECT_EQ(times(text, R"("rank": 7, "ranks": 8)"), 1U) << text;
  call("MPI_Send");
  start();
  EXPECT_EQ(times(ended(), "MPI_Send"), 0U) << "a new start forgets the old one";
}

TEST(Profile, ThreadsThatComeAfterEachOtherShareATable) {
  start();
  for (int i = 0; i < 300; ++i) std::thread([] { call("MPI_Recv"); }).join();
  const std::string text = ended();
  EXPECT_EQ(times(text, R"("main": false)"), 1U);
  EXPECT_EQ(times(text, R"("name": "MPI_Recv", "class": "blocking", "count": 300,)"), 1U) << text;
}

TEST(Profile, TellsHowManyThreadsItHasNotCounted) {
  start();
  constexpr std::size_t more = 3, others = kMostThreads - 1 + more;  // this thread has a table, too
  std::latch all_have_called(others);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < others; ++i) {
    threads.emplace_back([&] {
      call("MPI_Recv");
      all_have_called.arrive_and_wait();
      call("MPI_Recv");
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = ended();
  EXPECT_EQ(times(text, R"("threads_not_counted": 3,)"), 1U) << text;
  EXPECT_EQ(times(text, R"("name": "MPI_Recv", "class": "blocking", "count": 510,)"), 1U) << text;
}

TEST(Profile, CountsWhatLiesBetweenStartAndCompletionOnlyWithinAThread) {
  start();
  Started here, elsewhere, at_once;
  {
    const Profiled one("MPI_Isend");
    here.note();
    elsewhere.note();
    at_once.note();
    at_once.completed();  // as MPI_Sendrecv does
  }
  std::thread([&] {
    const Profiled one("MPI_Wait");
    elsewhere.completed();
  }).join();
  {
    const Profiled one("MPI_Wait");
    const Profiled inside("MPI_Test");
    here.completed();
    here.completed();  // counts nothing the second time
  }
  const std::string text = ended();
  EXPECT_EQ(times(text, R"("between_call_and_wait": {"count": 1,)"), 1U) << text;
  EXPECT_EQ(times(text, R"("by_other_threads": 1})"), 1U) << text;
  EXPECT_EQ(times(text, R"("wait": {"count": 2,)"), 1U) << text;
}

TEST(Profile, SaysIfItsFileCannotBeWritten) {
  start();
  EXPECT_FALSE(stop("/no/such/directory/%r", 0, 1));
}

}  // namespace
}  // namespace canele::mpi::profile

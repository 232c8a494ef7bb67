// SPDX-License-Identifier: BSD-3-Clause
//
// Core register: a worker leaves cores used by another process alone, takes the nearest cores first, and forgets a
// killed process.
//
// One thread, and a child process that is killed. Two registers of one process behave as those of two: locks belong to
// the open file.
#include "ltask/core_register.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "ltask/topology.hpp"

namespace canele::ltask {
namespace {

class CoreRegisterTest : public testing::Test {
 protected:
  CoreRegisterTest() {
    std::string name = testing::TempDir() + "cores-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  ~CoreRegisterTest() override { EXPECT_EQ(rmdir(directory_.c_str()), 0) << "a register left its file behind"; }

  std::unique_ptr<CoreRegister> open() {
    std::string why;
    auto cores = CoreRegister::open(directory_, &why);
    EXPECT_NE(cores, nullptr) << why;
    return cores;
  }

  std::string directory_;
};

/// Two packages of two cores of two PUs: 0-1 2-3 | 4-5 6-7.
Topology machine(std::vector<int> pinned_to) { return {"pack:2 core:2 pu:2", pinned_to}; }

TEST_F(CoreRegisterTest, TellsWhatIsComputedOnFromWhatAWorkerHas) {
  const auto first = open(), second = open();
  first->compute_on(std::array{0, 1});
  ASSERT_TRUE(second->take(2));
  for (const auto& cores : {first.get(), second.get()}) {
    EXPECT_TRUE(cores->is_computed_on(0));
    EXPECT_TRUE(cores->is_computed_on(1));
    EXPECT_FALSE(cores->is_computed_on(3));
  }
  EXPECT_FALSE(first->is_computed_on(2)) << "a worker's";
}

TEST_F(CoreRegisterTest, AWorkerTakesTheNearestWholeCore) {
  const auto first = open(), second = open(), third = open();
  first->compute_on(std::array{6});
  EXPECT_EQ(free_unit_nearby(machine({6}), *first), 4);
  second->compute_on(std::array{4});
  EXPECT_EQ(free_unit_nearby(machine({6}), *first), 0) << "core 4-5 is computed on";
  EXPECT_TRUE(first->take(0));
  EXPECT_EQ(free_unit_nearby(machine({4}), *second), 2) << "core 0-1 has a worker";
  EXPECT_TRUE(second->take(2));
  third->compute_on(std::array{6});
  EXPECT_EQ(free_unit_nearby(machine({6}), *third), 7) << "no core is whole: the nearest unit";
}

TEST_F(CoreRegisterTest, NothingIsChosenWhereNothingIsFree) {
  const auto first = open(), second = open();
  first->compute_on(std::array{0, 1, 2, 3});
  second->compute_on(std::array{4, 5, 6, 7});
  EXPECT_EQ(free_unit_nearby(machine({0, 1, 2, 3}), *first), std::nullopt);
  EXPECT_EQ(free_unit_nearby(machine({}), *first), std::nullopt) << "a process that is not pinned";
}

TEST_F(CoreRegisterTest, NoTwoWorkersHaveOneUnit) {
  const auto first = open(), second = open();
  EXPECT_TRUE(first->take(3));
  EXPECT_FALSE(second->take(3));
  EXPECT_TRUE(first->take(5)) << "gives 3 back";
  EXPECT_TRUE(second->take(3));
  EXPECT_FALSE(first->take(3));
  EXPECT_TRUE(second->take(5)) << "a register that is refused has no core any more";
  second->give_back();
  EXPECT_TRUE(first->is_free(3));
  EXPECT_TRUE(first->is_free(5));
}

TEST_F(CoreRegisterTest, AWorkerMayHaveAUnitOfItsOwnProgram) {
  const auto first = open(), second = open();
  first->compute_on(std::array{0, 1});
  EXPECT_TRUE(first->take(1));
  EXPECT_FALSE(second->is_free(1));
  first->give_back();
  EXPECT_FALSE(second->is_free(1)) << "the program is pinned there again";
  second->compute_on(std::array{1});
  EXPECT_FALSE(first->take(1)) << "another program is pinned there, too";
}

TEST_F(CoreRegisterTest, AProgramIsToldOfAWorkerThatWasThereBefore) {
  const auto first = open(), second = open();
  EXPECT_TRUE(first->take(2));
  second->compute_on(std::array{1, 2});
  EXPECT_EQ(second->lost_to_a_worker(), 2);
  EXPECT_EQ(first->lost_to_a_worker(), std::nullopt);
}

TEST_F(CoreRegisterTest, AKilledProcessIsForgotten) {
  const auto first = open();
  std::array<int, 2> ready{};
  ASSERT_EQ(pipe(ready.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::string why;
    const auto theirs = CoreRegister::open(directory_, &why);
    const char yes = theirs != nullptr && theirs->take(2) ? 'y' : 'n';
    if (write(ready[1], &yes, 1) == 1) pause();
    _exit(1);
  }
  char answer = 0;
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  EXPECT_FALSE(first->take(2));
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(first->take(2));
  close(ready[0]);
  close(ready[1]);
}

TEST_F(CoreRegisterTest, WhatIsNotOurFileIsRefused) {
  const std::string file = directory_ + "/canele-cores-" + std::to_string(geteuid());
  std::string why;
  ASSERT_EQ(symlink("/dev/null", file.c_str()), 0);
  EXPECT_EQ(CoreRegister::open(directory_, &why), nullptr);
  EXPECT_NE(why.find(file), std::string::npos) << why;
  ASSERT_EQ(unlink(file.c_str()), 0);
  ASSERT_EQ(mkdir(file.c_str(), 0700), 0);
  EXPECT_EQ(CoreRegister::open(directory_, &why), nullptr);
  ASSERT_EQ(rmdir(file.c_str()), 0);
  EXPECT_EQ(CoreRegister::open(directory_ + "/nowhere", &why), nullptr);
  EXPECT_NE(why.find("No such file"), std::string::npos) << why;
}

}  // namespace
}  // namespace canele::ltask

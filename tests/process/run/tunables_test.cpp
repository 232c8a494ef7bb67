// SPDX-License-Identifier: BSD-3-Clause
//
// What ranks that share processing units get as GLIBC_TUNABLES, without processes. One thread. launcher_test.cpp tests
// with real ranks that glibc heeds it.
#include "apps/run/tunables.hpp"

#include <gtest/gtest.h>

namespace canele::run {
namespace {

using Environment = std::vector<std::string>;

TEST(Tunables, AreAddedToThoseThatAreThere) {
  EXPECT_EQ(without_restartable_sequences(""), "glibc.pthread.rseq=0");
  EXPECT_EQ(without_restartable_sequences("glibc.malloc.check=3"), "glibc.malloc.check=3:glibc.pthread.rseq=0");
}

TEST(Tunables, WhatTheUserSaysHolds) {
  for (const char* said : {"glibc.pthread.rseq=1", "glibc.malloc.check=3:glibc.pthread.rseq=1", "glibc.pthread.rseq=0"})
    EXPECT_EQ(without_restartable_sequences(said), said);
}

TEST(Tunables, OnlyForRanksThatShareUnits) {
  Environment few = {"A=1"}, many = {"A=1"};
  ease_switches(few, 2, 2);
  EXPECT_EQ(few, Environment({"A=1"}));
  ease_switches(many, 3, 2);
  EXPECT_EQ(many, Environment({"A=1", "GLIBC_TUNABLES=glibc.pthread.rseq=0"}));
}

TEST(Tunables, StayInTheirPlace) {
  Environment environment = {"GLIBC_TUNABLES=glibc.malloc.check=3", "A=1"};
  ease_switches(environment, 8, 2);
  EXPECT_EQ(environment, Environment({"GLIBC_TUNABLES=glibc.malloc.check=3:glibc.pthread.rseq=0", "A=1"}));
}

}  // namespace
}  // namespace canele::run

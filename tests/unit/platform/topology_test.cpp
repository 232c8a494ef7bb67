// SPDX-License-Identifier: BSD-3-Clause
//
// Topology: agrees with the kernel about this process, binds and unbinds, and reports what is wrong.
//
// Binds threads of its own; restores the main thread's place. It runs on any machine, so expectations come from
// sched_getaffinity, not from constants.
#include "ltask/topology.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

#include "ltask/platform.hpp"

namespace canele::ltask {
namespace {

std::vector<int> kernel_mask(long thread) {
  cpu_set_t set;
  EXPECT_EQ(sched_getaffinity(static_cast<pid_t>(thread), sizeof set, &set), 0);
  std::vector<int> cpus;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) cpus.push_back(i);
  }
  return cpus;
}

TEST(Topology, AgreesWithTheKernel) {
  const Topology topology;
  ASSERT_EQ(topology.problem(), "");
  EXPECT_GE(topology.units(), 1);
  EXPECT_EQ(topology.allowed_units(), static_cast<int>(kernel_mask(0).size()));
  EXPECT_NE(topology.describe().find("PU"), std::string::npos);
  EXPECT_EQ(topology.place_of(getpid()), topology.allowed_text());
}

TEST(Topology, EveryLogicalIndexNamesOneUnit) {
  const Topology topology;
  for (int i = 0; i < topology.units(); ++i) {
    const auto os = topology.os_index(UnitIndex::logical, i);
    ASSERT_TRUE(os.has_value()) << i;
    EXPECT_EQ(topology.os_index(UnitIndex::os, *os), os);
  }
  EXPECT_FALSE(topology.os_index(UnitIndex::logical, topology.units()).has_value());
  EXPECT_FALSE(topology.os_index(UnitIndex::logical, -1).has_value());
}

TEST(Topology, BindsTheCallerAndPutsItBack) {
  const Topology topology;
  const auto allowed = kernel_mask(getpid());
  std::vector<int> bound, freed;
  std::string why_bound, why_freed, place;
  posix_platform().start_thread("bound", [&] {
    const int last[] = {allowed.back()};
    why_bound = topology.bind(0, UnitIndex::os, last);
    bound = kernel_mask(0);
    place = topology.place_of(0);
    why_freed = topology.bind(0, UnitIndex::os, {});
    freed = kernel_mask(0);
  });
  EXPECT_EQ(why_bound, "");
  EXPECT_EQ(bound, std::vector<int>{allowed.back()});
  EXPECT_EQ(place, std::to_string(allowed.back()));
  EXPECT_EQ(why_freed, "");
  EXPECT_EQ(freed, allowed);
}

TEST(Topology, BindsAnotherThreadByItsId) {
  const Topology topology;
  const auto allowed = kernel_mask(getpid());
  std::atomic<std::uint32_t> stop{0};
  auto thread = posix_platform().start_thread("other", [&] {
    while (stop.load() == 0) posix_platform().park(stop, 0, ~std::uint64_t{0});
  });
  ASSERT_NE(thread, nullptr);
  const int first[] = {allowed.front()};
  EXPECT_EQ(topology.bind(thread->native_id(), UnitIndex::os, first), "");
  EXPECT_EQ(kernel_mask(thread->native_id()), std::vector<int>{allowed.front()});
  EXPECT_EQ(kernel_mask(0), allowed);
  stop.store(1);
  posix_platform().unpark(stop);
}

TEST(Topology, AWrongIndexIsNamedAndChangesNothing) {
  const Topology topology;
  const auto before = kernel_mask(0);
  const int wrong[] = {0, 4095};
  const std::string why = topology.bind(0, UnitIndex::logical, wrong);
  EXPECT_NE(why.find("no PU with logical index 4095"), std::string::npos) << why;
  EXPECT_NE(why.find("this process sees"), std::string::npos) << why;
  EXPECT_EQ(kernel_mask(0), before);
  const int negative[] = {-1};
  EXPECT_NE(topology.bind(0, UnitIndex::os, negative).find("OS index -1"), std::string::npos);
}

TEST(Topology, AThreadThatIsGoneIsAnError) {
  const Topology topology;
  auto thread = posix_platform().start_thread("gone", [] {});
  const long id = thread->native_id();
  thread.reset();
  const int first[] = {kernel_mask(0).front()};
  EXPECT_NE(topology.bind(id, UnitIndex::os, first).find("No such process"), std::string::npos);
  EXPECT_EQ(topology.place_of(id), "");
}

}  // namespace
}  // namespace canele::ltask

// SPDX-License-Identifier: BSD-3-Clause
//
// Tests of the removal of what killed processes leave in /dev/shm. One thread.
//
// The test makes the files itself, with the names that libpsm2 would give.
#include "drivers/psm2/stale_shm.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>

namespace canele::drivers::psm2 {
namespace {

std::string name_of(std::uint64_t endpoint) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016lx", static_cast<unsigned long>(endpoint));
  return shm_prefix() + digits + "0";
}
void make(const std::string& name) {
  const int fd = ::shm_open(("/" + name).c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(fd, 0);
  ::close(fd);
}
bool exists(const std::string& name) { return ::access(("/dev/shm/" + name).c_str(), F_OK) == 0; }

/// Returns the id of a process that has just ended.
pid_t dead_process() {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  ::waitpid(pid, nullptr, 0);
  return pid;
}
std::uint64_t endpoint_of(pid_t pid) { return static_cast<std::uint64_t>(pid) << 32 | memory_only_id; }

TEST(Psm2StaleShm, OnlyNamesOfThisUsersLibraryAreUnderstood) {
  std::uint64_t endpoint = 0;
  EXPECT_TRUE(parse_shm_name(name_of(0x123400000000a), &endpoint));
  EXPECT_EQ(endpoint, 0x123400000000au);
  EXPECT_TRUE(parse_shm_name(name_of(1) + "17", &endpoint));
  EXPECT_FALSE(parse_shm_name("psm2_shm.", &endpoint));
  EXPECT_FALSE(parse_shm_name("psm2_shm.99999000000000000000a0", &endpoint));
  EXPECT_FALSE(parse_shm_name(shm_prefix() + "000000000000000a", &endpoint));
  EXPECT_FALSE(parse_shm_name(shm_prefix() + "00000000000g000a0", &endpoint));
  EXPECT_FALSE(parse_shm_name(shm_prefix() + "000000000000000a0x", &endpoint));
}

TEST(Psm2StaleShm, TheDeadAreRemovedAndTheLivingStay) {
  const std::string dead = name_of(endpoint_of(dead_process())), alive = name_of(endpoint_of(::getpid()));
  make(dead);
  make(alive);
  EXPECT_EQ(remove_stale_shm(), 1);
  EXPECT_FALSE(exists(dead));
  EXPECT_TRUE(exists(alive));
  remove_own(endpoint_of(::getpid()));
  EXPECT_FALSE(exists(alive));
}

TEST(Psm2StaleShm, WithHardwareTheFileStaysWhileAProcessHasItMapped) {
  const std::string name = name_of(0x0001000200030022);  // no process id in it
  make(name);
  const int fd = ::shm_open(("/" + name).c_str(), O_RDWR, 0);
  ASSERT_EQ(::ftruncate(fd, 4096), 0);
  void* const mapped = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
  ::close(fd);
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_EQ(remove_stale_shm(), 0);
  EXPECT_TRUE(exists(name));
  ::munmap(mapped, 4096);
  EXPECT_EQ(remove_stale_shm(), 1);
  EXPECT_FALSE(exists(name));
}

}  // namespace
}  // namespace canele::drivers::psm2

// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks: processes that each run one psm2 endpoint, made by fork() from a test that has none.
//
// One thread per process. libpsm2 has one endpoint per process, so the parent never opens one. Failures in a child are
// on its stderr and in its exit code. The children die with the test.
//
//   parent ──fork──▶ rank 0 … n-1;   all share a Board: addresses, counters for barriers, flags
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "drivers/psm2/psm2.hpp"
#include "drivers/psm2/stale_shm.hpp"
#include "tests/conformance/driver_kit.hpp"

namespace canele::drivers::psm2 {

using conformance::Bytes;
using conformance::Node;
using conformance::pattern;

struct Board {
  static constexpr int most = 32;
  std::atomic<int> arrived[64];
  std::atomic<int> flags[64];
  std::atomic<std::uint64_t> numbers[64];
  std::size_t address_sizes[most];
  std::byte addresses[most][512];
};

class Ranks;

/// One rank, in its own process.
class Self {
 public:
  Self(Rank own, Rank ranks, Board& shared) : node(psm2_factory, own, ranks), rank(own), size(ranks), board(shared) {
    node.context.incarnation = static_cast<std::uint64_t>(::getpid());
  }

  void open() {
    ASSERT_EQ(node.open(), Status::ok) << node.reason;
    const auto index = static_cast<std::size_t>(rank);
    std::copy(node.address.begin(), node.address.end(), board.addresses[index]);
    board.address_sizes[index] = node.address.size();
    barrier(0);
  }
  Status connect(Rank peer) {
    const auto index = static_cast<std::size_t>(peer);
    return node.driver->connect(peer, {board.addresses[index], board.address_sizes[index]});
  }
  /// Connects the lower rank of each pair to the higher one; waits for all.
  void join() {
    for (Rank peer = rank + 1; peer < size; ++peer) ASSERT_EQ(connect(peer), Status::pending);
    await([&] { return node.up.size() == static_cast<std::size_t>(size - 1); });
    barrier(1);
  }
  /// Sleeps as an engine with nothing to do. A rank that is never woken runs into the limit of the test.
  void sleep() {
    if (node.poll() > 0 || !node.driver->arm()) return;
    pollfd bed = {node.driver->descriptor(), POLLIN, 0};
    EXPECT_EQ(::poll(&bed, 1, -1), 1);
    node.driver->disarm();
  }
  void poll() {
    if (node.poll() == 0) ::sched_yield();
  }
  /// Polls until `condition` holds. If it never does, the limit of the test ends this.
  void await(const std::function<bool()>& condition) {
    while (!condition()) {
      poll();
      // After a barrier the other ranks may leave.
      if (patient || node.failures.empty() || condition()) continue;
      ASSERT_TRUE(node.failures.empty()) << node.failures.begin()->second.second;
    }
  }
  /// Waits until all ranks come here; polls meanwhile.
  void barrier(int which) {
    ++board.arrived[which];
    await([&] { return board.arrived[which] >= size; });
  }
  void send(Rank to, const Bytes& bytes, int pieces = 1) {
    for (;;) {
      const Status status = node.send(to, bytes, pieces);
      ASSERT_NE(status, Status::failed);
      if (status != Status::full) return;
      poll();
    }
  }
  /// Sends bulk data, in as many parts as the driver wants.
  void bulk(Rank to, std::uint64_t key, std::uint64_t offset, const Bytes& bytes, std::size_t piece = ~std::size_t{0}) {
    const std::size_t most = node.driver->capabilities().max_bulk;
    for (std::size_t at = 0; at < bytes.size(); at += most) {
      const std::size_t end = std::min(bytes.size(), at + most);
      part(to, key, offset + at,
           Bytes(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.begin() + static_cast<std::ptrdiff_t>(end)),
           piece);
    }
  }
  void part(Rank to, std::uint64_t key, std::uint64_t offset, const Bytes& bytes, std::size_t piece) {
    for (;;) {
      const Status status = node.bulk(to, key, offset, bytes, piece);
      ASSERT_NE(status, Status::failed);
      if (status != Status::full) return;
      poll();
    }
  }

  Node node;
  const Rank rank, size;
  Board& board;
  bool patient = false;      ///< failures are expected
  std::size_t expected = 0;  ///< packets, for tests that count them
};

class Ranks {
 public:
  Ranks() {
    void* const memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    board = new (memory) Board();
  }
  ~Ranks() {
    for (const pid_t pid : pids) {
      if (pid > 0) ::kill(pid, SIGKILL);
    }
    for (Rank rank = 0; rank < static_cast<Rank>(pids.size()); ++rank) finish(rank);
    remove_stale_shm();
    ::munmap(board, sizeof(Board));
  }

  /// Starts `size` ranks; each opens, if `opens`, and runs `body`.
  void start(Rank size, const std::function<void(Self&)>& body, bool opens = true) {
    for (Rank rank = 0; rank < size; ++rank) {
      const pid_t pid = ::fork();
      if (pid == 0) run(rank, size, body, opens);
      pids.push_back(pid);
    }
  }
  /// Returns the exit code of a rank, or minus its signal. Call once.
  int finish(Rank rank) {
    pid_t& pid = pids[static_cast<std::size_t>(rank)];
    int status = 0;
    if (pid <= 0 || ::waitpid(std::exchange(pid, -1), &status, 0) < 0) return -1000;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  void expect_success() {
    for (Rank rank = 0; rank < static_cast<Rank>(pids.size()); ++rank) EXPECT_EQ(finish(rank), 0) << "rank " << rank;
  }
  void kill(Rank rank, int signal) { ::kill(pids[static_cast<std::size_t>(rank)], signal); }

  std::function<void(Self&)> adjust = [](Self&) {};  ///< called before open(), in the child
  Board* board;
  std::vector<pid_t> pids;

 private:
  [[noreturn]] void run(Rank rank, Rank size, const std::function<void(Self&)>& body, bool opens) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setenv("PSM2_DEVICES", "self,shm", 1);
    {
      Self self(rank, size, *board);
      adjust(self);
      if (opens) self.open();
      if (!testing::Test::HasFailure()) body(self);
    }
    ::fflush(nullptr);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
};

/// Returns the number of files of libpsm2 of this user in /dev/shm.
inline int files_in_dev_shm() {
  int count = 0;
  DIR* const directory = ::opendir("/dev/shm");
  while (const dirent* entry = directory == nullptr ? nullptr : ::readdir(directory)) {
    std::uint64_t endpoint;
    if (parse_shm_name(entry->d_name, &endpoint)) ++count;
  }
  if (directory != nullptr) ::closedir(directory);
  return count;
}

}  // namespace canele::drivers::psm2

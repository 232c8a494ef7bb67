// SPDX-License-Identifier: BSD-3-Clause
//
// Tests of the shared-memory driver with real processes: sleep and wake-up, death, nothing left behind.
//
// One thread per process: no test here starts a thread, so fork() is safe. A child reports by its exit code; its
// failures are on its stderr. The parent kills it in any case.
#include <dirent.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <functional>
#include <random>
#include <set>

#include "conformance/driver_kit.hpp"
#include "drivers/net/socket.hpp"
#include "drivers/shm/fd_exchange.hpp"
#include "drivers/shm/shm.hpp"
#include "tests/slowness.hpp"

namespace canele::drivers {
namespace {

using conformance::Bytes;
using conformance::Node;
using conformance::pattern;

constexpr int patience_ms = 30000;  ///< a limit: what takes longer has been lost

/// Rank 0 here, rank 1 in a child; they exchange addresses over a socket pair.
class TwoProcesses {
 public:
  std::function<void(Node&)> adjust = [](Node&) {};

  /// Starts `body` as rank 1; returns rank 0, open. Rank 0 connects.
  Node& start(const std::function<void(Node&)>& body) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    pid_ = ::fork();
    const bool child = pid_ == 0;
    net::UniqueFd own(ends[child ? 1 : 0]), other(ends[child ? 0 : 1]);
    other.reset();
    node_ = std::make_unique<Node>(shm_factory, child ? 1 : 0, 2);
    // Children of one parent would otherwise draw the same names.
    if (child) node_->context.incarnation = static_cast<std::uint64_t>(::getpid());
    adjust(*node_);
    EXPECT_EQ(node_->open(), Status::ok) << node_->reason;
    std::byte buffer[512];
    EXPECT_GT(::send(own.get(), node_->address.data(), node_->address.size(), MSG_NOSIGNAL), 0);
    const ssize_t size = ::recv(own.get(), buffer, sizeof buffer, 0);
    EXPECT_GT(size, 0);
    peer_address.assign(buffer, buffer + std::max<ssize_t>(size, 0));
    if (!child) node_->driver->connect(1, peer_address);
    while (node_->up.empty() && node_->failures.empty()) node_->poll();
    EXPECT_TRUE(node_->failures.empty());
    if (child) {
      body(*node_);
      node_->close();
      ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    return *node_;
  }
  void kill() { ::kill(pid_, SIGKILL); }
  /// Returns the child's exit code, or minus its signal.
  int finish() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  ~TwoProcesses() {
    if (pid_ <= 0) return;
    kill();
    finish();
  }
  pid_t pid() const { return pid_; }
  Address peer_address;

 private:
  pid_t pid_ = -1;
  std::unique_ptr<Node> node_;
};

/// Sleeps until an event. Returns false if none came, so a wake-up was lost.
bool sleep_once(Node& node) {
  if (!node.driver->arm()) return true;
  pollfd look{node.driver->descriptor(), POLLIN, 0};
  const int found = ::poll(&look, 1, patience_ms);
  node.driver->disarm();
  return found == 1;
}

void ring(Node& node, Rank peer) {
  if (node.driver->wants_wake(peer)) node.driver->wake(peer);
}

void send_and_ring(Node& node, Rank peer, std::uint64_t number, std::size_t size) {
  const Bytes bytes = pattern(size, number);
  while (node.send(peer, bytes) == Status::full) node.poll();
  ring(node, peer);
}

/// Polls, and sleeps when there is no event, until a packet comes or the peer has failed. Returns false if a wake-up
/// was lost.
bool await_packet(Node& node) {
  while (node.packets.empty() && node.failures.empty()) {
    if (node.poll() == 0 && !sleep_once(node)) return false;
  }
  return true;
}

bool await_failure(Node& node) {
  while (node.failures.empty()) {
    if (node.poll() == 0 && !sleep_once(node)) return false;
  }
  return true;
}

void pause(std::uint64_t steps) {
  for (; steps > 0; --steps) std::atomic_signal_fence(std::memory_order_seq_cst);
}

void send_number(Node& node, Rank peer, int number) {
  while (node.driver->send_inline(peer, &number, sizeof number, nullptr, 0) == Status::full) node.poll();
  ring(node, peer);
}

/// The sender never sleeps, the receiver goes to sleep after each message. Both pause for random times, so that the
/// next message meets every step of going to sleep. (Without the second check in arm() this fails; shm_ring_test.cpp
/// has a model for the fence.)
void send_to_sleeper(Node& node, int cycles) {
  std::mt19937_64 random(1);
  for (int i = 0; i < cycles; ++i) {
    pause(random() % 1000);
    send_number(node, 1, i);
    for (int polls = 0; node.packets.empty() && node.failures.empty(); ++polls) {
      node.poll();
      if (polls > 2000) ::sched_yield();  // this process may hold the core that the receiver needs
    }
    ASSERT_TRUE(node.failures.empty()) << node.failures[1].second;
    node.packets.pop_front();
  }
}

void receive_with_sleeps(Node& node, int cycles) {
  std::mt19937_64 random(2);
  for (int i = 0; i < cycles; ++i) {
    ASSERT_TRUE(await_packet(node)) << "a wake-up was lost in cycle " << i;
    ASSERT_TRUE(node.failures.empty());
    node.packets.pop_front();
    send_number(node, 0, i);
    pause(random() % 1000);
  }
}

class ShmSleep : public testing::TestWithParam<const char*> {};

TEST_P(ShmSleep, NoWakeUpIsLost) {
  const int cycles = (std::string(GetParam()) == "auto" ? 100000 : 50000) / test::slowness;
  TwoProcesses two;
  two.adjust = [](Node& node) { node.context.settings["EXPERT_SHM_MEMBARRIER"] = GetParam(); };
  Node& node = two.start([&](Node& child) {
    receive_with_sleeps(child, cycles);
    // Stays until the other rank has the last message and leaves.
    ASSERT_TRUE(await_failure(child));
  });
  send_to_sleeper(node, cycles);
  node.close();
  EXPECT_EQ(two.finish(), 0);
}
INSTANTIATE_TEST_SUITE_P(Fences, ShmSleep, testing::Values("auto", "off"));

TEST(ShmProcess, ManyPacketsOfAllSizesWithSleepsOnBothSides) {
  constexpr std::uint64_t count = 30000;
  const auto size_of = [](std::uint64_t i) { return i % 5 == 0 ? 1 + i * 977 % 16384 : 1 + i * 31 % 100; };
  TwoProcesses two;
  Node& node = two.start([&](Node& child) {
    std::uint64_t received = 0;
    while (received < count && child.failures.empty()) {
      ASSERT_TRUE(await_packet(child));
      for (; !child.packets.empty(); child.packets.pop_front(), ++received) {
        ASSERT_TRUE(child.packets.front().bytes == pattern(size_of(received), received)) << received;
      }
    }
    EXPECT_EQ(received, count);
    send_and_ring(child, 0, 1, 8);
    ASSERT_TRUE(await_failure(child));
  });
  for (std::uint64_t i = 0; i < count; ++i) {
    const Bytes bytes = pattern(size_of(i), i);
    while (node.send(1, bytes) == Status::full) {
      ring(node, 1);
      ASSERT_TRUE(sleep_once(node)) << "no room was told";
      node.poll();
      ASSERT_TRUE(node.failures.empty()) << node.failures[1].second;
    }
    ring(node, 1);
  }
  ASSERT_TRUE(await_packet(node));
  node.close();
  EXPECT_EQ(two.finish(), 0);
}

TEST(ShmProcess, PullsFromAnotherProcess) {
  Bytes source = pattern(1 << 20, 3);
  TwoProcesses two;
  Node& node = two.start([](Node& child) {
    if (!child.driver->capabilities().get) return;
    while (child.packets.empty()) child.poll();
    const Bytes rkey = child.packets.front().bytes;
    Bytes target(1 << 20);
    for (std::size_t at = 0; at < target.size(); at += 1 << 18) {
      const iovec to{target.data() + at, 1 << 18};
      ASSERT_EQ(child.driver->rma(0, drivers::RmaOp::get, rkey, at, &to, 1, 1 << 18, nullptr), Status::ok);
    }
    EXPECT_TRUE(target == pattern(1 << 20, 3));
  });
  if (node.driver->capabilities().get) {
    MemoryKey rkey;
    const iovec piece{source.data(), source.size()};
    ASSERT_EQ(node.driver->register_memory(1, drivers::RmaOp::get, &piece, 1, &rkey), Status::ok);
    ASSERT_EQ(node.send(1, Bytes(rkey.bytes, rkey.bytes + rkey.size)), Status::ok);
  }
  EXPECT_EQ(two.finish(), 0);
}

std::set<std::string> names_in_dev_shm() {
  std::set<std::string> names;
  DIR* directory = ::opendir("/dev/shm");
  while (const dirent* entry = directory == nullptr ? nullptr : ::readdir(directory)) names.insert(entry->d_name);
  if (directory != nullptr) ::closedir(directory);
  return names;
}

bool has_socket(const Address& address) {
  shm::AddressForm form;
  EXPECT_TRUE(shm::unpack_address(address, &form));
  std::string name = "@canele-";
  for (const std::byte b : form.name) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", std::to_integer<unsigned>(b));
    name += digits;
  }
  std::ifstream sockets("/proc/net/unix");
  const std::string all((std::istreambuf_iterator<char>(sockets)), std::istreambuf_iterator<char>());
  return all.find(name) != std::string::npos;
}

// The peer dies while it sleeps and we sleep; everything that it had sent arrives first.
TEST(ShmProcess, AKilledPeerIsNamedAndLeavesNothing) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  TwoProcesses two;
  Node& node = two.start([&](Node& child) {
    for (std::uint64_t i = 0; i < 40; ++i) send_and_ring(child, 0, i, 1 + i * 20);
    ASSERT_EQ(::write(ends[1], "x", 1), 1);
    for (;;) {
      if (!child.driver->arm()) {
        child.poll();
        continue;
      }
      pollfd look{child.driver->descriptor(), POLLIN, 0};
      ::poll(&look, 1, -1);
      child.driver->disarm();
    }
  });
  char byte;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  ::close(ends[0]), ::close(ends[1]);
  EXPECT_TRUE(has_socket(two.peer_address));
  const std::string pid = std::to_string(two.pid());
  two.kill();
  EXPECT_EQ(two.finish(), -SIGKILL);
  ASSERT_TRUE(await_failure(node)) << "its death was not noticed";
  ASSERT_EQ(node.failures.count(1), 1u);
  EXPECT_TRUE(node.failures[1].first);
  EXPECT_EQ(node.failures[1].second, "rank 1 (pid " + pid + ") died or left");
  std::size_t in_order = 0;
  for (; in_order < node.packets.size(); ++in_order) {
    ASSERT_TRUE(node.packets[in_order].bytes == pattern(1 + in_order * 20, in_order));
  }
  EXPECT_EQ(in_order, 40u);
  EXPECT_EQ(node.send(1, pattern(8, 1)), Status::failed);
  EXPECT_FALSE(has_socket(two.peer_address));
  node.driver->wake(1);  // another thread may still be about to
  std::byte target[8];
  const iovec to{target, 8};
  if (node.driver->capabilities().get) {
    MemoryKey rkey;
    ASSERT_TRUE(shm::write_rkey(&to, 1, &rkey));
    EXPECT_EQ(node.driver->rma(1, drivers::RmaOp::get, {rkey.bytes, rkey.size}, 0, &to, 1, 8, nullptr), Status::failed);
  }
}

TEST(ShmProcess, NothingHasANameInDevShm) {
  const std::set<std::string> before = names_in_dev_shm();
  TwoProcesses two;
  two.start([](Node& child) {
    while (child.failures.empty()) child.poll();
  });
  for (const std::string& name : names_in_dev_shm()) {
    EXPECT_TRUE(before.count(name) == 1 || name.find("canele") == std::string::npos) << name;
  }
  two.kill();
  EXPECT_EQ(two.finish(), -SIGKILL);
}

TEST(ShmProcess, LeavingDeliversEverythingFirst) {
  TwoProcesses two;
  Node& node = two.start([](Node& child) {
    for (std::uint64_t i = 0; i < 60; ++i) send_and_ring(child, 0, i, 1 + i * 20);
  });
  EXPECT_EQ(two.finish(), 0);
  for (int i = 0; i < 1000000 && node.failures.empty(); ++i) node.poll(3);
  EXPECT_EQ(node.failures.count(1), 1u);
  ASSERT_EQ(node.packets.size(), 60u);
  EXPECT_TRUE(node.packets[59].bytes == pattern(1 + 59 * 20, 59));
}

// The child forks, its own child keeps all descriptors open: only the process id tells that it died.
TEST(ShmProcess, DeathIsSeenThoughAGrandchildHoldsTheSocket) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  TwoProcesses two;
  Node& node = two.start([&](Node& child) {
    if (!child.driver->capabilities().get) return;
    if (::fork() == 0) {
      // Lives until the parent of all closes its end.
      ::close(ends[1]);
      char byte;
      [[maybe_unused]] const ssize_t got = ::read(ends[0], &byte, 1);
      ::_exit(0);
    }
    ::raise(SIGKILL);
  });
  ::close(ends[0]);
  two.finish();
  ASSERT_TRUE(await_failure(node)) << "its death was not noticed";
  EXPECT_EQ(node.failures.count(1), 1u);
  ::close(ends[1]);
}

}  // namespace
}  // namespace canele::drivers

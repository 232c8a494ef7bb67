// SPDX-License-Identifier: BSD-3-Clause
//
// Tests of tcp and shm under a flood of connections that do not know the secret: what they may cost, by count.
//
// One thread. The drivers' clock is the test's, so a "second" of flood is a second for the driver however long it
// takes.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <deque>
#include <string>

#include "drivers/net/accept_limiter.hpp"
#include "drivers/shm/fd_exchange.hpp"
#include "drivers/shm/shm.hpp"
#include "tests/unit/drivers/tcp_fixture.hpp"

namespace canele::drivers {
namespace {

using conformance::KitContext;
using conformance::Node;
using conformance::pattern;
using conformance::World;

net::UniqueFd call_tcp(const Node& node) {
  tcp::PeerAddress where;
  EXPECT_TRUE(tcp::unpack_address(node.address, &where));
  return net::start_connect(tcp::candidates(where, net::host_id()).at(0));
}

net::UniqueFd call_shm(const Node& node) {
  shm::AddressForm form;
  EXPECT_TRUE(shm::unpack_address(node.address, &form));
  return shm::connect_to(form.name);
}

struct Subject {
  const char* name;
  const DriverFactory* factory;
  net::UniqueFd (*call)(const Node&);
};

/// Unauthenticated connections to one node, each with a Hello that any process can send.
class Flood {
 public:
  Flood(const Subject& subject, const Node& victim) : subject_(subject), victim_(victim) {}

  void come(int count) {
    KitContext context(1, 3);
    const net::Party party(context, subject_.name);
    for (int i = 0; i < count; ++i) {
      net::UniqueFd fd = subject_.call(victim_);
      if (!fd) continue;  // the queue is full
      net::Handshake::initiator(party, context, 0, 0, {}).step(fd.get());
      open_.push_back(std::move(fd));
      if (open_.size() > 300) open_.pop_front();
    }
  }
  /// Returns how many have been answered since the last call.
  int answered() {
    int count = 0;
    for (const auto& fd : open_) {
      std::byte hello[net::Handshake::hello_size];
      count += ::recv(fd.get(), hello, sizeof hello, MSG_DONTWAIT) == static_cast<ssize_t>(sizeof hello) ? 1 : 0;
    }
    return count;
  }

 private:
  const Subject& subject_;
  const Node& victim_;
  std::deque<net::UniqueFd> open_;
};

class Unauthenticated : public testing::TestWithParam<Subject> {
 protected:
  static bool shows(const Node& node) {
    pollfd one = {node.driver->descriptor(), POLLIN, 0};
    return ::poll(&one, 1, 0) == 1;
  }
  /// Lets half a millisecond pass for rank 0, which polls often meanwhile.
  void pass_time() {
    for (int i = 0; i < 50; ++i) {
      a.context.clock_ns += 10'000;
      a.poll();
    }
  }

  World world{*GetParam().factory, 3};
  Node& a = world[0];
};

TEST_P(Unauthenticated, CostABoundedNumberOfAnswersWhileARankIsMissing) {
  world.open();
  world.join(0, 1);
  Flood flood(GetParam(), a);
  int answers = 0;
  constexpr int milliseconds = 200, each = 20;
  for (int ms = 0; ms < milliseconds; ++ms) {
    flood.come(each);
    ASSERT_EQ(world[1].send(0, pattern(8, static_cast<std::uint64_t>(ms))), Status::ok);
    pass_time();
    ASSERT_EQ(a.packets.size(), static_cast<std::size_t>(ms) + 1) << "unauthenticated peers do not hold up a rank";
    pass_time();
    answers += flood.answered();
  }
  // An unauthenticated connection is accepted and read: two actions.
  EXPECT_LE(answers, net::AcceptLimiter::per_ms * milliseconds / 2 + net::AcceptLimiter::most_saved);
  EXPECT_GE(answers, 20) << "but rank 2 could be among them";
  EXPECT_TRUE(a.failures.empty());
  EXPECT_LE(a.context.logged.size(), 4u) << "a line for each reason, not for each connection";
}

TEST_P(Unauthenticated, DoNotKeepALateRankOut) {
  world.open();
  world.join(0, 1);
  Flood flood(GetParam(), a);
  for (int ms = 0; ms < 50; ++ms) {
    flood.come(5);
    pass_time();
    pass_time();
  }
  ASSERT_EQ(world.connect(2, 0), Status::pending);
  int ms = 0;
  for (; ms < 2000 && (a.up.count(2) == 0 || world[2].up.count(0) == 0); ++ms) {
    flood.come(5);
    pass_time();
    world[2].poll();
    pass_time();
    world[2].context.clock_ns += 1'000'000;
    world[2].poll();
  }
  EXPECT_LT(ms, 2000) << "5,000 connections a second";
  EXPECT_TRUE(world[2].failures.empty());
}

TEST_P(Unauthenticated, AreLeftToTheKernelOnceAllAreUp) {
  world.open();
  world.join(0, 1);
  world.join(0, 2);
  for (int i = 0; i < 20; ++i) pass_time();
  Flood flood(GetParam(), a);
  flood.come(50);
  for (int i = 0; i < 20; ++i) pass_time();
  EXPECT_EQ(flood.answered(), 0);
  ASSERT_TRUE(a.driver->arm());
  EXPECT_FALSE(shows(a)) << "nor do they wake it";
  a.driver->disarm();
  world.nodes[2].reset();
  ASSERT_TRUE(world.until([&] { return a.failures.count(2) == 1; }));
  for (int i = 0; i < 20; ++i) {
    flood.come(1);
    pass_time();
  }
  EXPECT_GT(flood.answered(), 0) << "a rank is missing again: a peer that comes for it is told why not";
}

TEST_P(Unauthenticated, AFloodWakesASleeperSeldom) {
  world.open();
  world.join(0, 1);
  Flood flood(GetParam(), a);
  int sleeps = 0;
  for (int round = 0; round < 20; ++round) {
    flood.come(20);
    pass_time();
    if (!a.driver->arm()) continue;
    sleeps += shows(a) ? 0 : 1;
    a.driver->disarm();
  }
  EXPECT_GE(sleeps, 5) << "while the limiter rests a sleep is one";
}

TEST_P(Unauthenticated, DoNotTakeTheDescriptorsOfRanks) {
  world.open();
  Flood flood(GetParam(), a);
  for (int round = 0; round < 40; ++round) {
    flood.come(4);
    pass_time();
  }
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  // All descriptors are used, except those of unauthenticated connections.
  std::vector<net::UniqueFd> taken;
  rlimit tight = before;
  tight.rlim_cur = 600;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) taken.emplace_back(fd);
  ASSERT_EQ(world.connect(0, 1), Status::pending);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  taken.clear();
  ASSERT_TRUE(world.until([&] {
    for (auto& node : world.nodes) node->context.clock_ns += 10'000;
    return a.up.count(1) == 1 && world[1].up.count(0) == 1;
  })) << a.failures[1].second;
  EXPECT_TRUE(a.failures.empty());
}

INSTANTIATE_TEST_SUITE_P(Of, Unauthenticated,
                         testing::Values(Subject{"tcp", &tcp_factory, call_tcp},
                                         Subject{"shm", &shm_factory, call_shm}),
                         [](const auto& subject) { return std::string(subject.param.name); });

}  // namespace
}  // namespace canele::drivers

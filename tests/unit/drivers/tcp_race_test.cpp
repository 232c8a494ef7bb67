// SPDX-License-Identifier: BSD-3-Clause
//
// Tests of the race between the addresses of a peer: addresses that lead nowhere, to other programs, or to a peer that
// is busy. The listeners are real; the clock is the test's. One thread. See tcp_fixture.hpp.
#include <sys/socket.h>

#include <string>
#include <utility>
#include <vector>

#include "drivers/tcp/race.hpp"
#include "tests/unit/drivers/tcp_fixture.hpp"

namespace canele::drivers::tcp {
namespace {

/// A listener that the test plays: it is silent until the test acts.
class Listener {
 public:
  Listener() : fd_(net::listen_on(net::Endpoint::loopback(false, 0))) { EXPECT_TRUE(fd_); }
  net::Endpoint where() const { return net::local_endpoint(fd_.get()); }
  /// Accepts the next connection, which must be there or on its way.
  net::UniqueFd accept() {
    net::UniqueFd made;
    for (int i = 0; i < 1'000'000 && !made; ++i) made = net::accept_one(fd_.get());
    EXPECT_TRUE(made);
    return made;
  }

 private:
  net::UniqueFd fd_;
};

class TcpRace : public Tcp {
 protected:
  void SetUp() override {
    world.open();
    ASSERT_TRUE(unpack_address(b.address, &peer));
    self = net::Party(a.context, "tcp");
  }
  /// Returns the address of rank 1, which proves what it is.
  net::Endpoint right() const { return candidates(peer, net::host_id()).at(0); }

  Race make(std::vector<net::Endpoint> addresses, bool same_host = false) {
    return Race(1, peer.incarnation, std::move(addresses), same_host);
  }
  Race::State step(Race& race) {
    const auto dial = [](const net::Endpoint& to) { return net::start_connect(to); };
    return race.step(self, a.context, dial);
  }
  /// Steps the race and rank 1 until the race has ended, without moving the clock. Returns the last state.
  Race::State run(Race& race, int steps = 10'000) {
    Race::State state = Race::State::running;
    for (int i = 0; i < steps && state == Race::State::running; ++i) {
      state = step(race);
      b.context.clock_ns += 1'000'000;  // lets its limiter rest
      b.poll();
    }
    return state;
  }
  /// Steps the race alone until it has begun `count` attempts.
  void step_until_begun(Race& race, int count) {
    for (int i = 0; i < 10'000 && race.begun() < count; ++i) ASSERT_EQ(step(race), Race::State::running);
    ASSERT_EQ(race.begun(), count);
  }
  void pass(std::uint64_t ns) { a.context.clock_ns += ns; }

  PeerAddress peer;
  net::Party self;
};

TEST_F(TcpRace, TheRightAddressWins) {
  Race race = make({right()});
  EXPECT_EQ(run(race), Race::State::won);
  const Race::Winner winner = race.take();
  EXPECT_TRUE(net::remote_endpoint(winner.fd.get()).same_address(right()));
  EXPECT_EQ(winner.incarnation, peer.incarnation);
  EXPECT_EQ(race.begun(), 1);
  EXPECT_TRUE(race.problem().empty());
}

TEST_F(TcpRace, AListenerThatSaysNothingIsPassedAfterAWhile) {
  Listener silent;
  Race race = make({silent.where(), right()});
  EXPECT_EQ(run(race, 100), Race::State::running);
  EXPECT_EQ(race.begun(), 1);
  EXPECT_TRUE(race.has_waiting());
  pass(Race::hello_patience_ns);
  EXPECT_TRUE(race.is_due(a.context.clock_ns));
  EXPECT_EQ(run(race), Race::State::won);
  EXPECT_EQ(race.begun(), 2);
}

TEST_F(TcpRace, AnAddressThatSwallowsPacketsIsPassedSooner) {
  const net::UniqueFd full(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto anywhere = net::Endpoint::loopback(false, 0);
  ASSERT_EQ(::bind(full.get(), anywhere.address(), anywhere.size()), 0);
  ASSERT_EQ(::listen(full.get(), 0), 0);
  std::vector<net::UniqueFd> queue;  // it is full, and the kernel ignores further attempts
  for (int i = 0; i < 3; ++i) queue.push_back(net::start_connect(net::local_endpoint(full.get())));
  Race race = make({net::local_endpoint(full.get()), right()});
  EXPECT_EQ(run(race, 100), Race::State::running);
  EXPECT_EQ(race.begun(), 1);
  pass(Race::dial_patience_ns);
  EXPECT_EQ(run(race), Race::State::won);
}

TEST_F(TcpRace, AnAddressWithoutListenerIsPassedAtOnce) {
  Race race = make({net::Endpoint::loopback(false, 1), right()});
  EXPECT_EQ(run(race), Race::State::won);
  EXPECT_NE(race.problem().find("127.0.0.1:1: Connection refused"), std::string::npos) << race.problem();
}

TEST_F(TcpRace, AnotherProgramIsPassedAtOnce) {
  Listener web;
  Race race = make({web.where(), right()});
  step_until_begun(race, 1);
  const net::UniqueFd client = web.accept();
  const std::string answer = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
  ASSERT_EQ(::send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL), static_cast<ssize_t>(answer.size()));
  EXPECT_EQ(run(race), Race::State::won);
  EXPECT_NE(race.problem().find("not those of a Canelé connection"), std::string::npos) << race.problem();
}

TEST_F(TcpRace, AnotherRankAtTheAddressIsPassedAtOnce) {
  World other(tcp_factory, 3);
  other.open();
  PeerAddress wrong;
  ASSERT_TRUE(unpack_address(other[2].address, &wrong));
  Race race = make({candidates(wrong, net::host_id()).at(0), right()});
  Race::State state = Race::State::running;
  for (int i = 0; i < 10'000 && state == Race::State::running; ++i) {
    state = step(race);
    other[2].context.clock_ns += 1'000'000;
    other[2].poll();
    b.poll();
  }
  EXPECT_EQ(state, Race::State::won);
  EXPECT_EQ(race.begun(), 2);
}

TEST_F(TcpRace, AListenerThatClosesAtOnceIsTriedAgainBehindTheOthers) {
  Listener busy;
  Race race = make({busy.where(), right()});
  step_until_begun(race, 1);
  busy.accept().reset();
  EXPECT_EQ(run(race), Race::State::won);
  EXPECT_LE(race.begun(), 3);
}

TEST_F(TcpRace, ALoneAddressIsTriedAgainUntilItsRetriesAreUsedUp) {
  Listener busy;
  Race race = make({busy.where()});
  Race::State state = Race::State::running;
  for (int ends = 0; ends <= Race::max_retries; ++ends) {
    ASSERT_EQ(step(race), Race::State::running) << ends;
    busy.accept().reset();
    for (int i = 0; i < 100'000 && state == Race::State::running && race.begun() == ends + 1; ++i) state = step(race);
  }
  EXPECT_EQ(state, Race::State::lost);
  EXPECT_EQ(race.begun(), Race::max_retries + 1);
}

TEST_F(TcpRace, WithoutAnAddressThatAnswersTheRaceIsLostWithAReason) {
  Race race = make({net::Endpoint::loopback(false, 1), net::Endpoint::loopback(false, 2)});
  EXPECT_EQ(run(race), Race::State::lost);
  EXPECT_TRUE(race.refused());
  EXPECT_NE(race.problem().find("Connection refused"), std::string::npos) << race.problem();
}

/// While the peer may accept one connection, it gets no second identity: it would have to choose.
TEST_F(TcpRace, TheIdentityIsToldToOneAddressAtATime) {
  Listener slow;
  Race race = make({slow.where(), right()});
  step_until_begun(race, 1);
  const net::UniqueFd client = slow.accept();
  for (int i = 0; i < 100; ++i) ASSERT_EQ(step(race), Race::State::running);
  pass(Race::hello_patience_ns);
  step_until_begun(race, 2);
  EXPECT_FALSE(race.is_told());
  auto acceptor = net::Handshake::acceptor(self, b.context);
  for (int i = 0; i < 10'000 && !race.is_told(); ++i) {
    acceptor.step(client.get());  // answers with its Hello
    ASSERT_EQ(step(race), Race::State::running);
  }
  ASSERT_TRUE(race.is_told());
  EXPECT_EQ(run(race, 100), Race::State::running);
  EXPECT_EQ(b.up.count(0), 0u) << "the right address has got the identity, too";
  pass(Race::told_patience_ns);
  EXPECT_EQ(run(race), Race::State::won);
  EXPECT_EQ(b.up.count(0), 1u);
}

TEST_F(TcpRace, AFewAttemptsAreOpenAtATimeAndSilentOnesGiveWay) {
  std::vector<Listener> silent(6);
  std::vector<net::Endpoint> addresses;
  for (const Listener& one : silent) addresses.push_back(one.where());
  addresses.push_back(right());
  Race race = make(addresses);
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 100; ++k) ASSERT_EQ(step(race), Race::State::running);
    pass(Race::hello_patience_ns - 10'000'000 * static_cast<std::uint64_t>(i == 3));
  }
  EXPECT_EQ(race.begun(), 4);
  EXPECT_EQ(race.open(), Race::most_open);
  for (int i = 0; i < 100 && race.begun() < 7; ++i) {
    pass(Race::dial_patience_ns);
    for (int k = 0; k < 100; ++k) ASSERT_EQ(step(race), Race::State::running);
    EXPECT_LE(race.open(), Race::most_open);
  }
  EXPECT_EQ(race.begun(), 7);
  EXPECT_EQ(run(race), Race::State::won) << race.problem();
}

/// All addresses are those of one peer, which computes: none is ever given up.
TEST_F(TcpRace, APeerThatComputesIsWaitedFor) {
  Race race = make(std::vector<net::Endpoint>(6, right()));
  for (int i = 0; i < 1000; ++i) {
    pass(60'000'000'000);
    ASSERT_EQ(step(race), Race::State::running) << race.problem();
  }
  EXPECT_EQ(run(race), Race::State::won) << race.problem();
}

TEST_F(TcpRace, WithinAHostTheAddressesAreTriedOneAfterTheOther) {
  Listener silent;
  Race race = make({silent.where(), right()}, true);
  for (int i = 0; i < 100; ++i) {
    pass(3'600'000'000'000);
    ASSERT_EQ(step(race), Race::State::running);
  }
  EXPECT_EQ(race.begun(), 1) << "the peer of this host computes";
  EXPECT_FALSE(race.has_waiting());
}

/// Rank 0 waits for an address that leads nowhere, and rank 1 reaches rank 0 meanwhile.
TEST_F(TcpRace, TheLowerRankTakesAConnectionWhileItsOwnAttemptsAreSilent) {
  Listener silent;
  PeerAddress elsewhere = peer;
  elsewhere.endpoints = {silent.where()};
  ASSERT_EQ(a.driver->connect(1, pack_address(elsewhere)), Status::pending);
  for (int i = 0; i < 100; ++i) a.poll();
  EXPECT_TRUE(a.up.empty());
  ASSERT_EQ(world.connect(1, 0), Status::pending);
  EXPECT_TRUE(world.until([&] { return a.up.count(1) == 1 && b.up.count(0) == 1; }));
  EXPECT_TRUE(a.failures.empty() && b.failures.empty());
}

}  // namespace
}  // namespace canele::drivers::tcp

// SPDX-License-Identifier: BSD-3-Clause
//
// Tests of the connection handshake: byte by byte, every wrong party, garbage at every byte, the bounds of pending
// connections.
//
// One thread. Most cases need no socket: the two state machines are fed by hand.
#include "drivers/net/handshake.hpp"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "drivers/net/accept_limiter.hpp"
#include "drivers/net/pending_connections.hpp"
#include "drivers/net/siphash.hpp"
#include "tests/conformance/driver_kit.hpp"

namespace canele::drivers::net {
namespace {

using State = Handshake::State;
using conformance::KitContext;

std::vector<std::byte> bytes_of(std::string_view text) {
  std::vector<std::byte> made(text.size());
  std::memcpy(made.data(), text.data(), text.size());
  return made;
}

struct Pair {
  KitContext low{0, 2}, high{1, 2};
  Party a{low, "tcp"}, b{high, "tcp"};
  std::vector<std::byte> hello_low = bytes_of("from the initiator"), hello_high = bytes_of("from the acceptor");
  Handshake initiator() { return Handshake::initiator(a, low, 1, 0, hello_low); }
  Handshake acceptor() { return Handshake::acceptor(b, high); }
};

/// Moves up to `most` bytes from one machine to the other. Returns false if there was nothing to move.
bool move_bytes(Handshake& from, Handshake& to, std::size_t most) {
  const auto out = from.output();
  const std::size_t n = std::min({out.size(), to.wanted(), most});
  if (n == 0) return false;
  const std::vector<std::byte> copy(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n));
  from.sent(n);
  to.feed(copy);
  return true;
}

void run(Handshake& a, Handshake& b, std::size_t most, std::span<const std::byte> answer = {}) {
  for (bool moved = true; moved;) {
    moved = move_bytes(a, b, most);
    moved = move_bytes(b, a, most) || moved;
    if (b.state() == State::identified) b.accept(answer);
  }
}

TEST(SipHash, VectorsOfThePaper) {
  std::array<std::byte, 16> key;
  std::array<std::byte, 64> text;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::byte>(i);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::byte>(i);
  EXPECT_EQ(siphash24(key, std::span(text).first(15)), 0xa129ca6149be45e5u);
  EXPECT_EQ(siphash24(key, std::span(text).first(0)), 0x726fdb47dd0e0e31u);
  EXPECT_EQ(siphash24(key, std::span(text).first(8)), 0x93f5f5799a932462u);
}

TEST(Handshake, SucceedsWhateverThePartsAreThatBytesComeIn) {
  for (std::size_t most = 1; most <= 256; most += most < 40 ? 1 : 37) {
    Pair pair;
    Handshake a = pair.initiator(), b = pair.acceptor();
    run(a, b, most, pair.hello_high);
    ASSERT_EQ(a.state(), State::done) << most << ": " << a.reason();
    ASSERT_EQ(b.state(), State::done) << most << ": " << b.reason();
    EXPECT_EQ(b.peer(), 0);
    EXPECT_EQ(b.peer_incarnation(), pair.low.incarnation);
    EXPECT_EQ(a.peer_incarnation(), pair.high.incarnation);
    EXPECT_TRUE(std::ranges::equal(a.payload(), pair.hello_high));
    EXPECT_TRUE(std::ranges::equal(b.payload(), pair.hello_low));
  }
}

TEST(Handshake, TakesNoByteOfWhatFollows) {
  Pair pair;
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
  const UniqueFd left(fds[0]), right(fds[1]);
  Handshake a = pair.initiator(), b = pair.acceptor();
  while (b.step(right.get()) != State::done) {
    ASSERT_NE(b.state(), State::failed) << b.reason();
    if (b.state() == State::identified) b.accept({});
    if (b.state() != State::done) a.step(left.get());
  }
  ASSERT_EQ(send(right.get(), "data", 4, 0), 4);
  ASSERT_EQ(a.step(left.get()), State::done);
  char data[8] = {};
  EXPECT_EQ(recv(left.get(), data, sizeof data, 0), 4);
  EXPECT_STREQ(data, "data");
}

TEST(Handshake, WrongSecretIsRejectedOnBothSidesAndTheSecretIsNotSent) {
  Pair pair;
  pair.a.secret[3] = std::byte{0x55};
  Handshake a = pair.initiator(), b = pair.acceptor();
  run(a, b, 1000);
  ASSERT_EQ(a.state(), State::failed);
  ASSERT_EQ(b.state(), State::failed);
  EXPECT_NE(a.reason().find("secret"), std::string::npos) << a.reason();
  EXPECT_NE(b.reason().find("secret"), std::string::npos) << b.reason();
  EXPECT_FALSE(a.may_retry());
}

TEST(Handshake, WrongVersionNamesBothVersionsOnBothSides) {
  Pair pair;
  pair.a.version = 7;
  pair.b.version = 12;
  Handshake a = pair.initiator(), b = pair.acceptor();
  run(a, b, 1000);
  for (const Handshake* side : {&a, &b}) {
    ASSERT_EQ(side->state(), State::failed);
    EXPECT_NE(side->reason().find("version 7"), std::string::npos) << side->reason();
    EXPECT_NE(side->reason().find("version 12"), std::string::npos) << side->reason();
    EXPECT_FALSE(side->may_retry());
  }
}

TEST(Handshake, WrongPartiesAreRejectedWithTheReason) {
  struct Case {
    const char* word;
    void (*spoil)(Pair&);
  };
  const Case cases[] = {
      {"another job", [](Pair& p) { p.a.job ^= 1; }},    {"ranks", [](Pair& p) { p.a.rank = 2; }},
      {"ranks", [](Pair& p) { p.a.rank = -1; }},         {"ranks", [](Pair& p) { p.a.rank = 1; }},
      {"drivers", [](Pair& p) { p.a.driver[0] = 's'; }}, {"ranks", [](Pair& p) { p.b.rank = 0, p.a.rank = 1; }},
  };
  for (const Case& one : cases) {
    Pair pair;
    one.spoil(pair);
    Handshake a = pair.initiator(), b = pair.acceptor();
    run(a, b, 1000);
    ASSERT_EQ(b.state(), State::failed);
    EXPECT_NE(b.reason().find(one.word), std::string::npos) << b.reason();
    ASSERT_EQ(a.state(), State::failed);
    EXPECT_NE(a.reason().find(one.word), std::string::npos) << a.reason();
  }
}

TEST(Handshake, AnotherIncarnationIsNotAccepted) {
  Pair pair;
  Handshake a = Handshake::initiator(pair.a, pair.low, 1, pair.high.incarnation + 1, {}), b = pair.acceptor();
  run(a, b, 1000);
  EXPECT_EQ(a.state(), State::failed);
}

TEST(Handshake, RejectionByTheDriverIsProvenAndNamed) {
  Pair pair;
  Handshake a = pair.initiator(), b = pair.acceptor();
  while (b.state() != State::identified) {
    move_bytes(a, b, 1000);
    move_bytes(b, a, 1000);
  }
  b.reject(Rejection::already_connected);
  run(a, b, 1000);
  ASSERT_EQ(a.state(), State::failed);
  EXPECT_NE(a.reason().find("already"), std::string::npos) << a.reason();
  EXPECT_FALSE(a.may_retry());
}

TEST(Handshake, EndOfStreamMayBeRetriedByTheInitiator) {
  for (std::size_t after = 0; after < Handshake::hello_size + Handshake::identity_size; ++after) {
    Pair pair;
    Handshake a = pair.initiator(), b = pair.acceptor();
    for (std::size_t i = 0; i < after; ++i) {
      while (b.output().empty() && move_bytes(a, b, 1000)) {
        if (b.state() == State::identified) b.accept({});
      }
      ASSERT_TRUE(move_bytes(b, a, 1));
    }
    a.ended(0);
    EXPECT_EQ(a.state(), State::failed);
    EXPECT_TRUE(a.may_retry());
  }
}

/// Changes byte `at` of what the initiator (or acceptor) sends; the other side may accept nothing.
void flip(std::size_t at, bool initiator_lies) {
  Pair pair;
  Handshake a = pair.initiator(), b = pair.acceptor();
  Handshake& liar = initiator_lies ? a : b;
  std::size_t passed = 0;
  const auto pass = [&](Handshake& from, Handshake& to) {
    const std::size_t n = std::min(from.output().size(), to.wanted());
    if (n == 0) return false;
    std::vector<std::byte> copy(from.output().begin(), from.output().begin() + static_cast<std::ptrdiff_t>(n));
    if (&from == &liar) {
      if (at >= passed && at < passed + n) copy[at - passed] ^= std::byte{0x10};
      passed += n;
    }
    from.sent(n);
    to.feed(copy);
    return true;
  };
  for (bool moved = true; moved;) {
    moved = pass(a, b);
    moved = pass(b, a) || moved;
    if (b.state() == State::identified) b.accept({});
  }
  const Handshake& honest = initiator_lies ? b : a;
  EXPECT_NE(honest.state(), State::done) << "byte " << at;
}

TEST(Handshake, EveryChangedByteIsNoticed) {
  for (std::size_t at = 0; at < Handshake::hello_size + Handshake::identity_size; ++at) {
    flip(at, true);
    flip(at, false);
  }
}

TEST(Handshake, RandomGarbageNeverGetsThrough) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    Pair pair;
    Handshake a = pair.initiator(), b = pair.acceptor();
    Handshake& victim = round % 2 == 0 ? a : b;
    // Half of them get a valid Hello first, so that the second frame is reached.
    if (round % 4 < 2) {
      move_bytes(a, b, 1000);
      move_bytes(b, a, 1000);
    }
    while (victim.wanted() > 0) {
      std::vector<std::byte> noise(victim.wanted());
      for (auto& byte : noise) byte = static_cast<std::byte>(random());
      victim.feed(noise);
      victim.sent(victim.output().size());
    }
    ASSERT_EQ(victim.state(), State::failed);
  }
}

TEST(Handshake, AReplayedIdentityDoesNotFitAnotherNonce) {
  Pair pair;
  Handshake a = pair.initiator(), b = pair.acceptor(), c = pair.acceptor();
  const std::vector<std::byte> hello(a.output().begin(), a.output().end());
  move_bytes(a, b, 1000);
  move_bytes(b, a, 1000);
  const std::vector<std::byte> identity(a.output().begin(), a.output().end());
  c.feed(hello);
  c.sent(c.output().size());
  c.feed(identity);
  c.sent(c.output().size());
  EXPECT_EQ(c.state(), State::failed);
}

TEST(Handshake, AnAcceptorsProofCannotBeReflected) {
  Pair pair;
  pair.b.rank = 0;  // the worst case: both ends claim the same rank
  Handshake a = pair.initiator();
  std::vector<std::byte> hello(a.output().begin(), a.output().end());
  a.sent(hello.size());
  hello[6] = std::byte{2};  // our own Hello, disguised as the acceptor's
  a.feed(hello);
  const std::vector<std::byte> identity(a.output().begin(), a.output().end());
  a.sent(identity.size());
  a.feed(identity);
  EXPECT_EQ(a.state(), State::failed);
}

TEST(ResolveInbound, TheLowerRanksOwnAttemptGoesFirst) {
  EXPECT_EQ(resolve_inbound(0, 1, false, false), Inbound::take);
  EXPECT_EQ(resolve_inbound(0, 1, true, false), Inbound::defer);
  EXPECT_EQ(resolve_inbound(1, 0, true, false), Inbound::take);
  EXPECT_EQ(resolve_inbound(1, 0, false, false), Inbound::take);
  EXPECT_EQ(resolve_inbound(0, 1, false, true), Inbound::reject);
  EXPECT_EQ(resolve_inbound(1, 0, true, true), Inbound::reject);
}

TEST(PendingConnections, DropsTheOldestAndThoseWhoStaySilent) {
  KitContext context(0, 2);
  const Party self(context, "tcp");
  PendingConnections pending(self);
  std::vector<UniqueFd> clients;
  const auto come = [&] {
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    clients.emplace_back(fds[0]);
    pending.admit(context, UniqueFd(fds[1]));
  };
  for (std::size_t i = 0; i < PendingConnections::capacity; ++i) come();
  EXPECT_FALSE(pending.has_place(context)) << "none goes before its first words can have come";
  context.clock_ns += pending_grace_ns;
  for (std::size_t i = 0; i < 10; ++i) come();
  EXPECT_EQ(pending.size(), PendingConnections::capacity);
  EXPECT_EQ(pending.rejected(), 10u);
  char byte = 0;
  EXPECT_EQ(recv(clients.front().get(), &byte, 1, 0), 0) << "the oldest is closed";
  EXPECT_EQ(recv(clients.back().get(), &byte, 1, 0), -1) << "the newest is not";
  context.clock_ns += PendingConnections::patience_ns - pending_grace_ns;
  EXPECT_EQ(pending.drop_silent(context), 0);
  EXPECT_EQ(pending.size(), PendingConnections::capacity);
  context.clock_ns += 1;
  EXPECT_EQ(pending.drop_silent(context), static_cast<int>(PendingConnections::capacity) - 10);
  context.clock_ns += pending_grace_ns;
  EXPECT_EQ(pending.drop_silent(context), 10);
  EXPECT_TRUE(pending.empty());
  EXPECT_LE(context.logged.size(), 2u) << "one line for each reason, not for each connection";
}

TEST(PendingConnections, WhoHasSaidMostStays) {
  Pair pair;
  PendingConnections pending(pair.b, 4);
  std::vector<UniqueFd> clients;
  Handshake hello = pair.initiator();
  std::uint32_t talker = 0;
  for (int i = 0; i < 4; ++i) {
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    clients.emplace_back(fds[0]);
    const std::uint32_t id = pending.admit(pair.high, UniqueFd(fds[1]));
    if (i != 0) continue;
    talker = id;
    hello.step(fds[0]);
    pending.step(pair.high, talker, [](PendingConnections::Connection&&) { FAIL() << "a Hello proves nothing"; });
  }
  pair.high.clock_ns += pending_grace_ns;
  for (int i = 0; i < 20; ++i) {
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    clients.emplace_back(fds[0]);
    pending.admit(pair.high, UniqueFd(fds[1]));
    pair.high.clock_ns += pending_grace_ns;
  }
  hello.step(clients.front().get());
  Rank who = -1;
  pending.step(pair.high, talker,
               [&](PendingConnections::Connection&& connection) { who = connection.handshake.peer(); });
  EXPECT_EQ(who, 0) << "the oldest connection of all, but the only one that has spoken";
}

TEST(PendingConnections, HandsOutWhoIsProven) {
  Pair pair;
  PendingConnections pending(pair.b);
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
  const UniqueFd mine(fds[0]);
  Handshake a = pair.initiator();
  const std::uint32_t id = pending.admit(pair.high, UniqueFd(fds[1]));
  Rank who = -1;
  for (int i = 0; i < 10 && who < 0; ++i) {
    a.step(mine.get());
    pending.step(pair.high, id, [&](PendingConnections::Connection&& connection) {
      who = connection.handshake.peer();
      connection.handshake.accept({});
      EXPECT_EQ(connection.handshake.step(connection.fd.get()), State::done);
    });
  }
  EXPECT_EQ(who, 0);
  EXPECT_EQ(a.step(mine.get()), State::done);
}

/// A limiter with an always readable descriptor behind it: turns that need more actions than they may have.
struct Crowd {
  UniqueFd outer{::epoll_create1(EPOLL_CLOEXEC)};
  UniqueFd client{::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)};
  AcceptLimiter limiter;
  std::uint64_t now = 1'000'000'000;

  Crowd() { EXPECT_TRUE(limiter.open(outer.get(), 7) && limiter.watch(client.get(), 1)); }
  bool shows() const {
    epoll_event found;
    return ::epoll_wait(outer.get(), &found, 1, 0) == 1 && found.data.u64 == 7;
  }
  /// Polls once, as a driver does; every connection that it finds is unauthenticated. Returns the number of actions.
  int look() {
    if (shows()) limiter.ring();
    if (!limiter.begin_turn(now)) return 0;
    epoll_event found[AcceptLimiter::most_events];
    int acts = 0;
    for (const int count = limiter.ready(found); count > 0 && limiter.may_act(); ++acts) limiter.act();
    if (acts > 0) limiter.note_unauthenticated();
    limiter.end_turn(now);
    return acts;
  }
};

TEST(AcceptLimiter, UnauthenticatedPeersCostABoundedNumberOfActions) {
  Crowd crowd;
  int in_one_turn = 0, turns = 0;
  constexpr int milliseconds = 1000;
  for (int us = 0; us < milliseconds * 1000; us += 10) {
    const int acts = crowd.look();
    in_one_turn = std::max(in_one_turn, acts);
    turns += acts > 0 ? 1 : 0;
    crowd.now += 10'000;
  }
  EXPECT_LE(in_one_turn, AcceptLimiter::per_turn);
  EXPECT_LE(turns, milliseconds) << "one turn in a millisecond";
  EXPECT_LE(crowd.limiter.actions(),
            static_cast<std::uint64_t>(AcceptLimiter::per_ms * milliseconds + AcceptLimiter::most_saved));
  EXPECT_GE(crowd.limiter.actions(), static_cast<std::uint64_t>(AcceptLimiter::per_ms * (milliseconds - 2)))
      << "but it goes on";
}

TEST(AcceptLimiter, WhileItRestsItShowsNothingAndWakesASleeper) {
  Crowd crowd;
  EXPECT_TRUE(crowd.shows());
  EXPECT_TRUE(crowd.limiter.may_sleep(crowd.now));
  EXPECT_GT(crowd.look(), 0);
  EXPECT_TRUE(crowd.limiter.resting());
  EXPECT_FALSE(crowd.shows());
  EXPECT_EQ(crowd.look(), 0);
  ASSERT_TRUE(crowd.limiter.may_sleep(crowd.now));
  epoll_event found;
  EXPECT_EQ(::epoll_wait(crowd.outer.get(), &found, 1, 30'000), 1) << "the timer ends the sleep";
  EXPECT_EQ(crowd.look(), 0) << "the driver's clock decides, and it stands still";
  crowd.now += AcceptLimiter::rest_ns;
  EXPECT_FALSE(crowd.limiter.may_sleep(crowd.now)) << "there is a turn to take first";
  EXPECT_GT(crowd.look(), 0);
}

TEST(AcceptLimiter, RanksDoNotWait) {
  Crowd crowd;
  for (int i = 0; i < 1000; ++i) {
    crowd.limiter.ring();
    ASSERT_TRUE(crowd.limiter.begin_turn(crowd.now)) << i;
    for (int k = 0; k < AcceptLimiter::handshake_actions; ++k) {
      ASSERT_TRUE(crowd.limiter.may_act()) << i;
      crowd.limiter.act();
    }
    crowd.limiter.proven();
    crowd.limiter.end_turn(crowd.now);
  }
}

}  // namespace
}  // namespace canele::drivers::net

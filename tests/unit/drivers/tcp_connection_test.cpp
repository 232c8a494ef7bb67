// SPDX-License-Identifier: BSD-3-Clause
//
// Tests of the tcp driver's connections: both at once, unauthenticated peers, malformed bytes, addresses, settings,
// death. One thread. See tcp_fixture.hpp.
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "drivers/net/accept_limiter.hpp"
#include "tests/unit/drivers/tcp_fixture.hpp"

namespace canele::drivers::tcp {
namespace {

using TcpConnection = Tcp;

TEST_F(TcpConnection, SimultaneousConnectionsLeaveExactlyOneAndLoseNothing) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    World pair(tcp_factory);
    pair.open();
    ASSERT_EQ(pair.connect(0, 1), Status::pending);
    for (std::size_t n = random() % 4; n > 0; --n) pair[static_cast<Rank>(random() % 2)].poll();
    if (pair[1].up.count(0) == 0) {
      ASSERT_EQ(pair.connect(1, 0), Status::pending);
    }
    std::size_t sent[2] = {0, 0};
    ASSERT_TRUE(pair.until([&] {
      const Rank rank = static_cast<Rank>(random() % 2);
      if (pair[rank].up.count(1 - rank) == 1 && sent[rank] < 5 &&
          pair[rank].send(1 - rank, pattern(20, sent[rank])) == Status::ok) {
        ++sent[rank];
      }
      pair[static_cast<Rank>(random() % 2)].poll();
      return pair[0].packets.size() == 5 && pair[1].packets.size() == 5;
    })) << round
        << pair[0].failures[1].second << pair[1].failures[0].second;
    for (int i = 0; i < 30; ++i) pair.poll();
    for (Rank rank : {0, 1}) {
      ASSERT_TRUE(pair[rank].failures.empty()) << pair[rank].failures.begin()->second.second;
      ASSERT_EQ(pair[rank].packets.size(), 5u);
      for (std::size_t i = 0; i < 5; ++i) ASSERT_EQ(pair[rank].packets[i].bytes, pattern(20, i));
    }
  }
}

TEST_F(TcpConnection, ManyPeersAllToAll) {
  World many(tcp_factory, 9);
  many.open();
  for (Rank i = 0; i < 9; ++i) {
    for (Rank k = 0; k < 9; ++k) {
      const bool both = (i + k) % 3 != 0;  // else only the lower rank connects
      if (i == k || (i > k && !both)) continue;
      ASSERT_NE(many.connect(i, k), Status::failed);
    }
  }
  ASSERT_TRUE(many.until([&] {
    return std::all_of(many.nodes.begin(), many.nodes.end(), [](const auto& node) { return node->up.size() == 8; });
  }));
  for (int round = 0; round < 20; ++round) {
    for (Rank i = 0; i < 9; ++i) {
      for (Rank k = 0; k < 9; ++k) {
        if (i == k) continue;
        ASSERT_TRUE(
            many.until([&] { return many[i].send(k, pattern(300, static_cast<std::uint64_t>(i))) != Status::full; }));
      }
    }
  }
  ASSERT_TRUE(many.until([&] {
    return std::all_of(many.nodes.begin(), many.nodes.end(),
                       [](const auto& node) { return node->packets.size() == 160; });
  }));
  for (const auto& node : many.nodes) {
    for (const auto& packet : node->packets)
      ASSERT_EQ(packet.bytes, pattern(300, static_cast<std::uint64_t>(packet.from)));
    ASSERT_TRUE(node->failures.empty());
  }
}

/// Returns the congestion-control rules by which this process's connected TCP sockets send.
std::vector<std::string> rules_of_connections() {
  std::vector<std::string> rules;
  for (int fd = 0; fd < 256; ++fd) {
    sockaddr_storage peer = {};
    socklen_t size = sizeof peer;
    char rule[16] = {};
    socklen_t length = sizeof rule - 1;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    if (::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, rule, &length) == 0) rules.emplace_back(rule);
  }
  return rules;
}

TEST_F(TcpConnection, WithinAHostNoRateIsRemembered) {
  World pair(tcp_factory);
  pair.open();
  ASSERT_EQ(pair.connect(0, 1), Status::pending);
  ASSERT_TRUE(pair.until([&] { return pair[0].up.size() == 1 && pair[1].up.size() == 1; }));
  EXPECT_EQ(rules_of_connections(), (std::vector<std::string>{"reno", "reno"}));
}

TEST_F(TcpConnection, EarlySendsAreFullAndBecomeReady) {
  world.open();
  ASSERT_EQ(world.connect(0, 1), Status::pending);
  EXPECT_EQ(a.send(1, pattern(10, 1)), Status::full);
  ASSERT_TRUE(world.until([&] { return !a.ready_ranks.empty(); }));
  EXPECT_EQ(a.up.count(1), 1u);
  EXPECT_EQ(a.send(1, pattern(10, 1)), Status::ok);
}

TEST_F(TcpConnection, AWrongSecretIsRejected) {
  b.context.key[5] ^= std::byte{1};
  world.open();
  ASSERT_EQ(world.connect(0, 1), Status::pending);
  ASSERT_TRUE(world.until([&] {
    b.context.clock_ns += net::AcceptLimiter::rest_ns;  // it rests after each unauthenticated connection
    return a.failures.count(1) == 1;
  }));
  EXPECT_NE(a.failures[1].second.find("secret"), std::string::npos) << a.failures[1].second;
  EXPECT_NE(a.failures[1].second.find("rank 1"), std::string::npos) << a.failures[1].second;
  EXPECT_TRUE(b.up.empty());
  EXPECT_TRUE(b.failures.empty()) << "an unauthenticated peer is no rank's failure";
  EXPECT_EQ(a.send(1, pattern(10, 1)), Status::failed);
  EXPECT_EQ(world.connect(0, 1), Status::failed);
}

TEST_F(TcpConnection, AnotherIncarnationAtTheSameAddressIsNotThePeer) {
  world.open();
  PeerAddress where;
  ASSERT_TRUE(unpack_address(b.address, &where));
  ++where.incarnation;
  ASSERT_EQ(a.driver->connect(1, pack_address(where)), Status::pending);
  ASSERT_TRUE(world.until([&] { return a.failures.count(1) == 1; }));
}

TEST_F(TcpConnection, NobodyListens) {
  world.open();
  b.close();
  ASSERT_EQ(world.connect(0, 1), Status::pending);
  ASSERT_TRUE(world.until([&] { return a.poll(), a.failures.count(1) == 1; }, std::chrono::seconds(200)));
  EXPECT_TRUE(a.failures[1].first) << "on this host a refusal means that the process is gone";
  EXPECT_NE(a.failures[1].second.find("refused"), std::string::npos) << a.failures[1].second;
}

TEST_F(TcpConnection, AddressesThatAreNone) {
  world.open();
  EXPECT_EQ(a.driver->connect(1, {}), Status::failed);
  Bytes noise = pattern(100, 1);
  EXPECT_EQ(a.driver->connect(1, noise), Status::failed);
  for (std::size_t size = 0; size < 47; ++size) {
    EXPECT_EQ(a.driver->connect(1, std::span(b.address).first(size)), Status::failed) << size;
  }
  world.join(0, 1);
}

TEST_F(TcpConnection, ASecondAddressIsTriedWhenTheFirstDoesNotAnswer) {
  world.open();
  PeerAddress where;
  ASSERT_TRUE(unpack_address(b.address, &where));
  auto dead = net::Endpoint::loopback(false, 1);
  where.endpoints.insert(where.endpoints.begin(), dead);
  where.endpoints.insert(where.endpoints.begin(), dead);
  ASSERT_EQ(a.driver->connect(1, pack_address(where)), Status::pending);
  EXPECT_TRUE(world.until([&] { return a.up.count(1) == 1 && b.up.count(0) == 1; }));
}

TEST_F(TcpConnection, APeerThatClosesHasItsLastWordsHeard) {
  small_buffers();
  open_and_join();
  ASSERT_EQ(b.send(0, pattern(10, 9)), Status::ok);  // unread by a: must not turn the end into a reset
  for (int i = 0; i < 3; ++i) ASSERT_EQ(a.send(1, pattern(100, static_cast<std::uint64_t>(i))), Status::ok);
  a.close();
  ASSERT_TRUE(world.until([&] { return b.poll(), b.failures.count(0) == 1; }));
}

TEST_F(TcpConnection, PeerClosesThenFailedNamesRankAndAddress) {
  open_and_join();
  for (int i = 0; i < 100; ++i) ASSERT_EQ(a.send(1, pattern(100, static_cast<std::uint64_t>(i))), Status::ok);
  world.nodes[0].reset();
  ASSERT_TRUE(world.until([&] { return b.failures.count(0) == 1; }));
  EXPECT_EQ(b.packets.size(), 100u) << "what was sent before the end is delivered";
  EXPECT_TRUE(b.failures[0].first);
  for (const char* word : {"rank 0", ":", "closed"}) {
    EXPECT_NE(b.failures[0].second.find(word), std::string::npos) << b.failures[0].second;
  }
  EXPECT_EQ(b.send(0, pattern(10, 1)), Status::failed);
  EXPECT_EQ(b.poll(), 0);
}

TEST_F(TcpConnection, PeerDiesWhileWeSend) {
  small_buffers();
  open_and_join();
  fill(5000);
  world.nodes[1].reset();
  ASSERT_TRUE(world.until([&] {
    const Status status = a.failures.empty() ? a.send(1, pattern(10, 1)) : Status::failed;
    return status == Status::failed;
  }));
  EXPECT_EQ(a.failures.count(1), 1u);
}

TEST_F(TcpConnection, ASendIntoABrokenConnectionIsFullThenFailed) {
  open_and_join();
  world.nodes[1].reset();
  Status status = Status::ok;
  for (int i = 0; i < 1000 && status == Status::ok; ++i) status = a.send(1, pattern(100, 1));  // without a poll()
  EXPECT_EQ(status, Status::full);
  ASSERT_TRUE(world.until([&] { return a.failures.count(1) == 1; }));
  EXPECT_TRUE(a.failures[1].first);
}

TEST_F(TcpConnection, AnAddressThatStaysSilentIsGivenUpForTheNext) {
  world.open();
  // A queue that is full: the kernel ignores further attempts.
  const net::UniqueFd silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto anywhere = net::Endpoint::loopback(false, 0);
  ASSERT_EQ(::bind(silent.get(), anywhere.address(), anywhere.size()), 0);
  ASSERT_EQ(::listen(silent.get(), 0), 0);
  std::vector<net::UniqueFd> queue;
  for (int i = 0; i < 3; ++i) queue.push_back(net::start_connect(net::local_endpoint(silent.get())));
  PeerAddress where;
  ASSERT_TRUE(unpack_address(b.address, &where));
  where.endpoints.insert(where.endpoints.begin(), net::local_endpoint(silent.get()));
  ASSERT_EQ(a.driver->connect(1, pack_address(where)), Status::pending);
  for (int i = 0; i < 100; ++i) world.poll();
  EXPECT_TRUE(a.up.empty() && a.failures.empty());
  a.context.clock_ns += 10'000'000'001;
  EXPECT_TRUE(world.until([&] { return a.up.count(1) == 1 && b.up.count(0) == 1; }));
}

TEST_F(TcpConnection, APeerThatLeavesBeforeItIsAnsweredMayComeAgain) {
  ASSERT_EQ(a.open(), Status::ok);
  {
    conformance::KitContext context(1, 2);
    const net::Party self(context, "tcp");
    net::UniqueFd fd = dial(a);
    auto shake = net::Handshake::initiator(self, context, 0, 0, {});
    const auto all_sent = [&] { return shake.wanted() == net::Handshake::identity_size && !shake.wants_write(); };
    ASSERT_TRUE(world.until([&] {
      shake.step(fd.get());
      return all_sent();
    }));
    const linger abruptly = {1, 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &abruptly, sizeof abruptly);
  }
  for (int i = 0; i < 20; ++i) a.poll();
  EXPECT_TRUE(a.up.empty() && a.failures.empty());
  FalsePeer peer(a);
  EXPECT_EQ(a.up.count(1), 1u);
}

TEST_F(TcpConnection, WithoutDescriptorsAnUnauthenticatedPeerIsClosedAndTheRestGoesOn) {
  World trio(tcp_factory, 3);  // rank 2 is missing, so the others listen
  Node &one = trio[0], &two = trio[1];
  trio.open();
  trio.join(0, 1);
  PeerAddress where;
  ASSERT_TRUE(unpack_address(two.address, &where));
  const auto target = candidates(where, net::host_id()).at(0);
  const net::UniqueFd client(::socket(target.v6() ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const net::UniqueFd next(::dup(client.get()));  // the lowest free number, given or not, bounds what is open
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit tight = before;
  tight.rlim_cur = static_cast<rlim_t>(next.get()) + 1;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  const int connected = ::connect(client.get(), target.address(), target.size());
  const bool closed = trio.until([&] { return is_closed(client.get()); });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(connected, 0);
  EXPECT_TRUE(closed);
  ASSERT_FALSE(two.context.logged.empty());
  EXPECT_NE(two.context.logged.back().second.find("ulimit"), std::string::npos);
  ASSERT_EQ(one.send(1, pattern(100, 0)), Status::ok);
  EXPECT_TRUE(trio.until([&] { return two.packets.size() == 1; }));
}

TEST_F(TcpConnection, MalformedFramesCloseThePeerWithAReason) {
  struct Case {
    Bytes bytes;
    const char* word;
  };
  Bytes bad_mark = frame(Kind::packet, 4, pattern(4, 1));
  bad_mark[6] ^= std::byte{1};
  Bytes reserved = frame(Kind::packet, 4, pattern(4, 1));
  reserved[5] = std::byte{1};
  const Case cases[] = {
      {frame(Kind::packet, 0, pattern(4, 1)), "0 bytes"},
      {frame(Kind::packet, max_packet + 1, pattern(4, 1)), "bytes"},
      {frame(Kind::packet, 0xffffffff, pattern(4, 1)), "4294967295"},
      {frame(static_cast<Kind>(3), 4, pattern(4, 1)), "kind 3"},
      {frame(static_cast<Kind>(0), 4, pattern(4, 1)), "kind 0"},
      {frame(Kind::bulk, max_bulk + 1, {}), "bytes"},
      {frame(Kind::bulk, 0, {}), "0 bytes"},
      {frame(Kind::bulk, 100, {}, 1, ~std::uint64_t{0} - 5), "offset"},
      {bad_mark, "malformed frame"},
      {reserved, "malformed frame"},
  };
  for (const Case& one : cases) {
    World lone(tcp_factory);
    ASSERT_EQ(lone[0].open(), Status::ok);
    FalsePeer peer(lone[0]);
    peer.send(frame(Kind::packet, 5, pattern(5, 5)));
    peer.send(one.bytes);
    ASSERT_TRUE(lone.until([&] { return lone[0].poll(), lone[0].failures.count(1) == 1; }));
    EXPECT_NE(lone[0].failures[1].second.find(one.word), std::string::npos) << lone[0].failures[1].second;
    EXPECT_EQ(lone[0].packets.size(), 1u);
    ASSERT_TRUE(lone.until([&] { return lone[0].poll(), is_closed(peer.fd()); }));
  }
}

TEST_F(TcpConnection, AFrameThatEndsHalfWay) {
  const Bytes whole = frame(Kind::packet, 50, pattern(50, 1));
  const Bytes bulk = frame(Kind::bulk, 50, pattern(50, 1), 3, 0);
  for (const Bytes* bytes : {&whole, &bulk}) {
    for (std::size_t cut_at = 0; cut_at < bytes->size(); cut_at += 3) {
      World lone(tcp_factory);
      ASSERT_EQ(lone[0].open(), Status::ok);
      Bytes target(50);
      lone[0].expect_bulk(3, cut(target, 20));
      FalsePeer peer(lone[0]);
      peer.send(bytes->data(), cut_at);
      peer.hang_up();
      ASSERT_TRUE(lone.until([&] { return lone[0].poll(), lone[0].failures.count(1) == 1; }));
      EXPECT_EQ(lone[0].packets.size(), 0u);
      EXPECT_LE(lone[0].written_bytes[3], 50u);
      EXPECT_EQ(lone[0].failures[1].second.find("middle of a frame") != std::string::npos, cut_at > 0);
    }
  }
}

TEST_F(TcpConnection, GarbageAtEveryByteOfTheHandshakeHurtsNobody) {
  World trio(tcp_factory, 3);  // rank 2 is missing, so the others listen
  Node &one = trio[0], &two = trio[1];
  trio.open();
  trio.join(0, 1);
  conformance::KitContext liar(1, 3);
  const net::Party self(liar, "tcp");
  for (std::size_t at = 0; at < net::Handshake::hello_size + net::Handshake::identity_size; at += 1) {
    net::UniqueFd fd = dial(one);
    auto shake = net::Handshake::initiator(self, liar, 0, 0, {});
    std::size_t passed = 0;
    bool closed = false;
    for (int i = 0; i < 100000 && !closed; ++i) {
      auto out = shake.output();
      if (!out.empty()) {
        Bytes copy(out.begin(), out.end());
        if (at >= passed && at < passed + copy.size()) copy[at - passed] ^= std::byte{0x41};
        passed += copy.size();
        ::send(fd.get(), copy.data(), copy.size(), MSG_NOSIGNAL);
        shake.sent(copy.size());
      }
      one.context.clock_ns += net::AcceptLimiter::rest_ns;
      one.poll();
      std::byte in[256];
      const std::size_t wanted = shake.wanted();
      if (wanted == 0) break;
      const ssize_t n = ::recv(fd.get(), in, wanted, 0);
      if (n > 0) shake.feed({in, static_cast<std::size_t>(n)});
      closed = n == 0 || (n < 0 && errno != EAGAIN);
    }
    ASSERT_NE(shake.state(), net::Handshake::State::done) << at;
  }
  for (int i = 0; i < 3; ++i) ASSERT_EQ(one.send(1, pattern(100, static_cast<std::uint64_t>(i))), Status::ok);
  ASSERT_TRUE(trio.until([&] { return two.packets.size() == 3; }));
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(two.packets[i].bytes, pattern(100, i));
  EXPECT_TRUE(one.failures.empty());
}

TEST_F(TcpConnection, AThousandUnauthenticatedPeersDoNotKeepARankOut) {
  world.open();
  std::vector<net::UniqueFd> clients;
  for (int i = 0; i < 1000; ++i) {
    net::UniqueFd fd = dial(b);
    if (i % 3 == 1) ::send(fd.get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
    if (i % 3 == 2) ::send(fd.get(), "CNLE", 4, MSG_NOSIGNAL);  // half a frame, and silence
    if (i % 100 < 90) clients.push_back(std::move(fd));
    b.context.clock_ns += net::AcceptLimiter::rest_ns;
    b.poll();
  }
  std::size_t open = 0;
  for (const auto& fd : clients) open += is_closed(fd.get()) ? 0 : 1;
  EXPECT_LE(open, 64u + 16u) << "at most the pending connections, and what is still in the kernel's queue";
  ASSERT_EQ(world.connect(0, 1), Status::pending);
  ASSERT_TRUE(world.until([&] {
    b.context.clock_ns += 100'000;
    return a.up.count(1) == 1 && b.up.count(0) == 1;
  }));
  ASSERT_EQ(a.send(1, pattern(100, 0)), Status::ok);
  expect_arrived(b, 1, 100);
  EXPECT_TRUE(b.failures.empty());
  b.context.clock_ns += 11'000'000'000;
  ASSERT_TRUE(world.until([&] {
    b.context.clock_ns += net::AcceptLimiter::rest_ns;
    return std::all_of(clients.begin(), clients.end(), [](const auto& fd) { return is_closed(fd.get()); });
  }));
}

// The polls that follow remove whatever keeps an engine from sleeping, however few polls there are between two attempts
// to sleep.
TEST_F(TcpConnection, ARestOfTheLimiterDoesNotKeepAnEngineAwake) {
  World trio(tcp_factory, 3);
  Node& one = trio[0];
  trio.open();
  trio.join(0, 1);  // rank 2 is missing, so rank 0 keeps listening
  for (int round = 0; round < 3; ++round) {
    net::UniqueFd fd = dial(one);
    const Bytes garbage = pattern(4096, 5);
    ::send(fd.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
    int turns = 0;
    while (!is_closed(fd.get()) && ++turns < 5000) {
      one.context.clock_ns += 1000;
      one.poll();
    }
    ASSERT_LT(turns, 5000);
    one.context.clock_ns += 2 * net::AcceptLimiter::rest_ns;
    turns = 0;
    while (!one.driver->arm() && ++turns < 16) one.poll();
    EXPECT_LT(turns, 16) << "the engine cannot sleep";
    one.driver->disarm();
  }
}

TEST_F(TcpConnection, SettingsThatAreWrongAreNamed) {
  const auto rejected = [](const char* name, const char* value) {
    World lone(tcp_factory);
    lone[0].context.settings[name] = value;
    EXPECT_EQ(lone[0].open(), Status::failed);
    return lone[0].reason;
  };
  EXPECT_NE(rejected("TCP_INTERFACE", "eth77").find("eth77"), std::string::npos);
  EXPECT_NE(rejected("TCP_INTERFACE", "192.0.2.1").find("192.0.2.1"), std::string::npos);
  EXPECT_NE(rejected("TCP_PORT", "70000").find("65535"), std::string::npos);
  EXPECT_NE(rejected("TCP_PORT", "http").find("http"), std::string::npos);
  EXPECT_NE(rejected("EXPERT_TCP_SEND_BUFFER", "-1").find("-1"), std::string::npos);
  EXPECT_NE(rejected("TCP_PEER_TIMEOUT", "2").find("at least 3"), std::string::npos);
}

TEST_F(TcpConnection, OneInterfaceAndAFirstPort) {
  const auto port = [](const Node& node) {
    PeerAddress where;
    EXPECT_TRUE(unpack_address(node.address, &where));
    for (const auto& one : where.endpoints) EXPECT_TRUE(one.is_loopback()) << one.text();
    return where.endpoints.at(0).port();
  };
  for (auto& node : world.nodes) node->context.settings["TCP_INTERFACE"] = "127.0.0.1";
  ASSERT_EQ(a.open(), Status::ok);
  EXPECT_FALSE(a.driver->capabilities().reaches_remote);
  b.context.settings["TCP_PORT"] = std::to_string(port(a));
  ASSERT_EQ(b.open(), Status::ok);
  EXPECT_GT(port(b), port(a)) << "the first port is taken by the other rank: the next free one";
  world.join(1, 0);
}

TEST(TcpSource, IsOfTheFamilyAndTheScopeOfTheDestination) {
  const auto parsed = [](const char* text) {
    net::Endpoint made;
    EXPECT_TRUE(net::Endpoint::parse(text, &made)) << text;
    return made;
  };
  const std::vector<net::Endpoint> own = {parsed("10.1.0.7"), parsed("fd00::7"), parsed("10.2.0.7")};
  const auto from = [&](const char* to) {
    const net::Endpoint* const found = source_for(own, parsed(to));
    return found == nullptr ? std::string("any") : found->text();
  };
  EXPECT_EQ(from("10.2.0.9"), "10.1.0.7:0");
  EXPECT_EQ(from("fd00::9"), "[fd00::7]:0");
  EXPECT_EQ(from("127.0.0.1"), "any") << "loopback is reached from loopback only";
  EXPECT_EQ(source_for({}, parsed("10.2.0.9")), nullptr);
}

TEST(TcpSource, IsThatOfTheConnection) {
  const net::UniqueFd listener = net::listen_on(net::Endpoint::loopback(false, 0));
  ASSERT_TRUE(listener);
  net::Endpoint from;
  ASSERT_TRUE(net::Endpoint::parse("127.0.0.2", &from));  // all of 127.0.0.0/8 is this host's
  const net::UniqueFd made = net::start_connect(net::local_endpoint(listener.get()), &from);
  ASSERT_TRUE(made);
  EXPECT_TRUE(net::local_endpoint(made.get()).same_address(from)) << net::local_endpoint(made.get()).text();
  net::Endpoint elsewhere;
  ASSERT_TRUE(net::Endpoint::parse("192.0.2.1", &elsewhere));  // for documentation: no host has it
  EXPECT_FALSE(net::start_connect(net::local_endpoint(listener.get()), &elsewhere));
}

TEST_F(TcpConnection, WorksOverIpv6) {
  const auto all = net::interfaces();
  const bool has = std::any_of(all.begin(), all.end(),
                               [](const auto& one) { return one.endpoint.v6() && one.endpoint.is_loopback(); });
  if (!has) GTEST_SKIP() << "this host has no IPv6 loopback";
  for (auto& node : world.nodes) node->context.settings["TCP_INTERFACE"] = "::1";
  open_and_join();
  ASSERT_EQ(a.send(1, pattern(100, 0)), Status::ok);
  expect_arrived(b, 1, 100);
}

TEST_F(TcpConnection, ASlowAcceptorIsWaitedFor) {
  world.open();
  ASSERT_EQ(world.connect(0, 1), Status::pending);
  for (int i = 0; i < 50; ++i) {
    a.context.clock_ns += 3'600'000'000'000;  // hours in which the peer computes and does not poll
    a.poll();
  }
  EXPECT_TRUE(a.failures.empty());
  EXPECT_TRUE(world.until([&] { return a.up.count(1) == 1 && b.up.count(0) == 1; }));
}

TEST_F(TcpConnection, ASlowInitiatorIsDroppedAndComesAgain) {
  world.open();
  ASSERT_EQ(world.connect(0, 1), Status::pending);
  for (int i = 0; i < 4; ++i) a.poll();
  for (int i = 0; i < 4; ++i) b.poll();
  b.context.clock_ns += 11'000'000'000;
  for (int i = 0; i < 4; ++i) b.poll();
  b.context.clock_ns += net::AcceptLimiter::rest_ns;
  EXPECT_TRUE(world.until([&] { return a.up.count(1) == 1 && b.up.count(0) == 1; })) << a.failures[1].second;
}

}  // namespace
}  // namespace canele::drivers::tcp

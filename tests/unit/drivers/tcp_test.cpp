// SPDX-License-Identifier: BSD-3-Clause
//
// Tests of the tcp driver's traffic: sizes around every limit, order, back-pressure, bulk, sleeping, closing.
//
// One thread, but for the test in which a peer reads while we close. See tcp_fixture.hpp.
#include <poll.h>

#include <chrono>
#include <fstream>
#include <random>
#include <thread>

#include "tests/slowness.hpp"
#include "tests/unit/drivers/tcp_fixture.hpp"

namespace canele::drivers::tcp {
namespace {

TEST_F(Tcp, DeclaresWhatItCanDo) {
  world.open();
  const Capabilities& can = a.driver->capabilities();
  EXPECT_EQ(can.name, "tcp");
  EXPECT_TRUE(can.bulk_stream && can.reaches_local && can.detects_failure);
  EXPECT_FALSE(can.memory_only || can.reserves || can.get || can.reaches_self);
  EXPECT_EQ(can.wake_up, WakeUp::descriptor);
  EXPECT_LE(a.address.size(), 512u);
  EXPECT_EQ(tcp_factory.unavailable(), "");
}

/// Returns the smallest send buffer of this process's TCP sockets.
int least_send_buffer() {
  int least = 1 << 30;
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_storage name = {};
    socklen_t length = sizeof name, size = sizeof least;
    int found = 0;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&name), &length) != 0 || name.ss_family == AF_UNIX) continue;
    if (::getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &found, &size) == 0) least = std::min(least, found);
  }
  return least;
}

// On a host with more ranks than cores, the kernel's buffers are small enough for its caches.
TEST_F(Tcp, KeepsLittleForRanksThatShareCores) {
  for (const bool oversubscribed : {false, true}) {
    World of_two(tcp_factory, 2);
    for (int rank = 0; rank < 2; ++rank) of_two[rank].context.oversubscribed = oversubscribed;
    of_two.open();
    of_two.join(0, 1);
    const int least = least_send_buffer();
    EXPECT_EQ(least <= 2 * 1024 * 1024, oversubscribed) << least;
  }
}

TEST_F(Tcp, SizesAroundEveryLimitArriveInOrder) {
  open_and_join();
  std::vector<std::size_t> sizes;
  for (const std::size_t limit : {std::size_t{1}, max_inline, std::size_t{1024}, max_packet / 2, max_packet}) {
    for (const std::size_t size : {limit - 1, limit, limit + 1}) {
      if (size > 0 && size <= max_packet) sizes.push_back(size);
    }
  }
  std::size_t sent = 0;
  for (const int pieces : {1, 2, 7, 300}) {
    for (const std::size_t size : sizes) {
      if (size < static_cast<std::size_t>(pieces)) continue;
      while (a.send(1, pattern(size, size), pieces) == Status::full) world.poll();
      ++sent;
      ASSERT_TRUE(world.until([&] { return b.packets.size() == sent && a.pending() == 0; }));
      ASSERT_EQ(b.packets.back().bytes, pattern(size, size)) << size << " in " << pieces;
      ASSERT_EQ(b.packets.back().from, 0);
    }
  }
}

TEST_F(Tcp, InlineSendsOfEverySize) {
  open_and_join();
  for (std::size_t size = 1; size <= max_inline; ++size) {
    const Bytes bytes = pattern(size, size);
    const std::size_t head = size / 3;
    Status status;
    do {
      status = a.driver->send_inline(1, bytes.data(), head, bytes.data() + head, size - head);
      world.poll();
    } while (status == Status::full);
    ASSERT_EQ(status, Status::ok);
  }
  ASSERT_TRUE(world.until([&] { return b.packets.size() == max_inline; }));
  for (std::size_t size = 1; size <= max_inline; ++size) EXPECT_EQ(b.packets[size - 1].bytes, pattern(size, size));
}

TEST_F(Tcp, FullThenReadyAndNothingIsLost) {
  small_buffers();
  open_and_join();
  const int sent = fill(1000);
  ASSERT_GT(sent, 0);
  EXPECT_TRUE(a.ready_ranks.empty());
  expect_arrived(b, sent, 1000);
  ASSERT_TRUE(world.until([&] { return !a.ready_ranks.empty(); }));
  EXPECT_EQ(a.ready_ranks, std::vector<Rank>{1});
  EXPECT_EQ(a.pending(), 0u);
  EXPECT_NE(a.send(1, pattern(10, 1)), Status::full);
}

TEST_F(Tcp, InlineSendsThatStopHalfWayAreCopied) {
  open_and_join();  // with the kernel's own buffers: they end within a message, small ones between two
  int sent = 0;
  for (int round = 0; round < 3; ++round) {
    for (Status status = Status::ok; status == Status::ok;) {
      Bytes bytes = pattern(61, static_cast<std::uint64_t>(sent));
      status = a.driver->send_inline(1, bytes.data(), 13, bytes.data() + 13, 48);
      ASSERT_NE(status, Status::pending);
      sent += status == Status::ok;
      std::fill(bytes.begin(), bytes.end(), std::byte{0xee});  // the memory is ours again
    }
    expect_arrived(b, sent, 61);
    ASSERT_TRUE(world.until([&] { return a.ready_ranks.size() == static_cast<std::size_t>(round) + 1; }));
  }
}

TEST_F(Tcp, RandomTrafficBothWaysThroughSmallBuffers) {
  small_buffers();
  open_and_join();
  std::mt19937_64 random(7);
  std::vector<Bytes> sent[2];
  const std::size_t count = 2000;
  const auto all_here = [&] { return b.packets.size() == count && a.packets.size() == count; };
  ASSERT_TRUE(world.until([&] {
    for (Rank rank : {0, 1}) {
      auto& list = sent[rank];
      if (list.size() == count) continue;
      const std::size_t size = 1 + random() % (random() % 8 == 0 ? max_packet : 200);
      Bytes bytes = pattern(size, list.size());
      if (world[rank].send(1 - rank, bytes, 1 + static_cast<int>(random() % 5)) != Status::full) {
        list.push_back(std::move(bytes));
      }
      if (random() % 3 == 0) world[rank].poll(1 + static_cast<int>(random() % 3));
    }
    return all_here();
  }));
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(b.packets[i].bytes, sent[0][i]);
    ASSERT_EQ(a.packets[i].bytes, sent[1][i]);
  }
  EXPECT_EQ(a.pending() + b.pending(), 0u);
}

TEST_F(Tcp, BulkLandsInScatteredMemoryBetweenPackets) {
  open_and_join();
  for (const std::size_t piece :
       {std::size_t{3}, std::size_t{100}, std::size_t{511}, std::size_t{700}, std::size_t{65536}}) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{999}, std::size_t{40000}, std::size_t{1500000}}) {
      for (const int most : {1, 5, 1 << 20}) {
        if (size / piece > 20000 / test::slowness) continue;
        Bytes target(size);
        b.expect_bulk(77, cut(target, piece));
        b.written_bytes.clear();
        b.packets.clear();
        b.most_pieces = most;
        const Bytes source = pattern(size, size + piece);
        ASSERT_TRUE(world.until([&] { return a.send(1, pattern(50, 1)) != Status::full; }));
        ASSERT_TRUE(world.until([&] { return a.bulk(1, 77, 0, source, 5000) != Status::full; }));
        ASSERT_TRUE(world.until([&] { return a.send(1, pattern(60, 2)) != Status::full; }));
        ASSERT_TRUE(world.until([&] { return b.packets.size() == 2 && a.pending() == 0; }));
        ASSERT_EQ(b.written_bytes[77], size);
        ASSERT_EQ(target, source);
        ASSERT_EQ(b.packets[0].bytes, pattern(50, 1));
        ASSERT_EQ(b.packets[1].bytes, pattern(60, 2));
      }
    }
  }
}

TEST_F(Tcp, BulkAtAnOffsetAndBulkThatNobodyWants) {
  small_buffers();
  open_and_join();
  Bytes target(100000, std::byte{9});
  b.expect_bulk(5, cut(target, 4000));
  const Bytes part = pattern(30000, 3);
  ASSERT_NE(a.bulk(1, 5, 50000, part), Status::full);
  ASSERT_TRUE(world.until([&] { return a.bulk(1, 6, 0, pattern(200000, 4)) != Status::full; }));  // key 6 is unknown
  ASSERT_TRUE(world.until([&] { return a.send(1, pattern(100, 5)) != Status::full; }));
  ASSERT_TRUE(world.until([&] { return b.packets.size() == 1; }));
  EXPECT_EQ(b.packets[0].bytes, pattern(100, 5));
  EXPECT_EQ(b.written_bytes[5], part.size());
  EXPECT_EQ(b.written_bytes.count(6), 0u);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), target.begin() + 50000));
  EXPECT_EQ(target[49999], std::byte{9});
  EXPECT_EQ(target[80000], std::byte{9});
}

TEST_F(Tcp, APacketThatIsNotTakenIsPresentedAgain) {
  open_and_join();
  int retries = 5;
  b.on_packet = [&](Rank, std::span<const std::byte>) { return retries-- > 0 ? Take::retry : Take::taken; };
  for (int i = 0; i < 3; ++i) ASSERT_EQ(a.send(1, pattern(100, static_cast<std::uint64_t>(i))), Status::ok);
  expect_arrived(b, 3, 100);
  EXPECT_EQ(b.presented, 8u);
  retries = 1;
  ASSERT_EQ(a.send(1, pattern(10, 0)), Status::ok);
  const auto before = b.presented;
  ASSERT_TRUE(world.until([&] { return b.presented > before; }));
  EXPECT_FALSE(b.driver->arm() && b.packets.size() == 3) << "a packet waits: the engine must poll";
}

TEST_F(Tcp, APacketThatTheEngineRejectsClosesThePeerSilently) {
  open_and_join();
  b.on_packet = [](Rank, std::span<const std::byte>) { return Take::rejected; };
  ASSERT_EQ(a.send(1, pattern(100, 0)), Status::ok);
  ASSERT_EQ(a.send(1, pattern(100, 1)), Status::ok);
  ASSERT_TRUE(world.until([&] { return a.failures.count(1) == 1; }));
  EXPECT_EQ(b.presented, 1u);
  EXPECT_EQ(b.send(0, pattern(1, 1)), Status::failed);
}

TEST_F(Tcp, TheBudgetIsKept) {
  open_and_join();
  for (int i = 0; i < 50; ++i) ASSERT_EQ(a.send(1, pattern(10, static_cast<std::uint64_t>(i))), Status::ok);
  std::size_t seen = 0;
  ASSERT_TRUE(world.until([&] {
    b.poll(3);
    EXPECT_LE(b.packets.size(), seen + 3 + 64);  // until() itself polls with 64
    seen = b.packets.size();
    return seen == 50;
  }));
  expect_arrived(b, 50, 10);
}

TEST_F(Tcp, TheDescriptorIsReadableExactlyWhenThereIsWork) {
  open_and_join();
  ASSERT_TRUE(world.until([&] { return world.poll() == 0 && b.driver->arm(); }));
  pollfd one = {b.driver->descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&one, 1, 0), 0);
  ASSERT_EQ(a.send(1, pattern(10, 1)), Status::ok);
  EXPECT_EQ(::poll(&one, 1, 10000), 1);
  b.driver->disarm();
  EXPECT_FALSE(b.driver->arm()) << "something is there: poll first";
  while (b.packets.empty()) b.poll();
  ASSERT_TRUE(world.until([&] { return b.driver->arm(); }));
  a.close();
  EXPECT_EQ(::poll(&one, 1, 10000), 1);
}

TEST_F(Tcp, AStuckSenderIsWokenByRoom) {
  small_buffers();
  open_and_join();
  fill(1000);
  for (int i = 0; i < 20; ++i) a.poll();
  ASSERT_TRUE(a.driver->arm()) << "nothing to do before the peer reads";
  pollfd one = {a.driver->descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&one, 1, 0), 0);
  for (int i = 0; i < 1000 && ::poll(&one, 1, 0) == 0; ++i) b.poll();
  EXPECT_EQ(::poll(&one, 1, 10000), 1);
}

/// Descriptors in the epoll set of a driver.
int watched_by(const Node& node) {
  std::ifstream info("/proc/self/fdinfo/" + std::to_string(node.driver->descriptor()));
  int count = 0;
  for (std::string line; std::getline(info, line);) count += line.starts_with("tfd:") ? 1 : 0;
  return count;
}

void poll_long(Node& node) {
  for (int i = 0; i < 3000; ++i) node.poll();
}

// Otherwise each arrival would have its sender's kernel notify an epoll set that no thread waits for.
TEST_F(Tcp, WhoPollsOnLeavesTheEpollSetUntilItSleeps) {
  open_and_join();
  const int at_first = watched_by(b);
  poll_long(b);
  EXPECT_EQ(watched_by(b), at_first - 1);
  ASSERT_EQ(a.send(1, pattern(10, 0)), Status::ok);
  pollfd one = {b.driver->descriptor(), POLLIN, 0};
  EXPECT_TRUE(!b.driver->arm() || ::poll(&one, 1, 10000) == 1) << "what came before";
  b.driver->disarm();
  expect_arrived(b, 1, 10);
  ASSERT_TRUE(world.until([&] { return world.poll() == 0 && b.driver->arm(); }));
  EXPECT_EQ(watched_by(b), at_first);
  EXPECT_EQ(::poll(&one, 1, 0), 0);
  ASSERT_EQ(a.send(1, pattern(10, 1)), Status::ok);
  EXPECT_EQ(::poll(&one, 1, 10000), 1) << "what comes after";
  poll_long(b);
  EXPECT_EQ(watched_by(b), at_first - 1) << "again";
  poll_long(a);
  b.close();
  EXPECT_TRUE(world.until([&] { return a.failures.count(1) == 1; })) << "the end of a stream that is not watched";
}

// Of many connections only those are read that epoll names.
TEST_F(Tcp, WhoGetsManyLinksIsWatchedAgain) {
  World of_six(tcp_factory, 6);
  of_six.open();
  of_six.join(0, 1);
  poll_long(of_six[0]);
  for (Rank rank = 2; rank < 6; ++rank) of_six.join(0, rank);
  poll_long(of_six[0]);
  ASSERT_EQ(of_six[1].send(0, pattern(10, 0)), Status::ok);
  EXPECT_TRUE(of_six.until([&] { return of_six[0].packets.size() == 1; }));
}

TEST_F(Tcp, AStuckSenderThatPollsOnIsToldOfRoom) {
  small_buffers();
  open_and_join();
  const int at_first = watched_by(a);
  poll_long(a);
  EXPECT_EQ(watched_by(a), at_first - 1);
  int sent = 0;
  do {  // until the kernel finds no more room by itself
    a.ready_ranks.clear();
    sent = fill(1000, sent);
    poll_long(a);
  } while (!a.ready_ranks.empty());
  EXPECT_EQ(watched_by(a), at_first) << "as long as it waits for room";
  ASSERT_TRUE(world.until([&] { return !a.ready_ranks.empty(); }));
  expect_arrived(b, sent, 1000);
}

// A flood of messages does not keep new connections out, though a poll that finds a message checks for nothing else.
TEST_F(Tcp, ANewPeerConnectsThoughEachPollFindsAMessage) {
  World of_three(tcp_factory, 3);
  of_three.open();
  of_three.join(0, 1);
  Node& from = of_three[0];
  Node& busy = of_three[1];
  Node& newcomer = of_three[2];
  ASSERT_NE(newcomer.driver->connect(1, busy.address), Status::failed);
  for (int i = 0; i < 30000 && newcomer.up.count(1) == 0; ++i) {
    while (from.send(1, pattern(10, 0)) != Status::ok) from.poll();
    busy.poll(1);
    newcomer.poll();
  }
  EXPECT_EQ(newcomer.up.count(1), 1u);
}

TEST_F(Tcp, FramesByteByByte) {
  ASSERT_EQ(a.open(), Status::ok);
  Bytes target(700);
  a.expect_bulk(3, cut(target, 90));
  FalsePeer peer(a);
  Bytes stream;
  for (const Bytes& one : {frame(Kind::packet, 50, pattern(50, 1)), frame(Kind::bulk, 700, pattern(700, 2), 3, 0),
                           frame(Kind::packet, 9, pattern(9, 3))}) {
    stream.insert(stream.end(), one.begin(), one.end());
  }
  for (const std::byte& byte : stream) peer.send(&byte, 1);
  ASSERT_TRUE(world.until([&] { return a.poll(), a.packets.size() == 2; }));
  EXPECT_EQ(a.packets[0].bytes, pattern(50, 1));
  EXPECT_EQ(a.packets[1].bytes, pattern(9, 3));
  EXPECT_EQ(target, pattern(700, 2));
}

TEST_F(Tcp, CloseSendsWhatWasTaken) {
  open_and_join();
  const std::size_t size = 3 << 20;
  Bytes target(size);
  b.expect_bulk(1, cut(target, size));
  const Bytes source = pattern(size, 1);
  ASSERT_EQ(a.bulk(1, 1, 0, source), Status::pending);
  std::thread reader([&] {  // the peer reads while we close; no other thread touches b meanwhile
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(200);
    while (b.failures.empty() && std::chrono::steady_clock::now() < end) b.poll();
  });
  a.close();
  reader.join();
  EXPECT_EQ(b.written_bytes[1], size);
  EXPECT_EQ(target, source);
}

TEST_F(Tcp, CloseDoesNotWaitForAPeerThatDoesNotRead) {
  open_and_join();
  ASSERT_EQ(a.bulk(1, 1, 0, pattern(30 << 20, 1)), Status::pending);
  a.close();  // returns: that is the test
  ASSERT_TRUE(world.until([&] { return b.failures.count(0) == 1; }));
  EXPECT_NE(b.failures[0].second.find("middle of a frame"), std::string::npos) << b.failures[0].second;
}

}  // namespace
}  // namespace canele::drivers::tcp

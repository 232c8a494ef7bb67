// SPDX-License-Identifier: BSD-3-Clause
//
// Tests of the ofi driver's traffic: sizes around every limit, order, back-pressure, bulk, copies, sleeping.
//
// One thread. See ofi_fixture.hpp. A provider that is not installed is skipped, with the reason.
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <random>

#include "tests/unit/ofi/ofi_fixture.hpp"

namespace canele::drivers::ofi {
namespace {

class OfiTraffic : public Ofi {};
CANELE_OFI_PROVIDERS(OfiTraffic);

/// Sets the option for all sockets of this process, and for those that its listeners accept from now on.
void set_buffers(int option, int size) {
  for (int fd = 3; fd < 1024; ++fd) ::setsockopt(fd, SOL_SOCKET, option, &size, sizeof size);
}

TEST_P(OfiTraffic, DeclaresWhatItCanDo) {
  world.open();
  const Capabilities& can = a.driver->capabilities();
  EXPECT_EQ(can.name, "ofi");
  EXPECT_TRUE(can.bulk_stream && can.reaches_local && can.get && can.put);
  EXPECT_FALSE(can.memory_only || can.reserves || can.reaches_self || can.rma_any_thread);
  EXPECT_EQ(can.detects_failure, std::string(GetParam()) == "tcp;ofi_rxm");
  EXPECT_FALSE(can.reaches_remote) << "loopback and shm end at this host";
  EXPECT_GE(can.max_inline, 48u);
  EXPECT_EQ(can.wake_up, std::string(GetParam()) == "tcp;ofi_rxm" ? WakeUp::descriptor : WakeUp::none);
  EXPECT_LE(a.address.size(), 512u);
}

TEST_P(OfiTraffic, SizesAroundEveryLimitArriveInOrder) {
  open_and_join();
  const Capabilities& can = a.driver->capabilities();
  std::vector<std::size_t> sizes;
  for (const std::size_t limit : {std::size_t{1}, std::size_t{48}, can.max_inline, std::size_t{1024},
                                  std::size_t{4096} - head_size, can.max_packet / 2, can.max_packet}) {
    for (const std::size_t size : {limit - 1, limit, limit + 1}) {
      if (size > 0 && size <= can.max_packet) sizes.push_back(size);
    }
  }
  std::size_t sent = 0;
  for (const int pieces : {1, 2, 7, 300}) {
    for (const std::size_t size : sizes) {
      if (size < static_cast<std::size_t>(pieces)) continue;
      while (a.send(1, pattern(size, size), pieces) == Status::full) world.poll();
      ++sent;
      ASSERT_TRUE(world.until([&] { return b.packets.size() == sent; })) << size << " in " << pieces;
      ASSERT_EQ(b.packets.back().bytes, pattern(size, size)) << size << " in " << pieces;
      ASSERT_EQ(b.packets.back().from, 0);
    }
  }
}

TEST_P(OfiTraffic, InlineSendsOfEverySize) {
  open_and_join();
  const std::size_t most = a.driver->capabilities().max_inline;
  for (std::size_t size = 1; size <= most; ++size) {
    Bytes bytes = pattern(size, size);
    const std::size_t head = size / 3;
    Status status;
    do {
      status = a.driver->send_inline(1, bytes.data(), head, bytes.data() + head, size - head);
      world.poll();
    } while (status == Status::full);
    ASSERT_EQ(status, Status::ok);
    std::fill(bytes.begin(), bytes.end(), std::byte{0xee});  // the memory is ours again
  }
  ASSERT_TRUE(world.until([&] { return b.packets.size() == most; }));
  for (std::size_t size = 1; size <= most; ++size) ASSERT_EQ(b.packets[size - 1].bytes, pattern(size, size));
}

TEST_P(OfiTraffic, FullThenReadyAndNothingIsLost) {
  open_and_join();
  for (int round = 0; round < 3; ++round) {
    const std::size_t size = round == 0 ? 20 : 4000;
    const int sent = fill(size);
    ASSERT_GT(sent, 0);
    ASSERT_LE(sent, unacked_limit);
    EXPECT_TRUE(a.ready_ranks.empty());
    ASSERT_TRUE(world.until([&] { return b.packets.size() == static_cast<std::size_t>(sent); }));
    for (int i = 0; i < sent; ++i) {
      ASSERT_EQ(b.packets[static_cast<std::size_t>(i)].bytes, pattern(size, static_cast<std::uint64_t>(i)));
    }
    ASSERT_TRUE(world.until([&] { return !a.ready_ranks.empty(); }));
    EXPECT_EQ(a.ready_ranks, std::vector<Rank>{1});
    a.ready_ranks.clear();
    b.packets.clear();
  }
}

TEST_P(OfiTraffic, AReceiverThatWantsNothingNowStopsTheSender) {
  open_and_join();
  b.on_packet = [](Rank, std::span<const std::byte>) { return Take::retry; };
  int sent = fill(100);
  for (int i = 0; i < 2000; ++i) world.poll();
  sent += a.ready_ranks.empty() ? 0 : fill(100);
  EXPECT_LE(sent, unacked_limit) << "what the receiver must keep is bounded";
  EXPECT_TRUE(b.packets.empty());
  b.on_packet = nullptr;
  ASSERT_TRUE(world.until([&] { return b.packets.size() == static_cast<std::size_t>(sent); }));
  for (int i = 0; i < sent; ++i) {
    ASSERT_EQ(b.packets[static_cast<std::size_t>(i)].bytes, pattern(100, static_cast<std::uint64_t>(i)));
  }
  EXPECT_TRUE(world.until([&] { return !a.ready_ranks.empty(); }));
}

TEST_P(OfiTraffic, PacketsAndBulkBothWaysInOrder) {
  open_and_join();
  std::mt19937_64 random(7);
  const std::size_t count = std::string(GetParam()) == "udp;ofi_rxd" ? 300 : 3000;
  const std::size_t most_bulk = a.driver->capabilities().max_bulk;
  struct Side {
    std::size_t sent = 0;
    std::uint64_t bulk_sent = 0;
    std::vector<Bytes> packets;
    std::vector<std::uint64_t> bulk_before;  // bytes of bulk sent before each packet
    std::vector<std::uint64_t> bulk_seen;    // and received
    Bytes source = pattern(200'000, 5), sink = Bytes(200'000);
  } sides[2];
  for (const Rank rank : {0, 1}) {
    Side& other = sides[1 - rank];
    world[rank].expect_bulk(9, cut(other.sink, 777));
    world[rank].on_packet = [&, rank](Rank, std::span<const std::byte>) {
      if (random() % 16 == 0) return Take::retry;
      other.bulk_seen.push_back(world[rank].written_bytes[9]);
      return Take::taken;
    };
  }
  const auto step = [&](Rank rank) {
    Side& side = sides[rank];
    if (side.sent == count) return;
    if (random() % 3 == 0 && side.bulk_sent < side.source.size()) {
      const std::size_t size = std::min<std::size_t>(1 + random() % most_bulk, side.source.size() - side.bulk_sent);
      const auto begin = side.source.begin() + static_cast<std::ptrdiff_t>(side.bulk_sent);
      const Bytes part(begin, begin + static_cast<std::ptrdiff_t>(size));
      if (world[rank].bulk(1 - rank, 9, side.bulk_sent, part, 1000) == Status::ok) side.bulk_sent += size;
      return;
    }
    const std::size_t most = a.driver->capabilities().max_packet;
    Bytes bytes = pattern(1 + random() % (random() % 8 == 0 ? most : 200), side.sent);
    if (world[rank].send(1 - rank, bytes, 1 + static_cast<int>(random() % 2)) == Status::full) return;
    side.packets.push_back(std::move(bytes));
    side.bulk_before.push_back(side.bulk_sent);
    ++side.sent;
  };
  ASSERT_TRUE(world.until(
      [&] {
        for (const Rank rank : {0, 1}) {
          step(rank);
          if (random() % 4 == 0) world[rank].poll(1 + static_cast<int>(random() % 3));
        }
        return a.packets.size() == count && b.packets.size() == count;
      },
      std::chrono::seconds(1000)));
  for (const Rank rank : {0, 1}) {
    const Side& side = sides[rank];
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(world[1 - rank].packets[i].bytes, side.packets[i]) << i;
    ASSERT_EQ(side.bulk_seen, side.bulk_before) << "bulk is in order with packets";
    EXPECT_TRUE(std::equal(side.sink.begin(), side.sink.begin() + static_cast<std::ptrdiff_t>(side.bulk_before.back()),
                           side.source.begin()));
  }
}

TEST_P(OfiTraffic, BuffersForOneMessageOrMany) {
  for (const char* many : {"off", "on"}) {  // "on" is sound with one sender
    World pair(ofi_factory);
    adjust(pair);
    for (auto& node : pair.nodes) node->context.settings["EXPERT_OFI_MULTI_RECV"] = many;
    pair.open();
    pair.join(0, 1);
    Node &from = pair[0], &to = pair[1];
    const std::size_t count = 1000;  // 2 MB: all buffers come back more than once
    std::size_t sent = 0;
    ASSERT_TRUE(pair.until([&] {
      if (sent < count && from.send(1, pattern(1 + sent * 31 % 4000, sent)) == Status::ok) ++sent;
      return to.packets.size() == count;
    })) << many;
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(to.packets[i].bytes, pattern(1 + i * 31 % 4000, i));
    const auto opened = [](const auto& line) { return line.second.find("multi-receive") != std::string::npos; };
    EXPECT_EQ(std::any_of(to.context.logged.begin(), to.context.logged.end(), opened), many == std::string_view("on"));
  }
}

/// rxm 1.17 returns a multi-receive buffer when its end has been used, although a message in it is only half received.
TEST_P(OfiTraffic, AMessageThatStopsHalfWayKeepsItsMemory) {
  World three(ofi_factory, 3);
  adjust(three);
  three.open();
  three.join(2, 0);
  // With a small window and the least send buffer, the kernel takes half of a long message, and no other one.
  set_buffers(SO_RCVBUF, 16 * 1024);
  three.join(1, 0);
  set_buffers(SO_SNDBUF, 1);
  Node &receiver = three[0], &halting = three[1], &busy = three[2];
  const std::size_t size = halting.driver->capabilities().max_packet, enough = 256;  // four times all receive buffers
  std::size_t sent[3] = {}, seen[3] = {};
  const auto send = [&](Node& node, Rank rank) {
    const bool gone = node.send(0, pattern(size, sent[rank] * 3 + static_cast<std::size_t>(rank))) == Status::ok;
    sent[rank] += gone;
    return gone;
  };
  receiver.on_packet = [&](Rank from, std::span<const std::byte> bytes) {
    const Bytes expected = pattern(size, seen[from]++ * 3 + static_cast<std::size_t>(from));
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), expected.begin(), expected.end())) << from;
    return Take::taken;
  };
  while (send(halting, 1)) continue;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(300);
  while (seen[2] < enough && std::chrono::steady_clock::now() < end) {  // rank 1 is not polled
    if (sent[2] < enough) send(busy, 2);
    busy.poll();
    receiver.poll();
  }
  ASSERT_EQ(seen[2], enough);
  if (std::string(GetParam()) == "tcp;ofi_rxm") {
    EXPECT_LT(seen[1], sent[1]) << "it has not stopped";
  }
  EXPECT_TRUE(three.until([&] { return seen[1] == sent[1]; })) << seen[1] << " of " << sent[1];
  EXPECT_TRUE(receiver.failures.empty());
}

TEST_P(OfiTraffic, BulkThatNobodyWantsIsDroppedAndOthersPass) {
  open_and_join();
  Bytes sink(4000);
  b.expect_bulk(2, cut(sink, 4));
  b.most_pieces = 3;
  ASSERT_EQ(a.bulk(1, 1, 0, pattern(4000, 1)), Status::ok);
  ASSERT_EQ(a.bulk(1, 2, 0, pattern(4000, 2)), Status::ok);
  ASSERT_TRUE(world.until([&] { return b.written_bytes[2] == 4000; }));
  EXPECT_EQ(sink, pattern(4000, 2));
  EXPECT_EQ(b.written_bytes.count(1), 0u);
}

}  // namespace
}  // namespace canele::drivers::ofi

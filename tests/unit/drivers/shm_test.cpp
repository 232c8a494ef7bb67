// SPDX-License-Identifier: BSD-3-Clause
//
// Tests of the shared-memory driver in one process: several instances, and hostile neighbours.
//
// One thread; tests with more say so. shm_process_test.cpp has the tests with real processes. Two instances of one
// process connect, share memory and attach to each other exactly as two processes do.
#include "drivers/shm/shm.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <deque>
#include <random>
#include <thread>

#include "conformance/driver_kit.hpp"
#include "drivers/shm/cma.hpp"
#include "drivers/shm/fd_exchange.hpp"
#include "drivers/shm/ring.hpp"

namespace canele::drivers {
namespace {

using conformance::Bytes;
using conformance::Node;
using conformance::pattern;
using conformance::World;

bool readable(int fd) {
  pollfd look{fd, POLLIN, 0};
  return ::poll(&look, 1, 0) == 1;
}

class Shm : public testing::Test {
 protected:
  void open(Rank size = 2) {
    world = std::make_unique<World>(shm_factory, size);
    world->open();
  }
  void join(Rank size = 2) {
    open(size);
    for (Rank rank = 1; rank < size; ++rank) world->join(0, rank);
  }
  Node& operator[](Rank rank) { return (*world)[rank]; }
  Node& node(Rank rank) { return (*world)[rank]; }
  Driver& driver(Rank rank) { return *(*world)[rank].driver; }

  std::unique_ptr<World> world;
};

/// Memory that has not been touched.
class Fresh {
 public:
  static constexpr std::size_t page = 4096, pages = 100, size = page * pages;
  Fresh() {
    at_ = static_cast<char*>(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::madvise(at_, size, MADV_NOHUGEPAGE);
  }
  ~Fresh() { ::munmap(at_, size); }
  Fresh(const Fresh&) = delete;
  Fresh& operator=(const Fresh&) = delete;

  iovec piece(std::size_t from, std::size_t bytes) { return {at_ + from, bytes}; }
  /// Returns the number of pages that exist.
  int made() const {
    unsigned char there[pages];
    EXPECT_EQ(::mincore(at_, size, there), 0);
    return static_cast<int>(std::count_if(there, there + pages, [](unsigned char one) { return (one & 1) != 0; }));
  }

 private:
  char* at_;
};

TEST(FreshPages, AreMadeBeforeTheCopy) {
  if (::sysconf(_SC_PAGESIZE) != static_cast<long>(Fresh::page)) GTEST_SKIP() << "pages are larger here";
  shm::FreshPages pages;
  Fresh memory;
  const iovec two[] = {memory.piece(100, 20 * Fresh::page), memory.piece(50 * Fresh::page + 1, 30 * Fresh::page - 2)};
  pages.make(two, 2);
  EXPECT_EQ(memory.made(), 21 + 30) << "of both pieces, with the pages that they end in";
  Fresh other;
  const iovec little = other.piece(0, 8 * Fresh::page);
  pages.make(&little, 1);
  EXPECT_EQ(other.made(), 0) << "a few are not worth a call";
}

TEST(FreshPages, AreNotAskedForWhereMemoryIsUsedAgain) {
  if (::sysconf(_SC_PAGESIZE) != static_cast<long>(Fresh::page)) GTEST_SKIP() << "pages are larger here";
  shm::FreshPages pages;
  Fresh memory, other;
  const iovec all = memory.piece(0, Fresh::size), more = other.piece(0, Fresh::size);
  pages.make(&all, 1);
  pages.copied(Fresh::size, 1);
  pages.make(&all, 1);  // they exist
  pages.copied(Fresh::size, 1);
  pages.make(&more, 1);
  EXPECT_EQ(other.made(), 0);
  pages.copied(Fresh::size, Fresh::size);  // 1 GB/s: the copy has created the pages
  pages.make(&more, 1);
  EXPECT_EQ(other.made(), static_cast<int>(Fresh::pages));
}

TEST(FreshPages, MemoryThatIsNotThereIsTheCopysAffair) {
  shm::FreshPages pages;
  void* const gone = ::mmap(nullptr, Fresh::size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ::munmap(gone, Fresh::size);
  const iovec piece{gone, Fresh::size};
  pages.make(&piece, 1);
}

TEST_F(Shm, DeclaresWhatItIs) {
  EXPECT_EQ(shm_factory.unavailable(), "");
  open();
  const Capabilities& can = driver(0).capabilities();
  EXPECT_EQ(can.name, "shm");
  EXPECT_TRUE(can.memory_only && can.reserves && can.bulk_stream && can.reaches_local && can.detects_failure);
  EXPECT_FALSE(can.reaches_self || can.reaches_remote);
  EXPECT_GE(can.max_inline, 48u);
  EXPECT_EQ(can.wake_up, WakeUp::doorbell);
  EXPECT_GE(driver(0).descriptor(), 0);
}

TEST_F(Shm, EveryOrderOfConnectingGivesOneConnection) {
  for (int order = 0; order < 6; ++order) {
    open();
    if (order != 1) world->connect(0, 1);
    for (int i = 0; i < order; ++i) node(order % 2).poll();
    if (order != 0) world->connect(1, 0);
    ASSERT_TRUE(world->until([&] { return node(0).up.count(1) == 1 && node(1).up.count(0) == 1; })) << order;
    EXPECT_EQ(node(0).send(1, pattern(10, 1)), Status::ok);
    EXPECT_EQ(node(1).send(0, pattern(10, 2)), Status::ok);
    ASSERT_TRUE(world->until([&] { return node(0).packets.size() == 1 && node(1).packets.size() == 1; }));
    for (int i = 0; i < 3000; ++i) world->poll();
    EXPECT_TRUE(node(0).failures.empty() && node(1).failures.empty());
  }
}

TEST_F(Shm, AllConnectToAllAtOnce) {
  constexpr Rank size = 8;
  open(size);
  for (Rank from = 0; from < size; ++from) {
    for (Rank to = 0; to < size; ++to) {
      if (from != to) world->connect(from, to);
    }
  }
  for (Rank rank = 0; rank < size; ++rank) {
    ASSERT_TRUE(world->until([&] { return node(rank).up.size() == size - 1; }));
  }
  for (Rank from = 0; from < size; ++from) {
    for (Rank to = 0; to < size; ++to) {
      if (from != to) node(from).send(to, pattern(100, static_cast<std::uint64_t>(from)));
    }
  }
  for (Rank rank = 0; rank < size; ++rank) {
    ASSERT_TRUE(world->until([&] { return node(rank).packets.size() == size - 1; }));
    for (const auto& packet : node(rank).packets) {
      EXPECT_EQ(packet.bytes, pattern(100, static_cast<std::uint64_t>(packet.from)));
    }
    EXPECT_TRUE(node(rank).failures.empty());
  }
}

TEST_F(Shm, EverySizeEveryWay) {
  join();
  const std::size_t most = driver(0).capabilities().max_packet;
  std::uint64_t seed = 0;
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{8}, std::size_t{55}, std::size_t{56}, std::size_t{57}, std::size_t{119},
        std::size_t{120}, std::size_t{121}, std::size_t{128}, std::size_t{129}, most - 1, most}) {
    const Bytes bytes = pattern(size, ++seed);
    std::size_t expect = node(1).packets.size();
    if (size <= driver(0).capabilities().max_inline) {
      for (const std::size_t head : {std::size_t{0}, size / 2, size}) {
        ASSERT_EQ(driver(0).send_inline(1, bytes.data(), head, bytes.data() + head, size - head), Status::ok);
        ++expect;
      }
    }
    ASSERT_EQ(node(0).send(1, bytes), Status::ok);
    ASSERT_EQ(node(0).send(1, bytes, 3), Status::ok);
    expect += 2;
    ASSERT_TRUE(world->until([&] { return node(1).packets.size() == expect; }));
    const auto room = driver(0).reserve(1, std::min(most, size + 100));
    ASSERT_GE(room.size(), size);
    std::memcpy(room.data(), bytes.data(), size);
    driver(0).commit(1, size);
    ++expect;
    ASSERT_TRUE(world->until([&] { return node(1).packets.size() == expect; }));
    for (std::size_t i = expect - 3; i < expect; ++i) EXPECT_EQ(node(1).packets[i].bytes, bytes);
  }
  ASSERT_FALSE(driver(0).reserve(1, most).empty());
  driver(0).commit(1, 0);
  for (int i = 0; i < 10; ++i) world->poll();
  const std::size_t all = node(1).packets.size();
  ASSERT_FALSE(driver(0).reserve(1, 8).empty());
  driver(0).commit(1, 0);
  for (int i = 0; i < 10; ++i) world->poll();
  EXPECT_EQ(node(1).packets.size(), all);
}

TEST_F(Shm, OrderHoldsWhateverTheSizeAndTheWay) {
  join();
  std::mt19937_64 random(3);
  std::uint64_t sent = 0, received = 0;
  node(1).on_packet = [&](Rank from, std::span<const std::byte> bytes) {
    if (random() % 8 == 0) return Take::retry;
    EXPECT_EQ(from, 0);
    EXPECT_TRUE(Bytes(bytes.begin(), bytes.end()) == pattern(bytes.size(), received)) << received;
    ++received;
    return Take::taken;
  };
  while (received < 20000) {
    const std::size_t size = random() % 3 == 0 ? 1 + random() % 16384 : 1 + random() % 80;
    const Bytes bytes = pattern(size, sent);
    Status status;
    if (size <= driver(0).capabilities().max_inline && random() % 2 == 0) {
      status = driver(0).send_inline(1, bytes.data(), size / 3, bytes.data() + size / 3, size - size / 3);
    } else if (random() % 2 == 0) {
      const auto room = driver(0).reserve(1, std::min<std::size_t>(16384, size + random() % 64));
      status = room.empty() ? Status::full : Status::ok;
      if (!room.empty()) std::memcpy(room.data(), bytes.data(), size), driver(0).commit(1, size);
    } else {
      status = node(0).send(1, bytes, 1 + static_cast<int>(random() % 3));
    }
    if (status == Status::ok) ++sent;
    if (status == Status::full || random() % 8 == 0) world->poll();
    node(1).packets.clear();
  }
  EXPECT_GT(driver(0).counters.full, 0u);
}

TEST_F(Shm, FullIsFollowedByOneReady) {
  join();
  for (const std::size_t size : {std::size_t{8}, std::size_t{16384}}) {
    node(0).ready_ranks.clear();
    std::size_t sent = node(1).packets.size();
    while (node(0).send(1, pattern(size, sent)) == Status::ok) ++sent;
    EXPECT_EQ(node(0).send(1, pattern(size, sent)), Status::full);
    for (int i = 0; i < 100; ++i) node(0).poll();
    EXPECT_TRUE(node(0).ready_ranks.empty());
    ASSERT_TRUE(world->until([&] { return node(1).packets.size() == sent; }));
    for (int i = 0; i < 100; ++i) world->poll();
    EXPECT_EQ(node(0).ready_ranks, std::vector<Rank>{1});
    ASSERT_EQ(node(0).send(1, pattern(size, sent)), Status::ok);
    ASSERT_TRUE(world->until([&] { return node(1).packets.size() == sent + 1; }));
  }
}

TEST_F(Shm, RejectedPeerIsClosedWithoutAWord) {
  join();
  node(1).on_packet = [](Rank, std::span<const std::byte>) { return Take::rejected; };
  ASSERT_EQ(node(0).send(1, pattern(200, 1)), Status::ok);
  ASSERT_EQ(node(0).send(1, pattern(200, 2)), Status::ok);
  ASSERT_TRUE(world->until([&] { return node(0).failures.count(1) == 1; }));
  EXPECT_EQ(node(1).presented, 1u);
  EXPECT_EQ(node(1).send(0, pattern(8, 1)), Status::failed);
}

TEST_F(Shm, BudgetBoundsAPoll) {
  join(3);
  for (int i = 0; i < 50; ++i) ASSERT_EQ(node(0).send(1, pattern(8, 1)), Status::ok);
  EXPECT_EQ(node(1).poll(5), 5);
  EXPECT_EQ(node(1).packets.size(), 5u);
  ASSERT_TRUE(world->until([&] { return node(1).packets.size() == 50; }));
  EXPECT_EQ(node(1).poll(), 0);
}

TEST_F(Shm, DoorbellRingsOncePerSleep) {
  for (const char* membarrier : {"auto", "off"}) {
    world = std::make_unique<World>(shm_factory, 2);
    node(1).context.settings["EXPERT_SHM_MEMBARRIER"] = membarrier;
    world->open();
    world->join(0, 1);
    EXPECT_FALSE(driver(0).wants_wake(1));
    ASSERT_EQ(node(0).send(1, pattern(8, 1)), Status::ok);
    EXPECT_FALSE(driver(0).wants_wake(1)) << "it is awake";
    EXPECT_FALSE(driver(1).arm()) << "something is there";
    ASSERT_EQ(node(1).poll(), 1);
    ASSERT_TRUE(driver(1).arm());
    EXPECT_FALSE(readable(driver(1).descriptor()));
    ASSERT_EQ(node(0).send(1, pattern(8, 1)), Status::ok);
    ASSERT_EQ(node(0).send(1, pattern(8, 1)), Status::ok);
    EXPECT_TRUE(driver(0).wants_wake(1));
    EXPECT_FALSE(driver(0).wants_wake(1));
    driver(0).wake(1);
    EXPECT_TRUE(readable(driver(1).descriptor()));
    ASSERT_EQ(node(0).send(1, pattern(8, 1)), Status::ok);
    EXPECT_FALSE(driver(0).wants_wake(1)) << "once per sleep";
    driver(1).disarm();
    EXPECT_FALSE(readable(driver(1).descriptor()));
    ASSERT_TRUE(world->until([&] { return node(1).packets.size() == 4; }));
    ASSERT_TRUE(driver(1).arm());
    ASSERT_EQ(driver(0).send_inline(1, "x", 1, nullptr, 0), Status::ok);
    EXPECT_TRUE(driver(0).wants_wake(1)) << "a new sleep";
    driver(1).disarm();
  }
}

TEST_F(Shm, ASenderAsleepForWantOfRoomIsWoken) {
  join();
  std::size_t sent = 0;
  while (node(0).send(1, pattern(4000, sent)) == Status::ok) ++sent;
  ASSERT_TRUE(driver(0).arm());
  EXPECT_FALSE(readable(driver(0).descriptor()));
  while (node(1).packets.size() < sent) node(1).poll();
  ASSERT_TRUE(readable(driver(0).descriptor()));
  driver(0).disarm();
  node(0).poll();
  EXPECT_EQ(node(0).ready_ranks, std::vector<Rank>{1});
}

TEST_F(Shm, ANewPeerWakesTheSleeper) {
  open();
  ASSERT_TRUE(driver(1).arm());
  ASSERT_EQ(world->connect(0, 1), Status::pending);
  EXPECT_TRUE(readable(driver(1).descriptor()));
  driver(1).disarm();
  ASSERT_TRUE(world->until([&] { return node(0).up.count(1) == 1 && node(1).up.count(0) == 1; }));
}

// ------------------------------------------------------------------------------------------------------- bulk

TEST_F(Shm, GetsRegisteredMemory) {
  join();
  ASSERT_TRUE(driver(0).capabilities().get) << "cross-memory attach is not allowed here";
  Bytes source = pattern(300000, 7);
  std::vector<iovec> pieces;
  for (std::size_t at = 0, i = 1; at < source.size(); ++i) {
    const std::size_t size = std::min(source.size() - at, i * 3001);
    pieces.push_back({source.data() + at, size});
    at += size;
  }
  ASSERT_LE(pieces.size(), 15u);
  MemoryKey rkey;
  ASSERT_EQ(driver(0).register_memory(1, drivers::RmaOp::get, pieces.data(), static_cast<int>(pieces.size()), &rkey),
            Status::ok);
  const std::span<const std::byte> bytes(rkey.bytes, rkey.size);
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    const std::size_t offset = random() % source.size();
    const std::size_t size = i == 0 ? source.size() - offset : 1 + random() % (source.size() - offset);
    Bytes target(size + 16, std::byte{0xab});
    Bytes into(size);
    const auto cut = conformance::cut(into, 1 + random() % 5000);
    ASSERT_EQ(
        driver(1).rma(0, drivers::RmaOp::get, bytes, offset, cut.data(), static_cast<int>(cut.size()), size, nullptr),
        Status::ok);
    ASSERT_EQ(std::memcmp(into.data(), source.data() + offset, size), 0);
    const iovec one{target.data(), target.size()};  // more room than asked: the rest stays
    ASSERT_EQ(driver(1).rma(0, drivers::RmaOp::get, bytes, offset, &one, 1, size, nullptr), Status::ok);
    ASSERT_EQ(std::memcmp(target.data(), source.data() + offset, size), 0);
    ASSERT_EQ(target[size], std::byte{0xab});
    std::ranges::copy(pattern(size, random()), into.begin());
    ASSERT_EQ(
        driver(1).rma(0, drivers::RmaOp::put, bytes, offset, cut.data(), static_cast<int>(cut.size()), size, nullptr),
        Status::ok);
    ASSERT_EQ(std::memcmp(into.data(), source.data() + offset, size), 0) << "put";
  }
  const std::vector<iovec> many(16, iovec{source.data(), 10});
  EXPECT_EQ(driver(0).register_memory(1, drivers::RmaOp::get, many.data(), 16, &rkey), Status::failed);
}

TEST_F(Shm, FailsForMalformedKeys) {
  join();
  Bytes source = pattern(1000, 7), target(1000);
  const iovec from{source.data(), source.size()}, to{target.data(), target.size()};
  MemoryKey rkey;
  ASSERT_EQ(driver(0).register_memory(1, drivers::RmaOp::get, &from, 1, &rkey), Status::ok);
  const std::span<const std::byte> good(rkey.bytes, rkey.size);
  const auto copy = [&](std::span<const std::byte> bytes, std::uint64_t offset, std::size_t size) {
    return driver(1).rma(0, drivers::RmaOp::get, bytes, offset, &to, 1, size, nullptr);
  };
  EXPECT_EQ(copy(good, 0, 1000), Status::ok);
  EXPECT_EQ(copy(good, 1, 1000), Status::failed);
  EXPECT_EQ(copy(good, ~std::uint64_t{0}, 2), Status::failed);
  EXPECT_EQ(copy(good.first(good.size() - 1), 0, 10), Status::failed);
  EXPECT_EQ(copy({}, 0, 10), Status::failed);
  std::mt19937_64 random(2);
  for (int i = 0; i < 20000; ++i) {
    Bytes bad(random() % MemoryKey::max_size);
    for (auto& byte : bad) byte = static_cast<std::byte>(random());
    if (bad.size() >= 8 && random() % 2 == 0) {
      const std::uint64_t count = bad.size() / 16;
      std::memcpy(bad.data(), &count, 8);
    }
    copy(bad, random() % 100, 1 + random() % 1000);  // any result, no crash
  }
  const iovec unmapped{reinterpret_cast<void*>(64), 100};
  ASSERT_EQ(driver(0).register_memory(1, drivers::RmaOp::get, &unmapped, 1, &rkey), Status::ok);
  EXPECT_EQ(copy({rkey.bytes, rkey.size}, 0, 100), Status::failed);
}

// One copy serves all peers: later changes to the pieces do not matter, and room is reused.
TEST_F(Shm, BroadcastSegmentIsReadByAllPeers) {
  world = std::make_unique<World>(shm_factory, 3);
  for (int rank = 0; rank < 3; ++rank) node(rank).context.settings["EXPERT_SHM_BROADCAST_SEGMENT"] = "on";
  world->open();
  world->join(0, 1);
  world->join(0, 2);
  const std::size_t longest = driver(0).capabilities().broadcast_segment;
  ASSERT_GE(longest, std::size_t{4} << 20);
  std::mt19937_64 random(3);
  std::deque<std::pair<MemoryKey, Bytes>> there;
  std::size_t full = 0;
  for (int i = 0; i < 300; ++i) {
    Bytes source = pattern(i % 50 == 0 ? longest : 1 + random() % (i % 2 == 0 ? 1000u : 900'000u), random());
    const Bytes right = source;
    const auto pieces = conformance::cut(source, 1 + source.size() / (1 + random() % 40));
    MemoryKey rkey;
    const Status put = driver(0).register_memory(drivers::all_peers, drivers::RmaOp::get, pieces.data(),
                                                 static_cast<int>(pieces.size()), &rkey);
    std::ranges::fill(source, std::byte{0xee});
    if (put == Status::ok) {
      there.emplace_back(rkey, right);
    } else {
      ASSERT_FALSE(there.empty());
      ++full;
    }
    while (there.size() > (put == Status::ok ? 12u : 0u)) {
      const auto& [bytes, content] = there.front();
      for (int peer = 1; peer < 3; ++peer) {
        const std::size_t offset = random() % content.size(), size = content.size() - offset;
        Bytes into(size);
        const iovec to{into.data(), size};
        ASSERT_EQ(driver(peer).rma(0, drivers::RmaOp::get, {bytes.bytes, bytes.size}, offset, &to, 1, size, nullptr),
                  Status::ok);
        ASSERT_EQ(std::memcmp(into.data(), content.data() + offset, size), 0);
        EXPECT_EQ(
            driver(peer).rma(0, drivers::RmaOp::get, {bytes.bytes, bytes.size}, offset + 1, &to, 1, size, nullptr),
            Status::failed);
      }
      driver(0).deregister(bytes.handle);
      there.pop_front();
    }
  }
  EXPECT_GT(full, 0u);
  MemoryKey rkey;
  Bytes too_long(longest + 1);
  const iovec piece{too_long.data(), too_long.size()};
  EXPECT_EQ(driver(0).register_memory(drivers::all_peers, drivers::RmaOp::get, &piece, 1, &rkey), Status::failed);
  const std::uint64_t wild[3] = {0x666c656873, ~std::uint64_t{0}, 100}, beyond[3] = {0x666c656873, 1 << 23, 1};
  Bytes into(100);
  const iovec to{into.data(), into.size()};
  for (const auto& words : {wild, beyond}) {
    EXPECT_EQ(driver(1).rma(0, drivers::RmaOp::get, std::as_bytes(std::span(words, 3)), 0, &to, 1, 1, nullptr),
              Status::failed);
  }
}

// Four threads get at once while the main thread sends and polls.
TEST_F(Shm, PullsFromSeveralThreads) {
  join();
  Bytes source = pattern(1 << 20, 9);
  const iovec from{source.data(), source.size()};
  MemoryKey rkey;
  ASSERT_EQ(driver(0).register_memory(1, drivers::RmaOp::get, &from, 1, &rkey), Status::ok);
  std::atomic<int> wrong{0}, running{4};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Bytes target(65536);
      for (std::size_t at = t * target.size(); at < source.size(); at += 4 * target.size()) {
        const iovec to{target.data(), target.size()};
        if (driver(1).rma(0, drivers::RmaOp::get, {rkey.bytes, rkey.size}, at, &to, 1, target.size(), nullptr) !=
            Status::ok)
          ++wrong;
        if (std::memcmp(target.data(), source.data() + at, target.size()) != 0) ++wrong;
        driver(1).wake(0);
      }
      --running;
    });
  }
  while (running > 0) {
    node(0).send(1, pattern(100, 1));
    world->poll();
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Shm, CmaCanBeSwitchedOff) {
  world = std::make_unique<World>(shm_factory, 2);
  node(0).context.settings["SHM_CMA"] = "off";
  world->open();
  world->join(0, 1);
  EXPECT_FALSE(driver(0).capabilities().get);
  ASSERT_TRUE(driver(1).capabilities().get);
  MemoryKey rkey;
  const iovec piece{&rkey, 8};
  EXPECT_EQ(driver(1).register_memory(0, drivers::RmaOp::get, &piece, 1, &rkey), Status::failed)
      << "rank 0 cannot read us";

  World other(shm_factory, 2);
  other[0].context.settings["SHM_CMA"] = "maybe";
  EXPECT_EQ(other[0].open(), Status::failed);
  EXPECT_NE(other[0].reason.find("CANELE_SHM_CMA=maybe"), std::string::npos) << other[0].reason;
}

TEST_F(Shm, StreamsBulkInOrderWithPackets) {
  join();
  const std::size_t most = driver(0).capabilities().max_bulk;
  const Bytes source = pattern(1000000, 5);
  Bytes target(source.size());
  node(1).expect_bulk(77, conformance::cut(target, 777));
  node(1).most_pieces = 5;
  for (std::size_t at = 0; at < source.size();) {
    const std::size_t size = std::min(most, source.size() - at);
    const Bytes piece(source.begin() + static_cast<std::ptrdiff_t>(at),
                      source.begin() + static_cast<std::ptrdiff_t>(at + size));
    const Status status = node(0).bulk(1, 77, at, piece, 1000);
    if (status == Status::ok) {
      at += size;
    } else {
      ASSERT_EQ(status, Status::full);
      world->poll();
    }
  }
  while (node(0).bulk(1, 78, 0, pattern(10, 1)) != Status::ok) world->poll();  // no rank wants it
  while (node(0).send(1, pattern(8, 4)) != Status::ok) world->poll();
  ASSERT_TRUE(world->until([&] { return node(1).packets.size() == 1; }));
  EXPECT_EQ(node(1).written_bytes[77], source.size()) << "bulk was overtaken";
  EXPECT_TRUE(target == source);
  EXPECT_EQ(node(1).written_bytes.count(78), 0u);
}

}  // namespace
}  // namespace canele::drivers

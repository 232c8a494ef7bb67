// SPDX-License-Identifier: BSD-3-Clause
//
// Tests of the shared-memory driver against unauthenticated peers, hostile peers and addresses of other places.
//
// One thread. The hostile peer (FakePeer) knows the secret: it passes the handshake, then sends wrong descriptors.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <random>

#include "conformance/driver_kit.hpp"
#include "drivers/net/accept_limiter.hpp"
#include "drivers/net/handshake.hpp"
#include "drivers/shm/broadcast_segment.hpp"
#include "drivers/shm/fd_exchange.hpp"
#include "drivers/shm/memory.hpp"
#include "drivers/shm/ring.hpp"
#include "drivers/shm/shm.hpp"
#include "tests/slowness.hpp"

namespace canele::drivers {
namespace {

using conformance::KitContext;
using conformance::Node;
using conformance::pattern;
using conformance::World;

/// Returns all channels of this process, each once per mapping.
std::vector<shm::Channel*> mapped_channels() {
  std::vector<shm::Channel*> found;
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  char line[512];
  while (maps != nullptr && std::fgets(line, sizeof line, maps) != nullptr) {
    unsigned long from = 0, to = 0;
    if (std::strstr(line, "memfd:canele") == nullptr || std::sscanf(line, "%lx-%lx", &from, &to) != 2) continue;
    if (to - from == sizeof(shm::Channel)) found.push_back(reinterpret_cast<shm::Channel*>(from));
  }
  if (maps != nullptr) std::fclose(maps);
  return found;
}

/// Speaks the protocol up to the fd_message, as rank 1 to rank 0 of a world of two.
struct FakePeer {
  KitContext context{1, 2};
  net::Party party{context, "shm"};
  shm::HandshakePayload payload;
  net::UniqueFd socket;

  /// Returns false if the handshake fails.
  bool join(Node& victim) {
    payload.layout = shm::layout_version;
    shm::AddressForm form;
    EXPECT_TRUE(shm::unpack_address(victim.address, &form));
    socket = shm::connect_to(form.name);
    EXPECT_TRUE(socket);
    auto handshake =
        net::Handshake::initiator(party, context, 0, 0, {reinterpret_cast<const std::byte*>(&payload), sizeof payload});
    for (int i = 0; i < 100000 && handshake.state() == net::Handshake::State::working; ++i) {
      handshake.step(socket.get());
      victim.poll();
    }
    return handshake.state() == net::Handshake::State::done;
  }
};

struct Gifts {
  net::UniqueFd channel, sleep_page;
  shm::Mapping channel_map, sleep_map;
  Gifts() {
    std::string reason;
    channel_map = shm::make_shared(sizeof(shm::Channel), shm::backed_size, true, &channel, &reason);
    sleep_map = shm::make_shared(shm::BroadcastSegment::file_size, sizeof(shm::SleepPage), false, &sleep_page, &reason);
  }
};

class ShmHostile : public testing::Test {
 protected:
  ShmHostile() : world(shm_factory, 3) { world.open(); }
  void expect_failure(Rank of, Rank peer, const char* why) {
    ASSERT_TRUE(world.until([&] { return world[of].failures.count(peer) == 1; }));
    EXPECT_NE(world[of].failures[peer].second.find(why), std::string::npos) << world[of].failures[peer].second;
  }
  /// Checks that ranks 0 and 2 still work.
  void expect_health() {
    world.join(0, 2);
    ASSERT_EQ(world[2].send(0, pattern(1000, 5)), Status::ok);
    ASSERT_TRUE(world.until([&] { return !world[0].packets.empty(); }));
    EXPECT_TRUE(world[0].packets.front().bytes == pattern(1000, 5));
  }
  World world;
};

TEST_F(ShmHostile, AddressesOfOtherPlacesAreDeclined) {
  Driver& driver = *world[0].driver;
  EXPECT_EQ(driver.connect(1, {}), Status::failed);
  EXPECT_EQ(driver.connect(1, pattern(40, 3)), Status::failed);
  EXPECT_EQ(driver.connect(1, pattern(512, 3)), Status::failed);
  shm::AddressForm form;
  ASSERT_TRUE(shm::unpack_address(world[1].address, &form));
  ++form.host;
  EXPECT_EQ(driver.connect(1, shm::pack_address(form)), Status::failed);
  EXPECT_EQ(driver.connect(0, world[0].address), Status::failed) << "oneself";
  EXPECT_EQ(driver.connect(1, world[1].address), Status::pending);
}

TEST_F(ShmHostile, ARankOfAnotherUserIsNamedAsThat) {
  shm::AddressForm form;
  ASSERT_TRUE(shm::unpack_address(world[1].address, &form));
  ++form.user;
  ASSERT_EQ(world[0].driver->connect(1, shm::pack_address(form)), Status::pending);
  expect_failure(0, 1, "rank 1 belongs to another user");
  EXPECT_FALSE(world[0].failures[1].first) << "another driver may reach it";
  expect_health();
}

TEST_F(ShmHostile, NobodyAtTheAddress) {
  world[1].close();
  EXPECT_EQ(world.connect(0, 1), Status::pending);
  const auto gone = std::move(world.nodes[1]);
  expect_failure(0, 1, "rank 1 cannot be reached: it has left");
  EXPECT_TRUE(world[0].failures[1].first);
  EXPECT_EQ(world.connect(0, 2), Status::pending);
}

TEST_F(ShmHostile, ADifferentSecretIsRejected) {
  World other(shm_factory, 2);
  other[0].context.key[3] = std::byte{0xff};
  other.open();
  ASSERT_EQ(world[1].driver->connect(0, other[0].address), Status::pending);
  ASSERT_TRUE(world.until([&] {
    other.poll();
    return world[1].failures.count(0) == 1;
  }));
  EXPECT_NE(world[1].failures[0].second.find("secret"), std::string::npos) << world[1].failures[0].second;
  EXPECT_TRUE(other[0].failures.empty()) << "an unauthenticated peer is no rank's failure";
  expect_health();
}

TEST_F(ShmHostile, UnauthenticatedPeersAreRejectedAndForgotten) {
  shm::AddressForm form;
  ASSERT_TRUE(shm::unpack_address(world[0].address, &form));
  const net::UniqueFd silent = shm::connect_to(form.name), noisy = shm::connect_to(form.name);
  ASSERT_TRUE(silent && noisy);
  const auto noise = pattern(1000, 1);
  ASSERT_EQ(::send(noisy.get(), noise.data(), noise.size(), MSG_NOSIGNAL), 1000);
  char byte;
  ASSERT_TRUE(world.until([&] { return ::recv(noisy.get(), &byte, 1, MSG_DONTWAIT) <= 0 && errno != EAGAIN; }));
  expect_health();
  EXPECT_EQ(::recv(silent.get(), &byte, 1, MSG_DONTWAIT), -1);
  world[0].context.clock_ns += 60'000'000'000;
  ASSERT_TRUE(world.until([&] { return ::recv(silent.get(), &byte, 1, MSG_DONTWAIT) == 0; }));
}

TEST_F(ShmHostile, AnHonestFakePeerIsTaken) {
  FakePeer fake;
  Gifts gifts;
  ASSERT_TRUE(fake.join(world[0]));
  ASSERT_EQ(shm::send_fds(fake.socket.get(), {}, gifts.channel.get(), gifts.sleep_page.get()), shm::Transfer::ok);
  ASSERT_TRUE(world.until([&] { return world[0].up.count(1) == 1; }));
  EXPECT_FALSE(world[0].driver->register_memory(1, drivers::RmaOp::get, nullptr, 0, nullptr) == Status::ok)
      << "it cannot read us";
  const std::byte malformed[1] = {};
  ASSERT_EQ(::send(fake.socket.get(), malformed, 1, MSG_NOSIGNAL), 1);
  expect_failure(0, 1, "malformed data over its socket");
  expect_health();
}

TEST_F(ShmHostile, AnotherLayoutIsNamed) {
  FakePeer fake;
  fake.payload.layout = 99;
  shm::AddressForm form;
  ASSERT_TRUE(shm::unpack_address(world[0].address, &form));
  fake.socket = shm::connect_to(form.name);
  auto handshake = net::Handshake::initiator(fake.party, fake.context, 0, 0,
                                             {reinterpret_cast<const std::byte*>(&fake.payload), 32});
  ASSERT_TRUE(world.until([&] {
    handshake.step(fake.socket.get());
    return world[0].failures.count(1) == 1;
  }));
  EXPECT_NE(world[0].failures[1].second.find("layout 99"), std::string::npos) << world[0].failures[1].second;
  expect_health();
}

// Each gift is wrong in one way. The most dangerous one is memory that can shrink: it would cause a SIGBUS later.
TEST(ShmGifts, WrongGiftsAreRejected) {
  for (int wrong = 0; wrong < 5; ++wrong) {
    World world(shm_factory, 2);
    world[0].open();
    FakePeer fake;
    Gifts gifts;
    ASSERT_TRUE(fake.join(world[0]));
    shm::FdMessage fd_message;
    const char* why = "sealed memfd";
    if (wrong == 0) {
      gifts.channel.reset(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
      ASSERT_EQ(::ftruncate(gifts.channel.get(), sizeof(shm::Channel)), 0);
    } else if (wrong == 1) {
      std::swap(gifts.channel, gifts.sleep_page);
    } else if (wrong == 2) {
      gifts.channel.reset(::open("/dev/zero", O_RDWR | O_CLOEXEC));
    } else if (wrong == 3) {
      gifts.sleep_page.reset(::dup(gifts.channel.get()));
    } else {
      fd_message.magic = 1;
      why = "set-up message is malformed";
    }
    ASSERT_EQ(shm::send_fds(fake.socket.get(), fd_message, gifts.channel.get(), gifts.sleep_page.get()),
              shm::Transfer::ok);
    ASSERT_TRUE(world.until([&] {
      world[0].poll();
      return world[0].failures.count(1) == 1;
    })) << wrong;
    EXPECT_NE(world[0].failures[1].second.find(why), std::string::npos) << world[0].failures[1].second;
    world.nodes[1].reset();
  }
}

TEST_F(ShmHostile, ANonceThatDoesNotFitMeansNoCma) {
  FakePeer fake;
  Gifts gifts;
  shm::Nonce elsewhere = {};
  fake.payload.nonce[0] = std::byte{1};
  fake.payload.nonce_address = reinterpret_cast<std::uint64_t>(elsewhere.data());
  ASSERT_TRUE(fake.join(world[0]));
  ASSERT_EQ(shm::send_fds(fake.socket.get(), {}, gifts.channel.get(), gifts.sleep_page.get()), shm::Transfer::ok);
  ASSERT_TRUE(world.until([&] { return world[0].up.count(1) == 1; }));
  MemoryKey rkey;
  const iovec piece{&rkey, 8};
  char target[8];
  const iovec to{target, 8};
  ASSERT_TRUE(shm::write_rkey(&piece, 1, &rkey));
  EXPECT_EQ(world[0].driver->rma(1, drivers::RmaOp::get, {rkey.bytes, rkey.size}, 0, &to, 1, 8, nullptr),
            Status::failed);
}

/// Leaves this process `count` descriptors to open, until the object is destroyed.
class FewDescriptors {
 public:
  explicit FewDescriptors(int count) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::dup(0);  // the lowest free number
    ::close(next);
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(next + count);
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_ = {};
};

// Whichever step the lack of descriptors hits, both sides are told: the next driver may succeed.
TEST(ShmDescriptors, SpentOnesAreAnErrorAndNoHang) {
  int failures = 0, successes = 0;
  for (int left = 0; left < 24; ++left) {
    World world(shm_factory, 2);
    world.open();
    {
      const FewDescriptors few(left);
      ASSERT_EQ(world.connect(0, 1), Status::pending);
      ASSERT_TRUE(world.until([&] {
        world[1].context.clock_ns += net::AcceptLimiter::rest_ns;  // it rests after each connection that it cannot take
        return world[0].failures.size() + world[0].up.size() > 0;
      })) << left;
    }
    if (world[0].failures.empty()) {
      ASSERT_TRUE(world.until([&] { return world[1].up.size() + world[1].failures.size() > 0; })) << left;
      ++successes;
    } else {
      EXPECT_FALSE(world[0].failures[1].first) << left << ": " << world[0].failures[1].second;
      EXPECT_NE(world[0].failures[1].second.find("rank 1 cannot be reached"), std::string::npos);
      ++failures;
    }
  }
  EXPECT_GT(failures, 2);
  EXPECT_GT(successes, 2);
}

TEST_F(ShmHostile, MalformedDataInTheLines) {
  world.join(0, 1);
  for (shm::Channel* channel : mapped_channels()) {
    for (auto& line : channel->lines) line.word.store(shm::line_word(1, shm::largest_in_lines + 1));
  }
  expect_failure(0, 1, "rank 1 (pid");
  EXPECT_NE(world[0].failures[1].second.find("malformed data into the shared ring"), std::string::npos);
  EXPECT_TRUE(world[0].failures[1].first);
  EXPECT_EQ(world[0].send(1, pattern(8, 1)), Status::failed);
  ASSERT_TRUE(world.until([&] { return world[1].failures.count(0) == 1; }));
  expect_health();
  world.nodes.clear();
  EXPECT_TRUE(mapped_channels().empty())
      << "mapped until the driver closes, for other threads may be at the shared lines";
}

TEST_F(ShmHostile, MalformedDataInTheDataRing) {
  world.join(0, 1);
  for (shm::Channel* channel : mapped_channels()) {
    shm::word_at(*channel, 0).store(shm::record_word(1, shm::largest_packet + 1, shm::Kind::packet, true));
  }
  expect_failure(0, 1, "malformed data into the shared ring");
  expect_health();
}

TEST_F(ShmHostile, AnImpossiblePosition) {
  world.join(0, 1);
  for (shm::Channel* channel : mapped_channels()) channel->consumed.store(1u << 20);
  Status status = Status::ok;
  for (int i = 0; i < 1000 && status == Status::ok; ++i) status = world[0].send(1, pattern(8, 1));
  EXPECT_EQ(status, Status::full);
  expect_failure(0, 1, "impossible position");
  expect_health();
}

// Overwrites all of the shared memory at random, again and again, with traffic in between.
TEST(ShmFuzz, RandomMemoryNeverCrashes) {
  for (std::uint64_t seed = 1; seed <= 40 / test::slowness; ++seed) {
    World world(shm_factory, 2);
    world.open();
    world.join(0, 1);
    for (Rank rank : {0, 1}) world[rank].wants_hints = seed % 2 == 0;
    std::mt19937_64 random(seed);
    conformance::Bytes sink(1 << 16);
    world[0].destinations[0] = {{sink.data(), sink.size()}};
    for (int round = 0; round < 200; ++round) {
      for (shm::Channel* channel : mapped_channels()) {
        auto* words = reinterpret_cast<std::uint64_t*>(channel);
        for (int i = 0; i < 64; ++i) words[random() % (sizeof *channel / 8)] = random() >> random() % 64;
        const std::uint64_t number = 1 + random() % 100;
        const std::size_t place = random() % (shm::data_size / shm::line_size) * shm::line_size;
        shm::word_at(*channel, random() % 2 == 0 ? 0 : place)
            .store(shm::record_word(number, 1 + random() % 17000, static_cast<shm::Kind>(1 + random() % 4),
                                    random() % 2 == 0));
        channel->lines[random() % shm::line_count].word.store(shm::line_word(number, random() & 0xff));
      }
      for (Rank rank : {0, 1}) {
        for (int i = 0; i < 10; ++i) world[rank].send(1 - rank, pattern(1 + random() % 2000, seed));
        world[rank].poll();
        world[rank].packets.clear();
      }
    }
  }
}

}  // namespace
}  // namespace canele::drivers

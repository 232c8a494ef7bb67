// SPDX-License-Identifier: BSD-3-Clause
//
// Tests of the decorators: the list, then each one around a real driver (self, shm, tcp) or around one that misbehaves.
//
// One thread. Time stands still unless a test moves it (KitContext).
#include "drivers/decorators/decorators.hpp"

#include "drivers/self/self.hpp"
#include "drivers/shm/shm.hpp"
#include "drivers/tcp/tcp.hpp"
#include "tests/conformance/driver_kit.hpp"

namespace canele::drivers {
namespace {

using conformance::Bytes;
using conformance::cut;
using conformance::Node;
using conformance::pattern;
using conformance::World;

std::string error_of(std::string_view list) {
  std::string error;
  const auto made = decorate(list, self_factory.create(), &error);
  EXPECT_EQ(made == nullptr, !error.empty());
  return error;
}

/// Returns `count` ranks of `factory`, rank 0 decorated.
World world_of(const DriverFactory& factory, std::string_view list, Rank count = 2) {
  World world(factory, count);
  std::string error;
  world[0].driver = decorate(list, std::move(world[0].driver), &error);
  EXPECT_EQ(error, "");
  return world;
}

std::vector<std::string> logged(const Node& node, int level, std::string_view word) {
  std::vector<std::string> found;
  for (const auto& [at, text] : node.context.logged) {
    if (at == level && text.find(word) != std::string::npos) found.push_back(text);
  }
  return found;
}

// ------------------------------------------------------------------------------------------------------ the list

TEST(DecoratorList, WrongListsSayWhatWouldBeRight) {
  EXPECT_EQ(error_of("tracee"), "\"tracee\" is not a decorator; expected: trace, delay, fault, check");
  EXPECT_EQ(error_of("trace,,check"), "\"\" is not a decorator; expected: trace, delay, fault, check");
  EXPECT_EQ(error_of("delay:ms=3"), "decorator delay: \"ms\" is not an option; expected: us, room");
  EXPECT_EQ(error_of("check:x=1"), "decorator check: \"x\" is not an option; expected: no option");
  EXPECT_EQ(error_of("fault:full=2"), "decorator fault: full=\"2\"; expected: a number from 0 to 1");
  EXPECT_EQ(error_of("fault:kill=1.5"),
            "decorator fault: kill=\"1.5\"; expected: a whole number from 1 to 9007199254740992");
  EXPECT_EQ(error_of("delay:us="), "decorator delay: us=\"\"; expected: a whole number from 0 to 10000000");
  EXPECT_EQ(error_of("delay:us=5s"), "decorator delay: us=\"5s\"; expected: a whole number from 0 to 10000000");
  for (const char* name : {"drop", "duplicate", "reorder"}) {
    const std::string error = error_of("fault:" + std::string(name) + "=0.1");
    EXPECT_NE(error.find("lose-rail"), std::string::npos) << error;
  }
}

TEST(DecoratorList, RightListsAreTaken) {
  for (const char* list :
       {"trace", "trace:keep=10", "check,delay:us=0:room=65536,fault:seed=0:full=0.5:burst=2:short=1",
        "fault:kill=3:rank=1", "fault:lose-rail=9", "check,check"}) {
    EXPECT_EQ(error_of(list), "") << list;
  }
}

TEST(DecoratorList, WithoutDecoratorsTheDriverItselfIsReturned) {
  std::string error;
  auto driver = self_factory.create();
  const Driver* const before = driver.get();
  EXPECT_EQ(decorate("", std::move(driver), &error).get(), before);
}

/// Keeps the settings that it was opened with.
class Listener final : public Driver {
 public:
  inline static std::string argument;

 private:
  Status open_impl(DriverContext& context, Address*, std::string*) override {
    argument = context.argument;
    capabilities_.max_packet = 4096;
    return Status::ok;
  }
  Status connect_impl(Rank, std::span<const std::byte>) override { return Status::failed; }
  Status send_packet_impl(Rank, const iovec*, int, std::size_t, Token) override { return Status::failed; }
  int poll_impl(int) override { return 0; }
  void close_impl() override {}
};

TEST(DecoratorList, ADecoratedDriverHearsItsArgument) {
  std::string error;
  const auto driver = decorate("check,trace", std::make_unique<Listener>(), &error);
  conformance::KitContext context(0, 1);
  context.argument = "eth0";
  Address address;
  ASSERT_EQ(driver->open(context, &address, &error), Status::ok);
  EXPECT_EQ(Listener::argument, "eth0");
}

TEST(DecoratorList, ADecoratedDriverLooksLikeTheDriver) {
  World plain(shm_factory, 1), wrapped = world_of(shm_factory, "check,trace,delay,fault", 1);
  plain.open();
  wrapped.open();
  const Capabilities &one = plain[0].driver->capabilities(), &two = wrapped[0].driver->capabilities();
  EXPECT_EQ(one.name, two.name);
  EXPECT_EQ(one.max_packet, two.max_packet);
  EXPECT_EQ(one.max_inline, two.max_inline);
  EXPECT_TRUE(one.reserves == two.reserves && one.get == two.get && one.memory_only == two.memory_only);
  EXPECT_GE(wrapped[0].driver->descriptor(), 0);
}

// --------------------------------------------------------------------------------------------------------- trace

TEST(Trace, WritesALinePerCallAndCallBack) {
  World world = world_of(tcp_factory, "trace");
  world.open();
  world.join(0, 1);
  ASSERT_EQ(world[0].send(1, pattern(100, 1)), Status::ok);
  ASSERT_EQ(world[1].send(0, pattern(70, 1)), Status::ok);
  ASSERT_TRUE(world.until([&] { return world[0].packets.size() == 1; }));
  EXPECT_EQ(logged(world[0], 3, "connect rank 1 size").size(), 1u);
  EXPECT_EQ(logged(world[0], 3, "connected rank 1").size(), 1u);
  EXPECT_EQ(logged(world[0], 3, "send_packet rank 1 size 100: ok").size(), 1u);
  EXPECT_EQ(logged(world[0], 3, "packet rank 1 size 70: taken").size(), 1u);
  const std::size_t lines = world[0].context.logged.size();
  for (int i = 0; i < 100; ++i) world[0].poll();
  EXPECT_EQ(world[0].context.logged.size(), lines) << "polls in which nothing happens are not worth a line";
}

TEST(Trace, KeepsTheLastLinesUntilAPeerFails) {
  World world = world_of(tcp_factory, "trace:keep=5");
  world.open();
  world.join(0, 1);
  for (std::size_t i = 1; i <= 20; ++i) ASSERT_EQ(world[0].send(1, pattern(i, 1)), Status::ok);
  EXPECT_TRUE(logged(world[0], 2, "send_packet").empty());
  world[1].close();
  ASSERT_TRUE(world.until([&] { return world[0].failures.count(1) == 1; }));
  const auto kept = logged(world[0], 2, "trace");
  ASSERT_EQ(kept.size(), 5u);
  EXPECT_NE(kept[0].find("send_packet rank 1 size 17: ok"), std::string::npos) << kept[0];
  EXPECT_NE(kept[4].find("failed rank 1: lost"), std::string::npos) << kept[4];
}

// --------------------------------------------------------------------------------------------------------- delay

TEST(Delay, NothingArrivesBeforeItsTimeAndAllInOrder) {
  World world = world_of(tcp_factory, "check,delay:us=50");
  world.open();
  world.join(0, 1);
  Bytes target(3000);
  world[1].expect_bulk(9, cut(target, 1000));
  ASSERT_EQ(world[0].send(1, pattern(100, 1)), Status::ok);
  ASSERT_EQ(world[0].bulk(1, 9, 0, pattern(3000, 2)), Status::ok);
  world[0].context.clock_ns += 20'000;
  ASSERT_EQ(world[0].send(1, pattern(200, 3)), Status::ok);
  EXPECT_FALSE(world[0].driver->arm()) << "something waits for its time";
  for (int i = 0; i < 100; ++i) world.poll();
  EXPECT_TRUE(world[1].packets.empty());
  world[0].context.clock_ns += 30'000;
  ASSERT_TRUE(world.until([&] { return world[1].written_bytes[9] == 3000; }));
  for (int i = 0; i < 100; ++i) world.poll();
  ASSERT_EQ(world[1].packets.size(), 1u) << "the third is not due yet";
  world[0].context.clock_ns += 20'000;
  ASSERT_TRUE(world.until([&] { return world[1].packets.size() == 2; }));
  EXPECT_EQ(world[1].packets[1].bytes, pattern(200, 3));
  EXPECT_EQ(target, pattern(3000, 2));
}

TEST(Delay, IsFullWhenItsRoomIsUsedAndSaysReady) {
  World world = world_of(shm_factory, "check,delay:us=10:room=65536");
  world.open();
  world.join(0, 1);
  std::uint64_t sent = 0;
  while (world[0].send(1, pattern(1000, sent)) == Status::ok) ++sent;
  EXPECT_EQ(sent, 65u);
  EXPECT_TRUE(world[0].driver->reserve(1, 1000).empty());
  for (int i = 0; i < 100; ++i) world.poll();
  EXPECT_TRUE(world[0].ready_ranks.empty());
  world[0].context.clock_ns += 10'000;
  ASSERT_TRUE(world.until([&] { return world[1].packets.size() == sent; }));
  EXPECT_EQ(world[0].ready_ranks, std::vector<Rank>{1});
  for (std::uint64_t i = 0; i < sent; ++i) ASSERT_EQ(world[1].packets[i].bytes, pattern(1000, i));
  EXPECT_TRUE(logged(world[0], 0, "").empty());
}

TEST(Delay, ReservedPacketsAndThoseHeldAtTheEndArrive) {
  World world = world_of(shm_factory, "delay:us=1000");
  world.open();
  world.join(0, 1);
  const auto room = world[0].driver->reserve(1, 500);
  ASSERT_EQ(room.size(), 500u);
  const Bytes bytes = pattern(300, 4);
  std::copy(bytes.begin(), bytes.end(), room.begin());
  world[0].driver->commit(1, 300);
  ASSERT_FALSE(world[0].driver->reserve(1, 500).empty());
  world[0].driver->commit(1, 0);  // given back
  world[0].close();
  ASSERT_TRUE(world.until([&] { return world[1].packets.size() == 1; }));
  EXPECT_EQ(world[1].packets[0].bytes, bytes);
}

// --------------------------------------------------------------------------------------------------------- fault

TEST(Fault, TheSeedIsToldAndRepeatsTheFaults) {
  std::vector<std::string> first;
  for (int run = 0; run < 2; ++run) {
    World world = world_of(self_factory, "fault:seed=11:full=0.3", 1);
    world.open();
    EXPECT_EQ(logged(world[0], 2, "seed 11").size(), 1u);
    world[0].driver->connect(0, world[0].address);
    world[0].poll();
    std::string answers;
    for (int i = 0; i < 200; ++i) {
      answers += world[0].send(0, pattern(10, 1)) == Status::ok ? 'o' : 'f';
      world[0].poll();
    }
    EXPECT_NE(answers.find('f'), std::string::npos);
    EXPECT_NE(answers.find('o'), std::string::npos);
    first.push_back(answers);
  }
  EXPECT_EQ(first[0], first[1]);
}

TEST(Fault, FullIsFollowedByOneReady) {
  World world = world_of(tcp_factory, "check,fault:seed=3:full=1:burst=4");
  world.open();
  world.join(0, 1);
  EXPECT_EQ(world[0].send(1, pattern(10, 1)), Status::full);
  EXPECT_EQ(world[0].send(1, pattern(10, 1)), Status::full);
  EXPECT_FALSE(world[0].driver->arm()) << "ready() is owed";
  for (int i = 0; i < 3; ++i) world[0].poll();
  EXPECT_TRUE(world[0].ready_ranks.empty());
  for (int i = 0; i < 10; ++i) world[0].poll();
  EXPECT_EQ(world[0].ready_ranks, std::vector<Rank>{1});
  EXPECT_TRUE(logged(world[0], 0, "").empty());
}

TEST(Fault, DestinationsAreAskedForInParts) {
  World world = world_of(tcp_factory, "check,fault:seed=5:short=1");
  world.open();
  world.join(0, 1);
  Bytes target(50'000);
  int asked = 0;
  const auto where = cut(target, 900);
  world[0].on_bulk_destination = [&](Rank, std::uint64_t, std::uint64_t offset, std::uint64_t length, iovec* out,
                                     int max) {
    ++asked;
    EXPECT_EQ(max, length == 1 ? max : 1);
    return conformance::slice(where, offset, length, out, max);
  };
  ASSERT_NE(world[1].bulk(0, 7, 0, pattern(50'000, 6)), Status::full);
  ASSERT_TRUE(world.until([&] { return world[0].written_bytes[7] == 50'000; }));
  EXPECT_EQ(target, pattern(50'000, 6));
  EXPECT_GT(asked, 50'000 / 900);
  EXPECT_TRUE(logged(world[0], 0, "").empty());
}

TEST(Fault, KillsOnePeerAtItsPacket) {
  World world = world_of(tcp_factory, "check,fault:kill=5", 3);
  world.open();
  world.join(0, 1);
  world.join(0, 2);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(world[0].send(2, pattern(10, 1)), Status::ok);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(world[0].send(1, pattern(10, 1)), Status::ok);
  EXPECT_EQ(world[0].send(1, pattern(10, 1)), Status::full) << "dying: failed() follows";
  ASSERT_TRUE(world.until([&] { return world[0].failures.count(1) == 1; }));
  EXPECT_TRUE(world[0].failures[1].first);
  EXPECT_EQ(world[0].failures[1].second, "fault: rank 1 killed after 5 packets");
  EXPECT_EQ(world[0].send(1, pattern(10, 1)), Status::failed);
  // What it still sends is not received, and makes the driver close it.
  ASSERT_NE(world[1].send(0, pattern(10, 2)), Status::full);
  ASSERT_TRUE(world.until([&] { return world[1].failures.count(0) == 1; }));
  EXPECT_TRUE(world[0].packets.empty());
  for (int i = 0; i < 10; ++i) ASSERT_EQ(world[0].send(2, pattern(10, 1)), Status::ok);
  ASSERT_TRUE(world.until([&] { return world[2].packets.size() == 14; }));
  EXPECT_TRUE(logged(world[0], 0, "").empty());
}

TEST(Fault, AKilledPeerIsReportedOnlyWhenItsOperationsAreOver) {
  World world = world_of(tcp_factory, "check,fault:kill=1");
  world[0].context.settings["EXPERT_TCP_SEND_BUFFER"] = "4096";
  world.open();
  world.join(0, 1);
  ASSERT_EQ(world[0].bulk(1, 3, 0, pattern(2'000'000, 1)), Status::pending);
  for (int i = 0; i < 1000; ++i) world[0].poll();
  EXPECT_TRUE(world[0].failures.empty()) << "the driver still reads that memory";
  EXPECT_EQ(world[0].pending(), 1u);
  ASSERT_TRUE(world.until([&] { return world[0].failures.count(1) == 1; }));
  EXPECT_EQ(world[0].results, std::vector<Status>{Status::ok});
}

TEST(Fault, ALostRailFailsForAllPeersAndNamesNobodyDead) {
  World world = world_of(shm_factory, "check,fault:lose-rail=6", 4);
  world.open();
  world.join(0, 1);
  world.join(0, 2);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(world[0].send(1, pattern(10, 1)), Status::ok);
    ASSERT_EQ(world[0].send(2, pattern(10, 1)), Status::ok);
  }
  ASSERT_TRUE(world.until([&] { return world[0].failures.size() == 2; }));
  for (const Rank rank : {1, 2}) {
    EXPECT_FALSE(world[0].failures[rank].first) << "the process lives; another rail may reach it";
    EXPECT_NE(world[0].failures[rank].second.find("rail lost after 6 packets"), std::string::npos);
  }
  ASSERT_NE(world.connect(0, 3), Status::failed);
  ASSERT_TRUE(world.until([&] { return world[0].failures.count(3) == 1; })) << "nor can the rail be used again";
}

// --------------------------------------------------------------------------------------------------------- check

/// A driver that does what `misdeed` says.
class Rogue final : public Driver {
 public:
  explicit Rogue(std::string_view misdeed) : misdeed_(misdeed) {}

 private:
  bool does(std::string_view what) const { return misdeed_ == what; }
  DriverEvents& engine() { return *context_->events; }

  Status open_impl(DriverContext& context, Address* address, std::string*) override {
    context_ = &context;
    address->assign(1, std::byte{1});
    capabilities_.name = "rogue";
    capabilities_.max_packet = 1024;
    capabilities_.max_inline = 64;
    capabilities_.bulk_stream = capabilities_.memory_only = true;
    capabilities_.reaches_local = true;
    return Status::ok;
  }
  Status connect_impl(Rank, std::span<const std::byte>) override { return Status::pending; }
  Status send_inline_impl(Rank, const void*, std::size_t, const void*, std::size_t) override {
    return does("inline pending") ? Status::pending : Status::ok;
  }
  Status send_packet_impl(Rank rank, const iovec*, int, std::size_t, Token token) override {
    if (does("call back outside poll")) engine().ready(rank);
    token_ = token;
    return does("send after failed") ? Status::ok : Status::pending;
  }
  Status bulk_send_impl(Rank, std::uint64_t, std::uint64_t, const iovec*, int, std::size_t, Token) override {
    return Status::pending;
  }
  int poll_impl(int) override {
    const std::vector<std::byte> bytes(2000);
    if (does("packet before connected")) engine().packet(1, {bytes.data(), 10});
    if (!up_) engine().connected(1);
    up_ = true;
    if (does("connected twice")) engine().connected(1);
    if (does("ready without full")) engine().ready(1);
    if (does("long packet")) engine().packet(1, bytes);
    if (does("bulk_written too much")) engine().bulk_written(1, 5, 0, 10);
    if (does("token twice") && token_ != nullptr) engine().done(token_, Status::ok), engine().done(token_, Status::ok);
    if (does("after failed") || does("send after failed")) engine().failed(1, true, "gone");
    if (does("after failed")) engine().ready(1);
    return does("counts nothing") ? 0 : 1;
  }
  void close_impl() override {
    if (does("call back in close")) engine().connected(2);
  }

  const std::string_view misdeed_;
  DriverContext* context_ = nullptr;
  Token token_ = nullptr;
  bool up_ = false;
};

/// An engine that accepts everything.
class Silent final : public DriverEvents {
 public:
  Take packet(Rank, std::span<const std::byte>) override { return Take::taken; }
  int bulk_destination(Rank, std::uint64_t, std::uint64_t, std::uint64_t, iovec*, int) override { return 0; }
  void bulk_written(Rank, std::uint64_t, std::uint64_t, std::uint64_t) override {}
  void done(Token, Status) override {}
  void ready(Rank) override {}
  void connected(Rank) override {}
  void failed(Rank, bool, std::string_view) override {}
};

/// Returns the reports of check on a Rogue, after a short life.
std::vector<std::string> reports_of(std::string_view misdeed) {
  Silent engine;
  conformance::KitContext context(0, 3);
  context.events = &engine;
  std::string error;
  const auto driver = decorate("check", std::make_unique<Rogue>(misdeed), &error);
  Address address;
  EXPECT_EQ(driver->open(context, &address, &error), Status::ok);
  driver->connect(1, address);
  driver->poll(1);
  char byte = 0;
  const iovec piece = {&byte, 1};
  driver->send_inline(1, &byte, 1, nullptr, 0);
  driver->send_packet(1, &piece, 1, 1, &byte);
  if (misdeed == "bulk pending") driver->bulk_send(1, 1, 0, &piece, 1, 1, &byte);
  driver->poll(1);
  driver->close();
  std::vector<std::string> texts;
  for (const auto& [level, text] : context.logged) {
    if (level == 0) texts.push_back(text);
  }
  return texts;
}

TEST(Check, ADriverThatKeepsTheContractIsNotReported) { EXPECT_TRUE(reports_of("nothing").empty()); }

TEST(Check, EveryMisdeedIsReportedWithCallAndRank) {
  const std::pair<const char*, const char*> cases[] = {
      {"inline pending", "driver: send_inline, rank 1: answered pending"},
      {"bulk pending", "driver: bulk_send, rank 1: a memory_only driver answered pending"},
      {"call back outside poll", "driver: ready, rank 1: outside poll()"},
      {"packet before connected", "driver: packet, rank 1: before connected()"},
      {"connected twice", "driver: connected, rank 1: a second time"},
      {"ready without full", "driver: ready, rank 1: without a full before it"},
      {"long packet", "driver: packet, rank 1: 0 bytes, or over max_packet"},
      {"bulk_written too much", "driver: bulk_written, rank 1: more than bulk_destination() gave"},
      {"token twice", "driver: done, rank -1: a token that is not out"},
      {"after failed", "driver: ready, rank 1: after failed()"},
      {"send after failed", "driver: send_packet, rank 1: after failed(), it must answer failed"},
      {"counts nothing", "driver: poll, rank 0: answered 0 although it reported something"},
      {"call back in close", "driver: connected, rank 2: from close()"},
  };
  for (const auto& [misdeed, report] : cases) {
    const auto reports = reports_of(misdeed);
    ASSERT_FALSE(reports.empty()) << misdeed;
    const bool said = std::any_of(reports.begin(), reports.end(), [&](const std::string& text) {
      return text.find("check: rogue: " + std::string(report)) == 0;
    });
    EXPECT_TRUE(said) << misdeed << ": " << reports[0];
  }
}

TEST(Check, TheEngineIsWatchedToo) {
  World world = world_of(self_factory, "check", 1);
  Node& node = world[0];
  world.open();
  node.driver->connect(0, node.address);
  node.driver->connect(0, node.address);
  node.poll();
  ASSERT_FALSE(node.driver->reserve(0, 100).empty());
  char byte = 0;
  const iovec piece = {&byte, 1};
  node.driver->send_packet(0, &piece, 1, 2, nullptr);
  node.driver->commit(0, 200);
  node.driver->commit(0, 0);
  const char* const expected[] = {"engine: connect, rank 0: a second time", "engine: send_packet, rank 0: while a",
                                  "engine: send_packet, rank 0: the pieces do not add up",
                                  "engine: commit, rank 0: more than was reserved",
                                  "engine: commit, rank 0: no reservation is open"};
  for (const char* text : expected) EXPECT_EQ(logged(node, 0, text).size(), 1u) << text;
}

TEST(Check, ReportsAreBounded) {
  World world = world_of(self_factory, "check", 1);
  world.open();
  for (int i = 0; i < 500; ++i) world[0].driver->connect(0, world[0].address);
  EXPECT_EQ(logged(world[0], 0, "check").size(), 100u);
}

}  // namespace
}  // namespace canele::drivers

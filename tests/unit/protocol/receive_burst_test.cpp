// SPDX-License-Identifier: BSD-3-Clause
//
// Several packets taken at once have the same effects as one by one: the same receives get the same bytes, and the same
// messages are counted, stored, refused.
//
// Other threads only create the engines. There are two jobs, to whose rank 1 the same packets are handed, bypassing the
// driver.
#include <deque>
#include <random>
#include <vector>

#include "comm/wire/wire.hpp"
#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

namespace wire = comm::wire;
constexpr std::size_t apart = 64, chunk_bytes = 24, payload_bytes = chunk_bytes - sizeof(wire::Head);

/// One way to hand packets over, and the state that results.
class World {
 public:
  explicit World(bool as_burst) : as_burst_(as_burst) {
    sessions_[0] = meet("first");
    sessions_[1] = meet("second");
    for (const auto& instance : engine_.instances) {
      if (instance->label == "shm") instance_ = instance.get();
    }
  }

  /// Binds the requests that have a message and no memory, so that they end.
  ~World() {
    for (Receive& r : receives_) {
      const canele_data_t nothing = canele_data_contiguous(nullptr, 0);
      if (comm::request_of(&r.request).stage == comm::Request::Stage::matched_unbound)
        canele_receive_bind(&r.request, &nothing);
    }
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  struct Receive {
    canele_request_t request{};
    std::uint64_t memory = 0;
  };
  void post(std::mt19937_64& random) {
    Receive& r = receives_.emplace_back();
    canele_session_t* session = sessions_[random() % 4 == 0 ? 1 : 0];
    const std::uint64_t tag = random() % 4, kind = random() % 8;
    if (kind == 0) {
      canele_irecv_late(session, 0, tag, CANELE_TAG_EXACT, &r.request);
    } else {
      const std::size_t room = kind == 1 ? 3 : sizeof r.memory;
      const std::uint64_t mask = kind == 2 ? 0 : CANELE_TAG_EXACT;
      canele_irecv(session, kind == 3 ? CANELE_ANY_SOURCE : 0, tag, mask, &r.memory, room, &r.request);
    }
  }
  /// Makes tags from 2 on stay with the driver, in the first session.
  void keep_away(int patience) { engine_.defer_filter = {&comm::api::session_of(sessions_[0]), 2, 99, patience}; }
  drivers::RunTaken give(const std::vector<std::byte>& packets) {
    const drivers::PacketRun run{packets.data(), apart, chunk_bytes, static_cast<int>(packets.size() / apart)};
    engine_.lock_for_callback();
    const drivers::RunTaken taken =
        as_burst_ ? instance_->packets(0, run) : instance_->drivers::DriverEvents::packets(0, run);
    engine_.unlock();
    return taken;
  }

  void expect_same(World& other) {
    for (int i = 0; i < static_cast<int>(comm::Counter::count); ++i) {
      const auto counter = static_cast<comm::Counter>(i);
      EXPECT_EQ(read(counter), other.read(counter)) << comm::counter_info(counter).name;
    }
    EXPECT_EQ(instance_->driver->counters.packets_received, other.instance_->driver->counters.packets_received);
    EXPECT_EQ(instance_->driver->counters.bytes_received, other.instance_->driver->counters.bytes_received);
    ASSERT_EQ(receives_.size(), other.receives_.size());
    for (std::size_t i = 0; i < receives_.size(); ++i) {
      const comm::Request &a = comm::request_of(&receives_[i].request),
                          &b = comm::request_of(&other.receives_[i].request);
      EXPECT_EQ(receives_[i].memory, other.receives_[i].memory) << "receive " << i;
      EXPECT_EQ(a.stage, b.stage);
      EXPECT_EQ(a.word.load(), b.word.load());
      if (!a.finalized()) continue;
      EXPECT_EQ(a.status_error, b.status_error);
      EXPECT_EQ(a.status_length, b.status_length);
      EXPECT_EQ(a.status_tag, b.status_tag);
      EXPECT_EQ(a.rank, b.rank);
    }
  }
  std::uint64_t read(comm::Counter counter) {
    return engine_.counters.read(counter) + engine_.peer(0).counters.read(counter);
  }
  std::uint32_t next() { return engine_.peer(0).next_in; }

 private:
  /// Opens a session that the peer has announced, with one message in it.
  canele_session_t* meet(const char* label) {
    const std::vector<canele_session_t*> sessions = job_.open(label);
    canele_request_t send{}, receive{};
    EXPECT_EQ(canele_irecv(sessions[1], 0, 1, CANELE_TAG_EXACT, nullptr, 0, &receive), CANELE_OK);
    EXPECT_EQ(canele_isend(sessions[0], 1, 1, nullptr, 0, &send), CANELE_OK);
    EXPECT_TRUE(job_.finish(receive) && job_.finish(send));
    return sessions[1];
  }

  const bool as_burst_;
  std::deque<Receive> receives_;  // some stay posted until the engine is destroyed
  LocalJob job_;
  comm::Engine& engine_ = job_.engine(1);
  comm::DriverInstance* instance_ = nullptr;
  canele_session_t* sessions_[2] = {};
};

/// Returns packets: messages, sometimes other chunks, all of one length. `wrong`: one of them is malformed.
std::vector<std::byte> some_packets(std::mt19937_64& random, std::uint32_t next, bool wrong) {
  std::vector<std::byte> packets(apart * (2 + random() % 30));
  const std::size_t count = packets.size() / apart, bad = wrong ? random() % count : count;
  for (std::size_t i = 0; i < count; ++i) {
    const bool label = random() % 20 == 0;
    wire::Head head{random() % 4, label ? 1 : next++, static_cast<std::uint16_t>(label ? 7 : random() % 4 == 0),
                    label ? wire::Type::session : wire::Type::eager, 0};
    if (i == bad && random() % 2 == 0) head.seq += 5;
    if (i == bad && head.seq < 1'000'000) head.session = label ? head.session : 999;
    if (i == bad && label) head.type = static_cast<wire::Type>(77);
    std::byte* const at = wire::put_head(packets.data() + i * apart, head, payload_bytes);
    for (std::size_t k = 0; k < payload_bytes; ++k) at[k] = static_cast<std::byte>(label ? 'a' + k : random());
  }
  return packets;
}

void drive(std::uint64_t seed, bool wrong, int patience) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  World as_burst(true), one_by_one(false);
  for (int round = 0; round < 12; ++round) {
    for (std::uint64_t posts = random() % 40; posts != 0; --posts) {
      std::mt19937_64 same = random;
      as_burst.post(random);
      one_by_one.post(same);
    }
    if (patience != 0) {
      as_burst.keep_away(patience);
      one_by_one.keep_away(patience);
    }
    ASSERT_EQ(as_burst.next(), one_by_one.next());
    const bool last = round == 11;
    const std::vector<std::byte> packets = some_packets(random, as_burst.next(), wrong && last);
    const drivers::RunTaken a = as_burst.give(packets), b = one_by_one.give(packets);
    EXPECT_EQ(a.count, b.count);
    EXPECT_EQ(a.next, b.next);
    EXPECT_EQ(a.next == drivers::Take::rejected, wrong && last);
    as_burst.expect_same(one_by_one);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(ReceiveBurst, DoesWhatPacketsDoOneByOne) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) drive(seed, false, 0);
}

TEST(ReceiveBurst, EndsAtAMalformedPacket) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) drive(seed, true, 0);
}

TEST(ReceiveBurst, LeavesWhatIsToStayWithTheDriver) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) drive(seed, false, 3);
}

}  // namespace
}  // namespace canele::test

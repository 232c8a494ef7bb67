// SPDX-License-Identifier: BSD-3-Clause
//
// Several rails to one peer: all of them carry packets, order holds, and nothing is lost when one dies in the middle.
//
// The rail that dies first swallows its packets for a while, as a cut cable does, and only then reports to its engine.
// The two ends are told at different times.
#include <deque>
#include <random>

#include "comm/engine/connect.hpp"
#include "comm/link/queue.hpp"
#include "comm/link/transmit.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "tests/slowness.hpp"
#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

using drivers::Rank;
using drivers::Status;

/// The faults of the rails of one kind, at one rank.
struct Illness {
  std::atomic<bool> swallows{false}, tells{false};
};
Illness illness[2][2];  // by kind and rank

/// A driver around another one, which can be made to die.
class Mortal final : public drivers::Driver, drivers::DriverEvents, drivers::DriverContext {
 public:
  Mortal(const drivers::DriverFactory& inner, int kind) : inner_(inner.create()), kind_(kind) {}

 private:
  bool swallows() const { return illness[kind_][rank].swallows; }

  Status open_impl(DriverContext& outer, drivers::Address* address, std::string* reason) override {
    outer_ = &outer;
    static_cast<DriverContext&>(*this).rank = outer.rank;
    size = outer.size, job = outer.job, incarnation = outer.incarnation, secret = outer.secret;
    argument = outer.argument;
    events = this;
    const Status status = inner_->open(*this, address, reason);
    capabilities_ = inner_->capabilities();
    capabilities_.name = kind_ == 0 ? "first" : "second";
    return status;
  }
  Status connect_impl(Rank peer, std::span<const std::byte> address) override { return inner_->connect(peer, address); }
  Status send_inline_impl(Rank peer, const void* a, std::size_t n, const void* b, std::size_t m) override {
    return swallows() ? Status::ok : inner_->send_inline(peer, a, n, b, m);
  }
  Status send_packet_impl(Rank peer, const iovec* pieces, int count, std::size_t n, drivers::Token token) override {
    peer_ = peer;
    return swallows() ? Status::ok : inner_->send_packet(peer, pieces, count, n, token);
  }
  std::span<std::byte> reserve_impl(Rank peer, std::size_t n) override { return inner_->reserve(peer, n); }
  void commit_impl(Rank peer, std::size_t n) override { inner_->commit(peer, n); }
  Status bulk_send_impl(Rank peer, std::uint64_t key, std::uint64_t offset, const iovec* pieces, int count,
                        std::size_t n, drivers::Token token) override {
    return swallows() ? Status::ok : inner_->bulk_send(peer, key, offset, pieces, count, n, token);
  }
  Status register_memory_impl(Rank peer, drivers::RmaOp a, const iovec* p, int n, drivers::MemoryKey* e) override {
    return inner_->register_memory(peer, a, p, n, e);
  }
  Status rma_impl(Rank peer, drivers::RmaOp a, std::span<const std::byte> e, std::uint64_t o, const iovec* p, int n,
                  std::size_t s, drivers::Token t) override {
    return swallows() ? Status::failed : inner_->rma(peer, a, e, o, p, n, s, t);
  }
  int poll_impl(int budget) override {
    const int events_seen = inner_->poll(budget);
    if (!illness[kind_][rank].tells || told_) return events_seen;
    told_ = true;
    outer_->events->failed(1 - rank, true, "the test has cut it");
    return events_seen + 1;
  }
  int descriptor_impl() const override { return inner_->descriptor(); }
  bool arm_impl(bool on) override {
    if (!on) inner_->disarm();
    return !on || ((!illness[kind_][rank].tells || told_) && inner_->arm());
  }
  bool wants_wake_impl(Rank) override { return false; }
  void close_impl() override { inner_->close(); }

  drivers::Take packet(Rank from, std::span<const std::byte> bytes) override {
    return swallows() || told_ ? drivers::Take::taken : outer_->events->packet(from, bytes);
  }
  int bulk_destination(Rank from, std::uint64_t key, std::uint64_t at, std::uint64_t n, iovec* out, int max) override {
    return swallows() || told_ ? 0 : outer_->events->bulk_destination(from, key, at, n, out, max);
  }
  void bulk_written(Rank from, std::uint64_t key, std::uint64_t at, std::uint64_t n) override {
    if (!told_) outer_->events->bulk_written(from, key, at, n);
  }
  void done(drivers::Token token, Status status) override {
    if (!told_) outer_->events->done(token, status);
  }
  void ready(Rank peer) override {
    if (!told_) outer_->events->ready(peer);
  }
  void connected(Rank peer) override { outer_->events->connected(peer); }
  void failed(Rank peer, bool lost, std::string_view reason) override {
    if (!std::exchange(told_, true)) outer_->events->failed(peer, lost, reason);
  }
  std::uint64_t now_ns() override { return outer_->now_ns(); }
  std::uint64_t random() override { return outer_->random(); }
  std::string setting(std::string_view name, std::string_view fallback) override {
    return outer_->setting(name, fallback);
  }
  void log(int level, std::string_view text) override { outer_->log(level, text); }

  std::unique_ptr<drivers::Driver> inner_;
  int kind_;
  DriverContext* outer_ = nullptr;
  Rank peer_ = -1;
  bool told_ = false;
};

template <int kind>
const drivers::DriverFactory* inner = nullptr;

template <int kind>
const drivers::DriverFactory mortal{drivers::contract_version, kind == 0 ? "first" : "second", "for tests",
                                    [] { return std::unique_ptr<drivers::Driver>(new Mortal(*inner<kind>, kind)); },
                                    [] { return std::string(); }};

struct Pair {
  const char* first;
  const char* second;
};

class Rails : public testing::TestWithParam<Pair> {
 protected:
  Rails() {
    for (auto& kind : illness) {
      for (Illness& one : kind) one.swallows = one.tells = false;
    }
    inner<0> = comm::find_driver(GetParam().first);
    inner<1> = comm::find_driver(GetParam().second);
    start_job("fifo");  // a packet for each message
  }

  void start_job(const char* strategy) {
    JobOptions options;
    options.settings = {"CANELE_VERBOSE=0"};
    options.strategy = strategy;
    options.drivers = {comm::find_driver("self"), &mortal<0>, &mortal<1>};
    options.drivers[2].with_previous = true;
    job_ = std::make_unique<LocalJob>(options);
    s_ = job_->open("rails");
  }

  struct Transfer {
    std::vector<std::byte> out, in;
    canele_request_t send{}, receive{};
  };

  /// Sends a message of random size, its receive posted before or after.
  void start(int from) {
    static constexpr std::size_t sizes[] = {0, 8, 40, 1000, 9000, 70'000, 700'000};
    auto made = std::make_unique<Transfer>();
    Transfer& t = *made;
    t.out.resize(sizes[random_() % std::size(sizes)]);
    for (std::size_t at = 0; at < t.out.size(); at += 8) {  // all sizes are multiples of 8
      const std::uint64_t word = random_();
      std::memcpy(&t.out[at], &word, sizeof word);
    }
    t.in.resize(t.out.size());
    const bool late = random_() % 2 == 0;
    for (int step = 0; step < 2; ++step) {
      if (late == (step == 0)) {
        ASSERT_EQ(canele_isend(s_[static_cast<std::size_t>(from)], 1 - from, 7, t.out.data(), t.out.size(), &t.send),
                  0);
      } else {
        ASSERT_EQ(canele_irecv(s_[static_cast<std::size_t>(1 - from)], from, 7, CANELE_TAG_EXACT, t.in.data(),
                               t.in.size(), &t.receive),
                  0);
      }
    }
    transfers_.push_back(std::move(made));
  }

  /// Checks that all have arrived, whole and (one tag, different contents) in order.
  void finish_all() {
    for (const auto& t : transfers_) {
      ASSERT_TRUE(job_->finish(t->receive) && job_->finish(t->send));
      ASSERT_EQ(status_of(t->receive).error, CANELE_OK);
      ASSERT_EQ(status_of(t->send).error, CANELE_OK);
      ASSERT_TRUE(t->in == t->out) << t->in.size() << " bytes";
    }
    transfers_.clear();
  }

  std::uint64_t packets(int rank, int instance) {
    return job_->engine(rank).instances[static_cast<std::size_t>(instance)]->driver->counters.packets_sent;
  }
  bool both_up() {
    return job_->until([&] {
      for (int rank = 0; rank < 2; ++rank) {
        for (int instance : {1, 2}) {
          if (job_->engine(rank).instances[static_cast<std::size_t>(instance)]->connected_peers == 0) return false;
        }
      }
      return true;
    });
  }

  std::unique_ptr<LocalJob> job_;
  std::vector<canele_session_t*> s_;
  std::vector<std::unique_ptr<Transfer>> transfers_;
  std::mt19937_64 random_{20};
};

TEST_P(Rails, CarryTogetherAndInOrder) {
  for (int i = 0; i < 600; ++i) {
    start(static_cast<int>(random_() % 2));
    if (i % 50 == 0) finish_all();
    if (i == 0) {
      ASSERT_TRUE(both_up());
    }
    if (i % 3 == 0) job_->step_all();
  }
  finish_all();
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_GT(packets(rank, 1), 0u);
    const comm::Peer* peer = job_->engine(rank).peers[1 - rank];
    ASSERT_NE(peer->rail_group, nullptr);
    EXPECT_LT(peer->rail_group->sent.size(), comm::RailGroup::most_packets);
    EXPECT_TRUE(peer->rail_group->early.empty());
    EXPECT_TRUE(peer->rail_group->destinations.empty());
  }
}

TEST_P(Rails, OneMayDieAtAnyMoment) {
  constexpr int seeds = slowness == 1 ? 12 : 4;  // each kind, each end first
  for (int seed = 0; seed < seeds; ++seed) {
    random_.seed(static_cast<unsigned>(seed));
    const int kind = seed % 2, first_end = seed / 2 % 2;
    start(0);
    start(1);
    finish_all();
    ASSERT_TRUE(both_up());
    for (int i = 0; i < 60; ++i) {
      start(static_cast<int>(random_() % 2));
      for (auto turns = random_() % 3; turns > 0; --turns) job_->step_all();
      if (i == 20) illness[kind][0].swallows = illness[kind][1].swallows = true;
      if (i == 30) illness[kind][first_end].tells = true;
      if (i == 40) illness[kind][1 - first_end].tells = true;
    }
    finish_all();
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(job_->engine(rank).counters.read(comm::Counter::rails_failed), 1u) << "seed " << seed;
      EXPECT_TRUE(job_->engine(rank).peers[1 - rank]->rail_group->destinations.empty());
    }
    job_.reset();
    for (auto& one : illness[kind]) one.swallows = one.tells = false;
    if (seed + 1 < seeds) start_job("aggregate");
  }
}

/// More packets than may be unacknowledged, both ways, before any poll: the acknowledgements must get through.
TEST_P(Rails, FloodsBothWaysOpenEachOthersWindows) {
  constexpr std::size_t count = 3 * comm::RailGroup::most_packets;
  constexpr std::uint64_t wire_cost = comm::wire::credit_cost_of_eager(8);
  start(0);
  finish_all();
  ASSERT_TRUE(both_up());
  for (int rank = 0; rank < 2; ++rank) {  // so that credit is not what stops them
    comm::Engine& receiver = job_->engine(rank);
    comm::Peer& peer = *receiver.peers[1 - rank];
    comm::ReceiveWindow& receive_window = peer.receive_window;
    for (const auto& rail : peer.rails) rail->pace.note_round_trip(1);  // so that each rail takes small packets
    for (std::uint64_t* account : {&receive_window.granted, &receive_window.reserved, &receiver.credit.reserved,
                                   &job_->engine(1 - rank).peers[rank]->credit}) {
      *account += count * wire_cost;
    }
  }
  std::vector<std::uint64_t> values(count), got(2 * count);
  std::vector<canele_request_t> sends(2 * count), receives(2 * count);
  for (std::size_t i = 0; i < count; ++i) values[i] = i;
  for (std::size_t i = 0; i < 2 * count; ++i) {
    const auto from = i / count;
    ASSERT_EQ(canele_isend(s_[from], 1 - static_cast<int>(from), 5, &values[i % count], 8, &sends[i]), CANELE_OK);
  }
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(job_->engine(rank).peers[1 - rank]->rail_group->sent.size(), comm::RailGroup::most_packets);
  }
  for (std::size_t i = 0; i < 2 * count; ++i) {
    const auto from = i / count;
    ASSERT_EQ(canele_irecv(s_[1 - from], static_cast<int>(from), 5, CANELE_TAG_EXACT, &got[i], 8, &receives[i]), 0);
  }
  for (std::size_t i = 0; i < 2 * count; ++i) {
    ASSERT_TRUE(job_->finish(receives[i]) && job_->finish(sends[i]));
    ASSERT_EQ(got[i], i % count);
  }
}

TEST_P(Rails, TheLastOneTakesThePeerWithIt) {
  start(0);
  finish_all();
  ASSERT_TRUE(both_up());
  canele_request_t receive{};
  canele_irecv(s_[1], 0, 9, CANELE_TAG_EXACT, nullptr, 0, &receive);
  for (auto& kind : illness) kind[1].swallows = kind[1].tells = true;
  ASSERT_TRUE(job_->finish(receive));
  EXPECT_EQ(status_of(receive).error, CANELE_EPEER);
  EXPECT_EQ(status_of(receive).source, 0);
}

/// When rails are not joined, one driver is enough: a failure of the other one's attempt to connect loses nothing.
TEST(UnusedRail, MayFailWhileAnotherDriverCarries) {
  JobOptions options;
  options.drivers = {comm::find_driver("self"), comm::find_driver("shm"), comm::find_driver("tcp")};
  LocalJob job(options);
  const auto s = job.open("unused");
  for (int round = 0; round < 2; ++round) {
    canele_request_t send{}, receive{};
    std::uint64_t out = 7, in = 0;
    canele_irecv(s[1], 0, 1, CANELE_TAG_EXACT, &in, sizeof in, &receive);
    canele_isend(s[0], 1, 1, &out, sizeof out, &send);
    ASSERT_TRUE(job.finish(receive) && job.finish(send));
    ASSERT_EQ(status_of(receive).error, CANELE_OK);
    ASSERT_EQ(in, out);
    if (round > 0) break;
    comm::Engine& engine = job.engine(0);
    engine.lock_for_callback();
    comm::peers::rail_failed(engine, comm::peers::add_rail(engine.peer(1), engine.instances[2].get()));
    engine.unlock();
  }
}

/// Ranks may prefer different drivers of the same pair: bytes that one driver has written mean nothing to another.
TEST(UnusedRail, AMemoryKeyOfAnotherDriverIsNotUsed) {
  LocalJob job;
  const auto s = job.open("disagree");
  job.engine(1).receiver_initiated = false;
  std::vector<std::uint64_t> out(100'000, 7), in(out.size());
  for (const bool agree : {true, false}) {
    std::fill(in.begin(), in.end(), 0);
    if (!agree) job.engine(1).instances[1]->label = "another";
    canele_request_t send{}, receive{};
    canele_isend(s[0], 1, 1, out.data(), out.size() * sizeof out[0], &send);
    job.step_all();  // it comes unexpected
    canele_irecv(s[1], 0, 1, CANELE_TAG_EXACT, in.data(), in.size() * sizeof in[0], &receive);
    ASSERT_TRUE(job.finish(receive) && job.finish(send));
    EXPECT_EQ(in, out);
    EXPECT_EQ(job.engine(1).counters.read(comm::Counter::rma_get_bytes), out.size() * sizeof out[0]) << agree;
  }
}

/// Two connected ranks on two rails; rank 0 receives a large message whose bytes rank 1 has yet to send.
class TwoDestinations : public testing::Test {
 protected:
  TwoDestinations() : job_(options()), s_(job_.open("destinations")) {
    canele_request_t send{}, receive{};
    canele_irecv(s_[0], 1, 1, CANELE_TAG_EXACT, nullptr, 0, &receive);
    canele_isend(s_[1], 0, 1, nullptr, 0, &send);
    EXPECT_TRUE(job_.finish(receive));
    EXPECT_TRUE(job_.until([&] { return instance(1).connected_peers > 0 && instance(2).connected_peers > 0; }));
    canele_irecv(s_[0], 1, 2, CANELE_TAG_EXACT, memory_.data(), memory_.size(), &receive_);
    engine().lock_for_callback();
    comm::Request& request = comm::request_of(&receive_);
    engine().matcher.cancel(request.session->match, request.receive.node);  // as if matched
    request.stage = comm::Request::Stage::moving;
    comm::rendezvous::stream(engine(), request, engine().peer(1), comm::Handle{77}, memory_.size());
    key_ = request.handle;
  }
  ~TwoDestinations() override { engine().unlock(); }

  static JobOptions options() {
    JobOptions made;
    made.settings = {"CANELE_VERBOSE=0", "CANELE_EXPERT_RECEIVER_INITIATED=off"};
    made.drivers = {comm::find_driver("self"), comm::find_driver("tcp"), comm::find_driver("tcp")};
    made.drivers[2].with_previous = true;
    return made;
  }
  comm::Engine& engine() { return job_.engine(0); }
  comm::DriverInstance& instance(std::size_t which) { return *engine().instances[which]; }
  int ask(std::size_t which, std::size_t begin = 0, std::size_t end = size) {
    iovec piece;
    return comm::rendezvous::bulk_destination(engine(), engine().peer(1), instance(which), {key_, begin, end - begin},
                                              {&piece, 1});
  }
  void bulk_written(std::size_t which, std::size_t begin = 0, std::size_t end = size) {
    comm::rendezvous::bulk_written(engine(), engine().peer(1), instance(which), {key_, begin, end - begin});
  }
  bool ended() { return comm::request_of(&receive_).finalized(); }

  LocalJob job_;
  std::vector<canele_session_t*> s_;
  static constexpr std::size_t size = 100'000;
  std::vector<char> memory_ = std::vector<char>(size);
  canele_request_t receive_{};
  comm::Handle key_ = comm::Handle::none;
};

TEST_F(TwoDestinations, OfOneTransferTakeDifferentBytes) {
  EXPECT_EQ(ask(1, 0, 40'000), 1);
  EXPECT_EQ(ask(2, 40'000, 70'000), 1);
  bulk_written(2, 40'000, 70'000);
  EXPECT_EQ(ask(2, 70'000, size), 1);
  bulk_written(2, 70'000, size);
  EXPECT_FALSE(ended()) << "the first driver still writes";
  bulk_written(1, 0, 40'000);
  EXPECT_TRUE(ended());
  EXPECT_EQ(comm::request_of(&receive_).status_error, CANELE_OK);
  EXPECT_TRUE(engine().peer(1).rail_group->ranges.empty());
  EXPECT_TRUE(engine().peer(1).rail_group->destinations.empty());
}

TEST_F(TwoDestinations, DoNotTakeBytesThatTheOtherHasOrHad) {
  EXPECT_EQ(ask(1, 0, 40'000), 1);
  EXPECT_EQ(ask(2, 39'999, 70'000), 0) << "the first driver still writes there";
  EXPECT_EQ(ask(2, 50'000, 70'000), 1);
  bulk_written(2, 50'000, 70'000);
  EXPECT_EQ(ask(2, 69'999, 80'000), 0) << "one of these bytes has arrived";
  bulk_written(1, 0, 40'000);
  EXPECT_EQ(ask(2, 39'999, 50'000), 0) << "one of these bytes has arrived";
  EXPECT_EQ(ask(1, 40'000, 50'000), 1);
  bulk_written(1, 40'000, 50'000);
  EXPECT_EQ(ask(2, 70'000, size), 1);
  EXPECT_FALSE(ended());
  bulk_written(2, 70'000, size);
  EXPECT_TRUE(ended());
}

TEST_F(TwoDestinations, MoreGapsThanRailsLeaveAreAViolation) {
  for (std::size_t at = 1; at < size && !engine().peer(1).disconnected(); at += 2) {
    ASSERT_EQ(ask(1, at, at + 1), 1);
    bulk_written(1, at, at + 1);
  }
  EXPECT_TRUE(engine().peer(1).disconnected());
  EXPECT_TRUE(ended());
  EXPECT_EQ(comm::request_of(&receive_).status_error, CANELE_EPROTOCOL);
}

/// A rail may still have a slice of a grant that a lost rail has ended, when all of it has come by a later grant.
TEST_F(TwoDestinations, ASendEndsOnceNoRailReadsItsMemory) {
  canele_request_t posted{};
  engine().unlock();
  ASSERT_EQ(canele_isend(s_[0], 1, 9, memory_.data(), memory_.size(), &posted), CANELE_OK);
  job_.step_all();
  engine().lock_for_callback();
  comm::Request& send = comm::request_of(&posted);
  ASSERT_TRUE(send.announced());
  send.item = strategies::Item{};  // as if it had been granted twice
  send.item.kind = strategies::Kind::bulk;
  send.transfer_id = comm::Handle{2};
  send.moved = send.expected = memory_.size();
  comm::Peer& peer = engine().peer(1);
  comm::Rail& rail = *peer.rail_of(instance(2));
  rail.packet = comm::link::new_packet(engine());
  rail.packet->bulk = true;
  rail.packet->plan.put(send.item);
  rail.packet->transfer_id = comm::Handle{1};
  comm::transition(rail, comm::Transmit::staged);
  comm::transition(rail, comm::Transmit::sending);
  const std::uint32_t delivered = 0;
  EXPECT_TRUE(comm::rendezvous::on_fin(engine(), peer, send.handle, comm::link::bytes_of(delivered)).is_ok());
  EXPECT_FALSE(send.finalized()) << "the rail reads its memory";
  comm::link::packet_done(engine(), rail, Status::ok);
  EXPECT_TRUE(send.finalized());
}

TEST_F(TwoDestinations, AReceiveOutlivesItsPeerUntilTheDriverHasLetGo) {
  EXPECT_EQ(ask(1), 1);
  engine().fail_peer(engine().peer(1), CANELE_EPROTOCOL, true, "malformed data by the other rail", &instance(2));
  EXPECT_FALSE(ended()) << "the driver of the first rail still writes there";
  EXPECT_EQ(ask(1), 0) << "nothing more is wanted";
  bulk_written(1);
  EXPECT_TRUE(ended());
  EXPECT_EQ(comm::request_of(&receive_).status_error, CANELE_EPROTOCOL);
}

TEST_F(TwoDestinations, TheFailureOfTheRailIsALettingGo) {
  EXPECT_EQ(ask(1), 1);
  engine().fail_peer(engine().peer(1), CANELE_EPEER, false, "it has left");
  EXPECT_FALSE(ended());
  comm::peers::driver_failed(engine(), instance(1), 1, true, "closed");
  EXPECT_TRUE(ended());
}

TEST_F(TwoDestinations, SoIsItsNextPacketWhichIsRefused) {
  EXPECT_EQ(ask(1), 1);
  engine().fail_peer(engine().peer(1), CANELE_EPROTOCOL, true, "malformed data by the other rail", &instance(2));
  EXPECT_FALSE(ended());
  engine().unlock();
  EXPECT_EQ(instance(1).packet(1, std::vector<std::byte>(20)), drivers::Take::rejected);
  engine().lock_for_callback();
  EXPECT_TRUE(ended()) << "after refused the driver has let go, and says nothing more";
}

INSTANTIATE_TEST_SUITE_P(Pairs, Rails, testing::Values(Pair{"shm", "tcp"}, Pair{"tcp", "tcp"}, Pair{"shm", "shm"}),
                         [](const auto& i) { return std::string(i.param.first) + "_" + i.param.second; });

}  // namespace
}  // namespace canele::test

// SPDX-License-Identifier: BSD-3-Clause
//
// Sessions that are closed with messages in them: every sender that waits for one is told. Sessions that come and go
// for long: their numbers and memory are used again, and nothing of an old one is taken for the new one.
//
// The test's own thread steps all engines. Costs are counted, never timed: sessions that exist, numbers ever used,
// memory of the table.
#include <gtest/gtest.h>

#include <deque>

#include "comm/engine/rejection.hpp"
#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

using comm::Counter;

struct Sent {
  std::vector<std::uint8_t> bytes;
  canele_request_t request{};
};

class Close : public testing::TestWithParam<const char*> {
 protected:
  void start(int size = 3, std::vector<std::string> settings = {}) {
    JobOptions options;
    options.size = size;
    options.drivers = {comm::find_driver("self"), comm::find_driver(GetParam())};
    options.settings = std::move(settings);
    job_ = std::make_unique<LocalJob>(options);
    s_ = job_->open("x");
  }
  comm::Session& session(int rank) { return comm::api::session_of(s_[at(rank)]); }
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

  Sent& send(int from, int to, std::uint64_t tag, std::size_t length, unsigned flags = 0) {
    Sent& one = sent_.emplace_back();
    one.bytes = test::pattern(length, static_cast<unsigned>(tag));
    canele_send_options_t how{};
    how.struct_size = sizeof how;
    how.flags = flags;
    const canele_data_t data = canele_data_contiguous(one.bytes.data(), length);
    EXPECT_EQ(canele_isend_data(s_[at(from)], to, tag, &data, &how, &one.request), CANELE_OK) << canele_error_detail();
    return one;
  }
  /// Steps until so many messages are stored in the rank's session.
  bool waits_at(int rank, std::size_t count) {
    return job_->until([&] { return session(rank).match.unexpected == count; });
  }
  void expect_ended(const Sent& one, int code, const char* what) {
    ASSERT_TRUE(job_->finish(one.request)) << what;
    EXPECT_EQ(status_of(one.request).error, code) << what;
    EXPECT_EQ(status_of(one.request).cancelled, 0) << what;
  }
  /// Checks that a message gets through in the session.
  void expect_goes(int from, int to, std::size_t length) {
    std::vector<std::uint8_t> into(length);
    canele_request_t receive{};
    ASSERT_EQ(canele_irecv(s_[at(to)], from, 77, CANELE_TAG_EXACT, into.data(), length, &receive), CANELE_OK);
    const Sent& one = send(from, to, 77, length);
    ASSERT_TRUE(job_->finish(receive) && job_->finish(one.request));
    EXPECT_EQ(status_of(receive).error, CANELE_OK);
    EXPECT_TRUE(into == one.bytes);
  }
  void expect_nothing_left(int rank) {
    comm::Engine& engine = job_->engine(rank);
    EXPECT_TRUE(job_->until([&] { return engine.pending_sends == 0; }));
    EXPECT_EQ(engine.sends.used(), 0u);
    EXPECT_EQ(engine.counters.read(Counter::unexpected_now), 0u);
  }

  std::unique_ptr<LocalJob> job_;
  std::vector<canele_session_t*> s_;
  std::deque<Sent> sent_;
};

constexpr std::size_t rendezvous_bytes = 300'000;

// Sends every kind of message, to another rank and to the rank itself.
TEST_P(Close, EndsTheSendsOfMessagesThatNobodyReceived) {
  for (const int from : {0, 1}) {
    start();
    expect_goes(from, 1, 8);
    const Sent& eager = send(from, 1, 1, 100);
    const Sent& rendezvous = send(from, 1, 2, rendezvous_bytes);
    const Sent& synchronous = send(from, 1, 3, 8, CANELE_SEND_SYNCHRONOUS);
    const Sent& both = send(from, 1, 4, rendezvous_bytes, CANELE_SEND_SYNCHRONOUS);
    ASSERT_TRUE(waits_at(1, 4));
    if (from == 1) {
      ASSERT_EQ(canele_session_close(s_[1]), CANELE_EBUSY) << "its own sends are pending; the end of the engine drops";
      comm::Engine& engine = job_->engine(1);
      engine.lock_for_callback();
      comm::rejection::drop_all(engine, session(1));
      engine.unlock();
    } else {
      ASSERT_EQ(canele_session_close(s_[1]), CANELE_OK);
    }
    expect_ended(eager, CANELE_OK, "an eager message has gone");
    expect_ended(rendezvous, CANELE_ECANCELED, "a large message");
    expect_ended(synchronous, CANELE_ECANCELED, "a synchronous message");
    expect_ended(both, CANELE_ECANCELED, "a large synchronous message");
    EXPECT_EQ(job_->engine(1).counters.read(Counter::unexpected_dropped), 4u);
    expect_nothing_left(from);
    if (from == 1) {
      ASSERT_EQ(canele_session_close(s_[1]), CANELE_OK) << "nothing is pending any more";
    }
    ASSERT_EQ(canele_session_open(job_->handle(1), "x", 0, &s_[1]), CANELE_OK);
    expect_goes(0, 1, rendezvous_bytes);
  }
}

// Messages for which the receiver had no memory come once that of the first ones is free again; they wait for the next
// opening.
TEST_P(Close, LetsBlockedMessagesComeForTheNextOpening) {
  start(2, {"CANELE_UNEXPECTED_MEMORY=64k"});
  constexpr std::uint64_t count = 200;
  for (std::uint64_t i = 0; i < count; ++i) send(0, 1, i, 1000);
  ASSERT_TRUE(job_->until([&] { return job_->engine(0).counters.read(Counter::credit_blocked_now) > 0; }));
  for (int turn = 0; turn < 1000; ++turn) job_->step_all();
  ASSERT_EQ(canele_session_close(s_[1]), CANELE_OK);
  const std::uint64_t dropped = job_->engine(1).counters.read(Counter::unexpected_dropped);
  EXPECT_GT(dropped, 0u);
  ASSERT_EQ(canele_session_open(job_->handle(1), "x", 0, &s_[1]), CANELE_OK);
  std::vector<std::uint8_t> into(1000);
  for (std::uint64_t i = dropped; i < count; ++i) {
    canele_request_t receive{};
    ASSERT_EQ(canele_irecv(s_[1], 0, i, CANELE_TAG_EXACT, into.data(), into.size(), &receive), CANELE_OK);
    ASSERT_TRUE(job_->finish(receive)) << i;
    EXPECT_TRUE(into == sent_[i].bytes) << i;
  }
  for (const Sent& one : sent_) expect_ended(one, CANELE_OK, "all are eager");
}

TEST_P(Close, WaitsForWhoHoldsAMessage) {
  start(2);
  const Sent& large_one = send(0, 1, 5, rendezvous_bytes);
  ASSERT_TRUE(waits_at(1, 1));
  int found = 0;
  canele_request_t probed{};
  ASSERT_EQ(canele_improbe(s_[1], 0, 5, CANELE_TAG_EXACT, &found, &probed, nullptr), CANELE_OK);
  ASSERT_EQ(found, 1);
  EXPECT_EQ(canele_session_close(s_[1]), CANELE_EBUSY);
  const canele_data_t nothing = canele_data_contiguous(nullptr, 0);
  ASSERT_EQ(canele_receive_bind(&probed, &nothing), CANELE_OK);
  expect_ended(large_one, CANELE_OK, "it was taken");
  ASSERT_TRUE(job_->finish(probed));
  EXPECT_EQ(canele_session_close(s_[1]), CANELE_OK);
}

// canele_finalize discards after a second, both stored messages and those held by a request without a buffer.
TEST_P(Close, OfTheEngineEndsWhatIsHeldToo) {
  start(2);
  const Sent& held = send(0, 1, 5, rendezvous_bytes);
  const Sent& synchronous = send(0, 1, 6, 8, CANELE_SEND_SYNCHRONOUS);
  const Sent& waits = send(0, 1, 7, rendezvous_bytes);
  canele_request_t unbound{}, probed{};
  ASSERT_EQ(canele_irecv_late(s_[1], 0, 6, CANELE_TAG_EXACT, &unbound), CANELE_OK);
  ASSERT_TRUE(waits_at(1, 2));
  int found = 0;
  ASSERT_EQ(canele_improbe(s_[1], 0, 5, CANELE_TAG_EXACT, &found, &probed, nullptr), CANELE_OK);
  comm::Engine& engine = job_->engine(1);
  engine.lock_for_callback();
  const std::uint64_t post_order = engine.matcher.take_post_order();
  engine.unlock();
  const Sent& younger = send(0, 1, 8, 8, CANELE_SEND_SYNCHRONOUS);
  ASSERT_TRUE(waits_at(1, 2));
  engine.lock_for_callback();
  comm::rejection::drop_leftovers(engine, post_order);
  engine.unlock();
  for (const Sent* one : {&held, &synchronous, &waits, &younger}) {
    expect_ended(*one, CANELE_ECANCELED, "no receive will take it");
  }
  for (const canele_request_t* one : {&unbound, &probed}) {
    ASSERT_TRUE(job_->finish(*one));
    EXPECT_EQ(status_of(*one).error, CANELE_ECANCELED);
    EXPECT_EQ(status_of(*one).cancelled, 1);
  }
  const Sent& later = send(0, 1, 9, rendezvous_bytes);
  expect_ended(later, CANELE_ECANCELED, "the session was given up");
  expect_nothing_left(0);
}

// The root is told of a destination that closes; the ranks behind it get the data from the root.
TEST_P(Close, OfADestinationLeavesTheOthersOfAMulticast) {
  start(4, {"CANELE_EXPERT_MULTICAST=chain"});
  for (const int to : {1, 2, 3}) expect_goes(0, to, 8);
  const std::vector<std::uint8_t> bytes = test::pattern(rendezvous_bytes, 3);
  const int ranks[] = {1, 2, 3};
  int outcomes[3] = {-99, -99, -99};
  canele_multicast_options_t options{};
  options.struct_size = sizeof options;
  options.outcomes = outcomes;
  const canele_data_t data = canele_data_contiguous(bytes.data(), bytes.size());
  canele_request_t request{};
  ASSERT_EQ(canele_imulticast(s_[0], ranks, 3, 11, &data, &options, &request), CANELE_OK);
  ASSERT_TRUE(waits_at(1, 1) && waits_at(2, 1) && waits_at(3, 1));
  ASSERT_EQ(canele_session_close(s_[1]), CANELE_OK);
  std::vector<std::uint8_t> into[2];
  canele_request_t receives[2] = {};
  for (std::size_t i = 0; i < 2; ++i) {
    into[i].resize(rendezvous_bytes);
    ASSERT_EQ(canele_irecv(s_[i + 2], 0, 11, CANELE_TAG_EXACT, into[i].data(), rendezvous_bytes, &receives[i]),
              CANELE_OK);
  }
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(job_->finish(receives[i]));
    EXPECT_TRUE(into[i] == bytes) << i;
  }
  ASSERT_TRUE(job_->finish(request));
  EXPECT_EQ(status_of(request).error, CANELE_ECANCELED);
  EXPECT_EQ(outcomes[0], CANELE_ECANCELED);
  EXPECT_EQ(outcomes[1], CANELE_OK);
  EXPECT_EQ(outcomes[2], CANELE_OK);
  expect_nothing_left(0);
}

TEST_P(Close, SaysOnceWhatWasNeverReceived) {
  start(2);
  for (std::uint64_t i = 0; i < 3; ++i) send(0, 1, 40 + i, 8);
  send(0, 1, 50, rendezvous_bytes);
  ASSERT_TRUE(waits_at(1, 4));
  testing::internal::CaptureStderr();
  canele_session_close(s_[1]);
  const std::string said = testing::internal::GetCapturedStderr();
  for (const char* words : {"4 messages in session \"x\" were never received", "from rank 0, tag 40, 8 bytes",
                            "1 sender waits for that, and its send ends with an error"}) {
    EXPECT_NE(said.find(words), std::string::npos) << said;
  }
  ASSERT_EQ(canele_session_open(job_->handle(1), "x", 0, &s_[1]), CANELE_OK);
  testing::internal::CaptureStderr();
  canele_session_close(s_[1]);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "there was nothing";
}

// ---- sessions that come and go

/// Opens several times as many sessions as there are wire numbers, each used for a message both ways.
TEST_P(Close, GivesNumbersAndMemoryBack) {
  start(2);
  constexpr int times = 3'000;
  std::size_t capacity = 0;
  for (int i = 0; i < times; ++i) {
    const std::string label = "s" + std::to_string(i);
    const std::vector<canele_session_t*> before = std::exchange(s_, job_->open(label.c_str()));
    expect_goes(0, 1, 8 + static_cast<std::size_t>(i % 3) * 100);
    expect_goes(1, 0, 8);
    for (const std::size_t rank : {0, 1}) ASSERT_EQ(canele_session_close(s_[rank]), CANELE_OK);
    s_ = before;
    if (i == 10) capacity = job_->engine(0).sessions.capacity();
  }
  for (const int rank : {0, 1}) {
    comm::SessionTable& table = job_->engine(rank).sessions;
    EXPECT_EQ(table.capacity(), capacity) << "memory";
    EXPECT_LE(table.wires(), 2u) << "numbers";
    EXPECT_LE(table.size(), 2u) << "sessions that exist: the one that is open, and what the peer calls the last one";
  }
}

/// Messages that came before the opening are kept, though other sessions have used the number since.
TEST_P(Close, KeepsEarlyMessagesWhileNumbersAreUsedAgain) {
  start(2);
  canele_session_t* early = nullptr;
  ASSERT_EQ(canele_session_open(job_->handle(0), "early", 0, &early), CANELE_OK);
  std::swap(s_[0], early);
  const Sent& eager = send(0, 1, 1, 100);
  ASSERT_TRUE(job_->finish(eager.request));
  ASSERT_EQ(canele_session_close(s_[0]), CANELE_OK);
  s_[0] = early;
  for (int i = 0; i < 5; ++i) {
    const std::vector<canele_session_t*> before = std::exchange(s_, job_->open(("other" + std::to_string(i)).c_str()));
    expect_goes(0, 1, 8);
    for (const std::size_t rank : {0, 1}) ASSERT_EQ(canele_session_close(s_[rank]), CANELE_OK);
    s_ = before;
  }
  ASSERT_EQ(canele_session_open(job_->handle(1), "early", 0, &early), CANELE_OK);
  std::vector<std::uint8_t> into(100);
  canele_request_t receive{};
  ASSERT_EQ(canele_irecv(early, 0, 1, CANELE_TAG_EXACT, into.data(), into.size(), &receive), CANELE_OK);
  ASSERT_TRUE(job_->finish(receive));
  EXPECT_TRUE(into == eager.bytes);
}

TEST_P(Close, HasALimitOfOpenOnesOnly) {
  start(1);
  std::vector<canele_session_t*> open;
  canele_session_t* one = nullptr;
  int code = CANELE_OK;
  for (int i = 0; code == CANELE_OK; ++i) {
    code = canele_session_open(job_->handle(0), ("n" + std::to_string(i)).c_str(), 0, &one);
    if (code == CANELE_OK) open.push_back(one);
  }
  EXPECT_EQ(code, CANELE_ENOMEM);
  EXPECT_NE(std::string(canele_error_detail()).find("65535 sessions can be open at a time"), std::string::npos)
      << canele_error_detail();
  EXPECT_EQ(open.size() + 1, comm::SessionTable::most_open) << "and the one of the test";
  ASSERT_EQ(canele_session_close(open.back()), CANELE_OK);
  EXPECT_EQ(canele_session_open(job_->handle(0), "again", 0, &one), CANELE_OK);
}

/// A peer announces labels that are never opened here: that uses no number, and ends with its connection.
TEST_P(Close, APeerCannotUseUpLabelsByAnnouncing) {
  start(2);
  expect_goes(0, 1, 8);
  std::vector<canele_session_t*> theirs;
  bool sent = true;
  for (std::size_t i = 0; sent && i <= comm::SessionTable::most_mentioned; ++i) {
    canele_session_t* one = nullptr;
    ASSERT_EQ(canele_session_open(job_->handle(0), ("a" + std::to_string(i)).c_str(), 0, &one), CANELE_OK);
    theirs.push_back(std::exchange(s_[0], one));
    Sent& message = send(0, 1, 1, 0);
    if (i % 32 == 0) job_->step_all();
    sent = i == comm::SessionTable::most_mentioned || job_->finish(message.request);
    if (sent && comm::request_of(&message.request).status_error != CANELE_OK) break;
    // Frees stored messages, so that memory for messages is not the limit that is reached first.
    if (i % 32 != 0) continue;
    comm::Engine& engine = job_->engine(1);
    engine.lock_for_callback();
    engine.sessions.each([&](comm::Session& session) { comm::rejection::drop_all(engine, session); });
    engine.unlock();
    engine.after_submit();
  }
  comm::SessionTable& table = job_->engine(1).sessions;
  EXPECT_TRUE(job_->until([&] { return job_->engine(1).peers[0]->disconnected(); })) << table.made_by(0);
  EXPECT_EQ(table.made_by(0), comm::SessionTable::most_mentioned);
  EXPECT_EQ(table.wires(), 1u) << "of its own, it has used one number";
}

INSTANTIATE_TEST_SUITE_P(Drivers, Close, testing::Values("shm", "tcp"),
                         [](const auto& i) { return std::string(i.param); });

}  // namespace
}  // namespace canele::test

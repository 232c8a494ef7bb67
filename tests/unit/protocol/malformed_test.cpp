// SPDX-License-Identifier: BSD-3-Clause
//
// Malformed packets, and peers that speak another version: the engine refuses them with a reason and continues.
//
// Packets are handed to the parser directly, so that every byte can be wrong; the sanitizer builds run this test, too.
#include <algorithm>
#include <cstring>
#include <random>

#include "comm/engine/connect.hpp"
#include "unit/protocol/packets.hpp"

namespace canele::test {
namespace {

namespace wire = comm::wire;
Bytes blocked(const wire::BlockedEnvelope& place, std::uint32_t batch, std::uint16_t session = 0) {
  Bytes payload = bytes_of(place);
  const Bytes announced = bytes_of(wire::Rts{comm::Handle{1}, 10, 0, 0, 0, 0, 0, {}, comm::Handle::none});
  payload.insert(payload.end(), announced.begin(), announced.end());
  return chunk(wire::Type::blocked_envelope, 1, batch, session, payload);
}

Bytes share(std::uint64_t handle, const wire::Rtr& rtr) {
  Bytes payload = bytes_of(rtr);
  payload.resize(payload.size() + rtr.rkey);
  return chunk(wire::Type::shared_copy, handle, 0, 0, payload);
}

class Malformed : public testing::Test {
 protected:
  Malformed() : s_(job_.open("s")) { meet(job_, s_); }
  comm::Verdict give(const Bytes& packet) { return give_packet(job_, packet); }

  LocalJob job_;
  std::vector<canele_session_t*> s_;
};

TEST_F(Malformed, EachKindOfMalformedPacketHasItsReason) {
  const Bytes none;
  const std::vector<Bytes> bad = {
      none,
      Bytes(5),
      chunk(static_cast<wire::Type>(77), 0, 0, 0, none),
      chunk(wire::Type::eager, 1, 2, 999, none),         // session not announced
      chunk(wire::Type::eager, 1, 9, 0, none),           // number out of order
      chunk(wire::Type::eager_sync, 1, 2, 0, Bytes(3)),  // no handle
      chunk(wire::Type::rts, 1, 2, 0, Bytes(10)),        // cut
      chunk(wire::Type::rts, 1, 2, 0,
            bytes_of(wire::Rts{comm::Handle{1}, 10, 5, 0, 0, 0, 0, {}, comm::Handle::none})),  // header missing
      chunk(wire::Type::rts, 1, 2, 0,
            bytes_of(wire::Rts{comm::Handle{1}, 10, 0, 60000, 0, 0, 0, {}, comm::Handle::none})),  // rkey missing
      chunk(wire::Type::cts, 12345, 0, 0, bytes_of(wire::Cts{comm::Handle{1}, 0, 10})),            // no such send
      chunk(wire::Type::fin, 12345, 0, 0, Bytes(4)),
      chunk(wire::Type::fin, 12345, 0, 0, Bytes(1)),
      chunk(wire::Type::ack, ~std::uint64_t{0}, 0, 0, none),
      chunk(wire::Type::rtr, 1, 0, 0, Bytes(10)),
      chunk(wire::Type::rtr, 1, 0, 0, bytes_of(wire::Rtr{comm::Handle{1}, 10, 0, 1, 0, 30, 0})),  // rkey missing
      chunk(wire::Type::rtr, 1, 0, 999,
            bytes_of(wire::Rtr{comm::Handle{1}, 10, 0, 1, 0, 0, 0})),  // session not announced
      chunk(wire::Type::rtr, 1, 0, 0, bytes_of(wire::Rtr{comm::Handle{1}, 10, 0, 1, 60000, 0, 0})),  // no such line
      chunk(wire::Type::shared_copy, 1, 0, 0, Bytes(10)),
      chunk(wire::Type::shared_copy, 1, 0, 0,
            bytes_of(wire::Rtr{comm::Handle{1}, 10, 0, 1, 0, 30, 0})),  // rkey missing
      share(12345, wire::Rtr{comm::Handle{1}, 10, 0, 1, 0, 16, 0}),     // no such send
      chunk(wire::Type::copy_done, 12345, 0, 0, Bytes(4)),
      chunk(wire::Type::copy_done, 12345, 0, 0, Bytes(1)),
      chunk(wire::Type::rail_probe, 0, 1, 0, none),                                // no time
      chunk(wire::Type::rail_echo, 1, 1, 0, none),                                 // nothing was asked
      chunk(wire::Type::rail_report, 1, 1, 0, none),                               // there are no several rails
      chunk(wire::Type::transfer_failed, 1, 0, 0, none),                           // nothing was asked
      chunk(wire::Type::credit, 1, 0, 0, none),                                    // less than before
      chunk(wire::Type::solicit, 0, 0, 0, none),                                   // no id
      chunk(wire::Type::solicit, 1, 0, 0, Bytes(23)),                              // cut
      chunk(wire::Type::solicit, 1, 0, 999, bytes_of(wire::Solicit{1, 1, 0, 0})),  // session not announced
      chunk(wire::Type::solicit, 1, 0, 0, bytes_of(wire::Solicit{2, 1, 0, 0})),    // tag outside of its mask
      chunk(wire::Type::blocked_reply, 1, 0, 0, none),                             // nothing was advertised
      chunk(wire::Type::blocked_envelope, 1, 0, 0, Bytes(10)),                     // cut
      blocked({1, 0, 1, 1, {}}, 0),                     // it has not reported blocked messages
      chunk(wire::Type::session, 0, 1, 5, none),        // no label
      chunk(wire::Type::session, 0, 1, 5, Bytes(200)),  // too long a label
  };
  for (const Bytes& packet : bad) EXPECT_TRUE(give(packet).is_violation());
  Bytes long_size = chunk(wire::Type::eager, 1, 2, 0, Bytes(300));
  long_size.resize(long_size.size() - 1);
  EXPECT_TRUE(give(long_size).is_violation());
  EXPECT_TRUE(give(chunk(wire::Type::eager, 1, 2, 0, none)).is_ok()) << "good packets are still taken";
  EXPECT_TRUE(give(chunk(wire::Type::rts, 1, 3, 0,
                         bytes_of(wire::Rts{comm::Handle{1}, 99999, 0, 0, 0, 0, 0, {}, comm::Handle{7}})))
                  .is_violation())
      << "no such receive";
}

TEST_F(Malformed, BlockedEnvelopesKeepToTheirBatch) {
  ASSERT_TRUE(give(chunk(wire::Type::blocked, 1, 0, 0, Bytes())).is_ok());
  for (const wire::BlockedEnvelope& wrong :
       {wire::BlockedEnvelope{1, 0, 0, 0, {}}, wire::BlockedEnvelope{1, 2, 2, 0, {}},
        wire::BlockedEnvelope{1, 0, 65, 0, {}}, wire::BlockedEnvelope{0, 0, 1, 1, {}}}) {
    EXPECT_STREQ(reason(give(blocked(wrong, 0))), "a blocked envelope has a wrong place in its batch");
  }
  EXPECT_TRUE(give(blocked({1, 0, 3, 0, {}}, 7)).is_ok());
  EXPECT_STREQ(reason(give(blocked({1, 0, 3, 0, {}}, 7))), "it sends a blocked envelope twice in a batch");
  EXPECT_STREQ(reason(give(blocked({1, 1, 3, 0, {}}, 8))),
               "it began a batch of blocked envelopes before the end of the last");
  EXPECT_TRUE(give(blocked({1, 1, 3, 0, {}}, 7)).is_ok());
  EXPECT_TRUE(give(blocked({1, 2, 3, 0, {}}, 7, 999)).is_violation()) << "session not announced";
  EXPECT_TRUE(give(blocked({1, 2, 3, 1, {}}, 7)).is_ok());
  EXPECT_EQ(job_.engine(1).counters.read(comm::Counter::unexpected_now), 0u) << "nothing is kept of a blocked envelope";
}

TEST_F(Malformed, AnswersThatWereNotAskedForAreRefused) {
  EXPECT_TRUE(give(chunk(wire::Type::solicit_done, 5, 0, 0, Bytes())).is_ok()) << "late: nothing is blocked any more";
  ASSERT_TRUE(give(chunk(wire::Type::blocked, 1, 3, 0, Bytes())).is_ok());
  EXPECT_TRUE(give(chunk(wire::Type::solicit_done, 5, 2, 0, Bytes())).is_ok()) << "late: of an earlier time";
  EXPECT_STREQ(reason(give(chunk(wire::Type::solicit_done, 99, 3, 0, Bytes()))), "it completes what was not solicited");
  EXPECT_TRUE(give(blocked({1, 0, 1, 1, {}}, 7)).is_ok());
  EXPECT_EQ(job_.engine(1).counters.read(comm::Counter::unexpected_now), 0u) << "no probe has asked for it";
}

TEST_F(Malformed, QuestionsHaveALimitAndAnOrder) {
  comm::Peer& peer = job_.engine(1).peer(0);
  Bytes bytes(3000);
  std::vector<canele_request_t> sends(40);
  for (canele_request_t& one : sends) ASSERT_EQ(canele_isend(s_[1], 0, 1, bytes.data(), 3000, &one), CANELE_OK);
  ASSERT_NE(peer.blocked_sends, nullptr);
  const std::uint32_t episode = peer.blocked_sends->episode;
  const auto ask = [&](std::uint64_t solicit_id, std::uint64_t tag) {
    return give(
        chunk(wire::Type::solicit, solicit_id, episode, 0, bytes_of(wire::Solicit{tag, ~std::uint64_t{0}, 0, 0})));
  };
  EXPECT_TRUE(ask(5, 1).is_ok());
  EXPECT_STREQ(reason(ask(4, 1)), "it solicits with an older id than before");
  for (int i = 1; i < comm::BlockedSends::most_solicitations; ++i) EXPECT_TRUE(ask(5, 1).is_ok());
  EXPECT_STREQ(reason(ask(5, 1)), "it solicits more before it has its answers");
  EXPECT_TRUE(give(chunk(wire::Type::solicit, 1, episode + 1, 0, Bytes())).is_ok()) << "late: of another time";
  job_.destroy(0);
  for (canele_request_t& one : sends) ASSERT_TRUE(job_.finish(one));
}

TEST_F(Malformed, MoreThanWasGrantedIsRefused) {
  const Bytes message = Bytes(1000);
  std::uint32_t number = 2;
  comm::Verdict verdict = comm::Verdict::ok();
  for (int i = 0; i < 1000 && verdict.is_ok(); ++i) verdict = give(chunk(wire::Type::eager, 9, number++, 0, message));
  EXPECT_STREQ(reason(verdict), "it sent more than it was granted");
  const comm::Engine& engine = job_.engine(1);
  EXPECT_LE(engine.counters.read(comm::Counter::unexpected_bytes_now), engine.credit.first_target);
}

TEST_F(Malformed, RandomAndMutatedPacketsNeverCrash) {
  std::mt19937_64 random(20'261'120);
  const Bytes good =
      chunk(wire::Type::rts, 7, 2, 0, bytes_of(wire::Rts{comm::Handle{1}, 100, 0, 0, 0, 0, 0, {}, comm::Handle::none}));
  int refused = 0;
  for (int i = 0; i < 200'000; ++i) {
    Bytes packet = good;
    if (i % 2 == 0) {
      packet.resize(1 + random() % 80);
      for (std::byte& b : packet) b = static_cast<std::byte>(random());
      packet[std::min<std::size_t>(14, packet.size() - 1)] = static_cast<std::byte>(random() % 20);
    } else {
      for (int flips = 0; flips < 3; ++flips) packet[random() % packet.size()] = static_cast<std::byte>(random());
    }
    if (packet.size() > 14 && packet[14] == static_cast<std::byte>(wire::Type::bye))
      continue;  // legal: the peer leaves
    if (packet.size() > 14 && packet[14] == static_cast<std::byte>(wire::Type::session))
      continue;  // legal labels fill the table
    refused += give(packet).is_violation();
  }
  EXPECT_GT(refused, 80'000);
}

TEST_F(Malformed, ARankWithAnotherWireVersionIsRefusedNamingBoth) {
  comm::Engine& engine = job_.engine(0);
  engine.lock_for_callback();
  comm::Blob blob = comm::peers::make_address(engine);
  blob[0] = std::byte{99};
  comm::Peer peer;
  peer.rank = 1;
  peer.backlog = engine.lifecycle.strategy.create();
  peer.address = blob;
  peer.state = comm::Peer::State::connecting;
  comm::peers::connect(engine, peer);
  engine.unlock();
  EXPECT_EQ(peer.error, CANELE_EVERSION);
  EXPECT_NE(peer.reason.find("wire version 99"), std::string::npos) << peer.reason;
  EXPECT_NE(peer.reason.find("wire version " + std::to_string(wire::version)), std::string::npos) << peer.reason;
}

TEST_F(Malformed, WhatAnotherRankCallsItselfIsShownShortAndPrintable) {
  comm::Engine& engine = job_.engine(0);
  const std::string name = "\x1b[2J" + std::string(1000, '\n');
  Bytes blob = bytes_of(std::uint32_t{99});
  for (const Bytes& part : {bytes_of(static_cast<std::uint16_t>(name.size())), Bytes(name.size())}) {
    blob.insert(blob.end(), part.begin(), part.end());
  }
  std::memcpy(blob.data() + 6, name.data(), name.size());
  comm::Peer peer;
  peer.rank = 1;
  peer.backlog = engine.lifecycle.strategy.create();
  peer.address = blob;
  peer.state = comm::Peer::State::connecting;
  engine.lock_for_callback();
  comm::peers::connect(engine, peer);
  engine.unlock();
  EXPECT_EQ(peer.error, CANELE_EVERSION);
  EXPECT_LT(peer.reason.size(), 300u);
  EXPECT_TRUE(std::all_of(peer.reason.begin(), peer.reason.end(), [](char c) { return c >= ' ' && c <= '~'; }))
      << peer.reason;
}

void lose_before_connecting(std::size_t address_left) {
  LocalJob job({2, {comm::find_driver("self"), comm::find_driver("tcp")}, "aggregate", {}});
  const auto s = job.open("end");
  int value = 5;
  canele_request_t send{}, receive{};
  job.destroy(1);
  job.bury(1, address_left);
  canele_isend(s[0], 1, 1, &value, sizeof value, &send);
  canele_irecv(s[0], 1, 1, CANELE_TAG_EXACT, &value, sizeof value, &receive);
  for (canele_request_t* request : {&send, &receive}) {
    ASSERT_TRUE(job.finish(*request));
    EXPECT_EQ(status_of(*request).error, CANELE_EPEER);
    EXPECT_EQ(status_of(*request).source, 1);
  }
  EXPECT_EQ(canele_wait(&send, nullptr), CANELE_EPEER);
  EXPECT_NE(std::string(canele_error_detail()).find("died"), std::string::npos) << canele_error_detail();
}

TEST(PeerEnd, OneThatDiedBeforeItsAddressWasKnownIsLost) { lose_before_connecting(0); }
/// The address exists, but names no driver.
TEST(PeerEnd, OneThatNoDriverReachesAnyMoreIsLost) {
  lose_before_connecting(sizeof wire::version + 2 + std::strlen(canele_version()));
}

TEST(PeerEnd, RequestsOfADeadPeerEndAndTheOthersGoOn) {
  LocalJob job({3, {comm::find_driver("self"), comm::find_driver("tcp")}, "aggregate", {}});
  auto s = job.open("end");
  int value = 5, got[3] = {};
  canele_request_t hello[2]{}, from_dead{}, any{}, large{}, alive{}, send{};
  std::vector<char> big(1 << 20);
  canele_irecv(s[0], 1, 1, CANELE_TAG_EXACT, &got[0], sizeof(int), &hello[0]);
  canele_isend(s[1], 0, 1, &value, sizeof value, &hello[1]);
  ASSERT_TRUE(job.finish(hello[0]) && job.finish(hello[1]));
  canele_irecv(s[0], 1, 2, CANELE_TAG_EXACT, &got[0], sizeof(int), &from_dead);
  canele_irecv(s[0], CANELE_ANY_SOURCE, 3, CANELE_TAG_EXACT, &got[1], sizeof(int), &any);
  canele_isend(s[0], 1, 4, big.data(), big.size(), &large);
  for (int i = 0; i < 1000; ++i) job.step_all();
  job.destroy(1);  // without a goodbye
  const auto step = [&] { job.engine(0).step(), job.engine(2).step(); };
  for (int i = 0; i < 2'000'000 && !comm::request_of(&from_dead).finalized(); ++i) step();
  EXPECT_EQ(status_of(from_dead).error, CANELE_EPEER);
  EXPECT_EQ(status_of(from_dead).source, 1);
  EXPECT_EQ(status_of(large).error, CANELE_EPEER);
  EXPECT_EQ(canele_wait(&from_dead, nullptr), CANELE_EPEER);
  EXPECT_NE(std::string(canele_error_detail()).find("rank 1"), std::string::npos) << canele_error_detail();
  EXPECT_EQ(canele_isend(s[0], 1, 5, &value, sizeof value, &send), CANELE_OK);
  EXPECT_EQ(status_of(send).error, CANELE_EPEER);
  EXPECT_FALSE(comm::request_of(&any).finalized()) << "another rank can still send to it";
  canele_isend(s[2], 0, 3, &value, sizeof value, &alive);
  for (int i = 0; i < 2'000'000 && !comm::request_of(&any).finalized(); ++i) step();
  EXPECT_EQ(status_of(any).error, CANELE_OK);
  EXPECT_EQ(got[1], 5);
}

/// Everything but exactly one long eager message goes to the loop over chunks, which reports the fault.
TEST(OneLongEager, IsExactlyOne) {
  using comm::wire::Type;
  constexpr std::size_t length = 300;
  std::vector<std::byte> packet(comm::wire::chunk_size(length));
  const auto head_of = [&](Type type, std::size_t payload) {
    comm::wire::put_head(packet.data(), {7, 1, 2, type, 0}, payload);
    comm::wire::Head head{};
    EXPECT_TRUE(comm::wire::peek(packet, head));
    return head;
  };
  const auto found = [&](Type type, std::size_t payload, std::size_t cut) {
    const comm::wire::Head head = head_of(type, payload);
    return comm::wire::one_long_eager(head, std::span(packet).first(packet.size() - cut)).size();
  };
  EXPECT_EQ(found(Type::eager, length, 0), length);
  EXPECT_EQ(found(Type::eager, length + 1, 0), 0u);
  EXPECT_EQ(found(Type::eager, length - 1, 0), 0u);  // and another chunk behind it
  EXPECT_EQ(found(Type::eager_sync, length, 0), 0u);
  EXPECT_EQ(found(Type::rts, length, 0), 0u);
  EXPECT_EQ(found(Type::eager, length, 1), 0u);
  EXPECT_EQ(found(Type::eager, length, length + 2), 0u);  // within the size
  EXPECT_EQ(found(Type::eager, 8, 0), 0u);
}

}  // namespace
}  // namespace canele::test

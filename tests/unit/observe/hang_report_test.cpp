// SPDX-License-Identifier: BSD-3-Clause
//
// HangWatch: when a report is due, and how old a request is. HangReport: its text, and its diagnosis.
//
// One thread. Time is a number here; nothing waits.
#include "comm/diagnose/hang_report.hpp"

#include <gtest/gtest.h>

#include "comm/observe/hang_watch.hpp"

namespace canele::comm {
namespace {

constexpr std::uint64_t second = 1'000'000'000;

/// A watch whose clock advances in steps of its interval.
class Watched : public testing::Test {
 protected:
  /// Checks every interval for `seconds`. Returns the number of reports that were due.
  int look_for(std::uint64_t seconds) {
    int reports = 0;
    for (const std::uint64_t end = now_ + seconds * second; now_ < end;) {
      now_ += watch_.interval_ns();
      reports += watch_.see({now_, pulse_, pending_, sends_, waiting_since_}) ? 1 : 0;
    }
    return reports;
  }

  std::uint64_t now_ = 1000 * second, pulse_ = 1, pending_ = 0, sends_ = 0, waiting_since_ = 0;
  HangWatch watch_{30 * second, now_};
};

TEST_F(Watched, AnIdleEngineIsNeverReported) {
  EXPECT_EQ(look_for(10'000), 0);
  waiting_since_ = now_;  // nothing is pending: the thread waits for another event
  EXPECT_EQ(look_for(10'000), 0);
}

TEST_F(Watched, PostedReceivesAloneAreNeverReported) {
  pending_ = 5;
  EXPECT_EQ(look_for(10'000), 0);
}

TEST_F(Watched, ASendThatIsPendingTooLongIsReportedOnce) {
  EXPECT_EQ(look_for(100), 0);
  pending_ = sends_ = 1;
  EXPECT_EQ(look_for(30), 0) << "it is pending for that long, not the silence";
  EXPECT_EQ(look_for(2), 1);
  EXPECT_EQ(look_for(1000), 0);
}

TEST_F(Watched, ABlockedThreadIsReportedAfterTheLimit) {
  pending_ = 1;
  EXPECT_EQ(look_for(100), 0);
  waiting_since_ = now_;
  EXPECT_EQ(look_for(29), 0);
  EXPECT_EQ(look_for(2), 1);
}

TEST_F(Watched, ProgressStartsANewSilence) {
  pending_ = sends_ = 1;
  EXPECT_EQ(look_for(40), 1);
  ++pulse_;
  EXPECT_EQ(look_for(29), 0);
  EXPECT_EQ(look_for(3), 1);
  for (int i = 0; i < 100; ++i) {
    ++pulse_;
    EXPECT_EQ(look_for(10), 0);
  }
}

TEST_F(Watched, TimeInWhichNobodyLookedIsNoSilence) {
  pending_ = sends_ = 1;
  EXPECT_EQ(look_for(5), 0);
  now_ += 3600 * second;
  EXPECT_EQ(look_for(29), 0);
  EXPECT_EQ(look_for(3), 1);
}

TEST_F(Watched, AskingForAReportDoesNotSpendIt) {
  pending_ = sends_ = 1;
  for (int i = 0; i < 29; ++i) {
    EXPECT_EQ(look_for(1), 0);
    watch_.note(pulse_, now_);
  }
  EXPECT_EQ(look_for(4), 1);
}

TEST_F(Watched, OneCallerPerIntervalLooks) {
  EXPECT_FALSE(watch_.due(now_));
  now_ += watch_.interval_ns();
  EXPECT_TRUE(watch_.due(now_));
  EXPECT_FALSE(watch_.due(now_));
}

TEST(HangWatch, NoLimitNoReport) {
  HangWatch watch(0, 0);
  for (std::uint64_t now = second; now < 10'000 * second; now += second) {
    EXPECT_FALSE(watch.see({now, 1, 1, 1, 1}));
  }
}

TEST_F(Watched, AgesAreAtLeastAndShortByAtMostTheDistanceOfLooks) {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> posts;
  for (int i = 0; i < 500; ++i) {
    posts.emplace_back(watch_.tick(), now_);
    look_for(1);
  }
  for (const auto& [tick, posted] : posts) {
    const std::uint64_t age = now_ - posted, told = watch_.age_ns(tick, now_);
    EXPECT_LE(told, age);
    EXPECT_GE(told + age / 8 + 2 * second, age) << "old looks are thinned out, no more than that";
  }
  EXPECT_EQ(watch_.age_ns(watch_.tick(), now_), 0u);
}

TEST_F(Watched, ABusyTimeWithoutLooksDoesNotAgeWhatIsPostedAfterIt) {
  look_for(5);
  now_ += 600 * second;  // busy
  const std::uint32_t tick = watch_.tick();
  look_for(7);
  EXPECT_LE(watch_.age_ns(tick, now_), 7 * second);
  EXPECT_GE(watch_.age_ns(tick, now_), 6 * second);
}

TEST_F(Watched, IdleTurnsAreSeenAsPolling) {
  now_ += 5 * second;
  EXPECT_EQ(watch_.unpolled_ns(now_), 5 * second);
  watch_.idle_turn();
  EXPECT_EQ(watch_.unpolled_ns(now_), 0u);
  watch_.note(pulse_, now_);
  now_ += 2 * second;
  EXPECT_EQ(watch_.unpolled_ns(now_), 2 * second);
}

// ---------------------------------------------------------------------------------------------------------- text

HangReport::Request send_row() {
  HangReport::Request row;
  row.send = true;
  row.peer = 3;
  row.session = "s";
  row.tag = 7;
  row.length = 1'000'000;
  row.state = HangReport::State::waits_for_cts;
  row.age_ns = 31 * second;
  return row;
}

HangReport::Request receive_row() {
  HangReport::Request row;
  row.peer = 3;
  row.session = "s";
  row.tag = 7;
  row.length = 8;
  row.state = HangReport::State::waits_for_message;
  row.age_ns = 31 * second;
  row.waited_for = true;
  return row;
}

/// Returns the report of an engine of four with a worker, in silence.
HangReport a_report() {
  HangReport report;
  report.size = 4;
  report.limit_ns = 30 * second;
  report.interval_ns = second;
  report.silent_ns = 30 * second;
  report.pending = 1;
  report.worker = HangReport::WorkerState::sleeping;
  report.peers.push_back(
      {3, HangReport::PeerState::up, {{"shm", HangReport::RailState::up}}, 0, 0, 0, 12, 7, true, 31 * second});
  report.all_peers = 1;
  report.drivers.push_back({"shm", 1, 40, true, 31 * second});
  return report;
}

HangReport with_send(const HangReport::Request& row) {
  HangReport report = a_report();
  report.sends = {{row}, 1};
  return report;
}

HangReport with_receive(const HangReport::Request& row) {
  HangReport report = a_report();
  report.receives = {{row}, 1};
  report.waiters.push_back({HangReport::WaitKind::wait, 31 * second});
  report.all_waiters = 1;
  return report;
}

TEST(HangText, SaysAllInColumns) {
  HangReport report = with_receive(receive_row());
  report.sends = {{send_row()}, 1};
  report.pending = 2;
  EXPECT_EQ(
      to_text(report),
      "hang report: no packet and no completion for 30 s, 2 requests pending, rank 0 of 4 (CANELE_HANG_REPORT=30)\n"
      "     request      peer  session  tag  bytes    age   state\n"
      "     send 0x0     3     s        7    1000000  31 s  announced, waits for the receiver (CTS or copy)\n"
      "  *  receive 0x0  3     s        7    8        31 s  waits for a message\n"
      "  peer  state  rails    backlog      envelopes out, in  last packet\n"
      "  3     up     shm: up  0 (0 bytes)  12, 7              31 s ago\n"
      "  worker: sleeping, heartbeat 0, 0.0 s ago\n"
      "  blocked threads: a wait for 31 s\n"
      "  driver shm: 1 peer, last event 31 s ago, 40 polls without an event, not armed for the last sleep\n"
      "  likely: rank 3 has sent no message with tag 7 of session \"s\"");
}

TEST(HangText, CountsWhatItLeavesOut) {
  HangReport report = with_receive(receive_row());
  report.receives.all = 1'000'000;
  report.all_peers = 2;
  report.matched_unbound = 3;
  const std::string text = to_text(report);
  EXPECT_NE(text.find("and 999999 more receives\n"), std::string::npos) << text;
  EXPECT_NE(text.find("and 1 more peer\n"), std::string::npos) << text;
  EXPECT_NE(text.find("and 3 receives matched without a buffer\n"), std::string::npos) << text;
}

TEST(HangText, AReportOnAnIdleEngineIsShort) {
  HangReport report;
  report.asked_for = true;
  EXPECT_EQ(to_text(report),
            "report: no packet and no completion for 0.0 s, 0 requests pending, rank 0 of 1\n"
            "  worker: none\n  blocked threads: none");
  report.on_demand_progress = HangReport::OnDemandState::parked;
  EXPECT_NE(to_text(report).find("  worker: none; on-demand thread: sleeping\n"), std::string::npos) << to_text(report);
}

TEST(HangText, TagsAndBytesOfAllKinds) {
  HangReport::Request row = receive_row();
  row.peer = HangReport::any_peer;
  row.tag = 0xabc0000000000000;
  row.mask = 0xfff0000000000000;
  row.state = HangReport::State::waits_for_data;
  row.moved = 5;
  row.wanted = 8;
  const std::string text = to_text(with_receive(row));
  EXPECT_NE(text.find("  any   s        0xabc0000000000000 in bits 0xfff0000000000000  8 "), std::string::npos) << text;
  EXPECT_NE(text.find("waits for data, has 5 of 8 bytes"), std::string::npos) << text;
}

// ----------------------------------------------------------------------------------------------------- diagnosis

TEST(HangDiagnosis, SaysWhoHasNotPosted) {
  HangReport report = with_send(send_row());
  EXPECT_EQ(diagnose(report),
            "rank 3 has posted no receive for tag 7 of session \"s\", or is stopped or makes no progress: "
            "it has not answered");
  report.peers[0].quiet_ns = 5 * second;  // it has lived since
  EXPECT_EQ(diagnose(report),
            "rank 3 has posted no receive for tag 7 of session \"s\" (other packets have arrived from it since)");
  report.peers[0].rails[0].state = HangReport::RailState::full;
  EXPECT_EQ(diagnose(report),
            "rank 3 accepts no more packets: it is stopped, makes no progress, or the network is down");
}

TEST(HangDiagnosis, SaysWhoIsNotReached) {
  HangReport report = with_send(send_row());
  report.sends.rows[0].state = HangReport::State::waits_for_connection;
  report.peers[0].state = HangReport::PeerState::connecting;
  report.peers[0].rails = {{"shm", HangReport::RailState::failed}, {"tcp", HangReport::RailState::connecting}};
  EXPECT_EQ(diagnose(report).find("rank 3 is still connecting by tcp"), 0u) << diagnose(report);
  report.peers[0].state = HangReport::PeerState::resolving;
  EXPECT_EQ(diagnose(report), "the launcher has not given the address of rank 3");
}

TEST(HangDiagnosis, SaysWhenNobodyMakesProgress) {
  HangReport report = with_send(send_row());
  report.worker = HangReport::WorkerState::off;
  report.unpolled_ns = 40 * second;
  EXPECT_EQ(diagnose(report).find("no thread makes progress"), 0u) << diagnose(report);
  EXPECT_NE(diagnose(report).find("CANELE_WORKER=auto or bound"), std::string::npos) << diagnose(report);
  report.on_demand_progress = HangReport::OnDemandState::checking;
  EXPECT_NE(diagnose(report).find("the on-demand progress thread has no core"), std::string::npos) << diagnose(report);
  report.waiters.push_back({});
  report.all_waiters = 1;
  EXPECT_NE(diagnose(report).find("no thread makes progress"), 0u);
  report.worker = HangReport::WorkerState::polling;
  report.worker_still_ns = 20 * second;
  EXPECT_EQ(diagnose(report).find("the worker has been in the same progress call for 20 s"), 0u) << diagnose(report);
}

TEST(HangDiagnosis, SaysWhatHasComeInstead) {
  HangReport report = with_receive(receive_row());
  report.unexpected.push_back({"other", 1, 3, 8, 100});
  EXPECT_EQ(diagnose(report), "rank 3 has sent no message with tag 7 of session \"s\"");
  report.unexpected.push_back({"s", 1, 3, 8, 100});
  EXPECT_EQ(diagnose(report),
            "a thread waits for tag 7 of session \"s\", and the message that has arrived there has tag 8 of rank 3");
}

TEST(HangDiagnosis, NamesBarriersAndFinalize) {
  HangReport report = with_receive(receive_row());
  report.receives.rows[0].session = "barrier:solver";
  EXPECT_EQ(diagnose(report),
            "rank 3 has not entered the barrier of session \"solver\", or waits there for another rank");
  report.receives.rows[0].session = "canele.finalize";
  EXPECT_EQ(diagnose(report), "rank 3 has not called canele_finalize, or waits there for another rank");
}

TEST(HangDiagnosis, SaysNothingOfReceivesThatMayWait) {
  HangReport report = with_receive(receive_row());
  report.receives.rows[0].waited_for = false;
  EXPECT_EQ(diagnose(report), "");
  EXPECT_EQ(diagnose(HangReport()), "");
}

}  // namespace
}  // namespace canele::comm

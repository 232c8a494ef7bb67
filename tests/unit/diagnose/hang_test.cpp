// SPDX-License-Identifier: BSD-3-Clause
//
// Hang reports of engines: what is listed where, and that an idle engine causes no report.
//
// One thread, but for the worker of one test. The checks are made here, with times that the test sets: hours pass at
// once.
#include "comm/diagnose/hang_collect.hpp"
#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
using State = comm::HangReport::State;

class Hang : public testing::Test {
 protected:
  Hang() {
    sessions_ = job_.open("hang");
    exchange();
    canele_on_hang(
        job_.handle(0),
        [](canele_engine_t*, const char* text, void* into) {
          static_cast<std::vector<std::string>*>(into)->emplace_back(text);
        },
        &reports_);
    now_ = posix_platform().now_ns();
  }
  ~Hang() override { canele_on_hang(job_.handle(0), nullptr, nullptr); }

  /// Exchanges one message from 1 to 0: the ranks are connected, and rank 0 has received from rank 1.
  void exchange() {
    canele_request_t receive{}, send{};
    canele_irecv(sessions_[0], 1, 0, CANELE_TAG_EXACT, &word_, sizeof word_, &receive);
    canele_isend(sessions_[1], 0, 0, &word_, sizeof word_, &send);
    ASSERT_TRUE(job_.finish(receive) && job_.finish(send));
  }
  void settle() {
    for (int i = 0; i < 100; ++i) job_.step_all();
  }
  /// Checks for a hang as an idle thread of rank 0 would.
  void look_for(std::uint64_t seconds) {
    for (std::uint64_t i = 0; i < seconds; ++i) comm::hang::check(job_.engine(0), now_ += second_ns);
  }
  comm::HangReport collect() { return comm::hang::collect(job_.engine(0), now_); }

  LocalJob job_;
  std::vector<canele_session_t*> sessions_;
  std::vector<std::string> reports_;
  canele_request_t receive_{}, send_{};
  std::uint64_t word_ = 0, now_ = 0;
  std::vector<std::byte> large_ = std::vector<std::byte>(1 << 20), into_ = std::vector<std::byte>(1 << 20);
};

TEST_F(Hang, AnIdleEngineIsNeverReported) {
  look_for(10'000);
  EXPECT_TRUE(reports_.empty()) << reports_[0];
  const comm::HangReport report = collect();
  EXPECT_EQ(report.pending + report.sends.all + report.receives.all + report.matched_unbound, 0u);
}

TEST_F(Hang, PostedReceivesAloneAreListedAndNeverReported) {
  canele_irecv(sessions_[0], CANELE_ANY_SOURCE, 1, CANELE_TAG_EXACT, &word_, sizeof word_, &receive_);
  look_for(10'000);
  EXPECT_TRUE(reports_.empty()) << reports_[0];
  const comm::HangReport report = collect();
  ASSERT_EQ(report.receives.rows.size(), 1u);
  EXPECT_EQ(report.receives.rows[0].state, State::waits_for_message);
  EXPECT_EQ(report.receives.rows[0].peer, comm::HangReport::any_peer);
  EXPECT_GE(report.receives.rows[0].age_ns, 9'998 * second_ns);
  EXPECT_EQ(comm::diagnose(report), "");
  canele_cancel(&receive_);
  ASSERT_TRUE(job_.finish(receive_));
}

TEST_F(Hang, ARendezvousWithoutItsReceiveIsReportedOncePerSilence) {
  canele_isend(sessions_[0], 1, 7, large_.data(), large_.size(), &send_);
  settle();
  look_for(30);
  EXPECT_TRUE(reports_.empty());
  look_for(1000);
  ASSERT_EQ(reports_.size(), 1u);
  EXPECT_NE(reports_[0].find("announced, waits for the receiver"), std::string::npos) << reports_[0];
  EXPECT_NE(reports_[0].find("rank 1 has posted no receive for tag 7 of session \"hang\""), std::string::npos);
  exchange();
  look_for(1000);
  EXPECT_EQ(reports_.size(), 2u) << "after progress and a new silence";
  canele_irecv(sessions_[1], 0, 7, CANELE_TAG_EXACT, into_.data(), into_.size(), &receive_);
  ASSERT_TRUE(job_.finish(send_) && job_.finish(receive_));
  look_for(1000);
  EXPECT_EQ(reports_.size(), 2u);
  EXPECT_EQ(collect().pending, 0u);
}

TEST_F(Hang, AThreadThatWaitsForAMessageIsReportedAndItsRequestMarked) {
  canele_request_t others[30] = {};
  for (auto& other : others) canele_irecv(sessions_[0], 1, 1, CANELE_TAG_EXACT, &word_, sizeof word_, &other);
  look_for(100);
  canele_irecv(sessions_[0], 1, 7, CANELE_TAG_EXACT, &word_, sizeof word_, &receive_);
  const comm::Target target = comm::end_of(comm::request_of(&receive_));
  comm::BlockedThread blocked{comm::BlockedThread::In::wait, now_, {&target, nullptr, 1}};
  job_.engine(0).progress.waiters.enlist(blocked);
  look_for(29);
  EXPECT_TRUE(reports_.empty());
  look_for(3);
  ASSERT_EQ(reports_.size(), 1u);
  EXPECT_NE(reports_[0].find("rank 1 has sent no message with tag 7 of session \"hang\""), std::string::npos)
      << reports_[0];
  const comm::HangReport report = collect();
  EXPECT_EQ(report.receives.all, 31u);
  ASSERT_EQ(report.receives.rows.size(), comm::HangReport::most_rows);
  EXPECT_TRUE(report.receives.rows[0].waited_for && report.receives.rows[0].tag == 7);
  EXPECT_FALSE(report.receives.rows[1].waited_for);
  job_.engine(0).progress.waiters.dismiss(blocked);
  for (auto& other : others) canele_cancel(&other);
  canele_cancel(&receive_);
  ASSERT_TRUE(job_.finish(receive_) && job_.finish(others[29]));
}

TEST_F(Hang, AConditionMayBeWaitedForForEver) {
  canele_irecv(sessions_[0], 1, 7, CANELE_TAG_EXACT, &word_, sizeof word_, &receive_);
  comm::BlockedThread blocked{comm::BlockedThread::In::condition, now_, {}};
  job_.engine(0).progress.waiters.enlist(blocked);
  look_for(10'000);
  EXPECT_TRUE(reports_.empty());
  EXPECT_EQ(collect().waiters.size(), 1u);
  job_.engine(0).progress.waiters.dismiss(blocked);
  canele_cancel(&receive_);
  ASSERT_TRUE(job_.finish(receive_));
}

TEST_F(Hang, EveryPendingRequestIsCountedOnce) {
  canele_request_t small[200] = {}, synchronous{}, unbound{};
  for (auto& one : small) canele_isend(sessions_[0], 1, 5, &word_, sizeof word_, &one);  // most find the rail full
  canele_isend(sessions_[0], 1, 7, large_.data(), large_.size(), &send_);
  canele_send_options_t options{sizeof options, 0, CANELE_SEND_SYNCHRONOUS, 0};
  const canele_data_t data = canele_data_contiguous(&word_, sizeof word_);
  canele_isend_data(sessions_[0], 1, 8, &data, &options, &synchronous);
  canele_irecv_late(sessions_[0], 1, 9, CANELE_TAG_EXACT, &unbound);
  canele_irecv(sessions_[0], 1, 10, CANELE_TAG_EXACT, into_.data(), into_.size(), &receive_);
  for (int i = 0; i < 50; ++i) {
    const comm::HangReport report = collect();
    EXPECT_EQ(report.pending, report.sends.all + report.receives.all + report.matched_unbound);
    EXPECT_EQ(report.receives.all + report.matched_unbound, 2u);
    job_.step_all();
  }
  canele_request_t from_one{};
  canele_isend(sessions_[1], 0, 9, &word_, sizeof word_, &from_one);
  ASSERT_TRUE(job_.until([&] { return collect().matched_unbound == 1; })) << "the unbound receive has its message";
  EXPECT_EQ(canele_receive_bind(&unbound, &data), CANELE_OK);
  canele_cancel(&receive_);
  for (auto& one : small) {
    canele_request_t in{};
    canele_irecv(sessions_[1], 0, 5, CANELE_TAG_EXACT, &word_, sizeof word_, &in);
    ASSERT_TRUE(job_.finish(in) && job_.finish(one));
  }
  canele_request_t in[2] = {};
  canele_irecv(sessions_[1], 0, 8, CANELE_TAG_EXACT, &word_, sizeof word_, &in[0]);
  canele_irecv(sessions_[1], 0, 7, CANELE_TAG_EXACT, into_.data(), into_.size(), &in[1]);
  ASSERT_TRUE(job_.finish(synchronous) && job_.finish(send_) && job_.finish(unbound) && job_.finish(receive_));
  EXPECT_EQ(collect().pending, 0u);
}

TEST_F(Hang, AReportCanBeHadWhileAWorkerPolls) {
  canele_irecv(sessions_[0], 1, 7, CANELE_TAG_EXACT, &word_, sizeof word_, &receive_);
  ASSERT_EQ(canele_worker_bind(job_.handle(0), CANELE_INDEX_LOGICAL, nullptr, 0), CANELE_OK);
  for (int i = 0; i < 200; ++i) {
    char text[8192];
    size_t needed = 0;
    ASSERT_EQ(canele_report(job_.handle(0), text, sizeof text, &needed), CANELE_OK);
    EXPECT_NE(std::string(text).find("waits for a message"), std::string::npos) << text;
  }
  char cut[8];
  size_t needed = 0;
  EXPECT_EQ(canele_report(job_.handle(0), cut, sizeof cut, &needed), CANELE_ENOMEM);
  EXPECT_GT(needed, sizeof cut);
  canele_worker_stop(job_.handle(0));
  canele_cancel(&receive_);
  ASSERT_TRUE(job_.finish(receive_));
}

}  // namespace
}  // namespace canele::test

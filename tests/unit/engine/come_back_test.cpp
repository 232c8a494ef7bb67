// SPDX-License-Identifier: BSD-3-Clause
//
// A rank that died and was started again: ranks that knew the old process do not take the new one for it.
//
// There is no peer. Two drivers of rank 0 report what the test tells them to: which process has connected, which is
// lost.
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

using drivers::Rank;
using drivers::Status;

/// What a driver of rank 0 is to report, and what it was given.
struct Script {
  std::deque<std::uint64_t> connects;  ///< incarnations of rank 1 that connect, one at each poll
  bool fails = false, detects = true;
  std::vector<std::vector<std::byte>> sent;
  int deaths = 0;  ///< reported by the launcher
};
Script scripts[2];  ///< of its first and second driver

/// Reports that rank 1 has connected, and keeps the packets for it.
class Ghost final : public drivers::Driver {
 public:
  explicit Ghost(int kind) : kind_(kind) {}

 private:
  Script* script() { return context_->rank == 0 ? &scripts[kind_] : nullptr; }
  Status open_impl(drivers::DriverContext& context, drivers::Address* address, std::string*) override {
    context_ = &context;
    capabilities_.name = "ghost";
    capabilities_.max_packet = 4096;
    capabilities_.bulk_stream = true;  // but nothing here is large
    capabilities_.reaches_local = true;
    capabilities_.detects_failure = scripts[kind_].detects;
    address->assign(1, std::byte{1});
    return Status::ok;
  }
  Status connect_impl(Rank, std::span<const std::byte>) override { return Status::pending; }
  Status send_packet_impl(Rank, const iovec* pieces, int count, std::size_t, drivers::Token) override {
    std::vector<std::byte> bytes;
    for (int i = 0; i < count; ++i) {
      const auto* const begin = static_cast<const std::byte*>(pieces[i].iov_base);
      bytes.insert(bytes.end(), begin, begin + pieces[i].iov_len);
    }
    if (script() != nullptr) script()->sent.push_back(std::move(bytes));
    return Status::ok;
  }
  int poll_impl(int) override {
    if (script() == nullptr) return 0;
    while (context_->next_failed_rank() >= 0) ++script()->deaths;
    if (std::exchange(script()->fails, false)) {
      context_->events->failed(1, true, "the test says so");
      return 1;
    }
    if (script()->connects.empty()) return 0;
    met(1, script()->connects.front());
    script()->connects.pop_front();
    context_->events->connected(1);
    return 1;
  }
  bool arm_impl(bool) override { return false; }
  void close_impl() override {}

  const int kind_;
  drivers::DriverContext* context_ = nullptr;
};

template <int kind>
const drivers::DriverFactory ghost{drivers::contract_version, kind == 0 ? "first" : "second", "for tests",
                                   [] { return std::unique_ptr<drivers::Driver>(new Ghost(kind)); },
                                   [] { return std::string(); }};

class ComeBack : public testing::Test {
 protected:
  void start() {
    JobOptions options;
    options.drivers = {comm::find_driver("self"), &ghost<0>, &ghost<1>};
    options.drivers.back().with_previous = true;
    job_ = std::make_unique<LocalJob>(options);
    sessions_ = job_->open("s");
  }
  ComeBack() {
    for (Script& script : scripts) script = Script{};
  }
  /// Steps rank 0 until its drivers have reported everything.
  void hear() {
    for (int i = 0; i < 2000; ++i) job_->engine(0).step();
  }
  bool gone() { return job_->engine(0).peers[1] != nullptr && job_->engine(0).peers[1]->disconnected(); }
  /// Returns whether the last packet given to a driver says goodbye.
  static bool said_bye(const Script& script) {
    comm::wire::Head head{};
    return !script.sent.empty() && comm::wire::peek(script.sent.back(), head) && head.type == comm::wire::Type::bye;
  }
  std::unique_ptr<LocalJob> job_;
  std::vector<canele_session_t*> sessions_;
};

TEST_F(ComeBack, OneProcessByTwoDriversIsOnePeer) {
  start();
  scripts[0].connects = {111};
  scripts[1].connects = {111};
  hear();
  ASSERT_FALSE(gone());
  EXPECT_EQ(job_->engine(0).peers[1]->rails.size(), 2u);
}

TEST_F(ComeBack, TwoProcessesByTwoDriversAreNotJoined) {
  start();
  scripts[0].connects = {111};
  hear();
  canele_request_t receive{}, send{};
  ASSERT_EQ(canele_irecv(sessions_[0], 1, 5, CANELE_TAG_EXACT, nullptr, 0, &receive), CANELE_OK);
  scripts[1].connects = {222};
  hear();
  ASSERT_TRUE(gone());
  EXPECT_EQ(status_of(receive).error, CANELE_EPEER);
  EXPECT_TRUE(said_bye(scripts[1])) << "the new process must hear that it is not wanted";
  ASSERT_EQ(canele_isend(sessions_[0], 1, 5, nullptr, 0, &send), CANELE_OK);
  EXPECT_EQ(status_of(send).error, CANELE_EPEER);
}

TEST_F(ComeBack, WhoComesAfterTheDeathIsRejected) {
  start();
  scripts[0].connects = {111};
  hear();
  scripts[0].fails = true;
  hear();
  ASSERT_TRUE(gone());
  scripts[1].connects = {222};
  hear();
  EXPECT_TRUE(said_bye(scripts[1]));
}

// A hello may arrive after the news of its sender's death.
TEST_F(ComeBack, AConnectionWithTheDeadIsToldToItsDriver) {
  scripts[0].detects = false;
  start();
  job_->bury(1, 1);
  scripts[0].connects = {111};
  hear();
  EXPECT_EQ(scripts[0].deaths, 1) << "no other rank would end this connection";
}

}  // namespace
}  // namespace canele::test

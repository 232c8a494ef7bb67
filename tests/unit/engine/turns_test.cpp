// SPDX-License-Identifier: BSD-3-Clause
//
// Waiting where ranks share the cores: a yield gives the other its turn, and what it sends is found without much ado.
//
// Who: ctest. Threads: one, once both ranks are there; the other rank runs inside the waiting rank's yields.
// Surprise: the machine has one core.
#include <atomic>
#include <functional>

#include "local_job.hpp"

namespace canele::test {
namespace {

/// The real one, but for one core and for what happens in a yield.
class OneCore final : public Platform {
 public:
  std::function<void()> others_turn = [] {};
  std::atomic<int> looks_at_clock{0};  ///< ranks come up in threads of their own

  std::uint64_t now_ns() noexcept override {
    ++looks_at_clock;
    return real_.now_ns();
  }
  std::uint64_t random() noexcept override { return real_.random(); }
  const char* variable(const char* name) noexcept override { return real_.variable(name); }
  void each_variable(std::string_view prefix, const std::function<void(std::string_view)>& visit) override {
    real_.each_variable(prefix, visit);
  }
  std::unique_ptr<PlatformThread> start_thread(const char* name, std::function<void()> body) override {
    return real_.start_thread(name, std::move(body));
  }
  std::unique_ptr<WakeSet> make_wake_set(std::string* why) override { return real_.make_wake_set(why); }
  void relax() noexcept override {}
  void yield() noexcept override { others_turn(); }
  void park(const std::atomic<std::uint32_t>& word, std::uint32_t expected, std::uint64_t ns) noexcept override {
    real_.park(word, expected, ns);
  }
  void unpark(const std::atomic<std::uint32_t>& word) noexcept override { real_.unpark(word); }
  unsigned processors() noexcept override { return 1; }
  long process() noexcept override { return real_.process(); }
  void log(LogLevel level, std::string_view text) noexcept override { real_.log(level, text); }

 private:
  Platform& real_ = posix_platform();
};

TEST(WaitInTurns, FindsWhatCameInAYieldWithoutALookAtTheClock) {
  constexpr int waits = 200;
  OneCore platform;
  JobOptions options;
  options.settings = {"CANELE_WORKER=none"};
  options.platform = &platform;
  LocalJob job(options);
  const auto sessions = job.open("s");
  int sent = 0;
  canele_request_t sends[waits] = {};
  int looks = 0;
  for (; sent < waits; ++sent) {
    int got = -1;
    canele_request_t receive{};
    ASSERT_EQ(canele_irecv(sessions[0], 1, 1, CANELE_TAG_EXACT, &got, sizeof got, &receive), CANELE_OK);
    const int before = platform.looks_at_clock;
    int turns = 0;
    if (sent == 0) {  // they meet
      ASSERT_EQ(canele_isend(sessions[1], 0, 1, &sent, sizeof sent, &sends[sent]), CANELE_OK);
      ASSERT_TRUE(job.finish(receive));
    }
    platform.others_turn = [&] {
      if (++turns == 2) {
        ASSERT_EQ(canele_isend(sessions[1], 0, 1, &sent, sizeof sent, &sends[sent]), CANELE_OK);
      }
      job.engine(1).step();
    };
    ASSERT_EQ(canele_wait(&receive, nullptr), CANELE_OK);
    platform.others_turn = [] {};
    ASSERT_TRUE(job.finish(sends[sent]));
    EXPECT_EQ(got, sent);
    if (sent >= waits / 2) looks += platform.looks_at_clock - before;
  }
  EXPECT_LT(looks, waits / 2) << "a wait that makes ready for more looks at it at each yield";
}

}  // namespace
}  // namespace canele::test

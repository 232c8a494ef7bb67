// SPDX-License-Identifier: BSD-3-Clause
//
// Waits whose deadline has passed before they begin: each looks once, so a program that polls in this way makes
// progress.
//
// One thread; no other call makes progress. The first messages need a connection, which takes system calls and tasks.
#include <canele/post.h>

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>

#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

constexpr std::uint64_t long_ago = 1;  // ns

/// Waits for a request of this rank with a deadline that has passed.
using LateLook = std::function<int(canele_session_t*, canele_request_t*)>;
struct LateForm {
  const char* name;
  LateLook look;
};

int late_wait_until(canele_session_t*, canele_request_t* pending) {
  return canele_wait_until(pending, long_ago, nullptr);
}
int late_wait_some(canele_session_t*, canele_request_t* pending) {
  std::size_t index = 0, done = 0;
  return canele_wait_some(1, &pending, &index, nullptr, &done, long_ago);
}
int late_queue_wait(canele_session_t* session, canele_request_t* pending) {
  canele_queue_t queue{};
  canele_entry_t entry;
  const int code = canele_queue_wait(canele_session_engine(session), &queue, &entry, 1, long_ago);
  EXPECT_EQ(code, CANELE_ETIMEOUT);
  return comm::request_of(pending).finalized() ? CANELE_OK : code;
}
int late_counter_wait(canele_session_t* session, canele_request_t* pending) {
  canele_completion_counter_t counter{};
  const int code = canele_completion_counter_wait(canele_session_engine(session), &counter, 1, long_ago);
  EXPECT_EQ(code, CANELE_ETIMEOUT);
  return comm::request_of(pending).finalized() ? CANELE_OK : code;
}

class PastDeadline : public testing::TestWithParam<std::tuple<const char*, LateForm>> {};

TEST_P(PastDeadline, MakesProgress) {
  const auto& [driver, form] = GetParam();
  LocalJob job({2, {comm::find_driver("self"), comm::find_driver(driver)}, "aggregate", {}});
  const auto sessions = job.open("test");
  canele_request_t send{}, receive{};
  int out = 5, in = 0;
  ASSERT_EQ(canele_irecv(sessions[0], 1, 1, CANELE_TAG_EXACT, &in, sizeof in, &receive), CANELE_OK);
  ASSERT_EQ(canele_isend(sessions[1], 0, 1, &out, sizeof out, &send), CANELE_OK);
  bool sent = false, received = false;
  for (long turn = 0; turn < 100'000 && !(sent && received); ++turn) {
    sent = sent || form.look(sessions[1], &send) == CANELE_OK;
    received = received || form.look(sessions[0], &receive) == CANELE_OK;
  }
  EXPECT_TRUE(sent && received);
  EXPECT_EQ(in, out);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, PastDeadline,
    testing::Combine(testing::Values("shm", "tcp"),
                     testing::Values(LateForm{"wait_until", late_wait_until}, LateForm{"wait_some", late_wait_some},
                                     LateForm{"queue_wait", late_queue_wait},
                                     LateForm{"counter_wait", late_counter_wait})),
    [](const auto& each) { return std::string(std::get<0>(each.param)) + "_" + std::get<1>(each.param).name; });

}  // namespace
}  // namespace canele::test

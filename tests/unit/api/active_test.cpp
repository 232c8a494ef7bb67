// SPDX-License-Identifier: BSD-3-Clause
//
// Active messages through the C ABI: three engines in one thread, over shared memory and over TCP.
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

struct Arrival {
  int source;
  std::vector<std::uint8_t> header, payload;
  int error;
};

/// What a handler received.
struct Log {
  std::vector<Arrival> arrivals;
  std::vector<std::vector<std::uint8_t>> placed;
  bool place = false;

  static std::vector<std::uint8_t> bytes(const void* from, std::size_t length) {
    const auto* first = static_cast<const std::uint8_t*>(from);
    return {first, first + length};
  }
  static void arrived(const canele_am_message_t* m, void* argument) {
    Log& log = *static_cast<Log*>(argument);
    log.arrivals.push_back(
        {m->source, bytes(m->header, m->header_length), bytes(m->payload, m->payload_length), m->error});
  }
  static void* find_place(const canele_am_message_t* m, void* argument) {
    Log& log = *static_cast<Log*>(argument);
    if (!log.place) return nullptr;
    EXPECT_GT(m->payload_length, 1024u);
    EXPECT_EQ(m->payload, nullptr);
    return log.placed.emplace_back(m->payload_length).data();
  }
  canele_am_handler_t handler() { return {sizeof(canele_am_handler_t), arrived, find_place, this}; }
};

class ActiveMessages : public testing::TestWithParam<const char*> {
 protected:
  ActiveMessages()
      : job_({3, {comm::find_driver("self"), comm::find_driver(GetParam())}, "aggregate", {}}), s_(job_.open("test")) {}

  void listen(int rank, std::uint64_t id, Log& log) {
    const canele_am_handler_t handler = log.handler();
    ASSERT_EQ(canele_am_register(s_[static_cast<std::size_t>(rank)], id, &handler), CANELE_OK) << canele_error_detail();
  }
  int send(int from, int to, std::uint64_t id, const std::vector<std::uint8_t>& header,
           const std::vector<std::uint8_t>& payload, canele_am_t& message) {
    const canele_data_t data = canele_data_contiguous(payload.data(), payload.size());
    return canele_am_send(s_[static_cast<std::size_t>(from)], to, id, header.data(), header.size(),
                          payload.empty() ? nullptr : &data, nullptr, &message);
  }

  LocalJob job_;
  std::vector<canele_session_t*> s_;
};

TEST_P(ActiveMessages, EverySizeCallsTheHandlerOnce) {
  for (const bool place : {false, true}) {
    Log log;
    log.place = place;
    listen(1, 7, log);
    std::size_t sent = 0;
    for (const std::size_t header : {0u, 1u, 8u, 40u, 247u, 248u}) {
      for (const std::size_t payload : {0u, 1u, 48u, 1024u, 1025u, 9000u, 70'000u, 3'000'000u}) {
        for (const int from : {0, 1}) {
          canele_am_t message{};
          const auto head = pattern(header, static_cast<unsigned>(payload));
          const auto data = pattern(payload, static_cast<unsigned>(header));
          ASSERT_EQ(send(from, 1, 7, head, data, message), CANELE_OK) << canele_error_detail();
          ASSERT_TRUE(job_.until([&] { return log.arrivals.size() > sent; }));
          ASSERT_TRUE(job_.finish(message.request));
          ASSERT_EQ(log.arrivals.size(), ++sent);
          ASSERT_EQ(log.arrivals.back().source, from);
          ASSERT_EQ(log.arrivals.back().error, CANELE_OK);
          ASSERT_EQ(log.arrivals.back().header, head);
          ASSERT_EQ(log.arrivals.back().payload, data);
          if (place && payload > 1024) {
            ASSERT_EQ(log.placed.back(), data);
          }
        }
      }
    }
    ASSERT_EQ(canele_am_unregister(s_[1], 7), CANELE_OK) << canele_error_detail();
  }
}

TEST_P(ActiveMessages, WaitForTheirHandlerAndKeepOrder) {
  constexpr std::uint32_t count = 3000;
  std::vector<canele_am_t> messages(2 * count);
  for (std::uint32_t i = 0; i < count; ++i) {
    for (const int from : {0, 2}) {
      canele_am_t& message = messages[2 * i + (from == 2 ? 1 : 0)];
      ASSERT_EQ(canele_am_send(s_[static_cast<std::size_t>(from)], 1, 9, &i, sizeof i, nullptr, nullptr, &message),
                CANELE_OK);
    }
    if (i % 64 == 0) job_.step_all();
  }
  Log log, other;
  listen(1, 8, other);
  listen(1, 9, log);
  ASSERT_TRUE(job_.until([&] { return log.arrivals.size() == messages.size(); }));
  for (const canele_am_t& message : messages) ASSERT_TRUE(job_.finish(message.request));
  std::uint32_t next[3] = {};
  for (const Arrival& arrival : log.arrivals) {
    std::uint32_t number = 0;
    ASSERT_EQ(arrival.header.size(), sizeof number);
    std::memcpy(&number, arrival.header.data(), sizeof number);
    ASSERT_EQ(number, next[arrival.source]++) << "from rank " << arrival.source;
  }
  EXPECT_TRUE(other.arrivals.empty());
}

struct Echo {
  canele_session_t* session;
  canele_am_t message{};
  int left;

  static void arrived(const canele_am_message_t* m, void* argument) {
    Echo& echo = *static_cast<Echo*>(argument);
    if (echo.left-- > 0) {
      ASSERT_EQ(
          canele_am_send(echo.session, m->source, m->id, m->header, m->header_length, nullptr, nullptr, &echo.message),
          CANELE_OK)
          << canele_error_detail();
    }
  }
};

TEST_P(ActiveMessages, HandlersMaySend) {
  Echo echoes[2] = {{s_[0], {}, 500}, {s_[1], {}, 500}};
  for (int rank = 0; rank < 2; ++rank) {
    const canele_am_handler_t handler = {sizeof handler, Echo::arrived, nullptr, &echoes[rank]};
    ASSERT_EQ(canele_am_register(s_[static_cast<std::size_t>(rank)], 3, &handler), CANELE_OK);
  }
  canele_am_t first{};
  ASSERT_EQ(canele_am_send(s_[0], 1, 3, "ball", 4, nullptr, nullptr, &first), CANELE_OK);
  ASSERT_TRUE(job_.until([&] { return echoes[0].left < 0 || echoes[1].left < 0; }));
  for (int rank = 0; rank < 2; ++rank) ASSERT_EQ(canele_am_unregister(s_[static_cast<std::size_t>(rank)], 3), 0);
}

TEST_P(ActiveMessages, WithoutAHandlerTheyWaitForTheNextOne) {
  Log before, after;
  listen(1, 5, before);
  canele_am_t first{}, second{};
  ASSERT_EQ(send(0, 1, 5, {1}, {}, first), CANELE_OK);
  ASSERT_TRUE(job_.until([&] { return before.arrivals.size() == 1; }));
  ASSERT_EQ(canele_am_unregister(s_[1], 5), CANELE_OK);
  ASSERT_EQ(send(0, 1, 5, {2}, {}, second), CANELE_OK);
  for (int i = 0; i < 200; ++i) job_.step_all();
  EXPECT_EQ(before.arrivals.size(), 1u);
  listen(1, 5, after);
  ASSERT_TRUE(job_.until([&] { return after.arrivals.size() == 1; }));
  EXPECT_EQ(after.arrivals.front().header, std::vector<std::uint8_t>{2});
  EXPECT_TRUE(job_.finish(first.request) && job_.finish(second.request));
}

TEST_P(ActiveMessages, ClosingTheSessionTakesHandlersBack) {
  Log log;
  listen(1, 5, log);
  canele_am_t message{};
  ASSERT_EQ(send(0, 1, 5, {1}, {}, message), CANELE_OK);
  ASSERT_TRUE(job_.until([&] { return log.arrivals.size() == 1; }) && job_.finish(message.request));
  for (canele_session_t* session : s_) ASSERT_EQ(canele_session_close(session), CANELE_OK) << canele_error_detail();
  s_ = job_.open("test");
  listen(1, 5, log);  // it would be busy
  ASSERT_EQ(send(0, 1, 5, {2}, {}, message), CANELE_OK);
  ASSERT_TRUE(job_.until([&] { return log.arrivals.size() == 2; }) && job_.finish(message.request));
}

/// The end of a handler is told, also if two threads serve its last turns.
TEST_P(ActiveMessages, HandlersComeAndGoBesideAWorker) {
  ASSERT_EQ(canele_worker_use(job_.handle(1), CANELE_WORKER_BOUND), CANELE_OK) << canele_error_detail();
  Log log;
  for (int i = 0; i < 5000; ++i) {
    listen(1, 4, log);
    EXPECT_EQ(canele_am_unregister(s_[1], 4), CANELE_OK);
  }
  EXPECT_EQ(canele_worker_stop(job_.handle(1)), CANELE_OK);
}

TEST_P(ActiveMessages, WhatIsWrongIsSaid) {
  Log log;
  listen(1, 5, log);
  canele_am_handler_t handler = log.handler();
  EXPECT_EQ(canele_am_register(s_[1], 5, &handler), CANELE_EBUSY);
  EXPECT_EQ(canele_am_unregister(s_[1], 6), CANELE_ESTATE);
  handler.arrived = nullptr;
  EXPECT_EQ(canele_am_register(s_[1], 6, &handler), CANELE_EINVAL);
  canele_am_t message{};
  EXPECT_EQ(send(0, 1, 5, pattern(249, 0), {}, message), CANELE_EINVAL);
  EXPECT_EQ(send(0, 3, 5, {}, {}, message), CANELE_ERANK);
  const canele_send_options_t options = {sizeof options, 0, 0, 8};
  EXPECT_EQ(canele_am_send(s_[0], 1, 5, nullptr, 0, nullptr, &options, &message), CANELE_EINVAL);
  const auto large = pattern(5'000'000, 1);
  ASSERT_EQ(send(0, 1, 5, {}, large, message), CANELE_OK);
  EXPECT_EQ(send(0, 1, 5, {}, {}, message), CANELE_EBUSY) << "it is under way";
  EXPECT_EQ(canele_session_close(s_[0]), CANELE_EBUSY);
  ASSERT_TRUE(job_.until([&] { return log.arrivals.size() == 1; }) && job_.finish(message.request));
}

TEST_P(ActiveMessages, AHandlerIsToldThatThePayloadWillNotCome) {
  Log log;
  log.place = true;
  listen(1, 5, log);
  const auto large = pattern(50'000'000, 1);
  canele_am_t message{};
  ASSERT_EQ(send(0, 1, 5, {1}, large, message), CANELE_OK);
  ASSERT_TRUE(job_.until([&] { return log.placed.size() == 1; }));
  job_.destroy(0);
  ASSERT_TRUE(job_.until([&] { return log.arrivals.size() == 1; }));
  EXPECT_TRUE(log.arrivals.front().error == CANELE_EPEER || log.arrivals.front().error == CANELE_OK);
}

INSTANTIATE_TEST_SUITE_P(Drivers, ActiveMessages, testing::Values("shm", "tcp"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace canele::test

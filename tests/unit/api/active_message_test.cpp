// SPDX-License-Identifier: BSD-3-Clause
//
// Active messages that are kept, delivered to a queue, posted with a completion, or injected: three engines in one
// thread, over shared memory and over TCP.
#include <canele/active_message.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes bytes_of(const void* from, std::size_t length) {
  const auto* const first = static_cast<const std::uint8_t*>(from);
  return {first, first + length};
}

class ActiveMessage : public testing::TestWithParam<const char*> {
 protected:
  ActiveMessage()
      : job_({3, {comm::find_driver("self"), comm::find_driver(GetParam())}, "aggregate", {}}), s_(job_.open("test")) {}
  ~ActiveMessage() override {
    for (void* const payload : kept_) EXPECT_EQ(canele_am_release(payload), CANELE_OK);
  }

  canele_session_t* session(int rank) { return s_[static_cast<std::size_t>(rank)]; }
  int send(int from, int to, std::uint64_t id, const Bytes& header, const Bytes& payload, canele_am_t& message) {
    const canele_data_t data = canele_data_contiguous(payload.data(), payload.size());
    return canele_am_send(session(from), to, id, header.data(), header.size(), payload.empty() ? nullptr : &data,
                          nullptr, &message);
  }
  /// Takes all entries of rank 1's queue.
  std::size_t take() {
    canele_entry_t entry{};
    std::size_t count = 0;
    for (; canele_queue_take(job_.handle(1), &queue_, &entry, 1) == 1; ++count) entries_.push_back(entry);
    return count;
  }
  bool until_entries(std::size_t count) {
    return job_.until([&] {
      take();
      return entries_.size() >= count;
    });
  }
  void open_queue(std::uint64_t id) {
    ASSERT_EQ(canele_am_open(session(1), id, &queue_, &queue_), CANELE_OK) << canele_error_detail();
  }
  /// Registers rank 1's handler that keeps every message.
  void keep_all(std::uint64_t id) {
    static constexpr auto keep = [](const canele_am_message_t* message, void* argument) {
      void* payload = nullptr;
      EXPECT_EQ(canele_am_keep(message, &payload), CANELE_OK) << canele_error_detail();
      EXPECT_TRUE(message->payload_length == 0 || payload == message->payload);
      EXPECT_EQ(canele_am_keep(message, &payload), CANELE_ESTATE) << "twice";
      static_cast<std::deque<void*>*>(argument)->push_back(payload);
    };
    const canele_am_handler_t handler = {sizeof handler, keep, nullptr, &kept_};
    ASSERT_EQ(canele_am_register(session(1), id, &handler), CANELE_OK) << canele_error_detail();
  }

  LocalJob job_;
  std::vector<canele_session_t*> s_;
  canele_queue_t queue_{};
  std::deque<canele_entry_t> entries_;
  std::deque<void*> kept_;
};

constexpr std::size_t payload_sizes[] = {0, 1, 48, 1024, 1025, 9000, 70'000, 3'000'000};

TEST_P(ActiveMessage, KeptMessagesStayAsTheyHaveCome) {
  keep_all(7);
  std::vector<Bytes> headers, payloads;
  for (int turn = 0; turn < 20; ++turn) {
    for (const std::size_t size : payload_sizes) {
      if (turn != 0 && size > 10'000) continue;
      headers.push_back(pattern(static_cast<std::size_t>(turn) * 13 % 249, static_cast<unsigned>(size)));
      payloads.push_back(pattern(size, static_cast<unsigned>(turn)));
      canele_am_t message{};
      ASSERT_EQ(send(turn % 3, 1, 7, headers.back(), payloads.back(), message), CANELE_OK) << canele_error_detail();
      ASSERT_TRUE(job_.until([&] { return kept_.size() == payloads.size(); }) && job_.finish(message.request));
    }
  }
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    std::size_t length = 0;
    const void* const header = canele_am_header(kept_[i], &length);
    ASSERT_EQ(bytes_of(header, length), headers[i]);
    ASSERT_EQ(bytes_of(kept_[i], payloads[i].size()), payloads[i]);
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(kept_[i]) % 16, 0u);
  }
}

/// Memory that comes back before the handler returns is not used for two messages.
TEST_P(ActiveMessage, AMessageMayBeReleasedInTheCallThatKeepsIt) {
  constexpr int count = 100;
  std::vector<Bytes> arrived;
  const canele_am_handler_t handler = {
      sizeof handler,
      [](const canele_am_message_t* message, void* argument) {
        void* payload = nullptr;
        const std::size_t length = message->payload_length;
        ASSERT_EQ(canele_am_keep(message, &payload), CANELE_OK);
        static_cast<std::vector<Bytes>*>(argument)->push_back(bytes_of(payload, length));
        ASSERT_EQ(canele_am_release(payload), CANELE_OK);
      },
      nullptr, &arrived};
  ASSERT_EQ(canele_am_register(session(1), 6, &handler), CANELE_OK);
  std::vector<Bytes> payloads;
  for (int i = 0; i < count; ++i) payloads.push_back(pattern(i % 4 == 0 ? 5000 : 500, static_cast<unsigned>(i)));
  std::vector<canele_am_t> messages(count);
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(send(0, 1, 6, {}, payloads[i], messages[i]), CANELE_OK);
  ASSERT_TRUE(job_.until([&] { return arrived.size() == count; }));
  for (const canele_am_t& message : messages) ASSERT_TRUE(job_.finish(message.request));
  EXPECT_EQ(arrived, payloads);
}

TEST_P(ActiveMessage, AQueueHasEveryMessageOnce) {
  open_queue(7);
  std::size_t sent = 0;
  for (const std::size_t size : payload_sizes) {
    for (const int from : {0, 1, 2}) {
      const Bytes header = pattern(40, static_cast<unsigned>(size)), payload = pattern(size, 5);
      canele_am_t message{};
      ASSERT_EQ(send(from, 1, 7, header, payload, message), CANELE_OK);
      ASSERT_TRUE(until_entries(++sent) && job_.finish(message.request));
      const canele_entry_t& entry = entries_.back();
      ASSERT_EQ(entry.kind, static_cast<std::uint32_t>(CANELE_ENTRY_ACTIVE_MESSAGE));
      ASSERT_EQ(entry.user, &queue_);
      ASSERT_EQ(entry.source, from);
      ASSERT_EQ(entry.tag, 7u);
      ASSERT_EQ(entry.error, CANELE_OK);
      ASSERT_EQ(bytes_of(entry.payload, entry.length), payload);
      std::size_t length = 0;
      const void* const head = canele_am_header(entry.payload, &length);
      ASSERT_EQ(bytes_of(head, length), header);
      ASSERT_EQ(canele_am_release(entry.payload), CANELE_OK);
    }
  }
  EXPECT_EQ(canele_am_open(session(1), 7, &queue_, nullptr), CANELE_EBUSY);
  EXPECT_EQ(canele_am_unregister(session(1), 7), CANELE_OK);
}

/// A program that takes nothing does not use all memory: messages stay at their senders. All come in the end, in order.
TEST_P(ActiveMessage, AQueueThatNothingIsTakenFromHoldsSendersBack) {
  constexpr std::uint32_t count = 2000;
  constexpr std::size_t most = 256 + 8;
  open_queue(9);
  std::vector<canele_am_t> messages(2 * count);
  for (std::uint32_t i = 0; i < count; ++i) {
    for (const int from : {0, 2}) {
      canele_am_t& message = messages[2 * i + (from == 2 ? 1 : 0)];
      ASSERT_EQ(canele_am_send(session(from), 1, 9, &i, sizeof i, nullptr, nullptr, &message), CANELE_OK);
    }
    if (i % 16 == 0) job_.step_all();
  }
  for (int i = 0; i < 500; ++i) job_.step_all();
  canele_entry_t entry[most + 1];
  const int first = canele_queue_take(job_.handle(1), &queue_, entry, static_cast<int>(most) + 1);
  EXPECT_GE(first, 256);
  EXPECT_LE(first, static_cast<int>(most));
  entries_.assign(entry, entry + first);
  ASSERT_TRUE(until_entries(messages.size()));
  std::uint32_t next[3] = {};
  for (const canele_entry_t& one : entries_) {
    std::uint32_t number = 0;
    std::memcpy(&number, canele_am_header(one.payload, nullptr), sizeof number);
    ASSERT_EQ(number, next[one.source]++) << "from rank " << one.source;
    ASSERT_EQ(canele_am_release(one.payload), CANELE_OK);
  }
  for (const canele_am_t& message : messages) ASSERT_TRUE(job_.finish(message.request));
}

/// The sender of a long message makes no progress. Messages of another source overtake it, and not its own.
TEST_P(ActiveMessage, ALongMessageDelaysItsSourceOnly) {
  open_queue(4);
  canele_am_t message[3] = {};
  for (const int from : {0, 2}) ASSERT_EQ(send(from, 1, 4, {0}, {}, message[from]), CANELE_OK);
  ASSERT_TRUE(until_entries(2) && job_.finish(message[0].request) && job_.finish(message[2].request));
  const Bytes large = pattern(30'000'000, 1);
  ASSERT_EQ(send(0, 1, 4, {1}, large, message[0]), CANELE_OK);
  ASSERT_EQ(send(0, 1, 4, {2}, {}, message[1]), CANELE_OK);
  for (int i = 0; i < 20; ++i) job_.engine(1).step();  // it matches the long message
  ASSERT_EQ(send(2, 1, 4, {3}, {}, message[2]), CANELE_OK);
  for (int turn = 0; entries_.size() < 3; ++turn) {
    ASSERT_LT(turn, 10'000'000) << "the message of rank 2 waits for that of rank 0";
    for (const int rank : {1, 2}) job_.engine(rank).step();
    take();
  }
  ASSERT_TRUE(until_entries(5));
  std::vector<std::uint8_t> order[3];
  for (const canele_entry_t& entry : entries_) {
    order[entry.source].push_back(*static_cast<const std::uint8_t*>(canele_am_header(entry.payload, nullptr)));
    EXPECT_EQ(canele_am_release(entry.payload), CANELE_OK);
  }
  EXPECT_EQ(order[0], (Bytes{0, 1, 2}));
  EXPECT_EQ(order[2], (Bytes{0, 3}));
  for (canele_am_t& one : message) ASSERT_TRUE(job_.finish(one.request));
}

TEST_P(ActiveMessage, InjectedOnesComeInOrder) {
  constexpr std::uint32_t count = 3000;
  open_queue(2);
  std::size_t limit = 0;
  ASSERT_EQ(canele_limit(job_.handle(0), 1, CANELE_LIMIT_INJECT, &limit), CANELE_OK);
  const Bytes payload = pattern(limit - 8 - sizeof count, 3);
  for (std::uint32_t i = 0; i < count;) {
    const std::size_t length = i % 3 == 0 ? payload.size() : i % 7;
    const int code = canele_am_inject(session(0), 1, 2, &i, sizeof i, payload.data(), length);
    if (code == CANELE_EAGAIN) {
      job_.step_all();
      take();
      continue;
    }
    ASSERT_EQ(code, CANELE_OK) << canele_error_detail();
    ++i;
  }
  ASSERT_TRUE(until_entries(count));
  for (std::uint32_t i = 0; i < count; ++i) {
    const canele_entry_t& entry = entries_[i];
    std::uint32_t number = 0;
    std::memcpy(&number, canele_am_header(entry.payload, nullptr), sizeof number);
    ASSERT_EQ(number, i);
    ASSERT_EQ(entry.length, i % 3 == 0 ? payload.size() : i % 7);
    ASSERT_EQ(std::memcmp(entry.payload, payload.data(), entry.length), 0);
    ASSERT_EQ(canele_am_release(entry.payload), CANELE_OK);
  }
  EXPECT_EQ(canele_am_inject(session(0), 1, 2, nullptr, 0, payload.data(), limit - 7), CANELE_EINVAL);
  EXPECT_EQ(canele_am_inject(session(0), 3, 2, nullptr, 0, nullptr, 0), CANELE_ERANK);
  EXPECT_EQ(canele_am_inject(session(0), 1, 2, nullptr, 249, nullptr, 0), CANELE_EINVAL);
}

TEST_P(ActiveMessage, APostDeliversItsCompletion) {
  open_queue(2);
  canele_queue_t ends{};
  for (const std::size_t size : payload_sizes) {
    canele_am_t message{};
    canele_post_options_t options{};
    options.struct_size = sizeof options;
    options.done.kind = CANELE_COMPLETE_QUEUE;
    options.done.object = &ends;
    options.done.user = &options;
    const Bytes payload = pattern(size, 1);
    const canele_data_t data = canele_data_contiguous(payload.data(), payload.size());
    ASSERT_EQ(canele_am_post(session(0), 1, 2, "head", 4, &data, &options, &message), CANELE_OK);
    canele_entry_t entry{};
    ASSERT_TRUE(job_.until([&] { return canele_queue_take(job_.handle(0), &ends, &entry, 1) == 1; }));
    EXPECT_EQ(entry.user, &options);
    EXPECT_EQ(entry.request, &message.request);
    EXPECT_EQ(entry.error, CANELE_OK);
  }
  ASSERT_TRUE(until_entries(std::size(payload_sizes)));
  for (const canele_entry_t& entry : entries_) ASSERT_EQ(canele_am_release(entry.payload), CANELE_OK);
  canele_am_t message{};
  canele_post_options_t options{};
  options.struct_size = sizeof options;
  options.header = 8;
  EXPECT_EQ(canele_am_post(session(0), 1, 2, nullptr, 0, nullptr, &options, &message), CANELE_EINVAL);
}

TEST_P(ActiveMessage, MessagesOutliveTheirHandlerAndItsSession) {
  open_queue(2);
  keep_all(3);
  canele_am_t message[2] = {};
  const Bytes first = pattern(5000, 1), second = pattern(50, 2);
  ASSERT_EQ(send(0, 1, 2, {1}, first, message[0]), CANELE_OK);
  ASSERT_EQ(send(0, 1, 3, {2}, second, message[1]), CANELE_OK);
  ASSERT_TRUE(job_.until([&] { return kept_.size() == 1; }));
  for (canele_am_t& one : message) ASSERT_TRUE(job_.finish(one.request));
  for (int i = 0; i < 100; ++i) job_.step_all();
  for (canele_session_t* const one : s_) ASSERT_EQ(canele_session_close(one), CANELE_OK) << canele_error_detail();
  ASSERT_EQ(take(), 1u);
  EXPECT_EQ(bytes_of(entries_[0].payload, entries_[0].length), first);
  EXPECT_EQ(bytes_of(kept_[0], 50), second);
  EXPECT_EQ(canele_am_release(entries_[0].payload), CANELE_OK);
}

/// What a handler keeps of memory that its program gave, or after its call.
TEST_P(ActiveMessage, WhatCannotBeKeptIsSaid) {
  struct Seen {
    Bytes place;
    const canele_am_message_t* message = nullptr;
    int code = CANELE_OK;
  } seen;
  seen.place.resize(5000);
  const canele_am_handler_t handler = {
      sizeof handler,
      [](const canele_am_message_t* message, void* argument) {
        void* payload = nullptr;
        auto& all = *static_cast<Seen*>(argument);
        all.code = canele_am_keep(message, &payload);
        all.message = message;
      },
      [](const canele_am_message_t*, void* argument) -> void* { return static_cast<Seen*>(argument)->place.data(); },
      &seen};
  ASSERT_EQ(canele_am_register(session(1), 3, &handler), CANELE_OK);
  canele_am_t message{};
  const Bytes sent = pattern(5000, 2);
  ASSERT_EQ(send(0, 1, 3, {2}, sent, message), CANELE_OK);
  ASSERT_TRUE(job_.until([&] { return seen.message != nullptr; }) && job_.finish(message.request));
  EXPECT_EQ(seen.code, CANELE_EINVAL);
  EXPECT_EQ(seen.place, sent);
  void* payload = nullptr;
  EXPECT_EQ(canele_am_keep(seen.message, &payload), CANELE_ESTATE) << "the call has returned";
  alignas(16) char other[1024] = {};
  EXPECT_EQ(canele_am_release(other + 512), CANELE_EINVAL);
  EXPECT_EQ(canele_am_header(other + 512, nullptr), nullptr);
  EXPECT_EQ(canele_am_release(nullptr), CANELE_EINVAL);
  EXPECT_EQ(canele_am_open(session(1), 5, nullptr, nullptr), CANELE_EINVAL);
}

/// What the handlers of the two tests below share.
struct Placed {
  Bytes low, high;  // the payload, in two pieces
  iovec pieces[2] = {};
  canele_iov_t vector{};
  std::size_t longer = 0;  // by which the description is wrong
  int asked = 0, arrived = 0, error = CANELE_OK, kept = CANELE_OK;
  bool has_payload = false;
};

/// A payload goes to the pieces that the program describes, short ones and refused ones to memory of the library.
TEST_P(ActiveMessage, PayloadsArePlacedInPieces) {
  Placed placed;
  const canele_am_handler_t handler = {sizeof handler,
                                       [](const canele_am_message_t* message, void* argument) {
                                         auto& all = *static_cast<Placed*>(argument);
                                         void* payload = nullptr;
                                         ++all.arrived;
                                         all.error = message->error;
                                         all.has_payload = message->payload != nullptr;
                                         if (message->payload_length > 1024 && !all.has_payload)
                                           all.kept = canele_am_keep(message, &payload);
                                       },
                                       nullptr, &placed};
  canele_am_options_t options{};
  options.struct_size = sizeof options;
  options.place_data = [](const canele_am_message_t* message, canele_data_t* where, void* argument) {
    auto& all = *static_cast<Placed*>(argument);
    ++all.asked;
    if (message->header_length == 0) return 0;
    const std::size_t half = message->payload_length / 2;
    all.low.assign(half, 0);
    all.high.assign(message->payload_length - half + all.longer, 0);
    all.pieces[0] = {all.low.data(), all.low.size()};
    all.pieces[1] = {all.high.data(), all.high.size()};
    all.vector = {all.pieces, 2};
    *where = canele_data_iov(&all.vector);
    return 1;
  };
  ASSERT_EQ(canele_am_register_with(session(1), 3, &handler, &options), CANELE_OK) << canele_error_detail();
  int arrived = 0, asked = 0;
  for (const std::size_t length : {std::size_t{0}, std::size_t{1024}, std::size_t{1025}, std::size_t{300'000}}) {
    for (const Bytes& header : {Bytes{}, Bytes{1}}) {
      for (const std::size_t longer : {0u, 8u}) {
        placed.longer = longer;
        const Bytes sent = pattern(length, static_cast<unsigned>(length));
        canele_am_t message{};
        ASSERT_EQ(send(0, 1, 3, header, sent, message), CANELE_OK);
        ++arrived;
        asked += length > 1024;
        ASSERT_TRUE(job_.until([&] { return placed.arrived == arrived; }) && job_.finish(message.request));
        EXPECT_EQ(placed.asked, asked);
        const bool described = length > 1024 && !header.empty();
        EXPECT_EQ(placed.has_payload, length != 0 && !described);
        EXPECT_EQ(placed.error, described && longer != 0 ? CANELE_EINVAL : CANELE_OK);
        if (!described) continue;
        EXPECT_EQ(placed.kept, CANELE_EINVAL);
        if (longer != 0) continue;
        Bytes got = placed.low;
        got.insert(got.end(), placed.high.begin(), placed.high.end());
        EXPECT_EQ(got, sent);
      }
    }
  }
  options.flags = 2;
  EXPECT_EQ(canele_am_register_with(session(1), 4, &handler, &options), CANELE_EINVAL);
}

/// Two calls of a handler wait for each other, on two threads. They would never end one after the other.
TEST_P(ActiveMessage, ConcurrentCallsOverlap) {
  struct Overlap {
    std::atomic<int> inside{0}, met{0};
  } overlap;
  const canele_am_handler_t handler = {sizeof handler,
                                       [](const canele_am_message_t*, void* argument) {
                                         auto& both = *static_cast<Overlap*>(argument);
                                         ++both.inside;
                                         while (both.inside.load() < 2) std::this_thread::yield();
                                         ++both.met;
                                       },
                                       nullptr, &overlap};
  canele_am_options_t options{};
  options.struct_size = sizeof options;
  options.flags = CANELE_AM_CONCURRENT;
  ASSERT_EQ(canele_am_register_with(session(1), 3, &handler, &options), CANELE_OK) << canele_error_detail();
  for (int round = 0; round < 20; ++round) {
    overlap.inside = 0;
    overlap.met = 0;
    canele_am_t messages[2] = {};
    for (canele_am_t& one : messages) ASSERT_EQ(send(0, 1, 3, {1}, {}, one), CANELE_OK);
    const auto progress = [&] {
      while (overlap.met.load() < 2) {
        for (const int rank : {0, 1}) canele_progress(job_.handle(rank));
      }
    };
    std::thread other(progress);
    progress();
    other.join();
    for (canele_am_t& one : messages) ASSERT_TRUE(job_.finish(one.request));
  }
  EXPECT_EQ(canele_am_unregister(session(1), 3), CANELE_OK);
}

INSTANTIATE_TEST_SUITE_P(Drivers, ActiveMessage, testing::Values("shm", "tcp"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace canele::test

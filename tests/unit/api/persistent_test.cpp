// SPDX-License-Identifier: BSD-3-Clause
//
// Operations that repeat: two engines in one thread, over shared memory and over TCP.
#include <canele/one_sided.h>
#include <canele/post.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

canele_data_t all_of(Bytes& bytes) { return canele_data_contiguous(bytes.data(), bytes.size()); }

/// Changes the bytes where they lie.
void write(Bytes& bytes, unsigned seed) {
  const Bytes other = pattern(bytes.size(), seed);
  std::copy(other.begin(), other.end(), bytes.begin());
}

class Persistent : public testing::TestWithParam<const char*> {
 public:
  Persistent()
      : job_({2, {comm::find_driver("self"), comm::find_driver(GetParam())}, "aggregate", {}}), s_(job_.open("test")) {}

 protected:
  LocalJob job_;
  std::vector<canele_session_t*> s_;
};

TEST_P(Persistent, AMessageIsSentAndReceivedAgainAndAgain) {
  for (const std::size_t size : {8, 3000, 300'000}) {
    Bytes out(size), in(size);
    const canele_data_t sent = all_of(out), received = all_of(in);
    canele_persistent_t send{}, receive{};
    ASSERT_EQ(canele_send_init(s_[0], 1, 4, &sent, nullptr, &send), CANELE_OK) << canele_error_detail();
    ASSERT_EQ(canele_receive_init(s_[1], CANELE_ANY_SOURCE, 4, CANELE_TAG_EXACT, &received, nullptr, &receive),
              CANELE_OK);
    for (unsigned turn = 0; turn < 20; ++turn) {
      write(out, turn);
      ASSERT_EQ(canele_start(&receive), CANELE_OK) << canele_error_detail();
      EXPECT_EQ(canele_start(&receive), CANELE_EBUSY);
      EXPECT_EQ(canele_receive_init(s_[1], 0, 4, CANELE_TAG_EXACT, &received, nullptr, &receive), CANELE_EBUSY);
      ASSERT_EQ(canele_start(&send), CANELE_OK);
      ASSERT_TRUE(job_.finish(send.request) && job_.finish(receive.request));
      EXPECT_EQ(status_of(receive.request).source, 0);
      ASSERT_EQ(in, out);
    }
  }
}

/// The completion is told of each use.
TEST_P(Persistent, EachUseHasItsCompletion) {
  canele_queue_t queue{};
  canele_completion_counter_t counter{};
  canele_post_options_t to_queue{}, to_counter{};
  to_queue.struct_size = to_counter.struct_size = sizeof to_queue;
  to_queue.done = {CANELE_COMPLETE_QUEUE, 0, &queue, nullptr, &queue};
  to_counter.done = {CANELE_COMPLETE_COUNTER, 2, &counter, nullptr, nullptr};
  Bytes out(100, 7), in(100);
  const canele_data_t sent = all_of(out), received = all_of(in);
  canele_persistent_t send{}, receive{};
  ASSERT_EQ(canele_send_init(s_[0], 1, 4, &sent, &to_counter, &send), CANELE_OK);
  ASSERT_EQ(canele_receive_init(s_[1], 0, 4, CANELE_TAG_EXACT, &received, &to_queue, &receive), CANELE_OK);
  for (unsigned turn = 1; turn <= 10; ++turn) {
    ASSERT_EQ(canele_start(&receive), CANELE_OK);
    ASSERT_EQ(canele_start(&send), CANELE_OK);
    canele_entry_t entry{};
    ASSERT_TRUE(job_.until([&] { return canele_queue_take(job_.handle(1), &queue, &entry, 1) == 1; }));
    EXPECT_EQ(entry.request, &receive.request);
    EXPECT_EQ(entry.user, &queue);
    ASSERT_TRUE(job_.until([&] { return canele_completion_counter_value(&counter) == 2 * turn; }));
  }
}

TEST_P(Persistent, APutIsMadeAgainAndAgain) {
  Bytes memory(4096), bytes(64);
  unsigned char packed[CANELE_KEY_SIZE];
  canele_memory_t* registered = nullptr;
  canele_key_t* key = nullptr;
  ASSERT_EQ(canele_memory_register(job_.handle(1), memory.data(), memory.size(), nullptr, &registered), CANELE_OK);
  ASSERT_EQ(canele_memory_key(registered, packed), CANELE_OK);
  ASSERT_EQ(canele_key_open(job_.handle(0), packed, &key), CANELE_OK);
  canele_access_options_t options{};
  options.struct_size = sizeof options;
  options.block = 16;
  options.stride = 100;
  const canele_data_t data = all_of(bytes);
  canele_persistent_t put{};
  ASSERT_EQ(canele_put_init(key, 10, &data, &options, &put), CANELE_OK) << canele_error_detail();
  for (unsigned turn = 0; turn < 20; ++turn) {
    write(bytes, turn);
    ASSERT_EQ(canele_start(&put), CANELE_OK) << canele_error_detail();
    ASSERT_TRUE(job_.finish(put.request));
    for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(memory[10 + i / 16 * 100 + i % 16], bytes[i]);
  }
  EXPECT_EQ(canele_key_close(key), CANELE_OK);
  EXPECT_EQ(canele_memory_free(registered), CANELE_OK);
}

TEST_P(Persistent, BadArguments) {
  canele_persistent_t operation{};
  Bytes bytes(8);
  const canele_data_t data = all_of(bytes), nowhere = canele_data_contiguous(nullptr, 8);
  EXPECT_EQ(canele_start(&operation), CANELE_EINVAL);
  EXPECT_EQ(canele_start(nullptr), CANELE_EINVAL);
  EXPECT_EQ(canele_send_init(nullptr, 1, 4, &data, nullptr, &operation), CANELE_EINVAL);
  EXPECT_EQ(canele_send_init(s_[0], 2, 4, &data, nullptr, &operation), CANELE_ERANK);
  EXPECT_EQ(canele_send_init(s_[0], CANELE_ANY_SOURCE, 4, &data, nullptr, &operation), CANELE_ERANK);
  EXPECT_EQ(canele_send_init(s_[0], 1, 4, &nowhere, nullptr, &operation), CANELE_EINVAL);
  EXPECT_EQ(canele_receive_init(s_[0], 1, 4, CANELE_TAG_EXACT, nullptr, nullptr, &operation), CANELE_EINVAL);
  canele_post_options_t options{};
  options.struct_size = sizeof options;
  options.done.kind = 99;
  EXPECT_EQ(canele_send_init(s_[0], 1, 4, &data, &options, &operation), CANELE_EINVAL);
  EXPECT_EQ(canele_put_init(nullptr, 0, &data, nullptr, &operation), CANELE_EINVAL);
  EXPECT_EQ(canele_start(&operation), CANELE_EINVAL) << "nothing was described";
}

INSTANTIATE_TEST_SUITE_P(Drivers, Persistent, testing::Values("shm", "tcp"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace canele::test

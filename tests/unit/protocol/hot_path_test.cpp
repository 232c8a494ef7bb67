// SPDX-License-Identifier: BSD-3-Clause
//
// The budget of the small-message path: no allocation, no mutex, no system call in the steady state.
//
// malloc, pthread_mutex_lock and the system calls that could be made are interposed in this program. Sanitizer builds
// have their own interposers, so the counts are not taken there.
#include <canele/active_message.h>
#include <canele/one_sided.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "unit/engine/local_job.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CANELE_COUNTS 0
#else
#define CANELE_COUNTS 1
#endif

namespace {
std::atomic<long> allocations{0}, locks{0}, calls{0};
}

#if CANELE_COUNTS
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);

void* malloc(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, size);
}
int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using Function = int (*)(pthread_mutex_t*);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  locks.fetch_add(1, std::memory_order_relaxed);
  return real(mutex);
}
long syscall(long number, ...) noexcept {
  using Function = long (*)(long, long, long, long, long, long, long);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "syscall"));
  calls.fetch_add(1, std::memory_order_relaxed);
  va_list list;
  va_start(list, number);
  long a[6];
  for (long& one : a) one = va_arg(list, long);
  va_end(list);
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
int epoll_wait(int epoll, epoll_event* events, int max, int timeout) {
  using Function = int (*)(int, epoll_event*, int, int);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "epoll_wait"));
  calls.fetch_add(1, std::memory_order_relaxed);
  return real(epoll, events, max, timeout);
}
int sched_yield(void) noexcept {
  using Function = int (*)();
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "sched_yield"));
  calls.fetch_add(1, std::memory_order_relaxed);
  return real();
}
}
#endif

namespace canele::test {
namespace {

class HotPath : public testing::TestWithParam<const char*> {
 protected:
  HotPath() : job_({2, {comm::find_driver("self"), comm::find_driver("shm")}, GetParam(), {}}), s_(job_.open("hot")) {}

  /// Sends one message from 0 to 1, with a completion of each end.
  void posted_message(std::uint64_t tag) {
    canele_post_options_t options{};
    options.struct_size = sizeof options;
    options.done.kind = CANELE_COMPLETE_COUNTER;
    options.done.object = &ended_;
    const canele_data_t out = canele_data_contiguous(out_.data(), size_),
                        in = canele_data_contiguous(in_.data(), size_);
    canele_post_receive(s_[1], 0, tag, CANELE_TAG_EXACT, &in, &options, &receive_);
    canele_post_send(s_[0], 1, tag, &out, &options, &send_);
    expected_ += 2;
    canele_completion_counter_wait(job_.handle(1), &ended_, expected_, UINT64_MAX);
  }

  /// Sends one message from 0 to 1, posted first or unexpected.
  void message(bool posted, std::uint64_t tag) {
    if (posted) canele_irecv(s_[1], 0, tag, CANELE_TAG_EXACT, in_.data(), size_, &receive_);
    canele_isend(s_[0], 1, tag, out_.data(), size_, &send_);
    if (!posted) {
      for (int i = 0; i < 3; ++i) job_.engine(1).step();
      canele_irecv(s_[1], 0, tag, CANELE_TAG_EXACT, in_.data(), size_, &receive_);
    }
    canele_wait(&receive_, nullptr);
    canele_wait(&send_, nullptr);
  }

  /// Counts over many messages of `size` bytes, each posted first, or every other one. Connecting needs both engines to
  /// step.
  void count(std::size_t size, bool posted_only) {
    count(size, [&](int i) { message(posted_only || i % 2 == 0, static_cast<std::uint64_t>(i)); });
  }
  template <class Message>
  void count(std::size_t size, Message message) {
    constexpr int messages = 20'000;
    size_ = size;
    canele_irecv(s_[1], 0, 0, CANELE_TAG_EXACT, in_.data(), size_, &receive_);
    canele_isend(s_[0], 1, 0, out_.data(), size_, &send_);
    ASSERT_TRUE(job_.finish(receive_) && job_.finish(send_));
    const auto exchange = [&](int times) {
      for (int i = 0; i < times; ++i) message(i);
    };
    exchange(2000);
    in_.assign(in_.size(), 0);
    const long allocations_before = allocations, locks_before = locks, calls_before = calls;
    exchange(messages);
    const long allocated = allocations - allocations_before, locked = locks - locks_before;
    const long called = calls - calls_before;
    EXPECT_TRUE(std::equal(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(size), in_.begin()));
    if (!CANELE_COUNTS) GTEST_SKIP() << "a sanitizer has its own malloc";
    EXPECT_EQ(allocated, 0);
    EXPECT_EQ(locked, 0);
    // The shm driver checks its sockets at times, so a slow machine makes more calls; tcp is not open.
    EXPECT_LE(called, messages / 20);
  }

  LocalJob job_;
  std::vector<canele_session_t*> s_;
  canele_request_t send_{}, receive_{};
  canele_completion_counter_t ended_{};
  std::uint64_t expected_ = 0;
  std::vector<std::uint8_t> out_ = pattern(4096, 1), in_ = std::vector<std::uint8_t>(4096);
  std::size_t size_ = 8;
};

TEST_P(HotPath, NoAllocationNoMutexNoSystemCallPerMessage) { count(8, false); }

/// Messages in a packet of their own. (Without a receive each is stored in memory that is allocated for it.)
TEST_P(HotPath, NoneForLongerOnesEither) { count(4096, true); }

TEST_P(HotPath, NoneWithCompletionsThatThePostNames) {
  count(8, [&](int i) { posted_message(static_cast<std::uint64_t>(i)); });
}

/// Short puts on registered memory: the target executes them in its progress.
TEST_P(HotPath, NonePerShortPut) {
  canele_memory_t* memory = nullptr;
  canele_key_t* key = nullptr;
  unsigned char name[CANELE_KEY_SIZE];
  ASSERT_EQ(canele_memory_register(job_.handle(1), in_.data(), in_.size(), nullptr, &memory), CANELE_OK);
  ASSERT_EQ(canele_memory_key(memory, name), CANELE_OK);
  ASSERT_EQ(canele_key_open(job_.handle(0), name, &key), CANELE_OK);
  const canele_data_t data = canele_data_contiguous(out_.data(), 8);
  count(8, [&](int i) {
    canele_put(key, 0, &data, nullptr, nullptr);
    if (i % 16 == 15) job_.engine(1).step();
  });
  canele_request_t flush{};
  EXPECT_EQ(canele_flush(job_.handle(0), 1, nullptr, &flush), CANELE_OK);
  EXPECT_TRUE(job_.finish(flush));
  EXPECT_EQ(canele_key_close(key), CANELE_OK);
  EXPECT_EQ(canele_memory_free(memory), CANELE_OK);
}

/// Short active messages, sent with a request and without.
TEST_P(HotPath, NonePerShortActiveMessage) {
  struct Arrivals {
    std::vector<std::uint8_t>& in;
    int count;
  } arrivals{in_, 0};
  const auto arrived = [](const canele_am_message_t* message, void* argument) {
    auto& all = *static_cast<Arrivals*>(argument);
    std::memcpy(all.in.data(), message->payload, message->payload_length);
    ++all.count;
  };
  const canele_am_handler_t handler = {sizeof handler, arrived, nullptr, &arrivals};
  ASSERT_EQ(canele_am_register(s_[1], 1, &handler), CANELE_OK);
  canele_am_t message{};
  const canele_data_t data = canele_data_contiguous(out_.data(), 8);
  int sent = 0;
  count(8, [&](int) {
    canele_am_send(s_[0], 1, 1, nullptr, 0, &data, nullptr, &message);
    while (canele_am_inject(s_[0], 1, 1, nullptr, 0, out_.data(), 8) == CANELE_EAGAIN) job_.step_all();
    for (sent += 2; arrivals.count != sent;) job_.step_all();
    canele_wait(&message.request, nullptr);
  });
  EXPECT_EQ(canele_am_unregister(s_[1], 1), CANELE_OK);
}

INSTANTIATE_TEST_SUITE_P(Strategies, HotPath, testing::Values("fifo", "aggregate", "priority"),
                         [](const auto& i) { return std::string(i.param); });

TEST(ObjectSizes, HotObjectsStaySmall) {
  EXPECT_LE(sizeof(comm::Request), 384u);
  EXPECT_EQ(sizeof(comm::wire::Head), 16u);
  EXPECT_LE(sizeof(comm::PostedNode), 64u);
  EXPECT_LE(sizeof(comm::Message), 64u);  // everything that an unexpected message takes beside its bytes,
  EXPECT_EQ(comm::MessagePool::block_sizes.front(), sizeof(comm::Message) + 8);  // and the size of the smallest block,
                                                                                 // for 8 bytes
  EXPECT_LE(sizeof(strategies::Item), 128u);
}

}  // namespace
}  // namespace canele::test

// SPDX-License-Identifier: BSD-3-Clause
//
// Threads that go to sleep and are woken, again and again. Each exchanges messages with its partner in the next rank,
// and pauses between them as long as it takes the other one to spin, to yield, or to sleep.
//
// Run by parking_test.py, under canele-run, two ranks. Arguments: seed, threads, rounds. As many threads as asked for,
// in each rank. No time is measured. A lost wake-up is a hang, as long as sleeps have no limit, for which endless.c
// provides.
#include <canele/canele.h>
#include <dlfcn.h>
#include <sched.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t short_length = 8, long_length = 100'000;  // bytes: eager, and by rendezvous
constexpr std::uint64_t extra_tag = 1u << 20;

canele_session_t* session = nullptr;
int rank = 0;

void must(int code, const char* what) {
  if (code == CANELE_OK) return;
  std::fprintf(stderr, "rank %d: %s: %s: %s\n", rank, what, canele_error_string(code), canele_error_detail());
  std::_Exit(1);
}

std::uint64_t now_ns() { return canele_now(canele_session_engine(session)); }

using Dice = std::mt19937_64;

std::uint64_t below(Dice& dice, std::uint64_t limit) { return dice() % limit; }

/// Does nothing, computes, sleeps, or yields the core.
void pause(Dice& dice) {
  const std::uint64_t kind = below(dice, 100);
  if (kind < 40) return;
  if (kind < 70) {
    const std::uint64_t until = now_ns() + below(dice, 100'000);
    while (now_ns() < until) {
    }
  } else if (kind < 90) {
    const timespec time{0, static_cast<long>(below(dice, 300'000))};
    nanosleep(&time, nullptr);
  } else {
    for (std::uint64_t i = below(dice, 20); i != 0; --i) sched_yield();
  }
}

std::uint64_t counter(canele_engine_t* engine, const char* name) {
  std::string text(64 * 1024, '\0');
  must(canele_counters_json(engine, text.data(), text.size(), nullptr), "counters");
  const std::string key = "\"" + std::string(name) + "\":";
  const std::size_t at = text.find(key);
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + key.size(), nullptr, 10);
}

/// One thread's exchange. Both partners draw the lengths from the same dice, and their pauses from dice of their own.
class Exchange {
 public:
  Exchange(std::uint64_t seed, std::uint64_t thread)
      : thread_(thread), lengths_(seed * 1000 + thread), pauses_((seed * 1000 + thread) * 2 + (rank == 0 ? 0 : 1)) {}

  void run(std::uint64_t rounds) {
    std::vector<unsigned char> data(long_length);
    for (std::uint64_t i = 0; i < rounds; ++i) {
      if (i % 256 == 255) counter(canele_session_engine(session), "messages_sent");  // while other threads are at work
      const std::size_t length = below(lengths_, 50) == 0 ? long_length : short_length;
      if ((i % 2 == 0) == (rank == 0)) {
        pause(pauses_);
        fill(data, length, i);
        send(data, length);
      } else {
        receive(data, length);
        check(data, length, i);
      }
    }
  }

 private:
  void fill(std::vector<unsigned char>& data, std::size_t length, std::uint64_t i) const {
    const std::uint64_t word = i << 16 | thread_;
    std::memset(data.data(), static_cast<int>(i % 251), length);
    std::memcpy(data.data(), &word, sizeof word);
  }

  void send(const std::vector<unsigned char>& data, std::size_t length) {
    canele_request_t request{};
    must(canele_isend(session, 1 - rank, thread_, data.data(), length, &request), "send");
    must(canele_wait(&request, nullptr), "wait for a send");
  }

  /// Waits for the message, or for it and one that never comes, or for it and for nothing by turns.
  void receive(std::vector<unsigned char>& data, std::size_t length) {
    canele_request_t request{}, never{};
    must(canele_irecv(session, 1 - rank, thread_, CANELE_TAG_EXACT, data.data(), length, &request), "receive");
    switch (below(pauses_, 4)) {
      case 0:
        wait_for_any(request, never);
        break;
      case 1:
        pause(pauses_);
        [[fallthrough]];
      default:
        must(canele_wait(&request, nullptr), "wait for a receive");
    }
  }

  void wait_for_any(canele_request_t& request, canele_request_t& never) {
    must(canele_irecv(session, 1 - rank, extra_tag + thread_, CANELE_TAG_EXACT, nullptr, 0, &never), "receive");
    canele_request_t* both[] = {&never, &request};
    std::size_t which = 0;
    must(canele_wait_any(2, both, &which, nullptr), "wait for any");
    if (which != 1) must(CANELE_EINVAL, "wait for any: a message that no rank has sent");
    canele_cancel(&never);
    if (canele_wait(&never, nullptr) != CANELE_ECANCELED) must(CANELE_EINVAL, "wait for a cancelled receive");
  }

  void check(const std::vector<unsigned char>& data, std::size_t length, std::uint64_t i) const {
    std::uint64_t word = 0;
    std::memcpy(&word, data.data(), sizeof word);
    const bool right = word == (i << 16 | thread_) &&
                       (length == short_length || data[length - 1] == static_cast<unsigned char>(i % 251));
    if (right) return;
    std::fprintf(stderr, "rank %d: thread %llu: message %llu is wrong\n", rank,
                 static_cast<unsigned long long>(thread_), static_cast<unsigned long long>(i));
    std::_Exit(1);
  }

  std::uint64_t thread_;
  Dice lengths_, pauses_;
};

/// Returns the number of sleeps without a limit so far, with endless.c preloaded.
std::uint64_t endless_sleeps() {
  const void* const count = dlsym(RTLD_DEFAULT, "canele_test_endless_sleeps");
  return count == nullptr ? 0 : *static_cast<const unsigned long*>(count);
}

}  // namespace

int main(int argc, char** argv) {
  canele_engine_t* engine = nullptr;
  must(canele_init(nullptr, &engine), "init");
  must(canele_session_open(engine, "parking", CANELE_ORDER_PER_TAG, &session), "session");
  rank = canele_rank(engine);
  if (argc != 4 || canele_size(engine) != 2)
    must(CANELE_EINVAL, "usage: canele-run -n 2 process_parking SEED THREADS ROUNDS");
  const std::uint64_t seed = std::strtoull(argv[1], nullptr, 10), threads = std::strtoull(argv[2], nullptr, 10),
                      rounds = std::strtoull(argv[3], nullptr, 10);
  std::vector<std::thread> all;
  for (std::uint64_t i = 0; i < threads; ++i) all.emplace_back([=] { Exchange(seed, i).run(rounds); });
  for (std::thread& one : all) one.join();
  std::printf("rank %d: %llu messages, %llu parks, %llu without a limit\n", rank,
              static_cast<unsigned long long>(threads * rounds),
              static_cast<unsigned long long>(counter(engine, "waiter_parks") + counter(engine, "worker_parks")),
              static_cast<unsigned long long>(endless_sleeps()));
  must(canele_session_close(session), "close");
  must(canele_finalize(engine), "finalize");
  return 0;
}

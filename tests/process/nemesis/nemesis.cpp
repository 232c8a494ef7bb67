// SPDX-License-Identifier: BSD-3-Clause
//
// A rank to which everything is done: all ranks send to each other in rounds, small and large, and check every byte. It
// ends well, or with an error that names the call and the reason.
//
// Who: nemesis_test.py, under canele-run. Arguments: seed, rounds, cycles (engines started and ended one after the
// other).
// Threads: the main thread; a signal asks it to fork.
// Surprise: an error is no failure here: resources are taken away and ranks killed. The exit code says which it was: 0
//     right, 3 a clean error, 9 wrong. After an error a rank says so and ends at once, as a program would.
#include <canele/canele.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int exit_clean = 3, exit_wrong = 9;
volatile std::sig_atomic_t fork_wanted = 0;
int rank = -1;

[[noreturn]] void end(int code, const char* format, ...) {
  char text[600];
  std::va_list list;
  va_start(list, format);
  std::vsnprintf(text, sizeof text, format, list);
  va_end(list);
  std::printf("rank %d: %s\n", rank, text);
  std::fflush(stdout);
  std::_Exit(code);
}

const char* inside = nullptr;  // the call of the library that this thread is in

/// Makes a call of the library. An error must have a name, and say what was wrong.
template <typename Function>
void call(const char* name, const Function& function) {
  inside = name;
  const int code = function();
  inside = nullptr;
  if (code == CANELE_OK) return;
  const std::string detail = canele_error_detail();
  if (code > CANELE_OK || code < CANELE_EFORK) end(exit_wrong, "WRONG: %s returned %d", name, code);
  end(exit_clean, "clean: %s: %s: %s", name, canele_error_string(code), detail.c_str());
}

unsigned char byte_of(int source, int destination, unsigned round, std::size_t at) {
  return static_cast<unsigned char>(static_cast<std::size_t>(source * 31 + destination * 7) + round * 13 + at * 5 +
                                    (at >> 8));
}

struct Pair {
  std::vector<unsigned char> out, in;
  canele_request_t send{}, receive{};
};

/// The child calls the library as a careless program does, and changes nothing for the parent.
void fork_and_call(canele_session_t* session, unsigned round) {
  fork_wanted = 0;
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child < 0) end(exit_clean, "clean: fork: no process");
  if (child == 0) {
    const unsigned char byte = 0xEE;
    canele_request_t request{};
    const int code = canele_isend(session, 1 - (rank & 1), round, &byte, 1, &request);
    std::_Exit(code == CANELE_EFORK ? 0 : 1);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
  }
  std::printf("rank %d: forked\n", rank);
  if (status != 0) end(exit_wrong, "WRONG: a call in a child was not refused (%d)", status);
}

class Rank {
 public:
  Rank(unsigned seed, unsigned rounds) : random_(seed), rounds_(rounds) {}

  void run() {
    call("canele_init", [&] { return canele_init(nullptr, &engine_); });
    rank = canele_rank(engine_);
    size_ = canele_size(engine_);
    call("canele_session_open",
         [&] { return canele_session_open(engine_, "nemesis", CANELE_ORDER_PER_TAG, &session_); });
    for (unsigned round = 0; round < rounds_; ++round) {
      exchange(round);
      if (round == 0) {
        std::printf("rank %d: is up\n", rank);
        std::fflush(stdout);
      }
      if (fork_wanted != 0) fork_and_call(session_, round);
    }
    call("canele_finalize", [&] { return canele_finalize(engine_); });
  }

 private:
  /// All ranks draw the same sizes.
  void exchange(unsigned round) {
    constexpr std::size_t sizes[] = {0, 8, 700, 9'000, 70'000, 300'000};
    const std::size_t size = sizes[random_() % std::size(sizes)];
    std::vector<std::unique_ptr<Pair>> pairs;
    // All memory before the first post: an exception would free what a transfer uses.
    for (int other = 0; other < size_; ++other) {
      pairs.push_back(std::make_unique<Pair>());
      Pair& pair = *pairs.back();
      pair.in.resize(size);
      for (std::size_t at = 0; at < size; ++at) pair.out.push_back(byte_of(rank, other, round, at));
    }
    for (int other = 0; other < size_; ++other) {
      if (other != rank) post(other, round, *pairs[static_cast<std::size_t>(other)]);
    }
    for (int other = 0; other < size_; ++other) {
      if (other != rank) finish(other, round, *pairs[static_cast<std::size_t>(other)]);
    }
  }

  void post(int other, unsigned round, Pair& pair) {
    const std::size_t size = pair.in.size();
    call("canele_irecv",
         [&] { return canele_irecv(session_, other, round, CANELE_TAG_EXACT, pair.in.data(), size, &pair.receive); });
    call("canele_isend", [&] { return canele_isend(session_, other, round, pair.out.data(), size, &pair.send); });
  }

  void finish(int other, unsigned round, Pair& pair) {
    call("canele_wait for a receive", [&] { return canele_wait(&pair.receive, nullptr); });
    call("canele_wait for a send", [&] { return canele_wait(&pair.send, nullptr); });
    for (std::size_t at = 0; at < pair.in.size(); ++at) {
      if (pair.in[at] != byte_of(other, rank, round, at))
        end(exit_wrong, "WRONG: byte %zu of %zu from rank %d in round %u", at, pair.in.size(), other, round);
    }
  }

  canele_engine_t* engine_ = nullptr;
  canele_session_t* session_ = nullptr;
  int size_ = 1;
  std::mt19937 random_;
  const unsigned rounds_;
};

/// Where address space is taken away, a stack that has to grow ends the process by a signal: it grows before.
[[gnu::noinline]] void grow_stack() {
  volatile char room[1 << 20];
  for (std::size_t at = 0; at < sizeof room; at += 1024) room[at] = 0;
}

unsigned number(const char* text) { return static_cast<unsigned>(std::strtoul(text, nullptr, 10)); }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) end(2, "usage: process_nemesis SEED ROUNDS CYCLES");
  grow_stack();
  std::signal(SIGUSR1, [](int) { fork_wanted = 1; });
  try {
    for (unsigned cycle = 0; cycle < number(argv[3]); ++cycle) Rank(number(argv[1]) + cycle, number(argv[2])).run();
  } catch (const std::exception& error) {
    if (inside != nullptr) end(exit_wrong, "WRONG: an exception left %s: %s", inside, error.what());
    end(exit_clean, "clean: the program: out of memory: %s", error.what());  // its own vectors
  }
  end(0, "right");
}

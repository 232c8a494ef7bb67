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

/// An error must have a name, and say what was wrong.
void check(int code, const char* call) {
  if (code == CANELE_OK) return;
  const std::string detail = canele_error_detail();
  if (code > CANELE_OK || code < CANELE_EFORK) end(exit_wrong, "WRONG: %s returned %d", call, code);
  end(exit_clean, "clean: %s: %s: %s", call, canele_error_string(code), detail.c_str());
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
    check(canele_init(nullptr, &engine_), "canele_init");
    rank = canele_rank(engine_);
    size_ = canele_size(engine_);
    check(canele_session_open(engine_, "nemesis", CANELE_ORDER_PER_TAG, &session_), "canele_session_open");
    for (unsigned round = 0; round < rounds_; ++round) {
      exchange(round);
      if (round == 0) {
        std::printf("rank %d: is up\n", rank);
        std::fflush(stdout);
      }
      if (fork_wanted != 0) fork_and_call(session_, round);
    }
    check(canele_finalize(engine_), "canele_finalize");
  }

 private:
  /// All ranks draw the same sizes.
  void exchange(unsigned round) {
    constexpr std::size_t sizes[] = {0, 8, 700, 9'000, 70'000, 300'000};
    const std::size_t size = sizes[random_() % std::size(sizes)];
    std::vector<std::unique_ptr<Pair>> pairs;
    for (int other = 0; other < size_; ++other) {
      pairs.push_back(std::make_unique<Pair>());
      if (other == rank) continue;
      Pair& pair = *pairs.back();
      pair.in.resize(size);
      for (std::size_t at = 0; at < size; ++at) pair.out.push_back(byte_of(rank, other, round, at));
      check(canele_irecv(session_, other, round, CANELE_TAG_EXACT, pair.in.data(), size, &pair.receive),
            "canele_irecv");
      check(canele_isend(session_, other, round, pair.out.data(), size, &pair.send), "canele_isend");
    }
    for (int other = 0; other < size_; ++other) {
      if (other != rank) finish(other, round, *pairs[static_cast<std::size_t>(other)]);
    }
  }

  void finish(int other, unsigned round, Pair& pair) {
    check(canele_wait(&pair.receive, nullptr), "canele_wait for a receive");
    check(canele_wait(&pair.send, nullptr), "canele_wait for a send");
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

unsigned number(const char* text) { return static_cast<unsigned>(std::strtoul(text, nullptr, 10)); }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) end(2, "usage: process_nemesis SEED ROUNDS CYCLES");
  std::signal(SIGUSR1, [](int) { fork_wanted = 1; });
  try {
    for (unsigned cycle = 0; cycle < number(argv[3]); ++cycle) Rank(number(argv[1]) + cycle, number(argv[2])).run();
  } catch (const std::exception& error) {
    end(exit_wrong, "WRONG: an exception left the library: %s", error.what());
  }
  end(0, "right");
}

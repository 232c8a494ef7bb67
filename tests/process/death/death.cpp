// SPDX-License-Identifier: BSD-3-Clause
//
// A rank that exchanges messages of all sizes with all others until one of them is killed, and then with the survivors.
//
// Run by death_test.py, under canele-run --keep-going. Arguments: the rank that dies, a seed. A thread of the dying
// rank kills it, at a moment drawn from the seed, so it may be in the middle of anything. Exit code 9: a survivor saw
// something wrong; stderr says what.
#include <canele/canele.h>
#include <dirent.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::uint64_t rounds = 150, last_moment = 75;  ///< the dying rank lives no longer than that round
constexpr std::size_t sizes[] = {0, 8, 300, 5000, 60'000, 400'000};

[[noreturn]] void wrong(const char* format, ...) {
  std::va_list list;
  va_start(list, format);
  std::vfprintf(stderr, format, list);
  va_end(list);
  std::fputc('\n', stderr);
  std::_Exit(9);
}

void must(int code, const char* what) {
  if (code != CANELE_OK) wrong("%s: %s: %s", what, canele_error_string(code), canele_error_detail());
}

int open_descriptors() {
  int count = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

/// Counts descriptors after a first engine: the process keeps its connection to the launcher until it exits.
int descriptors_between_engines() {
  canele_engine_t* engine = nullptr;
  must(canele_init(nullptr, &engine), "the first canele_init");
  must(canele_finalize(engine), "the first canele_finalize");
  return open_descriptors();
}

/// One message each way with one other rank.
struct Pair {
  std::vector<unsigned char> out, in;
  canele_request_t send{}, receive{};
};

class Rank {
 public:
  Rank(int victim, unsigned seed) : victim_(victim), seed_(seed), random_(seed) {
    must(canele_init(nullptr, &engine_), "init");
    must(canele_session_open(engine_, "death", CANELE_ORDER_PER_TAG, &session_), "session");
    rank_ = canele_rank(engine_);
    size_ = canele_size(engine_);
  }

  int run() {
    round(0);  // connects every rank
    if (rank_ == victim_) die_later();
    for (std::uint64_t number = 1; number < rounds; ++number) {
      if (rank_ == victim_ && number == last_moment) kill(getpid(), SIGKILL);
      round(number);
    }
    if (!lost_) wrong("rank %d did not notice the death of rank %d", rank_, victim_);
    const int code = canele_finalize(engine_);
    if (code != CANELE_OK && code != CANELE_EPEER) must(code, "finalize");
    const int left = open_descriptors() - before_;
    if (left > 0) wrong("rank %d has %d more descriptors than between two engines", rank_, left);
    std::printf("rank %d goes on without %d\n", rank_, victim_);
    return 0;
  }

 private:
  /// Exchanges one round. All ranks draw the same sizes.
  void round(std::uint64_t number) {
    std::vector<std::unique_ptr<Pair>> pairs(static_cast<std::size_t>(size_));
    const std::size_t size = sizes[random_() % std::size(sizes)];
    for (int other = 0; other < size_; ++other) {
      if (other == rank_ || (lost_ && other == victim_)) continue;
      auto& pair = pairs[static_cast<std::size_t>(other)] = std::make_unique<Pair>();
      pair->out.assign(size, static_cast<unsigned char>(number * 7 + static_cast<unsigned>(rank_)));
      pair->in.resize(size);
      must(canele_irecv(session_, other, number, CANELE_TAG_EXACT, pair->in.data(), size, &pair->receive), "receive");
      must(canele_isend(session_, other, number, pair->out.data(), size, &pair->send), "send");
    }
    for (int other = 0; other < size_; ++other) {
      if (pairs[static_cast<std::size_t>(other)] != nullptr)
        finish(other, number, *pairs[static_cast<std::size_t>(other)]);
    }
  }

  void finish(int other, std::uint64_t number, Pair& pair) {
    for (canele_request_t* request : {&pair.receive, &pair.send}) {
      canele_status_t status;
      const int code = canele_wait(request, &status);
      if (code == CANELE_OK) continue;
      if (code != CANELE_EPEER || other != victim_) {
        wrong("rank %d, round %llu, rank %d: %s: %s", rank_, static_cast<unsigned long long>(number), other,
              canele_error_string(code), canele_error_detail());
      }
      const std::string name = "rank " + std::to_string(victim_);
      if (status.source != victim_ || std::strstr(canele_error_detail(), name.c_str()) == nullptr) {
        wrong("rank %d: the error names rank %d and says: %s", rank_, status.source, canele_error_detail());
      }
      lost_ = true;
      return;
    }
    const auto expected = static_cast<unsigned char>(number * 7 + static_cast<unsigned>(other));
    for (const unsigned char byte : pair.in) {
      if (byte != expected) wrong("rank %d got wrong data from rank %d", rank_, other);
    }
  }

  void die_later() {
    std::mt19937 when(seed_);
    const auto delay = std::chrono::microseconds(when() % 50'000);
    std::thread([delay] {
      std::this_thread::sleep_for(delay);
      kill(getpid(), SIGKILL);
    }).detach();
  }

  const int before_ = descriptors_between_engines();
  canele_engine_t* engine_ = nullptr;
  canele_session_t* session_ = nullptr;
  int rank_ = 0, size_ = 1;
  const int victim_;
  const unsigned seed_;
  std::mt19937 random_;
  bool lost_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) wrong("usage: death VICTIM SEED");
  std::printf("process %d\n", static_cast<int>(getpid()));
  std::fflush(stdout);
  return Rank(std::atoi(argv[1]), static_cast<unsigned>(std::atoi(argv[2]))).run();
}

// SPDX-License-Identifier: BSD-3-Clause
//
// A rank that does collectives drawn from a seed: every operation, every algorithm, up to 1 MiB or as many bytes as the
// caller says. Several run at a time, in two groups. The rank arrives at random times and waits in any order, for some
// of them in the call itself. Or until one rank is killed.
//
// Run by collectives_test.py, under canele-run. Arguments: "run" SEED ROUNDS [LONGEST], or "death" SEED VICTIM.
// The main thread; in "death" one more, which kills the process. All ranks draw the same collectives, and each
// its own delays. Exit code 9: this rank saw something wrong.
#include <canele/collectives.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>

#include "tests/unit/collectives_engine/cases.hpp"

namespace {

using canele::test::Case;
using canele::test::Op;
using canele::test::Side;

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

/// One collective in progress.
struct Pending {
  Pending(const Case& what, int position) : side(what, position) {}
  Side side;
  canele_request_t request{};
};

class Rank {
 public:
  Rank(unsigned seed, std::size_t longest) : plan_(seed) {
    while (std::size_t{8} << lengths_ <= longest) ++lengths_;
    must(canele_init(nullptr, &engine_), "init");
    rank_ = canele_rank(engine_);
    size_ = canele_size(engine_);
    own_.seed(seed * 1000 + static_cast<unsigned>(rank_));
    std::vector<int> reversed;
    for (int rank = size_ - 1; rank >= 0; --rank) reversed.push_back(rank);
    must(canele_group_create(engine_, "all", nullptr, 0, &groups_[0]), "group");
    must(canele_group_create(engine_, "reversed", reversed.data(), reversed.size(), &groups_[1]), "group");
  }

  int run(unsigned rounds) {
    for (unsigned round = 0; round < rounds; ++round) {
      begin_some();
      std::shuffle(pending_.begin(), pending_.end(), own_);
      for (auto& one : pending_) {
        pause();
        must(canele_wait(&one->request, nullptr), "wait");
        if (const std::string words = one->side.check(); !words.empty()) wrong("round %u: %s", round, words.c_str());
      }
      pending_.clear();
    }
    for (canele_group_t* group : groups_) must(canele_group_destroy(group), "destroy");
    must(canele_finalize(engine_), "finalize");
    std::printf("rank %d: %u collectives\n", rank_, done_);
    return 0;
  }

  /// Runs collectives until there is an error, which must be the victim's death.
  int mourn(int victim) {
    begin_some();
    end_some(victim);  // every rank is connected
    if (rank_ == victim) die_later();
    while (!lost_) {
      begin_some();
      end_some(victim);
    }
    begin_some();  // later ones end, too
    end_some(victim);
    for (canele_group_t* group : groups_) must(canele_group_destroy(group), "destroy");
    const int code = canele_finalize(engine_);
    if (code != CANELE_OK && code != CANELE_EPEER) must(code, "finalize");
    std::printf("rank %d: lost %d after %u collectives\n", rank_, victim, done_);
    return 0;
  }

 private:
  Case draw() {
    Case one;
    one.op = static_cast<Op>(plan_() % canele::test::op_count);
    const std::size_t most = (std::size_t{1} << (plan_() % lengths_)) - 1;  // elements of 8 bytes
    one.length = plan_() % (most + 1);
    const bool parts = one.op >= Op::gather && one.op <= Op::reduce_scatter;
    if (parts) one.length /= static_cast<std::size_t>(size_);
    one.size = size_;
    one.root = static_cast<int>(plan_() % static_cast<unsigned>(size_));
    one.in_place = plan_() % 2 == 0;
    one.irregular = plan_() % 3 == 0;
    one.commutes = plan_() % 2 == 0;
    one.seed = plan_();
    return one;
  }

  void begin_some() {
    for (unsigned count = 1 + plan_() % 5; count > 0; --count) {
      const Case one = draw();
      canele_group_t* const group = groups_[plan_() % 2];
      canele_collective_options_t options{};
      options.struct_size = sizeof options;
      options.algorithm = static_cast<int>(plan_() % (CANELE_ALGORITHM_HALVING_DOUBLING + 1));
      options.segment = plan_() % 2 == 0 ? 0 : std::size_t{1} << (10 + plan_() % 8);
      options.window = static_cast<int>(plan_() % 4);
      options.blocking = own_() % 3 == 0 ? 1 : 0;
      pause();
      pending_.push_back(std::make_unique<Pending>(one, canele_group_rank(group)));
      Pending& next = *pending_.back();
      int code = next.side.start(group, &options, &next.request);
      // The operation may have no such algorithm.
      if (code == CANELE_EINVAL) code = next.side.start(group, nullptr, &next.request);
      must(code, "begin");
      ++done_;
    }
  }

  void end_some(int victim) {
    for (auto& one : pending_) {
      canele_status_t status{};
      const int code = canele_wait(&one->request, &status);
      if (code == CANELE_OK) {
        const std::string words = one->side.check();
        if (!words.empty()) wrong("%s", words.c_str());
        continue;
      }
      // A victim that dies before it has connected to this rank, or while it does, is a rank that no driver reaches.
      if ((code != CANELE_EPEER && code != CANELE_EDRIVER) || status.source != victim) {
        wrong("rank %d: %s, rank %d: %s", rank_, canele_error_string(code), status.source, canele_error_detail());
      }
      lost_ = true;
    }
    pending_.clear();
  }

  /// Pauses at random, so that ranks arrive at different times.
  void pause() {
    if (own_() % 4 != 0) return;
    std::this_thread::sleep_for(std::chrono::microseconds(own_() % 500));
  }

  void die_later() {
    const auto delay = std::chrono::microseconds(own_() % 100'000);
    std::thread([delay] {
      std::this_thread::sleep_for(delay);
      kill(getpid(), SIGKILL);
    }).detach();
  }

  canele_engine_t* engine_ = nullptr;
  canele_group_t* groups_[2] = {};
  int rank_ = 0, size_ = 1;
  unsigned lengths_ = 0;  ///< powers of two, from one element to the longest
  std::mt19937 plan_, own_;
  std::vector<std::unique_ptr<Pending>> pending_;
  unsigned done_ = 0;
  bool lost_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) wrong("usage: process_collectives run SEED ROUNDS [LONGEST] | death SEED VICTIM");
  const auto seed = static_cast<unsigned>(std::atoi(argv[2]));
  const int last = std::atoi(argv[3]);
  Rank rank(seed, argc == 5 ? std::strtoull(argv[4], nullptr, 10) : 1 << 20);
  return argv[1][0] == 'd' ? rank.mourn(last) : rank.run(static_cast<unsigned>(last));
}

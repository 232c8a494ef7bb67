// SPDX-License-Identifier: BSD-3-Clause
//
// The simulator's workload, with its oracle, in a job of real processes: messages and multicasts mixed, unbound and
// early receives, wildcards, probes, cancels, priorities, equal tags.
//
// Run by stress_test.py, under canele-run. Arguments: seed, rounds. One thread, which makes all progress itself. Every
// rank draws the whole plan from the seed, and checks what it receives against the plan; ranks compare nothing.
#include <canele/canele.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "apps/sim/oracle.hpp"
#include "apps/sim/plan.hpp"
#include "apps/sim/traffic.hpp"

namespace {

using namespace canele::sim;

std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

class Job final : public Environment {
 public:
  explicit Job(canele_engine_t* engine) : engine_(engine) {}
  int ranks() const override { return canele_size(engine_); }
  bool has_worker() const override { return false; }
  std::uint64_t now_ns() const override { return monotonic_ns(); }
  void pause_for(std::uint64_t ns) override {
    const timespec time{0, static_cast<long>(ns)};
    nanosleep(&time, nullptr);
  }
  void complain(const std::string& what) override {
    std::fprintf(stderr, "rank %d: %s\n", canele_rank(engine_), what.c_str());
    if (++complaints == 20) std::_Exit(1);  // later rounds may never end
  }

  int complaints = 0;

 private:
  canele_engine_t* engine_;
};

bool number(const char* text, std::uint64_t* value) {
  char* end = nullptr;
  errno = 0;
  *value = std::strtoull(text, &end, 10);
  return errno == 0 && end != text && *end == '\0';
}

/// Runs one plan, from its first message to its last. Returns the number of operations of this rank.
std::uint64_t round(canele_engine_t* engine, Job& job, std::uint64_t number, Dice dice) {
  PlanOptions options;
  options.ranks = job.ranks();
  options.messages = 4000;
  options.multicasts = options.messages / 20;  // each goes to several ranks
  options.longest = 200'000;
  Plan plan = make_plan(options, dice.split(1));
  add_multicasts(options, dice.split(2), &plan);
  Oracle oracle(job, plan);
  TrafficOptions habits;
  habits.name = " " + std::to_string(number);
  habits.inflight_limit = static_cast<int>(dice.between(1, 16));
  const auto rank = static_cast<std::uint64_t>(canele_rank(engine));
  TrafficRank traffic(job, plan, oracle, canele_rank(engine), dice.split(100 + rank), habits);
  traffic.run(engine);
  oracle.final_check(canele_rank(engine));
  return oracle.completed;
}

int stress(canele_engine_t* engine, std::uint64_t seed, std::uint64_t rounds) {
  Job job(engine);
  Dice dice(seed);
  std::uint64_t operations = 0;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    operations += round(engine, job, i, dice.split(i));
  }
  std::printf("rank %d: seed %llu, %llu operations, %llu unexpected, %llu multicasts, %llu forwarded, %d complaints\n",
              canele_rank(engine), static_cast<unsigned long long>(seed), static_cast<unsigned long long>(operations),
              static_cast<unsigned long long>(counter(engine, "unexpected_messages")),
              static_cast<unsigned long long>(counter(engine, "multicasts_sent")),
              static_cast<unsigned long long>(counter(engine, "multicasts_forwarded")), job.complaints);
  return job.complaints;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t seed = 0, rounds = 0;
  if (argc != 3 || !number(argv[1], &seed) || !number(argv[2], &rounds)) {
    std::fprintf(stderr, "usage: process_stress SEED ROUNDS\n");
    return 2;
  }
  canele_engine_t* engine = nullptr;
  if (canele_init(nullptr, &engine) != CANELE_OK) {
    std::fprintf(stderr, "canele_init: %s\n", canele_error_detail());
    return 1;
  }
  const int complaints = stress(engine, seed, rounds);
  const int code = canele_finalize(engine);
  if (code != CANELE_OK) std::fprintf(stderr, "canele_finalize: %s\n", canele_error_string(code));
  return complaints == 0 && code == CANELE_OK ? 0 : 1;
}

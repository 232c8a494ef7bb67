// SPDX-License-Identifier: BSD-3-Clause
//
// One-sided operations without a completion, from one engine to another in this thread, for callgrind to count.
//
// Those of 8 bytes access registered memory, which the origin has not mapped. So an operation is a copy by the origin
// itself, where the driver can, or goes by a packet, which the target's progress executes. Accumulates of many elements
// access memory that the origin has mapped.
#include "one_sided.hpp"

#include <canele/one_sided.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "comm/engine/poll_yield.hpp"
#include "counting.hpp"
#include "still_clock.hpp"
#include "tests/unit/engine/local_job.hpp"

namespace canele::test::budget {
namespace {

constexpr std::size_t most_accesses = 64;  ///< operations in a row

/// Rank 0 accesses memory of rank 1.
struct Access {
  explicit Access(const JobOptions& options) : job(options) {
    std::array<unsigned char, CANELE_KEY_SIZE> name{};
    must(canele_memory_register(job.handle(1), there.data(), sizeof there, nullptr, &memory) == CANELE_OK &&
             canele_memory_key(memory, name.data()) == CANELE_OK &&
             canele_key_open(job.handle(0), name.data(), &key) == CANELE_OK,
         "no memory to access");
    for (std::size_t i = 0; i < most_accesses; ++i) words[i] = canele_data_contiguous(&here[i], sizeof here[i]);
  }
  ~Access() {
    canele_key_close(key);
    canele_memory_free(memory);
  }
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;

  /// Forgets the fruitless polls of the steps before: after some of them a poll yields, which would then be counted.
  static void before_step() { comm::poller_state = {}; }

  LocalJob job;
  canele_memory_t* memory = nullptr;
  canele_key_t* key = nullptr;
  std::array<std::uint64_t, most_accesses> here{}, there{};
  std::array<canele_data_t, most_accesses> words{};
  canele_request_t flushed{};
  std::size_t count = 1;
};

void put(Access& a) {
  for (std::size_t i = 0; i < a.count; ++i) canele_put(a.key, i * sizeof a.there[i], &a.words[i], nullptr, nullptr);
}
void get(Access& a) { canele_get(a.key, 0, a.words.data(), nullptr, nullptr); }
/// The target executes what has come. One poll takes at most 32 packets.
void execute(Access& a) {
  for (std::size_t taken = 0; taken < a.count; taken += 32) canele_progress(a.job.handle(1));
}
void flush(Access& a) { canele_flush(a.job.handle(0), 1, nullptr, &a.flushed); }
void answer(Access& a) { canele_progress(a.job.handle(1)); }
void end(Access& a) { must(canele_wait(&a.flushed, nullptr) == CANELE_OK, "a flush has failed"); }

/// Ends a round; not counted. Checks the words, and changes those of this rank.
void finish(Access& a) {
  must(a.job.finish(a.flushed), "a flush has not ended");
  for (std::size_t i = 0; i < a.count; ++i) must(a.there[i] == a.here[i], "an operation has changed the data");
  for (int i = 0; i < 3; ++i) a.job.step_all();
  for (std::uint64_t& word : a.here) ++word;
}

using AccessSteps = std::vector<Step<Access>>;

void count_case(const std::string& name, Access& a, std::size_t in_a_row, const AccessSteps& steps) {
  a.count = in_a_row;
  warm_up(a, steps, 100);
  count(name, a, steps, static_cast<int>(in_a_row));
}

/// Connects the ranks, and biases each engine's lock to this thread.
void connect(Access& a) {
  put(a);
  flush(a);
  finish(a);
  own_the_locks(a.job);
}

/// Rank 0 combines bytes into memory of rank 1 that it has mapped.
struct Accumulates {
  Accumulates() : job(JobOptions{}) {
    std::array<unsigned char, CANELE_KEY_SIZE> name{};
    must(canele_memory_allocate(job.handle(1), ones.size(), nullptr, &there, &memory) == CANELE_OK &&
             canele_memory_key(memory, name.data()) == CANELE_OK &&
             canele_key_open(job.handle(0), name.data(), &key) == CANELE_OK,
         "no memory to combine into");
    ones.fill(1);
    all = canele_data_contiguous(ones.data(), ones.size());
  }
  ~Accumulates() {
    canele_key_close(key);
    canele_memory_free(memory);
  }
  Accumulates(const Accumulates&) = delete;
  Accumulates& operator=(const Accumulates&) = delete;

  LocalJob job;
  canele_memory_t* memory = nullptr;
  canele_key_t* key = nullptr;
  void* there = nullptr;
  std::array<unsigned char, 1024> ones{};
  canele_data_t all{};
};

void accumulate(Accumulates& a) {
  canele_accumulate(a.key, 0, &a.all, CANELE_BXOR, CANELE_UINT8, nullptr, nullptr, nullptr);
}
/// Ends a round; not counted.
void undo(Accumulates& a) {
  auto* const bytes = static_cast<unsigned char*>(a.there);
  for (std::size_t i = 0; i < a.ones.size(); ++i) must(bytes[i] == 1, "an accumulate has not combined an element");
  std::fill_n(bytes, a.ones.size(), static_cast<unsigned char>(0));
}

void count_accumulate() {
  Accumulates mapped;
  const std::vector<Step<Accumulates>> steps = {{"accumulate", accumulate}, {nullptr, undo}};
  stop_clock(true);
  warm_up(mapped, steps, 100);
  count("1024x1", mapped, steps, 1);
  stop_clock(false);
}

}  // namespace

void count_one_sided() {
  count_accumulate();
  Access by_packets({.settings = {"CANELE_SHM_CMA=off"}}), direct({});
  connect(by_packets);
  connect(direct);
  stop_clock(true);
  count_case(
      "put-8", by_packets, 1,
      {{"put", put}, {"execute", execute}, {"flush", flush}, {"answer", answer}, {"end", end}, {nullptr, finish}});
  count_case("64xput-8", by_packets, most_accesses,
             {{"put", put}, {"execute", execute}, {nullptr, flush}, {nullptr, answer}, {nullptr, finish}});
  count_case("direct-8", direct, 1, {{"put", put}, {"flush", flush}, {nullptr, finish}});
  count_case("direct-8", direct, 1, {{"get", get}, {nullptr, flush}, {nullptr, finish}});
  stop_clock(false);
  must(!testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed(), "the job has failed");
}

}  // namespace canele::test::budget

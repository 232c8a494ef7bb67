// SPDX-License-Identifier: BSD-3-Clause
//
// work_queue.cpp - a distributed work queue by atomic operations: ranks take pieces of work as they are ready for more.
//
// For readers who know pingpong.cpp. Rank 0 has two words: the next piece, and the sum of all results. Any rank takes a
// piece by a fetch-and-add, and adds its result by another one. Rank 0 makes no call for that.
//
//   c++ -std=c++20 work_queue.cpp $(pkg-config --cflags --libs canele) -o work_queue && canele-run -n 4 ./work_queue
#include <canele/collectives.h>
#include <canele/one_sided.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr std::uint64_t pieces = 2000;
enum Word : std::uint64_t { next_piece = 0, sum_of_results = 8, pieces_done = 16 };  // offsets in bytes

canele_engine_t* engine = nullptr;

/// Ends the job if a call has failed.
void must(int code, const char* call) {
  if (code == CANELE_OK) return;
  std::fprintf(stderr, "work_queue: %s: %s: %s\n", call, canele_error_string(code), canele_error_detail());
  canele_abort(engine, 1, call);
}

/// Number of steps from n to 1 by Collatz: work whose length is not known before.
std::uint64_t work_on(std::uint64_t n) {
  std::uint64_t steps = 0;
  for (; n > 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  return steps;
}

std::uint64_t fetch_and_add(canele_key_t* key, Word word, std::uint64_t n) {
  std::uint64_t before = 0;
  canele_request_t request{};
  must(canele_atomic(key, word, CANELE_ATOMIC_ADD, 8, n, 0, &before, nullptr, &request), "canele_atomic");
  must(canele_wait(&request, nullptr), "canele_wait");
  return before;
}

/// Adds without a completion of its own: a flush covers it.
void add(canele_key_t* key, Word word, std::uint64_t n) {
  must(canele_atomic(key, word, CANELE_ATOMIC_ADD, 8, n, 0, nullptr, nullptr, nullptr), "canele_atomic");
}

}  // namespace

int main() {
  must(canele_init(nullptr, &engine), "canele_init");
  canele_group_t* group = nullptr;
  must(canele_group_create(engine, "work queue", nullptr, 0, &group), "canele_group_create");
  canele_collective_options_t blocking{};
  blocking.struct_size = sizeof blocking;
  blocking.blocking = 1;

  // Rank 0 registers the words, and sends the key to all.
  alignas(8) std::array<std::uint64_t, 3> words{};
  std::array<unsigned char, CANELE_KEY_SIZE> bytes{};
  canele_memory_t* memory = nullptr;
  const bool owns = canele_rank(engine) == 0;
  if (owns) {
    must(canele_memory_register(engine, words.data(), sizeof words, nullptr, &memory), "canele_memory_register");
    must(canele_memory_key(memory, bytes.data()), "canele_memory_key");
  }
  must(canele_ibcast(group, bytes.data(), bytes.size(), 0, &blocking, nullptr), "canele_ibcast");
  canele_key_t* key = nullptr;
  must(canele_key_open(engine, bytes.data(), &key), "canele_key_open");

  std::uint64_t taken = 0, result = 0;
  for (std::uint64_t piece = fetch_and_add(key, next_piece, 1); piece < pieces;
       piece = fetch_and_add(key, next_piece, 1)) {
    result += work_on(piece + 1);
    ++taken;
  }
  add(key, sum_of_results, result);
  add(key, pieces_done, taken);
  canele_request_t flushed{};
  must(canele_flush(engine, 0, nullptr, &flushed), "canele_flush");
  must(canele_wait(&flushed, nullptr), "canele_wait");
  must(canele_key_close(key), "canele_key_close");
  must(canele_ibarrier(group, &blocking, nullptr), "canele_ibarrier");

  bool right = true;
  if (owns) {
    std::uint64_t expected = 0;
    for (std::uint64_t n = 1; n <= pieces; ++n) expected += work_on(n);
    right = words[sum_of_results / 8] == expected && words[pieces_done / 8] == pieces;
    std::printf("work_queue: %llu pieces on %d ranks, %llu by this one: %s\n",
                static_cast<unsigned long long>(words[pieces_done / 8]), canele_size(engine),
                static_cast<unsigned long long>(taken), right ? "right" : "WRONG");
    must(canele_memory_free(memory), "canele_memory_free");
  }
  must(canele_group_destroy(group), "canele_group_destroy");
  must(canele_finalize(engine), "canele_finalize");
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

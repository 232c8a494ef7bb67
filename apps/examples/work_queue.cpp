// SPDX-License-Identifier: BSD-3-Clause
//
// work_queue.cpp - a distributed work queue by atomic operations: ranks take pieces of work as they are ready for more.
//
// For readers who know pingpong.cpp. Rank 0 has three words: the next piece, the sum of all results, and the number of
// pieces done. Any rank takes a piece by a fetch-and-add, and adds its results by two adds. Rank 0 makes no call for
// that.
//
//   c++ -std=c++20 work_queue.cpp $(pkg-config --cflags --libs canele) -o work_queue && canele-run -n 4 ./work_queue
#include <array>
#include <canele/collectives.hpp>
#include <canele/one_sided.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>

namespace {

constexpr std::uint64_t pieces = 2000;
enum Word : std::uint64_t { next_piece, sum_of_results, pieces_done };

/// Number of steps from n to 1 by Collatz: work whose length is not known before.
std::uint64_t work_on(std::uint64_t n) {
  std::uint64_t steps = 0;
  for (; n > 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  return steps;
}

/// Works until no piece is left. Returns how many pieces this rank has done.
std::uint64_t take_and_work(canele::engine& engine, const canele::key& queue) {
  const auto word = [&](Word which) { return queue.word<std::uint64_t>(which * sizeof(std::uint64_t)); };
  std::uint64_t taken = 0, result = 0;
  for (std::uint64_t piece; (piece = word(next_piece).fetch_add(1)) < pieces; ++taken) result += work_on(piece + 1);
  word(sum_of_results).iadd(result);  // two adds without completions of their own: the flush covers them
  word(pieces_done).iadd(taken);
  canele::flush(engine, queue.rank());
  return taken;
}

bool run(canele::engine& engine) {
  canele::group group(engine, "work queue");

  // Rank 0 registers the words, and sends the key to all.
  std::array<std::uint64_t, 3> words{};
  std::optional<canele::memory> memory;
  canele::key_bytes bytes{};
  if (engine.rank() == 0) bytes = memory.emplace(engine, words).key();
  group.ibcast(bytes, 0).wait();

  const std::uint64_t taken = take_and_work(engine, canele::key(engine, bytes));
  group.ibarrier().wait();
  if (!memory) return true;

  std::uint64_t expected = 0;
  for (std::uint64_t n = 1; n <= pieces; ++n) expected += work_on(n);
  const bool right = words[sum_of_results] == expected && words[pieces_done] == pieces;
  std::printf("work_queue: %llu pieces on %d ranks, %llu by this one: %s\n",
              static_cast<unsigned long long>(words[pieces_done]), engine.size(),
              static_cast<unsigned long long>(taken), right ? "right" : "WRONG");
  return right;
}

/// Ends the job if this rank cannot go on, because the other ranks would wait for it.
bool run_or_abort(canele::engine& engine) {
  try {
    return run(engine);
  } catch (const canele::error& problem) {
    engine.abort(1, problem.what());
  }
}

}  // namespace

int main() {
  try {
    canele::engine engine;
    const bool right = run_or_abort(engine);
    engine.finalize();
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const canele::error& problem) {
    std::fprintf(stderr, "work_queue: %s\n", problem.what());
    return EXIT_FAILURE;
  }
}

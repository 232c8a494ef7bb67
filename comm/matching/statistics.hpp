// SPDX-License-Identifier: BSD-3-Clause
//
// Counts the cost of matching: entries compared, cache lines read, entries moved, and histograms of them.
//
// The alternatives always count. The table counts only as CountingMatcher (tests, benchmarks), so that the engine's
// default path contains no code for it. Used under the engine's lock, like the matcher: one thread at a time.
//
// Lines are counted by the layout of the structure, not measured. If two steps of one search read the same line, it is
// counted once where the code knows it. The caches of the machine play no part.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace canele::comm::matching {

/// Cost of one operation, or of many.
struct Tally {
  std::uint64_t attempts = 0;  ///< entries compared, one or several at once.
  std::uint64_t verified = 0;  ///< entries compared again, in full, after they passed a filter.
  std::uint64_t probes = 0;    ///< table: buckets examined, and entries compared in them.
  std::uint64_t moved = 0;     ///< table: entries moved because it grows.
  std::uint64_t lines = 0;     ///< cache lines read to find the entry

  Tally& operator+=(const Tally& other) noexcept {
    attempts += other.attempts;
    verified += other.verified;
    probes += other.probes;
    moved += other.moved;
    lines += other.lines;
    return *this;
  }
  Tally operator-(const Tally& other) const noexcept {
    return {attempts - other.attempts, verified - other.verified, probes - other.probes, moved - other.moved,
            lines - other.lines};
  }
  std::uint64_t steps() const noexcept { return probes + moved; }
};

/// Bucket 0 counts zeros, bucket b the numbers from 2^(b-1) to 2^b - 1.
class Histogram {
 public:
  static constexpr std::size_t buckets = 34;
  void add(std::uint64_t number) noexcept {
    ++counts_[std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(number)), buckets - 1)];
  }
  std::uint64_t operator[](std::size_t bucket) const noexcept { return counts_[bucket]; }
  static std::uint64_t least_of(std::size_t bucket) noexcept {
    return bucket == 0 ? 0 : std::uint64_t{1} << (bucket - 1);
  }

 private:
  std::array<std::uint64_t, buckets> counts_{};
};

struct Statistics {
  std::uint64_t searches = 0;    ///< posts, arrivals and probes that examined a queue with entries.
  std::uint64_t operations = 0;  ///< posts, arrivals, messages stored, probes.
  Tally total;                   ///< of all operations.
  std::uint64_t most_steps = 0;  ///< of one operation.
  Histogram search_length;       ///< attempts of each search.
  Histogram posted, unexpected;  ///< number queued in the session, at each insertion and removal

  /// Records one operation at its end. `searched`: it had entries to examine.
  void note(const Tally& cost, bool searched) noexcept {
    ++operations;
    total += cost;
    most_steps = std::max(most_steps, cost.steps());
    if (!searched) return;
    ++searches;
    search_length.add(cost.attempts);
  }
};

/// Counting policies of the table. NotCounted leaves no trace in the code.
struct NotCounted {
  static constexpr bool on = false;
};
struct Counted {
  static constexpr bool on = true;
};

}  // namespace canele::comm::matching

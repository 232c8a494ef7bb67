// SPDX-License-Identifier: BSD-3-Clause
//
// Sums over all messages of each algorithm. See crowded.hpp (who, threads).
// Surprise: exact for powers of two, and for others but for what is folded and for odd trees of parts.
//
//   time = hops (a + switch) + (messages g + bytes b + work c) / units
#include "comm/collectives/crowded.hpp"

#include <algorithm>

#include "comm/collectives/algorithms/build.hpp"

namespace canele::comm::collectives {
namespace {

constexpr double switch_ns = 1500;  // to another rank of the same unit

/// The sizes that the sums are made of.
struct Sizes {
  explicit Sizes(int ranks) : n(ranks), others(ranks - 1) {
    for (core = 1; 2 * core <= n; core *= 2) ++core_rounds;
    rounds = core_rounds + (core < n ? 1 : 0);
    folded = n - core;
  }
  double n, others;
  double core = 1, core_rounds = 0;  ///< the greatest power of two of ranks
  double rounds = 0, folded = 0;     ///< folded: what is over
  double fold_hops() const { return folded > 0 ? 1 : 0; }
  /// Of halving or doubling among the core.
  double paired() const { return core * core_rounds; }
};

double segments_of(double bytes, const Choice& choice) {
  return choice.segment == 0 ? 1 : std::max(1.0, bytes / static_cast<double>(choice.segment));
}

double depth_of(const Sizes& s, const Choice& choice) {
  if (choice.algorithm == Algorithm::flat) return 1;
  if (choice.algorithm == Algorithm::chain) return s.others;
  if (choice.algorithm != Algorithm::k_nomial) return s.rounds;
  double depth = 0;
  for (double reach = 1; reach < s.n; reach *= std::max(2U, choice.radix)) ++depth;
  return depth;
}

/// Down a tree, or with work up.
Totals tree(const Sizes& s, double bytes, const Choice& choice, bool combining) {
  const double segments = segments_of(bytes, choice);
  Totals t{depth_of(s, choice) + segments - 1, s.others * segments, s.others * bytes};
  if (combining) t.work = t.bytes;
  t.by_one = combining && choice.algorithm == Algorithm::flat;
  return t;
}

/// Parts of `bytes` in all, along a binomial tree: at each level half of them move.
Totals parts_along_a_tree(const Sizes& s, double bytes) { return {s.rounds, s.others, bytes * s.rounds / 2}; }

Totals ring(const Sizes& s, double bytes) { return {s.others, s.n * s.others, s.others * bytes}; }

/// Halving or doubling of a vector, parts of it.
Totals shares(const Sizes& s, double bytes) { return {s.core_rounds, s.paired(), (s.core - 1) * bytes}; }

/// What the ranks beyond the core give, or get.
Totals fold(const Sizes& s, double bytes) { return {s.fold_hops(), s.folded, s.folded * bytes}; }

Totals with_work(Totals t, double bytes) {
  t.work += bytes;
  return t;
}

Totals operator+(const Totals& a, const Totals& b) {
  return {a.hops + b.hops, a.messages + b.messages, a.bytes + b.bytes, a.work + b.work, a.by_one || b.by_one};
}

Totals rooted(const Sizes& s, const Call& call, double bytes, const Choice& choice) {
  const bool combining = call.operation == Operation::reduce;
  if (choice.algorithm != Algorithm::two_phases) return tree(s, bytes, choice, combining);
  if (!combining) {
    if (in_a_ring(call.size, call.length)) return parts_along_a_tree(s, bytes) + ring(s, bytes);
    return Totals{s.rounds} + shares(s, bytes) + fold(s, bytes);  // what the tree brought is not sent again
  }
  return with_work(fold(s, bytes) + shares(s, bytes), s.others * bytes) + parts_along_a_tree(s, bytes);
}

Totals allreduce(const Sizes& s, double bytes, const Choice& choice) {
  const Totals folds = fold(s, bytes) + fold(s, bytes);
  switch (choice.algorithm) {
    case Algorithm::ring:
      return with_work(ring(s, bytes) + ring(s, bytes), s.others * bytes);
    case Algorithm::halving_doubling:
      return with_work(shares(s, bytes) + shares(s, bytes) + folds, s.others * bytes);
    case Algorithm::two_phases:
      return tree(s, bytes, choice, true) + tree(s, bytes, choice, false);
    default:
      return with_work(Totals{s.core_rounds, s.paired(), s.paired() * bytes} + folds, (s.paired() + s.folded) * bytes);
  }
}

Totals allgather(const Sizes& s, double all, const Choice& choice) {
  switch (choice.algorithm) {
    case Algorithm::ring:
      return ring(s, all);
    case Algorithm::bruck:
      return {s.rounds, s.n * s.rounds, s.others * all, s.n * all};
    case Algorithm::two_phases:
      return parts_along_a_tree(s, all) + tree(s, all, choice, false);
    default:
      return shares(s, all) + fold(s, all) + fold(s, all / s.n);
  }
}

Totals reduce_scatter(const Sizes& s, double all, const Choice& choice) {
  switch (choice.algorithm) {
    case Algorithm::ring:
      return with_work(ring(s, all), s.others * all);
    case Algorithm::two_phases:
      return tree(s, all, choice, true) + parts_along_a_tree(s, all);
    default:
      return with_work(shares(s, all) + fold(s, all) + fold(s, all / s.n), s.others * all);
  }
}

Totals scan(const Sizes& s, double bytes, const Choice& choice) {
  if (choice.algorithm == Algorithm::chain) return tree(s, bytes, choice, true);
  Totals t;
  for (double distance = 1; distance < s.n; distance *= 2) {
    t = t + Totals{1, s.n - distance, (s.n - distance) * bytes, 2 * (s.n - distance) * bytes};
  }
  return t;
}

Totals alltoall(const Sizes& s, double longest, const Choice& choice) {
  if (choice.algorithm != Algorithm::bruck) return {1, s.n * s.others, s.n * s.others * longest};
  const double moved = s.n * s.rounds * s.n / 2 * longest;
  return {s.rounds, s.n * s.rounds, moved, 2 * moved};
}

}  // namespace

Totals totals_of(const Call& call, const Choice& choice, double all, double longest) {
  const Sizes s(call.size);
  switch (call.operation) {
    case Operation::barrier:
      return {s.rounds, s.n * s.rounds};
    case Operation::bcast:
    case Operation::reduce:
      return rooted(s, call, all, choice);
    case Operation::allreduce:
      return allreduce(s, all, choice);
    case Operation::gather:
    case Operation::scatter:
      if (choice.algorithm == Algorithm::flat) return {1, s.others, s.others * longest};
      return parts_along_a_tree(s, s.n * longest);
    case Operation::allgather:
      return allgather(s, all, choice);
    case Operation::alltoall:
      return alltoall(s, longest, choice);
    case Operation::reduce_scatter:
      return reduce_scatter(s, all, choice);
    case Operation::scan:
    case Operation::exscan:
      break;
  }
  return scan(s, all, choice);
}

double crowded_time(const Totals& totals, const Network& network) {
  const auto units = static_cast<double>(network.units);
  const double hop = static_cast<double>(network.latency_ns) + switch_ns;
  const double byte = 1e9 / static_cast<double>(std::max<std::uint64_t>(1, network.bytes_per_second));
  const double work = totals.work * memory_ns_per_byte * (totals.by_one ? units : 1);
  return totals.hops * hop +
         (totals.messages * static_cast<double>(network.gap_ns) + totals.bytes * byte + work) / units;
}

}  // namespace canele::comm::collectives

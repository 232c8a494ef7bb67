// SPDX-License-Identifier: BSD-3-Clause
//
// Sums over all messages of each algorithm. Exact for powers of two. For other sizes, approximate for the folded ranks
// and for irregular trees of blocks.
//
//   time = hops (a + switch) + (messages g + bytes b + work c) / units
#include "comm/collectives/oversubscribed.hpp"

#include <algorithm>
#include <cmath>

#include "comm/collectives/algorithms/build.hpp"
#include "comm/collectives/algorithms/tree.hpp"

namespace canele::comm::collectives {
namespace {

constexpr double switch_ns = 1000;  // ns, to switch to another rank of the same unit
/// For an operation whose ranks do not all wait for each other. In a sequence of calls they run ahead, and one turn
/// serves many calls.
constexpr double share_of_a_turn = 0.05;
constexpr double message_ns = 100;  // ns, to send and to receive a message of any length

/// The sizes from which the sums are computed.
struct Sizes {
  explicit Sizes(int ranks) : n(ranks), others(ranks - 1) {
    for (core = 1; 2 * core <= n; core *= 2) ++core_rounds;
    rounds = core_rounds + (core < n ? 1 : 0);
    folded = n - core;
  }
  double n, others;
  double core = 1, core_rounds = 0;  ///< the greatest power of two of ranks
  double rounds = 0, folded = 0;     ///< folded: ranks beyond the core
  double fold_hops() const { return folded > 0 ? 1 : 0; }
  /// Messages of halving or doubling among the core.
  double paired() const { return core * core_rounds; }
};

double segments_of(double bytes, const Choice& choice) {
  return choice.segment == 0 ? 1 : std::max(1.0, std::ceil(bytes / static_cast<double>(choice.segment)));
}

double depth_of(const Sizes& s, const Choice& choice) {
  if (choice.algorithm == Algorithm::flat) return 1;
  if (choice.algorithm == Algorithm::chain) return s.others;
  double depth = 0;
  for (double reach = 1; reach < s.n; reach *= radix_of(choice)) ++depth;
  return depth;
}

/// Returns true if one rank exchanges messages with all others.
bool is_flat(const Sizes& s, const Choice& choice) {
  return choice.algorithm == Algorithm::flat || radix_of(choice) >= s.n;
}

/// Down a tree; or up a tree, with work.
Totals tree(const Sizes& s, double bytes, const Choice& choice, bool combining) {
  const double segments = segments_of(bytes, choice);
  constexpr double turn = 0.2;  // of a rank that takes all that has arrived by then
  Totals t{depth_of(s, choice) + turn * (segments - 1), s.others * segments, s.others * bytes};
  if (combining) t.work = t.bytes;
  t.in_a_row = choice.algorithm == Algorithm::chain;
  t.segments = is_flat(s, choice) ? 0 : segments;
  t.by_one = is_flat(s, choice) && (combining || choice.algorithm == Algorithm::two_phases);
  return t;
}

/// Blocks of `bytes` in total, along a tree. At each level of a binomial tree half of them move.
Totals blocks_along_a_tree(const Sizes& s, double bytes, const Choice& choice = {}) {
  const double depth = depth_of(s, choice), radix = std::min<double>(s.n, radix_of(choice));
  return {depth, s.others, bytes * depth * (radix - 1) / radix};
}

Totals ring(const Sizes& s, double bytes) { return {s.others, s.n * s.others, s.others * bytes}; }

/// Each rank sends `bytes` to each other rank.
Totals with_each(const Sizes& s, double bytes, bool instead = true) {
  Totals t{1, s.n * s.others, s.n * s.others * bytes};
  t.instead = instead;
  return t;
}

/// Halving or doubling of a vector, in blocks.
Totals shares(const Sizes& s, double bytes) { return {s.core_rounds, s.paired(), (s.core - 1) * bytes}; }

/// Messages of the ranks beyond the core, to or from it.
Totals fold(const Sizes& s, double bytes) { return {s.fold_hops(), s.folded, s.folded * bytes}; }

Totals with_work(Totals t, double bytes) {
  t.work += bytes;
  return t;
}

Totals operator+(const Totals& a, const Totals& b) {
  return {a.hops + b.hops,
          a.messages + b.messages,
          a.bytes + b.bytes,
          a.work + b.work,
          a.by_one || b.by_one,
          a.in_a_row && b.in_a_row,
          std::max(a.segments, b.segments),
          a.instead || b.instead};
}

Totals rooted(const Sizes& s, const Call& call, double bytes, const Choice& choice) {
  const bool combining = call.operation == Operation::reduce;
  if (choice.algorithm != Algorithm::two_phases) return tree(s, bytes, choice, combining);
  if (!combining) {
    if (in_a_ring(call.size, call.length)) return blocks_along_a_tree(s, bytes) + ring(s, bytes);
    return Totals{s.rounds} + shares(s, bytes) + fold(s, bytes);  // without the data that the tree has delivered
  }
  return with_work(fold(s, bytes) + shares(s, bytes), s.others * bytes) + blocks_along_a_tree(s, bytes);
}

Totals allreduce(const Sizes& s, double bytes, const Choice& choice) {
  const Totals folds = fold(s, bytes) + fold(s, bytes);
  switch (choice.algorithm) {
    case Algorithm::flat:
      return with_work(with_each(s, bytes), s.n * s.others * bytes);
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
    case Algorithm::flat:
      return with_each(s, all / s.n);
    case Algorithm::ring:
      return ring(s, all);
    case Algorithm::bruck:
      return {s.rounds, s.n * s.rounds, s.others * all, s.n * all};
    case Algorithm::two_phases:
      return blocks_along_a_tree(s, all, choice) + tree(s, all, choice, false);
    default:
      return shares(s, all) + fold(s, all) + fold(s, all / s.n);
  }
}

Totals reduce_scatter(const Sizes& s, double all, const Choice& choice) {
  switch (choice.algorithm) {
    case Algorithm::flat:
      return with_work(with_each(s, all / s.n), s.others * all);
    case Algorithm::ring:
      return with_work(ring(s, all), s.others * all);
    case Algorithm::two_phases:
      return tree(s, all, choice, true) + blocks_along_a_tree(s, all, choice);
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
  if (choice.algorithm != Algorithm::bruck) return with_each(s, longest, false);
  const double moved = s.n * s.rounds * s.n / 2 * longest;
  return {s.rounds, s.n * s.rounds, moved, 2 * moved};
}

Totals of_one_call(const Call& call, const Choice& choice, double all, double longest) {
  const Sizes s(call.size);
  switch (call.operation) {
    case Operation::barrier:
      if (choice.algorithm == Algorithm::flat) return with_each(s, 0);
      if (choice.algorithm == Algorithm::two_phases) return tree(s, 0, choice, false) + tree(s, 0, choice, false);
      return {s.rounds, s.n * s.rounds};
    case Operation::bcast:
    case Operation::reduce:
      return rooted(s, call, all, choice);
    case Operation::allreduce:
      return allreduce(s, all, choice);
    case Operation::gather:
    case Operation::scatter:
      if (choice.algorithm == Algorithm::flat) return {1, s.others, s.others * longest};
      return blocks_along_a_tree(s, s.n * longest);
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

}  // namespace

Totals totals_of(const Call& call, const Choice& choice, double all, double longest) {
  Totals totals = of_one_call(call, choice, all, longest);
  const bool rooted = call.operation == Operation::bcast || call.operation == Operation::reduce ||
                      call.operation == Operation::gather || call.operation == Operation::scatter;
  if (rooted || call.operation == Operation::scan || call.operation == Operation::exscan)
    totals.hops *= share_of_a_turn;
  return totals;
}

double oversubscribed_time(const Totals& totals, int ranks, const Network& network) {
  constexpr double two_copies = 2;  // in and out, on the same units
  const auto units = static_cast<double>(network.units);
  const double share = std::max(1.0, ranks / units);
  // Until the receiver of a message has its turn, all other ranks of its unit have theirs. Along a chain the receiver
  // is next.
  // Through memory, long messages need no rendezvous either: they are sent in pieces or as buffered sends.
  const bool asks = network.piece == 0 && totals.bytes > totals.messages * fast_bytes;
  const double turns = totals.in_a_row ? 1 : share;
  const double hop = (static_cast<double>(network.latency_ns) + switch_ns * turns) * (asks ? 2 : 1);
  // With two ranks to a unit, every second turn completes the call for one rank, which then begins the next: see
  // barrier.cpp. With more ranks, few turns do.
  const double hops = totals.instead && share > 2 ? 2 * totals.hops : totals.hops;
  const double byte = two_copies * 1e9 / static_cast<double>(std::max<std::uint64_t>(1, network.bytes_per_second));
  const double work = totals.work * memory_ns_per_byte;
  const double messages = totals.messages * std::max(message_ns, static_cast<double>(network.gap_ns));
  if (totals.by_one) {  // its unit is shared with other ranks as well
    const double uneven = work > 0 ? 1 + (share - 1) / (ranks - 1) : 1;
    return hops * hop + messages + work + totals.bytes * byte / units * uneven;
  }
  // Along a tree of whole vectors, only some ranks move data at a time, and these may share a unit.
  const double idle = totals.segments == 0 ? 1 : 1 + 0.3 / totals.segments;
  return hops * hop + (messages + work + totals.bytes * byte) / units * idle;
}

}  // namespace canele::comm::collectives

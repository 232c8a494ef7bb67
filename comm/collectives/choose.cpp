// SPDX-License-Identifier: BSD-3-Clause
//
// Choice of an algorithm: a closed form of the time of each, and the least of them.
//
// All ranks compute the choice independently and must agree. So nothing in it depends on the rank, on lengths that only
// some ranks know, or on anything measured. Candidates are few, in a fixed order, and of equal ones the first wins.
//
// Where ranks share processing units, another model applies: oversubscribed.hpp. Elsewhere the model is that of
// Hockney, with the gap of LogGP. A message of m bytes takes a + m b, and the next one of the same rank may begin
// max(g, m b) after it. A rank sends and receives at the same time. To combine or copy a byte costs one memory access.
// n ranks, d = ceil(log2 n) rounds, q segments of s bytes:
//
//    flat                  (n-2) max(g, m b) + a + m b
//    k-nomial tree         ceil(log_k n) ((k-2) max(g, s b) + a + s b) + (q-1) (children of the root) max(g, s b)
//    chain                 (n-1) (a + s b) + (q-1) max(g, s b)
//    doubling, halving     d a + m b (n-1)/n                                       of all of the vector: d (a + m b)
//    ring                  (n-1) (a + m b / n)
//    Bruck                 allgather as doubling, for any n, and a copy; alltoall d (a + n/2 m b), and d copies of half
//
// Hockney: The communication challenge for MPP, 1994. Alexandrov, Ionescu, Schauser, Scheiman: LogGP, 1995. Thakur,
// Rabenseifner, Gropp: Optimization of collective communication operations in MPICH, 2005. Bruck et al., 1997.
// Segments: Pjesivac-Grbovic et al.: Performance analysis of MPI collective operations, 2007.
#include <algorithm>
#include <cassert>
#include <vector>

#include "comm/collectives/algorithms/algorithms.hpp"
#include "comm/collectives/algorithms/build.hpp"
#include "comm/collectives/oversubscribed.hpp"

namespace canele::comm::collectives {
namespace {

/// Cost in ns at each end, beside the bytes: of a message that is sent eagerly, and of one that needs a rendezvous.
constexpr double eager_ns = 200, asked_ns = 500;
/// Factor for a rank that sends and receives at the same time on one host: it copies both messages.
constexpr double both_ways = 1.05;

/// The cost of messages, and the sizes of the call.
struct Model {
  Model(const Call& call, const Network& network)
      : a(static_cast<double>(network.latency_ns)),
        g(static_cast<double>(network.gap_ns)),
        b(1e9 / static_cast<double>(std::max<std::uint64_t>(1, network.bytes_per_second))),
        both(network.units != 0 ? both_ways : 1),
        n(call.size),
        ranks(static_cast<double>(call.size)) {
    for (std::uint64_t reach = 1; reach < static_cast<std::uint64_t>(n); reach *= 2) ++rounds;
    const bool power = (n & (n - 1)) == 0;
    core_rounds = power ? rounds : rounds - 1;
    folded = !power;
  }
  double one(double bytes) const { return a + bytes * b; }
  double busy(double bytes) const { return std::max(g, bytes * b + (bytes <= fast_bytes ? eager_ns : asked_ns)); }
  /// Two ranks exchange `bytes` each.
  double exchanged(double bytes) const { return a + bytes * b * both; }
  /// All but the rank's own share of the total.
  double others(double bytes) const { return bytes * (ranks - 1) / ranks; }
  /// Doubling or halving of a vector among powers of two, without the folded ranks.
  double shares(double bytes) const { return core_rounds * a + others(bytes) * b * both; }
  /// Halving of a vector along a tree, of any size.
  double tree_shares(double bytes) const { return rounds * a + others(bytes) * b; }
  double ring(double longest) const { return (ranks - 1) * exchanged(longest); }
  /// Each rank sends `bytes` to each other rank.
  double with_each(double bytes) const { return (ranks - 2) * busy(bytes) + exchanged(bytes); }

  double a, g, b, both;
  int n;
  double ranks, rounds = 0, core_rounds = 0;
  bool folded = false;
};

/// Lengths in bytes that all ranks know; 0 where they do not.
struct Bytes {
  double all = 0, longest = 0;
};

Bytes bytes_of_blocks(const Blocks& blocks, int n) {
  if (blocks.lengths == nullptr) {
    const auto length = static_cast<double>(blocks.length);
    return {length * n, length};
  }
  std::uint64_t all = 0, longest = 0;
  for (int block = 0; block < n; ++block) {
    all += blocks.lengths[block];
    longest = std::max<std::uint64_t>(longest, blocks.lengths[block]);
  }
  return {static_cast<double>(all), static_cast<double>(longest)};
}

Bytes bytes_of(const Call& call) {
  if (call.irregular) return {};
  switch (call.operation) {
    case Operation::allgather:
      return bytes_of_blocks(call.output, call.size);
    case Operation::alltoall:
      if (call.output.lengths != nullptr || call.input.lengths != nullptr) return {};
      return bytes_of_blocks(call.output, call.size);
    case Operation::reduce_scatter:
      return bytes_of_blocks(call.input, call.size);
    default:
      return {static_cast<double>(call.length), static_cast<double>(call.length)};
  }
}

/// Length of a segment in bytes (`segment`, or the whole), and the number of segments.
struct Segments {
  Segments(double bytes, const Choice& choice)
      : some(choice.segment == 0 ? bytes : std::min(static_cast<double>(choice.segment), bytes)),
        count(some == 0 ? 1 : std::max(1.0, bytes / some)) {}
  double some, count;
};

/// `work`: time of every rank for a byte. For all segments but the last, it is hidden behind the next segment.
double chain_time(const Model& m, double bytes, const Choice& choice, double work, double depth, double streams) {
  const Segments s(bytes, choice);
  return depth * (m.one(s.some) + s.some * work) + (s.count - 1) * streams * m.busy(s.some);
}

double tree_time(const Model& m, double bytes, const Choice& choice, double work) {
  const std::uint64_t radix = choice.algorithm == Algorithm::k_nomial ? std::max(2U, choice.radix) : 2;
  const auto n = static_cast<std::uint64_t>(m.n);
  double depth = 0, children = 0;
  for (std::uint64_t weight = 1; weight < n; weight *= radix) {
    ++depth;
    children += static_cast<double>(std::min(radix, (n + weight - 1) / weight) - 1);
  }
  const Segments s(bytes, choice);
  const double brothers = static_cast<double>(radix) - 2;
  return depth * (brothers * m.busy(s.some) + m.one(s.some) + s.some * work) +
         (s.count - 1) * children * m.busy(s.some);
}

/// Time of a broadcast; with `combining`, of the reverse pattern, a reduction.
double rooted_time(const Model& m, const Call& call, double bytes, const Choice& choice, bool combining) {
  const double work = combining ? memory_ns_per_byte : 0;
  switch (choice.algorithm) {
    case Algorithm::flat:
      return (m.ranks - 2) * m.busy(bytes) + m.one(bytes) + bytes * work;
    case Algorithm::chain: {
      const bool two_sided = combining && !call.commutes && call.root != 0 && call.root != m.n - 1;
      const int depth = two_sided ? std::max(call.root, m.n - 1 - call.root) : m.n - 1;
      return chain_time(m, bytes, choice, work, depth, two_sided ? 2 : 1);
    }
    case Algorithm::two_phases: {
      const bool ring = !combining && in_a_ring(m.n, call.length);
      const double back = ring ? m.ring(bytes / m.ranks) : m.shares(bytes);
      const double folding = combining && m.folded ? m.one(bytes) : 0;
      return (combining ? m.shares(bytes) : m.tree_shares(bytes)) + back + folding + m.others(bytes) * work;
    }
    default:
      return tree_time(m, bytes, choice, work);
  }
}

double allreduce_time(const Model& m, double bytes, const Choice& choice) {
  const double work = bytes * memory_ns_per_byte, folding = m.folded ? 2 * m.one(bytes) + work : 0;
  switch (choice.algorithm) {
    case Algorithm::flat:
      return m.with_each(bytes) + (m.ranks - 1) * work;
    case Algorithm::ring:
      return 2 * m.ring(bytes / m.ranks) + m.others(work);
    case Algorithm::halving_doubling:
      return 2 * m.shares(bytes) + folding + m.others(work);
    case Algorithm::two_phases: {
      // A segment goes down as soon as it has come up, while the next ones come up: the last segment decides.
      const Choice tree{Algorithm::binomial, 0, choice.segment, 0};
      return tree_time(m, bytes, tree, memory_ns_per_byte) + tree_time(m, Segments(bytes, tree).some, tree, 0);
    }
    default:
      return m.core_rounds * (m.exchanged(bytes) + work) + folding;
  }
}

double allgather_time(const Model& m, const Bytes& bytes, const Choice& choice) {
  const double share = m.one(bytes.all / m.ranks), copies = bytes.all * memory_ns_per_byte;
  switch (choice.algorithm) {
    case Algorithm::flat:
      return m.with_each(bytes.longest);
    case Algorithm::ring:
      return m.ring(bytes.longest);
    case Algorithm::bruck:
      return m.tree_shares(bytes.all) + copies;
    case Algorithm::two_phases:
      return m.tree_shares(bytes.all) + tree_time(m, bytes.all, {Algorithm::binomial, 0, choice.segment, 0}, 0);
    default:
      return m.shares(bytes.all) + (m.folded ? share + m.one(bytes.all) : 0);
  }
}

double reduce_scatter_time(const Model& m, const Call& call, const Bytes& bytes, const Choice& choice) {
  const double work = bytes.all * memory_ns_per_byte, share = m.one(bytes.all / m.ranks);
  switch (choice.algorithm) {
    case Algorithm::flat:
      return m.with_each(bytes.longest) + (m.ranks - 1) * bytes.longest * memory_ns_per_byte;
    case Algorithm::ring:
      return m.ring(bytes.longest) + (m.ranks - 1) * bytes.longest * memory_ns_per_byte;
    case Algorithm::two_phases:
      return tree_time(m, bytes.all, {Algorithm::binomial, 0, choice.segment, 0}, memory_ns_per_byte) +
             m.tree_shares(bytes.all);
    default:  // with a copy to the place of the result
      return m.shares(bytes.all) + m.others(work) + bytes.longest * memory_ns_per_byte +
             (m.folded ? m.one(bytes.all) + work : 0) + (m.folded || !call.commutes ? share : 0);
  }
}

double alltoall_time(const Model& m, const Bytes& bytes, const Choice& choice) {
  if (choice.algorithm == Algorithm::bruck) {
    const double half = bytes.longest * m.ranks / 2;
    return m.rounds * (m.one(half) + 2 * half * memory_ns_per_byte) + 2 * half * memory_ns_per_byte;
  }
  // A send ends when the receiver has the data and says so. With few sends in flight, their number is the limit.
  const double inflight_limit = choice.inflight_limit == 0 ? m.ranks - 1 : choice.inflight_limit;
  const double each = std::max(m.busy(bytes.longest), (m.one(bytes.longest) + m.a) / inflight_limit);
  return (m.ranks - 2) * each + m.one(bytes.longest);
}

double expected_time(const Model& model, const Call& call, const Bytes& bytes, const Choice& choice) {
  switch (call.operation) {
    case Operation::barrier:
      if (choice.algorithm == Algorithm::flat) return model.with_each(0);
      return (choice.algorithm == Algorithm::two_phases ? 2 : 1) * model.rounds * std::max(model.a, model.g);
    case Operation::bcast:
    case Operation::reduce:
      return rooted_time(model, call, bytes.all, choice, call.operation == Operation::reduce);
    case Operation::allreduce:
      return allreduce_time(model, bytes.all, choice);
    case Operation::gather:
    case Operation::scatter:
      if (choice.algorithm == Algorithm::flat) {
        return (model.ranks - 2) * model.busy(bytes.all) + model.one(bytes.all);
      }
      return model.rounds * model.a + (model.ranks - 1) * bytes.all * model.b;
    case Operation::allgather:
      return allgather_time(model, bytes, choice);
    case Operation::alltoall:
      return alltoall_time(model, bytes, choice);
    case Operation::reduce_scatter:
      return reduce_scatter_time(model, call, bytes, choice);
    case Operation::scan:
    case Operation::exscan:
      break;
  }
  const double work = bytes.all * memory_ns_per_byte;
  if (choice.algorithm != Algorithm::chain) return model.rounds * (model.one(bytes.all) + work);
  return chain_time(model, bytes.all, choice, memory_ns_per_byte, model.n - 1, 1);
}

/// Returns true if the units are known, and fewer than the ranks.
bool oversubscribed(const Call& call, const Network& network) {
  return network.units != 0 && static_cast<unsigned>(call.size) > network.units;
}

double expected_time(const Model& model, const Call& call, const Bytes& bytes, const Choice& choice,
                     const Network& network) {
  if (!oversubscribed(call, network)) return expected_time(model, call, bytes, choice);
  return oversubscribed_time(totals_of(call, choice, bytes.all, bytes.longest), call.size, network);
}

/// Returns true if the algorithm can do this call: with respect to the order of operands, unknown lengths, and slots.
bool possible(const Call& call, Algorithm algorithm) {
  const bool ring =
      algorithm == Algorithm::ring || (algorithm == Algorithm::two_phases && call.operation == Operation::bcast);
  if (ring && static_cast<std::uint32_t>(call.size) > most_items) return false;
  switch (call.operation) {
    case Operation::allreduce:
    case Operation::reduce_scatter:
      return call.commutes || algorithm != Algorithm::ring;
    case Operation::gather:
    case Operation::scatter:
      return !call.irregular || algorithm == Algorithm::flat;
    case Operation::alltoall:
      return algorithm != Algorithm::bruck ||
             (!call.irregular && call.output.lengths == nullptr && call.input.lengths == nullptr);
    default:
      return true;
  }
}

Algorithm fallback_of(Operation operation) {
  switch (operation) {
    case Operation::gather:
    case Operation::scatter:
    case Operation::alltoall:
      return Algorithm::flat;
    case Operation::bcast:
      return Algorithm::binomial;
    default:
      return Algorithm::recursive;
  }
}

bool has_segments(const Call& call, Algorithm algorithm) {
  switch (call.operation) {
    case Operation::bcast:
    case Operation::reduce:
      return algorithm == Algorithm::binomial || algorithm == Algorithm::k_nomial || algorithm == Algorithm::chain;
    case Operation::scan:
    case Operation::exscan:
      return algorithm == Algorithm::chain;
    case Operation::allreduce:
    case Operation::allgather:
    case Operation::reduce_scatter:
      return algorithm == Algorithm::two_phases;
    default:
      return false;
  }
}

/// Returns true if each rank needs data of each other rank, and fewer messages than one for each pair can do it. The
/// two phases of such an operation go along a tree.
bool joins_all(Operation operation) {
  return operation == Operation::barrier || operation == Operation::allreduce || operation == Operation::allgather ||
         operation == Operation::reduce_scatter;
}

/// Returns true for a direct exchange between all ranks where fewer messages would do: it spares turns. Over a network
/// it would need a connection for each pair, and the model does not know the congestion at each receiver.
bool spares_turns(Operation operation, Algorithm algorithm) {
  return algorithm == Algorithm::flat && joins_all(operation);
}

/// Returns true if no rank waits for a message of a rank that itself waits for a message. Where ranks share units, such
/// a message is better sent as a buffered send (comm/rendezvous/buffered.hpp) than in several pieces. The receiver
/// would have to make room for each piece.
bool goes_one_way(const Call& call, const Choice& choice) {
  switch (call.operation) {
    case Operation::bcast:
    case Operation::gather:
    case Operation::scatter:
      return true;
    default:
      return choice.algorithm == Algorithm::flat;
  }
}

/// Returns a limit on sends in flight that keeps a link busy until the end of the first send is known, with some
/// reserve. Computed from what all ranks know.
std::uint32_t inflight_limit_for(const Model& m, double bytes) {
  const double busy = std::max(1.0, m.busy(bytes));
  const double filled = std::clamp((m.one(bytes) + m.a) / busy + 1, 4.0, 64.0);
  return std::min(static_cast<std::uint32_t>(filled), static_cast<std::uint32_t>(std::max(1, m.n - 1)));
}

/// Tries the open parameters of one algorithm after the other, and keeps the best choice so far.
class Search {
 public:
  Search(const Call& call, const Choice& asked, const Network& network)
      : call_(call), asked_(asked), network_(network), model_(call, network), bytes_(bytes_of(call)) {}

  void algorithm(Algorithm algorithm) {
    constexpr std::uint32_t radices[] = {4, 8, 16};
    Choice choice;
    choice.algorithm = algorithm;
    if (call_.operation == Operation::alltoall && algorithm == Algorithm::flat) {
      choice.inflight_limit = asked_.inflight_limit != 0 ? asked_.inflight_limit : inflight_limit();
    }
    if (algorithm == Algorithm::two_phases && joins_all(call_.operation)) return radix_of_two_phases(choice);
    if (algorithm != Algorithm::k_nomial) return segments(choice);
    for (const std::uint32_t radix : radices) {
      choice.radix = asked_.radix != 0 ? asked_.radix : radix;
      segments(choice);
    }
  }
  const Choice& best() const { return best_; }

 private:
  /// On an oversubscribed host, a root that receives from all and sends to all spares turns.
  void radix_of_two_phases(Choice choice) {
    choice.radix = asked_.radix;
    segments(choice);
    if (asked_.radix != 0 || !oversubscribed(call_, network_)) return;
    choice.radix = std::max(2U, static_cast<std::uint32_t>(call_.size));
    segments(choice);
  }
  /// On an oversubscribed host, each wait for the end of a send would be a turn.
  std::uint32_t inflight_limit() const {
    return oversubscribed(call_, network_) ? static_cast<std::uint32_t>(call_.size)
                                           : inflight_limit_for(model_, bytes_.longest);
  }
  void segments(Choice choice) {
    if (!has_segments(call_, choice.algorithm)) return consider(choice);
    choice.segment = asked_.segment;
    consider(choice);
    if (asked_.segment != 0) return;
    // Shorter segments are not worth a message. `most` limits their number: the receives of all segments are posted at
    // once. `smallest` is slightly less than a power of two, so that a segment and its header fit a packet.
    constexpr std::uint64_t smallest = 4000, most = 512;
    const auto bytes = static_cast<std::uint64_t>(bytes_.all);
    for (std::uint64_t segment = smallest; segment < bytes; segment *= 2) {
      choice.segment = segment;
      if (bytes / segment < most) consider(choice);
    }
  }
  void consider(const Choice& choice) {
    const double time = expected_time(model_, call_, bytes_, choice, network_);
    if (best_.algorithm != Algorithm::automatic && time >= least_) return;
    least_ = time;
    best_ = choice;
  }

  const Call& call_;
  const Choice& asked_;
  const Network& network_;
  Model model_;
  Bytes bytes_;
  Choice best_;
  double least_ = 0;
};

}  // namespace

double time_of(const Call& call, const Choice& choice, const Network& network) {
  return call.size == 1 ? 0 : expected_time(Model(call, network), call, bytes_of(call), choice, network);
}

Choice choose(const Call& call, const Choice& asked, const Network& network) {
  // In the order in which ties are decided: the plain algorithms first.
  constexpr Algorithm all[] = {
      Algorithm::dissemination,    Algorithm::binomial, Algorithm::recursive, Algorithm::flat, Algorithm::k_nomial,
      Algorithm::halving_doubling, Algorithm::bruck,    Algorithm::chain,     Algorithm::ring, Algorithm::two_phases};
  Search search(call, asked, network);
  if (asked.algorithm != Algorithm::automatic) {
    assert(has(call.operation, asked.algorithm) && "the call has been checked");
    search.algorithm(possible(call, asked.algorithm) ? asked.algorithm : fallback_of(call.operation));
  } else {
    for (const Algorithm algorithm : all) {
      if (spares_turns(call.operation, algorithm) && !oversubscribed(call, network)) continue;
      if (has(call.operation, algorithm) && possible(call, algorithm)) search.algorithm(algorithm);
    }
  }
  Choice best = search.best();
  // No pieces for segments of a longer message, which are in progress together, nor where the sends in flight are
  // limited.
  const bool whole =
      call.operation == Operation::alltoall || (oversubscribed(call, network) && goes_one_way(call, best));
  if (best.segment <= network.piece && !whole) best.piece = network.piece;
  return best;
}

}  // namespace canele::comm::collectives

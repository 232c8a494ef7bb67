// SPDX-License-Identifier: BSD-3-Clause
//
// Counters: one table of everything the engine counts.
//
// The engine adds under its lock; code without the lock adds with add_shared(). Any thread may read at any time, and
// may see a value that is one event old.
//
// add() is a plain load and store, not a read-modify-write: it relies on the engine's lock.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <string_view>

namespace canele::comm {

enum class Counter : int {
  // kept for each peer; the engine's values are their sums
  messages_sent,
  bytes_sent,
  messages_received,
  bytes_received,
  packets_sent,
  packets_received,
  per_peer_count,
  // for the whole engine only
  eager_sent = per_peer_count,
  rendezvous_sent,
  aggregated_chunks,    ///< envelopes that shared a packet with an earlier one.
  posted_matches,       ///< arrivals that found their receive waiting.
  unexpected_messages,  ///< arrivals that found none.
  unexpected_dropped,   ///< stored messages without a receive when their session was closed, or the engine finalized
  unexpected_now,
  unexpected_most,
  unexpected_bytes_now,
  unexpected_bytes_most,
  credit_stalls,      ///< sends that had to wait for credit.
  credit_stalled_ns,  ///< ns in which at least one send waited for credit, summed over peers
  credit_blocked_now,
  credit_blocked_most,
  multicasts_sent,
  multicasts_forwarded,  ///< streams that this rank forwarded for multicasts of other roots.
  bytes_forwarded,       ///< bytes requested by the receivers of those streams
  truncated,
  cancelled,
  rma_put_bytes,      ///< bytes written directly to a peer's memory.
  rma_get_bytes,      ///< bytes read directly from a peer's memory.
  accesses_sent,      ///< one-sided operations that this rank has begun
  accesses_direct,    ///< those that it has made by itself, in memory that is not mapped
  accesses_executed,  ///< one-sided operations of peers, with those that were rejected
  accesses_rejected,
  notifications_received,
  device_messages,      ///< sends and receives of device memory
  device_bytes_staged,  ///< bytes of them copied from or to staging memory
  device_bytes_direct,  ///< bytes of them that a device has copied from another rank's
  device_gets_failed,   ///< such copies that could not be made
  published_bytes_now,  ///< of this rank, see canele_publish
  exchanged_bytes_now,  ///< of all ranks, kept here
  lock_taken,           ///< submissions that ran at once.
  lock_queued,          ///< submissions left to the holder of the lock
  callbacks,
  doorbells_sent,  ///< doorbells rung
  worker_parks,
  worker_wakes,
  waiter_parks,
  core_losses,  ///< collected from the polling threads: times a thread lost its core
  peers_failed,
  rails_failed,          ///< rails that died while their peer stayed connected by other rails.
  connections_rejected,  ///< connections closed because of malformed packets
  count
};

struct CounterInfo {
  std::string_view name;
  std::string_view help;
};
const CounterInfo& counter_info(Counter counter);

/// Number of names: one for each counter, in the order of enum Counter, then the deprecated ones.
constexpr int counter_names = static_cast<int>(Counter::count) + 7;
const CounterInfo& counter_name(int index);
Counter counter_of_name(int index);

/// The counters from `First` up to but not including `Last`.
template <Counter First, Counter Last>
class CounterTable {
 public:
  void add(Counter counter, std::uint64_t n = 1) {
    assert(counter >= First && counter < Last);
    auto& v = values_[static_cast<int>(counter)];
    v.store(v.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void add_shared(Counter counter, std::uint64_t n = 1) {
    assert(counter >= First && counter < Last);
    values_[static_cast<int>(counter)].fetch_add(n, std::memory_order_relaxed);
  }
  void sub(Counter counter, std::uint64_t n = 1) { add(counter, ~n + 1); }
  void raise_to(Counter most, Counter now) {
    if (read(now) > read(most)) values_[static_cast<int>(most)].store(read(now), std::memory_order_relaxed);
  }
  /// Returns 0 for a counter that is not in this table.
  std::uint64_t read(Counter counter) const {
    return counter < Last ? values_[static_cast<int>(counter)].load(std::memory_order_relaxed) : 0;
  }

 private:
  std::atomic<std::uint64_t> values_[static_cast<int>(Last)] = {};
};

using EngineCounters = CounterTable<Counter::per_peer_count, Counter::count>;
using PeerCounters = CounterTable<Counter{}, Counter::per_peer_count>;

}  // namespace canele::comm

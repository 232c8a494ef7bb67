// SPDX-License-Identifier: BSD-3-Clause
//
// SplitPolicy: for each call, how many levels of a tree the computing threads do themselves (the model:
// split_tree.hpp).
//
// Used by async_executor.cpp. SplitPolicy is called by one thread at a time, like its group; any thread may call
// CallProfile::seen().
//
// Ranks need not agree. The split changes which thread carries a message and when, not which messages there are. So
// each rank decides by its own observations: how long its program computes between call and wait.
//
//     Group ── SplitPolicy ── CallProfile per kind of call: levels ◀─ Hosts, measured costs of a message
//                                  ▲   └─ best_split(levels, computation) ─▶ AsyncExecutor
//                                  └────────────── seen ◀─────────────────── from the call to the first wait
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "comm/collectives/algorithms/algorithms.hpp"
#include "comm/collectives/split_tree.hpp"
#include "comm/engine/deferred_work.hpp"

namespace canele::comm::collectives {

/// The hosts of the ranks of a group, and the cost of a message there.
struct Hosts {
  struct Cost {
    double latency_ns = 1000, byte_ns = 0.1;
    double of(double bytes) const { return latency_ns + bytes * byte_ns; }
  };
  std::vector<std::uint32_t> of_position;  ///< empty: all are on one host.
  std::uint32_t cores_left = 0;            ///< cores of a host for communication; 0: none, or unknown
  Cost within, between;
};

class SplitPolicy;

/// Returns the time of each level of the call's tree, in ns. Each rank is the parent of up to radix - 1 ranks of a
/// level. Messages within a host cost time of a core; those between hosts cost time of the network card.
std::vector<split_tree::Level> levels_of(const Call& call, std::uint32_t radix, const Hosts& hosts);

/// Profile of one kind of call: the tree, and the observed computation of the program.
class CallProfile {
 public:
  /// Returns true if the widest levels come first, before the call returns (reductions, gathers). Otherwise they come
  /// last, when a thread waits.
  bool to_root() const { return to_root_; }
  std::uint32_t split() const;
  /// Returns the time that the computing threads need for their levels.
  double visible_ns(std::uint32_t split) const;

  /// begins(): a call of this kind starts. computes(): the program computes from now on. ends(): the call has ended on
  /// this rank.
  void begins(std::uint64_t now_ns);
  void computes(std::uint64_t now_ns);
  void ends() { in_progress_.fetch_sub(1, std::memory_order_relaxed); }
  std::uint64_t elapsed_ns(std::uint64_t now_ns) const { return now_ns - since_.load(std::memory_order_relaxed); }
  /// Records the time between call and wait, in ns. `more`: a lower bound, since no thread has waited yet.
  void seen(std::uint64_t ns, bool more);
  std::uint64_t computation_ns() const { return computation_.load(std::memory_order_relaxed); }

 private:
  friend class SplitPolicy;
  /// Notified of the next thread that waits, for whatever request. A wait for a completed request causes no
  /// notification. Then the next other wait counts instead, or the next call of this kind.
  struct Watch final : DeferredWork {
    explicit Watch(CallProfile& of) : profile(of) { deadline_ns = DeferredWorkList::never; }
    std::shared_ptr<void> hold() override;
    bool resume(Because because, std::uint64_t now_ns) override;
    CallProfile& profile;
  };

  Operation operation_ = Operation::barrier;
  int root_ = 0;
  std::uint64_t length_ = 0;
  std::uint32_t radix_ = 0;  ///< 0: this entry is not in use
  bool to_root_ = false;
  std::optional<std::uint32_t> override_;
  std::vector<split_tree::Level> levels_;
  std::atomic<std::uint64_t> computation_{0};  ///< 0: not observed yet
  std::atomic<std::uint64_t> since_{0};        ///< time of the last call; 0: there was none
  std::atomic<int> in_progress_{0};
  SplitPolicy* policy_ = nullptr;
  Watch watch_{*this};
};

class SplitPolicy {
 public:
  SplitPolicy() = default;
  ~SplitPolicy();
  SplitPolicy(const SplitPolicy&) = delete;
  SplitPolicy& operator=(const SplitPolicy&) = delete;

  /// Sets the number of levels from CANELE_EXPERT_SPLIT_TREE; no value for "auto".
  void set_override(std::optional<std::uint32_t> levels) { override_ = levels; }
  void place(Hosts hosts) { hosts_ = std::move(hosts); }
  /// Sets the list that notifies of threads that wait, and the group that keeps this object alive. Without a list, the
  /// user must call seen().
  void listen(DeferredWorkList& list, std::weak_ptr<void> group) { list_ = &list, group_ = std::move(group); }

  /// Returns nullptr if the schedule of this call is not a tree that could be split.
  CallProfile* find(const Call& call, std::uint32_t radix);

 private:
  friend class CallProfile;
  static constexpr std::size_t entries = 8;
  std::array<CallProfile, entries> profiles_;
  std::size_t next_ = 0;  ///< the oldest entry
  std::optional<std::uint32_t> override_;
  Hosts hosts_;
  DeferredWorkList* list_ = nullptr;
  std::weak_ptr<void> group_;
};

}  // namespace canele::comm::collectives

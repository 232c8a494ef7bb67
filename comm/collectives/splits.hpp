// SPDX-License-Identifier: BSD-3-Clause
//
// Splits: how many levels of a tree the threads that compute do themselves, call by call (the model: split_tree.hpp).
//
// Who: run.cpp. Threads: Splits one at a time, as its group's calls; a Course's `seen` by any.
// Surprise: ranks need not agree. The split changes who carries a message and when, not which messages there are. So
//     each rank goes by what it has seen itself: how long its program computes between call and wait.
//
//     Group ── Splits ── Course per kind of call: levels ◀─ Hosts, measured costs of a message
//                          ▲   └─ best_split(levels, computation) ─▶ Run
//                          └────────────── seen ◀─────────────────── from the call to the first wait
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "comm/collectives/algorithms.hpp"
#include "comm/collectives/split_tree.hpp"
#include "comm/core/put_off.hpp"

namespace canele::comm::collectives {

/// Where the ranks of a group are, and what a message costs there.
struct Hosts {
  struct Cost {
    double latency_ns = 1000, byte_ns = 0.1;
    double of(double bytes) const { return latency_ns + bytes * byte_ns; }
  };
  std::vector<std::uint32_t> of_position;  ///< empty: all are on one
  std::uint32_t cores_left = 0;            ///< of a host, for communication; 0: none, or it is not known
  Cost within, between;
};

class Splits;

/// What each level of the call's tree takes, in ns: where each rank leads up to radix - 1 others of a level. Messages
/// within a host cost time of a core, those between hosts that of its card.
std::vector<split_tree::Level> levels_of(const Call& call, std::uint32_t radix, const Hosts& hosts);

/// One kind of call: which tree, and what the program does meanwhile.
class Course {
 public:
  /// Something to be done first, before the call returns (reductions, gathers), or last, by who waits?
  bool to_root() const { return to_root_; }
  std::uint32_t split() const;
  /// The threads that compute take so long for their levels.
  double visible_ns(std::uint32_t split) const;

  /// One is called; the program computes from then on; it has ended on this rank.
  void begins(std::uint64_t now_ns);
  void computes(std::uint64_t now_ns);
  void ends() { under_way_.fetch_sub(1, std::memory_order_relaxed); }
  std::uint64_t elapsed_ns(std::uint64_t now_ns) const { return now_ns - since_.load(std::memory_order_relaxed); }
  /// So long passed between call and wait; or more: nobody has waited yet.
  void seen(std::uint64_t ns, bool more);
  std::uint64_t computation_ns() const { return computation_.load(std::memory_order_relaxed); }

 private:
  friend class Splits;
  /// Hears of the next thread that waits, for whatever it may be. Of a wait for what is over nobody hears: then that is
  /// the next one that is not, or the next call of this kind.
  struct Watch final : PutOff {
    explicit Watch(Course& of) : course(of) { date_ns = PutOffs::never; }
    std::shared_ptr<void> hold() override;
    bool resume(Because because, std::uint64_t now_ns) override;
    Course& course;
  };

  Operation operation_ = Operation::barrier;
  int root_ = 0;
  std::uint64_t length_ = 0;
  std::uint32_t radix_ = 0;  ///< 0: this one is not in use
  bool to_root_ = false;
  std::optional<std::uint32_t> forced_;
  std::vector<split_tree::Level> levels_;
  std::atomic<std::uint64_t> computation_{0};  ///< 0: not seen yet
  std::atomic<std::uint64_t> since_{0};        ///< the last one was called; 0: none was
  std::atomic<int> under_way_{0};
  Splits* splits_ = nullptr;
  Watch watch_{*this};
};

class Splits {
 public:
  Splits() = default;
  ~Splits();
  Splits(const Splits&) = delete;
  Splits& operator=(const Splits&) = delete;

  /// What CANELE_SPLIT_TREE says: "auto" or a number of levels.
  void force(std::optional<std::uint32_t> levels) { forced_ = levels; }
  void place(Hosts hosts) { hosts_ = std::move(hosts); }
  /// By which list to hear of threads that wait, and who keeps this alive. Without: what is seen must be told.
  void listen(PutOffs& list, std::weak_ptr<void> group) { list_ = &list, group_ = std::move(group); }

  /// nullptr: the schedule of this call is no tree that could be split.
  Course* find(const Call& call, std::uint32_t radix);

 private:
  friend class Course;
  static constexpr std::size_t entries = 8;
  std::array<Course, entries> courses_;
  std::size_t next_ = 0;  ///< the oldest
  std::optional<std::uint32_t> forced_;
  Hosts hosts_;
  PutOffs* list_ = nullptr;
  std::weak_ptr<void> group_;
};

}  // namespace canele::comm::collectives

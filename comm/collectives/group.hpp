// SPDX-License-Identifier: BSD-3-Clause
//
// Group: the ranks that do collectives together, their collectives in progress on this rank, and the group's failure.
//
// api/ creates a group and starts runs (async_executor.hpp) in it. Any thread may use it; each section below states its
// rules.
//
// A collective that fails on one rank ends the whole group. A rank that dies ends all groups that contain it. Each rank
// that notices a failure, or is notified of it, notifies several others. Every collective in progress then ends with
// the error, and so does each that is started later. Otherwise a rank whose program has given up would leave the other
// ranks waiting in the next collective for messages that it never sends.
//
//     Session "group:label" ──owns──▶ Group ──runs──▶ Run ⇄ Run ⇄ Run       in progress; each holds its Group
//        │                              ▲
//        └─ unmatched ──notice──────────┘     tag ~0: no receive is ever posted for it, so that an idle group costs
//                                             nothing: the session is asked about each message without a receive
//
// Notification: position p notifies positions p ± 2^k for all k, about 2 log n messages each. As many messages must be
// lost at once before one rank is not notified. A rank that leaves the job notifies all ranks that it is connected
// with. A rank that waits for it would otherwise see the disconnect, and take it for the failed rank, before the notice
// arrives by way of others.
//
// Rejected: an abort message in place of each message that will not be sent. It reaches the ranks of that collective,
// but not those of later collectives.
// Rejected: to notify all ranks directly (n² messages in total).
// Rejected: to cancel receives only. The sender of a large message would wait forever for a receive that no longer
// exists; so a failed group receives and discards everything.
#pragma once

#include <canele/collectives.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "comm/collectives/algorithms/algorithms.hpp"
#include "comm/collectives/algorithms/schedule.hpp"
#include "comm/collectives/discard_receiver.hpp"
#include "comm/collectives/override.hpp"
#include "comm/collectives/split_policy.hpp"
#include "comm/engine/engine.hpp"
#include "ltask/task.hpp"

namespace canele::comm::collectives {

struct Run;
class Direct;

/// Why a group has failed, or why a message of it has.
struct Ending {
  std::int32_t code = CANELE_OK;
  std::int32_t rank = -1;  ///< rank in the job of the peer that died, or violated the protocol
  bool operator==(const Ending&) const = default;
};

/// Keeps the schedules of the last few different calls, so that a repeated call does not build its schedule again.
/// Schedules of calls whose blocks have individual lengths are not kept: to compare them costs as much as to build
/// them. For one thread at a time.
class ScheduleCache {
 public:
  static constexpr std::size_t entries = 8;
  /// Returns a reference that is valid until the next call. A caller that needs the schedule for longer copies the
  /// shared_ptr.
  const std::shared_ptr<const Schedule>& find_or_build(const Call& call, const Choice& asked, const Network& network) {
    if (last_->is_for(call, asked)) [[likely]]
      return last_->schedule;
    return search_or_build(call, asked, network);
  }
  /// The arguments in which calls can differ where nothing is in place, and no block has a length or an offset of its
  /// own.
  struct Usual {
    Operation operation;
    int root = 0;
    std::uint64_t length = 0, element = 1;
    bool commutes = true;
    std::uint64_t input_part = 0, output_part = 0;
  };
  /// Returns the schedule of the previous call if that call had equal arguments; otherwise nullptr. For a repeated
  /// call, this spares filling in a Call, and most of the comparison.
  [[gnu::always_inline]] const Schedule* of_the_last(const Usual& c, Algorithm asked) const {
    const Call& kept = last_->call;
    const bool same = kept.operation == c.operation && kept.root == c.root && kept.length == c.length &&
                      kept.element == c.element && kept.commutes == c.commutes && !kept.in_place && !kept.irregular &&
                      kept.input.length == c.input_part && kept.output.length == c.output_part;
    return same && last_->asks_only(asked) ? last_->schedule.get() : nullptr;
  }
  std::uint64_t built() const { return built_; }

 private:
  struct Entry {
    Call call;
    Choice asked;
    std::shared_ptr<const Schedule> schedule;
    /// Size and rank are those of the group, and no kept entry has blocks that refer to memory. Compares without
    /// branches except the last one: nearly always all fields are equal.
    [[gnu::always_inline]] bool is_for(const Call& c, const Choice& a) const {
      const auto other = [](auto x, auto y) { return static_cast<std::uint64_t>(x) ^ static_cast<std::uint64_t>(y); };
      std::uint64_t differ = head_of(call) ^ head_of(c);
      differ |= other(call.length, c.length) | other(call.element, c.element);
      differ |= other(call.input.length, c.input.length) | other(call.output.length, c.output.length);
      differ |= memory_of(c.input) | memory_of(c.output);
      differ |= other(asked.algorithm, a.algorithm) | other(asked.radix, a.radix) | other(asked.segment, a.segment);
      differ |= other(asked.window, a.window);
      return differ == 0 && schedule != nullptr;
    }
    bool asks_only(Algorithm algorithm) const {
      return asked.algorithm == algorithm && (asked.radix | asked.segment | asked.window) == 0;
    }
    static std::uint64_t head_of(const Call& c) {
      std::uint64_t head = 0;
      static_assert(offsetof(Call, root) + sizeof c.root == sizeof head, "operation to root, and no gap");
      std::memcpy(&head, &c, sizeof head);
      return head;
    }
    static std::uint64_t memory_of(const Parts& parts) {
      return reinterpret_cast<std::uintptr_t>(parts.lengths) | reinterpret_cast<std::uintptr_t>(parts.offsets) |
             reinterpret_cast<std::uintptr_t>(parts.sums);
    }
  };
  const std::shared_ptr<const Schedule>& search_or_build(const Call& call, const Choice& asked, const Network& network);
  std::array<Entry, entries> entries_{};
  std::shared_ptr<const Schedule> not_kept_;
  std::size_t next_ = 0;  ///< the oldest
  Entry* last_ = entries_.data();
  std::uint64_t built_ = 0;
};

class Group final : public std::enable_shared_from_this<Group> {
 public:
  static constexpr std::string_view label_prefix = "group:";  ///< label of its session
  static constexpr std::uint64_t notice_tag = ~std::uint64_t{0};

  /// ranks: empty means all ranks of the job, in order.
  Group(Engine& owner, Session& opened, std::vector<int> members);
  ~Group();

  int size() const { return size_; }
  int rank() const { return rank_; }
  int world(int position) const { return ranks_.empty() ? position : ranks_[static_cast<std::size_t>(position)]; }

  // ---- any thread, not under the lock
  bool over() const { return ending_.load(std::memory_order_seq_cst) != 0; }
  Ending ending() const;
  /// Records the ending; the first of several counts. Returns true if it was this one; the caller then calls spread()
  /// when its own state allows.
  bool note(Ending ending);
  /// Notifies other ranks, and ends the collectives in progress here. If a rank has died, does so in all groups that
  /// contain it: a peer that learns of the death through one group may give up all of its groups.
  void spread();
  /// Called when the engine disconnects. For each group that has failed, notifies of the reason all connected members.
  static void tell_before_leaving(Engine& engine);
  /// Starts listening for failure notices, including those that came before the group was created here.
  void listen();
  /// Closes the session if nothing is in progress, unless the group has failed. (A failed group discards what is still
  /// sent to it until the engine ends.) Returns false if a collective is in progress. The group may be freed
  /// afterwards.
  bool close();

  // ---- under the engine's lock
  void link(Run& run);
  void unlink(Run& run);
  /// For reports: returns the number of runs in progress. For each run whose request a thread waits for (`waited`,
  /// sorted), appends the words of its messages to `also`.
  std::uint64_t describe(const std::vector<const void*>& waited, std::vector<const void*>& also) const;

  Engine& engine;
  Session& session;

  /// A word to wait on: `ended_bit` is set when the group has failed. The ends of the messages in progress are waited
  /// for beside it.
  static constexpr std::uint64_t ended_bit = 1;
  std::atomic<std::uint64_t> ended{0};

  // ---- for one thread at a time: the ranks of a group start its collectives in the same order
  Forced forced;
  Network network;
  ScheduleCache schedules;
  Splits splits;
  std::uint64_t started = 0;
  /// Created by the first call that blocks.
  Direct& direct() { return direct_ != nullptr ? *direct_ : make_direct(); }

 private:
  struct Notice {
    std::int32_t code, rank;
  };
  /// Notices on their way to other ranks.
  struct Told {
    Notice notice{};
    std::unique_ptr<canele_request_t[]> sends;
    void send(Session& session, Ending why, const std::vector<int>& whom);
  };
  static void unmatched(Session& session, const comm::Message& message);
  Direct& make_direct();
  std::vector<int> neighbours() const;
  bool has_been_told();
  void hear_again();
  void wake_to_hear();
  static void hear(ltask::Task& task);
  static void heard(canele_request_t* request, unsigned events, void* argument);
  bool makes_sense(const canele_status_t& status) const;
  bool has(int rank) const;
  std::vector<std::shared_ptr<Group>> others_that_end();
  bool ends_with_another();
  void end_runs();
  void tell_others();

  const std::vector<int> ranks_;
  const int size_, rank_;
  std::atomic<std::uint64_t> ending_{0};  ///< code and rank; 0: the group has not failed.
  Run* runs_ = nullptr;                   ///< under the engine's lock
  bool hearing_ = false;  ///< under the engine's lock: a notice has come and has not been read yet; prevents close()
  struct Hearing : ltask::Task {
    Group* group = nullptr;
  } hearing_task_;
  Notice notice_in_{};
  canele_request_t notice_request_{};
  Drain drain_;
  std::unique_ptr<Direct> direct_;
  Told told_, told_last_;
};

}  // namespace canele::comm::collectives

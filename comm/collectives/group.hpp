// SPDX-License-Identifier: BSD-3-Clause
//
// Group: ranks that do collectives together; what they have under way here, and how all of them learn that it is over.
//
// Who: api/ makes it and starts runs (run.hpp) in it.
// Threads: any; see each part.
// Surprise: a collective that fails on one rank ends the whole group; a rank that dies, all groups here that have it.
//     Who notices tells some others, and so does who is told; every collective under way then ends with the error, and
//     so does each that is started later. A rank whose program has given up would otherwise leave the rest waiting in
//     the next collective for what it never sends.
//
//     Session "group:label" ──owns──▶ Group ──runs──▶ Run ⇄ Run ⇄ Run       under way here; each holds its Group
//        │                              ▲
//        └─ unmatched ──notice──────────┘     tag ~0: no receive is ever posted for it, so that an idle group costs
//                                             nothing: the session is asked about each message that nobody waits for
//
//     who tells whom: position p tells p ± 2^k, all k: some 2 log n messages each, and as many must be lost at once
//     before one rank is not told. Who leaves the job tells all that it is connected with: one that waits for it would
//     see it go, and take it for the lost one, before the word has come round.
//
// Rejected: an abort message in place of each message that will not be sent (it reaches those that are in the same
//     collective and in no later one); to tell all (n² messages of all); to cancel receives and leave it at that (a
//     large message to a receive that is gone has a sender that waits for ever: an ended group takes, and drops, all).
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

#include "comm/collectives/algorithms.hpp"
#include "comm/collectives/drain.hpp"
#include "comm/collectives/forced.hpp"
#include "comm/collectives/schedule.hpp"
#include "comm/collectives/splits.hpp"
#include "comm/core/engine.hpp"
#include "ltask/task.hpp"

namespace canele::comm::collectives {

struct Run;
class Direct;

/// Why a group is over.
struct Ending {
  std::int32_t code = CANELE_OK;
  std::int32_t rank = -1;  ///< of the job: who died, or sent what makes no sense
  bool operator==(const Ending&) const = default;
};

/// Schedules of the last few different calls, so that one that is made again and again is not built anew. Those whose
/// parts have lengths of their own are not kept: to compare them costs as much as to build them. For one thread at a
/// time.
class ScheduleCache {
 public:
  static constexpr std::size_t entries = 8;
  /// The result is valid until the next call; who needs it for longer shares it.
  const std::shared_ptr<const Schedule>& find_or_build(const Call& call, const Choice& asked, const Network& network) {
    if (last_->is_for(call, asked)) [[likely]]
      return last_->schedule;
    return search_or_build(call, asked, network);
  }
  /// What of a call can differ where nothing is in place, and no part has a length or a place of its own.
  struct Usual {
    Operation operation;
    int root = 0;
    std::uint64_t length = 0, element = 1;
    bool commutes = true;
    std::uint64_t input_part = 0, output_part = 0;
  };
  /// The schedule of the call before, if that was the same; else nullptr. For a call that is made again and again this
  /// spares writing it down, and most of the comparison.
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
    /// (Size and rank are those of the group. Of what is kept, no part names memory.) No branch but the last: nearly
    /// always all are the same.
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
  static constexpr std::string_view label_prefix = "group:";  ///< of its session
  static constexpr std::uint64_t notice_tag = ~std::uint64_t{0};

  /// ranks: empty means all of the job, in order.
  Group(Engine& owner, Session& opened, std::vector<int> members);
  ~Group();

  int size() const { return size_; }
  int rank() const { return rank_; }
  int world(int position) const { return ranks_.empty() ? position : ranks_[static_cast<std::size_t>(position)]; }

  // ---- any thread, not under the lock
  bool over() const { return ending_.load(std::memory_order_seq_cst) != 0; }
  Ending ending() const;
  /// Of several endings the first counts. True: this one; the caller spread()s it when its own state allows.
  bool note(Ending ending);
  /// Tells others, and ends what is under way here; if a rank has died, in all groups that have it: who has heard of
  /// it by one group may give up all.
  void spread();
  /// The engine leaves: of each group that is over, all others are told why that have a connection to lose.
  static void tell_before_leaving(Engine& engine);
  /// Begins to hear of the ends that others tell of, those included that came before the group was made here.
  void listen();
  /// Nothing is under way: the session is closed, unless the group is over. (It then drops what is still sent to it
  /// until the engine ends.) False: something is. The group may be gone afterwards.
  bool close();

  // ---- under the engine's lock
  void link(Run& run);
  void unlink(Run& run);
  /// For reports: how many are under way; and of those whose request a thread waits for (`waited`, sorted), the words
  /// of the messages go to `also`.
  std::uint64_t describe(const std::vector<const void*>& waited, std::vector<const void*>& also) const;

  Engine& engine;
  Session& session;

  /// A word to wait for: `ended_bit` is set when the group is over, beside whatever ends what is under way.
  static constexpr std::uint64_t ended_bit = 1;
  std::atomic<std::uint64_t> ended{0};

  // ---- for one thread at a time: the ranks of a group start its collectives in the same order
  Forced forced;
  Network network;
  ScheduleCache schedules;
  Splits splits;
  std::uint64_t started = 0;
  /// Made for the first call that blocks.
  Direct& direct() { return direct_ != nullptr ? *direct_ : make_direct(); }

 private:
  struct Notice {
    std::int32_t code, rank;
  };
  /// Notices on their way out.
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
  std::atomic<std::uint64_t> ending_{0};  ///< code and rank; 0: it goes on
  Run* runs_ = nullptr;                   ///< under the lock
  bool hearing_ = false;                  ///< under the lock: a notice has come, and has not been read yet: no close()
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

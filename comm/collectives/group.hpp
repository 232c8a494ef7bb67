// SPDX-License-Identifier: BSD-3-Clause
//
// Group: the ranks that do collectives together, their collectives in progress on this rank, and the group's failure.
//
// api/ creates a group and starts collectives in it. Any thread may use it; each section below states its
// rules.
//
// A collective that fails on one rank fails on all ranks that have not ended it; later ones do not (failures.hpp). A
// rank that dies ends all groups that contain it, and a rank may end a group by revoking it. Each rank that notices a
// failure, or is notified of it, notifies several others. Every collective that has failed then ends with the error,
// also where it is started later. Otherwise a rank that has given up would leave others waiting for messages that it
// never sends.
//
//     Session "group:label" ──owns──▶ Group ──executors──▶ AsyncExecutor ⇄ …    in progress; each holds its Group
//        │                              ▲
//        └─ unmatched ──notice──────────┘     tag ~0: no receive is ever posted for it, so that an idle group costs
//                    └──late──▶ discarded     nothing: the session is asked about each message without a receive
//
// Notification: position p notifies positions p ± 2^k for all k, about 2 log n messages each. As many messages must be
// lost at once before one rank is not notified. But a rank that has destroyed the group passes nothing on. So a rank
// that leaves out a send also notifies the receivers of its sends in that collective: they may wait for it. A rank that
// revokes the group, or skips a collective, knows no receivers, and notifies all ranks.
//
// A rank that leaves the job notifies all ranks that it is connected with of a group's end. A rank that waits for it
// would otherwise see the disconnect, and take it for the failed rank, before the notice arrives by way of others.
//
// Late messages: a rank that has given up a collective discards its messages, those that have come and those that come.
// The sender's part ends as if the message had been received; the notice says what has happened. A group that has ended
// receives and discards everything: the ranks that still send may have started collectives that this rank never will.
//
// Rejected: only an abort message in place of each message that will not be sent. Each rank has to do the same in every
// later step, so that the last rank hears of the failure after all others.
// Rejected: that each rank notifies all ranks directly (n² messages in total, and as many connections).
// Rejected: to cancel receives only. The sender of a large message would wait forever for a receive that no longer
// exists.
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
#include "comm/collectives/blocks_cache.hpp"
#include "comm/collectives/discard_receiver.hpp"
#include "comm/collectives/exchange_cache.hpp"
#include "comm/collectives/failures.hpp"
#include "comm/collectives/override.hpp"
#include "comm/collectives/split_policy.hpp"
#include "comm/engine/engine.hpp"
#include "comm/state/under_lock.hpp"
#include "ltask/task.hpp"

namespace canele::comm::collectives {

struct AsyncExecutor;
class BlockingExecutor;

/// Keeps the schedules of the last few different calls, so that a repeated call does not build its schedule again.
/// For one thread at a time. (Exchanges with neighbours have a cache of their own.)
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
  struct FastCall {
    Operation operation;
    int root = 0;
    std::uint64_t length = 0, element = 1;
    bool commutes = true;
    std::uint64_t input_block = 0, output_block = 0;
  };
  /// Returns the schedule of the previous call if that call had equal arguments; otherwise nullptr. For a repeated
  /// call, this spares filling in a Call, and most of the comparison.
  [[gnu::always_inline]] const Schedule* of_the_last(const FastCall& c, Algorithm asked) const {
    const Call& kept = last_->call;
    const bool same = kept.operation == c.operation && kept.root == c.root && kept.length == c.length &&
                      kept.element == c.element && kept.commutes == c.commutes && !kept.in_place && !kept.irregular &&
                      kept.input.length == c.input_block && kept.output.length == c.output_block;
    return same && last_->asks_only(asked) ? last_->schedule.get() : nullptr;
  }
  std::uint64_t built() const { return built_; }

 private:
  struct Entry {
    Call call;
    Choice asked;
    std::shared_ptr<const Schedule> schedule;
    /// Size and rank are those of the group, and no entry here has blocks that refer to memory. Compares without
    /// branches except the last one: nearly always all fields are equal.
    [[gnu::always_inline]] bool is_for(const Call& c, const Choice& a) const {
      const auto other = [](auto x, auto y) { return static_cast<std::uint64_t>(x) ^ static_cast<std::uint64_t>(y); };
      std::uint64_t differ = head_of(call) ^ head_of(c);
      differ |= other(call.length, c.length) | other(call.element, c.element);
      differ |= other(call.input.length, c.input.length) | other(call.output.length, c.output.length);
      differ |= memory_of(c.input) | memory_of(c.output);
      differ |= other(asked.algorithm, a.algorithm) | other(asked.radix, a.radix) | other(asked.segment, a.segment);
      differ |= other(asked.inflight_limit, a.inflight_limit);
      return differ == 0 && schedule != nullptr;
    }
    bool asks_only(Algorithm algorithm) const {
      return asked.algorithm == algorithm && (asked.radix | asked.segment | asked.inflight_limit) == 0;
    }
    static std::uint64_t head_of(const Call& c) {
      std::uint64_t head = 0;
      static_assert(offsetof(Call, root) + sizeof c.root == sizeof head, "operation to root, and no gap");
      std::memcpy(&head, &c, sizeof head);
      return head;
    }
    static std::uint64_t memory_of(const Blocks& blocks) {
      return reinterpret_cast<std::uintptr_t>(blocks.lengths) | reinterpret_cast<std::uintptr_t>(blocks.offsets) |
             reinterpret_cast<std::uintptr_t>(blocks.sums);
    }
  };
  const std::shared_ptr<const Schedule>& search_or_build(const Call& call, const Choice& asked, const Network& network);
  std::shared_ptr<const Schedule> build(const Call& call, const Choice& asked, const Network& network);
  std::array<Entry, entries> entries_{};
  BlocksCache of_blocks_;
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

  // ---- any thread
  /// Returns true if all collectives fail, from now on.
  bool has_ended() const { return failures_.has_all(); }
  /// Returns true if this collective has failed, or the group has ended.
  bool failed(std::uint64_t number) const { return failures_.has(number); }
  /// Returns why; code CANELE_OK if the collective has not failed.
  Ending ending(std::uint64_t number) const { return failures_.of(number); }
  /// Returns why the group has ended.
  Ending ending() const { return failures_.of(Failures::all); }

  // ---- any thread, not under the lock
  /// What note() has added, for propagate().
  struct News {
    bool collective = false, group = false;
    explicit operator bool() const { return collective || group; }
    News& operator|=(News other) {
      collective |= other.collective;
      group |= other.group;
      return *this;
    }
  };
  /// Records that a collective has failed. Ends the group instead unless the cause is a length, or lack of memory. The
  /// first failure counts. The caller passes the result to propagate() when its own state allows.
  News note(std::uint64_t number, Ending ending);
  /// Records the end of the group.
  News note_end(Ending ending);
  /// Which ranks to notify: a rank that is the first to know notifies all if no schedule says which ones may wait.
  enum class Notified : std::uint8_t { neighbours, all };
  /// Notifies other ranks, and ends the collective here, or all that are in progress. If a rank has died, does so in
  /// all groups that contain it: a peer that learns of the death through one group may give up all of its groups.
  void propagate(std::uint64_t number, News news, Notified notified = Notified::neighbours);
  /// Notifies the ranks that the schedule of a failed collective sends to, because this rank leaves out a send.
  void notify_receivers(std::uint64_t number, const Schedule& schedule);
  /// Called when the engine disconnects. For each group that has ended, notifies all connected members of the reason.
  static void notify_before_disconnect(Engine& engine);
  /// Starts listening for failure notices, including those that came before the group was created here.
  void listen();
  /// Closes the session if nothing is in progress, unless a collective has failed. (The group then drops what is still
  /// sent for it until the engine ends.) Returns false if a collective is in progress. The group may be freed
  /// afterwards.
  bool close();

  // ---- under the engine's lock
  /// Returns true if neither a collective nor a discard receiver is in progress in this session of a group.
  static bool is_idle(const Session& session) CANELE_UNDER_LOCK;
  void link(AsyncExecutor& executor) CANELE_UNDER_LOCK;
  void unlink(AsyncExecutor& executor) CANELE_UNDER_LOCK;
  /// For reports: returns the number of executors in progress. For each one whose request a thread waits for (`waited`,
  /// sorted), appends the words of its messages to `also`.
  std::uint64_t describe(const std::vector<const void*>& waited,
                         std::vector<const void*>& also) const CANELE_UNDER_LOCK;

  Engine& engine;
  Session& session;

  /// A word to wait on: `ended_bit` is set when a collective has failed, or the group has ended. The thread that waits
  /// clears it, and then asks which one. The ends of the messages in progress are waited for beside it.
  static constexpr std::uint64_t ended_bit = 1;
  std::atomic<std::uint64_t> ended{0};

  // ---- for one thread at a time: the ranks of a group start its collectives in the same order
  AlgorithmOverrides overrides;
  Network network;
  ScheduleCache schedules;
  ExchangeCache exchanges;
  SplitPolicy split_policy;
  std::uint64_t started = 0;
  /// Created by the first call that blocks.
  BlockingExecutor& blocking_executor() {
    return blocking_executor_ != nullptr ? *blocking_executor_ : make_blocking_executor();
  }

 private:
  struct Notice {
    std::uint64_t number;  ///< of the collective; Failures::all: the group has ended
    std::int32_t code, rank;
    Ending ending() const { return {code, rank}; }
  };
  /// Notices on their way to other ranks.
  struct NoticeSends {
    Notice notice{};
    std::unique_ptr<canele_request_t[]> sends;
    std::size_t count = 0;
    void send(Session& session, const Notice& what, const std::vector<int>& whom);
    bool have_ended() const;
  };
  static void unmatched(Session& session, comm::Message& message) CANELE_UNDER_LOCK;
  static bool takes_blocked(Session& session, std::int32_t source, std::uint64_t tag) CANELE_UNDER_LOCK;
  static std::uint64_t number_of(std::uint64_t tag);
  BlockingExecutor& make_blocking_executor();
  std::vector<int> neighbours() const;
  std::vector<int> others() const;
  bool has_notice() CANELE_UNDER_LOCK;
  void check_for_notice();
  void ask_for_blocked(std::uint64_t number) CANELE_UNDER_LOCK;
  void submit_notice_task() CANELE_UNDER_LOCK;
  static void read_notice(ltask::Task& task);
  static void on_notice(canele_request_t* request, unsigned events, void* argument);
  bool is_well_formed(const canele_status_t& status) const;
  bool has(int rank) const;
  std::vector<std::shared_ptr<Group>> other_ended_groups();
  bool fails_with_another() CANELE_UNDER_LOCK;
  void propagate_end(Notified notified);
  void propagate_failure(std::uint64_t number, Notified notified);
  void discard_messages(std::uint64_t number);
  void end_executors(std::uint64_t number);
  void notify(std::uint64_t number, const std::vector<int>& ranks);

  const std::vector<int> ranks_;
  const int size_, rank_;
  Failures failures_;
  AsyncExecutor* executors_ CANELE_LOCKED = nullptr;
  bool notice_pending_ CANELE_LOCKED = false;  ///< a notice has come and has not been read yet; prevents close()
  struct NoticeTask : ltask::Task {
    Group* group = nullptr;
  } notice_task_;
  Notice notice_in_{};
  canele_request_t notice_request_{};
  DiscardReceiver discard_receiver_;
  std::unique_ptr<BlockingExecutor> blocking_executor_;
  std::vector<std::unique_ptr<NoticeSends>> notices_ CANELE_LOCKED;
  NoticeSends last_notices_;
};

}  // namespace canele::comm::collectives

// SPDX-License-Identifier: BSD-3-Clause
//
// TailQueues: matching in which one thread may post while another thread handles arrivals (M. Dosanjh, 2017, chapter
// 6).
//
// Used by its test, and by the comparison in tests/matching; the engine does not offer it. The engine matches under its
// own lock, which would hide the benefit of this structure.
//
// Threading: any thread may post, any thread may handle an arrival. An inbox is filled by the other side and emptied by
// the owner of the list. So the two sides meet at one lock, and only where the search in the list itself found nothing.
//
//   poster  ── searches ─▶ messages_  ◀─ empties ── messages_inbox_ ◀── adds ── arriver         messages_lock_
//   arriver ── searches ─▶ receives_  ◀─ empties ── receives_inbox_ ◀── adds ── poster          receives_lock_
//                                                       └── both inboxes: inbox_lock_, taken last
//
// The side that takes inbox_lock_ second sees what the other side has put there, so no pair is missed. The nodes in an
// inbox are younger than all nodes in its list. So the order holds as long as the locks are fair: they queue (MCS).
#pragma once

#include <atomic>

#include "comm/matching/alternative.hpp"
#include "ltask/platform.hpp"

namespace canele::comm::matching {

/// A fair spin lock: each waiting thread spins on a word of its own (Mellor-Crummey and Scott, 1991).
class QueueLock {
 public:
  explicit QueueLock(Platform& platform) : platform_(platform) {}

  class Hold {
   public:
    explicit Hold(QueueLock& lock) : lock_(lock) { lock_.lock(*this); }
    ~Hold() { lock_.unlock(*this); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    friend class QueueLock;
    QueueLock& lock_;
    std::atomic<Hold*> next_{nullptr};
    std::atomic<bool> waits_{true};
  };

 private:
  void lock(Hold& mine) noexcept;
  void unlock(Hold& mine) noexcept;
  template <typename Done>
  void spin_until(Done done) noexcept;

  Platform& platform_;
  std::atomic<Hold*> last_{nullptr};
};

class TailQueues {
 public:
  explicit TailQueues(Platform& platform) : messages_lock_(platform), receives_lock_(platform), inbox_lock_(platform) {}

  /// Like Matcher::post() and arrive(), but a message that matches no receive is stored at once. The nodes are complete
  /// (session, source, tag; mask).
  UnexpectedNode* post(PostedNode& receive);
  PostedNode* arrive(UnexpectedNode& message);

  /// Returns how often a side had to search its inbox.
  std::uint64_t inbox_visits() const noexcept { return inbox_visits_.load(std::memory_order_relaxed); }

 private:
  /// Common to both sides. Removes and returns the oldest node in `list`, or in its inbox, that fits. If there is none,
  /// `mine` goes into the inbox of the list that the other side searches.
  template <typename Fits>
  MatchNode* meet(QueueLock& lock, NodeFifo& list, NodeFifo& inbox, NodeFifo& own_inbox, MatchNode& mine, Fits fits);

  alignas(64) QueueLock messages_lock_;
  NodeFifo messages_;
  alignas(64) QueueLock receives_lock_;
  NodeFifo receives_;
  alignas(64) QueueLock inbox_lock_;
  NodeFifo messages_inbox_, receives_inbox_;
  std::atomic<std::uint64_t> inbox_visits_{0};
};

}  // namespace canele::comm::matching

// SPDX-License-Identifier: BSD-3-Clause
//
// TailQueues: matching that one thread may post to while another lets messages arrive (M. Dosanjh, 2017, chapter 6).
//
// Who: its test, and the comparison in tests/matching. The engine matches under its own lock, which would hide what
//     this is for; there it is no choice.
// Threads: any may post, any may arrive.
// Surprise: an inbox is filled by the other side and emptied by the owner of the list, so that the sides meet at one
//     lock, and only where nothing was found in the list itself.
//
//   poster  ── searches ─▶ messages_  ◀─ empties ── messages_inbox_ ◀── adds ── arriver         messages_lock_
//   arriver ── searches ─▶ receives_  ◀─ empties ── receives_inbox_ ◀── adds ── poster          receives_lock_
//                                                       └── both inboxes: inbox_lock_, taken last
//
// Who comes second to inbox_lock_ sees what the other has put there, so no pair is missed. What is in an inbox is
// younger than all that is in its list, so the order holds as long as the locks are fair: they queue (MCS).
#pragma once

#include <atomic>

#include "comm/matching/alternatives/alternative.hpp"
#include "ltask/platform.hpp"

namespace canele::comm::matching {

/// A fair spin lock: who waits spins on a word of its own (Mellor-Crummey and Scott, 1991).
class QueueLock {
 public:
  explicit QueueLock(Platform& platform) : platform_(platform) {}

  class Hold {
   public:
    explicit Hold(QueueLock& lock) : lock_(lock) { lock_.enter(*this); }
    ~Hold() { lock_.leave(*this); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    friend class QueueLock;
    QueueLock& lock_;
    std::atomic<Hold*> next_{nullptr};
    std::atomic<bool> waits_{true};
  };

 private:
  void enter(Hold& mine) noexcept;
  void leave(Hold& mine) noexcept;
  template <typename Done>
  void spin_until(Done done) noexcept;

  Platform& platform_;
  std::atomic<Hold*> last_{nullptr};
};

class TailQueues {
 public:
  explicit TailQueues(Platform& platform) : messages_lock_(platform), receives_lock_(platform), inbox_lock_(platform) {}

  /// As Matcher::post() and arrive(), but a message that nobody takes is kept at once. The nodes are complete (session,
  /// source, tag; mask).
  UnexpectedNode* post(PostedNode& receive);
  PostedNode* arrive(UnexpectedNode& message);

  /// How often a side had to look into its inbox.
  std::uint64_t inbox_visits() const noexcept { return inbox_visits_.load(std::memory_order_relaxed); }

 private:
  /// Either side: the oldest in `list`, or in its inbox, that fits, taken out; if there is none, `mine` goes into the
  /// inbox of the list that the other side searches.
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

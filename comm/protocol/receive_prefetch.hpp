// SPDX-License-Identifier: BSD-3-Clause
//
// ReceivePrefetch: receives that are posted, but not yet looked up in the matcher, while prefetches load what the
// look-up reads.
//
// api/ adds plain receives when the table is large. The next thread that takes the engine's lock drains them.
// Called under the engine's lock.
//
// Finding one message among a million misses the cache two to six times in a row, because each address depends on the
// previous load. For receives that are posted one after the other, the receive prefetch overlaps these misses. A
// receive is looked up when a few more have been posted, or when the lock is taken for another purpose. Every way to
// the lock finds no receive here, except a post and a small send that looks at no receive. So it can be observed only
// by its timing.
//
//   age:  0 its bucket ─▶ 7 the message there ─▶ 15 look up
//   where a session has had wildcards:
//         0 its bucket ─▶ 5 the message ─▶ 10 its index entry, or its slot in an order ─▶ 15 look up
//   where a session has an index of messages, and has them in orders:
//         0 its bucket ─▶ 3 the message ─▶ 6 its index entry ─▶ 9 its slots ─▶ 15 look up
//
//   where_:  the matcher's answer for each post, by the post's number. It is used a few posts later without a check
//            that the post still waits: a hash can become stale, but it is no address.
//
// The technique is group prefetching (Chen et al., "Improving hash join performance through prefetching", 2004), across
// calls.
// Rejected: a call that posts many receives at once (task runtimes post one by one, MPI has no such call).
#pragma once

#include <array>
#include <cstddef>

#include "comm/matching/matcher.hpp"
#include "comm/state/context.hpp"

namespace canele::comm {

class ReceivePrefetch {
 public:
  bool empty() const noexcept { return count_ == 0; }
  /// Returns whether a receive may wait here. Another thread or call must take the lock before any thread
  /// sleeps for the receive. No listener may need to be told about the receive meanwhile.
  static bool takes(const Request& request, std::size_t length) noexcept;
  /// Adds a receive for which takes() returned true. Looks up the oldest one if there is no room. The copy is
  /// inlined and goes word by word. A wider load of words that were just stored would wait until these have left the
  /// store buffer. Before them in the buffer are the stores to the request, which miss the cache.
  [[gnu::always_inline]] void add(Context& context, const Posting& posting) CANELE_UNDER_LOCK {
    Posting& slot = ring_[next_++ % ring_.size()];
    slot.request = posting.request;
    slot.session = posting.session;
    slot.tag = posting.tag;
    slot.mask = posting.mask;
    slot.source = posting.source;
    slot.data.length = posting.data.length;
    slot.data.base = posting.data.base;
    slot.data.segments = posting.data.segments;
    slot.data.context = posting.data.context;
    ++count_;
    advance(context);
  }
  /// Looks up all of them, in the order in which they were posted.
  void drain(Context& context) CANELE_UNDER_LOCK;

 private:
  static constexpr unsigned depth = 15;

  const Posting& at(std::size_t age) const noexcept { return ring_[(next_ - 1 - age) % ring_.size()]; }
  std::uint64_t where(std::size_t age) const noexcept { return where_[(next_ - 1 - age) % where_.size()]; }
  void prefetch_hint(const Matcher& matcher);
  void advance(Context& context) CANELE_UNDER_LOCK;
  void look_up_oldest(Context& context) CANELE_UNDER_LOCK;

  std::array<Posting, 32> ring_{};         ///< a power of two, and more than `depth`
  std::array<std::uint64_t, 32> where_{};  ///< the matcher's answer for each post, including those already looked up
  std::size_t next_ = 0, count_ = 0;
};

}  // namespace canele::comm

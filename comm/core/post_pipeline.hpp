// SPDX-License-Identifier: BSD-3-Clause
//
// PostPipeline: receives that are posted, but not looked up yet: what the look-up will read is on its way to the cache.
//
// Who: api/ puts plain receives in when the table is large; whoever takes the engine's lock settles it.
// Threads: under the engine's lock.
// Surprise: to find a message among a million that wait misses the cache two to six times in a row, each where the last
//     one led. Who posts one receive after the other lets those misses overlap: a receive is looked up when a few more
//     have been posted, or when anything else than posting happens: every way to the lock but two (a post, and a small
//     send that looks at no receive) finds the pipeline empty. So nobody can tell, but by the time it takes.
//
//   age:  0 its bucket ─▶ 7 the message there ─▶ 15 look up
//   where some session has had wildcards:
//         0 its bucket ─▶ 5 the message ─▶ 10 its listing, or its place in an order ─▶ 15 look up
//   where some session lists messages, and has them in orders:
//         0 its bucket ─▶ 3 the message ─▶ 6 its listing ─▶ 9 its places ─▶ 15 look up
//
//   where_:  what the matcher has said of each post, by its number. It is used a few posts later without a look at
//            whether that post still waits: a hash can grow old, but it names no memory.
//
// It is group prefetching (Chen et al., "Improving hash join performance through prefetching", 2004), across calls.
// Rejected: a call that posts many receives at once (task runtimes post one by one, MPI has no such call).
#pragma once

#include <array>
#include <cstddef>

#include "comm/core/request.hpp"
#include "comm/matching/matcher.hpp"

namespace canele::comm {

class Engine;

class PostPipeline {
 public:
  bool empty() const noexcept { return count_ == 0; }
  /// May it wait here? Only if somebody will take the lock again before anyone sleeps for it, and nobody has to be told
  /// of it meanwhile.
  static bool takes(const Engine& engine, const Request& request, std::size_t length) noexcept;
  /// A receive that it takes; the oldest is looked up if it is full. In line, and word by word: who copies in wider
  /// pieces what was just written in words waits until these have left the store buffer, and before them are those of
  /// the request, which miss the cache.
  [[gnu::always_inline]] void add(Engine& engine, const Posting& posting) {
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
    advance(engine);
  }
  /// Looks all of them up, in the order in which they were posted.
  void settle(Engine& engine);

 private:
  static constexpr unsigned depth = 15;

  const Posting& at(std::size_t age) const noexcept { return ring_[(next_ - 1 - age) % ring_.size()]; }
  std::uint64_t where(std::size_t age) const noexcept { return where_[(next_ - 1 - age) % where_.size()]; }
  void foresee(const Matcher& matcher);
  void advance(Engine& engine);
  void look_up_oldest(Engine& engine);

  std::array<Posting, 32> ring_{};         ///< a power of two, and more than `depth`
  std::array<std::uint64_t, 32> where_{};  ///< what the matcher has said of each, those looked up included
  std::size_t next_ = 0, count_ = 0;
};

}  // namespace canele::comm

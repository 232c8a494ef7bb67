// SPDX-License-Identifier: BSD-3-Clause
//
// RtrTable: what the two ends of a pair know of each other's posted receives (RTRs). ChunkClaims: which end copies
// which chunk.
//
// Used by rendezvous/receiver_initiated and rendezvous/shared_copy. The table is accessed under the engine's lock;
// ChunkClaims by any thread of either process.
//
// The line that a ChunkClaims works on is memory that another process changes. Every word that is read is checked: a
// process that lies can spoil only its own transfer.
//
//   receiver: local[i] ──▶ Request ──▶ its place in the transfers        sender: remote[] (oldest first)
//                │                                                                │
//                └──────── shared line i of the receiver ◀── ChunkClaims ─────────┘
//
//   word 0:  generation 32 │ acquired 1 │ claimed from the back 15 │ from the front 16
//   word 1:  generation 32 │ failed 1 │ chunks done 31
//
// The receiver takes chunks from the front, the sender from the back. Each end thus goes on where its last copy ended.
// If a buffer is used again, each end writes the part that its own caches hold.
//
// Rejected: claims by packets (the end that computes would have to answer).
// Rejected: a flag per chunk (the number is enough, because no end reads a part of a message).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "comm/wire/handle.hpp"
#include "drivers/driver.hpp"

namespace canele::comm {

struct Request;
namespace rendezvous {
struct RmaCopy;
}

/// One transfer that both ends may copy, seen from either end.
class ChunkClaims {
 public:
  ChunkClaims() = default;
  ChunkClaims(drivers::SharedLine& line, std::uint32_t generation)
      : next_(&line.words[0]), done_(&line.words[1]), generation_(std::uint64_t{generation} << 32) {}
  explicit operator bool() const { return next_ != nullptr; }

  /// Receiver: allows the sender to take the transfer. The release store pairs with the exchange in acquire(), so that
  /// the sender sees word 1 as reset.
  void open() {
    done_->store(generation_, std::memory_order_relaxed);
    next_->store(generation_, std::memory_order_release);
  }
  /// Receiver: withdraws the RTR. Returns false if the sender has acquired it.
  bool close() { return change(generation_, generation_ | most); }
  /// Sender: acquires the RTR, for a message that is for this receive and no other. Returns false if the receiver has
  /// withdrawn it.
  bool acquire() { return change(generation_, generation_ | acquired_bit); }
  bool acquired() const {
    return (next_->load(std::memory_order_acquire) & ~std::uint64_t{most}) == (generation_ | acquired_bit);
  }

  /// Receiver: forbids any further claim, whether or not the sender has taken the transfer.
  void revoke() { next_->store(generation_ | most, std::memory_order_release); }

  /// Most chunks that a transfer can have.
  static constexpr std::uint32_t most_chunks = 0x7fff;
  enum class From : std::uint8_t { front, back };
  struct Range {
    std::uint32_t first = 0, count = 0;  ///< 0: no chunk
  };
  /// Claims chunks that neither end copies yet. The caller must call copied() for them. Several chunks are claimed at a
  /// time, because a kernel call costs a considerable part of the copy of a chunk. While both ends copy, a claim is up
  /// to half of what is left. It is up to all of it if only this end has claimed so far, or if the other end is busy.
  Range claim_chunks(From from, std::uint32_t chunks, bool other_is_busy = false) {
    const std::uint32_t most_per_claim = chunks > 32 ? 2 : 4;  // so one turn (tasks_per_turn) copies at most 4 MiB
    std::uint64_t seen = next_->load(std::memory_order_relaxed);
    for (;;) {
      const auto front = static_cast<std::uint32_t>(seen & 0xffff),
                 back = static_cast<std::uint32_t>(seen >> 16 & 0x7fff);
      if ((seen & ~std::uint64_t{most}) != (generation_ | acquired_bit) || front + back >= chunks) return {};
      const std::uint32_t left = chunks - front - back;
      const auto [own, others] = from == From::front ? std::pair(front, back) : std::pair(back, front);
      const bool alone = (own != 0 || other_is_busy) && others == 0;
      const std::uint32_t count = std::min(alone ? left : std::max(left / 2, 1u), most_per_claim);
      const std::uint64_t then = seen + (std::uint64_t{count} << (from == From::front ? 0 : 16));
      if (!next_->compare_exchange_weak(seen, then, std::memory_order_acq_rel)) continue;
      return {from == From::front ? front : chunks - back - count, count};
    }
  }
  /// Reports claimed chunks as copied, or as failed if not `well`. Returns true if they were the last ones of the
  /// transfer.
  bool copied(bool well, std::uint32_t count, std::uint32_t chunks) {
    if (!well) done_->fetch_or(failed_bit, std::memory_order_acq_rel);
    return ((done_->fetch_add(count, std::memory_order_acq_rel) + count) & most) == chunks;
  }
  bool all_copied(std::uint32_t chunks) const { return (done_->load(std::memory_order_acquire) & most) == chunks; }
  bool any_failed() const { return (done_->load(std::memory_order_acquire) & failed_bit) != 0; }

 private:
  static constexpr std::uint32_t most = 0x7fffffff, acquired_bit = 0x80000000, failed_bit = 0x80000000;

  bool change(std::uint64_t from, std::uint64_t to) {
    return next_->compare_exchange_strong(from, to, std::memory_order_acq_rel);
  }

  std::atomic<std::uint64_t>* next_ = nullptr;
  std::atomic<std::uint64_t>* done_ = nullptr;
  std::uint64_t generation_ = 0;
};

/// The RTRs of one pair, both ways.
struct RtrTable {
  static constexpr int most = 16;
  static constexpr std::size_t rkey_room = 40;
  /// A message that is not longer, in bytes, is copied by one end alone: to share it costs more than the second end
  /// gains.
  static constexpr std::size_t longest_for_one = 128 * 1024;
  static constexpr std::size_t shortest = longest_for_one + 1;  ///< receive that is worth an RTR, in bytes

  /// A local receive that its sender knows of; by shared line.
  struct LocalRtr {
    Request* request = nullptr;
    std::uint32_t generation = 0;
  };
  /// A receive of the peer.
  struct RemoteRtr {
    std::uint64_t tag;
    Handle key;
    std::uint64_t length;
    std::uint32_t session;  ///< the local number of the session
    std::uint32_t generation;
    std::uint16_t line;
    std::uint16_t rkey_size;
    std::array<std::byte, rkey_room> rkey;
  };
  std::array<LocalRtr, most> local;
  std::vector<RemoteRtr> remote;
  std::vector<RemoteRtr>::iterator find(std::uint32_t session, std::uint64_t tag) {
    return std::find_if(remote.begin(), remote.end(),
                        [&](const RemoteRtr& one) { return one.tag == tag && one.session == session; });
  }
  /// Receives that have matched their messages and wait for a line; linked by next_free.
  rendezvous::RmaCopy *first_waiting = nullptr, *last_waiting = nullptr;
};

/// Remembers the sessions and tags of the last envelopes written to a peer. An RTR that was under way meanwhile belongs
/// to the first matching one of them.
class RecentEnvelopes {
 public:
  void note(std::uint32_t number, std::uint32_t session, std::uint64_t tag) {
    last_[number % kept] = key(session, tag);
  }
  /// Records that envelope `number` was an RTS, of the send with this handle.
  void announced(std::uint32_t number, Handle handle) { announced_[number % kept] = {number, handle}; }

  enum class Answer : std::uint8_t { none, one, unknown };
  /// Finds the first of the envelopes [from, to) for (session, tag). Sets *handle to its send if it was an RTS, else to
  /// none. Another session or tag may look alike.
  Answer first(std::uint32_t from, std::uint32_t to, std::uint32_t session, std::uint64_t tag, Handle* handle) const {
    *handle = Handle::none;
    if (to - from > kept) return Answer::unknown;
    for (; from != to; ++from) {
      if (last_[from % kept] != key(session, tag)) continue;
      if (announced_[from % kept].number == from) *handle = announced_[from % kept].handle;
      return Answer::one;
    }
    return Answer::none;
  }

 private:
  static constexpr std::uint32_t kept = 16;
  static std::uint64_t key(std::uint32_t session, std::uint64_t tag) { return tag + (std::uint64_t{session} << 32); }
  struct Announced {
    std::uint32_t number = 0;
    Handle handle = Handle::none;
  };
  std::array<std::uint64_t, kept> last_{};
  std::array<Announced, kept> announced_{};
};

}  // namespace canele::comm

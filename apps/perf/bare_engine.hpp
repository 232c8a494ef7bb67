// SPDX-License-Identifier: BSD-3-Clause
//
// BareEngine: what any engine has to do for a message between two ranks, in one loop: requests, tags, matching,
// completion.
//
// Used by floor_shm. One thread per rank; the memory of each direction has one writer. It is not a complete engine. It
// has one peer, one driver and one thread. It has no errors, truncation, wildcards, credit or counters, and no message
// arrives before its receive is posted. All of it is inline. Hence no complete engine is as fast.
//
//     send      the request is filled; {tag, length, bytes} go to the next slot, and its number behind them; it has
//     ended post      the request is filled, and appended to its tag's bucket progress  the slot has the next number?
//     the bucket's first receive of that tag leaves it; the bytes are copied; its
//                outcome (tag, source, length) is written; it has ended
#pragma once

#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace canele::perf {

class BareEngine {
 public:
  /// Sent in front of a message's bytes.
  struct Head {
    std::atomic<std::uint64_t> number;
    std::uint64_t tag;
    std::uint64_t length;
  };

  struct alignas(64) Request {
    bool done = true;
    int source = 0;
    std::uint64_t tag = 0;
    std::byte* buffer = nullptr;
    std::size_t room = 0;
    Request* next = nullptr;
    std::uint64_t status_tag = 0, status_length = 0;
    int status_source = 0;
  };

  /// `slots` slots of `slot` bytes each way. Both memories are zero, and the `out` of each side is the `in` of the
  /// other.
  BareEngine(std::byte* out, std::byte* in, std::size_t slot, std::size_t slots, int peer)
      : out_{out, out, out + slot * slots}, in_{in, in, in + slot * slots}, slot_(slot), peer_(peer) {}

  static constexpr std::size_t slot_for(std::size_t size) { return (sizeof(Head) + size + 63) / 64 * 64; }

  void send(Request& request, std::uint64_t tag, const std::byte* bytes, std::size_t length) {
    fill(request, tag, const_cast<std::byte*>(bytes), length);
    Head& head = *reinterpret_cast<Head*>(out_.at);
    head.tag = tag;
    head.length = length;
    copy(out_.at + sizeof(Head), bytes, length);
    head.number.store(++sent_, std::memory_order_release);  // pairs with the acquire load in progress
    out_.step(slot_);
    request.done = true;
  }

  void post(Request& request, std::uint64_t tag, std::byte* buffer, std::size_t room) {
    fill(request, tag, buffer, room);
    Bucket& bucket = bucket_of(tag);
    (bucket.first == nullptr ? bucket.first : bucket.last->next) = &request;
    bucket.last = &request;
  }

  /// Receives a message if there is one. Returns true if it did.
  bool progress() {
    const Head& head = *reinterpret_cast<const Head*>(in_.at);
    if (head.number.load(std::memory_order_acquire) != received_ + 1) return false;
    const std::uint64_t tag = head.tag, length = head.length;
    Bucket& bucket = bucket_of(tag);
    Request** link = &bucket.first;
    Request* before = nullptr;
    while (*link != nullptr && ((*link)->tag != tag || (*link)->source != peer_)) before = *link, link = &before->next;
    Request* const found = *link;
    if (found == nullptr) return false;  // its receive is not posted yet: the message stays
    *link = found->next;
    if (bucket.last == found) bucket.last = before;
    copy(found->buffer, in_.at + sizeof(Head), length < found->room ? length : found->room);
    found->status_tag = tag;
    found->status_length = length;
    found->status_source = peer_;
    found->done = true;
    ++received_;
    in_.step(slot_);
    return true;
  }

 private:
  struct Side {
    std::byte *first, *at, *end;
    void step(std::size_t slot) {
      if ((at += slot) == end) at = first;
    }
  };
  struct Bucket {
    Request *first = nullptr, *last = nullptr;
  };

  void fill(Request& request, std::uint64_t tag, std::byte* buffer, std::size_t room) {
    request.done = false;
    request.source = peer_;
    request.tag = tag;
    request.buffer = buffer;
    request.room = room;
    request.next = nullptr;
  }
  Bucket& bucket_of(std::uint64_t tag) { return buckets_[(tag * 0x9e3779b97f4a7c15u) >> 56]; }

  /// Copies bytes. For a word, a call costs more than the copy. Like the engine, it avoids the `rep movs` of the C
  /// library.
  static void copy(std::byte* to, const std::byte* from, std::size_t size) {
    constexpr std::size_t step = 2048;
    if (size == sizeof(std::uint64_t)) {
      std::memcpy(to, from, sizeof(std::uint64_t));
    } else if (size > step && size <= 2 * step) {
      std::memcpy(to, from, step);
      std::memcpy(to + step, from + step, size - step);
    } else if (size != 0) {
      std::memcpy(to, from, size);
    }
  }

  Side out_, in_;
  std::size_t slot_;
  int peer_;
  std::uint64_t sent_ = 0, received_ = 0;
  std::array<Bucket, 256> buckets_;
};

}  // namespace canele::perf

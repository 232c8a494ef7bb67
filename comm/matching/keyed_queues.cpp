// SPDX-License-Identifier: BSD-3-Clause
//
// The hash table of the matcher. See keyed_queues.hpp for the picture. Threads: under the engine's lock.
// Surprise: the arrays are fresh zero pages: a new array of any size costs nothing until it is touched, so growing
//     has no pause.
#include "comm/matching/keyed_queues.hpp"

#include <sys/mman.h>

#include <new>

namespace canele::comm {

KeyedQueues::KeyedQueues(std::uint64_t seed, LinksOf links, KeyOf key)
    : links_(links), key_(key), seed_(seed | 1), table_(allocate(first_buckets)), mask_(first_buckets - 1) {}

KeyedQueues::~KeyedQueues() {
  release(table_, mask_ + 1);
  if (old_ != nullptr) release(old_, old_mask_ + 1);
}

KeyedQueues::Bucket* KeyedQueues::allocate(std::size_t buckets) {
  const std::size_t bytes = buckets * sizeof(Bucket);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return static_cast<Bucket*>(memory);
}

void KeyedQueues::release(Bucket* table, std::size_t buckets) noexcept { munmap(table, buckets * sizeof(Bucket)); }

MatchNode* KeyedQueues::lookup(const MatchKey& key, Place& place) const noexcept {
  Bucket& b = bucket(place.hash);
  for (std::uint64_t& e : b.slots) {
    if (e == 0) return nullptr;  // the slots are filled from the front, and the overflow after them
    if (((e ^ place.hash) >> 48) == 0 && key_(*node_of(e)) == key) {
      place.slot = &e;
      return node_of(e);
    }
  }
  for (MatchNode** link = &b.overflow; *link != nullptr; link = &links_(**link).chain) {
    if (key_(**link) == key) {
      place.chain = link;
      return *link;
    }
  }
  return nullptr;
}

void KeyedQueues::insert_head(MatchNode& head, std::uint64_t h) noexcept {
  Bucket& b = bucket(h);
  for (std::uint64_t& e : b.slots) {
    if (e == 0) {
      e = entry(h, &head);
      return;
    }
  }
  links_(head).chain = b.overflow;
  b.overflow = &head;
}

void KeyedQueues::push(MatchNode& node) {
  if (old_ != nullptr) {
    move_some();
  } else if (keys_ >= keys_per_bucket * (mask_ + 1)) {
    grow();
  }
  const MatchKey key = key_(node);
  Place place;
  MatchLinks& links = links_(node);
  links = MatchLinks{};
  if (MatchNode* head = find(key, place); head != nullptr) {
    MatchNode* tail = links_(*head).tail;
    links.prev = tail;
    links_(*tail).next = &node;
    links_(*head).tail = &node;
    return;
  }
  links.tail = &node;
  ++keys_;
  insert_head(node, place.hash);
}

void KeyedQueues::close_gap(Bucket& b, std::uint64_t& hole) noexcept {
  if (b.overflow != nullptr) {  // all slots are full: one from the chain takes the place
    MatchNode* head = b.overflow;
    b.overflow = links_(*head).chain;
    links_(*head).chain = nullptr;
    hole = entry(hash(key_(*head)), head);
    return;
  }
  std::uint64_t* last = &hole;
  while (last + 1 != b.slots + slots_per_bucket && last[1] != 0) ++last;
  hole = *last;
  *last = 0;
}

void KeyedQueues::remove_first(MatchNode& node, const Place& place) noexcept {
  MatchLinks& links = links_(node);
  MatchNode* follower = links.next;
  if (follower != nullptr) {
    MatchLinks& fl = links_(*follower);
    fl.prev = nullptr;
    fl.tail = links.tail;
    fl.chain = links.chain;
  } else {
    --keys_;
  }
  if (place.slot != nullptr) {
    if (follower != nullptr) {
      *place.slot = entry(place.hash, follower);
    } else {
      close_gap(bucket(place.hash), *place.slot);
    }
  } else {
    *place.chain = follower != nullptr ? follower : links.chain;
  }
  links = MatchLinks{};
}

void KeyedQueues::remove(MatchNode& node) noexcept {
  MatchLinks& links = links_(node);
  if (links.prev != nullptr && links.next != nullptr) {  // in the middle: the table need not know
    links_(*links.prev).next = links.next;
    links_(*links.next).prev = links.prev;
    links = MatchLinks{};
    return;
  }
  Place place;
  MatchNode* head = find(key_(node), place);
  assert(head != nullptr && "removing a node that is not in the table");
  if (head == &node) {
    remove_first(node, place);
    return;
  }
  links_(*links.prev).next = nullptr;  // the tail
  links_(*head).tail = links.prev;
  links = MatchLinks{};
}

void KeyedQueues::grow() {
  old_ = table_;
  old_mask_ = mask_;
  moved_ = 0;
  table_ = allocate(2 * (mask_ + 1));
  mask_ = 2 * mask_ + 1;
  move_some();
}

void KeyedQueues::move_some() noexcept {
  for (std::size_t n = 0; n < moves_per_push && old_ != nullptr; ++n) {
    Bucket from = old_[moved_++];  // from now on bucket() leads to the new array
    for (const std::uint64_t e : from.slots) {
      if (e != 0) insert_head(*node_of(e), hash(key_(*node_of(e))));
    }
    for (MatchNode* head = from.overflow; head != nullptr;) {
      MatchNode* following = links_(*head).chain;
      links_(*head).chain = nullptr;
      insert_head(*head, hash(key_(*head)));
      head = following;
    }
    if (moved_ > old_mask_) {
      release(old_, old_mask_ + 1);
      old_ = nullptr;
    }
  }
}

}  // namespace canele::comm

// SPDX-License-Identifier: BSD-3-Clause
//
// The lists and the table of credit-blocked sends.
//
// The head of a flow is recognized by its flow_prev: that is the newest send, which has no successor.
#include "comm/state/blocked_sends.hpp"

#include <bit>
#include <cassert>
#include <cstdlib>

#include "comm/state/session.hpp"

namespace canele::comm {
namespace {

bool is_head(const Request& request) { return request.flow_prev->flow_next != &request; }

/// Returns the words that held the links to the use of the transfer.
void give_words_back(Request& request) {
  request.transfer_id = Handle::none;
  request.moved = request.expected = 0;
  request.bulk_rails = 0;
}

}  // namespace

FlowTable::~FlowTable() {
  for (Request** segment : segments_) std::free(segment);
}

std::uint64_t FlowTable::hash(const Session* session, std::uint64_t tag) {
  std::uint64_t h = tag + 0x9e3779b97f4a7c15u * (session->number + std::uint64_t{1});
  h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
  h = (h ^ h >> 27) * 0x94d049bb133111ebu;
  return h ^ h >> 31;
}

Request*& FlowTable::bucket(std::size_t index) {
  if (index < first_size) return inside_[index];
  const int segment = static_cast<int>(std::bit_width(index / first_size)) - 1;
  return segments_[segment][index - (first_size << segment)];
}

Request*& FlowTable::bucket_of(std::uint64_t h) {
  const std::size_t index = h & (2 * base_ - 1);
  return bucket(index < base_ + split_ ? index : index & (base_ - 1));
}

Request* FlowTable::find(const Session* session, std::uint64_t tag) const {
  Request* one = const_cast<FlowTable*>(this)->bucket_of(hash(session, tag));
  while (one != nullptr && (one->session != session || one->status_tag != tag)) one = one->bucket_next;
  return one;
}

/// Adds one bucket, filled from the bucket that is split. If there is no memory for it, the chains grow instead.
void FlowTable::grow() {
  const int segment = static_cast<int>(std::bit_width((base_ + split_) / first_size)) - 1;
  if (segment >= most_segments) return;
  if (segments_[segment] == nullptr) {
    segments_[segment] = static_cast<Request**>(std::calloc(first_size << segment, sizeof(Request*)));
    if (segments_[segment] == nullptr) return;
  }
  Request** kept = &bucket(split_);
  Request** goes = &bucket(base_ + split_);
  for (Request* one = *kept; one != nullptr; one = one->bucket_next) {
    Request**& end = (hash(one->session, one->status_tag) & base_) != 0 ? goes : kept;
    *end = one;
    end = &one->bucket_next;
  }
  *kept = *goes = nullptr;
  if (++split_ == base_) {
    base_ *= 2;
    split_ = 0;
  }
}

void FlowTable::add(Request& request) {
  request.flow_next = nullptr;
  if (Request* const head = find(request.session, request.status_tag); head != nullptr) {
    request.flow_prev = head->flow_prev;
    head->flow_prev->flow_next = &request;
    head->flow_prev = &request;
    return;
  }
  request.flow_prev = &request;
  if (++flows_ > base_ + split_) grow();
  Request*& bucket = bucket_of(hash(request.session, request.status_tag));
  request.bucket_next = bucket;
  bucket = &request;
}

void FlowTable::remove(Request& request) {
  Request* const next = request.flow_next;
  if (!is_head(request)) {
    Request* const newest = next != nullptr ? next : find(request.session, request.status_tag);
    request.flow_prev->flow_next = next;
    newest->flow_prev = request.flow_prev;  // the successor; or the head, whose flow_prev is the newest
    return;
  }
  Request** link = &bucket_of(hash(request.session, request.status_tag));
  while (*link != &request) link = &(*link)->bucket_next;
  if (next == nullptr) {
    *link = request.bucket_next;
    --flows_;
    return;
  }
  next->flow_prev = request.flow_prev;
  next->bucket_next = request.bucket_next;
  *link = next;
}

void BlockedSends::append(Request& request) {
  transition(request, Request::Stage::blocked);
  request.blocked_next = nullptr;
  request.blocked_prev = last;
  (last != nullptr ? last->blocked_next : first) = &request;
  last = &request;
  request.blocked_number = ++next_number;
  ++count;
  flows.add(request);
}

void BlockedSends::unlink(Request& request) {
  assert(request.is_blocked() && count != 0);
  Request* const prev = request.blocked_prev;
  Request* const next = request.blocked_next;
  (prev != nullptr ? prev->blocked_next : first) = next;
  (next != nullptr ? next->blocked_prev : last) = prev;
  if (cursor == &request) cursor = next;
  flows.remove(request);
  give_words_back(request);
  --count;
}

Request* BlockedSends::match_from(const Solicitation& solicitation, Request* request) const {
  if (solicitation.session->number != solicitation.number) return nullptr;
  if (!solicitation.exact()) {
    while (request != nullptr && !solicitation.fits(*request)) request = request->blocked_next;
  }
  return request != nullptr && behind_cursor(*request) ? request : nullptr;
}

Request* BlockedSends::first_match(const Solicitation& solicitation) const {
  return match_from(solicitation, solicitation.exact() ? flows.find(solicitation.session, solicitation.tag) : first);
}

Request* BlockedSends::next_match(const Solicitation& solicitation, const Request& request) const {
  return match_from(solicitation, solicitation.exact() ? request.flow_next : request.blocked_next);
}

int BlockedSends::place_in_batch(const Request& request) const {
  int place = 0;
  while (place < batch_size && batch[place].request != &request) ++place;
  return place;
}

}  // namespace canele::comm

// SPDX-License-Identifier: BSD-3-Clause
//
// The matcher. See matcher.hpp for the classes. Threads: under the engine's lock.
// Surprise: arrival compares at most five stamps: the heads of the classes in use.
#include "comm/matching/matcher.hpp"

namespace canele::comm {
namespace {

constexpr std::uint64_t full_mask = ~std::uint64_t{0};

void append(MatchSession::PostedList& list, MatchNode& node) {
  node.links = MatchLinks{};
  node.links.prev = list.last;
  (list.last != nullptr ? list.last->links.next : list.first) = &node;
  list.last = &node;
}

void unlink(MatchSession::PostedList& list, MatchNode& node) {
  (node.links.prev != nullptr ? node.links.prev->links.next : list.first) = node.links.next;
  (node.links.next != nullptr ? node.links.next->links.prev : list.last) = node.links.prev;
  node.links = MatchLinks{};
}

void forget_only(MatchSession& session) {
  session.only->queued = false;
  session.only = nullptr;
  session.posted = 0;
}

bool fits(const MatchNode& message, std::int32_t source, std::uint64_t tag, std::uint64_t mask) {
  return ((message.tag ^ tag) & mask) == 0 && (source == rank_any || source == message.source);
}

}  // namespace

Matcher::Matcher(std::uint64_t seed) : exact_(seed), any_source_(seed + 2), any_tag_(seed + 4) {}

MatchClass Matcher::classify(std::int32_t source, std::uint64_t mask) noexcept {
  if (mask == full_mask) return source == rank_any ? MatchClass::any_source : MatchClass::exact;
  if (mask == 0) return source == rank_any ? MatchClass::any_any : MatchClass::any_tag;
  return MatchClass::masked;
}

UnexpectedNode* Matcher::post(MatchSession& session, PostedNode& receive) {
  assert(!receive.queued);
  receive.session = session.id;
  receive.posted = true;
  if (session.unexpected != 0) {
    if (UnexpectedNode* message = find(session, receive.source, receive.tag, receive.mask); message != nullptr) {
      take(session, *message);
      return message;
    }
  }
  const MatchClass match_class = classify(receive.source, receive.mask);
  receive.match_class = static_cast<std::uint8_t>(match_class);
  receive.stamp = ++stamp_;
  if (session.only != nullptr) file_only(session);
  if (match_class != MatchClass::exact) [[unlikely]] {
    post_inexact(session, receive, match_class);
  } else if (session.posted == 0) {
    session.only = &receive;
  } else {
    exact_.push(receive);
  }
  receive.queued = true;
  ++session.posted;
  return nullptr;
}

void Matcher::file_only(MatchSession& session) {
  exact_.push(*session.only);
  session.only = nullptr;
}

void Matcher::post_inexact(MatchSession& session, PostedNode& receive, MatchClass match_class) {
  switch (match_class) {
    case MatchClass::exact:
      break;  // see post()
    case MatchClass::any_source:
      if (!session.indexes_any_source) index_any_source(session);
      any_source_.push(receive);
      ++session.posted_any_source;
      break;
    case MatchClass::any_tag:
      if (!session.indexes_any_tag) index_any_tag(session);
      any_tag_.push(receive);
      ++session.posted_any_tag;
      break;
    case MatchClass::any_any:
      append(session.any_any, receive);
      break;
    case MatchClass::masked:
      append(session.masked, receive);
      break;
  }
  ++session.posted_inexact;
}

PostedNode* Matcher::arrive(MatchSession& session, std::uint64_t tag, std::int32_t source) noexcept {
  if (session.posted == 0) return nullptr;
  if (PostedNode* only = session.only; only != nullptr) {
    if (only->tag != tag || only->source != source) return nullptr;
    forget_only(session);
    return only;
  }
  KeyedQueues<FiledExact>::Place place;
  MatchNode* exact = exact_.find({tag, session.id, source}, place);
  if (exact != nullptr && !exact->posted) exact = nullptr;
  if (session.posted_inexact != 0) return arrive_inexact(session, tag, source, exact);
  if (exact == nullptr) return nullptr;
  exact_.remove_first(*exact, place);
  exact->queued = false;
  --session.posted;
  return static_cast<PostedNode*>(exact);
}

/// The oldest of the exact receive that fits, if any, and those of the other classes.
PostedNode* Matcher::arrive_inexact(MatchSession& session, std::uint64_t tag, std::int32_t source,
                                    MatchNode* exact) noexcept {
  MatchNode* best = exact;
  const auto consider = [&](MatchNode* candidate) {
    if (candidate != nullptr && candidate->posted && (best == nullptr || candidate->stamp < best->stamp))
      best = candidate;
  };
  if (session.posted_any_source != 0) consider(any_source_.find({tag, session.id, rank_any}));
  if (session.posted_any_tag != 0) consider(any_tag_.find({0, session.id, source}));
  consider(session.any_any.first);
  for (MatchNode* node = session.masked.first; node != nullptr; node = node->links.next) {
    if (best != nullptr && node->stamp > best->stamp) break;
    const auto& receive = static_cast<PostedNode&>(*node);
    if (((tag ^ receive.tag) & receive.mask) == 0 && (receive.source == rank_any || receive.source == source)) {
      best = node;
      break;
    }
  }
  if (best == nullptr) return nullptr;
  auto& receive = static_cast<PostedNode&>(*best);
  cancel(session, receive);
  return &receive;
}

void Matcher::cancel(MatchSession& session, PostedNode& receive) noexcept {
  assert(receive.queued && receive.posted);
  if (session.only == &receive) {
    forget_only(session);
    return;
  }
  switch (static_cast<MatchClass>(receive.match_class)) {
    case MatchClass::exact:
      exact_.remove(receive);
      break;
    case MatchClass::any_source:
      any_source_.remove(receive);
      --session.posted_any_source;
      break;
    case MatchClass::any_tag:
      any_tag_.remove(receive);
      --session.posted_any_tag;
      break;
    case MatchClass::any_any:
      unlink(session.any_any, receive);
      break;
    case MatchClass::masked:
      unlink(session.masked, receive);
      break;
  }
  session.posted_inexact -= static_cast<MatchClass>(receive.match_class) != MatchClass::exact;
  receive.queued = false;
  --session.posted;
}

void Matcher::store(MatchSession& session, UnexpectedNode& message) {
  assert(!message.queued);
  message.session = session.id;
  message.posted = false;
  message.queued = true;
  message.stamp = ++stamp_;
  message.arrival_prev = session.last_arrival;
  message.arrival_next = nullptr;
  if (session.last_arrival != nullptr) {
    session.last_arrival->arrival_next = &message;
  } else {
    session.first_arrival = &message;
  }
  session.last_arrival = &message;
  exact_.push(message);
  if (session.indexes_any_source) any_source_.push(message);
  if (session.indexes_any_tag) any_tag_.push(message);
  ++session.unexpected;
}

void Matcher::take(MatchSession& session, UnexpectedNode& message) noexcept {
  assert(message.queued && !message.posted);
  UnexpectedNode* prev = message.arrival_prev;
  UnexpectedNode* next = message.arrival_next;
  (prev != nullptr ? prev->arrival_next : session.first_arrival) = next;
  (next != nullptr ? next->arrival_prev : session.last_arrival) = prev;
  exact_.remove(message);
  if (session.indexes_any_source) any_source_.remove(message);
  if (session.indexes_any_tag) any_tag_.remove(message);
  message.queued = false;
  --session.unexpected;
}

UnexpectedNode* Matcher::find(MatchSession& session, std::int32_t source, std::uint64_t tag, std::uint64_t mask) {
  MatchNode* node = nullptr;
  switch (classify(source, mask)) {
    case MatchClass::exact:
      node = exact_.find({tag, session.id, source});
      break;
    case MatchClass::any_source:
      if (!session.indexes_any_source) index_any_source(session);
      node = any_source_.find({tag, session.id, rank_any});
      break;
    case MatchClass::any_tag:
      if (!session.indexes_any_tag) index_any_tag(session);
      node = any_tag_.find({0, session.id, source});
      break;
    case MatchClass::any_any:
      node = session.first_arrival;
      break;
    case MatchClass::masked:
      for (UnexpectedNode* message = session.first_arrival; message != nullptr; message = message->arrival_next) {
        if (fits(*message, source, tag, mask)) return message;
      }
      break;
  }
  return node != nullptr && !node->posted ? static_cast<UnexpectedNode*>(node) : nullptr;
}

void Matcher::index_any_source(MatchSession& session) {
  session.indexes_any_source = true;
  for (UnexpectedNode* node = session.first_arrival; node != nullptr; node = node->arrival_next) {
    any_source_.push(*node);
  }
}

void Matcher::index_any_tag(MatchSession& session) {
  session.indexes_any_tag = true;
  for (UnexpectedNode* node = session.first_arrival; node != nullptr; node = node->arrival_next) {
    any_tag_.push(*node);
  }
}

}  // namespace canele::comm

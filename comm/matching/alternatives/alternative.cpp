// SPDX-License-Identifier: BSD-3-Clause
//
// The common part of all alternatives. An entry is found first and removed afterwards, so no structure needs to search
// and change in one step.
#include "comm/matching/alternative.hpp"

#include <cassert>

namespace canele::comm::matching {

UnexpectedNode* Alternative::post(MatchSession& session, PostedNode& receive) {
  receive.session = session.id;
  receive.posted = true;
  receive.match_class = static_cast<std::uint8_t>(classify(receive.source, receive.mask));
  UnexpectedNode* message = find_and_note(session, {receive.tag, receive.mask, session.id, receive.source});
  if (message != nullptr) {
    take(session, *message);
    return message;
  }
  receive.post_order = ++post_order_;
  append(session, receive);
  receive.queued = true;
  statistics_.posted.add(++session.posted);
  return nullptr;
}

PostedNode* Alternative::arrive(MatchSession& session, std::uint64_t tag, std::int32_t source) noexcept {
  if (session.posted == 0) {
    statistics_.note({}, false);
    return nullptr;
  }
  Tally cost;
  PostedNode* receive = search({tag, session.id, source}, cost);
  statistics_.note(cost, true);
  if (receive != nullptr) cancel(session, *receive);
  return receive;
}

PostedNode* Alternative::peek(const MatchSession& session, std::uint64_t tag, std::int32_t source) const noexcept {
  Tally not_noted;
  return session.posted == 0 ? nullptr : search({tag, session.id, source}, not_noted);
}

void Alternative::store(MatchSession& session, UnexpectedNode& message) {
  message.session = session.id;
  message.posted = false;
  message.post_order = ++post_order_;
  append(session, message);
  message.queued = true;
  statistics_.note({}, false);
  statistics_.unexpected.add(++session.unexpected);
}

UnexpectedNode* Alternative::find(MatchSession& session, std::int32_t source, std::uint64_t tag,
                                  std::uint64_t mask) noexcept {
  return find_and_note(session, {tag, mask, session.id, source});
}

UnexpectedNode* Alternative::find_and_note(MatchSession& session, const Wanted& wanted) noexcept {
  Tally cost;
  UnexpectedNode* message = session.unexpected != 0 ? search(session, wanted, cost) : nullptr;
  statistics_.note(cost, session.unexpected != 0);
  return message;
}

void Alternative::take(MatchSession& session, UnexpectedNode& message) noexcept {
  assert(message.queued && !message.posted);
  remove(session, message);
  message.queued = false;
  statistics_.unexpected.add(--session.unexpected);
}

void Alternative::cancel(MatchSession& session, PostedNode& receive) noexcept {
  assert(receive.queued && receive.posted);
  remove(session, receive);
  receive.queued = false;
  statistics_.posted.add(--session.posted);
}

bool Alternative::is_next(const PostedNode& receive) const noexcept {
  if (receive.match_class != static_cast<std::uint8_t>(MatchClass::exact)) return false;
  Tally ignored;
  return search({receive.tag, receive.session, receive.source}, ignored) == &receive;
}

}  // namespace canele::comm::matching

// SPDX-License-Identifier: BSD-3-Clause
//
// Flow control, the sender's half.
//
// A send that was advertised once goes by rendezvous for good: the receiver may know its handle.
#include "comm/protocol/credit_sender.hpp"

#include <algorithm>
#include <utility>

#include "comm/link/queue.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::credit_sender {
namespace {

std::uint64_t credit_cost_of(const Request& request) {
  return request.rendezvous ? wire::credit_cost_of_rts(request.header)
                            : wire::credit_cost_of_eager(request.data.length);
}

/// Takes the cost of the envelope off `credit`, and returns true. A message that is too expensive goes by rendezvous
/// if there is credit for that. Returns false if there is not.
inline bool pay(std::uint64_t& credit, Request& request) {
  if (credit_cost_of(request) > credit) {
    if (request.rendezvous || wire::credit_cost_of_rts(request.header) > credit) return false;
    CANELE_COVER(credit_too_short_for_eager);
    request.rendezvous = true;
  }
  credit -= credit_cost_of(request);
  return true;
}

void unlink(Context& context, BlockedSends& list, Request& request) {
  list.unlink(request);
  context.counters.sub(Counter::credit_blocked_now);
}

void report_blocked(Context& context, Peer& peer, bool is_blocked) CANELE_UNDER_LOCK {
  link::send_control(context, peer,
                     {.type = wire::Type::blocked, .tag = is_blocked ? 1u : 0u, .seq = peer.blocked_sends->episode});
}

/// Ends an episode, when no send is blocked any more: new messages use the credit that is left.
void reopen(Context& context, Peer& peer) CANELE_UNDER_LOCK {
  CANELE_COVER(no_send_is_blocked);
  BlockedSends& list = *peer.blocked_sends;
  peer.credit = std::exchange(list.credit, 0);
  list.solicit_id = list.answered = 0;
  list.solicitation_count = 0;
  list.cursors_turn = false;
  context.counters.add(Counter::credit_stalled_ns, context.platform.now_ns() - list.since_ns);
  report_blocked(context, peer, false);
  ++list.episode;
}

/// Adds a send to the batch. All of a short message goes as the header of its envelope, so that a receive that takes
/// the envelope has the message, too.
void advertise(BlockedSends& list, Request& request, bool probe) {
  list.batch[list.batch_size++] = {&request, probe};
  request.rendezvous = true;
  if (request.data.length <= CANELE_HEADER_MAX && request.role == Request::InternalRole::none)
    request.header = static_cast<decltype(request.header)>(request.data.length);
  transition(request, Request::Stage::advertising);
}

/// Adds the oldest sends that fit a solicitation to the batch, as many as are likely to be taken. Returns false if none
/// fit.
bool advertise_matches(BlockedSends& list, Solicitation& solicitation) {
  std::uint32_t left = solicitation.width;
  Request* request = list.first_match(solicitation);
  const bool any = request != nullptr;
  for (; request != nullptr && left > 0 && list.batch_size < BlockedSends::most_advertised; --left) {
    solicitation.advertised |= std::uint64_t{1} << list.batch_size;
    advertise(list, *request, solicitation.probe);
    request = list.next_match(solicitation, *request);
  }
  return any;
}

/// Fills a batch with the answers to as many solicitations as may share one, the oldest first. No message may fit two
/// of them: it could go to a receive that has to have an older one. The batch has the id of the last solicitation.
/// Returns how many of the oldest solicitations are complete.
int advertise_solicited(BlockedSends& list) {
  int complete = 0;
  for (int i = 0; i < list.solicitation_count && list.batch_size < BlockedSends::most_advertised; ++i) {
    Solicitation& solicitation = list.solicitations[i];
    const auto overlaps = [&](const Solicitation& one) { return one.advertised != 0 && one.overlaps(solicitation); };
    if (std::any_of(list.solicitations, list.solicitations + i, overlaps)) break;
    if (solicitation.everything() && complete < i) break;  // the cursor goes back when all older ones are complete
    if (solicitation.everything()) list.cursor = list.first;
    const bool fits = !solicitation.done && !solicitation.everything() && advertise_matches(list, solicitation);
    if (!fits && complete == i) ++complete;
    list.batch_solicit_id = solicitation.solicit_id;
  }
  return complete;
}

/// Ends the oldest `ended` solicitations. What their receives wait for has not been sent yet, and will be advertised
/// from the cursor.
void end_solicitations(Context& context, Peer& peer, int ended) CANELE_UNDER_LOCK {
  if (ended == 0) return;
  CANELE_COVER(solicitations_done);
  BlockedSends& list = *peer.blocked_sends;
  for (int i = 0; i < ended; ++i) {
    if (!list.solicitations[i].probe) list.solicit_id = list.solicitations[i].solicit_id;
  }
  list.solicitation_count -= ended;
  std::move(list.solicitations + ended, list.solicitations + ended + list.solicitation_count, list.solicitations);
  list.answered += static_cast<std::uint64_t>(ended);
  link::send_control(context, peer, {.type = wire::Type::solicit_done, .tag = list.answered, .seq = list.episode});
}

/// Adds the sends from the cursor on to the batch. They are advertised once, to receives that are older than the newest
/// solicitation that is complete. Receives of later solicitations are left out.
void advertise_from_cursor(BlockedSends& list) {
  list.batch_solicit_id = list.solicit_id;
  while (list.cursor != nullptr && list.batch_size < BlockedSends::most_advertised) {
    Request& request = *list.cursor;
    list.cursor = request.blocked_next;
    advertise(list, request, false);
  }
}

/// Advertises the next batch, if anything is solicited and nothing is advertised. Solicitations and the cursor take
/// turns.
void advertise_batch(Context& context, Peer& peer) CANELE_UNDER_LOCK {
  BlockedSends& list = *peer.blocked_sends;
  list.batch_size = 0;
  const bool has_cursor = list.cursor != nullptr && list.solicit_id != 0;
  if (!has_cursor || !std::exchange(list.cursors_turn, false)) {
    end_solicitations(context, peer, advertise_solicited(list));
    list.cursors_turn = list.batch_size != 0;
  }
  if (list.batch_size == 0 && list.solicit_id != 0) advertise_from_cursor(list);
  if (list.batch_size == 0) return;
  ++list.batch_number;
  list.advertised += static_cast<std::uint64_t>(list.batch_size);
  list.batch_out = true;
  CANELE_COVER(blocked_advertised);
  for (int i = 0; i < list.batch_size; ++i) link::join_backlog(context, peer, *list.batch[i].request);
}

/// Lets as many sends leave as credit allows. Then advertises the others, if the receiver has solicited them.
void advance(Context& context, Peer& peer) CANELE_UNDER_LOCK {
  BlockedSends& list = *peer.blocked_sends;
  if (list.batch_out || list.first == nullptr) return;
  while (list.first != nullptr && pay(list.credit, *list.first)) {
    Request& request = *list.first;
    unlink(context, list, request);
    transition(request, Request::Stage::posted);
    CANELE_COVER(blocked_sent_by_credit);
    link::join_backlog(context, peer, request);
  }
  if (list.first == nullptr) return reopen(context, peer);
  if (list.solicitation_count != 0 || list.cursor != nullptr) advertise_batch(context, peer);
}

/// Decides what each solicitation wants of the next batch, by which envelopes of the last one were taken.
void judge_solicitations(BlockedSends& list, std::uint64_t taken) {
  for (int i = 0; i < list.solicitation_count; ++i) {
    Solicitation& solicitation = list.solicitations[i];
    const std::uint64_t advertised = std::exchange(solicitation.advertised, 0);
    if (advertised == 0) continue;
    // An envelope that was not taken shows that the receives have what they want.
    solicitation.done = solicitation.probe || (advertised & ~taken) != 0;
    solicitation.width = std::min<std::uint32_t>(2 * solicitation.width, BlockedSends::most_advertised);
  }
}

}  // namespace

bool consume_credit(Context& context, Peer& peer, Request& request) {
  if (pay(peer.credit, request)) return true;
  if (peer.blocked_sends == nullptr) peer.blocked_sends = std::make_unique<BlockedSends>();
  BlockedSends& list = *peer.blocked_sends;
  CANELE_COVER(send_blocked);
  context.counters.add(Counter::credit_stalls);
  context.counters.add(Counter::credit_blocked_now);
  context.counters.raise_to(Counter::credit_blocked_most, Counter::credit_blocked_now);
  const bool was_empty = list.first == nullptr;
  list.append(request);
  context.credit.just_blocked = true;
  if (was_empty) {
    list.credit = std::exchange(peer.credit, 0);
    list.since_ns = context.platform.now_ns();
    report_blocked(context, peer, true);
  }
  if (list.solicit_id != 0 && list.cursor == nullptr) list.cursor = &request;
  advance(context, peer);
  return false;
}

Verdict on_credit(Context& context, Peer& peer, std::uint64_t total) {
  if (total < peer.credit_granted) return Verdict::violation("it grants less than before");
  const std::uint64_t more = total - std::exchange(peer.credit_granted, total);
  if (peer.blocked_sends == nullptr || peer.blocked_sends->first == nullptr) {
    peer.credit += more;
  } else {
    CANELE_COVER(credit_for_blocked);
    peer.blocked_sends->credit += more;
    advance(context, peer);
  }
  return Verdict::ok();
}

Verdict on_solicit(Context& context, Peer& peer, const wire::Head& head, std::span<const std::byte> payload) {
  if (head.tag == 0) return Verdict::violation("it solicits blocked messages without an id");
  Solicitation solicitation;
  solicitation.solicit_id = head.tag;
  if (!payload.empty()) {
    wire::Solicit wanted;
    Session* const session = peer.names.find(head.session);
    if (!wire::take(payload, wanted)) return Verdict::violation("a solicitation of blocked messages is too short");
    if (session == nullptr) return Verdict::violation("it solicits messages of a session that was not announced");
    if ((wanted.tag & ~wanted.mask) != 0) return Verdict::violation("it solicits a tag with bits outside of the mask");
    solicitation.session = session;
    solicitation.number = session->number;
    solicitation.tag = wanted.tag;
    solicitation.mask = wanted.mask;
    solicitation.probe = wanted.probe != 0;
  }
  BlockedSends* const list = peer.blocked_sends.get();
  if (list == nullptr || list->first == nullptr || list->episode != head.seq) return Verdict::ok();  // all have left
  const int asked = list->solicitation_count;
  if (asked == BlockedSends::most_solicitations)
    return Verdict::violation("it solicits more before it has its answers");
  if (solicitation.solicit_id < std::max(list->solicit_id, asked != 0 ? list->solicitations[asked - 1].solicit_id : 0))
    return Verdict::violation("it solicits with an older id than before");
  list->solicitations[list->solicitation_count++] = solicitation;
  advance(context, peer);
  return Verdict::ok();
}

Verdict on_blocked_reply(Context& context, Peer& peer, std::uint64_t mask, std::uint32_t batch) {
  BlockedSends* const list = peer.blocked_sends.get();
  if (list == nullptr || !list->batch_out || list->batch_number != batch)
    return Verdict::violation("it replies to blocked envelopes that were not sent");
  if (list->batch_size < 64 && mask >> list->batch_size != 0)
    return Verdict::violation("it takes more blocked envelopes than were sent");
  for (int i = 0; i < list->batch_size; ++i) {
    Request* const request = list->batch[i].request;
    if (request == nullptr) mask |= std::uint64_t{1} << i;
    if (request == nullptr) continue;  // its cts or fin was faster
    if (request->stage == Request::Stage::advertising)
      return Verdict::violation("it replies to a blocked envelope that it has not got");
    if ((mask >> i & 1) == 0) {
      transition(*request, Request::Stage::blocked);
      continue;
    }
    CANELE_COVER(blocked_envelope_taken);
    taken(context, peer, *request);
  }
  list->batch_out = false;
  list->batch_size = 0;
  judge_solicitations(*list, mask);
  advance(context, peer);
  return Verdict::ok();
}

wire::BlockedEnvelope describe(const Peer& peer, const Request& request) {
  const BlockedSends& list = *peer.blocked_sends;
  const int place = list.place_in_batch(request);
  wire::BlockedEnvelope blocked{};
  blocked.solicit_id = list.batch_solicit_id;
  blocked.probe = list.batch[place].probe;
  blocked.index = static_cast<std::uint8_t>(place);
  blocked.count = static_cast<std::uint8_t>(list.batch_size);
  return blocked;
}

void taken(Context& context, Peer& peer, Request& request) {
  BlockedSends& list = *peer.blocked_sends;
  if (const int place = list.place_in_batch(request); place < list.batch_size) list.batch[place].request = nullptr;
  unlink(context, list, request);
  transition(request, Request::Stage::moving);
  link::count_message(context, peer, request);
  if (list.first == nullptr) reopen(context, peer);
}

void drop(Context& context, Peer& peer) {
  if (peer.blocked_sends == nullptr) return;
  BlockedSends& list = *peer.blocked_sends;
  list.batch_out = false;
  list.batch_size = list.solicitation_count = 0;
  while (list.first != nullptr) {
    Request& request = *list.first;
    unlink(context, list, request);
    if (request.stage == Request::Stage::advertising) {  // the backlog, or its packet, ends it
      transition(request, Request::Stage::posted);
      continue;
    }
    if (request.handle != Handle::none) context.sends.remove(request.handle);
    CANELE_COVER(blocked_ended);
    context.finish(request, peer.error);
  }
}

}  // namespace canele::comm::credit_sender

// SPDX-License-Identifier: BSD-3-Clause
//
// Adverts: offers of posted receives, and shares of messages that have met theirs.
//
// An offered receive is in two tables: that of posted receives, and that of transfers.
#include "comm/rendezvous/receiver_initiated.hpp"

#include <algorithm>
#include <cstring>

#include "comm/link/queue.hpp"
#include "comm/protocol/send.hpp"
#include "comm/rendezvous/shared_copy.hpp"
#include "comm/state/payload.hpp"
#include "ltask/mark.hpp"

namespace canele::comm::advert {
namespace {

Adverts& adverts_of(Peer& peer) {
  if (peer.adverts == nullptr) peer.adverts = std::make_unique<Adverts>();
  return *peer.adverts;
}

/// Makes the memory of a receive writable by the peer. Returns false if that cannot be done, or takes too many words.
bool expose(Peer& peer, const Request& request, drivers::Exposure& exposure) {
  iovec pieces[2];
  std::size_t covered = 0;
  const int count = data::pieces(request.data, 0, request.data.length, pieces, 2, &covered);
  if (covered != request.data.length) return false;
  drivers::Driver& driver = *peer.rail->slot->driver;
  return driver.expose(peer.rank, drivers::Access::put, pieces, count, &exposure) == drivers::Status::ok &&
         exposure.size <= Adverts::exposure_room && exposure.handle == 0;
}

/// Returns whether either end can copy the data of a receive from this peer.
bool shares(const Context& context, const Peer& peer) {
  if (!context.pushes || peer.state != Peer::State::up || peer.bundle != nullptr || peer.rail->lines.count == 0) {
    return false;
  }
  const drivers::Capabilities& can = peer.rail->slot->driver->capabilities();
  return can.get && can.put && can.copies_anywhere;
}

/// Returns whether this end alone copies. It does so if all threads of the program want cores, and the copy takes less
/// than a scheduler's turn. The other end would wake up for it. A thread that copies for longer loses its turn
/// meanwhile, and so does a thread that waits for that copy.
bool copies_alone(const Context& context, std::uint64_t length) {
  constexpr std::uint64_t long_copy = 1 << 20;
  return context.shares_core() && length < long_copy;
}

int line_of(const Adverts& adverts, const Request* request) {
  for (int i = 0; i < Adverts::most; ++i) {
    if (adverts.mine[i].request == request) return i;
  }
  return -1;
}

/// Returns a line that no receive from this peer has, or -1.
int free_line(const Peer& peer) {
  const int line = peer.adverts != nullptr ? line_of(*peer.adverts, nullptr) : 0;
  return line < peer.rail->lines.count ? line : -1;
}

/// Counts the receives from this peer that have a line and their message. Their lines will be free again.
int moving(const Peer& peer) {
  const auto& mine = peer.adverts->mine;
  return static_cast<int>(std::count_if(mine.begin(), mine.end(), [](const Adverts::Mine& one) {
    return one.request != nullptr && one.request->stage == Request::Stage::moving;
  }));
}

/// Returns the send with this handle, if it is for that session and tag, and waits for an answer to its announcement.
Request* unanswered(Context& context, const Peer& peer, std::uint64_t handle, std::uint32_t session,
                    std::uint64_t tag) {
  Request* const request = handle != 0 ? context.sends.find(handle) : nullptr;
  const bool is_it = request != nullptr && request->rank == peer.rank && request->session->number == session &&
                     request->status_tag == tag && request->part == Request::Part::none &&
                     request->stage == Request::Stage::moving && request->expected == 0 && !request->copying &&
                     !request->withheld;
  return is_it ? request : nullptr;
}

/// What the sender of a receive is told.
struct Opened {
  wire::Rtr rtr;
  drivers::Exposure exposure;
};

/// Gives a receive a line, and a place among the transfers. Returns false if none is free, or its memory cannot be
/// exposed.
bool open(Context& context, Request& request, Peer& peer, Opened& opened) {
  const int line = free_line(peer);
  if (line < 0 || !expose(peer, request, opened.exposure)) return false;
  Adverts::Mine& mine = adverts_of(peer).mine[line];
  mine.request = &request;
  Claims(peer.rail->lines.ours[line], ++mine.generation).open();
  request.receive.peer = &peer;
  request.moved = request.expected = 0;  // from now on the peer may name the request
  request.handle = context.transfers.add(request);
  opened.rtr = {};
  opened.rtr.key = request.handle;
  opened.rtr.length = request.data.length;
  opened.rtr.generation = mine.generation;
  opened.rtr.line = static_cast<std::uint16_t>(line);
  opened.rtr.exposure = opened.exposure.size;
  return true;
}

void tell(Context& context, Peer& peer, wire::Type type, std::uint64_t tag, std::uint16_t session,
          const Opened& opened) {
  std::byte payload[sizeof opened.rtr + Adverts::exposure_room];
  std::memcpy(payload, &opened.rtr, sizeof opened.rtr);
  std::memcpy(payload + sizeof opened.rtr, opened.exposure.bytes, opened.exposure.size);
  link::control(context, peer, type, tag, 0, session, payload, sizeof opened.rtr + opened.exposure.size);
}

/// Shares a receive that has met its message. Returns true if both ends copy from now on.
bool share_now(Context& context, Request& request, Peer& peer, std::uint64_t handle,
               std::span<const std::byte> exposure) {
  Opened opened;
  if (!open(context, request, peer, opened)) return false;
  CANELE_MARK(announced_message_shared);
  Claims claims = claims_of(peer, request);
  claims.take();  // in the name of the sender, which may come too late to copy any chunk
  request.bulk_key = handle;
  tell(context, peer, wire::Type::share, handle, 0, opened);
  shared_copy::receive(context, request, peer, claims, exposure);
  return true;
}

/// Lets the receives that wait for a line go on, in their order, when one is free, or when none will ever be. Those of
/// a peer that is gone end like any pull.
void go_on(Context& context, Peer& peer) {
  Adverts& adverts = *peer.adverts;
  while (adverts.first_waiting != nullptr && (free_line(peer) >= 0 || !shares(context, peer))) {
    rendezvous::Pull& pull = *adverts.first_waiting;
    adverts.first_waiting = pull.next_free;
    const bool shared = shares(context, peer) &&
                        share_now(context, *pull.request, peer, pull.handle, {pull.exposure.bytes, pull.exposure.size});
    shared ? rendezvous::free_pull(context, pull) : rendezvous::pull_alone(pull);
  }
}

/// Reads an rtr; the exposure is left of `payload`. Returns false if the lengths are wrong.
bool take_rtr(std::span<const std::byte>& payload, wire::Rtr& rtr) {
  return wire::take(payload, rtr) && payload.size() == rtr.exposure && rtr.exposure <= Adverts::exposure_room &&
         rtr.exposure != 0 && rtr.length != 0;
}

Adverts::Theirs theirs_of(const wire::Rtr& rtr, std::uint64_t tag, std::uint32_t session,
                          std::span<const std::byte> exposure) {
  Adverts::Theirs offered{tag, rtr.key, rtr.length, session, rtr.generation, rtr.line, rtr.exposure, {}};
  std::copy(exposure.begin(), exposure.end(), offered.exposure.begin());
  return offered;
}

/// Starts the shared copy of an offered receive that is in no table of the matcher any more, when its message is
/// announced.
void bind(Context& context, Request& request, Peer& peer, std::uint64_t tag, const wire::Rts& rts,
          std::span<const std::byte> exposure) {
  context.counters.add(Counter::posted_matches);
  request.status_tag = tag;
  request.rank = peer.rank;
  request.status_length = rts.length;
  request.stage = Request::Stage::moving;
  request.bulk_key = rts.handle;
  request.expected = 0;
  shared_copy::receive(context, request, peer, claims_of(peer, request), exposure);
}

/// Takes an offer that crossed a message which is for it and no other. This end then copies, too. If the offer was
/// taken back, the receiver has the announcement already.
void take_late(Context& context, Peer& peer, Request& request, const Adverts::Theirs& offered) {
  Claims claims(peer.rail->lines.theirs[offered.line], offered.generation);
  if (!claims.take()) return;
  CANELE_RARE_MARK(offer_taken_by_message_under_way);
  shared_copy::send(context, request, peer, claims, offered);
}

}  // namespace

bool pays(const Context& context, const Peer& peer, const Request& request) {
  return request.data.length >= Adverts::shortest && rendezvous::kernel_copies(context, peer, request);
}

void offer(Context& context, Request& request, Peer& peer) {
  if (!shares(context, peer) || !pays(context, peer, request) || copies_alone(context, request.data.length)) return;
  if (!context.matcher.is_next(request.session->match, request.receive.node)) return;
  Opened opened;
  if (!open(context, request, peer, opened)) return;
  CANELE_MARK(receive_offered);
  opened.rtr.seen = peer.next_in;
  send_path::announce(context, peer, *request.session);
  tell(context, peer, wire::Type::rtr, request.receive.node.tag, static_cast<std::uint16_t>(request.session->wire),
       opened);
}

bool share(Context& context, Request& request, Peer& peer, std::uint64_t handle, std::span<const std::byte> exposure) {
  const std::uint64_t want = std::min<std::uint64_t>(request.status_length, request.data.length);
  if (want <= shared_copy::least_chunk || !shares(context, peer) || copies_alone(context, want)) return false;
  if (free_line(peer) >= 0) return share_now(context, request, peer, handle, exposure);
  if (moving(peer) < peer.rail->lines.count / 2) return false;  // offers have the lines, perhaps for long
  drivers::Exposure ours;
  if (!expose(peer, request, ours)) return false;  // the receive would wait in vain
  CANELE_RARE_MARK(share_waits_for_a_line);
  rendezvous::Pull& pull = rendezvous::new_pull(context, request, peer, exposure);
  pull.handle = handle;
  pull.want = want;
  pull.next_free = nullptr;
  Adverts& adverts = *peer.adverts;
  (adverts.first_waiting == nullptr ? adverts.first_waiting : adverts.last_waiting->next_free) = &pull;
  adverts.last_waiting = &pull;
  return true;
}

Claims claims_of(const Peer& peer, const Request& request) {
  const int line = peer.adverts != nullptr ? line_of(*peer.adverts, &request) : -1;
  if (line < 0) return {};
  return {peer.rail->lines.ours[line], peer.adverts->mine[line].generation};
}

bool withdraw(Context& context, Request& request) {
  if (!claims_of(*request.receive.peer, request).close()) {
    CANELE_RARE_MARK(offer_taken_before_withdrawn);
    return false;
  }
  CANELE_MARK(offer_withdrawn);
  forget(context, request);
  return true;
}

void forget(Context& context, Request& request) {
  claims_of(*request.receive.peer, request).revoke();  // a sender that was refused may live and go on
  Adverts& adverts = *request.receive.peer->adverts;
  adverts.mine[line_of(adverts, &request)].request = nullptr;
  context.transfers.remove(request.handle);
  request.handle = 0;
  if (adverts.first_waiting != nullptr) go_on(context, *request.receive.peer);
}

void forget_session(Context& context, const Session& session) {
  for (const auto& peer : context.active_peers) {
    if (peer->adverts == nullptr || peer->adverts->theirs.empty()) continue;
    const auto of_it = [&](const Adverts::Theirs& one) { return one.session == session.number; };
    if (std::erase_if(peer->adverts->theirs, of_it) != 0) send_path::set_inline_limit(context, *peer->rail);
  }
}

const char* on_rtr(Context& context, Peer& peer, const wire::Head& head, std::span<const std::byte> payload) {
  wire::Rtr rtr;
  if (!take_rtr(payload, rtr)) return "a ready to receive has wrong lengths";
  const Session* const named = peer.names.look_up(head.session);
  if (named == nullptr) return "a ready to receive names a session that was not announced";
  // The peer may share and we may not. And nothing is sent in a closed session.
  if (!shares(context, peer) || !named->open) return nullptr;
  if (rtr.line >= peer.rail->lines.count) return "a ready to receive names a line that is not there";
  const std::uint32_t session = named->number;
  std::vector<Adverts::Theirs>& theirs = adverts_of(peer).theirs;
  // Only the receive that is next is offered, so an older offer has been withdrawn.
  if (const auto older = adverts_of(peer).find(session, head.tag); older != theirs.end()) {
    CANELE_MARK(older_offer_replaced);
    theirs.erase(older);
  }
  const Adverts::Theirs offered = theirs_of(rtr, head.tag, session, payload);
  std::uint64_t handle = 0;
  switch (peer.recent.first(rtr.seen, peer.next_out, named->wire, head.tag, &handle)) {
    case RecentEnvelopes::Answer::none:
      if (theirs.size() == Adverts::most) break;
      CANELE_MARK(offer_kept);
      theirs.push_back(offered);
      break;
    case RecentEnvelopes::Answer::one:
      CANELE_MARK(offer_crossed_its_message);
      if (Request* const sent = unanswered(context, peer, handle, session, head.tag); sent != nullptr)
        take_late(context, peer, *sent, offered);
      break;
    case RecentEnvelopes::Answer::unknown:
      break;
  }
  send_path::set_inline_limit(context, *peer.rail);
  return nullptr;
}

const char* on_share(Context& context, Peer& peer, std::uint64_t handle, std::span<const std::byte> payload) {
  wire::Rtr rtr;
  if (!take_rtr(payload, rtr)) return "a share has wrong lengths";
  Request* const sent = context.sends.find(handle);
  if (sent == nullptr || sent->rank != peer.rank || !sent->rendezvous || !sent->announced() || sent->expected != 0) {
    return "a share names no send that waits for an answer";
  }
  if (!shares(context, peer)) return nullptr;  // then the receiver copies all
  if (rtr.line >= peer.rail->lines.count) return "a share names a line that is not there";
  const Claims claims(peer.rail->lines.theirs[rtr.line], rtr.generation);
  if (sent->copying || sent->withheld || sent->part != Request::Part::none || !claims.taken()) {
    CANELE_RARE_MARK(share_not_joined);
    return nullptr;
  }
  CANELE_MARK(share_joined);
  shared_copy::send(context, *sent, peer, claims, theirs_of(rtr, 0, 0, payload));
  return nullptr;
}

const char* on_bound(Context& context, Peer& peer, const Session& session, const wire::Head& head, const wire::Rts& rts,
                     std::span<const std::byte> exposure) {
  Request* request = context.transfers.find(rts.receive);
  if (request == nullptr || request->receive.peer != &peer || request->session != &session ||
      !request->receive.node.queued || request->receive.node.tag != head.tag) {
    return "a request to send names a receive that was not offered";
  }
  const Claims claims = claims_of(peer, *request);
  if (!claims || !claims.taken()) return "a request to send names a receive that it has not taken";
  context.matcher.cancel(request->session->match, request->receive.node);
  bind(context, *request, peer, head.tag, rts, exposure);
  return nullptr;
}

bool withdraw_or_bind(Context& context, Peer& peer, Request& request, const wire::Head& head, const wire::Rts& rts,
                      std::span<const std::byte> exposure) {
  if (withdraw(context, request)) return false;
  CANELE_RARE_MARK(announcement_of_taken_offer);
  bind(context, request, peer, head.tag, rts, exposure);
  return true;
}

}  // namespace canele::comm::advert

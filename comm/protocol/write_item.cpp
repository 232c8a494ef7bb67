// SPDX-License-Identifier: BSD-3-Clause
//
// Send, step 5: an item is written into the packet that has been planned. Called by link/transmit.cpp and
// link/sequencing.cpp, through the context.
#include <cstring>

#include "comm/protocol/one_sided_chunk.hpp"
#include "comm/protocol/one_sided_reply.hpp"
#include "comm/protocol/send.hpp"
#include "comm/state/payload.hpp"

namespace canele::comm::send_path {

using strategies::Item;

namespace {

[[gnu::noinline]] Written write_envelope(Context& context, Peer& peer, Item& item, std::byte* out,
                                         Packet* staged) CANELE_UNDER_LOCK;

std::byte* write_control(const Control& c, std::byte* out) {
  out = wire::put_head(out, c.head, c.payload_size);
  std::memcpy(out, c.payload, c.payload_size);
  return out + c.payload_size;
}

}  // namespace

Written write_item(Context& context, Peer& peer, Item& item, std::byte* out, Packet* staged) {
  if (item.kind == strategies::Kind::envelope) return write_envelope(context, peer, item, out, staged);
  if (item.kind == strategies::Kind::control) return {write_control(static_cast<Control&>(item), out)};
  Request& request = request_of(item);
  const bool answers = request.role == Request::InternalRole::one_sided_reply;
  return {answers ? one_sided::write_reply(context, request, out) : one_sided::write(context, request, out)};
}

namespace {

/// Looks for an remote_rtr receive of the peer for an envelope that is being written for (session, tag). Returns true
/// if the envelope is for it; the offer is then forgotten here.
bool consume(Context& context, Peer& peer, const Session& session, std::uint64_t tag, RtrTable::RemoteRtr* remote_rtr) {
  if (peer.rtr_table == nullptr) return false;
  std::vector<RtrTable::RemoteRtr>& theirs = peer.rtr_table->remote;
  const auto found = peer.rtr_table->find(session.number, tag);
  if (found == theirs.end()) return false;
  *remote_rtr = *found;
  theirs.erase(found);
  update_fast_limits(context, *peer.rail);
  return true;
}

/// Writes an envelope: an eager message, or the announcement of a large one. Out of line, because a control chunk needs
/// none of its registers.
[[gnu::noinline]] Written write_envelope(Context& context, Peer& peer, Item& item, std::byte* out, Packet* staged) {
  constexpr std::size_t copy_limit = 2048;  // shorter payloads cost a gathering driver less to copy than one more piece
  Request& request = request_of(item);
  const auto session = static_cast<std::uint16_t>(request.session->wire);
  if (request.stage == Request::Stage::advertising) {
    return {context.write_rts(
        peer, request, {{request.status_tag, 0, session, wire::Type::blocked_envelope, 0}, out, nullptr}, nullptr)};
  }
  const wire::Head head{request.status_tag, peer.next_out++, session, wire::Type::eager, 0};
  peer.recent.note(head.seq, head.session, head.tag);
  RtrTable::RemoteRtr remote_rtr;
  const bool has_rtr = consume(context, peer, *request.session, head.tag, &remote_rtr);
  if (request.rendezvous) {
    std::byte* const end = context.write_rts(peer, request, {head, out, staged}, has_rtr ? &remote_rtr : nullptr);
    peer.recent.announced(head.seq, request.handle);
    return {end};
  }
  const std::size_t length = request.data.length;
  if (request.synchronous) {
    if (request.handle == Handle::none) request.handle = context.sends.add(request);
    wire::Head sync = head;
    sync.type = wire::Type::eager_sync;
    out = wire::put_head(out, sync, length + sizeof request.handle);
    std::memcpy(out, &request.handle, sizeof request.handle);
    out += sizeof request.handle;
  } else {
    out = wire::put_head(out, head, length);
    if (staged != nullptr && length >= copy_limit && request.data.segments == nullptr) return {out, true};
  }
  return {out + data::gather(request.data, 0, length, out)};
}

}  // namespace

}  // namespace canele::comm::send_path

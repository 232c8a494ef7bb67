// SPDX-License-Identifier: BSD-3-Clause
//
// OfiDriver::poll() and its parts, top-down. See ofi_driver.hpp.
//
// The engine reads a packet where the provider has put it. Only a packet that arrives too early, or is deferred, is
// copied.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "drivers/net/bytes.hpp"
#include "drivers/ofi/ofi_driver.hpp"

namespace canele::drivers::ofi {
namespace {

constexpr int batch = 16;

/// Returns true if the error means that the peer, or the way to it, is gone, and not only this operation.
bool ends_connection(int error) {
  switch (error) {
    case FI_ECONNRESET:
    case FI_ECONNABORTED:
    case FI_ECONNREFUSED:
    case FI_ENOTCONN:
    case FI_ESHUTDOWN:
    case FI_ETIMEDOUT:
    case FI_EHOSTUNREACH:
    case FI_EHOSTDOWN:
    case FI_ENETDOWN:
    case FI_ENETUNREACH:
      return true;
    default:
      return false;
  }
}

}  // namespace

int OfiDriver::poll_impl(int budget) {
  reported_ = 0;
  if (!stalled_.empty()) present_stalled(&budget);
  read_completions(&budget);
  if (!handshaking_.empty()) push_handshakes();
  if (!rejections_.empty()) push_rejections();
  if (!stuck_.empty()) push_stuck();
  copies_->push();
  report_copies();
  if (!crediting_.empty()) give_credit();
  if (!owing_.empty()) pay_ready();
  if (!suspected_.empty()) check_suspects();
  if (keepalives_) check_keepalives();
  ask_launcher();
  if (!failing_.empty()) report_failures();
  return reported_;
}

void OfiDriver::read_completions(int* budget) {
  std::array<fi_cq_data_entry, batch> entries;
  while (*budget > 0) {
    const int most = std::min(batch, *budget);
    const auto count = ::fi_cq_read(endpoint_->cq(), entries.data(), static_cast<std::size_t>(most));
    if (count == -FI_EAVAIL) {
      read_error(budget);
      continue;
    }
    if (count == -FI_EAGAIN) break;
    if (count < 0) {
      broken("cannot read the completion queue: " + error_text(count));
      break;
    }
    for (std::int64_t i = 0; i < count; ++i) on_completion(entries[static_cast<std::size_t>(i)], budget);
    if (count < most) break;
  }
  const int error = receive_->post();
  if (error != 0) broken("cannot post receive buffers: " + error_text(error));
}

void OfiDriver::on_completion(const fi_cq_data_entry& entry, int* budget) {
  Op* const op = op_of(entry.op_context);
  if (op == nullptr) return;  // of an inject: some providers report those as well
  switch (op->kind) {
    case Op::Kind::send:
      return sent(static_cast<SendBuffer*>(op), 0);
    case Op::Kind::copy:
      return copies_->complete(*op, 0);
    case Op::Kind::receive:
      break;
  }
  auto& buffer = static_cast<ReceiveBuffer&>(*op);
  const std::byte* const begin = buffer.memory.get();
  const auto* const at = receive_->multi() ? static_cast<const std::byte*>(entry.buf) : begin;
  if ((entry.flags & FI_RECV) != 0) {
    // Some providers complete a message that was too long for its buffer, and report its full length.
    const bool inside = at >= begin && at <= begin + receive_->length() &&
                        entry.len <= receive_->length() - static_cast<std::size_t>(at - begin);
    arrived(inside ? std::span(at, entry.len) : std::span<const std::byte>(), budget);
  }
  if (!receive_->multi() || (entry.flags & FI_MULTI_RECV) != 0) receive_->released(buffer);
}

void OfiDriver::read_error(int* budget) {
  --*budget;
  fi_cq_err_entry entry = {};
  if (::fi_cq_readerr(endpoint_->cq(), &entry, 0) != 1) return;
  Op* const op = op_of(entry.op_context);
  if (op == nullptr) {
    context_->log(2, "ofi: libfabric reports an error that belongs to no operation: " + error_text(entry.err));
    return;
  }
  switch (op->kind) {
    case Op::Kind::send:
      return sent(static_cast<SendBuffer*>(op), entry.err);
    case Op::Kind::copy:
      return copies_->complete(*op, entry.err);
    case Op::Kind::receive:
      break;
  }
  // No rank sends a message that does not fit: an unauthenticated peer sent it, or a peer vanished half-way.
  ++dropped_;
  auto& buffer = static_cast<ReceiveBuffer&>(*op);
  if ((entry.flags & FI_MULTI_RECV) != 0) return receive_->released(buffer);
  if (!receive_->spoilt(buffer)) broken("too many receives ended in an error, the last one: " + error_text(entry.err));
}

/// Handles a message from any sender.
void OfiDriver::arrived(std::span<const std::byte> bytes, int* budget) {
  if (bytes.size() < head_size) {
    ++dropped_;
    return;
  }
  const Head head = read_head(bytes.data());
  if (is_handshake(head.kind)) return on_handshake(head, bytes);
  Link* const link = link_of(head.rank);
  const bool known = link != nullptr && (link->state == Link::State::up || link->state == Link::State::answering);
  if (!known || head.key != link->key_in) {
    ++dropped_;
    return;
  }
  if (link->state == Link::State::answering) {
    if (closing_) return;
    set_up(*link);  // only a peer that knows the secret has the key
  }
  const auto finished = static_cast<std::uint16_t>(head.finished - link->acked);
  if (finished <= link->unacknowledged()) link->acked = head.finished;  // otherwise older than what is known already
  on_message(*link, head, bytes.subspan(head_size), budget);
}

void OfiDriver::on_message(Link& link, const Head& head, std::span<const std::byte> body, int* budget) {
  switch (head.kind) {
    case Kind::credit:
      return;
    case Kind::broken:
      return fail(link, true, "it gave up the connection", false);
    case Kind::bye:
      link.ending = true;
      link.end_at = head.number;
      if (link.next_in == link.end_at) advance(link);
      return;
    case Kind::packet:
    case Kind::bulk:
      break;
    default:
      return fail(link, true, "a message of an unknown kind", true);
  }
  if (closing_) return;
  const auto ahead = static_cast<std::uint16_t>(head.number - link.next_in);
  if (ahead >= unacked_limit) return fail(link, true, "a message number beyond the unacked limit", true);
  if (ahead > 0 || link.is_stalled) return defer(link, head, body);
  if (!deliver(link, head.kind, body, budget)) {
    defer(link, head, body);
    if (!link.is_closed() && !std::exchange(link.is_stalled, true)) stalled_.push_back(&link);
    return;
  }
  if (link.is_closed()) return;
  ++link.next_in;
  advance(link);
  deliver_deferred(link, budget);
}

/// Keeps a message until its turn comes.
void OfiDriver::defer(Link& link, const Head& head, std::span<const std::byte> body) {
  if (!link.deferred) link.deferred = std::make_unique<std::array<DeferredMessage, unacked_limit>>();
  DeferredMessage& slot = (*link.deferred)[head.number % unacked_limit];
  if (slot.here) return fail(link, true, "two messages with the same number", true);
  slot.here = true;
  slot.kind = head.kind;
  slot.bytes.assign(body.begin(), body.end());
  ++link.deferred_count;
}

/// Delivers a message. Returns false if it is deferred.
bool OfiDriver::deliver(Link& link, Kind kind, std::span<const std::byte> body, int* budget) {
  if (kind == Kind::bulk) {
    --*budget;
    if (!write_bulk(link, body)) fail(link, true, "a bulk message without contents", true);
    return true;
  }
  if (body.empty()) {
    fail(link, true, "an empty packet", true);
    return true;
  }
  switch (context_->events->packet(link.rank, body)) {
    case Take::taken:
      break;
    case Take::retry:
      return false;
    case Take::rejected:
      link.silent = true;
      fail(link, true, "rejected by the engine", true);
      break;
  }
  --*budget;
  ++reported_;
  return true;
}

/// Moves the bytes of a bulk message where the engine says. Drops the rest of a transfer that no receive wants.
bool OfiDriver::write_bulk(Link& link, std::span<const std::byte> body) {
  if (body.size() <= bulk_head_size - head_size) return false;
  const std::uint64_t transfer_id = net::read_le64(body.data()), offset = net::read_le64(body.data() + 8);
  body = body.subspan(bulk_head_size - head_size);
  ++reported_;
  std::array<iovec, 64> pieces;
  for (std::uint64_t moved = 0; moved < body.size();) {
    const int count = context_->events->bulk_destination(link.rank, transfer_id, offset + moved, body.size() - moved,
                                                         pieces.data(), static_cast<int>(pieces.size()));
    if (count <= 0) break;
    std::uint64_t part = 0;
    for (int i = 0; i < count; ++i) {
      const iovec& piece = pieces[static_cast<std::size_t>(i)];
      assert(piece.iov_len <= body.size() - moved - part);
      std::memcpy(piece.iov_base, body.data() + moved + part, piece.iov_len);
      part += piece.iov_len;
    }
    assert(part > 0);
    context_->events->bulk_written(link.rank, transfer_id, offset + moved, part);
    moved += part;
  }
  return true;
}

/// Continues after next_in has moved, or the end is known.
void OfiDriver::advance(Link& link) {
  if (link.ending && link.next_in == link.end_at) {
    if (link.told != link.next_in) send_control(link, Kind::credit);  // the peer waits for it in close()
    return fail(link, true, "it closed the connection", false);
  }
  const bool due = static_cast<std::uint16_t>(link.next_in - link.told) >= credit_due;
  if (due && !std::exchange(link.owes_credit, true)) crediting_.push_back(&link);
}

void OfiDriver::deliver_deferred(Link& link, int* budget) {
  while (link.deferred_count > 0 && !link.is_closed()) {
    DeferredMessage& slot = (*link.deferred)[link.next_in % unacked_limit];
    if (!slot.here) return;
    if (*budget <= 0 || !deliver(link, slot.kind, slot.bytes, budget)) {
      if (!std::exchange(link.is_stalled, true)) stalled_.push_back(&link);
      return;
    }
    if (link.is_closed()) return;  // what was deferred is dropped
    slot.here = false;
    slot.bytes = {};
    --link.deferred_count;
    ++link.next_in;
    advance(link);
  }
}

void OfiDriver::present_stalled(int* budget) {
  for (Link* link : std::exchange(stalled_, {})) {
    link->is_stalled = false;
    if (!link->is_closed()) deliver_deferred(*link, budget);
  }
}

void OfiDriver::report_copies() {
  Copies::Finished one;
  while (copies_->next_finished(&one)) {
    Link& link = link_to(one.peer);
    if (ends_connection(one.error)) fail(link, true, "a copy failed: " + error_text(one.error), true);
    if (link.is_closed()) continue;  // its tokens count as returned
    ++reported_;
    context_->events->done(one.token, one.error == 0 ? Status::ok : Status::failed);
  }
}

/// Calls failed(), as soon as the provider does not touch the engine's memory any more.
void OfiDriver::report_failures() {
  for (Link* link : std::exchange(failing_, {})) {
    if (!copies_->idle(link->rank)) {
      failing_.push_back(link);
      continue;
    }
    link->state = Link::State::failed;
    ++reported_;
    if (!link->silent) context_->events->failed(link->rank, link->lost, link->why);
  }
}

/// Fails all peers: the endpoint cannot be used any more.
void OfiDriver::broken(const std::string& why) {
  for (const auto& link : links_) {
    if (link && link->state != Link::State::unknown) fail(*link, false, why, false);
  }
}

}  // namespace canele::drivers::ofi

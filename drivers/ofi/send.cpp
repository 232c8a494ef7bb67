// SPDX-License-Identifier: BSD-3-Clause
//
// OfiDriver: everything that is sent. See ofi_driver.hpp.
//
// A message that the provider does not take is a copy already, so it waits here and counts as sent. The order of one
// peer's messages is kept: while one waits, all later ones wait behind it.
//
//   send ──▶ inject (small) ─┐
//        └─▶ SendBuffer ─────┴─▶ provider         -FI_EAGAIN: Link::first_waiting ─▶ … ─▶ last_waiting, link in stuck_
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "drivers/net/bytes.hpp"
#include "drivers/ofi/address.hpp"
#include "drivers/ofi/ofi_driver.hpp"

namespace canele::drivers::ofi {
namespace {

constexpr std::size_t most_rejections = 16, most_unauthenticated = 64;

std::byte* append(std::byte* to, const void* from, std::size_t size) {
  if (size > 0) std::memcpy(to, from, size);
  return to + size;
}

}  // namespace

Status OfiDriver::send_inline_impl(Rank peer, const void* head, std::size_t head_bytes, const void* body,
                                   std::size_t body_bytes) {
  const iovec pieces[2] = {{const_cast<void*>(head), head_bytes}, {const_cast<void*>(body), body_bytes}};
  return send_message(peer, Kind::packet, {}, pieces, 2, head_bytes + body_bytes);
}

Status OfiDriver::send_packet_impl(Rank peer, const iovec* pieces, int count, std::size_t size, Token) {
  return send_message(peer, Kind::packet, {}, pieces, count, size);
}

Status OfiDriver::bulk_send_impl(Rank peer, std::uint64_t transfer_id, std::uint64_t offset, const iovec* pieces,
                                 int count, std::size_t size, Token) {
  if (size > capabilities_.max_bulk) return Status::failed;
  std::array<std::byte, bulk_head_size - head_size> prefix;
  net::write_le(prefix.data(), transfer_id, 8);
  net::write_le(prefix.data() + 8, offset, 8);
  return send_message(peer, Kind::bulk, prefix, pieces, count, size);
}

/// Answers full; ready() will follow.
Status OfiDriver::full(Link& link) {
  if (!std::exchange(link.owes_ready, true)) owing_.push_back(&link);
  return Status::full;
}

Status OfiDriver::send_message(Rank peer, Kind kind, std::span<const std::byte> prefix, const iovec* pieces, int count,
                               std::size_t size) {
  if (peer < 0 || static_cast<std::size_t>(peer) >= links_.size()) return Status::failed;
  Link& link = link_to(peer);
  if (link.state == Link::State::failed) return Status::failed;
  if (link.state != Link::State::up || !link.has_credit()) return full(link);
  const std::size_t total = head_size + prefix.size() + size;
  SendBuffer* buffer = nullptr;
  std::array<std::byte, 1024> line;
  const bool small = total <= inject_limit_ && !link.is_stuck;
  if (!small && (buffer = pool_->take()) == nullptr) return full(link);
  std::byte* const start = small ? line.data() : buffer->data;
  write_head(start, {link.key_out, context_->rank, kind, link.next_out, link.next_in});
  std::byte* to = append(start + head_size, prefix.data(), prefix.size());
  for (int i = 0; i < count; ++i) to = append(to, pieces[i].iov_base, pieces[i].iov_len);
  assert(static_cast<std::size_t>(to - start) == total);
  if (small) {
    int error = 0;
    if (!inject(link.to, {start, total}, &error)) {
      if (error != 0) {
        fail(link, true, "cannot send to it: " + error_text(error), false);
        return full(link);
      }
      if ((buffer = pool_->take()) == nullptr) return full(link);
      std::memcpy(buffer->data, start, total);
    }
  }
  link.told = link.next_in;
  ++link.next_out;
  if (buffer != nullptr) {
    buffer->size = static_cast<std::uint32_t>(total);
    transmit(link, buffer);
  }
  if (!link.is_suspected && (link.is_stuck || !link.has_credit())) suspect(link);
  return Status::ok;
}

/// Injects a message. True: it is sent, and the memory is free. False with *error 0: not now.
bool OfiDriver::inject(fi_addr_t to, std::span<const std::byte> message, int* error) {
  *error = 0;
  if (message.size() > inject_limit_) return false;
  const auto result = ::fi_inject(endpoint_->ep(), message.data(), message.size(), to);
  if (result != 0 && result != -FI_EAGAIN) *error = static_cast<int>(-result);
  return result == 0;
}

/// Submits a buffer. True: the provider has it, and a completion will follow. False with *error 0: not now.
bool OfiDriver::submit(SendBuffer* buffer, int* error) {
  const auto result =
      ::fi_send(endpoint_->ep(), buffer->data, buffer->size, buffer->descriptor, buffer->to, static_cast<Op*>(buffer));
  *error = result != 0 && result != -FI_EAGAIN ? static_cast<int>(-result) : 0;
  return result == 0;
}

void OfiDriver::transmit(Link& link, SendBuffer* buffer) {
  buffer->peer = link.rank;
  buffer->to = link.to;
  buffer->next = nullptr;
  int error = 0;
  if (!link.is_stuck && submit(buffer, &error)) return;
  if (error != 0) {
    pool_->give_back(buffer);
    return fail(link, link.state == Link::State::up, "cannot send to it: " + error_text(error), false);
  }
  (link.last_waiting != nullptr ? link.last_waiting->next : link.first_waiting) = buffer;
  link.last_waiting = buffer;
  if (!std::exchange(link.is_stuck, true)) stuck_.push_back(&link);
  suspect(link);
}

/// Sends a message that consists of a head only. Returns false if there is no buffer for it.
bool OfiDriver::send_control(Link& link, Kind kind) {
  std::array<std::byte, head_size> line;
  write_head(line.data(), {link.key_out, context_->rank, kind, link.next_out, link.next_in});
  int error = 0;
  // A bye must have left before the endpoint closes: only a completion confirms that.
  bool injected = kind != Kind::bye && !link.is_stuck && inject(link.to, line, &error);
  if (error != 0) {
    fail(link, true, "cannot send to it: " + error_text(error), false);
    return true;
  }
  if (!injected) {
    SendBuffer* const buffer = pool_->take();
    if (buffer == nullptr) return false;
    std::copy(line.begin(), line.end(), buffer->data);
    buffer->size = head_size;
    transmit(link, buffer);
  }
  link.told = link.next_in;
  return true;
}

void OfiDriver::send_handshake(Link& link) {
  SendBuffer* const buffer = pool_->take();
  if (buffer == nullptr) {
    if (!std::exchange(link.is_handshaking, true)) handshaking_.push_back(&link);
    return;
  }
  std::copy(link.handshake.begin(), link.handshake.end(), buffer->data);
  buffer->size = static_cast<std::uint32_t>(link.handshake.size());
  link.handshake.clear();
  transmit(link, buffer);
}

void OfiDriver::push_handshakes() {
  for (Link* link : std::exchange(handshaking_, {})) {
    link->is_handshaking = false;
    if (!link->is_closed() && !link->handshake.empty()) send_handshake(*link);
  }
}

/// Rejects an unauthenticated peer. It costs an entry of the address vector; the 65th peer gets no answer.
void OfiDriver::reject_unauthenticated(const Hello& hello, Rejection why) {
  ++dropped_;
  if (!is_sane_name(hello.name, endpoint_->info().addr_format, endpoint_->name())) return;
  auto known = unauthenticated_.find(hello.name);
  if (known == unauthenticated_.end()) {
    if (unauthenticated_.size() == most_unauthenticated) return;
    context_->log(2, std::string("ofi: rejected an unauthenticated peer: ") + text_of(why));
    known = unauthenticated_.emplace(hello.name, endpoint_->add(hello.name)).first;
  }
  if (known->second == FI_ADDR_UNSPEC) return;
  if (rejections_.size() == most_rejections) {  // the oldest one cannot be delivered
    pool_->give_back(rejections_.front());
    rejections_.pop_front();
  }
  queue_rejection(known->second, hello, why);
}

/// Rejects a rank of the job.
void OfiDriver::reject_peer(Link& link, const Hello& hello, Rejection why) {
  if (link.to == FI_ADDR_UNSPEC) return reject_unauthenticated(hello, why);
  queue_rejection(link.to, hello, why);
}

void OfiDriver::queue_rejection(fi_addr_t to, const Hello& hello, Rejection why) {
  SendBuffer* const buffer = pool_->take();
  if (buffer == nullptr) return;
  const auto message = make_rejection(hello.nonce, why, secret_);
  std::copy(message.begin(), message.end(), buffer->data);
  buffer->size = static_cast<std::uint32_t>(message.size());
  buffer->peer = -1;
  buffer->to = to;
  rejections_.push_back(buffer);
}

void OfiDriver::push_rejections() {
  for (std::size_t i = rejections_.size(); i > 0; --i) {
    SendBuffer* const buffer = rejections_.front();
    rejections_.pop_front();
    int error = 0;
    if (submit(buffer, &error)) continue;
    if (error != 0) {
      pool_->give_back(buffer);
    } else {
      rejections_.push_back(buffer);
    }
  }
}

/// Submits again what the provider did not take.
void OfiDriver::push_stuck() {
  for (Link* link : std::exchange(stuck_, {})) {
    int error = 0;
    while (link->first_waiting != nullptr && error == 0 && link->state != Link::State::failed) {
      SendBuffer* const buffer = link->first_waiting;
      SendBuffer* const next = buffer->next;  // the provider may complete the buffer at once
      if (!submit(buffer, &error)) break;
      link->first_waiting = next;
    }
    if (error != 0) fail(*link, link->state == Link::State::up, "cannot send to it: " + error_text(error), false);
    if (error != 0 || link->state == Link::State::failed) forget_waiting(*link);
    if (link->first_waiting == nullptr) {
      link->last_waiting = nullptr;
      link->is_stuck = false;
    } else {
      stuck_.push_back(link);
    }
  }
}

/// Tells senders how much this end has processed, where no message to them has carried it.
void OfiDriver::give_credit() {
  for (Link* link : std::exchange(crediting_, {})) {
    const bool due = static_cast<std::uint16_t>(link->next_in - link->told) >= credit_due || link->confirm_due;
    if (link->state == Link::State::up && due && !send_control(*link, Kind::credit)) {
      crediting_.push_back(link);
      continue;
    }
    link->owes_credit = link->confirm_due = false;
  }
}

void OfiDriver::pay_ready() {
  for (Link* link : std::exchange(owing_, {})) {
    const bool room = link->state == Link::State::up && link->has_credit() && pool_->available() &&
                      (!link->wants_copy || copies_->has_room());
    if (!room && !link->is_closed()) {
      owing_.push_back(link);
      continue;
    }
    link->owes_ready = link->wants_copy = false;
    if (link->is_closed()) continue;
    ++reported_;
    context_->events->ready(link->rank);
  }
}

/// Handles the completion of a send: the provider no longer uses the buffer.
void OfiDriver::sent(SendBuffer* buffer, int error) {
  Link* const link = link_of(buffer->peer);
  pool_->give_back(buffer);
  if (error == 0 || link == nullptr) return;
  const bool up = link->state == Link::State::up;
  fail(*link, up, std::string(up ? "cannot send to it: " : "cannot connect to it: ") + error_text(error), false);
}

}  // namespace canele::drivers::ofi

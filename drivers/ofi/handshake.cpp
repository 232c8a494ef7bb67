// SPDX-License-Identifier: BSD-3-Clause
//
// OfiDriver: the handshake. See ofi_driver.hpp.
//
//   initiator                              acceptor
//      │ ── Hello {nonce, name, proof} ──────▶ │   not proven: a Rejection, and nothing is kept of it
//      │ ◀──── Challenge {both nonces, proof} ─ │   both now know the two keys
//      │ ── any message with the key ─────────▶ │   proves the initiator; if there is nothing to send, a credit
//
// If two ranks send a Hello at once, the Hello of the lower rank counts. The lower rank drops the other's Hello, and
// the higher rank forgets its own. So no answer is ever sent to the higher rank's Hello, and there is one pair of keys.
//
// Why nothing is lost: the lower rank may have answered a Hello, and then sends none. Or it has sent its own, which the
// higher rank answers in any state but `up` and `failed`.
//
// Rejected: a time limit for the peer's answer. A rank that computes for minutes does not answer, and is alive.
#include <utility>

#include "drivers/net/bytes.hpp"
#include "drivers/ofi/address.hpp"
#include "drivers/ofi/ofi_driver.hpp"

namespace canele::drivers::ofi {

void OfiDriver::on_handshake(const Head& head, std::span<const std::byte> bytes) {
  if (closing_) return;
  if (head.kind == Kind::hello) return on_hello(bytes);
  if (head.kind == Kind::challenge) {
    Link* const link = link_of(head.rank);
    if (link != nullptr && link->state == Link::State::hello_sent) return on_challenge(*link, bytes);
  } else if (head.kind == Kind::rejection) {
    // A rejection proves no sender. The nonce identifies the Hello that it answers.
    for (const auto& link : links_) {
      if (link && link->state == Link::State::hello_sent) on_rejection(*link, bytes);
    }
    return;
  }
  ++dropped_;
}

void OfiDriver::on_hello(std::span<const std::byte> bytes) {
  Hello hello;
  switch (read_hello(bytes, secret_, &hello)) {
    case HelloIs::garbage:
      ++dropped_;
      return;
    case HelloIs::other_version:
      return reject_unauthenticated(hello, Rejection::wrong_version);
    case HelloIs::unproven:
      return reject_unauthenticated(hello, Rejection::wrong_secret);
    case HelloIs::proven:
      break;
  }
  if (hello.job != context_->job) return reject_unauthenticated(hello, Rejection::wrong_job);
  if (hello.peer != context_->rank || hello.rank >= context_->size || hello.rank == context_->rank) {
    return reject_unauthenticated(hello, Rejection::wrong_rank);
  }
  Link& link = link_to(hello.rank);
  if (link.incarnation != 0 && link.incarnation != hello.incarnation) {
    return reject_unauthenticated(hello, Rejection::wrong_rank);
  }
  switch (link.state) {
    case Link::State::failing:
    case Link::State::failed:
      return reject_peer(link, hello, Rejection::gave_up);
    case Link::State::up:
      if (link.nonce != hello.nonce) reject_peer(link, hello, Rejection::connected);
      return;
    case Link::State::answering:
      if (link.nonce != hello.nonce) answer(link, hello, bytes);
      return;
    case Link::State::hello_sent:
      if (context_->rank > hello.rank) answer(link, hello, bytes);
      return;
    case Link::State::unknown:
      return answer(link, hello, bytes);
  }
}

void OfiDriver::answer(Link& link, const Hello& hello, std::span<const std::byte> bytes) {
  if (!is_sane_name(hello.name, endpoint_->info().addr_format, endpoint_->name())) return;
  if (link.to == FI_ADDR_UNSPEC) {
    link.to = endpoint_->add(hello.name);
    link.name = hello.name;
    link.port = hello.port;
  }
  if (link.to == FI_ADDR_UNSPEC) return;
  link.state = Link::State::answering;
  link.nonce = hello.nonce;
  link.incarnation = hello.incarnation;
  link.hello.clear();
  Nonce nonce;
  net::write_le(nonce.data(), context_->random(), 8);
  net::write_le(nonce.data() + 8, context_->random(), 8);
  Keys keys;
  link.handshake = make_challenge(bytes, context_->rank, context_->incarnation, nonce, secret_, &keys);
  link.key_in = keys.to_acceptor;
  link.key_out = keys.to_initiator;
  send_handshake(link);
}

void OfiDriver::on_challenge(Link& link, std::span<const std::byte> bytes) {
  std::uint64_t incarnation = 0;
  Keys keys;
  if (!read_challenge(bytes, link.hello, secret_, &incarnation, &keys)) {
    ++dropped_;  // if it came from the peer with another secret, a Rejection will say so
    return;
  }
  if (incarnation != link.incarnation) return fail(link, false, "another process answers at its address", false);
  link.key_in = keys.to_initiator;
  link.key_out = keys.to_acceptor;
  link.confirm_due = true;
  if (!std::exchange(link.owes_credit, true)) crediting_.push_back(&link);
  set_up(link);
}

void OfiDriver::on_rejection(Link& link, std::span<const std::byte> bytes) {
  std::string why;
  if (read_rejection(bytes, link.nonce, secret_, &why)) {
    fail(link, false, "the peer rejected the connection: " + why, false);
  }
}

void OfiDriver::set_up(Link& link) {
  link.state = Link::State::up;
  link.hello = {};
  met(link.rank, link.incarnation);
  if (keepalives_) keepalives_->connect(link.rank, link.name, link.port, true);
  ++reported_;
  context_->events->connected(link.rank);
}

}  // namespace canele::drivers::ofi

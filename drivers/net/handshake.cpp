// SPDX-License-Identifier: BSD-3-Clause
//
// The handshake's frames and states. See handshake.hpp; the frames to the byte:
//
//   Hello, 32 bytes (its layout never changes, so that any two versions can tell each other theirs)
//      0 u32 magic "CNLE"   4 u16 version   6 u16 kind (1 initiator, 2 acceptor)   8 u64 zero   16 nonce, 16 bytes
//   Identity or Rejection, 184 bytes
//      0 u32 magic   4 u16 kind (3 identity, 4 rejection)   6 u16 rejection code   8 i32 rank   12 i32 peer   16 u64
//      job
//     24 u64 incarnation   32 driver, 8 chars   40 u32 payload size   44 u32 zero   48 payload, 128 bytes
//    176 u64 proof
//
// All numbers are little-endian by construction (bytes are shifted, never cast).
#include "drivers/net/handshake.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "drivers/net/bytes.hpp"
#include "drivers/net/siphash.hpp"
#include "drivers/net/socket.hpp"

namespace canele::drivers::net {
namespace {

constexpr std::uint32_t magic = 0x454c4e43;  // "CNLE"
constexpr std::uint16_t kind_initiator = 1, kind_acceptor = 2, kind_identity = 3, kind_rejection = 4;
constexpr std::size_t proof_offset = 176;

const char* text_of(Rejection why) {
  switch (why) {
    case Rejection::none:
      return "nothing";
    case Rejection::wrong_secret:
      return "the job's secret differs: the peer belongs to another job";
    case Rejection::wrong_job:
      return "it belongs to another job";
    case Rejection::wrong_rank:
      return "the ranks differ from the expected ones: a stale address?";
    case Rejection::wrong_driver:
      return "the two ends use different drivers";
    case Rejection::already_connected:
      return "there is a connection between the two ranks already";
    case Rejection::peer_failed:
      return "the connection between the two ranks failed before";
    case Rejection::no_resources:
      return "no memory or descriptors left";
    case Rejection::count:
      break;
  }
  return "an unknown reason";
}

}  // namespace

Party::Party(const DriverContext& context, std::string_view driver_name)
    : rank(context.rank), size(context.size), job(context.job), incarnation(context.incarnation) {
  assert(driver_name.size() <= driver.size());
  std::copy(driver_name.begin(), driver_name.end(), driver.begin());
  // A missing secret is all zeros: ranks without one still agree, and a test without one needs no set-up.
  std::copy_n(context.secret.begin(), std::min(context.secret.size(), secret.size()), secret.begin());
}

Handshake::Handshake(const Party& self, DriverContext& context, bool initiator) : self_(&self), initiator_(initiator) {
  write_le(nonce_.data(), context.random(), 8);
  write_le(nonce_.data() + 8, context.random(), 8);
}

Handshake Handshake::initiator(const Party& self, DriverContext& context, Rank peer, std::uint64_t incarnation,
                               std::span<const std::byte> payload) {
  assert(payload.size() <= max_payload);
  Handshake made(self, context, true);
  made.peer_ = peer;
  made.peer_incarnation_ = incarnation;
  made.own_payload_size_ = payload.size();
  std::copy(payload.begin(), payload.end(), made.own_payload_.begin());
  made.queue_hello();
  return made;
}

Handshake Handshake::acceptor(const Party& self, DriverContext& context) { return Handshake(self, context, false); }

Handshake::State Handshake::step(int fd) {
  // Each turn moves a frame; a handshake has four.
  for (int turn = 0; turn < 8 && state_ == State::working; ++turn) {
    const bool wrote = wants_write() && write_some(fd);
    const bool read = state_ == State::working && wanted() > 0 && read_some(fd);
    if (!wrote && !read) break;
  }
  return state_;
}

bool Handshake::write_some(int fd) {
  const ssize_t n = ::send(fd, out_.data() + out_sent_, out_size_ - out_sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n > 0) {
    sent(static_cast<std::size_t>(n));
    return true;
  }
  if (errno != EAGAIN && errno != EINTR) ended(errno);
  return false;
}

bool Handshake::read_some(int fd) {
  const ssize_t n = ::recv(fd, in_.data() + in_got_, in_want_ - in_got_, MSG_DONTWAIT);
  if (n > 0) {
    in_got_ += static_cast<std::size_t>(n);
    advance();
    return true;
  }
  if (n == 0) {
    ended(0);
  } else if (errno != EAGAIN && errno != EINTR) {
    ended(errno);
  }
  return false;
}

void Handshake::feed(std::span<const std::byte> bytes) {
  assert(bytes.size() <= wanted());
  std::copy(bytes.begin(), bytes.end(), in_.begin() + static_cast<std::ptrdiff_t>(in_got_));
  in_got_ += bytes.size();
  advance();
}

void Handshake::sent(std::size_t bytes) {
  out_sent_ += bytes;
  assert(out_sent_ <= out_size_);
  advance();
}

void Handshake::ended(int error) {
  if (state_ == State::failed || state_ == State::done) return;
  if (doomed_) {
    state_ = State::failed;
    return;
  }
  fail("the connection ended during the handshake" + (error == 0 ? std::string() : ": " + error_text(error)));
  may_retry_ = initiator_;
}

/// Continues after bytes were read or written: handles a complete frame, and detects the end of the handshake.
void Handshake::advance() {
  if (state_ != State::working) return;
  if (in_got_ == in_want_ && await_ != Await::nothing && !doomed_) {
    in_got_ = 0;
    if (await_ == Await::hello) {
      got_hello();
    } else {
      got_identity();
    }
  }
  if (state_ != State::working || wants_write()) return;
  if (doomed_) {
    state_ = State::failed;
  } else if (await_ == Await::nothing) {
    state_ = State::done;
  }
}

void Handshake::got_hello() {
  const std::byte* frame = in_.data();
  const std::uint16_t version = read_le16(frame + 4);
  if (read_le32(frame) != magic || read_le16(frame + 6) != (initiator_ ? kind_acceptor : kind_initiator)) {
    return fail("the first bytes are not those of a Canelé connection");
  }
  std::copy_n(in_.begin(), hello_size, hellos_.begin() + (initiator_ ? hello_size : 0));
  if (!initiator_) queue_hello();
  if (version != self_->version) {
    reason_ = "wire versions differ: this rank has version " + std::to_string(self_->version) +
              ", the peer has version " + std::to_string(version) + "; use one version of Canelé in all ranks";
    doomed_ = true;
    return;
  }
  await_ = Await::identity;
  in_want_ = identity_size;
  if (initiator_) queue_identity(kind_identity, Rejection::none);
}

void Handshake::got_identity() {
  const std::byte* frame = in_.data();
  const std::uint16_t kind = read_le16(frame + 4);
  if (read_le32(frame) != magic || (kind != kind_identity && !(initiator_ && kind == kind_rejection))) {
    return fail("a malformed frame in the handshake");
  }
  if (kind == kind_rejection) return got_rejection(frame);
  const Rejection wrong = check_identity(frame);
  if (wrong != Rejection::none) {
    if (initiator_) return fail(std::string("the peer is not the one expected: ") + text_of(wrong));
    return reject(wrong);
  }
  peer_ = static_cast<Rank>(read_le32(frame + 8));
  peer_incarnation_ = read_le64(frame + 24);
  peer_payload_size_ = read_le32(frame + 40);
  std::copy_n(frame + 48, max_payload, peer_payload_.begin());
  await_ = Await::nothing;
  if (!initiator_) state_ = State::identified;
}

/// Checks which rank the peer is. The proof comes first: without a valid proof, the other fields of the frame mean
/// nothing.
Rejection Handshake::check_identity(const std::byte* frame) {
  if (read_le64(frame + proof_offset) != proof(!initiator_, frame)) return Rejection::wrong_secret;
  if (read_le64(frame + 16) != self_->job) return Rejection::wrong_job;
  const auto rank = static_cast<Rank>(read_le32(frame + 8));
  const auto meant = static_cast<Rank>(read_le32(frame + 12));
  if (meant != self_->rank || rank < 0 || rank >= self_->size || rank == self_->rank) return Rejection::wrong_rank;
  if (initiator_ && rank != peer_) return Rejection::wrong_rank;
  if (initiator_ && peer_incarnation_ != 0 && read_le64(frame + 24) != peer_incarnation_) return Rejection::wrong_rank;
  if (std::memcmp(frame + 32, self_->driver.data(), self_->driver.size()) != 0) return Rejection::wrong_driver;
  return read_le32(frame + 40) <= max_payload ? Rejection::none : Rejection::wrong_driver;
}

void Handshake::got_rejection(const std::byte* frame) {
  const std::uint16_t code = read_le16(frame + 6);
  const auto why =
      code < static_cast<std::uint16_t>(Rejection::count) ? static_cast<Rejection>(code) : Rejection::count;
  // A peer with another secret cannot prove its rejection; that rejection changes only the text of the reason.
  if (why != Rejection::wrong_secret && read_le64(frame + proof_offset) != proof(false, frame)) {
    return fail("a rejection without proof in the handshake");
  }
  fail(std::string("the peer rejected the connection: ") + text_of(why));
}

void Handshake::accept(std::span<const std::byte> payload) {
  assert(state_ == State::identified && payload.size() <= max_payload);
  own_payload_size_ = payload.size();
  std::copy(payload.begin(), payload.end(), own_payload_.begin());
  queue_identity(kind_identity, Rejection::none);
  state_ = State::working;
}

void Handshake::reject(Rejection why) {
  assert(!initiator_ && why != Rejection::none);
  queue_identity(kind_rejection, why);
  reason_ = std::string("rejected: ") + text_of(why);
  doomed_ = true;
  await_ = Await::nothing;
  state_ = State::working;
}

void Handshake::queue_hello() {
  assert(out_size_ == 0);
  std::byte* frame = out_.data();
  write_le(frame, magic, 4);
  write_le(frame + 4, self_->version, 2);
  write_le(frame + 6, initiator_ ? kind_initiator : kind_acceptor, 2);
  write_le(frame + 8, 0, 8);
  std::copy(nonce_.begin(), nonce_.end(), frame + 16);
  std::copy_n(frame, hello_size, hellos_.begin() + (initiator_ ? 0 : hello_size));
  out_size_ = hello_size;
}

void Handshake::queue_identity(std::uint16_t kind, Rejection why) {
  assert(out_size_ == hello_size);
  std::byte* frame = out_.data() + out_size_;
  std::fill_n(frame, identity_size, std::byte{0});
  write_le(frame, magic, 4);
  write_le(frame + 4, kind, 2);
  write_le(frame + 6, static_cast<std::uint16_t>(why), 2);
  if (kind == kind_identity) {
    write_le(frame + 8, static_cast<std::uint32_t>(self_->rank), 4);
    write_le(frame + 12, static_cast<std::uint32_t>(peer_), 4);
    write_le(frame + 16, self_->job, 8);
    write_le(frame + 24, self_->incarnation, 8);
    std::memcpy(frame + 32, self_->driver.data(), self_->driver.size());
    write_le(frame + 40, own_payload_size_, 4);
    std::copy_n(own_payload_.begin(), own_payload_size_, frame + 48);
  }
  // A peer without the secret gets no signature.
  if (why != Rejection::wrong_secret) write_le(frame + proof_offset, proof(initiator_, frame), 8);
  out_size_ += identity_size;
}

std::uint64_t Handshake::proof(bool by_initiator, const std::byte* frame) const {
  static constexpr char directions[2][17] = {"canele acceptor ", "canele initiator"};
  std::array<std::byte, 16 + 2 * hello_size + proof_offset> text;
  std::memcpy(text.data(), directions[by_initiator ? 1 : 0], 16);
  std::copy(hellos_.begin(), hellos_.end(), text.begin() + 16);
  std::copy_n(frame, proof_offset, text.begin() + 16 + 2 * hello_size);
  return siphash24(self_->secret, text);
}

void Handshake::fail(std::string reason) {
  reason_ = std::move(reason);
  state_ = State::failed;
}

}  // namespace canele::drivers::net

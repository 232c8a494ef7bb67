// SPDX-License-Identifier: BSD-3-Clause
//
// Handshake: two ranks of one job prove to each other, over a fresh stream socket, that they know the job's secret.
//
// Used by drivers that connect by sockets (tcp; shm over AF_UNIX). One thread at a time uses an object.
//
//   initiator                                   acceptor
//      │ ── Hello {magic, version, nonce} ────────▶ │   bad magic: closed without an answer
//      │ ◀──────── Hello {magic, version, nonce} ── │   versions differ: both sides name both versions
//      │ ── Identity {rank, job …, payload, proof} ▶ │   state() == identified: the driver calls accept() or reject()
//      │ ◀── Identity {payload, proof} or Rejection │   done on both sides; either may send at once
//
// The handshake reads exactly its own bytes, never one more. What the peer sends next (data, descriptors by SCM_RIGHTS)
// is therefore untouched. An unauthenticated peer that connects learns the wire version and a random number, nothing
// else.
//
// proof = SipHash-2-4(secret, direction ‖ both Hellos ‖ the frame). The nonces make it fresh, and a frame sent in one
// direction means nothing in the other. The proof protects payloads against change but does not hide them: put nothing
// secret in them. Rejected: each side sends its proof at once (one round trip less). An unauthenticated peer would then
// learn rank and job.
//
// If two ranks connect to each other at once, the connection that the LOWER rank began survives. The lower rank decides
// alone, so no message is ever sent on the other connection (see resolve_inbound()).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "drivers/driver.hpp"

namespace canele::drivers::net {

/// Version of everything that travels between two ranks. Raised with any change to a wire format.
inline constexpr std::uint16_t wire_version = 1;

/// Identity of this rank. It is shared by all handshakes of one driver instance, and outlives them.
struct Party {
  Rank rank = 0;
  Rank size = 1;
  std::uint64_t job = 0;
  std::uint64_t incarnation = 0;
  std::array<std::byte, 16> secret = {};
  std::array<char, 8> driver = {};  ///< both ends must name the same driver
  std::uint16_t version = wire_version;

  Party() = default;
  Party(const DriverContext& context, std::string_view driver_name);
};

/// Why an acceptor that knows the secret rejects an initiator.
enum class Rejection : std::uint16_t {
  none,
  wrong_secret,       ///< the proof does not match.
  wrong_job,          ///< same secret, another job.
  wrong_rank,         ///< not a rank of this job, or meant for another rank.
  wrong_driver,       ///< for example, "tcp" connected to "shm".
  already_connected,  ///< this end has a connection to that rank.
  peer_failed,        ///< this end has declared that rank failed.
  no_resources,       ///< no memory or descriptors left.
  count
};

class Handshake {
 public:
  static constexpr std::size_t max_payload = 128;
  static constexpr std::size_t hello_size = 32;
  static constexpr std::size_t identity_size = 184;

  enum class State : std::uint8_t {
    working,     ///< call step() when the socket is readable, or writable if wants_write().
    identified,  ///< acceptor only: the peer has proven to be peer(); call accept() or reject(), then step().
    done,        ///< authenticated both ways, everything written.
    failed       ///< reason() says why; close the socket.
  };

  /// Makes the side that connected to rank `peer`. `incarnation`: the expected one, 0 if it may be any.
  static Handshake initiator(const Party& self, DriverContext& context, Rank peer, std::uint64_t incarnation,
                             std::span<const std::byte> payload);
  /// Makes the side that accepted a connection from an unknown peer.
  static Handshake acceptor(const Party& self, DriverContext& context);

  /// Reads and writes what the non-blocking socket `fd` can take. Bounded work. Never throws or blocks.
  State step(int fd);

  /// Answer the initiator. Call one of them in state identified.
  void accept(std::span<const std::byte> payload);
  void reject(Rejection why);

  State state() const { return state_; }
  bool wants_write() const { return out_sent_ < out_size_; }
  bool is_initiator() const { return initiator_; }
  /// Returns how many bytes the peer has sent so far.
  std::size_t heard() const { return await_ == Await::hello ? in_got_ : hello_size + in_got_; }
  /// Returns the proven rank (identified, done), or the expected one (initiator).
  Rank peer() const { return peer_; }
  std::uint64_t peer_incarnation() const { return peer_incarnation_; }
  /// Returns the peer's payload (identified, done).
  std::span<const std::byte> payload() const { return {peer_payload_.data(), peer_payload_size_}; }
  /// Returns the reason of a failure (state failed), as text for users. It names both versions if they differ.
  const std::string& reason() const { return reason_; }
  /// Returns true if the connection ended without a rejection (state failed): the peer was too busy, or restarted.
  /// Connect again.
  bool may_retry() const { return may_retry_; }

  // Without a socket: step() is made of these functions; tests feed single bytes.
  /// Returns how many bytes the handshake still wants from the peer; 0: none at present.
  std::size_t wanted() const {
    return state_ == State::working && await_ != Await::nothing && !doomed_ ? in_want_ - in_got_ : 0;
  }
  void feed(std::span<const std::byte> bytes);
  std::span<const std::byte> output() const { return {out_.data() + out_sent_, out_size_ - out_sent_}; }
  void sent(std::size_t bytes);
  /// Records that the stream ended; `error` is an errno value, 0 for an orderly end.
  void ended(int error);

 private:
  enum class Await : std::uint8_t { hello, identity, nothing };

  Handshake(const Party& self, DriverContext& context, bool initiator);
  bool read_some(int fd);
  bool write_some(int fd);
  void got_hello();
  void got_identity();
  void got_rejection(const std::byte* frame);
  Rejection check_identity(const std::byte* frame);
  void queue_hello();
  void queue_identity(std::uint16_t kind, Rejection why);
  std::uint64_t proof(bool by_initiator, const std::byte* frame) const;
  void fail(std::string reason);
  void advance();

  const Party* self_;
  State state_ = State::working;
  Await await_ = Await::hello;
  bool initiator_;
  bool may_retry_ = false;
  bool doomed_ = false;  ///< fails as soon as the output (a Hello or a Rejection) is written
  Rank peer_ = -1;
  std::uint64_t peer_incarnation_ = 0;
  std::size_t peer_payload_size_ = 0;
  std::size_t own_payload_size_ = 0;
  std::array<std::byte, 16> nonce_ = {};
  std::array<std::byte, max_payload> own_payload_ = {};
  std::array<std::byte, max_payload> peer_payload_ = {};
  std::array<std::byte, 2 * hello_size> hellos_ = {};  ///< the initiator's, then the acceptor's
  std::array<std::byte, identity_size> in_ = {};
  std::array<std::byte, hello_size + identity_size> out_ = {};
  std::size_t in_got_ = 0, in_want_ = hello_size;
  std::size_t out_sent_ = 0, out_size_ = 0;
  std::string reason_;
};

/// What the acceptor does with a proven inbound connection.
enum class Inbound : std::uint8_t {
  take,   ///< accept(); drop this rank's own attempt to connect to that peer, if any.
  defer,  ///< leave it unanswered while this rank's own attempt is in progress: take it if that fails, else close it.
  reject  ///< reject(already_connected).
};

/// Decides between simultaneous connections. `connecting`: this rank's own attempt to reach `peer` is in progress;
/// `up`: it is connected to `peer`.
///
/// Why nothing is lost, for ranks L < H: L either takes H's connection and never begins its own, or it has begun its
/// own. In the second case L never answers H's connection unless its own has failed. H sends nothing on its connection
/// before L answers, and drops it when L's connection arrives.
inline Inbound resolve_inbound(Rank self, Rank peer, bool connecting, bool up) {
  if (up) return Inbound::reject;
  return connecting && self < peer ? Inbound::defer : Inbound::take;
}

}  // namespace canele::drivers::net

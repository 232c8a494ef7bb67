// SPDX-License-Identifier: BSD-3-Clause
//
// What ofi sends: the 16 bytes before every message, and the three messages of the handshake.
//
// Used by the ofi driver and its tests. Pure functions: any thread.
//
// An endpoint receives from any sender, and most providers do not say from which one. Each message therefore carries a
// key of 64 bits that only the two ends can compute, another one for each direction and each connection. An
// unauthenticated peer has to guess it. An attacker that reads the network can copy it, just as it could write into an
// unencrypted TCP stream.
//
//     every message   0 u64 key (handshake: magic, version, length)   8 u24 sender's rank, u8 kind   12 u16 number
//                    14 u16 how many of the receiver's messages are processed   16 …
//     bulk            … 16 u64 transfer   24 u64 offset
//     Hello           … 16 nonce (16)   32 u64 job   40 u64 incarnation   48 u32 receiver's rank
//                    52 u16 port for keepalive, 0: none   54 u16 zero   56 the sender's endpoint name, then u64 proof
//     Challenge       … 16 the Hello's nonce (16)   32 own nonce (16)   48 u64 incarnation   56 u64 proof
//     Rejection       … 16 the Hello's nonce (16)   32 u16 why   34 u16 zero   36 u32 zero   40 u64 proof, or zero
//
// Rejected: a keyed hash over each message. It costs more than the message on a good fabric, and the payload could
// still be read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "drivers/driver.hpp"

namespace canele::drivers::ofi {

using Nonce = std::array<std::byte, 16>;
using Secret = std::array<std::byte, 16>;

inline constexpr std::uint16_t wire_version = 1;
inline constexpr std::size_t head_size = 16;
inline constexpr std::size_t bulk_head_size = 32;
inline constexpr std::size_t challenge_size = 64;
inline constexpr std::size_t rejection_size = 48;
inline constexpr std::size_t max_name = 256;  ///< of an endpoint
inline constexpr std::size_t max_hello = 64 + max_name;
inline constexpr Rank most_ranks = 1 << 24;

enum class Kind : std::uint8_t {
  packet = 1,
  bulk,
  credit,     ///< only the head: how many messages were processed; also the answer to a Challenge.
  bye,        ///< nothing follows; `number` is that of the message that would.
  broken,     ///< the sender gives the connection up at once.
  hello,      ///< asks for a connection.
  challenge,  ///< proves the acceptor, and asks the initiator for its proof.
  rejection
};

/// The head of a message, decoded.
struct Head {
  std::uint64_t key = 0;
  Rank rank = 0;
  Kind kind = Kind::packet;
  std::uint16_t number = 0;    ///< of this message; packets and bulk pieces are counted
  std::uint16_t finished = 0;  ///< the number up to which this message's sender has processed what it received
};
void write_head(std::byte* to, const Head& head);
Head read_head(const std::byte* from);
inline bool is_handshake(Kind kind) { return kind >= Kind::hello; }

/// Why a Hello is rejected.
enum class Rejection : std::uint16_t { none, wrong_secret, wrong_version, wrong_job, wrong_rank, connected, gave_up };
const char* text_of(Rejection why);

/// The sender of a Hello.
struct Hello {
  Rank rank = 0;
  Rank peer = 0;
  std::uint64_t job = 0;
  std::uint64_t incarnation = 0;
  Nonce nonce = {};
  std::vector<std::byte> name;
  std::uint16_t port = 0;
};
std::vector<std::byte> make_hello(const Hello& hello, const Secret& secret, std::uint16_t version = wire_version);

enum class HelloIs : std::uint8_t { garbage, other_version, unproven, proven };
/// Decodes a Hello. Its contents are trustworthy only if it is proven. The nonce and the name are filled in for all but
/// garbage, so that a rejection can be sent.
HelloIs read_hello(std::span<const std::byte> bytes, const Secret& secret, Hello* hello);

/// The keys of a connection.
struct Keys {
  std::uint64_t to_initiator = 0;
  std::uint64_t to_acceptor = 0;
};
std::vector<std::byte> make_challenge(std::span<const std::byte> hello, Rank own, std::uint64_t incarnation,
                                      const Nonce& nonce, const Secret& secret, Keys* keys);
/// Reads a Challenge. Returns false if it does not answer `hello`, or its sender does not know the secret.
bool read_challenge(std::span<const std::byte> bytes, std::span<const std::byte> hello, const Secret& secret,
                    std::uint64_t* incarnation, Keys* keys);

/// Makes a rejection. It is signed unless the other side cannot check it (another secret, another version).
std::vector<std::byte> make_rejection(const Nonce& nonce, Rejection why, const Secret& secret);
/// Reads a rejection; *text says why, for users. Returns false if it does not answer the Hello with that nonce.
bool read_rejection(std::span<const std::byte> bytes, const Nonce& nonce, const Secret& secret, std::string* text);

}  // namespace canele::drivers::ofi

// SPDX-License-Identifier: BSD-3-Clause
//
// Messages to the byte. See wire.hpp.
//
// The Hello is proven too, although it can be replayed. An unauthenticated peer's Hello is thus recognised at once, and
// leaves nothing behind. The Challenge adds freshness.
#include "drivers/ofi/wire.hpp"

#include <algorithm>
#include <cstring>

#include "drivers/net/bytes.hpp"
#include "drivers/net/siphash.hpp"

namespace canele::drivers::ofi {
namespace {

using net::read_le16;
using net::read_le32;
using net::read_le64;
using net::write_le;

constexpr std::uint32_t magic = 0x6f4c4e43;  // "CNLo"
constexpr std::size_t hello_name = 56;

using Part = std::span<const std::byte>;

std::uint64_t proof(const char* what, const Secret& secret, Part first, Part second = {}) {
  std::vector<std::byte> text(16);
  std::memcpy(text.data(), what, std::min<std::size_t>(std::strlen(what), 16));
  text.insert(text.end(), first.begin(), first.end());
  text.insert(text.end(), second.begin(), second.end());
  return net::siphash24(secret, text);
}

/// Writes the head of a handshake message: magic, version and a length where other messages have the key.
void write_handshake(std::byte* to, Kind kind, Rank rank, std::uint16_t version, std::size_t length) {
  write_le(to, magic, 4);
  write_le(to + 4, version, 2);
  write_le(to + 6, length, 2);
  write_le(to + 8, static_cast<std::uint32_t>(rank) | (static_cast<std::uint32_t>(kind) << 24), 4);
  write_le(to + 12, 0, 4);
}

Nonce nonce_at(const std::byte* from) {
  Nonce made;
  std::copy_n(from, made.size(), made.begin());
  return made;
}

Keys keys_of(Part hello, Part challenge, const Secret& secret) {
  return {proof("ofi to initiator", secret, hello, challenge), proof("ofi to acceptor", secret, hello, challenge)};
}

}  // namespace

void write_head(std::byte* to, const Head& head) {
  write_le(to, head.key, 8);
  write_le(to + 8, static_cast<std::uint32_t>(head.rank) | (static_cast<std::uint32_t>(head.kind) << 24), 4);
  write_le(to + 12, head.number, 2);
  write_le(to + 14, head.finished, 2);
}

Head read_head(const std::byte* from) {
  const std::uint32_t word = read_le32(from + 8);
  return {read_le64(from), static_cast<Rank>(word & 0xffffff), static_cast<Kind>(word >> 24), read_le16(from + 12),
          read_le16(from + 14)};
}

const char* text_of(Rejection why) {
  switch (why) {
    case Rejection::none:
      return "nothing";
    case Rejection::wrong_secret:
      return "the job's secret differs: the peer belongs to another job";
    case Rejection::wrong_version:
      return "wire versions differ";
    case Rejection::wrong_job:
      return "it belongs to another job";
    case Rejection::wrong_rank:
      return "the ranks differ from the expected ones: a stale address?";
    case Rejection::connected:
      return "there is a connection between the two ranks already";
    case Rejection::gave_up:
      return "the connection between the two ranks failed before";
  }
  return "an unknown reason";
}

std::vector<std::byte> make_hello(const Hello& hello, const Secret& secret, std::uint16_t version) {
  assert(hello.name.size() <= max_name);
  std::vector<std::byte> made(hello_name + hello.name.size() + 8);
  std::byte* const to = made.data();
  write_handshake(to, Kind::hello, hello.rank, version, made.size());
  std::copy(hello.nonce.begin(), hello.nonce.end(), to + 16);
  write_le(to + 32, hello.job, 8);
  write_le(to + 40, hello.incarnation, 8);
  write_le(to + 48, static_cast<std::uint32_t>(hello.peer), 4);
  write_le(to + 52, hello.port, 2);
  std::copy(hello.name.begin(), hello.name.end(), to + hello_name);
  write_le(to + made.size() - 8, proof("ofi hello", secret, Part(made).first(made.size() - 8)), 8);
  return made;
}

HelloIs read_hello(std::span<const std::byte> bytes, const Secret& secret, Hello* hello) {
  if (bytes.size() < hello_name + 8 || bytes.size() > max_hello) return HelloIs::garbage;
  const std::byte* const from = bytes.data();
  if (read_le32(from) != magic || read_le16(from + 6) != bytes.size()) return HelloIs::garbage;
  hello->nonce = nonce_at(from + 16);
  hello->name.assign(from + hello_name, from + bytes.size() - 8);
  if (read_le16(from + 4) != wire_version) return HelloIs::other_version;
  if (read_le64(from + bytes.size() - 8) != proof("ofi hello", secret, bytes.first(bytes.size() - 8))) {
    return HelloIs::unproven;
  }
  hello->rank = read_head(from).rank;
  hello->peer = static_cast<Rank>(read_le32(from + 48));
  hello->port = static_cast<std::uint16_t>(read_le16(from + 52));
  hello->job = read_le64(from + 32);
  hello->incarnation = read_le64(from + 40);
  return HelloIs::proven;
}

std::vector<std::byte> make_challenge(std::span<const std::byte> hello, Rank own, std::uint64_t incarnation,
                                      const Nonce& nonce, const Secret& secret, Keys* keys) {
  std::vector<std::byte> made(challenge_size);
  std::byte* const to = made.data();
  write_handshake(to, Kind::challenge, own, wire_version, made.size());
  std::copy_n(hello.data() + 16, 16, to + 16);
  std::copy(nonce.begin(), nonce.end(), to + 32);
  write_le(to + 48, incarnation, 8);
  const Part said = Part(made).first(56);
  write_le(to + 56, proof("ofi challenge", secret, hello, said), 8);
  *keys = keys_of(hello, said, secret);
  return made;
}

bool read_challenge(std::span<const std::byte> bytes, std::span<const std::byte> hello, const Secret& secret,
                    std::uint64_t* incarnation, Keys* keys) {
  if (bytes.size() != challenge_size || hello.size() < hello_name + 8) return false;
  const Part said = bytes.first(56);
  if (read_le32(bytes.data()) != magic || read_le64(bytes.data() + 56) != proof("ofi challenge", secret, hello, said)) {
    return false;
  }
  *incarnation = read_le64(bytes.data() + 48);
  *keys = keys_of(hello, said, secret);
  return true;
}

std::vector<std::byte> make_rejection(const Nonce& nonce, Rejection why, const Secret& secret) {
  std::vector<std::byte> made(rejection_size);
  std::byte* const to = made.data();
  write_handshake(to, Kind::rejection, 0, wire_version, made.size());
  std::copy(nonce.begin(), nonce.end(), to + 16);
  write_le(to + 32, static_cast<std::uint16_t>(why), 2);
  if (why != Rejection::wrong_secret && why != Rejection::wrong_version) {
    write_le(to + 40, proof("ofi refusal", secret, Part(made).first(40)), 8);
  }
  return made;
}

bool read_rejection(std::span<const std::byte> bytes, const Nonce& nonce, const Secret& secret, std::string* text) {
  // The nonce was sent to the peer only: a sender that repeats it is the peer, or an attacker on the path.
  if (bytes.size() != rejection_size || read_le32(bytes.data()) != magic || nonce_at(bytes.data() + 16) != nonce) {
    return false;
  }
  const auto why = static_cast<Rejection>(read_le16(bytes.data() + 32));
  *text = text_of(why);
  if (why == Rejection::wrong_secret) return true;
  if (why == Rejection::wrong_version) {
    *text += ": this rank has version " + std::to_string(wire_version) + ", the peer has version " +
             std::to_string(read_le16(bytes.data() + 4)) + "; use one version of Canelé in all ranks";
    return true;
  }
  return read_le64(bytes.data() + 40) == proof("ofi refusal", secret, bytes.first(40));
}

}  // namespace canele::drivers::ofi

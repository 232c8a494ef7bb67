// SPDX-License-Identifier: BSD-3-Clause
//
// What a check of received bytes comes to: they are good, they must wait, or their sender broke the protocol.
//
// Returned by every function that handles a packet or a chunk, from wire/ to engine/. A function hands on what is not
// ok:
//
//   if (const Verdict v = check_envelope(...); !v.is_ok()) return v;
//   ...
//   return Verdict::ok();                                            // or Verdict::violation("a chunk is empty")
//
// The engine ends the connection to a peer at a violation, with the text as the reason. At retry the driver keeps the
// packet, and presents it again.
//
// Any thread may use a verdict: it is a value of one word, returned in a register.
//
// Rejected: two words, a kind and a text. Small messages then cost more instructions than docs/budget.md allows.
#pragma once

#include <cassert>
#include <cstdint>
#include <type_traits>

namespace canele::comm {

class [[nodiscard]] Verdict {
 public:
  /// The bytes are handled.
  static constexpr Verdict ok() { return Verdict(is_good); }
  /// There is no memory for the next chunk now, or another message is waited for first. Nothing is lost. The packet is
  /// to be presented again, and is then parsed from that chunk on.
  static constexpr Verdict retry() { return Verdict(must_wait); }
  /// The peer must not have sent the bytes. `text` says why, and lives as long as the program.
  static Verdict violation(const char* text) {
    assert(text != nullptr && "a violation has its reason");
    return Verdict(reinterpret_cast<std::uintptr_t>(text));
  }

  constexpr bool is_ok() const { return word_ == is_good; }
  constexpr bool is_retry() const { return word_ == must_wait; }
  constexpr bool is_violation() const { return word_ > must_wait; }
  /// Returns what is wrong. Only for a violation.
  const char* text() const {
    assert(is_violation() && "only a violation has a text");
    return reinterpret_cast<const char*>(word_);
  }

 private:
  static constexpr std::uintptr_t is_good = 0, must_wait = 1;  // no text has these addresses
  explicit constexpr Verdict(std::uintptr_t word) : word_(word) {}

  std::uintptr_t word_;  ///< is_good, must_wait, or the address of a violation's text
};
static_assert(sizeof(Verdict) == sizeof(void*) && std::is_trivially_copyable_v<Verdict>, "it fits a register");

}  // namespace canele::comm

// SPDX-License-Identifier: BSD-3-Clause
//
// Ledger: a page that a process shares with all who send to it, where each notes that it is inside psm2_mq_isend2().
//
// Who: the psm2 driver, for peers of its host. Threads: one at a time in each process; all processes at once.
// Surprise: it is there for senders that are killed. libpsm2's queue in shared memory has 256 slots for data, taken in
// a
//      ring; a process killed between taking one and filling it leaves it taken for ever, and 256 messages later every
//      sender to that queue spins for ever. Here a sender sees that another has been inside for more than 96 messages:
//      killed, or without a core. From then on it offers its messages instead of copying them (PSM2_MQ_FLAG_SENDSYNC),
//      which needs no such slot.
//
//   tickets │ entry of rank 0 │ entry of rank 1 │ …       entry: 0, or the ticket with which the rank went in, plus one
//
// Rejected: to wait until the death is noticed (the process id is free only milliseconds later, thousands of messages);
// to offer always (slower, and libpsm2 ends a process that fetches from one that dies meanwhile).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "drivers/driver.hpp"
#include "drivers/net/socket.hpp"

namespace canele::drivers::psm2 {

class Ledger {
 public:
  static constexpr std::uint32_t slots_per_message = 2;  ///< at most; messages above a slot's size are offered
  static constexpr std::uint32_t longest_stay = 96;      ///< slots that others may take while one is inside
  static constexpr std::uint32_t look_interval = 32;     ///< slots between two looks at the others

  Ledger() = default;
  Ledger(Ledger&& other) noexcept { *this = std::move(other); }
  Ledger& operator=(Ledger&& other) noexcept;
  ~Ledger();

  /// One's own, to be shared by its descriptor. False and errno.
  static bool make(Rank ranks, net::UniqueFd* descriptor);
  /// A peer's. False: it is not what it should be; a page that could be cut short would be fatal.
  bool map(int descriptor, Rank ranks);
  explicit operator bool() const { return page_ != nullptr; }

  /// `self` goes in. False: a slot may be lost, and none must be taken.
  bool enter(Rank self);
  void leave(Rank self);

 private:
  struct Page {
    std::atomic<std::uint32_t> tickets;
    std::atomic<std::uint32_t> entries[1];  ///< one per rank
  };
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
  static std::size_t size_for(Rank ranks);
  bool somebody_stays(Rank self, std::uint32_t ticket) const;

  Page* page_ = nullptr;
  Rank ranks_ = 0;
  std::uint32_t looked_ = 0;  ///< ticket of the last look
  bool blocked_ = false;      ///< what it found
};

}  // namespace canele::drivers::psm2

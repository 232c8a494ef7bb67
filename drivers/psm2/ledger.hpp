// SPDX-License-Identifier: BSD-3-Clause
//
// Ledger: a page that a process shares with all who send to it; it says which of them is inside libpsm2 for that, and
// whether the process sleeps.
//
// Who: the psm2 driver, for peers of its host. Threads: one at a time in each process; all processes at once.
// Surprise: it is there for senders that are killed. libpsm2's queue in shared memory has spin locks and slots that are
//      taken before they are filled; a process killed in between leaves them so, and every later sender spins for ever.
//      So only one sender goes in at a time, and says so here. Who finds another inside does not wait, it answers full;
//      and if that other is dead, the queue is not to be used again.
//
//   holder: 0, or the process id of the one that is inside      asleep: 1: the next sender rings the bell, an eventfd
//
// Rejected: a robust mutex: nothing is to be repaired, one only has to know; and waiting is what must not happen.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "drivers/net/socket.hpp"

namespace canele::drivers::psm2 {

class Ledger {
 public:
  Ledger() = default;
  Ledger(Ledger&& other) noexcept { *this = std::move(other); }
  Ledger& operator=(Ledger&& other) noexcept;
  ~Ledger();

  /// A page to be shared by its descriptor. False and errno.
  static bool make(net::UniqueFd* descriptor);
  /// Looks at one. False: it is not what it should be; a page that could be cut short would be fatal.
  bool map(int descriptor);
  explicit operator bool() const { return page_ != nullptr; }
  /// What to ring when its owner sleeps: an eventfd.
  void hang(net::UniqueFd bell) { bell_ = std::move(bell); }
  int bell() const { return bell_.get(); }

  /// False: another is inside.
  bool enter(pid_t self);
  void leave();
  /// By who has sent, after leave(): wakes the owner if it sleeps.
  void ring();
  /// By the owner. What has come before it slept did not ring: it has to look once more.
  void sleep();
  /// By the owner: nobody has to ring any more. Silences the bell.
  void wake();
  /// Who is inside; 0: nobody.
  pid_t holder() const { return static_cast<pid_t>(page_->holder.load()); }

 private:
  struct Page {
    std::atomic<std::int32_t> holder, asleep;
  };
  static_assert(std::atomic<std::int32_t>::is_always_lock_free);

  Page* page_ = nullptr;
  net::UniqueFd bell_;
};

/// True if no process has this id any more, or it has ended and waits for its parent.
bool is_gone(pid_t pid);

}  // namespace canele::drivers::psm2

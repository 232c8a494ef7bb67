// SPDX-License-Identifier: BSD-3-Clause
//
// SenderLeasePage: a page that a process shares with all processes that send to it. It says which of them is inside
// libpsm2 for that, and whether the owner sleeps.
//
// Used by the psm2 driver, for peers of its host. One thread at a time in each process; all processes at once.
//
// It protects from senders that are killed. libpsm2's queue in shared memory has spin locks, and slots that are taken
// before they are filled. A process killed in between leaves them taken, and every later sender spins for ever. So only
// one sender enters at a time, and records that here. A sender that finds another one inside does not wait: it answers
// full. If the other one is dead, the queue must not be used again.
//
//   holder: 0, or the process id of the one that is inside      asleep: 1: the next sender rings the bell, an eventfd
//
// Rejected: a robust mutex: nothing is to be repaired, the death must only be detected; and waiting is what must not
// happen.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "drivers/net/socket.hpp"

namespace canele::drivers::psm2 {

class SenderLeasePage {
 public:
  SenderLeasePage() = default;
  SenderLeasePage(SenderLeasePage&& other) noexcept { *this = std::move(other); }
  SenderLeasePage& operator=(SenderLeasePage&& other) noexcept;
  ~SenderLeasePage();

  /// Makes a page to be shared by its descriptor. False and errno on failure.
  static bool make(net::UniqueFd* descriptor);
  /// Maps a page. Returns false if the descriptor is not what it should be: a page that could be truncated would be
  /// fatal.
  bool map(int descriptor);
  explicit operator bool() const { return page_ != nullptr; }
  /// Sets the eventfd to ring when the owner of the page sleeps.
  void hang(net::UniqueFd bell) { bell_ = std::move(bell); }
  int bell() const { return bell_.get(); }

  /// Enters the queue. Returns false if another process is inside.
  bool acquire(pid_t self);
  void release();
  /// Wakes the owner if it sleeps. Called by a sender, after release().
  void ring();
  /// Announces the owner's sleep. Called by the owner. A message that came before did not ring, so the owner has to
  /// look once more.
  void sleep();
  /// Ends the owner's sleep: senders need not ring any more. Silences the bell. Called by the owner.
  void wake();
  /// Returns the process that is inside; 0: none.
  pid_t holder() const { return static_cast<pid_t>(page_->holder.load()); }

 private:
  struct Page {
    std::atomic<std::int32_t> holder, asleep;
  };
  static_assert(std::atomic<std::int32_t>::is_always_lock_free);

  Page* page_ = nullptr;
  net::UniqueFd bell_;
};

/// Returns true if no process has this id any more, or it has ended and waits for its parent.
bool has_exited(pid_t pid);

}  // namespace canele::drivers::psm2

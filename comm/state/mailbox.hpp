// SPDX-License-Identifier: BSD-3-Clause
//
// Mailbox: what has come for an object that one thread at a time serves.
//
// Any thread puts mail; active messages use it, under the engine's lock and without. The thread that finds the mailbox
// idle makes a thread serve it: by a task, for instance. Mail that comes meanwhile needs no atomic operation but its
// own.
//
//   word:  0             idle: no mail, and no thread serves
//          1             a thread serves, or will; no mail
//          pointer + 1   likewise; the newest mail, linked to the older ones
//
//   idle ─put: true─▶ served ─take─▶ served ─end: true─▶ idle        after put or end, the object may be gone
//                       ▲  └──put: false──┘       │
//                       └────────end: false───────┘
#pragma once

#include <atomic>
#include <cstdint>

namespace canele::comm {

/// A link of a mailbox. Mail is put again only after it was taken.
struct alignas(8) Mail {
  Mail* next_mail = nullptr;
};

class Mailbox {
 public:
  /// Adds mail. Returns true if the mailbox was idle: the caller makes a thread serve it.
  bool put(Mail& mail) {
    std::uintptr_t seen = word_.load(std::memory_order_relaxed);
    do {
      mail.next_mail = reinterpret_cast<Mail*>(seen & ~served);
      // release: pairs with take(). acquire: pairs with end(), as this thread may be the next to serve.
    } while (!word_.compare_exchange_weak(seen, reinterpret_cast<std::uintptr_t>(&mail) | served,
                                          std::memory_order_acq_rel, std::memory_order_relaxed));
    return (seen & served) == 0;
  }
  /// Takes all mail, and returns the oldest, linked to the newer. Called by the thread that serves.
  Mail* take() {
    auto* newest = reinterpret_cast<Mail*>(word_.exchange(served, std::memory_order_acq_rel) & ~served);
    Mail* oldest = nullptr;
    while (newest != nullptr) {
      Mail* const next = newest->next_mail;
      newest->next_mail = oldest;
      oldest = newest;
      newest = next;
    }
    return oldest;
  }
  /// Makes the mailbox idle. Returns false if mail has come: the caller makes a thread serve it, as after put().
  bool end() {
    std::uintptr_t seen = served;
    return word_.compare_exchange_strong(seen, 0, std::memory_order_acq_rel, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uintptr_t served = 1;

  std::atomic<std::uintptr_t> word_{0};
};

}  // namespace canele::comm

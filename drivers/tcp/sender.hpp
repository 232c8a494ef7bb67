// SPDX-License-Identifier: BSD-3-Clause
//
// Sender: the outgoing half of one connection.
//
// Used by the tcp driver, by one thread at a time.
//
//   send() ─┬─ kernel took all ─────────▶ ok
//           ├─ a frame is stuck, or none taken ▶ full      owes_ready until poll has room again
//           └─ kernel took a part ──────▶ pending           rest_ keeps the pieces; push() until the token is free
//
// At most one frame is ever kept here. The kernel's buffer is the queue; a frame that the kernel does not take is
// rejected.
//
// Rejected: a queue of frames. It would hide from the strategy what it could still reorder and aggregate.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <vector>

#include "drivers/driver.hpp"
#include "drivers/tcp/frame.hpp"

namespace canele::drivers::tcp {

class Sender {
 public:
  /// Sends a frame: ok, pending, full, or failed (error() says why; nothing was taken). Never pending up to max_inline
  /// bytes.
  Status send(int fd, const FrameHeader& header, const iovec* pieces, int count, std::size_t size, Token token);

  /// Sends more of the stuck frame. Returns true when all of it is sent; *token is then the token to return (it may be
  /// null).
  bool push(int fd, Token* token);

  bool busy() const { return left_ > 0; }
  /// Returns true if the kernel has no room: wait for EPOLLOUT.
  bool blocked() const { return blocked_; }
  void unblock() { blocked_ = false; }
  /// Returns true if a caller got `full` since the last ready().
  bool owes_ready() const { return owes_ready_; }
  void owe_ready() { owes_ready_ = true; }
  void paid_ready() { owes_ready_ = false; }
  int error() const { return error_; }
  /// Returns the errno of the last write if the kernel lacked memory for it, else 0.
  int lacks_memory() const { return lacks_memory_; }

 private:
  void keep_rest(const FrameHeader& header, const iovec* pieces, int count, std::size_t sent);
  Status send_small(int fd, const FrameHeader& header, const iovec* pieces, int count, std::size_t size);
  Status took_nothing();
  void note_failure(int error);

  std::vector<iovec> rest_;
  std::size_t at_ = 0;    ///< first piece of rest_ that is not sent
  std::size_t left_ = 0;  ///< bytes of rest_ that are not sent
  Token token_ = nullptr;
  int error_ = 0;
  int lacks_memory_ = 0;
  bool blocked_ = false;
  bool owes_ready_ = false;
  std::byte small_[bulk_header + max_inline];  ///< the header, or the rest of a small frame
};

}  // namespace canele::drivers::tcp

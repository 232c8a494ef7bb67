// SPDX-License-Identifier: BSD-3-Clause
//
// Where a communicator or a session keeps the memory that is attached to it for buffered sends. The memory itself is
// the business of messages/buffered.cpp. Any thread.
#pragma once

#include <atomic>
#include <memory>

namespace canele::mpi {

/// Attached memory. Once made, it stays until its owner ends.
class SendBuffer {
 public:
  SendBuffer() = default;
  virtual ~SendBuffer() = default;
  SendBuffer(const SendBuffer&) = delete;
  SendBuffer& operator=(const SendBuffer&) = delete;
  /// Blocks until all its messages are sent.
  virtual void empty() = 0;
};

/// The place of attached memory; null until some has been attached.
class SendBufferPlace {
 public:
  SendBufferPlace() = default;
  ~SendBufferPlace() { delete made_.load(std::memory_order_relaxed); }
  SendBufferPlace(const SendBufferPlace&) = delete;
  SendBufferPlace& operator=(const SendBufferPlace&) = delete;

  SendBuffer* get() const { return made_.load(std::memory_order_acquire); }
  /// Keeps `made`, unless another thread was first. Returns what is kept.
  SendBuffer& keep(std::unique_ptr<SendBuffer> made) {
    SendBuffer* first = nullptr;
    // acq_rel: pairs with the load in get(), and with itself.
    if (!made_.compare_exchange_strong(first, made.get(), std::memory_order_acq_rel)) return *first;
    return *made.release();
  }

 private:
  std::atomic<SendBuffer*> made_{nullptr};
};

}  // namespace canele::mpi

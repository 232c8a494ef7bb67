// SPDX-License-Identifier: BSD-3-Clause
//
// The driver's own memory: buffers into which messages are copied to be sent, and buffers in which messages arrive.
//
// Used by the ofi driver, by one thread at a time.
//
//   SendPool:        slabs_ ──▶ [ 32 × 16 KiB, one registration ] …  at most 8
//                    free_  ──▶ SendBuffer ──▶ SendBuffer ──▶ …      (a stack by SendBuffer::next)
//
//   ReceiveBuffers:  [ 256 KiB ][ 256 KiB ][ 256 KiB ][ 256 KiB ]    multi-receive: message after message
//                or  [ 16 KiB ] × 64                                 one message each
//
// A receive that ends in an error does not say (in all providers) whether its multi-receive buffer is still posted.
// Such a buffer is set aside until the end and replaced. That happens at most `most_spoilt` times.
//
// Rejected: sending from the engine's memory. It would have to be registered for each message (FI_MR_LOCAL), and
// lists of pieces are limited to four. A copy of at most 16 KiB costs less.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "drivers/ofi/endpoint.hpp"
#include "drivers/ofi/wire.hpp"

namespace canele::drivers::ofi {

// In bytes; tcp;ofi_rxm and other providers still send this much eagerly.
inline constexpr std::size_t longest_message = 16 * 1024;

/// An outgoing message.
struct SendBuffer : Op {
  SendBuffer() : Op(Kind::send) {}
  Rank peer = -1;          ///< -1: to an unauthenticated peer (a rejection)
  bool handshake = false;  ///< part of the handshake
  fi_addr_t to = FI_ADDR_UNSPEC;
  std::uint32_t size = 0;
  std::byte* data = nullptr;
  void* descriptor = nullptr;
  SendBuffer* next = nullptr;  ///< in the pool's stack, or in the queue of buffers that wait to be sent
};

class SendPool {
 public:
  static constexpr std::size_t per_slab = 32, most_slabs = 8;

  explicit SendPool(Endpoint& endpoint) : endpoint_(endpoint) {}

  /// Returns one buffer, or null: all are in use.
  SendBuffer* take();
  void give_back(SendBuffer* buffer);
  bool available() const { return free_ != nullptr || slabs_.size() < most_slabs; }
  std::size_t in_use() const { return in_use_; }

 private:
  struct Slab {
    std::unique_ptr<std::byte[]> memory;
    Region region;
    SendBuffer buffers[per_slab];
  };
  bool grow();

  Endpoint& endpoint_;
  std::vector<std::unique_ptr<Slab>> slabs_;
  SendBuffer* free_ = nullptr;
  std::size_t in_use_ = 0;
};

/// One posted buffer.
struct ReceiveBuffer : Op {
  ReceiveBuffer() : Op(Kind::receive) {}
  bool posted = false;
  bool spoilt = false;  ///< unknown whether the provider still writes into it
  std::unique_ptr<std::byte[]> memory;
  Region region;
};

class ReceiveBuffers {
 public:
  static constexpr std::size_t most_spoilt = 64;

  explicit ReceiveBuffers(Endpoint& endpoint) : endpoint_(endpoint) {}

  /// Allocates and posts the buffers. `multi`: multi-receive buffers, if the provider has them.
  bool open(bool multi, std::string* reason);
  bool multi() const { return multi_; }
  std::size_t length() const { return length_; }
  /// Records that the provider no longer uses the buffer: it is to be posted again.
  void released(ReceiveBuffer& buffer);
  /// Handles a receive that ended in an error. Returns false if too many have.
  bool spoilt(ReceiveBuffer& buffer);
  /// Posts the unposted buffers. Returns 0 or libfabric's error (-FI_EAGAIN counts as 0: it is tried again later).
  int post();
  bool all_posted() const { return unposted_ == 0; }

 private:
  bool add(std::string* reason);

  Endpoint& endpoint_;
  bool multi_ = false;
  std::size_t length_ = 0;
  std::size_t unposted_ = 0, spoilt_ = 0;
  std::vector<std::unique_ptr<ReceiveBuffer>> buffers_;
};

}  // namespace canele::drivers::ofi

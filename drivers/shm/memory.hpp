// SPDX-License-Identifier: BSD-3-Clause
//
// Mappings and the descriptors behind them: memory that two processes share and that has no name in any file system.
//
// Used by the shm driver. No shared state; one thread at a time uses an object. Makes system calls.
//
// A memfd from a peer is mapped only if it has exactly the right size and is sealed. Otherwise the peer could shorten
// it while it is mapped, and the next load would raise SIGBUS.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "drivers/net/socket.hpp"

namespace canele::drivers::shm {

/// Owns a mapping.
class Mapping {
 public:
  Mapping() = default;
  Mapping(void* address, std::size_t size) : address_(address), size_(size) {}
  Mapping(Mapping&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Mapping();

  explicit operator bool() const { return address_ != nullptr; }
  template <class T>
  T* as() const {
    return static_cast<T*>(address_);
  }

 private:
  void* address_ = nullptr;
  std::size_t size_ = 0;
};

/// Makes a memfd of `size` zero bytes, sealed at that size, and maps it. The first `backed` bytes have memory. The rest
/// needs give_memory() or populate() before it is touched. `peers_write`: whether processes that receive the descriptor
/// may map it for writing. Returns an empty mapping and *reason on failure.
Mapping make_shared(std::size_t size, std::size_t backed, bool peers_write, net::UniqueFd* memfd, std::string* reason);

/// Returns true if `memfd` is a memfd of exactly `size` bytes that cannot shrink. Else sets *reason.
bool is_lendable(int memfd, std::size_t size, std::string* reason);

/// Maps a descriptor that a peer sent, of whose memory the first `backed` bytes are there. Returns an empty mapping and
/// *reason if it is not a memfd of exactly `size` bytes that cannot shrink.
Mapping map_shared(int memfd, std::size_t size, std::size_t backed, bool write, std::string* reason);

/// Allocates memory for bytes [from, from + bytes) of a memfd, so that a store there cannot fail. Returns false and
/// errno if there is none.
bool give_memory(int memfd, std::size_t from, std::size_t bytes);

/// Makes the pages of mapped memory present, and gives them memory if they have none, so that no access faults. Returns
/// false if there is no memory, or Linux is older than 5.14.
bool populate(void* at, std::size_t bytes, bool write);

/// Returns "" if this machine has memfd with seals, else why not.
std::string shared_memory_unavailable();

}  // namespace canele::drivers::shm

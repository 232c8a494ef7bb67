// SPDX-License-Identifier: BSD-3-Clause
//
// Mapping and the descriptors behind it: memory that two processes share and that has no name anywhere.
//
// Who: the shm driver. Threads: no shared state; one object, one thread at a time. Makes system calls.
// Surprise: a memfd from a peer is mapped only if its size is exactly right and sealed: else the peer could shorten it
//      under us, and the next load would be a SIGBUS.
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

/// What the owner makes: a memfd of `size` zero bytes, sealed at that size, and our mapping of it. `peers_write`:
/// whether those who get the descriptor may map it for writing. `backed`: so many bytes from the start on have memory
/// (0: all); the rest is to be asked for before it is touched. An empty mapping and *reason on failure.
Mapping make_shared(std::size_t size, bool peers_write, net::UniqueFd* memfd, std::string* reason,
                    std::size_t backed = 0);

/// Is it a memfd of exactly `size` bytes that cannot shrink? Else *reason.
bool is_lendable(int memfd, std::size_t size, std::string* reason);

/// Maps what a peer sent. An empty mapping and *reason if it is not a memfd of exactly `size` bytes that cannot shrink.
/// `whole`: all of it has memory.
Mapping map_shared(int memfd, std::size_t size, bool write, std::string* reason, bool whole = true);

/// Gives bytes [from, from + bytes) of a memfd memory, so that a store there cannot fail. False and errno: there is
/// none.
bool give_memory(int memfd, std::size_t from, std::size_t bytes);

/// "" if this machine has memfd with seals, else why not.
std::string shared_memory_unavailable();

}  // namespace canele::drivers::shm

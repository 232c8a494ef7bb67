// SPDX-License-Identifier: BSD-3-Clause
//
// Copies by a driver whose rma() any thread may call: large messages (rendezvous/shared_copy), and puts and gets of the
// origin itself (post/direct_access).
//
// Any thread, without the engine's lock.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "comm/state/payload.hpp"
#include "drivers/driver.hpp"

namespace canele::comm {

/// Memory that a peer has registered.
struct RegisteredMemory {
  drivers::Driver& driver;
  int rank;
  const drivers::MemoryKey& rkey;
};

/// Does what copy_by_driver() does for data of any shape. Out of line: its list of pieces is large.
[[gnu::noinline]] inline bool copy_pieces_by_driver(const RegisteredMemory& memory, drivers::RmaOp op,
                                                    std::uint64_t offset, const canele_data_t& data, std::uint64_t at,
                                                    std::uint64_t size) {
  while (size > 0) {
    iovec pieces[64];
    std::size_t covered = 0;
    const std::uint64_t most = std::min<std::uint64_t>(size, memory.driver.capabilities().max_rma);
    const int count = data::pieces(data, at, most, pieces, 64, &covered);
    if (count == 0) return false;
    const drivers::Status status = memory.driver.rma(memory.rank, op, {memory.rkey.bytes, memory.rkey.size}, offset,
                                                     pieces, count, covered, nullptr);
    if (status != drivers::Status::ok) return false;
    at += covered;
    offset += covered;
    size -= covered;
  }
  return true;
}

/// Copies bytes [at, at + size) of `data` to or from the peer's memory, which begins at `offset` for byte `at`, by as
/// many calls as the pieces need. Returns whether all could be copied.
inline bool copy_by_driver(const RegisteredMemory& memory, drivers::RmaOp op, std::uint64_t offset,
                           const canele_data_t& data, std::uint64_t at, std::uint64_t size) {
  const bool is_one_piece = data.segments == nullptr && at <= data.length && size <= data.length - at &&
                            size <= memory.driver.capabilities().max_rma && size != 0;
  if (!is_one_piece) return copy_pieces_by_driver(memory, op, offset, data, at, size);
  const iovec piece{static_cast<std::byte*>(data.base) + at, size};
  return memory.driver.rma(memory.rank, op, {memory.rkey.bytes, memory.rkey.size}, offset, &piece, 1, size, nullptr) ==
         drivers::Status::ok;
}

}  // namespace canele::comm

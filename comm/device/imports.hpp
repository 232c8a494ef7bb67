// SPDX-License-Identifier: BSD-3-Clause
//
// Imports: device memory of other processes that is mapped here. A mapping costs much more than a copy, so mappings are
// kept for later messages.
//
//   take ─▶ used ─give_back─▶ kept ─▶ taken again, or unmapped when there are too many
//
// Threading: one thread at a time, without the engine's lock.
//
// Pitfalls: a kept mapping keeps the exporter's memory allocated, also after the exporter has freed it. A new
// allocation may have the address, and the handle, of an older one: its number tells them apart.
#pragma once

#include <cstddef>
#include <list>
#include <string>

#include "drivers/memory.hpp"

namespace canele::comm::device {

class Imports {
 public:
  /// The most mappings that are kept.
  static constexpr std::size_t most = 64;

  struct Mapping {
    int rank;    ///< whose memory it is
    int device;  ///< that reads it
    drivers::MemoryExport memory;
    std::byte* base;
    int users;
  };

  explicit Imports(drivers::Memory& memory) : memory_(memory) {}
  ~Imports();
  Imports(const Imports&) = delete;
  Imports& operator=(const Imports&) = delete;

  /// Maps the allocation that a rank has exported. Returns nullptr, and *why, if that is not possible.
  Mapping* take(int rank, const drivers::MemoryExport& memory, int device, std::string* why);
  void give_back(Mapping* mapping);

 private:
  void unmap(std::list<Mapping>::iterator one);
  void unmap_unused(int rank);

  drivers::Memory& memory_;
  std::list<Mapping> mappings_;  ///< the last taken one first
};

}  // namespace canele::comm::device

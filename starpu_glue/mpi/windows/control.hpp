// SPDX-License-Identifier: BSD-3-Clause
//
// The control memory of a window: what other ranks read and change of a rank beside its part. Also what origins keep of
// it.
//
// Part of window.hpp. Any thread: the window's mutex guards what is here, except a WindowControl, which other
// processes access, too.
#pragma once

#include <canele/one_sided.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace canele::mpi {

/// Memory that a rank has attached to a dynamic window.
struct RegionEntry {
  unsigned char key[CANELE_KEY_SIZE];
  std::uint64_t start;   ///< address at which the memory of the key begins
  std::uint64_t base;    ///< address of the attached memory
  std::uint64_t length;  ///< its bytes; 0: the entry is free
};

inline constexpr int kMostRegions = 1024;

/// The table of a rank's attached memory.
struct WindowRegions {
  std::uint64_t generation;  ///< counts changes; odd: one is being made
  std::uint64_t count;       ///< entries that have been in use
  RegionEntry entries[kMostRegions];
};

/// Memory of the library that the other ranks of the window access. Zero bytes at the beginning.
struct WindowControl {
  std::uint64_t lock;     ///< see window_sync.cpp
  WindowRegions regions;  ///< of dynamic windows; others do not have this memory
};

/// An attached memory of a target, at an origin.
struct RemoteRegion {
  RegionEntry entry;
  canele_key_t* key;
};

/// The table of a target, as an origin has read it.
struct RegionCache {
  std::uint64_t generation = 0;
  std::vector<RemoteRegion> list;  ///< by ascending addresses
};

/// Memory that this rank has attached.
struct AttachedMemory {
  std::uint64_t start, base, size;
  std::size_t entry;  ///< its place in the table
  canele_memory_t* memory;
};

}  // namespace canele::mpi

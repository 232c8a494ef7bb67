// SPDX-License-Identifier: BSD-3-Clause
//
// Layout: where the bytes of one message are, in host memory and in the memory of devices.
//
// Made once, by the thread that posts; afterwards constant. Rows of equal length and distance are one piece, however
// they were described: a tile costs one copy, not one copy a row.
#pragma once

#include <canele/device.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "drivers/memory.hpp"

namespace canele::comm::device {

/// Result of a call: CANELE_OK, or an error with its description.
struct Answer {
  int code = CANELE_OK;
  std::string why;
};

/// Marks a description by canele_data_device(). For host memory it is a segments function like any other.
int device_segments(const void* context, std::size_t offset, iovec* out, int max);

struct Piece {
  std::byte* base = nullptr;
  std::size_t width = 0, rows = 1, pitch = 0;
  std::size_t offset = 0;  ///< of its first byte in the message
  int place = -1;          ///< index in Layout::places; -1: host memory
};

/// Bytes of a message, from `begin` up to `end`.
struct Range {
  std::size_t begin, end;
};

class Layout {
 public:
  /// Describes the data of a message. memory: nullptr if the process has no device.
  Answer describe(drivers::Memory* memory, const canele_data_t& data);

  bool on_device() const { return !places.empty(); }
  /// Returns whether all of the data is in one allocation of a device.
  bool is_on_one_device() const {
    return places.size() == 1 &&
           std::all_of(pieces.begin(), pieces.end(), [](const Piece& piece) { return piece.place == 0; });
  }
  /// Returns the copies between a part of the message and the same part of `staging`, for the pieces of one place.
  std::vector<drivers::MemoryCopy> copies(int place, std::byte* staging, const Range& part,
                                          drivers::CopyDirection direction) const;

  /// Returns the copies of the first `length` bytes of the message from rows of width `from.width`, `from.pitch` apart.
  std::vector<drivers::MemoryCopy> copies_from(const Piece& from, std::size_t length) const;

  std::vector<Piece> pieces;
  std::vector<drivers::MemoryPlace> places;
  std::size_t length = 0;
  void* ready = nullptr;
  void* copied = nullptr;

 private:
  Answer describe_pieces(drivers::Memory* memory, const canele_device_data_t& all);
  int place_of(drivers::Memory* memory, const std::byte* address);
  void add(Piece piece);
  bool extend_last(const Piece& piece);
};

}  // namespace canele::comm::device

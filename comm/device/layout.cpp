// SPDX-License-Identifier: BSD-3-Clause
//
// From a description of data to pieces whose kind is known.
#include "comm/device/layout.hpp"

#include <algorithm>

#include "comm/state/payload.hpp"

namespace canele::comm::device {
namespace {

constexpr std::size_t longest_pitch = (std::size_t{1} << 31) - 1;  // of a two-dimensional copy

std::size_t rows_of(const canele_device_piece_t& piece) { return piece.rows != 0 ? piece.rows : 1; }

Answer invalid(const std::string& why) { return {CANELE_EINVAL, why}; }

/// Returns what is wrong with one piece, or "".
std::string fault_of(const canele_device_piece_t& piece, const drivers::Memory* memory) {
  const std::size_t rows = rows_of(piece);
  if (piece.kind < CANELE_MEMORY_AUTO || piece.kind > CANELE_MEMORY_CUDA)
    return "the kind of a piece is " + std::to_string(piece.kind) + "; expected: one of enum canele_memory_kind";
  if (piece.reserved != 0) return "the field reserved of a piece is not 0";
  if (piece.base == nullptr && piece.width != 0) return "a piece has bytes, but its base is NULL";
  if (rows > 1 && piece.pitch < piece.width)
    return "the pitch of a piece is " + std::to_string(piece.pitch) + " bytes; expected: at least its width of " +
           std::to_string(piece.width);
  if (piece.kind == CANELE_MEMORY_CUDA && memory == nullptr)
    return "a piece is said to be memory of a CUDA device, but no device is in use; expected: CANELE_GPU=cuda, and a "
           "driver (canele_device_support tells why there is none)";
  return "";
}

/// The bytes of a piece, in their order.
struct Walk {
  const Piece* piece;
  std::size_t at = 0;  ///< in the piece

  std::byte* address() const { return piece->base + at / piece->width * piece->pitch + at % piece->width; }
  /// Returns the bytes up to the end of the row.
  std::size_t left_in_row() const { return piece->width - at % piece->width; }
  bool ended() const { return at == piece->width * piece->rows; }
};

/// Makes one copy of the last one and one more row. Returns false if they do not continue each other.
bool extend(drivers::MemoryCopy& last, const drivers::MemoryCopy& row) {
  if (row.width != last.width) return false;
  const auto to = static_cast<std::size_t>(row.to - last.to), from = static_cast<std::size_t>(row.from - last.from);
  if (last.rows == 1) {
    if (to < row.width || from < row.width || to > longest_pitch || from > longest_pitch) return false;
    last.to_pitch = to;
    last.from_pitch = from;
  } else if (to != last.rows * last.to_pitch || from != last.rows * last.from_pitch) {
    return false;
  }
  ++last.rows;
  return true;
}

}  // namespace

int device_segments(const void* context, std::size_t offset, iovec* out, int max) {
  const auto& all = *static_cast<const canele_device_data_t*>(context);
  int count = 0;
  std::size_t before = 0;
  for (std::size_t i = 0; i < all.count && count < max; ++i) {
    const canele_device_piece_t& piece = all.pieces[i];
    const std::size_t bytes = piece.width * rows_of(piece);
    if (bytes != 0 && offset < before + bytes) {
      std::size_t within = offset - std::min(offset, before);
      for (std::size_t row = within / piece.width; row < rows_of(piece) && count < max; ++row) {
        const std::size_t skipped = within - row * piece.width;
        out[count++] = {static_cast<std::byte*>(piece.base) + row * piece.pitch + skipped, piece.width - skipped};
        within = (row + 1) * piece.width;
      }
      offset = before + within;
    }
    before += bytes;
  }
  return count;
}

Answer Layout::describe(drivers::Memory* memory, const canele_data_t& data) {
  if (data.segments == device_segments)
    return describe_pieces(memory, *static_cast<const canele_device_data_t*>(data.context));
  length = data.length;
  data::each_piece(data, 0, data.length, [&](void* base, std::size_t bytes) {
    auto* const from = static_cast<std::byte*>(base);
    add({from, bytes, 1, 0, 0, place_of(memory, from)});
  });
  return {};
}

Answer Layout::describe_pieces(drivers::Memory* memory, const canele_device_data_t& all) {
  for (std::size_t i = 0; i < all.count; ++i) {
    const canele_device_piece_t& piece = all.pieces[i];
    if (const std::string why = fault_of(piece, memory); !why.empty()) return invalid(why);
    auto* const base = static_cast<std::byte*>(piece.base);
    const int place = piece.kind == CANELE_MEMORY_HOST ? -1 : place_of(memory, base);
    if (piece.kind == CANELE_MEMORY_CUDA && place < 0 && piece.width != 0)
      return invalid("a piece is said to be memory of a CUDA device, but the driver does not know its address");
    length += piece.width * rows_of(piece);
    if (rows_of(piece) > 1 && piece.pitch > longest_pitch) {
      for (std::size_t row = 0; row < piece.rows; ++row) add({base + row * piece.pitch, piece.width, 1, 0, 0, place});
    } else {
      add({base, piece.width, rows_of(piece), piece.pitch, 0, place});
    }
  }
  ready = all.ready;
  copied = all.copied;
  if ((ready != nullptr || copied != nullptr) && !on_device())
    return invalid("events of a device are given, but all of the data is in host memory");
  return {};
}

/// Returns the index of the place that an address belongs to; -1: host memory. Addresses in the allocation of the piece
/// before need no question to the driver.
int Layout::place_of(drivers::Memory* memory, const std::byte* address) {
  if (memory == nullptr) return -1;
  for (std::size_t i = places.size(); i-- > 0;) {
    if (address >= places[i].base && address < places[i].base + places[i].size) return static_cast<int>(i);
  }
  drivers::MemoryPlace place;
  if (!memory->locate(address, &place)) return -1;
  places.push_back(place);
  return static_cast<int>(places.size()) - 1;
}

void Layout::add(Piece piece) {
  if (piece.width == 0) return;
  if (piece.rows > 1 && piece.pitch == piece.width)
    piece = {piece.base, piece.width * piece.rows, 1, 0, 0, piece.place};
  if (!pieces.empty() && piece.rows == 1 && pieces.back().place == piece.place && extend_last(piece)) return;
  if (!pieces.empty()) piece.offset = pieces.back().offset + pieces.back().width * pieces.back().rows;
  pieces.push_back(piece);
}

/// Makes one piece of the last one and one more row. Returns false if they do not continue each other.
bool Layout::extend_last(const Piece& piece) {
  Piece& last = pieces.back();
  if (last.rows == 1 && piece.base == last.base + last.width) {
    last.width += piece.width;
    return true;
  }
  if (piece.width != last.width || piece.base < last.base + last.width) return false;
  const auto distance = static_cast<std::size_t>(piece.base - last.base);
  if (last.rows == 1 && distance <= longest_pitch) {
    last.pitch = distance;
    last.rows = 2;
    return true;
  }
  if (last.rows == 1 || distance != last.rows * last.pitch) return false;
  ++last.rows;
  return true;
}

std::vector<drivers::MemoryCopy> Layout::copies(int place, std::byte* staging, const Range& part,
                                                drivers::CopyDirection direction) const {
  std::vector<drivers::MemoryCopy> all;
  const auto end_of = [](const Piece& piece) { return piece.offset + piece.width * piece.rows; };
  auto next = std::partition_point(pieces.begin(), pieces.end(),
                                   [&](const Piece& piece) { return end_of(piece) <= part.begin; });
  for (; next != pieces.end() && next->offset < part.end; ++next) {
    const Piece& piece = *next;
    if (piece.place != place) continue;
    const std::size_t end = std::min(end_of(piece), part.end) - piece.offset;
    for (Walk walk{&piece, std::max(piece.offset, part.begin) - piece.offset}; walk.at < end;) {
      const std::size_t width = std::min(walk.left_in_row(), end - walk.at);
      const std::size_t rows = width == piece.width ? (end - walk.at) / width : 1;
      std::byte *const here = staging + piece.offset + walk.at, *const there = walk.address();
      if (direction == drivers::CopyDirection::to_host) {
        all.push_back({here, there, width, rows, piece.width, piece.pitch});
      } else {
        all.push_back({there, here, width, rows, piece.pitch, piece.width});
      }
      walk.at += width * rows;
    }
  }
  return all;
}

std::vector<drivers::MemoryCopy> Layout::copies_from(const Piece& from, std::size_t bytes) const {
  std::vector<drivers::MemoryCopy> all;
  Walk source{&from};
  for (const Piece& piece : pieces) {
    for (Walk target{&piece}; !target.ended() && bytes > 0;) {
      const std::size_t width = std::min({target.left_in_row(), source.left_in_row(), bytes});
      const drivers::MemoryCopy row{target.address(), source.address(), width, 1, width, width};
      if (all.empty() || !extend(all.back(), row)) all.push_back(row);
      target.at += width;
      source.at += width;
      bytes -= width;
    }
  }
  return all;
}

}  // namespace canele::comm::device

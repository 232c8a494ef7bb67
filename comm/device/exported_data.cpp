// SPDX-License-Identifier: BSD-3-Clause
#include "comm/device/exported_data.hpp"

#include <cstring>

namespace canele::comm::device {

bool export_data(drivers::Memory& memory, const Layout& layout, ExportedData* exported) {
  if (layout.pieces.size() != 1 || layout.pieces[0].place != 0) return false;
  const Piece& piece = layout.pieces[0];
  if (!memory.export_memory(piece.base, &exported->memory).empty()) return false;
  exported->width = piece.width;
  exported->rows = piece.rows;
  exported->pitch = piece.rows > 1 ? piece.pitch : piece.width;
  return true;
}

std::string read_exported(std::span<const std::byte> bytes, std::uint64_t length, ExportedData* exported) {
  if (bytes.size() != sizeof *exported) return "an export of device memory has a wrong length";
  std::memcpy(static_cast<void*>(exported), bytes.data(), sizeof *exported);
  const ExportedData& all = *exported;
  std::uint64_t before_last = 0, end = 0, data = 0;
  const bool overflows = all.rows == 0 || __builtin_mul_overflow(all.rows - 1, all.pitch, &before_last) ||
                         __builtin_add_overflow(before_last, all.width, &end) ||
                         __builtin_add_overflow(end, all.memory.offset, &end) ||
                         __builtin_mul_overflow(all.rows, all.width, &data);
  if (overflows || all.pitch < all.width || end > all.memory.size)
    return "an export of device memory names bytes beyond its allocation";
  return data < length ? "an export of device memory is shorter than its message" : "";
}

}  // namespace canele::comm::device

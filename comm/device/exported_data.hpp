// SPDX-License-Identifier: BSD-3-Clause
//
// ExportedData: the data of a message in memory of a device, described for devices of other processes of the host.
//
// It travels as the key of a request to send (wire::device_memory). The sender exports the whole allocation; the data
// is rows in it.
//
//   allocation:  ├── offset ──┤row├─gap─┤row├─gap─┤row├──┤
//
// Any thread, without the engine's lock. What a peer has sent is checked by read_exported().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "comm/device/layout.hpp"
#include "drivers/driver.hpp"
#include "drivers/memory.hpp"

namespace canele::comm::device {

struct ExportedData {
  drivers::MemoryExport memory;
  std::uint64_t width = 0, rows = 0, pitch = 0;  ///< in bytes, but for `rows`

  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(this, 1)); }
};
static_assert(sizeof(ExportedData) == 128 && sizeof(ExportedData) <= drivers::MemoryKey::max_size);

/// Exports the data of a layout. Returns false if it has to be staged: it is in several pieces, or its allocation
/// cannot be exported.
bool export_data(drivers::Memory& memory, const Layout& layout, ExportedData* exported);
/// Reads what a peer has exported. Returns "", or what is wrong with it. At least `length` bytes are described then.
std::string read_exported(std::span<const std::byte> bytes, std::uint64_t length, ExportedData* exported);

}  // namespace canele::comm::device

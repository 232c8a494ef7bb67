// SPDX-License-Identifier: BSD-3-Clause
//
// The address that an ofi instance publishes: the provider, and the endpoint's name in it.
//
// Used by the ofi driver and its tests. Pure functions: any thread.
//
// The name is opaque to the driver and goes to the provider unchanged, so everything around it is checked first.
// Provider and kind of name must be equal to this instance's, and also the host where names are valid on one host only.
//
//      0 u32 magic   4 u32 kind of name (FI_SOCKADDR_IN, …)   8 u64 incarnation   16 u64 host id, 0: any host
//     24 u16 length of the provider's name   26 u16 length of the endpoint's name   28 u16 port for keepalive, 0: none
//     30 u16 zero   32 both names
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace canele::drivers::ofi {

struct PublishedName {
  std::string provider;
  std::uint32_t format = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t host = 0;
  std::vector<std::byte> name;
  std::uint16_t port = 0;
};

std::vector<std::byte> pack_address(const PublishedName& name);
/// Parses an address. Returns false if the bytes are no such address.
bool unpack_address(std::span<const std::byte> bytes, PublishedName* name);

/// Returns true if `name`, which comes from another process, may be given to a provider whose own names look like
/// `own`.
bool is_sane_name(std::span<const std::byte> name, std::uint32_t format, std::span<const std::byte> own);

}  // namespace canele::drivers::ofi

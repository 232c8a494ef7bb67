// SPDX-License-Identifier: BSD-3-Clause
//
// Addresses to the byte. See address.hpp.
#include "drivers/ofi/address.hpp"

#include <rdma/fabric.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>

#include "drivers/net/bytes.hpp"
#include "drivers/ofi/wire.hpp"

namespace canele::drivers::ofi {
namespace {

constexpr std::uint32_t magic = 0x416f4c43;  // "CLoA"
constexpr std::size_t fixed = 32;
constexpr std::size_t max_provider = 64;

/// Compares names such as "fi_shm://17:1000:0". They must be equal except for their numbers, and the second number, the
/// user, must be equal too. The provider opens what a name says, and does not survive a file that it may not open.
bool same_shape(std::span<const std::byte> name, std::span<const std::byte> own) {
  std::string shapes[2], users[2];
  for (const int which : {0, 1}) {
    int group = 0;
    bool in_number = false;
    for (const std::byte one : which == 0 ? name : own) {
      const char letter = static_cast<char>(one);
      const bool digit = letter >= '0' && letter <= '9';
      if (digit && !in_number) ++group;
      in_number = digit;
      if (!digit) shapes[which] += letter;
      if (digit && group == 2) users[which] += letter;
    }
  }
  return shapes[0] == shapes[1] && users[0] == users[1];
}

}  // namespace

std::vector<std::byte> pack_address(const PublishedName& name) {
  assert(name.provider.size() <= max_provider && name.name.size() <= max_name);
  std::vector<std::byte> made(fixed + name.provider.size() + name.name.size());
  net::write_le(made.data(), magic, 4);
  net::write_le(made.data() + 4, name.format, 4);
  net::write_le(made.data() + 8, name.incarnation, 8);
  net::write_le(made.data() + 16, name.host, 8);
  net::write_le(made.data() + 24, name.provider.size(), 2);
  net::write_le(made.data() + 26, name.name.size(), 2);
  net::write_le(made.data() + 28, name.port, 2);
  std::memcpy(made.data() + fixed, name.provider.data(), name.provider.size());
  std::copy(name.name.begin(), name.name.end(), made.data() + fixed + name.provider.size());
  return made;
}

bool unpack_address(std::span<const std::byte> bytes, PublishedName* name) {
  if (bytes.size() < fixed || net::read_le32(bytes.data()) != magic) return false;
  const std::size_t provider = net::read_le16(bytes.data() + 24), length = net::read_le16(bytes.data() + 26);
  if (provider > max_provider || length == 0 || length > max_name) return false;
  if (bytes.size() != fixed + provider + length) return false;
  name->format = net::read_le32(bytes.data() + 4);
  name->incarnation = net::read_le64(bytes.data() + 8);
  name->host = net::read_le64(bytes.data() + 16);
  name->port = static_cast<std::uint16_t>(net::read_le16(bytes.data() + 28));
  name->provider.assign(reinterpret_cast<const char*>(bytes.data()) + fixed, provider);
  name->name.assign(bytes.begin() + static_cast<std::ptrdiff_t>(fixed + provider), bytes.end());
  return true;
}

bool is_sane_name(std::span<const std::byte> name, std::uint32_t format, std::span<const std::byte> own) {
  if (name.empty() || name.size() > max_name) return false;
  // A string must end where its bytes end. A socket address must be of this endpoint's family. All other names have a
  // fixed length.
  if (format == FI_ADDR_STR) {
    return std::find(name.begin(), name.end(), std::byte{0}) == name.end() - 1 && same_shape(name, own);
  }
  if (name.size() != own.size()) return false;
  const bool socket = format == FI_SOCKADDR || format == FI_SOCKADDR_IN || format == FI_SOCKADDR_IN6;
  return !socket || (name.size() >= 2 && std::memcmp(name.data(), own.data(), 2) == 0);
}

}  // namespace canele::drivers::ofi

// SPDX-License-Identifier: BSD-3-Clause
//
// The abstract name of a unix socket: a prefix, and 16 random bytes in hexadecimal.
//
// Used by drivers whose processes connect to each other on one host (shm, psm2). No shared state: any thread may use
// its own object.
//
// An abstract name is no file, so a kill -9 leaves nothing behind. No file mode protects it either: any user of the
// host can connect.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cassert>
#include <cstddef>
#include <string_view>

namespace canele::drivers::net {

class AbstractName {
 public:
  AbstractName(std::string_view prefix, const std::array<std::byte, 16>& name) {
    static constexpr char digits[] = "0123456789abcdef";
    assert(1 + prefix.size() + 2 * name.size() <= sizeof address_.sun_path);
    address_.sun_family = AF_UNIX;
    char* at = address_.sun_path;
    *at++ = '\0';  // abstract
    for (const char c : prefix) *at++ = c;
    for (const std::byte b : name) {
      *at++ = digits[std::to_integer<unsigned>(b) >> 4];
      *at++ = digits[std::to_integer<unsigned>(b) & 15];
    }
    size_ = static_cast<socklen_t>(at - reinterpret_cast<char*>(&address_));
  }

  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&address_); }
  socklen_t size() const { return size_; }

 private:
  sockaddr_un address_ = {};
  socklen_t size_ = 0;
};

}  // namespace canele::drivers::net

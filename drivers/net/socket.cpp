// SPDX-License-Identifier: BSD-3-Clause
//
// Helpers around sockets. See socket.hpp.
//
// host_id() mixes in the network name space, because two containers of one host do not share a loopback.
#include "drivers/net/socket.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <system_error>

#include "drivers/net/siphash.hpp"

namespace canele::drivers::net {

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) {
    const int kept = errno;  // callers read errno after a failed step
    ::close(fd_);
    errno = kept;
  }
  fd_ = fd;
}

std::string error_text(int error) { return std::generic_category().message(error); }

namespace {

const sockaddr_in* as_v4(const sockaddr* address) { return reinterpret_cast<const sockaddr_in*>(address); }
const sockaddr_in6* as_v6(const sockaddr* address) { return reinterpret_cast<const sockaddr_in6*>(address); }

}  // namespace

Endpoint Endpoint::from(const sockaddr* address, socklen_t size) {
  Endpoint made;
  std::memcpy(&made.storage_, address, std::min<std::size_t>(size, sizeof made.storage_));
  return made;
}

bool Endpoint::parse(std::string_view text, Endpoint* out) {
  const std::string copy(text);
  Endpoint made = any(copy.find(':') != std::string::npos, 0);
  auto* at = made.v6() ? static_cast<void*>(&reinterpret_cast<sockaddr_in6*>(&made.storage_)->sin6_addr)
                       : static_cast<void*>(&reinterpret_cast<sockaddr_in*>(&made.storage_)->sin_addr);
  if (inet_pton(made.storage_.ss_family, copy.c_str(), at) != 1) return false;
  *out = made;
  return true;
}

Endpoint Endpoint::loopback(bool v6, std::uint16_t port) {
  Endpoint made = any(v6, port);
  if (v6) {
    reinterpret_cast<sockaddr_in6*>(&made.storage_)->sin6_addr = in6addr_loopback;
  } else {
    reinterpret_cast<sockaddr_in*>(&made.storage_)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  return made;
}

Endpoint Endpoint::any(bool v6, std::uint16_t port) {
  Endpoint made;
  made.storage_.ss_family = v6 ? AF_INET6 : AF_INET;
  made.set_port(port);
  return made;
}

bool Endpoint::is_any() const {
  return v6() ? IN6_IS_ADDR_UNSPECIFIED(&as_v6(address())->sin6_addr) : as_v4(address())->sin_addr.s_addr == INADDR_ANY;
}

bool Endpoint::is_loopback() const {
  return v6() ? IN6_IS_ADDR_LOOPBACK(&as_v6(address())->sin6_addr)
              : ntohl(as_v4(address())->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

bool Endpoint::is_link_local() const {
  return v6() ? IN6_IS_ADDR_LINKLOCAL(&as_v6(address())->sin6_addr)
              : ntohl(as_v4(address())->sin_addr.s_addr) >> 16 == 0xa9fe;
}

bool Endpoint::same_address(const Endpoint& other) const {
  if (v6() != other.v6()) return false;
  return v6() ? std::memcmp(&as_v6(address())->sin6_addr, &as_v6(other.address())->sin6_addr, 16) == 0
              : as_v4(address())->sin_addr.s_addr == as_v4(other.address())->sin_addr.s_addr;
}

std::uint16_t Endpoint::port() const { return ntohs(v6() ? as_v6(address())->sin6_port : as_v4(address())->sin_port); }

void Endpoint::set_port(std::uint16_t port) {
  if (v6()) {
    reinterpret_cast<sockaddr_in6*>(&storage_)->sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in*>(&storage_)->sin_port = htons(port);
  }
}

std::string Endpoint::address_text() const {
  char host[INET6_ADDRSTRLEN] = "?";
  const void* at = v6() ? static_cast<const void*>(&as_v6(address())->sin6_addr)
                        : static_cast<const void*>(&as_v4(address())->sin_addr);
  inet_ntop(storage_.ss_family, at, host, sizeof host);
  return host;
}

std::string Endpoint::text() const {
  const std::string tail = ":" + std::to_string(port());
  return v6() ? "[" + address_text() + "]" + tail : address_text() + tail;
}

// Portable form: 0 u8 4 or 6   1 u8 zero   2 u16 port, big-endian   4 u32 zero   8 address, 16 bytes.
void Endpoint::pack(std::byte* out) const {
  std::memset(out, 0, packed_size);
  out[0] = std::byte{v6() ? std::uint8_t{6} : std::uint8_t{4}};
  const std::uint16_t port = v6() ? as_v6(address())->sin6_port : as_v4(address())->sin_port;
  std::memcpy(out + 2, &port, 2);
  if (v6()) {
    std::memcpy(out + 8, &as_v6(address())->sin6_addr, 16);
  } else {
    std::memcpy(out + 8, &as_v4(address())->sin_addr, 4);
  }
}

bool Endpoint::unpack(const std::byte* in, Endpoint* out) {
  const auto family = std::to_integer<int>(in[0]);
  if (family != 4 && family != 6) return false;
  Endpoint made = any(family == 6, 0);
  std::uint16_t port = 0;
  std::memcpy(&port, in + 2, 2);
  made.set_port(ntohs(port));
  if (family == 6) {
    std::memcpy(&reinterpret_cast<sockaddr_in6*>(&made.storage_)->sin6_addr, in + 8, 16);
  } else {
    std::memcpy(&reinterpret_cast<sockaddr_in*>(&made.storage_)->sin_addr, in + 8, 4);
  }
  if (port == 0 || made.is_any()) return false;
  *out = made;
  return true;
}

std::uint64_t host_id() {
  std::array<std::byte, 64 + 2 * sizeof(std::uint64_t)> text = {};
  const UniqueFd boot(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (!boot || ::read(boot.get(), text.data(), 64) <= 0) {
    // Without /proc, the host name is the best identification.
    gethostname(reinterpret_cast<char*>(text.data()), 64);
  }
  struct stat space = {};
  if (::stat("/proc/self/ns/net", &space) == 0) {
    const std::uint64_t name[2] = {space.st_dev, space.st_ino};
    std::memcpy(text.data() + 64, name, sizeof name);
  }
  static constexpr std::array<std::byte, 16> key = {};  // a fingerprint, no secret
  return siphash24(key, text);
}

UniqueFd listen_on(const Endpoint& where) {
  UniqueFd made(::socket(where.v6() ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made) return made;
  const int on = 1;
  // IPv4 has a socket of its own, so that both families behave alike on every host.
  if (where.v6()) ::setsockopt(made.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  ::setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(made.get(), where.address(), where.size()) != 0 || ::listen(made.get(), SOMAXCONN) != 0) made.reset();
  return made;
}

Endpoint local_endpoint(int fd) {
  sockaddr_storage found = {};
  socklen_t size = sizeof found;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&found), &size);
  return Endpoint::from(reinterpret_cast<const sockaddr*>(&found), size);
}

Endpoint remote_endpoint(int fd) {
  sockaddr_storage found = {};
  socklen_t size = sizeof found;
  ::getpeername(fd, reinterpret_cast<sockaddr*>(&found), &size);
  return Endpoint::from(reinterpret_cast<const sockaddr*>(&found), size);
}

namespace {

/// Binds a socket to an address, and leaves the choice of the port to connect(). Returns false and errno on failure.
bool bind_source(int fd, Endpoint from) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);  // ports are then unique per connection only
  from.set_port(0);
  return ::bind(fd, from.address(), from.size()) == 0;
}

}  // namespace

UniqueFd start_connect(const Endpoint& where, const Endpoint* from) {
  UniqueFd made(::socket(where.v6() ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made) return made;
  if (from != nullptr && !bind_source(made.get(), *from)) {
    made.reset();
    return made;
  }
  if (::connect(made.get(), where.address(), where.size()) != 0 && errno != EINPROGRESS) made.reset();
  return made;
}

UniqueFd accept_one(int listener) {
  return UniqueFd(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

int socket_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace canele::drivers::net

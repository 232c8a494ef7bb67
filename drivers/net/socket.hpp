// SPDX-License-Identifier: BSD-3-Clause
//
// Small helpers around file descriptors and sockets, shared by the drivers that use them.
//
// No shared state; one thread at a time uses an object. Every socket made here is non-blocking and close-on-exec from
// its creation.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace canele::drivers::net {

/// Owns a file descriptor.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// Returns the meaning of an errno value, for example "Connection refused".
std::string error_text(int error);

/// An IPv4 or IPv6 address and port.
class Endpoint {
 public:
  /// Bytes of the portable form: family, scope, port, address.
  static constexpr std::size_t packed_size = 24;

  Endpoint() = default;
  static Endpoint from(const sockaddr* address, socklen_t size);
  /// Parses "10.0.0.1" or "fe80::1". False if `text` is not a numeric address.
  static bool parse(std::string_view text, Endpoint* out);
  static Endpoint loopback(bool v6, std::uint16_t port);
  static Endpoint any(bool v6, std::uint16_t port);

  bool v6() const { return storage_.ss_family == AF_INET6; }
  bool is_any() const;
  bool is_loopback() const;
  bool is_link_local() const;
  bool same_address(const Endpoint& other) const;
  std::uint16_t port() const;
  void set_port(std::uint16_t port);
  /// Returns "10.0.0.1:4000" or "[::1]:4000".
  std::string text() const;
  /// Returns "10.0.0.1" or "::1".
  std::string address_text() const;

  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const { return v6() ? sizeof(sockaddr_in6) : sizeof(sockaddr_in); }

  void pack(std::byte* out) const;
  /// Reads the portable form. False if the bytes are no address.
  static bool unpack(const std::byte* in, Endpoint* out);

 private:
  sockaddr_storage storage_ = {};
};

/// Returns a value that identifies this host *and* network name space. Two processes with equal values reach each other
/// by loopback.
std::uint64_t host_id();

/// Returns a listening stream socket on `where`, or an empty one and errno.
UniqueFd listen_on(const Endpoint& where);
/// Returns the local address of a socket.
Endpoint local_endpoint(int fd);
/// Returns the address of the other end of a socket.
Endpoint remote_endpoint(int fd);
/// Returns a socket that connects to `where` (connected when writable), or an empty one and errno. `from`: the local
/// address of the connection; nullptr: the kernel's choice.
UniqueFd start_connect(const Endpoint& where, const Endpoint* from = nullptr);
/// Accepts one waiting connection. Returns an empty descriptor and errno if there is none.
UniqueFd accept_one(int listener);
/// Returns the pending error of a socket (SO_ERROR), 0 if none.
int socket_error(int fd);

}  // namespace canele::drivers::net

// SPDX-License-Identifier: BSD-3-Clause
//
// Dialing, and the meaning of a connection's end. See keepalive.hpp.
//
// A killed process may lose its connections before its listener. The end of a connection therefore proves nothing: only
// a refusal does.
#include "drivers/ofi/keepalive.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "drivers/ofi/liveness_probe.hpp"

namespace canele::drivers::ofi {
namespace {

constexpr int most_dials = 6;
constexpr std::size_t share_of_descriptors = 4;
constexpr std::uint64_t ns_per_second = 1'000'000'000;
constexpr std::uint64_t no_line = ~std::uint64_t{0};
constexpr std::size_t port_at = offsetof(sockaddr_in, sin_port);
static_assert(port_at == offsetof(sockaddr_in6, sin6_port));

void set_option(int fd, int level, int name, int value) { ::setsockopt(fd, level, name, &value, sizeof value); }

/// Sets keep-alive: the first probe after a third of the silence, the others a sixth apart, the last one at the end of
/// it.
void keep_alive(int fd, int silence_s) {
  const int idle = std::max(1, silence_s / 3), between = std::max(1, silence_s / 6);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, between);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, (silence_s - idle + between - 1) / between);
}

int error_of(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

/// Returns true while the connection is established. False: it has ended in order, or failed.
bool is_open(int fd) {
  char byte;
  const auto got = ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

std::vector<std::byte> with_port(std::span<const std::byte> name, std::uint16_t port) {
  std::vector<std::byte> made(name.begin(), name.end());
  const std::uint16_t wire = htons(port);
  if (made.size() >= port_at + sizeof wire) std::memcpy(made.data() + port_at, &wire, sizeof wire);
  return made;
}

}  // namespace

Keepalives::~Keepalives() {
  while (!lines_.empty()) drop(lines_.begin()->first);
  for (const int fd : {epoll_, listener_})
    if (fd >= 0) ::close(fd);
}

bool Keepalives::open(std::span<const std::byte> name, int also) {
  rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) limit_ = static_cast<std::size_t>(files.rlim_cur) / share_of_descriptors;
  listen(name);
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0 || also < 0) return epoll_ >= 0;
  epoll_event wanted = {};
  wanted.events = EPOLLIN;
  wanted.data.u64 = no_line;
  return ::epoll_ctl(epoll_, EPOLL_CTL_ADD, also, &wanted) == 0;
}

/// Listens, but never accepts. The length of the queue bounds what unauthenticated peers can take; the buffer bounds
/// what they can leave in it.
void Keepalives::listen(std::span<const std::byte> name) {
  sockaddr_storage where = {};
  const auto own = with_port(name, 0);
  if (own.size() > sizeof where) return;
  std::memcpy(&where, own.data(), own.size());
  auto* const address = reinterpret_cast<sockaddr*>(&where);
  socklen_t size = static_cast<socklen_t>(own.size());
  listener_ = ::socket(where.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener_ < 0) return;
  set_option(listener_, SOL_SOCKET, SO_RCVBUF, 1);  // the kernel raises it to its minimum
  if (::bind(listener_, address, size) != 0 || ::listen(listener_, SOMAXCONN) != 0) return;
  if (::getsockname(listener_, address, &size) != 0) return;
  std::memcpy(&port_, reinterpret_cast<const std::byte*>(&where) + port_at, sizeof port_);
  port_ = ntohs(port_);
}

void Keepalives::connect(Rank peer, std::span<const std::byte> name, std::uint16_t port, bool met) {
  const auto known = lines_.find(peer);
  if (known != lines_.end()) {
    if (met && known->second.stage == Stage::probing) dial(peer, known->second, Stage::dialing);
    return;
  }
  if (lines_.size() >= limit_ || port == 0) return;
  Line& line = lines_[peer];
  line.name.assign(name.begin(), name.end());
  line.port = port;
  line.dials_left = most_dials;
  line.since_ns = context_.now_ns();
  dial(peer, line, met ? Stage::dialing : Stage::probing);
}

void Keepalives::drop(Rank peer) {
  const auto found = lines_.find(peer);
  if (found == lines_.end()) return;
  if (found->second.fd >= 0) ::close(found->second.fd);
  lines_.erase(found);
}

void Keepalives::end(Rank peer, End how) {
  drop(peer);
  ended_.push_back({peer, how});
}

/// Dials. The line may be gone afterwards.
void Keepalives::dial(Rank peer, Line& line, Stage stage) {
  if (line.fd >= 0) ::close(std::exchange(line.fd, -1));
  if (line.dials_left-- == 0) return drop(peer);
  line.stage = stage;
  int error = 0;
  line.fd =
      stage == Stage::probing ? start_probe(line.name, &error) : start_connect(with_port(line.name, line.port), &error);
  if (error == ECONNREFUSED) return refused(peer, line);
  if (error != 0) return drop(peer);
  keep_alive(line.fd, silence_s_);
  epoll_event wanted = {};
  wanted.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  wanted.data.u64 = static_cast<std::uint64_t>(peer);
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, line.fd, &wanted) != 0) drop(peer);
}

void Keepalives::check(Rank peer, Line& line) {
  const int error = error_of(line.fd);
  const bool open = error == 0 && is_open(line.fd);
  const bool ended = error == 0 || error == ECONNRESET || error == EPIPE;
  if (open || (ended && line.stage == Stage::probing)) return reached(peer, line);
  if (error == ECONNREFUSED) return refused(peer, line);
  if (ended) return dial(peer, line, Stage::dialing);
  failed(peer, line);
}

void Keepalives::reached(Rank peer, Line& line) {
  if (line.stage != Stage::probing) {
    line.stage = Stage::connected;
    line.was_connected = true;
  } else if (line.was_refused) {
    drop(peer);  // the process exists; something in between blocks keepalive connections
  } else {
    dial(peer, line, Stage::dialing);
  }
}

void Keepalives::refused(Rank peer, Line& line) {
  if (line.stage == Stage::probing || line.was_connected) return end(peer, End::exited);
  line.was_refused = true;
  dial(peer, line, Stage::probing);
}

/// Handles a peer that was not reached, or is silent.
void Keepalives::failed(Rank peer, Line& line) {
  if (line.stage == Stage::connected) return end(peer, End::silent);
  if (line.stage == Stage::dialing) return drop(peer);
  if (context_.now_ns() - line.since_ns > static_cast<std::uint64_t>(silence_s_) * ns_per_second) {
    return end(peer, End::unreachable);
  }
  ++line.dials_left;  // not counted: the attempt has lasted some seconds, so there cannot be many
  dial(peer, line, Stage::probing);
}

bool Keepalives::next(Ended* ended) {
  std::array<epoll_event, 16> events;
  const int count = ended_.empty() ? ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 0) : 0;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t about = events[static_cast<std::size_t>(i)].data.u64;
    const auto found = about == no_line ? lines_.end() : lines_.find(static_cast<Rank>(about));
    if (found != lines_.end()) check(found->first, found->second);
  }
  if (ended_.empty()) return false;
  *ended = ended_.back();
  ended_.pop_back();
  return true;
}

}  // namespace canele::drivers::ofi

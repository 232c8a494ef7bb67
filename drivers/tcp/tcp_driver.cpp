// SPDX-License-Identifier: BSD-3-Clause
//
// TcpDriver: opening, sending, closing. See tcp_driver.hpp; its poll() is in poll.cpp.
//
// A send that finds the connection broken answers `full`. The receiving side then finds the end of the stream and
// reports failed(), after everything that arrived before is delivered.
#include "drivers/tcp/tcp_driver.hpp"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "drivers/net/settings.hpp"
#include "drivers/tcp/tcp.hpp"

namespace canele::drivers {
namespace tcp {
namespace {

/// Most bytes in the kernel that are not on the wire: data behind them could not be reordered any more.
constexpr int unsent_limit = 128 * 1024;
/// What the kernel may keep, in bytes, of a connection to a rank that shares these cores and reads only when it has
/// one. The data must still be in a cache by then; by default the kernel keeps 4 MiB a connection. A message of 1 MiB
/// should fit: otherwise its sender needs another turn for the rest.
constexpr int oversubscribed_buffer = 1024 * 1024;
constexpr int close_patience_ms = 200;  // in all, for peers that do not read
void set_option(int fd, int level, int option, int value) { ::setsockopt(fd, level, option, &value, sizeof value); }

/// Selects congestion control without measured rates: nothing is congested within a host. The system's default may be
/// BBR, which sends at the rate that a peer was seen to take. A peer that had lost its core for a while would then get
/// data slowly long after.
void forget_rates(int fd) {
  constexpr std::string_view rule = "reno";  // every kernel has it, and any user may select it
  ::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, rule.data(), rule.size());
}

}  // namespace

Status TcpDriver::open_impl(DriverContext& context, Address* address, std::string* reason) {
  context_ = &context;
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  timer_.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!epoll_ || !timer_ || !watch(epoll_.get(), timer_.get(), Source::timer, 0, false)) {
    *reason = "cannot make an epoll set: " + net::error_text(errno);
    return Status::failed;
  }
  if (!net::read_number(context, "EXPERT_TCP_SEND_BUFFER", "0", 0, "bytes, 0 for the kernel's choice", &send_buffer_,
                        reason) ||
      !net::read_number(context, "TCP_PEER_TIMEOUT", "30", 3, "seconds, at least 3", &silence_s_, reason)) {
    return Status::failed;
  }
  connector_ = std::make_unique<Connector>(context, epoll_.get());
  if (!connector_->open(address, reason)) return Status::failed;
  links_.resize(static_cast<std::size_t>(context.size));
  early_.resize(static_cast<std::size_t>(context.size));
  fill_capabilities();
  return Status::ok;
}

void TcpDriver::fill_capabilities() {
  capabilities_.name = "tcp";
  capabilities_.max_inline = max_inline;
  capabilities_.max_packet = max_packet;
  capabilities_.bulk_stream = true;
  capabilities_.wake_up = WakeUp::descriptor;
  capabilities_.reaches_local = true;
  capabilities_.reaches_remote = connector_->reaches_remote();
  capabilities_.detects_failure = true;
  capabilities_.latency_ns = 5000;
  capabilities_.gap_ns = 3000;
  capabilities_.bandwidth = 5.0;
}

Status TcpDriver::connect_impl(Rank peer, std::span<const std::byte> address) {
  const Status status = connector_->connect(peer, address);
  set_timer(false);
  return status;
}

void TcpDriver::tune(int fd) const {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, unsent_limit);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  // Detects an idle dead host after the silence: the first probe comes after a third of it, four more a sixth apart
  // each.
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, std::max(1, silence_s_ / 3));
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, std::max(1, silence_s_ / 6));
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
  if (send_buffer_ > 0) set_option(fd, SOL_SOCKET, SO_SNDBUF, send_buffer_);
}

Status TcpDriver::send_inline_impl(Rank peer, const void* head, std::size_t head_size, const void* body,
                                   std::size_t body_size) {
  const iovec pieces[2] = {{const_cast<void*>(head), head_size}, {const_cast<void*>(body), body_size}};
  const std::size_t size = head_size + body_size;
  return send_frame(peer, make_header(Kind::packet, size), pieces, 2, size, nullptr);
}

Status TcpDriver::send_packet_impl(Rank peer, const iovec* pieces, int count, std::size_t size, Token token) {
  return send_frame(peer, make_header(Kind::packet, size), pieces, count, size, token);
}

Status TcpDriver::bulk_send_impl(Rank peer, std::uint64_t transfer_id, std::uint64_t offset, const iovec* pieces,
                                 int count, std::size_t size, Token token) {
  if (size > max_bulk) return Status::failed;
  return send_frame(peer, make_header(Kind::bulk, size, transfer_id, offset), pieces, count, size, token);
}

Status TcpDriver::send_frame(Rank peer, const FrameHeader& header, const iovec* pieces, int count, std::size_t size,
                             Token token) {
  Link* const link = links_[static_cast<std::size_t>(peer)].get();
  if (link == nullptr || link->dead) {
    if (connector_->knows_failed(peer)) return Status::failed;
    early_[static_cast<std::size_t>(peer)] = true;
    return Status::full;
  }
  if (link->sender.error() != 0) return Status::full;
  const Status status = link->sender.send(link->fd.get(), header, pieces, count, size, token);
  if (link->sender.error() != 0) {
    mark_readable(*link);  // the receiving side finds what else arrived, then the end
    return status == Status::failed ? Status::full : status;
  }
  if (status != Status::ok || link->sender.busy()) mark_writing(*link);
  return status;
}

void TcpDriver::established(Rank rank, std::uint64_t incarnation, net::UniqueFd fd, const std::string& where) {
  tune(fd.get());
  auto& slot = links_[static_cast<std::size_t>(rank)];
  slot = std::make_unique<Link>(rank, std::move(fd), where);
  Link& link = *slot;
  up_.push_back(&link);
  ++reported_;
  met(rank, incarnation);
  if (net::local_endpoint(link.fd.get()).same_address(net::remote_endpoint(link.fd.get()))) {
    stays_here(rank);
    forget_rates(link.fd.get());
    if (context_->oversubscribed && send_buffer_ == 0)
      set_option(link.fd.get(), SOL_SOCKET, SO_SNDBUF, oversubscribed_buffer);
  }
  context_->events->connected(rank);
  if (!watch(epoll_.get(), link.fd.get(), Source::link, static_cast<std::uint32_t>(rank), true)) {
    return fail(link, true, "cannot watch the socket: " + net::error_text(errno));
  }
  watch_all();          // the other links too, in case they are many by now
  mark_readable(link);  // data may have arrived before the tag changed
  if (early_[static_cast<std::size_t>(rank)]) {
    link.sender.owe_ready();
    mark_writing(link);
  }
}

void TcpDriver::gave_up(Rank rank, bool lost, const std::string& reason) {
  ++reported_;
  context_->events->failed(rank, lost, "tcp: rank " + std::to_string(rank) + ": " + reason);
}

void TcpDriver::close_impl() {
  int patience = close_patience_ms;
  for (Link* link : up_) {
    if (!link->dead) flush(*link, &patience);
  }
  up_.clear();
  readable_.clear();
  writers_.clear();
  links_.clear();
  connector_.reset();
  timer_.reset();
  epoll_.reset();
}

/// Gives the kernel the rest of a frame and ends the stream behind it. Also reads pending input, which would turn the
/// end into a reset.
void TcpDriver::flush(Link& link, int* patience) {
  const int fd = link.fd.get();
  while (link.sender.busy() && link.sender.error() == 0) {
    Token token;
    link.sender.unblock();
    if (link.sender.push(fd, &token)) break;
    if (!link.sender.blocked()) continue;
    if (--*patience < 0) break;
    pollfd one = {fd, POLLOUT, 0};
    ::poll(&one, 1, 1);
  }
  ::shutdown(fd, SHUT_WR);
  std::byte unread[4096];
  for (int i = 0; i < 1024 && ::recv(fd, unread, sizeof unread, MSG_DONTWAIT) > 0; ++i) {
  }
}

}  // namespace tcp

const DriverFactory tcp_factory = {contract_version,
                                   "tcp",
                                   "TCP sockets, to ranks of this and other hosts",
                                   []() -> std::unique_ptr<Driver> { return std::make_unique<tcp::TcpDriver>(); },
                                   []() { return std::string(); },
                                   tcp::describe_network};

}  // namespace canele::drivers

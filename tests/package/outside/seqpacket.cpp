// SPDX-License-Identifier: BSD-3-Clause
//
// A driver outside the tree: ranks of one host, over unix sockets that keep packets apart. It shows how little a driver
// needs; package_test.py builds it against an installed Canelé and runs a job over it.
//
// Who: the engine, as canele/driver.hpp says. Threads: the engine serialises.
// Surprise: one socket for each direction, so that two ranks that connect at the same time need no agreement. It checks
//     the user and the job of a peer, not the job's secret: a driver for others than its author must.
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <canele/driver.hpp>
#include <cerrno>
#include <cstring>
#include <map>

namespace {

using namespace canele::drivers;  // NOLINT: this file is one driver

constexpr std::size_t longest = 32 * 1024, most_pieces = 200;

/// In front of everything that is sent.
struct Head {
  enum Kind : std::uint64_t { hello, packet, bulk } kind;
  std::uint64_t key, offset;  ///< hello: the job, and the rank
};

class SeqPacket final : public Driver {
  struct Peer {
    int out = -1, in = -1;
    bool told = false, owes_ready = false, gone = false;
  };

  Status open_impl(DriverContext& context, Address* address, std::string* reason) override {
    context_ = &context;
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    name_ = "canele-seqpacket-" + std::to_string(context.job) + "-" + std::to_string(context.random());
    sockaddr_un where;
    const socklen_t length = fill(where, name_);
    if (listener_ < 0 || epoll_ < 0 || bind(listener_, reinterpret_cast<sockaddr*>(&where), length) != 0 ||
        listen(listener_, 128) != 0) {
      *reason = std::string("no unix socket: ") + std::strerror(errno);
      return Status::failed;
    }
    watch(listener_);
    const auto* bytes = reinterpret_cast<const std::byte*>(name_.data());
    address->assign(bytes, bytes + name_.size());
    capabilities_.name = "seqpacket";
    capabilities_.max_packet = capabilities_.max_bulk = longest;
    capabilities_.bulk_stream = capabilities_.reaches_local = capabilities_.detects_failure = true;
    capabilities_.wake_up = WakeUp::descriptor;
    return Status::ok;
  }

  Status connect_impl(Rank rank, std::span<const std::byte> address) override {
    return call(rank, {reinterpret_cast<const char*>(address.data()), address.size()}) ? Status::pending
                                                                                       : Status::failed;
  }

  Status send_packet_impl(Rank rank, const iovec* pieces, int count, std::size_t, Token) override {
    return send(rank, {Head::packet, 0, 0}, pieces, count);
  }
  Status bulk_send_impl(Rank rank, std::uint64_t key, std::uint64_t offset, const iovec* pieces, int count, std::size_t,
                        Token) override {
    return send(rank, {Head::bulk, key, offset}, pieces, count);
  }

  int poll_impl(int budget) override {
    int events = accept_all();
    for (auto& [rank, peer] : peers_) {
      if (peer.in >= 0 && peer.out >= 0 && !peer.told && !peer.gone) {
        peer.told = true;
        context_->events->connected(rank);
        ++events;
      }
      if (peer.owes_ready && writable(peer.out)) {
        peer.owes_ready = false;
        context_->events->ready(rank);
        ++events;
      }
      while (events < budget && peer.told && !peer.gone && receive(rank, peer)) ++events;
    }
    return events;
  }
  int descriptor_impl() const override { return epoll_; }
  bool arm_impl(bool) override {
    return std::none_of(peers_.begin(), peers_.end(), [](const auto& one) {
      return one.second.owes_ready || (one.second.in >= 0 && one.second.out >= 0 && !one.second.told);
    });
  }
  void close_impl() override {
    for (auto& [rank, peer] : peers_) {
      if (peer.out >= 0) ::close(peer.out);
      if (peer.in >= 0) ::close(peer.in);
    }
    ::close(listener_);
    ::close(epoll_);
  }

  static socklen_t fill(sockaddr_un& where, std::string_view name) {
    where = {};
    where.sun_family = AF_UNIX;
    const std::size_t size = std::min(name.size(), sizeof where.sun_path - 1);
    std::memcpy(where.sun_path + 1, name.data(), size);  // after a zero: a name that no file has
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  }
  void watch(int fd) const {
    epoll_event event{};
    event.events = EPOLLIN;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }
  static bool writable(int fd) {
    int queued = 0, room = 0;
    socklen_t size = sizeof room;
    getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, &size);
    return ioctl(fd, SIOCOUTQ, &queued) == 0 && queued < room / 4;
  }

  /// The socket on which we send to `rank`.
  bool call(Rank rank, std::string_view name) {
    Peer& peer = peers_[rank];
    if (peer.out >= 0) return true;
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_un where;
    const socklen_t length = fill(where, name);
    const Head hello{Head::hello, context_->job, static_cast<std::uint64_t>(context_->rank)};
    iovec pieces[2] = {{const_cast<Head*>(&hello), sizeof hello}, {name_.data(), name_.size()}};
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = 2;
    if (::connect(fd, reinterpret_cast<sockaddr*>(&where), length) != 0 || sendmsg(fd, &message, MSG_NOSIGNAL) < 0) {
      ::close(fd);
      return false;
    }
    peer.out = fd;
    return true;
  }

  int accept_all() {
    for (int fd; (fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;)
      greeted_.push_back(fd);
    std::erase_if(greeted_, [&](int fd) { return read_hello(fd); });
    return 0;
  }
  /// True if nothing more is to be waited for on this socket.
  bool read_hello(int fd) {
    const ssize_t n = recv(fd, buffer_, sizeof buffer_, 0);
    if (n < 0 && errno == EAGAIN) return false;
    Head hello{};
    ucred who{};
    socklen_t size = sizeof who;
    if (n > static_cast<ssize_t>(sizeof hello)) std::memcpy(&hello, buffer_, sizeof hello);
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size);
    const bool ours = hello.kind == Head::hello && hello.key == context_->job && who.uid == getuid() &&
                      n > static_cast<ssize_t>(sizeof hello) &&
                      hello.offset < static_cast<std::uint64_t>(context_->size);
    const auto rank = static_cast<Rank>(hello.offset);
    const auto name_size = static_cast<std::size_t>(n) - sizeof hello;
    if (!ours || peers_[rank].in >= 0 || !call(rank, {buffer_ + sizeof hello, name_size})) {
      ::close(fd);
      return true;
    }
    peers_[rank].in = fd;
    watch(fd);
    return true;
  }

  Status send(Rank rank, Head head, const iovec* pieces, int count) {
    iovec all[1 + most_pieces] = {{&head, sizeof head}};
    std::copy_n(pieces, count, all + 1);
    msghdr message{};
    message.msg_iov = all;
    message.msg_iovlen = static_cast<std::size_t>(count) + 1;
    Peer& peer = peers_[rank];
    if (sendmsg(peer.out, &message, MSG_NOSIGNAL) >= 0) return Status::ok;
    if (errno != EAGAIN && errno != ENOBUFS) return Status::ok;  // it is gone; the other socket says so
    peer.owes_ready = true;
    return Status::full;
  }

  bool receive(Rank rank, Peer& peer) {
    const ssize_t n = recv(peer.in, buffer_, sizeof buffer_, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    Head head;
    if (n < static_cast<ssize_t>(sizeof head)) {
      peer.gone = true;
      context_->events->failed(rank, true, n == 0 ? "it has closed its socket" : "its socket failed");
      return false;
    }
    std::memcpy(&head, buffer_, sizeof head);
    const auto* data = reinterpret_cast<const std::byte*>(buffer_) + sizeof head;
    const std::size_t size = static_cast<std::size_t>(n) - sizeof head;
    if (head.kind == Head::packet) {
      peer.gone = context_->events->packet(rank, {data, size}) == Take::refused;
    } else {
      land(rank, head, data, size);
    }
    return true;
  }
  void land(Rank rank, Head head, const std::byte* data, std::size_t size) {
    while (size > 0) {
      iovec pieces[16];
      const int count = context_->events->landing(rank, head.key, head.offset, size, pieces, 16);
      if (count <= 0) return;
      std::size_t copied = 0;
      for (int i = 0; i < count; ++i) {
        std::memcpy(pieces[i].iov_base, data + copied, pieces[i].iov_len);
        copied += pieces[i].iov_len;
      }
      context_->events->landed(rank, head.key, head.offset, copied);
      data += copied, size -= copied, head.offset += copied;
    }
  }

  DriverContext* context_ = nullptr;
  int epoll_ = -1, listener_ = -1;
  std::string name_;
  std::map<Rank, Peer> peers_;
  std::vector<int> greeted_;
  alignas(16) char buffer_[sizeof(Head) + longest];
};

}  // namespace

static const DriverFactory factory{contract_version, "seqpacket", "unix sockets, built outside the tree",
                                   [] { return std::unique_ptr<Driver>(new SeqPacket); }, [] { return std::string(); }};
CANELE_DRIVER_MODULE(factory)

// SPDX-License-Identifier: BSD-3-Clause
//
// A driver outside the tree: ranks of one host, over unix sockets that keep packets apart. package_test.py builds it
// against an installed Canelé, and runs the conformance kit and jobs over it.
//
// The engine calls it as canele/driver.hpp says, and serialises the calls. There is one socket for each direction. So
// two ranks that connect at the same time need no agreement, and data sent before close() can be read to its end.
//
//   A ── Hello, then what A sends ──▶ B    B believes the Hello's proof, or closes the socket;
//     ◀─ what B sends, after a Hello ─     it calls A back: now both know each other.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <canele/driver.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "siphash.hpp"

namespace {

using namespace canele::drivers;  // NOLINT: this file is one driver

constexpr std::size_t longest = 32 * 1024, longest_name = 64, most_unauthenticated = 64;
constexpr std::uint64_t listening = ~0ull;

struct Head {  ///< in front of packets and bulk
  enum Kind : std::uint64_t { packet = 1, bulk } kind;
  std::uint64_t key, offset;
};
struct Hello {  ///< identifies the caller
  std::uint64_t job;
  Rank from, to;
  char name[longest_name];  ///< of the caller's listening socket, filled up with zeros
  std::uint64_t proof;
};

/// Returns a proof over the receiver's name and the Hello. The name is drawn anew in every start, so a proof for one
/// process is of no use for another.
std::uint64_t prove(std::span<const std::byte> secret, std::string_view receiver, const Hello& hello) {
  std::uint64_t text[(longest_name + offsetof(Hello, proof)) / 8] = {};
  std::memcpy(text, receiver.data(), receiver.size());
  std::memcpy(text + longest_name / 8, &hello, offsetof(Hello, proof));
  return siphash(secret, text);
}

class SeqPacket final : public Driver {
  struct Peer {
    int out = -1, in = -1;  ///< both are open when the peer is up
    bool gone = false, owes_ready = false;
    bool ended = false;      ///< it has left; data that it sent before may still be in `in`
    std::vector<char> kept;  ///< deferred by the engine; nothing more is read until it takes this
  };

  Status open_impl(DriverContext& context, Address* address, std::string* reason) override {
    context_ = &context;
    peers_.resize(static_cast<std::size_t>(context.size));
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    listener_ = make_socket();
    name_ = "canele-seqpacket-" + std::to_string(context.job) + "-" + std::to_string(context.random());
    sockaddr_un where;
    const socklen_t length = fill(where, name_);
    if (epoll_ < 0 || bind(listener_, reinterpret_cast<sockaddr*>(&where), length) != 0 ||
        listen(listener_, SOMAXCONN) != 0) {
      *reason = std::string("no unix socket: ") + std::strerror(errno);
      close_impl();
      return Status::failed;
    }
    watch(EPOLL_CTL_ADD, listener_, EPOLLIN, listening);
    const auto* bytes = reinterpret_cast<const std::byte*>(name_.data());
    address->assign(bytes, bytes + name_.size());
    capabilities_.name = "seqpacket";
    capabilities_.max_packet = capabilities_.max_bulk = longest;
    capabilities_.bulk_stream = capabilities_.reaches_local = capabilities_.detects_failure = true;
    capabilities_.wake_up = WakeUp::descriptor;
    return Status::ok;
  }
  Status connect_impl(Rank rank, std::span<const std::byte> address) override {
    return call(rank, {reinterpret_cast<const char*>(address.data()), address.size()});
  }
  Status send_packet_impl(Rank rank, const iovec* pieces, int count, std::size_t size, Token) override {
    return send(rank, {Head::packet, 0, 0}, pieces, count, size);
  }
  Status bulk_send_impl(Rank rank, std::uint64_t key, std::uint64_t offset, const iovec* pieces, int count,
                        std::size_t size, Token) override {
    return send(rank, {Head::bulk, key, offset}, pieces, count, size);
  }
  int poll_impl(int budget) override {
    reported_ = 0;
    for (const Rank rank : std::exchange(holding_, {})) {
      const std::vector<char> bytes = std::exchange(at(rank).kept, {});
      if (!at(rank).gone) present(rank, bytes.data(), bytes.size());
    }
    epoll_event found[64];
    const int count = epoll_wait(epoll_, found, 64, 0);
    for (int i = 0; i < count; ++i) {
      const std::uint64_t who = found[i].data.u64;
      if (who == listening) {
        accept_all();
      } else if ((who & 1) != 0) {
        read_hello(static_cast<int>(who / 2));
      } else {
        serve(static_cast<Rank>(who / 2), found[i].events, std::max(1, budget / count));
      }
    }
    return reported_;
  }
  int descriptor_impl() const override { return epoll_; }
  /// Unread data keeps epoll's descriptor readable; data that was read and is kept does not.
  bool arm_impl(bool on) override { return !on || holding_.empty(); }
  void close_impl() override {
    for (Peer& peer : peers_) hang_up(peer);
    for (const int fd : unauthenticated_) ::close(fd);
    if (listener_ >= 0) ::close(listener_);
    if (epoll_ >= 0) ::close(epoll_);
  }

  Peer& at(Rank rank) { return peers_[static_cast<std::size_t>(rank)]; }
  static int make_socket() { return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }
  static socklen_t fill(sockaddr_un& where, std::string_view name) {
    where = {};
    where.sun_family = AF_UNIX;
    std::memcpy(where.sun_path + 1, name.data(), name.size());  // after a zero: an abstract name, which no file has
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  /// `who`: twice a rank; twice an unauthenticated connection's descriptor, plus one; or `listening`.
  void watch(int how, int fd, std::uint32_t what, std::uint64_t who) const {
    epoll_event event{what, {.u64 = who}};
    epoll_ctl(epoll_, how, fd, &event);
  }
  static std::uint64_t tag(Rank rank) { return static_cast<std::uint64_t>(rank) * 2; }
  static void hang_up(Peer& peer) {
    if (peer.out >= 0) ::close(std::exchange(peer.out, -1));
    if (peer.in >= 0) ::close(std::exchange(peer.in, -1));
    peer.gone = true;
  }
  void fail(Rank rank, bool lost, const char* why) {
    hang_up(at(rank));
    ++reported_;
    context_->events->failed(rank, lost, "seqpacket: rank " + std::to_string(rank) + " " + why);
  }

  /// Opens the socket on which we send to `rank`, if there is none.
  Status call(Rank rank, std::string_view name) {
    Peer& peer = at(rank);
    if (peer.out >= 0) return Status::pending;
    if (peer.gone || name.empty() || name.size() >= longest_name) return Status::failed;
    Hello hello{context_->job, context_->rank, rank, {}, 0};
    name_.copy(hello.name, longest_name - 1);
    hello.proof = prove(context_->secret, name, hello);
    sockaddr_un where;
    const socklen_t length = fill(where, name);
    const int fd = make_socket();
    if (::connect(fd, reinterpret_cast<sockaddr*>(&where), length) != 0 ||
        ::send(fd, &hello, sizeof hello, MSG_NOSIGNAL) < 0) {
      ::close(fd);
      return Status::failed;
    }
    peer.out = fd;
    watch(EPOLL_CTL_ADD, fd, EPOLLIN, tag(rank));
    return Status::pending;
  }
  void accept_all() {
    for (int fd; (fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
      ucred who{};
      socklen_t size = sizeof who;
      getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size);
      unauthenticated_.insert(fd);
      watch(EPOLL_CTL_ADD, fd, EPOLLIN, static_cast<std::uint64_t>(fd) * 2 + 1);
      if (who.uid != geteuid() || unauthenticated_.size() > peers_.size() + most_unauthenticated) reject(fd);
    }
  }
  void read_hello(int fd) {
    if (unauthenticated_.count(fd) == 0) return;  // its Hello has been read since epoll reported it
    Hello hello{};
    const ssize_t n = recv(fd, &hello, sizeof hello, MSG_TRUNC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    const Rank rank = hello.from;
    if (n != sizeof hello || hello.name[longest_name - 1] != 0 || hello.job != context_->job ||
        hello.to != context_->rank || rank < 0 || rank >= context_->size || rank == context_->rank ||
        hello.proof != prove(context_->secret, name_, hello) || at(rank).gone || at(rank).in >= 0) {
      return reject(fd);
    }
    unauthenticated_.erase(fd);
    at(rank).in = fd;
    watch(EPOLL_CTL_MOD, fd, EPOLLIN, tag(rank));
    if (call(rank, hello.name) == Status::failed) return fail(rank, false, "cannot be called back");
    ++reported_;
    context_->events->connected(rank);
  }
  void reject(int fd) {
    context_->log(2, "seqpacket: a caller that is no rank of this job was rejected");
    unauthenticated_.erase(fd);
    ::close(fd);
  }

  Status send(Rank rank, Head head, const iovec* pieces, int count, std::size_t size) {
    Peer& peer = at(rank);
    if (peer.in < 0) return Status::failed;  // disconnected, or not up yet
    std::memcpy(outgoing_, &head, sizeof head);
    char* to = outgoing_ + sizeof head;
    for (int i = 0; i < count; to += pieces[i++].iov_len) std::memcpy(to, pieces[i].iov_base, pieces[i].iov_len);
    if (::send(peer.out, outgoing_, sizeof head + size, MSG_NOSIGNAL) >= 0) return Status::ok;
    peer.owes_ready = true;  // if the socket is broken failed() comes instead, after the peer's data
    watch(EPOLL_CTL_MOD, peer.out, EPOLLIN | EPOLLOUT, tag(rank));
    return Status::full;
  }

  /// Handles an event on one of the sockets of `rank`; no data ever arrives on `out`.
  void serve(Rank rank, std::uint32_t what, int most) {
    Peer& peer = at(rank);
    if (peer.gone) return;
    peer.ended = peer.ended || (what & (EPOLLHUP | EPOLLERR)) != 0;
    if (peer.in < 0 && peer.ended) {  // it may have called back and sent before it left: no refusal
      accept_all();
      for (const int fd : std::set<int>(unauthenticated_)) read_hello(fd);
      if (peer.gone) return;
    }
    if (peer.in < 0) return peer.ended ? fail(rank, false, "has rejected the connection") : void();
    if (peer.owes_ready && (what & EPOLLOUT) != 0 && !peer.ended) {
      peer.owes_ready = false;
      watch(EPOLL_CTL_MOD, peer.out, EPOLLIN, tag(rank));
      ++reported_;
      context_->events->ready(rank);
    }
    while (most-- > 0 && !peer.gone && peer.kept.empty()) {
      const ssize_t n = recv(peer.in, incoming_, sizeof incoming_, MSG_TRUNC);
      if (n < 0 && (errno == EAGAIN || errno == EINTR) && !peer.ended) return;
      if (n <= 0) return fail(rank, true, "has closed its connection");
      present(rank, incoming_, static_cast<std::size_t>(n));
    }
  }
  void present(Rank rank, const char* bytes, std::size_t size) {
    Head head{};
    if (size > sizeof head && size <= sizeof incoming_) std::memcpy(&head, bytes, sizeof head);
    const auto* body = reinterpret_cast<const std::byte*>(bytes) + sizeof head;
    if (head.kind == Head::bulk) return write_bulk(rank, head, body, size - sizeof head);
    if (head.kind != Head::packet) return fail(rank, true, "has sent malformed data");
    const Take take = context_->events->packet(rank, {body, size - sizeof head});
    if (take == Take::retry) {
      at(rank).kept.assign(bytes, bytes + size);
      holding_.push_back(rank);
      return;
    }
    ++reported_;
    if (take == Take::rejected) hang_up(at(rank));
  }
  void write_bulk(Rank rank, Head head, const std::byte* data, std::size_t size) {
    ++reported_;
    while (size > 0) {
      iovec pieces[16];
      const int count = context_->events->bulk_destination(rank, head.key, head.offset, size, pieces, 16);
      if (count <= 0) return;
      std::size_t copied = 0;
      for (int i = 0; i < count; copied += pieces[i++].iov_len) {
        std::memcpy(pieces[i].iov_base, data + copied, pieces[i].iov_len);
      }
      context_->events->bulk_written(rank, head.key, head.offset, copied);
      data += copied, size -= copied, head.offset += copied;
    }
  }

  DriverContext* context_ = nullptr;
  int epoll_ = -1, listener_ = -1, reported_ = 0;
  std::string name_;
  std::vector<Peer> peers_;
  std::set<int> unauthenticated_;  ///< connections that have not identified themselves
  std::vector<Rank> holding_;      ///< peers with kept data
  alignas(16) char incoming_[sizeof(Head) + longest], outgoing_[sizeof(Head) + longest];
};

}  // namespace

static const DriverFactory factory{contract_version, "seqpacket", "unix sockets, built outside the tree",
                                   [] { return std::unique_ptr<Driver>(new SeqPacket); }, [] { return std::string(); }};
CANELE_DRIVER_MODULE(factory)

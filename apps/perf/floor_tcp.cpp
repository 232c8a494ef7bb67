// SPDX-License-Identifier: BSD-3-Clause
//
// The floor of TCP: one socket over loop-back, non-blocking, with TCP_NODELAY and Reno's congestion control; send and
// recv are called again and again.
//
// Both ranks must run on one host. Between hosts there is no floor here, and the report says so.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "floor.hpp"

namespace canele::perf {
namespace {

constexpr int most_polls = 500;  // system calls: about 100 us

[[noreturn]] void fail(const char* call) { throw std::runtime_error(std::string(call) + ": " + std::strerror(errno)); }

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  int get() const { return number_; }

 private:
  int number_;
};

sockaddr* generic(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }

sockaddr_in loop_back(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

class TcpFloor final : public Floor {
 public:
  TcpFloor(Job& job, std::size_t most)
      : job_(job), spin_(job.oversubscribed(), most_polls), buffer_(most < 1 ? 1 : most) {
    socket_ = job.first() ? listen_and_accept() : connect_to_first();
    const int on = 1;
    if (setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) fail("TCP_NODELAY");
    // Like our driver: the algorithm with the least work. If it is not available, the system's default stays.
    setsockopt(socket_.get(), IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    if (fcntl(socket_.get(), F_SETFL, O_NONBLOCK) != 0) fail("O_NONBLOCK");
  }

  std::string name() const override { return "raw spinning socket on loop-back"; }

  double ping_pong(std::size_t size, int rounds) override {
    const std::span message(buffer_.data(), size < 1 ? 1 : size);
    const std::uint64_t start = job_.engine.now();
    for (int i = 0; i < rounds; ++i) {
      if (job_.first()) {
        put(message);
        get(message);
      } else {
        get(message);
        put(message);
      }
    }
    return static_cast<double>(job_.engine.now() - start) / rounds / 2;
  }

  double stream(std::size_t size, int window, int rounds) override {
    const std::span message(buffer_.data(), size < 1 ? 1 : size);
    const std::span answer(buffer_.data(), 1);
    const std::uint64_t start = job_.engine.now();
    for (int round = 0; round < rounds; ++round) {
      for (int i = 0; i < window; ++i) job_.first() ? put(message) : get(message);
      job_.first() ? get(answer) : put(answer);
    }
    return static_cast<double>(job_.engine.now() - start) / (rounds * window);
  }

 private:
  Descriptor listen_and_accept() {
    Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = loop_back(0);
    socklen_t length = sizeof address;
    if (listener.get() < 0) fail("socket");
    if (bind(listener.get(), generic(address), length) != 0) fail("bind to 127.0.0.1");
    if (listen(listener.get(), 1) != 0) fail("listen");
    if (getsockname(listener.get(), generic(address), &length) != 0) fail("getsockname");
    const std::uint16_t port = ntohs(address.sin_port);
    job_.session.send(job_.peer(), 3, canele::one(port));
    Descriptor accepted(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (accepted.get() < 0) fail("accept");
    return accepted;
  }

  Descriptor connect_to_first() {
    std::uint16_t port = 0;
    job_.session.recv(job_.peer(), 3, canele::one(port));
    sockaddr_in address = loop_back(port);
    Descriptor connected(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connected.get() < 0) fail("socket");
    if (connect(connected.get(), generic(address), sizeof address) != 0) fail("connect to 127.0.0.1");
    return connected;
  }

  /// Handles a call that moved nothing: spins, or yields; throws if the connection is gone.
  void again(ssize_t result) {
    if (result == 0) throw std::runtime_error("the peer closed the floor's connection");
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) fail("the floor's socket");
    spin_.missed();
  }

  void put(std::span<const std::byte> message) {
    while (!message.empty()) {
      const ssize_t sent = send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL);
      if (sent > 0) {
        message = message.subspan(static_cast<std::size_t>(sent));
      } else {
        again(sent);
      }
    }
  }

  void get(std::span<std::byte> message) {
    while (!message.empty()) {
      const ssize_t received = recv(socket_.get(), message.data(), message.size(), 0);
      if (received > 0) {
        message = message.subspan(static_cast<std::size_t>(received));
        spin_.hit();
      } else {
        again(received);
      }
    }
  }

  Job& job_;
  SpinThenYield spin_;
  std::vector<std::byte> buffer_;
  Descriptor socket_;
};

}  // namespace

std::unique_ptr<Floor> make_tcp_floor(Job& job, std::size_t most) { return std::make_unique<TcpFloor>(job, most); }

}  // namespace canele::perf

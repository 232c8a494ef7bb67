// SPDX-License-Identifier: BSD-3-Clause
//
// What the tests of the tcp driver share: a world of two, raw sockets to a rank, and a peer that the test plays.
//
// One thread; both ends live in this process and are polled in turn. CANELE_EXPERT_TCP_SEND_BUFFER makes the kernel's
// buffer small, so that short writes are the rule and not the exception.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <vector>

#include "drivers/net/handshake.hpp"
#include "drivers/net/socket.hpp"
#include "drivers/tcp/address.hpp"
#include "drivers/tcp/frame.hpp"
#include "drivers/tcp/tcp.hpp"
#include "tests/conformance/driver_kit.hpp"

namespace canele::drivers::tcp {

using conformance::Bytes;
using conformance::cut;
using conformance::Node;
using conformance::pattern;
using conformance::World;

/// Returns a connected socket to the listener of `node`.
inline net::UniqueFd dial(const Node& node) {
  PeerAddress where;
  EXPECT_TRUE(unpack_address(node.address, &where));
  const auto list = candidates(where, net::host_id());
  EXPECT_FALSE(list.empty());
  net::UniqueFd fd(::socket(list[0].v6() ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(fd.get(), list[0].address(), list[0].size()), 0) << list[0].text();
  EXPECT_EQ(::fcntl(fd.get(), F_SETFL, O_NONBLOCK), 0);
  return fd;
}

inline bool is_closed(int fd) {
  char byte;
  const ssize_t n = ::recv(fd, &byte, 1, MSG_DONTWAIT);
  return n == 0 || (n < 0 && errno != EAGAIN);
}

/// Rank 1 of a world of 2, played by the test over a raw socket: authenticated, then free to send anything.
class FalsePeer {
 public:
  explicit FalsePeer(Node& node) : node_(node), context_(1, 2), self_(context_, "tcp"), fd_(dial(node)) {
    auto shake = net::Handshake::initiator(self_, context_, 0, 0, {});
    for (int i = 0; i < 100000 && shake.state() == net::Handshake::State::working; ++i) {
      shake.step(fd_.get());
      node_.poll();
    }
    EXPECT_EQ(shake.state(), net::Handshake::State::done) << shake.reason();
  }
  void send(const void* bytes, std::size_t size) {
    for (std::size_t sent = 0; sent < size;) {
      const ssize_t n = ::send(fd_.get(), static_cast<const char*>(bytes) + sent, size - sent, MSG_NOSIGNAL);
      if (n > 0) sent += static_cast<std::size_t>(n);
      node_.poll();
      if (n < 0 && errno != EAGAIN) return;
    }
  }
  void send(const Bytes& bytes) { send(bytes.data(), bytes.size()); }
  void hang_up() { fd_.reset(); }
  int fd() const { return fd_.get(); }

 private:
  Node& node_;
  conformance::KitContext context_;
  net::Party self_;
  net::UniqueFd fd_;
};

inline Bytes frame(Kind kind, std::size_t length, const Bytes& payload, std::uint64_t key = 0,
                   std::uint64_t offset = 0) {
  const FrameHeader header = make_header(kind, length, key, offset);
  Bytes made(header.bytes, header.bytes + header.size);
  made.insert(made.end(), payload.begin(), payload.end());
  return made;
}

class Tcp : public testing::Test {
 protected:
  World world{tcp_factory};
  Node& a = world[0];
  Node& b = world[1];

  void small_buffers() {
    for (auto& node : world.nodes) node->context.settings["EXPERT_TCP_SEND_BUFFER"] = "4096";
  }
  void open_and_join() {
    world.open();
    world.join(0, 1);
  }
  /// Sends until the driver says full; returns how many packets it has taken, with the `sent` ones before.
  int fill(std::size_t size, int sent = 0) {
    while (true) {
      const Status status = a.send(1, pattern(size, static_cast<std::uint64_t>(sent)));
      if (status == Status::full) return sent;
      ++sent;
    }
  }
  void expect_arrived(Node& node, int count, std::size_t size) {
    ASSERT_TRUE(world.until([&] { return node.packets.size() == static_cast<std::size_t>(count); }));
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(node.packets[static_cast<std::size_t>(i)].bytes, pattern(size, static_cast<std::uint64_t>(i))) << i;
    }
  }
};

}  // namespace canele::drivers::tcp

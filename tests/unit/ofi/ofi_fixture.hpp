// SPDX-License-Identifier: BSD-3-Clause
//
// What the tests of the ofi driver share: worlds on a given provider, unauthenticated endpoints, and a peer that the
// test plays.
//
// One thread; all endpoints live in this process (which works for the three providers tested). IP providers are
// confined to the loopback interface, so that the tests need no network.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "drivers/net/bytes.hpp"
#include "drivers/ofi/address.hpp"
#include "drivers/ofi/buffers.hpp"
#include "drivers/ofi/copies.hpp"
#include "drivers/ofi/deferred_close.hpp"
#include "drivers/ofi/link.hpp"
#include "drivers/ofi/ofi.hpp"
#include "drivers/ofi/provider.hpp"
#include "drivers/ofi/wire.hpp"
#include "tests/conformance/driver_kit.hpp"

namespace canele::drivers::ofi {

using conformance::Bytes;
using conformance::cut;
using conformance::KitContext;
using conformance::Node;
using conformance::pattern;
using conformance::World;

inline std::string domain_for(const std::string& provider) { return provider == "shm" ? "" : "lo"; }

/// An endpoint that belongs to no rank: sends anything to any address.
class Outsider {
 public:
  explicit Outsider(const std::string& provider)
      : shares_memory_(provider == "shm"), context_(0, 2), endpoint_(std::make_unique<Endpoint>(context_)) {
    std::string reason;
    Info info = choose_provider({provider, domain_for(provider)}, &reason);
    EXPECT_TRUE(info) << reason;
    EXPECT_TRUE(endpoint_->open(std::move(info), longest_message, &reason)) << reason;
    if (shares_memory_) note_opened();
    memory_.resize(64 * longest_message);
    int error = 0;
    region_ = endpoint_->register_local(memory_.data(), memory_.size(), FI_RECV, &error);
    for (std::size_t i = 0; i < 64; ++i) ops_.push_back(std::make_unique<Op>(Op::Kind::receive));
    for (std::size_t i = 0; i < 64; ++i) post(i);
  }
  ~Outsider() {
    region_.reset();
    if (shares_memory_) {
      close_or_defer({std::move(endpoint_), nullptr, nullptr});
    } else {
      endpoint_->close();
    }
  }

  std::vector<std::byte> name() const { return {endpoint_->name().begin(), endpoint_->name().end()}; }
  void meet(const Address& address) {
    PublishedName where;
    ASSERT_TRUE(unpack_address(address, &where));
    to_ = endpoint_->add(where.name);
    ASSERT_NE(to_, FI_ADDR_UNSPEC);
  }
  /// Makes one attempt. Returns false if the provider does not take it now.
  bool try_send(const Bytes& bytes) {
    outgoing_.push_back(std::make_unique<Outgoing>(bytes));
    Outgoing& one = *outgoing_.back();
    const auto result = ::fi_send(endpoint_->ep(), one.bytes.data(), one.bytes.size(), nullptr, to_, &one.op);
    if (result == 0) return true;
    outgoing_.pop_back();
    return false;
  }
  /// Receives the messages that have come.
  void poll() {
    std::array<fi_cq_data_entry, 16> entries;
    const auto count = ::fi_cq_read(endpoint_->cq(), entries.data(), entries.size());
    if (count == -FI_EAVAIL) {
      fi_cq_err_entry error = {};
      errors += ::fi_cq_readerr(endpoint_->cq(), &error, 0) == 1;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < ops_.size(); ++k) {
        if (ops_[k].get() != entries[static_cast<std::size_t>(i)].op_context) continue;
        const std::byte* const at = memory_.data() + k * longest_message;
        received.emplace_back(at, at + entries[static_cast<std::size_t>(i)].len);
        post(k);
      }
    }
  }
  /// Ends without a goodbye.
  void vanish() { endpoint_->close(); }

  std::vector<Bytes> received;
  int errors = 0;

 private:
  struct Outgoing {
    explicit Outgoing(Bytes of) : op(Op::Kind::send), bytes(std::move(of)) {}
    Op op;
    Bytes bytes;
  };
  void post(std::size_t i) {
    EXPECT_EQ(::fi_recv(endpoint_->ep(), memory_.data() + i * longest_message, longest_message, nullptr, FI_ADDR_UNSPEC,
                        ops_[i].get()),
              0);
  }

  const bool shares_memory_;
  KitContext context_;
  std::unique_ptr<Endpoint> endpoint_;
  Bytes memory_;
  Region region_;
  std::vector<std::unique_ptr<Op>> ops_;
  std::vector<std::unique_ptr<Outgoing>> outgoing_;
  fi_addr_t to_ = FI_ADDR_UNSPEC;
};

class Ofi : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string reason;
    if (!choose_provider({GetParam(), domain_for(GetParam())}, &reason)) GTEST_SKIP() << reason;
    adjust(world);
  }
  void adjust(World& some) const {
    for (auto& node : some.nodes) {
      node->context.settings["OFI_PROVIDER"] = GetParam();
      node->context.settings["OFI_DOMAIN"] = domain_for(GetParam());
    }
  }
  void open_and_join() {
    world.open();
    world.join(0, 1);
  }
  /// Sends until the driver says full; returns how many packets it took.
  int fill(std::size_t size) {
    int sent = 0;
    while (a.send(1, pattern(size, static_cast<std::uint64_t>(sent))) != Status::full) ++sent;
    return sent;
  }
  Secret secret() const {
    Secret made;
    std::copy_n(a.context.key, made.size(), made.begin());
    return made;
  }
  /// Sends `bytes`, polling both, until the provider takes them.
  void push(Outsider& outsider, const Bytes& bytes) {
    ASSERT_TRUE(world.until([&] { return outsider.poll(), outsider.try_send(bytes); }));
  }

  World world{ofi_factory};
  Node& a = world[0];
  Node& b = world[1];
};

/// Rank 1 of a world of 2, played by the test: it sends a Hello to rank 0, and may then send anything.
class FalsePeer {
 public:
  /// `port`: for keepalive.
  FalsePeer(World& world, const std::string& provider, const Secret& secret, std::uint16_t port = 0)
      : outsider(provider), world_(world) {
    Node& node = world[0];
    outsider.meet(node.address);
    const auto hello = make_hello({1, 0, node.context.job, 77, Nonce{}, outsider.name(), port}, secret);
    EXPECT_TRUE(world_.until([&] { return outsider.poll(), outsider.try_send(hello); }));
    EXPECT_TRUE(world_.until([&] { return outsider.poll(), !outsider.received.empty(); }));
    std::uint64_t incarnation = 0;
    EXPECT_TRUE(read_challenge(outsider.received.at(0), hello, secret, &incarnation, &keys_));
    EXPECT_EQ(incarnation, node.context.incarnation);
  }
  Bytes message(Kind kind, std::uint16_t number, const Bytes& body, std::uint64_t key_change = 0) const {
    Bytes made(head_size);
    write_head(made.data(), {keys_.to_acceptor ^ key_change, 1, kind, number, 0});
    made.insert(made.end(), body.begin(), body.end());
    return made;
  }
  void send(Kind kind, std::uint16_t number, const Bytes& body, std::uint64_t key_change = 0) {
    const Bytes bytes = message(kind, number, body, key_change);
    ASSERT_TRUE(world_.until([&] { return outsider.poll(), outsider.try_send(bytes); }));
  }

  Outsider outsider;

 private:
  World& world_;
  Keys keys_;
};

inline std::string name_of(const testing::TestParamInfo<const char*>& info) {
  std::string name;
  for (const char* at = info.param; *at != 0; ++at) name += std::isalnum(static_cast<unsigned char>(*at)) ? *at : '_';
  return name;
}

}  // namespace canele::drivers::ofi

#define CANELE_OFI_PROVIDERS(Suite) \
  INSTANTIATE_TEST_SUITE_P(Providers, Suite, testing::Values("tcp;ofi_rxm", "shm", "udp;ofi_rxd"), name_of)

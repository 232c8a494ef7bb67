// SPDX-License-Identifier: BSD-3-Clause
//
// Conformance: what a driver declares, and how connections begin: at first use, rejected, simultaneous, in numbers.
#include <sys/socket.h>

#include <cerrno>
#include <fstream>

#include "drivers/net/handshake.hpp"
#include "drivers/net/socket.hpp"
#include "tests/conformance/suite.hpp"
#include "tests/conformance/traffic.hpp"

namespace canele::conformance {
namespace {

constexpr std::size_t no_limit = 0;

void declares(Job& job) {
  const Capabilities& can = job.can();
  EXPECT_FALSE(can.name.empty());
  EXPECT_GE(can.max_packet, 1024u);
  EXPECT_LE(can.max_inline, can.max_packet);
  EXPECT_GE(can.max_bulk, 1024u);
  EXPECT_GE(can.max_rma, 1024u);
  EXPECT_TRUE(can.reaches_self || can.reaches_local || can.reaches_remote);
  EXPECT_LE(can.rkey_size, drivers::MemoryKey::max_size);
  EXPECT_TRUE(can.rkey_size > 0 || !(can.get || can.put)) << "an rkey without bytes";
  EXPECT_TRUE(can.get || can.put || !can.rma_any_thread) << "rma_any_thread, and neither get nor put";
  EXPECT_TRUE(can.get || can.put || can.bulk_stream) << "no way for large messages";
  EXPECT_EQ(job.node.driver->descriptor() >= 0, can.wake_up != drivers::WakeUp::none);
  EXPECT_GT(can.bandwidth, 0.0);
  EXPECT_GE(can.max_instances, static_cast<int>(no_limit));
}

void two_ranks_connect(Job& job) {
  if (!job.connect_all()) return;
  for (Rank to = 0; to < job.size; ++to) {
    if (job.is_up(to)) {
      ASSERT_TRUE(job.send(to, pattern(100, static_cast<std::uint64_t>(job.rank))));
    }
  }
  const std::size_t expected = job.node.up.size();
  ASSERT_TRUE(job.until([&] { return job.node.packets.size() == expected; }, "a packet from each"));
  for (const auto& packet : job.node.packets) {
    EXPECT_TRUE(packet.bytes == pattern(100, static_cast<std::uint64_t>(packet.from)));
  }
}

// Dials with malformed addresses: half of one, none, other bytes.
void bad_address(Job& job) {
  const drivers::Address& own = job.node.address;
  const auto half = static_cast<std::ptrdiff_t>(own.size() / 2);
  const drivers::Address wrong[3] = {{own.begin(), own.begin() + half}, {}, pattern(own.size(), 99)};
  job.may_fail.insert(job.absent());
  const Status status = job.node.driver->connect(job.absent(), wrong[job.rank % 3]);
  if (status != Status::failed) {
    ASSERT_TRUE(job.until([&] { return job.has_failed(job.absent()); }, "failed() for a rank with no right address"));
  }
  EXPECT_EQ(job.node.up.count(job.absent()), 0u);
  two_ranks_connect(job);  // and nothing else is disturbed
}

void peer_has_left(Job& job) {
  if (job.rank == 1) job.node.close();
  ASSERT_TRUE(job.barrier("rank 1 has closed"));
  if (job.rank == 1) return;
  job.may_fail.insert(1);
  if (job.connect(1) == Status::failed) return;
  ASSERT_TRUE(job.until([&] { return job.has_failed(1); }, "failed() for a rank that has left"));
  EXPECT_FALSE(job.node.failures[1].second.empty());
}

void wrong_secret(Node& node) {
  if (node.context.rank == 1) node.context.key[3] ^= std::byte{1};
}

// Rank 1 does not know the job's secret. The ranks that it calls and the ranks that call it learn of the rejection; the
// other connections are not disturbed.
void reject_secret(Job& job) {
  for (Rank peer = 0; peer < job.size; ++peer) {
    if (job.rank == 1 || peer == 1) job.may_fail.insert(peer);
  }
  for (Rank peer = job.rank + 1; peer < job.size; ++peer) ASSERT_NE(job.connect(peer), Status::failed);
  if (job.rank == 0) {
    ASSERT_TRUE(job.until([&] { return job.has_failed(1) && job.is_up(2); }, "failed(1) and connected(2)"));
    EXPECT_FALSE(job.node.failures[1].second.empty());
  } else if (job.rank == 1) {
    ASSERT_TRUE(job.until([&] { return job.has_failed(2); }, "failed(2) for want of the secret"));
  } else {
    ASSERT_TRUE(job.until([&] { return job.is_up(0); }, "connected(0)"));
  }
  for (const Rank peer : job.node.up) {
    EXPECT_TRUE(job.rank != 1 && peer != 1) << "rank " << peer << " was let in";
    ASSERT_TRUE(job.send(peer, pattern(500, 7)));
    ASSERT_TRUE(job.until([&] { return job.node.packets.size() == 1; }, "a packet beside the rejected rank"));
  }
}

/// Opens a stream to rank `to` and continues the handshake until it ends.
drivers::net::Handshake::State shake(Job& job, Rank to, std::uint16_t version, std::string* reason) {
  using drivers::net::Handshake;
  drivers::net::UniqueFd fd(job.options.dial(job.addresses[static_cast<std::size_t>(to)]));
  EXPECT_TRUE(static_cast<bool>(fd));
  drivers::net::Party self(job.node.context, job.can().name);
  self.version = version;
  Handshake handshake = Handshake::initiator(self, job.node.context, to, 0, {});
  job.until(
      [&] {
        handshake.step(fd.get());
        job.busy();
        return handshake.state() == Handshake::State::done || handshake.state() == Handshake::State::failed;
      },
      "the end of a handshake");
  *reason = handshake.reason();
  return handshake.state();
}

void reject_version(Job& job) {
  if (job.rank == 1) {
    std::string reason;
    const auto wrong = static_cast<std::uint16_t>(drivers::net::wire_version + 1);
    EXPECT_EQ(shake(job, 0, wrong, &reason), drivers::net::Handshake::State::failed);
    EXPECT_NE(reason.find(std::to_string(wrong)), std::string::npos) << reason;
    EXPECT_NE(reason.find(std::to_string(drivers::net::wire_version)), std::string::npos) << reason;
  }
  ASSERT_TRUE(job.align("a handshake with the wrong version"));
  EXPECT_TRUE(job.node.up.empty() && job.node.failures.empty());
  two_ranks_connect(job);
}

long resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    long kib = 0;
    if (word == "VmRSS:" && status >> kib) return kib;
  }
  return 0;
}

// 1,000 unauthenticated peers, silent, half-spoken or sending garbage, keep their connections while the job goes on.
void unauthenticated(Job& job) {
  const long before = resident_kib();
  std::vector<drivers::net::UniqueFd> open;
  if (job.rank == 1) {
    const Bytes garbage = pattern(4096, 5);
    ASSERT_TRUE(job.until(
        [&] {
          drivers::net::UniqueFd fd(job.options.dial(job.addresses[0]));
          job.busy();
          if (!fd) return false;  // the listener's queue is full: it will be emptied
          const std::size_t says = open.size() % 3 == 0 ? 0 : open.size() % 3 == 1 ? 11 : garbage.size();
          if (says > 0) ::send(fd.get(), garbage.data(), says, MSG_NOSIGNAL | MSG_DONTWAIT);
          open.push_back(std::move(fd));
          return open.size() == 1000;
        },
        "1,000 connections of unauthenticated peers"));
  }
  ASSERT_TRUE(job.align("unauthenticated peers have come"));
  EXPECT_TRUE(job.node.up.empty() && job.node.failures.empty());
  two_ranks_connect(job);
  if (job.rank == 0 && slowness == 1) {
    EXPECT_LT(resident_kib() - before, 16 * 1024);
  }
}

void everyone_at_once(Job& job) {
  ASSERT_TRUE(job.barrier("all are open"));
  for (Rank peer = 0; peer < job.size; ++peer) {
    if (peer != job.rank) {
      ASSERT_NE(job.connect(peer), Status::failed) << peer;
    }
  }
  const auto all = static_cast<std::size_t>(job.size - 1);
  ASSERT_TRUE(job.until([&] { return job.node.up.size() == all; }, "simultaneous connections"));
  for (const Rank peer : job.node.up) ASSERT_TRUE(job.send(peer, pattern(200, static_cast<std::uint64_t>(job.rank))));
  ASSERT_TRUE(job.until([&] { return job.node.packets.size() == all; }, "a packet from each"));
}

std::string needs_secret(const Capabilities& can, const Options& options) {
  if (is_only_self(can)) return "reaches only its own rank";
  return options.authenticates ? "" : "the fabric keeps unauthenticated peers out, not the driver";
}
std::string needs_dial(const Capabilities& can, const Options& options) {
  if (is_only_self(can)) return "reaches only its own rank";
  return options.dial ? "" : "no stream socket that an unauthenticated peer could talk to";
}
std::string needs_two_instances(const Capabilities& can, const Options&) {
  if (is_only_self(can)) return "reaches only its own rank";
  return can.max_instances == 0 ? "" : "max_instances is " + std::to_string(can.max_instances);
}
std::string needs_a_limit(const Capabilities& can, const Options&) {
  return can.max_instances > 0 ? "" : "any number of instances per process";
}

void instances_in_one_process(Job& job) { connect_and_exchange(job, 300, 77); }

// Opens one instance more than declared: an error with a reason, and the first instances continue to work.
void too_many_instances(Job& job) {
  Node extra(job.factory, 0, 1);
  extra.context.real_time = true;
  for (const auto& [name, value] : job.options.settings) extra.context.settings[name] = value;
  std::vector<std::unique_ptr<Node>> more;
  for (int i = 1; i < job.can().max_instances; ++i) {
    more.push_back(std::make_unique<Node>(job.factory, 0, 1));
    ASSERT_EQ(more.back()->open(), Status::ok) << more.back()->reason;
  }
  EXPECT_EQ(extra.open(), Status::failed);
  EXPECT_FALSE(extra.reason.empty());
  two_ranks_connect(job);
}

constexpr TestCase cases[] = {
    {"declares", 1, declares},
    {"connect", 3, two_ranks_connect},
    {"bad_address", 3, bad_address},
    {"peer_has_left", 2, peer_has_left, needs_others},
    {"reject_secret", 3, reject_secret, needs_secret, wrong_secret},
    {"reject_version", 2, reject_version, needs_dial},
    {"unauthenticated", 2, unauthenticated, needs_dial},
    {"simultaneous_connect", 6, everyone_at_once, needs_others},
    {"several_instances", 3, instances_in_one_process, needs_two_instances, nullptr, true},
    {"instance_limit", 2, too_many_instances, needs_a_limit},
};

}  // namespace

std::span<const TestCase> connection_tests() { return cases; }

}  // namespace canele::conformance

// SPDX-License-Identifier: BSD-3-Clause
//
// Conformance: rma() both ways, malformed memory keys, copies by several threads beside traffic.
//
// Rank 0 registers, rank 1 copies; a rank that is alone does both. The test of rma_any_thread has four threads that
// copy.
#include <sys/mman.h>

#include <atomic>
#include <set>
#include <thread>

#include "tests/conformance/suite.hpp"
#include "tests/conformance/traffic.hpp"

namespace canele::conformance {
namespace {

using drivers::MemoryKey;
using drivers::RmaOp;

constexpr std::size_t registered_size = (4u << 20) + 77;

/// Registers `memory` for the partner and sends it the rkey; returns the rkey's bytes at the partner.
Bytes exchange_rkey(Job& job, RmaOp op, const std::vector<iovec>& memory, MemoryKey* own) {
  if (job.rank == 0) {
    const Status status =
        job.node.driver->register_memory(job.partner(), op, memory.data(), static_cast<int>(memory.size()), own);
    EXPECT_EQ(status, Status::ok) << "register_memory() of " << memory.size() << " pieces";
    if (status != Status::ok) return {};
    EXPECT_LE(own->size, job.can().rkey_size);
    EXPECT_GT(own->size, 0);
    if (!job.send(job.partner(), Bytes(own->bytes, own->bytes + own->size))) return {};
  }
  if (job.rank == 0 && !job.is_alone()) return {};
  if (!job.until([&] { return !job.node.packets.empty(); }, "an rkey")) return {};
  Bytes got = job.node.packets.front().bytes;
  job.node.packets.pop_front();
  return got;
}

/// Makes one copy, and waits for its end.
Status copy(Job& job, RmaOp op, const Bytes& rkey, std::uint64_t offset, const std::vector<iovec>& pieces,
            std::size_t size) {
  const Rank peer = job.partner();
  for (;;) {
    const std::size_t results = job.node.results.size();
    Status status = job.node.copy(peer, op, rkey, offset, pieces, size);
    if (job.can().rma_any_thread) {
      EXPECT_TRUE(status == Status::ok || status == Status::failed) << "rma_any_thread answers at once";
    }
    if (status == Status::full) {
      job.until([&] { return !job.node.ready_ranks.empty(); }, "ready() after a full copy");
      continue;
    }
    if (status != Status::pending) return status;
    if (!job.until([&] { return job.node.results.size() > results; }, "the end of a copy")) return Status::failed;
    return job.node.results.back();
  }
}

std::set<std::size_t> copy_sizes(const Capabilities& can) {
  std::set<std::size_t> sizes;
  const std::size_t most = std::min<std::size_t>(can.max_rma, registered_size - 5000);
  for (const std::size_t limit : {1u, 8u, 64u, 4096u, 16384u, 65536u, 1u << 20}) {
    for (const std::size_t size : {limit - 1, limit, limit + 1}) {
      if (size > 0 && size <= most) sizes.insert(size);
    }
  }
  sizes.insert(most);
  return sizes;
}

void copies_of_all_sizes(Job& job, RmaOp op, std::size_t piece) {
  Bytes memory = pattern(registered_size, 1);
  MemoryKey own;
  const Bytes rkey = exchange_rkey(job, op, cut(memory, registered_size / piece + 1), &own);
  if (job.rank == 1 || job.is_alone()) {
    ASSERT_FALSE(rkey.empty());
    Bytes model = memory, local(registered_size);
    for (const std::size_t size : copy_sizes(job.can())) {
      const std::size_t offset = size % 4999;
      if (op == RmaOp::put) local = pattern(registered_size, size);
      std::fill_n(local.begin(), op == RmaOp::get ? size : 0, std::byte{0});
      auto pieces = cut(local, size / 3 + 1);
      std::vector<iovec> some(16);
      some.resize(static_cast<std::size_t>(slice(pieces, 0, size, some.data(), 16)));
      ASSERT_EQ(copy(job, op, rkey, offset, some, size), Status::ok) << size;
      const auto there = model.begin() + static_cast<std::ptrdiff_t>(offset);
      if (op == RmaOp::put) std::copy_n(local.begin(), size, there);
      ASSERT_TRUE(std::equal(there, there + static_cast<std::ptrdiff_t>(size), local.begin())) << size;
    }
    if (op == RmaOp::put) {
      ASSERT_TRUE(job.send(job.partner(), pattern(8, 1)));
    }
    if (job.is_alone() && op == RmaOp::put) {
      ASSERT_TRUE(job.until([&] { return !job.node.packets.empty(); }, "the end of the puts"));
    }
    if (job.is_alone()) {
      EXPECT_TRUE(memory == model);
    }
  }
  if (op == RmaOp::put && job.rank == 0 && !job.is_alone()) {
    // The last put to each byte decides; the model repeats them.
    Bytes model = pattern(registered_size, 1);
    for (const std::size_t size : copy_sizes(job.can())) {
      const Bytes local = pattern(registered_size, size);
      std::copy_n(local.begin(), size, model.begin() + static_cast<std::ptrdiff_t>(size % 4999));
    }
    ASSERT_TRUE(job.until([&] { return !job.node.packets.empty(); }, "the end of the puts"));
    EXPECT_TRUE(memory == model);
  }
  if (op == RmaOp::put && job.rank == 0) job.node.packets.pop_front();
  ASSERT_TRUE(job.barrier("the copies are done"));
  if (own.handle != 0) job.node.driver->deregister(own.handle);
}

void get(Job& job) {
  if (!job.connect_all()) return;
  copies_of_all_sizes(job, RmaOp::get, 1);
  copies_of_all_sizes(job, RmaOp::get, 4);
}
void put(Job& job) {
  if (!job.connect_all()) return;
  copies_of_all_sizes(job, RmaOp::put, 1);
  copies_of_all_sizes(job, RmaOp::put, 4);
}

// Malformed memory keys, and copies beyond the end of registered memory, fail, and the peer stays as healthy as before.
void bad_rkey(Job& job) {
  if (!job.connect_all()) return;
  const RmaOp op = job.can().get ? RmaOp::get : RmaOp::put;
  Bytes memory = pattern(100'000, 4);
  MemoryKey own;
  const Bytes rkey = exchange_rkey(job, op, cut(memory, memory.size()), &own);
  if (job.rank == 1 || job.is_alone()) {
    ASSERT_FALSE(rkey.empty());
    Bytes local(100'000);
    const auto whole = cut(local, local.size());
    EXPECT_EQ(copy(job, op, rkey, 1, whole, 100'000), Status::failed) << "beyond the end";
    EXPECT_EQ(copy(job, op, rkey, 1ull << 40, whole, 1), Status::failed) << "far beyond the end";
    EXPECT_EQ(copy(job, op, Bytes(rkey.begin(), rkey.end() - 1), 0, whole, 10), Status::failed) << "cut";
    EXPECT_EQ(copy(job, op, {}, 0, whole, 10), Status::failed) << "empty";
    EXPECT_EQ(copy(job, op, pattern(drivers::MemoryKey::max_size, 8), 0, whole, 10), Status::failed) << "garbage";
    EXPECT_EQ(copy(job, op, rkey, 0, whole, 100'000), Status::ok);
  }
  ASSERT_TRUE(job.barrier("the peers are healthy"));
  if (own.handle != 0) job.node.driver->deregister(own.handle);
}

/// Memory registered for all peers is copied at once, and read by the partner.
void broadcast_segment(Job& job) {
  if (!job.connect_all()) return;
  for (const std::size_t size : {std::size_t{1}, std::size_t{70'000}, job.can().broadcast_segment}) {
    Bytes memory = pattern(size, 9);
    const Bytes right = memory;
    MemoryKey own;
    if (job.rank == 0) {
      const auto pieces = cut(memory, size / 3 + 1);
      ASSERT_EQ(job.node.driver->register_memory(drivers::all_peers, RmaOp::get, pieces.data(),
                                                 static_cast<int>(pieces.size()), &own),
                Status::ok);
      EXPECT_NE(own.handle, 0u);
      ASSERT_NE(own.copied, nullptr);
      EXPECT_TRUE(std::equal(right.begin(), right.end(), own.copied));
      std::fill(memory.begin(), memory.end(), std::byte{0});
      ASSERT_TRUE(job.send(job.partner(), Bytes(own.bytes, own.bytes + own.size)));
    } else if (job.rank == 1) {
      ASSERT_TRUE(job.until([&] { return !job.node.packets.empty(); }, "an rkey"));
      const Bytes rkey = job.node.packets.front().bytes;
      job.node.packets.pop_front();
      Bytes local(size);
      for (std::size_t at = 0; at < size; at += std::min(size - at, job.can().max_rma)) {
        const std::size_t part = std::min(size - at, job.can().max_rma);
        EXPECT_EQ(copy(job, RmaOp::get, rkey, at, {{local.data() + at, part}}, part), Status::ok);
      }
      EXPECT_TRUE(local == right);
    }
    ASSERT_TRUE(job.barrier("it is read"));
    if (own.handle != 0) job.node.driver->deregister(own.handle);
  }
}

void by_several_threads(Job& job) {
  if (!job.connect_all()) return;
  Bytes memory = pattern(registered_size, 6);
  MemoryKey own;
  const RmaOp op = job.can().get ? RmaOp::get : RmaOp::put;
  const Bytes rkey = exchange_rkey(job, op, cut(memory, memory.size()), &own);
  if (!job.align("the rkey is known")) return;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  const bool copies = job.rank == 1 || job.is_alone();
  for (std::uint64_t t = 0; t < (copies ? 4 : 0); ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < 200; ++i) {
        const std::size_t size = 1 + random() % 65536, offset = random() % (registered_size - size);
        Bytes local(memory.begin() + static_cast<std::ptrdiff_t>(offset),
                    memory.begin() + static_cast<std::ptrdiff_t>(offset + size));
        const Bytes right = local;
        if (op == RmaOp::get) std::fill(local.begin(), local.end(), std::byte{0});
        const iovec piece = {local.data(), size};
        const Status status = job.node.driver->rma(job.partner(), op, rkey, offset, &piece, 1, size, nullptr);
        if (status != Status::ok || local != right) ++wrong;
      }
    });
  }
  Exchange exchange(job);
  const Script script = random_script(job.can(), 3, 5000);
  exchange.add(job.partner(), script, script);
  exchange.run("traffic beside copies");
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  ASSERT_TRUE(job.barrier("the copies are done"));
  EXPECT_TRUE(memory == pattern(registered_size, 6));
  if (own.handle != 0) job.node.driver->deregister(own.handle);
}

/// Both ends add to every word of all lines at the same time. No addition is lost, and "ours" is the other's "theirs".
void shared_lines(Job& job) {
  constexpr std::uint64_t times = 2000;
  if (!job.connect_all()) return;
  const drivers::SharedLines lines = job.node.driver->shared_lines(1 - job.rank);
  ASSERT_EQ(lines.count, job.can().shared_lines);
  const auto each = [&](auto visit) {
    for (int i = 0; i < lines.count; ++i) {
      for (int k = 0; k < 8; ++k) visit(lines.ours[i].words[k], lines.theirs[i].words[k], i * 8 + k);
    }
  };
  each([](const auto& ours, const auto&, int) { EXPECT_EQ(ours.load(), 0u) << "zero at first"; });
  ASSERT_TRUE(job.barrier("looked at"));
  for (std::uint64_t n = 0; n < times; ++n) {
    each([](auto& ours, auto& theirs, int) { ours.fetch_add(1), theirs.fetch_add(1); });
  }
  ASSERT_TRUE(job.barrier("added"));
  each([](const auto& ours, const auto& theirs, int) {
    EXPECT_EQ(ours.load(), 2 * times);
    EXPECT_EQ(theirs.load(), 2 * times);
  });
  ASSERT_TRUE(job.barrier("read"));
  each([&](auto& ours, auto&, int at) { ours.store(static_cast<std::uint64_t>(1000 * job.rank + at)); });
  ASSERT_TRUE(job.barrier("written"));
  each([&](const auto&, const auto& theirs, int at) {
    EXPECT_EQ(theirs.load(), static_cast<std::uint64_t>(1000 * (1 - job.rank) + at));
  });
  ASSERT_TRUE(job.barrier("compared"));
}

std::string needs_get(const Capabilities& can, const Options&) { return can.get ? "" : "get is not declared"; }
std::string needs_put(const Capabilities& can, const Options&) { return can.put ? "" : "put is not declared"; }
std::string needs_copies(const Capabilities& can, const Options&) {
  return can.get || can.put ? "" : "neither get nor put is declared";
}
std::string needs_anywhere(const Capabilities& can, const Options&) {
  return can.rma_any_thread ? "" : "rma_any_thread is not declared";
}

std::string needs_segment(const Capabilities& can, const Options&) {
  return can.broadcast_segment != 0 ? "" : "broadcast_segment is not declared";
}
std::string needs_lines(const Capabilities& can, const Options&) {
  return can.shared_lines > 0 ? "" : "shared_lines are not declared";
}

constexpr TestCase cases[] = {
    {"get", 2, get, needs_get},
    {"put", 2, put, needs_put},
    {"bad_rkey", 2, bad_rkey, needs_copies},
    {"rma_any_thread", 2, by_several_threads, needs_anywhere},
    {"shared_lines", 2, shared_lines, needs_lines},
    {"broadcast_segment", 2, broadcast_segment, needs_segment},
};

}  // namespace

std::span<const TestCase> copy_tests() { return cases; }

}  // namespace canele::conformance

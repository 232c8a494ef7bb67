// SPDX-License-Identifier: BSD-3-Clause
//
// Conformance: remote_copy() both ways, malformed exposures, copies by several threads beside traffic.
//
// Rank 0 exposes, rank 1 copies; a rank that is alone does both. The test of copies_anywhere has four threads that
// copy.
#include <sys/mman.h>

#include <atomic>
#include <set>
#include <thread>

#include "tests/conformance/suite.hpp"
#include "tests/conformance/traffic.hpp"

namespace canele::conformance {
namespace {

using drivers::Access;
using drivers::Exposure;

constexpr std::size_t exposed_size = (4u << 20) + 77;

/// Exposes `memory` to the partner and sends it the exposure; returns the exposure's bytes at the partner.
Bytes exchange_exposure(Job& job, Access access, const std::vector<iovec>& memory, Exposure* own) {
  if (job.rank == 0) {
    const Status status =
        job.node.driver->expose(job.partner(), access, memory.data(), static_cast<int>(memory.size()), own);
    EXPECT_EQ(status, Status::ok) << "expose() of " << memory.size() << " pieces";
    if (status != Status::ok) return {};
    EXPECT_LE(own->size, job.can().exposure_size);
    EXPECT_GT(own->size, 0);
    if (!job.send(job.partner(), Bytes(own->bytes, own->bytes + own->size))) return {};
  }
  if (job.rank == 0 && !job.is_alone()) return {};
  if (!job.until([&] { return !job.node.packets.empty(); }, "an exposure")) return {};
  Bytes got = job.node.packets.front().bytes;
  job.node.packets.pop_front();
  return got;
}

/// Makes one copy, and waits for its end.
Status copy(Job& job, Access access, const Bytes& exposure, std::uint64_t offset, const std::vector<iovec>& pieces,
            std::size_t size) {
  const Rank peer = job.partner();
  for (;;) {
    const std::size_t results = job.node.results.size();
    Status status = job.node.copy(peer, access, exposure, offset, pieces, size);
    if (job.can().copies_anywhere) {
      EXPECT_TRUE(status == Status::ok || status == Status::failed) << "copies_anywhere answers at once";
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
  const std::size_t most = std::min<std::size_t>(can.max_copy, exposed_size - 5000);
  for (const std::size_t limit : {1u, 8u, 64u, 4096u, 16384u, 65536u, 1u << 20}) {
    for (const std::size_t size : {limit - 1, limit, limit + 1}) {
      if (size > 0 && size <= most) sizes.insert(size);
    }
  }
  sizes.insert(most);
  return sizes;
}

void copies_of_all_sizes(Job& job, Access access, std::size_t piece) {
  Bytes memory = pattern(exposed_size, 1);
  Exposure own;
  const Bytes exposure = exchange_exposure(job, access, cut(memory, exposed_size / piece + 1), &own);
  if (job.rank == 1 || job.is_alone()) {
    ASSERT_FALSE(exposure.empty());
    Bytes model = memory, local(exposed_size);
    for (const std::size_t size : copy_sizes(job.can())) {
      const std::size_t offset = size % 4999;
      if (access == Access::put) local = pattern(exposed_size, size);
      std::fill_n(local.begin(), access == Access::get ? size : 0, std::byte{0});
      auto pieces = cut(local, size / 3 + 1);
      std::vector<iovec> some(16);
      some.resize(static_cast<std::size_t>(slice(pieces, 0, size, some.data(), 16)));
      ASSERT_EQ(copy(job, access, exposure, offset, some, size), Status::ok) << size;
      const auto there = model.begin() + static_cast<std::ptrdiff_t>(offset);
      if (access == Access::put) std::copy_n(local.begin(), size, there);
      ASSERT_TRUE(std::equal(there, there + static_cast<std::ptrdiff_t>(size), local.begin())) << size;
    }
    if (access == Access::put) {
      ASSERT_TRUE(job.send(job.partner(), pattern(8, 1)));
    }
    if (job.is_alone() && access == Access::put) {
      ASSERT_TRUE(job.until([&] { return !job.node.packets.empty(); }, "the end of the puts"));
    }
    if (job.is_alone()) {
      EXPECT_TRUE(memory == model);
    }
  }
  if (access == Access::put && job.rank == 0 && !job.is_alone()) {
    // The last put to each byte decides; the model repeats them.
    Bytes model = pattern(exposed_size, 1);
    for (const std::size_t size : copy_sizes(job.can())) {
      const Bytes local = pattern(exposed_size, size);
      std::copy_n(local.begin(), size, model.begin() + static_cast<std::ptrdiff_t>(size % 4999));
    }
    ASSERT_TRUE(job.until([&] { return !job.node.packets.empty(); }, "the end of the puts"));
    EXPECT_TRUE(memory == model);
  }
  if (access == Access::put && job.rank == 0) job.node.packets.pop_front();
  ASSERT_TRUE(job.barrier("the copies are done"));
  if (own.handle != 0) job.node.driver->withdraw(own.handle);
}

void get(Job& job) {
  if (!job.connect_all()) return;
  copies_of_all_sizes(job, Access::get, 1);
  copies_of_all_sizes(job, Access::get, 4);
}
void put(Job& job) {
  if (!job.connect_all()) return;
  copies_of_all_sizes(job, Access::put, 1);
  copies_of_all_sizes(job, Access::put, 4);
}

// Malformed exposures, and copies beyond the end of an exposure, fail, and the peer stays as healthy as before.
void bad_exposure(Job& job) {
  if (!job.connect_all()) return;
  const Access access = job.can().get ? Access::get : Access::put;
  Bytes memory = pattern(100'000, 4);
  Exposure own;
  const Bytes exposure = exchange_exposure(job, access, cut(memory, memory.size()), &own);
  if (job.rank == 1 || job.is_alone()) {
    ASSERT_FALSE(exposure.empty());
    Bytes local(100'000);
    const auto whole = cut(local, local.size());
    EXPECT_EQ(copy(job, access, exposure, 1, whole, 100'000), Status::failed) << "beyond the end";
    EXPECT_EQ(copy(job, access, exposure, 1ull << 40, whole, 1), Status::failed) << "far beyond the end";
    EXPECT_EQ(copy(job, access, Bytes(exposure.begin(), exposure.end() - 1), 0, whole, 10), Status::failed) << "cut";
    EXPECT_EQ(copy(job, access, {}, 0, whole, 10), Status::failed) << "empty";
    EXPECT_EQ(copy(job, access, pattern(drivers::Exposure::max_size, 8), 0, whole, 10), Status::failed) << "garbage";
    EXPECT_EQ(copy(job, access, exposure, 0, whole, 100'000), Status::ok);
  }
  ASSERT_TRUE(job.barrier("the peers are healthy"));
  if (own.handle != 0) job.node.driver->withdraw(own.handle);
}

/// Memory exposed to all peers is copied at once, and read by the partner.
void shelf(Job& job) {
  if (!job.connect_all()) return;
  for (const std::size_t size : {std::size_t{1}, std::size_t{70'000}, job.can().shelf}) {
    Bytes memory = pattern(size, 9);
    const Bytes right = memory;
    Exposure own;
    if (job.rank == 0) {
      const auto pieces = cut(memory, size / 3 + 1);
      ASSERT_EQ(job.node.driver->expose(drivers::everybody, Access::get, pieces.data(), static_cast<int>(pieces.size()),
                                        &own),
                Status::ok);
      EXPECT_NE(own.handle, 0u);
      ASSERT_NE(own.copied, nullptr);
      EXPECT_TRUE(std::equal(right.begin(), right.end(), own.copied));
      std::fill(memory.begin(), memory.end(), std::byte{0});
      ASSERT_TRUE(job.send(job.partner(), Bytes(own.bytes, own.bytes + own.size)));
    } else if (job.rank == 1) {
      ASSERT_TRUE(job.until([&] { return !job.node.packets.empty(); }, "an exposure"));
      const Bytes exposure = job.node.packets.front().bytes;
      job.node.packets.pop_front();
      Bytes local(size);
      for (std::size_t at = 0; at < size; at += std::min(size - at, job.can().max_copy)) {
        const std::size_t part = std::min(size - at, job.can().max_copy);
        EXPECT_EQ(copy(job, Access::get, exposure, at, {{local.data() + at, part}}, part), Status::ok);
      }
      EXPECT_TRUE(local == right);
    }
    ASSERT_TRUE(job.barrier("it is read"));
    if (own.handle != 0) job.node.driver->withdraw(own.handle);
  }
}

void by_several_threads(Job& job) {
  if (!job.connect_all()) return;
  Bytes memory = pattern(exposed_size, 6);
  Exposure own;
  const Access access = job.can().get ? Access::get : Access::put;
  const Bytes exposure = exchange_exposure(job, access, cut(memory, memory.size()), &own);
  if (!job.align("the exposure is known")) return;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  const bool copies = job.rank == 1 || job.is_alone();
  for (std::uint64_t t = 0; t < (copies ? 4 : 0); ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < 200; ++i) {
        const std::size_t size = 1 + random() % 65536, offset = random() % (exposed_size - size);
        Bytes local(memory.begin() + static_cast<std::ptrdiff_t>(offset),
                    memory.begin() + static_cast<std::ptrdiff_t>(offset + size));
        const Bytes right = local;
        if (access == Access::get) std::fill(local.begin(), local.end(), std::byte{0});
        const iovec piece = {local.data(), size};
        const Status status =
            job.node.driver->remote_copy(job.partner(), access, exposure, offset, &piece, 1, size, nullptr);
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
  EXPECT_TRUE(memory == pattern(exposed_size, 6));
  if (own.handle != 0) job.node.driver->withdraw(own.handle);
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
  return can.copies_anywhere ? "" : "copies_anywhere is not declared";
}

std::string needs_shelf(const Capabilities& can, const Options&) {
  return can.shelf != 0 ? "" : "shelf is not declared";
}
std::string needs_lines(const Capabilities& can, const Options&) {
  return can.shared_lines > 0 ? "" : "shared_lines are not declared";
}

constexpr TestCase cases[] = {
    {"get", 2, get, needs_get},
    {"put", 2, put, needs_put},
    {"bad_exposure", 2, bad_exposure, needs_copies},
    {"copies_anywhere", 2, by_several_threads, needs_anywhere},
    {"shared_lines", 2, shared_lines, needs_lines},
    {"shelf", 2, shelf, needs_shelf},
};

}  // namespace

std::span<const TestCase> copy_tests() { return cases; }

}  // namespace canele::conformance

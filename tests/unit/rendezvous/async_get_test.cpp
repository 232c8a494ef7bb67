// SPDX-License-Identifier: BSD-3-Clause
//
// Large messages over a driver that makes system calls and fetches by itself (as libfabric does). Memory is registered
// and deregistered equally often, pieces come out of order, the driver is full at times, or cannot fetch at all.
//
// Both engines are in this process, so the driver's "network" is a table of addresses.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

using drivers::Rank;
using drivers::Status;

/// tcp, with an rma() that is served by poll().
class FetchingDriver final : public drivers::Driver {
 public:
  static inline std::atomic<int> registered{0}, deregistered{0}, fetched{0};
  static inline std::atomic<bool> fails_to_register{false}, fails{false};
  static inline std::atomic<std::uint64_t> next_key{1};
  static inline std::map<std::uint64_t, std::vector<iovec>> memory;
  static inline std::mutex mutex;

 private:
  struct Piece {
    drivers::Token token;
    Status status;
  };

  Status open_impl(drivers::DriverContext& context, drivers::Address* address, std::string* reason) override {
    events_ = context.events;
    const Status status = inner_->open(context, address, reason);
    capabilities_ = inner_->capabilities();
    capabilities_.name = "fetching";
    capabilities_.get = true;
    capabilities_.rkey_size = 16;
    capabilities_.max_rma = 100'000;
    return status;
  }
  Status connect_impl(Rank peer, std::span<const std::byte> address) override { return inner_->connect(peer, address); }
  Status send_packet_impl(Rank peer, const iovec* pieces, int count, std::size_t n, drivers::Token token) override {
    return inner_->send_packet(peer, pieces, count, n, token);
  }
  Status bulk_send_impl(Rank peer, std::uint64_t key, std::uint64_t offset, const iovec* pieces, int count,
                        std::size_t n, drivers::Token token) override {
    return inner_->bulk_send(peer, key, offset, pieces, count, n, token);
  }
  Status register_memory_impl(Rank, drivers::RmaOp, const iovec* pieces, int count, drivers::MemoryKey* rkey) override {
    if (fails_to_register) return Status::failed;
    const std::lock_guard guard(mutex);
    rkey->handle = next_key++;
    memory[rkey->handle].assign(pieces, pieces + count);
    rkey->size = sizeof rkey->handle;
    std::memcpy(rkey->bytes, &rkey->handle, sizeof rkey->handle);
    ++registered;
    return Status::ok;
  }
  void deregister_impl(std::uint64_t handle) override {
    const std::lock_guard guard(mutex);
    EXPECT_EQ(memory.erase(handle), 1u);
    ++deregistered;
  }
  Status rma_impl(Rank, drivers::RmaOp, std::span<const std::byte> rkey, std::uint64_t offset, const iovec* pieces,
                  int count, std::size_t size, drivers::Token token) override {
    full_ = full_ || ++calls_ % 5 == 0;
    if (full_) return Status::full;  // until it is polled
    std::uint64_t handle = 0;
    EXPECT_EQ(rkey.size(), 16u);
    std::memcpy(&handle, rkey.data(), sizeof handle);
    const std::lock_guard guard(mutex);
    const auto found = memory.find(handle);
    EXPECT_NE(found, memory.end());
    if (found == memory.end()) return Status::failed;
    copy(found->second, offset, pieces, count, size);
    ++fetched;
    pieces_.push_back({token, fails ? Status::failed : Status::ok});
    return Status::pending;
  }
  static void copy(const std::vector<iovec>& from, std::uint64_t offset, const iovec* to, int count, std::size_t size) {
    std::vector<std::byte> flat;
    for (const iovec& piece : from) {
      const auto* bytes = static_cast<const std::byte*>(piece.iov_base);
      flat.insert(flat.end(), bytes, bytes + piece.iov_len);
    }
    for (int i = 0; i < count && size > 0; ++i) {
      const std::size_t n = std::min(size, to[i].iov_len);
      std::memcpy(to[i].iov_base, flat.data() + offset, n);
      offset += n, size -= n;
    }
  }
  int poll_impl(int budget) override {
    full_ = false;
    int events = inner_->poll(budget);
    while (pieces_.size() > (polls_++ % 3 == 0 ? 0u : 2u)) {  // the last ones first
      const Piece piece = pieces_.back();
      pieces_.pop_back();
      events_->done(piece.token, piece.status);
      ++events;
    }
    return events;
  }
  int descriptor_impl() const override { return inner_->descriptor(); }
  bool arm_impl(bool on) override {
    if (!on) inner_->disarm();
    return !on || (pieces_.empty() && inner_->arm());
  }
  void close_impl() override { inner_->close(); }

  std::unique_ptr<drivers::Driver> inner_ = comm::find_driver("tcp")->create();
  drivers::DriverEvents* events_ = nullptr;
  std::deque<Piece> pieces_;
  bool full_ = false;
  int calls_ = 0, polls_ = 0;
};

const drivers::DriverFactory fetching_factory{drivers::contract_version, "fetching", "for tests",
                                              [] { return std::unique_ptr<drivers::Driver>(new FetchingDriver); },
                                              [] { return std::string(); }};

class AsyncGet : public testing::Test {
 protected:
  AsyncGet() : job_({2, {comm::find_driver("self"), &fetching_factory}, "aggregate", {}}), s_(job_.open("fetch")) {
    FetchingDriver::registered = FetchingDriver::deregistered = FetchingDriver::fetched = 0;
    FetchingDriver::fails_to_register = FetchingDriver::fails = false;
  }

  /// Sends `count` large messages both ways, some posted late, some in pieces; all must arrive whole.
  void exchange(int count) {
    struct Transfer {
      std::vector<std::byte> out, in;
      canele_request_t send{}, receive{};
    };
    std::deque<Transfer> all;
    std::mt19937_64 random(7);
    for (int i = 0; i < count; ++i) {
      Transfer& t = all.emplace_back();
      t.out.resize(40'000 + random() % 1'500'000);
      for (auto& byte : t.out) byte = static_cast<std::byte>(random());
      t.in.resize(t.out.size());
      const auto from = static_cast<std::size_t>(i % 2);
      const int to = 1 - i % 2;
      const auto receive = [&] {
        canele_irecv(s_[1 - from], i % 2, 3, CANELE_TAG_EXACT, t.in.data(), t.in.size(), &t.receive);
      };
      if (i % 3 == 0) receive();
      canele_isend(s_[from], to, 3, t.out.data(), t.out.size(), &t.send);
      if (i % 3 != 0) receive();
      job_.step_all();
    }
    for (Transfer& t : all) {
      ASSERT_TRUE(job_.finish(t.receive) && job_.finish(t.send));
      ASSERT_EQ(status_of(t.receive).error, CANELE_OK);
      ASSERT_TRUE(t.in == t.out);
    }
    ASSERT_TRUE(job_.until([] { return FetchingDriver::deregistered == FetchingDriver::registered; }));
  }

  LocalJob job_;
  std::vector<canele_session_t*> s_;
};

TEST_F(AsyncGet, MemoryIsRegisteredFetchedAndDeregistered) {
  exchange(40);
  EXPECT_EQ(FetchingDriver::registered, 40);
  EXPECT_GT(FetchingDriver::fetched, 40 * 4);
  EXPECT_TRUE(FetchingDriver::memory.empty());
}

TEST_F(AsyncGet, WhatCannotBeRegisteredIsStreamed) {
  FetchingDriver::fails_to_register = true;
  exchange(10);
  EXPECT_EQ(FetchingDriver::fetched, 0);
}

TEST_F(AsyncGet, WhatCannotBeFetchedIsStreamed) {
  FetchingDriver::fails = true;
  exchange(10);
  EXPECT_GT(FetchingDriver::fetched, 0);
}

}  // namespace
}  // namespace canele::test

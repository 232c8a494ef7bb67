// SPDX-License-Identifier: BSD-3-Clause
//
// Driver kit: n instances of one driver in this process, with an engine that only records. For tests of drivers.
//
// One thread, unless a test says otherwise. The kit checks the contract while it records. A callback outside poll(), a
// second connected(), anything after failed(), a token that is returned twice: each fails the test by itself.
//
//   World ──owns──▶ Node (KitContext + Driver + what it was told) × n
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "drivers/driver.hpp"

namespace canele::conformance {

using drivers::Rank;
using drivers::Status;
using Bytes = std::vector<std::byte>;

/// Returns `size` bytes, which differ for every seed and position.
inline Bytes pattern(std::size_t size, std::uint64_t seed) {
  Bytes made(size);
  std::uint64_t word = seed * 0x9e3779b97f4a7c15u + 1;
  for (auto& byte : made) {
    word = word * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(word >> 56);
  }
  return made;
}

/// Writes the part [offset, offset + length) of a list of pieces to `out`, in at most `max` pieces. Returns their
/// number.
inline int slice(const std::vector<iovec>& whole, std::uint64_t offset, std::uint64_t length, iovec* out, int max) {
  int count = 0;
  for (const iovec& piece : whole) {
    if (length == 0 || count == max) break;
    if (offset >= piece.iov_len) {
      offset -= piece.iov_len;
      continue;
    }
    const std::size_t n = std::min<std::uint64_t>(piece.iov_len - offset, length);
    out[count++] = {static_cast<char*>(piece.iov_base) + offset, n};
    offset = 0;
    length -= n;
  }
  return count;
}

/// Cuts `bytes` into pieces of `size`.
inline std::vector<iovec> cut(Bytes& bytes, std::size_t size) {
  std::vector<iovec> made;
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    made.push_back({bytes.data() + at, std::min(size, bytes.size() - at)});
  }
  return made;
}

class KitContext final : public drivers::DriverContext {
 public:
  KitContext(Rank own, Rank ranks) : generator_(static_cast<std::uint64_t>(own) + 1) {
    rank = own;
    size = ranks;
    job = 4711;
    incarnation = 1000 + static_cast<std::uint64_t>(own);
    for (std::size_t i = 0; i < sizeof key; ++i) key[i] = static_cast<std::byte>(i * 7 + 1);
    secret = key;
  }

  std::uint64_t now_ns() override {
    if (!real_time) return clock_ns;
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  }
  std::uint64_t random() override { return generator_(); }
  std::string setting(std::string_view name, std::string_view fallback) override {
    const auto found = settings.find(name);
    return found == settings.end() ? std::string(fallback) : found->second;
  }
  Rank next_failed_rank() override { return std::exchange(died, -1); }
  void log(int level, std::string_view text) override { logged.emplace_back(level, text); }

  std::uint64_t clock_ns = 1'000'000'000;  ///< moves only when a test moves it
  bool real_time = false;                  ///< uses the system's clock instead
  Rank died = -1;                          ///< the dead rank, as the launcher reports it
  std::byte key[16];
  std::map<std::string, std::string, std::less<>> settings;
  std::vector<std::pair<int, std::string>> logged;

 private:
  std::mt19937_64 generator_;
};

class Node final : public drivers::DriverEvents {
 public:
  struct Packet {
    Rank from;
    Bytes bytes;
  };

  Node(const drivers::DriverFactory& factory, Rank rank, Rank size) : context(rank, size), driver(factory.create()) {
    context.events = this;
  }
  ~Node() {
    if (open_) driver->close();
  }

  Status open() {
    const Status status = driver->open(context, &address, &reason);
    open_ = status == Status::ok;
    return status;
  }
  void close() {
    driver->close();
    open_ = false;
  }
  int poll(int budget = 64) {
    if (!open_) return 0;
    polling_ = true;
    const int events = driver->poll(budget);
    polling_ = false;
    return events;
  }

  /// Sends one packet made of `bytes`. A pending one is kept until its token is returned.
  Status send(Rank to, const Bytes& bytes, int pieces = 1) {
    auto kept = std::make_unique<Bytes>(bytes);
    const auto list =
        cut(*kept, (bytes.size() + static_cast<std::size_t>(pieces) - 1) / static_cast<std::size_t>(pieces));
    const Status status = driver->send_packet(to, list.data(), static_cast<int>(list.size()), bytes.size(), kept.get());
    keep(to, status, std::move(kept));
    return status;
  }
  Status bulk(Rank to, std::uint64_t key, std::uint64_t offset, Bytes bytes, std::size_t piece = ~std::size_t{0}) {
    auto kept = std::make_unique<Bytes>(std::move(bytes));
    const auto list = cut(*kept, std::min(piece, kept->size()));
    const Status status =
        driver->bulk_send(to, key, offset, list.data(), static_cast<int>(list.size()), kept->size(), kept.get());
    keep(to, status, std::move(kept));
    return status;
  }
  /// Sends bulk data from memory that the caller keeps alive.
  Status bulk_lent(Rank to, std::uint64_t key, std::uint64_t offset, iovec piece) {
    auto token = std::make_unique<Bytes>();
    const Status status = driver->bulk_send(to, key, offset, &piece, 1, piece.iov_len, token.get());
    keep(to, status, std::move(token));
    return status;
  }
  Status copy(Rank peer, drivers::RmaOp op, std::span<const std::byte> rkey, std::uint64_t offset,
              const std::vector<iovec>& pieces, std::size_t size) {
    auto token = std::make_unique<Bytes>();
    const Status status =
        driver->rma(peer, op, rkey, offset, pieces.data(), static_cast<int>(pieces.size()), size, token.get());
    keep(peer, status, std::move(token));
    return status;
  }
  /// Sets the destination of bulk transfer `key`, from any rank.
  void expect_bulk(std::uint64_t key, std::vector<iovec> where) { destinations[key] = std::move(where); }
  std::size_t pending() const { return kept_.size(); }
  bool is_open() const { return open_; }

  // The driver's callbacks.
  drivers::Take packet(Rank from, std::span<const std::byte> bytes) override {
    called(from);
    ++presented;
    const drivers::Take take = on_packet ? on_packet(from, bytes) : drivers::Take::taken;
    if (take == drivers::Take::taken && keep_packets) packets.push_back({from, Bytes(bytes.begin(), bytes.end())});
    if (take == drivers::Take::rejected) give_up(from, true, "rejected by the engine");
    return take;
  }
  int bulk_destination(Rank from, std::uint64_t key, std::uint64_t offset, std::uint64_t length, iovec* out,
                       int max) override {
    called(from);
    EXPECT_GT(length, 0u);
    EXPECT_GT(max, 0);
    if (on_bulk_destination) return on_bulk_destination(from, key, offset, length, out, std::min(max, most_pieces));
    const auto found = destinations.find(key);
    return found == destinations.end() ? 0 : slice(found->second, offset, length, out, std::min(max, most_pieces));
  }
  void bulk_written(Rank from, std::uint64_t key, std::uint64_t offset, std::uint64_t length) override {
    called(from);
    written_bytes[key] += length;
    if (on_bulk_written) on_bulk_written(from, key, offset, length);
  }
  void done(drivers::Token token, Status status) override {
    EXPECT_TRUE(polling_) << "done() outside poll()";
    EXPECT_EQ(kept_.erase(token), 1u) << "a token came back that was not out";
    results.push_back(status);
  }
  void ready(Rank rank) override {
    called(rank);
    ready_ranks.push_back(rank);
    if (on_ready) on_ready(rank);
  }
  void connected(Rank rank) override {
    called(rank);
    EXPECT_TRUE(up.insert(rank).second) << "connected(" << rank << ") twice";
  }
  void failed(Rank rank, bool lost, std::string_view why) override {
    called(rank);
    give_up(rank, lost, why);
  }

  KitContext context;
  std::unique_ptr<drivers::Driver> driver;
  drivers::Address address;
  std::string reason;

  std::function<drivers::Take(Rank, std::span<const std::byte>)> on_packet;  ///< what packet() answers; unset: taken
  std::function<int(Rank, std::uint64_t, std::uint64_t, std::uint64_t, iovec*, int)>
      on_bulk_destination;  ///< unset: `destinations`
  std::function<void(Rank, std::uint64_t, std::uint64_t, std::uint64_t)> on_bulk_written;
  std::function<void(Rank)> on_ready;
  bool keep_packets = true;   ///< in `packets`
  int most_pieces = 1 << 20;  ///< bulk_destination() gives at most so many
  std::map<std::uint64_t, std::vector<iovec>> destinations;

  std::deque<Packet> packets;
  std::uint64_t presented = 0;
  std::map<std::uint64_t, std::uint64_t> written_bytes;
  std::vector<Status> results;
  std::vector<Rank> ready_ranks;
  std::set<Rank> up;
  std::map<Rank, std::pair<bool, std::string>> failures;

 private:
  void called(Rank rank) const {
    EXPECT_TRUE(polling_) << "a call back outside poll()";
    EXPECT_EQ(failures.count(rank), 0u) << "a call back for rank " << rank << " after failed()";
  }
  void keep(Rank to, Status status, std::unique_ptr<Bytes> bytes) {
    if (status != Status::pending) return;
    void* token = bytes.get();
    kept_[token] = {to, std::move(bytes)};
  }
  /// Counts the tokens handed in for that rank as returned.
  void give_up(Rank rank, bool lost, std::string_view why) {
    failures[rank] = {lost, std::string(why)};
    std::erase_if(kept_, [rank](const auto& entry) { return entry.second.to == rank; });
  }
  struct Kept {
    Rank to = -1;
    std::unique_ptr<Bytes> bytes;
  };

  bool open_ = false;
  bool polling_ = false;
  std::map<void*, Kept> kept_;
};

class World {
 public:
  explicit World(const drivers::DriverFactory& factory, Rank size = 2) {
    for (Rank rank = 0; rank < size; ++rank) nodes.push_back(std::make_unique<Node>(factory, rank, size));
  }
  /// Opens all drivers; call after the contexts have been adjusted.
  void open() {
    for (auto& node : nodes) ASSERT_EQ(node->open(), Status::ok) << node->reason;
  }
  Node& operator[](Rank rank) { return *nodes[static_cast<std::size_t>(rank)]; }

  int poll() {
    int events = 0;
    for (auto& node : nodes) {
      if (node) events += node->poll();
    }
    return events;
  }
  /// Polls all nodes until `condition` holds. Returns false if it does not within `limit` (a limit, not a wait).
  bool until(const std::function<bool()>& condition, std::chrono::seconds limit = std::chrono::seconds(300)) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      poll();
    }
    return true;
  }
  Status connect(Rank from, Rank to) { return (*this)[from].driver->connect(to, (*this)[to].address); }
  /// Connects the two ranks and waits until both know.
  void join(Rank from, Rank to) {
    ASSERT_NE(connect(from, to), Status::failed);
    ASSERT_TRUE(until([&] { return (*this)[from].up.count(to) == 1 && (*this)[to].up.count(from) == 1; }))
        << (*this)[from].failures[to].second << (*this)[to].failures[from].second;
  }

  std::vector<std::unique_ptr<Node>> nodes;
};

}  // namespace canele::conformance

// SPDX-License-Identifier: BSD-3-Clause
//
// Traffic between two ranks: both know the script of what each sends, so everything that arrives can be checked.
//
// Used by the thread of the Job. A bulk transfer's key is its place in the script. A transfer must be written whole
// before the next packet comes, because packets and bulk of one peer are in order.
//
//   Exchange ──owns──▶ Traffic (peer) × n      out: the script that we send    in: the script that it sends
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "tests/conformance/job.hpp"

namespace canele::conformance {

struct Item {
  bool bulk = false;
  Way way = Way::packet;
  int pieces = 1;
  int retries = 0;  ///< the receiver answers `retry` so many times first
  std::size_t size = 1;
  std::uint64_t seed = 0;
};
using Script = std::vector<Item>;

/// Returns packets of every size around every threshold, in each way that the driver has.
Script threshold_script(const drivers::Capabilities& can);
/// Returns bulk transfers of every size around every threshold, up to `most` bytes.
Script bulk_script(const drivers::Capabilities& can, std::size_t most);
/// Returns `count` random items, most of them small.
Script random_script(const drivers::Capabilities& can, std::uint64_t seed, std::size_t count);

class Traffic {
 public:
  Traffic(Job& job, Rank peer, Script out, Script in)
      : job_(job), peer_(peer), out_(std::move(out)), in_(std::move(in)) {}

  /// Sends what the driver takes now, a few items at most. Returns true if something was sent.
  bool push();
  bool all_sent() const { return sent_ == out_.size(); }
  bool all_received() const { return received_ == in_.size(); }
  std::size_t received() const { return received_; }

  drivers::Take packet(std::span<const std::byte> bytes);
  int bulk_destination(std::uint64_t key, std::uint64_t offset, std::uint64_t length, iovec* out, int max);
  void bulk_written(std::uint64_t key, std::uint64_t offset, std::uint64_t length);

 private:
  Status push_bulk(const Item& item);
  const Item* expected(bool bulk, const char* what);

  Job& job_;
  const Rank peer_;
  const Script out_, in_;
  std::size_t sent_ = 0, received_ = 0;
  std::uint64_t bulk_sent_ = 0, bulk_written_ = 0;  ///< of the current transfer
  int retries_ = 0;
  Bytes source_, target_;
  std::vector<iovec> target_pieces_;
};

/// All traffic of one rank.
class Exchange {
 public:
  explicit Exchange(Job& job);
  ~Exchange();
  Traffic& add(Rank peer, Script out, Script in);
  Traffic& with(Rank peer) { return *traffic_.at(peer); }
  void drop(Rank peer) { traffic_.erase(peer); }
  /// Sends where it can. Returns true if all is sent and received, and every token is returned.
  bool step();
  bool run(const char* what) {
    return job_.until([this] { return step(); }, what);
  }

 private:
  Job& job_;
  std::map<Rank, std::unique_ptr<Traffic>> traffic_;
};

/// Connects all ranks, then exchanges random traffic among all pairs.
bool connect_and_exchange(Job& job, std::size_t items_per_pair, std::uint64_t seed);

}  // namespace canele::conformance

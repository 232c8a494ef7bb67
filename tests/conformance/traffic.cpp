// SPDX-License-Identifier: BSD-3-Clause
//
// Scripts and their traffic.
#include "tests/conformance/traffic.hpp"

#include <set>

namespace canele::conformance {
namespace {

constexpr int burst = 16;  ///< items per step, so that arrivals are handled in between

/// Returns the ways that fit a packet of that size.
std::vector<Way> ways(const drivers::Capabilities& can, std::size_t size) {
  std::vector<Way> made = {Way::packet};
  if (size > 1) made.push_back(Way::pieces);
  if (size <= can.max_inline) made.push_back(Way::in_line);
  if (can.reserves) made.push_back(Way::reserved);
  return made;
}

void around(std::set<std::size_t>* sizes, std::size_t limit, std::size_t most) {
  for (const std::size_t size : {limit - 1, limit, limit + 1}) {
    if (size >= 1 && size <= most) sizes->insert(size);
  }
}

}  // namespace

Script threshold_script(const drivers::Capabilities& can) {
  std::set<std::size_t> sizes;
  for (const std::size_t limit : {1u, 8u, 48u, 56u, 64u, 128u, 256u, 1024u, 4096u, 8192u, 16384u, 65536u}) {
    around(&sizes, limit, can.max_packet);
  }
  for (const std::size_t limit : {can.max_inline, can.max_packet / 2, can.max_packet}) {
    if (limit > 0) around(&sizes, limit, can.max_packet);
  }
  Script script;
  std::uint64_t seed = 1;
  for (const std::size_t size : sizes) {
    for (const Way way : ways(can, size)) {
      for (const int pieces : {2, 3, 40}) {
        script.push_back({false, way, std::min(pieces, static_cast<int>(size)), 0, size, ++seed});
        if (way != Way::pieces) break;
      }
    }
  }
  return script;
}

Script bulk_script(const drivers::Capabilities& can, std::size_t most) {
  std::set<std::size_t> sizes;
  for (const std::size_t limit : {1u, 8u, 64u, 4096u, 65536u, 1u << 20}) around(&sizes, limit, most);
  for (const std::size_t limit : {can.max_inline, can.max_packet, can.max_bulk, 2 * can.max_bulk}) {
    if (limit > 0) around(&sizes, limit, most);
  }
  Script script;
  std::uint64_t seed = 1000;
  for (const std::size_t size : sizes) {
    for (const int pieces : {1, 3, 30}) {
      script.push_back({true, Way::packet, static_cast<int>(std::min<std::size_t>(size, static_cast<unsigned>(pieces))),
                        0, size, ++seed});
      if (pieces > 1) script.push_back({false, Way::packet, 1, pieces / 10, 1 + size % 40, ++seed});
    }
  }
  return script;
}

Script random_script(const drivers::Capabilities& can, std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  Script script;
  script.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    Item item;
    item.seed = seed * 1000003 + i;
    const std::uint64_t kind = below(1000);
    item.bulk = can.bulk_stream && kind < 5;
    item.size = 1 + (kind < 5     ? below(100'000)
                     : kind < 15  ? below(can.max_packet)
                     : kind < 150 ? below(1000)
                                  : below(64));
    const auto possible = ways(can, item.size);
    item.way = possible[below(possible.size())];
    item.pieces = 1 + static_cast<int>(below(std::min<std::size_t>(item.size, 6)));
    item.retries = below(200) == 0 ? 1 + static_cast<int>(below(3)) : 0;
    script.push_back(item);
  }
  return script;
}

// --------------------------------------------------------------------------------------------------- sending

bool Traffic::push() {
  bool moved = false;
  for (int i = 0; i < burst && !all_sent() && !job_.owed(peer_); ++i) {
    const Item& item = out_[sent_];
    const Status status =
        item.bulk ? push_bulk(item) : job_.try_send(peer_, pattern(item.size, item.seed), item.way, item.pieces);
    if (status == Status::failed) {
      EXPECT_EQ(job_.may_fail.count(peer_), 1u) << "a send to rank " << peer_ << " answered failed";
      return false;  // failed() reports it, or has reported it
    }
    if (status == Status::full) return moved;
    moved = true;
    if (!item.bulk || bulk_sent_ == item.size) {
      ++sent_;
      bulk_sent_ = 0;
    }
  }
  return moved;
}

Status Traffic::push_bulk(const Item& item) {
  if (bulk_sent_ == 0) source_ = pattern(item.size, item.seed);
  const std::size_t part = std::min<std::size_t>(item.size - bulk_sent_, job_.can().max_bulk);
  const auto from = source_.begin() + static_cast<std::ptrdiff_t>(bulk_sent_);
  const int pieces = static_cast<int>(std::min<std::size_t>(part, static_cast<unsigned>(item.pieces)));
  const Bytes some(from, from + static_cast<std::ptrdiff_t>(part));
  const Status status = job_.try_bulk(peer_, sent_ + 1, bulk_sent_, some, pieces);
  if (status == Status::ok || status == Status::pending) bulk_sent_ += part;
  return status;
}

// --------------------------------------------------------------------------------------------------- receiving

const Item* Traffic::expected(bool bulk, const char* what) {
  if (all_received() || in_[received_].bulk != bulk) {
    ADD_FAILURE() << what << " from rank " << peer_ << " where "
                  << (all_received() ? "nothing more" : (bulk ? "a packet" : "the rest of a bulk transfer"))
                  << " should come; item " << received_;
    return nullptr;
  }
  return &in_[received_];
}

drivers::Take Traffic::packet(std::span<const std::byte> bytes) {
  const Item* const item = expected(false, "a packet");
  if (item == nullptr) return drivers::Take::taken;
  if (retries_ < item->retries) {
    ++retries_;
    return drivers::Take::retry;
  }
  retries_ = 0;
  const Bytes right = pattern(item->size, item->seed);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), right.begin(), right.end()))
      << "item " << received_ << " from rank " << peer_ << ": " << bytes.size() << " bytes, " << item->size
      << " expected, or others than were sent";
  ++received_;
  return drivers::Take::taken;
}

int Traffic::bulk_destination(std::uint64_t key, std::uint64_t offset, std::uint64_t length, iovec* out, int max) {
  const Item* const item = expected(true, "bulk");
  if (item == nullptr) return 0;
  EXPECT_EQ(key, received_ + 1);
  EXPECT_LE(offset + length, item->size);
  if (key != received_ + 1 || offset + length > item->size) return 0;
  if (target_.size() != item->size) {
    target_.assign(item->size, std::byte{0});
    target_pieces_ = cut(target_, item->size / static_cast<std::size_t>(item->pieces) + 1);
  }
  // Offers less than asked at times: the driver must ask again.
  const std::uint64_t some = item->pieces == 3 ? (length + 1) / 2 : length;
  return slice(target_pieces_, offset, some, out, max);
}

void Traffic::bulk_written(std::uint64_t key, std::uint64_t offset, std::uint64_t length) {
  const Item* const item = expected(true, "bulk_written()");
  if (item == nullptr) return;
  EXPECT_EQ(key, received_ + 1);
  EXPECT_LE(offset + length, item->size);
  bulk_written_ += length;
  EXPECT_LE(bulk_written_, item->size);
  if (bulk_written_ < item->size) return;
  EXPECT_TRUE(target_ == pattern(item->size, item->seed)) << "bulk item " << received_ << " from rank " << peer_;
  bulk_written_ = 0;
  target_.clear();
  ++received_;
}

// --------------------------------------------------------------------------------------------------- all peers

Exchange::Exchange(Job& job) : job_(job) {
  job.node.keep_packets = false;
  job.node.on_packet = [this](Rank from, std::span<const std::byte> bytes) {
    const auto found = traffic_.find(from);
    return found == traffic_.end() ? drivers::Take::taken : found->second->packet(bytes);
  };
  job.node.on_bulk_destination = [this](Rank from, std::uint64_t key, std::uint64_t offset, std::uint64_t length,
                                        iovec* out, int max) {
    const auto found = traffic_.find(from);
    return found == traffic_.end() ? 0 : found->second->bulk_destination(key, offset, length, out, max);
  };
  job.node.on_bulk_written = [this](Rank from, std::uint64_t key, std::uint64_t offset, std::uint64_t length) {
    const auto found = traffic_.find(from);
    if (found != traffic_.end()) found->second->bulk_written(key, offset, length);
  };
}

Exchange::~Exchange() {
  job_.node.keep_packets = true;
  job_.node.on_packet = nullptr;
  job_.node.on_bulk_destination = nullptr;
  job_.node.on_bulk_written = nullptr;
}

Traffic& Exchange::add(Rank peer, Script out, Script in) {
  auto& slot = traffic_[peer];
  slot = std::make_unique<Traffic>(job_, peer, std::move(out), std::move(in));
  return *slot;
}

bool Exchange::step() {
  bool all = true;
  for (auto& [peer, traffic] : traffic_) {
    if (traffic->push()) job_.busy();
    all = all && traffic->all_sent() && traffic->all_received();
  }
  return all && job_.node.pending() == 0;
}

bool connect_and_exchange(Job& job, std::size_t items_per_pair, std::uint64_t seed) {
  Exchange exchange(job);
  const auto seed_of = [&](Rank from, Rank to) {
    return seed * 10007 + static_cast<std::uint64_t>(from) * 101 + static_cast<std::uint64_t>(to);
  };
  for (Rank peer = 0; peer < job.size; ++peer) {
    if (peer == job.rank && !job.can().reaches_self) continue;
    exchange.add(peer, random_script(job.can(), seed_of(job.rank, peer), items_per_pair),
                 random_script(job.can(), seed_of(peer, job.rank), items_per_pair));
  }
  return job.connect_all() && exchange.run("random traffic");
}

}  // namespace canele::conformance

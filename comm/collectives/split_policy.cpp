// SPDX-License-Identifier: BSD-3-Clause
//
// SplitPolicy of trees by observation. An observation need not be right: a mean absorbs a wrong one, and the next ones
// correct it.
#include "comm/collectives/split_policy.hpp"

#include <algorithm>
#include <cassert>

#include "comm/collectives/oversubscribed.hpp"

namespace canele::comm::collectives {
namespace {

bool has_blocks(Operation operation) { return operation == Operation::gather || operation == Operation::scatter; }

/// The messages of one level, by host.
struct Load {
  std::vector<std::uint32_t> messages;  ///< within the host
  std::vector<double> out, in;          ///< bytes to and from other hosts
  double longest_within = 0, longest_between = 0;

  explicit Load(std::size_t hosts) : messages(hosts), out(hosts), in(hosts) {}
  void add(std::size_t from, std::size_t to, double bytes) {
    if (from == to) {
      ++messages[from];
      longest_within = std::max(longest_within, bytes);
      return;
    }
    out[from] += bytes;
    in[to] += bytes;
    longest_between = std::max(longest_between, bytes);
  }
};

split_tree::Level level_of(const Load& load, const Hosts& hosts, double work_ns_per_byte, std::uint32_t brothers) {
  double within = 0, between = 0;
  std::uint32_t turns = 0;
  if (load.longest_within > 0) within = hosts.within.of(load.longest_within) + load.longest_within * work_ns_per_byte;
  const std::uint32_t cores = std::max(1U, hosts.cores_left);
  for (std::size_t host = 0; host < load.messages.size(); ++host) {
    turns = std::max(turns, (load.messages[host] + cores - 1) / cores);
    if (load.out[host] + load.in[host] == 0) continue;
    between = std::max(between, hosts.between.of(std::max(load.out[host], load.in[host])));
  }
  if (between > 0) between += load.longest_between * work_ns_per_byte;
  return {std::max(within * brothers, between), std::max(within * turns, between)};
}

}  // namespace

std::vector<split_tree::Level> levels_of(const Call& call, std::uint32_t radix, const Hosts& hosts) {
  assert(radix >= 2);
  const auto n = static_cast<std::uint64_t>(call.size);
  const auto host = [&](std::uint64_t v) -> std::size_t {
    if (hosts.of_position.empty()) return 0;
    return hosts.of_position[(v + static_cast<std::uint64_t>(call.root)) % n];
  };
  const std::size_t count =
      hosts.of_position.empty() ? 1 : 1 + *std::max_element(hosts.of_position.begin(), hosts.of_position.end());
  const double work = call.operation == Operation::reduce ? memory_ns_per_byte : 0;
  std::vector<split_tree::Level> levels;
  for (std::uint64_t weight = 1; weight < n; weight *= radix) {  // as in tree.hpp
    Load load(count);
    for (std::uint64_t parent = 0; parent < n; parent += weight * radix) {
      for (std::uint64_t child = parent + weight; child < std::min(parent + weight * radix, n); child += weight) {
        const std::uint64_t blocks = has_blocks(call.operation) ? std::min(weight, n - child) : 1;
        load.add(host(parent), host(child), static_cast<double>(blocks * call.length));
      }
    }
    const auto most = static_cast<std::uint32_t>(std::min<std::uint64_t>(radix, (n + weight - 1) / weight) - 1);
    levels.push_back(level_of(load, hosts, work, most));
  }
  return levels;
}

std::uint32_t CallProfile::split() const {
  if (override_) return std::min(*override_, static_cast<std::uint32_t>(levels_.size()));
  const std::uint64_t computation = computation_ns();
  return computation == 0 ? 0 : split_tree::best_split(levels_, static_cast<double>(computation));
}

double CallProfile::visible_ns(std::uint32_t split) const { return split_tree::overlapped_time(levels_, split, 0); }

/// Updates an exponential mean, so that one early or late wait changes little. (A lost update does not matter.)
void CallProfile::seen(std::uint64_t ns, bool more) {
  constexpr std::uint64_t weight = 4;
  const std::uint64_t before = computation_ns(), now = std::max<std::uint64_t>(1, ns);
  if (more && now <= before) return;
  const std::uint64_t mean = before == 0 ? now : before - before / weight + now / weight;
  computation_.store(std::max<std::uint64_t>(1, mean), std::memory_order_relaxed);
}

void CallProfile::begins(std::uint64_t now_ns) {
  const bool unseen = policy_->list_ != nullptr && policy_->list_->remove(watch_);
  if (unseen && in_progress_.load(std::memory_order_relaxed) == 0) seen(elapsed_ns(now_ns), false);
  in_progress_.fetch_add(1, std::memory_order_relaxed);
}

void CallProfile::computes(std::uint64_t now_ns) {
  since_.store(now_ns, std::memory_order_relaxed);
  if (policy_->list_ != nullptr) policy_->list_->add(watch_);
}

std::shared_ptr<void> CallProfile::Watch::hold() { return profile.policy_->group_.lock(); }

bool CallProfile::Watch::resume(Because because, std::uint64_t now_ns) {
  profile.seen(profile.elapsed_ns(now_ns), because == Because::expired);
  return false;
}

SplitPolicy::~SplitPolicy() {
  for (CallProfile& one : profiles_) {
    if (list_ != nullptr) list_->remove(one.watch_);
  }
}

CallProfile* SplitPolicy::find(const Call& call, std::uint32_t radix) {
  constexpr std::uint64_t least = 64 * 1024;  // bytes; below it, the copy is not the dominant cost
  if (radix == 0 || call.size < 2 || (!override_ && (hosts_.cores_left == 0 || call.length < least))) return nullptr;
  for (CallProfile& one : profiles_) {
    if (one.radix_ == radix && one.operation_ == call.operation && one.length_ == call.length && one.root_ == call.root)
      return &one;
  }
  CallProfile& oldest = profiles_[next_];
  if (oldest.in_progress_.load(std::memory_order_relaxed) != 0) return nullptr;  // too many kinds of calls in progress
  next_ = (next_ + 1) % entries;
  if (list_ != nullptr) list_->remove(oldest.watch_);
  oldest.policy_ = this;
  oldest.radix_ = radix;
  oldest.operation_ = call.operation;
  oldest.length_ = call.length;
  oldest.root_ = call.root;
  oldest.to_root_ = call.operation == Operation::reduce || call.operation == Operation::gather;
  oldest.override_ = override_;
  oldest.levels_ = levels_of(call, radix, hosts_);
  oldest.computation_.store(0, std::memory_order_relaxed);
  return &oldest;
}

}  // namespace canele::comm::collectives

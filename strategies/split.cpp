// SPDX-License-Identifier: BSD-3-Clause
#include "strategies/split.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace canele::strategies {
namespace split {
namespace {

/// Returns when a rail can bring the first byte that is sent on it now, in nanoseconds from now.
double begin_ns(const RailLoad& rail) {
  return static_cast<double>(rail.latency_ns) + static_cast<double>(rail.ahead) * 1e9 / rail.bytes_per_second;
}

std::uint64_t bit(std::size_t rail) { return std::uint64_t{1} << rail; }

/// Returns the rails that are quick enough to carry a share.
std::uint64_t candidates(std::span<const RailLoad> rails) {
  double quickest = 0;
  for (const RailLoad& rail : rails) {
    if (rail.usable) quickest = std::max(quickest, rail.bytes_per_second);
  }
  std::uint64_t found = 0;
  for (std::size_t i = 0; i < rails.size(); ++i) {
    if (rails[i].usable && rails[i].bytes_per_second >= quickest * slowest_share) found |= bit(i);
  }
  return found;
}

/// Returns the usable rail that ends first if it carries all of it.
std::size_t best_alone(std::uint64_t bytes, std::span<const RailLoad> rails) {
  std::size_t best = rails.size();
  for (std::size_t i = 0; i < rails.size(); ++i) {
    if (!rails[i].usable) continue;
    if (best == rails.size() || finish_ns(bytes, rails, bit(i)) < finish_ns(bytes, rails, bit(best))) best = i;
  }
  return best;
}

/// Returns those of the candidates that have a share: a rail that begins after the others have ended has none.
std::uint64_t members(std::uint64_t bytes, std::span<const RailLoad> rails, std::uint64_t from) {
  std::uint64_t found = 0;
  double end = 0;
  while (true) {
    std::size_t next = rails.size();
    for (std::size_t i = 0; i < rails.size(); ++i) {
      if ((from & ~found & bit(i)) == 0) continue;
      if (next == rails.size() || begin_ns(rails[i]) < begin_ns(rails[next])) next = i;
    }
    if (next == rails.size() || (found != 0 && begin_ns(rails[next]) >= end)) return found;
    found |= bit(next);
    end = finish_ns(bytes, rails, found);
  }
}

/// Returns how many bytes a rail brings until `end_ns`.
std::uint64_t share_of(const RailLoad& rail, double end_ns) {
  return static_cast<std::uint64_t>(std::max(0., rail.bytes_per_second * 1e-9 * (end_ns - begin_ns(rail))));
}

/// This rail takes a slice in any case, so that some rail does. Among equal shares it is the first one.
bool has_largest_share(std::size_t asking, std::span<const RailLoad> rails, std::uint64_t members, double end_ns) {
  std::size_t largest = rails.size();
  for (std::size_t i = 0; i < rails.size(); ++i) {
    if ((members & bit(i)) == 0) continue;
    if (largest == rails.size() || share_of(rails[i], end_ns) > share_of(rails[largest], end_ns)) largest = i;
  }
  return asking == largest;
}

}  // namespace

double finish_ns(std::uint64_t bytes, std::span<const RailLoad> rails, std::uint64_t members) {
  double rate = 0, begun = 0;
  for (std::size_t i = 0; i < rails.size(); ++i) {
    if ((members & bit(i)) == 0) continue;
    rate += rails[i].bytes_per_second;
    begun += rails[i].bytes_per_second * begin_ns(rails[i]);
  }
  return (static_cast<double>(bytes) * 1e9 + begun) / rate;
}

std::uint64_t slice(std::uint64_t rest, std::span<const RailLoad> rails, std::size_t asking) {
  assert(rest > 0 && asking < rails.size() && rails.size() <= RailView::most_rails);
  if (!rails[asking].usable) return 0;
  const auto timed = static_cast<std::uint64_t>(rails[asking].bytes_per_second * slice_ns * 1e-9);
  const std::uint64_t whole = std::min(rest, std::clamp(timed, shortest_slice, longest_slice));
  const std::size_t alone = best_alone(rest, rails);
  const std::uint64_t together = members(rest, rails, candidates(rails));
  const double alone_ns = finish_ns(rest, rails, bit(alone)), end_ns = finish_ns(rest, rails, together);
  const bool pays = alone_ns - end_ns >= std::max(least_gain_ns, least_gain * alone_ns);
  if (!pays) return asking == alone ? whole : 0;
  if ((together & bit(asking)) == 0) return 0;
  const std::uint64_t share = share_of(rails[asking], end_ns);
  if (share < shortest_slice / 2 && !has_largest_share(asking, rails, together, end_ns)) return 0;
  const std::uint64_t taken = std::min(whole, std::max(share, shortest_slice));
  return rest - taken < shortest_slice / 2 ? rest : taken;
}

}  // namespace split

namespace {

class Split final : public Strategy {
 public:
  explicit Split(std::unique_ptr<Strategy> base) : base_(std::move(base)) {}

  void add(Item& item) override { base_->add(item); }
  void remove(Item& item) override { base_->remove(item); }
  void reprioritized(Item& item, std::int32_t before) override { base_->reprioritized(item, before); }
  bool empty() const override { return base_->empty(); }
  Item* any() override { return base_->any(); }
  void each(const std::function<void(const Item&)>& visit) const override { base_->each(visit); }

  /// Bulk items take turns in `base_`. A rail that leaves one to the others is asked about the next.
  void plan(const RailView& rail, Plan& plan) override {
    const Item* left_first = nullptr;
    while (true) {
      base_->plan(rail, plan);
      if (plan.count == 0 || plan.items[0]->kind != Kind::bulk || rail.rails.size() < 2) return;
      const Item* const item = plan.items[0];
      plan.bulk_bytes = split::slice(item->bytes_left, rail.rails, rail.asking);
      if (plan.bulk_bytes != 0) return;
      plan.count = 0;  // a planned bulk item is still in the index
      plan.size = 0;
      if (item == left_first) break;
      if (left_first == nullptr) left_first = item;
    }
    RailView without_bulk = rail;
    without_bulk.bulk_allowed = false;
    base_->plan(without_bulk, plan);
  }

 private:
  std::unique_ptr<Strategy> base_;
};

}  // namespace

std::unique_ptr<Strategy> make_split(std::unique_ptr<Strategy> base) {
  return std::make_unique<Split>(std::move(base));
}

}  // namespace canele::strategies

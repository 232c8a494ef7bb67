// SPDX-License-Identifier: BSD-3-Clause
//
// The strategies, given every short list of items, with packets in between and one item withdrawn or changed. One
// thread.
//
// The test checks the contract (strategy.hpp) and what each strategy promises beyond it, packet by packet: the oracle
// knows which item must be next. Sizes are chosen around the room: 40 and 60 fit together, 100 fits alone. In a session
// that is ordered across tags, all items have one flow.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "strategies/strategy.hpp"

namespace canele::strategies {
namespace {

constexpr std::uint32_t room = 100;
constexpr std::size_t most = 4;

/// An item as it is given to a strategy.
struct Given {
  Kind kind;
  std::uint32_t size;  ///< bulk: number of packets in which it leaves
  std::int32_t priority = 0;
  std::uint64_t flow = 0;
};

struct Queued : Item {
  int number = 0;
};

/// The waiting items, in order, and which of them must leave next.
class Oracle {
 public:
  explicit Oracle(const StrategyFactory& factory) : name_(factory.name) {}

  void add(Queued& item) { list(item.kind).push_back(&item); }
  void remove(Queued& item) { std::erase(list(item.kind), &item); }
  bool has(const Queued& item) {
    return std::find(list(item.kind).begin(), list(item.kind).end(), &item) != list(item.kind).end();
  }
  bool empty() const { return control_.empty() && envelopes_.empty() && bulk_.empty(); }

  /// Takes the items of a packet out, except bulk. Returns "" or what is wrong with the packet.
  std::string take(const Plan& plan, bool bulk_allowed) {
    const bool had_control = !control_.empty();
    const bool may_bulk = bulk_allowed && !bulk_.empty() && !had_control;
    std::size_t size = 0;
    int at = 0;
    if (plan.count > 0 && plan.items[0]->kind == Kind::bulk) return take_bulk(plan, may_bulk);
    if (may_bulk && !(bulk_was_last_ && !envelopes_.empty())) return "bulk did not have its turn";
    for (; at < plan.count && plan.items[at]->kind == Kind::control; ++at) {
      if (plan.items[at] != control_.front()) return "control out of order";
      size += control_.front()->size;
      control_.erase(control_.begin());
    }
    if (!control_.empty() && size + control_.front()->size <= room) return "control that fits stayed behind";
    if (at < plan.count && !control_.empty()) return "an envelope overtook control";
    const std::string wrong = take_envelopes(plan, at, &size);
    if (!wrong.empty()) return wrong;
    if (size > room || size != plan.size) return "the room was exceeded";
    if (!had_control) bulk_was_last_ = false;
    return "";
  }

 private:
  std::vector<Queued*>& list(Kind kind) {
    return kind == Kind::control ? control_ : kind == Kind::envelope ? envelopes_ : bulk_;
  }

  /// Takes the bulk item of highest priority; among equals, the one that has waited longest.
  std::string take_bulk(const Plan& plan, bool may) {
    if (!may || plan.count != 1) return "bulk that is not alone, overtakes control, or is not allowed";
    if (bulk_was_last_ && !envelopes_.empty()) return "two turns of bulk while an envelope waits";
    Queued* best = bulk_.front();
    for (Queued* item : bulk_) best = item->priority > best->priority ? item : best;
    if (plan.items[0] != best) return "not the bulk whose turn it is";
    remove(*best);
    bulk_.push_back(best);
    bulk_was_last_ = true;
    return "";
  }

  std::string take_envelopes(const Plan& plan, int at, std::size_t* size) {
    if (envelopes_.empty()) return at == plan.count ? "" : "an item from nowhere";
    if (!control_.empty()) return "";
    bool oldest_first = name_ == "priority" && ++packets_ % 8 == 0;
    for (int first = at;; ++at) {
      if (envelopes_.empty() || (name_ == "fifo" && at > first)) break;
      Queued* const next = oldest_first ? envelopes_.front() : next_envelope();
      const bool fits = *size + next->size <= room;
      if (oldest_first && !fits) {
        oldest_first = false;
        --at;
        continue;
      }
      oldest_first = false;
      if (!fits) break;
      if (at == plan.count) return "an envelope that fits stayed behind: " + std::to_string(next->number);
      const auto* const item = static_cast<const Queued*>(plan.items[at]);
      if (item->kind == Kind::envelope && oldest_of_flow(item->flow_tag) != item) return "a flow was overtaken";
      if (item != next) return "not the envelope whose turn it is: " + std::to_string(item->number);
      *size += next->size;
      remove(*next);
    }
    return at == plan.count ? "" : "an item too many";
  }

  Queued* oldest_of_flow(std::uint64_t flow) const {
    const auto found =
        std::find_if(envelopes_.begin(), envelopes_.end(), [&](const Queued* item) { return item->flow_tag == flow; });
    return found == envelopes_.end() ? nullptr : *found;
  }

  /// For priority: returns the first message of the flow that has the message of highest priority.
  Queued* next_envelope() const {
    if (name_ != "priority") return envelopes_.front();
    Queued* best = nullptr;
    std::int32_t best_priority = 0;
    for (const Queued* item : envelopes_) {
      Queued* const first = oldest_of_flow(item->flow_tag);
      const bool higher = best == nullptr || item->priority > best_priority;
      if (!higher && (item->priority < best_priority || first->age >= best->age)) continue;
      best = first;
      best_priority = item->priority;
    }
    return best;
  }

  const std::string_view name_;
  std::vector<Queued*> control_, envelopes_, bulk_;
  bool bulk_was_last_ = false;
  unsigned packets_ = 0;
};

/// A change to one of the items, after the last but `back` has been added.
struct Change {
  enum Kind : std::uint8_t { none, remove, raise, lower } kind = none;
  std::size_t item = 0, after = 0;
};

class World {
 public:
  World(const StrategyFactory& factory, unsigned packets_before) : strategy_(factory.create()), oracle_(factory) {
    for (unsigned i = 0; i < packets_before; ++i) {
      give(items_[0], {Kind::envelope, room});
      packet(true);
    }
  }

  /// Adds `given`, with a packet after item i if bit i of `packets` is set; then lets all leave. Returns "" or what
  /// went wrong.
  const std::string& run(const std::vector<Given>& given, unsigned packets, const Change& change, bool bulk_late) {
    for (std::size_t i = 0; i < given.size(); ++i) {
      items_[i].number = static_cast<int>(i);
      give(items_[i], given[i]);
      if (change.kind != Change::none && change.after == i) apply(change);
      if ((packets >> i & 1) != 0) packet(!bulk_late);
    }
    for (std::size_t turns = 0; !oracle_.empty() && wrong_.empty(); ++turns) {
      if (turns > 4 * most) wrong_ = "something starves";
      packet(!bulk_late || turns >= most);
    }
    if (wrong_.empty() && (!strategy_->empty() || strategy_->any() != nullptr)) wrong_ = "it is not empty";
    return wrong_;
  }

 private:
  void give(Queued& item, const Given& given) {
    item.kind = given.kind;
    item.size = given.size;
    item.priority = given.priority;
    item.flow_session = 1;
    item.flow_tag = given.flow;
    item.age = ++age_;
    strategy_->add(item);
    oracle_.add(item);
  }

  void apply(const Change& change) {
    Queued& item = items_[change.item];
    if (!oracle_.has(item)) return;  // the item has left
    if (change.kind == Change::remove) {
      strategy_->remove(item);
      oracle_.remove(item);
      return;
    }
    const std::int32_t before = item.priority;
    item.priority = change.kind == Change::raise ? 2 : -1;
    strategy_->reprioritized(item, before);
  }

  void packet(bool bulk_allowed) {
    if (!wrong_.empty()) return;
    if (strategy_->empty() != oracle_.empty()) wrong_ = "empty() is wrong";
    Plan plan;
    strategy_->plan({room, bulk_allowed, nullptr}, plan);
    if (wrong_.empty()) wrong_ = oracle_.take(plan, bulk_allowed);
    if (!wrong_.empty() || plan.count == 0 || plan.items[0]->kind != Kind::bulk) return;
    auto& bulk = static_cast<Queued&>(*plan.items[0]);
    if (--bulk.size != 0) return;
    strategy_->remove(bulk);
    oracle_.remove(bulk);
  }

  std::unique_ptr<Strategy> strategy_;
  Oracle oracle_;
  std::array<Queued, most> items_{};
  std::uint64_t age_ = 0;
  std::string wrong_;
};

std::string text(const std::vector<Given>& given, unsigned packets, const Change& change) {
  static constexpr std::array kinds = {"control", "envelope", "bulk"};
  static constexpr std::array changes = {"", "removed", "raised", "lowered"};
  std::string made;
  for (std::size_t i = 0; i < given.size(); ++i) {
    made += std::string(kinds[static_cast<std::size_t>(given[i].kind)]) + " of " + std::to_string(given[i].size) +
            ", priority " + std::to_string(given[i].priority) + ", flow " + std::to_string(given[i].flow) + "; ";
    if (change.kind != Change::none && change.after == i) {
      made += std::to_string(change.item) + " is " + changes[change.kind] + "; ";
    }
    if ((packets >> i & 1) != 0) made += "packet; ";
  }
  return made;
}

/// Every list of `length` of these items, with every set of packets between them and every one of the changes.
struct Space {
  std::vector<Given> items;
  std::size_t length = most;
  std::vector<Change> changes = {Change()};
  std::vector<unsigned> packets_before = {0};
  bool bulk_late = false;  ///< the rail takes bulk only when all other items have left

  std::uint64_t worlds() const {
    std::uint64_t lists = 1;
    for (std::size_t i = 0; i < length; ++i) lists *= items.size();
    return (lists << (length - 1)) * changes.size() * packets_before.size();  // a packet or none in each gap
  }
};

class Worlds {
 public:
  Worlds(const StrategyFactory& factory, const Space& space) : factory_(factory), space_(space) {}
  std::uint64_t run() {
    extend();
    return count_;
  }

 private:
  void extend() {
    if (given_.size() == space_.length) return play();
    for (const Given& item : space_.items) {
      given_.push_back(item);
      extend();
      given_.pop_back();
    }
  }
  void play() {
    for (unsigned packets = 0; packets < 1u << (space_.length - 1); ++packets) {
      for (const Change& change : space_.changes) {
        for (const unsigned before : space_.packets_before) {
          if (testing::Test::HasFailure()) return;
          ++count_;
          const std::string wrong = World(factory_, before).run(given_, packets, change, space_.bulk_late);
          if (!wrong.empty()) {
            ADD_FAILURE() << "world " << count_ << ": " << wrong << ", after " << before
                          << " packets: " << text(given_, packets, change);
          }
        }
      }
    }
  }

  const StrategyFactory& factory_;
  const Space& space_;
  std::vector<Given> given_;
  std::uint64_t count_ = 0;
};

class StrategiesInAllWorlds : public testing::TestWithParam<const StrategyFactory*> {
 protected:
  void in_all_worlds(const char* name, const Space& space) {
    const std::uint64_t count = Worlds(*GetParam(), space).run();
    std::printf("%-10s %-40s %9llu worlds\n", std::string(GetParam()->name).c_str(), name,
                static_cast<unsigned long long>(count));
    if (!HasFailure()) {
      EXPECT_EQ(count, space.worlds());
    }
  }
};

/// Returns envelopes of these sizes, of two priorities and two flows.
std::vector<Given> envelopes(const std::vector<std::uint32_t>& sizes) {
  std::vector<Given> made;
  for (const std::uint32_t size : sizes) {
    for (const std::int32_t priority : {0, 1}) {
      for (const std::uint64_t flow : {0u, 1u}) made.push_back({Kind::envelope, size, priority, flow});
    }
  }
  return made;
}
std::vector<Given> with(std::vector<Given> some, const std::vector<Given>& more) {
  some.insert(some.end(), more.begin(), more.end());
  return some;
}

TEST_P(StrategiesInAllWorlds, FourItemsOfAllKinds) {
  Space space{with(envelopes({40, 60, 100}), {{Kind::control, 40},
                                              {Kind::control, 60},
                                              {Kind::bulk, 1, 0},
                                              {Kind::bulk, 2, 0},
                                              {Kind::bulk, 1, 1},
                                              {Kind::bulk, 2, 1}})};
  in_all_worlds("4 items of 18", space);
  space.length = 3;
  space.bulk_late = true;
  in_all_worlds("3 items of 18, no bulk at first", space);
}

TEST_P(StrategiesInAllWorlds, FourItemsOfWhichOneIsRemovedRaisedOrLowered) {
  Space space{with(envelopes({40}), {{Kind::envelope, 100, 1, 1}, {Kind::control, 60}, {Kind::bulk, 2, 0}})};
  space.changes.clear();
  for (std::size_t item = 0; item < most; ++item) {
    for (std::size_t after = item; after < most; ++after) {
      for (const auto kind : {Change::remove, Change::raise, Change::lower})
        space.changes.push_back({kind, item, after});
    }
  }
  ASSERT_EQ(space.changes.size(), 30u);
  in_all_worlds("4 items of 7, one changed", space);
}

TEST_P(StrategiesInAllWorlds, FourItemsWhenTheTurnOfTheOldestComes) {
  Space space{with(envelopes({40}), {{Kind::envelope, 100, 1, 2}})};
  space.packets_before = {4, 5, 6, 7};  // every 8th packet of `priority` begins with the oldest message
  in_all_worlds("4 items of 5 after 4 to 7 packets", space);
}

INSTANTIATE_TEST_SUITE_P(All, StrategiesInAllWorlds,
                         testing::Values(&fifo_factory, &aggregate_factory, &priority_factory),
                         [](const auto& i) { return std::string(i.param->name); });

}  // namespace
}  // namespace canele::strategies

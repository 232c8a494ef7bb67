// SPDX-License-Identifier: BSD-3-Clause
//
// fifo: one message per packet, in the order of submission. aggregate: as many as fit, in the same order.
//
// The two differ by one number, so they are one class.
#include "strategies/queues.hpp"

namespace canele::strategies {
namespace {

/// Keeps all items in lists. All lists use scratch[0..1]: an item is in one of them only.
class InOrder final : public Strategy {
 public:
  explicit InOrder(int envelopes_per_packet) : envelopes_per_packet_(envelopes_per_packet) {}

  void add(Item& item) override {
    switch (item.kind) {
      case Kind::control:
        control_.push_back(item);
        break;
      case Kind::envelope:
      case Kind::access:
        envelopes_.push_back(item);
        break;
      case Kind::bulk:
        bulk_.add(item);
        break;
    }
  }

  void remove(Item& item) override {
    switch (item.kind) {
      case Kind::control:
        control_.remove(item);
        break;
      case Kind::envelope:
      case Kind::access:
        envelopes_.remove(item);
        break;
      case Kind::bulk:
        bulk_.remove(item);
        break;
    }
  }

  void reprioritized(Item&, std::int32_t) override {}  // the order of submission is the only order here

  void plan(const RailView& rail, Plan& plan) override {
    if (!put_control(control_, rail, plan)) return;
    if (plan.count == 0 && bulk_.put(rail, !envelopes_.empty(), plan)) return;
    for (int envelopes = 0; envelopes < envelopes_per_packet_; ++envelopes) {
      Item* item = envelopes_.first();
      if (item == nullptr || plan.count == Plan::max_items || plan.size + item->size > rail.room) return;
      envelopes_.remove(*item);
      plan.put(*item);
    }
  }

  bool empty() const override { return control_.empty() && envelopes_.empty() && bulk_.empty(); }

  Item* any() override {
    if (!control_.empty()) return control_.first();
    return envelopes_.empty() ? bulk_.first() : envelopes_.first();
  }

  void each(const std::function<void(const Item&)>& visit) const override {
    control_.each(visit);
    envelopes_.each(visit);
    bulk_.each(visit);
  }

 private:
  ItemList<0> control_, envelopes_;
  BulkQueue bulk_;
  int envelopes_per_packet_;
};

}  // namespace

const StrategyFactory fifo_factory{"fifo", "one message per packet, in the order of submission",
                                   [] { return std::unique_ptr<Strategy>(new InOrder(1)); }};
const StrategyFactory aggregate_factory{"aggregate", "as many messages per packet as fit, in the order of submission",
                                        [] { return std::unique_ptr<Strategy>(new InOrder(Plan::max_items)); }};

}  // namespace canele::strategies

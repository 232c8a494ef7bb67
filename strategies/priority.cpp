// SPDX-License-Identifier: BSD-3-Clause
//
// priority: the message with the highest priority leaves first, aggregated with the next ones. Order per flow holds,
// and nothing starves.
//
// Called under the engine's lock.
//
// Flows compete, not messages. A flow (session, tag) is a FIFO whose first message stands for it. The flow has the
// highest priority of all its messages: a message lends its priority to its predecessors. Every 8th packet begins with
// the oldest message of all. So a message with m older ones waiting leaves within 8 (m + 1) packets, whatever comes.
//
//   flows_ (hash)   key ──▶ Flow { messages: FIFO ⇄, best: decreasing candidates }
//   heap_           binary heap of flows by (best priority, age of first message)
//   ages_           all messages, oldest first
//
// The list `best` holds the candidates for the best message of a flow. A message can never be that if a later message
// of its flow has at least its priority. The others form a decreasing list whose front is the best. Adding a message
// drops smaller ones from the back: constant time on average.
//
// Rejected: a heap of messages (order per flow then needs a search for predecessors); buckets per priority (priorities
// are any int).
#include <utility>
#include <vector>

#include "strategies/queues.hpp"

namespace canele::strategies {
namespace {

using Messages = ItemList<0>;
using Best = ItemList<2>;
using Ages = ItemList<4>;
constexpr int flow_slot = 6, in_best_slot = 7;

struct Flow {
  Messages messages;
  Best best;
  std::uint64_t session = 0, tag = 0;
  std::size_t heap_index = 0;
  Flow* next = nullptr;  ///< in its bucket, or in the free list

  std::int32_t priority() const { return best.first()->priority; }
  std::uint64_t age() const { return messages.first()->age; }
};

bool before(const Flow& a, const Flow& b) {
  return a.priority() != b.priority() ? a.priority() > b.priority() : a.age() < b.age();
}

/// Flows by key, in hash buckets that are chained through the flows. A flow that ends is kept for the next one, so that
/// a steady state allocates nothing.
class FlowTable {
 public:
  FlowTable() : buckets_(64, nullptr) {}
  ~FlowTable() {
    buckets_.push_back(free_);
    for (Flow* flow : buckets_) {
      while (flow != nullptr) delete std::exchange(flow, flow->next);
    }
  }
  FlowTable(const FlowTable&) = delete;
  FlowTable& operator=(const FlowTable&) = delete;

  /// Returns the flow with this key, made if there is none.
  Flow& find_or_make(std::uint64_t session, std::uint64_t tag) {
    for (Flow* flow = bucket(session, tag); flow != nullptr; flow = flow->next) {
      if (flow->tag == tag && flow->session == session) return *flow;
    }
    if (count_ == buckets_.size()) grow();
    Flow* flow = free_ != nullptr ? std::exchange(free_, free_->next) : new Flow;
    *flow = Flow{};
    flow->session = session;
    flow->tag = tag;
    insert(*flow);
    ++count_;
    return *flow;
  }

  void release(Flow& flow) {
    Flow** link = &bucket(flow.session, flow.tag);
    while (*link != &flow) link = &(*link)->next;
    *link = flow.next;
    flow.next = std::exchange(free_, &flow);
    --count_;
  }

 private:
  Flow*& bucket(std::uint64_t session, std::uint64_t tag) {
    const std::uint64_t hash = (tag ^ (session << 48)) * 0x9e3779b97f4a7c15u;
    return buckets_[(hash >> 20) & (buckets_.size() - 1)];
  }
  void insert(Flow& flow) {
    Flow*& head = bucket(flow.session, flow.tag);
    flow.next = std::exchange(head, &flow);
  }
  void grow() {
    std::vector<Flow*> old(2 * buckets_.size(), nullptr);
    old.swap(buckets_);
    for (Flow* flow : old) {
      while (flow != nullptr) insert(*std::exchange(flow, flow->next));
    }
  }

  std::vector<Flow*> buckets_;
  Flow* free_ = nullptr;
  std::size_t count_ = 0;
};

/// A binary heap of flows that know their place in it.
class Heap {
 public:
  bool empty() const { return flows_.empty(); }
  Flow& top() const { return *flows_.front(); }
  void insert(Flow& flow) {
    flow.heap_index = flows_.size();
    flows_.push_back(&flow);
    update(flow);
  }
  void remove(Flow& flow) {
    const std::size_t hole = flow.heap_index;
    Flow* last = flows_.back();
    flows_.pop_back();
    if (last == &flow) return;
    flows_[hole] = last;
    last->heap_index = hole;
    update(*last);
  }
  /// Moves a flow to its place after its priority or age has changed.
  void update(Flow& flow) {
    while (flow.heap_index > 0 && before(flow, *flows_[(flow.heap_index - 1) / 2])) {
      swap(flow.heap_index, (flow.heap_index - 1) / 2);
    }
    for (;;) {
      std::size_t child = 2 * flow.heap_index + 1;
      if (child >= flows_.size()) return;
      if (child + 1 < flows_.size() && before(*flows_[child + 1], *flows_[child])) ++child;
      if (!before(*flows_[child], flow)) return;
      swap(child, flow.heap_index);
    }
  }

 private:
  void swap(std::size_t a, std::size_t b) {
    std::swap(flows_[a], flows_[b]);
    flows_[a]->heap_index = a;
    flows_[b]->heap_index = b;
  }
  std::vector<Flow*> flows_;
};

class Priority final : public Strategy {
 public:
  void add(Item& item) override {
    switch (item.kind) {
      case Kind::control:
        control_.push_back(item);
        return;
      case Kind::bulk:
        bulk_.add(item);
        return;
      case Kind::envelope:
      case Kind::access:
        break;
    }
    ages_.push_back(item);
    Flow& flow = flows_.find_or_make(item.flow_session, item.flow_tag);
    const bool fresh = flow.messages.empty();
    item.scratch[flow_slot] = &flow;
    flow.messages.push_back(item);
    add_candidate(flow, item);
    if (fresh) {
      heap_.insert(flow);
    } else {
      heap_.update(flow);
    }
  }

  void remove(Item& item) override {
    switch (item.kind) {
      case Kind::control:
        control_.remove(item);
        return;
      case Kind::bulk:
        bulk_.remove(item);
        return;
      case Kind::envelope:
      case Kind::access:
        break;
    }
    Flow& flow = flow_of(item);
    heap_.remove(flow);
    unlink(flow, item);
    rebuild_candidates(flow);
    reinsert_or_release(flow);
  }

  void reprioritized(Item& item, std::int32_t /*before*/) override {
    if (item.kind == Kind::control || item.kind == Kind::bulk) return;
    Flow& flow = flow_of(item);
    rebuild_candidates(flow);  // rare, and linear in the flow
    heap_.update(flow);
  }

  void plan(const RailView& rail, Plan& plan) override {
    if (!put_control(control_, rail, plan)) return;
    if (plan.count == 0 && bulk_.put(rail, !ages_.empty(), plan)) return;
    constexpr int ageing = 8;
    if (!ages_.empty() && ++packets_ % ageing == 0) put_first_of(flow_of(*ages_.first()), rail, plan);
    while (!heap_.empty() && put_first_of(heap_.top(), rail, plan)) {
    }
  }

  bool empty() const override { return control_.empty() && ages_.empty() && bulk_.empty(); }

  Item* any() override {
    if (!control_.empty()) return control_.first();
    return ages_.empty() ? bulk_.first() : ages_.first();
  }

  void each(const std::function<void(const Item&)>& visit) const override {
    control_.each(visit);
    ages_.each(visit);
    bulk_.each(visit);
  }

 private:
  static Flow& flow_of(const Item& item) { return *static_cast<Flow*>(item.scratch[flow_slot]); }

  static void add_candidate(Flow& flow, Item& item) {
    while (Item* last = flow.best.last()) {
      if (last->priority > item.priority) break;
      flow.best.remove(*last);
      last->scratch[in_best_slot] = nullptr;
    }
    flow.best.push_back(item);
    item.scratch[in_best_slot] = &flow;
  }

  static void rebuild_candidates(Flow& flow) {
    while (Item* item = flow.best.first()) {
      flow.best.remove(*item);
      item->scratch[in_best_slot] = nullptr;
    }
    for (Item* item = flow.messages.first(); item != nullptr; item = Messages::next(*item)) add_candidate(flow, *item);
  }

  void unlink(Flow& flow, Item& item) {
    if (item.scratch[in_best_slot] != nullptr) flow.best.remove(item);
    item.scratch[in_best_slot] = nullptr;
    flow.messages.remove(item);
    ages_.remove(item);
  }

  /// Puts a flow that is out of the heap back after a message has left it, or releases it if it is empty.
  void reinsert_or_release(Flow& flow) {
    if (!flow.messages.empty()) {
      heap_.insert(flow);
      return;
    }
    flows_.release(flow);
  }

  bool put_first_of(Flow& flow, const RailView& rail, Plan& plan) {
    Item& item = *flow.messages.first();
    if (plan.count == Plan::max_items || plan.size + item.size > rail.room) return false;
    heap_.remove(flow);
    unlink(flow, item);
    reinsert_or_release(flow);
    plan.put(item);
    return true;
  }

  ItemList<0> control_;
  BulkQueue bulk_;
  Ages ages_;
  Heap heap_;
  FlowTable flows_;
  unsigned packets_ = 0;
};

}  // namespace

const StrategyFactory priority_factory{
    "priority", "highest priority first, aggregated; keeps the order per tag, without starvation",
    [] { return std::unique_ptr<Strategy>(new Priority); }};

}  // namespace canele::strategies

// SPDX-License-Identifier: BSD-3-Clause
//
// Construction of a schedule. Edges are a list while steps are added, and are sorted into slices once, at the end. Once
// the vectors have grown, a schedule of any size needs two allocations.
#include "comm/collectives/algorithms/schedule.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace canele::comm::collectives {
namespace {

constexpr std::uint64_t alignment = 64;

Step message(Action action, int peer, std::uint32_t slot) {
  assert(peer >= 0 && slot < slots && "a message has a peer, and a slot that fits into its tag");
  Step step;
  step.action = action;
  step.peer = peer;
  step.slot = slot;
  return step;
}

[[maybe_unused]] bool overlap(const Range& a, const Range& b) {
  return a.space == b.space && a.offset < b.offset + b.length && b.offset < a.offset + a.length;
}

Step local(Action action, Range from, Range to) {
  assert(from.length == to.length && !overlap(from, to));
  assert(to.space != Space::input && "input is the caller's, and does not change");
  Step step;
  step.action = action;
  step.from = from;
  step.to = to;
  return step;
}

}  // namespace

StepId Builder::add(Step step, Needs needs) {
  const auto id = static_cast<StepId>(schedule_.steps_.size());
  step.level = level_;
  schedule_.steps_.push_back(step);
  if (step.action == Action::send || step.action == Action::receive) {
    ++schedule_.messages_;
    schedule_.longest_message_ = std::max({schedule_.longest_message_, step.from.length, step.to.length});
  }
  for (const StepId need : needs) add_need(id, need);
  return id;
}

StepId Builder::send(int peer, std::uint32_t slot, Range from, Needs needs) {
  Step step = message(Action::send, peer, slot);
  step.from = from;
  return add(step, needs);
}

StepId Builder::receive(int peer, std::uint32_t slot, Range to, Needs needs) {
  assert(to.space != Space::input && "input is the caller's, and does not change");
  Step step = message(Action::receive, peer, slot);
  step.to = to;
  return add(step, needs);
}

StepId Builder::copy(Range from, Range to, Needs needs) { return add(local(Action::copy, from, to), needs); }
StepId Builder::combine(Range from, Range to, Needs needs) { return add(local(Action::combine, from, to), needs); }
StepId Builder::append(Range from, Range to, Needs needs) { return add(local(Action::append, from, to), needs); }

StepId Builder::join(std::span<const StepId> needs) {
  const StepId id = add(Step{}, {});
  for (const StepId need : needs) add_need(id, need);
  return id;
}

void Builder::add_need(StepId step, StepId need) {
  if (need == no_step) return;
  assert(need < step && step < schedule_.steps_.size() && "a step comes after what it needs: so there is no circle");
  edges_.emplace_back(need, step);
  ++schedule_.steps_[step].needs;
}

Range Builder::scratch(std::uint64_t bytes) {
  const Range fresh{Space::scratch, schedule_.scratch_, bytes};
  schedule_.scratch_ += (bytes + alignment - 1) / alignment * alignment;
  return fresh;
}

Schedule Builder::build() && {
  // Sorts by need. The edges of one need keep the order in which they were added, which is the order of starting.
  std::stable_sort(edges_.begin(), edges_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  schedule_.after_.reserve(edges_.size());
  auto edge = edges_.begin();
  for (StepId id = 0; id < schedule_.steps_.size(); ++id) {
    Step& step = schedule_.steps_[id];
    step.first_after = static_cast<std::uint32_t>(schedule_.after_.size());
    for (; edge != edges_.end() && edge->first == id; ++edge) schedule_.after_.push_back(edge->second);
    step.end_after = static_cast<std::uint32_t>(schedule_.after_.size());
  }
  find_first();
  schedule_.begins_with_one_message_ = begins_with_one_message();
  return std::move(schedule_);
}

bool Builder::begins_with_one_message() const {
  const auto& steps = schedule_.steps_;
  const auto locals = schedule_.first_locals();
  const auto is_small = [&](StepId id) { return is_trifle(steps[id]); };
  if (schedule_.first_message_count_ != 1 || !std::all_of(locals.begin(), locals.end(), is_small)) return false;
  if (schedule_.messages_ == 1) return true;
  const StepId first = schedule_.first_.front();
  std::vector<bool> waits(steps.size());  // for the first message, directly or not
  waits[first] = true;
  for (StepId id = 0; id < steps.size(); ++id) {
    const bool receives = steps[id].action == Action::receive, sends = steps[id].action == Action::send;
    if (receives != (id == first) || (sends && !waits[id])) return false;
    for (const StepId after : schedule_.after(steps[id])) waits[after] = waits[after] || waits[id];
  }
  return schedule_.inflight_limit_ == 0;
}

void Builder::find_first() {
  const auto add_all = [this](auto wanted) {
    for (StepId id = 0; id < schedule_.steps_.size(); ++id) {
      const Step& step = schedule_.steps_[id];
      if (step.needs == 0 && wanted(step.action)) schedule_.first_.push_back(id);
    }
  };
  add_all([](Action action) { return action == Action::receive; });
  add_all([](Action action) { return action == Action::send; });
  schedule_.first_message_count_ = schedule_.first_.size();
  add_all([](Action action) { return action != Action::receive && action != Action::send; });
}

}  // namespace canele::comm::collectives

// SPDX-License-Identifier: BSD-3-Clause
//
// Virtual time on modelled cores.
//
// What a rank does to its own memory takes no time: the unit of the published model is a message with all that belongs
// to it. Steps may be deferred: a rank's until its thread reaches them, or a level's if levels are kept apart. Only
// messages are deferred, because no other step takes time.
#include "apps/sim/core_model.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <deque>
#include <map>
#include <queue>
#include <stdexcept>
#include <tuple>

#include "comm/collectives/placement.hpp"

namespace canele::sim {
namespace {

using comm::collectives::Action;
using comm::collectives::no_step;
using comm::collectives::Schedule;
using comm::collectives::Step;
using comm::collectives::StepId;
namespace placement = comm::collectives::placement;

/// A core, or several cores that take tasks from one queue.
struct Lane {
  std::uint32_t idle = 1;
  bool communicates = false;
  std::deque<std::size_t> queue;  // indexes of tasks; a task that another lane has begun meanwhile is skipped
};

struct Transfer {
  std::size_t from = 0, to = 0;
  StepId send = no_step, receive = no_step;  // no_step: not ready on that side
  double bytes = 0;
  bool late = false;
  std::uint32_t level = 0;
};

enum class TaskKind : std::uint8_t { compute, copy, copy_out, copy_in, notice };

/// Work that occupies one core.
struct CoreTask {
  TaskKind kind;
  std::size_t rank;
  Transfer* message;
  StepId step;  // notice: the step that ends
  double ns;
  bool begun = false;
};

struct CoreEvent {
  double when;
  std::uint64_t order;  // of equal times, the event that was known first
  std::size_t task, lane;
  Transfer* carried = nullptr;  // by the cards
  bool reached = false;         // true: it has reached the other card, which takes it in now; false: it has arrived
  bool operator<(const CoreEvent& other) const { return std::tie(when, order) > std::tie(other.when, other.order); }
};

struct CoreRank {
  std::vector<std::uint32_t> needs;
  std::size_t left = 0;       // steps.
  std::size_t late_left = 0;  // messages.
  std::uint32_t sends = 0;
  bool computing = false, computed = false;
  std::vector<StepId> deferred;   // until its thread has reached them.
  std::deque<StepId> over_limit;  // sends beyond the limit.
};

class CoreModel {
 public:
  CoreModel(const CoreMachine& machine, const CoreCollective& collective, const std::vector<Schedule>& schedules)
      : machine_(machine),
        collective_(collective),
        schedules_(schedules),
        ranks_(schedules.size()),
        out_free_(machine.nodes),
        in_free_(machine.nodes) {
    assert(schedules.size() == std::size_t{machine.nodes} * machine.ranks);
    place();
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) count(rank);
  }

  CoreTimes run() {
    call();
    for (; !events_.empty(); happen()) {
    }
    for (const CoreRank& rank : ranks_) {
      if (rank.left != 0 || !rank.computed) throw std::logic_error("the simulated collective has not ended");
    }
    return {now_, busy_};
  }

 private:
  void place();
  void count(std::size_t rank);
  void call();
  void happen();
  void finish(const CoreTask& task);
  void free_lane(std::size_t lane);
  std::size_t make(const CoreTask& task);
  void offer(std::size_t task, std::size_t lane);
  void begin(std::size_t task, std::size_t lane);
  void start(std::size_t rank, StepId step);
  bool is_deferred(std::size_t rank, const Step& step) const;
  void release_deferred(std::size_t rank);
  void join(std::size_t rank, StepId step);
  void launch(Transfer& message);
  void carry(Transfer& message);
  void take_in(Transfer& message);
  void arrived(Transfer& message);
  void end(std::size_t rank, StepId step);
  void level_done(const Transfer& message);

  const Step& step_of(std::size_t rank, StepId step) const { return schedules_[rank].steps()[step]; }
  bool is_late(const Step& step) const { return step.level != 0 && step.level <= collective_.split; }
  static bool is_message(const Step& step) { return step.action == Action::send || step.action == Action::receive; }
  std::size_t node_of(std::size_t rank) const { return rank / machine_.ranks; }
  /// Returns the lane of a rank. A rank's own core has the rank's number.
  std::size_t lane_of(std::size_t rank, bool late) const { return late ? rank : communicates_on_[rank]; }
  static std::uint32_t level_of(std::size_t a, std::size_t b) {
    return static_cast<std::uint32_t>(std::countr_zero(std::max(a, b)));
  }

  const CoreMachine& machine_;
  const CoreCollective& collective_;
  const std::vector<Schedule>& schedules_;
  std::vector<CoreRank> ranks_;
  std::vector<Lane> lanes_;
  std::vector<std::size_t> communicates_on_;  // lane, by rank
  std::map<std::tuple<std::size_t, std::size_t, std::uint32_t>, Transfer> messages_;
  std::deque<CoreTask> tasks_;
  std::vector<double> out_free_, in_free_;       // of the cards, by node.
  std::vector<std::size_t> level_left_;          // messages that are not late.
  std::vector<std::vector<Transfer*>> waiting_;  // by level, for the levels before.
  std::priority_queue<CoreEvent> events_;
  double now_ = 0, busy_ = 0;
  std::uint64_t order_ = 0;
};

void CoreModel::place() {
  const std::uint32_t left = machine_.cores - machine_.ranks;
  lanes_.resize(ranks_.size());
  const bool at_home = machine_.placing == Placing::bind || left == 0;
  const std::size_t first = lanes_.size();
  if (!at_home) {
    const bool shared = machine_.placing == Placing::shared;
    lanes_.resize(first + std::size_t{machine_.nodes} * (shared ? 1 : machine_.cores));
    for (std::size_t lane = first; lane < lanes_.size(); ++lane) {
      lanes_[lane].communicates = true;
      if (shared) lanes_[lane].idle = left;
    }
  }
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const auto local = static_cast<std::uint32_t>(rank % machine_.ranks);
    std::size_t lane = rank;
    if (!at_home) {
      lane = first + (machine_.placing == Placing::shared
                          ? node_of(rank)
                          : node_of(rank) * machine_.cores + communication_core(machine_, local));
    }
    communicates_on_.push_back(lane);
  }
}

void CoreModel::count(std::size_t rank) {
  CoreRank& own = ranks_[rank];
  for (const Step& step : schedules_[rank].steps()) {
    own.needs.push_back(step.needs);
    if (is_message(step) && is_late(step)) ++own.late_left;
    if (step.action != Action::send || is_late(step)) continue;
    const std::uint32_t level = level_of(rank, static_cast<std::size_t>(step.peer));
    if (level >= level_left_.size()) level_left_.resize(level + 1), waiting_.resize(level + 1);
    ++level_left_[level];
  }
  own.left = own.needs.size();
}

/// Starts the steps that need nothing, in the order of the schedules. The threads then compute, or execute their late
/// steps. All receives are posted before anything is sent, so that the rank number gives no rank an advantage.
void CoreModel::call() {
  std::vector<std::vector<StepId>> ready(ranks_.size());
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    for (StepId step = 0; step < ranks_[rank].needs.size(); ++step) {
      if (ranks_[rank].needs[step] == 0) ready[rank].push_back(step);
    }
  }
  for (const bool receives : {true, false}) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      for (const StepId step : ready[rank]) {
        if ((step_of(rank, step).action == Action::receive) == receives) start(rank, step);
      }
    }
  }
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (!collective_.late_first || ranks_[rank].late_left == 0) release_deferred(rank);
  }
}

void CoreModel::happen() {
  const CoreEvent event = events_.top();
  events_.pop();
  now_ = event.when;
  if (event.carried != nullptr) return event.reached ? take_in(*event.carried) : arrived(*event.carried);
  const CoreTask task = tasks_[event.task];
  if (lanes_[event.lane].communicates) busy_ += task.ns;
  finish(task);
  free_lane(event.lane);
}

void CoreModel::finish(const CoreTask& task) {
  Transfer* const message = task.message;
  switch (task.kind) {
    case TaskKind::compute:
      ranks_[task.rank].computed = true;
      return release_deferred(task.rank);
    case TaskKind::notice:
      return end(task.rank, task.step);
    case TaskKind::copy_out:
      return end(message->from, message->send);
    case TaskKind::copy:
      end(message->from, message->send);
      [[fallthrough]];
    case TaskKind::copy_in:
      end(message->to, message->receive);
      level_done(*message);
  }
}

void CoreModel::free_lane(std::size_t lane) {
  Lane& own = lanes_[lane];
  ++own.idle;
  while (own.idle > 0 && !own.queue.empty()) {
    const std::size_t task = own.queue.front();
    own.queue.pop_front();
    if (!tasks_[task].begun) begin(task, lane);
  }
}

std::size_t CoreModel::make(const CoreTask& task) {
  tasks_.push_back(task);
  return tasks_.size() - 1;
}

void CoreModel::offer(std::size_t task, std::size_t lane) {
  if (tasks_[task].begun) return;  // begun on the other side's lane
  lanes_[lane].idle > 0 ? begin(task, lane) : lanes_[lane].queue.push_back(task);
}

void CoreModel::begin(std::size_t id, std::size_t lane) {
  CoreTask& task = tasks_[id];
  task.begun = true;
  --lanes_[lane].idle;
  events_.push({now_ + task.ns, order_++, id, lane});
  if (task.kind != TaskKind::copy_out) return;
  // From now on the receiver can copy from the memory between the ranks.
  Transfer* const message = task.message;
  offer(make({TaskKind::copy_in, message->to, message, no_step, task.ns}), lane_of(message->to, message->late));
}

/// Tells whether a message is deferred: one of the calling thread until the thread reaches it, and any other one until
/// the thread has handed it over.
bool CoreModel::is_deferred(std::size_t rank, const Step& step) const {
  if (!is_message(step)) return false;
  const CoreRank& own = ranks_[rank];
  return collective_.late_first ? !is_late(step) && own.late_left > 0 : is_late(step) && !own.computed;
}

/// Starts the deferred steps when the thread has reached them.
void CoreModel::release_deferred(std::size_t rank) {
  CoreRank& own = ranks_[rank];
  std::vector<StepId> deferred;
  deferred.swap(own.deferred);
  for (const StepId step : deferred) start(rank, step);
  if (own.computing) return;
  own.computing = true;
  offer(make({TaskKind::compute, rank, nullptr, no_step, collective_.computation_ns}), rank);
}

void CoreModel::start(std::size_t rank, StepId id) {
  const Step& step = step_of(rank, id);
  CoreRank& own = ranks_[rank];
  if (!is_message(step)) return end(rank, id);
  if (is_deferred(rank, step)) return own.deferred.push_back(id);
  const std::uint32_t inflight_limit = schedules_[rank].inflight_limit();
  if (step.action == Action::send) {
    if (inflight_limit != 0 && own.sends >= inflight_limit) return own.over_limit.push_back(id);
    ++own.sends;
  }
  join(rank, id);
}

/// Makes one side of a message ready.
void CoreModel::join(std::size_t rank, StepId id) {
  const Step& step = step_of(rank, id);
  const auto peer = static_cast<std::size_t>(step.peer);
  const bool sends = step.action == Action::send;
  const std::size_t from = sends ? rank : peer, to = sends ? peer : rank;
  Transfer& message = messages_[{from, to, step.slot}];
  message.from = from, message.to = to, message.late = is_late(step);
  message.bytes = static_cast<double>(sends ? step.from.length : step.to.length);
  (sends ? message.send : message.receive) = id;
  if (message.send == no_step || message.receive == no_step) return;
  message.level = level_of(from, to);
  if (collective_.levels_apart != 0 && !message.late) {
    for (std::uint32_t level = 0; level < level_left_.size(); ++level) {
      const bool before = collective_.levels_apart > 0 ? level < message.level : level > message.level;
      if (before && level_left_[level] > 0) return waiting_[message.level].push_back(&message);
    }
  }
  launch(message);
}

void CoreModel::launch(Transfer& message) {
  if (node_of(message.from) != node_of(message.to)) return carry(message);
  const double ns = message.bytes * machine_.byte_ns;
  if (machine_.two_copies) {
    return offer(make({TaskKind::copy_out, message.from, &message, no_step, ns}), lane_of(message.from, message.late));
  }
  const std::size_t task = make({TaskKind::copy, message.to, &message, no_step, ns});
  for (const std::size_t rank : {message.to, message.from}) offer(task, lane_of(rank, message.late));
}

/// Carries a message: a card sends its messages one after the other, and the other card takes them in likewise.
void CoreModel::carry(Transfer& message) {
  double& free = out_free_[node_of(message.from)];
  const double begin = std::max(now_, free);
  free = begin + message.bytes * machine_.nic_byte_ns;
  events_.push({begin + machine_.nic_latency_ns, order_++, 0, 0, &message, true});
}

void CoreModel::take_in(Transfer& message) {
  double& free = in_free_[node_of(message.to)];
  free = std::max(now_, free) + message.bytes * machine_.nic_byte_ns;
  events_.push({free, order_++, 0, 0, &message, false});
}

void CoreModel::arrived(Transfer& message) {
  offer(make({TaskKind::notice, message.from, &message, message.send, 0}), lane_of(message.from, message.late));
  offer(make({TaskKind::notice, message.to, &message, message.receive, 0}), lane_of(message.to, message.late));
  level_done(message);
}

void CoreModel::end(std::size_t rank, StepId id) {
  CoreRank& own = ranks_[rank];
  const Step& step = step_of(rank, id);
  --own.left;
  if (step.action == Action::send) {
    --own.sends;
    if (!own.over_limit.empty()) {
      const StepId next = own.over_limit.front();
      own.over_limit.pop_front();
      start(rank, next);
    }
  }
  for (const StepId after : schedules_[rank].after(step)) {
    if (--own.needs[after] == 0) start(rank, after);
  }
  if (is_message(step) && is_late(step) && --own.late_left == 0 && collective_.late_first) release_deferred(rank);
}

void CoreModel::level_done(const Transfer& message) {
  if (collective_.levels_apart == 0 || message.late || --level_left_[message.level] > 0) return;
  const int levels = static_cast<int>(level_left_.size());
  for (int level = static_cast<int>(message.level); level >= 0 && level < levels; level += collective_.levels_apart) {
    const auto at = static_cast<std::size_t>(level);
    std::vector<Transfer*> now;
    now.swap(waiting_[at]);
    for (Transfer* const one : now) launch(*one);
    if (level_left_[at] > 0) return;
  }
}

}  // namespace

std::uint32_t communication_core(const CoreMachine& machine, std::uint32_t rank) {
  const std::uint32_t cores = machine.cores, ranks = machine.ranks, left = cores - ranks;
  if (machine.placing == Placing::numa) return placement::core_of(placement::Policy::numa, cores, ranks, rank);
  if (machine.placing == Placing::odd_even) return placement::core_of(placement::Policy::odd_even, cores, ranks, rank);
  // The cores that are left are the last ones of `left` equal parts of the node.
  const std::uint32_t part = placement::own_core_of(cores, ranks, rank) * left / cores;
  return ((part + 1) * cores + left - 1) / left - 1;
}

CoreTimes run_on_cores(const CoreMachine& machine, const CoreCollective& collective,
                       const std::vector<Schedule>& schedules) {
  return CoreModel(machine, collective, schedules).run();
}

}  // namespace canele::sim

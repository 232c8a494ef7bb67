// SPDX-License-Identifier: BSD-3-Clause
//
// Virtual time.
#include "tests/unit/collectives/clock.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <queue>
#include <tuple>

namespace canele::comm::collectives::model {
namespace {

enum class What : std::uint8_t { reaches_peer, is_there, ends };

struct Event {
  double when;
  std::uint64_t order;  // of equal moments, the one that was known first comes first
  int rank;
  StepId step;
  What what;
  bool operator<(const Event& other) const { return std::tie(when, order) > std::tie(other.when, other.order); }
};

class Clock {
 public:
  Clock(const std::vector<Schedule>& schedules, const Costs& costs) : schedules_(schedules), costs_(costs) {
    for (const Schedule& schedule : schedules) {
      Rank rank;
      for (const Step& step : schedule.steps()) rank.needs.push_back(step.needs);
      ranks_.push_back(std::move(rank));
    }
  }

  double run() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      for (StepId step = 0; step < ranks_[rank].needs.size(); ++step) {
        if (ranks_[rank].needs[step] == 0) start(static_cast<int>(rank), step);
      }
    }
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.when;
      if (event.what == What::reaches_peer) reach(event.rank, event.step);
      if (event.what == What::is_there) arrive(event.rank, event.step);
      if (event.what == What::ends) end(event.rank, event.step);
    }
    return now_;
  }

 private:
  struct Rank {
    std::vector<std::uint32_t> needs;
    double out_free = 0, in_free = 0;
    std::uint32_t sends = 0;
    std::queue<StepId> deferred;
  };
  struct Meeting {
    bool here = false, posted = false;
    StepId receive = no_step;
  };

  const Step& step_of(int rank, StepId step) const { return schedules_[static_cast<std::size_t>(rank)].steps()[step]; }
  void at(double when, int rank, StepId step, What what) { events_.push({when, order_++, rank, step, what}); }
  double busy(const Step& step) const {
    const Range& range = step.action == Action::receive ? step.to : step.from;
    return std::max(costs_.gap, static_cast<double>(range.length) * costs_.byte);
  }

  void start(int rank, StepId id) {
    const Step& step = step_of(rank, id);
    if (step.action == Action::send) return send(rank, id);
    if (step.action == Action::join) return at(now_, rank, id, What::ends);
    if (step.action != Action::receive) {
      return at(now_ + static_cast<double>(step.to.length) * costs_.memory_byte, rank, id, What::ends);
    }
    Meeting& meeting = meetings_[{step.peer, rank, step.slot}];
    meeting.posted = true;
    meeting.receive = id;
    if (meeting.here) at(now_, rank, id, What::ends);
  }

  void send(int rank, StepId id) {
    Rank& own = ranks_[static_cast<std::size_t>(rank)];
    const std::uint32_t inflight_limit = schedules_[static_cast<std::size_t>(rank)].inflight_limit();
    if (inflight_limit != 0 && own.sends >= inflight_limit) return own.deferred.push(id);
    ++own.sends;
    const Step& step = step_of(rank, id);
    const double begin = std::max(now_, own.out_free);
    own.out_free = begin + busy(step);
    at(begin + costs_.latency, rank, id, What::reaches_peer);
  }

  /// The wire into the peer also takes messages one after the other.
  void reach(int rank, StepId id) {
    const Step& step = step_of(rank, id);
    Rank& peer = ranks_[static_cast<std::size_t>(step.peer)];
    const double first = std::max(now_, peer.in_free);
    peer.in_free = first + busy(step);
    at(first + static_cast<double>(step.from.length) * costs_.byte, rank, id, What::is_there);
  }

  void arrive(int rank, StepId id) {
    const Step& step = step_of(rank, id);
    Meeting& meeting = meetings_[{rank, step.peer, step.slot}];
    meeting.here = true;
    if (meeting.posted) at(now_, step.peer, meeting.receive, What::ends);
    at(now_, rank, id, What::ends);
  }

  void end(int rank, StepId id) {
    Rank& own = ranks_[static_cast<std::size_t>(rank)];
    const Step& step = step_of(rank, id);
    if (step.action == Action::send) {
      --own.sends;
      if (!own.deferred.empty()) {
        const StepId next = own.deferred.front();
        own.deferred.pop();
        send(rank, next);
      }
    }
    for (const StepId after : schedules_[static_cast<std::size_t>(rank)].after(step)) {
      if (--own.needs[after] == 0) start(rank, after);
    }
  }

  const std::vector<Schedule>& schedules_;
  Costs costs_;
  std::vector<Rank> ranks_;
  std::map<std::tuple<int, int, std::uint32_t>, Meeting> meetings_;
  std::priority_queue<Event> events_;
  double now_ = 0;
  std::uint64_t order_ = 0;
};

}  // namespace

double time_of(const std::vector<Schedule>& schedules, const Costs& costs) { return Clock(schedules, costs).run(); }

Call collective(Operation operation, int size, std::uint64_t length) {
  Call call;
  call.operation = operation;
  call.size = size;
  call.length = length;
  call.element = 4;
  call.root = size / 2;
  call.input.length = call.output.length = length;
  return call;
}

std::vector<Schedule> schedules_of(Call call, const Choice& choice) {
  std::vector<Schedule> schedules;
  for (call.rank = 0; call.rank < call.size; ++call.rank) schedules.push_back(schedule_of(call, choice));
  return schedules;
}

}  // namespace canele::comm::collectives::model

// SPDX-License-Identifier: BSD-3-Clause
//
// Execution of a schedule on the thread that waits for it. Read from the bottom up.
//
// For 8 bytes between two ranks, this code costs a noticeable part of the whole message. The usual case is therefore
// inlined into one function, and unusual cases are calls.
#include "comm/collectives/blocking_executor.hpp"

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

#include "comm/collectives/async_executor.hpp"
#include "comm/engine/spin_wait.hpp"
#include "comm/post/buffered_send.hpp"
#include "comm/post/wait.hpp"
#include "comm/protocol/send_fast.hpp"
#include "comm/state/request_setup.hpp"

namespace canele::comm::collectives {
namespace {

/// Plans a poll in the same hold of the lock as the posting. Only for engines that poll nothing but memory.
inline Engine::Spin plan_spin(Engine& engine) {
  const bool polls =
      !engine.progress.worker.active() && engine.driver_set.system_peers.load(std::memory_order_relaxed) == 0;
  return polls ? engine.plan_spin() : Engine::Spin{};
}

}  // namespace

BlockingExecutor::BlockingExecutor(Group& group) : group_(group) {
  for (; free_count_ < most_messages; ++free_count_) {
    free_[free_count_] = static_cast<std::uint8_t>(free_count_);
  }
}

/// Tells the engine whether the messages are operands of a reduction. None is in progress.
[[gnu::cold]] void BlockingExecutor::mark_operands(bool are_operands) {
  are_operands_ = are_operands;
  for (Transfer& transfer : transfers_) request_of(&transfer.request).is_operand = are_operands;
}

void BlockingExecutor::Freeing::operator()(std::byte* memory) const {
  ::operator delete (memory, std::align_val_t{64});
}

bool BlockingExecutor::make_room(const Schedule& schedule) {
  if (schedule.scratch_bytes() > scratch_bytes_) {
    scratch_.reset(
        static_cast<std::byte*>(::operator new (schedule.scratch_bytes(), std::align_val_t{64}, std::nothrow)));
    scratch_bytes_ = scratch_ != nullptr ? schedule.scratch_bytes() : 0;
    if (scratch_ == nullptr) return false;
  }
  if (schedule.steps().size() <= step_room_) return true;
  step_room_ = 0;
  pending_.reset(new (std::nothrow) std::uint32_t[schedule.steps().size()]);
  ready_.reset(new (std::nothrow) StepId[schedule.steps().size()]);
  if (pending_ == nullptr || ready_ == nullptr) return false;
  step_room_ = schedule.steps().size();
  return true;
}

void BlockingExecutor::cancel_receives() {
  cancelled_ = true;
  for (std::uint32_t i = 0; i < in_flight_count_; ++i) {
    Transfer& transfer = transfers_[in_flight_[i]];
    if (schedule_->steps()[transfer.step].action == Action::receive) canele_cancel(&transfer.request);
  }
}

inline void BlockingExecutor::ended(const Step& step) {
  --left_;
  if (copy_ != nullptr && step.action != Action::send) [[unlikely]]
    forget_copy();
  for (const StepId after : schedule_->after(step)) {
    if (--pending_[after] == 0) ready_[ready_count_++] = after;
  }
}

/// Runs the tasks first if the peer is disconnected. A peer that has left may have sent its notice before, and that
/// notice may still be among the tasks. The cause in the notice takes precedence.
void BlockingExecutor::message_failed(const Step& step, Ending ending) {
  if (ending.code == CANELE_EPEER) group_.engine.run_tasks();
  news_ |= group_.note(number_, ending);
  failed_ = true;
  ended(step);
}

/// Begins the next send that waited for inflight_limit. If the collective has failed, begins all of them: none is sent
/// any more.
void BlockingExecutor::send_ended() {
  --sends_;
  while (!waiting_.empty() && sends_ < schedule_->inflight_limit()) {
    const StepId next = waiting_.front();
    waiting_.erase(waiting_.begin());
    begin(next);
  }
}

inline void BlockingExecutor::message_ended(const Step& step, const Request& message) {
  const bool as_long = step.action == Action::send || message.status_length == step.to.length;
  if (message.status_error == CANELE_OK && as_long) [[likely]] {
    ended(step);
  } else {
    message_failed(step, ending_of(group_, step, message));
  }
  if (step.action == Action::send && schedule_->inflight_limit() != 0) [[unlikely]]
    send_ended();
}

/// Posts the message to the engine. It is in progress until collect_ended() finds that it has ended.
void BlockingExecutor::post(StepId id, const Step& step) {
  const std::uint8_t which = free_[--free_count_];
  Transfer& transfer = transfers_[which];
  transfer.step = id;
  const int code = post_message(group_, *place_, step, number_, &transfer.request);
  if (code == CANELE_OK && !request_of(&transfer.request).finalized()) {
    in_flight_[in_flight_count_++] = which;
    return;
  }
  free_[free_count_++] = which;
  if (code == CANELE_OK) return message_ended(step, request_of(&transfer.request));
  message_failed(step, {code, group_.world(step.peer)});
  if (step.action == Action::send && schedule_->inflight_limit() != 0) send_ended();
}

/// Tries the fast path of a send. Under the engine's lock. Like canele_isend with no obstacle, except that no request
/// reports the outcome.
[[gnu::always_inline]] inline bool BlockingExecutor::sends_fast_locked(const Step& step) const {
  return step.from.length <= Rail::longest_fast && place_->work.priority == 0 &&
         send_path::try_send_fast(group_.engine, group_.world(step.peer),
                                  {group_.session, tag(step), place_->at(step.from), step.from.length});
}

bool BlockingExecutor::sends_fast(const Step& step) const {
  if (step.from.length > Rail::longest_fast || !group_.engine.try_lock_to_post()) return false;
  const bool left = sends_fast_locked(step);
  group_.engine.unlock_idle();
  return left;
}

/// Releases the copy: the memory that it was taken from may have changed since.
[[gnu::cold]] void BlockingExecutor::forget_copy() { buffered::release(*std::exchange(copy_, nullptr)); }

/// Returns true if few buffered sends are outstanding; more would displace the broadcast segment from the caches.
/// If there
/// are many, yields first: the rank that fetches them may be waiting for this processing unit.
bool BlockingExecutor::few_buffered() {
  constexpr std::uint32_t some = 4, many = 16;
  constexpr int most_turns = 8;
  Engine& engine = group_.engine;
  const auto count = [&] { return engine.large.buffered_count.load(std::memory_order_relaxed); };
  if (count() >= some) engine.step();
  for (int turn = 0; turn < most_turns && count() >= many; ++turn) {
    engine.platform.yield();
    engine.step();
  }
  return count() < many;
}

/// Returns true if the next ready step sends the same range to another rank.
bool BlockingExecutor::next_is_sent(const Range& range) const {
  if (next_ready_ >= ready_count_) return false;
  const Step& next = schedule_->steps()[ready_[next_ready_]];
  return next.action == Action::send && next.from == range;
}

/// Sends the message as a buffered send: its receiver fetches the data, and this rank goes on. The number of bytes
/// copied is the same as through the driver's rings. But where ranks share processing units, the rings would need a
/// context switch for every few pieces.
bool BlockingExecutor::sends_buffered(const Step& step) {
  constexpr std::uint64_t longest_for_one = 512 * 1024;  // a longer message leaves the caches before it is fetched
  Engine& engine = group_.engine;
  const std::uint64_t length = step.from.length;
  if (schedule_->waits_for_receivers() || !buffered::is_worthwhile(engine, length, ~std::uint64_t{0})) return false;
  const bool same = copy_ != nullptr && copied_ == step.from;
  if (!same) {
    if (length > longest_for_one && !next_is_sent(step.from)) return false;
    if (copy_ != nullptr) forget_copy();
    if (!few_buffered()) return false;
    copy_ = buffered::put(engine, group_.world(step.peer), place_->at(step.from), length);
    copied_ = step.from;
  }
  const std::int32_t priority = place_->work.priority;
  return copy_ != nullptr &&
         buffered::send(engine, group_.session, group_.world(step.peer), tag(step), priority, *copy_);
}

inline void BlockingExecutor::send(StepId id, const Step& step) {
  const std::uint32_t inflight_limit = schedule_->inflight_limit();
  if (inflight_limit != 0) [[unlikely]] {
    if (sends_ == inflight_limit) return waiting_.push_back(id);
    ++sends_;
  }
  if (!sends_fast(step) && !sends_buffered(step)) return post(id, step);
  ended(step);
  if (inflight_limit != 0) [[unlikely]]
    send_ended();
}

/// Begins a step that needs nothing any more.
void BlockingExecutor::begin(StepId id) {
  const Step& step = schedule_->steps()[id];
  if (given_up()) [[unlikely]] {
    failed_ = true;  // the step is not done
    if (step.action == Action::send && !std::exchange(notified_, true)) group_.notify_receivers(number_, *schedule_);
    return ended(step);
  }
  if (step.action == Action::send) return send(id, step);
  if (step.action == Action::receive) return post(id, step);
  do_here(*place_, step);
  ended(step);
}

/// Collects the messages that have ended.
void BlockingExecutor::collect_ended() {
  for (std::uint32_t i = 0; i < in_flight_count_;) {
    const std::uint8_t which = in_flight_[i];
    const Transfer& transfer = transfers_[which];
    if (!request_of(&transfer.request).finalized()) {
      ++i;
      continue;
    }
    in_flight_[i] = in_flight_[--in_flight_count_];
    free_[free_count_++] = which;
    message_ended(schedule_->steps()[transfer.step], request_of(&transfer.request));
  }
}

/// Blocks until a message has ended or a collective of the group has failed. Failures are left out once the receives
/// have been cancelled for this one.
void BlockingExecutor::await_one() {
  std::array<Target, most_messages + 1> targets;
  std::size_t count = 0;
  for (; count < in_flight_count_; ++count) {
    targets[count] = end_of(request_of(&transfers_[in_flight_[count]].request));
  }
  if (!cancelled_) {
    if ((group_.ended.load(std::memory_order_relaxed) & Group::ended_bit) != 0) {  // another one may have failed
      group_.ended.fetch_and(~Group::ended_bit, std::memory_order_acq_rel);        // pairs with end_executors()
      if (given_up()) return;
    }
    targets[count++] = {&group_.ended, Group::ended_bit, nullptr};
  }
  [[maybe_unused]] const int code = post::block_for_one(group_.engine, targets.data(), count);
  assert(code == CANELE_OK && "no deadline, and the call has no_scratch to block in a callback");
}

inline bool BlockingExecutor::some_ended() const {
  for (std::uint32_t i = 0; i < in_flight_count_; ++i) {
    if (request_of(&transfers_[in_flight_[i]].request).finalized()) return true;
  }
  return false;
}

/// Polls under the engine's lock. Leaves messages of later collectives in the driver: they would be copied twice.
[[gnu::always_inline]] inline bool BlockingExecutor::spin(Engine::Spin how) {
  constexpr int most_deferred = 256;  // packets: then another receiver may wait for what lies behind such a message
  Engine& engine = group_.engine;
  if (schedule_->longest_message() <= Rail::longest_fast) how.packets = static_cast<int>(in_flight_count_);
  engine.defer_filter = {&group_.session, tag_of(Step{}, number_ + 1), Group::notice_tag, most_deferred};
  const bool well = engine.spin_locked(how, [this] { return some_ended(); });
  engine.defer_filter.session = nullptr;
  return well;
}

/// Runs tasks: this rank copies the buffered sends that are addressed to it.
bool BlockingExecutor::some_end_by_tasks() {
  Engine& engine = group_.engine;
  return engine.has_tasks() && engine.run_tasks() > 0 && some_ended();
}

/// Polls for a short time, before a longer wait is prepared.
inline bool BlockingExecutor::some_end_soon() {
  Engine& engine = group_.engine;
  if (engine.progress.worker.active()) return false;
  const Engine::Spin how = engine.plan_spin();
  if (how.turns == 0 || !engine.try_lock()) return false;
  const bool well = spin(how);
  engine.unlock_idle();
  return well || some_end_by_tasks();
}

/// Yields where ranks share processing units, so that the others get their turns; the next poll finds what they have
/// sent. To prepare a wait of any kind would cost half of such a turn.
bool BlockingExecutor::some_end_in_turns() {
  constexpr int most = 4;
  Engine& engine = group_.engine;
  if (!engine.oversubscribed || engine.driver_set.system_peers.load(std::memory_order_relaxed) != 0) return false;
  for (int turn = 0; turn < most && engine.progress.waiters.present() == 0; ++turn) {
    if (!engine.progress.waiters.contention.yields(engine.platform)) return false;
    if (some_end_soon()) return true;
    if (engine.has_tasks() || given_up()) return false;
  }
  return false;
}

void BlockingExecutor::propagate() { group_.propagate(number_, std::exchange(news_, {})); }

inline void BlockingExecutor::await_some() {
  if (news_) [[unlikely]] {
    propagate();
  } else if (given_up() && !cancelled_) [[unlikely]] {
    cancel_receives();
  } else if (!some_end_by_tasks() && ((std::exchange(has_spun_, false) || !some_end_soon()) && !some_end_in_turns())) {
    await_one();
  }
  collect_ended();
}

/// Posts a receive as canele_irecv does. Under the engine's lock.
[[gnu::always_inline]] inline receive_path::Accepted BlockingExecutor::post_locked(const Step& step,
                                                                                   Request& request) const {
  prepare_outcome(request, group_.session, Request::Kind::receive);
  transition(request, Request::Stage::posted);
  canele_data_t data{};
  data.base = place_->at(step.to);
  data.length = step.to.length;
  return receive_path::accept_fast(
      group_.engine, {&request, &group_.session, tag(step), CANELE_TAG_EXACT, group_.world(step.peer), data});
}

/// Takes the lock once, begins the steps that need nothing, and polls for the messages on their way. Steps that could
/// not begin are in the ready list afterwards.
bool BlockingExecutor::begin_in_one_hold() {
  Engine& engine = group_.engine;
  if (schedule_->inflight_limit() != 0 || given_up()) return false;
  const Engine::Spin how = plan_spin(engine);
  if (!engine.try_lock()) return false;
  engine.counters.add(Counter::lock_taken);
  const std::span<const StepId> first = schedule_->first_messages();
  for (const StepId id : first) {
    const Step& step = schedule_->steps()[id];
    if (step.action == Action::receive) {
      const std::uint8_t which = free_[free_count_ - 1];
      transfers_[which].step = id;
      Request& request = request_of(&transfers_[which].request);
      if (post_locked(step, request) == receive_path::Accepted::complete) {
        message_ended(step, request);
      } else {
        --free_count_;
        in_flight_[in_flight_count_++] = which;
      }
    } else if (sends_fast_locked(step)) {
      ended(step);
    } else {
      ready_[ready_count_++] = id;
    }
  }
  for (const StepId id : schedule_->first_locals()) {
    const Step& step = schedule_->steps()[id];
    if (is_trifle(step)) {
      do_here(*place_, step);
      ended(step);
    } else {
      ready_[ready_count_++] = id;
    }
  }
  const bool waits = in_flight_count_ != 0;
  if (waits && ready_count_ == 0) has_spun_ = how.turns != 0 && !spin(how);
  if (!engine.unlock_idle() || waits) engine.after_submit();
  if (waits) collect_ended();
  return true;
}

/// Posts in the order in which an AsyncExecutor posts: receives first.
inline void BlockingExecutor::begin_all() {
  const std::span<const Step> steps = schedule_->steps();
  left_ = static_cast<std::uint32_t>(steps.size());
  next_ready_ = ready_count_ = 0;
  if (schedule_->first().size() != steps.size()) {
    for (StepId id = 0; id < steps.size(); ++id) pending_[id] = steps[id].needs;
  }
  if (in_flight_count_ != 0) {  // the first message has been posted already
    for (const StepId id : schedule_->first_locals()) ready_[ready_count_++] = id;
    return;
  }
  has_spun_ = false;
  if (begin_in_one_hold()) return;
  for (const StepId id : schedule_->first()) ready_[ready_count_++] = id;
}

void BlockingExecutor::begin_from(StepId next) {
  const std::span<const Step> steps = schedule_->steps();
  left_ = static_cast<std::uint32_t>(steps.size()) - next;
  next_ready_ = ready_count_ = 0;
  has_spun_ = false;
  for (StepId id = 0; id < steps.size(); ++id) pending_[id] = steps[id].needs;
  for (StepId id = 0; id < next; ++id) {
    for (const StepId after : schedule_->after(steps[id])) --pending_[after];
  }
  for (StepId id = next; id < steps.size(); ++id) {
    if (pending_[id] == 0) ready_[ready_count_++] = id;
  }
}

/// Waits for a receive that is the only message, or that all others wait for. Returns false if it does not end soon;
/// carry_out_steps() continues from there.
bool BlockingExecutor::arrives_soon(StepId id, const Step& step) {
  Engine& engine = group_.engine;
  Engine::Spin spin = plan_spin(engine);
  if (!engine.try_lock()) return false;
  engine.counters.add(Counter::lock_taken);
  const std::uint8_t which = free_[free_count_ - 1];
  Transfer& transfer = transfers_[which];
  const Request& request = request_of(&transfer.request);
  const receive_path::Accepted accepted = post_locked(step, request_of(&transfer.request));
  spin.packets = 1;
  const bool soon =
      accepted == receive_path::Accepted::complete || engine.spin_locked(spin, [&] { return request.finalized(); });
  if (!engine.unlock_idle() || !soon || accepted == receive_path::Accepted::other) engine.after_submit();
  if (soon && request.status_error == CANELE_OK && request.status_length == step.to.length) return true;
  transfer.step = id;
  --free_count_;
  in_flight_[in_flight_count_++] = which;
  has_spun_ = spin.turns != 0;
  return false;
}

/// Carries out all steps from `next` on: the steps before it have ended.
Ending BlockingExecutor::carry_out_steps(StepId next) {
  failed_ = cancelled_ = notified_ = false;
  news_ = {};
  next == 0 ? begin_all() : begin_from(next);
  for (;;) {
    while (next_ready_ < ready_count_) begin(ready_[next_ready_++]);
    if (left_ == 0) break;
    await_some();
  }
  if (news_) [[unlikely]]
    propagate();
  if (copy_ != nullptr) forget_copy();
  if (scratch_bytes_ > kept_scratch) scratch_.reset(), scratch_bytes_ = 0;
  return failed_ ? group_.ending(number_) : Ending{};
}

inline bool BlockingExecutor::one_message_ends() {
  if (given_up()) return false;
  const StepId id = schedule_->first().front();
  const Step& step = schedule_->steps()[id];
  return step.action == Action::send ? sends_fast(step) || sends_buffered(step) : arrives_soon(id, step);
}

Ending BlockingExecutor::carry_out(const Schedule& schedule, const Work& work) {
  assert(suits(schedule));
  if (!has_room(schedule) && !make_room(schedule)) return no_scratch;
  const Place place(work, scratch_.get());
  schedule_ = &schedule;
  place_ = &place;
  number_ = group_.started++;
  assert(in_flight_count_ == 0 && free_count_ == most_messages);
  if (schedule.reduces() != are_operands_) [[unlikely]]
    mark_operands(schedule.reduces());
  if (!schedule.begins_with_one_message() || !one_message_ends()) return carry_out_steps(0);
  const std::span<const Step> steps = schedule.steps();
  if (steps.size() == 1 && copy_ == nullptr) return {};
  for (StepId id = 0; id < steps.size(); ++id) {  // each step comes after the steps that it needs
    const Step& step = steps[id];
    if (!is_message(step)) {
      if (copy_ != nullptr) forget_copy();
      do_here(place, step);
    } else if (id != schedule.first().front() && !sends_fast(step) && !sends_buffered(step)) {
      return carry_out_steps(id);
    }
  }
  if (copy_ != nullptr) forget_copy();
  return {};
}

}  // namespace canele::comm::collectives

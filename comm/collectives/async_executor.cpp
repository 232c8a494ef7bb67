// SPDX-License-Identifier: BSD-3-Clause
//
// Execution of a schedule by events. Read from the bottom up: start(), on_message_event(), ReadyQueue::begin().
//
// A message is posted without a callback. A callback is added only if the message has not ended at once. A small
// message that has already arrived, or leaves at once, thus makes no trip through the task queue.
#include "comm/collectives/async_executor.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <functional>
#include <new>

#include "comm/engine/engine.hpp"
#include "comm/post/buffered_send.hpp"
#include "comm/state/spin_guard.hpp"

namespace canele::comm::collectives {
namespace {

constexpr std::uint64_t most_in_call = 64 * 1024;  // bytes of local steps; longer ones are left to the progress threads

/// Returns true if the send may leave. Otherwise it waits until another send has ended.
bool admit(AsyncExecutor& executor, StepId id) {
  if (executor.schedule->inflight_limit() == 0 || executor.states[id].admitted) return true;
  const SpinGuard lock(executor.inflight_locked, executor.group->engine.platform);
  if (executor.in_flight < executor.schedule->inflight_limit()) {
    ++executor.in_flight;
    return executor.states[id].admitted = true;
  }
  executor.waiting[executor.waiting_count++] = id;
  std::push_heap(executor.waiting, executor.waiting + executor.waiting_count, std::greater<>());
  return false;
}

/// Called when a send has ended. Returns the next waiting send, now admitted, or no_step.
StepId admit_next(AsyncExecutor& executor) {
  const SpinGuard lock(executor.inflight_locked, executor.group->engine.platform);
  if (executor.waiting_count == 0) {
    --executor.in_flight;
    return no_step;
  }
  std::pop_heap(executor.waiting, executor.waiting + executor.waiting_count, std::greater<>());
  const StepId next = executor.waiting[--executor.waiting_count];
  executor.states[next].admitted = true;
  return next;
}

/// Sends the message as a buffered send. Returns false if that is not worthwhile or not possible. Limited to eight
/// packets or so, which would leave in pieces otherwise: a call does not make longer copies.
bool sends_buffered(const AsyncExecutor& executor, const Step& step) {
  constexpr std::uint64_t longest = 128 * 1024;
  Group& group = *executor.group;
  const std::uint64_t length = step.from.length;
  if (executor.schedule->waits_for_receivers() || !buffered::is_worthwhile(group.engine, length, longest)) return false;
  if (executor.schedule->inflight_limit() != 0)
    return false;  // inflight_limit counts messages that the receiver has not fetched
  const int peer = group.world(step.peer);
  buffered::Copy* const copy = buffered::put(group.engine, peer, executor.place().at(step.from), length);
  if (copy == nullptr) return false;
  const bool sent =
      buffered::send(group.engine, group.session, peer, tag_of(step, executor.number), executor.work.priority, *copy);
  buffered::release(*copy);
  return sent;
}

void on_message_event(canele_request_t* request, unsigned events, void* argument);

/// The work of one thread for an executor, in first-in, first-out order. Never under the engine's lock.
class ReadyQueue {
 public:
  explicit ReadyQueue(AsyncExecutor& executor) : executor_(executor) {}

  /// Begins a step that needs nothing any more. Performs it, posts it, queues it behind inflight_limit, or defers it to
  /// a waiting thread.
  void begin(StepId id) {
    const Step& step = executor_.steps()[id];
    if (executor_.given_up()) return skip(id);
    if (executor_.defers(id)) return;
    if (!is_message(step)) {
      do_here(executor_.place(), step);
      return ended(id);
    }
    if (step.action == Action::send && !admit(executor_, id)) return;
    if (step.action == Action::send && sends_buffered(executor_, step)) return ended(id);
    Transfer& transfer = executor_.transfers[executor_.states[id].transfer];
    const int code = post_message(*executor_.group, executor_.place(), step, executor_.number, &transfer.request);
    if (code != CANELE_OK) return failed(id, {code, executor_.group->world(step.peer)});
    if (request_of(&transfer.request).finalized()) return message_ended(id);
    canele_request_on_event(&transfer.request, CANELE_EVENT_FINALIZED, on_message_event, &transfer);
    if (step.action != Action::receive) return;
    transfer.cancellable.store(true, std::memory_order_seq_cst);
    if (executor_.given_up()) canele_cancel(&transfer.request);  // the thread that noted the failure may have missed it
  }

  /// Ends a local step that was performed elsewhere.
  void end_local(StepId id) { executor_.given_up() ? skip(id) : ended(id); }

  /// Handles the end of the step's message, whether it succeeded or failed.
  void message_ended(StepId id) {
    const Request& request = request_of(&executor_.transfers[executor_.states[id].transfer].request);
    const Ending ending = ending_of(*executor_.group, executor_.steps()[id], request);
    return ending.code == CANELE_OK ? ended(id) : failed(id, ending);
  }

  void push(StepId id) {
    executor_.states[id].next = no_step;
    (last_ == no_step ? first_ : executor_.states[last_].next) = id;
    last_ = id;
  }

  /// Appends a list of steps that were deferred.
  void push_all(StepId first) {
    while (first != no_step) push(std::exchange(first, executor_.states[first].next));
  }

  /// Does all pending work. The executor may be freed afterwards. `beside`: the number of holds that the caller has on
  /// the executor.
  void finish(std::uint32_t beside) {
    while (first_ != no_step) {
      const StepId id = first_;
      first_ = executor_.states[id].next;
      if (first_ == no_step) last_ = no_step;
      begin(id);
    }
    if (news_) executor_.group->propagate(executor_.number, news_);
    if (ended_ + beside != 0) executor_.release(ended_ + beside);
  }

 private:
  void skip(StepId id) {
    executor_.failed.store(true, std::memory_order_relaxed);
    const bool tells = executor_.steps()[id].action == Action::send;
    if (tells && !executor_.notified.exchange(true, std::memory_order_relaxed))
      executor_.group->notify_receivers(executor_.number, *executor_.schedule);
    ended(id);
  }

  void failed(StepId id, Ending ending) {
    news_ |= executor_.group->note(executor_.number, ending);
    skip(id);
  }

  void ended(StepId id) {
    const Step& step = executor_.steps()[id];
    ++ended_;
    if (executor_.is_late(step) && is_message(step)) executor_.late_left.fetch_sub(1, std::memory_order_acq_rel);
    for (const StepId after : executor_.schedule->after(step)) {
      if (executor_.states[after].pending.fetch_sub(1, std::memory_order_acq_rel) == 1) push(after);
    }
    if (step.action != Action::send || !executor_.states[id].admitted) return;
    if (const StepId next = admit_next(executor_); next != no_step) push(next);
  }

  AsyncExecutor& executor_;
  StepId first_ = no_step, last_ = no_step;
  std::uint32_t ended_ = 0;
  Group::News news_;
};

/// Completion callback of a message.
void on_message_event(canele_request_t*, unsigned, void* argument) {
  const Transfer& transfer = *static_cast<Transfer*>(argument);
  ReadyQueue queue(*transfer.executor);
  queue.message_ended(transfer.step);
  queue.finish(0);
}

/// Returns the number of bytes that the call would have to move before it returns.
std::uint64_t local_bytes(const AsyncExecutor& executor) {
  std::uint64_t bytes = 0;
  for (const StepId id : executor.schedule->first_locals()) bytes += executor.steps()[id].to.length;
  return bytes;
}

/// Does one chunk of a local step. Then submits itself again, or ends the step and goes to the next one.
void do_locals(ltask::Task& task) {
  constexpr std::uint64_t chunk = 256 * 1024;
  auto& locals = static_cast<AsyncExecutor::Locals&>(task);
  AsyncExecutor& executor = *locals.executor;
  const std::span<const StepId> all = executor.schedule->first_locals();
  ReadyQueue queue(executor);
  if (locals.ended == all.size()) return queue.finish(1);
  const StepId id = all[locals.ended];
  Step partial = executor.steps()[id];
  const std::uint64_t element = std::max<std::uint64_t>(1, executor.work.combine.element);
  const std::uint64_t most = std::max(element, chunk / element * element), left = partial.to.length - locals.done;
  partial.from.offset += locals.done;
  partial.to.offset += locals.done;
  partial.to.length = std::min(most, left);
  if (!executor.given_up()) do_here(executor.place(), partial);
  locals.done += partial.to.length;
  Engine& engine = executor.group->engine;
  engine.watch.moved();
  if (left <= most) {
    queue.end_local(id);
    ++locals.ended;
    locals.done = 0;
  }
  queue.finish(0);
  locals.prepare(do_locals);
  engine.tasks.submit(locals);
}

/// Returns how long the calling thread works on its own levels before it leaves them to the progress threads. The other
/// ranks may not have begun yet.
std::uint64_t time_limit_ns(const AsyncExecutor& executor) {
  constexpr double times = 4, at_least_ns = 200'000;
  return static_cast<std::uint64_t>(at_least_ns + times * executor.profile->visible_ns(executor.split));
}

/// Makes progress until the late steps, which come first in this tree, have ended. The caller holds the executor.
void progress_late_steps(AsyncExecutor& executor) {
  Engine& engine = executor.group->engine;
  ltask::Idle idle(engine.platform, engine.progress.idle, engine.progress.waiters.contention);
  const std::uint64_t until = engine.platform.now_ns() + time_limit_ns(executor);
  while (executor.late_left.load(std::memory_order_acquire) != 0 && !executor.given_up()) {
    if (engine.platform.now_ns() >= until) return;
    engine.progress.heartbeat.beat();
    if (engine.step() > 0) {
      idle.worked();
    } else if (idle.next() == ltask::Idle::Action::sleep) {
      engine.platform.yield();
    }
  }
}

/// Begins the levels that were deferred during the call.
void begin_deferred(ltask::Task& task) {
  AsyncExecutor& executor = *static_cast<AsyncExecutor::BeginDeferred&>(task).executor;
  ReadyQueue queue(executor);
  queue.push_all(executor.release_deferred());
  queue.finish(1);
}

/// Ends the call, except for its own levels; after that the program computes. Late steps of a tree from the root begin
/// when the program waits, or after a deadline well beyond its usual computation time.
void end_call(AsyncExecutor& executor) {
  constexpr std::uint64_t at_least_ns = 10'000'000;
  Engine& engine = executor.group->engine;
  const bool to_root = executor.profile->to_root();
  if (executor.split != 0 && to_root) progress_late_steps(executor);
  const std::uint64_t now = engine.platform.now_ns();
  executor.profile->computes(now);
  if (executor.split == 0) return executor.release(1);
  if (to_root) {  // as a task: this thread has done its share
    executor.begin_deferred_task.prepare(begin_deferred);
    engine.tasks.submit(executor.begin_deferred_task);
    return engine.leave_tasks();
  }
  executor.late.deadline_ns = now + at_least_ns + 2 * executor.profile->computation_ns();
  engine.progress.deferred_work.add(executor.late);
  engine.wake();  // a sleeping progress thread must wake earlier
  executor.release(1);
}

void destroy(AsyncExecutor& executor) {
  executor.~AsyncExecutor();
  ::operator delete (&executor, std::align_val_t{64});
}

/// Offsets of the arrays in an executor's memory, from its beginning.
struct Places {
  std::size_t states = 0, transfers = 0, waiting = 0, scratch = 0, all = 0;

  explicit Places(const Schedule& schedule) {
    std::size_t end = sizeof(AsyncExecutor);
    const auto take = [&end](std::size_t bytes) {
      const std::size_t begin = (end + 63) / 64 * 64;
      end = begin + bytes;
      return begin;
    };
    states = take(schedule.steps().size() * sizeof(StepState));
    transfers = take(schedule.messages() * sizeof(Transfer));
    waiting = take(schedule.inflight_limit() == 0 ? 0 : schedule.messages() * sizeof(StepId));
    scratch = take(schedule.scratch_bytes());
    all = end;
  }
};

AsyncExecutor* make(Group& group, std::shared_ptr<const Schedule> schedule, const Work& work, Request& user) {
  const Places plan(*schedule);
  void* const memory = ::operator new (plan.all, std::align_val_t{64}, std::nothrow);
  if (memory == nullptr) return nullptr;
  auto* const base = static_cast<std::byte*>(memory);
  AsyncExecutor* const executor = new (memory) AsyncExecutor(group.shared_from_this(), std::move(schedule), work, user);
  const std::span<const Step> steps = executor->steps();
  executor->states = reinterpret_cast<StepState*>(base + plan.states);
  executor->transfers = reinterpret_cast<Transfer*>(base + plan.transfers);
  executor->waiting = reinterpret_cast<StepId*>(base + plan.waiting);
  executor->scratch = base + plan.scratch;
  std::memset(base + plan.transfers, 0, executor->schedule->messages() * sizeof(Transfer));
  for (StepId id = 0; id < steps.size(); ++id) {
    StepState* const state = new (&executor->states[id]) StepState;
    state->pending.store(steps[id].needs, std::memory_order_relaxed);
    if (!is_message(steps[id])) continue;
    state->transfer = executor->transfer_count;
    Transfer& transfer = executor->transfers[executor->transfer_count++];
    transfer.executor = executor;
    transfer.step = id;
  }
  return executor;
}

}  // namespace

AsyncExecutor::AsyncExecutor(std::shared_ptr<Group> in, std::shared_ptr<const Schedule> what, const Work& on,
                             Request& whose)
    : group(std::move(in)),
      schedule(std::move(what)),
      work(on),
      user(whose),
      number(group->started++),
      left(static_cast<std::uint32_t>(schedule->steps().size()) + 1),
      late_left(0) {
  for (Op* const op : {&begins, &ends}) {
    op->kind = OpKind::call;
    op->executor = this;
  }
  begins.call = begin;
  ends.call = end;
  freeing.executor = this;
  locals.executor = this;
  late.executor = this;
  begin_deferred_task.executor = this;
}

bool AsyncExecutor::hold() {
  std::uint32_t seen = left.load(std::memory_order_acquire);
  while (seen != 0) {
    if (left.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

/// Defers, from the root: late steps. To the root: the messages of the other levels, which the calling thread would
/// otherwise process as well while it stays.
bool AsyncExecutor::defers(StepId id) {
  if (split == 0) return false;
  const Step& step = steps()[id];
  const bool others = step.level > split && is_message(step);
  if (profile->to_root() ? !others : !is_late(step)) return false;
  StepId last = deferred.load(std::memory_order_acquire);
  do {
    if (last == none_deferred) return false;
    states[id].next = last;
  } while (!deferred.compare_exchange_weak(last, id, std::memory_order_acq_rel));
  return true;
}

StepId AsyncExecutor::release_deferred() {
  StepId first = no_step, last = deferred.exchange(none_deferred, std::memory_order_acq_rel);
  if (last == none_deferred) return no_step;
  while (last != no_step) {  // the last deferred step is the head of the linked list
    const StepId before = std::exchange(states[last].next, first);
    first = std::exchange(last, before);
  }
  return first;
}

bool AsyncExecutor::Late::resume(Because because, std::uint64_t now_ns) {
  if (because == Because::expired) executor->profile->seen(executor->profile->elapsed_ns(now_ns), true);
  ReadyQueue queue(*executor);
  queue.push_all(executor->release_deferred());
  queue.finish(1);
  return true;
}

/// A matched receive cannot be cancelled: it ends normally, or when its sender fails.
void AsyncExecutor::give_up_and_release() {
  for (std::uint32_t i = 0; i < transfer_count; ++i) {
    if (transfers[i].cancellable.load(std::memory_order_seq_cst)) canele_cancel(&transfers[i].request);
  }
  ReadyQueue queue(*this);
  queue.push_all(release_deferred());
  queue.finish(1);
}

void AsyncExecutor::release(std::uint32_t ended) {
  const std::uint32_t before = left.fetch_sub(ended, std::memory_order_acq_rel);
  assert(before >= ended);
  if (before != ended) return;
  Engine& engine = group->engine;
  engine.submit(ends);
  engine.after_submit();
  if (owners.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(*this);
}

void AsyncExecutor::begin(Context& context, CallOp& op) {
  AsyncExecutor& executor = *static_cast<Op&>(op).executor;
  ++context.pending_sends;
  ++executor.user.session->pending;
  executor.group->link(executor);
}

void AsyncExecutor::end(Context& context, CallOp& op) {
  Engine& engine = engine_of(context);
  AsyncExecutor& executor = *static_cast<Op&>(op).executor;
  executor.group->unlink(executor);
  if (executor.profile != nullptr) {
    engine.progress.deferred_work.remove(executor.late);
    executor.profile->ends();
  }
  Ending ending;
  if (executor.failed.load(std::memory_order_relaxed)) ending = executor.group->ending(executor.number);
  if (ending.code != CANELE_OK) executor.user.rank = ending.rank;
  engine.finish(executor.user, ending.code);
  if (executor.owners.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  executor.freeing.prepare(
      [](ltask::Task& task) { destroy(*static_cast<Freeing&>(task).executor); });  // not under the lock
  engine.tasks.submit(executor.freeing);
}

/// Decides which levels belong to the computing threads of the program. Adds one hold on the executor for the call,
/// which end_call() gives up.
void split(AsyncExecutor& executor, CallProfile* profile) {
  if (profile == nullptr) return;
  profile->begins(executor.group->engine.platform.now_ns());
  executor.profile = profile;
  executor.left.fetch_add(1, std::memory_order_relaxed);
  executor.split = profile->split();
  if (executor.split == 0) return;
  executor.deferred.store(no_step, std::memory_order_relaxed);
  std::uint32_t late = 0;
  for (const Step& step : executor.steps()) late += executor.is_late(step) && is_message(step) ? 1 : 0;
  executor.late_left.store(late, std::memory_order_relaxed);
}

/// Begins the steps that need nothing.
void begin_first(AsyncExecutor& executor) {
  const PostOnlyScope post_only;
  Engine& engine = executor.group->engine;
  ReadyQueue queue(executor);
  for (const StepId id : executor.schedule->first_messages()) queue.begin(id);
  if (local_bytes(executor) > most_in_call) {  // the call's hold on the executor passes to the task
    queue.finish(0);
    executor.locals.prepare(do_locals);
    engine.tasks.submit(executor.locals);
    return engine.leave_tasks();
  }
  for (const StepId id : executor.schedule->first_locals()) queue.push(id);
  queue.finish(1);
}

bool start(Group& group, std::shared_ptr<const Schedule> schedule, const Work& work, Request& user,
           CallProfile* profile) {
  AsyncExecutor* const executor = make(group, std::move(schedule), work, user);
  if (executor == nullptr) return false;
  split(*executor, profile);
  transition(user, Request::Stage::moving);
  group.engine.submit(executor->begins);
  begin_first(*executor);
  if (profile != nullptr) end_call(*executor);
  return true;
}

}  // namespace canele::comm::collectives

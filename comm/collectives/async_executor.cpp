// SPDX-License-Identifier: BSD-3-Clause
//
// Execution of a schedule by events. Read from the bottom up: start(), told(), Worklist::begin().
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

namespace canele::comm::collectives {
namespace {

constexpr std::uint64_t most_in_call = 64 * 1024;  // bytes of local steps; longer ones are left to the progress threads

/// A spin lock, held for a few instructions. The acquire exchange pairs with the release store of the destructor.
class WindowLock {
 public:
  explicit WindowLock(Run& run) : run_(run) {
    while (run_.window_taken.exchange(true, std::memory_order_acquire)) run_.group->engine.platform.yield();
  }
  ~WindowLock() { run_.window_taken.store(false, std::memory_order_release); }
  WindowLock(const WindowLock&) = delete;
  WindowLock& operator=(const WindowLock&) = delete;

 private:
  Run& run_;
};

/// Returns true if the send may leave. Otherwise it waits until another send has ended.
bool admit(Run& run, StepId id) {
  if (run.schedule->window() == 0 || run.states[id].admitted) return true;
  const WindowLock lock(run);
  if (run.under_way < run.schedule->window()) {
    ++run.under_way;
    return run.states[id].admitted = true;
  }
  run.waiting[run.waiting_count++] = id;
  std::push_heap(run.waiting, run.waiting + run.waiting_count, std::greater<>());
  return false;
}

/// Called when a send has ended. Returns the next waiting send, now admitted, or no_step.
StepId admit_next(Run& run) {
  const WindowLock lock(run);
  if (run.waiting_count == 0) {
    --run.under_way;
    return no_step;
  }
  std::pop_heap(run.waiting, run.waiting + run.waiting_count, std::greater<>());
  const StepId next = run.waiting[--run.waiting_count];
  run.states[next].admitted = true;
  return next;
}

/// Sends the message as a buffered send. Returns false if that is not worthwhile or not possible. Limited to eight
/// packets or so, which would leave in pieces otherwise: a call does not make longer copies.
bool is_laid_down(const Run& run, const Step& step) {
  constexpr std::uint64_t longest = 128 * 1024;
  Group& group = *run.group;
  const std::uint64_t length = step.from.length;
  if (!deposit::pays(group.engine, length, longest)) return false;
  if (run.schedule->window() != 0) return false;  // the window counts messages that the receiver has not fetched
  const int peer = group.world(step.peer);
  deposit::Copy* const copy = deposit::put(group.engine, peer, run.place().at(step.from), length);
  if (copy == nullptr) return false;
  const bool laid_down =
      deposit::send(group.engine, group.session, peer, tag_of(step, run.number), run.work.priority, *copy);
  deposit::release(*copy);
  return laid_down;
}

void told(canele_request_t* request, unsigned events, void* argument);

/// The work of one thread for a run, in first-in, first-out order. Never under the engine's lock.
class Worklist {
 public:
  explicit Worklist(Run& run) : run_(run) {}

  /// Begins a step that needs nothing any more. Performs it, posts it, or leaves it to the window or to a waiting
  /// thread.
  void begin(StepId id) {
    const Step& step = run_.steps()[id];
    if (run_.group->over()) return skip(id);
    if (run_.holds_back(id)) return;
    if (!is_message(step)) {
      do_here(run_.place(), step);
      return ended(id);
    }
    if (step.action == Action::send && !admit(run_, id)) return;
    if (step.action == Action::send && is_laid_down(run_, step)) return ended(id);
    Transfer& transfer = run_.transfers[run_.states[id].transfer];
    const int code = post_message(*run_.group, run_.place(), step, run_.number, &transfer.request);
    if (code != CANELE_OK) return failed(id, {code, run_.group->world(step.peer)});
    if (request_of(&transfer.request).finalized()) return message_ended(id);
    canele_request_on_event(&transfer.request, CANELE_EVENT_FINALIZED, told, &transfer);
    if (step.action != Action::receive) return;
    transfer.cancellable.store(true, std::memory_order_seq_cst);
    if (run_.group->over()) canele_cancel(&transfer.request);  // the thread that ended the group may have missed it
  }

  /// Ends a local step that was performed elsewhere.
  void end_local(StepId id) { run_.group->over() ? skip(id) : ended(id); }

  /// Handles the end of the step's message, whether it succeeded or failed.
  void message_ended(StepId id) {
    const Request& request = request_of(&run_.transfers[run_.states[id].transfer].request);
    const Ending ending = ending_of(*run_.group, run_.steps()[id], request);
    return ending.code == CANELE_OK ? ended(id) : failed(id, ending);
  }

  void push(StepId id) {
    run_.states[id].next = no_step;
    (last_ == no_step ? first_ : run_.states[last_].next) = id;
    last_ = id;
  }

  /// Appends a list of steps that were held.
  void push_all(StepId first) {
    while (first != no_step) push(std::exchange(first, run_.states[first].next));
  }

  /// Does all pending work. The run may be freed afterwards. `beside`: the number of holds that the caller has on the
  /// run.
  void finish(std::uint32_t beside) {
    while (first_ != no_step) {
      const StepId id = first_;
      first_ = run_.states[id].next;
      if (first_ == no_step) last_ = no_step;
      begin(id);
    }
    if (ends_the_group_) run_.group->spread();
    if (ended_ + beside != 0) run_.release(ended_ + beside);
  }

 private:
  void skip(StepId id) {
    run_.failed.store(true, std::memory_order_relaxed);
    ended(id);
  }

  void failed(StepId id, Ending ending) {
    ends_the_group_ = run_.group->note(ending) || ends_the_group_;
    skip(id);
  }

  void ended(StepId id) {
    const Step& step = run_.steps()[id];
    ++ended_;
    if (run_.is_late(step) && is_message(step)) run_.late_left.fetch_sub(1, std::memory_order_acq_rel);
    for (const StepId after : run_.schedule->after(step)) {
      if (run_.states[after].pending.fetch_sub(1, std::memory_order_acq_rel) == 1) push(after);
    }
    if (step.action != Action::send || !run_.states[id].admitted) return;
    if (const StepId next = admit_next(run_); next != no_step) push(next);
  }

  Run& run_;
  StepId first_ = no_step, last_ = no_step;
  std::uint32_t ended_ = 0;
  bool ends_the_group_ = false;
};

/// Completion callback of a message.
void told(canele_request_t*, unsigned, void* argument) {
  const Transfer& transfer = *static_cast<Transfer*>(argument);
  Worklist work(*transfer.run);
  work.message_ended(transfer.step);
  work.finish(0);
}

/// Returns the number of bytes that the call would have to move before it returns.
std::uint64_t local_bytes(const Run& run) {
  std::uint64_t bytes = 0;
  for (const StepId id : run.schedule->first_locals()) bytes += run.steps()[id].to.length;
  return bytes;
}

/// Does one chunk of a local step. Then submits itself again, or ends the step and goes to the next one.
void do_locals(ltask::Task& task) {
  constexpr std::uint64_t chunk = 256 * 1024;
  auto& locals = static_cast<Run::Locals&>(task);
  Run& run = *locals.run;
  const std::span<const StepId> all = run.schedule->first_locals();
  Worklist list(run);
  if (locals.ended == all.size()) return list.finish(1);
  const StepId id = all[locals.ended];
  Step part = run.steps()[id];
  const std::uint64_t element = std::max<std::uint64_t>(1, run.work.combine.element);
  const std::uint64_t most = std::max(element, chunk / element * element), left = part.to.length - locals.done;
  part.from.offset += locals.done;
  part.to.offset += locals.done;
  part.to.length = std::min(most, left);
  if (!run.group->over()) do_here(run.place(), part);
  locals.done += part.to.length;
  Engine& engine = run.group->engine;
  engine.watch.moved();
  if (left <= most) {
    list.end_local(id);
    ++locals.ended;
    locals.done = 0;
  }
  list.finish(0);
  locals.prepare(do_locals);
  engine.tasks.submit(locals);
}

/// Returns how long the calling thread works on its own levels before it leaves them to the progress threads. The other
/// ranks may not have begun yet.
std::uint64_t patience_ns(const Run& run) {
  constexpr double times = 4, at_least_ns = 200'000;
  return static_cast<std::uint64_t>(at_least_ns + times * run.course->visible_ns(run.split));
}

/// Makes progress until the late steps, which come first in this tree, have ended. The caller holds the run.
void stay(Run& run) {
  Engine& engine = run.group->engine;
  ltask::Idle idle(engine.platform, engine.idle, engine.waiters.pressure);
  const std::uint64_t until = engine.platform.now_ns() + patience_ns(run);
  while (run.late_left.load(std::memory_order_acquire) != 0 && !run.group->over()) {
    if (engine.platform.now_ns() >= until) return;
    engine.thread_pulse.beat();
    if (engine.step() > 0) {
      idle.worked();
    } else if (idle.next() == ltask::Idle::Action::sleep) {
      engine.platform.yield();
    }
  }
}

/// Begins the levels that were held while the call stayed.
void hand_over(ltask::Task& task) {
  Run& run = *static_cast<Run::HandingOver&>(task).run;
  Worklist list(run);
  list.push_all(run.let_go());
  list.finish(1);
}

/// Ends the call, except for its own levels; after that the program computes. Late steps of a tree from the root begin
/// when the program waits, or after a deadline well beyond its usual computation time.
void leave_to_others(Run& run) {
  constexpr std::uint64_t at_least_ns = 10'000'000;
  Engine& engine = run.group->engine;
  const bool to_root = run.course->to_root();
  if (run.split != 0 && to_root) stay(run);
  const std::uint64_t now = engine.platform.now_ns();
  run.course->computes(now);
  if (run.split == 0) return run.release(1);
  if (to_root) {  // as a task: this thread has done its share
    run.handing_over.prepare(hand_over);
    engine.tasks.submit(run.handing_over);
    return engine.leave_tasks();
  }
  run.late.date_ns = now + at_least_ns + 2 * run.course->computation_ns();
  engine.put_offs.add(run.late);
  engine.wake();  // a sleeping progress thread must wake earlier
  run.release(1);
}

void destroy(Run& run) {
  run.~Run();
  ::operator delete (&run, std::align_val_t{64});
}

/// Offsets of the parts of a run's memory, from its beginning.
struct Places {
  std::size_t states = 0, transfers = 0, waiting = 0, scratch = 0, all = 0;

  explicit Places(const Schedule& schedule) {
    std::size_t end = sizeof(Run);
    const auto take = [&end](std::size_t bytes) {
      const std::size_t begin = (end + 63) / 64 * 64;
      end = begin + bytes;
      return begin;
    };
    states = take(schedule.steps().size() * sizeof(StepState));
    transfers = take(schedule.messages() * sizeof(Transfer));
    waiting = take(schedule.window() == 0 ? 0 : schedule.messages() * sizeof(StepId));
    scratch = take(schedule.scratch_bytes());
    all = end;
  }
};

Run* make(Group& group, std::shared_ptr<const Schedule> schedule, const Work& work, Request& user) {
  const Places plan(*schedule);
  void* const memory = ::operator new (plan.all, std::align_val_t{64}, std::nothrow);
  if (memory == nullptr) return nullptr;
  auto* const base = static_cast<std::byte*>(memory);
  Run* const run = new (memory) Run(group.shared_from_this(), std::move(schedule), work, user);
  const std::span<const Step> steps = run->steps();
  run->states = reinterpret_cast<StepState*>(base + plan.states);
  run->transfers = reinterpret_cast<Transfer*>(base + plan.transfers);
  run->waiting = reinterpret_cast<StepId*>(base + plan.waiting);
  run->scratch = base + plan.scratch;
  std::memset(base + plan.transfers, 0, run->schedule->messages() * sizeof(Transfer));
  for (StepId id = 0; id < steps.size(); ++id) {
    StepState* const state = new (&run->states[id]) StepState;
    state->pending.store(steps[id].needs, std::memory_order_relaxed);
    if (!is_message(steps[id])) continue;
    state->transfer = run->transfer_count;
    Transfer& transfer = run->transfers[run->transfer_count++];
    transfer.run = run;
    transfer.step = id;
  }
  return run;
}

}  // namespace

Run::Run(std::shared_ptr<Group> in, std::shared_ptr<const Schedule> what, const Work& on, Request& whose)
    : group(std::move(in)),
      schedule(std::move(what)),
      work(on),
      user(whose),
      number(group->started++),
      left(static_cast<std::uint32_t>(schedule->steps().size()) + 1),
      late_left(0) {
  for (Op* const op : {&begins, &ends}) {
    op->kind = OpKind::call;
    op->run = this;
  }
  begins.call = begin;
  ends.call = end;
  freeing.run = this;
  locals.run = this;
  late.run = this;
  handing_over.run = this;
}

bool Run::hold() {
  std::uint32_t seen = left.load(std::memory_order_acquire);
  while (seen != 0) {
    if (left.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

/// Holds back, from the root: late steps. To the root: the messages of the other levels, which the calling thread would
/// otherwise process as well while it stays.
bool Run::holds_back(StepId id) {
  if (split == 0) return false;
  const Step& step = steps()[id];
  const bool others = step.level > split && is_message(step);
  if (course->to_root() ? !others : !is_late(step)) return false;
  StepId last = held.load(std::memory_order_acquire);
  do {
    if (last == none_held) return false;
    states[id].next = last;
  } while (!held.compare_exchange_weak(last, id, std::memory_order_acq_rel));
  return true;
}

StepId Run::let_go() {
  StepId first = no_step, last = held.exchange(none_held, std::memory_order_acq_rel);
  if (last == none_held) return no_step;
  while (last != no_step) {  // the last held step is the head of the linked list
    const StepId before = std::exchange(states[last].next, first);
    first = std::exchange(last, before);
  }
  return first;
}

bool Run::Late::resume(Because because, std::uint64_t now_ns) {
  if (because == Because::overdue) run->course->seen(run->course->elapsed_ns(now_ns), true);
  Worklist list(*run);
  list.push_all(run->let_go());
  list.finish(1);
  return true;
}

/// A matched receive cannot be cancelled: it ends normally, or when its sender fails.
void Run::give_up_and_release() {
  for (std::uint32_t i = 0; i < transfer_count; ++i) {
    if (transfers[i].cancellable.load(std::memory_order_seq_cst)) canele_cancel(&transfers[i].request);
  }
  Worklist list(*this);
  list.push_all(let_go());
  list.finish(1);
}

void Run::release(std::uint32_t ended) {
  const std::uint32_t before = left.fetch_sub(ended, std::memory_order_acq_rel);
  assert(before >= ended);
  if (before != ended) return;
  Engine& engine = group->engine;
  engine.submit(ends);
  engine.after_submit();
  if (owners.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(*this);
}

void Run::begin(Context& context, CallOp& op) {
  Run& run = *static_cast<Op&>(op).run;
  ++context.pending_sends;
  ++run.user.session->pending;
  run.group->link(run);
}

void Run::end(Context& context, CallOp& op) {
  Engine& engine = engine_of(context);
  Run& run = *static_cast<Op&>(op).run;
  run.group->unlink(run);
  if (run.course != nullptr) {
    engine.put_offs.remove(run.late);
    run.course->ends();
  }
  Ending ending;
  if (run.failed.load(std::memory_order_relaxed)) ending = run.group->ending();
  if (ending.code != CANELE_OK) run.user.rank = ending.rank;
  engine.finish(run.user, ending.code);
  if (run.owners.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  run.freeing.prepare([](ltask::Task& task) { destroy(*static_cast<Freeing&>(task).run); });  // not under the lock
  engine.tasks.submit(run.freeing);
}

/// Decides which levels belong to the computing threads of the program. Adds one hold on the run for the call, which
/// leave_to_others() gives up.
void split(Run& run, Course* course) {
  if (course == nullptr) return;
  course->begins(run.group->engine.platform.now_ns());
  run.course = course;
  run.left.fetch_add(1, std::memory_order_relaxed);
  run.split = course->split();
  if (run.split == 0) return;
  run.held.store(no_step, std::memory_order_relaxed);
  std::uint32_t late = 0;
  for (const Step& step : run.steps()) late += run.is_late(step) && is_message(step) ? 1 : 0;
  run.late_left.store(late, std::memory_order_relaxed);
}

/// Begins the steps that need nothing.
void begin_first(Run& run) {
  const OnlyPosts only_posts;
  Engine& engine = run.group->engine;
  Worklist list(run);
  for (const StepId id : run.schedule->first_messages()) list.begin(id);
  if (local_bytes(run) > most_in_call) {  // the call's hold on the run passes to the task
    list.finish(0);
    run.locals.prepare(do_locals);
    engine.tasks.submit(run.locals);
    return engine.leave_tasks();
  }
  for (const StepId id : run.schedule->first_locals()) list.push(id);
  list.finish(1);
}

bool start(Group& group, std::shared_ptr<const Schedule> schedule, const Work& work, Request& user, Course* course) {
  Run* const run = make(group, std::move(schedule), work, user);
  if (run == nullptr) return false;
  split(*run, course);
  user.stage = Request::Stage::moving;
  group.engine.submit(run->begins);
  begin_first(*run);
  if (course != nullptr) leave_to_others(*run);
  return true;
}

}  // namespace canele::comm::collectives

// SPDX-License-Identifier: BSD-3-Clause
//
// Waiting: with ltask/worker, the only place where the library blocks.
//
// Any thread, except inside a callback. A waiter relies on the worker only while the worker shows signs of life.
// Otherwise one waiter holds the token and polls for all. The others sleep on their parkers until their word is done or
// the token becomes free. Work deferred until a thread has time (engine/deferred_work.hpp) is done by a waiting thread,
// whether a worker polls or not. A wait begins with a spin; where ranks share the cores, a few yields with a poll after
// each follow.
//
//   done? ─no─▶ worker alive? ─yes─▶ spin, yield ─▶ park (check the worker's heartbeat now and then)
//                    └─no──▶ others wait, too? ─yes─▶ take turns: yield, step
//                                └─no, or it does not pay ─▶ token free? ─yes─▶ poll: step, spin, yield, sleep on
//                                                                │               the drivers ─▶ pass the token
//                                                                └─no──▶ park
#include "comm/post/wait.hpp"

#include <algorithm>
#include <optional>

#include "comm/engine/fork.hpp"
#include "comm/engine/spin_wait.hpp"
#include "comm/post/error.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::post {
namespace {

constexpr std::uint64_t first_park_ns = 1'000'000, longest_park_ns = 100'000'000, longest_sleep_ns = 1'000'000'000;
/// A worker that shares its core with other workers runs again after each of them has had a time slice. A slice has up
/// to 4 ms, and some MiB to copy.
constexpr std::uint64_t first_park_among_workers_ns = 20'000'000;
/// A rank that copies a long message keeps the core for a time slice. That must not look like a computation of another
/// program.
constexpr ltask::Idle::Budget among_ranks{0, 4'000'000, false};

/// For a thread that executes levels of a tree itself. It waits for slices of other ranks, each as long as a copy. It
/// must not sleep meanwhile, or a worker would do this thread's work.
constexpr ltask::Idle::Budget for_own_levels{20'000, 4'000'000};

void wake_engine(void* engine) { static_cast<Engine*>(engine)->wake(); }
bool is_signaled(const void* parker) { return static_cast<const ltask::Parker*>(parker)->signaled(); }

/// Shows a blocked thread in reports, from its second sleep on, because most waits end earlier.
class BlockedScope {
 public:
  BlockedScope(Engine* engine, BlockedThread::In in, const Awaited& awaited)
      : engine_(engine), blocked_{in, 0, awaited} {}
  ~BlockedScope() {
    if (sleeps_ > 1) engine_->progress.waiters.dismiss(blocked_);
  }
  BlockedScope(const BlockedScope&) = delete;
  BlockedScope& operator=(const BlockedScope&) = delete;

  /// Call before each sleep.
  void sleeps() {
    if (engine_ == nullptr || sleeps_ > 1 || ++sleeps_ < 2) return;
    blocked_.since_ns = engine_->platform.now_ns();
    engine_->progress.waiters.enlist(blocked_);
  }

 private:
  Engine* engine_;
  BlockedThread blocked_;
  int sleeps_ = 0;
};

class Wait {
 public:
  Wait(Engine* engine, const Awaited& awaited, std::uint64_t deadline_ns, BlockedThread::In in, bool patient)
      : engine_(engine),
        awaited_(awaited),
        deadline_(deadline_ns),
        patient_(patient),
        blocked_scope_(engine, in, awaited) {
    if (engine_ == nullptr) return;
    engine_->progress.waiters.enter();
    if (engine_->progress.on_demand.was_called() && !engine_->progress.worker.active())
      engine_->progress.on_demand.cancel_expedite();
    helps_ = engine_->resume_deferred_work();
    if (engine_->progress.worker.among_workers()) park_ns_ = first_park_among_workers_ns;
  }
  ~Wait() {
    detach();
    if (engine_ == nullptr) return;
    engine_->progress.waiters.exit();
    engine_->wake_on_demand_thread();
  }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  int run() {
    while (!done()) {
      if (late()) return looks_once() ? CANELE_OK : CANELE_ETIMEOUT;
      if (engine_ == nullptr || (!helps_ && worker_alive())) {
        if (!watched()) park();
      } else if (!takes_turns()) {
        poll_or_park();
      }
    }
    return CANELE_OK;
  }

 private:
  Platform& platform() { return engine_ != nullptr ? engine_->platform : posix_platform(); }
  bool done() const { return awaited_.any_done(); }
  /// Makes progress once. Otherwise a program that polls with deadlines that have passed, or nearly so, would make
  /// none.
  bool looks_once() {
    if (engine_ != nullptr && !engine_->progress.worker.active()) engine_->step();
    return done();
  }
  /// Tests cheaply whether one of many targets is done. An attached parker knows. Before that, tests all targets after
  /// each turn of progress that did something, and at intervals, because other threads make progress, too.
  bool done_quickly(int did = 0) {
    constexpr unsigned seldom = 64;
    if (few()) return done();
    if (parker_ != nullptr) return parker_->signaled() && done();
    return (did > 0 || ++turns_ % seldom == 0) && done();
  }
  bool few() const { return awaited_.count <= 8; }
  bool late() { return deadline_ != 0 && platform().now_ns() >= deadline_; }

  /// Returns true if the worker polls, or sleeps with every wake-up armed. Called again after each park: a polling
  /// worker's heartbeat must have changed.
  bool worker_alive() {
    const ltask::Worker& worker = engine_->progress.worker;
    if (!worker.active() || worker.is_caller()) return false;
    const std::uint64_t heartbeats = worker.heartbeats();
    const bool alive = worker.state() == ltask::Worker::State::sleeping || heartbeats != heartbeats_;
    heartbeats_ = heartbeats;
    return alive;
  }

  /// Spins on the word while the worker polls, for as long as that is cheaper than a wake-up. Once in a wait.
  bool watched() {
    if (engine_ == nullptr || awaited_.count != 1 || watched_) return false;
    watched_ = true;
    ltask::Idle idle(platform(), engine_->progress.idle_beside_worker, engine_->progress.waiters.contention);
    while (!done() && !late()) {
      if (idle.next() == ltask::Idle::Action::sleep) return false;
    }
    return true;
  }

  /// Takes turns with other waiting threads: yields the core to them, and polls for all of them whenever it has the
  /// core. If no other thread wants the core, this is a longer spin. Returns false if turns do not pay.
  bool takes_turns() {
    Waiters& waiters = engine_->progress.waiters;
    if (turns_taken_ || awaited_.count != 1 || waiters.present() < 2 || !waiters.heuristics.turns_pay()) return false;
    turns_taken_ = true;
    const bool well = done_in_some_turns();
    engine_->progress.waiters.heuristics.took_turns(well);
    return well;
  }

  bool done_in_some_turns() {
    constexpr int most_lost = 4;            // beyond that, fewer threads use a core better
    constexpr std::uint64_t lost_ns = 900;  // a yield without a switch to another thread takes less
    constexpr std::uint64_t longest_ns = 50'000, slice_ns = 1'000'000;
    const std::uint64_t begin = platform().now_ns(), woken = engine_->progress.woken.load(std::memory_order_relaxed);
    std::uint64_t before = begin;
    for (int lost = 0; lost < most_lost && before - begin < longest_ns;) {
      platform().yield();
      const std::uint64_t now = platform().now_ns();
      const bool lost_it = now - before > lost_ns;
      if (now - before > slice_ns) engine_->progress.waiters.contention.seen(now);
      lost += lost_it ? 1 : 0;
      before = now;
      engine_->progress.waiters.heuristics.yielded(lost_it);
      if (done()) return true;
      engine_->step();
      if (done()) return true;
      if (engine_->progress.woken.load(std::memory_order_relaxed) != woken)
        return false;  // the woken threads need the core
    }
    return false;
  }

  void poll_or_park() {
    if (!engine_->progress.waiters.try_take_token()) return park();
    engine_->relieve_on_demand_thread();
    poll();
    engine_->progress.waiters.pass_token(platform());
    engine_->run_tasks();  // no thread waits for the tasks: see poll()
    engine_->leave_rest();
  }

  /// Polls until this wait has ended, there is nothing to poll for, or a task must be run. Tasks are left to the
  /// caller, because callbacks may take long and other threads rely on the polling thread.
  void poll() {
    const bool among = patient_ && engine_->oversubscribed, plain = !helps_ && !among;
    const ltask::Idle::Budget budget = helps_ ? for_own_levels : among_ranks;
    ltask::Idle idle(platform(), plain ? engine_->progress.idle : budget, engine_->progress.waiters.contention,
                     plain ? &engine_->progress.waiters.adaptive_yield : nullptr);
    while (!done_quickly() && !late()) {
      if (helps_) engine_->progress.heartbeat.beat();
      const std::uint64_t woken = engine_->progress.woken.load(std::memory_order_relaxed);
      int did = engine_->advance();
      if (engine_->has_tasks()) {
        if (engine_->progress.waiters.others_sleep()) return;
        did += engine_->run_tasks();
      }
      if (did > 0) {
        idle.worked();
        if (done_quickly(did)) return;
        const bool others_wait =
            engine_->progress.waiters.present() > 1 && engine_->progress.waiters.heuristics.contended();
        if (others_wait || engine_->progress.woken.load(std::memory_order_relaxed) != woken)
          platform().yield();  // the event was for the other threads, and they may need this core
        else if (plain && serves_on())
          return;
      } else if (idle.next() == ltask::Idle::Action::sleep) {
        if (!attach()) return;
        if (!parker_->sleeps_elsewhere(wake_engine, engine_)) {
          parker_->reset();  // a signal meant for an earlier owner, or to take the token
          continue;
        }
        blocked_scope_.sleeps();
        const std::uint64_t before = platform().now_ns();
        const bool slept = engine_->try_sleep(remaining(longest_sleep_ns), {is_signaled, parker_});
        if (slept) engine_->progress.waiters.adaptive_yield.slept(platform().now_ns() - before);
        parker_->awake(platform());
        // Another thread sleeps there, and makes progress for this one.
        if (!slept) return engine_->progress.on_demand.asleep() ? take_over() : nap();
      }
    }
  }

  /// Serves other ranks, which access this one's memory. More of their operations may come soon, and each costs a long
  /// turn less in a short wait. Returns true if this wait has ended. Out of line: a second copy of the spin in this
  /// class keeps the compiler from inlining the first one into canele_wait.
  [[gnu::noinline, gnu::cold]] bool serves_on() {
    return engine_->progress.waiters.present() == 1 && engine_->spin_again([this] { return done_quickly(); });
  }

  /// Replaces the on-demand thread, which sleeps on the drivers in this thread's place. The on-demand thread leaves
  /// without a poll.
  void take_over() {
    CANELE_COVER_RARE(on_demand_relieved);
    engine_->relieve_on_demand_thread();
    engine_->sleeper.await_release(remaining(longest_sleep_ns));
  }

  /// Parks. Beside a worker the park is short at first, because a worker may lose its core and its heartbeat must be
  /// checked. Otherwise one of the waiting threads is always awake, or asleep on the drivers.
  void nap() {
    blocked_scope_.sleeps();
    const bool worker = engine_ != nullptr && engine_->progress.worker.active();
    parker_->park(platform(), remaining(worker ? park_ns_ : longest_park_ns));
    if (worker) park_ns_ = std::min(2 * park_ns_, longest_park_ns);
    if (!done()) parker_->reset();
    if (engine_ != nullptr) engine_->counters.add_shared(Counter::waiter_parks);
  }

  void park() {
    if (!attach()) return;
    if (engine_ != nullptr && !listed_) {
      engine_->progress.waiters.add(*parker_);
      listed_ = true;
      if (engine_->progress.waiters.token_free() && !engine_->progress.worker.active())
        return;  // the token became free meanwhile
    }
    nap();
  }

  std::uint64_t remaining(std::uint64_t most) {
    if (deadline_ == 0) return most;
    const std::uint64_t now = platform().now_ns();
    return now >= deadline_ ? 0 : std::min(most, deadline_ - now);
  }

  /// Writes the parker's address into every target. Returns false if one is done.
  bool attach() {
    if (parker_ == nullptr) {
      parker_ = &ltask::Parker::acquire();
      parker_->reset();
      write_words(reinterpret_cast<std::uintptr_t>(parker_) << RequestWord::parker_shift);
    }
    return !done();
  }

  /// Writes the parker's address (0: none) into the words of all targets that are not done. One guard covers many
  /// words.
  void write_words(std::uint64_t name) {
    constexpr int most = 64;  // a guard may keep other threads from the engine
    std::optional<RequestWordGuard> guard;
    const Context* writer = nullptr;
    int left = 0;
    awaited_.any([&](const Target& target) {
      if (target.done()) return false;
      if (left-- == 0 || target.writer != writer) {
        guard.reset();
        guard.emplace(target.writer);
        writer = target.writer;
        left = most;
      }
      std::uint64_t seen = target.word->load(std::memory_order_acquire);
      while ((seen & target.mask) == 0 && (seen & ~RequestWord::low_bits) != name) {
        if (target.word->compare_exchange_weak(seen, (seen & RequestWord::low_bits) | name, std::memory_order_acq_rel))
          break;
      }
      return false;
    });
  }

  void detach() {
    if (parker_ == nullptr) return;
    write_words(0);
    if (listed_) {
      engine_->progress.waiters.remove(*parker_);
      if (engine_->progress.waiters.token_free())
        engine_->progress.waiters.wake_one(platform());  // the token may have been passed to this thread
    }
    ltask::Parker::release(*parker_);
  }

  Engine* engine_;
  const Awaited awaited_;
  std::uint64_t deadline_, park_ns_ = first_park_ns;
  std::uint64_t heartbeats_ = ~std::uint64_t{0};
  unsigned turns_ = 0;
  ltask::Parker* parker_ = nullptr;
  bool listed_ = false, turns_taken_ = false, watched_ = false;
  bool helps_ = false;  ///< the awaited work was deferred to this thread, although a worker polls
  const bool patient_;
  BlockedScope blocked_scope_;
};

/// Short wait: this thread polls, and the event happens while it may still spin.
[[gnu::always_inline]] inline bool arrives_soon(Engine* engine, const Target& target) {
  return engine != nullptr && callback_depth() == 0 && !engine->progress.worker.active() &&
         engine->spin_until(
             [word = target.word, mask = target.mask] { return (word->load(std::memory_order_relaxed) & mask) != 0; });
}

/// Short wait for several targets. With many targets, testing them all costs more than a poll.
bool one_arrives_soon(Engine* engine, const Awaited& awaited) {
  constexpr std::size_t few = 32, turns_per_check = 8;
  if (engine == nullptr || callback_depth() != 0 || engine->progress.worker.active()) return false;
  const std::size_t seldom = awaited.count <= few ? 1 : awaited.count / turns_per_check;
  return engine->spin_until([&, turn = std::size_t{0}](int events) mutable {
    return (events > 0 || turn++ % seldom == 0) && awaited.any_done();
  });
}

[[gnu::noinline]] int block(Engine* engine, const Awaited& awaited, std::uint64_t deadline_ns, BlockedThread::In in,
                            bool patient = false) {
  if (fork::in_child) return reject_in_child("wait");
  if (callback_depth() != 0) {
    return error(CANELE_EDEADLK,
                 "a blocking call inside a completion callback would wait for itself: use a callback "
                 "on what you wait for instead");
  }
  return Wait(engine, awaited, deadline_ns, in, patient).run();
}

/// Polls once, under the lock. A message without a posted receive is left in the driver. To store the message would
/// cost a second copy, and this thread is likely to post its receive next. Not for long: a thread may wait for what
/// lies behind it.
bool check_locked(Engine& engine, const Target& target, const Request* receive, int turn) CANELE_UNDER_LOCK {
  constexpr Engine::Spin one_check{1};
  constexpr int most_turns = 2, patience = 64;
  if (receive != nullptr && turn < most_turns)
    engine.defer_filter = {receive->session, 0, ~std::uint64_t{0}, patience, receive};
  const bool arrived = engine.spin_locked(one_check, [&] { return target.done(); });
  engine.defer_filter.session = nullptr;
  return arrived;
}

/// Polls a little longer before this unit is yielded. As far as is known, no rank on this unit could use it, and a rank
/// on another unit may be about to send.
bool arrives_from_elsewhere(Engine& engine, const Target& target, const Request& receive) {
  constexpr Engine::Spin one_switch{64};
  CoreSiblings& siblings = engine.progress.core_siblings;
  if (!siblings.any() || !engine.try_lock()) return false;
  const bool arrived = siblings.expects_from_elsewhere(receive) && siblings.all_wait(engine, receive) &&
                       engine.spin_locked(one_switch, [&] { return target.done(); });
  engine.unlock();
  return arrived;
}

/// Waits by yielding where ranks share the processing units. The other ranks get their time slices, and a poll then
/// finds what they have sent. Preparing a full wait would cost half of such a slice. Not if this thread has other
/// duties. receive: the awaited request if it is a receive.
bool arrives_in_turns(Engine* engine, const Target& target, const Request* receive = nullptr) {
  constexpr int most = 16;
  if (engine == nullptr || !engine->oversubscribed || callback_depth() != 0 || engine->progress.worker.active())
    return false;
  const bool other_duties = engine->progress.deferred_work.any() || engine->lifecycle.serves_bootstrap ||
                            engine->progress.on_demand.expedited() || engine->progress.on_demand.asleep() ||
                            engine->driver_set.system_peers.load(std::memory_order_relaxed) != 0;
  if (other_duties) return false;
  for (int turn = 0; turn < most && engine->progress.waiters.present() == 0 && !engine->has_tasks(); ++turn) {
    if (turn == 0 && receive != nullptr && arrives_from_elsewhere(*engine, target, *receive)) return true;
    if (!engine->progress.waiters.contention.yields(engine->platform) || !engine->try_lock()) return false;
    const bool arrived = check_locked(*engine, target, receive, turn);
    const bool all_done = engine->delayed_rails.empty() && engine->large.deferred_copies.empty();
    engine->unlock();
    if (arrived || !all_done) return arrived;
  }
  return false;
}

[[gnu::noinline]] int block_for(Request& request) {
  if (fork::in_child) return reject_in_child("canele_wait");
  Target target = end_of(request);
  const Request* const receive = request.kind == Request::Kind::receive ? &request : nullptr;
  if (arrives_in_turns(&engine_of(*request.context), target, receive)) return CANELE_OK;
  return block(&engine_of(*request.context), {&target, nullptr, 1}, 0, BlockedThread::In::wait);
}

}  // namespace

bool resume_unless_in_child(Engine& engine) {
  if (fork::in_child) return false;
  engine.resume_deferred_work();
  return true;
}

void fill_status(const Request& request, canele_status_t* status) {
  *status = {request.status_error, request.rank, request.status_tag, request.status_length, request.cancelled ? 1 : 0};
}

int wait_for_one(Engine* engine, Target* targets, std::size_t count, std::uint64_t deadline_ns, BlockedThread::In in) {
  const Awaited awaited{targets, nullptr, count};
  if (count == 1 ? arrives_soon(engine, targets[0]) : one_arrives_soon(engine, awaited)) return CANELE_OK;
  if (count == 1 && deadline_ns == 0 && arrives_in_turns(engine, targets[0])) return CANELE_OK;
  return block(engine, awaited, deadline_ns, in);
}

int wait_until(Engine& engine, Target target, std::uint64_t deadline, BlockedThread::In in) {
  constexpr std::uint64_t never = UINT64_MAX;
  if (target.done()) return CANELE_OK;
  if (deadline != 0) return wait_for_one(&engine, &target, 1, deadline == never ? 0 : deadline, in);
  if (!may_progress(engine)) return reject_in_child("wait");
  const int did = engine.progress.worker.active() ? 0 : engine.step();
  if (target.done()) return CANELE_OK;
  if (did == 0) engine.progress.empty_polls.found_nothing();
  return CANELE_ETIMEOUT;
}

int wait_for_any(Engine* engine, canele_request_t* const* requests, std::size_t count, std::uint64_t deadline_ns) {
  const Awaited awaited{nullptr, requests, count};
  if (one_arrives_soon(engine, awaited)) return CANELE_OK;
  return block(engine, awaited, deadline_ns, BlockedThread::In::wait);
}

int block_for_one(Engine& engine, Target* targets, std::size_t count) {
  return block(&engine, {targets, nullptr, count}, 0, BlockedThread::In::wait, true);
}

[[gnu::cold, gnu::noinline]] void tell_outcome(const Request& request) {
  std::string words = canele_error_string(request.status_error);
  if (request.rank < 0 && request.kind == Request::Kind::send) {
    words += ": the program has completed the request";
  } else if (request.status_error == CANELE_ETRUNC) {
    words += ": " + std::to_string(request.status_length) + " bytes were sent, the receive has room for " +
             std::to_string(request.data.length);
  } else if (request.status_error == CANELE_ECANCELED && request.kind == Request::Kind::send) {
    words += ": rank " + std::to_string(request.rank) + " dropped the message (tag " +
             std::to_string(request.status_tag) + ", " + std::to_string(request.status_length) +
             " bytes) before a receive took it: it has closed the session, or is being finalized";
  } else if (request.status_error != CANELE_ECANCELED && request.rank >= 0 && !fork::in_child) {
    Engine& engine = engine_of(*request.context);
    engine.lock_for_callback();
    const Peer* peer = engine.peers[request.rank];
    if (peer != nullptr) words += ": rank " + std::to_string(request.rank);
    if (peer != nullptr && !peer->reason.empty()) words += ": " + peer->reason;
    engine.unlock();
  }
  error(request.status_error, std::move(words));
}

bool progress_until(Engine& engine, std::uint64_t deadline_ns, bool (*done)(Engine&)) {
  constexpr std::uint64_t nap_ns = 2'000'000;  // no event ends this wait: test again
  engine.resume_deferred_work();
  ltask::Idle idle(engine.platform, engine.progress.idle, engine.progress.waiters.contention);
  BlockedScope blocked_scope(&engine, BlockedThread::In::finalize, {});
  for (;;) {
    if (engine.try_lock()) {
      const bool complete = done(engine);
      engine.unlock();
      if (complete) return true;
    }
    if (engine.step() > 0) {
      idle.worked();
    } else if (idle.next() == ltask::Idle::Action::sleep) {
      if (deadline_ns != 0 && engine.platform.now_ns() >= deadline_ns) return false;
      blocked_scope.sleeps();
      engine.sleep(nap_ns);
    }
  }
}

}  // namespace canele::comm::post

using namespace canele::comm;
using namespace canele::comm::post;

int canele_test(canele_request_t* request, int* done, canele_status_t* status) try {
  if (request == nullptr || done == nullptr) return error(CANELE_EINVAL, "canele_test: request and done must be given");
  Request& r = request_of(request);
  if (r.kind == Request::Kind::null) {
    *done = 1;
    if (status != nullptr) *status = canele_status_t{};
    return CANELE_OK;
  }
  if (!r.finalized()) {
    Engine& engine = engine_of(*r.context);
    if (!may_progress(engine)) [[unlikely]]
      return reject_in_child("canele_test");
    const int did = engine.progress.worker.active() ? 0 : engine.step();
    if (!r.finalized()) {
      *done = 0;
      if (did == 0) engine.progress.empty_polls.found_nothing();
      return CANELE_OK;
    }
  }
  *done = 1;
  r.tell();
  if (status != nullptr) fill_status(r, status);
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_wait(canele_request_t* request, canele_status_t* status) try {
  if (request == nullptr) [[unlikely]]
    return error(CANELE_EINVAL, "canele_wait: request is NULL");
  Request& r = request_of(request);
  if (r.kind == Request::Kind::null) [[unlikely]] {
    if (status != nullptr) *status = canele_status_t{};
    return CANELE_OK;
  }
  if (!r.finalized() && !arrives_soon(&engine_of(*r.context), end_of(r))) {
    const int code = block_for(r);
    if (code != CANELE_OK) [[unlikely]]
      return code;
  }
  r.tell();
  if (status != nullptr) fill_status(r, status);
  if (r.status_error != CANELE_OK) [[unlikely]]
    tell_outcome(r);
  return r.status_error;
} catch (...) {
  return caught();
}

int canele_wait_all(size_t count, canele_request_t* const* requests, canele_status_t* statuses) try {
  if (count != 0 && requests == nullptr) return error(CANELE_EINVAL, "canele_wait_all: requests is NULL");
  int first = CANELE_OK;
  for (size_t i = 0; i < count; ++i) {
    if (requests[i] == nullptr) continue;
    Request& r = request_of(requests[i]);
    if (statuses == nullptr && r.finalized() && r.status_error == CANELE_OK) {  // inline, for many requests
      r.tell();
      continue;
    }
    canele_status_t* status = nullptr;
    if (statuses != nullptr) status = &statuses[i];
    const int code = canele_wait(requests[i], status);
    if (code == CANELE_EDEADLK && callback_depth() != 0) return code;
    if (first == CANELE_OK) first = code;
  }
  return first;
} catch (...) {
  return caught();
}

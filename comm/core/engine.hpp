// SPDX-License-Identifier: BSD-3-Clause
//
// Engine: one instance of the library. Its state, its lock, and the steps that make it progress.
//
// Who: api/ posts, the worker and waiters step, drivers call back through DriverSlot.
// Threads: any; see each part. Fields below "under the lock" are touched by the holder of `lock` only.
// Surprise: there are no globals, no blocking call, and no thread in here: a test can step a thousand engines in
//     one thread.
//
//   Engine ─┬─ lock           submissions that find it taken are linked to it
//           ├─ tasks          callbacks and large copies, run by whoever steps
//           ├─ slots[]        one per open driver, in order of preference
//           ├─ peers[]        by rank
//           ├─ sessions, matcher, sends, transfers
//           └─ sleeper, worker, helper, waiters
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/bootstrap/bootstrap.hpp"
#include "comm/config/settings.hpp"
#include "comm/core/awaited.hpp"
#include "comm/core/driver_slot.hpp"
#include "comm/core/handle_table.hpp"
#include "comm/core/lookahead.hpp"
#include "comm/core/message_pool.hpp"
#include "comm/core/modules.hpp"
#include "comm/core/neighbours.hpp"
#include "comm/core/peer.hpp"
#include "comm/core/polls.hpp"
#include "comm/core/post_pipeline.hpp"
#include "comm/core/put_off.hpp"
#include "comm/core/request.hpp"
#include "comm/core/samples.hpp"
#include "comm/core/session.hpp"
#include "comm/core/waiters.hpp"
#include "comm/matching/alternatives/heater.hpp"
#include "comm/matching/matcher.hpp"
#include "comm/multicast/casts.hpp"
#include "comm/observe/counters.hpp"
#include "comm/observe/event_log.hpp"
#include "comm/observe/hang_watch.hpp"
#include "ltask/core_register.hpp"
#include "ltask/helper.hpp"
#include "ltask/places.hpp"
#include "ltask/platform.hpp"
#include "ltask/sleeper.hpp"
#include "ltask/submit_lock.hpp"
#include "ltask/task.hpp"
#include "ltask/worker.hpp"

namespace canele::comm {

namespace deposit {
struct Deposit;
void over(Engine& engine, Request& request);
}  // namespace deposit

namespace rendezvous {
struct Pull;
}

/// What an engine is made of; tests and simulators bring their own.
struct EngineParts {
  Platform* platform = nullptr;
  std::unique_ptr<Settings> settings;
  std::unique_ptr<Bootstrap> bootstrap;
  /// Drivers to use, in order of preference; the first that reaches a peer carries it, with those joined to it.
  std::vector<DriverChoice> drivers;
  const strategies::StrategyFactory* strategy = nullptr;
  /// A worker may be pinned to a core of this machine: not in a simulated one.
  bool on_this_machine = false;
  /// Where this process has told which cores it uses; may be nullptr.
  std::unique_ptr<ltask::CoreRegister> cores;
};

/// System calls that became due under the lock, to be made after it: threads to wake, doorbells to ring, the one that
/// sleeps on the drivers to rouse.
class Departures {
 public:
  bool due() const { return due_; }
  void wake(ltask::Parker& parker) {
    due_ = true;
    parkers_.push_back(&parker);
  }
  void ring(drivers::Driver& driver, int rank) {
    due_ = true;
    doorbells_.emplace_back(&driver, rank);
  }
  void rouse(ltask::Sleeper& sleeper) {
    due_ = true;
    sleeper_ = &sleeper;
  }
  /// Moves what `other` holds here, leaving its memory with it for the next time.
  void take(Departures& other) {
    parkers_.insert(parkers_.end(), other.parkers_.begin(), other.parkers_.end());
    doorbells_.insert(doorbells_.end(), other.doorbells_.begin(), other.doorbells_.end());
    other.parkers_.clear();
    other.doorbells_.clear();
    if (other.sleeper_ != nullptr) sleeper_ = std::exchange(other.sleeper_, nullptr);
    due_ = true;
    other.due_ = false;
  }
  /// How many threads it has woken.
  int run(Platform& platform);

 private:
  bool due_ = false;
  ltask::Sleeper* sleeper_ = nullptr;
  std::vector<ltask::Parker*> parkers_;
  std::vector<std::pair<drivers::Driver*, int>> doorbells_;
};

/// Of canele_finalize: not called yet; waits for the others; has said bye.
enum class Stage : std::uint8_t { running, finalizing, leaving };

/// While a thread polls for what these messages come after: they stay with their driver, until it has said `patience`
/// times that there is one. (What is kept is copied twice.)
struct NotYet {
  const Session* session = nullptr;  ///< nullptr: all are taken
  std::uint64_t first_tag = 0, end_tag = 0;
  int patience = 0;
  const Request* awaited = nullptr;  ///< a receive whose message may lie behind others of its rank
  bool stays(std::uint64_t tag, std::int32_t source) {
    return tag >= first_tag && tag < end_tag && !may_come_before(source) && patience-- > 0;
  }
  bool may_come_before(std::int32_t source) const {
    if (awaited == nullptr || awaited->finalized()) return false;
    return awaited->receive.node.source == source || awaited->receive.node.source == rank_any;
  }
};

class Engine final : public ltask::Helped {
 public:
  static constexpr int packets_per_poll = 64;  ///< then others have their turn

  /// Opens the drivers, publishes the addresses, waits for all ranks. nullptr, *why and *code (CANELE_E...) on failure.
  static std::unique_ptr<Engine> create(EngineParts parts, std::string* why, int* code = nullptr);
  ~Engine();

  // ---- progress: any thread -------------------------------------------------------------------------------------
  int step() override {
    if (thread_pulse.any() && worker.is_caller() && thread_pulse.has_moved()) [[unlikely]]
      return 0;
    const int did = advance() + run_tasks();
    leave_rest();
    return did;
  }
  /// The calling thread may not come back soon: tasks that it has not ended are for somebody who may be asleep.
  void leave_rest() {
    if (has_tasks()) [[unlikely]]
      sleeper.wake();
  }
  /// The same in two parts: what nobody waits for, and what may take long (callbacks, large copies).
  int advance();
  int run_tasks();
  /// A task may be waiting that this thread may run.
  bool has_tasks() const {
    const ltask::Places* const there = places.load(std::memory_order_acquire);
    return tasks.has_work() || (there != nullptr && there->has_work(platform.current_unit()));
  }
  void sleep(std::uint64_t timeout_ns, ltask::Called called = {}) override;
  /// Sleeps on the drivers. False: another thread does so already; nothing was done.
  bool try_sleep(std::uint64_t timeout_ns, ltask::Called called);
  void wake() override { sleeper.wake(); }
  /// Whether a helper should make progress, and a turn of it: core/help.cpp.
  Sight look() override;
  bool unfinished() override;
  int help() override;
  bool others_progress() override;
  int descriptor() const override { return sleeper.descriptor(); }
  bool heeds_arrivals() override;
  int program_unit() const override { return program_unit_.load(std::memory_order_relaxed); }
  int worker_unit() const override { return worker.active() ? worker.unit() : -1; }
  /// What is reached through memory moves its data without us, mostly; a helper that takes part there takes a core from
  /// the program, and gains little.
  bool in_haste() const override { return system_peers.load(std::memory_order_relaxed) != 0 || worker.active(); }
  /// How often a thread that polls has lost its core to others for long.
  std::uint64_t turns_lost() const noexcept {
    return worker.turns_lost() + helper.turns_lost() + waiters.pressure.times();
  }
  /// Who makes progress beside the program does so on a core that threads which compute want, too.
  bool shares_core() const noexcept {
    return worker.shares_core() || (no_core_for_worker && helper.kind() != ltask::Helper::Kind::off);
  }
  /// A thread that is going to wait polls itself: the helper leaves the drivers to it.
  void relieve_helper();
  [[gnu::cold]] void answer_helper();
  /// Polls memory-only drivers under one hold of the lock until `happened()`; true if it has. Gives up
  /// soon, and at once if the lock is taken or there is work that the lock forbids. It may ask for the number of
  /// events.
  template <typename Done>
  bool spin_until(Done happened);
  /// The same in two parts, for who takes the lock for more than that: how often to look, and beside how many others.
  struct Spin {
    int turns = 0;
    int others = 0;                  ///< threads that wait, too: what is found for them ends the spin soon
    int packets = packets_per_poll;  ///< to take in a look; what comes later is not asked for yet
  };
  static constexpr int short_spin = 32;
  Spin plan_spin();
  template <typename Done>
  bool spin_locked(Spin spin, Done happened);
  /// Other threads wait, too.
  Spin plan_spin_beside(int others);
  /// The calling thread waits, short waits only: how many it has had in a row, since another one had any.
  std::uint32_t count_row();

  /// Runs `op` now, or leaves it to the holder of the lock; then does what the lock forbids (system calls, callbacks).
  void submit(Op& op);
  /// After work was left over for somebody who progresses: the server of a driver, the worker, a sleeper.
  /// length: of what was posted, if that may take long.
  void after_submit(std::size_t length = 0) {
    for (const DriverSlot* slot : system_slots) {
      if (slot->has_flush()) [[unlikely]] {
        serve_drivers();
        break;
      }
    }
    if (tasks.has_work()) [[unlikely]]
      run_or_leave_tasks();
    summon_helper();
    if (length >= takes_long) [[unlikely]]
      has_posted_much();
  }
  /// A helper is likely to be needed, and should know where the program goes on computing.
  [[gnu::cold]] void has_posted_much();
  /// There is something to wait for: a helper that has gone to sleep for want of that is needed; or it wants this
  /// thread to make a turn.
  void summon_helper() {
    if (helper.calls()) [[unlikely]]
      answer_helper();
  }
  /// The same for who makes no turn: it may be stuck, or the work is not for it.
  void rouse_helper() {
    if (helper.parked()) helper.summon();
  }
  /// After tasks were submitted that the calling thread shall not do itself.
  void leave_tasks() {
    sleeper.wake();
    rouse_helper();
    if (helper.dozes() && in_haste()) helper.hasten(ltask::Helper::Because::there_is_work);
  }
  /// Hands staged packets to drivers that make system calls. Never under the lock.
  void serve_drivers();

  /// A thread of the program waits, or asks for something that it will wait for: what was put off until then begins.
  /// True: there was something, and this thread is meant to make the progress.
  bool resume_put_off() { return put_offs.any() && put_offs.resume(PutOff::Because::thread_waits, platform.now_ns()); }

  /// In the child of a fork, see core/fork.hpp: no call may do anything with this copy. Plain stores.
  void give_away() {
    rank = size = CANELE_EFORK;  // each rank is a wrong one
    lock.close();
    put_offs.give_away();
  }

  // ---- the lock -------------------------------------------------------------------------------------------------
  /// False: somebody else has it. With it, all receives that were posted are in the matcher.
  bool try_lock() {
    if (!try_lock_to_post()) return false;
    if (!posts.empty()) [[unlikely]]
      posts.settle(*this);
    return true;
  }
  /// The same for who does not look at receives: they may still wait in `posts`.
  [[gnu::always_inline]] bool try_lock_to_post() {
#ifdef CANELE_MARKS  // the simulator's copy of the engine
    if (platform.lock_appears_busy != nullptr && platform.lock_appears_busy(platform)) return false;
#endif
    return lock.try_enter();
  }
  /// Waits for the lock, for callers who must have it (a driver's call back). Holders are quick: they make no system
  /// call.
  void lock_for_callback();
  /// Whether one thread may have the lock for less, as long as no other wants it. Not while a worker wants it, too.
  void favour_one_thread(bool yes);
  /// The lock was put down with what others have linked: the caller runs some of it, and leaves. False: it was not.
  bool serve_left();
  /// No other thread is so favoured any more, and who was has left the lock.
  void part_with_owner() {
    lock_for_callback();
    unlock();
  }
  [[gnu::noinline]] void unlock() { unlock_idle(); }
  /// The same; true: nothing was left to be done, neither then nor by the caller outside the lock. In line: most often
  /// it is an owner who leaves.
  [[gnu::always_inline]] bool unlock_idle() {
    const bool nothing_due = dirty.empty() && !departures.due();
    return (nothing_due && lock.leave_as_owner()) || unlock_in_turn(nothing_due);
  }
  [[gnu::noinline]] bool unlock_in_turn(bool nothing_due) {
    if (nothing_due && lock.try_leave_in_turn()) return true;
    unlock_slowly();
    return false;
  }

  // ---- under the lock: core/ ------------------------------------------------------------------------------------
  void run(Op& op);
  Peer& peer(int to) {
    Peer* known = peers[to];
    return known != nullptr ? *known : first_contact(to);
  }
  void mark_dirty(Peer& peer);
  void pump_dirty();
  /// Publishes events of a request; queues its callback; wakes its waiter.
  void publish(Request& request, unsigned events) {
    std::uint64_t seen = request.word.load(std::memory_order_relaxed);
    if (seen == 0) {           // nobody wants a callback, waits asleep, or cancels: the common case
      if (lock.has_owner()) {  // nor can anybody come to, see WordVisit: no need for an atomic operation
        request.word.store(events, std::memory_order_release);
        return;
      }
      if (request.word.compare_exchange_strong(seen, events, std::memory_order_acq_rel)) return;
    }
    publish_to_listeners(request, events);
  }
  void finish(Request& request, int error) {
    if (request.kind == Request::Kind::receive) return finish_receive(request, error);
    if (request.part == Request::Part::deposited) [[unlikely]]
      return deposit::over(*this, request);
    note_outcome(request, error);
    --pending_sends;
    trace(Event::send_done, request.rank, request.session, request.status_tag, request.data.length);
    publish(request, event::finalized);
  }
  [[gnu::always_inline]] void finish_receive(Request& request, int error) {
    note_outcome(request, error);
    publish(request, event::received | event::finalized);
  }
  /// Every request that needs the peer ends with `error`, but for those whose memory a driver still has: they end when
  /// it gives that back. lost: it did not leave in good order. by: the driver that has given back all of it already.
  void fail_peer(Peer& peer, int error, bool lost, std::string_view reason, DriverSlot* by = nullptr);
  void log(LogLevel level, const std::string& text);
  /// Records what happens, where CANELE_TRACE asks for it. (The short way of small messages has no trace of it: a
  /// traced engine does not take that.)
  void trace(Event kind, int peer, const Session* session = nullptr, std::uint64_t tag = 0, std::uint64_t length = 0) {
    if (event_log != nullptr) [[unlikely]]
      trace_slowly(kind, peer, session, tag, length);
  }
  /// From now on, in so much room.
  void start_tracing(std::size_t capacity);

  /// Gives a request whose queued bit the caller has just set to the task queue.
  void queue_delivery(Request& request);
  /// Runs callbacks of one request. By the task queue, outside the lock.
  void deliver(Request& request);

  // ---- constants after create() ---------------------------------------------------------------------------------
  Platform& platform;
  std::unique_ptr<Settings> settings;
  std::unique_ptr<Bootstrap> bootstrap;
  const strategies::StrategyFactory& strategy;
  int rank = 0, size = 1;
  LogLevel verbosity = LogLevel::warning;
  ltask::Idle::Budget idle;         ///< how long to spin and yield
  std::uint64_t eager_setting = 0;  ///< 0: the driver decides
  bool pushes = true;               ///< large receives are offered to their senders
  bool checksums = false;           ///< around every driver, see drivers/decorators/checksum.cpp
  long process = 0;                 ///< to notice a fork
  std::vector<std::byte> secret;
  std::uint64_t incarnation = 0;

  // ---- shared, each with its own discipline ---------------------------------------------------------------------
  ltask::SubmitLock lock;
  ltask::TaskQueue tasks;                          ///< for whoever makes progress
  std::atomic<ltask::Places*> places{nullptr};     ///< tasks of the program that are for a part of the machine; owned
  std::atomic<std::uint64_t> tasks_in_use{0};      ///< tasks of the program that have not ended
  std::vector<std::unique_ptr<DriverSlot>> slots;  ///< in order of preference; constant after create()
  std::vector<DriverSlot*> memory_slots, system_slots;  ///< the same by kind
  std::vector<DriverSlot*> polled_slots;                ///< memory slots in use (under the lock)
  ltask::Sleeper sleeper;
  ltask::Idle::Budget idle_beside_worker;  ///< the same for the worker, and for who waits while it polls
  ltask::Worker worker;
  ltask::Helper helper;
  std::mutex cores_mutex;                      // while the worker is placed
  std::unique_ptr<ltask::CoreRegister> cores;  ///< may be nullptr
  const bool on_this_machine;                  ///< workers may choose a core
  bool no_core_for_worker = false;             ///< the program's threads want all: a helper instead
  std::atomic<std::uint64_t> woken{0};         ///< waiting threads, so far
  std::atomic<std::uint32_t> in_a_row{0};      ///< short waits of one thread,
  std::atomic<std::uint32_t> rows_before{0};   ///< of those before it: the most, the last ones above all
  std::atomic<const void*> has_row{nullptr};   ///< that thread
  Waiters waiters;
  ThreadPulse thread_pulse;  // these two side by side: each turn looks at both
  PutOffs put_offs;
  HangWatch watch;
  LastEvent watched_epoch;                   ///< when the worker's epoch moved last (under the lock)
  std::atomic<bool> memory_in_use{false};    ///< another rank is reached through memory
  std::atomic<int> system_peers{0};          ///< connected through drivers that make system calls
  bool crowded = false;                      ///< more ranks on this host than processing units: spinning does not pay
  std::size_t takes_long = ~std::size_t{0};  ///< a message of so many bytes does, over a driver that makes system calls
  bool naps_only = false;                    ///< a driver without wake-up is open
  bool serves_bootstrap = false;             ///< it has no thread of its own
  matching::Heater heater;                   ///< of the matcher's memory

  // ---- under the lock -------------------------------------------------------------------------------------------
  std::unique_ptr<Peer*[]> peers;
  std::vector<std::unique_ptr<Peer>> active_peers;
  SessionTable sessions;
  Matcher matcher;
  PostPipeline posts;              ///< on their way to the matcher
  Lookahead lookahead;             ///< at what drivers present
  bool drivers_armed = false;      ///< somebody sleeps on the drivers, or is about to
  HandleTable<Request> sends;      ///< sends that a peer may name: rendezvous, synchronous
  HandleTable<Request> transfers;  ///< receives whose bulk data is on its way
  MessagePool messages;
  NodeFifo held;      ///< messages that receives without a buffer hold
  CreditPool credit;  ///< for messages that nobody has asked for
  ControlPool controls;
  Casts casts;
  std::vector<std::unique_ptr<Packet>> free_packets;
  std::vector<std::byte> bulk_staging;  ///< see pump.cpp
  std::vector<Peer*> dirty;
  Departures departures;
  std::vector<Rail*> lulled;                     ///< rails that wait for the next progress call
  bool lulls_over = false;                       ///< it is that call
  std::uint64_t pending_sends = 0;               ///< not finalized
  deposit::Deposit* deposits = nullptr;          ///< those among them that nobody waits for
  std::atomic<std::uint32_t> deposit_count = 0;  ///< changed under the lock
  Stage stage = Stage::running;
  std::uint64_t resolving = 0;                ///< questions to the launcher under way
  std::uint64_t pulls = 0;                    ///< copies under way
  std::atomic<std::uint32_t> groups_over{0};  ///< groups that have ended with an error, ever (any thread)
  NotYet not_yet;
  rendezvous::Pull* free_pulls = nullptr;
  std::vector<std::unique_ptr<rendezvous::Pull>> all_pulls;
  std::vector<rendezvous::Pull*> deferred;  ///< copies that begin with the next progress call
  std::unique_ptr<EventLog> event_log;      ///< nullptr: nobody wants to know
  std::uint64_t flip_countdown = 0;         ///< fault switch, 0 off
  bool looks_closely = false;               ///< one of these two is on
  canele_hang_fn hang_callback = nullptr;   ///< where hang reports go; nullptr: the log
  void* hang_argument = nullptr;
  EngineCounters counters;

  // Down here, away from what every message touches.
  Samples samples;                             ///< constant after create()
  Polls empty_polls;                           ///< after looks that found nothing
  Neighbours neighbours;                       ///< where ranks share units; under the lock
  std::atomic<bool> told_of_no_memory{false};  ///< once for each time that there is none
  std::function<void(Session&)> new_session;   ///< told of each that a peer is the first to mention (under the lock)

 private:
  friend struct EngineBuilder;
  void unlock_slowly();
  void call_for_holder();
  [[gnu::cold]] void trace_slowly(Event kind, int peer, const Session* session, std::uint64_t tag,
                                  std::uint64_t length);
  void run_or_leave_tasks();
  [[gnu::always_inline]] void note_outcome(Request& request, int error) {
    assert(request.stage != Request::Stage::idle && "a request ends once");
    request.status_error = error;
    request.stage = Request::Stage::idle;
    --request.session->pending;
    if (error != CANELE_OK) [[unlikely]]
      count_failure(error);
  }
  void publish_to_listeners(Request& request, unsigned events);
  void count_failure(int error);
  Peer& first_contact(int to);
  explicit Engine(EngineParts parts);
  int step_locked();
  [[gnu::cold]] bool regain_memory();
  void warm();
  void resume_overdue();
  std::uint64_t until_overdue();
  std::uint64_t polls_so_far() const;
  std::uint64_t posts_so_far() const;
  int step_drivers();
  bool arm();  ///< every driver wakes us from now on, and there is nothing to do
  void disarm();
  std::atomic<std::uint64_t> seen_polls_{0}, seen_posts_{0},
      seen_epoch_{0};  ///< of all drivers, of the worker, as a helper has seen them
  std::atomic<int> program_unit_{-1};
  std::uint64_t parked_ns_ = 0;  ///< when its worker went to sleep; 0: it did not, or nobody wants to know
  void run_linked(ltask::SubmitLock::Node* node);
  int run_next_linked(int most);
};

/// For who changes the word of a pending request without the lock: as long as one lives no other thread writes a word
/// that is 0 by a plain store. No engine: no need.
class WordVisit {
 public:
  explicit WordVisit(Engine* engine) : engine_(engine) {
    if (engine_ == nullptr) return;
    inside_ = engine_->lock.try_enter_as_owner();
    if (!inside_ && engine_->lock.begin_visit()) engine_->part_with_owner();
  }
  ~WordVisit() {
    if (inside_) engine_->unlock();
    if (!inside_ && engine_ != nullptr) engine_->lock.end_visit();
  }
  WordVisit(const WordVisit&) = delete;
  WordVisit& operator=(const WordVisit&) = delete;

 private:
  Engine* engine_;
  bool inside_ = false;  ///< the caller is the owner, so that nobody else writes
};

inline void Request::begin(const Engine& of) {
  withheld = offering = copying = false;
  part = Part::none;
  tick = of.watch.tick();
}

/// Depth of callbacks on this thread; blocking calls are refused above 0. The TLS model: canele_wait asks each time.
extern constinit thread_local int callbacks_on_this_thread __attribute__((tls_model("initial-exec")));
inline int callback_depth() { return callbacks_on_this_thread; }

/// While it lives the calling thread posts, and runs no task for that: a receive whose message is there already is
/// copied by who makes progress next.
class OnlyPosts {
 public:
  OnlyPosts() { ++depth; }
  ~OnlyPosts() { --depth; }
  OnlyPosts(const OnlyPosts&) = delete;
  OnlyPosts& operator=(const OnlyPosts&) = delete;

  static bool on_this_thread() { return depth != 0; }

 private:
  static constinit thread_local int depth __attribute__((tls_model("initial-exec")));
};

}  // namespace canele::comm

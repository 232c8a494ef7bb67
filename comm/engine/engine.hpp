// SPDX-License-Identifier: BSD-3-Clause
//
// Engine: one instance of the library. It holds the state and the lock, and makes progress.
//
// api/ posts requests, the worker and waiting threads call step(), drivers call back through DriverInstance. Any thread
// may call the engine; each part names its rules. Only the holder of `lock` touches the fields below "under the lock".
//
// The engine has no globals, no blocking call, and no thread of its own: a test can step a thousand engines in one
// thread.
//
//   Engine ─┬─ lock           submissions that find it taken are linked to it
//           ├─ tasks          callbacks and large copies, run by the thread that steps
//           ├─ instances[]    one per open driver, in order of preference
//           ├─ peers[]        by rank
//           ├─ sessions, matcher, sends, transfers
//           └─ sleeper, worker, on-demand thread, waiters
#pragma once

#include <canele/canele.h>

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
#include "comm/engine/diagnostics.hpp"
#include "comm/engine/driver_set.hpp"
#include "comm/engine/lifecycle.hpp"
#include "comm/engine/peer_watch.hpp"
#include "comm/engine/progress_state.hpp"
#include "comm/engine/worker_placement.hpp"
#include "comm/multicast/state.hpp"
#include "comm/protocol/receive_prefetch.hpp"
#include "comm/registry/modules.hpp"
#include "comm/rendezvous/state.hpp"
#include "comm/state/awaited.hpp"
#include "comm/state/context.hpp"
#include "comm/state/request.hpp"
#include "comm/state/under_lock.hpp"
#include "ltask/core_register.hpp"
#include "ltask/platform.hpp"
#include "ltask/sleeper.hpp"
#include "ltask/submit_lock.hpp"
#include "ltask/task.hpp"

namespace canele::comm {

/// The parts that an engine is made of. Tests and simulators supply their own.
struct EngineParts {
  Platform* platform = nullptr;
  std::unique_ptr<Settings> settings;
  std::unique_ptr<Bootstrap> bootstrap;
  /// Drivers to use, in order of preference. The first one that reaches a peer carries its traffic, with those joined
  /// to it.
  std::vector<DriverChoice> drivers;
  const strategies::StrategyFactory* strategy = nullptr;
  /// True if a worker may be pinned to a core of this machine: not in a simulation.
  bool on_this_machine = false;
  /// Register of the cores that the processes of this host use; may be nullptr.
  std::unique_ptr<ltask::CoreRegister> cores;
  /// Called when nothing has happened for a while; hang::check makes the report.
  void (*check_hang)(Engine&) = [](Engine&) {};
};

class Engine final : public Context, public ltask::ProgressSource {
 public:
  static constexpr int packets_per_poll = 64;  ///< after these another driver has its turn

  /// Opens the drivers, publishes the addresses, and waits for all ranks. On failure it returns nullptr and sets *why
  /// and *code (CANELE_E...).
  static std::unique_ptr<Engine> create(EngineParts parts, std::string* why, int* code = nullptr);
  ~Engine();

  // ---- progress: any thread -------------------------------------------------------------------------------------
  int step() CANELE_NOT_UNDER_LOCK override {
    if (progress.heartbeat.any() && progress.worker.is_caller() && progress.heartbeat.has_moved()) [[unlikely]]
      return 0;
    const int did = advance() + run_tasks();
    leave_rest();
    return did;
  }
  /// Wakes the sleeper if tasks are left. The calling thread may not return soon, and the thread that could run them
  /// may be asleep.
  void leave_rest() {
    if (has_tasks()) [[unlikely]]
      sleeper.wake();
  }
  /// The two parts of step(): advance() polls the drivers; run_tasks() runs what may take long (callbacks, large
  /// copies).
  int advance() CANELE_NOT_UNDER_LOCK;
  int run_tasks() CANELE_NOT_UNDER_LOCK;
  /// Returns whether a task may be waiting that this thread may run.
  bool has_tasks() const {
    const ltask::TopologyTaskQueues* const there = progress.topology_queues.load(std::memory_order_acquire);
    return tasks.has_work() || (there != nullptr && there->has_work(platform.current_unit()));
  }
  void sleep(std::uint64_t timeout_ns, ltask::Called called = {}) override;
  /// Begins a program's sleep on the drivers. occupied: another thread sleeps there; busy: there is something to do;
  /// armed: the program may sleep on descriptor(), and end_sleep() follows.
  enum class SleepBegin : std::uint8_t { occupied, busy, armed };
  SleepBegin begin_sleep() CANELE_NOT_UNDER_LOCK;
  void end_sleep() CANELE_NOT_UNDER_LOCK;
  /// Sleeps on the drivers. Returns false, without doing anything, if another thread does so already. A program that
  /// sleeps there leaves to the caller.
  bool try_sleep(std::uint64_t timeout_ns, ltask::Called called) CANELE_NOT_UNDER_LOCK;
  void wake() override { sleeper.wake(); }
  /// Interface of the on-demand thread, which tells when help is needed; see
  /// engine/progress_demand.cpp.
  Coverage check_coverage() override;
  bool unfinished() override;
  int help() override;
  bool others_progress() override;
  int descriptor() const override { return sleeper.descriptor(); }
  bool heeds_arrivals() override;
  int program_unit() const override { return program_unit_.load(std::memory_order_relaxed); }
  int worker_unit() const override { return progress.worker.active() ? progress.worker.unit() : -1; }
  /// Returns whether help is urgent. Data that is reached through memory moves mostly without this rank. An on-demand
  /// thread that takes part there takes a core from the program, and gains little.
  bool is_urgent() const override {
    return driver_set.system_peers.load(std::memory_order_relaxed) != 0 || progress.worker.active();
  }
  /// Returns whether the program has memory or notification slots that other ranks access, or a connection is being
  /// made, for which a rank waits.
  bool serves_others() const override {
    return accessible.load(std::memory_order_relaxed) != 0 ||
           driver_set.connecting.load(std::memory_order_relaxed) != 0;
  }
  /// Returns how often a polling thread has lost its core to other threads for a long time.
  std::uint64_t core_losses() const noexcept {
    return progress.worker.core_losses() + progress.on_demand.core_losses() + progress.waiters.contention.times();
  }
  bool shares_core() const noexcept override {
    return progress.worker.shares_core() ||
           (placement.no_core_for_worker && progress.on_demand.kind() != ltask::OnDemandProgress::Kind::off) ||
           (!oversubscribed && progress.waiters.heuristics.contended());
  }
  /// Tells the on-demand thread that a thread is about to wait and polls itself, so the on-demand thread leaves the
  /// drivers to it.
  void relieve_on_demand_thread();
  [[gnu::cold]] void answer_on_demand_thread();
  /// Polls memory-only drivers under one hold of the lock until `happened()`; returns true if that is the case. Gives
  /// up soon. Gives up at once if the lock is taken or there is work that the lock forbids. `happened` may take the
  /// number of events as a parameter.
  template <typename Done>
  bool spin_until(Done happened) CANELE_NOT_UNDER_LOCK;
  /// How long to spin. plan_spin() and spin_locked() are the two parts of spin_until(), for callers that hold the lock
  /// for more than the spin.
  struct Spin {
    int turns = 0;
    int others = 0;                  ///< other waiting threads; what is found for them ends the spin soon
    int packets = packets_per_poll;  ///< most packets to take in one poll
  };
  static constexpr int short_spin = 32, long_spin = 2048;  ///< a poll takes up to a hundred nanoseconds
  int spin_turns() const {
    return driver_set.system_peers.load(std::memory_order_relaxed) != 0 ? short_spin : long_spin;
  }
  Spin plan_spin();
  /// Like spin_until(), for the only waiting thread, after a poll that found events for others: more may come soon.
  template <typename Done>
  bool spin_again(Done happened) CANELE_NOT_UNDER_LOCK;
  template <typename Done>
  bool spin_locked(Spin spin, Done happened) CANELE_UNDER_LOCK;
  /// plan_spin() if other threads wait, too.
  Spin plan_spin_beside(int others);
  /// Returns how many short waits the calling thread has had in a row, without a wait of another thread between them.
  std::uint32_t note_short_wait();

  /// Runs `op` now, or leaves it to the holder of the lock. Then does what the lock forbids (system calls, callbacks).
  void submit(Op& op) CANELE_NOT_UNDER_LOCK override;
  /// Passes on what a submission left over: to the driver's server, the worker, or a sleeping thread. `length`: size in
  /// bytes of what was posted, if that may take long.
  void after_submit(std::size_t length = 0) CANELE_NOT_UNDER_LOCK {
    serve_staged();
    if (tasks.has_work()) [[unlikely]]
      run_or_leave_tasks();
    notify_on_demand_thread();
    if (length >= progress.long_message) [[unlikely]]
      has_posted_much();
  }
  /// Expedites the on-demand thread, which is likely to be needed, and tells it on which unit the program goes on
  /// computing.
  [[gnu::cold]] void has_posted_much();
  /// Wakes an on-demand thread that sleeps because nothing was pending, or makes a step in this thread if the on-demand
  /// thread asks for one.
  void notify_on_demand_thread() {
    if (progress.on_demand.wants_notify()) [[unlikely]]
      answer_on_demand_thread();
  }
  /// Wakes the on-demand thread, without making a step. For a thread that may be stuck, or that the work is not for.
  void wake_on_demand_thread() {
    if (progress.on_demand.parked()) progress.on_demand.notify();
  }
  /// Called after tasks were submitted that the calling thread shall not run itself.
  void leave_tasks() {
    sleeper.wake();
    wake_on_demand_thread();
    if (progress.on_demand.is_idle() && is_urgent())
      progress.on_demand.expedite(ltask::OnDemandProgress::Because::there_is_work);
  }
  /// Hands staged packets to system-call drivers, if there are any. Never called under the lock.
  void serve_staged() CANELE_NOT_UNDER_LOCK {
    for (const DriverInstance* instance : driver_set.system) {
      if (instance->has_flush()) [[unlikely]]
        return serve_drivers();
    }
  }
  void serve_drivers() CANELE_NOT_UNDER_LOCK;

  /// Resumes deferred work. Called when a thread of the program waits, or tests something that it will wait for.
  /// Returns true if there was any work, and this thread is expected to make the progress.
  bool resume_deferred_work() CANELE_NOT_UNDER_LOCK {
    return progress.deferred_work.any() &&
           progress.deferred_work.resume(DeferredWork::Because::thread_waits, platform.now_ns());
  }

  /// Disables this copy of the engine in the child of a fork, with plain stores; see engine/fork.hpp.
  void give_away() {
    rank = size = CANELE_EFORK;  // makes every rank invalid
    lock.close();
    progress.deferred_work.give_away();
  }

  // ---- the lock -------------------------------------------------------------------------------------------------
  /// Takes the lock. Returns false if another thread has it. On success all receives that were posted are in the
  /// matcher.
  bool try_lock() CANELE_TRIES_LOCK {
    if (!try_lock_to_post()) return false;
    if (!receive_prefetch.empty()) [[unlikely]]
      receive_prefetch.drain(*this);
    return true;
  }
  /// Takes the lock for a caller that looks at no receives: posted receives may still wait in `receive_prefetch`.
  [[gnu::always_inline]] bool try_lock_to_post() CANELE_TRIES_LOCK {
#ifdef CANELE_COVERAGE  // the simulator's copy of the engine
    if (platform.lock_appears_busy != nullptr && platform.lock_appears_busy(platform)) return false;
#endif
    return lock.try_lock();
  }
  /// Waits for the lock, for callers that must have it (driver callbacks). Holders are quick: they make no system call.
  void lock_for_callback() CANELE_TAKES_LOCK;
  /// Enables or disables the lock's bias. A biased lock is cheaper for one thread, as long as no other thread wants it.
  /// Not used while a worker wants the lock, too.
  void enable_lock_bias(bool yes) CANELE_NOT_UNDER_LOCK;
  /// Takes over a lock that its holder put down with linked work left. Runs some of this work and unlocks. Returns
  /// false if the lock was not put down.
  bool serve_left() CANELE_NOT_UNDER_LOCK;
  /// Revokes the bias. On return, the thread that owned the bias has unlocked.
  void revoke_bias() CANELE_NOT_UNDER_LOCK {
    lock_for_callback();
    unlock();
  }
  [[gnu::noinline]] void unlock() CANELE_LEAVES_LOCK { unlock_idle(); }
  /// Unlocks. Returns true if nothing was left to do, neither then nor by the caller outside the lock. Inlined, because
  /// most often the owner of the bias unlocks.
  // Not analysed: ltask::SubmitLock says by its result whether it has taken the lock back.
  [[gnu::always_inline]] bool unlock_idle() CANELE_LEAVES_LOCK CANELE_NO_THREAD_SAFETY_ANALYSIS {
    const bool nothing_due = backlogged_peers.empty() && !after_unlock.due();
    return (nothing_due && lock.unlock_as_owner()) || unlock_in_turn(nothing_due);
  }
  // Not analysed: see unlock_idle().
  [[gnu::noinline]] bool unlock_in_turn(bool nothing_due) CANELE_LEAVES_LOCK CANELE_NO_THREAD_SAFETY_ANALYSIS {
    if (nothing_due && lock.try_unlock_in_turn()) return true;
    unlock_slowly();
    return false;
  }

  /// Returns whether a posted receive may wait in `posts`: this thread, or another that polls, takes the lock again.
  bool may_look_up_later() const CANELE_UNDER_LOCK { return !driver_set.armed && !progress.worker.active(); }

  // ---- under the lock: engine/ ----------------------------------------------------------------------------------
  void run(Op& op) CANELE_UNDER_LOCK;
  void flush_backlogged() CANELE_UNDER_LOCK;
  void fail_peer(Peer& peer, int error, bool lost, std::string_view reason,
                 DriverInstance* by = nullptr) CANELE_UNDER_LOCK override;
  bool worker_active() const override { return progress.worker.active(); }
  /// Starts tracing, with room for `capacity` events.
  void start_tracing(std::size_t capacity) CANELE_UNDER_LOCK;

  // ---- what it is made of, beside its Context -------------------------------------------------------------------
  Lifecycle lifecycle;
  DriverSet driver_set;
  ProgressState progress;
  WorkerPlacement placement;
  Diagnostics diagnostics;
  ReceivePrefetch receive_prefetch CANELE_LOCKED;  ///< receives on their way to the matcher.
  std::atomic<std::uint32_t> groups_ended{0};      ///< number of groups that have ever ended with an error (any thread)
  PeerWatch peer_watch CANELE_LOCKED;
  std::shared_ptr<void> exchange CANELE_LOCKED;  ///< api::Exchange, made at first use; never replaced
  std::shared_ptr<void> devices;                 ///< device::Devices, made before `has_devices` is set; never replaced
  std::atomic<std::uint64_t> loads_without_devices{0};  ///< libraries loaded when devices were last looked for in vain

 private:
  friend struct EngineBuilder;
  rendezvous::State rendezvous_state_;
  MulticastState multicasts_;
  void unlock_slowly() CANELE_LEAVES_LOCK;
  void call_for_progress();
  void pass_on_linked() CANELE_NOT_UNDER_LOCK;
  void run_or_leave_tasks();
  Peer& first_contact(int to) CANELE_UNDER_LOCK override;
  // Answers to floors below: dispatch.cpp
  Written write_item(Peer& peer, strategies::Item& item, std::byte* out, Packet* staged) CANELE_UNDER_LOCK override;
  void item_sent(strategies::Item& item) CANELE_UNDER_LOCK override;
  void bulk_sent(Peer& peer, Request& request, std::size_t bytes) CANELE_UNDER_LOCK override;
  void destination_closed(Peer& peer, std::size_t index) CANELE_UNDER_LOCK override;
  void rail_failed(Rail& rail) CANELE_UNDER_LOCK override;
  void drop_packet(Rail& rail) CANELE_UNDER_LOCK override;
  Verdict on_chunk(Peer& peer, const wire::Chunk& chunk) CANELE_UNDER_LOCK override;
  std::byte* write_rts(Peer& peer, Request& request, const ChunkToWrite& chunk,
                       const RtrTable::RemoteRtr* remote_rtr) CANELE_UNDER_LOCK override;
  void start_transfer(Request& request, Message& message) CANELE_UNDER_LOCK override;
  void receive_posted(Request& request, Peer& peer) CANELE_UNDER_LOCK override;
  bool withdraw_rtr(Request& request) CANELE_UNDER_LOCK override;
  void forget_rtr(Request& request) CANELE_UNDER_LOCK override;
  void buffered_send_done(Request& request) CANELE_UNDER_LOCK override;
  std::size_t route_size(const Request& send) const CANELE_UNDER_LOCK override;
  std::byte* write_route(const Request& send, std::byte* out) const CANELE_UNDER_LOCK override;
  bool is_read_elsewhere(const Request& send) const CANELE_UNDER_LOCK override;
  const drivers::MemoryKey& segment_key_of(const Request& send) const CANELE_UNDER_LOCK override;
  void forward_paused(Request& forward) CANELE_UNDER_LOCK override;

  explicit Engine(EngineParts parts);
  int step_locked();
  [[gnu::cold]] bool regain_memory();
  void warm();
  void resume_expired();
  std::uint64_t until_expired();
  bool relieve_program();
  std::uint64_t polls_so_far() const;
  std::uint64_t posts_so_far() const;
  std::int64_t count_posts();
  bool goes_on_posting();
  int step_drivers();
  bool arm();  ///< arms the wake-up of every driver; returns whether there is nothing to do
  void disarm();
  std::atomic<std::uint64_t> seen_polls_{0}, seen_posts_{0},
      seen_heartbeats_{0};  ///< of all drivers, and of the worker, as the on-demand thread saw them last
  std::atomic<std::uint64_t> posts_seen_ns_{0};  ///< when it saw the posts
  std::atomic<int> program_unit_{-1};
  std::uint64_t parked_ns_ = 0;  ///< when its worker went to sleep; 0: it did not, or tracing is off
  int run_next_linked(int most) CANELE_UNDER_LOCK;
  void serve_some_linked() CANELE_UNDER_LOCK;
};

/// A handle of the C ABI is the address of its object.
inline Engine& engine_of(canele_engine_t* e) { return *reinterpret_cast<Engine*>(e); }
inline const Engine& engine_of(const canele_engine_t* e) { return *reinterpret_cast<const Engine*>(e); }
inline canele_engine_t* public_of(Engine& e) { return reinterpret_cast<canele_engine_t*>(&e); }

/// The engine of a request or session.
inline Engine& engine_of(Context& context) { return static_cast<Engine&>(context); }
inline const Engine& engine_of(const Context& context) { return static_cast<const Engine&>(context); }

/// Guards a change to the word of a pending request without the lock. As long as one guard lives, no other thread
/// writes a word that is 0 by a plain store. Does nothing if there is no engine.
class RequestWordGuard {
 public:
  explicit RequestWordGuard(Context* context) : engine_(static_cast<Engine*>(context)) {
    if (engine_ == nullptr) return;
    inside_ = engine_->lock.try_lock_as_owner();
    if (!inside_ && engine_->lock.begin_guard()) engine_->revoke_bias();
  }
  ~RequestWordGuard() {
    if (inside_) engine_->unlock();
    if (!inside_ && engine_ != nullptr) engine_->lock.end_guard();
  }
  RequestWordGuard(const RequestWordGuard&) = delete;
  RequestWordGuard& operator=(const RequestWordGuard&) = delete;

 private:
  Engine* engine_;
  bool inside_ = false;  ///< the caller owns the bias, so no other thread writes
};

/// While it lives, the calling thread runs no tasks when it posts. A receive whose message has arrived is then copied
/// by the next thread that makes progress.
class PostOnlyScope {
 public:
  PostOnlyScope() { ++depth; }
  ~PostOnlyScope() { --depth; }
  PostOnlyScope(const PostOnlyScope&) = delete;
  PostOnlyScope& operator=(const PostOnlyScope&) = delete;

  static bool on_this_thread() { return depth != 0; }

 private:
  static constinit thread_local int depth __attribute__((tls_model("initial-exec")));
};

}  // namespace canele::comm

// SPDX-License-Identifier: BSD-3-Clause
//
// Progress: one step of polling, serving drivers and running tasks; and going to sleep without missing an event.
//
// Any thread may call these functions; steps of several threads may overlap.
//
// A system-call driver is polled less often while it receives nothing and another driver is in use. One such poll costs
// more than a whole message through shared memory.
#include <algorithm>

#include "comm/engine/connect.hpp"
#include "comm/engine/engine.hpp"
#include "comm/engine/flush.hpp"
#include "comm/rendezvous/async_get.hpp"
#include "comm/rendezvous/shared_copy.hpp"
#include "ltask/coverage.hpp"
#include "ltask/reserve.hpp"

namespace canele::comm {
namespace {

constexpr int tasks_per_turn = 16;
constexpr std::uint64_t nap_ns = 1'000'000;  // longest sleep if a driver has no wake-up

int serve(DriverInstance& instance, bool poll);
int flush(DriverInstance& instance);

}  // namespace

void Engine::serve_drivers() {
  bool left = false;
  for (DriverInstance* instance : driver_set.system) {
    if (!instance->has_flush()) continue;
    serve(*instance, false);
    left = left || instance->has_flush();
  }
  if (left) [[unlikely]]
    call_for_progress();
}

namespace {

int serve(DriverInstance& instance, bool poll) {
  constexpr int few = 8;                                     // a thread that has posted shall return soon
  if (!instance.call_lock.try_lock_or_delegate()) return 0;  // its holder checks again
  int did = 0;
  do {
    did += flush(instance);
    if (poll) {
      const int events = instance.driver->poll(Engine::packets_per_poll);
      instance.dry_polls.store(events > 0 ? 0 : instance.dry_polls.load(std::memory_order_relaxed) + 1,
                               std::memory_order_relaxed);
      did += events;
    }
    // Flushes what was queued meanwhile, as long as something is handed over. A get for which the driver is full waits
    // in the same list for the next poll.
    int turns = 0;
    for (int more = 1; more > 0 && (poll || ++turns < few) && instance.has_flush(); did += more) more = flush(instance);
  } while (instance.call_lock.unlock_or_repeat());
  return did;
}

/// Hands staged packets to the driver. Called by the holder of `call_lock`.
int flush(DriverInstance& instance) {
  if (!instance.has_flush() && instance.deregistrations.empty())
    return 0;  // taking an empty list would cost an atomic operation
  int count = 0;
  for (Rail* rail = instance.take_flush(); rail != nullptr;) {
    Rail* next = rail->next_flush;  // the rail may be queued again by the end of this iteration
    drivers::Driver& driver = *instance.driver;
    const int rank = rail->peer->rank;
    DriverToken* const token = rail;
    if (rail->transmit == Transmit::connecting) {
      rail->result = driver.connect(rank, rail->address);
    } else {
      Packet& packet = *rail->packet;
      if (!packet.late.empty()) async_get::register_memory(instance, rank, packet);
      rail->result = packet.bulk ? driver.bulk_send(rank, word_of(packet.transfer_id), packet.bulk_offset,
                                                    packet.pieces, packet.piece_count, packet.size, token)
                                 : driver.send_packet(rank, packet.pieces, packet.piece_count, packet.size, token);
    }
    instance.context.submit(rail->sent_op);
    ++count;
    rail = next;
  }
  const std::uint64_t before = instance.staged_sent.load(std::memory_order_relaxed);
  instance.staged_sent.store(before + static_cast<unsigned>(count), std::memory_order_relaxed);
  return count + async_get::serve(instance);
}

/// Returns true if it is this instance's turn to be polled.
bool due(DriverInstance& instance, bool memory_in_use) {
  constexpr unsigned rarely = 64, seldom = 16;
  unsigned interval = 1;
  if (instance.connected_peers.load(std::memory_order_relaxed) == 0) {
    interval = rarely;  // a peer may connect
  } else if (memory_in_use && instance.dry_polls.load(std::memory_order_relaxed) > seldom) {
    interval = seldom;
  }
  const unsigned turn = instance.turns.load(std::memory_order_relaxed);  // a lost increment does not matter
  instance.turns.store(turn + 1, std::memory_order_relaxed);
  return turn % interval == 0;
}

}  // namespace

int Engine::run_tasks() {
  if (callback_depth() != 0 || !has_tasks()) return 0;
  const int did = tasks.run(CANELE_BUGGIFY(one_task) ? 1 : tasks_per_turn);
  ltask::TopologyTaskQueues* const there = progress.topology_queues.load(std::memory_order_acquire);
  return there == nullptr ? did : did + there->run(platform.current_unit(), tasks_per_turn);
}

/// Tries to refill the memory reserve, much of which is used up. Until the system has memory, nothing more is taken
/// from drivers.
bool Engine::regain_memory() {
  if (ltask::memory_reserve.refill()) {
    diagnostics.told_of_no_memory.store(false, std::memory_order_relaxed);
    return true;
  }
  if (!diagnostics.told_of_no_memory.exchange(true, std::memory_order_relaxed))
    log(LogLevel::warning, "the system has no memory: messages wait until there is some");
  platform.yield();
  return false;
}

int Engine::advance() {
  if (ltask::memory_reserve.is_scarce() && !regain_memory()) [[unlikely]]
    return 0;
  int did = step_locked() + step_drivers();
  if (lifecycle.serves_bootstrap) [[unlikely]]
    did += lifecycle.bootstrap->progress(0) ? 1 : 0;
  if (did == 0 && has_tasks()) return 0;  // the caller has tasks to run, so it is not idle
  if (did == 0 && watch.idle_turn()) [[unlikely]]
    diagnostics.check_hang(*this);
  if (did == 0 && progress.deferred_work.any()) [[unlikely]]
    resume_expired();
  if (did == 0 && cache_warmer.on()) [[unlikely]]
    warm();
  return did;
}

std::uint32_t Engine::note_short_wait() {
  const void* const self = platform.this_thread();
  std::uint32_t waits = progress.short_waits.run.load(std::memory_order_relaxed);  // a lost count does not matter
  if (progress.short_waits.thread.load(std::memory_order_relaxed) != self) {
    progress.short_waits.before.store(std::max(progress.short_waits.before.load(std::memory_order_relaxed) / 2, waits),
                                      std::memory_order_relaxed);
    progress.short_waits.thread.store(self, std::memory_order_relaxed);
    waits = 0;
  }
  progress.short_waits.run.store(++waits, std::memory_order_relaxed);
  return waits;
}

// Few threads on a core do best when each communicates with its partner for a while. Many threads must take turns, or
// most of them wait for the scheduler's time slice. A thread that has just got its turn gives its partner time to get
// one, too. Otherwise the two sides run out of phase: each finds messages for its other thread, and yields, just when
// the other side does.
Engine::Spin Engine::plan_spin_beside(int others) {
  constexpr int few = 2, one_switch = 256;
  constexpr std::uint32_t longest_run = 4096, long_run = 16;  // some milliseconds; more than one each
  if (oversubscribed) return {1, others};
  if (!progress.waiters.heuristics.contended()) return {short_spin, others};
  if (others > few) return {0, others};
  const std::uint32_t waits = note_short_wait();
  if (waits >= longest_run) {
    progress.short_waits.run.store(0, std::memory_order_relaxed);
    progress.short_waits.before.store(waits, std::memory_order_relaxed);
    return {0, others};
  }
  const bool catches_up = waits < long_run && progress.short_waits.before.load(std::memory_order_relaxed) >= long_run;
  return catches_up ? Spin{one_switch, 0} : Spin{short_spin, others};  // 0: goes on, whatever it finds
}

void Engine::resume_expired() {
  if (callback_depth() != 0 || progress.deferred_work.earliest_ns() == DeferredWorkList::never) return;
  if (const std::uint64_t now = platform.now_ns(); now >= progress.deferred_work.earliest_ns())
    progress.deferred_work.resume(DeferredWork::Because::expired, now);
}

/// Warms the matcher's memory in the cache. This does not count as progress and does not delay sleep.
void Engine::warm() {
  if (callback_depth() != 0 || !cache_warmer.due(platform.now_ns())) return;
  tasks.submit(cache_warmer);
  tasks.run(1);
}

int Engine::step_locked() {
  if (!try_lock()) return serve_left() ? 1 : 0;
  int did = 0;
  for (DriverInstance* instance : driver_set.polled) did += instance->driver->poll(Engine::packets_per_poll);
  if (!large.deferred_copies.empty()) [[unlikely]]
    shared_copy::start_deferred(*this);
  if (!delayed_rails.empty()) {
    flush_delayed = true;
    for (Rail* rail : delayed_rails) {
      rail->delayed = false;
      mark_backlogged(*rail->peer);
    }
    delayed_rails.clear();
    flush_backlogged();
    flush_delayed = false;
    ++did;
  }
  unlock();
  return did;
}

int Engine::step_drivers() {
  int did = 0;
  for (DriverInstance* instance : driver_set.system) {
    if (due(*instance, driver_set.memory_in_use.load(std::memory_order_relaxed)) || instance->has_flush())
      did += serve(*instance, true);
  }
  return did;
}

bool Engine::arm() {
  if (!try_lock()) return false;  // another thread has the lock
  driver_set.armed = true;
  bool nothing_to_do = delayed_rails.empty() && large.deferred_copies.empty();
  for (DriverInstance* instance : driver_set.memory) nothing_to_do = instance->driver->arm() && nothing_to_do;
  unlock();
  for (DriverInstance* instance : driver_set.system) {
    if (!nothing_to_do) break;
    if (!instance->call_lock.try_lock()) {
      nothing_to_do = false;
      continue;
    }
    nothing_to_do = instance->driver->arm();
    while (instance->call_lock.unlock_or_repeat()) nothing_to_do = false;
  }
  for (DriverInstance* instance : driver_set.system) nothing_to_do = nothing_to_do && !instance->has_flush();
  return nothing_to_do && !has_tasks();
}

/// Checks the drivers that have a descriptor, and processes what is there already. The drivers are not left armed,
/// since no thread would disarm them. A driver that must go to sleep for that (psm2) gives no wake-up; the on-demand
/// thread then finds arrivals at its next poll.
bool Engine::heeds_arrivals() {
  if (callback_depth() != 0) return false;
  for (DriverInstance* instance : driver_set.system) {
    for (int turns = 0; instance->driver->capabilities().wake_up == drivers::WakeUp::descriptor; ++turns) {
      if (turns == 2 || !instance->call_lock.try_lock()) return false;
      const bool nothing_to_do = instance->driver->arm();
      instance->driver->disarm();
      while (instance->call_lock.unlock_or_repeat()) flush(*instance);
      if (nothing_to_do) break;
      serve(*instance, true);
    }
  }
  return true;
}

void Engine::disarm() {
  lock_for_callback();
  driver_set.armed = false;
  for (DriverInstance* instance : driver_set.memory) instance->driver->disarm();
  if (const std::uint64_t since = std::exchange(parked_ns_, 0); since != 0 && event_log != nullptr) {
    event_log->add({since, 0, 0, EventLog::no_peer, EventLog::no_session, Event::worker_parked, 0});
    trace(Event::worker_woken, EventLog::no_peer);
  }
  unlock();
  for (DriverInstance* instance : driver_set.system) {
    if (!instance->call_lock.try_lock()) continue;
    instance->driver->disarm();
    while (instance->call_lock.unlock_or_repeat()) flush(*instance);
  }
}

void Engine::sleep(std::uint64_t timeout_ns, ltask::Called called) {
  if (try_sleep(timeout_ns, called)) return;
  CANELE_COVER(another_sleeps);
  sleeper.await_release(timeout_ns);
}

std::uint64_t Engine::until_expired() {
  const std::uint64_t deadline = progress.deferred_work.earliest_ns();
  if (deadline == DeferredWorkList::never) return deadline;
  const std::uint64_t now = platform.now_ns();
  return deadline > now ? deadline - now : 0;
}

Engine::SleepBegin Engine::begin_sleep() {
  if (!sleeper.try_claim()) return SleepBegin::occupied;
  const bool armed = arm();
  watch.armed(armed);
  if (armed) return SleepBegin::armed;
  end_sleep();
  return SleepBegin::busy;
}

void Engine::end_sleep() {
  disarm();
  for (DriverInstance* instance : driver_set.system)
    instance->turns.store(0, std::memory_order_relaxed);  // all are due: see due()
  sleeper.release();
}

/// Takes the drivers over from a program that sleeps on them. Not for the on-demand thread, which may leave at any time
/// without a word to the program. Returns true if the claim may be free now.
bool Engine::relieve_program() {
  if (progress.on_demand.is_caller()) return false;
  ProgramSleep& sleep = progress.program_sleep;
  if (sleep.sleeper.load(std::memory_order_acquire) == nullptr) return !sleeper.occupied();
  const std::lock_guard guard(sleep.mutex);
  ProgramSleeper* const program = sleep.sleeper.load(std::memory_order_relaxed);
  if (program != nullptr) program->leave();
  return true;
}

bool Engine::try_sleep(std::uint64_t timeout_ns, ltask::Called called) {
  while (!sleeper.try_claim()) {
    if (!relieve_program()) return false;
  }
  const bool armed = arm();
  watch.armed(armed);
  if (armed) {
    CANELE_COVER(slept_armed);
    const bool on_worker = progress.worker.is_caller() || progress.on_demand.is_caller();
    counters.add_shared(on_worker ? Counter::worker_parks : Counter::waiter_parks);
    if (event_log != nullptr && on_worker) parked_ns_ = platform.now_ns();
    sleeper.sleep(std::min({timeout_ns, driver_set.lacks_wakeup ? nap_ns : watch.interval_ns(), until_expired()}),
                  called);
    if (on_worker) counters.add_shared(Counter::worker_wakes);
    wake_on_demand_thread();  // from now on this thread may be stuck
  } else {
    CANELE_COVER(sleep_not_armed);
    platform.yield();  // another thread is at work, or there is work
  }
  end_sleep();
  diagnostics.check_hang(*this);
  return true;
}

}  // namespace canele::comm

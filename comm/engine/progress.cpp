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
#include "comm/rendezvous/async_get.hpp"
#include "comm/rendezvous/shared_copy.hpp"
#include "ltask/mark.hpp"
#include "ltask/reserve.hpp"

namespace canele::comm {
namespace {

constexpr int tasks_per_turn = 16;
constexpr std::uint64_t nap_ns = 1'000'000;  // longest sleep if a driver has no wake-up

/// Hands staged packets to the driver. Called by the holder of the gate.
int flush(DriverSlot& slot) {
  if (!slot.has_flush() && slot.withdrawals.empty()) return 0;  // taking an empty list would cost an atomic operation
  int count = 0;
  for (Rail* rail = slot.take_flush(); rail != nullptr;) {
    Rail* next = rail->next_flush;  // the rail may be queued again by the end of this iteration
    drivers::Driver& driver = *slot.driver;
    const int rank = rail->peer->rank;
    InFlight* const token = rail;
    if (rail->state == Rail::State::connect) {
      rail->result = driver.connect(rank, rail->address);
    } else {
      Packet& packet = *rail->packet;
      if (!packet.late.empty()) fetch::expose(slot, rank, packet);
      rail->result = packet.bulk ? driver.bulk_send(rank, packet.bulk_key, packet.bulk_offset, packet.pieces,
                                                    packet.piece_count, packet.size, token)
                                 : driver.send_packet(rank, packet.pieces, packet.piece_count, packet.size, token);
    }
    slot.context.submit(rail->sent_op);
    ++count;
    rail = next;
  }
  return count + fetch::serve(slot);
}

int serve(DriverSlot& slot, bool poll) {
  if (!slot.gate.enter()) return 0;  // its holder checks again
  int did = 0;
  do {
    did += flush(slot);
    if (poll) {
      const int events = slot.driver->poll(Engine::packets_per_poll);
      slot.dry_polls.store(events > 0 ? 0 : slot.dry_polls.load(std::memory_order_relaxed) + 1,
                           std::memory_order_relaxed);
      did += events;
      // Flushes what was queued meanwhile, as long as something is handed over. A pull for which the driver is full
      // waits in the same list for the next poll.
      for (int more = 1; more > 0 && slot.has_flush(); did += more) more = flush(slot);
    }
  } while (slot.gate.leave());
  return did;
}

/// Returns true if it is this slot's turn to be polled.
bool due(DriverSlot& slot, bool memory_in_use) {
  constexpr unsigned rarely = 64, seldom = 16;
  unsigned interval = 1;
  if (slot.connected_peers.load(std::memory_order_relaxed) == 0) {
    interval = rarely;  // a peer may connect
  } else if (memory_in_use && slot.dry_polls.load(std::memory_order_relaxed) > seldom) {
    interval = seldom;
  }
  const unsigned turn = slot.turns.load(std::memory_order_relaxed);  // a lost increment does not matter
  slot.turns.store(turn + 1, std::memory_order_relaxed);
  return turn % interval == 0;
}

}  // namespace

int Engine::run_tasks() {
  if (callback_depth() != 0 || !has_tasks()) return 0;
  const int did = tasks.run(CANELE_BUGGIFY(one_task) ? 1 : tasks_per_turn);
  ltask::Places* const there = places.load(std::memory_order_acquire);
  return there == nullptr ? did : did + there->run(platform.current_unit(), tasks_per_turn);
}

/// Tries to refill the memory reserve, much of which is used up. Until the system has memory, nothing more is taken
/// from drivers.
bool Engine::regain_memory() {
  if (ltask::memory_reserve.refill()) {
    told_of_no_memory.store(false, std::memory_order_relaxed);
    return true;
  }
  if (!told_of_no_memory.exchange(true, std::memory_order_relaxed))
    log(LogLevel::warning, "the system has no memory: messages wait until there is some");
  platform.yield();
  return false;
}

int Engine::advance() {
  if (ltask::memory_reserve.is_scarce() && !regain_memory()) [[unlikely]]
    return 0;
  int did = step_locked() + step_drivers();
  if (serves_bootstrap) [[unlikely]]
    did += bootstrap->progress(0) ? 1 : 0;
  if (did == 0 && has_tasks()) return 0;  // the caller has tasks to run, so it is not idle
  if (did == 0 && watch.idle_turn()) [[unlikely]]
    check_hang(*this);
  if (did == 0 && put_offs.any()) [[unlikely]]
    resume_overdue();
  if (did == 0 && heater.on()) [[unlikely]]
    warm();
  return did;
}

std::uint32_t Engine::count_row() {
  const void* const self = platform.this_thread();
  std::uint32_t row = in_a_row.load(std::memory_order_relaxed);  // a lost count does not matter
  if (has_row.load(std::memory_order_relaxed) != self) {
    rows_before.store(std::max(rows_before.load(std::memory_order_relaxed) / 2, row), std::memory_order_relaxed);
    has_row.store(self, std::memory_order_relaxed);
    row = 0;
  }
  in_a_row.store(++row, std::memory_order_relaxed);
  return row;
}

// Few threads on a core do best when each communicates with its partner for a while. Many threads must take turns, or
// most of them wait for the scheduler's time slice. A thread that has just got its turn gives its partner time to get
// one, too. Otherwise the two sides run out of phase: each finds messages for its other thread, and yields, just when
// the other side does.
Engine::Spin Engine::plan_spin_beside(int others) {
  constexpr int few = 2, one_switch = 256;
  constexpr std::uint32_t longest_row = 4096, long_row = 16;  // some milliseconds; more than one each
  if (crowded) return {1, others};
  if (!waiters.crowd.contended()) return {short_spin, others};
  if (others > few) return {0, others};
  const std::uint32_t row = count_row();
  if (row >= longest_row) {
    in_a_row.store(0, std::memory_order_relaxed);
    rows_before.store(row, std::memory_order_relaxed);
    return {0, others};
  }
  const bool catches_up = row < long_row && rows_before.load(std::memory_order_relaxed) >= long_row;
  return catches_up ? Spin{one_switch, 0} : Spin{short_spin, others};  // 0: goes on, whatever it finds
}

void Engine::resume_overdue() {
  if (callback_depth() != 0 || put_offs.earliest_ns() == PutOffs::never) return;
  if (const std::uint64_t now = platform.now_ns(); now >= put_offs.earliest_ns())
    put_offs.resume(PutOff::Because::overdue, now);
}

/// Warms the matcher's memory in the cache. This does not count as progress and does not delay sleep.
void Engine::warm() {
  if (callback_depth() != 0 || !heater.due(platform.now_ns())) return;
  tasks.submit(heater);
  tasks.run(1);
}

int Engine::step_locked() {
  if (!try_lock()) return serve_left() ? 1 : 0;
  int did = 0;
  if (!large.deferred.empty()) [[unlikely]]
    shared_copy::start_deferred(*this);
  for (DriverSlot* slot : polled_slots) did += slot->driver->poll(Engine::packets_per_poll);
  if (!lulled.empty()) {
    lulls_over = true;
    for (Rail* rail : lulled) {
      rail->lulled = false;
      mark_dirty(*rail->peer);
    }
    lulled.clear();
    pump_dirty();
    lulls_over = false;
    ++did;
  }
  unlock();
  return did;
}

int Engine::step_drivers() {
  int did = 0;
  for (DriverSlot* slot : system_slots) {
    if (due(*slot, memory_in_use.load(std::memory_order_relaxed)) || slot->has_flush()) did += serve(*slot, true);
  }
  return did;
}

void Engine::serve_drivers() {
  for (DriverSlot* slot : system_slots) {
    if (slot->has_flush()) serve(*slot, false);
  }
}

bool Engine::arm() {
  if (!try_lock()) return false;  // another thread has the lock
  drivers_armed = true;
  bool nothing_to_do = lulled.empty() && large.deferred.empty();
  for (DriverSlot* slot : memory_slots) nothing_to_do = slot->driver->arm() && nothing_to_do;
  unlock();
  for (DriverSlot* slot : system_slots) {
    if (!nothing_to_do) break;
    if (!slot->gate.try_enter()) {
      nothing_to_do = false;
      continue;
    }
    nothing_to_do = slot->driver->arm();
    while (slot->gate.leave()) nothing_to_do = false;
  }
  for (DriverSlot* slot : system_slots) nothing_to_do = nothing_to_do && !slot->has_flush();
  return nothing_to_do && !has_tasks();
}

/// Checks the drivers that have a descriptor, and processes what is there already. The drivers are not left armed,
/// since no thread would disarm them. A driver that must go to sleep for that (psm2) gives no wake-up; the helper then
/// finds arrivals at its next poll.
bool Engine::heeds_arrivals() {
  if (callback_depth() != 0) return false;
  for (DriverSlot* slot : system_slots) {
    for (int turns = 0; slot->driver->capabilities().wake_up == drivers::WakeUp::descriptor; ++turns) {
      if (turns == 2 || !slot->gate.try_enter()) return false;
      const bool nothing_to_do = slot->driver->arm();
      slot->driver->disarm();
      while (slot->gate.leave()) flush(*slot);
      if (nothing_to_do) break;
      serve(*slot, true);
    }
  }
  return true;
}

void Engine::disarm() {
  lock_for_callback();
  drivers_armed = false;
  for (DriverSlot* slot : memory_slots) slot->driver->disarm();
  if (const std::uint64_t since = std::exchange(parked_ns_, 0); since != 0 && event_log != nullptr) {
    event_log->add({since, 0, 0, EventLog::no_peer, EventLog::no_session, Event::worker_parked, 0});
    trace(Event::worker_woken, EventLog::no_peer);
  }
  unlock();
  for (DriverSlot* slot : system_slots) {
    if (!slot->gate.try_enter()) continue;
    slot->driver->disarm();
    while (slot->gate.leave()) flush(*slot);
  }
}

void Engine::sleep(std::uint64_t timeout_ns, ltask::Called called) {
  if (try_sleep(timeout_ns, called)) return;
  CANELE_MARK(another_sleeps);
  sleeper.await_release(timeout_ns);
}

std::uint64_t Engine::until_overdue() {
  const std::uint64_t date = put_offs.earliest_ns();
  if (date == PutOffs::never) return date;
  const std::uint64_t now = platform.now_ns();
  return date > now ? date - now : 0;
}

bool Engine::try_sleep(std::uint64_t timeout_ns, ltask::Called called) {
  if (!sleeper.try_claim()) return false;
  const bool armed = arm();
  watch.armed(armed);
  if (armed) {
    CANELE_MARK(slept_armed);
    const bool on_worker = worker.is_caller() || helper.is_caller();
    counters.add_shared(on_worker ? Counter::worker_parks : Counter::waiter_parks);
    if (event_log != nullptr && on_worker) parked_ns_ = platform.now_ns();
    sleeper.sleep(std::min({timeout_ns, naps_only ? nap_ns : watch.interval_ns(), until_overdue()}), called);
    if (on_worker) counters.add_shared(Counter::worker_wakes);
    rouse_helper();  // from now on this thread may be stuck
  } else {
    CANELE_MARK(sleep_not_armed);
    platform.yield();  // another thread is at work, or there is work
  }
  disarm();
  for (DriverSlot* slot : system_slots) slot->turns.store(0, std::memory_order_relaxed);  // all are due: see due()
  sleeper.release();
  check_hang(*this);
  return true;
}

}  // namespace canele::comm

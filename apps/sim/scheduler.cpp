// SPDX-License-Identifier: BSD-3-Clause
//
// Decides which fiber runs when. One thread.
//
// Small amounts of work are saved up, because a switch for each would cost far more than the work that it simulates.
#include "apps/sim/scheduler.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace canele::sim {
namespace {
constexpr std::uint64_t longest_debt_ns = 400;
constexpr std::uint64_t for_ever = ~std::uint64_t{0};
}  // namespace

Scheduler::Thread& Scheduler::spawn(std::string name, int rank, std::function<void()> body) {
  threads_.push_back(std::make_unique<Thread>());
  Thread& thread = *threads_.back();
  thread.name = std::move(name);
  thread.rank = rank;
  thread.fiber = std::make_unique<Fiber>(std::move(body));
  if (core_for) thread.core = core_for(thread);
  resume_at(thread, timeline_.now() + dice_.under(100));
  return thread;
}

void Scheduler::resume_at(Thread& thread, std::uint64_t time) {
  const auto starved = starved_until_.find(thread.rank);
  if (starved != starved_until_.end()) time = std::max(time, starved->second);
  thread.resumes_at = time;
  timeline_.at(time, [this, &thread, turn = ++thread.turn] {
    if (turn == thread.turn) resume(thread);
  });
}

void Scheduler::resume(Thread& thread) {
  if (thread.killed || thread.done) return;
  thread.waits = false;
  if (!take_turn(thread)) return;
  assert(current_ == nullptr);
  ++switches_;
  current_ = &thread;
  const int outside = locals_.get();
  locals_.set(thread.callback_depth);
  thread.fiber->resume();
  thread.callback_depth = locals_.get();
  locals_.set(outside);
  current_ = nullptr;
  if (thread.fiber->done()) {
    thread.done = true;
    thread.fiber.reset();
    end_turn(thread);
  }
}

/// Takes the core. Returns false if other threads have it; the thread then waits for it.
bool Scheduler::take_turn(Thread& thread) {
  if (thread.core == nullptr) return true;
  Core& core = *thread.core;
  if (thread.has_turn && (timeline_.now() < thread.turn_ends || core.ready.empty())) return true;
  if (!thread.has_turn && core.idle != 0) {
    begin_turn(thread);
    return true;
  }
  core.ready.push_back(&thread);
  end_turn(thread);
  return false;
}

void Scheduler::begin_turn(Thread& thread) {
  --thread.core->idle;
  thread.has_turn = true;
  thread.turn_ends = timeline_.now() + Core::slice_ns;
}

/// Ends the thread's turn, if it has one, and begins the turn of the next thread.
void Scheduler::end_turn(Thread& thread) {
  if (!thread.has_turn) return;
  Core& core = *thread.core;
  thread.has_turn = false;
  ++core.idle;
  if (core.ready.empty()) return;
  Thread& next = *core.ready.front();
  core.ready.pop_front();
  begin_turn(next);
  resume_at(next, timeline_.now());
}

/// Ends the thread's turn after it has worked for `ns` more nanoseconds.
void Scheduler::end_turn_after(Thread& thread, std::uint64_t ns) {
  if (thread.core == nullptr) return;
  thread.core->busy_ns += ns;
  if (ns == 0) return end_turn(thread);
  timeline_.after(ns, [this, &thread, turn = thread.turn] {
    if (turn == thread.turn) end_turn(thread);
  });
}

void Scheduler::release_core(Thread& thread) { thread.fiber->pause(); }

void Scheduler::spend(std::uint64_t ns) {
  if (current_ == nullptr) return;
  Thread& thread = *current_;
  const auto slow = slowness_.find(thread.rank);
  thread.debt_ns += slow == slowness_.end() ? ns : ns * slow->second;
  if (thread.debt_ns > dice_.under(longest_debt_ns)) pause_for(0);
}

void Scheduler::pause_for(std::uint64_t ns) {
  if (current_ == nullptr) return;
  Thread& thread = *current_;
  const std::uint64_t worked = std::exchange(thread.debt_ns, 0);
  resume_at(thread, timeline_.now() + worked + ns);
  if (ns != 0) {
    end_turn_after(thread, worked);
  } else if (thread.core != nullptr) {
    thread.core->busy_ns += worked;
  }
  release_core(thread);
}

void Scheduler::sleep(std::uint64_t timeout_ns, const char* doing) {
  if (current_ == nullptr) return;
  Thread& thread = *current_;
  const std::uint64_t worked = std::exchange(thread.debt_ns, 0), from = timeline_.now() + worked;
  thread.waits = true;
  thread.doing = doing;
  ++thread.turn;
  if (timeout_ns != for_ever) resume_at(thread, timeout_ns > for_ever - from ? for_ever : from + timeout_ns);
  end_turn_after(thread, worked);
  release_core(thread);
  thread.doing = "";
}

void Scheduler::wake(Thread& thread) {
  if (!thread.waits || thread.done || thread.killed) return;
  thread.waits = false;
  resume_at(thread, timeline_.now() + 1 + dice_.under(5000));  // the delay of a kernel's wake-up
}

void Scheduler::kill(int rank) {
  ++kills_[rank];
  for (const auto& thread : threads_) {
    if (thread->rank != rank || thread->done) continue;
    thread->killed = true;
    ++thread->turn;
    if (thread.get() != current_) thread->fiber.reset();
  }
}

void Scheduler::starve(int rank, std::uint64_t ns) {
  const std::uint64_t until = timeline_.now() + ns;
  starved_until_[rank] = std::max(starved_until_[rank], until);
  for (const auto& thread : threads_) {
    const bool ready = thread->rank == rank && !thread->done && !thread->killed && !thread->waits;
    if (ready && thread.get() != current_) resume_at(*thread, std::max(thread->resumes_at, until));
  }
}

std::size_t Scheduler::resident_stacks() const {
  std::size_t sum = 0;
  for (const auto& thread : threads_) sum += thread->fiber ? thread->fiber->resident_stack() : 0;
  return sum;
}

bool Scheduler::run(const std::function<bool()>& done, std::uint64_t until) {
  while (!done()) {
    if (timeline_.empty() || timeline_.next() > until) return false;
    timeline_.step();
  }
  return true;
}

}  // namespace canele::sim

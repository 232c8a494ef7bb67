// SPDX-License-Identifier: BSD-3-Clause
//
// Decides when the on-demand thread (ltask/on_demand_progress.hpp) is needed. It is needed if requests are pending and
// no thread has polled for them since the last check. It is also needed if the worker is inside a callback, or has lost
// its core. Memory and notification slots that other ranks access count as a pending request.
//
// Called by the thread that checks and by the thread that helps, never by both at once.
// Any thread may call relieve_on_demand_thread().
//
// Whether a thread is in the library follows from the drivers' counts of polls, which cost nothing extra. So no call
// reports its begin or end.
#include <algorithm>

#include "comm/engine/engine.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm {

namespace {

/// Posts between two checks. A thread that posts this many will post more. A thread that posts fewer, and then
/// computes, is helped at once. So is one that takes longer than that for each post.
constexpr std::int64_t many_posts = 64;
constexpr std::uint64_t longest_ns_per_post = 50'000;

}  // namespace

std::uint64_t Engine::polls_so_far() const {
  std::uint64_t sum = 0;
  for (const auto& instance : instances) sum += instance->driver->polls();
  return sum;
}

std::uint64_t Engine::posts_so_far() const {
  std::uint64_t sum = counters.read(Counter::lock_taken) + counters.read(Counter::lock_queued);
  // Not posted, but submitted by the thread that has handed them over, which may be the on-demand thread.
  for (const DriverInstance* instance : driver_set.system) sum -= instance->staged_sent.load(std::memory_order_relaxed);
  return sum;
}

/// Returns the posts since the last call.
std::int64_t Engine::count_posts() {
  posts_seen_ns_.store(platform.now_ns(), std::memory_order_relaxed);
  const std::uint64_t so_far = posts_so_far();
  // below 0: a packet counts before its submission does
  return static_cast<std::int64_t>(so_far - seen_posts_.exchange(so_far, std::memory_order_relaxed));
}

bool Engine::goes_on_posting() {
  const std::uint64_t before = seen_posts_.load(std::memory_order_relaxed);
  if (static_cast<std::int64_t>(posts_so_far() - before) < many_posts) return false;
  const std::uint64_t since = posts_seen_ns_.load(std::memory_order_relaxed);
  if (platform.now_ns() - since < many_posts * longest_ns_per_post) return true;
  count_posts();  // few for so long a time: from now on, later ones count
  return false;
}

ltask::ProgressSource::Coverage Engine::check_coverage() {
  const std::uint64_t polls = polls_so_far();
  const bool polled = polls != seen_polls_.exchange(polls, std::memory_order_relaxed);
  if (progress.worker.active()) {
    const std::uint64_t heartbeats = progress.worker.heartbeats();
    const bool moved = heartbeats != seen_heartbeats_.exchange(heartbeats, std::memory_order_relaxed);
    if (progress.worker.state() == ltask::Worker::State::sleeping) return Coverage::guaranteed;
    return moved ? Coverage::recent : Coverage::needed;
  }
  const std::int64_t posted = count_posts();
  if (polled) return Coverage::recent;
  if (progress.waiters.present() != 0) return Coverage::guaranteed;
  return posted >= many_posts || (posted > 0 && CANELE_BUGGIFY(few_posts_are_many)) ? Coverage::poster_polls
                                                                                    : Coverage::needed;
}

/// Returns whether messages are pending, including those of other ranks that pass through this one. Called only after a
/// time without polls, because taking the lock revokes its bias.
bool Engine::unfinished() {
  if (progress.worker.active()) return true;  // the worker would not poll for nothing
  if (!try_lock()) return true;
  const bool unsent = std::any_of(active_peers.begin(), active_peers.end(),
                                  [](const auto& one) { return one->state == Peer::State::up && !one->quiet(); });
  const bool yes = unsent || sessions.pending() != 0 || multicasts.session.pending != 0 || large.active_copies != 0 ||
                   large.buffered_sends != nullptr;
  unlock();
  return yes || has_tasks() || serves_others();
}

bool Engine::others_progress() {
  if (progress.worker.active()) {
    return progress.worker.state() == ltask::Worker::State::sleeping ||
           progress.worker.heartbeats() != seen_heartbeats_.load(std::memory_order_relaxed);
  }
  return progress.waiters.present() != 0 || polls_so_far() != seen_polls_.load(std::memory_order_relaxed);
}

int Engine::help() {
  if (others_progress() || !unfinished()) return -1;
  if (!progress.worker.active() && goes_on_posting()) return -1;  // the next check asks it for a turn instead
  const int did = step();
  seen_polls_.store(polls_so_far(), std::memory_order_relaxed);
  return did;
}

void Engine::has_posted_much() {
  if (!is_urgent()) return;
  // With too few cores for that, another rank computes on any other core.
  const bool may_leave = !oversubscribed && !placement.no_core_for_worker && callback_depth() == 0;
  if (may_leave) program_unit_.store(platform.current_unit(), std::memory_order_relaxed);
  if (progress.on_demand.is_idle()) progress.on_demand.expedite(ltask::OnDemandProgress::Because::something_will_come);
}

void Engine::answer_on_demand_thread() {
  if (!progress.on_demand.notify() || callback_depth() != 0) return;
  CANELE_COVER_RARE(poster_polled);
  step();
}

void Engine::relieve_on_demand_thread() {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // one of the two sees the other; partner: should_stay_awake()
  if (progress.on_demand.asleep()) wake();
}

}  // namespace canele::comm

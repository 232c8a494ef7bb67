// SPDX-License-Identifier: BSD-3-Clause
//
// The on-demand thread's loops: checking, helping, parking.
//
// Without asymmetric fences the on-demand thread never parks, but goes on checking.
#include "ltask/on_demand_progress.hpp"

#include <algorithm>

#include "ltask/asymmetric.hpp"
#include "ltask/coverage.hpp"

namespace canele::ltask {
namespace {

/// Longest nap that serves other ranks beside a thread that polls, in units of the first nap.
constexpr std::uint64_t beside_polls = 4;

}  // namespace

bool OnDemandProgress::start(Kind kind, Pace pace) {
  stop();
  const std::lock_guard guard(mutex_);
  if (kind == Kind::off) return true;
  stopping_.store(false, std::memory_order_relaxed);
  pace_ = pace;
  if (alarm_ == nullptr) {
    alarm_ = platform_.make_alarm();
    const int descriptor = source_.descriptor();
    if (descriptor >= 0) alarm_->watch(descriptor);
  }
  kind_.store(kind, std::memory_order_release);
  if (kind == Kind::idle_cores) helping_ = platform_.start_thread("canele-ondemand", [this] { help_loop(); });
  if (kind != Kind::idle_cores || helping_)
    checking_ = platform_.start_thread("canele-checker", [this] { check_loop(); });
  const bool runs = checking_ != nullptr;
  if (!runs) kind_.store(Kind::off, std::memory_order_release);
  return runs;
}

void OnDemandProgress::stop() {
  const std::lock_guard guard(mutex_);
  if (!checking_ && !helping_) return;
  stopping_.store(true, std::memory_order_seq_cst);
  event_count_.wake(platform_);
  alarm_->set(0);
  source_.wake();
  if (kind() == Kind::idle_cores && checking_) checking_->use_busy_cores();
  checking_.reset();  // joins
  assigned_.store(ended, std::memory_order_release);
  platform_.unpark(assigned_);
  helping_.reset();
  assigned_.store(free, std::memory_order_relaxed);
  idle_.store(false, std::memory_order_relaxed);
  call_.store(Call::none, std::memory_order_relaxed);
  kind_.store(Kind::off, std::memory_order_release);
}

bool OnDemandProgress::is_caller() const noexcept {
  const void* const self = self_.load(std::memory_order_relaxed);
  return self != nullptr && self == platform_.this_thread();
}

bool OnDemandProgress::notify() noexcept { return event_count_.notify(platform_); }

/// Expedites the on-demand thread. This costs a thread that posts long messages, and then waits for them, some system
/// calls. So it is done only while it is useful most of the time, or would have been, as cancel_expedite() finds out.
/// What arrives for the message wakes the on-demand thread, mostly on the core of its sender. Waking the on-demand
/// thread at once, or setting a timer, would cost this core more, and another core, too.
void OnDemandProgress::expedite(Because because) noexcept {
  if (!idle_.exchange(false, std::memory_order_acq_rel)) return;
  posted_ns_.store(platform_.now_ns(), std::memory_order_relaxed);
  if (trust_.load(std::memory_order_relaxed) <= 0) {
    call_.store(Call::spared, std::memory_order_release);
    return;
  }
  const bool is_told = because == Because::something_will_come && kind() == Kind::on_demand && source_.heeds_arrivals();
  source_.check_coverage();  // resets the counts: any later poll shows that a thread makes progress
  call_.store(Call::made, std::memory_order_seq_cst);
  if (!is_told || !alarm_->heed()) alarm_->set(pace_.first_ns / 2);
}

void OnDemandProgress::cancel_expedite() noexcept {
  const Call call = call_.exchange(Call::none, std::memory_order_acq_rel);
  if (call == Call::none) return;
  if (call == Call::spared) {
    constexpr std::uint64_t of_use = 2;  // the on-demand thread would have had half of the time
    if (platform_.now_ns() - posted_ns_.load(std::memory_order_relaxed) > of_use * pace_.first_ns) regain_trust();
  } else {
    CANELE_COVER_RARE(expedite_cancelled);
    if (!alarm_->ignore()) alarm_->set(source_.serves_others() ? beside_polls * pace_.first_ns : pace_.longest_ns);
    trust_.fetch_sub(1, std::memory_order_relaxed);
  }
  idle_.store(true, std::memory_order_release);
}

void OnDemandProgress::regain_trust() noexcept {
  trust_.store(std::min(trust_.load(std::memory_order_relaxed) + use, most_trust), std::memory_order_relaxed);
}

void OnDemandProgress::check_loop() {
  if (kind() == Kind::idle_cores)
    platform_.use_idle_cores_only();
  else
    platform_.set_slice(Worker::turn_ns);
  nap_ns_ = first_ns();
  in_vain_ = 0;
  trust_.store(most_trust, std::memory_order_relaxed);
  avoided_ = -1;
  while (!stopping_.load(std::memory_order_acquire)) {
    nap();
    if (kind() == Kind::idle_cores) avoid_unit(source_.worker_unit(), &avoided_);
    check();
  }
}

std::uint64_t OnDemandProgress::first_ns() const {
  constexpr std::uint64_t if_not_urgent = 8;
  return source_.is_urgent() ? pace_.first_ns : std::min(if_not_urgent * pace_.first_ns, pace_.longest_ns);
}

/// Returns the length of the next nap in nanoseconds. See Pace.
std::uint64_t OnDemandProgress::nap_length() {
  if (expedited()) return pace_.first_ns / 2;
  // A thread that polled a moment ago serves the other processes, and a check would only take its core.
  if (source_.serves_others()) return covered_ ? std::min(nap_ns_, beside_polls * pace_.first_ns) : pace_.first_ns;
  if (nap_ns_ < pace_.longest_ns) return nap_ns_;
  return pace_.longest_ns - platform_.now_ns() % pace_.longest_ns;
}

/// Sleeps until the next check.
void OnDemandProgress::nap() {
  constexpr std::uint64_t much_sooner = 4;
  alarm_->set(nap_length());
  for (bool done = false; !done;) {
    idle_.store(nap_ns_ > much_sooner * pace_.first_ns, std::memory_order_seq_cst);
    if (!stopping_.load(std::memory_order_seq_cst)) alarm_->wait();
    idle_.store(false, std::memory_order_release);
    if (alarm_->has_heard()) stand_back();
    Call made = Call::made;
    const bool called = call_.compare_exchange_strong(made, Call::none, std::memory_order_acq_rel);
    done = called || !alarm_->has_heard() || stopping_.load(std::memory_order_acquire);
    if (!called) continue;
    CANELE_COVER(on_demand_expedited);
    trust_.fetch_sub(1, std::memory_order_relaxed);
    nap_ns_ = first_ns();
  }
}

/// Gives the calling thread time: it may begin to wait at once, and then does all the work itself.
void OnDemandProgress::stand_back() {
  avoid_unit(source_.program_unit(), &avoided_);
  const std::uint64_t until = posted_ns_.load(std::memory_order_relaxed) + pace_.first_ns / 2;
  while (expedited() && is_away() && platform_.now_ns() < until) platform_.yield();
}

/// Returns whether this thread runs on another core than the program.
bool OnDemandProgress::is_away() { return avoided_ >= 0 && platform_.current_unit() != avoided_; }

void OnDemandProgress::check() {
  if (kind() == Kind::timed) return turn();
  lease_.store(platform_.now_ns() + 2 * pace_.longest_ns, std::memory_order_relaxed);
  if (assigned_.load(std::memory_order_acquire) == helps) {
    nap_ns_ = pace_.longest_ns;
    return;
  }
  const ProgressSource::Coverage coverage = source_.check_coverage();
  covered_ = coverage == ProgressSource::Coverage::recent;
  if (coverage == ProgressSource::Coverage::needed && has_work()) {
    in_vain_ = rests_ = 0;
    const bool helped = kind() == Kind::idle_cores || help();
    if (helped) regain_trust();
    nap_ns_ = helped ? first_ns() : pace_.longest_ns;
    return;
  }
  if (coverage == ProgressSource::Coverage::poster_polls) {
    event_count_.ask_for_turn();
    in_vain_ = 0;
    return;
  }
  if (coverage == ProgressSource::Coverage::recent)
    in_vain_ = 0;
  else if (nap_ns_ == pace_.longest_ns)
    ++in_vain_;
  constexpr int many_rests = 64;
  if (nap_ns_ == pace_.longest_ns && kind() == Kind::on_demand && ++rests_ % many_rests == 0)
    avoid_unit(-1, &avoided_);  // the program may be elsewhere now
  nap_ns_ = std::min(2 * nap_ns_, pace_.longest_ns);
  if (in_vain_ < pace_.patience) return;
  park();
  nap_ns_ = first_ns();
  in_vain_ = 0;
}

/// Returns whether there is something to do. On idle cores it asks the other thread, which then helps.
bool OnDemandProgress::has_work() {
  if (kind() != Kind::idle_cores) return source_.unfinished();
  assigned_.store(asked, std::memory_order_release);
  platform_.unpark(assigned_);
  while (assigned_.load(std::memory_order_acquire) == asked) platform_.park(assigned_, asked, Worker::longest_sleep_ns);
  return answer_.load(std::memory_order_relaxed);
}

void OnDemandProgress::turn() {
  self_.store(platform_.this_thread(), std::memory_order_relaxed);
  source_.step();
  self_.store(nullptr, std::memory_order_relaxed);
}

void OnDemandProgress::park() {
  if (!AsymmetricFences::available()) return;
  event_count_.await(platform_, Worker::longest_sleep_ns, [this] {
    if (stopping_.load(std::memory_order_acquire)) return false;
    const ProgressSource::Coverage coverage = source_.check_coverage();
    if (coverage == ProgressSource::Coverage::recent || (coverage == ProgressSource::Coverage::needed && has_work()))
      return false;
    CANELE_COVER(on_demand_parked);
    return true;
  });
}

void OnDemandProgress::help_loop() {
  platform_.set_slice(Worker::turn_ns);
  int avoided = -1;
  while (assigned_.load(std::memory_order_acquire) != ended) {  // the asking thread gets an answer
    avoid_unit(source_.worker_unit(), &avoided);
    platform_.park(assigned_, free, Worker::longest_sleep_ns);
    if (assigned_.load(std::memory_order_acquire) != asked) continue;
    const bool needed = source_.unfinished();
    answer_.store(needed, std::memory_order_relaxed);
    assigned_.store(needed ? helps : free, std::memory_order_release);
    platform_.unpark(assigned_);
    if (!needed) continue;
    help();
    std::uint32_t expected = helps;
    assigned_.compare_exchange_strong(expected, free, std::memory_order_acq_rel);
  }
}

/// Keeps the calling thread off a unit (-1: off none). *avoided is the unit that it kept off before. Without this,
/// where cores share no cache, the scheduler may let the helping thread wait behind a callback. Or it may take the core
/// from a compute thread although another core is idle.
void OnDemandProgress::avoid_unit(int unit, int* avoided) {
  if (unit != *avoided) platform_.keep_off_unit(*avoided = unit);
}

/// Moves off the program's unit, and yields until a core is idle. Beside a compute thread, each step would be at that
/// thread's expense. A yield gives it the rest of this turn, some milliseconds, or the next yield does. On a core that
/// is idle, or whose threads only wait, a yield returns at once.
void OnDemandProgress::find_idle_core() {
  constexpr int yields = 3;
  avoid_unit(source_.program_unit(), &avoided_);
  for (int i = 0; i < yields && is_away(); ++i) platform_.yield();
}

bool OnDemandProgress::may_help() {
  if (stopping_.load(std::memory_order_acquire)) return false;
  return kind() != Kind::idle_cores || platform_.now_ns() < lease_.load(std::memory_order_relaxed);
}

bool OnDemandProgress::should_stay_awake() const {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // after asleep_; partner: Engine::relieve_on_demand_thread()
  return stopping_.load(std::memory_order_acquire) || source_.others_progress();
}

/// Helps until it is not needed. Returns false if it was not needed any more from the beginning.
bool OnDemandProgress::help() {
  CANELE_COVER(on_demand_helps);
  self_.store(platform_.this_thread(), std::memory_order_relaxed);
  // On the program's own core each step is at the program's expense, while another core may be idle.
  if (kind() == Kind::on_demand) find_idle_core();
  Idle idle(platform_, budget_, contention_);
  const auto stay_awake = [](const void* self) {
    return static_cast<const OnDemandProgress*>(self)->should_stay_awake();
  };
  bool helped = false;
  for (int did = 0; may_help() && (did = source_.help()) >= 0; helped = true) {
    if (did > 0) {
      idle.worked();
    } else if (idle.next() == Idle::Action::sleep) {
      CANELE_COVER(on_demand_sleeps);
      contention_.return_to_home_unit(platform_);
      asleep_.store(true, std::memory_order_seq_cst);
      source_.sleep(Worker::longest_sleep_ns, {stay_awake, this});
      asleep_.store(false, std::memory_order_seq_cst);
    }
  }
  self_.store(nullptr, std::memory_order_relaxed);
  return helped;
}

}  // namespace canele::ltask

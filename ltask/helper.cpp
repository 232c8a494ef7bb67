// SPDX-License-Identifier: BSD-3-Clause
//
// The helper's loops: checking, helping, parking.
//
// Without asymmetric fences the helper never parks, but goes on checking.
#include "ltask/helper.hpp"

#include <algorithm>

#include "ltask/asymmetric.hpp"
#include "ltask/mark.hpp"

namespace canele::ltask {

bool Helper::start(Kind kind, Pace pace) {
  stop();
  const std::lock_guard guard(mutex_);
  if (kind == Kind::off) return true;
  stopping_.store(false, std::memory_order_relaxed);
  pace_ = pace;
  if (alarm_ == nullptr) {
    alarm_ = platform_.make_alarm();
    const int descriptor = helped_.descriptor();
    if (descriptor >= 0) alarm_->watch(descriptor);
  }
  kind_.store(kind, std::memory_order_release);
  if (kind == Kind::idle_cores) helping_ = platform_.start_thread("canele-helper", [this] { help_loop(); });
  if (kind != Kind::idle_cores || helping_) looking_ = platform_.start_thread("canele-looker", [this] { look_loop(); });
  const bool runs = looking_ != nullptr;
  if (!runs) kind_.store(Kind::off, std::memory_order_release);
  return runs;
}

void Helper::stop() {
  const std::lock_guard guard(mutex_);
  if (!looking_ && !helping_) return;
  stopping_.store(true, std::memory_order_seq_cst);
  summons_.rouse(platform_);
  alarm_->set(0);
  helped_.wake();
  if (kind() == Kind::idle_cores && looking_) looking_->use_busy_cores();
  looking_.reset();  // joins
  assigned_.store(ended, std::memory_order_release);
  platform_.unpark(assigned_);
  helping_.reset();
  assigned_.store(free, std::memory_order_relaxed);
  dozes_.store(false, std::memory_order_relaxed);
  call_.store(Call::none, std::memory_order_relaxed);
  kind_.store(Kind::off, std::memory_order_release);
}

bool Helper::is_caller() const noexcept {
  const void* const self = self_.load(std::memory_order_relaxed);
  return self != nullptr && self == platform_.this_thread();
}

bool Helper::summon() noexcept { return summons_.summon(platform_); }

/// Hastens the helper. This costs a thread that posts long messages, and then waits for them, some system calls. So it
/// is done only while it is useful most of the time, or would have been, as relent() finds out. What arrives for the
/// message wakes the helper, mostly on the core of its sender. Waking the helper at once, or setting a timer, would
/// cost this core more, and another core, too.
void Helper::hasten(Because because) noexcept {
  if (!dozes_.exchange(false, std::memory_order_acq_rel)) return;
  posted_ns_.store(platform_.now_ns(), std::memory_order_relaxed);
  if (trust_.load(std::memory_order_relaxed) <= 0) {
    call_.store(Call::spared, std::memory_order_release);
    return;
  }
  const bool is_told = because == Because::something_will_come && kind() == Kind::on_demand && helped_.heeds_arrivals();
  helped_.look();  // resets the counts: any later poll shows that a thread attends
  call_.store(Call::made, std::memory_order_seq_cst);
  if (!is_told || !alarm_->heed()) alarm_->set(pace_.first_ns / 2);
}

void Helper::relent() noexcept {
  const Call call = call_.exchange(Call::none, std::memory_order_acq_rel);
  if (call == Call::none) return;
  if (call == Call::spared) {
    constexpr std::uint64_t of_use = 2;  // the helper would have had half of the time
    if (platform_.now_ns() - posted_ns_.load(std::memory_order_relaxed) > of_use * pace_.first_ns) regain_trust();
  } else {
    CANELE_RARE_MARK(helper_relented);
    if (!alarm_->ignore()) alarm_->set(pace_.longest_ns);
    trust_.fetch_sub(1, std::memory_order_relaxed);
  }
  dozes_.store(true, std::memory_order_release);
}

void Helper::regain_trust() noexcept {
  trust_.store(std::min(trust_.load(std::memory_order_relaxed) + use, most_trust), std::memory_order_relaxed);
}

void Helper::look_loop() {
  if (kind() == Kind::idle_cores)
    platform_.use_idle_cores_only();
  else
    platform_.set_slice(Worker::turn_ns);
  nap_ns_ = first_ns();
  in_vain_ = 0;
  trust_.store(most_trust, std::memory_order_relaxed);
  left_ = -1;
  while (!stopping_.load(std::memory_order_acquire)) {
    nap();
    if (kind() == Kind::idle_cores) leave(helped_.worker_unit(), &left_);
    look();
  }
}

std::uint64_t Helper::first_ns() const {
  constexpr std::uint64_t without_haste = 8;
  return helped_.in_haste() ? pace_.first_ns : std::min(without_haste * pace_.first_ns, pace_.longest_ns);
}

/// Returns the length of the next nap in nanoseconds. See Pace.
std::uint64_t Helper::nap_length() {
  if (hastened()) return pace_.first_ns / 2;
  if (nap_ns_ < pace_.longest_ns) return nap_ns_;
  return pace_.longest_ns - platform_.now_ns() % pace_.longest_ns;
}

/// Sleeps until the next check.
void Helper::nap() {
  constexpr std::uint64_t much_sooner = 4;
  alarm_->set(nap_length());
  for (bool over = false; !over;) {
    dozes_.store(nap_ns_ > much_sooner * pace_.first_ns, std::memory_order_seq_cst);
    if (!stopping_.load(std::memory_order_seq_cst)) alarm_->wait();
    dozes_.store(false, std::memory_order_release);
    if (alarm_->has_heard()) stand_back();
    Call made = Call::made;
    const bool called = call_.compare_exchange_strong(made, Call::none, std::memory_order_acq_rel);
    over = called || !alarm_->has_heard() || stopping_.load(std::memory_order_acquire);
    if (!called) continue;
    CANELE_MARK(helper_hastened);
    trust_.fetch_sub(1, std::memory_order_relaxed);
    nap_ns_ = first_ns();
  }
}

/// Gives the calling thread time: it may begin to wait at once, and then does all the work itself.
void Helper::stand_back() {
  leave(helped_.program_unit(), &left_);
  const std::uint64_t until = posted_ns_.load(std::memory_order_relaxed) + pace_.first_ns / 2;
  while (hastened() && is_away() && platform_.now_ns() < until) platform_.yield();
}

/// Returns whether this thread runs on another core than the program.
bool Helper::is_away() { return left_ >= 0 && platform_.current_unit() != left_; }

void Helper::look() {
  if (kind() == Kind::timed) return turn();
  lease_.store(platform_.now_ns() + 2 * pace_.longest_ns, std::memory_order_relaxed);
  if (assigned_.load(std::memory_order_acquire) == helps) {
    nap_ns_ = pace_.longest_ns;
    return;
  }
  const Helped::Sight sight = helped_.look();
  if (sight == Helped::Sight::unattended && needed()) {
    in_vain_ = rests_ = 0;
    const bool helped = kind() == Kind::idle_cores || help();
    if (helped) regain_trust();
    nap_ns_ = helped ? first_ns() : pace_.longest_ns;
    return;
  }
  if (sight == Helped::Sight::in_passing) {
    summons_.ask_for_turn();
    in_vain_ = 0;
    return;
  }
  if (sight == Helped::Sight::attended)
    in_vain_ = 0;
  else if (nap_ns_ == pace_.longest_ns)
    ++in_vain_;
  constexpr int many_rests = 64;
  if (nap_ns_ == pace_.longest_ns && kind() == Kind::on_demand && ++rests_ % many_rests == 0)
    leave(-1, &left_);  // the program may be elsewhere now
  nap_ns_ = std::min(2 * nap_ns_, pace_.longest_ns);
  if (in_vain_ < pace_.patience) return;
  park();
  nap_ns_ = first_ns();
  in_vain_ = 0;
}

/// Returns whether there is something to do. On idle cores it asks the other thread, which then helps.
bool Helper::needed() {
  if (kind() != Kind::idle_cores) return helped_.unfinished();
  assigned_.store(asked, std::memory_order_release);
  platform_.unpark(assigned_);
  while (assigned_.load(std::memory_order_acquire) == asked) platform_.park(assigned_, asked, Worker::longest_sleep_ns);
  return answer_.load(std::memory_order_relaxed);
}

void Helper::turn() {
  self_.store(platform_.this_thread(), std::memory_order_relaxed);
  helped_.step();
  self_.store(nullptr, std::memory_order_relaxed);
}

void Helper::park() {
  if (!AsymmetricFences::available()) return;
  summons_.await(platform_, Worker::longest_sleep_ns, [this] {
    if (stopping_.load(std::memory_order_acquire)) return false;
    const Helped::Sight sight = helped_.look();
    if (sight == Helped::Sight::attended || (sight == Helped::Sight::unattended && needed())) return false;
    CANELE_MARK(helper_parked);
    return true;
  });
}

void Helper::help_loop() {
  platform_.set_slice(Worker::turn_ns);
  int left = -1;
  while (assigned_.load(std::memory_order_acquire) != ended) {  // the asking thread gets an answer
    leave(helped_.worker_unit(), &left);
    platform_.park(assigned_, free, Worker::longest_sleep_ns);
    if (assigned_.load(std::memory_order_acquire) != asked) continue;
    const bool needed = helped_.unfinished();
    answer_.store(needed, std::memory_order_relaxed);
    assigned_.store(needed ? helps : free, std::memory_order_release);
    platform_.unpark(assigned_);
    if (!needed) continue;
    help();
    std::uint32_t expected = helps;
    assigned_.compare_exchange_strong(expected, free, std::memory_order_acq_rel);
  }
}

/// Keeps the calling thread off a unit (-1: off none). *left is the unit that it kept off before. Without this, where
/// cores share no cache, the scheduler may let the helping thread wait behind a callback. Or it may take the core from
/// a compute thread although another core is idle.
void Helper::leave(int unit, int* left) {
  if (unit != *left) platform_.keep_off_unit(*left = unit);
}

/// Moves off the program's unit, and yields until a core is idle. Beside a compute thread, each step would be at that
/// thread's expense. A yield gives it the rest of this turn, some milliseconds, or the next yield does. On a core that
/// is idle, or whose threads only wait, a yield returns at once.
void Helper::find_idle_core() {
  constexpr int yields = 3;
  leave(helped_.program_unit(), &left_);
  for (int i = 0; i < yields && is_away(); ++i) platform_.yield();
}

bool Helper::may_help() {
  if (stopping_.load(std::memory_order_acquire)) return false;
  return kind() != Kind::idle_cores || platform_.now_ns() < lease_.load(std::memory_order_relaxed);
}

bool Helper::should_stay_awake() const {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // after asleep_; partner: Engine::relieve_helper()
  return stopping_.load(std::memory_order_acquire) || helped_.others_progress();
}

/// Helps until it is not needed. Returns false if it was not needed any more from the beginning.
bool Helper::help() {
  CANELE_MARK(helper_helps);
  self_.store(platform_.this_thread(), std::memory_order_relaxed);
  // On the program's own core each step is at the program's expense, while another core may be idle.
  if (kind() == Kind::on_demand) find_idle_core();
  Idle idle(platform_, budget_, pressure_);
  const auto stay_awake = [](const void* self) { return static_cast<const Helper*>(self)->should_stay_awake(); };
  bool helped = false;
  for (int did = 0; may_help() && (did = helped_.help()) >= 0; helped = true) {
    if (did > 0) {
      idle.worked();
    } else if (idle.next() == Idle::Action::sleep) {
      CANELE_MARK(helper_sleeps);
      pressure_.go_home(platform_);
      asleep_.store(true, std::memory_order_seq_cst);
      helped_.sleep(Worker::longest_sleep_ns, {stay_awake, this});
      asleep_.store(false, std::memory_order_seq_cst);
    }
  }
  self_.store(nullptr, std::memory_order_relaxed);
  return helped;
}

}  // namespace canele::ltask

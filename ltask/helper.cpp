// SPDX-License-Identifier: BSD-3-Clause
//
// The helper's loops: looking, helping, parking. Threads: see helper.hpp.
// Surprise: where asymmetric fences are not to be had it never parks, but goes on looking.
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
  helped_.wake();
  if (kind() == Kind::idle_cores && looking_) looking_->use_busy_cores();
  looking_.reset();  // joins
  assigned_.store(ended, std::memory_order_release);
  platform_.unpark(assigned_);
  helping_.reset();
  assigned_.store(free, std::memory_order_relaxed);
  kind_.store(Kind::off, std::memory_order_release);
}

bool Helper::is_caller() const noexcept {
  const void* const self = self_.load(std::memory_order_relaxed);
  return self != nullptr && self == platform_.this_thread();
}

void Helper::summon() noexcept {
  if (dozes_.load(std::memory_order_relaxed) && dozes_.exchange(false, std::memory_order_acq_rel))
    summons_.rouse(platform_);
  summons_.summon(platform_);
}

void Helper::look_loop() {
  if (kind() == Kind::idle_cores)
    platform_.use_idle_cores_only();
  else
    platform_.set_slice(Worker::turn_ns);
  nap_ns_ = pace_.first_ns;
  in_vain_ = 0;
  trust_ = most_trust;
  while (!stopping_.load(std::memory_order_acquire)) {
    if (!nap()) look();
  }
}

/// Until the next look; true: it was summoned. Summons that were of no use cost those who post long messages, and then
/// wait for them, a system call each: so only as long as most of them are of use.
bool Helper::nap() {
  const bool may_be_summoned = nap_ns_ > pace_.first_ns && trust_ > 0;
  dozes_.store(may_be_summoned, std::memory_order_release);
  summons_.nap(platform_, nap_ns_);
  if (!may_be_summoned || dozes_.exchange(false, std::memory_order_acq_rel)) return false;
  CANELE_MARK(helper_summoned);
  --trust_;
  nap_ns_ = pace_.first_ns;
  helped_.look();  // who polls from now on attends
  return true;
}

void Helper::look() {
  if (kind() == Kind::timed) return turn();
  lease_.store(platform_.now_ns() + 2 * pace_.longest_ns, std::memory_order_relaxed);
  if (assigned_.load(std::memory_order_acquire) == helps) {
    nap_ns_ = pace_.longest_ns;
    return;
  }
  const Helped::Sight sight = helped_.look();
  if (sight == Helped::Sight::unattended && needed()) {
    if (kind() != Kind::idle_cores) help();
    trust_ = std::min(trust_ + use, most_trust);
    nap_ns_ = pace_.first_ns;
    in_vain_ = 0;
    return;
  }
  if (sight == Helped::Sight::attended)
    in_vain_ = 0;
  else if (nap_ns_ == pace_.longest_ns)
    ++in_vain_;
  nap_ns_ = std::min(2 * nap_ns_, pace_.longest_ns);
  if (in_vain_ < pace_.patience) return;
  park();
  nap_ns_ = pace_.first_ns;
  in_vain_ = 0;
}

/// Is there something to do? On idle cores the other thread is asked, which then helps.
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
  while (assigned_.load(std::memory_order_acquire) != ended) {  // who has asked gets an answer
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

bool Helper::may_help() {
  if (stopping_.load(std::memory_order_acquire)) return false;
  return kind() != Kind::idle_cores || platform_.now_ns() < lease_.load(std::memory_order_relaxed);
}

bool Helper::should_stay_awake() const {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // after asleep_, see Engine::relieve_helper()
  return stopping_.load(std::memory_order_acquire) || helped_.others_progress();
}

void Helper::help() {
  CANELE_MARK(helper_helps);
  self_.store(platform_.this_thread(), std::memory_order_relaxed);
  Idle idle(platform_, budget_, pressure_);
  const auto stay_awake = [](const void* self) { return static_cast<const Helper*>(self)->should_stay_awake(); };
  for (int did = 0; may_help() && (did = helped_.help()) >= 0;) {
    if (did > 0) {
      idle.worked();
    } else if (idle.next() == Idle::Action::sleep) {
      CANELE_MARK(helper_sleeps);
      asleep_.store(true, std::memory_order_seq_cst);
      helped_.sleep(Worker::longest_sleep_ns, {stay_awake, this});
      asleep_.store(false, std::memory_order_seq_cst);
    }
  }
  self_.store(nullptr, std::memory_order_relaxed);
}

}  // namespace canele::ltask

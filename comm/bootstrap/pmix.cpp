// SPDX-License-Identifier: BSD-3-Clause
//
// The PMIx client. pmix_shared.hpp has what its threads share.
//
// Every call that may wait for the launcher runs with a time limit, because libpmix retries a dead server for a long
// time.
#include "comm/bootstrap/pmix.hpp"

#ifndef CANELE_HAVE_PMIX

namespace canele::comm {

std::unique_ptr<ProcessBootstrap> join_pmix(Platform&, std::uint64_t, std::string* why) {
  *why =
      "started by a PMIx launcher (PMIX_NAMESPACE is set), but this build has no PMIx: install libpmix-dev, build "
      "again";
  return nullptr;
}

}  // namespace canele::comm

#else

#include <pmix.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "comm/bootstrap/bounded.hpp"
#include "comm/bootstrap/limits.hpp"
#include "comm/bootstrap/pmix_calls.hpp"
#include "comm/bootstrap/pmix_shared.hpp"

namespace canele::comm {
namespace {

class PmixBootstrap final : public ProcessBootstrap {
 public:
  PmixBootstrap(Platform& platform, Joined joined)
      : platform_(platform),
        me_(std::move(joined.membership)),
        shared_(std::move(joined.shared)),
        watch_(std::move(joined.watch)) {
    // A plain pointer: a shared one would keep Shared alive for ever.
    shared_->ask_launcher = [shared = shared_.get(), me = me_](std::uint64_t number, int rank, const std::string& key,
                                                               std::uint64_t left) {
      start_get(shared->shared_from_this(), number, me, rank, key, left);
    };
    clock_ = platform.start_thread("canele-clock", [shared = shared_] { shared->run_clock(); });
  }
  ~PmixBootstrap() override { stop(); }

  bool has_clock() const { return clock_ != nullptr; }

  std::string_view name() const override { return "pmix"; }
  int rank() const override { return me_.rank; }
  int size() const override { return me_.size; }
  int local_rank() const override { return me_.local_rank; }
  int local_size() const override { return me_.local_size; }
  std::uint64_t job() const override { return fingerprint(me_.job); }
  const std::string& host() const override { return me_.host; }

  bool put(std::string_view key, const Blob& blob, std::string* why) override {
    return check_entry(key, blob.size(), why) && put_blob(key, blob, why);
  }
  bool commit_and_fence(std::uint64_t timeout_ns, std::string* why) override { return fence(timeout_ns, why); }
  bool fence(std::uint64_t timeout_ns, std::string* why) override;
  void get(int rank, std::string_view key, std::uint64_t timeout_ns, Deliver deliver) override;
  void on_failure(std::function<void(int)> died) override;
  bool has_died(int rank) const override {
    const std::lock_guard lock(shared_->mutex);
    return shared_->dead.contains(rank);
  }
  void abort(int code, std::string_view reason) override;
  void finalize() override;
  /// Does nothing: a process can leave libpmix only once, and the next engine must find it.
  void rest() override {}
  bool resume(std::uint64_t timeout_ns, std::string* why) override;

 private:
  std::string who_is_missing(std::uint64_t number, std::uint64_t until);
  std::string who_has_died();
  std::string explain(int status, std::uint64_t number, std::uint64_t until);
  void stop();

  Platform& platform_;
  Membership me_;
  std::shared_ptr<Shared> shared_;
  std::unique_ptr<PlatformThread> clock_;
  std::shared_ptr<Watch> watch_;
  bool fence_failed_ = false;
  bool disconnected_ = false;
};

/// Waits for all ranks. Most of the time is for the fence, and a little to find out which ranks are missing.
bool PmixBootstrap::fence(std::uint64_t timeout_ns, std::string* why) {
  if (me_.size == 1) return true;
  if (fence_failed_) {  // libpmix still holds the old fence, and would take a new one for it
    *why = failed_fence;
    return false;
  }
  if (std::string loss = who_has_died(); !loss.empty()) {
    *why = loss;
    return false;
  }
  const std::uint64_t until = deadline_after(platform_, timeout_ns);
  const std::uint64_t fence_until = until - std::min(survey_of(me_.size), timeout_ns / 2);
  std::uint64_t number;
  {
    const std::lock_guard lock(shared_->mutex);
    number = ++shared_->fence;
  }
  fence_failed_ = true;
  const Blob mark = {std::byte{1}};
  if (!put_blob(fence_key(number), mark, why)) return false;
  int status = start_fence(shared_, number, fence_until);
  if (status == PMIX_SUCCESS) {
    shared_->changed.wait(fence_until, [&] {
      const std::lock_guard lock(shared_->mutex);
      return shared_->fence_ended == number || !shared_->dead.empty() || shared_->launcher_lost;
    });
    const std::lock_guard lock(shared_->mutex);
    status = shared_->fence_ended == number ? shared_->fence_status : PMIX_ERR_TIMEOUT;
  }
  if (status == PMIX_SUCCESS || status == PMIX_ERR_OUT_OF_RESOURCE) fence_failed_ = false;
  if (status == PMIX_SUCCESS) return true;
  if (status == PMIX_ERR_OUT_OF_RESOURCE) {
    *why = std::string("the launcher cannot be asked: ") + no_thread_text;
    return false;
  }
  *why = explain(status, number, until);
  return false;
}

std::string PmixBootstrap::explain(int status, std::uint64_t number, std::uint64_t until) {
  if (std::string loss = who_has_died(); !loss.empty()) return loss;
  const std::string missing = who_is_missing(number, until);
  // libpmix may end a fence because of a rank's death before the launcher has reported the death.
  if (std::string loss = who_has_died(); !loss.empty()) return loss;
  if (status == PMIX_ERR_TIMEOUT) return missing;
  return missing + " (" + PMIx_Error_string(status) + ")";
}

/// Returns which ranks have died; "" if no death is known.
std::string PmixBootstrap::who_has_died() {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->launcher_lost) return lost_launcher;
  if (shared_->dead.empty()) return {};
  const std::vector<int> dead(shared_->dead.begin(), shared_->dead.end());
  return list_ranks(dead) + (dead.size() == 1 ? " has" : " have") + " died";
}

/// Asks the launcher's server, for each rank, whether the rank has entered this fence.
std::string PmixBootstrap::who_is_missing(std::uint64_t number, std::uint64_t until) {
  start_survey(shared_, number, fence_key(number), me_);
  const std::uint64_t soon = std::min(until, deadline_after(platform_, survey_of(me_.size)));
  shared_->changed.wait(soon, [this] {
    const std::lock_guard lock(shared_->mutex);
    return shared_->survey_left == 0 || !shared_->dead.empty() || shared_->launcher_lost;
  });
  std::vector<int> missing;
  const std::lock_guard lock(shared_->mutex);
  for (int rank = 0; rank < me_.size; ++rank)
    if (rank != me_.rank && !shared_->arrived.contains(rank)) missing.push_back(rank);
  if (missing.empty()) return "all ranks have come, but the launcher has not confirmed it in the time given";
  const std::size_t here = static_cast<std::size_t>(me_.size) - missing.size();
  const bool sure = shared_->survey_left == 0;  // else the launcher was too slow: claim nothing
  return "only " + std::to_string(here) + " of " + std::to_string(me_.size) +
         (sure ? " ranks have come; " : " ranks are known to have come; ") + list_ranks(missing) +
         (!sure                 ? " may be"
          : missing.size() == 1 ? " is"
                                : " are") +
         " missing";
}

void PmixBootstrap::get(int rank, std::string_view key, std::uint64_t timeout_ns, Deliver deliver) {
  if (rank < 0 || rank >= me_.size)
    return deliver(false, {}, "there is no rank " + std::to_string(rank) + " in a job of " + std::to_string(me_.size));
  const std::uint64_t number =
      shared_->ask({rank, std::string(key), std::move(deliver)}, deadline_after(platform_, timeout_ns));
  bool dead, launcher_lost;
  {
    // After the question, so that a death meanwhile is noticed here or by report_death().
    const std::lock_guard lock(shared_->mutex);
    dead = shared_->dead.contains(rank);
    launcher_lost = shared_->launcher_lost;
  }
  if (dead || launcher_lost)
    return shared_->answer(number, false, {},
                           dead ? "rank " + std::to_string(rank) + " has died" : std::string(lost_launcher));
  start_get(shared_, number, me_, rank, key, timeout_ns);
}

void PmixBootstrap::on_failure(std::function<void(int)> died) {
  std::vector<int> already;
  {
    const std::lock_guard lock(shared_->mutex);
    assert(!shared_->died && "at most one handler");
    shared_->died = died;
    already.assign(shared_->dead.begin(), shared_->dead.end());
  }
  for (const int rank : already) died(rank);
}

void PmixBootstrap::abort(int code, std::string_view reason) {
  platform_.log(LogLevel::error, "the job ends with code " + std::to_string(code) + ": " + std::string(reason));
  run_bounded_or_here(platform_, "canele-abort", goodbye_of(me_.size),
                      [code, text = std::string(reason)] { PMIx_Abort(code, text.c_str(), nullptr, 0); });
}

bool PmixBootstrap::resume(std::uint64_t, std::string* why) {
  *why = fence_failed_ ? std::string(failed_fence) : who_has_died();
  return why->empty();
}

void PmixBootstrap::finalize() {
  if (disconnected_) return;
  disconnected_ = true;
  stop();
  const Bounded how =
      run_bounded_or_here(platform_, "canele-finalize", goodbye_of(me_.size), [] { PMIx_Finalize(nullptr, 0); });
  if (how == Bounded::ended && PMIx_Initialized() == 0) shared_->drop_calls();
}

/// Stops deliveries and reports: there are none after this.
void PmixBootstrap::stop() {
  if (watch_ != nullptr)
    run_bounded_or_here(platform_, "canele-unwatch", goodbye_of(me_.size),
                        [watch = std::make_shared<std::shared_ptr<Watch> >(std::move(watch_))] { watch->reset(); });
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stopping = true;
    shared_->died = nullptr;
  }
  shared_->changed.change();
  clock_.reset();
  shared_->fail_all(-1, "this rank is leaving the job");
}

/// The job and rank that libpmix should report, from the launcher's variables.
struct Expected {
  std::string job;
  std::string rank;
};

std::string variable_or_empty(Platform& platform, const char* name) {
  const char* value = platform.variable(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

std::unique_ptr<ProcessBootstrap> join_pmix(Platform& platform, std::uint64_t timeout_ns, std::string* why) {
  const Expected expected = {variable_or_empty(platform, "PMIX_NAMESPACE"), variable_or_empty(platform, "PMIX_RANK")};
  if (expected.job.empty() || expected.rank.empty()) {
    *why = "started by a PMIx launcher, but PMIX_NAMESPACE and PMIX_RANK are not both set: they must reach the ranks";
    return nullptr;
  }
  struct State {
    Joined joined;
    std::string error;
  };
  const auto state = std::make_shared<State>();
  state->joined.shared = std::make_shared<Shared>(platform);
  const Bounded how =
      run_bounded(platform, "canele-join", timeout_ns, [state] { state->error = join(&state->joined); });
  const std::string which = "the launcher's PMIx server, of job " + expected.job + ", ";
  const std::string advice =
      ". Has the launcher ended, or is it in another container? Start again with canele-run or mpirun, or unset "
      "PMIX_NAMESPACE, PMIX_RANK and PMIX_SERVER_URI* to run alone";
  if (how != Bounded::ended) {
    *why = how == Bounded::late ? which + "does not answer" + advice : which + "cannot be asked: " + no_thread_text;
    return nullptr;
  }
  if (!state->error.empty()) {
    *why = which + "cannot be joined: " + state->error + advice;
    return nullptr;
  }
  const Membership& me = state->joined.membership;
  if (me.job != expected.job || std::to_string(me.rank) != expected.rank) {
    *why = which + "was not found: libpmix says that this is rank " + std::to_string(me.rank) + " of job " + me.job +
           advice;
    return nullptr;
  }
  auto made = std::make_unique<PmixBootstrap>(platform, std::move(state->joined));
  if (made->has_clock()) return made;
  *why = which + "cannot be asked: " + no_thread_text;
  made->finalize();
  return nullptr;
}

}  // namespace canele::comm

#endif

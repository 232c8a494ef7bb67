// SPDX-License-Identifier: BSD-3-Clause
//
// The rules of ending. See verdict.hpp.
#include "apps/run/verdict.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cassert>
#include <cstring>
#include <utility>

namespace canele::run {
namespace {

constexpr int code_for_unclean_end = 1;

int as_exit_code(int code) {
  const int low = code & 0xff;
  return code != 0 && low == 0 ? 1 : low;  // 256 must not look like success
}

}  // namespace

Verdict::Then Verdict::fail(int rank, int code, const std::string& what, Then then) {
  if (code_ == 0) code_ = code;
  if (code == code_) ++alike_;
  deaths_.push_back({rank, code});
  if (quiet_) return keep_going_ ? Then::nothing : Then::wait_for_others;
  if (keep_going_ || then == Then::end_job) {
    messages_.push_back(what);
    return keep_going_ ? Then::nothing : Then::end_job;
  }
  held_back_.push_back(what);
  return then;
}

Verdict::Then Verdict::rank_ended(const RankEnd& end) {
  assert(end.rank >= 0 && end.rank < ranks_);
  if (ending_) return Then::nothing;
  const std::string who = fmt::format("canele-run: rank {} (pid {})", end.rank, end.pid);
  // Having left, or with nobody in the job yet, it leaves nobody waiting.
  const Then unless_waited_for = end.left || !end.anyone_joined ? Then::wait_for_others : Then::end_job;
  if (WIFSIGNALED(end.status)) {
    const int number = WTERMSIG(end.status);
    return fail(end.rank, 128 + number,
                fmt::format("{} died by signal {} ({}){}", who, number, strsignal(number),
                            WCOREDUMP(end.status) ? ", core dumped" : ""),
                end.left ? Then::wait_for_others : Then::end_job);
  }
  if (const int code = WEXITSTATUS(end.status); code != 0) {
    failed_outside_ |= !end.joined;
    return fail(end.rank, code, fmt::format("{} exited with code {}", who, code), unless_waited_for);
  }
  if (end.joined && !end.left)
    return fail(end.rank, code_for_unclean_end,
                fmt::format("{} exited with code 0, but without MPI_Finalize (PMIx_Finalize): it may have left others "
                            "waiting",
                            who),
                Then::end_job);
  if (!end.joined) {
    bystanders_.push_back({end.rank, end.pid});
    if (end.anyone_joined) return someone_joined();
  }
  return Then::nothing;
}

Verdict::Then Verdict::someone_joined() {
  if (ending_) return Then::nothing;
  Then then = Then::nothing;
  if (failed_outside_ && !held_back_.empty()) {
    messages_ = std::exchange(held_back_, {});
    then = Then::end_job;
  }
  for (const Bystander& missing : std::exchange(bystanders_, {})) {
    const Then next = fail(missing.rank, code_for_unclean_end,
                           fmt::format("canele-run: rank {} (pid {}) exited with code 0 without MPI_Init (PMIx_Init), "
                                       "but other ranks have called it and may wait for it",
                                       missing.rank, missing.pid),
                           Then::end_job);
    if (next != Then::nothing) then = next;
  }
  return then;
}

Verdict::Then Verdict::aborted(int rank, long pid, int code, const std::string& reason) {
  if (ending_) return Then::nothing;
  if (code_ == 0) code_ = as_exit_code(code);
  messages_.push_back(fmt::format("canele-run: rank {} (pid {}) aborted the job with code {}{}{}", rank, pid, code,
                                  reason.empty() ? "" : ": ", reason));
  return Then::end_job;
}

void Verdict::ending() {
  if (!ending_) alike_ = -1;  // no longer by themselves: say what was held back
  ending_ = true;
}

std::vector<Verdict::Death> Verdict::take_deaths() { return std::exchange(deaths_, {}); }

std::vector<std::string> Verdict::take_messages() { return std::exchange(messages_, {}); }

void Verdict::conclude() {
  if (alike_ != ranks_) messages_.insert(messages_.end(), held_back_.begin(), held_back_.end());
  held_back_.clear();
}

}  // namespace canele::run

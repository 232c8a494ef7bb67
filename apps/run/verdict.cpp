// SPDX-License-Identifier: BSD-3-Clause
//
// The rules of ending.
#include "apps/run/verdict.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cassert>
#include <cstring>
#include <utility>

#include "apps/run/wording.hpp"

namespace canele::run {
namespace {

constexpr int code_for_unclean_end = 1;

/// Translates the code of a call that aborts the job: neither 0 nor 256 may look like success.
int as_exit_code(int code) {
  const int low = code & 0xff;
  return low == 0 ? 1 : low;
}

}  // namespace

Verdict::Then Verdict::fail(Message message, int code, Then then) {
  if (code_ == 0) code_ = code;
  deaths_.push_back({message.rank, code});
  if (quiet_) return keep_going_ ? Then::nothing : Then::wait_for_others;
  if (keep_going_ || then == Then::end_job) {
    messages_.push_back(std::move(message));
    return keep_going_ ? Then::nothing : Then::end_job;
  }
  deferred_.push_back(std::move(message));
  return then;
}

Verdict::Then Verdict::rank_ended(const RankEnd& end) {
  assert(end.rank >= 0 && end.rank < ranks_);
  if (ending_) return Then::nothing;
  const auto fails = [&](int code, std::string what, Then then) {
    return fail({end.rank, end.pid, std::move(what)}, code, then);
  };
  // A rank that has left, or that ends before any rank has joined, leaves no rank waiting.
  const Then unless_waited_for = end.finalized || !end.anyone_joined ? Then::wait_for_others : Then::end_job;
  if (WIFSIGNALED(end.status)) {
    const int number = WTERMSIG(end.status);
    return fails(128 + number,
                 fmt::format("died by signal {} ({}){}", number, strsignal(number),
                             WCOREDUMP(end.status) ? ", core dumped" : ""),
                 end.finalized ? Then::wait_for_others : Then::end_job);
  }
  if (const int code = WEXITSTATUS(end.status); code != 0) {
    failed_outside_ |= !end.joined;
    return fails(code, fmt::format("exited with code {}", code), unless_waited_for);
  }
  if (end.joined && !end.finalized)
    return fails(code_for_unclean_end,
                 "exited with code 0, but without canele_finalize (MPI_Finalize): other ranks may still wait for it",
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
  if (failed_outside_ && !deferred_.empty()) {
    messages_ = std::exchange(deferred_, {});
    then = Then::end_job;
  }
  for (const Bystander& missing : std::exchange(bystanders_, {})) {
    const Then next = fail({missing.rank, missing.pid,
                            "exited with code 0 without canele_init (MPI_Init), but other ranks have called it and may "
                            "wait for it"},
                           code_for_unclean_end, Then::end_job);
    if (next != Then::nothing) then = next;
  }
  return then;
}

Verdict::Then Verdict::aborted(int rank, long pid, int code, const std::string& reason) {
  if (ending_) return Then::nothing;
  if (code_ == 0) code_ = as_exit_code(code);
  messages_.push_back({rank, pid,
                       fmt::format("aborted the job with code {}{}{}{}", code,
                                   code == 0 ? " (exit code 1: an aborted job has not succeeded)" : "",
                                   reason.empty() ? "" : ": ", reason)});
  return Then::end_job;
}

void Verdict::ending() { ending_ = true; }

std::vector<Verdict::Death> Verdict::take_deaths() { return std::exchange(deaths_, {}); }

std::vector<std::string> Verdict::take_messages() {
  std::vector<std::string> lines;
  std::vector<Message> rest = std::exchange(messages_, {});
  while (!rest.empty()) {
    const Message first = rest.front();
    std::vector<int> alike;
    for (const Message& message : rest)
      if (message.what == first.what) alike.push_back(message.rank);
    std::erase_if(rest, [&first](const Message& message) { return message.what == first.what; });
    const std::string pid = alike.size() == 1 ? fmt::format(" (pid {})", first.pid) : std::string();
    lines.push_back(fmt::format("{}{} {}", name_ranks(std::move(alike), ranks_), pid, first.what));
  }
  return lines;
}

void Verdict::conclude() {
  messages_.insert(messages_.end(), deferred_.begin(), deferred_.end());
  deferred_.clear();
}

}  // namespace canele::run

// SPDX-License-Identifier: BSD-3-Clause
//
// Delta debugging (Zeller, Hildebrandt 2002) on the kinds of faults, the ranks and the messages of a run.
//
// A failure is identified by its first line without the numbers.
#include "apps/sim/shrink.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <numeric>
#include <utility>

namespace canele::sim {
namespace {

constexpr unsigned longest_seconds = 120;  // limit of one attempt: ends runs that hang without virtual time passing
constexpr std::uint64_t other_seeds = 8;
constexpr int most_attempts = 600;

std::string without_numbers(const std::string& text) {
  std::string kind;
  for (const char c : text) {
    if (c < '0' || c > '9') {
      kind += c;
    } else if (kind.empty() || kind.back() != '#') {
      kind += '#';
    }
  }
  return kind;
}

struct Attempt {
  std::string failure;  ///< "": none
  std::uint32_t messages = 0;
};

[[noreturn]] void be_the_child(int out, const RunOptions& run, const Runner& runner) {
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) std::signal(signal, SIG_DFL);
  ::dup2(out, STDERR_FILENO);  // an assertion prints there what has failed
  ::alarm(longest_seconds);
  const Outcome outcome = runner(run);
  std::string answer = "messages " + std::to_string(outcome.messages) + "\n";
  if (!outcome.good) answer += "failure " + outcome.complaints.front() + "\n";
  const char* from = answer.data();
  for (std::size_t left = answer.size(); left > 0;) {
    const auto written = ::write(out, from, left);
    if (written <= 0) break;
    from += written, left -= static_cast<std::size_t>(written);
  }
  ::_exit(0);
}

/// Returns the text behind `word` in its line; "" if there is none.
std::string after(const std::string& text, const std::string& word) {
  const auto at = text.find(word);
  if (at == std::string::npos) return "";
  const auto begin = at + word.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

Attempt attempt(const RunOptions& run, const Runner& runner) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return {};
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) be_the_child(ends[1], run, runner);
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t got = 0; (got = ::read(ends[0], part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  Attempt result;
  const std::string messages = after(text, "messages ");
  std::from_chars(messages.data(), messages.data() + messages.size(), result.messages);
  if (WIFSIGNALED(status)) {
    result.failure = "signal " + std::to_string(WTERMSIG(status)) + ": " + after(text, "Assertion ");
  } else {
    result.failure = without_numbers(after(text, "failure "));
  }
  return result;
}

class Shrinker {
 public:
  Shrinker(RunOptions failing, const Runner& runner, const std::function<void(const std::string&)>& tell)
      : runner_(runner), tell_(tell), best_{std::move(failing), "", 0} {}

  Shrunk run() {
    best_.run.verbose = false;
    best_.failure = once(best_.run).failure;
    if (best_.failure.empty()) return best_;
    tell_("fails with: " + best_.failure);
    while (drop_faults() || lower_ranks() || lower_messages()) {
    }
    drop_messages();
    return best_;
  }

 private:
  Attempt once(const RunOptions& run) {
    ++best_.attempts;
    return attempt(run, runner_);
  }

  /// Tries a run. If it fails in the same way, it becomes the best one so far.
  bool fails(const RunOptions& candidate) {
    if (best_.attempts >= most_attempts || once(candidate).failure != best_.failure) return false;
    best_.run = candidate;
    tell_("still fails: " + command_of(candidate));
    return true;
  }

  bool fails_with_some_seed(RunOptions candidate) {
    for (std::uint64_t more = 0; more <= other_seeds; ++more, ++candidate.seed) {
      if (fails(candidate)) return true;
    }
    return false;
  }

  bool drop_faults() {
    bool dropped = false;
    for (const FaultKind& kind : fault_kinds) {
      RunOptions candidate = best_.run;
      if (std::exchange(candidate.faults.*kind.weight, 0) > 0) dropped = fails_with_some_seed(candidate) || dropped;
    }
    return dropped;
  }

  bool lower_ranks() { return lower(&RunOptions::ranks, 2, 32); }
  bool lower_messages() { return lower(&RunOptions::messages, 1, 1500); }

  /// Finds the smallest failing value by doubling: if small values are enough, few attempts are made.
  bool lower(int RunOptions::*what, int least, int most) {
    const int now = best_.run.*what != 0 ? best_.run.*what : most;
    for (int value = least; value < now; value *= 2) {
      RunOptions candidate = best_.run;
      candidate.*what = value;
      if (fails_with_some_seed(candidate)) return true;
    }
    return false;
  }

  void drop_messages() {
    std::vector<std::uint32_t> kept(once(best_.run).messages);
    std::iota(kept.begin(), kept.end(), 0);
    for (std::size_t part = kept.size() / 2; part > 0; part /= 2) {
      for (std::size_t from = 0; from < kept.size() && kept.size() > 1;) {
        RunOptions candidate = best_.run;
        candidate.keep = kept;
        const auto begin = candidate.keep.begin() + static_cast<std::ptrdiff_t>(from);
        candidate.keep.erase(begin, begin + static_cast<std::ptrdiff_t>(std::min(part, kept.size() - from)));
        if (!candidate.keep.empty() && fails(candidate)) {
          kept = candidate.keep;
        } else {
          from += part;
        }
      }
    }
  }

  const Runner& runner_;
  const std::function<void(const std::string&)>& tell_;
  Shrunk best_;
};

std::string faults_text(const FaultPlan& plan) {
  std::string names;
  for (const FaultKind& kind : fault_kinds) {
    if (plan.*kind.weight > 0) names += std::string(names.empty() ? "" : ",") + kind.name;
  }
  return names.empty() ? "none" : names;
}

}  // namespace

Shrunk shrink(RunOptions failing, const Runner& runner, const std::function<void(const std::string&)>& tell) {
  return Shrinker(std::move(failing), runner, tell).run();
}

std::string command_of(const RunOptions& run) {
  const RunOptions usual;
  std::string text = "canele-sim";
  const auto add = [&](const char* option, const auto& value) { text += std::string(" ") + option + " " + value; };
  const auto differs = [&](const char* option, auto value, auto from) {
    if (value != from) add(option, std::to_string(value));
  };
  if (run.workload != usual.workload) add("--workload", name_of(run.workload));
  add("--seed", std::to_string(run.seed));
  differs("--ranks", run.ranks, usual.ranks);
  if (run.workload == Workload::scale) differs("--partners", run.partners, usual.partners);
  differs("--messages", run.messages, usual.messages);
  differs("--ticks", run.ticks, usual.ticks);
  if (run.workload == Workload::cholesky || run.workload == Workload::shapes) text += text_of(run.cholesky);
  if (faults_strike(run.workload)) add("--faults", faults_text(run.faults));
  if (!run.keep.empty()) add("--keep", text_of(run.keep));
  for (const std::string& setting : run.settings) add("--setting", setting);
  return text;
}

bool read_ids(const std::string& text, std::vector<std::uint32_t>* ids) {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (ids->clear(); at < end; ++at) {
    std::uint32_t first = 0;
    auto [behind, wrong] = std::from_chars(at, end, first);
    std::uint32_t last = first;
    if (wrong == std::errc() && behind < end && *behind == '-') {
      const auto second = std::from_chars(behind + 1, end, last);
      behind = second.ptr, wrong = second.ec;
    }
    constexpr std::uint32_t most = 100'000'000;
    const bool separated = behind == end || (*behind == ',' && behind + 1 < end);
    if (wrong != std::errc() || !separated || last < first || last > most) return false;
    for (; first <= last; ++first) ids->push_back(first);
    at = behind;
  }
  return !ids->empty();
}

std::string text_of(const std::vector<std::uint32_t>& ids) {
  std::string text;
  for (std::size_t i = 0; i < ids.size();) {
    std::size_t last = i;
    while (last + 1 < ids.size() && ids[last + 1] == ids[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(ids[i]);
    if (last > i) text += "-" + std::to_string(ids[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace canele::sim

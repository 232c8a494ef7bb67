// SPDX-License-Identifier: BSD-3-Clause
//
// The loop of canele-run.
#include "apps/run/job.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string_view>

#include "apps/run/binding.hpp"
#include "apps/run/message.hpp"
#include "apps/run/namespaces.hpp"
#include "apps/run/tunables.hpp"
#include "apps/run/wording.hpp"

namespace canele::run {
namespace {

using namespace std::chrono_literals;

constexpr auto time_to_terminate = 3s;  ///< between SIGTERM and SIGKILL
constexpr auto time_to_drain = 1s;      ///< for processes that a rank left behind, such as "tee" in a script
constexpr auto time_for_stacks = 60s;

std::chrono::steady_clock::duration seconds(double number) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(number));
}

/// Tells whether an outer launcher uses the variable to name its own job. Our ranks must not take that job for theirs.
bool names_another_job(std::string_view variable) {
  if (variable.starts_with("PMIX_MCA_")) return false;  // settings of libpmix
  for (const std::string_view prefix : {"PMIX_", "PMI_", "OMPI_COMM_WORLD_", "MPI_LOCAL"})
    if (variable.starts_with(prefix)) return true;
  return false;
}

void set_variable(std::vector<std::string>& environment, const std::string& name, const std::string& value) {
  std::erase_if(environment, [&](const std::string& entry) { return entry.starts_with(name + "="); });
  environment.push_back(name + "=" + value);
}

/// Returns the inherited environment without traces of another launcher, with the variables that the user sets.
std::vector<std::string> base_environment(const Options& options) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!names_another_job(*entry)) result.emplace_back(*entry);
  for (const auto& [name, value] : options.environment) set_variable(result, name, value);
  return result;
}

}  // namespace

Job::Job(const Options& options, const Signals& signals, Guard& guard, RankServer& server)
    : options_(options),
      signals_(signals),
      guard_(guard),
      server_(server),
      processes_(signals.original()),
      verdict_(options.ranks, options.keep_going) {
  if (!options.tag_output) return;
  out_ = std::make_unique<Output>(options.ranks, 1);
  err_ = std::make_unique<Output>(options.ranks, 2);
}

int Job::run(const std::string& program) {
  const bool started = start_ranks(program);
  input_.started();
  if (!start_output() || !started) {
    verdict_.failed(exit_not_executable);
    kill_ranks();
  } else if (options_.report_bindings) {
    report_bindings();
  }
  if (options_.timeout_s > 0) time_limit_ = Clock::now() + seconds(options_.timeout_s);
  // Checks before it waits, because there may be nothing left that could wake it.
  for (check(); !done(); check()) wait();
  if (!output_done()) {
    say("the last output of the ranks was dropped: its reader does not read");
    for (auto* output : {&out_, &err_}) static_cast<void>(output->release());  // its thread still writes
  }
  verdict_.conclude();
  tell();
  return timed_out_ ? exit_timeout : verdict_.code();
}

/// Starts the output threads. Returns false if no thread is available. The ranks then write to a closed pipe.
bool Job::start_output() {
  try {
    if (out_) out_->start();
    if (err_) err_->start();
    return true;
  } catch (const std::exception& error) {
    say(fmt::format("no thread for --tag-output: {}", error.what()));
    for (auto* output : {&out_, &err_}) output->reset();
    return false;
  }
}

void Job::report_bindings() const {
  std::map<std::string, std::vector<int>> ranks_on;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    cpu_set_t set;
    if (sched_getaffinity(processes_.pid(rank), sizeof set, &set) != 0) continue;  // the rank has ended
    std::vector<int> units;
    for (int unit = 0; unit < CPU_SETSIZE; ++unit)
      if (CPU_ISSET(unit, &set)) units.push_back(unit);
    ranks_on[name_numbers(units, ",")].push_back(rank);
  }
  for (const auto& [units, ranks] : ranks_on)
    say(fmt::format("{} may use the processing units {}", name_ranks(ranks, options_.ranks), units));
}

Launch Job::prepare(const std::string& program) const {
  Launch launch = {};
  launch.file = program;
  launch.arguments = options_.command;
  launch.directory = options_.directory;
  launch.guard_fd = guard_.fd();
  return launch;
}

bool Job::start_ranks(const std::string& program) {
  const std::vector<cpu_set_t> places = binding_places(options_.binding);
  const Namespaces namespaces(options_.namespaces);
  std::vector<std::string> base = base_environment(options_);
  base.push_back(guard_.mark());
  ease_switches(base, options_.ranks, places.empty() ? usable_units() : static_cast<int>(places.size()));
  if (!options_.directory.empty()) set_variable(base, "PWD", std::filesystem::canonical(options_.directory).string());
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0) throw std::runtime_error(fmt::format("/dev/null: {} (ulimit -n)", std::strerror(errno)));
  Launch launch = prepare(program);
  bool startable = true;
  for (int rank = 0; rank < options_.ranks && startable; ++rank) {
    if (rank > 0 && ended_at_start()) break;
    launch.namespace_fd = namespaces.descriptor(rank);
    launch.stdin_fd = rank == 0 ? input_.rank_end() : null;
    launch.stdout_fd = out_ ? out_->write_end(rank) : 1;
    launch.stderr_fd = err_ ? err_->write_end(rank) : 2;
    launch.bind = !places.empty();
    if (launch.bind) launch.cpus = places[static_cast<std::size_t>(rank) % places.size()];
    startable = start_rank(rank, launch, base);
    server_.started(rank);
  }
  close(null);
  return startable;
}

/// Handles events before the next rank is started, because the start of a thousand ranks takes time. Returns true if
/// the job is ending: the other ranks are not started then, and the ranks that run end as in a job that has all ranks.
bool Job::ended_at_start() {
  handle_server();
  handle_signals();
  handle_ends();
  if (end_signal_ != 0) verdict_.failed(128 + end_signal_);
  return kill_at_ || killing_;
}

/// Starts one rank. Returns false after a message that says why it failed.
bool Job::start_rank(int rank, Launch& launch, const std::vector<std::string>& environment) {
  const auto cannot = [&](const std::string& why) {
    say(fmt::format("cannot start rank {} ('{}'): {}", rank, launch.file, why));
    return false;
  };
  try {
    launch.environment = server_.environment(rank, environment);
    launch.server_fd = server_.rank_end(rank);
    std::string why;
    bool not_found = false;
    const int error = processes_.start(launch, &why, &not_found);
    if (error == 0) return true;
    if (not_found) verdict_.failed(exit_not_found);
    return cannot(fmt::format("{}: {}", why, std::strerror(error)));
  } catch (const std::exception& error) {
    return cannot(error.what());
  }
}

bool Job::output_done() const {
  for (const Output* output : {out_.get(), err_.get()}) {
    if (output == nullptr) continue;
    pollfd ready = {output->done_fd(), POLLIN, 0};
    if (poll(&ready, 1, 0) != 1) return false;
  }
  return true;
}

/// Returns true when the job is done. A reader of tagged output may be slow, like the reader of any pipe. Once the user
/// has asked for the end, the wait for it is limited.
bool Job::done() {
  if (processes_.running() > 0 || !cleared_) return false;
  if (output_done()) return true;
  if (!ended_by_us_) return false;
  if (!output_end_) output_end_ = Clock::now() + time_to_drain;
  return Clock::now() >= *output_end_;
}

/// Checks all sources of events. Each check is cheap and finds nothing if nothing is there.
void Job::check() {
  handle_server();
  handle_signals();
  handle_ends();
  input_.progress();
  handle_deadlines();
  if (processes_.running() == 0) clear_up();
  tell();
  push_messages();
}

/// Sleeps until something happens.
void Job::wait() {
  std::vector<pollfd> polled = {{signals_.fd(), POLLIN, 0}, {server_.wake_fd(), POLLIN, 0}};
  if (processes_.running() == 0 && cleared_)
    for (const Output* output : {out_.get(), err_.get()})
      if (output != nullptr) polled.push_back({output->done_fd(), POLLIN, 0});
  watch_messages(polled);
  int timeout = wait_time();
  if (input_.add_to(polled)) timeout = timeout < 0 ? 1000 : std::min(timeout, 1000);
  poll(polled.data(), polled.size(), timeout);
}

/// Returns the milliseconds to the next deadline, rounded up; -1: none.
int Job::wait_time() const {
  Deadline next;
  for (const Deadline& deadline : {time_limit_, grace_end_, kill_at_, clear_at_, stacks_end_, output_end_})
    if (deadline && (!next || *deadline < *next)) next = deadline;
  if (!next) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now()).count();
  return static_cast<int>(std::clamp<long>(left, 0, 3600 * 1000));
}

void Job::handle_server() {
  server_.clear_wake();
  if (const std::optional<AbortCall> abort = server_.take_abort())
    act(verdict_.aborted(abort->rank, processes_.pid(abort->rank), abort->code, abort->reason));
  if (server_.anyone_joined()) act(verdict_.someone_joined());
}

void Job::handle_signals() {
  while (const int signal = signals_.take()) {
    switch (signal) {
      case SIGCHLD:
        break;  // handle_ends() checks anyway
      case SIGTSTP:
        stop_and_continue();
        break;
      case SIGCONT:
        processes_.signal_all(SIGCONT);
        break;
      default:
        pass_on(signal);
    }
  }
}

void Job::pass_on(int signal) {
  if (signal != SIGINT && signal != SIGTERM && signal != SIGHUP) return processes_.signal_all(signal);
  if (++endings_asked_ == 1) end_signal_ = signal;
  ended_by_us_ = true;
  verdict_.interrupted();
  if (processes_.running() == 0) return kill_ranks();
  if (endings_asked_ > 1) {
    verdict_.failed(128 + signal);
    return kill_ranks();
  }
  if (signal == SIGINT && isatty(2) == 1)
    say(fmt::format("the ranks are asked to end; Ctrl-C again kills them at once, --grace in {} s", options_.grace_s));
  asked_ = fmt::format("SIG{} was passed on {} s ago (--grace)", sigabbrev_np(signal), options_.grace_s);
  processes_.signal_all(signal);
  processes_.signal_all(SIGCONT);  // a stopped rank would not receive the signal
  if (!kill_at_) kill_at_ = Clock::now() + seconds(options_.grace_s);
}

/// Handles Ctrl-Z: the ranks, in groups of their own, do not get it from the terminal.
void Job::stop_and_continue() {
  processes_.signal_all(SIGSTOP);
  raise(SIGSTOP);  // continues here after SIGCONT, which handle_signals() passes on
}

void Job::handle_ends() {
  for (Ended ended; processes_.reap(&ended);) {
    if (ended.rank >= 0) handle_rank_end(ended);
    if (ended.pid == printing_) {
      printing_ = stacks_->start_next();
      if (printing_ == 0) end_ranks();
    }
  }
}

void Job::handle_rank_end(const Ended& ended) {
  guard_.ended(ended.pid);
  if (ended.rank == 0) {
    if (endings_asked_ == 0) input_.give_back();  // Ctrl-C discards what was typed ahead, as usual
    input_.close_all();
  }
  handle_server();  // the rank may have called abort just before
  const Verdict::Then then = verdict_.rank_ended({ended.rank, ended.pid, ended.status, server_.joined(ended.rank),
                                                  server_.finalized(ended.rank), server_.anyone_joined()});
  act(then);
}

void Job::handle_deadlines() {
  const Clock::time_point now = Clock::now();
  const auto passed = [now](Deadline& deadline) {
    if (!deadline || now < *deadline) return false;
    deadline.reset();
    return true;
  };
  if (passed(time_limit_)) time_out();
  if (passed(stacks_end_) && printing_ != 0) {
    say("gdb takes too long; going on without the other stacks");
    kill(printing_, SIGKILL);
    printing_ = 0;
    end_ranks();
  }
  if (passed(grace_end_)) {
    verdict_.conclude();
    end_ranks();
  }
  if (passed(kill_at_)) kill_late_ranks();
}

void Job::act(Verdict::Then then) {
  if (options_.keep_going) {
    for (const Verdict::Death& death : verdict_.take_deaths()) server_.report_death(death.rank, death.code);
  }
  if (then == Verdict::Then::end_job) end_ranks();
  if (then == Verdict::Then::wait_for_others && !grace_end_ && !kill_at_)
    grace_end_ = Clock::now() + seconds(options_.grace_s);
}

void Job::tell() {
  for (const std::string& message : verdict_.take_messages()) say(message);
}

void Job::end_ranks() {
  if (kill_at_ || killing_) return;
  tell();
  verdict_.ending();
  grace_end_.reset();
  time_limit_.reset();
  ended_by_us_ = true;
  asked_ = fmt::format("SIGTERM was sent {} s ago", time_to_terminate.count());
  processes_.signal_all(SIGTERM);
  processes_.signal_all(SIGCONT);  // a stopped rank would not receive the signal
  kill_at_ = Clock::now() + time_to_terminate;
}

/// Kills the ranks that were asked to end and have not done so in time.
void Job::kill_late_ranks() {
  if (processes_.running() > 0)
    say(fmt::format("{}, but {}: killing them", asked_, name_states(processes_.states(), options_.ranks)));
  if (end_signal_ != 0) verdict_.failed(128 + end_signal_);
  kill_ranks();
}

void Job::kill_ranks() {
  verdict_.ending();
  ended_by_us_ = true;
  killing_ = true;
  kill_at_.reset();
  processes_.signal_all(SIGKILL);
}

void Job::time_out() {
  if (processes_.running() == 0) return;
  say(fmt::format("the job has run for {} s (--timeout): ending it; {}", options_.timeout_s,
                  name_states(processes_.states(), options_.ranks)));
  timed_out_ = true;
  if (!options_.stacks) return end_ranks();
  std::vector<Stacks::Rank> ranks;
  for (int rank = 0; rank < options_.ranks; ++rank)
    if (processes_.is_running(rank)) ranks.push_back({rank, processes_.pid(rank)});
  stacks_.emplace(std::move(ranks));
  stacks_end_ = Clock::now() + time_for_stacks;
  printing_ = stacks_->start_next();
  if (printing_ == 0) end_ranks();
}

/// Called when all ranks have ended. Waits a little for the processes that they left running, then kills them.
void Job::clear_up() {
  if (cleared_) return;
  kill_at_.reset();
  grace_end_.reset();
  time_limit_.reset();
  const std::vector<pid_t> orphans = processes_.orphans(guard_.pid());
  if (orphans.empty()) {
    cleared_ = true;
    clear_at_.reset();
    return;
  }
  if (!clear_at_) clear_at_ = Clock::now() + time_to_drain;
  if (Clock::now() < *clear_at_ && !killing_) return;
  for (const pid_t pid : orphans) kill(pid, SIGKILL);  // unreaped children of ours, so the ids are still theirs
  clear_at_ = Clock::now() + 100ms;                    // their own children become ours and are found next time
}

}  // namespace canele::run

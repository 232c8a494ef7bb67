// SPDX-License-Identifier: BSD-3-Clause
//
// Job: the loop of canele-run. Starts the ranks and watches them until the end.
//
// Main thread only; other threads only make one of the descriptors readable. Nothing of a job outlives run(), neither a
// process nor a file.
//
//   phases:  running ──failure, or the user's signal──▶ ending (asked) ──3 s, or --grace──▶ killing (SIGKILL)
//               │                    │                        │
//               └────────────────────┴── no rank is left ─────┴──▶ clearing (processes that ranks left) ──▶ done
#pragma once

#include <poll.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/guard.hpp"
#include "apps/run/input.hpp"
#include "apps/run/options.hpp"
#include "apps/run/output.hpp"
#include "apps/run/processes.hpp"
#include "apps/run/rank_server.hpp"
#include "apps/run/signals.hpp"
#include "apps/run/stacks.hpp"
#include "apps/run/verdict.hpp"

namespace canele::run {

class Job {
 public:
  Job(const Options& options, const Signals& signals, Guard& guard, RankServer& server);

  /// Returns the exit code. Throws std::runtime_error if the job cannot be started.
  int run(const std::string& program);

 private:
  using Clock = std::chrono::steady_clock;
  using Deadline = std::optional<Clock::time_point>;

  bool start_ranks(const std::string& program);
  bool start_rank(int rank, Launch& launch, const std::vector<std::string>& environment);
  bool ended_at_start();
  bool start_output();
  Launch prepare(const std::string& program) const;
  void report_bindings() const;
  void check();
  void wait();
  int wait_time() const;

  void handle_signals();
  void handle_ends();
  void handle_rank_end(const Ended& ended);
  void handle_server();
  void handle_deadlines();
  void pass_on(int signal);
  void stop_and_continue();

  void act(Verdict::Then then);
  void tell();
  void end_ranks();
  void kill_ranks();
  void kill_late_ranks();
  void clear_up();
  void time_out();
  bool output_done() const;
  bool done();

  const Options& options_;
  const Signals& signals_;
  Guard& guard_;
  RankServer& server_;
  Processes processes_;
  Verdict verdict_;
  Input input_;
  std::unique_ptr<Output> out_, err_;
  std::optional<Stacks> stacks_;
  pid_t printing_ = 0;     ///< the gdb process that prints stacks
  int endings_asked_ = 0;  ///< number of signals by which the user asked for the end
  int end_signal_ = 0;     ///< the first of these signals
  bool ended_by_us_ = false;
  std::string asked_;  ///< how the ranks were asked to end, and when
  bool timed_out_ = false;
  bool killing_ = false;
  bool cleared_ = false;
  Deadline time_limit_, grace_end_, kill_at_, clear_at_, stacks_end_, output_end_;
};

}  // namespace canele::run

// SPDX-License-Identifier: BSD-3-Clause
//
// Job: this rank, its peer, and where they are pinned. Main thread only.
//
// Pinning comes after the start, because the core depends on the rank among those of this host.
#pragma once

#include <canele/canele.hpp>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "options.hpp"

namespace canele::perf {

/// Throws if a call of the C API has failed.
inline void must(int code, const char* call) { canele::detail::check(code, call); }
/// Waits for a request. Throws if its operation has failed.
inline void wait(canele_request_t* request) { must(canele_wait(request, nullptr), "canele_wait"); }

class Job {
 public:
  /// Joins the job, with these settings in addition to the driver. Throws std::runtime_error (canele::error) with the
  /// reason; every rank then throws.
  explicit Job(const Options& options, std::vector<std::string> settings = {});

  /// Pins this rank and tells the other rank where. If it throws, possibly on one rank only, the caller must end the
  /// job.
  void pin(const Options& options);

  bool first() const { return rank_ == 0; }
  int peer() const { return 1 - rank_; }
  /// Returns the OS index of the core of a rank, -1: not pinned.
  int core(int rank) const { return cores_[rank]; }
  /// Returns true if both ranks are on one core, or may be: spinning must then yield.
  bool oversubscribed() const { return oversubscribed_; }
  /// Returns true if both ranks run on one host.
  bool same_host() const { return engine.local_size() == 2; }

  /// Returns the driver that carries messages to the peer, from the counters. Empty before the first message.
  std::string driver() const;

  canele::engine engine;
  canele::session session;  ///< for the benchmarks, and for control messages

 private:
  int rank_;  ///< kept here, because timed code reads it
  int cores_[2] = {-1, -1};
  bool oversubscribed_ = false;
};

/// Throws if one driver was requested, and another one carries the messages.
void check_driver(const Options& options, const std::string& driver);

/// Calls work.run(). If it throws, prints the reason and ends the job by work.abort(), because the other ranks may be
/// waiting for this one.
template <typename Work>
int run_or_abort(Work& work) {
  try {
    return work.run();
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "canele-perf: %s\n", problem.what());
    work.abort(problem.what());
  }
}

/// Returns an engine with these settings, each "CANELE_NAME=value".
canele::engine join(const std::vector<std::string>& settings);

}  // namespace canele::perf

// SPDX-License-Identifier: BSD-3-Clause
//
// Job: this rank, its peer, and where it is pinned.
//
// Who: main makes one; the measurements use it. Threads: the main thread only.
// Surprise: pinning comes after the start, because the place depends on the rank among those of this host.
#pragma once

#include <canele/canele.hpp>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "options.hpp"

namespace canele::perf {

class Job {
 public:
  /// Joins the job, with these settings beside the driver. Throws std::runtime_error (canele::error) with what is
  /// wrong; every rank then throws.
  explicit Job(const Options& options, std::vector<std::string> settings = {});

  /// Pins this rank and tells the other where. Throws, perhaps on one rank only: the caller then ends the job.
  void pin(const Options& options);

  bool first() const { return rank_ == 0; }
  int peer() const { return 1 - rank_; }
  /// OS index of the core of a rank, -1: not pinned.
  int core(int rank) const { return cores_[rank]; }
  /// True if both ranks sit on one core, or may: spinning must then give way.
  bool crowded() const { return crowded_; }
  /// True if both ranks run on one host.
  bool same_host() const { return engine.local_size() == 2; }

  /// The driver that carries messages to the peer, from the counters. Empty before the first message.
  std::string driver() const;

  canele::engine engine;
  canele::session session;  ///< of the benchmarks, or for what they have to tell each other

 private:
  int rank_;  ///< kept here: what is timed asks for it
  int cores_[2] = {-1, -1};
  bool crowded_ = false;
};

/// Throws if one driver was asked for, and another carries the messages.
void check_driver(const Options& options, const std::string& driver);

/// work.run(); if that throws, it says why and ends the job by work.abort(): the other ranks may be waiting for us.
template <typename Work>
int run_or_abort(Work& work) {
  try {
    return work.run();
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "canele-perf: %s\n", problem.what());
    work.abort(problem.what());
  }
}

/// An engine with these settings, each "CANELE_NAME=value".
canele::engine join(const std::vector<std::string>& settings);

}  // namespace canele::perf

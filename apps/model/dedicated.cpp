// SPDX-License-Identifier: BSD-3-Clause
//
// The model of dedicated cores, and its hypotheses.
//
// A doubt that concerns less than a hundredth of the run is not reported.
#include "apps/model/dedicated.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cmath>

namespace canele::model {
namespace {

constexpr double worth_telling = 0.01;  // fraction of the run's time

double scaling(const Cores& cores) { return cores.all / (cores.all - cores.dedicated); }

/// Doubts the least time. The model takes the shortest call for one that makes no progress itself. It should thus be
/// much shorter than the others.
void doubt_least(const char* what, const Calls& calls, double time_s, std::vector<std::string>* found) {
  const double all_s = calls.count * calls.least_s;
  if (calls.total_s == 0 || all_s < worth_telling * time_s || 2 * all_s < calls.total_s) return;
  found->push_back(
      fmt::format("least time not observed: the shortest {} took {:.3g} s, the mean {:.3g} s; if all of them "
                  "made progress themselves, {:.3g} s of theirs should not be in the prediction (see --least-profile)",
                  what, calls.least_s, calls.total_s / calls.count, all_s));
}

void doubt_computation(const Observed& run, std::vector<std::string>* found) {
  const std::optional<double> left = unhidden(run);
  if (!left || *left < worth_telling * run.time_s) return;
  const double waited = run.wait.total_s - run.wait.count * run.wait.least_s;
  const bool none = *run.overlappable_s < worth_telling * waited;
  found->push_back(
      fmt::format("{} between call and wait: {:.3g} s were computed with a request in flight, {:.3g} s were "
                  "waited for; at least {:.3g} s more than predicted",
                  none ? "no computation" : "not enough computation", *run.overlappable_s, waited, *left));
}

/// Collects where the run with dedicated cores differs from the model's assumptions.
void doubt_outcome(const Observed& run, const Observed& after, const Cores& cores, std::vector<std::string>* found) {
  const Prediction expected = predict(run, cores, 0);
  const double worth_s = worth_telling * run.time_s;
  if (after.wait.total_s > expected.wait + worth_s) {
    found->push_back(
        fmt::format("wait grew: {:.3g} s instead of {:.3g} s (without progression {:.3g} s); too little "
                    "computation before it, or it contends with the dedicated core",
                    after.wait.total_s, expected.wait, run.wait.total_s));
  }
  if (after.test.count < 0.9 * run.test.count && run.test.count * run.test.least_s > worth_s) {
    found->push_back(
        fmt::format("the number of tests fell from {:.0f} to {:.0f}: communication ended sooner, and the "
                    "prediction is too long by some {:.3g} s",
                    run.test.count, after.test.count, (run.test.count - after.test.count) * run.test.least_s));
  }
  if (std::abs(after.compute_s - expected.compute) > std::max(worth_s, 0.05 * expected.compute)) {
    found->push_back(
        fmt::format("computation took {:.3g} s instead of {:.3g} s: it does not scale as assumed, or "
                    "progression disturbs it",
                    after.compute_s, expected.compute));
  }
  if (after.blocking.total_s > expected.blocking + worth_s) {
    found->push_back(
        fmt::format("blocking calls took {:.3g} s instead of {:.3g} s", after.blocking.total_s, expected.blocking));
  }
}

}  // namespace

void take_least(Observed* run, const Observed& from) {
  const auto take = [](Calls* calls, const Calls& other) {
    if (other.count > 0 && (calls->count == 0 || other.least_s < calls->least_s)) calls->least_s = other.least_s;
  };
  take(&run->test, from.test);
  take(&run->wait, from.wait);
  if (run->init.count == 0) take(&run->init, from.init);
}

Prediction predict(const Observed& run, const Cores& cores, double alpha) {
  assert(cores.dedicated >= 0 && cores.dedicated < cores.all && alpha >= 0 && alpha <= 1);
  Prediction terms;
  terms.compute = run.compute_s * scaling(cores);
  terms.init = run.init.count * run.init.least_s;
  terms.test = run.test.count * run.test.least_s;
  terms.wait = run.wait.count * run.wait.least_s;
  terms.converted = alpha * run.blocking.count * (run.init.least_s + run.wait.least_s);
  terms.blocking = (1 - alpha) * run.blocking.total_s;
  terms.other = run.other_s;
  return terms;
}

double slope(const Observed& run) {
  return run.blocking.count * (run.init.least_s + run.wait.least_s) - run.blocking.total_s;
}

std::optional<double> break_even(const Observed& run, const Cores& cores) {
  const double gain = -slope(run), behind = predict(run, cores, 0).total() - run.time_s;
  if (gain <= 0 && behind > 0) return std::nullopt;
  return gain <= 0 ? 0 : behind / gain;
}

std::optional<double> unhidden(const Observed& run) {
  if (!run.overlappable_s) return std::nullopt;
  const double waited = run.wait.total_s - run.wait.count * run.wait.least_s;
  return std::max(0.0, waited - *run.overlappable_s);
}

std::vector<std::string> doubts(const Observed& run, const Cores& cores, double largest_alpha,
                                const Observed* dedicated) {
  std::vector<std::string> found = run.remarks;
  if (run.mpi_s && std::abs(run.compute_s + *run.mpi_s - run.time_s) > worth_telling * run.time_s) {
    found.push_back(fmt::format("computation and MPI are {:.5g} s together, the run took {:.5g} s",
                                run.compute_s + *run.mpi_s, run.time_s));
  }
  if (scaling(cores) > 1.5) {
    found.push_back(
        fmt::format("with {:g} of {:g} cores given up, computation is predicted to take {:.3g} times as "
                    "long: that it scales perfectly decides the result",
                    cores.dedicated, cores.all, scaling(cores)));
  }
  doubt_least("non-blocking call", run.init, run.time_s, &found);
  doubt_least("test", run.test, run.time_s, &found);
  doubt_least("wait", run.wait, run.time_s, &found);
  doubt_computation(run, &found);
  if (largest_alpha > 0 && run.blocking.total_s > 0) {
    if (run.blocking.count == 0) {
      found.push_back("the number of blocking calls is not known: converted ones are taken to cost nothing");
    } else if (run.init.least_s == 0 || run.wait.least_s == 0) {
      found.push_back("the run has no non-blocking call or no wait: converted calls are taken to cost nothing there");
    }
    found.push_back("alpha above 0 takes for granted that there is enough to compute beside each converted call");
  }
  if (dedicated != nullptr) doubt_outcome(run, *dedicated, cores, &found);
  return found;
}

}  // namespace canele::model

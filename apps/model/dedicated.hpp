// SPDX-License-Identifier: BSD-3-Clause
//
// Reynier's model: how long a program would take with cores dedicated to communication, from a run without progression.
//
// Who: report.cpp, tests/unit/model. Threads: any; no state.
// Surprise: it takes for granted that every wait finds its request done. doubts() says where the run itself tells
//     otherwise, and unhidden() how much longer it takes when no more is hidden than was computed meanwhile (ours, not
//     the thesis's).
//
//   without progression     compute │ init │ test │ wait        │ blocking                     │ other
//   alpha of the blocking
//   calls converted         compute │ init │ test │ wait        │ converted │ blocking         │ other
//                           x N/(N-D)  N·min  N·min  N·min         α·N·(min init + min wait), (1-α)·t
//
// F. Reynier: A study on progression of MPI communications using dedicated resources, 2022, section 6.1. Its printed
// results do not follow from its printed parameters; ours are those of the formula (see thesis.json).
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace canele::model {

/// Calls of one class: how many, how long all of them took, how long the shortest.
struct Calls {
  double count = 0, total_s = 0, least_s = 0;
};

/// A run, by rank: means over the ranks, but the least times are those of all ranks.
struct Observed {
  double time_s = 0;     ///< t_noprogress
  double compute_s = 0;  ///< all of the program's own time
  Calls blocking = {}, init = {}, test = {}, wait = {};
  double other_s = 0;                         ///< start, communicators, datatypes
  std::optional<double> mpi_s = {};           ///< all of MPI, where it is known
  std::optional<double> overlappable_s = {};  ///< the program's own time with a request in flight, where it is known
  std::vector<std::string> remarks = {};      ///< what is odd about the run
};

/// Takes least times from another run, where calls found nothing to do: those of waits and tests where they are shorter
/// there, that of non-blocking calls if `run` has none (what these do depends on the operation).
void take_least(Observed* run, const Observed& from);

/// A process has `cores`, and gives up `dedicated` of them. 0: it has done without them in the run already.
struct Cores {
  double all = 1, dedicated = 1;
};

/// The terms of the formula, in seconds.
struct Prediction {
  double compute = 0, init = 0, test = 0, wait = 0, converted = 0, blocking = 0, other = 0;

  double total() const { return compute + init + test + wait + converted + blocking + other; }
};

/// With the share `alpha` of the blocking calls converted to non-blocking ones and a wait.
Prediction predict(const Observed& run, const Cores& cores, double alpha);

/// What one more unit of alpha changes: less than 0 where conversion pays.
double slope(const Observed& run);

/// The alpha from which on dedicated cores pay: at most 0 if they do anyhow, above 1 if they never do. Nothing if
/// conversion only costs.
std::optional<double> break_even(const Observed& run, const Cores& cores);

/// Waiting that stays although the prediction lets it vanish: what exceeds the computation beside it. Nothing if the
/// run does not know that.
std::optional<double> unhidden(const Observed& run);

/// Hypotheses of the model that this run contradicts, as sentences. `dedicated`: the run that was predicted, if there
/// was one.
std::vector<std::string> doubts(const Observed& run, const Cores& cores, double largest_alpha,
                                const Observed* dedicated = nullptr);

}  // namespace canele::model

// SPDX-License-Identifier: BSD-3-Clause
//
// Reynier's model: predicts how long a program takes with cores dedicated to communication, from a run without
// progression.
//
// Any thread; no state. The model assumes that every wait finds its request done. doubts() reports where the run itself
// contradicts that. unhidden() estimates how much longer the program takes if only as much communication is hidden as
// was computed meanwhile. The estimate is ours, not the thesis's.
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

/// Calls of one class: their number, their total time, and the time of the shortest.
struct Calls {
  double count = 0, total_s = 0, least_s = 0;
};

/// A run. Values are means over the ranks, except that the least times are those of all ranks.
struct Observed {
  double time_s = 0;     ///< t_noprogress.
  double compute_s = 0;  ///< all of the program's own time.
  Calls blocking = {}, init = {}, test = {}, wait = {};
  double other_s = 0;                         ///< start, communicators, datatypes.
  std::optional<double> mpi_s = {};           ///< all of MPI, if known.
  std::optional<double> overlappable_s = {};  ///< the program's own time with a request in flight, if known.
  std::vector<std::string> remarks = {};      ///< what is unusual about the run.
};

/// Takes least times from another run, where calls found nothing to do. Those of waits and tests are taken where they
/// are shorter there. That of non-blocking calls is taken only if `run` has none, because it depends on the operation.
void take_least(Observed* run, const Observed& from);

/// A process has `cores` and gives up `dedicated` of them. 0: the run already did without them.
struct Cores {
  double all = 1, dedicated = 1;
};

/// The terms of the formula, in seconds.
struct Prediction {
  double compute = 0, init = 0, test = 0, wait = 0, converted = 0, blocking = 0, other = 0;

  double total() const { return compute + init + test + wait + converted + blocking + other; }
};

/// Predicts the run with the share `alpha` of the blocking calls converted to a non-blocking call and a wait each.
Prediction predict(const Observed& run, const Cores& cores, double alpha);

/// Returns the change per unit of alpha: negative if conversion saves time.
double slope(const Observed& run);

/// Returns the alpha from which on dedicated cores save time: at most 0 if they do without conversion, above 1 if they
/// never do. Returns nothing if conversion only costs.
std::optional<double> break_even(const Observed& run, const Cores& cores);

/// Returns the waiting time that remains although the prediction drops it: what exceeds the computation done meanwhile.
/// Returns nothing if the run does not have that figure.
std::optional<double> unhidden(const Observed& run);

/// Returns the hypotheses of the model that this run contradicts, as sentences. `dedicated`: the run that was
/// predicted, if there was one.
std::vector<std::string> doubts(const Observed& run, const Cores& cores, double largest_alpha,
                                const Observed* dedicated = nullptr);

}  // namespace canele::model

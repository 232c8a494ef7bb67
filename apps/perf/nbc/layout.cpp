// SPDX-License-Identifier: BSD-3-Clause
//
// Cores of ranks.
#include "layout.hpp"

#include <algorithm>
#include <stdexcept>

namespace canele::perf::nbc {

int worker_core_of(const Options& options, const std::vector<int>& allowed) {
  if (options.worker_core >= 0) return options.worker_core;
  return options.dedicated() && !allowed.empty() ? allowed.back() : -1;
}

std::vector<int> computing_cores(const Options& options, const std::vector<int>& allowed) {
  if (!options.cores.empty()) return options.cores;
  std::vector<int> cores = allowed;
  if (options.dedicated()) std::erase(cores, worker_core_of(options, allowed));
  return cores;
}

namespace {

std::size_t threads_of(const Options& options, std::size_t cores) {
  if (options.threads > 0) return static_cast<std::size_t>(options.threads);
  return std::max<std::size_t>(1, cores / static_cast<std::size_t>(options.ranks));
}

}  // namespace

std::vector<int> cores_of(const Options& options, const std::vector<int>& allowed, int place) {
  const std::vector<int> all = computing_cores(options, allowed);
  if (all.empty())
    throw std::runtime_error("no core is left to compute on beside that of the worker; expected: more --cores");
  for (const int core : all) {
    if (!options.pin || std::count(allowed.begin(), allowed.end(), core) > 0) continue;
    throw std::runtime_error("cannot pin to core " + std::to_string(core) + ", which this process may not use; " +
                             "expected: other --cores, or --no-pin");
  }
  const std::size_t threads = threads_of(options, all.size());
  std::vector<int> own;
  for (std::size_t i = 0; i < threads; ++i)
    own.push_back(all[(static_cast<std::size_t>(place) * threads + i) % all.size()]);
  return own;
}

bool oversubscribed(const Options& options, const std::vector<int>& allowed, int ranks_here) {
  const std::size_t cores = computing_cores(options, allowed).size();
  return threads_of(options, cores) * static_cast<std::size_t>(ranks_here) > cores;
}

}  // namespace canele::perf::nbc

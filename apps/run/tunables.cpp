// SPDX-License-Identifier: BSD-3-Clause
//
// Tunables of glibc.
#include "apps/run/tunables.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <thread>

namespace canele::run {

std::string without_restartable_sequences(std::string_view tunables) {
  constexpr std::string_view name = "glibc.pthread.rseq=";
  if (tunables.starts_with(name) || tunables.find(fmt::format(":{}", name)) != std::string_view::npos)
    return std::string(tunables);
  return fmt::format("{}{}{}0", tunables, tunables.empty() ? "" : ":", name);
}

void ease_switches(std::vector<std::string>& environment, int ranks, int places) {
  if (ranks <= places) return;
  constexpr std::string_view name = "GLIBC_TUNABLES=";
  auto entry = std::find_if(environment.begin(), environment.end(),
                            [](const std::string& one) { return one.starts_with(name); });
  if (entry == environment.end()) entry = environment.emplace(entry, name);
  *entry = std::string(name) + without_restartable_sequences(std::string_view(*entry).substr(name.size()));
}

int usable_units() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());  // more than a cpu_set_t holds
}

}  // namespace canele::run

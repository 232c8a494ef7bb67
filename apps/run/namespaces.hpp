// SPDX-License-Identifier: BSD-3-Clause
//
// Namespaces: the network name spaces over which the ranks are spread (--netns), as descriptors for setns().
//
// Job uses it when it starts the ranks. Main thread only. Only the network changes: files, processes and /sys stay ours
// ("ip netns exec" also changes /sys).
#pragma once

#include <string>
#include <vector>

namespace canele::run {

class Namespaces {
 public:
  /// `names`: names of "ip netns list", or paths ("/proc/123/ns/net"). Throws std::invalid_argument, which says what is
  /// wrong.
  explicit Namespaces(const std::vector<std::string>& names);
  ~Namespaces();
  Namespaces(const Namespaces&) = delete;
  Namespaces& operator=(const Namespaces&) = delete;

  /// Returns the descriptor for a rank, round robin; -1: our own name space.
  int descriptor(int rank) const;

 private:
  std::vector<int> descriptors_;
};

}  // namespace canele::run

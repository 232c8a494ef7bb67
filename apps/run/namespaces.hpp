// SPDX-License-Identifier: BSD-3-Clause
//
// Namespaces: the network name spaces that the ranks are spread over (--netns), as descriptors to enter them by.
//
// Who: Job, when it starts the ranks. Threads: main thread only.
// Surprise: only the network is another one: files, processes and /sys stay ours ("ip netns exec" also changes /sys).
#pragma once

#include <string>
#include <vector>

namespace canele::run {

class Namespaces {
 public:
  /// `names`: of "ip netns list", or paths ("/proc/123/ns/net"). Throws std::invalid_argument that says what is wrong.
  explicit Namespaces(const std::vector<std::string>& names);
  ~Namespaces();
  Namespaces(const Namespaces&) = delete;
  Namespaces& operator=(const Namespaces&) = delete;

  /// Rank i gets the i-th, round robin; -1: ours.
  int descriptor(int rank) const;

 private:
  std::vector<int> descriptors_;
};

}  // namespace canele::run

// SPDX-License-Identifier: BSD-3-Clause
//
// Rows: what the benchmarks of progress have measured; one line of JSON, or of a table, each.
//
// Who: rank 0. Threads: one.
// Surprise: a row is printed as soon as it is there, since a sweep takes minutes; so columns have a fixed width.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace canele::perf::progress {

struct Row {
  std::string benchmark;
  nlohmann::ordered_json keys;     ///< what was measured: name and value
  nlohmann::ordered_json figures;  ///< what came out: name and number
  nlohmann::ordered_json samples;  ///< what it was computed from: name and numbers; JSON only
};

class Report {
 public:
  explicit Report(bool json) : json_(json) {}
  void print(const Row& row);

 private:
  bool json_;
  std::string head_;
};

}  // namespace canele::perf::progress

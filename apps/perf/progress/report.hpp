// SPDX-License-Identifier: BSD-3-Clause
//
// Rows: what the benchmarks of progress have measured; each is one line of JSON, or of a table. Printed by rank 0; one
// thread.
//
// A row is printed as soon as it is complete, because a sweep takes minutes. Columns therefore have a fixed width.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace canele::perf::progress {

struct Row {
  std::string benchmark;
  nlohmann::ordered_json keys;     ///< what was measured: name and value
  nlohmann::ordered_json figures;  ///< result: name and number
  nlohmann::ordered_json samples;  ///< data of the result: name and numbers; JSON only
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

// SPDX-License-Identifier: BSD-3-Clause
//
// Rows as text.
#include "report.hpp"

#include <algorithm>
#include <cstdio>

namespace canele::perf::progress {
namespace {

std::string cell(const std::string& text, std::size_t width) {
  return std::string(text.size() < width ? width - text.size() : 1, ' ') + text;
}

std::string number(const nlohmann::ordered_json& value) {
  if (!value.is_number_float()) return value.is_string() ? value.get<std::string>() : value.dump();
  const double x = value.get<double>();
  char text[32];
  std::snprintf(text, sizeof text, x >= 1000 || x <= -1000 ? "%.0f" : x >= 100 ? "%.1f" : "%.3f", x);
  return text;
}

}  // namespace

void Report::print(const Row& row) {
  constexpr std::size_t narrowest = 9;
  if (json_) {
    nlohmann::ordered_json line = {{"benchmark", row.benchmark}};
    line.update(row.keys);
    line["figures"] = row.figures;
    line["samples"] = row.samples;
    std::printf("%s\n", line.dump().c_str());
  } else {
    std::string head, body;
    for (const auto* part : {&row.keys, &row.figures}) {
      for (const auto& [name, value] : part->items()) {
        const std::size_t width = std::max(narrowest, name.size() + 1);
        head += cell(name, width);
        body += cell(number(value), width);
      }
    }
    if (head != head_) std::printf("%s\n", head.c_str());
    head_ = head;
    std::printf("%s\n", body.c_str());
  }
  std::fflush(stdout);
}

}  // namespace canele::perf::progress

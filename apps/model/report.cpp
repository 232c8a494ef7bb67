// SPDX-License-Identifier: BSD-3-Clause
//
// The report on a run.
//
// The table is printed from the JSON, so that both say the same.
#include "apps/model/report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "apps/model/dedicated.hpp"

namespace canele::model {
namespace {

using nlohmann::json;

struct Row {
  const char* key;
  const char* title;
  double Prediction::*term;
};
constexpr std::array<Row, 7> rows = {{
    {"compute", "computation", &Prediction::compute},
    {"init", "non-blocking calls", &Prediction::init},
    {"test", "tests", &Prediction::test},
    {"wait", "waits", &Prediction::wait},
    {"converted", "converted blocking calls", &Prediction::converted},
    {"blocking", "remaining blocking calls", &Prediction::blocking},
    {"other", "other", &Prediction::other},
}};

json json_of(const Calls& calls) {
  return {{"count", calls.count}, {"total_s", calls.total_s}, {"min_s", calls.least_s}};
}

json prediction_of(const Case& run, const Cores& cores, double alpha) {
  const Prediction terms = predict(run.run, cores, alpha);
  json made = {{"alpha", alpha}, {"total_s", terms.total()}, {"speedup", run.run.time_s / terms.total()}};
  for (const Row& row : rows) made["terms"][row.key] = terms.*row.term;
  if (const auto rest = unhidden(run.run)) made["total_with_unhidden_s"] = terms.total() + *rest;
  if (run.measured_s) {
    made["error"] = terms.total() / *run.measured_s - 1;
    if (made.contains("total_with_unhidden_s")) {
      made["error_with_unhidden"] = made["total_with_unhidden_s"].get<double>() / *run.measured_s - 1;
    }
  }
  return made;
}

/// Returns the factors of a term as text.
std::string factors(const json& judged, const std::string& key) {
  const json& run = judged.at("run");
  if (key == "compute") {
    const double all = judged.at("cores"), given_up = judged.at("dedicated");
    return fmt::format("{:.5g} s x {:g}/{:g}", run.at("compute_s").get<double>(), all, all - given_up);
  }
  if (key == "init" || key == "test" || key == "wait") {
    const json& calls = run.at(key);
    return fmt::format("{:.6g} x {:.4g} s", calls.at("count").get<double>(), calls.at("min_s").get<double>());
  }
  if (key == "converted") {
    return fmt::format("alpha x {:.6g} x {:.4g} s", run.at("blocking").at("count").get<double>(),
                       run.at("init").at("min_s").get<double>() + run.at("wait").at("min_s").get<double>());
  }
  if (key == "blocking") return fmt::format("(1 - alpha) x {:.5g} s", run.at("blocking").at("total_s").get<double>());
  return {};
}

template <class Text>
void print_row(const json& judged, const std::string& title, const std::string& note, Text text) {
  fmt::print("  {:<26}", title);
  for (const json& one : judged.at("predictions")) fmt::print(" {:>10}", text(one));
  fmt::print("{}{}\n", note.empty() ? "" : "   ", note);
}

void print_number_row(const json& judged, const char* title, const char* key, const char* note = "") {
  if (!judged.at("predictions").at(0).contains(key)) return;
  print_row(judged, title, note, [&](const json& one) { return fmt::format("{:.5g}", one.at(key).get<double>()); });
}

void print_percent_row(const json& judged, const char* title, const char* key) {
  if (!judged.at("predictions").at(0).contains(key)) return;
  print_row(judged, title, "",
            [&](const json& one) { return fmt::format("{:+.1f} %", 100 * one.at(key).get<double>()); });
}

void print_conversion(const json& judged) {
  fmt::print("  conversion: {:+.4g} s from alpha = 0 to 1; ", judged.at("slope_s").get<double>());
  if (judged.at("break_even_alpha").is_null()) {
    fmt::print("it does not pay, and dedicated cores do not either\n");
    return;
  }
  const double alpha = judged.at("break_even_alpha");
  if (alpha <= 0) {
    fmt::print("dedicated cores pay without it (break-even {:.3g})\n", alpha);
  } else if (alpha > 1) {
    fmt::print("dedicated cores do not pay even with all of it (break-even {:.3g})\n", alpha);
  } else {
    fmt::print("dedicated cores pay from alpha = {:.3g} on\n", alpha);
  }
}

}  // namespace

json judge(const Case& run, const Question& question, const Observed* dedicated) {
  const Cores cores{question.cores > 0 ? question.cores : run.cores.value_or(0), question.dedicated};
  if (cores.all <= 0) {
    throw std::runtime_error(
        fmt::format("{}: the number of cores of a process is not known; expected: --cores", run.name));
  }
  if (cores.dedicated >= cores.all) {
    throw std::runtime_error(fmt::format("{}: {:g} of {:g} cores cannot be given up: none would be left to compute",
                                         run.name, cores.dedicated, cores.all));
  }
  json judged = {{"name", run.name}, {"cores", cores.all}, {"dedicated", cores.dedicated}};
  judged["run"] = {
      {"time_s", run.run.time_s},      {"compute_s", run.run.compute_s}, {"blocking", json_of(run.run.blocking)},
      {"init", json_of(run.run.init)}, {"test", json_of(run.run.test)},  {"wait", json_of(run.run.wait)},
      {"other_s", run.run.other_s}};
  if (run.run.overlappable_s) judged["run"]["overlappable_s"] = *run.run.overlappable_s;
  judged["predictions"] = json::array();
  for (const double alpha : question.alphas) judged["predictions"].push_back(prediction_of(run, cores, alpha));
  judged["slope_s"] = slope(run.run);
  const auto alpha = break_even(run.run, cores);
  judged["break_even_alpha"] = alpha ? json(*alpha) : json();
  if (run.measured_s) judged["measured_s"] = *run.measured_s;
  if (run.printed_s) judged["printed_s"] = *run.printed_s;
  const double largest = *std::max_element(question.alphas.begin(), question.alphas.end());
  judged["doubts"] = doubts(run.run, cores, largest, dedicated);
  return judged;
}

void print(const json& judged) {
  fmt::print("{}: {:g} cores, {:g} dedicated; without progression {:.5g} s\n", judged.at("name").get<std::string>(),
             judged.at("cores").get<double>(), judged.at("dedicated").get<double>(),
             judged.at("run").at("time_s").get<double>());
  print_row(judged, "alpha", "", [](const json& one) { return fmt::format("{:g}", one.at("alpha").get<double>()); });
  for (const Row& row : rows) {
    print_row(judged, row.title, factors(judged, row.key),
              [&](const json& one) { return fmt::format("{:.5g}", one.at("terms").at(row.key).get<double>()); });
  }
  print_number_row(judged, "predicted, s", "total_s");
  print_number_row(judged, "speed-up", "speedup");
  if (judged.contains("measured_s"))
    fmt::print("  {:<26} {:>10.5g}\n", "measured, s", judged["measured_s"].get<double>());
  print_percent_row(judged, "error", "error");
  print_number_row(judged, "nothing hidden unless", "total_with_unhidden_s", "computed beside: ours, not the thesis's");
  print_percent_row(judged, "error", "error_with_unhidden");
  if (judged.contains("printed_s")) {
    fmt::print("  {:<26} {:>10.5g}   does not follow from its printed parameters\n", "printed in the document, s",
               judged["printed_s"].get<double>());
  }
  print_conversion(judged);
  for (const json& doubt : judged.at("doubts")) fmt::print("  warning: {}\n", doubt.get<std::string>());
}

}  // namespace canele::model

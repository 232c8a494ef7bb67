// SPDX-License-Identifier: BSD-3-Clause
//
// Reads profiles and values.
//
// An unknown name is an error: a mistyped "mins_s" would otherwise be a time of 0.
#include "apps/model/input.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

namespace canele::model {
namespace {

using nlohmann::json;

json read_json(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) throw std::runtime_error(fmt::format("{} cannot be read", file));
  try {
    return json::parse(stream);
  } catch (const json::exception& problem) {
    throw std::runtime_error(fmt::format("{} is not JSON: {}", file, problem.what()));
  }
}

double number(const json& object, const std::string& key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number() || found->get<double>() < 0) {
    throw std::runtime_error(fmt::format("{} has no \"{}\", or it is not a number; expected: at least 0", where, key));
  }
  return found->get<double>();
}

std::optional<double> optional_number(const json& object, const std::string& key, const std::string& where) {
  if (!object.contains(key)) return std::nullopt;
  return number(object, key, where);
}

void reject_unknown(const json& object, const std::set<std::string>& known, const std::string& where) {
  if (!object.is_object()) throw std::runtime_error(fmt::format("{} is not a JSON object", where));
  for (const auto& [key, value] : object.items()) {
    if (known.count(key) != 0) continue;
    std::string names;
    for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
    throw std::runtime_error(fmt::format("{} has \"{}\"; expected: one of {}", where, key, names));
  }
}

/// Adds the calls of one rank. The least time stays the shortest of all ranks.
void add(Calls* sum, const json& calls, const std::string& where) {
  const double count = number(calls, "count", where), least_s = number(calls, "min_s", where);
  if (count > 0 && (sum->count == 0 || least_s < sum->least_s)) sum->least_s = least_s;
  sum->count += count;
  sum->total_s += number(calls, "total_s", where);
}

void add_profile(Observed* sum, const json& profile, const std::string& file) {
  if (!profile.is_object() || profile.value("canele_profile", 0) != 1 || !profile.contains("classes")) {
    throw std::runtime_error(
        fmt::format("{} is not a profile; expected: a file of CANELE_PROFILE=profile-%r.json", file));
  }
  const json& classes = profile.at("classes");
  const std::map<std::string, Calls*> of_class = {
      {"blocking", &sum->blocking}, {"init", &sum->init}, {"test", &sum->test}, {"wait", &sum->wait}};
  for (const auto& [name, calls] : of_class) {
    if (!classes.contains(name)) throw std::runtime_error(fmt::format("{} has no class \"{}\"", file, name));
    add(calls, classes.at(name), file);
  }
  Calls other;
  add(&other, classes.value("other", json::object()), file);
  sum->other_s += other.total_s;
  sum->time_s += number(profile, "wall_s", file);
  sum->compute_s += number(profile, "application_s", file);
  *sum->mpi_s += number(profile, "mpi_s", file);
  *sum->overlappable_s += number(profile, "overlappable_s", file);
}

/// Remarks the time that threads other than the one that called MPI_Init spent in MPI, and threads that are not in the
/// profile.
void remark_threads(Observed* run, const json& profile, const std::string& file) {
  double others_s = 0;
  for (const json& thread : profile.value("threads", json::array())) {
    if (!thread.value("main", false)) others_s += thread.value("mpi_s", 0.0);
  }
  if (others_s > 0) {
    run->remarks.push_back(fmt::format(
        "{}: threads other than the main one spent {:.3g} s in MPI; the model has one thread only", file, others_s));
  }
  if (const int lost = profile.value("threads_not_counted", 0); lost > 0) {
    run->remarks.push_back(fmt::format("{}: {} threads are not in the profile", file, lost));
  }
}

Calls read_calls(const json& values, const std::string& key, const std::string& where) {
  if (!values.contains(key)) return {};
  const std::string inside = fmt::format("{}, \"{}\"", where, key);
  const json& calls = values.at(key);
  reject_unknown(calls, {"count", "total_s", "min_s"}, inside);
  return {optional_number(calls, "count", inside).value_or(0), optional_number(calls, "total_s", inside).value_or(0),
          optional_number(calls, "min_s", inside).value_or(0)};
}

Case read_case(const json& values, const std::string& file) {
  reject_unknown(values,
                 {"name", "cores", "time_s", "mpi_s", "compute_s", "init", "test", "wait", "blocking", "other_s",
                  "overlappable_s", "measured_s", "printed_s"},
                 file);
  Case made;
  made.name = values.value("name", file);
  const std::string where = fmt::format("{}, {}", file, made.name);
  made.run.time_s = number(values, "time_s", where);
  made.run.compute_s = number(values, "compute_s", where);
  made.run.other_s = optional_number(values, "other_s", where).value_or(0);
  made.run.mpi_s = optional_number(values, "mpi_s", where);
  made.run.overlappable_s = optional_number(values, "overlappable_s", where);
  made.run.blocking = read_calls(values, "blocking", where);
  made.run.init = read_calls(values, "init", where);
  made.run.test = read_calls(values, "test", where);
  made.run.wait = read_calls(values, "wait", where);
  made.cores = optional_number(values, "cores", where);
  made.measured_s = optional_number(values, "measured_s", where);
  made.printed_s = optional_number(values, "printed_s", where);
  return made;
}

}  // namespace

Observed read_profiles(const std::vector<std::string>& files) {
  Observed run;
  run.mpi_s = run.overlappable_s = 0;
  std::map<int, std::string> file_of_rank;
  int ranks = 0;
  for (const std::string& file : files) {
    const json profile = read_json(file);
    add_profile(&run, profile, file);
    remark_threads(&run, profile, file);
    const int rank = profile.value("rank", 0);
    ranks = std::max(ranks, profile.value("ranks", 1));
    if (const auto [other, is_new] = file_of_rank.emplace(rank, file); !is_new) {
      throw std::runtime_error(
          fmt::format("{} and {} are both of rank {}; expected: the files of one job", other->second, file, rank));
    }
  }
  const auto count = static_cast<double>(files.size());
  for (Calls* calls : {&run.blocking, &run.init, &run.test, &run.wait}) {
    calls->count /= count;
    calls->total_s /= count;
  }
  for (double* one : {&run.time_s, &run.compute_s, &run.other_s, &*run.mpi_s, &*run.overlappable_s}) *one /= count;
  if (static_cast<int>(files.size()) < ranks) {
    run.remarks.push_back(fmt::format("{} of {} ranks are in the result", files.size(), ranks));
  }
  return run;
}

std::vector<Case> read_values(const std::string& file) {
  const json values = read_json(file);
  std::vector<Case> cases;
  if (values.is_array()) {
    for (const json& one : values) cases.push_back(read_case(one, file));
  } else {
    cases.push_back(read_case(values, file));
  }
  if (cases.empty()) throw std::runtime_error(fmt::format("{} is an empty list", file));
  return cases;
}

}  // namespace canele::model

// SPDX-License-Identifier: BSD-3-Clause
//
// The variables of the tool interface.
#include "starpu_glue/mpi/tools/variables.hpp"

#include <canele/settings.h>

#include <map>
#include <string_view>

#include "starpu_glue/mpi/core/state.hpp"
#include "starpu_glue/mpi/tools/tool_state.hpp"

namespace canele::mpi::tools {
namespace {

/// Values that tools have written, by the names of the variables. Never ends.
std::map<std::string, std::string, std::less<>>& written() {
  static auto& all = *new std::map<std::string, std::string, std::less<>>;
  return all;
}

std::string_view name_of_counter(int index) { return canele_counter_name(index); }

}  // namespace

int setting_count() { return canele_setting_count(); }

std::string setting_name(int index) { return std::string("CANELE_") + canele_setting_name(index); }

bool is_for_experts(int index) { return std::string_view(canele_setting_name(index)).starts_with("EXPERT_"); }

std::string setting_value(int index) {
  const EngineUse use;
  if (use.get() == nullptr) {
    const std::lock_guard guard(lock);
    if (const auto place = written().find(setting_name(index)); place != written().end()) return place->second;
  }
  std::size_t needed = 0;
  canele_setting_read(use.get(), index, nullptr, 0, &needed);
  std::string text(needed, '\0');
  if (needed == 0 || canele_setting_read(use.get(), index, text.data(), text.size(), &needed) != CANELE_OK) return "";
  text.resize(needed - 1);
  return text;
}

bool write_setting(int index, const char* value) {
  const std::lock_guard guard(lock);
  if (phase() != Phase::before) return false;
  written()[setting_name(index)] = value;
  return true;
}

std::vector<std::string> written_settings() {
  const std::lock_guard guard(lock);
  std::vector<std::string> all;
  for (const auto& [name, value] : written()) all.push_back(name + "=" + value);
  return all;
}

const char* written_setting(const char* name) {
  const std::lock_guard guard(lock);
  const auto place = written().find(name);
  return place == written().end() ? nullptr : place->second.c_str();
}

int counter_count() {
  static const int count = [] {
    int known = canele_counter_count();
    while (known > 0 && std::string_view(canele_counter_help(known - 1)).starts_with("deprecated")) --known;
    return known;
  }();
  return count;
}

int counter_class(int index) {
  const std::string_view name = name_of_counter(index);
  if (name.ends_with("_now")) return MPI_T_PVAR_CLASS_LEVEL;
  if (name.ends_with("_most")) return MPI_T_PVAR_CLASS_HIGHWATERMARK;
  return name.ends_with("_ns") ? MPI_T_PVAR_CLASS_AGGREGATE : MPI_T_PVAR_CLASS_COUNTER;
}

bool is_continuous(int index) {
  const int which = counter_class(index);
  return which == MPI_T_PVAR_CLASS_LEVEL || which == MPI_T_PVAR_CLASS_HIGHWATERMARK;
}

std::optional<std::uint64_t> read_counter(int index) {
  const EngineUse use;
  std::uint64_t value = 0;
  if (use.get() == nullptr || canele_counter_read(use.get(), index, -1, nullptr, &value) != CANELE_OK)
    return std::nullopt;
  return value;
}

}  // namespace canele::mpi::tools

// SPDX-License-Identifier: BSD-3-Clause
//
// Settings: reading, checking and reporting of values. settings_table.cpp has the table.
//
// One thread builds a Settings object at the engine's start; it never changes afterwards. canele_info_json reads the
// table. An empty value means "not set", so `CANELE_DRIVERS= prog` is the default, not an error.
#include "comm/config/settings.hpp"

#include <algorithm>
#include <cassert>
#include <optional>

#include "comm/config/names.hpp"
#include "comm/config/nearest.hpp"
#include "comm/config/settings_table.hpp"

namespace canele::comm {
namespace {

constexpr std::string_view prefix = "CANELE_";

/// Variables with the prefix CANELE_ that tools and scripts read, not the library. CANELE_X_ is reserved for additions
/// of others, such as plug-ins of a runtime and wrappers.
constexpr std::string_view tool_variables = "CANELE_CC CANELE_CXX CANELE_FC";
constexpr std::string_view tool_prefixes = "CANELE_RUN_ CANELE_DEMO_ CANELE_TEST_ CANELE_X_";

using Kind = SettingKind;
using Entry = SettingEntry;
constexpr const auto& table = settings_table;

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Parses `text`, which must consist of decimal digits only. Returns nothing if it does not, or if the number does not
/// fit.
std::optional<std::uint64_t> parse_number(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : text) {
    if (!is_digit(c)) return std::nullopt;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (value > (unlimited - digit) / 10) return std::nullopt;
    value = value * 10 + digit;
  }
  return value;
}

/// Parses a number with an optional k, M or G (powers of 1024; lower or upper case; "kB" and "KiB" are understood).
std::optional<std::uint64_t> parse_size(std::string_view text) {
  std::size_t digits = 0;
  while (digits < text.size() && is_digit(text[digits])) ++digits;
  const auto number = parse_number(text.substr(0, digits));
  const std::string_view suffix = text.substr(digits);
  if (!number) return std::nullopt;
  if (suffix.empty() || suffix == "B") return number;
  int shift = 0;
  switch (suffix[0]) {
    case 'k':
    case 'K':
      shift = 10;
      break;
    case 'm':
    case 'M':
      shift = 20;
      break;
    case 'g':
    case 'G':
      shift = 30;
      break;
    default:
      return std::nullopt;
  }
  const std::string_view rest = suffix.substr(1);
  if (!rest.empty() && rest != "B" && rest != "iB") return std::nullopt;
  if (*number > (unlimited >> shift)) return std::nullopt;
  return *number << shift;
}

std::optional<std::uint64_t> parse(Kind kind, std::string_view text) {
  return kind == Kind::size ? parse_size(text) : parse_number(text);
}

/// Calls visit(word) for each word of `text`, which `separator` divides. Stops when visit() returns false.
template <typename Visit>
bool each_word(std::string_view text, char separator, Visit visit) {
  while (true) {
    const auto end = text.find(separator);
    if (!visit(text.substr(0, end))) return false;
    if (end == std::string_view::npos) return true;
    text.remove_prefix(end + 1);
  }
}

bool is_one_of(std::string_view word, std::string_view words) {
  return !each_word(words, ' ', [&](std::string_view known) { return known != word; });
}

std::string did_you_mean(std::string_view word, std::string_view words) {
  std::vector<std::string_view> known;
  each_word(words, ' ', [&](std::string_view one) {
    known.push_back(one);
    return true;
  });
  const std::string_view nearest = nearest_name(word, known);
  return nearest.empty() ? "" : " (did you mean " + std::string(nearest) + "?)";
}

constexpr std::string_view name_letters = "abcdefghijklmnopqrstuvwxyz0123456789_";

/// Checks a list such as "shm,tcp:eth0+tcp:eth1". Whether a driver of that name exists is known only after the search
/// for modules.
std::string check_drivers(std::string_view text) {
  std::string problem, seen = " ";
  const auto one_driver = [&](std::string_view word) {
    const std::string_view name = word.substr(0, word.find(':'));
    if (word.empty()) {
      problem = "has an empty name in it";
    } else if (name.empty() || name.find_first_not_of(name_letters) != std::string_view::npos) {
      problem = "names \"" + std::string(name) + "\", which cannot be the name of a driver";
    } else if (seen.find(" " + std::string(word) + " ") != std::string::npos) {
      problem = "names \"" + std::string(word) + "\" twice";
    }
    seen.append(word).append(" ");
    return problem.empty();
  };
  each_word(text, ',', [&](std::string_view group) { return each_word(group, '+', one_driver); });
  return problem;
}

constexpr std::string_view fault_names = "flip-byte shuffle-tasks";

std::string check_fault(std::string_view text) {
  std::string problem;
  each_word(text, ',', [&](std::string_view fault) {
    const auto colon = fault.find(':');
    const std::string_view name = fault.substr(0, colon);
    const bool well_named =
        !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == std::string_view::npos;
    if (!well_named || colon == std::string_view::npos || !parse_number(fault.substr(colon + 1))) {
      problem = "has \"" + std::string(fault) + "\", which is not name:number";
    } else if (!is_one_of(name, fault_names)) {
      problem = "names the unknown fault \"" + std::string(name) + "\" (known: " + std::string(fault_names) + ")";
    }
    return problem.empty();
  });
  return problem;
}

std::string check_number(const Entry& entry, std::string_view text) {
  const auto value = parse(entry.kind, text);
  if (!value) return entry.kind == Kind::size ? "is not a size" : "is not a whole number";
  if (*value < entry.least) return "is less than " + std::to_string(entry.least);
  if (*value > entry.most) return "is more than " + std::to_string(entry.most);
  return {};
}

/// Returns what is wrong with `text` as a value of this setting; empty if nothing.
std::string check(const Entry& entry, std::string_view text) {
  if (entry.may_be_auto && text == "auto") return {};
  switch (entry.kind) {
    case Kind::choice:
      if (is_one_of(text, entry.words)) return {};
      return "is not one of its values" + did_you_mean(text, entry.words);  // complaint() appends the allowed values
    case Kind::drivers:
      return check_drivers(text);
    case Kind::number:
    case Kind::size:
      return check_number(entry, text);
    case Kind::fault:
      return check_fault(text);
    case Kind::text:
      return {};
  }
  return {};
}

/// Returns the row of a name or an old name; -1: there is none.
int find(std::string_view name) {
  if (name.empty()) return -1;
  for (int i = 0; i < static_cast<int>(table.size()); ++i) {
    const SettingInfo& info = table[static_cast<std::size_t>(i)].info;
    if (info.name == name || info.alias == name) return i;
  }
  return -1;
}

std::string variable_of(std::string_view name) { return std::string(prefix).append(name); }

bool belongs_to_a_tool(std::string_view variable) {
  return is_one_of(variable, tool_variables) ||
         !each_word(tool_prefixes, ' ', [&](std::string_view start) { return !variable.starts_with(start); });
}

/// Suggests the setting with the nearest name. An old name that is nearest leads to the new one.
std::string suggestion(std::string_view variable) {
  std::vector<std::string_view> names;
  for (const Entry& entry : table) {
    names.push_back(entry.info.name);
    if (!entry.info.alias.empty()) names.push_back(entry.info.alias);
  }
  const std::string_view bare = variable.starts_with(prefix) ? variable.substr(prefix.size()) : variable;
  const int nearest = find(nearest_name(bare, names));
  if (nearest < 0) return "; canele-info lists the known ones";
  return "; did you mean " + variable_of(table[static_cast<std::size_t>(nearest)].info.name) + "?";
}

/// One parsed "CANELE_NAME=value".
struct Assignment {
  std::string_view variable;
  std::string_view value;
  int index = -1;              ///< in the table; -1: unknown
  bool without_value = false;  ///< there is no "="

  const Entry& entry() const { return table[static_cast<std::size_t>(index)]; }
  bool by_old_name() const { return variable.substr(prefix.size()) != entry().info.name; }
};

Assignment take_apart(std::string_view text) {
  const auto equals = text.find('=');
  Assignment one{text.substr(0, equals), equals == std::string_view::npos ? "" : text.substr(equals + 1), -1,
                 equals == std::string_view::npos};
  if (one.variable.starts_with(prefix)) one.index = find(one.variable.substr(prefix.size()));
  return one;
}

std::string expected_values(const Entry& entry) {
  std::string text = std::string(entry.info.values);
  if (!entry.info.unit.empty()) text += ", in " + std::string(entry.info.unit);
  const std::string_view fallback = entry.info.fallback.empty() ? "empty" : entry.info.fallback;
  return text + " (default " + std::string(fallback) + ")";
}

constexpr std::string_view in_the_options = "(in the options of canele_init)";

std::string no_value_given(const Assignment& one) {
  const Entry& entry = one.entry();
  return "\"" + std::string(one.variable) + "\" " + std::string(in_the_options) +
         " has no \"=\" and no value; expected: " + std::string(one.variable) +
         "= and one of: " + expected_values(entry);
}

/// Returns "" or the full sentence for users.
std::string complaint(const Assignment& one, Source source) {
  const Entry& entry = one.entry();
  const std::string problem = check(entry, one.value);
  if (problem.empty()) return {};
  std::string text = std::string(one.variable) + "=\"" + std::string(one.value) + "\" ";
  if (source == Source::options) text += std::string(in_the_options) + " ";
  return text + problem + "; expected: " + expected_values(entry);
}

std::string both_names(const SettingInfo& info, Source source) {
  std::string text = variable_of(info.alias) + " and " + variable_of(info.name);
  if (source == Source::options) text.append(" ").append(in_the_options);
  return text + " are the old and the new name of one setting; expected: " + variable_of(info.name) + " alone";
}

}  // namespace

/// Takes the assignments of one source after the other.
class Settings::Reader {
 public:
  explicit Reader(Settings& settings) : settings_(settings), names_(table.size()) {}

  /// Starts with the next source.
  void begin(Source source) {
    source_ = source;
    names_.assign(table.size(), Names{});
  }
  void take(const Assignment& one) {
    if (one.value.empty()) return;
    note_name(one);
    const std::string problem = complaint(one, source_);
    if (!problem.empty()) return complain(problem);
    settings_.values_[static_cast<std::size_t>(one.index)] = {std::string(one.value), source_};
  }
  /// Keeps the first mistake.
  void complain(const std::string& problem) {
    if (settings_.error_.empty()) settings_.error_ = problem;
  }

 private:
  struct Names {
    bool old_one = false, new_one = false;
  };

  void note_name(const Assignment& one) {
    Names& names = names_[static_cast<std::size_t>(one.index)];
    const bool old = one.by_old_name();
    if (old && !names.old_one) {
      settings_.notes_.push_back(std::string(one.variable) +
                                 " is an old name; expected: " + variable_of(one.entry().info.name));
    }
    (old ? names.old_one : names.new_one) = true;
    if (names.old_one && names.new_one) complain(both_names(one.entry().info, source_));
  }

  Settings& settings_;
  Source source_ = Source::environment;
  std::vector<Names> names_;
};

Settings::Settings(Platform& platform, std::span<const std::string> overrides, Warnings when) : values_(table.size()) {
  std::vector<std::string> warnings;
  for (std::size_t i = 0; i < table.size(); ++i) values_[i].text = table[i].info.fallback;

  Reader reader(*this);
  reader.begin(Source::environment);
  platform.each_variable(prefix, [&](std::string_view text) {
    const Assignment one = take_apart(text);
    if (one.index >= 0) {
      reader.take(one);
    } else if (!belongs_to_a_tool(one.variable)) {
      unknown_.emplace_back(one.variable.substr(prefix.size()), one.value);
      warnings.push_back("unknown variable " + std::string(one.variable) + " ignored" + suggestion(one.variable));
    }
  });
  reader.begin(Source::options);
  for (const std::string& text : overrides) {
    const Assignment one = take_apart(text);
    if (one.index >= 0 && one.without_value)
      reader.complain(no_value_given(one));
    else if (one.index >= 0)
      reader.take(one);
  }
  for (const std::string& text : overrides) {  // when the drivers are known
    const Assignment one = take_apart(text);
    if (one.index >= 0) continue;
    const std::string_view bare = one.variable.starts_with(prefix) ? one.variable.substr(prefix.size()) : "";
    // A wrong name in the options is an error of the program; a stale variable in the environment gives only a warning.
    if (one.without_value || !belongs_to_a_module(bare))
      reader.complain("unknown setting \"" + text + "\" in the options of canele_init" + suggestion(one.variable));
    else if (!one.value.empty())
      unknown_.emplace_back(bare, one.value);
  }
  log_or_keep(platform, when, std::move(warnings));
}

/// Logs or keeps the warnings of unknown variables, one of `warnings` each, and the notes.
void Settings::log_or_keep(Platform& platform, Warnings when, std::vector<std::string> warnings) {
  const auto verbosity = static_cast<LogLevel>(number(Setting::verbose));
  if (verbosity < LogLevel::info) notes_.clear();
  if (verbosity < LogLevel::warning) return;
  for (std::size_t i = 0; i < warnings.size(); ++i) {  // those of the options follow in unknown_, without a warning
    if (!belongs_to_a_module(unknown_[i].first)) warnings_.push_back(std::move(warnings[i]));
  }
  if (when == Warnings::later) return;
  for (const std::string& text : warnings_) platform.log(LogLevel::warning, text);
  for (const std::string& text : notes_) platform.log(LogLevel::info, text);
  warnings_.clear();
  notes_.clear();
}

std::uint64_t Settings::number(Setting setting, std::uint64_t automatic) const {
  const Entry& entry = table[static_cast<std::size_t>(setting)];
  assert(entry.kind == Kind::number || entry.kind == Kind::size);
  const std::string& value = text(setting);
  if (entry.may_be_auto && value == "auto") return automatic;
  const auto parsed = parse(entry.kind, value);
  assert(parsed);  // values were checked when they were taken
  return *parsed;
}

std::uint64_t Settings::fault(std::string_view name) const {
  assert(is_one_of(name, fault_names));
  std::uint64_t found = 0;
  each_word(text(Setting::fault), ',', [&](std::string_view one) {
    if (one.size() > name.size() && one.starts_with(name) && one[name.size()] == ':')
      found = parse_number(one.substr(name.size() + 1)).value_or(0);
    return true;
  });
  return found;
}

const SettingInfo& Settings::info(Setting setting) {
  assert(setting >= Setting{} && setting < Setting::count);
  return table[static_cast<std::size_t>(setting)].info;
}

std::string Settings::by_name(std::string_view name, std::string_view fallback) const {
  const int index = find(name);
  if (index >= 0) return values_[static_cast<std::size_t>(index)].text;
  std::string found(fallback);
  for (const auto& [variable, value] : unknown_) {  // the options come last, and win
    if (variable == name && belongs_to_a_module(variable)) found = value;
  }
  return found;
}

/// Returns whether the variable (without CANELE_) begins with the name of a driver that is asked for, and "_".
bool Settings::belongs_to_a_module(std::string_view variable) const {
  bool named = false;
  const auto is_owner = [&](std::string_view word) {
    const std::string_view driver = word.substr(0, word.find(':'));
    const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; };
    named = !driver.empty() && variable.size() > driver.size() + 1 && variable[driver.size()] == '_' &&
            !is_one_of(driver, built_in_drivers) &&
            std::equal(driver.begin(), driver.end(), variable.begin(), [&](char d, char v) { return upper(d) == v; });
    return !named;
  };
  each_word(text(Setting::drivers), ',', [&](std::string_view group) { return each_word(group, '+', is_owner); });
  return named;
}

}  // namespace canele::comm

// SPDX-License-Identifier: BSD-3-Clause
//
// Reads a list of decorators and wraps a driver in them. See decorators.hpp.
//
// A reliable driver may not drop, duplicate or reorder. These names are known here only to explain why they are
// missing.
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "drivers/decorators/decorator.hpp"
#include "drivers/decorators/decorators.hpp"

namespace canele::drivers {
namespace {

struct Option {
  std::string_view name;
  double least, most, otherwise;
  bool whole = true;  ///< a whole number
};
struct DecoratorKind {
  std::string_view name;
  std::unique_ptr<Driver> (*make)(std::unique_ptr<Driver>, const OptionValues&);
  std::array<Option, 7> options;
};

constexpr double huge = 9007199254740992.0;  // 2^53: every whole number up to here is exact in a double
constexpr DecoratorKind kinds[] = {
    {"trace", make_trace, {{{"keep", 1, 1'000'000, 0}}}},
    {"delay", make_delay, {{{"us", 0, 10'000'000, 100}, {"room", 65536, huge, 8 << 20}}}},
    {"fault",
     make_fault,
     {{{"seed", 0, huge, -1},
       {"full", 0, 1, 0, false},
       {"burst", 1, 1000, 3},
       {"short", 0, 1, 0, false},
       {"kill", 1, huge, 0},
       {"lose-rail", 1, huge, 0},
       {"rank", 0, 2147483647, -1}}}},
    {"check", make_check, {}},
};

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string names_of_kinds() {
  std::string all;
  for (const DecoratorKind& kind : kinds) all += (all.empty() ? "" : ", ") + std::string(kind.name);
  return all;
}

std::string names_of_options(const DecoratorKind& kind) {
  std::string all;
  for (const Option& option : kind.options) {
    if (!option.name.empty()) all += (all.empty() ? "" : ", ") + std::string(option.name);
  }
  return all.empty() ? "no option" : all;
}

/// Takes the text before `separator`, and the separator, off the front of *text.
std::string_view take_word(std::string_view* text, char separator) {
  const auto end = text->find(separator);
  const std::string_view word = text->substr(0, end);
  text->remove_prefix(end == std::string_view::npos ? text->size() : end + 1);
  return word;
}

bool is_out_of_contract(std::string_view name) { return name == "drop" || name == "duplicate" || name == "reorder"; }

/// Reads one "name=value" into *values. False and *error on failure.
bool read_option(const DecoratorKind& kind, std::string_view text, OptionValues* values, std::string* error) {
  const std::string where = "decorator " + std::string(kind.name) + ": ";
  const std::string_view name = take_word(&text, '=');
  if (is_out_of_contract(name)) {
    *error = where + std::string(name) +
             " is not supported, as a driver delivers everything once and in order; expected: lose-rail=N, which loses "
             "a rail, or "
             "delay on one of two rails, which reorders them";
    return false;
  }
  for (const Option& option : kind.options) {
    if (option.name.empty() || option.name != name) continue;
    double value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool number = code == std::errc() && end == text.data() + text.size() && !text.empty();
    if (number && value >= option.least && value <= option.most && (!option.whole || std::floor(value) == value)) {
      (*values)[std::string(name)] = value;
      return true;
    }
    char range[80];
    std::snprintf(range, sizeof range, "%s from %.0f to %.0f", option.whole ? "a whole number" : "a number",
                  option.least, option.most);
    *error = where + std::string(name) + "=" + quoted(text) + "; expected: " + range;
    return false;
  }
  *error = where + quoted(name) + " is not an option; expected: " + names_of_options(kind);
  return false;
}

const DecoratorKind* find_kind(std::string_view name) {
  for (const DecoratorKind& kind : kinds) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

struct Chosen {
  const DecoratorKind* kind;
  OptionValues values;
};

bool read_decorator(std::string_view text, Chosen* chosen, std::string* error) {
  const std::string_view name = take_word(&text, ':');
  chosen->kind = find_kind(name);
  if (chosen->kind == nullptr) {
    *error = quoted(name) + " is not a decorator; expected: " + names_of_kinds();
    return false;
  }
  for (const Option& option : chosen->kind->options) {
    if (!option.name.empty()) chosen->values[std::string(option.name)] = option.otherwise;
  }
  while (!text.empty()) {
    if (!read_option(*chosen->kind, take_word(&text, ':'), &chosen->values, error)) return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<Driver> decorate(std::string_view list, std::unique_ptr<Driver> driver, std::string* error) {
  std::vector<Chosen> all;
  while (!list.empty()) {
    if (!read_decorator(take_word(&list, ','), &all.emplace_back(), error)) return nullptr;
  }
  for (auto one = all.rbegin(); one != all.rend(); ++one) driver = one->kind->make(std::move(driver), one->values);
  return driver;
}

std::vector<std::byte> gather(const iovec* pieces, int count, std::size_t size) {
  std::vector<std::byte> bytes;
  bytes.reserve(size);
  for (int i = 0; i < count; ++i) {
    const auto* const from = static_cast<const std::byte*>(pieces[i].iov_base);
    bytes.insert(bytes.end(), from, from + pieces[i].iov_len);
  }
  return bytes;
}

}  // namespace canele::drivers

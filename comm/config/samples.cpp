// SPDX-License-Identifier: BSD-3-Clause
//
// Reads samples.
//
// The host's name and the processor are read from /proc through the platform, so that a test can simulate any machine.
#include "comm/config/samples.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace canele::comm {
namespace {

using strategies::Costs;

constexpr std::size_t longest_file = 64 * 1024, most_drivers = 64, most_times = 32;
constexpr std::uint64_t most_ns = 1'000'000'000'000, most_bytes_per_second = 1'000'000'000'000'000;
constexpr std::uint64_t largest_size = std::uint64_t{1} << 40;
constexpr std::string_view first_line = "canele-samples 1";
constexpr std::string_view driver_form =
    "driver NAME date=YYYY-MM-DD latency_ns=N gap_ns=N bytes_per_second=N declared_latency_ns=N "
    "declared_bytes_per_second=N";
constexpr std::string_view time_form = "time NAME BYTES NS, after its driver, sizes ascending";

/// Removes the first line from `text` and returns it.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

/// Removes the next word from `line` and returns it; empty at the end.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

std::optional<std::uint64_t> number(std::string_view text, std::uint64_t least, std::uint64_t most) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value >= least && value <= most ? std::optional(value) : std::nullopt;
}

/// Returns the line in a form safe to print: of limited length, and without terminal control characters.
std::string shown(std::string_view line) {
  constexpr std::size_t longest = 80;
  std::string text(line.substr(0, longest));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
  return '"' + text + (line.size() > longest ? "...\"" : "\"");
}

bool is_date(std::string_view text) {
  constexpr std::string_view form = "0000-00-00";
  const auto fits = [](char c, char f) { return f == '0' ? c >= '0' && c <= '9' : c == f; };
  return text.size() == form.size() && std::equal(text.begin(), text.end(), form.begin(), fits);
}

/// Parses what follows "driver". Returns "", or what is wrong.
std::string parse_driver(std::string_view line, Samples* samples) {
  Sample sample;
  sample.costs.measured = true;
  sample.driver = take_word(line);
  if (sample.driver.empty()) return "it names no driver";
  for (const Sample& one : samples->all) {
    if (one.driver == sample.driver) return "the driver has a record already";
  }
  if (samples->all.size() == most_drivers) return "there are more than " + std::to_string(most_drivers) + " drivers";
  struct Field {
    std::string_view name;
    std::uint64_t* value;
    std::uint64_t least, most;
    bool seen = false;
  };
  std::array<Field, 5> fields = {{
      {"latency_ns", &sample.costs.latency_ns, 1, most_ns},
      {"gap_ns", &sample.costs.gap_ns, 1, most_ns},
      {"bytes_per_second", &sample.costs.bytes_per_second, 1, most_bytes_per_second},
      {"declared_latency_ns", &sample.declared_latency_ns, 0, most_ns},
      {"declared_bytes_per_second", &sample.declared_bytes_per_second, 0, most_bytes_per_second},
  }};
  for (std::string_view word = take_word(line); !word.empty(); word = take_word(line)) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string_view name = word.substr(0, equals), value = word.substr(std::min(equals + 1, word.size()));
    if (name == "date" && sample.date.empty() && is_date(value)) {
      sample.date = value;
      continue;
    }
    const auto field = std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.name == name; });
    const auto parsed = field != fields.end() ? number(value, field->least, field->most) : std::nullopt;
    if (!parsed || std::exchange(field->seen, true)) return shown(word) + " is unknown, wrong or there twice";
    *field->value = *parsed;
  }
  for (const Field& field : fields) {
    if (!field.seen) return std::string(field.name) + " is missing";
  }
  if (sample.date.empty()) return "date is missing";
  samples->all.push_back(std::move(sample));
  return {};
}

/// Parses what follows "time". Returns "", or what is wrong.
std::string parse_time(std::string_view line, Samples* samples) {
  const std::string_view name = take_word(line);
  const auto size = number(take_word(line), 1, largest_size), ns = number(take_word(line), 1, most_ns);
  if (!size || !ns || !take_word(line).empty()) return "it holds no size and time in range";
  const auto of_driver = [&](const Sample& one) { return one.driver == name; };
  const auto found = std::find_if(samples->all.begin(), samples->all.end(), of_driver);
  if (found == samples->all.end()) return "no good record of this driver comes before it";
  auto& times = found->costs.times;
  if (times.size() == most_times) return "there are more than " + std::to_string(most_times) + " for this driver";
  if (!times.empty() && times.back().size >= *size) return "its size is not larger than the one before";
  times.push_back({*size, *ns});
  return {};
}

/// Parses the lines that say what the file is valid for. Returns false if the file is ignored; `state` and `problem`
/// then say why.
bool parse_head(std::string_view& text, Samples* samples) {
  std::string_view line = take_line(text);
  if (line != first_line) {
    const bool other_format = line.starts_with(first_line.substr(0, first_line.find(' ') + 1));
    samples->state = other_format ? Samples::State::stale : Samples::State::rejected;
    samples->problem = "its first line is " + shown(line) + " and not \"" + std::string(first_line) + '"';
    return false;
  }
  int number = 1;
  for (const auto& [key, now] : {std::pair<std::string_view, std::string_view>{"host ", samples->host},
                                 {"machine ", samples->machine},
                                 {"library ", CANELE_VERSION}}) {
    line = take_line(text);
    ++number;
    if (line.starts_with(key) && line.substr(key.size()) == now) continue;
    samples->state = line.starts_with(key) ? Samples::State::stale : Samples::State::rejected;
    samples->problem = "line " + std::to_string(number) + " is " + shown(line) + ", and " +
                       (line.starts_with(key) ? "this host expects " : "expected: ") +
                       shown(std::string(key) + std::string(now));
    return false;
  }
  return true;
}

Costs declared_costs(const drivers::Capabilities& capabilities) {
  Costs costs;
  costs.latency_ns = capabilities.latency_ns;
  costs.gap_ns = capabilities.gap_ns;
  costs.bytes_per_second = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(capabilities.bandwidth * 1e9 + 0.5));
  return costs;
}

std::string processor(Platform& platform) {
  constexpr std::size_t enough = 4096;
  const std::string text = platform.read_file("/proc/cpuinfo", enough).text;
  constexpr std::string_view key = "model name\t: ";
  const std::size_t at = text.find(key);
  if (at == std::string::npos) return "unknown processor";
  return text.substr(at + key.size(), text.find('\n', at) - at - key.size());
}

std::string one_line(Platform& platform, const char* file, std::string_view fallback) {
  constexpr std::size_t enough = 256;
  const std::string text = platform.read_file(file, enough).text;
  const std::string line = text.substr(0, text.find('\n'));
  return line.empty() ? std::string(fallback) : line;
}

/// Returns the directory of the files of samples, or "" if there is none.
std::string directory(Platform& platform, const Settings& settings) {
  const std::string& set = settings.text(Setting::samples);
  if (!set.empty()) return set == "off" ? "" : set;
  for (const auto& [variable, below] : {std::pair{"XDG_CACHE_HOME", "/canele"}, std::pair{"HOME", "/.cache/canele"}}) {
    const char* const start = platform.variable(variable);
    if (start != nullptr && start[0] == '/') return std::string(start) + below;
  }
  return {};
}

}  // namespace

void parse_samples(std::string_view text, Samples* samples) {
  if (!parse_head(text, samples)) return;
  bool ended = false;
  int number = 4, bad = 0;
  while (!text.empty()) {
    const std::string_view whole = take_line(text);
    std::string_view line = whole;
    const std::string_view word = take_word(line);
    ++number;
    if (word.empty() || word.starts_with('#')) continue;
    std::string wrong = "it begins with an unknown word";
    if (ended) {
      wrong = "it comes after the end";
    } else if (word == "driver") {
      wrong = parse_driver(line, samples);
    } else if (word == "time") {
      wrong = parse_time(line, samples);
    } else if (whole == "end") {
      ended = true;
      continue;
    }
    if (wrong.empty() || ++bad > 1) continue;
    samples->problem = "line " + std::to_string(number) + ", " + shown(whole) + ", is ignored: " + wrong +
                       "; expected: " +
                       (word == "driver" ? std::string(driver_form)
                        : word == "time" ? std::string(time_form)
                                         : "driver ..., time ..., or at last end");
  }
  if (bad > 1) samples->problem += " (bad lines in all: " + std::to_string(bad) + ")";
  samples->state = ended ? Samples::State::read : Samples::State::rejected;
  if (ended) return;
  samples->all.clear();
  samples->problem = "it is cut; expected: a last line \"end\"";
}

Samples read_samples(Platform& platform, const Settings& settings) {
  Samples samples;
  const std::string where = directory(platform, settings);
  if (where.empty()) return samples;
  samples.host = one_line(platform, "/proc/sys/kernel/hostname", "localhost");
  samples.file = where + "/" + samples.host + ".samples";
  samples.machine = processor(platform) + ", " + std::to_string(platform.processors()) + " PUs, Linux " +
                    one_line(platform, "/proc/sys/kernel/osrelease", "unknown");
  const FileText file = platform.read_file(samples.file, longest_file);
  if (file.whole) {
    parse_samples(file.text, &samples);
  } else if (!file.there) {
    samples.state = Samples::State::absent;
  } else {
    samples.state = Samples::State::rejected;
    samples.problem = file.problem.empty() ? "it is longer than " + std::to_string(longest_file) + " bytes"
                                           : "it cannot be read: " + file.problem;
  }
  return samples;
}

Costs costs_of(const Samples& samples, std::string_view driver, const drivers::Capabilities& capabilities) {
  const Costs declared = declared_costs(capabilities);
  for (const Sample& one : samples.all) {
    const bool holds = one.driver == driver && one.declared_latency_ns == declared.latency_ns &&
                       one.declared_bytes_per_second == declared.bytes_per_second;
    if (holds) return one.costs;
  }
  return declared;
}

std::string_view name_of(Samples::State state) {
  constexpr std::string_view names[] = {"off", "absent", "read", "stale", "refused"};  // in the order of enum State
  return names[static_cast<int>(state)];
}

}  // namespace canele::comm

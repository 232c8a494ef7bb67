// SPDX-License-Identifier: BSD-3-Clause
//
// Settings: the table, and how a value is read, checked and reported.
//
// Who: the engine's start (any thread, before anything runs); canele_info_json reads the table.
// Threads: a Settings is built by one thread and never changes afterwards.
// Surprise: an empty value means "not set", so `CANELE_DRIVERS= prog` is the default, not an error.
#include "comm/config/settings.hpp"

#include <array>
#include <cassert>
#include <limits>
#include <optional>

#include "comm/config/names.hpp"
#include "comm/config/nearest.hpp"

namespace canele::comm {
namespace {

constexpr std::string_view prefix = "CANELE_";
constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t seconds_per_day = 86'400;

/// Variables with our prefix that tools and scripts read, not the library.
constexpr std::string_view tool_variables = "CANELE_CC CANELE_CXX CANELE_FC";
constexpr std::string_view tool_prefixes = "CANELE_RUN_ CANELE_DEMO_ CANELE_TEST_";

enum class Kind : std::uint8_t { choice, drivers, number, size, text, fault };

struct Entry {
  SettingInfo info;
  Kind kind;
  bool may_be_auto = false;
  std::uint64_t least = 0;
  std::uint64_t most = unlimited;
  std::string_view words = {};  ///< choice: what is allowed
};

constexpr std::array<Entry, static_cast<int>(Setting::count)> table = {{
    {{"DRIVERS", "shm,tcp", "",
      "Drivers to use, in order of preference: the first that reaches a peer carries its messages. Drivers joined by + "
      "carry a peer's messages together, and go on alone if one fails. What follows a colon is for the driver: an "
      "interface (tcp), a provider (ofi). Fewer drivers start faster and open fewer resources; a peer that none of "
      "them "
      "reaches is an error at its first message.",
      "e.g. shm,tcp or shm+tcp or tcp:eth0+tcp:eth1; names: shm, tcp, ofi, psm2, or a module in CANELE_DRIVER_PATH"},
     Kind::drivers},
    {{"DRIVER_PATH", "", "",
      "Directories with driver modules (canele-driver-NAME.so), searched before those installed with the library. They "
      "are programs: name only directories that you trust.",
      "colon-separated directories"},
     Kind::text},
    {{"DECORATORS", "", "",
      "What is wrapped around every driver, the outermost first: trace (a line per call), delay, fault (from a seed), "
      "check "
      "(the contract of drivers). For tests and for looking; each costs time.",
      "e.g. check,delay:us=50,fault:seed=7:full=0.05"},
     Kind::text},
    {{"STRATEGY", "aggregate", "",
      "Which queued messages leave in the next packet. fifo: one message a packet, least work per message, most "
      "packets. "
      "aggregate: as many as pay, fewer packets when a rail is busy. priority: highest priority first, at the price "
      "of a sorted queue.",
      "fifo | aggregate | priority"},
     Kind::choice,
     false,
     0,
     unlimited,
     known_strategies},
    {{"MATCHER", "table", "",
      "How receives and messages find each other. table: in constant time, however many wait. The others search, and "
      "are "
      "there to be compared with: list, bins (hash bins of a fixed number), peers (a list for each peer), arrays (a "
      "list "
      "of small arrays), vector and fuzzy (lists that compare many entries at once).",
      "table | list | bins | peers | arrays | vector | fuzzy"},
     Kind::choice,
     false,
     0,
     unlimited,
     known_matchers},
    {{"WORKER", "none", "",
      "Who makes communication progress. bound: a thread of its own, so that transfers go on while the program "
      "computes; it sleeps when there is nothing to do. none: only the program's own calls to wait, test and progress; "
      "saves the thread, and large transfers then stand still while the program computes.",
      "none | bound"},
     Kind::choice,
     false,
     0,
     unlimited,
     "none bound"},
    {{"WORKER_CORE", "auto", "",
      "Processing unit (hwloc logical index) that the worker is pinned to. Pinned, it answers faster if the program "
      "leaves that unit free, and disturbs the program if not. auto: not pinned until the host runtime names a unit.",
      "auto | index"},
     Kind::number,
     true,
     0,
     1'000'000},
    {{"EAGER_LIMIT", "auto", "bytes",
      "Messages up to this length leave at once and may be copied once more at the receiver; longer ones ask first "
      "(rendezvous), which costs a round trip and saves copies and memory. auto: each driver's own limit.",
      "auto | size, e.g. 16k"},
     Kind::size,
     true,
     0,
     std::uint64_t{1} << 30},
    {{"UNEXPECTED_MEMORY", "auto", "bytes",
      "Memory for messages that have arrived before their receives. What does not fit stays with its sender, and moves "
      "as soon as a receive asks for it: nothing is lost, but a send then ends later. Raise it for bursts of messages "
      "that are received late. At least 16 KiB for each rank. auto: 64 MiB, or 32 KiB for each rank if that is more.",
      "auto | size, e.g. 256M"},
     Kind::size,
     true,
     0,
     std::uint64_t{1} << 50},
    {{"UNEXPECTED_PER_PEER", "auto", "bytes",
      "The most of that memory which one sender may use. Lower: one rank that floods leaves more to the others. auto: "
      "a quarter of it.",
      "auto | size, e.g. 16M"},
     Kind::size,
     true,
     0,
     std::uint64_t{1} << 50},
    {{"MULTICAST", "auto", "",
      "Who hands the data of a multicast to whom. flat: the root to all. chain: each to the next, best for very large "
      "data. binomial, 4-nomial, 8-nomial: whoever has it serves 1, 3, 7 more at a time. auto: what a model of the "
      "network expects to end first. Ranks that are reached through shared memory are always served by the root.",
      "auto | flat | chain | binomial | 4-nomial | 8-nomial"},
     Kind::choice,
     false,
     0,
     unlimited,
     "auto flat chain binomial 4-nomial 8-nomial"},
    {{"MULTICAST_MEMORY", "64M", "bytes",
      "Memory for data of multicasts that other ranks want from this one before its own receive is there. What does "
      "not fit they get from the root, which takes longer. 0: nothing is handed on before it is received.",
      "size, e.g. 256M"},
     Kind::size,
     false,
     0,
     std::uint64_t{1} << 40},
    {{"PUSH", "on", "",
      "Whether a large receive on the same host is offered to its sender, which then writes the data there while the "
      "receiver computes; both copy if both wait. Costs a small message for each large receive. off: only the receiver "
      "copies, when it next makes progress.",
      "on | off"},
     Kind::choice,
     false,
     0,
     unlimited,
     "on off"},
    {{"CHECKSUM", "off", "",
      "Whether every packet carries a CRC32C of all its bytes, messages and protocol. packets: damage on the way is "
      "never delivered: the rail fails, or the peer with its last one, with an error that names the rank; all ranks of "
      "a job need the same value. Costs some 0.1 ns a byte at each end and one more copy of large messages, which then "
      "go in packets over every driver: no remote memory access, no copy from process to process. off: the fabric's "
      "own checks are trusted, and nothing is paid.",
      "off | packets"},
     Kind::choice,
     false,
     0,
     unlimited,
     "off packets"},
    {{"SPIN", "auto", "ns",
      "Time to spin after the last event before giving up the core. Longer: lower latency after a pause. Shorter: less "
      "processor time taken from others. auto: from the machine, and zero when it has more runnable threads than "
      "cores.",
      "auto | time"},
     Kind::number,
     true,
     0,
     10'000'000'000},
    {{"START_TIMEOUT", "60", "s",
      "Time for all ranks to appear at the start. Raise it on machines that start jobs slowly; lower it to learn of a "
      "missing rank sooner.",
      "1 to 86400"},
     Kind::number,
     false,
     1,
     seconds_per_day},
    {{"FINALIZE_TIMEOUT", "600", "s",
      "Time for all ranks to reach the end. Raise it if ranks end far apart; lower it to learn of a stuck rank sooner. "
      "0: for ever.",
      "0 to 86400"},
     Kind::number,
     false,
     0,
     seconds_per_day},
    {{"COUNTERS", "", "",
      "File that the counters are written to, as JSON, when the engine is finalized; %r becomes the rank. Without %r "
      "the ranks overwrite each other. Empty: nothing is written.",
      "file name | - (stderr)"},
     Kind::text},
    {{"TRACE", "", "",
      "File that the last events (messages posted, matched and done, packets, peers, the worker's sleep) are "
      "written to "
      "when the engine is finalized, for Perfetto (ui.perfetto.dev) or chrome://tracing; %r becomes the rank. Messages "
      "take a slower way through the library meanwhile. Empty: nothing is kept.",
      "file name | - (stderr)"},
     Kind::text},
    {{"TRACE_EVENTS", "65536", "",
      "With CANELE_TRACE: how many events are kept, 32 bytes each. The oldest ones give way to new ones; their number "
      "is told in the file.",
      "16 to 100000000"},
     Kind::number,
     false,
     16,
     100'000'000},
    {{"VERBOSE", "1", "",
      "What is said on stderr. 0: errors. 1: warnings too. 2: one line on drivers, strategy and worker at the start. "
      "3: "
      "for developers; slows down.",
      "0 to 3"},
     Kind::number,
     false,
     0,
     3},
    {{"TCP_INTERFACE", "auto", "",
      "Interface or address that the tcp driver listens on and is reached at. auto: the host's first that is up and "
      "not "
      "loop-back, else loop-back. Name one where hosts have several networks, or the slow one may be taken.",
      "auto | interface | address"},
     Kind::text,
     true},
    {{"TCP_PORT", "0", "",
      "First port that the tcp driver tries to listen on; the next ones follow if it is taken. 0: any free port. A "
      "fixed "
      "port suits a firewall, and can be taken.",
      "0 to 65535"},
     Kind::number,
     false,
     0,
     65'535},
    {{"TCP_SILENCE", "30", "s",
      "Time without an answer from the kernel of a peer's host after which a TCP connection counts as lost. A program "
      "that "
      "computes or is stopped is not silent: its kernel answers. Raise it where links are down for longer; lower it to "
      "learn of a lost host sooner.",
      "3 to 86400"},
     Kind::number,
     false,
     3,
     seconds_per_day},
    {{"TCP_SEND_BUFFER", "0", "bytes",
      "What the kernel may keep for each TCP connection until the peer has it. 0: the kernel's choice, which grows "
      "with the traffic. A small buffer saves memory where there are many peers, and costs bandwidth.",
      "0 to 1073741824"},
     Kind::number,
     false,
     0,
     std::uint64_t{1} << 30},
    {{"SHM_CMA", "auto", "",
      "Whether large messages on one host are copied straight from the other process's memory (cross-memory attach). "
      "auto: if the kernel allows it. off: through shared buffers, one copy more.",
      "auto | off"},
     Kind::choice,
     false,
     0,
     unlimited,
     "auto off"},
    {{"SHM_MEMBARRIER", "auto", "",
      "Whether a rank that goes to sleep orders memory for all its peers by one call of membarrier(). auto: if the "
      "kernel allows it. off: every message through shared memory costs its sender a fence instead; for comparison.",
      "auto | off"},
     Kind::choice,
     false,
     0,
     unlimited,
     "auto off"},
    {{"OFI_PROVIDER", "", "",
      "libfabric provider that the ofi driver uses. Empty: the best that fi_getinfo offers for a network, fabrics "
      "before "
      "tcp;ofi_rxm before udp;ofi_rxd. shm, which reaches ranks of this host only, must be asked for.",
      "name, e.g. verbs;ofi_rxm"},
     Kind::text},
    {{"OFI_DOMAIN", "", "",
      "libfabric domain (a network interface or adapter) that the ofi driver uses. Empty: the first of the provider "
      "that "
      "other hosts reach.",
      "name, e.g. eth0, mlx5_0"},
     Kind::text},
    {{"OFI_MULTI_RECV", "auto", "",
      "Whether the ofi driver receives many messages into one buffer. auto: where the provider does it well. off: one "
      "buffer for each message, for a provider that has trouble with it. on: always; through libfabric 1.17's TCP this "
      "loses and damages messages.",
      "auto | on | off"},
     Kind::choice,
     false,
     0,
     unlimited,
     "auto on off"},
    {{"OFI_SILENCE", "30", "s",
      "Time without an answer from the kernel of a peer's host after which the peer counts as lost. Only for providers "
      "over TCP; as CANELE_TCP_SILENCE.",
      "3 to 86400"},
     Kind::number,
     false,
     3,
     seconds_per_day},
    {{"SAMPLES", "", "",
      "Directory with what canele-perf sample has measured, one file a host: the costs by which the engine chooses "
      "among "
      "rails. Empty: canele in the user's cache ($XDG_CACHE_HOME or ~/.cache). off: nothing is read, and drivers cost "
      "what they declare.",
      "directory | off"},
     Kind::text},
    {{"HANG_REPORT", "30", "s",
      "Time without a packet or a completion after which one report of what is pending is written to stderr, or given "
      "to the host's callback; only if a thread has been blocked in a wait for a request, a barrier or finalize, or a "
      "send has been pending, for that long. Ranks that wait long for others to compute report, too: set it above "
      "such times. Again only after progress. 0: never.",
      "0 to 86400"},
     Kind::number,
     false,
     0,
     seconds_per_day},
    {{"FAULT", "", "",
      "Faults to inject, for tests of the library and of the programs that check its results. Never set it in "
      "production. "
      "flip-byte:1000 inverts a byte of the 1000th received message.",
      "name:number, comma-separated"},
     Kind::fault},
}};

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Decimal digits, all of `text`; nothing if it is something else or does not fit.
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

/// A number with an optional k, M or G (powers of 1024; lower or upper case; "kB" and "KiB" are understood).
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

/// Calls visit(word) for each word of `text`, which `separator` divides; stops when it returns false.
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

std::string with_commas(std::string_view words) {
  std::string text;
  each_word(words, ' ', [&](std::string_view word) {
    text.append(text.empty() ? "" : ", ").append(word);
    return true;
  });
  return text;
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

/// "shm,tcp:eth0+tcp:eth1". Whether a driver of that name exists is known only once modules have been looked for.
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

std::string check_fault(std::string_view text) {
  std::string problem;
  each_word(text, ',', [&](std::string_view fault) {
    const auto colon = fault.find(':');
    const std::string_view name = fault.substr(0, colon);
    const bool well_named =
        !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == std::string_view::npos;
    if (!well_named || colon == std::string_view::npos || !parse_number(fault.substr(colon + 1))) {
      problem = "has \"" + std::string(fault) + "\" where name:number is wanted";
    }
    return problem.empty();
  });
  return problem;
}

std::string check_number(const Entry& entry, std::string_view text) {
  const auto value = parse(entry.kind, text);
  if (!value) return entry.kind == Kind::size ? "is no size" : "is no whole number";
  if (*value < entry.least) return "is less than " + std::to_string(entry.least);
  if (*value > entry.most) return "is more than " + std::to_string(entry.most);
  return {};
}

/// What is wrong with `text` as a value of this setting; empty if nothing.
std::string check(const Entry& entry, std::string_view text) {
  if (entry.may_be_auto && text == "auto") return {};
  switch (entry.kind) {
    case Kind::choice:
      if (is_one_of(text, entry.words)) return {};
      return "is none of " + with_commas(entry.words) + did_you_mean(text, entry.words);
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

int find(std::string_view name) {
  for (int i = 0; i < static_cast<int>(table.size()); ++i) {
    if (table[static_cast<std::size_t>(i)].info.name == name) return i;
  }
  return -1;
}

bool belongs_to_a_tool(std::string_view variable) {
  return is_one_of(variable, tool_variables) ||
         !each_word(tool_prefixes, ' ', [&](std::string_view start) { return !variable.starts_with(start); });
}

std::string suggestion(std::string_view variable) {
  std::vector<std::string_view> names;
  for (const Entry& entry : table) names.push_back(entry.info.name);
  const std::string_view bare = variable.starts_with(prefix) ? variable.substr(prefix.size()) : variable;
  const std::string_view nearest = nearest_name(bare, names);
  if (nearest.empty()) return "; canele-info lists the known ones";
  return "; did you mean " + std::string(prefix) + std::string(nearest) + "?";
}

/// One "CANELE_NAME=value" taken apart.
struct Assignment {
  std::string_view variable;
  std::string_view value;
  int index = -1;  ///< in the table; -1: unknown
};

Assignment take_apart(std::string_view text) {
  const auto equals = text.find('=');
  Assignment one{text.substr(0, equals), equals == std::string_view::npos ? "" : text.substr(equals + 1)};
  if (one.variable.starts_with(prefix)) one.index = find(one.variable.substr(prefix.size()));
  return one;
}

/// "" or the full sentence for people.
std::string complaint(const Assignment& one, Source source) {
  const Entry& entry = table[static_cast<std::size_t>(one.index)];
  const std::string problem = check(entry, one.value);
  if (problem.empty()) return {};
  std::string text = std::string(one.variable) + "=\"" + std::string(one.value) + "\" ";
  if (source == Source::options) text += "(in the options of canele_init) ";
  text += problem + "; right would be: " + std::string(entry.info.values);
  if (!entry.info.unit.empty()) text += ", in " + std::string(entry.info.unit);
  return text + " (default " + std::string(entry.info.fallback) + ")";
}

}  // namespace

Settings::Settings(Platform& platform, std::span<const std::string> overrides) : values_(table.size()) {
  std::vector<std::string> warnings;
  for (std::size_t i = 0; i < table.size(); ++i) values_[i].text = table[i].info.fallback;

  const auto take = [&](const Assignment& one, Source source) {
    if (one.value.empty()) return;
    const std::string problem = complaint(one, source);
    if (!problem.empty()) {
      if (error_.empty()) error_ = problem;
      return;
    }
    values_[static_cast<std::size_t>(one.index)] = {std::string(one.value), source};
  };

  platform.each_variable(prefix, [&](std::string_view text) {
    const Assignment one = take_apart(text);
    if (one.index >= 0) {
      take(one, Source::environment);
    } else if (!belongs_to_a_tool(one.variable)) {
      unknown_.emplace_back(one.variable.substr(prefix.size()), one.value);
      warnings.push_back("unknown variable " + std::string(one.variable) + " ignored" + suggestion(one.variable));
    }
  });
  for (const std::string& text : overrides) {
    const Assignment one = take_apart(text);
    if (one.index >= 0) {
      take(one, Source::options);
    } else if (error_.empty()) {
      // A program that passes a wrong name is wrong itself: an error, where a stale variable is only a warning.
      error_ = "unknown setting \"" + text + "\" in the options of canele_init" + suggestion(one.variable);
    }
  }
  if (number(Setting::verbose) == 0) return;
  for (std::size_t i = 0; i < warnings.size(); ++i) {
    if (!belongs_to_a_module(unknown_[i].first)) platform.log(LogLevel::warning, warnings[i]);
  }
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

const SettingInfo& Settings::info(Setting setting) {
  assert(setting >= Setting{} && setting < Setting::count);
  return table[static_cast<std::size_t>(setting)].info;
}

std::string Settings::by_name(std::string_view name, std::string_view fallback) const {
  const int index = find(name);
  if (index >= 0) return values_[static_cast<std::size_t>(index)].text;
  for (const auto& [variable, value] : unknown_) {
    if (variable == name && belongs_to_a_module(variable)) return value;
  }
  return std::string(fallback);
}

bool Settings::belongs_to_a_module(std::string_view variable) const {
  std::string owner(variable.substr(0, variable.find('_')));
  for (char& c : owner) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  bool named = false;
  const auto is_owner = [&](std::string_view word) {
    named = named || word.substr(0, word.find(':')) == owner;
    return !named;
  };
  each_word(text(Setting::drivers), ',', [&](std::string_view group) { return each_word(group, '+', is_owner); });
  return named && !owner.empty() && !is_one_of(owner, built_in_drivers);
}

}  // namespace canele::comm

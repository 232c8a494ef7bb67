// SPDX-License-Identifier: BSD-3-Clause
//
// The command line of canele-run.
#include "apps/run/options.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

namespace canele::run {
namespace {

constexpr int most_ranks = 4096;
constexpr double most_seconds = 1e9;
constexpr const char* one_host_only =
    "canele-run starts processes on this host only; for several hosts use mpirun of Open MPI, or srun --mpi=pmix";

/// The values that CLI11 fills in, before they are checked.
struct Raw {
  Options options;
  std::vector<std::string> exports, definitions, hosts, ignored_text, pairs;
  std::string hostfile;
  std::string ranks = "1", timeout, grace = "5";
  bool pmi1 = false, ignored_flag = false, version = false;
};

void declare_own(CLI::App& app, Raw& raw) {
  Options& o = raw.options;
  app.add_option("-n,--np", raw.ranks, "number of ranks (default 1)")->type_name("N");
  app.add_flag("-l,--tag-output", o.tag_output, "start each line of output with its rank: \"[3] \"");
  app.add_flag("--keep-going", o.keep_going, "when a rank dies, notify the others and let them continue");
  app.add_option("-x", raw.exports, "pass this environment variable on, or set it")
      ->type_name("NAME[=VALUE]")
      ->allow_extra_args(false);
  app.add_option("-D", raw.definitions, "set this environment variable for the ranks")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  app.add_option("--wdir,--wd", o.directory, "working directory of the ranks")->type_name("DIR");
  app.add_option("--bind-to", o.binding,
                 "none (default), core, hwthread, numa, socket: rank i gets the i-th of these, round robin; or a list "
                 "of logical core numbers, \"0,2,4\"")
      ->type_name("WHAT");
  app.add_option("--timeout", raw.timeout, "end the job after this time, with exit code 124")->type_name("SECONDS");
  app.add_flag("--stacks", o.stacks, "at the timeout, print the stacks of all ranks first (needs gdb)");
  app.add_option("--grace", raw.grace,
                 "time for ranks to end (default 5): after SIGTERM, SIGINT or SIGHUP, before they are killed; after a "
                 "rank has failed by itself, before the others are ended")
      ->type_name("SECONDS");
  app.add_option("--netns", o.namespaces,
                 "existing network name spaces to start the ranks in, round robin (needs root; not with --pmix)")
      ->type_name("NAME[,NAME...]")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_flag("--pmi1", raw.pmi1, "serve the ranks by PMI-1 on sockets that they inherit (this is the default)");
  app.add_flag("--pmix", o.pmix, "serve the ranks by PMIx, for programs that need it; libpmix opens a local port");
  app.add_flag("--report-bindings", o.report_bindings, "print the processing units that each rank may use");
  app.add_flag("--version", raw.version, "print the version");
}

/// Declares options of other launchers that cost nothing to accept.
void declare_foreign(CLI::App& app, Raw& raw) {
  const char* group = "Accepted for compatibility, without effect";
  app.add_flag("--oversubscribe", raw.ignored_flag)->group(group);
  app.add_flag("--allow-run-as-root", raw.ignored_flag)->group(group);
  app.add_flag("-q,--quiet", raw.ignored_flag)->group(group);
  app.add_option("--map-by,--rank-by", raw.ignored_text)->type_name("X")->allow_extra_args(false)->group(group);
  app.add_option("--mca", raw.pairs)->type_name("KEY VALUE")->type_size(2)->allow_extra_args(false)->group(group);
  const char* hosts = "Hosts (this one only)";
  app.add_option("-H,--host", raw.hosts, "must name this host")
      ->type_name("NAME")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group(hosts);
  app.add_option("-f,--hostfile,--machinefile", raw.hostfile, "must name this host")->type_name("FILE")->group(hosts);
}

/// Returns the option that an argument names, in either spelling; nullptr if none.
const CLI::Option* named_option(const CLI::App& app, const std::string& argument, std::string* spelled) {
  const std::string name = argument.substr(0, argument.find('='));
  if (name.starts_with("--")) {
    *spelled = argument;
    return app.get_option_no_throw(name);
  }
  if (name.size() > 2) {
    if (const CLI::Option* option = app.get_option_no_throw("-" + name)) {
      *spelled = "-" + argument;
      return option;
    }
  }
  *spelled = argument;
  return app.get_option_no_throw(name.substr(0, 2));
}

/// The arguments, divided at the program's name. CLI11 gets only the ones before it, in its own spelling.
struct Split {
  std::vector<std::string> options;
  std::vector<std::string> command;
  std::string error;
};

Split split_arguments(const CLI::App& app, const std::vector<std::string>& arguments) {
  Split split;
  std::size_t next = 0;
  while (next < arguments.size()) {
    const std::string& argument = arguments[next];
    if (argument == "--") {
      ++next;
      break;
    }
    if (argument.size() < 2 || argument[0] != '-') break;
    std::string spelled;
    const CLI::Option* option = named_option(app, argument, &spelled);
    if (option == nullptr) {
      split.error = fmt::format("unknown option '{}'; canele-run --help lists them", argument);
      return split;
    }
    split.options.push_back(spelled);
    ++next;
    const bool has_value = spelled.starts_with("--") ? spelled.find('=') != std::string::npos : spelled.size() > 2;
    const int values = option->get_expected_max() == 0 ? 0 : option->get_type_size_max();  // 0: a flag
    for (int value = values; value > (has_value ? 1 : 0) && next < arguments.size(); --value)
      split.options.push_back(arguments[next++]);
  }
  split.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(next), arguments.end());
  return split;
}

bool is_this_host(const std::string& given) {
  std::string name = given.substr(0, given.find(':'));  // "host:slots"
  if (name == "localhost" || name == "127.0.0.1" || name.empty()) return true;
  char own[256] = "";
  gethostname(own, sizeof own - 1);
  const std::string full = own;
  return name == full || name == full.substr(0, full.find('.')) || name.substr(0, name.find('.')) == full;
}

/// Returns what is wrong, or "".
std::string check_hosts(const Raw& raw) {
  for (const std::string& host : raw.hosts)
    if (!is_this_host(host)) return fmt::format("--host {}: {}", host, one_host_only);
  if (raw.hostfile.empty()) return {};
  std::ifstream file(raw.hostfile);
  if (!file) return fmt::format("--hostfile {}: cannot read it: {}", raw.hostfile, std::strerror(errno));
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string host;
    if (words >> host && !is_this_host(host))
      return fmt::format("--hostfile {}: it names '{}': {}", raw.hostfile, host, one_host_only);
  }
  return {};
}

/// Adds "NAME=value" or "NAME" (its value in our environment, if any). Returns what is wrong, or "".
std::string add_variable(Options& options, const std::string& text, bool may_inherit) {
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  if (name.empty()) return fmt::format("'{}' is not an environment variable; expected: NAME=VALUE", text);
  if (equals != std::string::npos) {
    options.environment.emplace_back(name, text.substr(equals + 1));
    return {};
  }
  if (!may_inherit) return fmt::format("-D {}: the value is missing; expected: -D {}=VALUE", text, text);
  if (const char* value = std::getenv(name.c_str()))
    options.environment.emplace_back(name, value);
  else
    options.warnings.push_back(fmt::format("-x {}: there is no such variable here, so nothing is passed on", name));
  return {};
}

/// Reads a number. Returns what is wrong, or "". CLI11's own messages for such errors are hard to understand.
template <typename Number>
std::string read_number(const std::string& option, const std::string& text, Number least, Number most, bool least_too,
                        Number* number) {
  Number value = 0;
  const auto [rest, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = bad == std::errc() && rest == text.data() + text.size();
  const bool within = value <= most && (value > least || (value == least && least_too));  // false for a NaN
  if (!whole || !within)
    return fmt::format("{} {}; expected: a number {} {}{}", option, text, least_too ? "from" : "above", least,
                       most < std::numeric_limits<Number>::max() ? fmt::format(" to {}", most) : std::string());
  *number = value;
  return {};
}

/// Returns what is wrong, or "".
std::string check_numbers(Raw& raw) {
  Options& o = raw.options;
  std::string error = read_number("-n", raw.ranks, 1, most_ranks, true, &o.ranks);
  if (error.empty() && !raw.timeout.empty())
    error = read_number("--timeout", raw.timeout, 0.0, most_seconds, false, &o.timeout_s);
  if (error.empty()) error = read_number("--grace", raw.grace, 0.0, most_seconds, true, &o.grace_s);
  return error;
}

/// Returns what is wrong, or "".
std::string check_server(const Raw& raw) {
  if (!raw.options.pmix) return {};
  if (raw.pmi1) return "--pmix and --pmi1; expected: one of them";
  if (!raw.options.namespaces.empty())
    return "--pmix and --netns: libpmix cannot be reached from another network name space; leave --pmix out";
  return {};
}

/// Returns what is wrong, or "".
std::string check(Raw& raw) {
  if (std::string error = check_numbers(raw); !error.empty()) return error;
  if (std::string error = check_server(raw); !error.empty()) return error;
  for (const std::string& text : raw.exports)
    if (std::string error = add_variable(raw.options, text, true); !error.empty()) return error;
  for (const std::string& text : raw.definitions)
    if (std::string error = add_variable(raw.options, text, false); !error.empty()) return error;
  if (std::string error = check_hosts(raw); !error.empty()) return error;
  if (raw.options.command.empty()) return "no program; expected: canele-run [-n N] [options] program [arguments]";
  const std::vector<std::string>& words = raw.options.command;
  if (std::find(words.begin(), words.end() - 1, ":") != words.end() - 1)  // at the end it is an argument: sh -c :
    return "several programs in one job (':') are not supported; expected: one program for all ranks";
  if (raw.options.stacks && raw.options.timeout_s == 0)
    return "--stacks prints stacks at the timeout; expected: --timeout SECONDS as well";
  return {};
}

/// Returns the help. Adds the program's name, which CLI11 does not know because we have taken it out.
std::string help(const CLI::App& app) {
  std::string text = app.help();
  const std::string ours = "[OPTIONS]";
  if (const std::size_t at = text.find(ours); at != std::string::npos)
    text.replace(at, ours.size(), "[options] program [arguments]");
  return text;
}

constexpr const char* more_help = R"(
Exit code: that of the first rank that failed (128 + n if signal n ended it), or of the call that aborted the job;
  124 at the --timeout; 2 for a mistake on the command line; 126 if the job cannot be started, 127 if there is no such
  program.
One Ctrl-C or SIGTERM asks the ranks to end and kills them after --grace; a second one kills at once.
A program whose stdout is a pipe or a file holds back its last lines until its buffer is full; to see them at once:
  canele-run -n 4 stdbuf -oL ./program | tee log

Examples:
  canele-run -n 4 ./program argument
  canele-run -n 2 --bind-to core --timeout 60 --stacks ./program
  canele-run -n 2 -l sh -c 'echo "rank $PMI_RANK of $PMI_SIZE"'
  canele-run -n 2 xterm -e gdb ./program
)";

Parsed reject(const std::string& why) { return {{}, false, exit_usage, why}; }

}  // namespace

Parsed parse_options(const std::vector<std::string>& arguments) {
  Raw raw;
  CLI::App app{"Starts a program as the ranks of one job on this host.", "canele-run [-n N]"};
  declare_own(app, raw);
  declare_foreign(app, raw);
  Split split = split_arguments(app, arguments);
  if (!split.error.empty()) return reject(split.error);
  raw.options.command = std::move(split.command);
  std::vector<std::string> reversed(split.options.rbegin(), split.options.rend());  // CLI11 pops from the back
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    return {{}, false, 0, help(app) + more_help};
  } catch (const CLI::ParseError& error) {
    return reject(fmt::format("{}; canele-run --help explains the options", error.what()));
  }
  if (raw.version) return {{}, false, 0, fmt::format("canele-run {}\n", CANELE_VERSION)};
  if (std::string error = check(raw); !error.empty()) return reject(error);
  return {std::move(raw.options), true, 0, {}};
}

}  // namespace canele::run

// SPDX-License-Identifier: BSD-3-Clause
//
// Options: what the user asked canele-run to do. main() parses them once, at the start, in one thread.
//
// Launchers traditionally spell long options with one dash (-np, -wdir, -host); both spellings are accepted.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace canele::run {

/// Exit codes of canele-run itself. Otherwise it exits with the job's code.
inline constexpr int exit_usage = 2;
inline constexpr int exit_timeout = 124;
inline constexpr int exit_not_executable = 126;  ///< also: the job cannot be started
inline constexpr int exit_not_found = 127;

struct Options {
  int ranks = 1;
  bool tag_output = false;
  bool keep_going = false;
  bool stacks = false;
  double timeout_s = 0;  ///< 0: none
  double grace_s = 5;    ///< for ranks that were asked to end, or could after another's failure
  bool report_bindings = false;
  std::string directory;
  std::string binding = "none";
  bool pmix = false;                                             ///< serve PMIx instead of PMI-1
  std::vector<std::string> warnings;                             ///< printed before the job starts
  std::vector<std::string> namespaces;                           ///< network name spaces of the ranks, round robin
  std::vector<std::pair<std::string, std::string>> environment;  ///< set for the ranks, over the inherited environment
  std::vector<std::string> command;                              ///< program and its arguments
};

struct Parsed {
  Options options;
  bool run = true;  ///< false: print `text` (as output if code is 0, else as an error) and exit with `code`
  int code = 0;
  std::string text;
};

Parsed parse_options(const std::vector<std::string>& arguments);

}  // namespace canele::run

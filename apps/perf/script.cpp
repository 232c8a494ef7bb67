// SPDX-License-Identifier: BSD-3-Clause
//
// Scripts.
//
// They measure the programs next to this one. A build thus measures itself, and so does an installation.
#include "script.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace canele::perf {
namespace {

namespace fs = std::filesystem;

/// Returns the script, next to an installed canele-perf or in the source; empty, after a message, if it is in neither.
std::string find_script(const fs::path& prefix, const std::string& name) {
  const fs::path places[] = {prefix / "share" / "canele" / "perf" / "peers", CANELE_PERF_PEERS};
  std::error_code ignored;
  for (const fs::path& place : places) {
    if (fs::exists(place / name, ignored)) return (place / name).string();
  }
  std::fprintf(stderr, "canele-perf: no %s in %s nor in %s: install Canelé, or keep its source\n", name.c_str(),
               places[0].c_str(), places[1].c_str());
  return {};
}

}  // namespace

int run_script(const Options& options) {
  std::error_code failed;
  const fs::path self = fs::read_symlink("/proc/self/exe", failed);
  if (failed) {
    std::fprintf(stderr, "canele-perf: cannot read /proc/self/exe: %s\n", failed.message().c_str());
    return 1;
  }
  const fs::path prefix = self.parent_path().parent_path();
  std::vector<std::string> words = {"python3", find_script(prefix, options.script), "--prefix", prefix.string()};
  if (words[1].empty()) return 1;
  words.insert(words.end(), options.words.begin(), options.words.end());
  std::vector<char*> command;
  for (std::string& word : words) command.push_back(word.data());
  command.push_back(nullptr);
  execvp(command[0], command.data());
  std::fprintf(stderr, "canele-perf: cannot run python3, which measures: %s\n", std::strerror(errno));
  return 1;
}

}  // namespace canele::perf

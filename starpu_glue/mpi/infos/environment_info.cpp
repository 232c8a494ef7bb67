// SPDX-License-Identifier: BSD-3-Clause
//
// How the program was started.
//
// A key whose value is not known is absent, as MPI allows: the launcher does not tell "soft" and "file".
#include "starpu_glue/mpi/infos/environment_info.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "starpu_glue/mpi/core/state.hpp"

namespace canele::mpi {
namespace {

/// Adds a pair. A value that is too long for an info is cut.
void add_pair(InfoPairs& pairs, const char* key, std::string value) {
  if (value.empty()) return;
  if (value.size() >= MPI_MAX_INFO_VAL) value.resize(MPI_MAX_INFO_VAL - 1);
  pairs.emplace_back(key, std::move(value));
}

/// Returns the arguments of this process. No function of C has them.
std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<std::string> arguments;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\0', at);
    arguments.push_back(text.substr(at, end - at));
    at = end == std::string::npos ? text.size() : end + 1;
  }
  return arguments;
}

std::string working_directory() {
  std::string path(4096, '\0');
  return getcwd(path.data(), path.size()) == nullptr ? "" : path.c_str();
}

const char* name_of_level(int level) {
  switch (level) {
    case MPI_THREAD_SINGLE:
      return "MPI_THREAD_SINGLE";
    case MPI_THREAD_FUNNELED:
      return "MPI_THREAD_FUNNELED";
    case MPI_THREAD_SERIALIZED:
      return "MPI_THREAD_SERIALIZED";
    default:
      return "MPI_THREAD_MULTIPLE";
  }
}

InfoPairs pairs_of(const std::vector<std::string>& arguments) {
  InfoPairs pairs;
  std::string rest;
  for (std::size_t i = 1; i < arguments.size(); ++i) rest += (i == 1 ? "" : " ") + arguments[i];
  if (!arguments.empty()) add_pair(pairs, "command", arguments.front());
  add_pair(pairs, "argv", rest);
  utsname host{};
  if (uname(&host) == 0) {
    add_pair(pairs, "host", host.nodename);
    add_pair(pairs, "arch", host.machine);
  }
  add_pair(pairs, "wdir", working_directory());
  return pairs;
}

}  // namespace

InfoPairs environment_pairs(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  for (int i = 0; argv != nullptr && i < argc && argv[i] != nullptr; ++i) arguments.emplace_back(argv[i]);
  return pairs_of(arguments);
}

InfoPairs own_environment_pairs() {
  InfoPairs pairs = pairs_of(own_arguments());
  const EngineUse use;
  if (use.get() != nullptr) {
    add_pair(pairs, "maxprocs", std::to_string(canele_size(use.get())));
    add_pair(pairs, "thread_level", name_of_level(thread_level()));
  }
  return pairs;
}

}  // namespace canele::mpi

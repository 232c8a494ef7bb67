// SPDX-License-Identifier: BSD-3-Clause
//
// Finds network name spaces.
#include "apps/run/namespaces.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <stdexcept>

namespace canele::run {
namespace {

constexpr const char* place = "/run/netns";  // where "ip netns add" keeps them

std::string known_names() {
  std::set<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(place, error), end; !error && entry != end; entry.increment(error))
    names.insert(entry->path().filename().string());
  if (names.empty()) return "none exists ('ip netns add NAME' makes one)";
  std::string list = "expected: one of";
  for (const std::string& name : names) list += " " + name;
  return list;
}

/// Returns a descriptor, or throws.
int open_one(const std::string& name) {
  if (name.empty()) throw std::invalid_argument("--netns: an empty name; expected: NAME[,NAME...]");
  const std::string path = name.find('/') != std::string::npos ? name : fmt::format("{}/{}", place, name);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    throw std::invalid_argument(fmt::format("--netns {}: no network name space '{}' ({}); {}", name, path,
                                            std::strerror(errno), known_names()));
  if (ioctl(fd, NS_GET_NSTYPE) == CLONE_NEWNET) return fd;
  close(fd);
  throw std::invalid_argument(
      fmt::format("--netns {}: '{}' is not a network name space; {}", name, path, known_names()));
}

}  // namespace

Namespaces::Namespaces(const std::vector<std::string>& names) {
  if (!names.empty() && geteuid() != 0)
    throw std::invalid_argument("--netns: only root may start ranks in other network name spaces");
  try {
    for (const std::string& name : names) descriptors_.push_back(open_one(name));
  } catch (...) {
    for (const int fd : descriptors_) close(fd);
    throw;
  }
}

Namespaces::~Namespaces() {
  for (const int fd : descriptors_) close(fd);
}

int Namespaces::descriptor(int rank) const {
  return descriptors_.empty() ? -1 : descriptors_[static_cast<std::size_t>(rank) % descriptors_.size()];
}

}  // namespace canele::run

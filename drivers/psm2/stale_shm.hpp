// SPDX-License-Identifier: BSD-3-Clause
//
// Removes the stale files that libpsm2 leaves in /dev/shm when a process is killed.
//
// Used by the psm2 driver (a survivor, at close) and by launchers (at the end of a job). Needs no libpsm2. Any thread.
//
//   /dev/shm/psm2_shm.<uid><endpoint id, 16 hex digits><counter>     endpoint id = pid << 32 | 0xa without hardware
//
// The file of a dead process must stay while a living process has yet to answer its request to connect. libpsm2 then
// opens the file, and ends the process if it is missing. Remove files at close or at the end of a job, not when a death
// is noticed.
#pragma once

#include <dirent.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace canele::drivers::psm2 {

/// Low half of an endpoint's id when libpsm2 uses no hardware; the high half is then the process id.
inline constexpr std::uint32_t memory_only_id = 0xa;

/// Returns how the names of this user's files begin, for example "psm2_shm.0".
inline std::string shm_prefix() { return "psm2_shm." + std::to_string(::getuid()); }

/// Reads the endpoint id in a file's name. Returns false if the name is not of this user's libpsm2.
inline bool parse_shm_name(std::string_view name, std::uint64_t* endpoint) {
  const std::string prefix = shm_prefix();
  if (name.size() < prefix.size() + 17 || name.substr(0, prefix.size()) != prefix) return false;
  const char* const begin = name.data() + prefix.size();
  const char* const end = name.data() + name.size();
  std::uint64_t counter = 0;
  const auto id = std::from_chars(begin, begin + 16, *endpoint, 16);
  const auto count = std::from_chars(begin + 16, end, counter);
  return id.ec == std::errc() && id.ptr == begin + 16 && count.ec == std::errc() && count.ptr == end;
}

/// Returns true if any process that this user may inspect has the file mapped.
inline bool is_mapped(const std::string& name) {
  DIR* const processes = ::opendir("/proc");
  bool found = false;
  while (const dirent* entry = processes == nullptr || found ? nullptr : ::readdir(processes)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    std::ifstream maps("/proc/" + std::string(entry->d_name) + "/maps");
    for (std::string line; !found && std::getline(maps, line);) found = line.ends_with("/dev/shm/" + name);
  }
  if (processes != nullptr) ::closedir(processes);
  return found;
}

/// Returns true if the process that made the file is gone. A process id that was reused counts as alive.
inline bool is_stale(const std::string& name) {
  std::uint64_t endpoint = 0;
  if (!parse_shm_name(name, &endpoint)) return false;
  if (static_cast<std::uint32_t>(endpoint) != memory_only_id) return !is_mapped(name);
  return ::kill(static_cast<pid_t>(endpoint >> 32), 0) != 0 && errno == ESRCH;
}

/// Removes what dead processes of this user have left. Returns how many files it removed.
inline int remove_stale_shm() {
  std::vector<std::string> names;
  DIR* const directory = ::opendir("/dev/shm");
  while (const dirent* entry = directory == nullptr ? nullptr : ::readdir(directory)) names.emplace_back(entry->d_name);
  if (directory != nullptr) ::closedir(directory);
  int removed = 0;
  for (const std::string& name : names) {
    if (is_stale(name) && ::shm_unlink(("/" + name).c_str()) == 0) ++removed;
  }
  return removed;
}

/// Removes the file of one endpoint. Called by its owner.
inline void remove_own(std::uint64_t endpoint) {
  char digits[17] = {};
  for (int i = 0; i < 16; ++i) digits[i] = "0123456789abcdef"[endpoint >> (60 - 4 * i) & 15];
  ::shm_unlink(("/" + shm_prefix() + digits + "0").c_str());
}

}  // namespace canele::drivers::psm2

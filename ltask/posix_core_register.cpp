// SPDX-License-Identifier: BSD-3-Clause
//
// The register of cores, with locks of open file descriptions (fcntl(2), F_OFD_SETLK).
//
// Another process may remove the file between its opening and its locking here. The file then has no link left, and is
// opened again.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "ltask/core_register.hpp"
#include "ltask/topology.hpp"

namespace canele::ltask {
namespace {

struct flock lock_on(off_t first, off_t length, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = first;
  lock.l_len = length;
  return lock;
}

bool set_lock(int descriptor, off_t first, off_t length, short type) {
  struct flock lock = lock_on(first, length, type);
  return fcntl(descriptor, F_OFD_SETLK, &lock) == 0;
}

off_t byte_of(int unit) { return 1 + static_cast<off_t>(unit); }

/// Opens the file, and creates it if necessary. Returns -1 if that fails.
int open_file(const std::string& file) {
  constexpr mode_t only_mine = 0600;
  return ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, only_mine);
}

/// Returns "", or why the file cannot be used.
std::string problem_of(int descriptor) {
  struct stat about {};
  if (fstat(descriptor, &about) != 0) return std::strerror(errno);
  if (!S_ISREG(about.st_mode)) return "it is not a regular file";
  return about.st_uid == geteuid() ? "" : "it belongs to another user";
}

bool has_a_name(int descriptor) {
  struct stat about {};
  return fstat(descriptor, &about) == 0 && about.st_nlink != 0;
}

}  // namespace

CoreRegister::CoreRegister(std::string file, int descriptor, int workers)
    : file_(std::move(file)), descriptor_(descriptor), workers_(workers) {}

std::unique_ptr<CoreRegister> CoreRegister::open(std::string directory, std::string* why) {
  if (directory.empty()) directory = "/dev/shm";
  const std::string file = directory + "/canele-cores-" + std::to_string(geteuid());
  constexpr int most_attempts = 100;  // each failure needs another process that has removed the file just then
  *why = file + ": it is removed again and again";
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    const int descriptor = open_file(file);
    if (descriptor < 0) {
      *why = file + ": " + std::strerror(errno);
      return nullptr;
    }
    const std::string problem = problem_of(descriptor);
    if (problem.empty() && set_lock(descriptor, 0, 1, F_RDLCK) && has_a_name(descriptor)) {
      // A file that has a name and is locked is not removed by any process. So this opens the same file.
      if (const int workers = open_file(file); workers >= 0) {
        return std::unique_ptr<CoreRegister>(new CoreRegister(file, descriptor, workers));
      }
      *why = file + ": " + std::strerror(errno);
    }
    close(descriptor);
    if (problem.empty()) continue;
    *why = file + ": " + problem;
    return nullptr;
  }
  return nullptr;
}

CoreRegister::~CoreRegister() {
  close(workers_);
  // If several processes leave at once, one of them sees that the others' locks are gone.
  set_lock(descriptor_, 0, 0, F_UNLCK);
  if (set_lock(descriptor_, 0, 0, F_WRLCK) && has_a_name(descriptor_)) unlink(file_.c_str());
  close(descriptor_);
}

void CoreRegister::compute_on(std::span<const int> units) {
  computing_.assign(units.begin(), units.end());
  for (const int unit : units) {
    if (!set_lock(descriptor_, byte_of(unit), 1, F_RDLCK)) lost_ = unit;
  }
}

bool CoreRegister::take(int unit) {
  if (taken_ == unit) return true;
  give_back();
  set_lock(descriptor_, byte_of(unit), 1, F_UNLCK);  // this process's own use of the unit is no obstacle
  taken_ = unit;
  if (set_lock(workers_, byte_of(unit), 1, F_WRLCK)) return true;
  give_back();
  return false;
}

void CoreRegister::give_back() {
  if (!taken_) return;
  const int unit = *taken_;
  taken_.reset();
  set_lock(workers_, byte_of(unit), 1, F_UNLCK);
  if (std::count(computing_.begin(), computing_.end(), unit) != 0) set_lock(descriptor_, byte_of(unit), 1, F_RDLCK);
}

bool CoreRegister::is_free(int unit) const {
  struct flock lock = lock_on(byte_of(unit), 1, F_WRLCK);
  return fcntl(workers_, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

bool CoreRegister::is_computed_on(int unit) const {
  struct flock lock = lock_on(byte_of(unit), 1, F_WRLCK);  // conflicts with a pinned process's shared lock
  return fcntl(workers_, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_RDLCK;
}

std::optional<int> free_unit_nearby(const Topology& topology, const CoreRegister& cores) {
  const auto is_free = [&](int unit) { return cores.is_free(unit); };
  const std::vector<Topology::Core> nearby = topology.cores_nearby();
  for (const Topology::Core& core : nearby) {
    if (!core.ours && std::all_of(core.units.begin(), core.units.end(), is_free)) return core.units.front();
  }
  for (const Topology::Core& core : nearby) {
    const auto found = std::find_if(core.units.begin(), core.units.end(), is_free);
    if (found != core.units.end()) return *found;
  }
  return std::nullopt;
}

}  // namespace canele::ltask

// SPDX-License-Identifier: BSD-3-Clause
//
// Shared memory by memfd. Sealed: no process can shorten the memory, so a mapping never raises SIGBUS.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "ltask/platform.hpp"
#include "ltask/shared_memory.hpp"

namespace canele {
namespace {

constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr unsigned no_exec_seal = 0x0008;  // MFD_NOEXEC_SEAL (Linux 6.3), newer than Debian 12's headers

/// Owns a mapping, and the descriptor if this process has allocated the memory.
class PosixSharedMemory final : public SharedMemory {
 public:
  PosixSharedMemory(std::byte* base, std::size_t size, const SharedMemoryName& name, bool owns_descriptor)
      : SharedMemory(base, name), size_(size), owns_descriptor_(owns_descriptor) {}
  ~PosixSharedMemory() override {
    munmap(base(), size_);
    if (owns_descriptor_) close(name().descriptor);
  }

 private:
  std::size_t size_;
  bool owns_descriptor_;
};

/// Closes a descriptor at the end of a scope, unless it is kept.
struct Descriptor {
  int number = -1;
  ~Descriptor() {
    if (number >= 0) close(number);
  }
  int keep() { return std::exchange(number, -1); }
};

std::uint64_t read_host() {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  const auto add = [&hash](const void* bytes, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      hash = (hash ^ static_cast<const unsigned char*>(bytes)[i]) * 1099511628211u;
  };
  const FileText boot = posix_platform().read_file("/proc/sys/kernel/random/boot_id", 64);
  struct stat processes;
  if (!boot.there || boot.text.empty() || stat("/proc/self/ns/pid", &processes) != 0) return 0;
  add(boot.text.data(), boot.text.size());
  add(&processes.st_ino, sizeof processes.st_ino);
  return hash != 0 ? hash : 1;
}

/// Identifies the boot of this host and the namespace of process numbers; 0: unknown.
std::uint64_t this_host() {
  static std::atomic<std::uint64_t> known{0};
  std::uint64_t host = known.load(std::memory_order_relaxed);  // any thread finds the same value
  if (host == 0) known.store(host = read_host(), std::memory_order_relaxed);
  return host;
}

/// A file beyond the limit on file sizes would end the process by SIGXFSZ.
bool is_within_file_limit(std::size_t size) {
  rlimit limit = {};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || size <= limit.rlim_cur;
}

bool allocate(int descriptor, std::size_t size) {
  if (ftruncate(descriptor, static_cast<off_t>(size)) != 0) return false;
  int failed = 0;
  do {
    failed = fallocate(descriptor, 0, 0, static_cast<off_t>(size));
  } while (failed != 0 && errno == EINTR);
  return failed == 0;
}

std::unique_ptr<SharedMemory> map(int descriptor, std::size_t size, const SharedMemoryName& name, bool owns) {
  void* const at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED) return nullptr;
  return std::make_unique<PosixSharedMemory>(static_cast<std::byte*>(at), size, name, owns);
}

}  // namespace

std::unique_ptr<SharedMemory> share_posix_memory(std::size_t size, std::string* why) {
  const auto failed = [&](const char* what) {
    *why = std::string(what) + ": " + std::strerror(errno);
    return nullptr;
  };
  if (!is_within_file_limit(size)) {
    *why = std::to_string(size) + " bytes are more than a file may have here (ulimit -f)";
    return nullptr;
  }
  Descriptor made{memfd_create("canele-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING | no_exec_seal)};
  if (made.number < 0 && errno == EINVAL) made.number = memfd_create("canele-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made.number < 0) return failed("memfd_create");
  if (!allocate(made.number, size)) return failed("fallocate");
  if (fcntl(made.number, F_ADD_SEALS, seals | F_SEAL_SEAL) != 0) return failed("fcntl(F_ADD_SEALS)");
  const SharedMemoryName name{this_host(), static_cast<std::int32_t>(getpid()), made.number};
  auto memory = map(made.number, size, name, true);
  if (memory == nullptr) return failed("mmap");
  made.keep();
  return memory;
}

std::unique_ptr<SharedMemory> map_posix_memory(const SharedMemoryName& name, std::size_t size) {
  if (name.host == 0 || name.host != this_host() || name.process <= 0 || name.descriptor < 0) return nullptr;
  const std::string path = "/proc/" + std::to_string(name.process) + "/fd/" + std::to_string(name.descriptor);
  struct stat found = {};
  // The type is looked at first: to open a pipe or a device may have effects.
  if (stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode) || found.st_size != static_cast<off_t>(size))
    return nullptr;
  const Descriptor opened{open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  const int sealed = opened.number >= 0 ? fcntl(opened.number, F_GET_SEALS) : -1;
  if (sealed < 0 || (sealed & seals) != seals || fstat(opened.number, &found) != 0 ||
      found.st_size != static_cast<off_t>(size)) {
    return nullptr;
  }
  return map(opened.number, size, name, false);
}

}  // namespace canele

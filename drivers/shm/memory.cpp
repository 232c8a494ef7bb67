// SPDX-License-Identifier: BSD-3-Clause
//
// memfd, seals, mmap. See memory.hpp.
//
// Pages are allocated before they are used. Running out of memory is then an error and not a SIGBUS at the first store.
#include "drivers/shm/memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace canele::drivers::shm {
namespace {

constexpr unsigned no_exec_seal = 0x0008;  // MFD_NOEXEC_SEAL (Linux 6.3), newer than Debian 12's headers

net::UniqueFd make_memfd() {
  net::UniqueFd made(::memfd_create("canele", MFD_CLOEXEC | MFD_ALLOW_SEALING | no_exec_seal));
  if (!made && errno == EINVAL) made.reset(::memfd_create("canele", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  return made;
}

Mapping failed(std::string* reason, const char* what) {
  *reason = std::string(what) + ": " + net::error_text(errno);
  return {};
}

/// Checks the limit on file sizes. A file beyond that limit would end the process by SIGXFSZ; the check makes it an
/// error.
bool within_file_limit(std::size_t size, std::string* reason) {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || size <= limit.rlim_cur) return true;
  *reason = "files may have " + std::to_string(limit.rlim_cur) + " bytes here (ulimit -f), shared memory needs " +
            std::to_string(size);
  return false;
}

/// Maps a memfd. A child of fork() does not inherit the mapping, so whatever the child does, the rings stay its
/// parent's.
Mapping map_memfd(int memfd, std::size_t size, int access) {
  void* at = ::mmap(nullptr, size, access, MAP_SHARED, memfd, 0);
  if (at == MAP_FAILED) return {};
  Mapping mapping(at, size);
  return ::madvise(at, size, MADV_DONTFORK) == 0 ? std::move(mapping) : Mapping();
}

}  // namespace

bool give_memory(int memfd, std::size_t from, std::size_t bytes) {
  int done = 0;
  do {
    done = ::fallocate(memfd, 0, static_cast<off_t>(from), static_cast<off_t>(bytes));
  } while (done != 0 && errno == EINTR);
  return done == 0;
}

Mapping::~Mapping() {
  if (address_ != nullptr) ::munmap(address_, size_);
}

bool populate(void* at, std::size_t bytes, bool write) {
  return ::madvise(at, bytes, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0;
}

Mapping make_shared(std::size_t size, std::size_t backed, bool peers_write, net::UniqueFd* memfd, std::string* reason) {
  if (!within_file_limit(size, reason)) return {};
  net::UniqueFd made = make_memfd();
  if (!made) return failed(reason, "no memory to share (memfd_create)");
  // posix_fallocate would emulate missing support by writing; fallocate on a memfd always exists.
  if (::ftruncate(made.get(), static_cast<off_t>(size)) != 0 || !give_memory(made.get(), 0, backed)) {
    return failed(reason, "no memory to share (fallocate)");
  }
  Mapping mapping = map_memfd(made.get(), size, PROT_READ | PROT_WRITE);
  if (!mapping) return failed(reason, "cannot map shared memory (mmap)");
  populate(mapping.as<void>(), backed, true);
  const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  // Before Linux 5.1 there is no seal against later writers; a peer that knows the secret is then trusted not to write.
  const bool closed = !peers_write && ::fcntl(made.get(), F_ADD_SEALS, seals | F_SEAL_FUTURE_WRITE) == 0;
  if (!closed && ::fcntl(made.get(), F_ADD_SEALS, seals) != 0)
    return failed(reason, "cannot seal shared memory (fcntl)");
  *memfd = std::move(made);
  return mapping;
}

bool is_lendable(int memfd, std::size_t size, std::string* reason) {
  const int seals = ::fcntl(memfd, F_GET_SEALS);
  struct stat found = {};
  if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW) ||
      ::fstat(memfd, &found) != 0 || found.st_size != static_cast<off_t>(size)) {
    *reason = "its shared memory is not a sealed memfd of " + std::to_string(size) + " bytes";
    return false;
  }
  return true;
}

Mapping map_shared(int memfd, std::size_t size, std::size_t backed, bool write, std::string* reason) {
  if (!is_lendable(memfd, size, reason)) return {};
  Mapping mapping = map_memfd(memfd, size, write ? PROT_READ | PROT_WRITE : PROT_READ);
  if (!mapping) return failed(reason, "cannot map its shared memory (mmap)");
  populate(mapping.as<void>(), backed, write);
  return mapping;
}

std::string shared_memory_unavailable() {
  const net::UniqueFd made = make_memfd();
  if (!made) return "this system has no sealed memfd: " + net::error_text(errno);
  return {};
}

}  // namespace canele::drivers::shm

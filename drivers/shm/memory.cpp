// SPDX-License-Identifier: BSD-3-Clause
//
// memfd, seals, mmap. See memory.hpp (who, threads).
// Surprise: the pages are allocated at once (or, of a shelf, before they are used): running out of memory is then an
//     error and not a SIGBUS at the first store.
#include "drivers/shm/memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
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

}  // namespace

Mapping::~Mapping() {
  if (address_ != nullptr) ::munmap(address_, size_);
}

Mapping make_shared(std::size_t size, bool peers_write, net::UniqueFd* memfd, std::string* reason, std::size_t backed) {
  net::UniqueFd made = make_memfd();
  if (!made) return failed(reason, "no memory to share (memfd_create)");
  // posix_fallocate would emulate what is missing by writing; fallocate on a memfd always exists.
  if (::ftruncate(made.get(), static_cast<off_t>(size)) != 0 ||
      ::fallocate(made.get(), 0, 0, static_cast<off_t>(backed != 0 ? backed : size)) != 0) {
    return failed(reason, "no memory to share (fallocate)");
  }
  const int flags = backed != 0 ? MAP_SHARED : MAP_SHARED | MAP_POPULATE;
  void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, made.get(), 0);
  if (at == MAP_FAILED) return failed(reason, "cannot map shared memory (mmap)");
  Mapping mapping(at, size);
  const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  // Before Linux 5.1 there is no seal against later writers; a peer that knows the secret is then trusted not to.
  const bool closed = !peers_write && ::fcntl(made.get(), F_ADD_SEALS, seals | F_SEAL_FUTURE_WRITE) == 0;
  if (!closed && ::fcntl(made.get(), F_ADD_SEALS, seals) != 0)
    return failed(reason, "cannot seal shared memory (fcntl)");
  *memfd = std::move(made);
  return mapping;
}

Mapping map_shared(int memfd, std::size_t size, bool write, std::string* reason, bool whole) {
  const int seals = ::fcntl(memfd, F_GET_SEALS);
  struct stat found = {};
  if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW) ||
      ::fstat(memfd, &found) != 0 || found.st_size != static_cast<off_t>(size)) {
    *reason = "its shared memory is not a sealed memfd of " + std::to_string(size) + " bytes";
    return {};
  }
  const int flags = whole ? MAP_SHARED | MAP_POPULATE : MAP_SHARED;
  void* at = ::mmap(nullptr, size, write ? PROT_READ | PROT_WRITE : PROT_READ, flags, memfd, 0);
  if (at == MAP_FAILED) return failed(reason, "cannot map its shared memory (mmap)");
  return Mapping(at, size);
}

std::string shared_memory_unavailable() {
  const net::UniqueFd made = make_memfd();
  if (!made) return "this system has no sealed memfd: " + net::error_text(errno);
  return {};
}

}  // namespace canele::drivers::shm

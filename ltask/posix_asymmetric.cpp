// SPDX-License-Identifier: BSD-3-Clause
//
// Asymmetric fences, with membarrier(2). The C library has no wrapper for this call.
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>

#include "ltask/asymmetric.hpp"

namespace canele::ltask {
namespace {

long membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0); }

bool register_program() {
#if defined(__SANITIZE_THREAD__)
  return false;
#else
  const long known = membarrier(MEMBARRIER_CMD_QUERY);
  return known > 0 && (known & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
         membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
#endif
}

}  // namespace

constinit thread_local char this_threads_own = 0;

bool AsymmetricFences::available() noexcept {
  static const bool is = register_program();
  return is;
}

void AsymmetricFences::heavy() noexcept {
  // The kernel may need memory for its list of processors. The caller cannot go on without the fence.
  while (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) {
    assert(errno == ENOMEM && "heavy() where it is not available");
    sched_yield();
  }
}

}  // namespace canele::ltask

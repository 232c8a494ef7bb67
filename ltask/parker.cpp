// SPDX-License-Identifier: BSD-3-Clause
//
// The process-wide pool of parkers, for any thread.
//
// The pool is global, because parkers must outlive every engine: see parker.hpp.
#include "ltask/parker.hpp"

#include <mutex>

namespace canele::ltask {
namespace {

struct Pool {
  std::mutex mutex;  // taken only by a thread that is about to sleep
  Parker* free = nullptr;
};

Pool& pool() {
  static Pool* const the_pool = new Pool;  // never destroyed: threads may still wait while static objects are destroyed
  return *the_pool;
}

}  // namespace

Parker& Parker::acquire() {
  Pool& p = pool();
  {
    const std::lock_guard guard(p.mutex);
    if (Parker* parker = p.free; parker != nullptr) {
      p.free = parker->next_free_;
      return *parker;
    }
  }
  return *new Parker;
}

void Parker::release(Parker& parker) noexcept {
  Pool& p = pool();
  const std::lock_guard guard(p.mutex);
  parker.next_free_ = p.free;
  p.free = &parker;
}

}  // namespace canele::ltask

// SPDX-License-Identifier: BSD-3-Clause
//
// The list of endpoints whose close is deferred. See deferred_close.hpp.
//
// Peers are removed from all address vectors before the first endpoint closes. Closing an address vector reads the
// memory of the peers that are still in it.
#include "drivers/ofi/deferred_close.hpp"

#include <mutex>
#include <utility>
#include <vector>

namespace canele::drivers::ofi {
namespace {

struct Process {
  std::mutex lock;
  int open = 0;
  std::vector<DeferredClose> deferred;
};
Process& process() {
  static Process one;
  return one;
}

}  // namespace

void note_opened() {
  const std::lock_guard guard(process().lock);
  ++process().open;
}

void close_or_defer(DeferredClose parts) {
  std::vector<DeferredClose> due;
  const std::lock_guard guard(process().lock);
  process().deferred.push_back(std::move(parts));
  if (--process().open == 0) due = std::exchange(process().deferred, {});
  for (DeferredClose& one : due) one.endpoint->remove_all();
  for (DeferredClose& one : due) close_parts(one);
}

void close_parts(DeferredClose& parts) {
  parts.endpoint->close();
  parts.receive.reset();
  parts.pool.reset();
  parts.endpoint.reset();
}

}  // namespace canele::drivers::ofi

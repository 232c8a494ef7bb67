// SPDX-License-Identifier: BSD-3-Clause
//
// The list of parked endpoints. See parked.hpp.
//
// Peers are removed from all address vectors before the first endpoint closes. Closing an address vector reads the
// memory of the peers that are still in it.
#include "drivers/ofi/parked.hpp"

#include <mutex>
#include <utility>
#include <vector>

namespace canele::drivers::ofi {
namespace {

struct Process {
  std::mutex lock;
  int open = 0;
  std::vector<Parked> parked;
};
Process& process() {
  static Process one;
  return one;
}

}  // namespace

void enter_process() {
  const std::lock_guard guard(process().lock);
  ++process().open;
}

void leave_process(Parked parts) {
  std::vector<Parked> over;
  const std::lock_guard guard(process().lock);
  process().parked.push_back(std::move(parts));
  if (--process().open == 0) over = std::exchange(process().parked, {});
  for (Parked& one : over) one.endpoint->remove_all();
  for (Parked& one : over) close_parts(one);
}

void close_parts(Parked& parts) {
  parts.endpoint->close();
  parts.receive.reset();
  parts.pool.reset();
  parts.endpoint.reset();
}

}  // namespace canele::drivers::ofi

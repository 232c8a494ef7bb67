// SPDX-License-Identifier: BSD-3-Clause
//
// Puts and gets by this process itself. See direct_access.hpp.
#include "comm/post/direct_access.hpp"

#include <atomic>

#include "comm/post/mapped_access.hpp"
#include "comm/state/context.hpp"
#include "comm/state/driver_copy.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::post {
namespace {

using drivers::RmaOp;
using one_sided::DirectAccess;

}  // namespace

bool access_directly(one_sided::RemoteKey& key, one_sided::Lane& lane, RmaOp op, std::uint64_t offset,
                     const canele_data_t& data) {
  const DirectAccess* const direct = key.direct.load(std::memory_order_acquire);  // release: on_attached()
  if (direct == nullptr) return false;
  const drivers::MemoryKey& rkey = op == RmaOp::get ? direct->get : direct->put;
  if (rkey.size == 0) return false;
  const bool may = direct->permit.enter(direct->generation);
  const bool done = may && copy_by_driver({*direct->driver, key.rank, rkey}, op, offset, data, 0, data.length);
  if (may) direct->permit.leave();
  if (!done) {
    CANELE_COVER(one_sided_permit_is_over);
    key.direct.store(nullptr, std::memory_order_relaxed);  // the target then answers why
    return false;
  }
  CANELE_COVER(one_sided_direct);
  note_posted(lane, false);
  key.context->counters.add_shared(Counter::accesses_direct);
  return true;
}

}  // namespace canele::comm::post

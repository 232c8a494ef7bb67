// SPDX-License-Identifier: BSD-3-Clause
//
// Puts and gets by this process itself. See direct_access.hpp.
#include "comm/post/direct_access.hpp"

#include <atomic>

#include "comm/post/mapped_access.hpp"
#include "comm/state/context.hpp"
#include "comm/state/payload.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::post {
namespace {

using drivers::RmaOp;
using drivers::Status;
using one_sided::DirectAccess;

constexpr std::uint64_t longest = 256 * 1024;  // both ends copy a longer one, as a message
// A shorter one costs less if it leaves in a packet with others, or with its notification.
constexpr std::uint64_t shortest_among_others = 1024;

bool copy(const DirectAccess& direct, int rank, RmaOp op, std::uint64_t offset, const canele_data_t& data);

}  // namespace

bool may_go_directly(const one_sided::RemoteKey& key, const one_sided::Lane& lane, std::uint64_t length,
                     std::uint32_t slot) {
  if (key.direct.load(std::memory_order_relaxed) == nullptr || length == 0 || length > longest) return false;
  if (lane.effects.load(std::memory_order_acquire) != 0) return false;  // release: confirm()
  return length >= shortest_among_others || (slot == 0 && lane.just_flushed.load(std::memory_order_relaxed));
}

bool access_directly(one_sided::RemoteKey& key, one_sided::Lane& lane, RmaOp op, std::uint64_t offset,
                     const canele_data_t& data) {
  const DirectAccess* const direct = key.direct.load(std::memory_order_acquire);  // release: on_attached()
  if (direct == nullptr || (op == RmaOp::get ? direct->get : direct->put).size == 0) return false;
  const bool may = direct->permit.enter(direct->generation);
  const bool done = may && copy(*direct, key.rank, op, offset, data);
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

namespace {

/// Copies the data, by as many calls as its pieces need. Returns whether all could be copied.
bool copy(const DirectAccess& direct, int rank, RmaOp op, std::uint64_t offset, const canele_data_t& data) {
  const drivers::MemoryKey& rkey = op == RmaOp::get ? direct.get : direct.put;
  for (std::uint64_t at = 0; at < data.length;) {
    constexpr int most = 64;
    iovec pieces[most];
    std::size_t covered = 0;
    const std::uint64_t limit = direct.driver->capabilities().max_rma;
    const int count = data::pieces(data, at, limit, pieces, most, &covered);
    if (count == 0) return false;
    const Status status =
        direct.driver->rma(rank, op, {rkey.bytes, rkey.size}, offset + at, pieces, count, covered, nullptr);
    if (status != Status::ok) return false;
    at += covered;
  }
  return true;
}

}  // namespace
}  // namespace canele::comm::post

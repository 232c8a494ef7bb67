// SPDX-License-Identifier: BSD-3-Clause
//
// Accumulates at the target.
#include "comm/protocol/one_sided_accumulate.hpp"

#include <cstdint>

#include "comm/operators/accumulate.hpp"
#include "comm/operators/operators.hpp"
#include "comm/protocol/one_sided_execute.hpp"
#include "comm/protocol/one_sided_reply.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::one_sided {
namespace {

using Payload = std::span<const std::byte>;
using operators::Accumulation;

/// Returns whether an honest origin can send this.
bool is_valid(const wire::Accumulate& fields, Payload elements) {
  if (!operators::accumulates(fields.operation, fields.element)) return false;
  const std::size_t brought = fields.operation == CANELE_NO_OP ? 0 : fields.length;
  return elements.size() == brought && fields.length <= longest_accumulate &&
         fields.length % operators::size_of(static_cast<canele_element>(fields.element)) == 0;
}

/// Combines the elements. Processes that map the region may access the same words at the same time.
void execute(const Accumulation& how, const Region& region, std::byte* at, const wire::Accumulate& fields,
             Payload elements, std::byte* before) {
  if (region.shared != nullptr && operators::has_words(operators::size_of(how.element), at)) {
    CANELE_COVER(one_sided_accumulate_by_words);
    operators::combine_words(how, at, elements.data(), fields.length, before);
  } else {
    CANELE_COVER(one_sided_accumulate);
    operators::combine(how, at, elements.data(), fields.length, before);
  }
}

}  // namespace

Verdict on_accumulate(Context& context, Peer& peer, const wire::Head& head, Payload payload) {
  std::uint32_t flags = 0;
  wire::Accumulate fields{};
  if (!wire::take(payload, flags) || !wire::take(payload, fields))
    return Verdict::violation("an accumulate is too short");
  PeerAccess& access = access_of(peer);
  if (!may_come(access, head.session)) return too_early();
  if (!is_valid(fields, payload)) return Verdict::violation("an accumulate is of no known kind");
  const bool answers = fields.result != Handle::none;
  if (answers && has_most_replies(context, peer))
    return Verdict::violation("it awaits more answers than may be under way");
  const Accumulation how{fields.operation, static_cast<canele_element>(fields.element)};
  Region* region = nullptr;
  int error = find_region(context, access, head, fields.length, CANELE_ACCESS_ATOMIC, &region);
  std::byte* const at = error == CANELE_OK ? region->base + head.tag : nullptr;
  if (reinterpret_cast<std::uintptr_t>(at) % operators::alignment_of(how.element) != 0) error = CANELE_EACCESS;
  if (error != CANELE_OK) return conclude(context, peer, head, flags, error);
  ReplyCopy reply;
  if (answers) {
    reply = reserve_reply(context, fields.length);
    if (reply.request == nullptr) return Verdict::retry();
  }
  execute(how, *region, at, fields, payload, answers ? reply.bytes.data() : nullptr);
  context.watch.moved();
  if (answers) reply_with(context, peer, {head.session, fields.result}, reply);
  return conclude(context, peer, head, flags, CANELE_OK);
}

}  // namespace canele::comm::one_sided

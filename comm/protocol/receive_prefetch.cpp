// SPDX-License-Identifier: BSD-3-Clause
//
// The prefetches for posted receives.
#include "comm/protocol/receive_prefetch.hpp"

#include "comm/matching/prefetch.hpp"
#include "comm/protocol/receive.hpp"
#include "comm/protocol/receive_eager.hpp"
#include "comm/state/context.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm {

bool ReceivePrefetch::takes(const Request& request, std::size_t length) noexcept {
  return request.word.load(std::memory_order_relaxed) == 0 && !request.unbound && length < RtrTable::shortest;
}

[[gnu::always_inline]] inline void ReceivePrefetch::prefetch_hint(const Matcher& matcher) {
  const Posting& youngest = at(0);
  where_[(next_ - 1) % where_.size()] =
      matcher.prefetch_post(youngest.session->match, youngest.tag, youngest.mask, youngest.source);
  prefetch_to_write(youngest.data.base);
  const auto* const request = reinterpret_cast<const std::byte*>(youngest.request);
  prefetch_to_write(request + 4 * sizeof(canele_request_t));  // the requests to be posted next often lie in one array
  if (matcher.post_steps() == Matcher::PostSteps::to_message) return matcher.prefetch_message(where(depth / 2));
  if (classify(youngest.source, youngest.mask) != MatchClass::exact) {  // the slow path, which writes the whole request
    prefetch_to_write(request + 64);
    prefetch_to_write(request + 128);
  }
  if (matcher.post_steps() == Matcher::PostSteps::to_secondary) {
    constexpr unsigned apart = depth / 3;
    matcher.prefetch_message(where(apart));
    matcher.prefetch_secondary(where(2 * apart));
  } else {
    constexpr unsigned apart = depth / 4;
    matcher.prefetch_message(where(apart));
    matcher.prefetch_secondary(where(2 * apart));
    matcher.prefetch_order_slots(where(3 * apart));
  }
}

inline void ReceivePrefetch::look_up_oldest(Context& context) {
  receive_path::accept_fast(context, at(--count_));  // no copy, which would read the fields before they are written
}

void ReceivePrefetch::advance(Context& context) {
  CANELE_COVER(post_waits_in_prefetch);
  prefetch_hint(context.matcher);
  if (count_ > depth) look_up_oldest(context);
}

void ReceivePrefetch::drain(Context& context) {
  while (count_ != 0) look_up_oldest(context);
}

}  // namespace canele::comm

// SPDX-License-Identifier: BSD-3-Clause
//
// The pipeline of posted receives. See post_pipeline.hpp (who, threads, surprise).
#include "comm/core/post_pipeline.hpp"

#include "comm/core/engine.hpp"
#include "comm/matching/prefetch.hpp"
#include "comm/protocol/advert.hpp"
#include "comm/protocol/eager_in.hpp"
#include "comm/protocol/receive_path.hpp"
#include "ltask/mark.hpp"

namespace canele::comm {

bool PostPipeline::takes(const Engine& engine, const Request& request, std::size_t length) noexcept {
  const bool looked_after = !engine.drivers_armed && !engine.worker.active();
  return looked_after && request.word.load(std::memory_order_relaxed) == 0 && !request.late && length < advert::least;
}

void PostPipeline::advance(Engine& engine) {
  CANELE_MARK(post_waits_in_pipeline);
  prefetch_to_write(at(0).data.base);
  const auto* const request = reinterpret_cast<const std::byte*>(at(0).request);
  prefetch_to_write(request + 4 * sizeof(canele_request_t));  // requests to be posted often lie in an array
  const unsigned steps = engine.matcher.post_steps(), apart = depth / steps;
  if (steps > 2) {  // not the short way: all of a plain receive is written
    prefetch_to_write(request + 64);
    prefetch_to_write(request + 128);
  }
  for (unsigned step = 0; step < steps && step * apart < count_; ++step) {
    const Posting& one = at(step * apart);
    engine.matcher.foresee_post(one.session->match, one.tag, one.mask, one.source, step);
  }
  while (count_ > depth) look_up_oldest(engine);
}

void PostPipeline::look_up_oldest(Engine& engine) {
  receive_path::accept_in_line(engine, at(--count_));  // no copy: its parts would be read before they are written
}

void PostPipeline::settle(Engine& engine) {
  while (count_ != 0) look_up_oldest(engine);
}

}  // namespace canele::comm

// SPDX-License-Identifier: BSD-3-Clause
//
// The pipeline of posted receives. See post_pipeline.hpp (who, threads, surprise).
#include "comm/core/post_pipeline.hpp"

#include "comm/core/engine.hpp"
#include "comm/matching/prefetch.hpp"
#include "comm/protocol/advert.hpp"
#include "comm/protocol/receive_path.hpp"
#include "ltask/mark.hpp"

namespace canele::comm {

bool PostPipeline::takes(const Engine& engine, const Request& request) noexcept {
  const bool looked_after = !engine.drivers_armed && !engine.worker.active();
  return looked_after && request.word.load(std::memory_order_relaxed) == 0 && !request.late &&
         request.data.length < advert::least;
}

void PostPipeline::add(Engine& engine, Request& request) {
  CANELE_MARK(post_waits_in_pipeline);
  ring_[next_++ % ring_.size()] = &request;
  ++count_;
  prefetch_to_write(request.data.base);
  const auto hint = [&](unsigned step) {
    if (step * apart >= count_) return;
    const Request& one = at(step * apart);
    engine.matcher.foresee_post(one.session->match, one.receive.node, step);
  };
  hint(0);
  hint(1);
  hint(2);
  hint(3);
  hint(4);
  if (count_ > depth) look_up_oldest(engine);
}

void PostPipeline::look_up_oldest(Engine& engine) {
  Request& request = at(--count_);
  receive_path::accept(engine, request);
}

void PostPipeline::settle(Engine& engine) {
  while (count_ != 0) look_up_oldest(engine);
}

}  // namespace canele::comm

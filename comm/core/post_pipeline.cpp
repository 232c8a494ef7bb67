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

bool PostPipeline::takes(const Engine& engine, const Posting& posting) noexcept {
  const bool looked_after = !engine.drivers_armed && !engine.worker.active();
  return looked_after && posting.request->word.load(std::memory_order_relaxed) == 0 && !posting.request->late &&
         posting.data.length < advert::least;
}

void PostPipeline::add(Engine& engine, const Posting& posting) {
  CANELE_MARK(post_waits_in_pipeline);
  ring_[next_++ % ring_.size()] = posting;
  ++count_;
  prefetch_to_write(posting.data.base);
  for (unsigned step = 0; step < Matcher::post_steps && step * apart < count_; ++step) {
    const Posting& one = at(step * apart);
    engine.matcher.foresee_post(one.session->match, one.tag, one.mask, one.source, step);
  }
  if (count_ > depth) look_up_oldest(engine);
}

void PostPipeline::look_up_oldest(Engine& engine) {
  const Posting posting = at(--count_);
  receive_path::accept_in_line(engine, posting);
}

void PostPipeline::settle(Engine& engine) {
  while (count_ != 0) look_up_oldest(engine);
}

}  // namespace canele::comm

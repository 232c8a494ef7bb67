// SPDX-License-Identifier: BSD-3-Clause
//
// The blocks of active messages.
#include "comm/state/active_blocks.hpp"

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

#include "comm/state/spin_guard.hpp"

namespace canele::comm {

ActiveBlock* ActiveBlock::make(std::size_t room) {
  void* const memory =
      ::operator new (sizeof(ActiveBlock) + room, std::align_val_t{alignof(ActiveBlock)}, std::nothrow);
  if (memory == nullptr) return nullptr;
  auto* const block = new (memory) ActiveBlock;
  block->large = room > small;
  return block;
}

void ActiveBlock::destroy(ActiveBlock* block) {
  block->mark = 0;
  block->~ActiveBlock();
  ::operator delete (block, std::align_val_t{alignof(ActiveBlock)});
}

ActiveBlocks::~ActiveBlocks() {
  while (free_ != nullptr) ActiveBlock::destroy(std::exchange(free_, free_->next_free));
}

bool ActiveBlocks::has_room() {
  const SpinGuard guard(guard_, platform_);
  return enqueued_ < most_enqueued;
}

ActiveBlock* ActiveBlocks::take() {
  {
    const SpinGuard guard(guard_, platform_);
    if (free_ != nullptr) {
      --spare_;
      return std::exchange(free_, free_->next_free);
    }
  }
  return ActiveBlock::make(ActiveBlock::small);
}

ActiveBlock* ActiveBlocks::take_arrived(bool counts) {
  const SpinGuard guard(guard_, platform_);
  if (counts && enqueued_ >= most_enqueued) return nullptr;
  if (free_ == nullptr) {
    ran_dry_ = true;
    return nullptr;
  }
  if (counts) ++enqueued_;
  return std::exchange(free_, free_->next_free);
}

void ActiveBlocks::begin_turn() {
  std::size_t missing = 0;
  {
    const SpinGuard guard(guard_, platform_);
    waits_ = false;
    if (std::exchange(ran_dry_, false)) spare_wanted_ = std::min(2 * spare_wanted_, most_spare);
    if (spare_ < spare_wanted_) missing = spare_wanted_ - spare_;
  }
  for (; missing != 0; --missing) {
    ActiveBlock* const block = ActiveBlock::make(ActiveBlock::small);
    if (block == nullptr) return;
    put(block);
  }
}

bool ActiveBlocks::begin_wait(bool for_block) {
  const SpinGuard guard(guard_, platform_);
  waits_ = (for_block && free_ == nullptr) || enqueued_ >= most_enqueued;
  return waits_;
}

void ActiveBlocks::keep(ActiveBlock& block) {
  std::exchange(block.call, nullptr)->kept = true;
  block.blocks = shared_from_this();
}

void ActiveBlocks::enqueue(ActiveBlock& block, CompletionQueue& queue, bool counts) {
  block.blocks = shared_from_this();
  if (counts) {
    const SpinGuard guard(guard_, platform_);
    ++enqueued_;
  }
  queue.push(block, QueueNode::Owner::active_message, platform_);
}

/// Claims the receiver if it waits. It then lives until resume() has returned, because a slot of it waits.
bool ActiveBlocks::claim_locked() { return std::exchange(waits_, false) && receiver_.claim(); }

void ActiveBlocks::resume_if(bool claimed) {
  if (claimed) receiver_.resume();
}

void ActiveBlocks::taken() {
  bool claimed = false;
  {
    const SpinGuard guard(guard_, platform_);
    claimed = enqueued_-- == most_enqueued && claim_locked();
  }
  resume_if(claimed);
}

void ActiveBlocks::put(ActiveBlock* block) {
  if (block == nullptr) return;
  if (block->large) return ActiveBlock::destroy(block);
  const SpinGuard guard(guard_, platform_);
  block->next_free = free_;
  free_ = block;
  ++spare_;
}

void ActiveBlocks::put_back(ActiveBlock& first, ActiveBlock& last) {
  const SpinGuard guard(guard_, platform_);
  last.next_free = free_;
  free_ = &first;
}

void ActiveBlocks::passed_on(std::size_t count) {
  const SpinGuard guard(guard_, platform_);
  spare_ -= count;
}

void ActiveBlocks::give_back(ActiveBlock& block) {
  const std::shared_ptr<ActiveBlocks> blocks = std::exchange(block.blocks, nullptr);
  assert(blocks != nullptr && "the block belongs to the program");
  block.end_unanswered();
  blocks->put(&block);
  bool claimed = false;
  {
    const SpinGuard guard(blocks->guard_, blocks->platform_);
    claimed = blocks->claim_locked();
  }
  blocks->resume_if(claimed);
}

}  // namespace canele::comm

// SPDX-License-Identifier: BSD-3-Clause
//
// The blocks of active messages.
#include "comm/state/active_blocks.hpp"

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
    if (free_ != nullptr) return std::exchange(free_, free_->next_free);
  }
  return ActiveBlock::make(ActiveBlock::small);
}

bool ActiveBlocks::begin_wait(bool for_block) {
  const SpinGuard guard(guard_, platform_);
  waits_ = (for_block && free_ == nullptr) || enqueued_ >= most_enqueued;
  return waits_;
}

void ActiveBlocks::end_wait() {
  const SpinGuard guard(guard_, platform_);
  waits_ = false;
}

bool ActiveBlocks::keep(ActiveBlock& block) {
  ActiveCall& call = *block.call;
  if (!block.large && (call.replacement = take()) == nullptr) return false;
  call.kept = true;
  block.call = nullptr;
  block.blocks = shared_from_this();
  return true;
}

void ActiveBlocks::enqueue(ActiveBlock& block, CompletionQueue& queue) {
  block.blocks = shared_from_this();
  {
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

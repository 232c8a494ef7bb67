// SPDX-License-Identifier: BSD-3-Clause
//
// Pinned memory by size.
#include "comm/device/staging_pool.hpp"

namespace canele::comm::device {

StagingPool::~StagingPool() {
  for (const auto& list : spare_) {
    for (std::byte* const memory : list) memory_.free_pinned(memory);
  }
}

StagingMemory StagingPool::take(std::size_t size, std::string* why) {
  StagingMemory memory;
  while (size_of(memory.size_class) < size) ++memory.size_class;
  {
    const std::lock_guard lock(mutex_);
    auto& list = spare_[memory.size_class];
    if (!list.empty()) {
      memory.base = list.back();
      list.pop_back();
      kept_ -= size_of(memory.size_class);
      return memory;
    }
  }
  memory.base = memory_.allocate_pinned(size_of(memory.size_class), why);
  return memory;
}

void StagingPool::give_back(const StagingMemory& memory) {
  if (memory.base == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    if (kept_ + size_of(memory.size_class) <= most_kept_) {
      kept_ += size_of(memory.size_class);
      spare_[memory.size_class].push_back(memory.base);
      return;
    }
  }
  memory_.free_pinned(memory.base);
}

}  // namespace canele::comm::device

// SPDX-License-Identifier: BSD-3-Clause
//
// The slabs of kept messages. See message_pool.hpp (who, threads).
// Surprise: the system aligns to pages only: twice the size is mapped, and what is in excess is given back at once.
#include "comm/core/message_pool.hpp"

#include <sys/mman.h>

#include <utility>

namespace canele::comm {
namespace {

/// Aligned to its size, untouched. nullptr if there is no memory.
void* map_aligned(std::size_t size) {
  void* const memory = mmap(nullptr, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t aligned = (begin + size - 1) & ~std::uintptr_t{size - 1};
  if (aligned != begin) munmap(memory, aligned - begin);
  munmap(reinterpret_cast<void*>(aligned + size), begin + size - aligned);
  return reinterpret_cast<void*>(aligned);
}

}  // namespace

MessagePool::MessagePool() {
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    kinds_[i].block_size = block_sizes[i];
    kinds_[i].blocks = static_cast<std::uint32_t>((slab_size - sizeof(Slab)) / block_sizes[i]);
  }
}

MessagePool::~MessagePool() {
  while (all_ != nullptr) munmap(std::exchange(all_, all_->all_next), slab_size);
}

MessagePool::Slab* MessagePool::add_slab(Kind& kind) {
  void* const memory = map_aligned(slab_size);
  if (memory == nullptr) return nullptr;
  // Advice: where there are no huge pages, ordinary ones do. The first slab of a kind is often nearly empty.
  if (kind.slabs++ != 0) madvise(memory, slab_size, MADV_HUGEPAGE);
  Slab* const slab = new (memory) Slab{};
  slab->kind = &kind;
  slab->all_next = all_;
  if (all_ != nullptr) all_->all_prev = slab;
  all_ = slab;
  open(*slab);
  return slab;
}

void MessagePool::drop(Slab& slab) {
  close(slab);
  (slab.all_prev != nullptr ? slab.all_prev->all_next : all_) = slab.all_next;
  if (slab.all_next != nullptr) slab.all_next->all_prev = slab.all_prev;
  --slab.kind->slabs;
  munmap(&slab, slab_size);
}

void MessagePool::open(Slab& slab) {
  slab.prev = nullptr;
  slab.next = slab.kind->open;
  if (slab.next != nullptr) slab.next->prev = &slab;
  slab.kind->open = &slab;
}

void MessagePool::close(Slab& slab) {
  (slab.prev != nullptr ? slab.prev->next : slab.kind->open) = slab.next;
  if (slab.next != nullptr) slab.next->prev = slab.prev;
}

}  // namespace canele::comm

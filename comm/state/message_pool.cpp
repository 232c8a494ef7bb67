// SPDX-License-Identifier: BSD-3-Clause
//
// The slabs of stored messages.
//
// The first slab of a kind is in ordinary pages, because it is often nearly empty.
#include "comm/state/message_pool.hpp"

#include <utility>

namespace canele::comm {

MessagePool::MessagePool() {
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    kinds_[i].block_size = block_sizes[i];
    kinds_[i].blocks = static_cast<std::uint32_t>((slab_size - sizeof(Slab)) / block_sizes[i]);
  }
}

MessagePool::~MessagePool() {
  while (all_ != nullptr) unmap_huge_page(std::exchange(all_, all_->all_next));
}

MessagePool::Slab* MessagePool::add_slab(Kind& kind) {
  void* const memory = map_huge_page();
  if (memory == nullptr) return nullptr;
  if (kind.slabs++ != 0) want_huge_pages(memory);
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
  unmap_huge_page(&slab);
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

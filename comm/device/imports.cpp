// SPDX-License-Identifier: BSD-3-Clause
#include "comm/device/imports.hpp"

#include <cstring>
#include <iterator>

namespace canele::comm::device {

Imports::~Imports() {
  while (!mappings_.empty()) unmap(mappings_.begin());
}

Imports::Mapping* Imports::take(int rank, const drivers::MemoryExport& memory, int device, std::string* why) {
  for (auto one = mappings_.begin(); one != mappings_.end();) {
    const auto next = std::next(one);
    const bool same_handle = std::memcmp(one->memory.handle, memory.handle, sizeof memory.handle) == 0;
    if (one->rank == rank && one->device == device && same_handle) {
      if (one->memory.allocation == memory.allocation && one->memory.size == memory.size) {
        mappings_.splice(mappings_.begin(), mappings_, one);
        ++one->users;
        return &*one;
      }
      if (one->users == 0) unmap(one);  // of memory that is gone
    }
    one = next;
  }
  drivers::MemoryExport whole = memory;
  whole.offset = 0;
  std::byte* base = nullptr;
  *why = memory_.open(whole, device, &base);
  if (!why->empty()) {  // mappings of memory that is gone may be in the way
    unmap_unused(rank);
    *why = memory_.open(whole, device, &base);
  }
  if (!why->empty()) return nullptr;
  mappings_.push_front({rank, device, memory, base, 1});
  return &mappings_.front();
}

void Imports::give_back(Mapping* mapping) {
  --mapping->users;
  for (auto one = mappings_.end(); mappings_.size() > most && one != mappings_.begin();) {
    --one;
    if (one->users != 0) continue;
    const auto unused = one++;
    unmap(unused);
  }
}

void Imports::unmap(std::list<Mapping>::iterator one) {
  memory_.close(one->base);
  mappings_.erase(one);
}

void Imports::unmap_unused(int rank) {
  for (auto one = mappings_.begin(); one != mappings_.end();) {
    const auto next = std::next(one);
    if (one->rank == rank && one->users == 0) unmap(one);
    one = next;
  }
}

}  // namespace canele::comm::device

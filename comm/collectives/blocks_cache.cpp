// SPDX-License-Identifier: BSD-3-Clause
#include "comm/collectives/blocks_cache.hpp"

#include <algorithm>
#include <utility>

namespace canele::comm::collectives {
namespace {

/// Sums are there only if lengths are.
bool name_memory(const Blocks& blocks) { return blocks.lengths != nullptr || blocks.offsets != nullptr; }

bool equal_numbers(const std::size_t* a, const std::size_t* b, int ranks) {
  if (a == nullptr || b == nullptr) return a == b;
  return std::equal(a, a + ranks, b);
}

/// Sums follow from the lengths.
bool equal_blocks(const Blocks& a, const Blocks& b, int ranks) {
  return a.length == b.length && equal_numbers(a.lengths, b.lengths, ranks) &&
         equal_numbers(a.offsets, b.offsets, ranks);
}

bool equal_calls(const Call& a, const Call& b) {
  return a.operation == b.operation && a.commutes == b.commutes && a.in_place == b.in_place &&
         a.irregular == b.irregular && a.root == b.root && a.size == b.size && a.rank == b.rank &&
         a.length == b.length && a.element == b.element && equal_blocks(a.input, b.input, a.size) &&
         equal_blocks(a.output, b.output, a.size);
}

void append(std::vector<std::size_t>& numbers, const std::size_t* given, int ranks) {
  if (given != nullptr) numbers.insert(numbers.end(), given, given + ranks);
}

/// Lets the blocks name the numbers that were appended for them, and steps over those.
void refer(Blocks& blocks, const std::size_t*& next, int ranks) {
  if (blocks.lengths != nullptr) blocks.lengths = std::exchange(next, next + ranks);
  if (blocks.offsets != nullptr) blocks.offsets = std::exchange(next, next + ranks);
  blocks.sums = nullptr;  // the caller's
}

}  // namespace

bool BlocksCache::is_for(const Call& call) { return name_memory(call.input) || name_memory(call.output); }

const std::shared_ptr<const Schedule>* BlocksCache::find(const Call& call, const Choice& asked) {
  for (Entry& entry : kept_) {
    if (entry.schedule == nullptr || entry.asked != asked || !equal_calls(entry.call, call)) continue;
    entry.used = ++uses_;
    return &entry.schedule;
  }
  return nullptr;
}

const std::shared_ptr<const Schedule>& BlocksCache::keep(const Call& call, const Choice& asked,
                                                         std::shared_ptr<const Schedule> schedule) {
  if (call.size > most_ranks) return too_many_ = std::move(schedule);
  std::vector<std::size_t> numbers;
  numbers.reserve(4 * static_cast<std::size_t>(call.size));
  for (const Blocks* blocks : {&call.input, &call.output}) {
    append(numbers, blocks->lengths, call.size);
    append(numbers, blocks->offsets, call.size);
  }
  Entry& oldest = *std::min_element(kept_.begin(), kept_.end(), [](auto& a, auto& b) { return a.used < b.used; });
  oldest = {call, asked, std::move(numbers), std::move(schedule), ++uses_};
  const std::size_t* next = oldest.numbers.data();
  refer(oldest.call.input, next, call.size);
  refer(oldest.call.output, next, call.size);
  return oldest.schedule;
}

}  // namespace canele::comm::collectives

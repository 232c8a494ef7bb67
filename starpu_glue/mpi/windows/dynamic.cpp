// SPDX-License-Identifier: BSD-3-Clause
//
// The table of attached memory, at its owner and at origins.
//
// The generation is odd while the owner changes the table. An origin reads it before and after it reads the entries.
#include "starpu_glue/mpi/windows/dynamic.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "starpu_glue/mpi/core/error.hpp"

namespace canele::mpi {
namespace {

/// What an origin reads first.
struct RegionsHeader {
  std::uint64_t generation;
  std::uint64_t count;
};
static_assert(offsetof(WindowRegions, count) == sizeof(std::uint64_t));

/// Changes the table: change(regions). Under the window's mutex.
template <class Change>
void change_table(const Window& window, Change change) {
  WindowRegions& regions = window.own_control->regions;
  const std::atomic_ref<std::uint64_t> generation(regions.generation);
  generation.fetch_add(1, std::memory_order_acq_rel);
  change(regions);
  generation.fetch_add(1, std::memory_order_release);  // pairs with the reads of origins
}

/// Reads the control memory of a target, at once or in a round trip: not behind the operations of the window.
int read_control(const WindowTarget& target, std::uint64_t offset, void* to, std::size_t length) {
  canele_request_t request{};
  const canele_data_t data = canele_data_contiguous(to, length);
  const int error = canele_get(target.control, offset, &data, nullptr, &request);
  return error != CANELE_OK ? from_engine(error) : await_access(request, canele_key_rank(target.control));
}

int read_header(const WindowTarget& target, RegionsHeader* header) {
  return read_control(target, offsetof(WindowControl, regions), header, sizeof *header);
}

/// Reads the whole table, until no change comes between.
int read_table(const Window& window, const WindowTarget& target, std::uint64_t* generation,
               std::vector<RegionEntry>* entries) {
  for (;;) {
    RegionsHeader before{}, after{};
    int code = read_header(target, &before);
    if (code != MPI_SUCCESS) return code;
    entries->resize(before.count);
    if (before.count != 0)
      code = read_control(target, offsetof(WindowControl, regions.entries), entries->data(),
                          before.count * sizeof(RegionEntry));
    if (code == MPI_SUCCESS) code = read_header(target, &after);
    *generation = before.generation;
    if (code != MPI_SUCCESS || (before.generation == after.generation && before.generation % 2 == 0)) return code;
    if (canele_progress(window.engine) == 0) sched_yield();
  }
}

/// Opens the keys of a new table, as far as the old one did not have them. Under the window's mutex.
int install_table(Window& window, WindowTarget& target, std::uint64_t generation,
                  const std::vector<RegionEntry>& entries) {
  std::vector<RemoteRegion> regions;
  for (const RegionEntry& entry : entries) {
    if (entry.length == 0) continue;
    RemoteRegion region{entry, nullptr};
    for (RemoteRegion& old : target.regions.list) {
      if (std::memcmp(old.entry.key, entry.key, sizeof entry.key) == 0) std::swap(region.key, old.key);
    }
    const int error = region.key == nullptr ? canele_key_open(window.engine, entry.key, &region.key) : CANELE_OK;
    if (error != CANELE_OK) {
      for (const RemoteRegion& one : regions) window.old_keys.push_back(one.key);
      return from_engine(error);
    }
    regions.push_back(region);
  }
  std::sort(regions.begin(), regions.end(),
            [](const RemoteRegion& one, const RemoteRegion& other) { return one.entry.base < other.entry.base; });
  for (const RemoteRegion& old : target.regions.list) {
    if (old.key != nullptr) window.old_keys.push_back(old.key);  // operations may still use it
  }
  std::erase_if(window.old_keys, [](canele_key_t* key) { return canele_key_close(key) == CANELE_OK; });
  target.regions.list = std::move(regions);
  target.regions.generation = generation;
  return MPI_SUCCESS;
}

bool overlaps(const AttachedMemory& one, std::uint64_t base, std::uint64_t size) {
  return base < one.base + one.size && one.base < base + size;
}

/// Adds memory to the list and the table. Under the window's mutex.
int publish_memory(Window& window, AttachedMemory memory) {
  const std::uint64_t base = memory.base, size = memory.size;
  for (const AttachedMemory& one : window.attached) {
    if (overlaps(one, base, size)) return fail(MPI_ERR_RMA_ATTACH, "the memory overlaps with other attached memory");
  }
  RegionEntry* const begin = window.own_control->regions.entries;
  RegionEntry* const place =
      std::find_if(begin, begin + kMostRegions, [](const RegionEntry& entry) { return entry.length == 0; });
  if (place == begin + kMostRegions)
    return fail(MPI_ERR_RMA_ATTACH, "%d pieces of memory are attached already; detach some first", kMostRegions);
  memory.entry = static_cast<std::size_t>(place - begin);
  change_table(window, [&](WindowRegions& regions) {
    canele_memory_key(memory.memory, place->key);
    place->start = memory.start;
    place->base = base;
    place->length = size;
    regions.count = std::max(regions.count, memory.entry + std::uint64_t{1});
  });
  window.attached.push_back(memory);
  return MPI_SUCCESS;
}

}  // namespace

int attach_memory(Window& window, void* base, MPI_Aint size) {
  if (window.flavor != MPI_WIN_FLAVOR_DYNAMIC)
    return fail(MPI_ERR_RMA_FLAVOR, "the window was not made by MPI_Win_create_dynamic");
  if (size < 0) return fail(MPI_ERR_SIZE, "the size is %lld; expected: at least 0", static_cast<long long>(size));
  if (size == 0) return MPI_SUCCESS;
  if (base == nullptr) return fail(MPI_ERR_BASE, "the base is NULL for %lld bytes", static_cast<long long>(size));
  AttachedMemory made{};
  made.base = reinterpret_cast<std::uintptr_t>(base);
  made.size = static_cast<std::uint64_t>(size);
  std::uint64_t skew = 0;
  int code = register_memory(window, base, made.size, &skew, &made.memory);
  if (code != MPI_SUCCESS) return code;
  made.start = made.base - skew;
  {
    const std::lock_guard guard(window.mutex);
    code = publish_memory(window, made);
  }
  if (code != MPI_SUCCESS) canele_memory_free(made.memory);
  return code;
}

int detach_memory(Window& window, const void* base) {
  if (window.flavor != MPI_WIN_FLAVOR_DYNAMIC)
    return fail(MPI_ERR_RMA_FLAVOR, "the window was not made by MPI_Win_create_dynamic");
  canele_memory_t* memory = nullptr;
  {
    const std::lock_guard guard(window.mutex);
    const auto place = std::find_if(window.attached.begin(), window.attached.end(), [base](const AttachedMemory& one) {
      return one.base == reinterpret_cast<std::uintptr_t>(base);
    });
    if (place == window.attached.end())
      return fail(MPI_ERR_BASE, "no attached memory begins at %p", const_cast<void*>(base));
    memory = place->memory;
    change_table(window, [&](WindowRegions& regions) { regions.entries[place->entry].length = 0; });
    window.attached.erase(place);
  }
  return from_engine(canele_memory_free(memory));  // waits for accesses that have begun
}

int not_attached(int rank, std::uint64_t address, std::uint64_t length) {
  return fail(MPI_ERR_RMA_RANGE, "rank %d has no attached memory that holds the %llu bytes at 0x%llx", rank,
              static_cast<unsigned long long>(length), static_cast<unsigned long long>(address));
}

int find_attached_ranges(Window& window, int rank, std::uint64_t low, std::uint64_t high,
                         std::vector<AttachedRange>* found) {
  WindowTarget& target = window.targets[rank];
  RegionsHeader header{};
  if (const int code = read_header(target, &header); code != MPI_SUCCESS) return code;
  std::unique_lock guard(window.mutex);
  if (target.regions.generation != header.generation) {
    guard.unlock();
    std::vector<RegionEntry> entries;
    std::uint64_t generation = 0;
    if (const int code = read_table(window, target, &generation, &entries); code != MPI_SUCCESS) return code;
    guard.lock();
    if (const int code = install_table(window, target, generation, entries); code != MPI_SUCCESS) return code;
  }
  for (const RemoteRegion& region : target.regions.list) {
    const RegionEntry& entry = region.entry;
    const AttachedRange range{entry.base, entry.base + entry.length, entry.start, region.key};
    if (range.low < high && low < range.high) found->push_back(range);
  }
  return low < high && !found->empty() ? MPI_SUCCESS : not_attached(rank, low, high - low);
}

void detach_all(Window& window) {
  for (const AttachedMemory& one : window.attached) canele_memory_free(one.memory);
  window.attached.clear();
}

std::vector<canele_key_t*> region_keys(const Window& window) {
  std::vector<canele_key_t*> keys = window.old_keys;
  for (int rank = 0; window.targets != nullptr && rank < window.ranks(); ++rank) {
    for (const RemoteRegion& region : window.targets[rank].regions.list) keys.push_back(region.key);
  }
  return keys;
}

}  // namespace canele::mpi

// SPDX-License-Identifier: BSD-3-Clause
//
// Infos and their handles.
#include "starpu_glue/mpi/infos/info.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/handles.hpp"
#include "starpu_glue/mpi/infos/environment_info.hpp"

namespace canele::mpi {
namespace {

constexpr std::uint32_t kInfosReserved = 0x132;  ///< up to MPI_INFO_ENV
constinit HandlePool<InfoPairs, MPI_Info, Kind::info, kInfosReserved, 128> infos_pool;
constinit std::mutex infos_lock;

auto place_of(auto& pairs, std::string_view key) {
  return std::find_if(pairs.begin(), pairs.end(), [key](const auto& pair) { return pair.first == key; });
}

/// Finds the pairs of a live handle. Under the lock.
int get_info(MPI_Info handle, InfoPairs** found) {
  *found = infos_pool.find(handle);
  if (*found != nullptr) return MPI_SUCCESS;
  if (handle == MPI_INFO_NULL) return fail(MPI_ERR_INFO, "the info is MPI_INFO_NULL");
  if (handle == MPI_INFO_ENV) return fail(MPI_ERR_INFO, "MPI_INFO_ENV can only be read");
  return fail(MPI_ERR_INFO, "0x%zx is not an info, or was freed", handle_bits(handle));
}

}  // namespace

int new_info(InfoPairs pairs, MPI_Info* handle) {
  const std::lock_guard guard(infos_lock);
  MPI_Info made = MPI_INFO_NULL;
  InfoPairs* slot = infos_pool.acquire(&made);
  if (slot == nullptr) return fail(MPI_ERR_NO_MEM, "no memory or no handle left for another info");
  *slot = std::move(pairs);
  *handle = made;
  return MPI_SUCCESS;
}

int new_object_info(InfoPairs hints, MPI_Info* handle) {
  set_value(hints, "mpi_memory_alloc_kinds", "mpi,system");
  return new_info(std::move(hints), handle);
}

int free_info(MPI_Info* handle) {
  const std::lock_guard guard(infos_lock);
  InfoPairs* pairs = nullptr;
  if (const int code = get_info(*handle, &pairs); code != MPI_SUCCESS) return code;
  InfoPairs().swap(*pairs);
  infos_pool.release(*handle);
  *handle = MPI_INFO_NULL;
  return MPI_SUCCESS;
}

int info_pairs(MPI_Info handle, InfoPairs* pairs) {
  if (handle == MPI_INFO_ENV) {
    *pairs = own_environment_pairs();
    return MPI_SUCCESS;
  }
  const std::lock_guard guard(infos_lock);
  InfoPairs* found = nullptr;
  const int code = get_info(handle, &found);
  if (code == MPI_SUCCESS) *pairs = *found;
  return code;
}

int hint_pairs(MPI_Info handle, InfoPairs* pairs) {
  return handle == MPI_INFO_NULL ? MPI_SUCCESS : info_pairs(handle, pairs);
}

int check_hints(MPI_Info handle) {
  InfoPairs hints;
  return hint_pairs(handle, &hints);
}

int set_info(MPI_Info handle, const char* key, const char* value) {
  if (const int code = check_info_key(key); code != MPI_SUCCESS) return code;
  const std::size_t length = strnlen(value, MPI_MAX_INFO_VAL);
  if (length == 0 || length == MPI_MAX_INFO_VAL)
    return fail(MPI_ERR_INFO_VALUE, "the value has %zu or more characters; expected: 1 to %d", length,
                MPI_MAX_INFO_VAL - 1);
  const std::lock_guard guard(infos_lock);
  InfoPairs* pairs = nullptr;
  const int code = get_info(handle, &pairs);
  if (code == MPI_SUCCESS) set_value(*pairs, key, value);
  return code;
}

int delete_info(MPI_Info handle, const char* key) {
  if (const int code = check_info_key(key); code != MPI_SUCCESS) return code;
  const std::lock_guard guard(infos_lock);
  InfoPairs* pairs = nullptr;
  if (const int code = get_info(handle, &pairs); code != MPI_SUCCESS) return code;
  const auto place = place_of(*pairs, key);
  if (place == pairs->end()) return fail(MPI_ERR_INFO_NOKEY, "the info has no key \"%s\"", key);
  pairs->erase(place);
  return MPI_SUCCESS;
}

int check_info_key(const char* key) {
  const std::size_t length = strnlen(key, MPI_MAX_INFO_KEY);
  if (length > 0 && length < MPI_MAX_INFO_KEY) return MPI_SUCCESS;
  return fail(MPI_ERR_INFO_KEY, "the key has %zu or more characters; expected: 1 to %d", length, MPI_MAX_INFO_KEY - 1);
}

const std::string* find_value(const InfoPairs& pairs, std::string_view key) {
  const auto place = place_of(pairs, key);
  return place == pairs.end() ? nullptr : &place->second;
}

void set_value(InfoPairs& pairs, std::string_view key, std::string_view value) {
  const auto place = place_of(pairs, key);
  if (place == pairs.end()) {
    pairs.emplace_back(key, value);
  } else {
    place->second = value;
  }
}

}  // namespace canele::mpi

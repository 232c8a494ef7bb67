// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI_Info_ functions, called by their entry points. Any thread.
#include <algorithm>
#include <cstring>

#include "calls/infos.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/infos/environment_info.hpp"
#include "starpu_glue/mpi/infos/info.hpp"

namespace canele::mpi {
namespace {

/// Finds the value of a key of an info.
int get_value(MPI_Info info, const char* key, InfoPairs* pairs, const std::string** value) {
  int code = check_info_key(key);
  if (code == MPI_SUCCESS) code = info_pairs(info, pairs);
  if (code == MPI_SUCCESS) *value = find_value(*pairs, key);
  return code;
}

}  // namespace

namespace calls {

int info_create(MPI_Info* info) { return new_info({}, info); }

int info_create_env(int argc, char* argv[], MPI_Info* info) { return new_info(environment_pairs(argc, argv), info); }

int info_dup(MPI_Info info, MPI_Info* newinfo) {
  InfoPairs pairs;
  const int code = info_pairs(info, &pairs);
  return code == MPI_SUCCESS ? new_info(std::move(pairs), newinfo) : code;
}

int info_free(MPI_Info* info) { return free_info(info); }

int info_set(MPI_Info info, const char* key, const char* value) { return set_info(info, key, value); }

int info_delete(MPI_Info info, const char* key) { return delete_info(info, key); }

int info_get(MPI_Info info, const char* key, int valuelen, char* value, int* flag) {
  if (valuelen < 0) return fail(MPI_ERR_ARG, "valuelen is %d; expected: at least 0", valuelen);
  InfoPairs pairs;
  const std::string* found = nullptr;
  if (const int code = get_value(info, key, &pairs, &found); code != MPI_SUCCESS) return code;
  *flag = found != nullptr ? 1 : 0;
  if (found != nullptr) {
    const std::size_t copied = std::min(found->size(), static_cast<std::size_t>(valuelen));
    std::memcpy(value, found->data(), copied);
    value[copied] = '\0';  // the program's memory has one character more than it says
  }
  return MPI_SUCCESS;
}

int info_get_string(MPI_Info info, const char* key, int* buflen, char* value, int* flag) {
  if (*buflen < 0) return fail(MPI_ERR_ARG, "buflen is %d; expected: at least 0", *buflen);
  InfoPairs pairs;
  const std::string* found = nullptr;
  if (const int code = get_value(info, key, &pairs, &found); code != MPI_SUCCESS) return code;
  *flag = found != nullptr ? 1 : 0;
  if (found == nullptr) return MPI_SUCCESS;
  const auto room = static_cast<std::size_t>(*buflen);
  *buflen = static_cast<int>(found->size()) + 1;
  if (room == 0) return MPI_SUCCESS;
  if (value == nullptr) return given({{"value", value}});
  const std::size_t copied = std::min(found->size(), room - 1);
  std::memcpy(value, found->data(), copied);
  value[copied] = '\0';
  return MPI_SUCCESS;
}

int info_get_valuelen(MPI_Info info, const char* key, int* valuelen, int* flag) {
  InfoPairs pairs;
  const std::string* found = nullptr;
  if (const int code = get_value(info, key, &pairs, &found); code != MPI_SUCCESS) return code;
  *flag = found != nullptr ? 1 : 0;
  if (found != nullptr) *valuelen = static_cast<int>(found->size());
  return MPI_SUCCESS;
}

int info_get_nkeys(MPI_Info info, int* nkeys) {
  InfoPairs pairs;
  const int code = info_pairs(info, &pairs);
  if (code == MPI_SUCCESS) *nkeys = static_cast<int>(pairs.size());
  return code;
}

int info_get_nthkey(MPI_Info info, int n, char* key) {
  InfoPairs pairs;
  if (const int code = info_pairs(info, &pairs); code != MPI_SUCCESS) return code;
  if (static_cast<std::size_t>(n) >= pairs.size())
    return fail(MPI_ERR_ARG, "key %d of an info with %zu keys", n, pairs.size());
  const std::string& found = pairs[static_cast<std::size_t>(n)].first;
  std::memcpy(key, found.c_str(), found.size() + 1);
  return MPI_SUCCESS;
}

}  // namespace calls
}  // namespace canele::mpi

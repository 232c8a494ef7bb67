// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Info_ functions. Called from any thread.
#include <algorithm>
#include <cstring>

#include "starpu_glue/mpi/api.hpp"
#include "starpu_glue/mpi/info.hpp"

using namespace canele::mpi;

namespace {

/// Finds the value of a key of an info.
int get_value(MPI_Info info, const char* key, InfoPairs* pairs, const std::string** value) {
  int code = check_info_key(key);
  if (code == MPI_SUCCESS) code = info_pairs(info, pairs);
  if (code == MPI_SUCCESS) *value = find_value(*pairs, key);
  return code;
}

}  // namespace

extern "C" int PMPI_Info_create(MPI_Info* info) {
  const Call call("MPI_Info_create");
  if (call.rejected()) return call.end(reject_in_child());
  if (const int code = given({{"info", info}}); code != MPI_SUCCESS) return call.end(code);
  return call.end(new_info({}, info));
}
CANELE_MPI_NAME(Info_create);

extern "C" int PMPI_Info_dup(MPI_Info info, MPI_Info* copy) {
  const Call call("MPI_Info_dup");
  if (call.rejected()) return call.end(reject_in_child());
  if (const int code = given({{"copy", copy}}); code != MPI_SUCCESS) return call.end(code);
  InfoPairs pairs;
  int code = info_pairs(info, &pairs);
  if (code == MPI_SUCCESS) code = new_info(std::move(pairs), copy);
  return call.end(code);
}
CANELE_MPI_NAME(Info_dup);

extern "C" int PMPI_Info_free(MPI_Info* info) {
  const Call call("MPI_Info_free");
  if (call.rejected()) return call.end(reject_in_child());
  if (const int code = given({{"info", info}}); code != MPI_SUCCESS) return call.end(code);
  return call.end(free_info(info));
}
CANELE_MPI_NAME(Info_free);

extern "C" int PMPI_Info_set(MPI_Info info, const char* key, const char* value) {
  const Call call("MPI_Info_set");
  if (call.rejected()) return call.end(reject_in_child());
  if (const int code = given({{"key", key}, {"value", value}}); code != MPI_SUCCESS) return call.end(code);
  return call.end(set_info(info, key, value));
}
CANELE_MPI_NAME(Info_set);

extern "C" int PMPI_Info_delete(MPI_Info info, const char* key) {
  const Call call("MPI_Info_delete");
  if (call.rejected()) return call.end(reject_in_child());
  if (const int code = given({{"key", key}}); code != MPI_SUCCESS) return call.end(code);
  return call.end(delete_info(info, key));
}
CANELE_MPI_NAME(Info_delete);

extern "C" int PMPI_Info_get(MPI_Info info, const char* key, int length, char* value, int* flag) {
  const Call call("MPI_Info_get");
  if (call.rejected()) return call.end(reject_in_child());
  if (const int code = given({{"key", key}, {"value", value}, {"flag", flag}}); code != MPI_SUCCESS)
    return call.end(code);
  if (length < 0) return call.end(fail(MPI_ERR_ARG, "the length is %d; expected: at least 0", length));
  InfoPairs pairs;
  const std::string* found = nullptr;
  const int code = get_value(info, key, &pairs, &found);
  if (code != MPI_SUCCESS) return call.end(code);
  *flag = found != nullptr ? 1 : 0;
  if (found != nullptr) {
    const std::size_t copied = std::min(found->size(), static_cast<std::size_t>(length));
    std::memcpy(value, found->data(), copied);
    value[copied] = '\0';  // the program's memory has one character more than it says
  }
  return MPI_SUCCESS;
}
CANELE_MPI_NAME(Info_get);

extern "C" int PMPI_Info_get_valuelen(MPI_Info info, const char* key, int* length, int* flag) {
  const Call call("MPI_Info_get_valuelen");
  if (call.rejected()) return call.end(reject_in_child());
  if (const int code = given({{"key", key}, {"length", length}, {"flag", flag}}); code != MPI_SUCCESS)
    return call.end(code);
  InfoPairs pairs;
  const std::string* found = nullptr;
  const int code = get_value(info, key, &pairs, &found);
  if (code != MPI_SUCCESS) return call.end(code);
  *flag = found != nullptr ? 1 : 0;
  if (found != nullptr) *length = static_cast<int>(found->size());
  return MPI_SUCCESS;
}
CANELE_MPI_NAME(Info_get_valuelen);

extern "C" int PMPI_Info_get_nkeys(MPI_Info info, int* count) {
  const Call call("MPI_Info_get_nkeys");
  if (call.rejected()) return call.end(reject_in_child());
  if (const int code = given({{"count", count}}); code != MPI_SUCCESS) return call.end(code);
  InfoPairs pairs;
  const int code = info_pairs(info, &pairs);
  if (code == MPI_SUCCESS) *count = static_cast<int>(pairs.size());
  return call.end(code);
}
CANELE_MPI_NAME(Info_get_nkeys);

extern "C" int PMPI_Info_get_nthkey(MPI_Info info, int n, char* key) {
  const Call call("MPI_Info_get_nthkey");
  if (call.rejected()) return call.end(reject_in_child());
  if (const int code = given({{"key", key}}); code != MPI_SUCCESS) return call.end(code);
  InfoPairs pairs;
  int code = info_pairs(info, &pairs);
  if (code == MPI_SUCCESS && (n < 0 || static_cast<std::size_t>(n) >= pairs.size()))
    code = fail(MPI_ERR_ARG, "key %d of an info with %zu keys", n, pairs.size());
  if (code != MPI_SUCCESS) return call.end(code);
  const std::string& found = pairs[static_cast<std::size_t>(n)].first;
  std::memcpy(key, found.c_str(), found.size() + 1);
  return MPI_SUCCESS;
}
CANELE_MPI_NAME(Info_get_nthkey);

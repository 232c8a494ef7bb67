// SPDX-License-Identifier: BSD-3-Clause
//
// Error classes and codes that the program adds.
#include "starpu_glue/mpi/core/error_codes.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "starpu_glue/mpi/core/error.hpp"

namespace canele::mpi {
namespace {

struct AddedCode {
  int error_class = 0;  ///< 0: the number is free
  std::string text;
};

constexpr int kFirstAdded = MPI_ERR_LASTCODE + 1;
constinit std::mutex added_lock;
constinit int last_used = MPI_ERR_LASTCODE;

bool is_predefined_class(int code) { return code >= MPI_SUCCESS && code <= MPI_ERR_ABI; }

/// Returns the added codes by number, from kFirstAdded on. Under the lock. They are never freed: a thread may ask for a
/// text while the process ends.
std::vector<AddedCode>& added_codes() {
  static auto* const codes = new std::vector<AddedCode>;
  return *codes;
}

/// Finds an added code. Under the lock.
AddedCode* find_added(int code) {
  const auto index = static_cast<std::size_t>(code) - static_cast<std::size_t>(kFirstAdded);
  std::vector<AddedCode>& added = added_codes();
  return code >= kFirstAdded && index < added.size() && added[index].error_class != 0 ? &added[index] : nullptr;
}

bool is_class(int code, const AddedCode& one) { return one.error_class == code; }

int not_added(const char* what, int code) { return fail(MPI_ERR_ARG, "%d is no %s that was added", code, what); }

/// The program reads it through its address, in any thread.
void publish_last_used() {
  const int last = MPI_ERR_LASTCODE + static_cast<int>(added_codes().size());
  std::atomic_ref(last_used).store(last, std::memory_order_relaxed);
}

/// Adds a code of a class; 0: a class. Under the lock.
int add(int error_class) {
  std::vector<AddedCode>& added = added_codes();
  const auto place =
      std::find_if(added.begin(), added.end(), [](const AddedCode& one) { return one.error_class == 0; });
  const int code = kFirstAdded + static_cast<int>(place - added.begin());
  AddedCode& one = place == added.end() ? added.emplace_back() : *place;
  one.error_class = error_class == 0 ? code : error_class;
  publish_last_used();
  return code;
}

/// Removes a code. Under the lock.
int remove(AddedCode& one) {
  std::vector<AddedCode>& added = added_codes();
  one = AddedCode();
  while (!added.empty() && added.back().error_class == 0) added.pop_back();
  publish_last_used();
  return MPI_SUCCESS;
}

}  // namespace

int add_error_class(int* made) {
  const std::lock_guard guard(added_lock);
  *made = add(0);
  return MPI_SUCCESS;
}

int add_error_code(int error_class, int* made) {
  const std::lock_guard guard(added_lock);
  const AddedCode* const found = find_added(error_class);
  const bool is_given = found == nullptr ? is_predefined_class(error_class) : is_class(error_class, *found);
  if (!is_given || error_class == MPI_SUCCESS) return fail(MPI_ERR_ARG, "%d is no error class", error_class);
  *made = add(error_class);
  return MPI_SUCCESS;
}

int set_error_text(int code, const char* text) {
  const std::lock_guard guard(added_lock);
  AddedCode* const found = find_added(code);
  if (found == nullptr) return not_added("error class or code", code);
  found->text.assign(text, strnlen(text, MPI_MAX_ERROR_STRING - 1));
  return MPI_SUCCESS;
}

int remove_error_class(int error_class) {
  const std::lock_guard guard(added_lock);
  AddedCode* const found = find_added(error_class);
  if (found == nullptr || !is_class(error_class, *found)) return not_added("error class", error_class);
  const std::vector<AddedCode>& added = added_codes();
  const auto codes = std::count_if(added.begin(), added.end(),
                                   [error_class](const AddedCode& one) { return one.error_class == error_class; });
  if (codes > 1) return fail(MPI_ERR_ARG, "the error class %d has codes; remove them first", error_class);
  return remove(*found);
}

int remove_error_code(int code) {
  const std::lock_guard guard(added_lock);
  AddedCode* const found = find_added(code);
  if (found == nullptr || is_class(code, *found)) return not_added("error code", code);
  return remove(*found);
}

int remove_error_text(int code) {
  const std::lock_guard guard(added_lock);
  AddedCode* const found = find_added(code);
  if (found == nullptr) return not_added("error class or code", code);
  found->text.clear();
  return MPI_SUCCESS;
}

int class_of_code(int code) {
  if (is_predefined_class(code)) return code;
  const std::lock_guard guard(added_lock);
  const AddedCode* const found = find_added(code);
  return found == nullptr ? MPI_ERR_UNKNOWN : found->error_class;
}

bool describe_added_code(int code, char* text, int size) {
  const std::lock_guard guard(added_lock);
  const AddedCode* const found = find_added(code);
  if (found == nullptr) return false;
  std::snprintf(text, static_cast<std::size_t>(size), "%s", found->text.c_str());
  return true;
}

const int* last_used_code() { return &last_used; }

}  // namespace canele::mpi

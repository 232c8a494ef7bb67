// SPDX-License-Identifier: BSD-3-Clause
//
// Keys of attributes and the attributes of windows.
#include "starpu_glue/mpi/windows/attributes.hpp"

#include <algorithm>

#include "starpu_glue/mpi/core/error.hpp"

namespace canele::mpi {
namespace {

struct Keyval {
  MPI_Win_delete_attr_function* on_delete = nullptr;
  void* extra = nullptr;
  int uses = 0;  ///< attributes, and the program until it frees the key
  bool is_freed = false;
};

constinit HandlePool<Keyval, int, Kind::keyval, 1, 16> keyvals_pool;
constinit std::mutex keyvals_lock;

int no_such_keyval(int keyval) {
  return fail(MPI_ERR_KEYVAL, "0x%x was not made by MPI_Win_create_keyval, or was freed",
              static_cast<unsigned>(keyval));
}

/// Drops one use of a key. Under the lock.
void drop_use(int keyval, Keyval& key) {
  if (--key.uses == 0) keyvals_pool.release(keyval);
}

WindowAttribute* attribute_of(Window& window, int keyval) {
  const auto place = std::find_if(window.attributes.begin(), window.attributes.end(),
                                  [keyval](const WindowAttribute& one) { return one.keyval == keyval; });
  return place == window.attributes.end() ? nullptr : &*place;
}

/// Calls the program's function for an attribute that is about to go. Its error keeps the attribute.
int announce(const Window& window, const WindowAttribute& attribute) {
  Keyval key;
  {
    const std::lock_guard guard(keyvals_lock);
    key = *keyvals_pool.find(attribute.keyval);
  }
  if (key.on_delete == nullptr) return MPI_SUCCESS;
  const int code = key.on_delete(window.handle, attribute.keyval, attribute.value, key.extra);
  return code == MPI_SUCCESS ? code : fail(code, "the delete function of an attribute answered %d", code);
}

}  // namespace

int new_keyval(MPI_Win_delete_attr_function* on_delete, void* extra, int* keyval) {
  const std::lock_guard guard(keyvals_lock);
  int made = MPI_KEYVAL_INVALID;
  Keyval* const key = keyvals_pool.acquire(&made);
  if (key == nullptr) return fail(MPI_ERR_NO_MEM, "no memory or no handle left for another key of attributes");
  *key = {on_delete, extra, 1, false};
  *keyval = made;
  return MPI_SUCCESS;
}

int free_keyval(int* keyval) {
  const std::lock_guard guard(keyvals_lock);
  Keyval* const key = keyvals_pool.find(*keyval);
  if (key == nullptr || key->is_freed) return no_such_keyval(*keyval);
  key->is_freed = true;
  drop_use(*keyval, *key);
  *keyval = MPI_KEYVAL_INVALID;
  return MPI_SUCCESS;
}

int set_attribute(Window& window, int keyval, void* value) {
  {
    const std::lock_guard guard(keyvals_lock);
    Keyval* const key = keyvals_pool.find(keyval);
    if (key == nullptr || key->is_freed) return no_such_keyval(keyval);
    ++key->uses;  // of the new attribute
  }
  const int code = attribute_of(window, keyval) != nullptr ? delete_attribute(window, keyval) : MPI_SUCCESS;
  if (code == MPI_SUCCESS) {
    window.attributes.push_back({keyval, value});
    return MPI_SUCCESS;
  }
  const std::lock_guard guard(keyvals_lock);
  drop_use(keyval, *keyvals_pool.find(keyval));
  return code;
}

int find_attribute(Window& window, int keyval, void** value, int* flag) {
  {
    const std::lock_guard guard(keyvals_lock);
    if (keyvals_pool.find(keyval) == nullptr) return no_such_keyval(keyval);
  }
  const WindowAttribute* const attribute = attribute_of(window, keyval);
  *flag = attribute != nullptr ? 1 : 0;
  if (attribute != nullptr) *value = attribute->value;
  return MPI_SUCCESS;
}

int delete_attribute(Window& window, int keyval) {
  const WindowAttribute* const attribute = attribute_of(window, keyval);
  if (attribute == nullptr)
    return fail(MPI_ERR_KEYVAL, "the window has no attribute 0x%x", static_cast<unsigned>(keyval));
  if (const int code = announce(window, *attribute); code != MPI_SUCCESS) return code;
  std::erase_if(window.attributes, [keyval](const WindowAttribute& one) { return one.keyval == keyval; });
  const std::lock_guard guard(keyvals_lock);
  drop_use(keyval, *keyvals_pool.find(keyval));
  return MPI_SUCCESS;
}

int delete_attributes(Window& window) {
  while (!window.attributes.empty()) {
    const int code = delete_attribute(window, window.attributes.back().keyval);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

}  // namespace canele::mpi

// SPDX-License-Identifier: BSD-3-Clause
//
// Keys of attributes, and the attributes of one object.
#include "starpu_glue/mpi/core/attributes.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>

#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/handles.hpp"

namespace canele::mpi {
namespace {

constinit HandlePool<Keyval, int, Kind::keyval, 1, 64> keyvals_pool;
constinit std::mutex attributes_lock;

int no_such_keyval(ObjectKind kind, int keyval) {
  return fail(MPI_ERR_KEYVAL, "0x%x was not made by MPI_%s_create_keyval, or was freed", static_cast<unsigned>(keyval),
              name_of(kind));
}

/// Finds the key of a kind. Under the lock.
Keyval* find_keyval(ObjectKind kind, int keyval) {
  Keyval* const key = keyvals_pool.find(keyval);
  return key != nullptr && key->kind == kind ? key : nullptr;
}

/// Drops one use of a key. Under the lock.
void drop_use(int keyval) {
  Keyval* const key = keyvals_pool.find(keyval);
  if (--key->uses != 0) return;
  if (key->release != nullptr) key->release(key->extra);
  keyvals_pool.release(keyval);
}

/// Asks the program's function for the value in a duplicate. Returns its code.
int call_copy(const Keyval& key, const Object& object, int keyval, void* value, void** copied, int* flag) {
  return with_handle(object, [&]<class Handle>(Handle handle) {
    return restore<CopyFunction<Handle>>(key.copy)(handle, keyval, key.extra, value, copied, flag);
  });
}

/// Tells the program's function that an attribute goes. Returns an MPI code.
int call_delete(const Keyval& key, const Object& object, int keyval, void* value) {
  if (key.on_delete == nullptr) return MPI_SUCCESS;
  const int code = with_handle(object, [&]<class Handle>(Handle handle) {
    return restore<DeleteFunction<Handle>>(key.on_delete)(handle, keyval, value, key.extra);
  });
  return code == MPI_SUCCESS ? code : fail(code, "the delete function of an attribute answered %d", code);
}

}  // namespace

int add_keyval(const Keyval& key, int* keyval) {
  const std::lock_guard guard(attributes_lock);
  int made = MPI_KEYVAL_INVALID;
  Keyval* const slot = keyvals_pool.acquire(&made);
  if (slot == nullptr) return fail(MPI_ERR_NO_MEM, "no memory or no handle left for another key of attributes");
  *slot = key;
  slot->uses = 1;
  *keyval = made;
  return MPI_SUCCESS;
}

int free_keyval(ObjectKind kind, int* keyval) {
  const std::lock_guard guard(attributes_lock);
  Keyval* const key = find_keyval(kind, *keyval);
  if (key == nullptr) return no_such_keyval(kind, *keyval);
  const bool was_freed = key->is_freed;  // then attributes have it still, and MPI allows another copy to be freed
  key->is_freed = true;
  if (!was_freed) drop_use(*keyval);
  *keyval = MPI_KEYVAL_INVALID;
  return MPI_SUCCESS;
}

void release_with_key(int keyval, void (*release)(void* extra)) {
  const std::lock_guard guard(attributes_lock);
  if (Keyval* const key = keyvals_pool.find(keyval)) key->release = release;
}

Attributes::One* Attributes::find(int keyval) const {
  List* const list = list_.load(std::memory_order_relaxed);
  if (list == nullptr) return nullptr;
  const auto place =
      std::find_if(list->begin(), list->end(), [keyval](const One& one) { return one.keyval == keyval; });
  return place == list->end() ? nullptr : &*place;
}

/// Adds an attribute. Sets *is_there instead if the object has one with that key.
int Attributes::append(const Object& object, int keyval, void* value, bool* is_there) {
  const std::lock_guard guard(attributes_lock);
  Keyval* const key = find_keyval(object.kind, keyval);
  if (key == nullptr) return no_such_keyval(object.kind, keyval);
  *is_there = find(keyval) != nullptr;
  if (*is_there) return MPI_SUCCESS;
  if (List* const list = list_.load(std::memory_order_relaxed); list == nullptr) {
    auto made = std::make_unique<List>();
    made->push_back({keyval, value});
    list_.store(made.release(), std::memory_order_relaxed);
  } else {
    list->push_back({keyval, value});
  }
  ++key->uses;
  return MPI_SUCCESS;
}

Attributes::List Attributes::copy() const {
  const std::lock_guard guard(attributes_lock);
  const List* const list = list_.load(std::memory_order_relaxed);
  return list == nullptr ? List() : *list;
}

int Attributes::set(const Object& object, int keyval, void* value) {
  {
    const std::lock_guard guard(attributes_lock);
    const Keyval* const key = find_keyval(object.kind, keyval);
    if (key == nullptr || key->is_freed) return no_such_keyval(object.kind, keyval);
  }
  for (;;) {
    bool is_there = false;
    int code = append(object, keyval, value, &is_there);
    if (code != MPI_SUCCESS || !is_there) return code;
    code = remove(object, keyval);
    if (code != MPI_SUCCESS) return code;
  }
}

int Attributes::get(const Object& object, int keyval, void* value, int* flag) const {
  const std::lock_guard guard(attributes_lock);
  if (find_keyval(object.kind, keyval) == nullptr) return no_such_keyval(object.kind, keyval);
  const One* const one = find(keyval);
  *flag = one != nullptr ? 1 : 0;
  if (one != nullptr) std::memcpy(value, &one->value, sizeof one->value);  // the caller gives the address of a pointer
  return MPI_SUCCESS;
}

int Attributes::remove(const Object& object, int keyval) {
  Keyval key;
  void* value = nullptr;
  {
    const std::lock_guard guard(attributes_lock);
    const Keyval* const found = find_keyval(object.kind, keyval);
    if (found == nullptr) return no_such_keyval(object.kind, keyval);
    const One* const one = find(keyval);
    if (one == nullptr) return fail(MPI_ERR_KEYVAL, "the object has no attribute 0x%x", static_cast<unsigned>(keyval));
    key = *found;
    value = one->value;
  }
  if (const int code = call_delete(key, object, keyval, value); code != MPI_SUCCESS) return code;
  const std::lock_guard guard(attributes_lock);
  const One* const one = find(keyval);
  if (one == nullptr) return MPI_SUCCESS;  // the program's function has deleted it itself
  List* const list = list_.load(std::memory_order_relaxed);
  list->erase(list->begin() + (one - list->data()));
  if (list->empty()) {
    list_.store(nullptr, std::memory_order_relaxed);
    delete list;
  }
  drop_use(keyval);
  return MPI_SUCCESS;
}

int Attributes::remove_all(const Object& object) {
  for (List list = copy(); !list.empty(); list = copy()) {
    if (const int code = remove(object, list.back().keyval); code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

int Attributes::copy_to(const Object& object, Attributes& duplicate) const {
  for (const One& one : copy()) {
    Keyval key;
    {
      const std::lock_guard guard(attributes_lock);
      const Keyval* const found = find_keyval(object.kind, one.keyval);
      if (found == nullptr) continue;  // another of the program's functions has deleted the last attribute of a key
      key = *found;
    }
    if (key.rule == CopyRule::never) continue;
    void* copied = one.value;
    int flag = 1;
    int code = MPI_SUCCESS;
    if (key.rule == CopyRule::by_function) {
      flag = 0;
      code = call_copy(key, object, one.keyval, one.value, &copied, &flag);
      if (code != MPI_SUCCESS) return fail(code, "the copy function of an attribute answered %d", code);
    }
    bool is_there = false;
    if (flag != 0) code = duplicate.append(object, one.keyval, copied, &is_there);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

void Attributes::forget() {
  if (!any()) return;
  const std::lock_guard guard(attributes_lock);
  List* const list = list_.exchange(nullptr, std::memory_order_relaxed);
  if (list == nullptr) return;
  for (const One& one : *list) drop_use(one.keyval);
  delete list;
}

}  // namespace canele::mpi

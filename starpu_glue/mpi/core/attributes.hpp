// SPDX-License-Identifier: BSD-3-Clause
//
// Keys of attributes, and the attributes of one object: a communicator, a datatype or a window.
//
// Any thread: one lock guards keys and attributes, because both are used rarely. The program's functions are called
// without the lock, and may call MPI. Functions return MPI codes.
//
//     Attributes ─▶ list ─▶ attribute, attribute, ...   in the order of setting; no list: a null pointer
//                           │
//                           └▶ keyval ─▶ key             lives until the program frees it and no attribute has it
//
// An attribute is deleted after the program's function has agreed: an error of that function keeps it.
#pragma once

#include <atomic>
#include <vector>

#include "starpu_glue/mpi/core/objects.hpp"

namespace canele::mpi {

/// How a key treats a value when its object is duplicated.
enum class CopyRule : std::uint8_t { never, always, by_function };

/// A key of attributes.
struct Keyval {
  ObjectKind kind = ObjectKind::communicator;
  CopyRule rule = CopyRule::never;
  bool is_freed = false;
  AnyFunction copy = nullptr;
  AnyFunction on_delete = nullptr;  ///< may be nullptr
  void* extra = nullptr;
  void (*release)(void* extra) = nullptr;  ///< ends `extra` with the key; may be nullptr
  int uses = 0;                            ///< attributes, and the program until it frees the key
};

int add_keyval(const Keyval& key, int* keyval);
/// Frees a key. Attributes that have it keep it until they are deleted.
int free_keyval(ObjectKind kind, int* keyval);
/// Has a function called with the extra state of a key when the key ends. It may not call MPI.
void release_with_key(int keyval, void (*release)(void* extra));

/// Makes a key. The functions may be the constants of mpi.h, which are no functions.
template <class Handle>
int new_keyval(CopyFunction<Handle>* copy, DeleteFunction<Handle>* on_delete, void* extra, int* keyval) {
  const AnyFunction always = erase(MPI_COMM_DUP_FN);  // of all kinds alike
  Keyval key;
  key.kind = kKindOf<Handle>;
  key.copy = erase(copy);
  key.rule = copy == nullptr ? CopyRule::never : key.copy == always ? CopyRule::always : CopyRule::by_function;
  key.on_delete = erase(on_delete);
  key.extra = extra;
  return add_keyval(key, keyval);
}

/// The attributes of an object. Each function is told the object, for the program's functions.
class Attributes {
 public:
  Attributes() = default;
  ~Attributes() { forget(); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  bool any() const { return list_.load(std::memory_order_relaxed) != nullptr; }

  int set(const Object& object, int keyval, void* value);
  /// Sets *flag if the object has the attribute, and the pointer at `value` then.
  int get(const Object& object, int keyval, void* value, int* flag) const;
  int remove(const Object& object, int keyval);
  /// Deletes all attributes, the last one first. Those that are gone stay so if one cannot be deleted.
  int remove_all(const Object& object);
  /// Gives a duplicate of the object the attributes that are to be copied. After an error it has some of them.
  int copy_to(const Object& object, Attributes& duplicate) const;
  /// Drops the attributes without a call of the program's functions.
  void forget();

 private:
  struct One {
    int keyval;
    void* value;
  };
  using List = std::vector<One>;

  int append(const Object& object, int keyval, void* value, bool* is_there);
  /// Finds the attribute of a key; nullptr if there is none. Under the lock.
  One* find(int keyval) const;
  List copy() const;

  std::atomic<List*> list_{nullptr};  ///< changed under the lock
};

}  // namespace canele::mpi

// SPDX-License-Identifier: BSD-3-Clause
//
// The kinds of objects that have attributes and error handlers, and the program's functions for each kind. Shared by
// attributes.hpp and error_handlers.hpp.
//
// Any thread: constants and conversions. The program's functions differ in the handle that they take. They are kept as
// AnyFunction, with their kind, and turned back before they are called.
#pragma once

#include <mpi.h>

#include <cstdint>

namespace canele::mpi {

enum class ObjectKind : std::uint8_t { communicator, datatype, window, session };

template <class Handle>
inline constexpr ObjectKind kKindOf = ObjectKind::communicator;
template <>
inline constexpr ObjectKind kKindOf<MPI_Datatype> = ObjectKind::datatype;
template <>
inline constexpr ObjectKind kKindOf<MPI_Win> = ObjectKind::window;
template <>
inline constexpr ObjectKind kKindOf<MPI_Session> = ObjectKind::session;  // has no attributes

/// The name of a kind in errors: "Comm" of MPI_Comm_create_keyval.
constexpr const char* name_of(ObjectKind kind) {
  constexpr const char* names[] = {"Comm", "Type", "Win", "Session"};
  return names[static_cast<int>(kind)];
}

/// An object of the program: its kind and its handle.
struct Object {
  ObjectKind kind;
  void* handle;

  Object(MPI_Comm comm) : kind(ObjectKind::communicator), handle(comm) {}  // implicit: a handle says its kind
  Object(MPI_Datatype type) : kind(ObjectKind::datatype), handle(type) {}
  Object(MPI_Win window) : kind(ObjectKind::window), handle(window) {}
};

template <class Handle>
using CopyFunction = int(Handle object, int keyval, void* extra, void* value, void* copy, int* flag);
template <class Handle>
using DeleteFunction = int(Handle object, int keyval, void* value, void* extra);
template <class Handle>
using ErrorFunction = void(Handle* object, int* code, ...);

using AnyFunction = void (*)();

template <class Function>
AnyFunction erase(Function* function) {
  return reinterpret_cast<AnyFunction>(function);
}
template <class Function>
Function* restore(AnyFunction function) {
  return reinterpret_cast<Function*>(function);
}

/// Calls perform(handle) with the handle of the object in its own type.
template <class Perform>
auto with_handle(const Object& object, Perform perform) {
  switch (object.kind) {
    case ObjectKind::communicator:
      return perform(static_cast<MPI_Comm>(object.handle));
    case ObjectKind::datatype:
      return perform(static_cast<MPI_Datatype>(object.handle));
    default:
      return perform(static_cast<MPI_Win>(object.handle));
  }
}

}  // namespace canele::mpi

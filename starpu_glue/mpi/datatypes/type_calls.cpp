// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI_Type_ functions, MPI_Pack and MPI_Unpack, called by their entry points; MPI_Get_address. Any thread; StarPU
// makes a type per message.
//
// MPI_Type_commit has nothing to do, because the layout is computed when the type is created.
#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <vector>

#include "calls/datatypes.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/names.hpp"
#include "starpu_glue/mpi/datatypes/transfer.hpp"

namespace canele::mpi {
namespace {

template <class Value>
std::span<const Value> list_of(int count, const Value* values) {
  return {values, static_cast<std::size_t>(count)};
}

/// Returns the handle of a type that a constructor has made. By reference: `code` is computed at the same time.
int return_handle(int code, Type* const& made, MPI_Datatype* newtype) {
  if (code == MPI_SUCCESS) *newtype = made->handle;
  return code;
}

int check_room(const char* what, std::size_t have, int room, const void* array) {
  if (have > 0 && array == nullptr) return given({{what, array}});
  if (have <= static_cast<std::size_t>(std::max(room, 0))) return MPI_SUCCESS;
  return fail(MPI_ERR_ARG, "room for %d %s, but the datatype has %zu; MPI_Type_get_envelope returns how many", room,
              what, have);
}

/// Drops a handle that MPI_Type_get_contents has given. Returns false if the program has none of the type.
bool drop_one_of_more_handles(Type& type) {
  int handles = type.more_handles.load(std::memory_order_relaxed);
  while (handles > 0 && !type.more_handles.compare_exchange_weak(handles, handles - 1, std::memory_order_relaxed)) {
  }
  return handles > 0;
}

/// Checks that `length` bytes fit behind a position in packed data.
int check_position(std::size_t length, int position, int size, const char* name, const void* packed) {
  if (position < 0 || position > size || length > static_cast<std::size_t>(size - position))
    return fail(MPI_ERR_TRUNCATE, "%zu bytes at position %d of packed data of %d bytes", length, position, size);
  return length > 0 ? given({{name, packed}}) : MPI_SUCCESS;
}

}  // namespace

namespace calls {

int type_contiguous(int count, Type& oldtype, MPI_Datatype* newtype) {
  Type* made = nullptr;
  return return_handle(make_contiguous(count, oldtype, &made), made, newtype);
}

int type_vector(int count, int blocklength, int stride, Type& oldtype, MPI_Datatype* newtype) {
  Type* made = nullptr;
  return return_handle(make_vector(count, blocklength, stride, false, oldtype, &made), made, newtype);
}

int type_create_hvector(int count, int blocklength, MPI_Aint stride, Type& oldtype, MPI_Datatype* newtype) {
  Type* made = nullptr;
  return return_handle(make_vector(count, blocklength, stride, true, oldtype, &made), made, newtype);
}

int type_indexed(int count, const int array_of_blocklengths[], const int array_of_displacements[], Type& oldtype,
                 MPI_Datatype* newtype) {
  Type* made = nullptr;
  const int code =
      make_indexed(list_of(count, array_of_blocklengths), list_of(count, array_of_displacements), oldtype, &made);
  return return_handle(code, made, newtype);
}

int type_create_hindexed(int count, const int array_of_blocklengths[], const MPI_Aint array_of_displacements[],
                         Type& oldtype, MPI_Datatype* newtype) {
  Type* made = nullptr;
  const int code =
      make_hindexed(list_of(count, array_of_blocklengths), list_of(count, array_of_displacements), oldtype, &made);
  return return_handle(code, made, newtype);
}

int type_create_indexed_block(int count, int blocklength, const int array_of_displacements[], Type& oldtype,
                              MPI_Datatype* newtype) {
  Type* made = nullptr;
  const int code = make_indexed_block(list_of(count, array_of_displacements), blocklength, oldtype, &made);
  return return_handle(code, made, newtype);
}

int type_create_hindexed_block(int count, int blocklength, const MPI_Aint array_of_displacements[], Type& oldtype,
                               MPI_Datatype* newtype) {
  Type* made = nullptr;
  const int code = make_hindexed_block(list_of(count, array_of_displacements), blocklength, oldtype, &made);
  return return_handle(code, made, newtype);
}

int type_create_subarray(int ndims, const int array_of_sizes[], const int array_of_subsizes[],
                         const int array_of_starts[], int order, Type& oldtype, MPI_Datatype* newtype) {
  if (ndims < 1) return fail(MPI_ERR_ARG, "the array has %d dimensions; expected: at least 1", ndims);
  if (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN)
    return fail(MPI_ERR_ARG, "the order is %d; expected: MPI_ORDER_C or MPI_ORDER_FORTRAN", order);
  const Subarray part{list_of(ndims, array_of_sizes), list_of(ndims, array_of_subsizes),
                      list_of(ndims, array_of_starts), order};
  Type* made = nullptr;
  return return_handle(make_subarray(part, oldtype, &made), made, newtype);
}

int type_create_struct(int count, const int array_of_blocklengths[], const MPI_Aint array_of_displacements[],
                       const MPI_Datatype array_of_types[], MPI_Datatype* newtype) {
  std::vector<Type*> elements(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (const int code = get_type(array_of_types[i], &elements[i]); code != MPI_SUCCESS) return code;
  }
  Type* made = nullptr;
  const int code =
      make_struct(list_of(count, array_of_blocklengths), list_of(count, array_of_displacements), elements, &made);
  return return_handle(code, made, newtype);
}

int type_create_resized(Type& oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype* newtype) {
  Type* made = nullptr;
  return return_handle(make_resized(oldtype, lb, extent, &made), made, newtype);
}

int type_dup(Type& oldtype, MPI_Datatype* newtype) {
  Type* made = nullptr;
  int code = make_duplicate(oldtype, &made);
  if (code == MPI_SUCCESS && oldtype.attributes.any()) {
    code = oldtype.attributes.copy_to(oldtype.handle, made->attributes);
    if (code != MPI_SUCCESS) {
      made->attributes.remove_all(made->handle);
      drop_reference(*made);
    }
  }
  return return_handle(code, made, newtype);
}

int type_commit(MPI_Datatype* datatype) {
  Type* found = nullptr;
  return get_type(*datatype, &found);
}

int type_free(MPI_Datatype* datatype) {
  Type* found = nullptr;
  if (const int code = get_type(*datatype, &found); code != MPI_SUCCESS) return code;
  if (found->predefined) return fail(MPI_ERR_TYPE, "%s is predefined and cannot be freed", found->fixed_name);
  if (!drop_one_of_more_handles(*found) && found->attributes.any()) {
    if (const int code = found->attributes.remove_all(found->handle); code != MPI_SUCCESS) return code;
  }
  drop_reference(*found);
  *datatype = MPI_DATATYPE_NULL;
  return MPI_SUCCESS;
}

int type_size(Type& datatype, int* size) {
  *size = datatype.size > INT_MAX ? MPI_UNDEFINED : static_cast<int>(datatype.size);
  return MPI_SUCCESS;
}

int type_get_extent(Type& datatype, MPI_Aint* lb, MPI_Aint* extent) {
  *lb = datatype.lower;
  *extent = datatype.extent();
  return MPI_SUCCESS;
}

int type_get_true_extent(Type& datatype, MPI_Aint* true_lb, MPI_Aint* true_extent) {
  *true_lb = datatype.true_lower;
  *true_extent = datatype.true_upper - datatype.true_lower;
  return MPI_SUCCESS;
}

int type_get_envelope(Type& datatype, int* num_integers, int* num_addresses, int* num_datatypes, int* combiner) {
  *num_integers = static_cast<int>(datatype.contents.integers.size());
  *num_addresses = static_cast<int>(datatype.contents.addresses.size());
  *num_datatypes = static_cast<int>(datatype.contents.types.size());
  *combiner = datatype.combiner;
  return MPI_SUCCESS;
}

int type_get_contents(Type& datatype, int max_integers, int max_addresses, int max_datatypes, int array_of_integers[],
                      MPI_Aint array_of_addresses[], MPI_Datatype array_of_datatypes[]) {
  if (datatype.predefined) return fail(MPI_ERR_TYPE, "%s is predefined: it has no contents", datatype.fixed_name);
  const Contents& contents = datatype.contents;
  int code = check_room("integers", contents.integers.size(), max_integers, array_of_integers);
  if (code == MPI_SUCCESS) code = check_room("addresses", contents.addresses.size(), max_addresses, array_of_addresses);
  if (code == MPI_SUCCESS) code = check_room("datatypes", contents.types.size(), max_datatypes, array_of_datatypes);
  if (code != MPI_SUCCESS) return code;
  std::copy(contents.integers.begin(), contents.integers.end(), array_of_integers);
  std::copy(contents.addresses.begin(), contents.addresses.end(), array_of_addresses);
  for (std::size_t i = 0; i < contents.types.size(); ++i) {
    add_reference(*contents.types[i]);  // the caller frees them, as MPI says
    if (!contents.types[i]->predefined) contents.types[i]->more_handles.fetch_add(1, std::memory_order_relaxed);
    array_of_datatypes[i] = contents.types[i]->handle;
  }
  return MPI_SUCCESS;
}

int type_get_name(Type& datatype, char* type_name, int* resultlen) {
  const char* text = datatype.name.empty() ? datatype.fixed_name : datatype.name.c_str();
  *resultlen = std::snprintf(type_name, MPI_MAX_OBJECT_NAME, "%s", text);
  return MPI_SUCCESS;
}

int type_set_name(Type& datatype, const char* type_name) {
  datatype.name.assign(type_name, strnlen(type_name, MPI_MAX_OBJECT_NAME - 1));
  return MPI_SUCCESS;
}

int get_address(const void* location, MPI_Aint* address) {
  *address = reinterpret_cast<MPI_Aint>(location);
  return MPI_SUCCESS;
}

int pack(const void* inbuf, int incount, Type& datatype, void* outbuf, int outsize, int* position) {
  const std::size_t length = datatype.size * static_cast<std::size_t>(incount);
  if (const int code = check_position(length, *position, outsize, "outbuf", outbuf); code != MPI_SUCCESS) return code;
  mpi::pack(Payload(inbuf, static_cast<std::size_t>(incount), datatype), 0, length,
            static_cast<char*>(outbuf) + *position);
  *position += static_cast<int>(length);
  return MPI_SUCCESS;
}

int unpack(const void* inbuf, int insize, int* position, void* outbuf, int outcount, Type& datatype) {
  const std::size_t length = datatype.size * static_cast<std::size_t>(outcount);
  if (const int code = check_position(length, *position, insize, "inbuf", inbuf); code != MPI_SUCCESS) return code;
  mpi::unpack(Payload(outbuf, static_cast<std::size_t>(outcount), datatype), 0, length,
              static_cast<const char*>(inbuf) + *position);
  *position += static_cast<int>(length);
  return MPI_SUCCESS;
}

int pack_size(int incount, Type& datatype, int* size) {
  const std::size_t length = datatype.size * static_cast<std::size_t>(incount);
  if (length > INT_MAX) return fail(MPI_ERR_COUNT, "the packed size, %zu bytes, does not fit an int", length);
  *size = static_cast<int>(length);
  return MPI_SUCCESS;
}

}  // namespace calls
}  // namespace canele::mpi

// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI_Type_ functions, MPI_Pack and MPI_Unpack, called by their entry points; MPI_Get_address. Any thread; StarPU
// makes a type per message.
//
// MPI_Type_commit has nothing to do, because the layout is computed when the type is created.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "calls/datatypes.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/names.hpp"
#include "starpu_glue/mpi/datatypes/transfer.hpp"
#include "starpu_glue/mpi/datatypes/type_build.hpp"

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

int check_room(const char* what, std::size_t have, MPI_Count room, const void* array) {
  if (have > 0 && array == nullptr) return given({{what, array}});
  if (have <= static_cast<std::size_t>(std::max<MPI_Count>(room, 0))) return MPI_SUCCESS;
  return fail(MPI_ERR_ARG, "room for %lld %s, but the datatype has %zu; MPI_Type_get_envelope returns how many",
              static_cast<long long>(room), what, have);
}

/// Drops a handle that MPI_Type_get_contents has given. Returns false if the program has none of the type.
bool drop_one_of_more_handles(Type& type) {
  int handles = type.more_handles.load(std::memory_order_relaxed);
  while (handles > 0 && !type.more_handles.compare_exchange_weak(handles, handles - 1, std::memory_order_relaxed)) {
  }
  return handles > 0;
}

/// Checks that the datatype was not made by a form for large counts: int cannot tell its arguments.
int check_no_counts(const Type& type) {
  if (type.contents.counts.empty()) return MPI_SUCCESS;
  return fail(MPI_ERR_TYPE, "the datatype was made with large counts; expected: MPI_Type_get_envelope_c, _contents_c");
}

/// Sums up the bytes of data, and checks that they fit behind a position in packed data.
int check_position(const Type& type, MPI_Count count, MPI_Count position, MPI_Count size, Argument packed,
                   std::size_t* length) {
  if (const int code = check_size(count, 1, type); code != MPI_SUCCESS) return code;
  *length = type.size * static_cast<std::size_t>(count);
  if (position < 0 || position > size || *length > static_cast<std::size_t>(size - position))
    return fail(MPI_ERR_TRUNCATE, "%zu bytes at position %lld of packed data of %lld bytes", *length,
                static_cast<long long>(position), static_cast<long long>(size));
  return *length > 0 ? given({packed}) : MPI_SUCCESS;
}

}  // namespace

namespace calls {

int type_contiguous(MPI_Count count, Type& oldtype, MPI_Datatype* newtype, Form form) {
  Type* made = nullptr;
  return return_handle(make_contiguous(count, oldtype, &made, form), made, newtype);
}

int type_vector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, Type& oldtype, MPI_Datatype* newtype,
                Form form) {
  Type* made = nullptr;
  return return_handle(make_vector(count, blocklength, stride, false, oldtype, &made, form), made, newtype);
}

int type_create_hvector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, Type& oldtype, MPI_Datatype* newtype,
                        Form form) {
  Type* made = nullptr;
  return return_handle(make_vector(count, blocklength, stride, true, oldtype, &made, form), made, newtype);
}

int type_indexed(MPI_Count /*count*/, const Integers& array_of_blocklengths, const Integers& array_of_displacements,
                 Type& oldtype, MPI_Datatype* newtype, Form form) {
  Type* made = nullptr;
  const int code = make_indexed(array_of_blocklengths, array_of_displacements, oldtype, &made, form);
  return return_handle(code, made, newtype);
}

int type_create_hindexed(MPI_Count /*count*/, const Integers& array_of_blocklengths,
                         const Integers& array_of_displacements, Type& oldtype, MPI_Datatype* newtype, Form form) {
  Type* made = nullptr;
  const int code = make_hindexed(array_of_blocklengths, array_of_displacements, oldtype, &made, form);
  return return_handle(code, made, newtype);
}

int type_create_indexed_block(MPI_Count /*count*/, MPI_Count blocklength, const Integers& array_of_displacements,
                              Type& oldtype, MPI_Datatype* newtype, Form form) {
  Type* made = nullptr;
  return return_handle(make_indexed_block(array_of_displacements, blocklength, oldtype, &made, form), made, newtype);
}

int type_create_hindexed_block(MPI_Count /*count*/, MPI_Count blocklength, const Integers& array_of_displacements,
                               Type& oldtype, MPI_Datatype* newtype, Form form) {
  Type* made = nullptr;
  return return_handle(make_hindexed_block(array_of_displacements, blocklength, oldtype, &made, form), made, newtype);
}

int type_create_subarray(int /*ndims*/, const Integers& array_of_sizes, const Integers& array_of_subsizes,
                         const Integers& array_of_starts, int order, Type& oldtype, MPI_Datatype* newtype, Form form) {
  const Subarray part{array_of_sizes, array_of_subsizes, array_of_starts, order};
  Type* made = nullptr;
  return return_handle(make_subarray(part, oldtype, &made, form), made, newtype);
}

int type_create_darray(int size, int rank, int ndims, const Integers& array_of_gsizes, const int array_of_distribs[],
                       const int array_of_dargs[], const int array_of_psizes[], int order, Type& oldtype,
                       MPI_Datatype* newtype, Form form) {
  const Distributed array{size,
                          rank,
                          array_of_gsizes,
                          list_of(ndims, array_of_distribs),
                          list_of(ndims, array_of_dargs),
                          list_of(ndims, array_of_psizes),
                          order};
  Type* made = nullptr;
  return return_handle(make_distributed(array, oldtype, &made, form), made, newtype);
}

int type_create_struct(MPI_Count count, const Integers& array_of_blocklengths, const Integers& array_of_displacements,
                       const MPI_Datatype array_of_types[], MPI_Datatype* newtype, Form form) {
  std::vector<Type*> elements(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (const int code = get_type(array_of_types[i], &elements[i]); code != MPI_SUCCESS) return code;
  }
  Type* made = nullptr;
  const int code = make_struct(array_of_blocklengths, array_of_displacements, elements, &made, form);
  return return_handle(code, made, newtype);
}

int type_create_resized(Type& oldtype, MPI_Count lb, MPI_Count extent, MPI_Datatype* newtype, Form form) {
  Type* made = nullptr;
  return return_handle(make_resized(oldtype, lb, extent, &made, form), made, newtype);
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

int type_size(Type& datatype, MPI_Count* size) {
  *size = static_cast<MPI_Count>(datatype.size);
  return MPI_SUCCESS;
}

int type_size_x(Type& datatype, MPI_Count* size) { return type_size(datatype, size); }

int type_get_extent(Type& datatype, MPI_Count* lb, MPI_Count* extent) {
  *lb = datatype.lower;
  *extent = datatype.extent();
  return MPI_SUCCESS;
}

int type_get_extent_x(Type& datatype, MPI_Count* lb, MPI_Count* extent) {
  return type_get_extent(datatype, lb, extent);
}

int type_get_true_extent(Type& datatype, MPI_Count* true_lb, MPI_Count* true_extent) {
  *true_lb = datatype.true_lower;
  *true_extent = datatype.true_upper - datatype.true_lower;
  return MPI_SUCCESS;
}

int type_get_true_extent_x(Type& datatype, MPI_Count* true_lb, MPI_Count* true_extent) {
  return type_get_true_extent(datatype, true_lb, true_extent);
}

int type_get_envelope(Type& datatype, int* num_integers, int* num_addresses, int* num_datatypes, int* combiner) {
  if (const int code = check_no_counts(datatype); code != MPI_SUCCESS) return code;
  *num_integers = static_cast<int>(datatype.contents.integers.size());
  *num_addresses = static_cast<int>(datatype.contents.addresses.size());
  *num_datatypes = static_cast<int>(datatype.contents.types.size());
  *combiner = datatype.combiner;
  return MPI_SUCCESS;
}

int type_get_envelope_c(Type& datatype, MPI_Count* num_integers, MPI_Count* num_addresses, MPI_Count* num_large_counts,
                        MPI_Count* num_datatypes, int* combiner) {
  *num_integers = std::ssize(datatype.contents.integers);
  *num_addresses = std::ssize(datatype.contents.addresses);
  *num_large_counts = std::ssize(datatype.contents.counts);
  *num_datatypes = std::ssize(datatype.contents.types);
  *combiner = datatype.combiner;
  return MPI_SUCCESS;
}

int type_get_contents(Type& datatype, int max_integers, int max_addresses, int max_datatypes, int array_of_integers[],
                      MPI_Aint array_of_addresses[], MPI_Datatype array_of_datatypes[]) {
  if (const int code = check_no_counts(datatype); code != MPI_SUCCESS) return code;
  return type_get_contents_c(datatype, max_integers, max_addresses, 0, max_datatypes, array_of_integers,
                             array_of_addresses, nullptr, array_of_datatypes);
}

int type_get_contents_c(Type& datatype, MPI_Count max_integers, MPI_Count max_addresses, MPI_Count max_large_counts,
                        MPI_Count max_datatypes, int array_of_integers[], MPI_Aint array_of_addresses[],
                        MPI_Count array_of_large_counts[], MPI_Datatype array_of_datatypes[]) {
  if (datatype.combiner == MPI_COMBINER_NAMED)
    return fail(MPI_ERR_TYPE, "%s is predefined: it has no contents", datatype.fixed_name);
  const Contents& contents = datatype.contents;
  int code = check_room("integers", contents.integers.size(), max_integers, array_of_integers);
  if (code == MPI_SUCCESS) code = check_room("addresses", contents.addresses.size(), max_addresses, array_of_addresses);
  if (code == MPI_SUCCESS)
    code = check_room("large counts", contents.counts.size(), max_large_counts, array_of_large_counts);
  if (code == MPI_SUCCESS) code = check_room("datatypes", contents.types.size(), max_datatypes, array_of_datatypes);
  if (code != MPI_SUCCESS) return code;
  std::copy(contents.integers.begin(), contents.integers.end(), array_of_integers);
  std::copy(contents.addresses.begin(), contents.addresses.end(), array_of_addresses);
  std::copy(contents.counts.begin(), contents.counts.end(), array_of_large_counts);
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

int pack(const void* inbuf, MPI_Count incount, Type& datatype, void* outbuf, MPI_Count outsize, MPI_Count* position) {
  std::size_t length = 0;
  const int code = check_position(datatype, incount, *position, outsize, {"outbuf", outbuf}, &length);
  if (code != MPI_SUCCESS) return code;
  mpi::pack(Payload(inbuf, static_cast<std::size_t>(incount), datatype), 0, length,
            static_cast<char*>(outbuf) + *position);
  *position += static_cast<MPI_Count>(length);
  return MPI_SUCCESS;
}

int unpack(const void* inbuf, MPI_Count insize, MPI_Count* position, void* outbuf, MPI_Count outcount, Type& datatype) {
  std::size_t length = 0;
  const int code = check_position(datatype, outcount, *position, insize, {"inbuf", inbuf}, &length);
  if (code != MPI_SUCCESS) return code;
  mpi::unpack(Payload(outbuf, static_cast<std::size_t>(outcount), datatype), 0, length,
              static_cast<const char*>(inbuf) + *position);
  *position += static_cast<MPI_Count>(length);
  return MPI_SUCCESS;
}

int pack_size(MPI_Count incount, Type& datatype, MPI_Count* size) {
  if (const int code = check_size(incount, 1, datatype); code != MPI_SUCCESS) return code;
  *size = static_cast<MPI_Count>(datatype.size) * incount;
  return MPI_SUCCESS;
}

}  // namespace calls
}  // namespace canele::mpi

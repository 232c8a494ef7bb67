// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Type_ functions, MPI_Get_address, MPI_Pack and MPI_Unpack. Called from any thread; StarPU makes a type per
// message.
//
// MPI_Type_commit has nothing to do, because the layout is computed when the type is created.
#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <vector>

#include "starpu_glue/mpi/api.hpp"
#include "starpu_glue/mpi/request.hpp"

namespace canele::mpi {
namespace {

int get_type(MPI_Datatype handle, Type** found) {
  *found = find_type(handle);
  if (*found != nullptr) return MPI_SUCCESS;
  if (handle == MPI_DATATYPE_NULL) return fail(MPI_ERR_TYPE, "the datatype is MPI_DATATYPE_NULL");
  return fail(MPI_ERR_TYPE, "0x%zx is not a datatype, or was freed", handle_bits(handle));
}

int check_count(int count) {
  return count >= 0 ? MPI_SUCCESS : fail(MPI_ERR_COUNT, "count is %d; expected: at least 0", count);
}

/// Checks the arrays that describe a type of `count` parts.
int check_lists(int count, const int* blocks, const void* displacements) {
  if (const int code = check_count(count); code != MPI_SUCCESS || count == 0) return code;
  return given({{"array of blocklengths", blocks}, {"array of displacements", displacements}});
}

int check_places(int count, const void* displacements) {
  if (const int code = check_count(count); code != MPI_SUCCESS || count == 0) return code;
  return given({{"array of displacements", displacements}});
}

int return_handle(int code, const Type* made, MPI_Datatype* handle) {
  if (code == MPI_SUCCESS) *handle = made->handle;
  return code;
}

/// Creates a type with `make(element, &made)` and returns its handle in *handle.
template <class Make>
int derive(Function function, MPI_Datatype element, MPI_Datatype* handle, Make make) {
  const Call call(function);
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  Type* found = nullptr;
  Type* made = nullptr;
  int code = given({{"newtype", handle}});
  if (code == MPI_SUCCESS) code = get_type(element, &found);
  if (code == MPI_SUCCESS) code = make(*found, &made);
  return call.end(return_handle(code, made, handle));
}

int check_room(const char* what, std::size_t have, int room, const void* array) {
  if (have > 0 && array == nullptr) return given({{what, array}});
  if (have <= static_cast<std::size_t>(std::max(room, 0))) return MPI_SUCCESS;
  return fail(MPI_ERR_ARG, "room for %d %s, but the datatype has %zu; MPI_Type_get_envelope returns how many", room,
              what, have);
}

}  // namespace
}  // namespace canele::mpi

using namespace canele::mpi;

extern "C" int PMPI_Type_contiguous(int count, MPI_Datatype element, MPI_Datatype* type) {
  return derive("MPI_Type_contiguous", element, type,
                [&](Type& found, Type** made) { return make_contiguous(count, found, made); });
}
CANELE_MPI_NAME(Type_contiguous);

extern "C" int PMPI_Type_vector(int count, int block, int stride, MPI_Datatype element, MPI_Datatype* type) {
  return derive("MPI_Type_vector", element, type,
                [&](Type& found, Type** made) { return make_vector(count, block, stride, false, found, made); });
}
CANELE_MPI_NAME(Type_vector);

extern "C" int PMPI_Type_create_hvector(int count, int block, MPI_Aint stride, MPI_Datatype element,
                                        MPI_Datatype* type) {
  return derive("MPI_Type_create_hvector", element, type,
                [&](Type& found, Type** made) { return make_vector(count, block, stride, true, found, made); });
}
CANELE_MPI_NAME(Type_create_hvector);

extern "C" int PMPI_Type_indexed(int count, const int* blocks, const int* displacements, MPI_Datatype element,
                                 MPI_Datatype* type) {
  return derive("MPI_Type_indexed", element, type, [&](Type& found, Type** made) {
    if (const int code = check_lists(count, blocks, displacements); code != MPI_SUCCESS) return code;
    const auto items = static_cast<std::size_t>(count);
    return make_indexed({blocks, items}, {displacements, items}, found, made);
  });
}
CANELE_MPI_NAME(Type_indexed);

extern "C" int PMPI_Type_create_hindexed(int count, const int* blocks, const MPI_Aint* displacements,
                                         MPI_Datatype element, MPI_Datatype* type) {
  return derive("MPI_Type_create_hindexed", element, type, [&](Type& found, Type** made) {
    if (const int code = check_lists(count, blocks, displacements); code != MPI_SUCCESS) return code;
    const auto items = static_cast<std::size_t>(count);
    return make_hindexed({blocks, items}, {displacements, items}, found, made);
  });
}
CANELE_MPI_NAME(Type_create_hindexed);

extern "C" int PMPI_Type_create_indexed_block(int count, int block, const int* displacements, MPI_Datatype element,
                                              MPI_Datatype* type) {
  return derive("MPI_Type_create_indexed_block", element, type, [&](Type& found, Type** made) {
    if (const int code = check_places(count, displacements); code != MPI_SUCCESS) return code;
    return make_indexed_block({displacements, static_cast<std::size_t>(count)}, block, found, made);
  });
}
CANELE_MPI_NAME(Type_create_indexed_block);

extern "C" int PMPI_Type_create_hindexed_block(int count, int block, const MPI_Aint* displacements,
                                               MPI_Datatype element, MPI_Datatype* type) {
  return derive("MPI_Type_create_hindexed_block", element, type, [&](Type& found, Type** made) {
    if (const int code = check_places(count, displacements); code != MPI_SUCCESS) return code;
    return make_hindexed_block({displacements, static_cast<std::size_t>(count)}, block, found, made);
  });
}
CANELE_MPI_NAME(Type_create_hindexed_block);

extern "C" int PMPI_Type_create_subarray(int dimensions, const int* sizes, const int* subsizes, const int* starts,
                                         int order, MPI_Datatype element, MPI_Datatype* type) {
  return derive("MPI_Type_create_subarray", element, type, [&](Type& found, Type** made) {
    if (dimensions < 1) return fail(MPI_ERR_ARG, "the array has %d dimensions; expected: at least 1", dimensions);
    const int code = given({{"array of sizes", sizes}, {"array of subsizes", subsizes}, {"array of starts", starts}});
    if (code != MPI_SUCCESS) return code;
    if (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN)
      return fail(MPI_ERR_ARG, "the order is %d; expected: MPI_ORDER_C or MPI_ORDER_FORTRAN", order);
    const auto items = static_cast<std::size_t>(dimensions);
    return make_subarray({{sizes, items}, {subsizes, items}, {starts, items}, order}, found, made);
  });
}
CANELE_MPI_NAME(Type_create_subarray);

extern "C" int PMPI_Type_create_struct(int count, const int* blocks, const MPI_Aint* displacements,
                                       const MPI_Datatype* elements, MPI_Datatype* type) {
  const Call call("MPI_Type_create_struct");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  int code = given({{"newtype", type}});
  if (code == MPI_SUCCESS) code = check_lists(count, blocks, displacements);
  if (code == MPI_SUCCESS && count > 0) code = given({{"array of types", elements}});
  if (code != MPI_SUCCESS) return call.end(code);
  const auto items = static_cast<std::size_t>(count);
  std::vector<Type*> found(items);
  for (std::size_t i = 0; i < items; ++i) {
    code = get_type(elements[i], &found[i]);
    if (code != MPI_SUCCESS) return call.end(code);
  }
  Type* made = nullptr;
  code = make_struct({blocks, items}, {displacements, items}, found, &made);
  return call.end(return_handle(code, made, type));
}
CANELE_MPI_NAME(Type_create_struct);

extern "C" int PMPI_Type_create_resized(MPI_Datatype element, MPI_Aint lower, MPI_Aint extent, MPI_Datatype* type) {
  return derive("MPI_Type_create_resized", element, type,
                [&](Type& found, Type** made) { return make_resized(found, lower, extent, made); });
}
CANELE_MPI_NAME(Type_create_resized);

extern "C" int PMPI_Type_dup(MPI_Datatype element, MPI_Datatype* type) {
  return derive("MPI_Type_dup", element, type, [&](Type& found, Type** made) { return make_duplicate(found, made); });
}
CANELE_MPI_NAME(Type_dup);

extern "C" int PMPI_Type_commit(MPI_Datatype* type) {
  const Call call("MPI_Type_commit");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"type", type}}); code != MPI_SUCCESS) return call.end(code);
  Type* found = nullptr;
  return call.end(get_type(*type, &found));
}
CANELE_MPI_NAME(Type_commit);

extern "C" int PMPI_Type_free(MPI_Datatype* type) {
  const Call call("MPI_Type_free");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"type", type}}); code != MPI_SUCCESS) return call.end(code);
  Type* found = nullptr;
  int code = get_type(*type, &found);
  if (code == MPI_SUCCESS && found->predefined) {
    code = fail(MPI_ERR_TYPE, "%s is predefined and cannot be freed", found->fixed_name);
  }
  if (code == MPI_SUCCESS) {
    drop_reference(*found);
    *type = MPI_DATATYPE_NULL;
  }
  return call.end(code);
}
CANELE_MPI_NAME(Type_free);

extern "C" int PMPI_Type_size(MPI_Datatype type, int* size) {
  const Call call("MPI_Type_size");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"size", size}}); code != MPI_SUCCESS) return call.end(code);
  Type* found = nullptr;
  const int code = get_type(type, &found);
  if (code == MPI_SUCCESS) *size = found->size > INT_MAX ? MPI_UNDEFINED : static_cast<int>(found->size);
  return call.end(code);
}
CANELE_MPI_NAME(Type_size);

extern "C" int PMPI_Type_get_extent(MPI_Datatype type, MPI_Aint* lower, MPI_Aint* extent) {
  const Call call("MPI_Type_get_extent");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"lower", lower}, {"extent", extent}}); code != MPI_SUCCESS) return call.end(code);
  Type* found = nullptr;
  const int code = get_type(type, &found);
  if (code == MPI_SUCCESS) {
    *lower = found->lower;
    *extent = found->extent();
  }
  return call.end(code);
}
CANELE_MPI_NAME(Type_get_extent);

extern "C" int PMPI_Type_get_true_extent(MPI_Datatype type, MPI_Aint* lower, MPI_Aint* extent) {
  const Call call("MPI_Type_get_true_extent");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"lower", lower}, {"extent", extent}}); code != MPI_SUCCESS) return call.end(code);
  Type* found = nullptr;
  const int code = get_type(type, &found);
  if (code == MPI_SUCCESS) {
    *lower = found->true_lower;
    *extent = found->true_upper - found->true_lower;
  }
  return call.end(code);
}
CANELE_MPI_NAME(Type_get_true_extent);

extern "C" int PMPI_Type_get_envelope(MPI_Datatype type, int* integers, int* addresses, int* types, int* combiner) {
  const Call call("MPI_Type_get_envelope");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code =
          given({{"integers", integers}, {"addresses", addresses}, {"types", types}, {"combiner", combiner}});
      code != MPI_SUCCESS)
    return call.end(code);
  Type* found = nullptr;
  const int code = get_type(type, &found);
  if (code == MPI_SUCCESS) {
    *integers = static_cast<int>(found->contents.integers.size());
    *addresses = static_cast<int>(found->contents.addresses.size());
    *types = static_cast<int>(found->contents.types.size());
    *combiner = found->combiner;
  }
  return call.end(code);
}
CANELE_MPI_NAME(Type_get_envelope);

extern "C" int PMPI_Type_get_contents(MPI_Datatype type, int max_integers, int max_addresses, int max_types,
                                      int* integers, MPI_Aint* addresses, MPI_Datatype* types) {
  const Call call("MPI_Type_get_contents");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  Type* found = nullptr;
  int code = get_type(type, &found);
  if (code == MPI_SUCCESS && found->predefined) {
    code = fail(MPI_ERR_TYPE, "%s is predefined: it has no contents", found->fixed_name);
  }
  if (code != MPI_SUCCESS) return call.end(code);
  const Contents& contents = found->contents;
  code = check_room("integers", contents.integers.size(), max_integers, integers);
  if (code == MPI_SUCCESS) code = check_room("addresses", contents.addresses.size(), max_addresses, addresses);
  if (code == MPI_SUCCESS) code = check_room("datatypes", contents.types.size(), max_types, types);
  if (code != MPI_SUCCESS) return call.end(code);
  std::copy(contents.integers.begin(), contents.integers.end(), integers);
  std::copy(contents.addresses.begin(), contents.addresses.end(), addresses);
  for (std::size_t i = 0; i < contents.types.size(); ++i) {
    add_reference(*contents.types[i]);  // the caller frees them, as MPI says
    types[i] = contents.types[i]->handle;
  }
  return MPI_SUCCESS;
}
CANELE_MPI_NAME(Type_get_contents);

extern "C" int PMPI_Type_get_name(MPI_Datatype type, char* name, int* length) {
  const Call call("MPI_Type_get_name");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"name", name}, {"length", length}}); code != MPI_SUCCESS) return call.end(code);
  Type* found = nullptr;
  const int code = get_type(type, &found);
  if (code == MPI_SUCCESS) {
    const char* text = found->name.empty() ? found->fixed_name : found->name.c_str();
    *length = std::snprintf(name, MPI_MAX_OBJECT_NAME, "%s", text);
  }
  return call.end(code);
}
CANELE_MPI_NAME(Type_get_name);

extern "C" int PMPI_Type_set_name(MPI_Datatype type, const char* name) {
  const Call call("MPI_Type_set_name");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"name", name}}); code != MPI_SUCCESS) return call.end(code);
  Type* found = nullptr;
  const int code = get_type(type, &found);
  if (code == MPI_SUCCESS) found->name.assign(name, strnlen(name, MPI_MAX_OBJECT_NAME - 1));
  return call.end(code);
}
CANELE_MPI_NAME(Type_set_name);

extern "C" int PMPI_Get_address(const void* location, MPI_Aint* address) {
  if (const int code = given({{"address", address}}); code != MPI_SUCCESS)
    return Call::any_time("MPI_Get_address").end(code);
  *address = reinterpret_cast<MPI_Aint>(location);
  return MPI_SUCCESS;
}
CANELE_MPI_NAME(Get_address);

extern "C" int PMPI_Pack(const void* in, int count, MPI_Datatype type, void* out, int size, int* position,
                         MPI_Comm comm) {
  const Call call("MPI_Pack");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"position", position}}); code != MPI_SUCCESS) return call.end(code);
  Communicator* found = nullptr;
  Buffer buffer;
  int code = get_communicator(comm, &found);
  if (code == MPI_SUCCESS) code = get_buffer(in, count, type, &buffer);
  if (code != MPI_SUCCESS) return call.end(code, found);
  const std::size_t length = buffer.size();
  if (*position < 0 || *position > size || length > static_cast<std::size_t>(size - *position)) {
    return call.end(
        fail(MPI_ERR_TRUNCATE, "%zu bytes to pack at position %d of a buffer of %d", length, *position, size), found);
  }
  if (length > 0) code = given({{"outbuf", out}});
  if (code != MPI_SUCCESS) return call.end(code, found);
  pack(Payload(in, static_cast<std::size_t>(count), *buffer.type), 0, length, static_cast<char*>(out) + *position);
  *position += static_cast<int>(length);
  return MPI_SUCCESS;
}
CANELE_MPI_NAME(Pack);

extern "C" int PMPI_Unpack(const void* in, int size, int* position, void* out, int count, MPI_Datatype type,
                           MPI_Comm comm) {
  const Call call("MPI_Unpack");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"position", position}}); code != MPI_SUCCESS) return call.end(code);
  Communicator* found = nullptr;
  Buffer buffer;
  int code = get_communicator(comm, &found);
  if (code == MPI_SUCCESS) code = get_buffer(out, count, type, &buffer);
  if (code != MPI_SUCCESS) return call.end(code, found);
  const std::size_t length = buffer.size();
  if (*position < 0 || *position > size || length > static_cast<std::size_t>(size - *position)) {
    return call.end(
        fail(MPI_ERR_TRUNCATE, "%zu bytes to unpack at position %d of a buffer of %d", length, *position, size), found);
  }
  if (length > 0) code = given({{"inbuf", in}});
  if (code != MPI_SUCCESS) return call.end(code, found);
  unpack(Payload(out, static_cast<std::size_t>(count), *buffer.type), 0, length,
         static_cast<const char*>(in) + *position);
  *position += static_cast<int>(length);
  return MPI_SUCCESS;
}
CANELE_MPI_NAME(Unpack);

extern "C" int PMPI_Pack_size(int count, MPI_Datatype type, MPI_Comm comm, int* size) {
  const Call call("MPI_Pack_size");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"size", size}}); code != MPI_SUCCESS) return call.end(code);
  Communicator* found = nullptr;
  Buffer buffer;
  int code = get_communicator(comm, &found);
  if (code == MPI_SUCCESS) code = get_buffer(nullptr, count, type, &buffer);
  if (code == MPI_SUCCESS && buffer.size() > INT_MAX) {
    code = fail(MPI_ERR_COUNT, "the packed size, %zu bytes, does not fit an int", buffer.size());
  }
  if (code == MPI_SUCCESS) *size = static_cast<int>(buffer.size());
  return call.end(code, found);
}
CANELE_MPI_NAME(Pack_size);

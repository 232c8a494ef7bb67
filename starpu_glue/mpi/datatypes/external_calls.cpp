// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Pack_external and its siblings, called by their entry points. Any thread.
#include <cstring>

#include "calls/datatypes.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/datatypes/external.hpp"
#include "starpu_glue/mpi/datatypes/type_build.hpp"

namespace canele::mpi {
namespace {

/// Checks the name of the data representation, and sums up the bytes of `count` elements in it.
int external_bytes(const char* datarep, MPI_Count count, const Type& type, MPI_Count* bytes) {
  if (std::strcmp(datarep, "external32") != 0)
    return fail(MPI_ERR_UNSUPPORTED_DATAREP, "the data representation is \"%.40s\"; expected: external32", datarep);
  if (const int code = check_size(count, 1, type); code != MPI_SUCCESS) return code;
  *bytes = external_size(type) * count;
  return MPI_SUCCESS;
}

/// Checks that the bytes fit behind a position in packed data.
int check_external(MPI_Count bytes, MPI_Count position, MPI_Count size, Argument packed) {
  if (position < 0 || position > size || bytes > size - position)
    return fail(MPI_ERR_TRUNCATE, "%lld bytes at position %lld of packed data of %lld bytes",
                static_cast<long long>(bytes), static_cast<long long>(position), static_cast<long long>(size));
  return bytes > 0 ? given({packed}) : MPI_SUCCESS;
}

int check_on_host(const Payload& payload, const void* packed) {
  if (payload.is_on_device()) return reject_device_buffer("the data");
  return check_host_buffer(packed, "the packed data");
}

}  // namespace

namespace calls {

int pack_external(const char* datarep, const void* inbuf, MPI_Count incount, Type& datatype, void* outbuf,
                  MPI_Count outsize, MPI_Count* position) {
  MPI_Count bytes = 0;
  int code = external_bytes(datarep, incount, datatype, &bytes);
  if (code == MPI_SUCCESS) code = check_external(bytes, *position, outsize, {"outbuf", outbuf});
  if (code != MPI_SUCCESS) return code;
  const Payload payload(inbuf, static_cast<std::size_t>(incount), datatype);
  code = check_on_host(payload, outbuf);
  if (code == MPI_SUCCESS) code = to_external(payload, incount, datatype, static_cast<char*>(outbuf) + *position);
  if (code == MPI_SUCCESS) *position += bytes;
  return code;
}

int unpack_external(const char* datarep, const void* inbuf, MPI_Count insize, MPI_Count* position, void* outbuf,
                    MPI_Count outcount, Type& datatype) {
  MPI_Count bytes = 0;
  int code = external_bytes(datarep, outcount, datatype, &bytes);
  if (code == MPI_SUCCESS) code = check_external(bytes, *position, insize, {"inbuf", inbuf});
  if (code != MPI_SUCCESS) return code;
  const Payload payload(outbuf, static_cast<std::size_t>(outcount), datatype);
  code = check_on_host(payload, inbuf);
  if (code == MPI_SUCCESS)
    code = from_external(payload, outcount, datatype, static_cast<const char*>(inbuf) + *position);
  if (code == MPI_SUCCESS) *position += bytes;
  return code;
}

int pack_external_size(const char* datarep, MPI_Count incount, Type& datatype, MPI_Count* size) {
  return external_bytes(datarep, incount, datatype, size);
}

}  // namespace calls
}  // namespace canele::mpi

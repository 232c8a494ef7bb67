// SPDX-License-Identifier: BSD-3-Clause
//
// Data descriptors: contiguous memory, an iovec, or elements of an MPI datatype. Used by StarPU for every message.
//
// The descriptor holds the whole layout of a simple type (vector, contiguous), so that the datatype itself is read only
// for nested types. The reference that nm_mpi_nmad_data_get takes keeps those alive.
#include <nm_mpi_nmad.h>
#include <nm_public.h>

#include <cstdlib>
#include <new>

#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/nmad/internal.hpp"

using namespace canele;
using nmad::Data;

namespace canele::nmad {
namespace {

int iov_segments(const void* context, std::size_t offset, struct iovec* out, int max) {
  const Data& data = *static_cast<const Data*>(context);
  int used = 0;
  for (int i = 0; i < data.piece_count && used < max; ++i) {
    const struct iovec& piece = data.pieces[i];
    if (offset >= piece.iov_len) {
      offset -= piece.iov_len;
      continue;
    }
    out[used++] = {static_cast<char*>(piece.iov_base) + offset, piece.iov_len - offset};
    offset = 0;
  }
  return used;
}

}  // namespace

std::size_t Data::length() const {
  if (kind != Kind::pieces) return payload.length;
  std::size_t total = 0;
  for (int i = 0; i < piece_count; ++i) total += pieces[i].iov_len;
  return total;
}

canele_data_t Data::describe() const {
  if (kind != Kind::pieces) return payload.describe();
  canele_data_t described{};
  described.length = length();
  if (described.length != 0) {
    described.segments = iov_segments;
    described.context = this;
  }
  return described;
}

}  // namespace canele::nmad

extern "C" void nm_data_contiguous_build(nm_data_s* data, void* memory, nm_len_t length) {
  Data* made = new (data) Data{};
  made->kind = Data::Kind::payload;
  made->payload.base = static_cast<char*>(memory);
  made->payload.length = length;
  made->payload.layout.count = 1;
  made->payload.layout.block = length;
}

extern "C" void nm_data_iov_build(nm_data_s* data, const struct iovec* pieces, int count) {
  Data* made = new (data) Data{};
  made->kind = Data::Kind::pieces;
  made->pieces = pieces;
  made->piece_count = count;
}

extern "C" void nm_mpi_nmad_data_get(nm_data_s* data, void* memory, MPI_Datatype type, int64_t count) {
  mpi::Type* found = mpi::find_type(type);
  if (found == nullptr)
    mpi::fatal("nm_mpi_nmad_data_get: 0x%zx is not a datatype, or was freed", mpi::handle_bits(type));
  if (count < 0) mpi::fatal("nm_mpi_nmad_data_get: count is %lld; expected: at least 0", static_cast<long long>(count));
  mpi::add_reference(*found);
  Data* made = new (data) Data{};
  made->kind = Data::Kind::payload;
  made->payload = mpi::Payload(memory, static_cast<std::size_t>(count), *found);
}

extern "C" void nm_mpi_nmad_data_release(MPI_Datatype type) {
  mpi::Type* found = mpi::find_type(type);
  if (found == nullptr) {
    mpi::fatal("nm_mpi_nmad_data_release: 0x%zx is not a datatype, or was freed", mpi::handle_bits(type));
  }
  mpi::drop_reference(*found);
}

extern "C" void* padico_malloc(size_t size) { return std::malloc(size); }

extern "C" void nm_abi_check_sizes(int abi, size_t request_size, size_t data_size, size_t condition_size) {
  if (abi == CANELE_NMAD_ABI && request_size == sizeof(nm_sr_request_t) && data_size == sizeof(nm_data_s) &&
      condition_size == sizeof(piom_cond_t)) {
    return;
  }
  mpi::fatal(
      "the program was compiled with nmad headers of ABI %d (request %zu, data %zu, condition %zu bytes), but "
      "libcanele_mpi has ABI %d (%zu, %zu, %zu); compile it again with this version's headers",
      abi, request_size, data_size, condition_size, CANELE_NMAD_ABI, sizeof(nm_sr_request_t), sizeof(nm_data_s),
      sizeof(piom_cond_t));
}

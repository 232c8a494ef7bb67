// SPDX-License-Identifier: BSD-3-Clause
//
// Data descriptions and incremental messages of the C ABI.
//
// Any thread, but one at a time for one object. Nothing is copied here: a pack is an iovec that the caller owns.
#include <canele/canele.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "comm/api/api.hpp"
#include "comm/state/payload.hpp"

namespace canele::comm::api {
namespace {

struct Pack {
  canele_iov_t vector;  ///< what the request's data points to
  std::size_t length;
  std::size_t capacity;  ///< of `more`; 0 while the pieces are inside
  iovec* more;
  iovec inside[CANELE_PACK_INLINE];
};
static_assert(sizeof(Pack) <= sizeof(canele_pack_t));

Pack& pack_of(canele_pack_t* pack) { return *reinterpret_cast<Pack*>(pack); }

bool grow(Pack& pack) {
  const std::size_t capacity = std::max<std::size_t>(4 * CANELE_PACK_INLINE, 2 * pack.capacity);
  auto* memory = static_cast<iovec*>(std::malloc(capacity * sizeof(iovec)));
  if (memory == nullptr) return false;
  std::copy_n(pack.vector.pieces, pack.vector.count, memory);
  std::free(pack.more);
  pack.more = memory;
  pack.capacity = capacity;
  pack.vector.pieces = memory;
  return true;
}

/// Returns an invalid description, which a post rejects: it is longer than memory can be.
canele_data_t no_data() { return {SIZE_MAX, nullptr, nullptr, nullptr}; }

}  // namespace
}  // namespace canele::comm::api

int canele::comm::data::list_segments(const void* context, std::size_t offset, iovec* out, int max) {
  canele_data_t data{0, nullptr, list_segments, context};  // list_pieces() keeps its position in here
  return list_pieces(data, offset, out, max);
}

using namespace canele::comm::api;

canele_data_t canele_data_contiguous(const void* base, size_t length) {
  return {length, const_cast<void*>(base), nullptr, nullptr};
}

canele_data_t canele_data_iov(const canele_iov_t* vector) {
  size_t length = 0;
  if (vector == nullptr || vector->count < 0 || (vector->count > 0 && vector->pieces == nullptr)) return no_data();
  for (int i = 0; i < vector->count; ++i) {
    if (__builtin_add_overflow(length, vector->pieces[i].iov_len, &length)) return no_data();
  }
  if (vector->count == 1) return canele_data_contiguous(vector->pieces[0].iov_base, length);
  return {length, nullptr, canele::comm::data::list_segments, vector};
}

canele_data_t canele_data_segments(canele_segments_fn segments, const void* context, size_t length) {
  return {length, nullptr, segments, context};
}

void canele_pack_begin(canele_pack_t* pack) {
  if (pack == nullptr) return;
  canele_pack_end(pack);
  pack_of(pack).vector.pieces = pack_of(pack).inside;
}

int canele_pack_add(canele_pack_t* pack, const void* piece, size_t length) try {
  if (pack == nullptr || (length != 0 && piece == nullptr))
    return error(CANELE_EINVAL, "canele_pack_add: pack and piece must be given");
  if (length > PTRDIFF_MAX - pack_of(pack).length)
    return error(CANELE_EINVAL,
                 "canele_pack_add: the data exceeds the address space; expected: at most PTRDIFF_MAX bytes");
  Pack& p = pack_of(pack);
  if (p.vector.pieces == nullptr) p.vector.pieces = p.inside;
  const auto count = static_cast<std::size_t>(p.vector.count);
  const std::size_t room = p.more != nullptr ? p.capacity : CANELE_PACK_INLINE;
  if (count == room && !grow(p)) return error(CANELE_ENOMEM, "canele_pack_add: no memory for one more piece");
  const_cast<iovec*>(p.vector.pieces)[count] = {const_cast<void*>(piece), length};
  ++p.vector.count;
  p.length += length;
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_pack_isend(canele_session_t* session, int destination, uint64_t tag, canele_pack_t* pack,
                      const canele_send_options_t* options, canele_request_t* request) try {
  if (pack == nullptr) return error(CANELE_EINVAL, "canele_pack_isend: pack is NULL");
  const canele_data_t data = canele_data_iov(&pack_of(pack).vector);
  return canele_isend_data(session, destination, tag, &data, options, request);
} catch (...) {
  return caught();
}

int canele_pack_irecv(canele_session_t* session, int source, uint64_t tag, uint64_t mask, canele_pack_t* pack,
                      canele_request_t* request) try {
  if (pack == nullptr) return error(CANELE_EINVAL, "canele_pack_irecv: pack is NULL");
  const canele_data_t data = canele_data_iov(&pack_of(pack).vector);
  return canele_irecv_data(session, source, tag, mask, &data, request);
} catch (...) {
  return caught();
}

void canele_pack_end(canele_pack_t* pack) {
  if (pack == nullptr) return;
  std::free(pack_of(pack).more);
  pack_of(pack) = Pack{};
}

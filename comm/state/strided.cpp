// SPDX-License-Identifier: BSD-3-Clause
//
// The segments of strided memory.
#include "comm/state/strided.hpp"

namespace canele::comm::one_sided {

int strided_segments(const void* context, std::size_t offset, iovec* out, int max) {
  const auto& memory = *static_cast<const StridedMemory*>(context);
  std::size_t in_block = offset % memory.strides.block;
  std::byte* at = memory.base + offset / memory.strides.block * memory.strides.stride;
  int n = 0;
  for (; n < max && offset < memory.length; at += memory.strides.stride) {
    out[n] = {at + in_block, memory.strides.block - in_block};
    offset += out[n++].iov_len;
    in_block = 0;
  }
  return n;
}

}  // namespace canele::comm::one_sided

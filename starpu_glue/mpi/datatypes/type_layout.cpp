// SPDX-License-Identifier: BSD-3-Clause
//
// Layout of datatypes: repeats runs, and enumerates the contiguous pieces from any position on.
//
// Used by datatype constructors, transfers, pack and unpack. The engine calls it through Payload::describe, under its
// lock. Any number of threads may work on one payload at once, because only the output is written. The recursion is as
// deep as the nesting of the type, which the constructors bound (kMaxNesting).
#include <algorithm>
#include <cstring>
#include <optional>

#include "starpu_glue/mpi/datatypes/type_build.hpp"

namespace canele::mpi {

std::optional<Run> stack_runs(const Run& run, std::ptrdiff_t first, std::size_t count, std::ptrdiff_t stride) {
  Run out = run;
  out.begin = 0;
  out.first += first;
  if (count == 1) return out;
  if (run.count == 1) {
    if (run.child == nullptr && stride == static_cast<std::ptrdiff_t>(run.block)) {
      out.block *= count;
    } else {
      out.count = count;
      out.stride = stride;
    }
    return out;
  }
  std::ptrdiff_t next = 0;
  if (!__builtin_mul_overflow(run.stride, static_cast<std::ptrdiff_t>(run.count), &next) && stride == next) {
    out.count *= count;
    return out;
  }
  return std::nullopt;
}

Run repeat(const Type& element, std::ptrdiff_t first, std::size_t count, std::ptrdiff_t stride) {
  if (count == 0 || element.size == 0) return Run{};
  if (element.many.empty()) {
    if (const auto run = stack_runs(element.single, first, count, stride)) return *run;
  }
  Run out;
  out.first = first;
  out.stride = stride;
  out.count = count;
  out.block = element.size;
  out.child = &element;
  return out;
}

namespace {

/// Collects pieces, merging neighbours.
struct Collector {
  struct iovec* out;
  int max;
  int used = 0;

  /// Adds a piece. Returns false if it does not fit.
  bool add(char* memory, std::size_t length) {
    if (used > 0) {
      struct iovec& last = out[used - 1];
      if (static_cast<char*>(last.iov_base) + last.iov_len == memory) {
        last.iov_len += length;
        return true;
      }
    }
    if (used == max) return false;
    out[used++] = {memory, length};
    return true;
  }
};

bool emit(const Run& run, char* base, std::size_t skip, Collector& collector);

bool emit(const Type& type, char* base, std::size_t skip, Collector& collector) {
  const auto runs = type.runs();
  std::size_t index = 0;
  if (runs.size() > 1 && skip > 0) {
    const auto after = std::upper_bound(runs.begin(), runs.end(), skip,
                                        [](std::size_t position, const Run& run) { return position < run.begin; });
    index = static_cast<std::size_t>(after - runs.begin()) - 1;
    skip -= runs[index].begin;
  }
  for (; index < runs.size(); ++index, skip = 0) {
    if (!emit(runs[index], base, skip, collector)) return false;
  }
  return true;
}

bool emit(const Run& run, char* base, std::size_t skip, Collector& collector) {
  std::size_t index = 0;
  if (skip != 0) {
    index = skip / run.block;
    skip -= index * run.block;
  }
  char* memory = base + run.first + static_cast<std::ptrdiff_t>(index) * run.stride;
  for (; index < run.count; ++index, memory += run.stride, skip = 0) {
    if (run.child != nullptr) {
      if (!emit(*run.child, memory, skip, collector)) return false;
    } else if (!collector.add(memory + skip, run.block - skip)) {
      return false;
    }
  }
  return true;
}

int payload_segments(const void* context, std::size_t offset, struct iovec* out, int max) {
  return static_cast<const Payload*>(context)->pieces(offset, out, max);
}

/// Visits the pieces of packed bytes [offset, offset + length).
template <class Visit>
void each_piece(const Payload& payload, std::size_t offset, std::size_t length, Visit visit) {
  constexpr int kBatch = 32;
  struct iovec pieces[kBatch];
  while (length > 0) {
    const int count = payload.pieces(offset, pieces, kBatch);
    for (int i = 0; i < count && length > 0; ++i) {
      const std::size_t bytes = std::min(pieces[i].iov_len, length);
      visit(pieces[i].iov_base, bytes);
      offset += bytes;
      length -= bytes;
    }
  }
}

/// The engine asks for the pieces of a slice.
int slice_segments(const void* context, std::size_t offset, struct iovec* out, int max) {
  const auto& slice = *static_cast<const PayloadSlice*>(context);
  const int count = slice.payload->pieces(slice.from + offset, out, max);
  std::size_t left = slice.length - offset;
  for (int i = 0; i < count; ++i) {
    if (out[i].iov_len >= left) {  // the payload goes on, the slice does not
      out[i].iov_len = left;
      return i + 1;
    }
    left -= out[i].iov_len;
  }
  return count;
}

/// Copies between a payload and packed bytes if one of them is in device memory. Else returns false.
bool copied_by_device(const Payload& payload, std::size_t offset, std::size_t length, void* packed, bool packs) {
  if (!payload.is_on_device() && !is_on_device(packed)) return false;
  if (length == 0) return true;
  const PayloadSlice slice{&payload, offset, length};
  const canele_data_t bytes = canele_data_contiguous(packed, length), typed = slice.describe();
  packs ? copy_by_device(bytes, typed) : copy_by_device(typed, bytes);
  return true;
}

}  // namespace

bool Payload::is_first_on_device() const {
  struct iovec first;
  return pieces(0, &first, 1) != 0 && is_device_memory(first.iov_base);
}

int Payload::pieces(std::size_t offset, struct iovec* out, int max) const {
  Collector collector{out, max};
  emit(layout, base, offset, collector);
  return collector.used;
}

canele_data_t Payload::describe() const {
  if (length == 0) return {0, nullptr, nullptr, nullptr};
  if (layout.contiguous()) return {length, base + layout.first, nullptr, nullptr};
  canele_data_t data{};
  data.length = length;
  data.segments = payload_segments;
  data.context = this;
  return data;
}

canele_data_t PayloadSlice::describe() const {
  if (length == 0) return {0, nullptr, nullptr, nullptr};
  if (payload->contiguous()) return {length, payload->base + payload->layout.first + from, nullptr, nullptr};
  return {length, nullptr, slice_segments, this};
}

void pack(const Payload& payload, std::size_t offset, std::size_t length, void* packed) {
  if (copied_by_device(payload, offset, length, packed, true)) [[unlikely]]
    return;
  char* out = static_cast<char*>(packed);
  each_piece(payload, offset, length, [&out](const void* memory, std::size_t bytes) {
    std::memcpy(out, memory, bytes);
    out += bytes;
  });
}

void unpack(const Payload& payload, std::size_t offset, std::size_t length, const void* packed) {
  if (copied_by_device(payload, offset, length, const_cast<void*>(packed), false)) [[unlikely]]
    return;
  const char* in = static_cast<const char*>(packed);
  each_piece(payload, offset, length, [&in](void* memory, std::size_t bytes) {
    std::memcpy(memory, in, bytes);
    in += bytes;
  });
}

}  // namespace canele::mpi

// SPDX-License-Identifier: BSD-3-Clause
//
// One-sided operations on memory that this process has mapped: copies and atomic operations of the calling thread.
//
// Any thread, without the engine's lock. An operation may go this way only if no earlier one of its lane is on its way
// by packets, so that it cannot overtake one.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "comm/operators/accumulate.hpp"
#include "comm/operators/operators.hpp"
#include "comm/state/atomic_word.hpp"
#include "comm/state/one_sided.hpp"
#include "comm/state/payload.hpp"

namespace canele::comm::post {

/// Returns where the target's memory is in this process; nullptr: the operation must go by packets. The target then
/// answers that the memory is revoked, if it is.
inline std::byte* mapped_memory(const one_sided::RemoteKey& key, const one_sided::Lane& lane) {
  std::byte* const base = key.mapped.load(std::memory_order_relaxed);
  if (base == nullptr || lane.effects.load(std::memory_order_acquire) != 0) return nullptr;  // release: confirm()
  const auto& header = *reinterpret_cast<const one_sided::SharedHeader*>(key.shared->base());
  return header.revoked.load(std::memory_order_relaxed) == 0 ? base : nullptr;
}

/// Notes that an operation is posted to the lane: a flush, or another one.
inline void note_posted(one_sided::Lane& lane, bool flush) {
  if (lane.just_flushed.load(std::memory_order_relaxed) != flush)
    lane.just_flushed.store(flush, std::memory_order_relaxed);
}

/// Flushes the lane if there is nothing to wait for. Else returns false.
inline bool flush_at_once(one_sided::Lane& lane) {
  if (lane.all.load(std::memory_order_acquire) != 0) return false;  // release: confirm()
  note_posted(lane, true);
  return true;
}

/// Copies a piece. A word is copied at once, without a call.
inline void copy_piece(void* to, const void* from, std::size_t length) {
  if (length == sizeof(std::uint64_t)) {
    std::memcpy(to, from, sizeof(std::uint64_t));
  } else if (length != 0) {
    std::memcpy(to, from, length);
  }
}

inline void put_mapped(std::byte* at, const canele_data_t& data) {
  std::atomic_thread_fence(std::memory_order_release);  // after earlier puts; a reader loads the later one with acquire
  if (data.segments == nullptr) {
    copy_piece(at, data.base, data.length);
  } else {
    data::gather(data, 0, data.length, at);
  }
}

inline void get_mapped(const std::byte* at, const canele_data_t& data) {
  if (data.segments == nullptr) {
    copy_piece(data.base, at, data.length);
  } else {
    data::scatter(data, 0, at, data.length);
  }
  std::atomic_thread_fence(std::memory_order_acquire);  // before later gets
}

/// Writes the data to strided memory, or reads it from there.
inline void access_mapped(const one_sided::StridedMemory& memory, const canele_data_t& data, bool put) {
  if (put) {
    std::atomic_thread_fence(std::memory_order_release);  // as in put_mapped()
    memory.each([&](std::byte* at, std::uint64_t offset, std::size_t bytes) { data::gather(data, offset, bytes, at); });
  } else {
    memory.each(
        [&](std::byte* at, std::uint64_t offset, std::size_t bytes) { data::scatter(data, offset, at, bytes); });
    std::atomic_thread_fence(std::memory_order_acquire);  // as in get_mapped()
  }
}

/// `before`: of the program, `operation.size` bytes, or nullptr.
inline void apply_mapped(std::byte* at, const one_sided::AtomicOperation& operation, void* before) {
  const std::uint64_t value = one_sided::apply(operation, at);
  if (before != nullptr) std::memcpy(before, &value, operation.size);
}

/// Combines elements. Returns false, with nothing done, if only the target's library may combine them. `before`: of the
/// program, `data.length` bytes, or nullptr.
inline bool accumulate_mapped(std::byte* at, const canele_data_t& data, const operators::Accumulation& how,
                              std::byte* before) {
  if (!operators::has_words(operators::size_of(how.element), at)) return false;
  if (data.segments == nullptr) {
    operators::combine_words(how, at, static_cast<const std::byte*>(data.base), data.length, before);
    return true;
  }
  std::byte block[2048];
  for (std::size_t i = 0; i < data.length; i += sizeof block) {
    const std::size_t length = std::min(sizeof block, data.length - i);
    data::gather(data, i, length, block);
    operators::combine_words(how, at + i, block, length, before != nullptr ? before + i : nullptr);
  }
  return true;
}

}  // namespace canele::comm::post

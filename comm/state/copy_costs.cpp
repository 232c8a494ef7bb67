// SPDX-License-Identifier: BSD-3-Clause
//
// CopyCosts: the rates, and the choice between them.
#include "comm/state/copy_costs.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace canele::comm {

bool CopyCosts::kernel_pays(std::uint64_t length, float ratio, bool alone) {
  // What a stream takes beside its copies, in bytes: its first piece is copied twice, one after the other, and the
  // sender has to be asked.
  const std::uint64_t start = alone ? 32 * 1024 : 0;
  SizeClass& size = class_of(length);
  ++size.messages;
  if (!size.kernel.known()) return true;
  if (!stream_.known()) return length > longest_tried;
  const bool pays = size.kernel.time_of(length) <= ratio * stream_.time_of(length + start);
  const bool tries_other = is_trial(size.messages) && (!pays || length <= longest_tried);
  if (tries_other && pays) timed_pieces_ = tried;
  return pays != tries_other;
}

/// Returns whether the message with this number goes the other way.
bool CopyCosts::is_trial(std::uint32_t messages) {
  if (messages % period >= period - tried) return true;
  for (const std::uint32_t begin : {first_trial, 4 * first_trial, 16 * first_trial}) {
    if (messages >= begin && messages < begin + tried) return true;
  }
  return false;
}

void CopyCosts::kernel_copied(std::uint64_t length, std::uint64_t bytes, std::uint64_t ns) {
  if (bytes != 0) class_of(length).kernel.add(bytes, ns);
}

void CopyCosts::piece_copied(std::uint64_t bytes, std::uint64_t ns) {
  constexpr std::uint64_t shortest = 4096;  // the clock is as long as a shorter one
  if (bytes >= shortest) stream_.add(bytes, ns);
}

bool CopyCosts::times_piece() {
  if (!stream_.known()) return true;
  if (timed_pieces_ > 0) {
    --timed_pieces_;
    return true;
  }
  return ++pieces_ % 8 == 0;
}

/// The first measurements count by the least of them: they meet cold caches and pages without memory. A later one moves
/// the rate by an eighth if it is longer, and one in which the thread lost its core does not count for more than four.
/// A shorter one moves the rate by half, because nothing makes a copy quicker than it is. Else a way whose first costs
/// were those of cold memory would be taken so seldom that its memory stays cold.
void CopyCosts::Rate::add(std::uint64_t bytes, std::uint64_t ns) {
  const float now = static_cast<float>(ns) / static_cast<float>(bytes);
  if (samples_ < enough) {
    ns_per_byte_ = samples_ == 0 ? now : std::min(ns_per_byte_, now);
    ++samples_;
    return;
  }
  const float step = std::min(now, 4 * ns_per_byte_) - ns_per_byte_;
  ns_per_byte_ += step < 0 ? step / 2 : step / 8;
}

CopyCosts::SizeClass& CopyCosts::class_of(std::uint64_t length) {
  const int bits = std::bit_width(length == 0 ? 0 : length - 1);
  return classes_[static_cast<std::size_t>(std::clamp(bits - first_class_bits, 0, class_count - 1))];
}

}  // namespace canele::comm

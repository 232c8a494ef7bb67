// SPDX-License-Identifier: BSD-3-Clause
//
// Checks of targets, and the parts of an origin's data.
#include "starpu_glue/mpi/windows/place.hpp"

#include <limits>

#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/messages/request.hpp"
#include "starpu_glue/mpi/windows/sync.hpp"

namespace canele::mpi {
namespace {

/// Keeps the description of data with gaps in the window. If there are too many, waits for the operations that use
/// them: the memory of a window stays bounded.
KeptData* keep(Window& window, int rank, const Buffer& buffer, const Payload& payload) {
  constexpr std::size_t kMost = 1024;
  bool is_full = false;
  {
    const std::lock_guard guard(window.mutex);
    is_full = window.kept.size() >= kMost;
  }
  if (is_full) flush_all_of_window(window);
  const std::lock_guard guard(window.mutex);
  window.kept.push_back(std::make_unique<KeptData>(rank, payload, const_cast<Type&>(*buffer.type)));
  window.has_kept.store(true, std::memory_order_release);  // pairs with take_descriptions()
  return window.kept.back().get();
}

/// The bytes of `count` elements, relative to the first one. What does not fit is beyond every window.
struct Bounds {
  std::int64_t low, high;
};
Bounds bounds_of(const Type& type, std::int64_t count) {
  constexpr std::int64_t kBeyond = std::numeric_limits<std::int64_t>::max() / 2;
  std::int64_t last = 0;
  if (count > 0 && __builtin_mul_overflow(count - 1, type.extent(), &last))
    last = type.extent() < 0 ? -kBeyond : kBeyond;
  return {std::min<std::int64_t>(0, last) + type.true_lower, std::max<std::int64_t>(0, last) + type.true_upper};
}

}  // namespace

/// Finds the data in the part of a rank.
int Place::find_part(const WindowCard& card, const TargetData& data) {
  if (data.displacement < 0)
    return fail(MPI_ERR_DISP, "the displacement is %lld; expected: at least 0",
                static_cast<long long>(data.displacement));
  const Bounds bounds = bounds_of(*type_, data.count);
  std::int64_t begin = 0, end = 0;
  if (__builtin_mul_overflow(static_cast<std::int64_t>(data.displacement), card.unit, &begin) ||
      __builtin_add_overflow(begin, bounds.high, &end) || begin + bounds.low < 0 ||
      end > static_cast<std::int64_t>(card.size)) {
    return fail(
        MPI_ERR_RMA_RANGE, "bytes %lld to %lld from displacement %lld on, in units of %d; rank %d has %llu bytes",
        static_cast<long long>(bounds.low), static_cast<long long>(bounds.high),
        static_cast<long long>(data.displacement), card.unit, data.rank, static_cast<unsigned long long>(card.size));
  }
  begin_ = card.first + static_cast<std::uint64_t>(begin);
  count_ = data.count;
  return MPI_SUCCESS;
}

const AttachedRange* Place::range_at(std::uint64_t address) const {
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), address,
                       [](std::uint64_t value, const AttachedRange& range) { return value < range.low; });
  if (after == ranges_.begin() || std::prev(after)->high <= address) return nullptr;
  return &*std::prev(after);
}

/// Checks that attached memory has each byte of the data, which begins at address `low`, and that the key of an element
/// has all of its bytes. If one operation can do, the place becomes one of one range.
int Place::join_ranges(std::uint64_t low, Cut cut) {
  int parts = 0;
  key_ = ranges_.front().key;
  const auto check = [&](const canele_key_t* key, std::uint64_t offset, std::size_t /*from*/,
                         std::size_t bytes) -> int {
    if (parts++ == 0) key_ = const_cast<canele_key_t*>(key);
    if (offset + bytes <= canele_key_length(key)) return MPI_SUCCESS;
    return fail(MPI_ERR_RMA_RANGE, "an element at rank %d lies in two pieces of attached memory", rank_);
  };
  int code = each_block(length(), check);
  if (code != MPI_SUCCESS) return code;
  if (cut == Cut::elements && type_->element != nullptr) {
    const auto pitch = static_cast<std::size_t>(type_->element->extent());
    parts = 0;
    unit_ = type_->element->size;
    code = unit_ == pitch ? each_block(length(), check)
                          : each_element(length(), [&](canele_key_t* key, std::uint64_t offset, std::size_t from) {
                              return check(key, offset, from, pitch);
                            });
  }
  if (code != MPI_SUCCESS || parts > 1) return code;
  begin_ -= range_at(low)->start;
  ranges_.clear();
  return MPI_SUCCESS;
}

/// Finds the data in the memory that a rank has attached. The displacement is its address.
int Place::find_attached(Window& window, const TargetData& data, Cut cut) {
  const Bounds bounds = bounds_of(*type_, data.count);
  const auto address = static_cast<std::uint64_t>(data.displacement);
  const std::uint64_t low = address + static_cast<std::uint64_t>(bounds.low);
  const std::uint64_t high = address + static_cast<std::uint64_t>(bounds.high);
  const int code = find_attached_ranges(window, data.rank, low, high, &ranges_);
  if (code != MPI_SUCCESS) return code;
  count_ = data.count;
  begin_ = address;
  const AttachedRange first = ranges_.front();
  if (low < first.low || high > first.high) return join_ranges(low, cut);
  key_ = first.key;
  begin_ -= first.start;
  ranges_.clear();
  return MPI_SUCCESS;
}

int Place::find(Window& window, const TargetData& data, Cut cut) {
  Buffer elements;
  if (const int code = get_buffer(nullptr, data.count, data.type, &elements); code != MPI_SUCCESS) return code;
  type_ = elements.type;
  if (data.rank == MPI_PROC_NULL) return MPI_SUCCESS;
  if (!window.comm->has_rank(data.rank))
    return fail(MPI_ERR_RANK, "rank is %d; the window has the ranks 0 to %d", data.rank, window.ranks() - 1);
  WindowTarget& target = window.targets[data.rank];
  const bool is_dynamic = window.flavor == MPI_WIN_FLAVOR_DYNAMIC;
  if (elements.size() != 0 && !is_dynamic) {
    if (const int code = find_part(target.card, data); code != MPI_SUCCESS) return code;
  }
  if (!target.ready.load(std::memory_order_acquire)) {  // pairs with the release store in make_ready
    if (const int code = make_ready(window, data.rank); code != MPI_SUCCESS) return code;
  }
  target_ = &target;
  key_ = target.memory;
  rank_ = data.rank;
  return elements.size() != 0 && is_dynamic ? find_attached(window, data, cut) : MPI_SUCCESS;
}

bool Place::describe_strides(std::size_t length, canele_access_options_t* options) const {
  if (!ranges_.empty()) return false;  // in the memory of several keys
  const Run blocks = layout().layout;
  if (!blocks.regular() || blocks.stride < 0 || length % blocks.block != 0) return false;
  // What else the engine wants of strides: blocks that do not overlap, and numbers of 32 bits.
  const auto stride = static_cast<std::uint64_t>(blocks.stride);
  if (stride < blocks.block || stride > std::numeric_limits<std::uint32_t>::max()) return false;
  options->block = blocks.block;
  options->stride = stride;
  return true;
}

int finish_request(Window& window, const Place& place, bool is_only, AccessRequest* request, int code) {
  if (code != MPI_SUCCESS) return code;
  if (request == nullptr) return limit_pending(window, place.rank());
  request->is_posted = true;
  if (is_only) return MPI_SUCCESS;
  const canele_access_options_t options = access_options(window);
  return from_engine(canele_flush(window.engine, canele_key_rank(place.key()), &options, request->request));
}

Source::Source(Window& window, int rank, const Buffer& buffer)
    : payload_(buffer.memory, static_cast<std::size_t>(buffer.count), *buffer.type) {
  if (!payload_.contiguous()) kept_ = keep(window, rank, buffer, payload_);
}

canele_data_t Source::part(std::size_t from, std::size_t length) {
  if (kept_ == nullptr) return {length, payload_.base + payload_.layout.first + from, nullptr, nullptr};
  if (from == 0 && length == payload_.length) return kept_->payload.describe();
  kept_->slices.push_back(std::make_unique<PayloadSlice>(PayloadSlice{&kept_->payload, from, length}));
  return kept_->slices.back()->describe();
}

void Source::posted(Window& window) {
  if (kept_ == nullptr) return;
  const std::lock_guard guard(window.mutex);
  kept_->is_posted = true;
}

}  // namespace canele::mpi

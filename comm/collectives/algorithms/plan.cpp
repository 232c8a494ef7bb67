// SPDX-License-Identifier: BSD-3-Clause
//
// Plan, and the dependencies between its steps. Every write merges pieces again. So their number depends on the memory
// in use at the time, not on the length of the program.
#include "comm/collectives/algorithms/plan.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <new>

namespace canele::comm::collectives {

// ------------------------------------------------------------------------------------------------------- hazards

/// Returns the first piece that begins at `at` or later. Splits a piece that spans `at`.
Hazards::Pieces::iterator Hazards::cut(std::uint64_t at) {
  auto next = pieces_.lower_bound(at);
  if (next == pieces_.begin()) return next;
  Piece& before = std::prev(next)->second;
  if (before.end <= at) return next;
  next = pieces_.emplace_hint(next, at, before);
  before.end = at;
  return next;
}

void Hazards::read(const Range& range, StepId step, std::vector<StepId>& needs) {
  std::uint64_t at = range.offset;
  const std::uint64_t end = range.offset + range.length;
  cut(end);
  auto piece = cut(at);
  for (; at < end; at = piece->second.end, ++piece) {
    // Untouched memory becomes a piece: a later writer has to wait for this reader.
    if (piece == pieces_.end() || piece->first > at) {
      const std::uint64_t until = piece == pieces_.end() ? end : std::min(end, piece->first);
      piece = pieces_.emplace_hint(piece, at, Piece{until, no_step, nullptr});
    }
    if (piece->second.writer != no_step) needs.push_back(piece->second.writer);
    void* const place = memory_->allocate(sizeof(Reader), alignof(Reader));
    piece->second.readers = new (place) Reader{step, piece->second.readers};
  }
}

void Hazards::write(const Range& range, StepId step, std::vector<StepId>& needs) {
  const std::uint64_t end = range.offset + range.length;
  cut(end);
  const auto first = cut(range.offset);
  auto last = first;
  for (; last != pieces_.end() && last->first < end; ++last) {
    const Piece& piece = last->second;
    // The readers have waited for the writer.
    if (piece.readers == nullptr && piece.writer != no_step) needs.push_back(piece.writer);
    for (const Reader* reader = piece.readers; reader != nullptr; reader = reader->next) needs.push_back(reader->step);
  }
  pieces_.emplace_hint(pieces_.erase(first, last), range.offset, Piece{end, step, nullptr});
}

bool Hazards::written(const Range& range) const {
  std::uint64_t at = range.offset;
  auto piece = pieces_.upper_bound(at);
  if (piece != pieces_.begin()) --piece;
  while (at < range.offset + range.length) {
    if (piece == pieces_.end() || piece->first > at || piece->second.end <= at) return false;
    if (piece->second.writer == no_step) return false;
    at = piece->second.end;
    ++piece;
  }
  return true;
}

// ---------------------------------------------------------------------------------------------------------- plan

std::uint32_t slot_of(std::uint32_t phase, std::uint64_t item) {
  assert(phase < most_phases && item < most_items && "more messages between two positions than slots");
  return phase * most_items + static_cast<std::uint32_t>(item);
}

Range Plan::own(std::uint64_t from, std::uint64_t bytes) const {
  return {call_.in_place ? Space::output : Space::input, from, bytes};
}

void Plan::reads(StepId step, const Range& range) {
  assert((range.space != Space::scratch || of(range).written(range)) && "scratch is read that no step has written");
  of(range).read(range, step, needs_);
}

void Plan::writes(StepId step, const Range& range) {
  assert(range.space != Space::input && "the caller's input is constant");
  of(range).write(range, step, needs_);
}

/// Passes the needs of the step to the builder, each once.
void Plan::add_needs(StepId step) {
  std::sort(needs_.begin(), needs_.end());
  needs_.erase(std::unique(needs_.begin(), needs_.end()), needs_.end());
  for (const StepId need : needs_) builder_.add_need(step, need);
  needs_.clear();
}

/// Splits a message that is slightly longer than what leaves at once into pieces that do leave at once; other messages
/// stay whole. Both ends split alike, since it depends on the length alone. The remainder comes first: it arrives soon.
/// Where the two ends disagree on the length, the remainder nearly always differs already, which ends the group. (The
/// other pieces have the full length, not an equal share: each piece has a fixed cost.)
template <typename Add>
void Plan::each_piece(std::uint32_t slot, const Range& message, Add add) {
  const std::uint64_t length = message.length;
  if (length == 0) return;
  if (piece_ == 0 || length <= piece_ || length > pieces_at_most(call_.operation) * piece_) return add(slot, message);
  std::uint64_t now = (length - 1) % piece_ + 1;
  for (std::uint64_t at = 0; at < length; at += now, now = piece_, slot += most_phases * most_items) {
    add(slot, message.slice(at, now));
  }
}

void Plan::send(int peer, std::uint32_t slot, const Range& from) {
  assert(from.length == 0 || (peer >= 0 && peer < call_.size && peer != call_.rank));
  each_piece(slot, from, [&](std::uint32_t its, const Range& piece) {
    const StepId step = builder_.send(peer, its, piece);
    reads(step, piece);
    add_needs(step);
  });
}

void Plan::receive(int peer, std::uint32_t slot, const Range& to) {
  assert(to.length == 0 || (peer >= 0 && peer < call_.size && peer != call_.rank));
  each_piece(slot, to, [&](std::uint32_t its, const Range& piece) {
    const StepId step = builder_.receive(peer, its, piece);
    writes(step, piece);
    add_needs(step);
  });
}

void Plan::copy(const Range& from, const Range& to) {
  assert(from.length == to.length);
  if (from.length == 0 || (from.space == to.space && from.offset == to.offset)) return;
  between(builder_.copy(from, to), from, to);
}

void Plan::combine(const Range& from, const Range& to) {
  assert(from.length == to.length && from.length % call_.element == 0);
  assert((to.space != Space::scratch || of(to).written(to)) && "scratch is an operand that no step has written");
  if (from.length != 0) between(builder_.combine(from, to), from, to);
}

void Plan::append(const Range& from, const Range& to) {
  assert(from.length == to.length && from.length % call_.element == 0);
  assert((to.space != Space::scratch || of(to).written(to)) && "scratch is an operand that no step has written");
  if (from.length != 0) between(builder_.append(from, to), from, to);
}

void Plan::between(StepId step, const Range& from, const Range& to) {
  reads(step, from);
  writes(step, to);
  add_needs(step);
}

// -------------------------------------------------------------------------------------------------- pool and cut

namespace {

constexpr std::uint64_t pool_budget = 256 * 1024;  // bytes of all buffers of a pool, beyond the minimum
constexpr std::uint64_t pool_alignment = 64;

}  // namespace

Pool::Pool(Plan& plan, std::uint64_t bytes, std::uint64_t uses, std::uint64_t least)
    : stride_((bytes + pool_alignment - 1) / pool_alignment * pool_alignment) {
  count_ = stride_ == 0 ? 1 : std::min(uses, std::max(least, pool_budget / stride_));
  memory_ = plan.scratch(count_ * stride_);
}

Range Pool::next(std::uint64_t bytes) {
  assert(bytes <= stride_ && (count_ > 0 || bytes == 0));
  if (bytes == 0) return {};
  return memory_.slice(at_++ % count_ * stride_, bytes);
}

Cut Cut::segments(std::uint64_t length, std::uint64_t element, std::uint64_t segment) {
  assert(element > 0 && length % element == 0);
  if (length == 0) return {0, 0, element, element};
  if (segment == 0 || segment > length) segment = length;
  segment = std::max(segment, length / most_segments + 1);
  segment = (segment + element - 1) / element * element;
  return {length, (length + segment - 1) / segment, segment, element};
}

Cut Cut::even(std::uint64_t length, std::uint64_t element, std::uint64_t count) {
  assert(element > 0 && length % element == 0 && count > 0);
  return {length, count, 0, element};
}

std::uint64_t Cut::at(std::uint64_t piece) const {
  if (segment_ != 0) return std::min(length_, piece * segment_);
  const std::uint64_t elements = length_ / element_;
  return (elements / count_ * piece + std::min(piece, elements % count_)) * element_;  // the first pieces are longer
}

std::uint64_t Cut::longest() const { return count_ == 0 ? 0 : length(0); }

}  // namespace canele::comm::collectives

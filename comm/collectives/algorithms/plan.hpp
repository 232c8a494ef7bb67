// SPDX-License-Identifier: BSD-3-Clause
//
// Plan: a schedule written as a sequential program. The dependencies follow from the memory that steps touch.
//
// Used by the algorithms of this directory. One thread at a time for one plan.
//
// An algorithm states no dependencies at all. A step waits for three kinds of earlier steps. Steps that wrote what it
// reads: the data is there. Steps that read what it writes: a buffer is free before it is overwritten, also the
// caller's buffer, in place. Steps that wrote what it writes: operands are combined in the order of the program, in
// every run. All other steps may run at the same time.
//
//     program          touches         waits for         memory, in pieces that one step wrote last
//     0 receive        writes A        -                 ┌──── A ────┬── B ──┐
//     1 copy           reads A, w. B   0                 │ written 0 │ w. 1  │   A's readers: 1, 2
//     2 send           reads A         0                 └───────────┴───────┘
//     3 receive        writes A        1, 2
//
// Rejected: dependencies by hand. Half of all errors in such code are a forgotten "after the send", which shows once a
// month.
#pragma once

#include <cstdint>
#include <map>
#include <memory_resource>
#include <vector>

#include "comm/collectives/algorithms/algorithms.hpp"
#include "comm/collectives/algorithms/schedule.hpp"

namespace canele::comm::collectives {

/// Which steps touched which bytes of one space, as far as it still matters.
class Hazards {
 public:
  explicit Hazards(std::pmr::memory_resource* memory) : pieces_(memory), memory_(memory) {}
  /// `step` will read the range, or write it (a step that does both writes). Appends to `needs` the steps that it must
  /// wait for.
  void read(const Range& range, StepId step, std::vector<StepId>& needs);
  void write(const Range& range, StepId step, std::vector<StepId>& needs);
  /// Returns true if steps of the plan have written the whole range.
  bool written(const Range& range) const;

 private:
  struct Reader {
    StepId step;
    const Reader* next;
  };
  struct Piece {
    std::uint64_t end;
    StepId writer;          ///< no_step: content from before the collective
    const Reader* readers;  ///< steps that read it since then; lists share their tails when a piece is cut
  };
  using Pieces = std::pmr::map<std::uint64_t, Piece>;  // keyed by their offsets

  Pieces::iterator cut(std::uint64_t at);

  Pieces pieces_;
  std::pmr::memory_resource* memory_;
};

/// Identifies a message between two positions: `phase` is a phase of the algorithm, `item` a message within it.
inline constexpr std::uint32_t most_items = 1U << 16U, most_phases = 16;
std::uint32_t slot_of(std::uint32_t phase, std::uint64_t item);

/// Limits of a message that is sent in pieces. The pieces of one message have slots of their own.
inline constexpr std::uint64_t most_pieces = 8, piece_unit = 64;
/// Returns in how many pieces a message of the operation leaves at most. Each byte of a piece is copied twice; a longer
/// message asks its receiver, which may know a quicker way. In a gather the senders go on at once, while the root is
/// busy with the messages of others.
constexpr std::uint64_t pieces_at_most(Operation operation) { return operation == Operation::gather ? most_pieces : 2; }
static_assert(most_phases * most_items * most_pieces <= slots);

class Plan {
 public:
  /// `piece`: as Choice::piece.
  explicit Plan(const Call& call, std::uint64_t piece = 0) : call_(call), piece_(piece / piece_unit * piece_unit) {
    if (is_reduction(call.operation)) builder_.reduction();
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  const Call& call() const { return call_; }
  /// This rank's memory: own() is the operand (in place, within the output), output() the result.
  Range own(std::uint64_t from, std::uint64_t bytes) const;
  Range output(std::uint64_t from, std::uint64_t bytes) const { return {Space::output, from, bytes}; }
  Range scratch(std::uint64_t bytes) { return builder_.scratch(bytes); }

  // Add steps as in Builder; a message may become several. An empty range adds no step: both ends of a message know its
  // length. Neither does a copy of a range to itself.
  void send(int peer, std::uint32_t slot, const Range& from);
  void receive(int peer, std::uint32_t slot, const Range& to);
  void copy(const Range& from, const Range& to);
  void combine(const Range& from, const Range& to);
  void append(const Range& from, const Range& to);
  /// Computes to = lower op to, or to = to op higher, depending on `from_is_higher`.
  void fold(const Range& from, const Range& to, bool from_is_higher) {
    from_is_higher ? append(from, to) : combine(from, to);
  }

  void level(std::uint8_t number) { builder_.level(number); }
  void tree(std::uint32_t radix) { builder_.tree(radix); }
  void inflight_limit(std::uint32_t sends) { builder_.inflight_limit(sends); }

  Schedule finish() && { return std::move(builder_).build(); }

 private:
  Hazards& of(const Range& range) { return hazards_[static_cast<std::size_t>(range.space)]; }
  void reads(StepId step, const Range& range);
  void writes(StepId step, const Range& range);
  void between(StepId step, const Range& from, const Range& to);
  void add_needs(StepId step);
  template <typename Add>
  void each_piece(std::uint32_t slot, const Range& message, Add add);

  Call call_;
  std::uint64_t piece_;
  Builder builder_;
  std::byte first_memory_[4096];
  std::pmr::monotonic_buffer_resource memory_{first_memory_, sizeof first_memory_};
  Hazards hazards_[3] = {Hazards(&memory_), Hazards(&memory_), Hazards(&memory_)};
  std::vector<StepId> needs_;  // of the step that is being added
};

/// Scratch buffers used in turn, each for one purpose after the other; few of them if they are large. (Their number
/// only decides how early the next receive may be posted.)
class Pool {
 public:
  /// `uses`: how often a buffer of up to `bytes` is needed in total. At least `least` of them are distinct buffers.
  Pool(Plan& plan, std::uint64_t bytes, std::uint64_t uses, std::uint64_t least = 2);
  Range next(std::uint64_t bytes);

 private:
  Range memory_;
  std::uint64_t stride_, count_, at_ = 0;
};

/// A buffer cut into pieces, at multiples of an element.
class Cut {
 public:
  /// Pieces of `segment` bytes (rounded up to elements; 0: one piece), longer ones if there would be too many.
  static Cut segments(std::uint64_t length, std::uint64_t element, std::uint64_t segment);
  /// `count` pieces that differ by at most one element.
  static Cut even(std::uint64_t length, std::uint64_t element, std::uint64_t count);

  std::uint64_t count() const { return count_; }
  std::uint64_t at(std::uint64_t piece) const;
  std::uint64_t length(std::uint64_t piece) const { return at(piece + 1) - at(piece); }
  std::uint64_t longest() const;
  Range of(const Range& whole, std::uint64_t piece) const { return whole.slice(at(piece), length(piece)); }

 private:
  Cut(std::uint64_t length, std::uint64_t count, std::uint64_t segment, std::uint64_t element)
      : length_(length), count_(count), segment_(segment), element_(element) {}
  std::uint64_t length_, count_, segment_, element_;  // segment_ = 0: even
};

/// Limit on the pieces in which a buffer is forwarded.
inline constexpr std::uint64_t most_segments = 4096;

}  // namespace canele::comm::collectives

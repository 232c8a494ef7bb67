// SPDX-License-Identifier: BSD-3-Clause
//
// Schedule: all steps of one rank in one collective, known before the first byte moves.
//
// Built by algorithms/, executed by async_executor.cpp and blocking_executor.cpp, and by the tests on a model. A
// finished schedule is constant: any thread may read it.
//
// It holds no address and no request. It holds only steps, the needs of each step, and ranges in three memory spaces.
// So the next call with the same arguments can reuse a schedule, and a test can run a thousand ranks without an engine.
//
//   steps   0 receive ──┐            needs: how many steps must have ended before
//           1 receive ──┼─▶ 2 combine ─▶ 3 send
//                       │
//   after   [2] [2] [3]              the steps that become ready after a step, one slice of this array for each
//
// Rejected: a list of rounds, in which all steps of a round end before the next round begins. In a chain of segments,
// every rank would be as slow as the slowest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

namespace canele::comm::collectives {

/// The memory of a range. `input` and `output` are the caller's; `scratch` lives as long as the executor.
enum class Space : std::uint8_t { input, output, scratch };

struct Range {
  Space space = Space::scratch;
  std::uint64_t offset = 0, length = 0;  ///< bytes
  Range slice(std::uint64_t from, std::uint64_t bytes) const { return {space, offset + from, bytes}; }
  bool operator==(const Range&) const = default;
};

enum class Action : std::uint8_t {
  send,     ///< `from` to `peer`
  receive,  ///< into `to` from `peer`; the message has exactly that length.
  copy,     ///< `from` to `to`, which may not overlap.
  combine,  ///< to = from op to: `from` is of lower positions.
  append,   ///< to = to op from: `from` is of higher positions. For operators that commute, equal to combine.
  join,     ///< no action; ends when the steps that it needs have ended
};

using StepId = std::uint32_t;
inline constexpr StepId no_step = ~StepId{0};
/// Limit on the slots of one collective. The collective's number and the slot make up the tag of a message.
inline constexpr int slot_bits = 24;
inline constexpr std::uint32_t slots = 1u << slot_bits;

struct Step {
  Action action = Action::join;
  /// The level in a tree from or to one root. 1: the leaves', the widest; 0: no level. See split_policy.hpp.
  std::uint8_t level = 0;
  std::int32_t peer = -1;  ///< position in the group
  /// Distinguishes messages between two positions within one collective. Both ends derive it from the algorithm.
  std::uint32_t slot = 0;
  std::uint32_t needs = 0;
  std::uint32_t first_after = 0, end_after = 0;  ///< its slice of Schedule::after
  Range from, to;
};

/// Returns true if the step costs less than to begin it elsewhere, or at another time.
inline bool is_trifle(const Step& step) {
  constexpr std::uint64_t most = 1024;
  return step.action == Action::join || (step.action == Action::copy && step.to.length <= most);
}

/// Constant once built. If two steps touch the same bytes and one of them writes, needs order them. Steps that become
/// ready at the same time may therefore run on several threads at once.
class Schedule {
 public:
  std::span<const Step> steps() const { return steps_; }
  std::span<const StepId> after(const Step& step) const {
    return std::span(after_).subspan(step.first_after, step.end_after - step.first_after);
  }
  /// Returns the steps that need nothing, in the order of starting: receives, sends, others.
  std::span<const StepId> first() const { return first_; }
  std::span<const StepId> first_messages() const { return first().first(first_message_count_); }
  std::span<const StepId> first_locals() const { return first().subspan(first_message_count_); }
  /// Returns true if everything begins with one message. After it, every step may be done in the order of the steps,
  /// and no step is worth beginning before. The message is the only one, as for a leaf of a tree and between two ranks.
  /// Or it is a receive that all sends wait for, as within a chain or a tree.
  bool begins_with_one_message() const { return begins_with_one_message_; }
  /// Returns the number of steps that are messages.
  std::uint32_t messages() const { return messages_; }
  std::uint64_t longest_message() const { return longest_message_; }
  /// Returns true if this rank waits for a message of each rank to which it sends. A buffered send then gains nothing:
  /// that rank has its turn before this one can go on.
  bool waits_for_receivers() const { return waits_for_receivers_; }
  /// Returns true if messages are operands of a reduction, at this rank or another one.
  bool reduces() const { return reduces_; }
  std::uint64_t scratch_bytes() const { return scratch_; }
  /// Limit on the sends in progress at a time; 0: no limit. The executor enforces it, in the order of the steps.
  std::uint32_t inflight_limit() const { return inflight_limit_; }
  /// Radix of the tree, if the whole schedule is a tree from or to one root with levels of different width. Otherwise
  /// 0.
  std::uint32_t radix() const { return radix_; }

 private:
  friend class Builder;
  std::vector<Step> steps_;
  std::vector<StepId> after_, first_;
  std::uint64_t scratch_ = 0, longest_message_ = 0;
  std::uint32_t inflight_limit_ = 0, messages_ = 0, radix_ = 0;
  std::size_t first_message_count_ = 0;
  bool begins_with_one_message_ = false, reduces_ = false, waits_for_receivers_ = false;
};

/// Builds a schedule. `needs` name earlier steps; no_step among them is skipped. Steps that need nothing start at once,
/// in the order in which they were added, but receives before sends.
class Builder {
 public:
  using Needs = std::initializer_list<StepId>;

  StepId send(int peer, std::uint32_t slot, Range from, Needs needs = {});
  StepId receive(int peer, std::uint32_t slot, Range to, Needs needs = {});
  StepId copy(Range from, Range to, Needs needs = {});
  StepId combine(Range from, Range to, Needs needs = {});
  StepId append(Range from, Range to, Needs needs = {});
  StepId join(std::span<const StepId> needs);
  /// Adds a need of `step`; `step` comes after `need`.
  void add_need(StepId step, StepId need);
  /// Sets the tree level of the steps that are added from now on.
  void level(std::uint8_t number) { level_ = number; }
  /// Marks the whole as a tree from or to one root, where each rank is the parent of up to radix - 1 ranks of a level.
  void tree(std::uint32_t radix) { schedule_.radix_ = radix; }
  /// Marks the whole as one that waits for a message of each rank to which it sends.
  void waits_for_receivers() { schedule_.waits_for_receivers_ = true; }
  /// Marks the whole as a reduction.
  void reduction() { schedule_.reduces_ = true; }
  /// Allocates scratch memory, aligned to 64 bytes.
  Range scratch(std::uint64_t bytes);
  void inflight_limit(std::uint32_t sends) { schedule_.inflight_limit_ = sends; }

  Schedule build() &&;

 private:
  StepId add(Step step, Needs needs);
  void find_first();
  bool begins_with_one_message() const;
  Schedule schedule_;
  std::vector<std::pair<StepId, StepId>> edges_;  // need, step
  std::uint8_t level_ = 0;
};

}  // namespace canele::comm::collectives

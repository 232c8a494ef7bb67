// SPDX-License-Identifier: BSD-3-Clause
//
// Steps: performs one step of a schedule, in the memory of one call. Shared by AsyncExecutor and BlockingExecutor.
//
// Any thread may call these functions, but never under the engine's lock. None of them knows which steps follow.
#pragma once

#include <canele/collectives.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "comm/collectives/algorithms/schedule.hpp"
#include "comm/collectives/group.hpp"
#include "comm/state/request.hpp"

namespace canele::comm::collectives {

/// Arguments of one collective.
struct Work {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  canele_operator_t combine{};  ///< of reductions
  std::int32_t priority = 0;    ///< of its messages
};

/// The memory to which a schedule's ranges refer.
struct Place {
  Place(const Work& on, std::byte* own) : work(on), spaces{const_cast<std::byte*>(on.input), on.output, own} {}
  std::byte* at(const Range& range) const { return spaces[static_cast<std::size_t>(range.space)] + range.offset; }

  const Work& work;
  std::array<std::byte*, 3> spaces;  ///< by Space. (The input is never written to: see schedule.cpp)
};

inline bool is_message(const Step& step) { return step.action == Action::send || step.action == Action::receive; }

/// Performs a step that is not a message.
void do_here(const Place& place, const Step& step);

/// Returns the tag of a step's message, in the collective `number` of the group.
inline std::uint64_t tag_of(const Step& step, std::uint64_t number) { return number << slot_bits | step.slot; }

/// Posts a step that is a message, with the result of canele_isend or canele_irecv.
int post_message(Group& group, const Place& place, const Step& step, std::uint64_t number, canele_request_t* request);

/// Returns how the step's message has ended: code CANELE_OK, or the reason why the collective fails.
Ending ending_of(const Group& group, const Step& step, const Request& message);

}  // namespace canele::comm::collectives

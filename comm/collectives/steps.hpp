// SPDX-License-Identifier: BSD-3-Clause
//
// Steps: doing one step of a schedule, in the memory of one call. What Run and Direct have in common.
//
// Who: run.cpp, direct.cpp. Threads: any, never under the engine's lock.
// Surprise: none of these functions knows what comes after the step.
#pragma once

#include <canele/collectives.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "comm/collectives/group.hpp"
#include "comm/collectives/schedule.hpp"
#include "comm/core/request.hpp"

namespace canele::comm::collectives {

/// What a collective works on.
struct Work {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  canele_operator_t combine{};  ///< of reductions
  std::int32_t priority = 0;    ///< of its messages
};

/// The memory that a schedule's ranges are in.
struct Place {
  Place(const Work& on, std::byte* own) : work(on), spaces{const_cast<std::byte*>(on.input), on.output, own} {}
  std::byte* at(const Range& range) const { return spaces[static_cast<std::size_t>(range.space)] + range.offset; }

  const Work& work;
  std::array<std::byte*, 3> spaces;  ///< by Space. (Nobody writes to the input: see schedule.cpp)
};

inline bool is_message(const Step& step) { return step.action == Action::send || step.action == Action::receive; }

/// Of a step that is no message.
void do_here(const Place& place, const Step& step);

/// The tag of a step's message, in the collective `number` of the group.
inline std::uint64_t tag_of(const Step& step, std::uint64_t number) {
  constexpr int shift = 24;
  static_assert(slots == 1u << shift);
  return number << shift | step.slot;
}

/// Of a step that is a message: as canele_isend, canele_irecv.
int post_message(Group& group, const Place& place, const Step& step, std::uint64_t number, canele_request_t* request);

/// How the step's message has ended: code CANELE_OK, or why the group is over now.
Ending ending_of(const Group& group, const Step& step, const Request& message);

}  // namespace canele::comm::collectives

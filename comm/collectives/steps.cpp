// SPDX-License-Identifier: BSD-3-Clause
//
// Execution of one step. The tag of a message consists of the number of the collective and the step's slot. So two
// collectives of a group, or two messages of one collective, cannot be confused.
#include "comm/collectives/steps.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "comm/engine/engine.hpp"

namespace canele::comm::collectives {
namespace {

/// Computes `to` = to op from, with an operator that computes from op to. Copies through a buffer of its own, since
/// `from` may be the user's input.
void append_in_order(const canele_operator_t& combine, const std::byte* from, std::byte* to, std::uint64_t bytes) {
  constexpr std::size_t at_a_time = 8192;
  alignas(64) std::byte some[at_a_time];
  std::unique_ptr<std::byte[]> long_element;
  std::byte* buffer = some;
  if (combine.element > at_a_time) {
    long_element = std::make_unique<std::byte[]>(combine.element);
    buffer = long_element.get();
  }
  const std::size_t most = std::max<std::size_t>(1, at_a_time / combine.element) * combine.element;
  for (std::uint64_t done = 0; done < bytes;) {
    const std::size_t now = std::min<std::uint64_t>(most, bytes - done);
    std::memcpy(buffer, from + done, now);
    combine.combine(to + done, buffer, now / combine.element, combine.argument);
    std::memcpy(to + done, buffer, now);
    done += now;
  }
}

}  // namespace

void do_here(const Place& place, const Step& step) {
  if (step.action == Action::join || step.to.length == 0) return;
  const std::byte* const from = place.at(step.from);
  std::byte* const to = place.at(step.to);
  const canele_operator_t& combine = place.work.combine;
  if (step.action == Action::copy) {
    std::memcpy(to, from, step.to.length);
  } else if (step.action == Action::combine || combine.commutes != 0) {
    combine.combine(from, to, step.to.length / combine.element, combine.argument);
  } else {
    append_in_order(combine, from, to, step.to.length);
  }
}

int post_message(Group& group, const Place& place, const Step& step, std::uint64_t number, canele_request_t* request) {
  canele_session_t* const session = public_of(group.session);
  const int peer = group.world(step.peer);
  const std::uint64_t tag = tag_of(step, number);
  if (step.action == Action::receive)
    return canele_irecv(session, peer, tag, CANELE_TAG_EXACT, place.at(step.to), step.to.length, request);
  if (place.work.priority == 0) return canele_isend(session, peer, tag, place.at(step.from), step.from.length, request);
  canele_send_options_t options{};
  options.struct_size = sizeof options;
  options.priority = place.work.priority;
  const canele_data_t data = canele_data_contiguous(place.at(step.from), step.from.length);
  return canele_isend_data(session, peer, tag, &data, &options, request);
}

Ending ending_of(const Group& group, const Step& step, const Request& message) {
  Ending ending{message.status_error, group.world(step.peer)};
  const bool odd = step.action == Action::receive && message.status_length != step.to.length;
  // The other rank has destroyed its group. ECANCELED would mean the end of this engine, of which no rank is notified.
  const bool destroyed = ending.code == CANELE_ECANCELED && step.action != Action::receive;
  if (destroyed) ending.code = CANELE_ESTATE;
  if (ending.code == CANELE_ETRUNC || (ending.code == CANELE_OK && odd)) ending.code = CANELE_EPROTOCOL;
  return ending;
}

}  // namespace canele::comm::collectives

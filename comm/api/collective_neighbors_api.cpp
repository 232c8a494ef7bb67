// SPDX-License-Identifier: BSD-3-Clause
//
// The exchange with neighbours of the C ABI. Any thread, but one at a time for one group.
#include <algorithm>

#include "comm/api/collective_call.hpp"

namespace canele::comm::api {

using Edges = std::span<const canele_edge_t>;

Edges Collective::edges(const canele_edge_t* given, std::size_t count, const void* memory_of_edges, const char* name) {
  require(count == 0 || given != nullptr, "the edges must be given");
  require(count < collectives::slots, "there are too many edges; expected: fewer than 2^24");
  if (!well()) return {};
  std::uint64_t end = 0;
  for (const canele_edge_t& edge : Edges(given, count)) {
    if (edge.position < 0 || edge.position >= call.size) {
      wrong(CANELE_ERANK, "position " + std::to_string(edge.position) + ": positions of this group run from 0 to " +
                              std::to_string(call.size - 1));
      return {};
    }
    std::uint64_t last = 0;
    if (edge.length != 0 && __builtin_add_overflow(std::uint64_t{edge.offset}, std::uint64_t{edge.length}, &last))
      last = UINT64_MAX;  // memory() rejects it
    end = std::max(end, last);
  }
  memory(memory_of_edges, end, name);
  return {given, count};
}

namespace {

/// Checks the edges from this rank to itself: one side sends what the other receives.
void check_own(Collective& one, Edges sends, Edges receives) {
  const auto is_own = [&](const canele_edge_t& edge) { return edge.position == one.call.rank; };
  auto from = sends.begin(), to = receives.begin();
  while (true) {
    from = std::find_if(from, sends.end(), is_own);
    to = std::find_if(to, receives.end(), is_own);
    if (from == sends.end() || to == receives.end()) break;
    if (from->length != to->length)
      return one.wrong(CANELE_EINVAL, "this rank sends " + std::to_string(from->length) +
                                          " bytes to itself, but receives " + std::to_string(to->length));
    ++from, ++to;
  }
  one.require(from == sends.end() && to == receives.end(),
              "this rank has more edges to itself on one side than on the other");
}

}  // namespace
}  // namespace canele::comm::api

using namespace canele::comm;
using namespace canele::comm::api;

int canele_ineighbor_exchange(canele_group_t* group, const void* input, const canele_edge_t* sends, size_t send_count,
                              void* output, const canele_edge_t* receives, size_t receive_count,
                              const canele_collective_options_t* options, canele_request_t* request) try {
  Collective one("canele_ineighbor_exchange", collectives::Operation::alltoall, group, options, request);
  one.require(input != CANELE_IN_PLACE, "CANELE_IN_PLACE is not for this function");
  const auto out = one.edges(sends, send_count, input, "input");
  const auto in = one.edges(receives, receive_count, output, "output");
  if (one.well()) check_own(one, out, in);
  one.work.input = static_cast<const std::byte*>(input);
  one.work.output = static_cast<std::byte*>(output);
  return one.begin_exchange(out, in);
} catch (...) {
  return caught();
}

// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives of the C ABI whose buffers have a part for each position: gather, scatter, allgather, alltoall,
// reduce_scatter.
//
// Any thread, but one at a time for one group. Only the root may know the lengths of a gather or scatter. Its data then
// goes straight between root and rank (Call::irregular).
#include "comm/api/collective_call.hpp"

namespace canele::comm::api {
namespace {

using collectives::Blocks;
using collectives::Call;
using collectives::Operation;

std::string both(const char* what, std::uint64_t a, const char* other, std::uint64_t b) {
  return std::string(what) + " has " + std::to_string(a) + " bytes, but " + other + " has " + std::to_string(b);
}

/// Returns true for parts that are stored one after the other, each as long as the rank's own.
bool are_alike(const canele_parts_t* parts, std::size_t own) {
  return parts != nullptr && parts->lengths == nullptr && parts->offsets == nullptr && parts->length == own;
}

/// Reads the parts of the root's buffer for gather and scatter, as far as this rank knows them; this rank's buffer has
/// `own` bytes.
Blocks read_root_blocks(Collective& one, const canele_parts_t* given, std::uint64_t own,
                        std::vector<std::uint64_t>& sums) {
  one.require(!one.at_root() || given != nullptr, "the root must give the parts of its buffer");
  one.call.length = own;
  if (!one.well() || given == nullptr) {
    one.call.irregular = !one.at_root();
    return {};
  }
  const Blocks blocks = one.blocks_of(*given, sums);
  one.call.irregular = given->lengths != nullptr;
  if (!one.at_root() && one.call.irregular) return {};  // ignored
  const std::uint64_t mine = blocks.length_of(one.call.rank);
  if (one.call.in_place) one.call.length = mine;
  if (mine != one.call.length)
    one.wrong(CANELE_EINVAL, both("this rank's own buffer", own, "its part at the root", mine));
  return blocks;
}

}  // namespace
}  // namespace canele::comm::api

using namespace canele::comm;
using namespace canele::comm::api;
using collectives::Blocks;
using collectives::Operation;

int canele_igather(canele_group_t* group, const void* input, size_t length, void* output, const canele_parts_t* parts,
                   int root, const canele_collective_options_t* options, canele_request_t* request) try {
  if (are_alike(parts, length) && is_there(input)) {
    RepeatedCall repeated(group, options, request);
    const bool at_root = repeated.at_root(root);
    if ((!at_root || output != nullptr) &&
        repeated.matches({Operation::gather, root, length, 1, true, 0, at_root ? length : 0})) {
      return repeated.carry_out("canele_igather", Operation::gather,
                                {static_cast<const std::byte*>(input), static_cast<std::byte*>(output), {}, 0});
    }
  }
  Collective one("canele_igather", Operation::gather, group, options, request);
  std::vector<std::uint64_t> sums;
  one.root(root);
  one.input(input, length);
  one.require(one.at_root() || !one.call.in_place, "CANELE_IN_PLACE is for the root: elsewhere give the input");
  const Blocks read = read_root_blocks(one, parts, length, sums);
  if (one.well() && one.at_root()) {
    one.memory(output, one.extent(read), "output");
    one.call.output = read;
    one.work.output = static_cast<std::byte*>(output);
  }
  return one.begin();
} catch (...) {
  return caught();
}

int canele_iscatter(canele_group_t* group, const void* input, const canele_parts_t* parts, void* output, size_t length,
                    int root, const canele_collective_options_t* options, canele_request_t* request) try {
  if (are_alike(parts, length) && is_there(output)) {
    RepeatedCall repeated(group, options, request);
    const bool at_root = repeated.at_root(root);
    if ((!at_root || input != nullptr) &&
        repeated.matches({Operation::scatter, root, length, 1, true, at_root ? length : 0, 0})) {
      const auto* const from = at_root ? static_cast<const std::byte*>(input) : nullptr;
      return repeated.carry_out("canele_iscatter", Operation::scatter, {from, static_cast<std::byte*>(output), {}, 0});
    }
  }
  Collective one("canele_iscatter", Operation::scatter, group, options, request);
  std::vector<std::uint64_t> sums;
  one.root(root);
  one.call.in_place = one.at_root() && output == nullptr;
  if (!one.call.in_place) one.memory(output, length, "output");
  const Blocks read = read_root_blocks(one, parts, length, sums);
  if (one.well() && one.at_root()) {
    one.memory(input, one.extent(read), "input");
    one.call.input = read;
    one.work.input = static_cast<const std::byte*>(input);
  }
  one.work.output = static_cast<std::byte*>(output);
  return one.begin();
} catch (...) {
  return caught();
}

int canele_iallgather(canele_group_t* group, const void* input, void* output, const canele_parts_t* parts,
                      const canele_collective_options_t* options, canele_request_t* request) try {
  Collective one("canele_iallgather", Operation::allgather, group, options, request);
  std::vector<std::uint64_t> sums;
  one.require(parts != nullptr, "the parts of output must be given");
  if (one.well()) {
    one.call.output = one.blocks_of(*parts, sums);
    one.call.length = one.call.output.length_of(one.call.rank);
    one.input(input, one.call.length);
    one.memory(output, one.extent(one.call.output), "output");
  }
  one.work.output = static_cast<std::byte*>(output);
  return one.begin();
} catch (...) {
  return caught();
}

int canele_ialltoall(canele_group_t* group, const void* input, const canele_parts_t* input_parts, void* output,
                     const canele_parts_t* output_parts, const canele_collective_options_t* options,
                     canele_request_t* request) try {
  Collective one("canele_ialltoall", Operation::alltoall, group, options, request);
  std::vector<std::uint64_t> sums_in, sums_out;
  const bool in_place = input == CANELE_IN_PLACE;
  one.require(output_parts != nullptr, "the parts of output must be given");
  one.require(input_parts != nullptr || in_place, "the parts of input must be given");
  if (one.well()) {
    collectives::Call& call = one.call;
    call.output = one.blocks_of(*output_parts, sums_out);
    if (!in_place) call.input = one.blocks_of(*input_parts, sums_in);
    call.irregular = call.output.lengths != nullptr || call.input.lengths != nullptr;
    one.input(input, in_place ? 0 : one.extent(call.input));
    one.memory(output, one.extent(call.output), "output");
    const std::uint64_t in = in_place ? call.output.length_of(call.rank) : call.input.length_of(call.rank);
    const std::uint64_t out = call.output.length_of(call.rank);
    call.length = out;
    if (in != out) one.wrong(CANELE_EINVAL, both("this position's part of input", in, "that of output", out));
  }
  one.work.output = static_cast<std::byte*>(output);
  return one.begin();
} catch (...) {
  return caught();
}

int canele_ireduce_scatter(canele_group_t* group, const void* input, void* output, size_t count, const size_t* counts,
                           const canele_operator_t* operation, const canele_collective_options_t* options,
                           canele_request_t* request) try {
  Collective one("canele_ireduce_scatter", Operation::reduce_scatter, group, options, request);
  std::vector<std::uint64_t> sums;
  std::vector<std::size_t> lengths;
  one.operation(operation);
  if (one.well()) {
    canele_parts_t parts{one.bytes(count), nullptr, nullptr};
    if (counts != nullptr) {
      for (int r = 0; r < one.call.size; ++r) lengths.push_back(one.bytes(counts[r]));
      parts = {0, lengths.data(), nullptr};
    }
    one.call.input = one.blocks_of(parts, sums);
    one.call.length = one.extent(one.call.input);
    one.input(input, one.call.length);
    one.memory(output, one.call.in_place ? one.call.length : one.call.input.length_of(one.call.rank), "output");
  }
  one.work.output = static_cast<std::byte*>(output);
  return one.begin();
} catch (...) {
  return caught();
}

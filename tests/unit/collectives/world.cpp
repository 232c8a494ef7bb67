// SPDX-License-Identifier: BSD-3-Clause
//
// Cases and their expected results.
#include "tests/unit/collectives/world.hpp"

#include <algorithm>
#include <cstring>

namespace canele::comm::collectives::model {
namespace {

std::size_t index(int position) { return static_cast<std::size_t>(position); }

void add_up(const std::byte* from, std::byte* to, std::size_t bytes, bool) {
  for (std::size_t at = 0; at + 4 <= bytes; at += 4) {
    std::uint32_t a, b;
    std::memcpy(&a, from + at, 4);
    std::memcpy(&b, to + at, 4);
    b += a;
    std::memcpy(to + at, &b, 4);
  }
}

void add_reals(const std::byte* from, std::byte* to, std::size_t bytes, bool from_is_higher) {
  for (std::size_t at = 0; at + 4 <= bytes; at += 4) {
    float a, b;
    std::memcpy(&a, from + at, 4);
    std::memcpy(&b, to + at, 4);
    b = from_is_higher ? b + a : a + b;
    std::memcpy(to + at, &b, 4);
  }
}

/// 12 bits of a, 12 bits of b. Applies the lower one's map first, then the higher one's.
void chain_maps(const std::byte* from, std::byte* to, std::size_t bytes, bool from_is_higher) {
  for (std::size_t at = 0; at + 3 <= bytes; at += 3) {
    std::uint32_t lower = 0, higher = 0;
    std::memcpy(&lower, (from_is_higher ? to : from) + at, 3);
    std::memcpy(&higher, (from_is_higher ? from : to) + at, 3);
    const std::uint32_t a = (lower & 0xfff) * (higher & 0xfff);
    const std::uint32_t b = (higher & 0xfff) * (lower >> 12U) + (higher >> 12U);
    const std::uint32_t both = (a & 0xfff) | (b & 0xfff) << 12U;
    std::memcpy(to + at, &both, 3);
  }
}

}  // namespace

Operator operator_of(Element element) {
  return element == Element::sum ? add_up : element == Element::affine ? chain_maps : add_reals;
}

bool Case::reduces() const {
  return operation == Operation::reduce || operation == Operation::allreduce || operation == Operation::scan ||
         operation == Operation::exscan || operation == Operation::reduce_scatter;
}

std::uint64_t Case::bytes_of_element() const { return !reduces() ? 1 : element == Element::affine ? 3 : 4; }

std::string Case::text() const {
  return std::string(name_of(operation)) + " " + std::string(name_of(choice.algorithm)) + ", " + std::to_string(size) +
         " ranks, root " + std::to_string(root) + ", count " + std::to_string(count) + ", radix " +
         std::to_string(choice.radix) + ", segment " + std::to_string(choice.segment) + ", inflight_limit " +
         std::to_string(choice.inflight_limit) + (in_place ? ", in place" : "") +
         (reduces() ? ", element " + std::to_string(static_cast<int>(element)) : "") + ", shape " +
         std::to_string(static_cast<int>(shape));
}

World::World(const Case& what, std::uint64_t seed)
    : case_(what),
      dice_(seed),
      calls_(index(what.size)),
      ranks_(index(what.size)),
      operands_(index(what.size)),
      inputs_(index(what.size)),
      outputs_(index(what.size)),
      expected_(index(what.size)) {
  for (int rank = 0; rank < what.size; ++rank) {
    Call& call = calls_[index(rank)];
    call.operation = what.operation;
    call.size = what.size;
    call.rank = rank;
    call.root = what.root;
    call.element = what.bytes_of_element();
    call.commutes = what.element != Element::affine;
    call.in_place = in_place_on(rank);
    call.length = what.count * call.element;
  }
  make_arguments();
  expect();
  for (int rank = 0; rank < what.size; ++rank) ranks_[index(rank)].schedule = schedule_of(call(rank), what.choice);
}

bool World::in_place_on(int rank) const {
  if (!case_.in_place) return false;
  switch (case_.operation) {
    case Operation::reduce:
    case Operation::gather:
    case Operation::scatter:
      return rank == case_.root;
    case Operation::scan:
    case Operation::exscan:
      return rank % 3 != 1;  // each rank decides for itself
    case Operation::bcast:
    case Operation::barrier:
      return false;
    default:
      return true;
  }
}

/// Returns the length of the block that position `from` has for position `to`, or for all. In place, all-to-all is
/// symmetric.
std::uint64_t World::block_bytes(int from, int to) const {
  const std::uint64_t element = case_.bytes_of_element();
  if (case_.equal_blocks()) return case_.count * element;
  const bool between = case_.operation == Operation::alltoall;
  const int salt = !between ? to : case_.in_place ? from * to + from + to : 3 * from + 5 * to;
  return case_.count * element * static_cast<std::uint64_t>((salt * 7 + 3) % 5) / 2 / element * element;
}

/// Places blocks of these lengths, by the case's shape.
void World::place(Lengths& all, Blocks& blocks) {
  const std::size_t n = all.lengths.size();
  if (case_.equal_blocks()) {
    blocks.length = case_.count * case_.bytes_of_element();
  } else {
    blocks.lengths = all.lengths.data();
  }
  if (case_.shape == Shape::equal) {
    all.end = blocks.length * n;
    return;
  }
  if (case_.shape == Shape::unequal || case_.operation == Operation::reduce_scatter) {
    all.sums.assign(n, 0);
    for (std::size_t block = 0; block < n; ++block) {
      all.sums[block] = all.end;
      all.end += all.lengths[block];
    }
    blocks.sums = all.sums.data();
    return;
  }
  std::vector<std::size_t> order(n);
  for (std::size_t block = 0; block < n; ++block) order[block] = block;
  for (std::size_t block = n; block > 1; --block) std::swap(order[block - 1], order[dice_.below(block)]);
  all.offsets.resize(n);
  for (const std::size_t block : order) {
    all.end += dice_.below(3) == 0 ? 5 : 0;
    all.offsets[block] = all.end;
    all.end += all.lengths[block];
  }
  blocks.offsets = all.offsets.data();
}

World::Bytes World::rubbish(std::uint64_t bytes) {
  Bytes result(bytes);
  dice_.fill(result.data(), result.size());
  return result;
}

World::Bytes World::block_of(const Bytes& memory, const Blocks& blocks, int position) const {
  const auto begin = memory.begin() + static_cast<std::ptrdiff_t>(blocks.offset_of(position));
  return {begin, begin + static_cast<std::ptrdiff_t>(blocks.length_of(position))};
}

void World::make_arguments() {
  for (int rank = 0; rank < case_.size; ++rank) {
    switch (case_.operation) {
      case Operation::barrier:
        break;
      case Operation::bcast:
        ranks_[index(rank)].output = operands_[index(rank)] = rubbish(call(rank).length);
        break;
      case Operation::gather:
      case Operation::scatter:
        make_rooted(rank);
        break;
      case Operation::allgather:
      case Operation::alltoall:
        make_among_all(rank);
        break;
      default:
        make_reduction(rank);
    }
  }
}

void World::make_reduction(int rank) {
  Rank& own = ranks_[index(rank)];
  Call& to = calls_[index(rank)];
  std::uint64_t given = to.length, result = to.length;
  if (case_.operation == Operation::reduce_scatter) {
    for (int block = 0; block < case_.size; ++block) inputs_[index(rank)].lengths.push_back(block_bytes(rank, block));
    place(inputs_[index(rank)], to.input);
    given = inputs_[index(rank)].end;
    result = to.input.length_of(rank);
  }
  if (case_.operation == Operation::reduce && rank != case_.root) result = 0;
  operands_[index(rank)] = rubbish(given);
  if (case_.element == Element::real) {
    for (std::uint64_t at = 0; at < given; at += 4) {
      const float value = static_cast<float>(dice_.below(1U << 20U)) / (1.0F + static_cast<float>(dice_.below(999)));
      std::memcpy(operands_[index(rank)].data() + at, &value, 4);
    }
  }
  (to.in_place ? own.output : own.input) = operands_[index(rank)];
  if (!to.in_place) own.output = rubbish(result);
}

void World::make_rooted(int rank) {
  Rank& own = ranks_[index(rank)];
  Call& to = calls_[index(rank)];
  const bool gathers = case_.operation == Operation::gather;
  to.irregular = !case_.equal_blocks();
  to.length = block_bytes(rank, rank);
  if (gathers) operands_[index(rank)] = rubbish(to.length);
  if (rank == case_.root) {
    Lengths& all = gathers ? outputs_[index(rank)] : inputs_[index(rank)];
    for (int block = 0; block < case_.size; ++block) all.lengths.push_back(block_bytes(block, block));
    place(all, gathers ? to.output : to.input);
    (gathers ? own.output : own.input) = rubbish(all.end);
    if (!gathers) operands_[index(rank)] = own.input;
  }
  if (gathers && to.in_place) {
    std::copy(operands_[index(rank)].begin(), operands_[index(rank)].end(),
              own.output.begin() + static_cast<std::ptrdiff_t>(to.output.offset_of(rank)));
  } else if (gathers) {
    own.input = operands_[index(rank)];
  } else if (!to.in_place) {
    own.output = rubbish(to.length);
  }
}

void World::make_among_all(int rank) {
  Rank& own = ranks_[index(rank)];
  Call& to = calls_[index(rank)];
  const bool gathers = case_.operation == Operation::allgather;
  Lengths& out = outputs_[index(rank)];
  for (int block = 0; block < case_.size; ++block) out.lengths.push_back(block_bytes(block, gathers ? block : rank));
  place(out, to.output);
  own.output = rubbish(out.end);
  if (gathers) {
    operands_[index(rank)] = to.in_place ? block_of(own.output, to.output, rank) : rubbish(block_bytes(rank, rank));
    if (!to.in_place) own.input = operands_[index(rank)];
    return;
  }
  if (to.in_place) {
    operands_[index(rank)] = own.output;
    return;
  }
  Lengths& in = inputs_[index(rank)];
  for (int block = 0; block < case_.size; ++block) in.lengths.push_back(block_bytes(rank, block));
  place(in, to.input);
  own.input = operands_[index(rank)] = rubbish(in.end);
}

/// Returns input of 0 op … op input of `end` - 1.
const World::Bytes& World::reduced(int end) {
  if (reduced_.empty()) reduced_.push_back(operands_[0]);
  while (reduced_.size() < index(end)) {
    Bytes next = reduced_.back();
    operator_of(case_.element)(operands_[reduced_.size()].data(), next.data(), next.size(), true);
    reduced_.push_back(std::move(next));
  }
  return reduced_[index(end) - 1];
}

void World::set(int rank, std::uint64_t at, const Bytes& bytes) {
  Bytes& memory = expected_[index(rank)];
  if (at + bytes.size() > memory.size()) memory.resize(at + bytes.size());  // shows as a difference
  std::copy(bytes.begin(), bytes.end(), memory.begin() + static_cast<std::ptrdiff_t>(at));
}

void World::expect() {
  for (int rank = 0; rank < case_.size; ++rank) {
    expected_[index(rank)] = ranks_[index(rank)].output;
    case_.reduces() ? expect_reduction(rank) : expect_moved(rank);
  }
}

void World::expect_reduction(int rank) {
  switch (case_.operation) {
    case Operation::scan:
      return set(rank, 0, reduced(rank + 1));
    case Operation::exscan:
      if (rank > 0) set(rank, 0, reduced(rank));
      return;
    case Operation::reduce_scatter:
      return set(rank, 0, block_of(reduced(case_.size), call(rank).input, rank));
    case Operation::reduce:
      if (rank != case_.root) return;
      [[fallthrough]];
    default:
      return set(rank, 0, reduced(case_.size));
  }
}

void World::expect_moved(int rank) {
  const Call& to = call(rank);
  switch (case_.operation) {
    case Operation::bcast:
      return set(rank, 0, operands_[index(case_.root)]);
    case Operation::scatter:
      if (!to.in_place) {
        const Call& root = call(case_.root);
        // The root's arguments may not have been made yet when a lower rank asks for them: expect() comes after all of
        // them.
        set(rank, 0, block_of(operands_[index(case_.root)], root.input, rank));
      }
      return;
    case Operation::gather:
      if (rank != case_.root) return;
      [[fallthrough]];
    case Operation::allgather:
      for (int block = 0; block < case_.size; ++block) set(rank, to.output.offset_of(block), operands_[index(block)]);
      return;
    case Operation::alltoall:
      for (int block = 0; block < case_.size; ++block) {
        const Call& from = call(block);
        set(rank, to.output.offset_of(block),
            block_of(operands_[index(block)], from.in_place ? from.output : from.input, rank));
      }
      return;
    default:
      return;
  }
}

std::string World::run(std::uint64_t seed, int slow_rank, StepId slow) {
  std::vector<Bytes> inputs;
  for (const Rank& rank : ranks_) inputs.push_back(rank.input);
  Model model(ranks_, operator_of(case_.element), seed, slow_rank, slow);
  const std::string wrong = model.run();
  seen_ = model.seen();
  if (!wrong.empty()) return wrong;
  for (int rank = 0; rank < case_.size; ++rank) {
    const Rank& own = ranks_[index(rank)];
    if (own.input != inputs[index(rank)]) return "rank " + std::to_string(rank) + ": its input has changed";
    // Sums of reals depend on the order of additions: tests compare them with each other.
    if (case_.element == Element::real) continue;
    if (own.output == expected_[index(rank)]) continue;
    const std::size_t most = std::min(own.output.size(), expected_[index(rank)].size());
    std::size_t at = 0;
    while (at < most && own.output[at] == expected_[index(rank)][at]) ++at;
    return "rank " + std::to_string(rank) + ": wrong from byte " + std::to_string(at) + " of " +
           std::to_string(own.output.size()) + " on";
  }
  return "";
}

std::uint64_t World::digest() const {
  std::uint64_t result = 14695981039346656037U;
  for (const Rank& rank : ranks_) {
    for (const std::byte byte : rank.output) result = (result ^ static_cast<std::uint64_t>(byte)) * 1099511628211U;
  }
  return result;
}

}  // namespace canele::comm::collectives::model

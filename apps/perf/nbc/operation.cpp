// SPDX-License-Identifier: BSD-3-Clause
//
// Fills and checks the memory of collectives.
#include "operation.hpp"

namespace canele::perf::nbc {
namespace {

constexpr std::size_t period = 13;  // not a divisor of a power of two: swapped blocks are detected

/// Returns element i of what rank `from` contributes.
double value(std::size_t from, std::size_t i) { return static_cast<double>(from + i % period + 1); }

/// Number of blocks of input and of output.
struct BlockCounts {
  std::size_t in, out;
};

BlockCounts block_counts_of(Operation operation, std::size_t ranks) {
  switch (operation) {
    case Operation::barrier:
      return {0, 0};
    case Operation::bcast:
      return {0, 1};
    case Operation::reduce:
    case Operation::allreduce:
      return {1, 1};
    case Operation::allgather:
      return {1, ranks};
    case Operation::alltoall:
      return {ranks, ranks};
  }
  return {0, 0};
}

}  // namespace

const char* name_of(Operation operation) {
  switch (operation) {
    case Operation::barrier:
      return "barrier";
    case Operation::bcast:
      return "bcast";
    case Operation::reduce:
      return "reduce";
    case Operation::allreduce:
      return "allreduce";
    case Operation::allgather:
      return "allgather";
    case Operation::alltoall:
      return "alltoall";
  }
  return "";
}

Operation operation_of(std::string_view name) {
  for (const Operation one : all_operations) {
    if (name == name_of(one)) return one;
  }
  return Operation::barrier;
}

std::uint64_t Buffers::needed(Operation operation, std::uint64_t size, int ranks) {
  const BlockCounts blocks = block_counts_of(operation, static_cast<std::size_t>(ranks));
  return (blocks.in + blocks.out) * size;
}

Call Buffers::prepare(Operation operation, std::uint64_t size, bool afresh) {
  const std::size_t count = size / sizeof(double);
  if (!afresh && last_.operation == operation && last_.count == count) return last_;
  const BlockCounts blocks = block_counts_of(operation, ranks_);
  input_.resize(blocks.in * count);
  output_.assign(blocks.out * count, -1);
  last_ = {operation, count, input_.data(), output_.data()};
  for (std::size_t block = 0; block < blocks.in; ++block) {
    const double shift = operation == Operation::alltoall ? static_cast<double>(block) : 0;  // by the rank that gets it
    for (std::size_t i = 0; i < count; ++i) input_[block * count + i] = value(rank_, i) + shift;
  }
  if (operation == Operation::bcast && rank_ == 0) {
    for (std::size_t i = 0; i < count; ++i) output_[i] = value(0, i);
  }
  return last_;
}

double Buffers::wanted(const Call& call, std::size_t block, std::size_t i) const {
  const double ranks = static_cast<double>(ranks_);
  switch (call.operation) {
    case Operation::barrier:
    case Operation::bcast:
      return value(0, i);
    case Operation::reduce:
    case Operation::allreduce:
      return ranks * value(0, i) + ranks * (ranks - 1) / 2;
    case Operation::allgather:
      return value(block, i);
    case Operation::alltoall:
      return value(block, i) + static_cast<double>(rank_);
  }
  return 0;
}

std::string Buffers::check(const Call& call) const {
  if (call.operation == Operation::reduce && rank_ != 0) return "";
  const std::size_t blocks = block_counts_of(call.operation, ranks_).out;
  for (std::size_t block = 0; block < blocks; ++block) {
    for (std::size_t i = 0; i < call.count; ++i) {
      const double found = call.output[block * call.count + i], right = wanted(call, block, i);
      if (found == right) continue;
      return std::string(name_of(call.operation)) + " of " + std::to_string(call.count) + " doubles: element " +
             std::to_string(i) + " of block " + std::to_string(block) + " is " + std::to_string(found) + ", not " +
             std::to_string(right);
    }
  }
  return "";
}

}  // namespace canele::perf::nbc

// SPDX-License-Identifier: BSD-3-Clause
//
// Fills and checks the memory of collectives.
#include "operation.hpp"

namespace canele::perf::nbc {
namespace {

constexpr std::size_t period = 13;  // not a divisor of a power of two: swapped parts are detected

/// Returns element i of what rank `from` contributes.
double value(std::size_t from, std::size_t i) { return static_cast<double>(from + i % period + 1); }

/// Number of parts of input and of output.
struct Parts {
  std::size_t in, out;
};

Parts parts_of(Operation operation, std::size_t ranks) {
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
  const Parts parts = parts_of(operation, static_cast<std::size_t>(ranks));
  return (parts.in + parts.out) * size;
}

Call Buffers::prepare(Operation operation, std::uint64_t size, bool afresh) {
  const std::size_t count = size / sizeof(double);
  if (!afresh && last_.operation == operation && last_.count == count) return last_;
  const Parts parts = parts_of(operation, ranks_);
  input_.resize(parts.in * count);
  output_.assign(parts.out * count, -1);
  last_ = {operation, count, input_.data(), output_.data()};
  for (std::size_t part = 0; part < parts.in; ++part) {
    const double shift = operation == Operation::alltoall ? static_cast<double>(part) : 0;  // by the rank that gets it
    for (std::size_t i = 0; i < count; ++i) input_[part * count + i] = value(rank_, i) + shift;
  }
  if (operation == Operation::bcast && rank_ == 0) {
    for (std::size_t i = 0; i < count; ++i) output_[i] = value(0, i);
  }
  return last_;
}

double Buffers::wanted(const Call& call, std::size_t part, std::size_t i) const {
  const double ranks = static_cast<double>(ranks_);
  switch (call.operation) {
    case Operation::barrier:
    case Operation::bcast:
      return value(0, i);
    case Operation::reduce:
    case Operation::allreduce:
      return ranks * value(0, i) + ranks * (ranks - 1) / 2;
    case Operation::allgather:
      return value(part, i);
    case Operation::alltoall:
      return value(part, i) + static_cast<double>(rank_);
  }
  return 0;
}

std::string Buffers::check(const Call& call) const {
  if (call.operation == Operation::reduce && rank_ != 0) return "";
  const std::size_t parts = parts_of(call.operation, ranks_).out;
  for (std::size_t part = 0; part < parts; ++part) {
    for (std::size_t i = 0; i < call.count; ++i) {
      const double found = call.output[part * call.count + i], right = wanted(call, part, i);
      if (found == right) continue;
      return std::string(name_of(call.operation)) + " of " + std::to_string(call.count) + " doubles: element " +
             std::to_string(i) + " of part " + std::to_string(part) + " is " + std::to_string(found) + ", not " +
             std::to_string(right);
    }
  }
  return "";
}

}  // namespace canele::perf::nbc

// SPDX-License-Identifier: BSD-3-Clause
//
// Operation: which collective, on which memory, and the expected result. One thread.
//
// All of them carry doubles that are small whole numbers, so sums are exact and every element can be checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace canele::perf::nbc {

enum class Operation : std::uint64_t { barrier, bcast, reduce, allreduce, allgather, alltoall };

constexpr Operation all_operations[] = {Operation::barrier,   Operation::bcast,     Operation::reduce,
                                        Operation::allreduce, Operation::allgather, Operation::alltoall};

/// Returns "bcast" and so on.
const char* name_of(Operation operation);
/// Returns the operation with one of the names above.
Operation operation_of(std::string_view name);

/// A collective to be started: `count` doubles in a block. The root is rank 0; bcast uses output only.
struct Call {
  Operation operation;
  std::size_t count;
  const double* input;
  double* output;
};

/// The memory of one rank.
class Buffers {
 public:
  Buffers(int rank, int ranks) : rank_(static_cast<std::size_t>(rank)), ranks_(static_cast<std::size_t>(ranks)) {}

  /// Returns the bytes that a rank needs for blocks of `size` bytes.
  static std::uint64_t needed(Operation operation, std::uint64_t size, int ranks);

  /// Prepares memory for blocks of `size` bytes (a multiple of 8). Fills it again if the collective differs from the
  /// last one, or if `afresh`: the memory then holds no results.
  Call prepare(Operation operation, std::uint64_t size, bool afresh);
  /// Returns what is wrong with the results; empty: nothing.
  std::string check(const Call& call) const;

 private:
  double wanted(const Call& call, std::size_t block, std::size_t i) const;

  std::size_t rank_, ranks_;
  std::vector<double> input_, output_;
  Call last_{};
};

}  // namespace canele::perf::nbc

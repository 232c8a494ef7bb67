// SPDX-License-Identifier: BSD-3-Clause
//
// A case: one collective of a group, with its arguments on every rank, their memory, and its expected result. One
// thread.
//
// The expected result is computed by the definition of the operation, rank by rank, and compared with the whole output:
// memory that an operation must not touch is unchanged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/collectives/algorithms/algorithms.hpp"
#include "tests/unit/collectives/model.hpp"

namespace canele::comm::collectives::model {

inline constexpr Operation every_operation[] = {Operation::barrier,   Operation::bcast,    Operation::reduce,
                                                Operation::allreduce, Operation::gather,   Operation::scatter,
                                                Operation::allgather, Operation::alltoall, Operation::reduce_scatter,
                                                Operation::scan,      Operation::exscan};
inline constexpr int last_algorithm = static_cast<int>(Algorithm::halving_doubling);  ///< they begin with 1

enum class Shape : std::uint8_t {
  equal,    ///< blocks of one length, one after the other.
  spread,   ///< of one length, in an order of each rank's own, with gaps.
  unequal,  ///< with lengths of their own, some of them 0
  apart     ///< with lengths of their own, and spread
};

enum class Element : std::uint8_t {
  sum,     ///< 4 bytes, added up
  affine,  ///< 3 bytes, x -> ax + b, one after the other: associative, does not commute, uses every byte
  real     ///< a float
};

struct Case {
  Operation operation = Operation::barrier;
  Choice choice;
  int size = 1, root = 0;
  std::uint64_t count = 1;  ///< elements: of the buffer, or about so many of each block
  bool in_place = false;
  Element element = Element::sum;
  Shape shape = Shape::equal;

  bool reduces() const;
  bool equal_blocks() const { return shape == Shape::equal || shape == Shape::spread; }
  std::uint64_t bytes_of_element() const;
  std::string text() const;
};

class World {
 public:
  World(const Case& what, std::uint64_t seed);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// The call from which the schedule is made. Valid as long as the world.
  const Call& call(int rank) const { return calls_[static_cast<std::size_t>(rank)]; }
  std::vector<Rank>& ranks() { return ranks_; }
  /// Runs all ranks in an order of `seed`. Returns "" or what is wrong. About the slow step: see Model.
  std::string run(std::uint64_t seed, int slow_rank = -1, StepId slow = no_step);
  const Seen& seen() const { return seen_; }
  std::uint64_t digest() const;  ///< of all outputs

 private:
  using Bytes = std::vector<std::byte>;
  struct Lengths {
    std::vector<std::size_t> lengths, offsets;
    std::vector<std::uint64_t> sums;
    std::size_t end = 0;
  };

  bool in_place_on(int rank) const;
  std::uint64_t block_bytes(int from, int to) const;
  void place(Lengths& lengths, Blocks& blocks);
  Bytes rubbish(std::uint64_t bytes);
  const Bytes& reduced(int end);
  void set(int rank, std::uint64_t at, const Bytes& bytes);
  Bytes block_of(const Bytes& memory, const Blocks& blocks, int position) const;
  void make_arguments();
  void make_reduction(int rank);
  void make_rooted(int rank);
  void make_among_all(int rank);
  void expect();
  void expect_reduction(int rank);
  void expect_moved(int rank);

  Case case_;
  Dice dice_;
  std::vector<Call> calls_;
  std::vector<Rank> ranks_;
  std::vector<Bytes> operands_;  // what each rank gives, in whichever buffer it is
  std::vector<Lengths> inputs_, outputs_;
  std::vector<Bytes> expected_;
  std::vector<Bytes> reduced_;  // by the number of operands
  Seen seen_;
};

/// Returns the operator of a case's element.
Operator operator_of(Element element);

}  // namespace canele::comm::collectives::model

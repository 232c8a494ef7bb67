// SPDX-License-Identifier: BSD-3-Clause
//
// Every algorithm of every operation, on groups of 1 to 64 ranks, with any root, in place, with lengths of all kinds.
// The result is that of the definition, in every order in which its messages may come.
//
// Run by ctest, with some orders of each; with CANELE_TEST_DEEP set, many. One thread. An algorithm that is added to
// has() is part of this test at once.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/unit/collectives/world.hpp"

namespace canele::comm::collectives::model {
namespace {

bool deep() { return std::getenv("CANELE_TEST_DEEP") != nullptr; }

// Accesses out of bounds also happen among few ranks, and a sanitizer takes fifteen times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

class Sweep {
 public:
  explicit Sweep(Operation operation) { what_.operation = operation; }

  void run() {
    for (int number = 1; number <= last_algorithm; ++number) {
      const auto algorithm = static_cast<Algorithm>(number);
      if (!has(what_.operation, algorithm)) continue;
      for (const int size : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 31, 32, 33, 63, 64}) {
        if (sanitized && (size > 17 || (size > 9 && size % 2 == 0 && size != 16))) continue;
        what_.size = size;
        what_.choice = {};
        what_.choice.algorithm = algorithm;
        roots();
      }
    }
  }

 private:
  bool rooted() const {
    return what_.operation == Operation::bcast || what_.operation == Operation::reduce ||
           what_.operation == Operation::gather || what_.operation == Operation::scatter;
  }
  bool has_blocks() const {
    return what_.operation == Operation::gather || what_.operation == Operation::scatter ||
           what_.operation == Operation::allgather || what_.operation == Operation::alltoall ||
           what_.operation == Operation::reduce_scatter;
  }

  void roots() {
    for (int root = 0; root < (rooted() ? what_.size : 1); ++root) {
      // Every root of small groups; of larger ones the first, the last, and one between.
      if (what_.size > 6 && root != 0 && root != what_.size - 1 && root != what_.size / 3 && !deep()) continue;
      what_.root = root;
      lengths();
    }
  }

  void lengths() {
    for (const std::uint64_t count : {0, 1, 5, 64, 203}) {
      if (count > 64 && what_.size > 17 && (what_.root != 0 || has_blocks()) && !deep()) continue;
      what_.count = count;
      for (const bool in_place : {false, true}) {
        what_.in_place = in_place;
        elements();
      }
    }
  }

  void elements() {
    for (const Element element : {Element::sum, Element::affine}) {
      if (element == Element::affine && !what_.reduces()) continue;
      if (element == Element::affine && what_.choice.algorithm == Algorithm::ring) continue;  // choose() excludes this
      what_.element = element;
      for (const Shape shape : {Shape::equal, Shape::spread, Shape::unequal, Shape::apart}) {
        if (shape != Shape::equal && !has_blocks()) continue;
        if (what_.operation == Operation::reduce_scatter && (shape == Shape::apart || shape == Shape::spread)) continue;
        const bool only_equal = what_.operation == Operation::alltoall ? what_.choice.algorithm == Algorithm::bruck
                                : rooted()                             ? what_.choice.algorithm != Algorithm::flat
                                                                       : false;
        what_.shape = shape;
        if (only_equal && !what_.equal_blocks()) continue;
        choices();
      }
    }
  }

  /// Tries segments, pieces, radices and limits, each in turn.
  void choices() {
    Choice& choice = what_.choice;
    const Choice plain{choice.algorithm, 0, 0, 0};
    const std::uint64_t segments[] = {0, 7, 100}, pieces[] = {0, 0, 64, 192};
    const std::uint64_t turn = dice_.roll();
    choice = plain;
    choice.segment = segments[turn % 3] * (has_blocks() ? static_cast<std::uint64_t>(what_.size) : 1);
    choice.inflight_limit = static_cast<std::uint32_t>(turn % 4);
    choice.piece = pieces[turn / 32 % 4];
    const std::uint32_t radices[] = {2, 3, 4, 8};
    if (choice.algorithm == Algorithm::k_nomial) choice.radix = radices[turn / 8 % 4];
    if (choice.algorithm == Algorithm::two_phases) choice.radix = turn / 8 % 2 == 0 ? 0 : radices[turn / 16 % 4];
    orders();
  }

  void orders() {
    const int tried = what_.size <= 9 ? 6 : 2;
    for (int order = 0; order < (deep() ? 40 : sanitized ? tried / 2 : tried); ++order) {
      const std::uint64_t seed = ++runs_;
      World world(what_, seed);
      const std::string wrong = world.run(seed);
      ASSERT_EQ(wrong, "") << what_.text() << ", seed " << seed;
    }
  }

  Case what_;
  Dice dice_{1};
  std::uint64_t runs_ = 0;
};

class Algorithms : public testing::TestWithParam<Operation> {};

TEST_P(Algorithms, DoWhatTheOperationSaysInEveryOrder) { Sweep(GetParam()).run(); }

INSTANTIATE_TEST_SUITE_P(Every, Algorithms, testing::ValuesIn(every_operation),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace canele::comm::collectives::model

// SPDX-License-Identifier: BSD-3-Clause
//
// Every operation with every algorithm that it has, over each driver: the result is that of an oracle. One thread.
//
// Operators do not commute, unless an algorithm needs it.
#include "comm/collectives/algorithms/algorithms.hpp"
#include "comm/collectives/override.hpp"
#include "ranks.hpp"

namespace canele::test {
namespace {

namespace collectives = comm::collectives;

struct JobShape {
  const char* driver;
  int size;
};

class Results : public testing::TestWithParam<JobShape> {
 protected:
  Results() : ranks_(job_of(GetParam().driver, GetParam().size)) {}
  /// Varies everything that may vary beside the algorithm.
  void each_variant(Op op, int algorithm) {
    const canele_collective_options_t options = options_of(algorithm);
    unsigned seed = 0;
    for (const std::size_t length : {0u, 1u, 13u, 4096u}) {
      for (unsigned variant = 0; variant < 8; ++variant) {
        Case one{op, ranks_.size(), length};
        one.in_place = (variant & 1) != 0;
        one.irregular = (variant & 2) != 0;
        one.commutes = (variant & 4) != 0;
        one.seed = ++seed;
        one.root = static_cast<int>(seed) % ranks_.size();
        Everywhere all(ranks_, one);
        all.start_all(&options);
        all.finish(std::string(op_names[static_cast<int>(op)]) + ", algorithm " + std::to_string(algorithm) +
                   ", length " + std::to_string(length) + ", variant " + std::to_string(variant));
        if (HasFatalFailure()) return;
      }
    }
  }
  Ranks ranks_;
};
INSTANTIATE_TEST_SUITE_P(Drivers, Results,
                         testing::Values(JobShape{"shm", 1}, JobShape{"shm", 2}, JobShape{"shm", 4}, JobShape{"shm", 5},
                                         JobShape{"tcp", 3}, JobShape{"shm", 8}),
                         [](const auto& one) { return one.param.driver + std::to_string(one.param.size); });

TEST_P(Results, AreThoseOfTheOracleWithEveryAlgorithm) {
  for (int op = 0; op < op_count; ++op) {
    for (int algorithm = 0; algorithm < collectives::algorithms; ++algorithm) {
      const bool there = algorithm == 0 || collectives::has(static_cast<collectives::Operation>(op),
                                                            static_cast<collectives::Algorithm>(algorithm));
      if (there) each_variant(static_cast<Op>(op), algorithm);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Results, OfLongMessagesInSegments) {
  for (const Op op : {Op::bcast, Op::reduce, Op::allreduce, Op::scan}) {
    canele_collective_options_t options{};
    options.struct_size = sizeof options;
    options.segment = 10'000;
    Case one{op, ranks_.size(), 100'000};
    Everywhere all(ranks_, one);
    all.start_all(&options);
    all.finish("segments");
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace canele::test

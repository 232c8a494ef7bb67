// SPDX-License-Identifier: BSD-3-Clause
//
// The C++ layer of job.h: published values and hosts, in a job of one rank.
#include <canele/job.hpp>
#include <string>
#include <vector>

#include "unit/cpp_layer/one_rank.hpp"

namespace canele::test::cpp_layer {
namespace {

class Job : public OneRank {};

TEST_F(Job, ValuesOfAllTypes) {
  const int number = 7;
  const std::vector<double> row = {1, 2, 3};
  canele::publish(engine, "number", canele::one(number));
  canele::publish(engine, "row", row);
  canele::publish(engine, "text", std::string("a temporary"));
  canele::publish(engine, "empty", std::vector<int>());
  canele::exchange(engine);
  EXPECT_EQ(canele::lookup_as<int>(engine, 0, "number"), 7);
  EXPECT_EQ(canele::lookup_as<int>(engine, 0, "nothing"), std::nullopt);
  EXPECT_EQ(code_of([&] { static_cast<void>(canele::lookup_as<char>(engine, 0, "number")); }), CANELE_EINVAL);
  EXPECT_EQ(code_of([&] { static_cast<void>(canele::lookup_as<double>(engine, 0, "number")); }), CANELE_EINVAL);
  EXPECT_EQ(canele::lookup(engine, 0, "row")->size(), 3 * sizeof(double));
  EXPECT_EQ(canele::lookup(engine, 0, "text")->size(), 11u);
  EXPECT_TRUE(canele::lookup(engine, 0, "empty")->empty());
  EXPECT_EQ(canele::lookup(engine, 0, "nothing"), std::nullopt);
}

TEST_F(Job, Deadlines) {
  EXPECT_TRUE(canele::exchange(engine, UINT64_MAX));
  bool ended = false;
  while (!ended) ended = canele::exchange(engine, 0);
}

TEST_F(Job, Hosts) {
  EXPECT_EQ(code_of([&] { static_cast<void>(canele::local_ranks(engine)); }), CANELE_ESTATE);
  EXPECT_EQ(code_of([&] { static_cast<void>(canele::rank_host(engine, 0)); }), CANELE_ESTATE);
  canele::exchange(engine);
  EXPECT_EQ(canele::local_ranks(engine), std::vector<int>{0});
  EXPECT_EQ(canele::rank_host(engine, 0).index, 0);
  EXPECT_NE(canele::rank_host(engine, 0).name, "");
  EXPECT_EQ(code_of([&] { static_cast<void>(canele::rank_host(engine, 1)); }), CANELE_ERANK);
}

TEST_F(Job, ErrorsAreThrown) {
  EXPECT_EQ(code_of([&] { canele::publish(engine, "canele.mine", canele::one(out)); }), CANELE_EINVAL);
  EXPECT_EQ(code_of([&] { static_cast<void>(canele::lookup(engine, 1, "a")); }), CANELE_ERANK);
}

}  // namespace
}  // namespace canele::test::cpp_layer

// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges with neighbours: random graphs over each driver, with several edges between two ranks and edges of a rank
// to itself. Errors of the call. One thread.
#include <random>

#include "ranks.hpp"

namespace canele::test {
namespace {

struct Edge {
  int from, to;
  std::size_t words;
};

/// Returns word i of what edge e carries.
std::uint64_t word(std::size_t e, std::size_t i) { return 1'000'003 * e + i; }

/// One rank's part in the exchange along the edges of a graph.
class Neighbor {
 public:
  Neighbor(const std::vector<Edge>& graph, int rank) {
    for (std::size_t e = 0; e < graph.size(); ++e) {
      const Edge& edge = graph[e];
      if (edge.from == rank) add(edge.to, edge.words, sends_, input_, [&](std::size_t i) { return word(e, i); });
      if (edge.to != rank) continue;
      add(edge.from, edge.words, receives_, output_, [&](std::size_t /*i*/) { return untouched; });
      expected_.push_back(untouched);  // a hole before each part
      for (std::size_t i = 0; i < edge.words; ++i) expected_.push_back(word(e, i));
    }
  }
  void start(canele_group_t* group, const canele_collective_options_t* options = nullptr) {
    ASSERT_EQ(canele_ineighbor_exchange(group, input_.data(), sends_.data(), sends_.size(), output_.data(),
                                        receives_.data(), receives_.size(), options, &request),
              CANELE_OK)
        << canele_error_detail();
    sends_.clear();  // the engine has copied them
    receives_.clear();
  }
  bool is_right() const { return output_ == expected_; }
  canele_request_t request{};

 private:
  static constexpr std::uint64_t untouched = ~std::uint64_t{0};
  template <typename Value>
  static void add(int position, std::size_t words, std::vector<canele_edge_t>& edges, std::vector<std::uint64_t>& data,
                  Value value) {
    data.push_back(untouched);
    edges.push_back({position, data.size() * sizeof(std::uint64_t), words * sizeof(std::uint64_t)});
    for (std::size_t i = 0; i < words; ++i) data.push_back(value(i));
  }
  std::vector<canele_edge_t> sends_, receives_;
  std::vector<std::uint64_t> input_, output_, expected_;
};

struct NeighborJob {
  const char* driver;
  int size;
};

class Neighbors : public testing::TestWithParam<NeighborJob> {
 protected:
  Neighbors() : ranks_(job_of(GetParam().driver, GetParam().size)) {}

  std::vector<Edge> random_graph(unsigned seed, std::size_t longest) const {
    std::mt19937 random(seed);
    const auto under = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    std::vector<Edge> graph(under(8 * static_cast<std::size_t>(ranks_.size())));
    for (Edge& edge : graph) {
      edge.from = static_cast<int>(under(static_cast<std::size_t>(ranks_.size())));
      edge.to = static_cast<int>(under(static_cast<std::size_t>(ranks_.size())));
      edge.words = under(3) == 0 ? 0 : under(longest);
    }
    return graph;
  }
  void exchange(const std::vector<Edge>& graph, const canele_collective_options_t* options, const std::string& what) {
    std::vector<std::unique_ptr<Neighbor>> all;
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      all.push_back(std::make_unique<Neighbor>(graph, rank));
      all.back()->start(ranks_.group(rank), options);
    }
    for (const auto& one : all) {
      ASSERT_TRUE(ranks_.job.until([&] { return comm::request_of(&one->request).finalized(); })) << what;
      ASSERT_EQ(status_of(one->request).error, CANELE_OK) << what;
      ASSERT_TRUE(one->is_right()) << what;
    }
  }
  Ranks ranks_;
};
INSTANTIATE_TEST_SUITE_P(Drivers, Neighbors,
                         testing::Values(NeighborJob{"shm", 1}, NeighborJob{"shm", 2}, NeighborJob{"shm", 5},
                                         NeighborJob{"tcp", 3}, NeighborJob{"shm", 8}),
                         [](const auto& one) { return one.param.driver + std::to_string(one.param.size); });

TEST_P(Neighbors, GetWhatTheEdgesOfARandomGraphCarry) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    canele_collective_options_t options = options_of(seed % 2 == 0 ? CANELE_ALGORITHM_AUTO : CANELE_ALGORITHM_FLAT);
    options.window = static_cast<int>(seed % 3);
    exchange(random_graph(seed, seed % 4 == 3 ? 20'000 : 20), &options, "seed " + std::to_string(seed));
    if (HasFatalFailure()) return;
  }
}

TEST_P(Neighbors, MeetInTheOrderOfTheEdgesAlsoWhereLongOnesComeFirst) {
  std::vector<Edge> graph;
  for (const std::size_t words : {30'000u, 1u, 0u, 500u, 2u}) graph.push_back({0, ranks_.size() - 1, words});
  exchange(graph, nullptr, "long and short");
}

/// Graphs between two ranks that differ in one number each, in turn: more than are kept.
TEST(NeighborSchedules, AreBuiltOnceForTheSameEdges) {
  Ranks ranks(job_of("shm", 2));
  const auto built = [&] { return comm::api::group_of(ranks.group(0)).exchanges.built(); };
  const std::vector<std::vector<Edge>> graphs = {{{0, 1, 3}, {1, 0, 3}}, {{0, 1, 3}, {1, 0, 4}},
                                                 {{0, 1, 4}, {1, 0, 3}}, {{0, 1, 3}},
                                                 {{0, 0, 3}, {1, 0, 3}}, {{1, 0, 3}}};
  const auto exchange = [&](const std::vector<Edge>& graph, int window) {
    canele_collective_options_t options = options_of(CANELE_ALGORITHM_AUTO);
    options.window = window;
    Neighbor here(graph, 0), there(graph, 1);
    here.start(ranks.group(0), &options);
    there.start(ranks.group(1), &options);
    ASSERT_TRUE(ranks.job.until(
        [&] { return comm::request_of(&here.request).finalized() && comm::request_of(&there.request).finalized(); }));
    EXPECT_TRUE(here.is_right() && there.is_right());
  };
  for (int turn = 0; turn < 3; ++turn) {
    for (const auto& graph : graphs) exchange(graph, 0);
  }
  const std::uint64_t all = built();
  EXPECT_EQ(all, 3 * graphs.size());
  for (int turn = 0; turn < 3; ++turn) {
    exchange(graphs[4], 0);
    exchange(graphs[5], 0);
  }
  EXPECT_EQ(built(), all);
  exchange(graphs[5], 1);
  EXPECT_EQ(built(), all + 1);
}

class NeighborCalls : public testing::Test {
 protected:
  int call(const std::vector<canele_edge_t>& sends, const std::vector<canele_edge_t>& receives,
           const canele_collective_options_t* options = nullptr) {
    canele_request_t request{};
    return canele_ineighbor_exchange(ranks_.group(0), in_, sends.data(), sends.size(), out_, receives.data(),
                                     receives.size(), options, &request);
  }
  Ranks ranks_{job_of("shm", 2)};
  char in_[8] = {}, out_[8] = {};
};

TEST_F(NeighborCalls, AreRejectedIfAnArgumentIsWrong) {
  EXPECT_EQ(call({{2, 0, 1}}, {}), CANELE_ERANK);
  EXPECT_EQ(call({}, {{-1, 0, 1}}), CANELE_ERANK);
  EXPECT_EQ(call({{1, SIZE_MAX, 2}}, {}), CANELE_EINVAL) << "the end overflows";
  EXPECT_EQ(call({{0, 0, 1}}, {}), CANELE_EINVAL) << "an edge to itself on one side only";
  EXPECT_EQ(call({{0, 0, 1}}, {{0, 0, 2}}), CANELE_EINVAL) << "of two lengths";
  const canele_collective_options_t bruck = options_of(CANELE_ALGORITHM_BRUCK);
  EXPECT_EQ(call({}, {}, &bruck), CANELE_EINVAL);
  canele_request_t request{};
  canele_group_t* const group = ranks_.group(0);
  const canele_edge_t edge{1, 0, 1};
  EXPECT_EQ(canele_ineighbor_exchange(group, in_, nullptr, 1, out_, nullptr, 0, nullptr, &request), CANELE_EINVAL);
  EXPECT_EQ(canele_ineighbor_exchange(group, nullptr, &edge, 1, out_, nullptr, 0, nullptr, &request), CANELE_EINVAL);
  EXPECT_EQ(canele_ineighbor_exchange(group, in_, nullptr, 0, nullptr, &edge, 1, nullptr, &request), CANELE_EINVAL);
  EXPECT_EQ(canele_ineighbor_exchange(group, CANELE_IN_PLACE, &edge, 1, out_, nullptr, 0, nullptr, &request),
            CANELE_EINVAL);
  EXPECT_EQ(canele_ineighbor_exchange(nullptr, in_, nullptr, 0, out_, nullptr, 0, nullptr, &request), CANELE_EINVAL);
  EXPECT_EQ(canele_ineighbor_exchange(group, in_, &edge, 1, out_, nullptr, 0, nullptr, nullptr), CANELE_EINVAL);
}

}  // namespace
}  // namespace canele::test

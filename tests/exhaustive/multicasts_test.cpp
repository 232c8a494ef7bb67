// SPDX-License-Identifier: BSD-3-Clause
//
// Multicasts of up to six ranks, in every shape, with each rank killed at each moment. Every surviving rank must end,
// and must be told the truth.
//
// ctest runs one moment of 29; tests/run.sh --soak, which sets CANELE_TEST_DEEP, runs all. One thread, with a simulated
// world of its own for each case. A moment is a step of virtual time. The number of moments is counted in a run in
// which no rank dies; the seed makes the order of the steps before the kill the same.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "apps/sim/start_barrier.hpp"
#include "apps/sim/tracked_request.hpp"
#include "apps/sim/world.hpp"

namespace canele::sim {
namespace {

using drivers::sim::Kind;

constexpr int most_ranks = 6;
constexpr std::uint64_t patience_ns = 20'000'000'000, late_ns = 300'000;
constexpr std::uint64_t tag = 9;

struct Case {
  canele_shape shape;
  int ranks;  ///< rank 0 is the root, all others are destinations
  std::size_t size;
  Kind kind;
  bool late;  ///< receives are posted when the message may have come

  std::string text() const {
    return "shape " + std::to_string(shape) + ", " + std::to_string(ranks) + " ranks, " + std::to_string(size) +
           " bytes, " + drivers::sim::name_of(kind) + (late ? ", late receives" : ", early receives");
  }
};

WorldOptions options_of(const Case& one) {
  WorldOptions options;
  options.ranks = one.ranks;
  options.settings = {"CANELE_SPIN=0"};  // most steps would be idle ones, between which a death makes no difference
  Network network;
  network.options.kind = one.kind;
  network.options.max_packet = 16 * 1024;
  options.networks = {network};
  return options;
}

class MulticastWorld {
 public:
  explicit MulticastWorld(const Case& one) : case_(one), world_(options_of(one)), start_(world_.scheduler) {
    const auto ranks = static_cast<std::size_t>(one.ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      ends_.push_back({});
      ends_.back().data.resize(one.size, std::byte{rank == 0 ? std::uint8_t{0xa5} : std::uint8_t{0}});
    }
    outcomes_.assign(ranks - 1, 1);
    world_.start([this](int rank, canele_engine_t* engine) { rank == 0 ? send(engine) : receive(rank, engine); });
  }

  /// Returns the number of steps from the start to the end of the last request.
  std::uint64_t count_steps() {
    begin();
    const std::uint64_t before = world_.timeline.steps();
    EXPECT_TRUE(world_.run_until([this] { return ended_ == case_.ranks; }, patience_ns)) << complaints();
    return world_.timeline.steps() - before;
  }
  /// Kills `victim` after so many steps. Returns "" or what is wrong.
  std::string kill_after(std::uint64_t steps, int victim) {
    begin();
    const std::uint64_t moment = world_.timeline.steps() + steps;
    world_.run_until([&] { return world_.timeline.steps() >= moment; }, patience_ns);
    world_.kill(victim);
    if (!world_.run(world_.timeline.now() + patience_ns)) return "no rest: " + complaints() + world_.wait_graph();
    if (!world_.complaints().empty()) return complaints();
    for (int rank = 1; rank < case_.ranks; ++rank) {
      if (const std::string wrong = judge(rank, victim); !wrong.empty()) return wrong;
    }
    return victim == 0 ? "" : judge_root(victim);
  }

 private:
  struct End {
    canele_request_t request{};
    std::vector<std::byte> data;
    canele_status_t status{};
    bool done = false;
  };

  void begin() {
    world_.run_until([this] { return start_.arrived() == case_.ranks; }, patience_ns);
    start_.open();
  }
  void send(canele_engine_t* engine) {
    canele_session_t* session = nullptr;
    canele_session_open(engine, "multicasts", 0, &session);
    std::vector<int> destinations;
    for (int rank = 1; rank < case_.ranks; ++rank) destinations.push_back(rank);
    start_.pass();
    End& own = ends_[0];
    const canele_data_t data = canele_data_contiguous(own.data.data(), own.data.size());
    canele_multicast_options_t options{};
    options.struct_size = sizeof options;
    options.shape = case_.shape;
    options.outcomes = outcomes_.data();
    canele_imulticast(session, destinations.data(), destinations.size(), tag, &data, &options, &own.request);
    end(own);
  }
  void receive(int rank, canele_engine_t* engine) {
    canele_session_t* session = nullptr;
    canele_session_open(engine, "multicasts", 0, &session);
    End& own = ends_[static_cast<std::size_t>(rank)];
    const auto post = [&] {
      canele_irecv(session, 0, tag, CANELE_TAG_EXACT, own.data.data(), own.data.size(), &own.request);
    };
    if (!case_.late) post();
    start_.pass();
    if (case_.late) {
      world_.pause_for(late_ns);
      post();
    }
    end(own);
  }
  void end(End& own) {
    canele_wait(&own.request, &own.status);
    own.done = true;
    ++ended_;
  }

  /// Checks that a surviving destination has the data, or the root has died.
  std::string judge(int rank, int victim) const {
    if (rank == victim) return "";
    const End& own = ends_[static_cast<std::size_t>(rank)];
    const std::string who = "rank " + std::to_string(rank);
    if (!own.done) return who + " has not ended";
    if (own.status.error == CANELE_OK) return own.data == ends_[0].data ? "" : who + " has other data";
    if (victim != 0) return who + " failed with " + std::to_string(own.status.error) + " though the root lives";
    return own.status.error == CANELE_EPEER ? "" : who + " failed with " + std::to_string(own.status.error);
  }
  /// Checks that the root names the dead rank, if the data has not reached it, and no other rank.
  std::string judge_root(int victim) const {
    if (!ends_[0].done) return "the root has not ended";
    bool all = true;
    for (int rank = 1; rank < case_.ranks; ++rank) {
      const int outcome = outcomes_[static_cast<std::size_t>(rank - 1)];
      all = all && outcome == CANELE_OK;
      if (outcome == CANELE_OK || (rank == victim && outcome == CANELE_EPEER)) continue;
      return "the root says " + std::to_string(outcome) + " of rank " + std::to_string(rank);
    }
    const int error = ends_[0].status.error;
    return error == (all ? CANELE_OK : CANELE_EPEER) ? "" : "the root's request says " + std::to_string(error);
  }
  std::string complaints() const {
    std::string text;
    for (const std::string& one : world_.complaints()) text += one + "; ";
    return text;
  }

  const Case case_;
  std::vector<End> ends_;
  std::vector<int> outcomes_;
  int ended_ = 0;
  World world_;
  StartBarrier start_;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const canele_shape shape :
       {CANELE_SHAPE_FLAT, CANELE_SHAPE_CHAIN, CANELE_SHAPE_BINOMIAL, CANELE_SHAPE_4_NOMIAL}) {
    for (int ranks = 2; ranks <= most_ranks; ++ranks) {
      for (const std::size_t size : {std::size_t{1000}, std::size_t{100'000}}) {
        for (const Kind kind : {Kind::stream, Kind::rma}) {
          for (const bool late : {false, true}) cases.push_back({shape, ranks, size, kind, late});
        }
      }
    }
  }
  return cases;
}

TEST(Multicasts, WithEachRankKilledAtEachMoment) {
  const char* const deep = std::getenv("CANELE_TEST_DEEP");
  const std::uint64_t stride = deep != nullptr && *deep != '0' ? 1 : 29;
  std::uint64_t worlds = 0, phase = 0;
  for (const Case& one : all_cases()) {
    const std::uint64_t steps = MulticastWorld(one).count_steps();
    ASSERT_GT(steps, 10u) << one.text();
    for (int victim = 0; victim < one.ranks; ++victim) {
      for (std::uint64_t moment = phase++ % stride; moment <= steps; moment += stride) {
        MulticastWorld world(one);
        const std::string wrong = world.kill_after(moment, victim);
        ++worlds;
        ASSERT_EQ(wrong, "") << "world " << worlds << ": " << one.text() << ", rank " << victim << " killed at step "
                             << moment << " of " << steps;
      }
    }
  }
  std::printf("%llu worlds\n", static_cast<unsigned long long>(worlds));
}

}  // namespace
}  // namespace canele::sim

// SPDX-License-Identifier: BSD-3-Clause
//
// The split of a large transfer over rails: which rail takes what, and when all of it has arrived. Transfers run on
// model rails with a rate and a latency; RailPace measures them as in an engine.
#include "strategies/split.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "comm/state/rail_pace.hpp"

namespace canele::strategies {
namespace {

constexpr std::uint64_t kib = 1024, mib = 1024 * kib;

std::string text(std::uint64_t rest, const std::vector<RailLoad>& rails) {
  std::string words = std::to_string(rest) + " bytes";
  for (const RailLoad& rail : rails) {
    words += ", " + std::to_string(rail.bytes_per_second) + " B/s " + std::to_string(rail.latency_ns) + " ns " +
             std::to_string(rail.ahead) + (rail.usable ? " ahead" : " ahead, not usable");
  }
  return words;
}

/// Every combination of these facts of three rails.
template <typename Visit>
void each_world(const Visit& visit) {
  std::vector<RailLoad> kinds;
  for (const double rate : {1e6, 50e6, 100e6, 5e9}) {
    for (const std::uint64_t latency : {1'000, 5'000'000}) {
      for (const std::uint64_t ahead : {std::uint64_t{0}, 64 * kib, 8 * mib})
        kinds.push_back({rate, latency, ahead, true});
    }
  }
  kinds.push_back({1e9, 0, 0, false});
  for (const RailLoad& a : kinds) {
    for (const RailLoad& b : kinds) {
      for (const RailLoad& c : kinds) {
        if (!a.usable && !b.usable && !c.usable) continue;
        for (const std::uint64_t rest :
             {std::uint64_t{1}, 20 * kib, 64 * kib, 65 * kib, 300 * kib, 8 * mib, 4096 * mib})
          visit(rest, std::vector<RailLoad>{a, b, c});
      }
    }
  }
}

TEST(Split, SomeRailTakesSomethingAndNoneTakesMoreThanThereIs) {
  std::uint64_t worlds = 0;
  each_world([&](std::uint64_t rest, const std::vector<RailLoad>& rails) {
    ++worlds;
    int takers = 0;
    for (std::size_t i = 0; i < rails.size(); ++i) {
      const std::uint64_t taken = split::slice(rest, rails, i);
      ASSERT_LE(taken, rest) << text(rest, rails);
      ASSERT_TRUE(taken == 0 || rails[i].usable) << text(rest, rails);
      ASSERT_LE(taken, split::longest_slice + split::shortest_slice) << text(rest, rails);
      takers += taken != 0;
    }
    ASSERT_GE(takers, 1) << text(rest, rails);
  });
  RecordProperty("worlds", std::to_string(worlds));
}

TEST(Split, ARailThatHasEndedItsShareBeforeTheOthersTakesNoPartOfTheEnd) {
  const std::vector<RailLoad> rails{{100e6, 1000, 0, true}, {25e6, 1000, 1 * mib, true}};
  EXPECT_GT(split::slice(256 * kib, rails, 0), 0u);
  EXPECT_EQ(split::slice(256 * kib, rails, 1), 0u) << "what it has already ends after the others have brought the rest";
}

TEST(Split, ShortTransfersAreNotSplit) {
  const std::vector<RailLoad> rails{{1e9, 10'000, 0, true}, {1e9, 10'000, 0, true}};
  EXPECT_EQ(split::slice(16 * kib, rails, 0), 16 * kib);
  EXPECT_EQ(split::slice(16 * kib, rails, 1), 0u);
}

TEST(Split, AMuchSlowerRailCarriesNothing) {
  const std::vector<RailLoad> rails{{1e9, 10'000, 0, true}, {50e6, 10'000, 0, true}};
  EXPECT_EQ(split::slice(1024 * mib, rails, 1), 0u);
}

TEST(Split, EqualRailsEndTogether) {
  const std::vector<RailLoad> rails{{1e9, 0, 0, true}, {1e9, 0, 0, true}};
  EXPECT_DOUBLE_EQ(split::finish_ns(2'000'000, rails, 3), 1e6);
  EXPECT_EQ(split::slice(400'000, rails, 0), 200'000u) << "the other rail brings the second half meanwhile";
  const std::vector<RailLoad> loaded{{1e9, 0, 1'000'000, true}, {1e9, 0, 0, true}};
  EXPECT_DOUBLE_EQ(split::finish_ns(1'000'000, loaded, 3), 1e6);
}

// ---- transfers on model rails ---------------------------------------------------------------------------------------

/// A rail of the model: what it has arrives in order at its rate, after its latency.
struct ModelRail {
  double bytes_per_second;
  std::uint64_t latency_ns;
  double slower_at_ns = INFINITY, slower_by = 1;  ///< from that time on it has this part of its rate
  comm::RailPace sender{}, receiver{};
  double free_at_ns = 0;

  double rate_at(double ns) const { return ns >= slower_at_ns ? bytes_per_second * slower_by : bytes_per_second; }
  double alone_ns(std::uint64_t bytes) const {
    return static_cast<double>(latency_ns) + static_cast<double>(bytes) * 1e9 / bytes_per_second;
  }
};

/// Runs a transfer, and returns when its last byte has arrived. `declared`: the rate that each rail is thought to have
/// before it is measured.
class Transfer {
 public:
  Transfer(std::vector<ModelRail>& rails, double declared) : rails_(rails), declared_(declared) {
    for (ModelRail& rail : rails) rail.sender.note_round_trip(2 * rail.latency_ns);
  }

  double run(std::uint64_t bytes) {
    rest_ = bytes;
    feed(now_);
    const double begun = now_;
    double end = now_;
    while (!events_.empty()) {
      const auto [at, event] = *events_.begin();
      events_.erase(events_.begin());
      now_ = at;
      ModelRail& rail = rails_[event.rail];
      if (event.bytes != 0) {
        end = std::max(end, at);
        const bool due = rail.receiver.arrived(event.bytes);
        arrived_ += event.bytes;
        if (due || arrived_ == bytes) report(at);
      } else {
        EXPECT_TRUE(rail.sender.report(event.total, static_cast<std::uint64_t>(at)));
        feed(at);
      }
    }
    EXPECT_EQ(arrived_, bytes);
    arrived_ = 0;
    return end - begun;
  }

 private:
  struct Event {
    std::size_t rail;
    std::uint64_t bytes = 0, total = 0;  ///< that arrive; or of a report, if none do
  };

  void report(double at) {
    for (std::size_t i = 0; i < rails_.size(); ++i) {
      if (!rails_[i].receiver.has_unreported()) continue;
      const auto latency = static_cast<double>(rails_[i].latency_ns);
      events_.emplace(at + latency, Event{i, 0, rails_[i].receiver.take_report()});
    }
  }
  void feed(double at) {
    const auto now = static_cast<std::uint64_t>(at);
    for (bool fed = true; fed;) {
      fed = false;
      for (std::size_t i = 0; i < rails_.size(); ++i) {
        while (rest_ != 0 && rails_[i].sender.has_room(now) && feed_one(i, at)) fed = true;
      }
    }
  }
  bool feed_one(std::size_t index, double at) {
    const auto now = static_cast<std::uint64_t>(at);
    std::vector<RailLoad> loads;
    for (const ModelRail& rail : rails_) {
      loads.push_back({rail.sender.bytes_per_second(declared_, now), rail.latency_ns, rail.sender.ahead(), true});
    }
    const std::uint64_t taken = split::slice(rest_, loads, index);
    if (taken == 0) return false;
    rest_ -= taken;
    rails_[index].sender.hand(taken, now);
    carry(index, taken, at);
    return true;
  }
  void carry(std::size_t index, std::uint64_t bytes, double at) {
    constexpr std::uint64_t piece = 16 * kib;
    ModelRail& rail = rails_[index];
    rail.free_at_ns = std::max(rail.free_at_ns, at);
    while (bytes != 0) {
      const std::uint64_t some = std::min(bytes, piece);
      rail.free_at_ns += static_cast<double>(some) * 1e9 / rail.rate_at(rail.free_at_ns);
      events_.emplace(rail.free_at_ns + static_cast<double>(rail.latency_ns), Event{index, some, 0});
      bytes -= some;
    }
  }

  std::vector<ModelRail>& rails_;
  double declared_, now_ = 1;
  std::uint64_t rest_ = 0, arrived_ = 0;
  std::multimap<double, Event> events_;
};

double best_alone_ns(const std::vector<ModelRail>& rails, std::uint64_t bytes) {
  double best = INFINITY;
  for (const ModelRail& rail : rails) best = std::min(best, rail.alone_ns(bytes));
  return best;
}

double together_ns(const std::vector<ModelRail>& rails, std::uint64_t bytes) {
  std::vector<RailLoad> loads;
  std::uint64_t all = 0;
  for (const ModelRail& rail : rails) {
    all |= std::uint64_t{1} << loads.size();
    loads.push_back({rail.bytes_per_second, rail.latency_ns, 0, true});
  }
  return std::min(split::finish_ns(bytes, loads, all), best_alone_ns(rails, bytes));
}

std::vector<ModelRail> pair(double first, std::uint64_t first_ns, double second, std::uint64_t second_ns) {
  std::vector<ModelRail> rails;
  rails.push_back({first, first_ns});
  rails.push_back({second, second_ns});
  return rails;
}

TEST(Split, PairsOfRailsBringATransferAlmostAsSoonAsTheIdealSplit) {
  for (const double second : {50e6, 25e6, 12.5e6}) {
    for (const std::uint64_t latency : {20'000, 100'000, 1'000'000}) {
      std::vector<ModelRail> rails = pair(50e6, 20'000, second, latency);
      Transfer transfers(rails, 1e9);
      transfers.run(64 * mib);  // their rates are known from then on
      for (const std::uint64_t bytes : {4 * mib, 16 * mib, 64 * mib}) {
        const double ns = transfers.run(bytes);
        const double slice_ns = static_cast<double>(split::shortest_slice) * 1e9 / second;  // no rail can divide it
        EXPECT_LE(ns, 1.02 * together_ns(rails, bytes) + slice_ns)
            << bytes << " bytes, " << second << " B/s, " << latency << " ns";
      }
    }
  }
}

TEST(Split, ThePairIsNeverMuchSlowerThanItsBetterRailAlone) {
  for (const double second : {500e6, 50e6, 5e6, 1e6}) {
    for (const std::uint64_t latency : {5'000, 5'000'000}) {
      std::vector<ModelRail> rails = pair(50e6, 50'000, second, latency);
      Transfer transfers(rails, 1e9);
      transfers.run(64 * mib);
      for (std::uint64_t bytes = 32 * kib; bytes <= 64 * mib; bytes *= 2) {
        const double ns = transfers.run(bytes);
        EXPECT_LE(ns, 1.2 * best_alone_ns(rails, bytes))
            << bytes << " bytes, " << second << " B/s, " << latency << " ns";
      }
    }
  }
}

TEST(Split, TheFirstTransferFindsTheRatesItself) {
  std::vector<ModelRail> rails = pair(50e6, 50'000, 25e6, 50'000);
  Transfer transfers(rails, 1e9);
  EXPECT_LE(transfers.run(16 * mib), 1.08 * together_ns(rails, 16 * mib));
}

TEST(Split, ARailThatBecomesSlowBringsLess) {
  std::vector<ModelRail> rails = pair(50e6, 50'000, 50e6, 50'000);
  rails[1].slower_at_ns = 300e6;
  rails[1].slower_by = 0.1;
  Transfer transfers(rails, 1e9);
  const double first = 300e6 * 100e6 * 1e-9;  // bytes
  const double ideal = 300e6 + (64. * mib - first) * 1e9 / 55e6;
  EXPECT_LE(transfers.run(64 * mib), 1.25 * ideal);
}

// ---- the strategy around another one
// ---------------------------------------------------------------------------------

TEST(Split, WhereTheRailLeavesBulkDataToOthersItTakesMessages) {
  const std::unique_ptr<Strategy> strategy = make_split(aggregate_factory.create());
  Item bulk, message;
  bulk.kind = Kind::bulk;
  bulk.bytes_left = 64 * kib;
  message.size = 24;
  strategy->add(bulk);
  strategy->add(message);
  const std::vector<RailLoad> loads{{1e9, 1000, 0, true}, {1e9, 5'000'000, 0, true}};
  Plan second;
  strategy->plan({8192, true, nullptr, loads, 1}, second);
  ASSERT_EQ(second.count, 1);
  EXPECT_EQ(second.items[0], &message);
  Plan first;
  strategy->plan({8192, true, nullptr, loads, 0}, first);
  ASSERT_EQ(first.count, 1);
  EXPECT_EQ(first.items[0], &bulk);
  EXPECT_EQ(first.bulk_bytes, 64 * kib);
  strategy->remove(bulk);
  EXPECT_TRUE(strategy->empty());
}

TEST(Split, ARailThatLeavesOneTransferToOthersTakesTheNext) {
  const std::unique_ptr<Strategy> strategy = make_split(fifo_factory.create());
  Item short_one, long_one;
  short_one.kind = long_one.kind = Kind::bulk;
  short_one.bytes_left = 4 * kib;
  long_one.bytes_left = 8 * mib;
  strategy->add(short_one);
  strategy->add(long_one);
  const std::vector<RailLoad> loads{{5e9, 60'000, 0, true}, {1e9, 20'000, 0, true}};
  for (int turn = 0; turn < 4; ++turn) {
    Plan plan;
    strategy->plan({8192, true, nullptr, loads, 0}, plan);
    ASSERT_EQ(plan.count, 1) << "turn " << turn;
    EXPECT_EQ(plan.items[0], &long_one) << "the short one is there sooner by the other rail";
  }
}

}  // namespace
}  // namespace canele::strategies

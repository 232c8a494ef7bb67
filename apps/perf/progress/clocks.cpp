// SPDX-License-Identifier: BSD-3-Clause
//
// Clock: how well all ranks know rank 0's clock, and how far apart they begin, by a barrier and by an agreed date. The
// figures: options.cpp.
//
// The date at which a rank began is computed by interpolation, after the fact. The date at which it should begin was
// computed by extrapolation, so that the spread shows that error, too.
//
//   synchronise ── seconds ── synchronise ── barrier, date, barrier, date … ── synchronise
//        a ───────────────────────▶ b ───────── ahead: a line through a and b ──────▶ c
//                                   b ◀──────── between: a line through b and c ────▶ c
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <thread>

#include "../statistics.hpp"
#include "benchmarks.hpp"
#include "global_clock.hpp"

namespace canele::perf::progress {
namespace {

constexpr int law_tag = 31, facts_tag = 32, dates_tag = 33;
constexpr double us_in_ns = 1e3, s_in_ns = 1e9, one_ppm = 1e-6;

/// What a rank has measured, in ns. Errors are those known from the truth.
struct Facts {
  double offset = 0, drift = 0, drift_bound = 0;
  double bound = 0, error = 0;
  double between_bound = 0, between_error = 0;
  double ahead_bound = 0, ahead_error = 0, once_error = 0;
};

/// Dates by rank 0's clock at which one rank has begun.
struct Exits {
  std::vector<Date> barrier, agreed;
};

LocalClock clock_of(const Bench& bench) {
  if (bench.link.rank() == 0) return LocalClock(bench.clock);
  std::mt19937_64 random(bench.options.seed * 1'000'003 + static_cast<std::uint64_t>(bench.link.rank()));
  std::uniform_real_distribution<double> wrong(-1, 1);
  const double offset = wrong(random) * bench.options.offset_s, drift = wrong(random) * bench.options.drift_ppm;
  return LocalClock(bench.clock, static_cast<Date>(offset * s_in_ns), drift * one_ppm);
}

class Clocks {
 public:
  explicit Clocks(Bench& bench)
      : bench_(bench),
        link_(bench.link),
        local_(clock_of(bench)),
        global_(bench.link, local_, bench.options.margin_us * us_in_ns) {}

  void run() {
    share_law();
    const int trips = bench_.options.trips;
    const Offset a = global_.synchronise(trips);
    std::this_thread::sleep_for(std::chrono::duration<double>(bench_.options.seconds));
    const Offset b = global_.synchronise(trips);
    const ClockLine ahead(a, b);
    const Exits local = begin_together(ahead);
    const Offset c = global_.synchronise(trips);
    const ClockLine between(b, c);
    const Facts facts = facts_of(a, b, c, ahead, between, local);
    const Exits exits{dates_of(local.barrier, between), dates_of(local.agreed, between)};
    if (link_.rank() == 0) {
      gather(facts, exits);
    } else {
      send(link_, 0, facts_tag, &facts, sizeof facts);
      for (const auto* dates : {&exits.barrier, &exits.agreed}) {
        send(link_, 0, dates_tag, dates->data(), dates->size() * sizeof(Date));
      }
    }
  }

 private:
  bool truth_known() const { return link_.local_size() == link_.size(); }

  void share_law() {
    reference_ = local_.law();
    tell_all(link_, law_tag, &reference_, sizeof reference_);
  }

  Date begin_at_a_date(const ClockLine& line) {
    constexpr int most_tries = 1000;
    for (int i = 0; i < most_tries; ++i) {
      const Date begun = global_.start(line);
      if (global_.in_time()) return begun;
    }
    throw std::runtime_error("the ranks never begin at the agreed date: the machine is too busy to measure on");
  }

  Exits begin_together(const ClockLine& line) {
    Exits exits;
    for (int batch = 0; batch < bench_.options.batches; ++batch) {
      link_.barrier();
      exits.barrier.push_back(local_.now());
      exits.agreed.push_back(begin_at_a_date(line));
    }
    return exits;
  }

  /// Returns what rank 0's clock shows when this one shows `local`.
  Date truth(Date local) const { return reference_.at(local_.law().ticks_at(local)); }
  double error(Date found, Date local) const { return std::abs(static_cast<double>(found - truth(local))); }

  Facts facts_of(const Offset& a, const Offset& b, const Offset& c, const ClockLine& ahead, const ClockLine& between,
                 const Exits& exits) const {
    Facts facts;
    facts.offset = -static_cast<double>(b.offset);
    const ClockLine all_along(a, c);
    facts.drift = all_along.drift() / one_ppm;
    facts.drift_bound = all_along.drift_bound() / one_ppm;
    facts.bound = b.bound;
    facts.error = error(b.at + b.offset, b.at);
    for (const auto* dates : {&exits.barrier, &exits.agreed}) {
      for (const Date local : *dates) {
        facts.between_bound = std::max(facts.between_bound, between.bound(local));
        facts.between_error = std::max(facts.between_error, error(between.global(local), local));
      }
    }
    facts.ahead_bound = ahead.bound(c.at);
    facts.ahead_error = error(ahead.global(c.at), c.at);
    facts.once_error = error(ClockLine(a).global(c.at), c.at);
    return facts;
  }

  static std::vector<Date> dates_of(const std::vector<Date>& local, const ClockLine& line) {
    std::vector<Date> global;
    for (const Date date : local) global.push_back(line.global(date));
    return global;
  }

  /// Gathers the facts of all ranks and prints the report. Rank 0 only.
  void gather(const Facts& own, const Exits& exits) {
    std::vector<Exits> all{exits};
    double bound = own.between_bound;
    for (int rank = 1; rank < link_.size(); ++rank) {
      Facts facts;
      Exits theirs = exits;
      receive(link_, rank, facts_tag, &facts, sizeof facts);
      for (auto* dates : {&theirs.barrier, &theirs.agreed}) {
        receive(link_, rank, dates_tag, dates->data(), dates->size() * sizeof(Date));
      }
      print(rank, facts);
      bound = std::max(bound, facts.between_bound);
      all.push_back(std::move(theirs));
    }
    print("barrier", spreads(all, &Exits::barrier), 2 * bound, 0);
    print("agreed-date", spreads(all, &Exits::agreed), 2 * bound, global_.appointments().missed());
  }

  std::vector<double> spreads(const std::vector<Exits>& all, std::vector<Date> Exits::*kind) const {
    std::vector<double> spreads;
    for (std::size_t batch = 0; batch < (all.front().*kind).size(); ++batch) {
      Date first = (all.front().*kind)[batch], last = first;
      for (const Exits& exits : all) {
        first = std::min(first, (exits.*kind)[batch]);
        last = std::max(last, (exits.*kind)[batch]);
      }
      spreads.push_back(static_cast<double>(last - first) / us_in_ns);
    }
    return spreads;
  }

  void print(int rank, const Facts& facts) {
    const auto known = [&](double error) {
      return truth_known() ? nlohmann::ordered_json(error / us_in_ns) : nlohmann::ordered_json(nullptr);
    };
    bench_.report.print({"clock",
                         {{"rank", rank}},
                         {{"offset", facts.offset / us_in_ns},
                          {"drift_ppm", facts.drift},
                          {"drift_bound", facts.drift_bound},
                          {"bound", facts.bound / us_in_ns},
                          {"error", known(facts.error)},
                          {"between_bound", facts.between_bound / us_in_ns},
                          {"between_error", known(facts.between_error)},
                          {"ahead_bound", facts.ahead_bound / us_in_ns},
                          {"ahead_error", known(facts.ahead_error)},
                          {"once_error", known(facts.once_error)}},
                         {}});
  }
  void print(const char* way, const std::vector<double>& spreads, double bound, std::uint64_t missed) {
    const Summary spread = summarise(spreads);
    bench_.report.print({"clock",
                         {{"start", way}, {"ranks", link_.size()}},
                         {{"median", spread.median},
                          {"p10", spread.p10},
                          {"p90", spread.p90},
                          {"most", quantile(spreads, 1)},
                          {"bound", bound / us_in_ns},
                          {"missed", missed}},
                         {{"spreads", spreads}}});
  }

  Bench& bench_;
  Link& link_;
  const LocalClock local_;
  GlobalClock global_;
  ClockLaw reference_;  // rank 0's
};

}  // namespace

void clocks(Bench& bench) { Clocks(bench).run(); }

}  // namespace canele::perf::progress

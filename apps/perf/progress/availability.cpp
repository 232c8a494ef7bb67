// SPDX-License-Identifier: BSD-3-Clause
//
// Availability: post, work, wait. Measures what the host pays for a message. The figures: options.cpp.
//
// The other rank only waits, so that the cost of one side is measured alone.
#include "../statistics.hpp"
#include "order.hpp"

namespace canele::perf::progress {
namespace {

/// One case: this rank is measured, and the other one follows.
class Availability {
 public:
  Availability(Bench& bench, Orders& orders, std::uint64_t size, const std::string& side)
      : bench_(bench), orders_(orders), order_{0, size, side == "sender" ? 0u : 1u, 1, {}} {}

  void measure(const std::string& side) {
    constexpr double enough = 1.5, step = 1.2;
    base_ = repeat();
    double work = 0.25 * base_, with = 0;
    do {
      work *= step;
      order_.turns[0] = static_cast<std::uint64_t>(work / bench_.us_per_turn);
      with = repeat();
    } while (with < enough * base_);
    const std::vector<double> samples = last_;
    order_.transfers = 0;
    const double alone = repeat();
    bench_.report.print({"availability",
                         {{"size", order_.size}, {"side", side}},
                         {{"base", base_},
                          {"work", alone},
                          {"with", with},
                          {"overhead", with - alone},
                          {"availability", 1 - (with - alone) / base_}},
                         {{"with", samples}}});
  }

 private:
  /// Returns the time of this rank, median.
  double repeat() {
    last_.clear();
    for (int i = 0; i < bench_.options.batches; ++i) {
      const Dates own = orders_.give(order_).of[0];
      last_.push_back(bench_.clock.us(own.end - own.start));
    }
    return quantile(last_, 0.5);
  }

  Bench& bench_;
  Orders& orders_;
  Order order_;
  double base_ = 0;
  std::vector<double> last_;
};

}  // namespace

void availability(Bench& bench) {
  Orders orders(bench);
  if (bench.link.rank() != 0) return orders.follow();
  for (const std::uint64_t size : bench.options.sizes) {
    for (const std::string& side : bench.options.sides) Availability(bench, orders, size, side).measure(side);
  }
  orders.end();
}

}  // namespace canele::perf::progress

// SPDX-License-Identifier: BSD-3-Clause
//
// Orders: given, carried out, answered.
#include "order.hpp"

#include <sched.h>

#include <algorithm>
#include <ctime>
#include <stdexcept>

namespace canele::perf::nbc {
namespace {
constexpr int order_tag = 11, dates_tag = 12;
}

/// Sleeps, then yields: a rank that shares the core must reach the date, too.
void Orders::wait_until(std::uint64_t date) const {
  constexpr double awake_us = 150;
  const std::uint64_t now = bench_.clock.now();
  const double left = (date > now ? bench_.clock.us(date - now) : 0) - awake_us;
  if (left > 0) {
    const timespec time{static_cast<time_t>(left / 1e6), static_cast<long>(left * 1e3) % 1'000'000'000};
    nanosleep(&time, nullptr);
  }
  while (bench_.clock.now() < date) sched_yield();
}

Dates Orders::carry_out(const Order& order) {
  const progress::Clock& clock = bench_.clock;
  const bool communicate = order.communicate != 0, bare = order.bare != 0;
  Call call{};
  if (communicate) call = buffers_.prepare(order.operation, order.size, order.check != 0);
  if (bare) {
    bench_.bare->prepare(bare_amount(order.operation, order.size, bench_.link.rank(), bench_.link.size()));
  }
  progress::Link::Request request{};
  Dates dates;
  dates.late = clock.now() > order.start ? 1 : 0;
  wait_until(order.start + (bench_.link.rank() == 0 ? order.delay : 0));
  dates.start = clock.now();
  if (communicate) bench_.collectives.start(call, request);
  if (bare) bench_.bare->start();
  dates.called = clock.now();
  if (bench_.oversubscribed && order.rows > 0) sched_yield();
  bench_.work.run(order.rows);
  dates.computed = clock.now();
  if (communicate) bench_.link.wait(request);
  if (bare) bench_.bare->wait();
  dates.end = clock.now();
  if (order.check != 0) {
    const std::string wrong = buffers_.check(call);
    if (!wrong.empty()) bench_.link.abort(wrong);
  }
  return dates;
}

bool Orders::try_once(Order& order, std::vector<Dates>& dates) {
  progress::Link& link = bench_.link;
  order.start = bench_.clock.now() + bench_.clock.ticks(ahead_us_);
  for (int rank = 1; rank < link.size(); ++rank) progress::send(link, rank, order_tag, &order, sizeof order);
  dates[0] = carry_out(order);
  for (int rank = 1; rank < link.size(); ++rank) {
    Dates& theirs = dates[static_cast<std::size_t>(rank)];
    progress::receive(link, rank, dates_tag, &theirs, sizeof theirs);
  }
  return std::all_of(dates.begin(), dates.end(), [](const Dates& one) { return one.late == 0; });
}

Outcome Orders::give(Order order) {
  constexpr double most_ahead_us = 200'000;
  constexpr int most_tries = 1000;
  std::vector<Dates> dates(static_cast<std::size_t>(bench_.link.size()));
  int tries = 0;
  while (!try_once(order, dates)) {
    if (++tries == most_tries) {
      throw std::runtime_error("the ranks never begin at the agreed date: the machine is too busy to measure on");
    }
    ahead_us_ = std::min(1.5 * ahead_us_, most_ahead_us);
  }
  const auto us = [this](std::uint64_t from, std::uint64_t to) { return bench_.clock.us(to - from); };
  Outcome outcome;
  std::vector<double> starts, ends;
  for (const Dates& one : dates) {
    starts.push_back(us(order.start, one.start));
    ends.push_back(us(order.start, one.end));
    outcome.ranks.push_back({us(one.start, one.called), us(one.called, one.computed), us(one.computed, one.end)});
  }
  outcome.global = global_time(starts, ends);
  return outcome;
}

void Orders::end() {
  const Order last;
  for (int rank = 1; rank < bench_.link.size(); ++rank) {
    progress::send(bench_.link, rank, order_tag, &last, sizeof last);
  }
}

void Orders::follow() {
  for (;;) {
    Order order;
    progress::receive(bench_.link, 0, order_tag, &order, sizeof order);
    if (order.start == 0) return;
    const Dates dates = carry_out(order);
    progress::send(bench_.link, 0, dates_tag, &dates, sizeof dates);
  }
}

}  // namespace canele::perf::nbc

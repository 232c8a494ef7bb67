// SPDX-License-Identifier: BSD-3-Clause
//
// Orders: given, carried out, answered.
#include "order.hpp"

#include <algorithm>
#include <stdexcept>

namespace canele::perf::progress {
namespace {
constexpr int order_tag = 1, dates_tag = 2, data_tag = 3;
}  // namespace

/// Returns memory for a message.
void* Orders::data_of(std::size_t size) {
  if (!bench_.allocate) {
    if (buffer_.size() < size) buffer_.resize(size, static_cast<char>(bench_.link.rank()));
    return buffer_.data();
  }
  if (allocated_size_ < size) {
    allocated_ = bench_.allocate(size);
    allocated_size_ = size;
  }
  return allocated_;
}

Dates Orders::carry_out(const Order& order) {
  const Clock& clock = bench_.clock;
  Link& link = bench_.link;
  const int rank = link.rank();
  const bool sends = static_cast<int>(order.sender) == rank;
  void* const data = data_of(order.size);
  Dates dates;
  dates.late = clock.now() > order.start ? 1 : 0;
  while (clock.now() < order.start) {
  }
  const double cpu = cpu_us();
  dates.start = clock.now();
  Link::Request request{};
  if (order.transfers != 0 && sends) link.isend(1 - rank, data_tag, data, order.size, request);
  if (order.transfers != 0 && !sends) link.irecv(1 - rank, data_tag, data, order.size, request);
  dates.posted = clock.now();
  compute(order.turns[rank]);
  dates.computed = clock.now();
  if (order.transfers != 0) link.wait(request);
  dates.end = clock.now();
  dates.cpu_us = cpu_us() - cpu;
  return dates;
}

Outcome Orders::give(Order order) {
  constexpr double ahead_us = 200;
  constexpr int most_tries = 1000;
  Link& link = bench_.link;
  for (int i = 0; i < most_tries; ++i) {
    Outcome outcome;
    order.start = bench_.clock.now() + bench_.clock.ticks(ahead_us);
    send(link, 1, order_tag, &order, sizeof order);
    outcome.of[0] = carry_out(order);
    receive(link, 1, dates_tag, &outcome.of[1], sizeof outcome.of[1]);
    if (outcome.good()) return outcome;
  }
  throw std::runtime_error("the ranks never begin at the agreed date: the machine is too busy to measure on");
}

void Orders::end() {
  const Order last;
  send(bench_.link, 1, order_tag, &last, sizeof last);
}

void Orders::follow() {
  for (;;) {
    Order order;
    receive(bench_.link, 0, order_tag, &order, sizeof order);
    if (order.start == 0) return;
    const Dates dates = carry_out(order);
    send(bench_.link, 0, dates_tag, &dates, sizeof dates);
  }
}

}  // namespace canele::perf::progress

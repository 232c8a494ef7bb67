// SPDX-License-Identifier: BSD-3-Clause
//
// The product and its threads.
#include "work.hpp"

#include "../pin.hpp"

namespace canele::perf::nbc {

Product::Product() : left_(side * side, 1.5), right_(side * side, 0.5), result_(side * side) {}

void Product::rows(std::uint64_t count) {
  for (; count > 0; --count) {
    double* const row = &result_[next_ * side];
    for (std::size_t j = 0; j < side; ++j) row[j] = 0;
    for (std::size_t k = 0; k < side; ++k) {
      const double factor = left_[next_ * side + k];
      const double* const other = &right_[k * side];
      for (std::size_t j = 0; j < side; ++j) row[j] += factor * other[j];
    }
    asm volatile("" : : "r"(row) : "memory");  // makes the compiler keep the result
    next_ = (next_ + 1) % side;
  }
}

Work::Work(const std::vector<int>& cores, bool pin) {
  for (std::size_t i = cores.size(); i-- > 0;) {  // a thread begins on the core on which it is started
    if (pin) pin_thread({cores[i]});
    if (i > 0) helpers_.emplace_back([this] { help(); });
  }
}

Work::~Work() {
  stopping_ = true;
  ++round_;
  round_.notify_all();
  for (std::thread& one : helpers_) one.join();
}

void Work::run(std::uint64_t rows) {
  if (rows == 0) return;
  rows_ = rows;
  busy_ = static_cast<std::uint32_t>(helpers_.size());
  ++round_;
  round_.notify_all();
  own_.rows(rows);
  for (std::uint32_t busy = busy_; busy != 0; busy = busy_) busy_.wait(busy);
}

void Work::help() {
  Product product;
  for (std::uint32_t seen = 0;;) {
    round_.wait(seen);
    seen = round_;
    if (stopping_) return;
    product.rows(rows_);
    if (--busy_ == 0) busy_.notify_all();
  }
}

}  // namespace canele::perf::nbc

// SPDX-License-Identifier: BSD-3-Clause
//
// Counter: one of the engine's counters, by its name. Any thread.
//
// The name is looked up once. Reading costs a few loads, so that it may be a loop's condition.
#pragma once

#include <canele/canele.hpp>
#include <cstdint>
#include <string>
#include <string_view>

namespace canele::perf {

class Counter {
 public:
  /// If there is no such counter, the first read throws canele::error.
  Counter(const canele::engine& engine, std::string_view name) : engine_(engine.native()) {
    while (index_ < canele_counter_count() && canele_counter_name(index_) != name) ++index_;
  }
  std::uint64_t read() const {
    std::uint64_t value = 0;
    canele::detail::check(canele_counter_read(engine_, index_, -1, nullptr, &value), "canele_counter_read");
    return value;
  }

 private:
  canele_engine_t* engine_;
  int index_ = 0;
};

}  // namespace canele::perf

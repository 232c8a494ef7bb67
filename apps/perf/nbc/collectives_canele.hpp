// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives, by the native API. It has a group of its own, with all ranks. One thread.
#pragma once

#include <canele/collectives.h>

#include <canele/canele.hpp>

#include "operation.hpp"

namespace canele::perf::nbc {

class Collectives {
 public:
  explicit Collectives(canele::engine& engine) {
    check(canele_group_create(engine.native(), "canele-perf nbc", nullptr, 0, &group_));
    check(canele_operator_of(CANELE_SUM, CANELE_DOUBLE, &sum_));
  }
  ~Collectives() { canele_group_destroy(group_); }
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  void start(const Call& call, canele_request_t& request) { check(begin(call, request)); }

 private:
  static void check(int code) { canele::detail::check(code, "a collective"); }

  int begin(const Call& call, canele_request_t& request) {
    const std::size_t size = call.count * sizeof(double);
    const canele_parts_t parts{size, nullptr, nullptr};
    switch (call.operation) {
      case Operation::barrier:
        return canele_ibarrier(group_, nullptr, &request);
      case Operation::bcast:
        return canele_ibcast(group_, call.output, size, 0, nullptr, &request);
      case Operation::reduce:
        return canele_ireduce(group_, call.input, call.output, call.count, &sum_, 0, nullptr, &request);
      case Operation::allreduce:
        return canele_iallreduce(group_, call.input, call.output, call.count, &sum_, nullptr, &request);
      case Operation::allgather:
        return canele_iallgather(group_, call.input, call.output, &parts, nullptr, &request);
      case Operation::alltoall:
        return canele_ialltoall(group_, call.input, &parts, call.output, &parts, nullptr, &request);
    }
    return CANELE_EINVAL;
  }

  canele_group_t* group_ = nullptr;
  canele_operator_t sum_{};
};

}  // namespace canele::perf::nbc

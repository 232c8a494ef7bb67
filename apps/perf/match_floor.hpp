// SPDX-License-Identifier: BSD-3-Clause
//
// The floor of a match among many: a bare loop that touches the memory that any engine has to touch. Runs on the rank
// that receives; one thread.
//
// The loop finds and compares nothing, and no step waits for the one before, so that the processor overlaps as much as
// it can. What grows with N here is the cost of memory alone. A step writes a line of a table, and the line of a
// request that says how it ended. It also writes the word that receives the data. If messages came first, it reads the
// message that it takes. At the end every request is read in the order of posting, as a wait for all requests does.
//
//   posted:      next message ──▶ table: 16 bytes an entry ──▶ its request (anywhere) ──▶ its data (anywhere)
//   unexpected:  next receive ──▶ table ──▶ its message (anywhere), 72 bytes each ──▶ request, data (in order)
//
// Rejected: a fence after each message. It is the cost of a match that never looks ahead, which is many times as much.
#pragma once

#include <canele/canele.h>

#include <cstdint>

#include "huge_array.hpp"
#include "match_plan.hpp"

namespace canele::perf {

class MatchFloor {
 public:
  /// Allocates as much memory as the receiver of the plan uses.
  MatchFloor(const Plan& plan, Direction direction);
  /// Returns the nanoseconds that all messages of the plan take.
  std::uint64_t round();

 private:
  struct alignas(64) Bucket {
    std::uint64_t words[8];
  };
  struct Request {
    std::uint64_t ended;
    unsigned char rest[sizeof(canele_request_t) - sizeof(std::uint64_t)];
  };
  struct Message {
    std::uint64_t key, rest[7], data;
  };
  struct Step {
    std::uint32_t bucket, partner;  ///< which receive takes the message, or which message the receive takes
  };
  void posted();
  void unexpected();

  HugeArray<Step> steps_;
  HugeArray<Bucket> table_;
  HugeArray<Request> requests_;
  HugeArray<Message> messages_;  ///< empty: receives come first
  HugeArray<std::uint64_t> data_;
  std::uint64_t rounds_ = 0;
};

}  // namespace canele::perf

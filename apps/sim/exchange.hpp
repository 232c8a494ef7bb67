// SPDX-License-Identifier: BSD-3-Clause
//
// Exchange: pairs of ranks that send each other some messages, small ones and one large one in each direction.
//
// Who: the scale workload. Threads: the main fiber of each rank.
// Surprise: all pairs are numbered, and a rank works on the lowest few of its own at a time. So the buffers of a few
//      pairs are all the memory it takes; and the lowest pair that is not through is in the hands of both its ranks, so
//      there is always one that goes on.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "apps/sim/oracle.hpp"
#include "apps/sim/plan.hpp"
#include "apps/sim/world.hpp"

namespace canele::sim {

struct ExchangeOptions {
  int ranks = 2;
  int partners = 8;        ///< that each rank chooses
  int small_messages = 8;  ///< in each direction, up to 1000 bytes
  std::size_t shortest_large = 20'000, longest_large = 60'000;
};

/// Pair e of two ranks is the groups 2e and 2e + 1, one in each direction.
Plan plan_exchange(const ExchangeOptions& options, Dice dice);

class ExchangeRank {
 public:
  ExchangeRank(const Plan& plan, Oracle& oracle, int rank);
  void run(canele_engine_t* engine);
  /// What it waits for, for people.
  std::string state() const;

 private:
  struct Transfer {
    canele_request_t request{};
    const PlannedMessage* message = nullptr;
    std::vector<std::byte> bytes;
    std::uint64_t posted = 0;
  };
  struct Pair {
    const Group* incoming = nullptr;
    std::vector<Transfer> sends, receives;
  };
  void begin(std::uint32_t incoming);
  void finish(Pair& pair);

  const Plan& plan_;
  Oracle& oracle_;
  const int rank_;
  canele_session_t* session_ = nullptr;
  std::size_t next_ = 0;  ///< of this rank's pairs, in the plan's order
  std::deque<std::unique_ptr<Pair>> open_;
  std::uint64_t posts_ = 0;
};

}  // namespace canele::sim

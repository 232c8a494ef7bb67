// SPDX-License-Identifier: BSD-3-Clause
//
// Exchange: pairs of ranks that send each other several small messages and one large one in each direction.
//
// Used by the scale workload. Threads: the main fiber of each rank. All pairs are numbered, and a rank works on a few
// of its own pairs at a time, the lowest ones first. Its memory is thus only the buffers of a few pairs. Both ranks of
// the lowest unfinished pair work on it, so at least one pair always makes progress.
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
  int partners = 8;        ///< pairs that each rank chooses
  int small_messages = 8;  ///< in each direction, up to 1000 bytes
  std::size_t shortest_large = 20'000, longest_large = 60'000;
};

/// Plans the messages. Pair e has the groups 2e and 2e + 1, one in each direction.
Plan plan_exchange(const ExchangeOptions& options, Dice dice);

class ExchangeRank {
 public:
  ExchangeRank(const Plan& plan, Oracle& oracle, int rank);
  void run(canele_engine_t* engine);
  /// Returns what the rank waits for, as text.
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
  std::size_t next_ = 0;  ///< index of the next pair among this rank's pairs, in the plan's order
  std::deque<std::unique_ptr<Pair>> open_;
  std::uint64_t posts_ = 0;
};

}  // namespace canele::sim

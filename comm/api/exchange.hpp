// SPDX-License-Identifier: BSD-3-Clause
//
// Exchange: the values that this rank publishes, their exchange with all ranks, and what it brought.
//
// The engine owns it, and job_api.cpp calls it. Any thread may publish and look up; one at a time exchanges. Never
// called under the engine's lock.
//
//     begin ──▶ lengths ──▶ values ──▶ begin       an allgather each; a call that is late leaves its request pending,
//      └───────────┴───────────┴──── failed        and the next call waits for it
//
// A rank sends log n messages in each allgather, and all values once.
//
// Rejected: the launcher's server. A fence of PMI-1 and one of PMIx belong to the process, not to an engine, and cannot
// be left at a deadline. A server also gets a question for each value and rank: n² of them.
// Rejected: a barrier instead, and lookups that ask the rank. A lookup would block, and need progress of a rank that
// computes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "comm/api/collective_call.hpp"
#include "comm/bootstrap/published.hpp"

namespace canele::comm::api {

class Exchange {
 public:
  static constexpr std::string_view group_label = "canele.exchange";

  explicit Exchange(Engine& engine) : engine_(engine) {}

  /// Key and value have been checked, each by itself.
  int publish(std::string_view key, std::span<const std::byte> value);
  /// Blocks until the exchange has ended, or until the deadline.
  int run(std::uint64_t deadline);
  /// Called when the engine is finalized, and no thread exchanges. Ends an exchange that is under way, on all ranks.
  void leave();
  /// Returns what the last exchange has brought; nullptr before the first.
  std::shared_ptr<const ExchangedValues> values();

 private:
  enum class Step : std::uint8_t { begin, lengths, values };

  int run_steps(std::uint64_t deadline);
  int begin();
  int begin_values();
  int end_values();
  int wait(std::uint64_t deadline);
  int give_up(int code, int rank, std::string words);

  Engine& engine_;
  std::mutex mutex_;  // guards the next two
  PublishedValues published_;
  std::shared_ptr<const ExchangedValues> values_;

  std::atomic<bool> busy_{false};
  // of the thread that has set busy_
  Step step_ = Step::begin;
  canele_group_t* group_ = nullptr;  ///< of all ranks; its session owns it
  canele_request_t request_{};       ///< of the allgather of this step
  Blob outgoing_;
  std::uint64_t length_ = 0;
  std::vector<std::uint64_t> all_lengths_;
  std::shared_ptr<ExchangedValues> incoming_;
};

/// Calls leave() if the engine has an Exchange.
void leave_exchange(Engine& engine);

/// Returns the Exchange of an engine. Makes it at first use.
Exchange& exchange_of(Engine& engine);

}  // namespace canele::comm::api

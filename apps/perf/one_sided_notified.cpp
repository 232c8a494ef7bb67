// SPDX-License-Identifier: BSD-3-Clause
//
// Puts that notify: each rank waits until a put of the other one has come, and then puts itself. Main thread only.
//
// Both ranks own memory and a slot, which adds to a counter. The last put of each rank has a pattern, and is checked.
#include "one_sided_notified.hpp"

#include <canele/one_sided.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "measure.hpp"

namespace canele::perf {
namespace {

constexpr std::uint64_t card_tag = 23;

/// What a rank tells the other one.
struct Card {
  canele::key_bytes key;
  std::uint32_t slot;
};

class Notified {
 public:
  Notified(Job& job, const OneSidedCase& one)
      : job_(job), one_(one), data_(one.size), slot_(job.engine, arrived_.adding()) {
    if (one.memory == TargetMemory::mapped) {
      allocated_.emplace(job.engine, one.size);
      memory_ = allocated_->values();
    } else {
      own_.resize(one.size);
      registered_.emplace(job.engine, own_);
      memory_ = own_;
    }
    const Card mine{allocated_ ? allocated_->key() : registered_->key(), slot_.slot()};
    Card theirs{};
    auto send = job.session.isend(job.peer(), card_tag, canele::one(mine));
    job.session.recv(job.peer(), card_tag, canele::one(theirs));
    send.wait();
    key_.emplace(job.engine, theirs.key);
    options_.slot = theirs.slot;
  }

  bool is_mapped() const {
    void* address = nullptr;
    return canele_key_map(key_->native(), &address) == CANELE_OK;
  }

  /// Returns half a round trip, in ns.
  double half_round_trip() {
    const std::uint64_t start = job_.engine.now();
    for (int round = 0; round < one_.rounds; ++round) {
      if (job_.first()) put();
      arrived_.wait(job_.engine, ++received_);
      if (!job_.first()) put();
    }
    return static_cast<double>(job_.engine.now() - start) / (2.0 * one_.rounds);
  }

  /// Checks that the last put of the other rank is here.
  void check() {
    const auto last = static_cast<std::byte>(received_);
    for (const std::byte byte : memory_) {
      if (byte != last) throw std::runtime_error("put of " + std::to_string(one_.size) + " bytes: wrong data");
    }
    canele::flush(job_.engine, job_.peer());
    job_.session.barrier();
  }

 private:
  void put() {
    ++sent_;
    if (one_.size <= sizeof(std::uint64_t) || sent_ % static_cast<std::uint64_t>(one_.rounds) == 0)
      std::fill(data_.begin(), data_.end(), static_cast<std::byte>(sent_));
    key_->iput(0, std::span<const std::byte>(data_), canele::until_flush, options_);
  }

  Job& job_;
  const OneSidedCase& one_;
  std::vector<std::byte> data_, own_;
  std::span<std::byte> memory_;
  std::uint64_t sent_ = 0, received_ = 0;
  canele::completion_counter arrived_;
  canele::notification slot_;
  std::optional<canele::allocated_memory<std::byte>> allocated_;
  std::optional<canele::memory> registered_;
  std::optional<canele::key> key_;
  canele::access_options options_;
};

}  // namespace

OneSidedResult measure_notified(Job& job, const Options& options, const OneSidedCase& one) {
  OneSidedResult result{one, false, {}, {}};
  Notified pair(job, one);
  result.mapped = pair.is_mapped();
  pair.half_round_trip();  // warm-up
  for (int i = 0; i < options.batches; ++i) result.ours.push_back(in_unit(one.measure, pair.half_round_trip()));
  pair.check();
  return result;
}

}  // namespace canele::perf

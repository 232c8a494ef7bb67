// SPDX-License-Identifier: BSD-3-Clause
//
// A model that executes the schedules of all ranks of a group, in one thread, in any order that their dependencies
// allow.
//
// It uses all the freedom that a library has. A receive fills its memory with rubbish as soon as it is posted, and with
// the message at any later time. A send reads its memory at any time before it ends, and may not end before the message
// has been received. So a missing dependency shows as wrong bytes, in some order; and every order has a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "comm/collectives/algorithms/schedule.hpp"

namespace canele::comm::collectives::model {

/// Computes to = from op to (higher = false), or to = to op from, for elements of so many bytes.
using Operator = void (*)(const std::byte* from, std::byte* to, std::size_t bytes, bool from_is_higher);

struct Rank {
  Schedule schedule;
  std::vector<std::byte> input, output;
};

struct Seen {
  std::uint64_t messages = 0, bytes = 0;
  std::uint32_t most_sends = 0;  ///< in progress at a time, of one rank
};

/// A sequence of random numbers; a seed gives the same sequence everywhere.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 2 + 1) {}
  std::uint64_t roll() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111eb;
    return z ^ (z >> 31U);
  }
  std::uint64_t below(std::uint64_t limit) { return roll() % limit; }
  void fill(std::byte* memory, std::size_t bytes);

 private:
  std::uint64_t state_;
};

class Model {
 public:
  /// Delays the step `slow` of rank `slow_rank` as long as another step can run (no_step: the seed chooses one, or
  /// none).
  Model(std::vector<Rank>& ranks, Operator combine, std::uint64_t seed, int slow_rank = -1, StepId slow = no_step);
  /// Runs until nothing is left to do. Returns "" or what is wrong.
  std::string run();
  const Seen& seen() const { return seen_; }

 private:
  enum class Kind : std::uint8_t { start, read, end_send, deliver, complete };
  struct Event {
    Kind kind;
    int rank;
    StepId step;
  };
  using Channel = std::tuple<int, int, std::uint32_t>;  // from, to, slot
  struct Message {
    std::vector<std::byte> bytes;
    int sender = -1;
    StepId send = no_step;
    bool sent = false, here = false;
    int receiver = -1;
    StepId receive = no_step;
    bool posted = false, done = false;
  };
  struct State {
    std::vector<std::uint32_t> needs;
    std::vector<std::byte> scratch;
    std::vector<StepId> deferred;  // sends beyond the inflight_limit, ascending
    std::size_t ended = 0;
    std::uint32_t sends = 0;
  };

  std::byte* at(int rank, const Range& range);
  void wrong(int rank, StepId step, const std::string& what);
  std::size_t pick();
  bool is_slow(const Event& event) const { return event.step == slow_ && event.rank == slow_rank_; }
  void happen(const Event& event);
  void start(int rank, StepId step);
  void start_send(int rank, StepId step);
  void start_receive(int rank, StepId step);
  void read(int rank, StepId step);
  void meet(Message& message);
  void complete(int rank, StepId step);
  void end(int rank, StepId step);
  Message& message_of(int rank, StepId step);
  const Step& step_of(int rank, StepId step) const;

  std::vector<Rank>& ranks_;
  Operator combine_;
  Dice dice_;
  bool synchronous_;  // sends end when they have been received
  std::uint32_t shy_kinds_;
  int shy_rank_, slow_rank_;
  StepId slow_;
  std::vector<State> states_;
  std::vector<Event> enabled_;
  std::map<Channel, Message> messages_;
  std::string wrong_;
  Seen seen_;
};

}  // namespace canele::comm::collectives::model

// SPDX-License-Identifier: BSD-3-Clause
//
// The table of the transitions that an enum of states allows: a constant, for any thread.
//
// The owner of the state has the only function that changes it, and that function asserts allows(). Where the new state
// is a constant, so is into(): the check then tests a bit of a constant, so it stays on in release builds. A transition
// from a state to itself is a transition, too: it is allowed only if the table lists it.
//
// Rejected: a function for each event. Most states here are reached by one event, and a table reads as a picture does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace canele::comm {

/// Allowed transitions of an enum whose values are 0 to `count` - 1.
template <class State, std::size_t count>
class Transitions {
  static_assert(count <= 16, "into() is 16 bits");

 public:
  struct Row {
    State from;
    std::initializer_list<State> to;
  };

  constexpr Transitions(std::initializer_list<Row> rows) {
    for (const Row& row : rows) {
      for (const State to : row.to) into_[index(to)] |= static_cast<std::uint16_t>(1u << index(row.from));
    }
  }
  constexpr bool allows(State from, State to) const { return contains(into(to), from); }
  /// Returns the states from which `to` may be reached, as bits.
  constexpr std::uint32_t into(State to) const { return into_[index(to)]; }
  static constexpr bool contains(std::uint32_t states, State state) { return (states >> index(state) & 1u) != 0; }

 private:
  static constexpr std::size_t index(State state) { return static_cast<std::size_t>(state); }

  std::uint16_t into_[count] = {};
};

}  // namespace canele::comm

// SPDX-License-Identifier: BSD-3-Clause
//
// Tries every transition of a table of states: the allowed ones happen, and each other one ends the process.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <vector>

#include "comm/state/transitions.hpp"

namespace canele::test {

template <class State, std::size_t count>
std::vector<State> states_of(const comm::Transitions<State, count>&) {
  std::vector<State> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(static_cast<State>(i));
  return all;
}

/// Returns how many transitions the table allows. `change(from, to)` makes one, and returns the state after it.
template <class Table, class Change>
int try_all(const Table& table, Change change) {
  int allowed = 0;
  for (const auto from : states_of(table)) {
    for (const auto to : states_of(table)) {
      if (table.allows(from, to)) {
        ++allowed;
        EXPECT_EQ(change(from, to), to);
      } else {
        EXPECT_DEATH(change(from, to), "no such transition")
            << static_cast<int>(from) << " to " << static_cast<int>(to);
      }
    }
  }
  return allowed;
}

/// Returns the states that the transitions lead to from the initial one, which is one of them.
template <class State, std::size_t count>
std::set<State> reached_states(const comm::Transitions<State, count>& table, State initial) {
  std::set<State> reached{initial};
  for (std::size_t before = 0; before != reached.size();) {
    before = reached.size();
    for (const State to : states_of(table)) {
      for (const State from : states_of(table)) {
        if (reached.count(from) == 1 && table.allows(from, to)) reached.insert(to);
      }
    }
  }
  return reached;
}

}  // namespace canele::test

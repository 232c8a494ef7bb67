// SPDX-License-Identifier: BSD-3-Clause
//
// What tests of the C++ layer share: the code of an exception, and a job of one rank with a session.
#pragma once

#include <gtest/gtest.h>

#include <canele/post.hpp>
#include <cstdint>

namespace canele::test::cpp_layer {

/// Returns the code of the canele::error that the call throws, or CANELE_OK.
template <typename Call>
int code_of(Call call) {
  try {
    call();
  } catch (const canele::error& problem) {
    return problem.code();
  }
  return CANELE_OK;
}

/// A job of one rank. Functions given to the library run in the thread of the test.
class OneRank : public ::testing::Test {
 protected:
  /// Receives what a test has sent.
  int receive(std::uint64_t tag) {
    int value = 0;
    session.recv(0, tag, canele::one(value));
    return value;
  }
  template <typename Done>
  void progress_until(Done done) {
    while (!done()) engine.progress();
  }

  canele::engine engine{"CANELE_WORKER=none"};
  canele::session session{engine, "one-rank"};
  const int out = 42;
  int in = 0;
};

}  // namespace canele::test::cpp_layer

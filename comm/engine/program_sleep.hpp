// SPDX-License-Identifier: BSD-3-Clause
//
// ProgramSleep: a program that sleeps on the drivers' descriptors in a poll of its own, in place of a thread of the
// library.
//
// Any thread. Such a program holds the claim of the Sleeper, but is not in the library. A thread that wants to sleep
// there takes the claim from it, because the program may be slow to answer. The mutex guards the change of hands.
#pragma once

#include <atomic>
#include <mutex>

namespace canele::comm {

class ProgramSleeper {
 public:
  /// Gives up the claim of the engine's Sleeper. Called under ProgramSleep::mutex by the thread that takes it over.
  /// That thread passes a token on at its end (engine/waiters.hpp), and so wakes the program.
  virtual void leave() = 0;

 protected:
  ~ProgramSleeper() = default;
};

struct ProgramSleep {
  std::mutex mutex;
  /// Changed under the mutex: set before the claim is taken, and reset after it is released. So a thread that finds the
  /// claim taken sees it, or finds the claim free afterwards.
  std::atomic<ProgramSleeper*> sleeper{nullptr};
};

}  // namespace canele::comm

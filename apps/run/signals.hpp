// SPDX-License-Identifier: BSD-3-Clause
//
// Signals: turns the signals that canele-run handles into a descriptor.
//
// main() constructs it before any thread exists, so that all threads have the signals blocked. Main thread only. A
// signal that was ignored at our start (nohup, a background job of a script) stays ignored.
#pragma once

#include <csignal>

namespace canele::run {

class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_; }
  /// Returns the next signal; 0 if there is none.
  int take() const;
  /// Returns the mask that we were started with. The ranks start with it, too.
  const sigset_t& original() const { return original_; }

 private:
  int fd_ = -1;
  sigset_t original_;
};

}  // namespace canele::run

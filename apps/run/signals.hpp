// SPDX-License-Identifier: BSD-3-Clause
//
// Signals: turns the signals that canele-run cares for into a descriptor.
//
// Who: main() constructs it before any thread exists, so that all threads have them blocked; Job reads.
// Threads: main thread only.
// Surprise: a signal that was ignored at our start (nohup, a job in a script's background) stays ignored.
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
  /// The next signal; 0 if there is none.
  int take() const;
  /// The mask that we were started with, which is the ranks' too.
  const sigset_t& original() const { return original_; }

 private:
  int fd_ = -1;
  sigset_t original_;
};

}  // namespace canele::run

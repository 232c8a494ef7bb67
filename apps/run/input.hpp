// SPDX-License-Identifier: BSD-3-Clause
//
// Input: carries a terminal's input to rank 0.
//
// Who: Job. Threads: main thread only.
// Surprise: only for terminals. Ranks lead process groups of their own, and the kernel would stop such a rank for
//      reading the terminal; any other stdin (a file, a pipe) rank 0 simply inherits.
#pragma once

#include <poll.h>

#include <string>
#include <vector>

namespace canele::run {

class Input {
 public:
  Input();
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  /// What rank 0 gets as its stdin.
  int rank_end() const { return is_terminal_ ? read_end_ : 0; }
  /// The ranks have started.
  void started();
  /// Rank 0 has ended: what was typed ahead and it has not read goes back to the terminal, for the shell.
  void give_back();
  /// Rank 0 has ended.
  void close_all();
  /// Adds what to wait for. true: look again within a second (we are in the background, and nobody tells when not).
  bool add_to(std::vector<pollfd>& polled) const;
  void progress();

 private:
  bool is_terminal_;
  int read_end_ = -1;
  int write_end_ = -1;
  bool ended_ = false;  ///< end of file on the terminal (Ctrl-D)
  std::string pending_;
};

}  // namespace canele::run

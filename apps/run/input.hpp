// SPDX-License-Identifier: BSD-3-Clause
//
// Input: forwards a terminal's input to rank 0. Main thread only.
//
// It does so only for terminals. Ranks lead process groups of their own, and the kernel would stop such a rank for
// reading the terminal. Rank 0 inherits any other stdin (a file, a pipe).
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

  /// Returns the descriptor that becomes the stdin of rank 0.
  int rank_end() const { return is_terminal_ ? read_end_ : 0; }
  /// Called when the ranks have started.
  void started();
  /// Called when rank 0 has ended. Returns input that was typed ahead, and that it has not read, to the terminal.
  void give_back();
  /// Closes everything. Called when rank 0 has ended.
  void close_all();
  /// Adds descriptors to wait for. Returns true if the caller must call again within a second: we are in the
  /// background, and no event tells when that changes.
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

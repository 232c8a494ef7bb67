// SPDX-License-Identifier: BSD-3-Clause
//
// Output: takes one stream (stdout or stderr) of all ranks and writes it line by line with the rank in front.
//
// Who: Job, one for each stream, only under --tag-output (else the ranks write to our own descriptors).
// Threads: a thread of its own reads and writes, so that a slow reader of our output stops the ranks, as it should, and
//      never the signals.
// Surprise: what does not end in a newline is held back until it does, the rank ends, or 1 MiB has come.
//
//   rank 0 ──pipe──▶ partial line ──┐
//   rank 1 ──pipe──▶ partial line ──┼──▶ "[1] text\n" ──▶ our stdout
//   ...                             ┘
#pragma once

#include <string>
#include <thread>
#include <vector>

namespace canele::run {

class Output {
 public:
  /// Throws std::runtime_error when descriptors run out.
  Output(int ranks, int target);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  /// The end that the rank writes to. It is closed here by start().
  int write_end(int rank) const { return write_ends_[static_cast<std::size_t>(rank)]; }
  void start();
  /// Readable once everything has been written.
  int done_fd() const { return done_fd_; }

 private:
  struct Source {
    int fd;
    std::string tag;
    std::string partial;
  };
  void forward();
  bool take_from(Source& source, std::string& out);
  bool write_out(const std::string& text);

  int target_;
  int done_fd_ = -1;
  std::vector<int> write_ends_;
  std::vector<Source> sources_;
  std::thread thread_;
};

}  // namespace canele::run

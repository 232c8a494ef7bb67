// SPDX-License-Identifier: BSD-3-Clause
//
// Output: reads one stream (stdout or stderr) of all ranks and writes it line by line with the rank in front.
//
// Job makes one for each stream, only under --tag-output (otherwise the ranks write to our own descriptors). A thread
// of its own reads and writes. A slow reader of our output thus blocks the ranks, as it should, but never the signals.
// Text without a final newline is held back until the newline comes, the rank ends, or 1 MiB has accumulated.
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
  /// Throws std::runtime_error if no descriptor is available.
  Output(int ranks, int target);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  /// Returns the end that the rank writes to. start() closes it in this process.
  int write_end(int rank) const { return write_ends_[static_cast<std::size_t>(rank)]; }
  void start();
  /// Returns a descriptor that becomes readable when everything has been written.
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

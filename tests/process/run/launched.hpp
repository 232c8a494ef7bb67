// SPDX-License-Identifier: BSD-3-Clause
//
// Launched: a program started for a test, with its output in files, and the traces that it must not leave. One thread.
//
// Every process of the program carries a mark in its environment, so that one left behind is found wherever it went.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace canele::test {

/// How a program ended, and its output.
struct Result {
  int code = -1;    ///< exit code; -1 if a signal ended it
  int signal = 0;   ///< that signal
  std::string out;  ///< standard output
  std::string err;  ///< standard error
};

class Launched {
 public:
  /// `variables`: "NAME=value", over our environment. Standard input: `input`, or a pipe that stays open.
  explicit Launched(const std::vector<std::string>& command, const std::vector<std::string>& variables = {});
  ~Launched();
  Launched(const Launched&) = delete;
  Launched& operator=(const Launched&) = delete;

  void write_input(const std::string& text) const;
  void close_input();
  /// Waits until the output holds `text` so many times. Returns false if it does not within the limit, or before the
  /// program ends.
  bool wait_for(const std::string& text, int times) const;
  bool has_ended() const;
  void send(int signal) const;
  /// Waits for the end. A test fails if it does not come.
  Result finish();

  /// Returns the traces that are left: "process 12 (sleep)", "file /tmp/...". Waits for them to go away, within a
  /// limit.
  std::string traces() const;
  std::string output() const;

 private:
  std::vector<pid_t> marked_processes() const;
  std::vector<std::string> traces_now() const;

  std::filesystem::path directory_;  ///< holds the output, and "tmp", the program's TMPDIR
  std::string mark_;
  pid_t pid_ = -1;
  int input_ = -1;
};

/// Starts, gives `input`, waits, and expects that nothing is left.
Result run(const std::vector<std::string>& command, const std::vector<std::string>& variables = {},
           const std::string& input = "");

/// Returns whether there is such a program in PATH.
bool installed(const std::string& program);

int count(const std::string& text, const std::string& part);

}  // namespace canele::test

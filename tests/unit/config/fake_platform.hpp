// SPDX-License-Identifier: BSD-3-Clause
//
// FakePlatform: a made-up environment and files, and a log that is kept. One thread.
//
// For tests of what an engine reads at its start. A log line that is neither warning nor note fails the test.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "ltask/platform.hpp"

namespace canele::test {

class FakePlatform final : public Platform {
 public:
  std::map<std::string, std::string> environment;
  std::map<std::string, FileText> files;
  std::vector<std::string> warnings, notes;
  std::uint64_t now = 0;            ///< the time, ns.
  std::uint64_t a_look_takes = 0;   ///< ns that each reading of the clock takes.
  std::uint64_t a_yield_takes = 0;  ///< ns that each yield takes.
  int unit = 0, moves = 0;          ///< where the thread is, and how often it was moved
  const void* thread = this;        ///< the calling thread
  bool bound = false;               ///< by the program, so that it is given no share of the units

  std::uint64_t now_ns() noexcept override { return now += a_look_takes; }
  std::uint64_t random() noexcept override { return 4; }
  const char* variable(const char* name) noexcept override {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  }
  void each_variable(std::string_view prefix, const std::function<void(std::string_view)>& visit) override {
    for (const auto& [name, value] : environment) {
      if (name.starts_with(prefix)) visit(name + "=" + value);
    }
  }
  FileText read_file(const std::string& path, std::size_t most) override {
    const auto found = files.find(path);
    if (found == files.end()) return {};
    FileText file = found->second;
    file.whole = file.whole && file.text.size() <= most;
    file.text.resize(std::min(file.text.size(), most));
    return file;
  }
  std::unique_ptr<PlatformThread> start_thread(const char*, std::function<void()>) override { return nullptr; }
  void relax() noexcept override {}
  void yield() noexcept override { now += a_yield_takes; }
  void park(const std::atomic<std::uint32_t>&, std::uint32_t, std::uint64_t) noexcept override {}
  void unpark(const std::atomic<std::uint32_t>&) noexcept override {}
  long process() noexcept override { return 1; }
  unsigned processors() noexcept override { return 2; }
  const void* this_thread() noexcept override { return thread; }
  int share_of_units(unsigned share) noexcept override { return bound ? -1 : static_cast<int>(share % processors()); }
  int current_unit() noexcept override { return unit; }
  bool move_to_unit(int to) noexcept override {
    unit = to;
    ++moves;
    return true;
  }
  void log(LogLevel level, std::string_view text) noexcept override {
    EXPECT_TRUE(level == LogLevel::warning || level == LogLevel::info);
    (level == LogLevel::info ? notes : warnings).emplace_back(text);
  }
};

}  // namespace canele::test

// SPDX-License-Identifier: BSD-3-Clause
//
// RealPlatform: the real platform, of which a test replaces the part under test.
//
// For tests of ltask, of the engine and of the bootstrap. Any thread, as the real one. It neither binds nor moves
// threads, nor changes their turns.
#pragma once

#include "ltask/platform.hpp"

namespace canele::test {

class RealPlatform : public Platform {
 public:
  std::uint64_t now_ns() noexcept override { return real_.now_ns(); }
  std::uint64_t random() noexcept override { return real_.random(); }
  const char* variable(const char* name) noexcept override { return real_.variable(name); }
  void each_variable(std::string_view prefix, const std::function<void(std::string_view)>& visit) override {
    real_.each_variable(prefix, visit);
  }
  std::unique_ptr<PlatformThread> start_thread(const char* name, std::function<void()> body) override {
    return real_.start_thread(name, std::move(body));
  }
  bool has_system_threads() const noexcept override { return real_.has_system_threads(); }
  const void* this_thread() noexcept override { return real_.this_thread(); }
  std::unique_ptr<WakeSet> make_wake_set(std::string* why) override { return real_.make_wake_set(why); }
  std::unique_ptr<SharedMemory> share_memory(std::size_t size, std::string* why) override {
    return real_.share_memory(size, why);
  }
  std::unique_ptr<SharedMemory> map_memory(const SharedMemoryName& name, std::size_t size) override {
    return real_.map_memory(name, size);
  }
  void relax() noexcept override { real_.relax(); }
  void yield() noexcept override { real_.yield(); }
  void park(const std::atomic<std::uint32_t>& word, std::uint32_t expected, std::uint64_t ns) noexcept override {
    real_.park(word, expected, ns);
  }
  std::unique_ptr<Alarm> make_alarm() override { return real_.make_alarm(); }
  void unpark(const std::atomic<std::uint32_t>& word) noexcept override { real_.unpark(word); }
  unsigned processors() noexcept override { return real_.processors(); }
  long process() noexcept override { return real_.process(); }
  void log(LogLevel level, std::string_view text) noexcept override { real_.log(level, text); }

 private:
  Platform& real_ = posix_platform();
};

}  // namespace canele::test

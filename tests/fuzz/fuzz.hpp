// SPDX-License-Identifier: BSD-3-Clause
//
// What the fuzz targets share: an input read from its front, checks that stay in every build, a world without clock,
// files or threads. One thread.
//
// A number or piece for which the input has no bytes left is 0 or short, never an error: each prefix of an input is an
// input.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/driver.hpp"
#include "ltask/platform.hpp"

/// Checks what must hold for every input. Unlike assert(), it prints a text that the log of a run shows.
#define FUZZ_CHECK(condition)                                                             \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                       \
    }                                                                                     \
  } while (false)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace canele::fuzz {

using Bytes = std::vector<std::byte>;

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(reinterpret_cast<const std::byte*>(data), size) {}

  bool empty() const { return rest_.empty(); }
  std::size_t left() const { return rest_.size(); }

  /// Reads a little-endian number.
  template <typename T>
  T number() {
    T value = 0;
    const auto piece = bytes(sizeof value);
    if (!piece.empty()) std::memcpy(&value, piece.data(), piece.size());
    return value;
  }
  std::uint8_t byte() { return number<std::uint8_t>(); }
  bool flag() { return (byte() & 1) != 0; }
  /// Reads a number of 0 … count - 1.
  std::size_t below(std::size_t count) { return byte() % count; }

  std::span<const std::byte> bytes(std::size_t size) {
    const auto piece = rest_.first(std::min(size, rest_.size()));
    rest_ = rest_.subspan(piece.size());
    return piece;
  }
  std::span<const std::byte> rest() { return bytes(rest_.size()); }
  std::string text(std::size_t size) {
    const auto piece = bytes(size);
    return {reinterpret_cast<const char*>(piece.data()), piece.size()};
  }

 private:
  std::span<const std::byte> rest_;
};

/// Copies bytes into memory of exactly their size, so that a read behind them shows.
inline Bytes copy_of(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }
inline Bytes bytes_of(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

/// Returns whether the text holds only what a terminal shows on one line.
inline bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return c >= ' ' && c != 127; });
}

/// A wake set without sleepers: no thread sleeps here.
class NoSleep final : public WakeSet {
 public:
  bool watch(int) noexcept override { return true; }
  void unwatch(int) noexcept override {}
  void wait(std::uint64_t) noexcept override {}
  void ring() noexcept override {}
  void quiet() noexcept override {}
};

/// A platform whose clock advances by one step at each call.
class FuzzPlatform final : public Platform {
 public:
  std::map<std::string, std::string> environment;
  std::map<std::string, std::string> files;

  std::uint64_t now_ns() noexcept override { return clock_ns += 1000; }
  std::uint64_t random() noexcept override { return random_ = random_ * 6364136223846793005u + 1442695040888963407u; }
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
    return {true, found->second.size() <= most, found->second.substr(0, most), {}};
  }
  std::unique_ptr<PlatformThread> start_thread(const char*, std::function<void()>) override { return nullptr; }
  std::unique_ptr<WakeSet> make_wake_set(std::string*) override { return std::make_unique<NoSleep>(); }
  void relax() noexcept override {}
  void yield() noexcept override {}
  void park(const std::atomic<std::uint32_t>&, std::uint32_t, std::uint64_t) noexcept override {}
  void unpark(const std::atomic<std::uint32_t>&) noexcept override {}
  unsigned processors() noexcept override { return 64; }
  long process() noexcept override { return 1; }
  void log(LogLevel, std::string_view text) noexcept override {
    FUZZ_CHECK(!text.empty());
    static const bool shows = std::getenv("FUZZ_LOG") != nullptr;  // to inspect one input
    if (shows) std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
  }

  std::uint64_t clock_ns = 1;

 private:
  std::uint64_t random_ = 1;
};

/// A driver's view of the same world, as rank 0 of 4, with a fixed secret.
class FuzzContext final : public drivers::DriverContext {
 public:
  explicit FuzzContext(drivers::Rank own = 0) {
    rank = own;
    size = 4;
    job = 42;
    incarnation = 1000 + static_cast<std::uint64_t>(own);
    for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::byte>(i);
    secret = key;
  }
  std::uint64_t now_ns() override { return clock_ns; }
  std::uint64_t random() override { return ++random_; }
  std::string setting(std::string_view, std::string_view fallback) override { return std::string(fallback); }
  void log(int, std::string_view text) override { FUZZ_CHECK(!text.empty()); }

  std::uint64_t clock_ns = 1;
  std::array<std::byte, 16> key = {};

 private:
  std::uint64_t random_ = 0;
};

}  // namespace canele::fuzz

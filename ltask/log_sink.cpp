// SPDX-License-Identifier: BSD-3-Clause
//
// The sink of the log. See log_sink.hpp.
#include "ltask/log_sink.hpp"

#include <atomic>
#include <new>
#include <string>

namespace canele::ltask {
namespace {

struct Kept {
  LogSink sink;
  const Kept* before = nullptr;  // keeps replaced sinks reachable for leak checkers
};
constinit std::atomic<const Kept*> current{nullptr};

}  // namespace

void set_log_sink(LogSink sink) {
  auto* const made = new Kept{sink, current.load(std::memory_order_relaxed)};
  while (!current.compare_exchange_weak(made->before, made, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

bool log_to_sink(LogLevel level, std::string_view text) noexcept try {
  const Kept* const now = current.load(std::memory_order_acquire);  // release: set_log_sink()
  if (now == nullptr || now->sink.call == nullptr) return false;
  now->sink.call(static_cast<int>(level), std::string(text).c_str(), now->sink.argument);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace canele::ltask

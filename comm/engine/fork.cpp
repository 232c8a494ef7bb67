// SPDX-License-Identifier: BSD-3-Clause
//
// Fork detection.
//
// The handler runs in the child, where all other threads have vanished at arbitrary points. It therefore only reads
// data that may be read at any time, and writes plain words.
#include "comm/engine/fork.hpp"

#include <pthread.h>

#include <atomic>

#include "comm/engine/engine.hpp"

namespace canele::comm::fork {

constinit bool in_child = false;

namespace {

constexpr int most_engines = 256;  // at a time

constinit std::atomic<Engine*> engines[most_engines] = {};
constinit std::atomic<int> lives{0};          // engines, and those being made
constinit std::atomic<bool> launched{false};  // set once, never reset
constinit std::atomic<bool> noticed{false};   // the handler is registered

void after_fork_in_child() {
  if (lives.load(std::memory_order_relaxed) == 0 && !launched.load(std::memory_order_relaxed)) return;
  in_child = true;
  for (auto& place : engines) {
    if (Engine* const engine = place.load(std::memory_order_relaxed)) engine->give_away();
  }
}

}  // namespace

bool begin_life() {
  if (lives.fetch_add(1, std::memory_order_relaxed) >= most_engines ||
      (!noticed.exchange(true, std::memory_order_relaxed) &&
       pthread_atfork(nullptr, nullptr, after_fork_in_child) != 0)) {
    lives.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  return true;
}

void enlist(Engine& engine, bool is_launched) {
  if (is_launched) launched.store(true, std::memory_order_relaxed);
  for (auto& place : engines) {
    Engine* none = nullptr;
    if (place.compare_exchange_strong(none, &engine, std::memory_order_relaxed)) return;
  }
}

void end_life(Engine* engine) {
  for (auto& place : engines) {
    Engine* same = engine;
    if (engine != nullptr && place.compare_exchange_strong(same, nullptr, std::memory_order_relaxed)) break;
  }
  lives.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace canele::comm::fork

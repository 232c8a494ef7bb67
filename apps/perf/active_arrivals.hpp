// SPDX-License-Identifier: BSD-3-Clause
//
// Arrivals: takes the active messages of one id, by a handler or out of a queue, and checks them. Part of `am`.
//
// The owner's main thread calls the members. Messages are handled on the thread that makes progress, or, out of a
// queue, on the main thread; functions that may be called there, too, say so. A call that fails in a handler ends the
// job, because the main thread may be waiting for the message.
//
//     canele_am_register ─▶ handler ──────────┐
//     canele_am_open ─▶ queue ─▶ wait: takes ─┴▶ check ─▶ the owner's Function ─▶ signal ─▶ wait returns
#pragma once

#include <canele/active_message.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "active.hpp"
#include "line_array.hpp"

namespace canele::perf {

/// The bytes of every payload. None is zero, so that an erased byte differs from all.
class Pattern {
 public:
  explicit Pattern(std::size_t size);
  const std::byte* data() const { return bytes_.data(); }
  /// Returns whether these are the first `length` bytes. thorough: compares all of them, and erases them at `bytes`;
  /// otherwise compares the first and the last one. Any thread.
  bool fits(std::byte* bytes, std::size_t length, bool thorough) const;

 private:
  LineArray<std::byte> bytes_;
};

class Arrivals {
 public:
  /// Called with each message that has come, and the number of those of this batch so far.
  using Function = void (*)(const canele_am_message_t& message, std::uint64_t count, void* owner);

  /// What comes: messages to `id` with `length` bytes of payload, of which up to `window` are under way.
  struct Plan {
    std::uint64_t id;
    std::size_t length;
    std::size_t window;
  };

  Arrivals(Job& job, canele_session_t* session, const ActiveCase& one, const Plan& plan, Function function,
           void* owner);
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;
  /// Removes the handler. No message may be under way.
  ~Arrivals();

  /// Begins a batch. No message may be under way.
  void begin(bool thorough);
  /// Ends a batch. Throws if other messages than these have come.
  void end(std::uint64_t messages) const;
  /// Throws if a message was wrong.
  void check_faults() const;

  /// Makes the signal absent. No thread may be about to signal.
  void clear() { over_ = {}; }
  /// Ends wait(), now or later. Any thread.
  void signal() { canele_condition_signal(&over_, 1); }
  /// Blocks until signal(). Makes progress, and takes messages out of the queue.
  void wait();

  /// Notes what is wrong about a message. Any thread.
  void note(const char* fault);
  /// Ends the job if a call has failed. Any thread.
  void require(int code, const char* call) const;

 private:
  static void on_message(const canele_am_message_t* message, void* arrivals);
  static void* on_place(const canele_am_message_t* message, void* arrivals);
  static void on_error(canele_session_t* session, int peer, int error, void* arrivals);
  std::uint64_t check(const canele_am_message_t& message);
  void take();

  Job& job_;
  canele_session_t* const session_;
  const ActiveCase& one_;
  const Plan plan_;
  const Function function_;
  void* const owner_;
  const Pattern pattern_;
  LineArray<std::byte> places_;  ///< a buffer for each message of a window
  canele_queue_t queue_{};
  canele_condition_t over_{};
  bool thorough_ = false;
  std::atomic<std::uint64_t> count_{0}, sum_{0};  ///< of messages, and of their numbers
  std::atomic<const char*> fault_{nullptr};       ///< the first one
};

}  // namespace canele::perf

// SPDX-License-Identifier: BSD-3-Clause
//
// Platform: the outside world (time, randomness, threads, sleeping, environment, files, log) as the engine may see it.
//
// Everything in comm, ltask and strategies uses this interface. There, only posix_platform.cpp may call the system for
// these. A simulator supplies its own platform. Any thread may call every function.
//
// `lock_appears_busy` is a fault point: it lets a single-threaded simulation take the "lock was busy" branches.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ltask/shared_memory.hpp"

namespace canele {

enum class LogLevel : int { error = 0, warning = 1, info = 2, debug = 3 };

/// Result of read_file().
struct FileText {
  bool there = false;   ///< false: no file has that name.
  bool whole = false;   ///< `text` is the whole file.
  std::string text;     ///< at most the requested number of bytes.
  std::string problem;  ///< "", or why it could not be read.
};

/// A running thread; its destructor joins.
class PlatformThread {
 public:
  virtual ~PlatformThread() = default;
  /// Returns the OS name of the thread (gettid), 0 where there is none.
  virtual long native_id() const = 0;
  /// Ends what Platform::use_idle_cores_only() has begun, if that is permitted. Any thread.
  virtual void use_busy_cores() noexcept {}
};

/// What one thread sleeps on: descriptors, and a doorbell.
class WakeSet {
 public:
  virtual ~WakeSet() = default;
  /// Adds a descriptor whose readability ends wait(). Returns false if that is not possible.
  virtual bool watch(int descriptor) noexcept = 0;
  /// Takes a descriptor out again. Any thread.
  virtual void unwatch(int descriptor) noexcept = 0;
  /// Sleeps until a watched descriptor is readable or the bell has rung, at most timeout_ns. May return early.
  virtual void wait(std::uint64_t timeout_ns) noexcept = 0;
  /// Rings the bell, for this wait() and the next ones, until quiet(). Any thread.
  virtual void ring() noexcept = 0;
  /// Takes back all rings.
  virtual void quiet() noexcept = 0;
  /// Returns a descriptor that is readable while wait() would not sleep; -1: there is none.
  virtual int descriptor() const noexcept { return -1; }
};

/// Lets one thread sleep until a time that other threads may move.
class Alarm {
 public:
  virtual ~Alarm() = default;
  /// Sets the end of the sleep to `ns` from now, whatever was set before. Any thread; wakes no thread before that time.
  virtual void set(std::uint64_t ns) noexcept = 0;
  /// Sleeps until then. May return early. One thread.
  virtual void wait() noexcept = 0;
  /// Adds a descriptor for heed(), one at most, before any thread sleeps. Returns false if that is not possible.
  virtual bool watch(int /*descriptor*/) noexcept { return false; }
  /// Lets the descriptor's readability end the sleep, once; then has_heard(). Returns false if none is watched. Any
  /// thread.
  virtual bool heed() noexcept { return false; }
  /// Undoes heed(). Returns false if no descriptor is watched. Any thread.
  virtual bool ignore() noexcept { return false; }
  /// Returns whether the descriptor ended the last wait(), before its time.
  virtual bool has_heard() const noexcept { return false; }
};

class Platform {
 public:
  virtual ~Platform() = default;

  /// Monotonic clock, in nanoseconds.
  virtual std::uint64_t now_ns() noexcept = 0;
  /// Returns 64 random bits.
  virtual std::uint64_t random() noexcept = 0;

  /// Returns an environment variable, or nullptr. The pointer is valid until the environment changes.
  virtual const char* variable(const char* name) noexcept = 0;
  /// Visits the environment's "NAME=value" strings that start with `prefix`.
  virtual void each_variable(std::string_view prefix, const std::function<void(std::string_view)>& visit) = 0;

  /// Returns the first `most` bytes of a regular file; never waits for a writer. A simulated world has no files unless
  /// it supplies some.
  virtual FileText read_file(const std::string& /*path*/, std::size_t /*most*/) { return {}; }

  /// Allocates `size` zero bytes that other processes of this host can map. Returns nullptr and sets *why if there are
  /// none.
  virtual std::unique_ptr<SharedMemory> share_memory(std::size_t /*size*/, std::string* why) {
    *why = "this platform cannot share memory";
    return nullptr;
  }
  /// Maps memory that another process, or this one, has allocated by share_memory(). Returns nullptr if it cannot.
  virtual std::unique_ptr<SharedMemory> map_memory(const SharedMemoryName& /*name*/, std::size_t /*size*/) {
    return nullptr;
  }

  /// Starts a thread. Returns nullptr if the system has no thread to give.
  virtual std::unique_ptr<PlatformThread> start_thread(const char* name, std::function<void()> body) = 0;

  /// Returns whether its threads are the system's, so that each has its own thread_local data. False where they are
  /// fibers.
  virtual bool has_system_threads() const noexcept { return false; }
  /// Identifies the calling thread: two threads that run at the same time never get the same value.
  virtual const void* this_thread() noexcept { return nullptr; }

  /// Makes a wake set. Returns nullptr and sets *why if the system has no descriptors left. An engine needs one.
  virtual std::unique_ptr<WakeSet> make_wake_set(std::string* why) {
    *why = "this platform cannot sleep";
    return nullptr;
  }

  /// Executes one spin-loop pause.
  virtual void relax() noexcept = 0;
  /// Gives the core to another runnable thread.
  virtual void yield() noexcept = 0;
  /// Asks the scheduler for time slices of `ns` for the calling thread. Shorter slices end sooner, and come sooner
  /// after a sleep; the total time is unchanged. Returns the previous slice; 0: nothing was changed. (Linux 6.12 and
  /// later: sched_setattr(2), the slice of EEVDF.)
  virtual std::uint64_t set_slice(std::uint64_t /*ns*/) noexcept { return 0; }
  /// Makes the calling thread run only where a core has nothing else to do. (SCHED_IDLE; the thread still gets a few
  /// thousandths of a busy core. So it must never hold what others wait for.)
  virtual void use_idle_cores_only() noexcept {}
  /// Sleeps while *word == expected, at most timeout_ns (~0: no limit). May return early.
  virtual void park(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                    std::uint64_t timeout_ns) noexcept = 0;
  /// Makes an alarm, with park() and unpark() where there is nothing better.
  virtual std::unique_ptr<Alarm> make_alarm();
  /// Wakes all threads parked on the word.
  virtual void unpark(const std::atomic<std::uint32_t>& word) noexcept = 0;

  /// Returns the OS index of the processing unit that the caller runs on; the caller may have moved when this returns.
  virtual int current_unit() noexcept { return 0; }

  /// Moves the calling thread to that unit; the scheduler may move it on. Returns false if that is not possible.
  virtual bool move_to_unit(int /*unit*/) noexcept { return false; }

  /// Returns the OS index of the unit that falls to the share-th of several threads, in turn. -1: the calling thread is
  /// pinned, or the unit is unknown.
  virtual int share_of_units(unsigned /*share*/) noexcept { return -1; }

  /// Keeps the calling thread off that unit, as far as it may run elsewhere; -1: off none. Returns false if nothing was
  /// changed.
  virtual bool keep_off_unit(int /*unit*/) noexcept { return false; }

  /// Returns the number of processing units that are online in this machine.
  virtual unsigned processors() noexcept = 0;

  /// Returns the process id of the caller (to detect a fork).
  virtual long process() noexcept = 0;

  /// Logs one line for people, in production to stderr.
  virtual void log(LogLevel level, std::string_view text) noexcept = 0;

  /// Fault point, in the simulator's copy of the engine only: see the top of the file.
  bool (*lock_appears_busy)(Platform&) = nullptr;
};

/// Returns the real platform. One instance for the process, without state that needs construction.
Platform& posix_platform();

}  // namespace canele

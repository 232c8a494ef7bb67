// SPDX-License-Identifier: BSD-3-Clause
//
// Platform: the outside world (time, randomness, threads, sleeping, environment, files, log) as the engine may see it.
//
// Who: everything in comm, ltask and strategies goes through this; posix_platform.cpp is the only file there that
//     may call the system for these. A simulator brings its own.
// Threads: every function may be called by any thread.
// Surprise: `lock_appears_busy` is a fault point: it lets a single-threaded simulation take the "lock was busy"
//     branches.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace canele {

enum class LogLevel : int { error = 0, warning = 1, info = 2, debug = 3 };

/// What read_file() found.
struct FileText {
  bool there = false;   ///< false: nothing has that name
  bool whole = false;   ///< `text` is all of it
  std::string text;     ///< at most as many bytes as asked for
  std::string problem;  ///< "" or why it could not be read
};

/// A running thread; destroying it joins.
class PlatformThread {
 public:
  virtual ~PlatformThread() = default;
  /// The OS name of the thread (gettid), 0 where there is none.
  virtual long native_id() const = 0;
  /// Ends what Platform::use_idle_cores_only() has begun, if that is permitted. Any thread.
  virtual void use_busy_cores() noexcept {}
};

/// What one thread sleeps on: descriptors, and a bell.
class WakeSet {
 public:
  virtual ~WakeSet() = default;
  /// Adds a descriptor whose readability ends wait(). False: not possible.
  virtual bool watch(int descriptor) noexcept = 0;
  /// Sleeps until a watched descriptor is readable or the bell has rung, at most timeout_ns. May return early.
  virtual void wait(std::uint64_t timeout_ns) noexcept = 0;
  /// Rings the bell, for this wait() and the next ones, until quiet(). Any thread.
  virtual void ring() noexcept = 0;
  /// Takes back all rings.
  virtual void quiet() noexcept = 0;
  /// Readable while wait() would not sleep; -1: there is no such descriptor.
  virtual int descriptor() const noexcept { return -1; }
};

/// What one thread sleeps on until a time that others move.
class Alarm {
 public:
  virtual ~Alarm() = default;
  /// The sleep ends in so many ns from now, whatever was set before. Any thread; wakes nobody before that.
  virtual void set(std::uint64_t ns) noexcept = 0;
  /// Sleeps until then. May return early. One thread.
  virtual void wait() noexcept = 0;
  /// A descriptor that can be heeded, one at most, before anybody sleeps. False: not possible.
  virtual bool watch(int /*descriptor*/) noexcept { return false; }
  /// From now on, and once, its readability ends the sleep, too: then has_heard(). False: none is watched. Any thread.
  virtual bool heed() noexcept { return false; }
  /// No more. False: none is watched. Any thread.
  virtual bool ignore() noexcept { return false; }
  /// The last wait() ended by the descriptor, before its time.
  virtual bool has_heard() const noexcept { return false; }
};

class Platform {
 public:
  virtual ~Platform() = default;

  /// Monotonic clock, nanoseconds.
  virtual std::uint64_t now_ns() noexcept = 0;
  /// 64 random bits.
  virtual std::uint64_t random() noexcept = 0;

  /// Environment variable, or nullptr. The pointer is valid until the environment changes.
  virtual const char* variable(const char* name) noexcept = 0;
  /// The environment as "NAME=value" strings that start with `prefix`.
  virtual void each_variable(std::string_view prefix, const std::function<void(std::string_view)>& visit) = 0;

  /// The first `most` bytes of a regular file; never waits for a writer. A simulated world has no files unless it
  /// brings some.
  virtual FileText read_file(const std::string& /*path*/, std::size_t /*most*/) { return {}; }

  /// nullptr if the system has no thread to give.
  virtual std::unique_ptr<PlatformThread> start_thread(const char* name, std::function<void()> body) = 0;

  /// Its threads are the system's: what is thread_local differs between them. Not so where they are fibers.
  virtual bool has_system_threads() const noexcept { return false; }
  /// Which thread calls: two that run at the same time never have the same.
  virtual const void* this_thread() noexcept { return nullptr; }

  /// nullptr and *why if the system has no descriptors left. Without one an engine cannot be made.
  virtual std::unique_ptr<WakeSet> make_wake_set(std::string* why) {
    *why = "this platform cannot sleep";
    return nullptr;
  }

  /// One spin-loop pause.
  virtual void relax() noexcept = 0;
  /// Gives the core to another runnable thread.
  virtual void yield() noexcept = 0;
  /// Asks the scheduler for turns of so many ns for the calling thread: shorter ones are over sooner, and come sooner
  /// to who has slept; how much time it gets in all is the same. Returns what it was; 0: nothing was changed.
  /// (Linux 6.12 and later: sched_setattr(2), the slice of EEVDF.)
  virtual std::uint64_t set_slice(std::uint64_t /*ns*/) noexcept { return 0; }
  /// From now on the calling thread runs only where a core has nothing else to do. (SCHED_IDLE; it has a few
  /// thousandths of a busy core all the same, so it must never hold what others wait for.)
  virtual void use_idle_cores_only() noexcept {}
  /// Sleeps while *word == expected, at most timeout_ns (~0: for ever). May return early.
  virtual void park(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                    std::uint64_t timeout_ns) noexcept = 0;
  /// By park() and unpark(), where there is nothing better.
  virtual std::unique_ptr<Alarm> make_alarm();
  /// Wakes all threads parked on the word.
  virtual void unpark(const std::atomic<std::uint32_t>& word) noexcept = 0;

  /// OS index of the processing unit that the caller runs on; it may have moved when this returns.
  virtual int current_unit() noexcept { return 0; }

  /// Moves the calling thread to that unit; the scheduler may move it on. False: not possible.
  virtual bool move_to_unit(int /*unit*/) noexcept { return false; }

  /// OS index of the unit that falls to the share-th of several threads, in turn. -1: the calling thread is bound, or
  /// it cannot be told.
  virtual int share_of_units(unsigned /*share*/) noexcept { return -1; }

  /// From now on the scheduler runs the calling thread anywhere but there, as far as it may run elsewhere; -1: anywhere
  /// again. False: nothing was changed.
  virtual bool keep_off_unit(int /*unit*/) noexcept { return false; }

  /// Processing units that are online in this machine.
  virtual unsigned processors() noexcept = 0;

  /// Process id of the caller (to notice a fork).
  virtual long process() noexcept = 0;

  /// One line for people, to stderr in production.
  virtual void log(LogLevel level, std::string_view text) noexcept = 0;

  /// Fault point, in the simulator's copy of the engine only: see the top of the file.
  bool (*lock_appears_busy)(Platform&) = nullptr;
};

/// The real thing. One instance for the process, without state that needs construction.
Platform& posix_platform();

}  // namespace canele

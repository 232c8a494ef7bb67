// SPDX-License-Identifier: BSD-3-Clause
//
// Explorer: runs a small program of several threads in every order of its steps, one after the other.
//
// Used through stand_ins.hpp. There are no real threads: the program's "threads" are fibers of the calling one.
//
// A step is one access to a shared object, chosen before it is made. So it is known which steps commute. Of the orders
// that differ only by swapping such steps, one is run (sleep sets; Godefroid 1996).
//
// With store buffers, a store that is not sequentially consistent reaches memory later, at a step of its own, as on x86
// (TSO). With views, a load may read a value that is no longer the newest, as on ARM64 (views.hpp). The value that it
// reads is a choice, too.
//
//   path_:  step, step, step ─┬─ the last choice that has an alternative: the next run takes that one
//                             └─ …
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/exhaustive/schedules/views.hpp"

namespace canele::exhaustive {

/// The access that the next step of a thread makes.
struct Access {
  const char* what = "start";
  const void* object = nullptr;  ///< nullptr: nothing that other threads see
  bool write = false;
  bool drains = false;      ///< possible only when the thread's store buffer is empty.
  bool everything = false;  ///< commutes with no step.
  bool sequential = false;  ///< with views: sequentially consistent, so it does not commute with a sequentially
                            ///< consistent fence
  bool fence = false;       ///< with views: a sequentially consistent fence.
  bool old = false;         ///< with views: a load, which may also read the value from before a store
};

/// The memory model of a program: every access takes effect at once; x86; what C++ promises (ARM64).
enum class Memory { in_sequence, store_buffers, views };

class Explorer {
 public:
  struct Options {
    Memory memory = Memory::in_sequence;
    bool reduce = true;  ///< false: runs every order, also of steps that commute
    std::uint64_t most_steps = 1000;
    unsigned most_old = ~0u;  ///< with views: so many loads of an order read a value that is not the newest.
    /// An order leaves a thread that could continue at most so many times (Musuvathi and Qadeer 2007). With `reduce`,
    /// some orders within the bound are left out.
    unsigned most_preemptions = ~0u;
  };
  struct Outcome {
    std::uint64_t worlds = 0;  ///< orders that were run to their end; those that only repeat another do not count
    std::uint64_t steps = 0;
    std::string failure;  ///< "" or what went wrong, and in which order
  };

  /// Builds a World for every order. Its constructor may spawn(); check() is called when all threads have ended.
  template <typename World>
  static Outcome explore(const Options& options) {
    return explore(options, [] { return std::make_unique<World>(); });
  }
  template <typename Make>
  static Outcome explore(const Options& options, Make make) {
    Explorer explorer(options);
    do {
      explorer.begin();
      auto world = make();
      if (explorer.run()) world->check();
      if (!explorer.outcome_.failure.empty()) {
        (void)world.release();  // its threads are in the middle of their code
        break;
      }
      world.reset();
    } while (explorer.next());
    return std::move(explorer.outcome_);
  }

  /// Returns the explorer that is running a world; nullptr outside of explore().
  static Explorer* current();

  /// Starts a thread. Called from a world's constructor or one of its threads. Returns the thread's number.
  int spawn(std::function<void()> body);
  /// Waits for the end of `thread`.
  void join(int thread);
  /// Announces the calling thread's next access; returns when the access may be made. With `ready`: not before that
  /// condition holds, which only steps on the same object may change.
  void step(const Access& access, const std::function<bool()>* ready = nullptr);
  /// Announces that the calling thread is about to enter something that works as a lock. Like step(); besides, the
  /// thread that enters sees what others did before they left.
  void enter(const Access& access, const std::function<bool()>* ready = nullptr);
  void leave(const Access& access);
  /// Announces a system call: enters and leaves.
  void call(const Access& access, const std::function<bool()>* ready = nullptr);
  /// Notes a use of data that is not atomic. Returns false if the thread need not see what others have done there. No
  /// step.
  bool touch(const void* object);
  /// Lets another thread make a step first, if there is one that can.
  void yield();
  /// Makes the fence that one thread imposes on all threads.
  void fence_everywhere();
  /// Returns an identity that differs between the threads. While a world is being built: that of its first thread.
  const void* self() const { return &threads_[static_cast<std::size_t>(running_ == none ? 0 : running_)]; }
  /// Reports a failure of the world; does not return if called by a thread.
  void fail(const std::string& what);

  bool buffers() const { return options_.memory == Memory::store_buffers && running_ >= 0; }
  /// Puts a store into the running thread's buffer.
  void put(void* address, std::uint64_t bits, std::size_t size);
  /// Returns the youngest store to `address` in the running thread's buffer, or nullptr.
  const std::uint64_t* buffered(const void* address) const;

  /// Returns whether memory has views, and a thread runs. Then the accesses below have the effect of a step; `newest`
  /// is in memory.
  bool views() const { return options_.memory == Memory::views && running_ >= 0; }
  std::uint64_t load(const void* address, std::uint64_t newest, std::memory_order order);
  void store(const void* address, std::uint64_t newest, std::uint64_t bits, std::memory_order order);
  void update(const void* address, std::uint64_t newest, std::uint64_t bits, std::memory_order order);
  /// Reads for a compare-exchange. It succeeds, and then updates, if the returned value is `expected`. It can succeed
  /// on the newest value only.
  std::uint64_t compare(const void* address, std::uint64_t newest, std::uint64_t expected, std::memory_order failure);
  void fence(std::memory_order order);

 private:
  static constexpr int most_threads = Views::most_threads,
                       none = -1;  // ids from most_threads on: the store buffer of a thread
  struct Store {
    void* address;
    std::uint64_t bits;
    std::size_t size;
  };
  struct Thread {
    ucontext_t context;  ///< where it begins
    jmp_buf place;       ///< where it goes on: a jump, unlike swapcontext(), makes no system call
    std::unique_ptr<char[]> stack;
    std::function<void()> body;
    Access pending;
    const std::function<bool()>* ready = nullptr;
    bool begun = false, ended = true, yielded = false;
    std::deque<Store> buffer;
  };
  /// One choice: which threads could run, which of them have been explored or need not be, which one runs. Or the
  /// choice of the value that a load reads.
  struct Node {
    std::uint32_t enabled, asleep;
    int chosen;
  };
  struct Event {
    int id;
    const char* what;
    const void* object;
    std::size_t age = 0;  ///< how much older than the newest the value is that it read
  };

  explicit Explorer(const Options& options);
  ~Explorer();
  void begin();
  bool run();
  bool next();
  static void enter();
  void choose();
  int decide(std::uint32_t enabled);
  std::size_t pick(std::size_t count);
  std::uint32_t enabled_ids();
  Access access_of(int id) const;
  bool commute(int asleep, int chosen) const;
  static bool commute(const Access& asleep, const Access& chosen);
  void flush(int thread);
  void switch_to(int thread);
  void give_up();
  std::string order() const;

  const Options options_;
  Outcome outcome_;
  std::array<Thread, most_threads> threads_;
  jmp_buf main_{};
  int running_ = none, spawned_ = 0;
  std::vector<Node> path_;
  std::size_t depth_ = 0;
  std::uint32_t asleep_ = 0;  ///< at the next choice
  bool repeats_ = false;      ///< this run only repeats another from here on
  std::vector<Event> events_;
  Views views_;
  unsigned old_ = 0;          ///< loads so far that have read a value that is not the newest
  unsigned preemptions_ = 0;  ///< so far, of threads that could continue
};

}  // namespace canele::exhaustive

// SPDX-License-Identifier: BSD-3-Clause
//
// Explorer: runs a small program of several threads in every order of its steps, one after the other.
//
// Who: the tests of this directory, through stand_ins.hpp.
// Threads: none: its "threads" are fibers of the calling one.
// Surprise: a step is one access to a shared object, chosen before it is made. So it is known which steps commute, and
//     of orders that differ by swapping those only one is run (sleep sets; Godefroid 1996). With store buffers a store
//     that is not sequentially consistent reaches memory later, at a step of its own, as on x86 (TSO).
//
//   path_:  step, step, step ─┬─ the last choice that has an alternative: the next run takes that one
//                             └─ …
#pragma once

#include <ucontext.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace canele::exhaustive {

/// What the next step of a thread touches.
struct Access {
  const char* what = "start";
  const void* object = nullptr;  ///< nullptr: nothing that others see
  bool write = false;
  bool drains = false;      ///< only when the thread's store buffer is empty
  bool everything = false;  ///< commutes with no step
};

class Explorer {
 public:
  struct Options {
    bool store_buffers = false;
    bool reduce = true;  ///< false: every order, also of steps that commute
    std::uint64_t most_steps = 1000;
  };
  struct Outcome {
    std::uint64_t worlds = 0;  ///< orders that were run to their end; those that only repeat another do not count
    std::uint64_t steps = 0;
    std::string failure;  ///< "" or what went wrong, and in which order
  };

  /// Builds a World for every order: its constructor may spawn(), check() is called when all threads have ended.
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
        (void)world.release();  // its threads stand in the middle of something
        break;
      }
      world.reset();
    } while (explorer.next());
    return std::move(explorer.outcome_);
  }

  /// The one that is running a world; nullptr outside of explore().
  static Explorer* current();

  /// From a world's constructor or one of its threads. Returns the thread's number.
  int spawn(std::function<void()> body);
  /// Waits for its end.
  void join(int thread);
  /// The calling thread is about to make this access; returns when it is its turn. With `ready`: not before that holds,
  /// which only steps on the same object may change.
  void step(const Access& access, const std::function<bool()>* ready = nullptr);
  /// Not before another thread has made a step, if there is one that can.
  void yield();
  /// A fence that another thread has all threads make.
  void fence_everywhere();
  /// Differs between the threads. While a world is being built: that of its first thread.
  const void* self() const { return &threads_[static_cast<std::size_t>(running_ == none ? 0 : running_)]; }
  /// What a world finds wrong; does not return if called by a thread.
  void fail(const std::string& what);

  bool buffers() const { return options_.store_buffers && running_ >= 0; }
  /// Puts a store into the running thread's buffer.
  void put(void* address, std::uint64_t bits, std::size_t size);
  /// The youngest store to `address` in the running thread's buffer, or nullptr.
  const std::uint64_t* buffered(const void* address) const;

 private:
  static constexpr int most_threads = 8, none = -1;  // ids from most_threads on: the store buffer of a thread
  struct Store {
    void* address;
    std::uint64_t bits;
    std::size_t size;
  };
  struct Thread {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    std::function<void()> body;
    Access pending;
    const std::function<bool()>* ready = nullptr;
    bool ended = true, yielded = false;
    std::deque<Store> buffer;
  };
  /// One choice: who could go, whose turn has been explored or need not be, who goes.
  struct Node {
    std::uint32_t enabled, asleep;
    int chosen;
  };
  struct Event {
    int id;
    const char* what;
    const void* object;
  };

  explicit Explorer(const Options& options);
  ~Explorer();
  void begin();
  bool run();
  bool next();
  static void enter();
  void choose();
  int decide(std::uint32_t enabled);
  std::uint32_t enabled_ids();
  Access access_of(int id) const;
  bool commute(int a, int b) const;
  void flush(int thread);
  void switch_to(int thread);
  void leave();
  std::string order() const;

  const Options options_;
  Outcome outcome_;
  std::array<Thread, most_threads> threads_;
  ucontext_t main_{};
  int running_ = none, spawned_ = 0;
  std::vector<Node> path_;
  std::size_t depth_ = 0;
  std::uint32_t asleep_ = 0;  ///< at the next choice
  bool repeats_ = false;      ///< this run only repeats another from here on
  std::vector<Event> events_;
};

}  // namespace canele::exhaustive

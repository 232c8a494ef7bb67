// SPDX-License-Identifier: BSD-3-Clause
//
// Views: memory that is no stronger than C++ promises it, as programs meet it on ARM64. Its threads are the Explorer's,
// by number.
//
// A store changes nothing that other threads must see. Each location keeps all messages (values) ever stored. A thread
// has a view: the oldest message of each location that it may still read. The view advances by what the thread reads
// and writes itself, and by the views that acquired messages carry.
//
//   location:   message 0 ──▶ 1 ──▶ 2 ──▶ 3        a load reads any message from the thread's view on;
//                                   ▲              a read-modify-write reads the last one, and adds one
//                          view of a thread
//
// Release, acquire, fences and release sequences follow the standard. Sequentially consistent accesses follow RC11
// (Lahav et al. 2017): such a load reads nothing older than the last such store. The order of the stores to one
// location is the order in which they are made. So this memory does not show two effects. It does not show a load that
// sees a store that follows it in its own thread (load buffering). Nor does it show one location's stores in another
// order than they are made (2+2W, S).
//
// Rejected: ARM's own rules (dependencies order accesses): compilers may remove a dependency.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace canele::exhaustive {

class Views {
 public:
  static constexpr int most_threads = 8;
  using Stamp = std::uint32_t;

  /// Forgets all messages and views.
  void begin();
  /// Starts a thread; `parent` has created it (negative: it existed before all others).
  void start(int thread, int parent);
  /// Notes that `thread` has seen the end of `other`.
  void join(int thread, int other) { merge(threads_[index(thread)], threads_[index(other)]); }

  /// Returns the values that a load may read, newest first. `bits`: the value before any thread has stored one.
  std::vector<std::uint64_t> readable(int thread, const void* address, std::uint64_t bits, std::memory_order order);
  /// Reads the message that is `age` messages older than the newest.
  std::uint64_t read(int thread, const void* address, std::size_t age, std::memory_order order);
  void write(int thread, const void* address, std::uint64_t before, std::uint64_t bits, std::memory_order order);
  /// Reads the newest message, and stores the next one.
  void update(int thread, const void* address, std::uint64_t before, std::uint64_t bits, std::memory_order order);

  void fence(int thread, std::memory_order order);
  /// Makes the fence that `thread` imposes on all threads.
  void fence_everywhere(int thread, int threads);
  /// Updates what the holder of a lock sees, and what it shows to the next holder.
  void acquire(int thread, const void* object);
  void release(int thread, const void* object);
  /// Makes the thread see all stores: it has waited long enough.
  void catch_up(int thread);
  /// Notes a use of data that is not atomic. Returns false if the thread need not see what was done there before.
  bool touch(int thread, const void* object);

 private:
  using View = std::vector<Stamp>;  ///< by location; none: 0
  struct Message {
    std::uint64_t bits;
    View view;
  };
  struct Location {
    std::size_t number;
    std::vector<Message> messages;
  };
  struct Thread {
    View now, acquired, released;  ///< read by acquire fences; written at release fences
  };

  static std::size_t index(int thread) { return static_cast<std::size_t>(thread); }
  static void merge(View& into, const View& from);
  static void merge(Thread& into, const Thread& from);
  static Stamp of(const View& view, std::size_t location) { return location < view.size() ? view[location] : 0; }
  static void raise(View& view, std::size_t location, Stamp stamp);
  Location& at(const void* address, std::uint64_t bits);
  void see(Thread& thread, const Location& location, Stamp stamp, std::memory_order order);
  void append(Thread& thread, Location& location, std::uint64_t bits, std::memory_order order, bool continues);

  std::array<Thread, most_threads> threads_;
  std::unordered_map<const void*, Location> locations_;
  std::unordered_map<const void*, View> locks_;
  View sequential_;  ///< the last sequentially consistent stores, and what threads saw at sequentially consistent
                     ///< fences
};

}  // namespace canele::exhaustive

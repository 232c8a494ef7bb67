// SPDX-License-Identifier: BSD-3-Clause
//
// State of the fake CUDA driver: a libcuda.so.1 for tests on machines without a GPU.
//
// Device memory has two mappings of one memfd. The program has the address of the first one, which no access right
// covers: a touch by the processor crashes, and a system call gets EFAULT. The fake itself uses the second one.
//
//     program ──▶ view (PROT_NONE) ──┐
//                                    ├── memfd
//     copies  ──▶ alias (read/write) ┘
//
// One thread makes all copies, after random delays. Each stream has its copies in order; which stream comes next is
// drawn from a seed. A copy reads its source when it is executed. Its destination is filled with `poison` when the copy
// is requested, so that a reader that is too early sees wrong data.
//
// Threading: `Fake::mutex` guards everything; a copy is made without it. The objects are never freed at exit.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "tests/gpu/cuda_test_api.hpp"

#define CANELE_FAKE_API extern "C" __attribute__((visibility("default")))

namespace canele::drivers::cuda {

struct ContextObject {
  int device = 0;
  bool alive = true;
};

struct EventObject {
  Context context = nullptr;
  std::uint64_t recorded = 0;  ///< number of its records
  std::uint64_t executed = 0;  ///< of these, how many the copying thread has reached
  bool destroyed = false;
};

struct StreamObject {
  Context context = nullptr;
  bool destroyed = false;
  bool held = false;
  std::uint64_t queued = 0, executed = 0;
};

}  // namespace canele::drivers::cuda

namespace canele::fake_cuda {

using namespace canele::gpu_test;

inline constexpr unsigned char poison = 0xdb;

enum class Kind : std::uint8_t { plain, pool, virtual_memory, managed, imported };

struct Allocation {
  Kind kind = Kind::plain;
  int device = 0;
  Context context = nullptr;  ///< nullptr for pools and virtual memory, as on the real driver
  std::uint64_t id = 0;
  int memfd = -1;
  std::byte* view = nullptr;  ///< the program's address
  std::byte* alias = nullptr;
  std::size_t size = 0;    ///< asked for
  std::size_t mapped = 0;  ///< whole pages
  int opened = 0;          ///< of imported memory: number of opens
  std::string origin;      ///< of imported memory: the handle's bytes
  int copies = 0;          ///< queued copies that use it
  bool sync_memops = false;
};

/// Host memory that is pinned.
struct Pinned {
  std::size_t size = 0;
  bool owned = false;  ///< by cuMemHostAlloc
};

struct Work {
  enum class Kind : std::uint8_t { copy, record, wait } kind = Kind::copy;
  gpu_test::Copy2D copy{};
  Allocation* from = nullptr;
  Allocation* to = nullptr;
  Event event = nullptr;
  std::uint64_t number = 0;  ///< of a record or wait
};

struct Scripted {
  std::string function;
  int skip = 0;
  Result error = success;
  bool sticky = false;
};

/// Physical memory of cuMemCreate.
struct Physical {
  int device = 0;
  int memfd = -1;
  std::size_t size = 0;
};

struct DeviceState {
  Context primary = nullptr;
  unsigned retained = 0;
  std::size_t used = 0;
};

class Fake {
 public:
  std::mutex mutex;
  std::condition_variable changed;
  bool initialised = false;
  int owner = 0;  ///< process that called cuInit
  std::uint64_t seed = 1;
  unsigned delay_us = 20;
  std::size_t memory_limit = 0, pinned_limit = 0;  ///< bytes; 0: none
  std::size_t pinned_bytes = 0;
  bool refuses_ipc = false;
  bool refuses_pageable = false;
  bool held = false;
  int let_through = 0;  ///< copies that run although all are held back
  std::uint64_t pageable = 0;
  std::uint64_t next_id = 1;
  Result sticky = success;
  std::vector<DeviceState> devices;
  std::map<std::uintptr_t, std::unique_ptr<Allocation>> memory;  ///< by view
  std::map<std::uintptr_t, Pinned> pinned;
  std::map<std::uint64_t, Physical> physical;
  std::map<std::uintptr_t, std::size_t> reserved;
  std::map<Stream, std::deque<Work>> queues;
  std::map<Stream, std::unique_ptr<StreamObject>> streams;
  std::map<Event, std::unique_ptr<EventObject>> events;
  std::vector<std::unique_ptr<ContextObject>> contexts;
  std::vector<Scripted> scripts;
  std::map<std::string, std::uint64_t> calls;
  std::mt19937_64 dice;
  bool thread_runs = false;

  Allocation* find(DevicePtr pointer);
  bool is_pinned(DevicePtr pointer) const;
};

/// The one state of this process.
Fake& fake();

/// Contexts that are current in this thread, the last one on top.
extern thread_local std::vector<Context> current;

/// Begins a call: takes the mutex, counts, and finds out whether the call fails.
class Call {
 public:
  enum class Needs : std::uint8_t { nothing, init, context };
  explicit Call(const char* function, Needs needs = Needs::context);
  /// What the call returns before it has done anything; success: it may go on.
  Result result = success;
  Fake& state;
  std::unique_lock<std::mutex> lock;
  Context context = nullptr;  ///< the current one
};

/// Reads the settings of the environment (FAKE_CUDA_...). Called by cuInit.
void read_environment(Fake& state);
/// Ends the process with a message: the program has done what no driver forgives.
[[noreturn]] void violation(const std::string& what);

/// Makes device memory. Returns nullptr if there is none left.
Allocation* allocate(Fake& state, Kind kind, int device, Context context, std::size_t size);
/// Maps an existing memfd as device memory, at `address` if that is not nullptr.
Allocation* map_memory(Fake& state, Kind kind, int memfd, std::size_t size, void* address);
Result release(Fake& state, DevicePtr pointer);

/// Queues work, and starts the copying thread. Called with the mutex.
void enqueue(Fake& state, Stream stream, const Work& work);
/// Blocks until the stream has executed all its work. `lock` holds the mutex.
void drain(Fake& state, std::unique_lock<std::mutex>& lock, Stream stream);
/// Queues a copy, or makes it at once if its host memory is not pinned.
Result copy(Call& call, const gpu_test::Copy2D& what, Stream stream);

}  // namespace canele::fake_cuda

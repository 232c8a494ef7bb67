// SPDX-License-Identifier: BSD-3-Clause
//
// Queries the kernel and malloc.
//
// The self driver's doorbell is a real descriptor, also in a simulated world: one per engine.
#include "apps/sim/process.hpp"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "drivers/sim/counted.hpp"

namespace canele::sim {
namespace {

constexpr long mappings_per_engine = 8;  // two stacks with a guard page each, three tables; adjacent mappings may merge
constexpr long spare = 200;

long read_number(const char* path) {
  long number = 0;
  std::ifstream(path) >> number;
  return number;
}

}  // namespace

MemoryUse memory_use() {
  MemoryUse use;
  std::size_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  use.resident = resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const struct mallinfo2 info = ::mallinfo2();
  use.heap = info.uordblks + info.hblkhd;
  use.counted = drivers::sim::counted_bytes;
  return use;
}

MemoryUse memory_after_trim() {
  ::malloc_trim(0);
  return memory_use();
}

std::size_t most_resident() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

std::string make_room_for(int engines) {
  const auto descriptors = static_cast<rlim_t>(engines + spare);
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < descriptors && descriptors <= limit.rlim_max) {
    limit.rlim_cur = descriptors;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  if (limit.rlim_cur < descriptors) {
    return std::to_string(engines) + " engines need " + std::to_string(descriptors) +
           " descriptors, and the limit is " + std::to_string(limit.rlim_max) +
           "; expected: fewer ranks, or a higher hard limit (ulimit -Hn)";
  }
  const long mappings = read_number("/proc/sys/vm/max_map_count");
  if (mappings != 0 && mappings < engines * mappings_per_engine + spare) {
    return std::to_string(engines) + " engines need " + std::to_string(engines * mappings_per_engine + spare) +
           " mappings, and the limit is " + std::to_string(mappings) +
           "; expected: fewer ranks, or a higher vm.max_map_count";
  }
  return "";
}

}  // namespace canele::sim

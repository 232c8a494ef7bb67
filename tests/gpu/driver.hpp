// SPDX-License-Identifier: BSD-3-Clause
//
// A driver for tests: all functions of libcuda.so.1 that they call, memory, and how to look into it.
//
// The fake driver is opened by its file name. CANELE_TEST_CUDA names another one, such as libcuda.so.1 of a real GPU;
// the controls of the fake are then nullptr.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/gpu/cuda_test_api.hpp"

#ifndef CANELE_FAKE_CUDA  // the tests' CMakeLists.txt tells where the fake driver is
#define CANELE_FAKE_CUDA "libcuda.so.1"
#endif

namespace canele::gpu_test {

struct Driver : Functions {
#define CANELE_MEMBER(name, parameters) Result(*name) parameters = nullptr;
  CANELE_CUDA_OF_TESTS(CANELE_MEMBER)
  CANELE_CUDA_CONTROLS(CANELE_MEMBER)
#undef CANELE_MEMBER
  std::string file;

  explicit Driver(const std::string& name) : file(name) {
    void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::abort();
    }
#define CANELE_LOOK_UP(function, parameters) \
  function = reinterpret_cast<Result(*) parameters>(dlsym(library, #function));
    CANELE_CUDA_REQUIRED(CANELE_LOOK_UP)
    CANELE_CUDA_OPTIONAL(CANELE_LOOK_UP)
    CANELE_CUDA_OF_TESTS(CANELE_LOOK_UP)
    CANELE_CUDA_CONTROLS(CANELE_LOOK_UP)
#undef CANELE_LOOK_UP
  }
  bool is_fake() const { return fakeCudaFail != nullptr; }
};

inline std::string driver_file() {
  const char* const other = std::getenv("CANELE_TEST_CUDA");
  return other != nullptr ? other : CANELE_FAKE_CUDA;
}

/// Returns the driver of this process, initialised, with the primary context of device 0 current in this thread.
inline Driver& driver() {
  static Driver* const one = [] {
    auto* const made = new Driver(driver_file());
    if (made->cuInit(0) != success) std::abort();
    return made;
  }();
  return *one;
}

/// Makes the primary context of a device current in this thread.
inline void use_device(int device) {
  Context context = nullptr;
  if (driver().cuDevicePrimaryCtxRetain(&context, device) != success) std::abort();
  driver().cuCtxSetCurrent(context);
}

/// Device memory of a test. Its context is that of the thread that has made it.
class DeviceMemory {
 public:
  enum class Kind { plain, pool, managed };
  explicit DeviceMemory(std::size_t size, Kind kind = Kind::plain) : size_(size) {
    const std::size_t bytes = size != 0 ? size : 1;
    const Result made = kind == Kind::plain  ? driver().cuMemAlloc_v2(&pointer_, bytes)
                        : kind == Kind::pool ? driver().cuMemAllocAsync(&pointer_, bytes, nullptr)
                                             : driver().cuMemAllocManaged(&pointer_, bytes, 1);
    if (made != success) std::abort();
  }
  explicit DeviceMemory(const std::string& bytes) : DeviceMemory(bytes.size()) { write(bytes); }
  ~DeviceMemory() {
    if (pointer_ != 0) driver().cuMemFree_v2(pointer_);
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  std::byte* data() const { return reinterpret_cast<std::byte*>(pointer_); }
  DevicePtr pointer() const { return pointer_; }
  std::size_t size() const { return size_; }
  void write(const std::string& bytes, std::size_t at = 0) const {
    if (driver().cuMemcpy(pointer_ + at, reinterpret_cast<DevicePtr>(bytes.data()), bytes.size()) != success)
      std::abort();
  }
  std::string read(std::size_t at, std::size_t length) const {
    std::string bytes(length, '\0');
    if (length != 0 && driver().cuMemcpy(reinterpret_cast<DevicePtr>(bytes.data()), pointer_ + at, length) != success)
      std::abort();
    return bytes;
  }
  std::string read() const { return read(0, size_); }

 private:
  DevicePtr pointer_ = 0;
  std::size_t size_;
};

/// Returns bytes that differ with the seed and with their position.
inline std::string pattern(std::size_t length, unsigned seed) {
  std::string bytes(length, '\0');
  std::uint32_t state = seed * 2'654'435'761u + 12'345u;
  for (char& one : bytes) {
    state = state * 1'664'525u + 1'013'904'223u;
    one = static_cast<char>(state >> 24);
  }
  return bytes;
}

}  // namespace canele::gpu_test

// SPDX-License-Identifier: BSD-3-Clause
//
// What the programs of this directory share that run as ranks of a job: the engine, buffers of both kinds, checks.
#pragma once

#include <canele/canele.h>
#include <canele/device.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "tests/gpu/checks.hpp"

namespace canele::gpu_test {

/// Ends the process if a call fails.
#define MUST(call)                                                                               \
  do {                                                                                           \
    if (const int code_ = (call); code_ != CANELE_OK) {                                          \
      std::fprintf(stderr, "line %d: %s: %s: %s\n", __LINE__, #call, canele_error_string(code_), \
                   canele_error_detail());                                                       \
      std::exit(3);                                                                              \
    }                                                                                            \
  } while (false)

/// A buffer of either kind.
class Buffer {
 public:
  Buffer(bool on_device, std::size_t size) : on_device_(on_device), host_(on_device ? 0 : size, '\xee') {
    if (!on_device) return;
    device_ = std::make_unique<DeviceMemory>(size);
    if (size != 0) driver().cuMemsetD8_v2(device_->pointer(), 0xee, size);
  }
  Buffer(bool on_device, const std::string& bytes) : Buffer(on_device, bytes.size()) { write(bytes); }
  void* data() { return on_device_ ? static_cast<void*>(device_->data()) : host_.data(); }
  void write(const std::string& bytes) {
    if (on_device_ && !bytes.empty()) device_->write(bytes);
    if (!on_device_) host_.replace(0, bytes.size(), bytes);
  }
  std::string read() const { return on_device_ ? device_->read() : host_; }

 private:
  bool on_device_;
  std::string host_;
  std::unique_ptr<DeviceMemory> device_;
};

/// The engine of this process, and a session.
struct Job {
  explicit Job(unsigned flags = CANELE_ORDER_PER_TAG) {
    use_device(0);
    MUST(canele_init(nullptr, &engine));
    MUST(canele_session_open(engine, "gpu", flags, &session));
    rank = canele_rank(engine);
    size = canele_size(engine);
    peer = size == 1 ? 0 : rank ^ 1;
    if (canele_device_support(engine, CANELE_MEMORY_CUDA) != 1) {
      std::fprintf(stderr, "no device: %s\n", canele_error_detail());
      std::exit(3);
    }
  }
  /// Ends the job; returns the exit code of the process.
  int end() {
    MUST(canele_session_close(session));
    MUST(canele_finalize(engine));
    return end_checks(rank);
  }
  void barrier() const { MUST(canele_barrier(session)); }

  canele_engine_t* engine = nullptr;
  canele_session_t* session = nullptr;
  int rank = 0, size = 1, peer = 0;
};

}  // namespace canele::gpu_test

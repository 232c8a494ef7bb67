// SPDX-License-Identifier: BSD-3-Clause
//
// libcuda.so.1, opened at run time.
//
// It is never linked and never closed: the program may use it until its end. libcuda.so, without the number, may be the
// toolkit's stub, which has no driver behind it.
#pragma once

#include <string>

#include "drivers/memory.hpp"
#include "drivers/memory/cuda/cuda_api.hpp"

namespace canele::drivers::cuda {

/// Opens the library and initialises the driver. Returns false and *why if there is no usable device. file: "" for
/// libcuda.so.1.
bool open_library(DeviceLibrary when, const std::string& file, Functions* functions, std::string* why);

/// Returns "call: CUDA_ERROR_... (number)".
std::string describe(const Functions& functions, const char* call, Result result);

/// Makes a context current for a scope, and the driver lenient towards captures of other threads. Restores both.
class Current {
 public:
  Current(const Functions& functions, Context context);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  Result result() const { return result_; }

 private:
  const Functions& functions_;
  Result result_;
  int mode_ = capture_relaxed;
};

}  // namespace canele::drivers::cuda

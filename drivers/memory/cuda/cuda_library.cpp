// SPDX-License-Identifier: BSD-3-Clause
//
// Opening libcuda.so.1, and what each call on it needs.
#include "drivers/memory/cuda/cuda_library.hpp"

#include <dlfcn.h>

namespace canele::drivers::cuda {
namespace {

/// Looks up all functions. Returns the name of a required one that is missing, or nullptr.
const char* look_up(void* library, Functions* functions) {
#define CANELE_CUDA_LOOK_UP(name, parameters) \
  functions->name = reinterpret_cast<Result(*) parameters>(dlsym(library, #name));
#define CANELE_CUDA_CHECK(name, parameters) \
  if (functions->name == nullptr) return #name;
  CANELE_CUDA_REQUIRED(CANELE_CUDA_LOOK_UP)
  CANELE_CUDA_OPTIONAL(CANELE_CUDA_LOOK_UP)
  CANELE_CUDA_REQUIRED(CANELE_CUDA_CHECK)
#undef CANELE_CUDA_LOOK_UP
#undef CANELE_CUDA_CHECK
  return nullptr;
}

void* open_file(DeviceLibrary when, const std::string& name, std::string* why) {
  const int if_there = when == DeviceLibrary::if_loaded ? RTLD_NOLOAD : 0;
  void* const library = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL | if_there);
  if (library != nullptr) return library;
  const char* const text = dlerror();
  *why = when == DeviceLibrary::if_loaded ? "the program has not loaded " + name
                                          : name + " cannot be loaded: " + (text != nullptr ? text : "no reason given");
  return nullptr;
}

}  // namespace

bool open_library(DeviceLibrary when, const std::string& file, Functions* functions, std::string* why) {
  const std::string name = file.empty() ? "libcuda.so.1" : file;
  void* const library = open_file(when, name, why);
  if (library == nullptr) return false;
  if (const char* const missing = look_up(library, functions); missing != nullptr) {
    *why = name + " has no function " + missing + ": it is older than CUDA 11";
    return false;
  }
  int version = 0, count = 0;
  const char* call = "cuInit";
  Result result = functions->cuInit(0);
  if (result == success) result = functions->cuDriverGetVersion(&version), call = "cuDriverGetVersion";
  if (result == success) result = functions->cuDeviceGetCount(&count), call = "cuDeviceGetCount";
  if (result == success && count > 0) return true;
  *why = result == success ? "there is no CUDA device" : describe(*functions, call, result);
  return false;
}

std::string describe(const Functions& functions, const char* call, Result result) {
  const char* name = nullptr;
  if (functions.cuGetErrorName(result, &name) != success || name == nullptr) name = "unknown error";
  return std::string(call) + ": " + name + " (" + std::to_string(result) + ")";
}

Current::Current(const Functions& functions, Context context) : functions_(functions) {
  result_ = functions_.cuCtxPushCurrent_v2(context);
  if (functions_.cuThreadExchangeStreamCaptureMode != nullptr) functions_.cuThreadExchangeStreamCaptureMode(&mode_);
}

Current::~Current() {
  if (functions_.cuThreadExchangeStreamCaptureMode != nullptr) functions_.cuThreadExchangeStreamCaptureMode(&mode_);
  if (result_ == success) functions_.cuCtxPopCurrent_v2(nullptr);
}

}  // namespace canele::drivers::cuda

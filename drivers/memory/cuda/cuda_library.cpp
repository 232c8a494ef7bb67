// SPDX-License-Identifier: BSD-3-Clause
//
// Opening libcuda.so.1, and what each call on it needs.
#include "drivers/memory/cuda/cuda_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <string_view>

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

std::string_view file_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// Returns whether the process has loaded a library of this file name. Unlike RTLD_NOLOAD it opens no file.
bool is_loaded(const std::string& name) {
  std::string_view wanted = file_of(name);
  const auto compare = [](dl_phdr_info* info, std::size_t, void* data) {
    return file_of(info->dlpi_name) == *static_cast<const std::string_view*>(data) ? 1 : 0;
  };
  return dl_iterate_phdr(compare, &wanted) != 0;
}

void* open_file(DeviceLibrary when, const std::string& name, std::string* why) {
  if (when == DeviceLibrary::if_loaded && !is_loaded(name)) {
    *why = "the program has not loaded " + name;
    return nullptr;
  }
  void* const library = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library != nullptr) return library;
  const char* const text = dlerror();
  *why = name + " cannot be loaded: " + (text != nullptr ? text : "no reason given");
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

// SPDX-License-Identifier: BSD-3-Clause
//
// Start, devices, contexts and controls of the fake driver.
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/gpu/fake_cuda/fake.hpp"

namespace canele::fake_cuda {

thread_local std::vector<Context> current;

/// Makes the fake. A child of fork finds the lock free, and learns from the process id that it is a child.
static Fake* make_fake() {
  Fake* const made = new Fake;  // never freed: the copying thread may outlive main
  pthread_atfork([] { fake().mutex.lock(); }, [] { fake().mutex.unlock(); }, [] { fake().mutex.unlock(); });
  return made;
}

Fake& fake() {
  static Fake* const one = make_fake();
  return *one;
}

void violation(const std::string& what) {
  std::fprintf(stderr, "fake_cuda: %s\n", what.c_str());
  std::abort();
}

namespace {

std::uint64_t number_of(const char* name, std::uint64_t fallback) {
  const char* const text = std::getenv(name);
  return text == nullptr || *text == '\0' ? fallback : std::strtoull(text, nullptr, 10);
}

/// Reads "function:skip:error[:sticky],...".
void read_scripts(Fake& state, const char* text) {
  for (std::string rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    char function[64] = "", sticky[8] = "";
    Scripted one;
    std::sscanf(rest.substr(0, end).c_str(), "%63[^:]:%d:%d:%7s", function, &one.skip, &one.error, sticky);
    one.function = function;
    one.sticky = std::strcmp(sticky, "sticky") == 0;
    state.scripts.push_back(one);
    rest.erase(0, std::min(end + 1, rest.size()));
  }
}

/// Returns the error that is scripted for a call of this function, or success.
Result scripted(Fake& state, const char* function) {
  for (auto one = state.scripts.begin(); one != state.scripts.end(); ++one) {
    if (one->function != function || one->skip-- > 0) continue;
    const Result error = one->error;
    if (one->sticky) state.sticky = error;
    state.scripts.erase(one);
    return error;
  }
  return success;
}

}  // namespace

void read_environment(Fake& state) {
  state.seed = number_of("FAKE_CUDA_SEED", 1);
  state.delay_us = static_cast<unsigned>(number_of("FAKE_CUDA_DELAY_US", 20));
  state.memory_limit = number_of("FAKE_CUDA_MEMORY", 0);
  state.pinned_limit = number_of("FAKE_CUDA_PINNED", 0);
  state.refuses_ipc = number_of("FAKE_CUDA_NO_IPC", 0) != 0;
  state.refuses_pageable = number_of("FAKE_CUDA_NO_PAGEABLE", 0) != 0;
  state.devices.resize(number_of("FAKE_CUDA_DEVICES", 2));
  state.dice.seed(state.seed * 1'000'003 + static_cast<std::uint64_t>(number_of("CANELE_RANK", 0)));
  if (const char* const script = std::getenv("FAKE_CUDA_FAIL")) read_scripts(state, script);
  if (number_of("FAKE_CUDA_QUIET", 0) == 0) {
    std::fprintf(stderr, "fake_cuda: FAKE_CUDA_SEED=%llu, %zu devices\n", static_cast<unsigned long long>(state.seed),
                 state.devices.size());
  }
}

Call::Call(const char* function, Needs needs) : state(fake()), lock(state.mutex) {
  ++state.calls[function];
  if (needs == Needs::nothing) {
    result = scripted(state, function);
    return;
  }
  if (!state.initialised || state.owner != getpid()) {
    result = not_initialized;
  } else if (state.sticky != success) {
    result = state.sticky;
  } else {
    result = scripted(state, function);
  }
  if (result != success || needs == Needs::init) return;
  context = current.empty() ? nullptr : current.back();
  if (context == nullptr) {
    result = invalid_context;
  } else if (!context->alive) {
    result = context_is_destroyed;
  }
}

namespace {

Context make_context(Fake& state, int device) {
  state.contexts.push_back(std::make_unique<ContextObject>());
  state.contexts.back()->device = device;
  return state.contexts.back().get();
}

bool has_device(const Fake& state, int device) {
  return device >= 0 && device < static_cast<int>(state.devices.size());
}

}  // namespace
}  // namespace canele::fake_cuda

using namespace canele::fake_cuda;

CANELE_FAKE_API Result cuInit(unsigned flags) {
  Call call("cuInit", Call::Needs::nothing);
  if (call.result != success) return call.result;
  if (flags != 0) return invalid_value;
  if (call.state.initialised) return call.state.owner == getpid() ? success : not_initialized;
  read_environment(call.state);
  if (call.state.devices.empty()) return no_device;
  call.state.owner = getpid();
  call.state.initialised = true;
  return success;
}

CANELE_FAKE_API Result cuDriverGetVersion(int* version) {
  const Call call("cuDriverGetVersion", Call::Needs::nothing);
  if (call.result == success) *version = 12'040;
  return call.result;
}

CANELE_FAKE_API Result cuGetErrorName(Result error, const char** name) {
  struct Name {
    Result error;
    const char* name;
  };
  static constexpr Name names[] = {{success, "CUDA_SUCCESS"},
                                   {invalid_value, "CUDA_ERROR_INVALID_VALUE"},
                                   {out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY"},
                                   {not_initialized, "CUDA_ERROR_NOT_INITIALIZED"},
                                   {invalid_device, "CUDA_ERROR_INVALID_DEVICE"},
                                   {invalid_context, "CUDA_ERROR_INVALID_CONTEXT"},
                                   {invalid_handle, "CUDA_ERROR_INVALID_HANDLE"},
                                   {not_ready, "CUDA_ERROR_NOT_READY"},
                                   {illegal_address, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                                   {launch_failed, "CUDA_ERROR_LAUNCH_FAILED"}};
  for (const Name& one : names) {
    if (one.error == error) *name = one.name;
    if (one.error == error) return success;
  }
  *name = nullptr;
  return invalid_value;
}

CANELE_FAKE_API Result cuDeviceGetCount(int* count) {
  const Call call("cuDeviceGetCount", Call::Needs::init);
  if (call.result == success) *count = static_cast<int>(call.state.devices.size());
  return call.result;
}

CANELE_FAKE_API Result cuDeviceGet(Device* device, int ordinal) {
  const Call call("cuDeviceGet", Call::Needs::init);
  if (call.result != success) return call.result;
  if (!has_device(call.state, ordinal)) return invalid_device;
  *device = ordinal;
  return success;
}

CANELE_FAKE_API Result cuDeviceGetUuid_v2(Uuid* uuid, Device device) {
  const Call call("cuDeviceGetUuid_v2", Call::Needs::init);
  if (call.result != success) return call.result;
  if (!has_device(call.state, device)) return invalid_device;
  std::memset(uuid->bytes, 'a' + device, sizeof uuid->bytes);
  return success;
}

CANELE_FAKE_API Result cuDevicePrimaryCtxGetState(Device device, unsigned* flags, int* active) {
  const Call call("cuDevicePrimaryCtxGetState", Call::Needs::init);
  if (call.result != success) return call.result;
  if (!has_device(call.state, device)) return invalid_device;
  *flags = 0;
  *active = call.state.devices[static_cast<std::size_t>(device)].retained != 0 ? 1 : 0;
  return success;
}

CANELE_FAKE_API Result cuDevicePrimaryCtxRetain(Context* context, Device device) {
  const Call call("cuDevicePrimaryCtxRetain", Call::Needs::init);
  if (call.result != success) return call.result;
  if (!has_device(call.state, device)) return invalid_device;
  auto& one = call.state.devices[static_cast<std::size_t>(device)];
  if (one.primary == nullptr) one.primary = make_context(call.state, device);
  ++one.retained;
  *context = one.primary;
  return success;
}

CANELE_FAKE_API Result cuDevicePrimaryCtxRelease_v2(Device device) {
  const Call call("cuDevicePrimaryCtxRelease_v2", Call::Needs::init);
  if (call.result != success) return call.result;
  if (!has_device(call.state, device)) return invalid_device;
  auto& one = call.state.devices[static_cast<std::size_t>(device)];
  if (one.retained == 0) return invalid_context;
  if (--one.retained == 0) {
    one.primary->alive = false;
    one.primary = nullptr;
  }
  return success;
}

CANELE_FAKE_API Result cuCtxCreate_v2(Context* context, unsigned, Device device) {
  const Call call("cuCtxCreate_v2", Call::Needs::init);
  if (call.result != success) return call.result;
  if (!has_device(call.state, device)) return invalid_device;
  *context = make_context(call.state, device);
  current.push_back(*context);
  return success;
}

CANELE_FAKE_API Result cuCtxDestroy_v2(Context context) {
  const Call call("cuCtxDestroy_v2", Call::Needs::init);
  if (call.result != success) return call.result;
  if (context == nullptr || !context->alive) return invalid_context;
  context->alive = false;
  if (!current.empty() && current.back() == context) current.pop_back();
  return success;
}

CANELE_FAKE_API Result cuCtxPushCurrent_v2(Context context) {
  const Call call("cuCtxPushCurrent_v2", Call::Needs::init);
  if (call.result != success) return call.result;
  if (context == nullptr) return invalid_context;
  if (!context->alive) return context_is_destroyed;
  current.push_back(context);
  return success;
}

CANELE_FAKE_API Result cuCtxPopCurrent_v2(Context* context) {
  const Call call("cuCtxPopCurrent_v2", Call::Needs::init);
  if (current.empty()) return call.result != success ? call.result : invalid_context;
  if (context != nullptr) *context = current.back();
  current.pop_back();
  return call.result;
}

CANELE_FAKE_API Result cuCtxGetCurrent(Context* context) {
  const Call call("cuCtxGetCurrent", Call::Needs::init);
  *context = current.empty() ? nullptr : current.back();
  return call.result;
}

CANELE_FAKE_API Result cuCtxSetCurrent(Context context) {
  const Call call("cuCtxSetCurrent", Call::Needs::init);
  if (call.result != success) return call.result;
  if (!current.empty()) current.pop_back();
  if (context != nullptr) current.push_back(context);
  return success;
}

CANELE_FAKE_API Result cuThreadExchangeStreamCaptureMode(int* mode) {
  static thread_local int own = 0;
  const Call call("cuThreadExchangeStreamCaptureMode", Call::Needs::nothing);
  if (call.result == success) std::swap(own, *mode);
  return call.result;
}

// ---- controls -------------------------------------------------------------------------------------------------------

CANELE_FAKE_API Result fakeCudaFail(const char* function, int skip, Result error, int sticky) {
  Fake& state = fake();
  const std::lock_guard lock(state.mutex);
  if (function == nullptr) {
    state.scripts.clear();
    state.sticky = success;
  } else {
    state.scripts.push_back({function, skip, error, sticky != 0});
  }
  return success;
}

CANELE_FAKE_API Result fakeCudaCalls(const char* function, std::uint64_t* count) {
  Fake& state = fake();
  const std::lock_guard lock(state.mutex);
  *count = 0;
  for (const auto& [name, calls] : state.calls) {
    if (function == nullptr || name == function) *count += calls;
  }
  return success;
}

CANELE_FAKE_API Result fakeCudaHold(int hold) {
  Fake& state = fake();
  const std::lock_guard lock(state.mutex);
  state.held = hold != 0;
  state.let_through = std::max(hold - 1, 0);
  state.changed.notify_all();
  return success;
}

CANELE_FAKE_API Result fakeCudaHoldStream(Stream stream, int hold) {
  Fake& state = fake();
  const std::lock_guard lock(state.mutex);
  stream->held = hold != 0;
  state.changed.notify_all();
  return success;
}

CANELE_FAKE_API Result fakeCudaPageable(std::uint64_t* count) {
  Fake& state = fake();
  const std::lock_guard lock(state.mutex);
  *count = state.pageable;
  return success;
}

CANELE_FAKE_API Result fakeCudaPinnedBytes(std::uint64_t* bytes) {
  Fake& state = fake();
  const std::lock_guard lock(state.mutex);
  *bytes = state.pinned_bytes;
  return success;
}

// SPDX-License-Identifier: BSD-3-Clause
//
// What a pointer is, and copies. cuda_sharing.cpp has pinned memory and exports.
#include "drivers/memory/cuda/cuda_memory.hpp"

#include "drivers/memory/cuda/cuda.hpp"

namespace canele::drivers::cuda {

static std::unique_ptr<Memory> open_cuda(DeviceLibrary when, const std::string& library, std::string* why) {
  Functions functions;
  if (!open_library(when, library, &functions, why)) return nullptr;
  return std::make_unique<CudaMemory>(functions);
}

namespace {

DevicePtr pointer_of(const void* memory) { return reinterpret_cast<DevicePtr>(memory); }

}  // namespace

CudaMemory::CudaMemory(const Functions& functions) : functions_(functions) { functions_.cuDeviceGetCount(&devices_); }

CudaMemory::~CudaMemory() { release(); }

std::string CudaMemory::fault(int device, const char* call, Result result) const {
  return "CUDA device " + std::to_string(device) + ": " + describe(functions_, call, result);
}

bool CudaMemory::locate(const void* address, MemoryPlace* place) {
  // One call for all attributes: it succeeds with zeros for unknown memory. The call for one attribute would fail
  // there, and a failure costs ten times as much.
  constexpr int which[] = {attribute_context,     attribute_memory_type, attribute_buffer_id,     attribute_is_managed,
                           attribute_range_start, attribute_range_size,  attribute_device_ordinal};
  Context context = nullptr;
  unsigned type = 0, managed = 0;
  std::uint64_t allocation = 0;
  DevicePtr start = 0;
  std::size_t size = 0;
  int device = 0;
  void* values[] = {&context, &type, &allocation, &managed, &start, &size, &device};
  if (functions_.cuPointerGetAttributes(std::size(which), which, values, pointer_of(address)) != success) return false;
  if (type != type_device && managed == 0) return false;
  *place = {MemoryKind::cuda, managed != 0, device, context, allocation, reinterpret_cast<std::byte*>(start), size};
  return true;
}

// ---- contexts -------------------------------------------------------------------------------------------------------

/// Returns the primary context of a device. Called under the mutex. It is there already if the program uses the device:
/// a pointer to its memory, or the program's request, proves that.
Context CudaMemory::primary_of(int device, std::string* error) {
  if (const auto known = primaries_.find(device); known != primaries_.end()) return known->second;
  Context context = nullptr;
  if (const Result result = functions_.cuDevicePrimaryCtxRetain(&context, device); result != success) {
    *error = fault(device, "cuDevicePrimaryCtxRetain", result);
    return nullptr;
  }
  primaries_[device] = context;
  return context;
}

/// Returns a context for calls that concern no device in particular: one that is in use, if any is.
Context CudaMemory::any_context(std::string* error) {
  const std::lock_guard lock(mutex_);
  if (!lanes_.empty()) return lanes_.begin()->first;
  for (int device = 0; device < devices_; ++device) {
    unsigned flags = 0;
    int active = 0;
    if (functions_.cuDevicePrimaryCtxGetState(device, &flags, &active) == success && active != 0)
      return primary_of(device, error);
  }
  return primary_of(0, error);
}

Lane* CudaMemory::lane_of(const MemoryPlace& place, std::string* error) {
  const std::lock_guard lock(mutex_);
  Context context = static_cast<Context>(place.context);
  if (context == nullptr) context = primary_of(place.device, error);
  if (context == nullptr) return nullptr;
  std::unique_ptr<Lane>& lane = lanes_[context];
  if (lane == nullptr) lane = make_lane(context, place.device, error);
  if (lane == nullptr) lanes_.erase(context);
  return lane.get();
}

std::unique_ptr<Lane> CudaMemory::make_lane(Context context, int device, std::string* error) {
  const Current current(functions_, context);
  auto lane = std::make_unique<Lane>();
  lane->context = context;
  lane->device = device;
  Result result = current.result();
  const char* call = "cuCtxPushCurrent";
  for (Stream& stream : lane->streams) {
    if (result != success) break;
    result = functions_.cuStreamCreate(&stream, stream_non_blocking);
    call = "cuStreamCreate";
  }
  if (result == success) return lane;
  *error = fault(device, call, result);
  if (lane->streams[0] != nullptr) functions_.cuStreamDestroy_v2(lane->streams[0]);
  return nullptr;
}

// ---- copies ---------------------------------------------------------------------------------------------------------

/// Returns a spare record of copies, or makes one with an event. Its context is current.
std::unique_ptr<CudaCopy> CudaMemory::copy_record_of(Lane* lane, std::string* error) {
  {
    const std::lock_guard lock(mutex_);
    if (!lane->spare.empty()) {
      std::unique_ptr<CudaCopy> pending = std::move(lane->spare.back());
      lane->spare.pop_back();
      return pending;
    }
  }
  auto pending = std::make_unique<CudaCopy>();
  pending->lane = lane;
  const Result result = functions_.cuEventCreate(&pending->event, event_disable_timing);
  if (result != success) *error = fault(lane->device, "cuEventCreate", result);
  return pending;
}

PendingCopy* CudaMemory::begin_copy(const MemoryPlace& place, CopyDirection direction,
                                    std::span<const MemoryCopy> copies, void* copied) {
  std::string error;
  Lane* const lane = lane_of(place, &error);
  if (lane == nullptr) {
    auto pending = std::make_unique<CudaCopy>();
    pending->error = error;
    return pending.release();
  }
  const Current current(functions_, lane->context);
  if (current.result() != success) error = fault(lane->device, "cuCtxPushCurrent", current.result());
  std::unique_ptr<CudaCopy> pending = copy_record_of(lane, &error);
  pending->recorded = false;
  if (error.empty()) {
    const char* call = "";
    const Result result = begin(*lane, direction, copies, copied, &call);
    if (result != success) error = fault(lane->device, call, result);
    // Also behind an error: the copies that were begun use their memory until the event.
    pending->recorded = functions_.cuEventRecord(pending->event, lane->streams[static_cast<int>(direction)]) == success;
    if (!pending->recorded && error.empty()) error = "CUDA device " + std::to_string(lane->device) + ": cuEventRecord";
  }
  pending->error = error;
  return pending.release();
}

/// Queues the copies on the lane's stream, in order.
Result CudaMemory::begin(const Lane& lane, CopyDirection direction, std::span<const MemoryCopy> copies, void* copied,
                         const char** call) {
  Stream const stream = lane.streams[static_cast<int>(direction)];
  Result result = success;
  for (const MemoryCopy& one : copies) {
    if (result != success) return result;
    if (one.width == 0 || one.rows == 0) continue;
    if (one.rows == 1) {
      *call = "cuMemcpyAsync";
      result = functions_.cuMemcpyAsync(pointer_of(one.to), pointer_of(one.from), one.width, stream);
      continue;
    }
    Copy2D all{};
    all.from_type = all.to_type = type_unified;
    all.from_device = pointer_of(one.from);
    all.from_pitch = one.from_pitch;
    all.to_device = pointer_of(one.to);
    all.to_pitch = one.to_pitch;
    all.width = one.width;
    all.height = one.rows;
    *call = "cuMemcpy2DAsync";
    result = functions_.cuMemcpy2DAsync_v2(&all, stream);
  }
  if (result == success && copied != nullptr) {
    *call = "cuEventRecord";
    result = functions_.cuEventRecord(static_cast<Event>(copied), stream);
  }
  return result;
}

CopyState CudaMemory::poll(PendingCopy* copies, std::string* error) {
  auto* const raw = static_cast<CudaCopy*>(copies);
  if (raw->recorded) {
    const Current current(functions_, raw->lane->context);
    const Result result = current.result() == success ? functions_.cuEventQuery(raw->event) : current.result();
    if (result == not_ready) return CopyState::pending;
    if (result != success && raw->error.empty()) raw->error = fault(raw->lane->device, "cuEventQuery", result);
  }
  std::unique_ptr<CudaCopy> pending(raw);
  *error = pending->error;
  if (pending->error.empty()) {
    give_back(std::move(pending));
    return CopyState::done;
  }
  if (pending->event != nullptr) {
    const Current current(functions_, pending->lane->context);
    if (current.result() == success) functions_.cuEventDestroy_v2(pending->event);
  }
  return CopyState::failed;
}

/// A stream that waits would hold up the copies of other messages behind it. So events are polled.
CopyState CudaMemory::poll_event(const MemoryPlace& place, void* event, std::string* error) {
  const Lane* const lane = lane_of(place, error);
  if (lane == nullptr) return CopyState::failed;
  const Current current(functions_, lane->context);
  const Result result =
      current.result() == success ? functions_.cuEventQuery(static_cast<Event>(event)) : current.result();
  if (result == success) return CopyState::done;
  if (result == not_ready) return CopyState::pending;
  *error = fault(lane->device, "cuEventQuery", result);
  return CopyState::failed;
}

/// Keeps a record for the next copies. One that has failed is not used again.
void CudaMemory::give_back(std::unique_ptr<CudaCopy> pending) {
  const std::lock_guard lock(mutex_);
  pending->lane->spare.push_back(std::move(pending));
}

/// Frees what the driver keeps for us. Errors mean that the driver, or a context, has gone before.
void CudaMemory::release() {
  for (const auto& [bytes, import] : imports_) {
    const Current current(functions_, import.context);
    if (current.result() == success && functions_.cuIpcCloseMemHandle != nullptr)
      functions_.cuIpcCloseMemHandle(pointer_of(import.base));
  }
  for (const auto& [context, lane] : lanes_) {
    const Current current(functions_, context);
    if (current.result() != success) continue;
    for (const auto& pending : lane->spare) functions_.cuEventDestroy_v2(pending->event);
    for (Stream const stream : lane->streams) functions_.cuStreamDestroy_v2(stream);
  }
  for (const auto& [device, context] : primaries_) functions_.cuDevicePrimaryCtxRelease_v2(device);
}

}  // namespace canele::drivers::cuda

namespace canele::drivers {

const MemoryFactory cuda_memory_factory{"cuda", MemoryKind::cuda, cuda::open_cuda};

}  // namespace canele::drivers

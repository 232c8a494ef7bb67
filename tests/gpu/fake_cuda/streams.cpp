// SPDX-License-Identifier: BSD-3-Clause
//
// Streams, events and copies of the fake driver: one thread executes them, after delays drawn from the seed.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "tests/gpu/fake_cuda/fake.hpp"

namespace canele::fake_cuda {
namespace {

/// One operand of a copy, as addresses that the fake can use.
struct Operand {
  std::byte* base;
  std::size_t pitch;
};

std::size_t pitch_of(std::size_t pitch, std::size_t width) { return pitch != 0 ? pitch : width; }

DevicePtr pointer_of(unsigned type, const void* host, DevicePtr device, std::size_t pitch, std::size_t x,
                     std::size_t y) {
  const DevicePtr base = type == type_host ? reinterpret_cast<DevicePtr>(host) : device;
  return base + y * pitch + x;
}

Operand operand(const Allocation* one, DevicePtr pointer, std::size_t pitch) {
  auto* const memory = reinterpret_cast<std::byte*>(pointer);
  return {one != nullptr ? one->alias + (memory - one->view) : memory, pitch};
}

Operand source_of(const Work& work) {
  const auto& c = work.copy;
  const std::size_t pitch = pitch_of(c.from_pitch, c.width);
  return operand(work.from, pointer_of(c.from_type, c.from_host, c.from_device, pitch, c.from_x, c.from_y), pitch);
}

Operand destination_of(const Work& work) {
  const auto& c = work.copy;
  const std::size_t pitch = pitch_of(c.to_pitch, c.width);
  return operand(work.to, pointer_of(c.to_type, c.to_host, c.to_device, pitch, c.to_x, c.to_y), pitch);
}

void make_copy(const Work& work) {
  const Operand from = source_of(work), to = destination_of(work);
  for (std::size_t row = 0; row < work.copy.height; ++row)
    std::memmove(to.base + row * to.pitch, from.base + row * from.pitch, work.copy.width);
}

void fill_with_poison(const Work& work) {
  const Operand to = destination_of(work);
  for (std::size_t row = 0; row < work.copy.height; ++row)
    std::memset(to.base + row * to.pitch, poison, work.copy.width);
}

/// Returns whether the first work of a stream may be executed now.
bool may_run(const Fake& state, Stream stream, const std::deque<Work>& queue) {
  if (queue.empty() || stream->held) return false;
  const Work& work = queue.front();
  if (work.kind == Work::Kind::wait) return work.event->executed >= work.number;
  return !state.held || state.let_through > 0 || work.kind == Work::Kind::record;
}

/// Draws one of the streams whose first work may be executed. Returns nullptr if there is none.
Stream draw_stream(Fake& state) {
  std::vector<Stream> ready;
  for (const auto& [stream, queue] : state.queues) {
    if (may_run(state, stream, queue)) ready.push_back(stream);
  }
  return ready.empty() ? nullptr : ready[state.dice() % ready.size()];
}

void finish(Fake& state, Stream stream, const Work& work) {
  if (work.kind == Work::Kind::copy && state.let_through > 0) --state.let_through;
  if (work.kind == Work::Kind::record) work.event->executed = std::max(work.event->executed, work.number);
  if (work.from != nullptr) --work.from->copies;
  if (work.to != nullptr) --work.to->copies;
  state.queues[stream].pop_front();
  ++stream->executed;
  state.changed.notify_all();
}

void run_thread() {
  Fake& state = fake();
  std::unique_lock lock(state.mutex);
  for (;;) {
    Stream const stream = draw_stream(state);
    if (stream == nullptr) {
      state.changed.wait(lock);
      continue;
    }
    const Work work = state.queues[stream].front();
    const unsigned most = state.delay_us;
    const unsigned delay = most == 0 ? 0 : static_cast<unsigned>(state.dice() % (most + 1));
    if (work.kind == Work::Kind::copy) {
      lock.unlock();
      if (delay != 0) std::this_thread::sleep_for(std::chrono::microseconds(delay));
      lock.lock();
      make_copy(work);  // under the lock: the next copy to the same memory may be queued, with its poison
    }
    finish(state, stream, work);
  }
}

/// Finds the memory of one operand. Returns false if it is neither device memory nor plausible host memory.
bool find_operand(Fake& state, DevicePtr pointer, std::size_t bytes, Allocation** out) {
  *out = state.find(pointer);
  if (*out == nullptr) return pointer != 0;
  return pointer - reinterpret_cast<DevicePtr>((*out)->view) + bytes <= (*out)->size;
}

std::size_t extent(const gpu_test::Copy2D& c, std::size_t pitch) {
  return c.height == 0 ? 0 : (c.height - 1) * pitch + c.width;
}

/// Checks a stream or event of a call. Both belong to a context, and fail under another one.
Result check_stream(const Call& call, Stream stream) {
  if (call.result != success) return call.result;
  const auto found = call.state.streams.find(stream);
  if (stream == nullptr || found == call.state.streams.end() || stream->destroyed) return invalid_handle;
  return stream->context == call.context ? success : invalid_handle;
}

Result check_event(const Call& call, Event event) {
  if (call.result != success) return call.result;
  if (event == nullptr || !call.state.events.contains(event) || event->destroyed) return invalid_handle;
  return success;
}

}  // namespace

void enqueue(Fake& state, Stream stream, const Work& work) {
  state.queues[stream].push_back(work);
  ++stream->queued;
  if (work.from != nullptr) ++work.from->copies;
  if (work.to != nullptr) ++work.to->copies;
  if (!state.thread_runs) {
    state.thread_runs = true;
    std::thread(run_thread).detach();
  }
  state.changed.notify_all();
}

void drain(Fake& state, std::unique_lock<std::mutex>& lock, Stream stream) {
  if (stream == nullptr || !state.streams.contains(stream)) return;
  const std::uint64_t until = stream->queued;
  state.changed.wait(lock, [&] { return stream->executed >= until; });
}

Result copy(Call& call, const gpu_test::Copy2D& what, Stream stream) {
  if (const Result result = check_stream(call, stream); result != success) return result;
  if (what.width == 0 || what.height == 0) return success;
  Work work;
  work.copy = what;
  const std::size_t from_pitch = pitch_of(what.from_pitch, what.width), to_pitch = pitch_of(what.to_pitch, what.width);
  if (from_pitch < what.width || to_pitch < what.width) return invalid_value;
  const DevicePtr from =
      pointer_of(what.from_type, what.from_host, what.from_device, from_pitch, what.from_x, what.from_y);
  const DevicePtr to = pointer_of(what.to_type, what.to_host, what.to_device, to_pitch, what.to_x, what.to_y);
  if (!find_operand(call.state, from, extent(what, from_pitch), &work.from) ||
      !find_operand(call.state, to, extent(what, to_pitch), &work.to))
    return invalid_value;
  const bool pageable =
      (work.from == nullptr && !call.state.is_pinned(from)) || (work.to == nullptr && !call.state.is_pinned(to));
  if (pageable) ++call.state.pageable;
  if (pageable && call.state.refuses_pageable) return invalid_value;
  fill_with_poison(work);
  enqueue(call.state, stream, work);
  if (pageable) drain(call.state, call.lock, stream);  // the real driver blocks its caller here
  return success;
}

}  // namespace canele::fake_cuda

using namespace canele::fake_cuda;

CANELE_FAKE_API Result cuStreamCreate(Stream* stream, unsigned) {
  const Call call("cuStreamCreate");
  if (call.result != success) return call.result;
  auto made = std::make_unique<canele::drivers::cuda::StreamObject>();
  made->context = call.context;
  *stream = made.get();
  call.state.streams[*stream] = std::move(made);
  return success;
}

CANELE_FAKE_API Result cuStreamDestroy_v2(Stream stream) {
  const Call call("cuStreamDestroy_v2");
  if (const Result result = check_stream(call, stream); result != success) return result;
  stream->destroyed = true;  // its work goes on, and the object stays for it
  return success;
}

CANELE_FAKE_API Result cuStreamSynchronize(Stream stream) {
  Call call("cuStreamSynchronize");
  if (const Result result = check_stream(call, stream); result != success) return result;
  drain(call.state, call.lock, stream);
  return success;
}

CANELE_FAKE_API Result cuStreamWaitEvent(Stream stream, Event event, unsigned) {
  const Call call("cuStreamWaitEvent");
  if (const Result result = check_stream(call, stream); result != success) return result;
  if (const Result result = check_event(call, event); result != success) return result;
  Work work;
  work.kind = Work::Kind::wait;
  work.event = event;
  work.number = event->recorded;
  enqueue(call.state, stream, work);
  return success;
}

CANELE_FAKE_API Result cuEventCreate(Event* event, unsigned) {
  const Call call("cuEventCreate");
  if (call.result != success) return call.result;
  auto made = std::make_unique<canele::drivers::cuda::EventObject>();
  made->context = call.context;
  *event = made.get();
  call.state.events[*event] = std::move(made);
  return success;
}

CANELE_FAKE_API Result cuEventDestroy_v2(Event event) {
  const Call call("cuEventDestroy_v2");
  if (const Result result = check_event(call, event); result != success) return result;
  event->destroyed = true;  // queued work may still name it
  return success;
}

CANELE_FAKE_API Result cuEventRecord(Event event, Stream stream) {
  const Call call("cuEventRecord");
  if (const Result result = check_stream(call, stream); result != success) return result;
  if (const Result result = check_event(call, event); result != success) return result;
  if (event->context != stream->context) return invalid_handle;
  Work work;
  work.kind = Work::Kind::record;
  work.event = event;
  work.number = ++event->recorded;
  enqueue(call.state, stream, work);
  return success;
}

CANELE_FAKE_API Result cuEventQuery(Event event) {
  const Call call("cuEventQuery");
  if (const Result result = check_event(call, event); result != success) return result;
  if (event->context != call.context) return invalid_handle;
  return event->executed >= event->recorded ? success : not_ready;
}

CANELE_FAKE_API Result cuMemcpyAsync(DevicePtr to, DevicePtr from, std::size_t size, Stream stream) {
  Call call("cuMemcpyAsync");
  canele::gpu_test::Copy2D what{};
  what.from_type = what.to_type = type_unified;
  what.from_device = from;
  what.to_device = to;
  what.width = size;
  what.height = 1;
  return copy(call, what, stream);
}

CANELE_FAKE_API Result cuMemcpy2DAsync_v2(const canele::gpu_test::Copy2D* what, Stream stream) {
  Call call("cuMemcpy2DAsync_v2");
  return copy(call, *what, stream);
}

// Synchronous functions, for tests: at once, without the thread.
CANELE_FAKE_API Result cuMemcpy(DevicePtr to, DevicePtr from, std::size_t size) {
  const Call call("cuMemcpy");
  if (call.result != success) return call.result;
  Work work;
  if (!find_operand(call.state, from, size, &work.from) || !find_operand(call.state, to, size, &work.to))
    return invalid_value;
  std::memmove(operand(work.to, to, size).base, operand(work.from, from, size).base, size);
  return success;
}

CANELE_FAKE_API Result cuMemsetD8_v2(DevicePtr pointer, unsigned char value, std::size_t size) {
  const Call call("cuMemsetD8_v2");
  if (call.result != success) return call.result;
  Allocation* one = nullptr;
  if (!find_operand(call.state, pointer, size, &one) || one == nullptr) return invalid_value;
  std::memset(operand(one, pointer, size).base, value, size);
  return success;
}

// SPDX-License-Identifier: BSD-3-Clause
//
// The fake driver itself: what the other tests rely on.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/gpu/driver.hpp"

namespace canele::gpu_test {
namespace {

class FakeCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (!driver().is_fake()) GTEST_SKIP() << "a real driver";
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // a child of fork cannot use the driver
    driver().fakeCudaFail(nullptr, 0, success, 0);
    use_device(0);
  }
  void TearDown() override {
    if (driver().is_fake()) driver().fakeCudaHold(0);
  }
  Driver& cuda = driver();
};

/// A stream and an event of the current context.
struct Queue {
  Queue() {
    EXPECT_EQ(driver().cuStreamCreate(&stream, stream_non_blocking), success);
    EXPECT_EQ(driver().cuEventCreate(&event, event_disable_timing), success);
  }
  ~Queue() {
    driver().cuStreamSynchronize(stream);
    driver().cuStreamDestroy_v2(stream);
    driver().cuEventDestroy_v2(event);
  }
  Stream stream = nullptr;
  Event event = nullptr;
};

/// Pinned host memory.
struct PinnedBytes {
  explicit PinnedBytes(std::size_t size) { EXPECT_EQ(driver().cuMemHostAlloc(&memory, size, 1), success); }
  ~PinnedBytes() { driver().cuMemFreeHost(memory); }
  DevicePtr pointer() const { return reinterpret_cast<DevicePtr>(memory); }
  void* memory = nullptr;
};

TEST_F(FakeCuda, TheProcessorCannotTouchDeviceMemory) {
  const DeviceMemory memory(100);
  EXPECT_DEATH(*memory.data() = std::byte{1}, "");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(write(ends[1], memory.data(), 1), -1);
  EXPECT_EQ(errno, EFAULT);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(FakeCuda, ACopyReadsItsSourceLateAndPoisonsItsDestination) {
  const DeviceMemory memory(pattern(64, 1));
  const PinnedBytes host(64);
  const Queue queue;
  cuda.fakeCudaHold(1);
  ASSERT_EQ(cuda.cuMemcpyAsync(host.pointer(), memory.pointer(), 64, queue.stream), success);
  ASSERT_EQ(cuda.cuEventRecord(queue.event, queue.stream), success);
  EXPECT_EQ(cuda.cuEventQuery(queue.event), not_ready);
  EXPECT_EQ(*static_cast<unsigned char*>(host.memory), 0xdb);
  memory.write(pattern(64, 2));
  cuda.fakeCudaHold(0);
  ASSERT_EQ(cuda.cuStreamSynchronize(queue.stream), success);
  EXPECT_EQ(cuda.cuEventQuery(queue.event), success);
  EXPECT_EQ(std::memcmp(host.memory, pattern(64, 2).data(), 64), 0);
}

TEST_F(FakeCuda, ATwoDimensionalCopySkipsTheGaps) {
  const DeviceMemory memory(pattern(100, 1));
  const PinnedBytes host(30);
  const Queue queue;
  Copy2D copy{};
  copy.from_type = copy.to_type = type_unified;
  copy.from_device = memory.pointer() + 1;
  copy.from_pitch = 20;
  copy.to_device = host.pointer();
  copy.to_pitch = 6;
  copy.width = 6;
  copy.height = 5;
  ASSERT_EQ(cuda.cuMemcpy2DAsync_v2(&copy, queue.stream), success);
  ASSERT_EQ(cuda.cuStreamSynchronize(queue.stream), success);
  const std::string all = pattern(100, 1);
  for (std::size_t row = 0; row < 5; ++row)
    EXPECT_EQ(std::memcmp(static_cast<char*>(host.memory) + 6 * row, all.data() + 1 + 20 * row, 6), 0);
}

TEST_F(FakeCuda, AStreamWaitsForAnEventOfAnother) {
  const DeviceMemory memory(pattern(8, 1));
  const PinnedBytes host(8);
  const Queue first, second;
  cuda.fakeCudaHold(1);
  ASSERT_EQ(cuda.cuMemcpyAsync(memory.pointer(), host.pointer(), 8, first.stream), success);
  ASSERT_EQ(cuda.cuEventRecord(first.event, first.stream), success);
  ASSERT_EQ(cuda.cuStreamWaitEvent(second.stream, first.event, 0), success);
  ASSERT_EQ(cuda.cuEventRecord(second.event, second.stream), success);
  EXPECT_EQ(cuda.cuEventQuery(second.event), not_ready);
  cuda.fakeCudaHold(0);
  ASSERT_EQ(cuda.cuStreamSynchronize(second.stream), success);
  EXPECT_EQ(cuda.cuEventQuery(first.event), success);
}

TEST_F(FakeCuda, CallsWithoutTheRightContextFail) {
  const Queue queue;
  Context context = nullptr;
  ASSERT_EQ(cuda.cuCtxPopCurrent_v2(&context), success);
  DevicePtr pointer = 0;
  EXPECT_EQ(cuda.cuMemAlloc_v2(&pointer, 1), invalid_context);
  Context other = nullptr;
  ASSERT_EQ(cuda.cuCtxCreate_v2(&other, 0, 1), success);
  EXPECT_EQ(cuda.cuEventQuery(queue.event), invalid_handle);
  EXPECT_EQ(cuda.cuMemcpyAsync(8, 8, 1, queue.stream), invalid_handle);
  ASSERT_EQ(cuda.cuCtxDestroy_v2(other), success);
  EXPECT_EQ(cuda.cuCtxPushCurrent_v2(other), context_is_destroyed);
  ASSERT_EQ(cuda.cuCtxPushCurrent_v2(context), success);
}

TEST_F(FakeCuda, PageableMemoryIsCountedAndBlocks) {
  std::uint64_t before = 0, after = 0;
  cuda.fakeCudaPageable(&before);
  const DeviceMemory memory(pattern(64, 1));
  const Queue queue;
  std::string host(64, '\0');
  ASSERT_EQ(cuda.cuMemcpyAsync(reinterpret_cast<DevicePtr>(host.data()), memory.pointer(), 64, queue.stream), success);
  EXPECT_EQ(host, pattern(64, 1));
  cuda.fakeCudaPageable(&after);
  EXPECT_EQ(after, before + 1);
}

TEST_F(FakeCuda, ErrorsComeWhereTheyAreScripted) {
  DevicePtr pointer = 0;
  cuda.fakeCudaFail("cuMemAlloc_v2", 1, out_of_memory, 0);
  ASSERT_EQ(cuda.cuMemAlloc_v2(&pointer, 1), success);
  cuda.cuMemFree_v2(pointer);
  EXPECT_EQ(cuda.cuMemAlloc_v2(&pointer, 1), out_of_memory);
  EXPECT_EQ(cuda.cuMemAlloc_v2(&pointer, 1), success);
  cuda.cuMemFree_v2(pointer);
  cuda.fakeCudaFail("cuMemAlloc_v2", 0, launch_failed, 1);
  EXPECT_EQ(cuda.cuMemAlloc_v2(&pointer, 1), launch_failed);
  int count = 0;
  EXPECT_EQ(cuda.cuDeviceGetCount(&count), launch_failed);
  cuda.fakeCudaFail(nullptr, 0, success, 0);
  EXPECT_EQ(cuda.cuDeviceGetCount(&count), success);
}

TEST_F(FakeCuda, VirtualMemoryIsMappedAndIsNotExported) {
  AllocationProperties properties{};
  properties.type = 1;
  properties.location = {1, 1};
  AllocationHandle handle = 0;
  DevicePtr pointer = 0;
  ASSERT_EQ(cuda.cuMemCreate(&handle, 65'536, &properties, 0), success);
  ASSERT_EQ(cuda.cuMemAddressReserve(&pointer, 65'536, 0, 0, 0), success);
  ASSERT_EQ(cuda.cuMemMap(pointer, 65'536, 0, handle, 0), success);
  const AccessDescription access{{1, 1}, 3};
  ASSERT_EQ(cuda.cuMemSetAccess(pointer, 65'536, &access, 1), success);
  ASSERT_EQ(cuda.cuMemsetD8_v2(pointer, 7, 65'536), success);
  IpcHandle out;
  EXPECT_EQ(cuda.cuIpcGetMemHandle(&out, pointer), invalid_value);
  Context context = reinterpret_cast<Context>(8);
  int device = -1;
  const int which[] = {attribute_context, attribute_device_ordinal};
  void* values[] = {&context, &device};
  ASSERT_EQ(cuda.cuPointerGetAttributes(2, which, values, pointer + 100), success);
  EXPECT_EQ(context, nullptr);
  EXPECT_EQ(device, 1);
  EXPECT_EQ(cuda.cuMemUnmap(pointer, 65'536), success);
  EXPECT_EQ(cuda.cuMemAddressFree(pointer, 65'536), success);
  EXPECT_EQ(cuda.cuMemRelease(handle), success);
}

TEST_F(FakeCuda, FreeingMemoryOfACopyEndsTheProcess) {
  EXPECT_DEATH(
      {
        driver().fakeCudaHold(1);
        auto* const memory = new DeviceMemory(64);
        Stream stream = nullptr;
        void* host = nullptr;
        driver().cuMemHostAlloc(&host, 64, 1);
        driver().cuStreamCreate(&stream, 1);
        driver().cuMemcpyAsync(reinterpret_cast<DevicePtr>(host), memory->pointer(), 64, stream);
        delete memory;
      },
      "while a copy uses it");
}

TEST_F(FakeCuda, AChildOfForkCannotUseTheDriver) {
  const pid_t child = fork();
  if (child == 0) {
    int count = 0;
    _exit(driver().cuDeviceGetCount(&count) == not_initialized ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace canele::gpu_test

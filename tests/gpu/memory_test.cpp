// SPDX-License-Identifier: BSD-3-Clause
//
// Memory kinds: host memory, and the memory of CUDA devices on the fake driver.
//
// CANELE_TEST_CUDA=libcuda.so.1 runs these tests on a real GPU; those that script errors are skipped there.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "drivers/memory/cuda/cuda.hpp"
#include "drivers/memory/host/host.hpp"
#include "tests/gpu/driver.hpp"

extern char** environ;

namespace canele::gpu_test {
namespace {

using drivers::CopyDirection;
using drivers::CopyState;
using drivers::DeviceLibrary;
using drivers::Memory;
using drivers::MemoryCopy;
using drivers::MemoryExport;
using drivers::MemoryKind;
using drivers::MemoryPlace;

std::unique_ptr<Memory> open_memory() {
  std::string why;
  std::unique_ptr<Memory> memory = drivers::cuda_memory_factory.open(DeviceLibrary::load, driver_file(), &why);
  EXPECT_NE(memory, nullptr) << why;
  return memory;
}

/// Returns how often a function of the fake driver was called; 0 for a real one.
std::uint64_t calls_of(const char* function) {
  std::uint64_t count = 0;
  if (driver().is_fake()) driver().fakeCudaCalls(function, &count);
  return count;
}

/// Polls until the copies have ended. Returns their error.
std::string wait_for(Memory& memory, drivers::PendingCopy* pending) {
  std::string error;
  CopyState state;
  while ((state = memory.poll(pending, &error)) == CopyState::pending) std::this_thread::yield();
  EXPECT_EQ(state == CopyState::failed, !error.empty());
  return error;
}

class CudaMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    if (driver().is_fake()) driver().fakeCudaFail(nullptr, 0, success, 0);
    use_device(0);
    memory = open_memory();
    ASSERT_NE(memory, nullptr);
  }
  void TearDown() override {
    if (driver().is_fake()) driver().fakeCudaHold(0);
    if (driver().is_fake()) driver().fakeCudaFail(nullptr, 0, success, 0);
  }
  /// Copies between host and device memory, and waits for the end.
  std::string copy(CopyDirection direction, const std::vector<MemoryCopy>& copies, const void* on) {
    MemoryPlace place;
    EXPECT_TRUE(memory->locate(on, &place));
    return wait_for(*memory, memory->begin_copy(place, direction, copies, nullptr));
  }
  std::byte* pinned(std::size_t size) {
    std::string error;
    std::byte* const bytes = memory->allocate_pinned(size, &error);
    EXPECT_NE(bytes, nullptr) << error;
    return bytes;
  }
  std::unique_ptr<Memory> memory;
};

TEST(HostMemory, CopiesAtOnce) {
  std::string why;
  const std::unique_ptr<Memory> host = drivers::host_memory_factory.open(DeviceLibrary::load, "", &why);
  char from[12] = "abcdefghijk", to[8] = "";
  const MemoryCopy rows{reinterpret_cast<std::byte*>(to), reinterpret_cast<std::byte*>(from), 2, 3, 2, 4};
  MemoryPlace place;
  ASSERT_TRUE(host->locate(from, &place));
  EXPECT_EQ(place.kind, MemoryKind::host);
  EXPECT_EQ(wait_for(*host, host->begin_copy(place, CopyDirection::to_host, {&rows, 1}, nullptr)), "");
  EXPECT_STREQ(to, "abefij");
  EXPECT_NE(wait_for(*host, host->begin_copy(place, CopyDirection::to_host, {&rows, 1}, to)), "");
}

TEST(CudaLibrary, IsNotLoadedUnlessTheProgramHasIt) {
  std::string why;
  EXPECT_EQ(drivers::cuda_memory_factory.open(DeviceLibrary::if_loaded, "libcanele-no-such-library.so.1", &why),
            nullptr);
  EXPECT_NE(why.find("has not loaded"), std::string::npos) << why;
  EXPECT_EQ(drivers::cuda_memory_factory.open(DeviceLibrary::load, "libcanele-no-such-library.so.1", &why), nullptr);
  EXPECT_NE(why.find("cannot be loaded"), std::string::npos) << why;
}

TEST(CudaLibrary, SaysWhatTheDriverAnswers) {
  if (!driver().is_fake()) GTEST_SKIP() << "a real driver";
  driver().fakeCudaFail("cuInit", 0, stub_library, 0);
  std::string why;
  EXPECT_EQ(drivers::cuda_memory_factory.open(DeviceLibrary::load, driver_file(), &why), nullptr);
  EXPECT_NE(why.find("cuInit"), std::string::npos) << why;
  EXPECT_NE(why.find("34"), std::string::npos) << why;
}

TEST_F(CudaMemoryTest, KnowsWhatAnAddressIs) {
  MemoryPlace place;
  int local = 0;
  EXPECT_FALSE(memory->locate(&local, &place));
  EXPECT_FALSE(memory->locate(nullptr, &place));
  std::byte* const staging = pinned(64);
  EXPECT_FALSE(memory->locate(staging, &place));
  memory->free_pinned(staging);
  const DeviceMemory plain(1000), managed(100, DeviceMemory::Kind::managed), pool(100, DeviceMemory::Kind::pool);
  ASSERT_TRUE(memory->locate(plain.data() + 999, &place));
  EXPECT_EQ(place.kind, MemoryKind::cuda);
  EXPECT_EQ(place.base, plain.data());
  EXPECT_EQ(place.device, 0);
  EXPECT_NE(place.context, nullptr);
  const std::uint64_t id = place.allocation;
  ASSERT_TRUE(memory->locate(managed.data(), &place));
  EXPECT_TRUE(place.managed);
  EXPECT_NE(place.allocation, id);
  ASSERT_TRUE(memory->locate(pool.data(), &place));
  EXPECT_FALSE(place.managed);
}

TEST_F(CudaMemoryTest, FindsTheSecondDevice) {
  if (memory->devices() < 2) GTEST_SKIP() << "one device";
  use_device(1);
  const DeviceMemory other(pattern(64, 3));
  use_device(0);
  MemoryPlace place;
  ASSERT_TRUE(memory->locate(other.data(), &place));
  EXPECT_EQ(place.device, 1);
  std::byte* const host = pinned(64);
  EXPECT_EQ(copy(CopyDirection::to_host, {{host, other.data(), 64}}, other.data()), "");
  EXPECT_EQ(std::string(reinterpret_cast<char*>(host), 64), pattern(64, 3));
  memory->free_pinned(host);
}

TEST_F(CudaMemoryTest, CopiesBothWaysForEachKindOfDeviceMemory) {
  using Kind = DeviceMemory::Kind;
  for (const Kind kind : {Kind::plain, Kind::pool, Kind::managed}) {
    for (const std::size_t size : {1, 4096, 1'000'003}) {
      const DeviceMemory device(size, kind);
      std::byte* const host = pinned(size);
      std::memcpy(host, pattern(size, 5).data(), size);
      EXPECT_EQ(copy(CopyDirection::to_device, {{device.data(), host, size}}, device.data()), "");
      EXPECT_EQ(device.read(), pattern(size, 5));
      device.write(pattern(size, 6));
      EXPECT_EQ(copy(CopyDirection::to_host, {{host, device.data(), size}}, device.data()), "");
      EXPECT_EQ(std::string(reinterpret_cast<char*>(host), size), pattern(size, 6));
      memory->free_pinned(host);
    }
  }
}

TEST_F(CudaMemoryTest, CopiesAStridedTileInOneCall) {
  std::uint64_t before = 0, after = 0;
  const DeviceMemory device(pattern(10'000, 1));
  std::byte* const host = pinned(30 * 40);
  if (driver().is_fake()) driver().fakeCudaCalls("cuMemcpy2DAsync_v2", &before);
  EXPECT_EQ(copy(CopyDirection::to_host, {{host, device.data() + 7, 40, 30, 40, 100}}, device.data()), "");
  if (driver().is_fake()) {
    driver().fakeCudaCalls("cuMemcpy2DAsync_v2", &after);
    EXPECT_EQ(after, before + 1);
  }
  const std::string all = pattern(10'000, 1);
  for (std::size_t row = 0; row < 30; ++row)
    EXPECT_EQ(std::memcmp(host + 40 * row, all.data() + 7 + 100 * row, 40), 0) << row;
  memory->free_pinned(host);
}

TEST_F(CudaMemoryTest, TellsOfAnEventOfTheProgramAndRecordsAnother) {
  if (!driver().is_fake()) GTEST_SKIP() << "needs a held copy";
  const DeviceMemory device(pattern(64, 1)), source(pattern(64, 2));
  Stream stream = nullptr;
  Event ready = nullptr, copied = nullptr;
  ASSERT_EQ(driver().cuStreamCreate(&stream, 1), success);
  ASSERT_EQ(driver().cuEventCreate(&ready, event_disable_timing), success);
  ASSERT_EQ(driver().cuEventCreate(&copied, event_disable_timing), success);
  driver().fakeCudaHold(1);
  ASSERT_EQ(driver().cuMemcpyAsync(device.pointer(), source.pointer(), 64, stream), success);
  ASSERT_EQ(driver().cuEventRecord(ready, stream), success);
  std::byte* const host = pinned(64);
  MemoryPlace place;
  std::string error;
  ASSERT_TRUE(memory->locate(device.data(), &place));
  EXPECT_EQ(memory->poll_event(place, ready, &error), CopyState::pending);
  const MemoryCopy one{host, device.data(), 64};
  drivers::PendingCopy* const pending = memory->begin_copy(place, CopyDirection::to_host, {&one, 1}, copied);
  EXPECT_EQ(memory->poll(pending, &error), CopyState::pending);
  EXPECT_EQ(driver().cuEventQuery(copied), not_ready);
  driver().fakeCudaHold(0);
  EXPECT_EQ(wait_for(*memory, pending), "");
  EXPECT_EQ(driver().cuEventQuery(copied), success);
  while (memory->poll_event(place, ready, &error) == CopyState::pending) std::this_thread::yield();
  EXPECT_EQ(memory->poll_event(place, ready, &error), CopyState::done);
  driver().fakeCudaFail("cuEventQuery", 0, illegal_address, 0);
  EXPECT_EQ(memory->poll_event(place, ready, &error), CopyState::failed);
  EXPECT_NE(error.find("cuEventQuery"), std::string::npos) << error;
  memory->free_pinned(host);
}

TEST_F(CudaMemoryTest, WorksFromAThreadWithoutContextAndLeavesNone) {
  const DeviceMemory device(pattern(64, 4));
  std::thread([&] {
    Context current = reinterpret_cast<Context>(8);
    std::byte* const host = pinned(64);
    EXPECT_EQ(copy(CopyDirection::to_host, {{host, device.data(), 64}}, device.data()), "");
    EXPECT_EQ(std::string(reinterpret_cast<char*>(host), 64), pattern(64, 4));
    memory->free_pinned(host);
    ASSERT_EQ(driver().cuCtxGetCurrent(&current), success);
    EXPECT_EQ(current, nullptr);
  }).join();
}

TEST_F(CudaMemoryTest, LeavesTheProgramsContextCurrent) {
  const DeviceMemory device(pattern(64, 4));
  Context before = nullptr, own = nullptr, after = nullptr;
  ASSERT_EQ(driver().cuCtxGetCurrent(&before), success);
  ASSERT_EQ(driver().cuCtxCreate_v2(&own, 0, 0), success);
  std::byte* const host = pinned(64);
  EXPECT_EQ(copy(CopyDirection::to_host, {{host, device.data(), 64}}, device.data()), "");
  memory->free_pinned(host);
  ASSERT_EQ(driver().cuCtxGetCurrent(&after), success);
  EXPECT_EQ(after, own);
  ASSERT_EQ(driver().cuCtxDestroy_v2(own), success);
  driver().cuCtxSetCurrent(before);
}

TEST_F(CudaMemoryTest, NamesDeviceAndFunctionOfAnError) {
  if (!driver().is_fake()) GTEST_SKIP() << "needs scripted errors";
  const std::uint64_t made = calls_of("cuEventCreate"), destroyed = calls_of("cuEventDestroy_v2");
  const DeviceMemory device(64);
  std::byte* const host = pinned(64);
  EXPECT_EQ(copy(CopyDirection::to_host, {{host, device.data(), 64}}, device.data()), "");
  for (const char* const function : {"cuMemcpyAsync", "cuEventRecord", "cuEventQuery", "cuCtxPushCurrent_v2"}) {
    driver().fakeCudaFail(function, 0, illegal_address, 0);
    const std::string error = copy(CopyDirection::to_host, {{host, device.data(), 64}}, device.data());
    EXPECT_NE(error.find("CUDA device 0"), std::string::npos) << function << ": " << error;
  }
  // A context that was pushed before is not popped by a call whose push has failed.
  Context current = nullptr;
  ASSERT_EQ(driver().cuCtxGetCurrent(&current), success);
  EXPECT_NE(current, nullptr);
  EXPECT_EQ(copy(CopyDirection::to_host, {{host, device.data(), 64}}, device.data()), "");
  memory->free_pinned(host);
  memory.reset();
  EXPECT_EQ(calls_of("cuEventDestroy_v2") - destroyed, calls_of("cuEventCreate") - made);  // also of failed copies
}

TEST_F(CudaMemoryTest, PinsMemoryOfTheProgram) {
  std::vector<std::byte> own(100'000);
  const DeviceMemory device(pattern(100'000, 9));
  ASSERT_EQ(memory->pin(own.data(), own.size()), "");
  std::uint64_t before = 0, after = 0;
  if (driver().is_fake()) driver().fakeCudaPageable(&before);
  EXPECT_EQ(copy(CopyDirection::to_host, {{own.data(), device.data(), own.size()}}, device.data()), "");
  if (driver().is_fake()) driver().fakeCudaPageable(&after);
  EXPECT_EQ(after, before);
  EXPECT_EQ(std::memcmp(own.data(), pattern(100'000, 9).data(), own.size()), 0);
  EXPECT_EQ(memory->unpin(own.data()), "");
  EXPECT_NE(memory->unpin(own.data()), "");
}

TEST_F(CudaMemoryTest, ReportsThatPinnedMemoryHasRunOut) {
  if (!driver().is_fake()) GTEST_SKIP() << "needs scripted errors";
  driver().fakeCudaFail("cuMemHostAlloc", 0, out_of_memory, 0);
  std::string error;
  EXPECT_EQ(memory->allocate_pinned(64, &error), nullptr);
  EXPECT_NE(error.find("cuMemHostAlloc"), std::string::npos) << error;
}

TEST_F(CudaMemoryTest, RefusesToExportWhatHasNoHandle) {
  using Kind = DeviceMemory::Kind;
  MemoryExport exported;
  const DeviceMemory pool(100, Kind::pool), managed(100, Kind::managed);
  EXPECT_NE(memory->export_memory(pool.data(), &exported), "");
  EXPECT_NE(memory->export_memory(managed.data(), &exported), "");
  int local = 0;
  EXPECT_NE(memory->export_memory(&local, &exported), "");
}

TEST_F(CudaMemoryTest, RejectsItsOwnExport) {
  const DeviceMemory device(100);
  MemoryExport exported;
  ASSERT_EQ(memory->export_memory(device.data(), &exported), "");
  std::byte* address = nullptr;
  EXPECT_NE(memory->open(exported, 0, &address), "");
  exported.offset = 101;
  EXPECT_NE(memory->open(exported, 0, &address), "");
}

/// The other process of ExportsToAnotherProcess: reads an export from descriptor 0 and checks what it maps.
TEST(CudaImport, DISABLED_OtherProcess) {
  MemoryExport exported;
  ASSERT_EQ(read(0, &exported, sizeof exported), static_cast<ssize_t>(sizeof exported));
  use_device(0);
  const std::unique_ptr<Memory> memory = open_memory();
  std::byte *first = nullptr, *second = nullptr;
  MemoryExport wrong = exported;
  wrong.size = wrong.offset = std::uint64_t{1} << 30;
  const std::uint64_t before = calls_of("cuIpcCloseMemHandle");
  EXPECT_NE(memory->open(wrong, 0, &first), "");
  const std::uint64_t unmapped = driver().is_fake() ? 1 : 0;
  EXPECT_EQ(calls_of("cuIpcCloseMemHandle"), before + unmapped);
  ASSERT_EQ(memory->open(exported, 0, &first), "");
  ASSERT_EQ(memory->open(exported, 0, &second), "");
  EXPECT_EQ(first, second);
  memory->close(second);
  std::string error;
  std::byte* const host = memory->allocate_pinned(60, &error);
  MemoryPlace place;
  ASSERT_TRUE(memory->locate(first, &place));
  const MemoryCopy one{host, first, 60};
  ASSERT_EQ(wait_for(*memory, memory->begin_copy(place, CopyDirection::to_host, {&one, 1}, nullptr)), "");
  EXPECT_EQ(std::string(reinterpret_cast<char*>(host), 60), pattern(100, 8).substr(40));
  memory->free_pinned(host);
  memory->close(first);
  EXPECT_FALSE(memory->locate(first, &place));
}

/// Starts this program again for the disabled test above. Returns its exit status.
int run_other_process(const MemoryExport& exported) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[0], 0);
    close(ends[1]);
    const char* const arguments[] = {"/proc/self/exe", "--gtest_also_run_disabled_tests",
                                     "--gtest_filter=CudaImport.DISABLED_OtherProcess", nullptr};
    unsetenv("GTEST_OUTPUT");
    unsetenv("GTEST_FILTER");
    execve(arguments[0], const_cast<char**>(arguments), environ);
    _exit(99);
  }
  close(ends[0]);
  const bool sent = write(ends[1], &exported, sizeof exported) == static_cast<ssize_t>(sizeof exported);
  close(ends[1]);
  int status = -1;
  waitpid(child, &status, 0);
  return sent ? status : -1;
}

TEST_F(CudaMemoryTest, ExportsToAnotherProcess) {
  const DeviceMemory device(pattern(100, 8));
  MemoryExport exported;
  ASSERT_EQ(memory->export_memory(device.data() + 40, &exported), "");
  EXPECT_EQ(exported.offset, 40u);
  EXPECT_EQ(run_other_process(exported), 0);
}

TEST_F(CudaMemoryTest, EndsAfterTheProgramsContext) {
  if (!driver().is_fake()) GTEST_SKIP() << "destroys contexts";
  Context own = nullptr;
  ASSERT_EQ(driver().cuCtxCreate_v2(&own, 0, 1), success);
  {
    const DeviceMemory device(pattern(64, 4));
    std::byte* const host = pinned(64);
    EXPECT_EQ(copy(CopyDirection::to_host, {{host, device.data(), 64}}, device.data()), "");
    memory->free_pinned(host);
  }
  ASSERT_EQ(driver().cuCtxDestroy_v2(own), success);
  memory.reset();
}

}  // namespace
}  // namespace canele::gpu_test

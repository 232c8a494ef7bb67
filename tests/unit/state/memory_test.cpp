// SPDX-License-Identifier: BSD-3-Clause
//
// What a peer costs in memory: one that is only known, and one that has exchanged messages.
//
// The heap is asked (mallinfo2), so big blocks count, too; memory shared with a peer is counted once, at the rank that
// made it.
#include <malloc.h>

#include <functional>

#include "drivers/shm/channel.hpp"
#include "unit/engine/local_job.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CANELE_COUNTS 0
#else
#define CANELE_COUNTS 1
#endif

namespace canele::test {
namespace {

std::size_t heap_in_use() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

/// A job whose other ranks are known by number only.
class LonelyBootstrap final : public comm::Bootstrap {
 public:
  explicit LonelyBootstrap(int size) : size_(size) {}
  std::string_view name() const override { return "lonely"; }
  int rank() const override { return 0; }
  int size() const override { return size_; }
  int local_rank() const override { return 0; }
  int local_size() const override { return 1; }
  std::uint64_t job() const override { return 1; }
  const std::string& host() const override { return host_; }
  bool put(std::string_view, const comm::Blob&, std::string*) override { return true; }
  bool commit_and_fence(std::uint64_t, std::string*) override { return true; }
  void get(int, std::string_view, std::uint64_t, Deliver deliver) override { deliver(false, {}, "no rank is there"); }
  bool fence(std::uint64_t, std::string*) override { return true; }
  void on_failure(std::function<void(int)>) override {}
  bool has_died(int) const override { return false; }
  void abort(int, std::string_view) override {}
  void finalize() override {}

 private:
  int size_;
  std::string host_ = "here";
};

std::unique_ptr<comm::Engine> lonely_engine(int size, std::vector<comm::DriverChoice> drivers = {
                                                          comm::find_driver("self"), comm::find_driver("shm"),
                                                          comm::find_driver("tcp")}) {
  comm::EngineParts parts;
  parts.platform = &posix_platform();
  parts.settings = std::make_unique<comm::Settings>(*parts.platform, std::span<const std::string>());
  parts.bootstrap = std::make_unique<LonelyBootstrap>(size);
  parts.drivers = std::move(drivers);
  parts.strategy = comm::find_strategy("aggregate");
  std::string why;
  auto engine = comm::Engine::create(std::move(parts), &why);
  EXPECT_TRUE(engine) << why;
  return engine;
}

TEST(Memory, APeerThatIsOnlyKnownCostsLessThan128Bytes) {
  if (!CANELE_COUNTS) GTEST_SKIP() << "a sanitizer has its own heap";
  constexpr std::size_t known = 1000;
  lonely_engine(2).reset();  // what is allocated once
  const std::size_t start = heap_in_use();
  const auto small = lonely_engine(2);
  const std::size_t between = heap_in_use();
  const auto large = lonely_engine(2 + known);
  const std::size_t end = heap_in_use();
  const std::size_t each = ((end - between) - (between - start)) / known;
  RecordProperty("bytes_per_known_peer", static_cast<int>(each));
  EXPECT_LE(each, 128u);
}

TEST(Memory, AnEngineThatTalksToNobodyHasNoRingForItself) {
  if (!CANELE_COUNTS) GTEST_SKIP() << "a sanitizer has its own heap";
  lonely_engine(1, {comm::find_driver("self")}).reset();  // what is allocated once
  const std::size_t before = heap_in_use();
  const auto engine = lonely_engine(1, {comm::find_driver("self")});
  const std::size_t bytes = heap_in_use() - before;
  RecordProperty("bytes_per_engine", static_cast<int>(bytes));
  EXPECT_LE(bytes, 32u * 1024);
}

/// Returns the heap bytes that each of `ranks` ranks needs for each other rank with which it has exchanged a message.
std::size_t heap_per_peer(const char* driver, int ranks) {
  JobOptions options;
  options.size = ranks;
  options.drivers = {comm::find_driver("self"), comm::find_driver(driver)};
  LocalJob job(options);
  const auto s = job.open("memory");
  const std::size_t before = heap_in_use();
  const auto all_to_all = [&](std::uint64_t tag) {
    std::vector<canele_request_t> requests(static_cast<std::size_t>(2 * ranks * ranks));
    std::size_t next = 0;
    for (int from = 0; from < ranks; ++from) {
      for (int to = 0; to < ranks; ++to) {
        if (from == to) continue;
        canele_irecv(s[static_cast<std::size_t>(to)], from, tag, CANELE_TAG_EXACT, nullptr, 0, &requests[next++]);
        canele_isend(s[static_cast<std::size_t>(from)], to, tag, nullptr, 0, &requests[next++]);
      }
    }
    for (std::size_t i = 0; i < next; ++i) EXPECT_TRUE(job.finish(requests[i]));
  };
  all_to_all(1);
  std::size_t used = heap_in_use() - before;
  for (int rank = 0; rank < ranks; ++rank) {  // a few packets are kept for any peer; they belong to the engine
    for (const auto& packet : job.engine(rank).free_packets) used -= sizeof *packet + packet->staging.capacity();
  }
  return used / static_cast<std::size_t>(ranks * (ranks - 1));
}

TEST(Memory, APeerTalkedToThroughSharedMemoryCostsLessThan100KiB) {
  if (!CANELE_COUNTS) GTEST_SKIP() << "a sanitizer has its own heap";
  const std::size_t each = heap_per_peer("shm", 64) + drivers::shm::backed_size;
  RecordProperty("bytes_per_shm_peer", static_cast<int>(each));
  EXPECT_LE(each, 100u * 1024);
}

TEST(Memory, APeerTalkedToOverTcpCostsLessThan32KiB) {
  if (!CANELE_COUNTS) GTEST_SKIP() << "a sanitizer has its own heap";
  const std::size_t each = heap_per_peer("tcp", 64);
  RecordProperty("bytes_per_tcp_peer", static_cast<int>(each));
  EXPECT_LE(each, 32u * 1024);
}

}  // namespace
}  // namespace canele::test

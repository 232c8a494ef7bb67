// SPDX-License-Identifier: BSD-3-Clause
//
// What the engine does with measured costs: which of several rails carries large transfers, and what a strategy sees.
//
// The figures are made up, so that their order is the reverse of the truth.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

constexpr std::size_t shm = 1, tcp = 2;

/// "fifo" that remembers the costs of rails that it was given.
std::vector<strategies::Costs> seen;  // one per call of plan() with costs; engines of these tests run in one thread

class Onlooker final : public strategies::Strategy {
 public:
  void add(strategies::Item& item) override { inner_->add(item); }
  void remove(strategies::Item& item) override { inner_->remove(item); }
  void reprioritized(strategies::Item& item, std::int32_t before) override { inner_->reprioritized(item, before); }
  void plan(const strategies::RailView& rail, strategies::Plan& plan) override {
    if (rail.costs != nullptr) seen.push_back(*rail.costs);
    inner_->plan(rail, plan);
  }
  bool empty() const override { return inner_->empty(); }
  strategies::Item* any() override { return inner_->any(); }
  void each(const std::function<void(const strategies::Item&)>& visit) const override { inner_->each(visit); }

 private:
  std::unique_ptr<strategies::Strategy> inner_ = comm::find_strategy("fifo")->create();
};

const strategies::StrategyFactory onlooker{
    "onlooker", "for tests", [] { return std::unique_ptr<strategies::Strategy>(std::make_unique<Onlooker>()); }};

class MeasuredCosts : public testing::Test {
 protected:
  MeasuredCosts() : directory_(testing::TempDir() + "canele-costs-" + std::to_string(posix_platform().random())) {
    std::filesystem::create_directories(directory_);
    seen.clear();
  }
  ~MeasuredCosts() override { std::filesystem::remove_all(directory_); }

  std::vector<std::string> settings() const { return {"CANELE_SAMPLES=" + directory_}; }

  /// Returns a record of a built-in driver, as if it had been measured: `ns` for 1 MiB.
  static std::string record(const char* driver, int ns) {
    JobOptions options;
    options.size = 1;
    options.drivers = {comm::find_driver("self"), comm::find_driver(driver)};
    LocalJob job(options);
    const strategies::Costs declared = comm::costs_of({}, driver, job.engine(0).instances[1]->driver->capabilities());
    return "driver " + std::string(driver) + " date=2025-01-31 latency_ns=100 gap_ns=50 bytes_per_second=1000000000" +
           " declared_latency_ns=" + std::to_string(declared.latency_ns) +
           " declared_bytes_per_second=" + std::to_string(declared.bytes_per_second) + "\ntime " + driver +
           " 1048576 " + std::to_string(ns) + "\n";
  }

  void write(const std::string& records) const {
    const comm::Samples here = comm::read_samples(posix_platform(), comm::Settings(posix_platform(), settings()));
    std::ofstream(here.file) << "canele-samples 1\nhost " << here.host << "\nmachine " << here.machine << "\nlibrary "
                             << canele_version() << "\n"
                             << records << "end\n";
  }

  /// Connects two ranks with shm+tcp, both rails up, and sends one large message. Returns the rail that both prefer.
  std::size_t preferred() {
    JobOptions options;
    options.settings = settings();
    options.drivers = {comm::find_driver("self"), comm::find_driver("shm"), comm::find_driver("tcp")};
    options.drivers[tcp].with_previous = true;
    options.own_strategy = &onlooker;
    job_ = std::make_unique<LocalJob>(options);
    sessions_ = job_->open("costs");
    transfer(8);
    job_->until([&] {
      const auto up = [&](int rank, std::size_t instance) {
        return job_->engine(rank).instances[instance]->connected_peers > 0;
      };
      return up(0, shm) && up(0, tcp) && up(1, shm) && up(1, tcp);
    });
    transfer(large);
    const std::size_t chosen = job_->engine(0).peers[1]->rail->instance->index;
    EXPECT_EQ(job_->engine(1).peers[0]->rail->instance->index, chosen);
    return chosen;
  }

  void transfer(std::size_t size) {
    std::vector<std::byte> out(size, std::byte{7}), in(size);
    canele_request_t send{}, receive{};
    canele_irecv(sessions_[1], 0, 1, CANELE_TAG_EXACT, in.data(), size, &receive);
    canele_isend(sessions_[0], 1, 1, out.data(), size, &send);
    ASSERT_TRUE(job_->finish(receive) && job_->finish(send));
    ASSERT_EQ(status_of(receive).error, CANELE_OK);
    ASSERT_TRUE(in == out);
  }

  std::uint64_t streamed(std::size_t instance) const {
    return job_->engine(0).instances[instance]->driver->counters.bulk_bytes_sent;
  }

  static constexpr std::size_t large = 2 << 20;
  std::string directory_;
  std::unique_ptr<LocalJob> job_;
  std::vector<canele_session_t*> sessions_;
};

TEST_F(MeasuredCosts, TheRailThatWasMeasuredFasterCarriesLargeTransfers) {
  write(record("shm", 5'000'000) + record("tcp", 1000));
  EXPECT_EQ(preferred(), tcp);
  EXPECT_GE(streamed(tcp), large);
  EXPECT_EQ(streamed(shm), 0u);
  EXPECT_EQ(job_->engine(1).counters.read(comm::Counter::rma_get_bytes), 0u);

  write(record("shm", 1000) + record("tcp", 5'000'000));
  EXPECT_EQ(preferred(), shm);
  EXPECT_EQ(streamed(tcp), 0u);
}

TEST_F(MeasuredCosts, WithoutAllOfThemTheUsersOrderStands) {
  EXPECT_EQ(preferred(), shm);
  EXPECT_FALSE(job_->engine(0).instances[tcp]->costs.measured);
  write(record("tcp", 1));
  EXPECT_EQ(preferred(), shm);
  EXPECT_TRUE(job_->engine(0).instances[tcp]->costs.measured);
  EXPECT_FALSE(job_->engine(0).instances[shm]->costs.measured);
  write(record("shm", 1000) + record("tcp", 1000));  // no difference
  EXPECT_EQ(preferred(), shm);
}

TEST_F(MeasuredCosts, StrategiesSeeTheCostsOfEachRail) {
  write(record("shm", 5'000'000) + record("tcp", 1000));
  preferred();
  ASSERT_FALSE(seen.empty());
  for (const strategies::Costs& costs : seen) {
    EXPECT_TRUE(costs.measured);
    EXPECT_TRUE(costs.time_ns(1 << 20) == 5'000'000 || costs.time_ns(1 << 20) == 1000) << costs.time_ns(1 << 20);
  }
}

/// A decorator may make a driver slower: it is not the one that was measured.
TEST_F(MeasuredCosts, DecoratedDriversAreNotTheOnesThatWereMeasured) {
  write(record("shm", 1000));
  JobOptions options;
  options.settings = settings();
  options.settings.emplace_back("CANELE_EXPERT_DECORATORS=check");
  LocalJob decorated(options);
  EXPECT_FALSE(decorated.engine(0).instances[shm]->costs.measured);
  options.settings.pop_back();
  LocalJob plain(options);
  EXPECT_TRUE(plain.engine(0).instances[shm]->costs.measured);
}

}  // namespace
}  // namespace canele::test

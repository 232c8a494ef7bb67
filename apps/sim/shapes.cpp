// SPDX-License-Identifier: BSD-3-Clause
//
// The worlds, the messages in each, and the table.
//
// Each world sends two messages, and the second one counts: the first makes the connections.
//
//     root:      post nothing ─▶ barrier ─▶ message 0 ─▶ barrier ─▶ message 1
//     the rest:  receive 0 ─▶ barrier ─▶ has come, receive 1 ─▶ barrier (the clock starts) ─▶ RECEIVED (it stops)
#include "apps/sim/shapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <iterator>
#include <vector>

#include "apps/cholesky/way.hpp"
#include "apps/sim/cluster.hpp"
#include "apps/sim/start_barrier.hpp"

namespace canele::sim {
namespace {

constexpr std::uint64_t patience_ns = 1'000'000'000'000;
constexpr int destinations[] = {2, 3, 5, 7, 15, 31};
constexpr std::size_t sizes[] = {8, 4096, 65536, 1 << 20, 4 << 20};
constexpr std::uint64_t messages_each = 2;  // in a world
constexpr double near = 1.1, share = 0.9;

/// One world in which a message goes to all ranks.
class OneToAll {
 public:
  OneToAll(const WorldOptions& options, std::size_t size, canele_shape shape)
      : world_(options),
        size_(size),
        shape_(shape),
        barriers_{StartBarrier(world_.scheduler), StartBarrier(world_.scheduler)} {}

  /// Returns the nanoseconds until the last rank has the message; 0 if the run did not get that far.
  std::uint64_t measure() {
    world_.start([this](int rank, canele_engine_t* engine) { rank == 0 ? lead(engine) : follow(engine); });
    std::uint64_t begin = 0;
    bool rest = true;
    for (StartBarrier& barrier : barriers_) {
      rest = rest && world_.run_until([&] { return barrier.arrived() == world_.ranks(); }, begin + patience_ns);
      begin = world_.timeline.now();
      barrier.open();
    }
    rest = rest && world_.run(begin + patience_ns);
    if (!rest && world_.complaints().empty()) world_.complain("the world has not come to rest");
    return rest ? last_ - begin : 0;
  }
  const World& world() const { return world_; }

 private:
  struct Receive {
    canele_request_t request{};
    OneToAll* job = nullptr;
    std::vector<std::byte> bytes;
  };

  void must(int code) {
    if (code != CANELE_OK) world_.complain(canele_error_string(code));
  }
  std::byte value(std::uint64_t message) const { return static_cast<std::byte>(0x5a + message); }

  void lead(canele_engine_t* engine) {
    canele_session_t* session = nullptr;
    must(canele_session_open(engine, "shapes", 0, &session));
    std::vector<int> all;
    for (int rank = 1; rank < world_.ranks(); ++rank) all.push_back(rank);
    canele_multicast_options_t options{};
    options.struct_size = sizeof options;
    options.shape = shape_;
    for (std::uint64_t message = 0; message < messages_each; ++message) {
      barriers_[message].pass();
      const std::vector<std::byte> bytes(size_, value(message));
      const canele_data_t data = canele_data_contiguous(bytes.data(), size_);
      canele_request_t request{};
      must(canele_imulticast(session, all.data(), all.size(), message, &data, &options, &request));
      must(canele_wait(&request, nullptr));
    }
  }

  void follow(canele_engine_t* engine) {
    canele_session_t* session = nullptr;
    must(canele_session_open(engine, "shapes", 0, &session));
    for (std::uint64_t message = 0; message < messages_each; ++message) {
      Receive& receive = receives_.emplace_back();
      receive.job = this;
      receive.bytes.resize(size_);
      must(canele_irecv(session, 0, message, CANELE_TAG_EXACT, receive.bytes.data(), size_, &receive.request));
      must(canele_request_on_event(&receive.request, CANELE_EVENT_RECEIVED, on_event, &receive));
      barriers_[message].pass();
      must(canele_wait(&receive.request, nullptr));
      const auto right = std::count(receive.bytes.begin(), receive.bytes.end(), value(message));
      if (static_cast<std::size_t>(right) != size_) world_.complain("a message is wrong");
    }
  }

  /// Notes the time in a callback, because the waiter wakes up later.
  static void on_event(canele_request_t*, unsigned, void* argument) {
    OneToAll& job = *static_cast<Receive*>(argument)->job;
    job.last_ = std::max(job.last_, job.world_.timeline.now());
  }

  std::deque<Receive> receives_;  ///< they live as long as the world, because an event may be delivered after the wait
  World world_;
  const std::size_t size_;
  const canele_shape shape_;
  std::array<StartBarrier, messages_each> barriers_;
  std::uint64_t last_ = 0;
};

struct Points {
  int all = 0, near_best = 0;
};

/// Adds the results of one more world.
void note(const World& world, Outcome* outcome) {
  Outcome one;
  note_world(world, &one);
  outcome->complaints.insert(outcome->complaints.end(), one.complaints.begin(), one.complaints.end());
  outcome->trace_hash = outcome->trace_hash * 31 + one.trace_hash;
  outcome->virtual_ns += one.virtual_ns;
  outcome->events += one.events;
  outcome->completed += static_cast<std::uint64_t>(world.options().ranks - 1) * messages_each;
}

/// Returns a line of the table: the engine's choice, and each shape.
std::string measure_point(const RunOptions& options, int count, std::size_t size, Points* points, Outcome* outcome) {
  std::string line = fmt::format("{:>6} {:>10}", count, size);
  std::uint64_t chosen = 0, best = ~std::uint64_t{0};
  for (const std::string& name : cholesky::way_names()) {
    const cholesky::Way way = cholesky::way_of(name);
    if (way.sends) continue;
    OneToAll job(cluster_of(options, count + 1), size, way.shape);
    const std::uint64_t ns = job.measure();
    note(job.world(), outcome);
    line += fmt::format(" {:>10.2f}", static_cast<double>(ns) / 1e3);
    way.shape == CANELE_SHAPE_AUTO ? void(chosen = ns) : void(best = std::min(best, ns));
  }
  const double ratio = best != 0 ? static_cast<double>(chosen) / static_cast<double>(best) : HUGE_VAL;
  ++points->all;
  points->near_best += ratio <= near ? 1 : 0;
  return line + fmt::format(" {:>8.2f}\n", ratio);
}

std::string head() {
  std::string line = fmt::format("{:>6} {:>10}", "ranks", "bytes");
  for (const std::string& name : cholesky::way_names()) {
    if (!cholesky::way_of(name).sends) line += fmt::format(" {:>10}", name);
  }
  return line + fmt::format(" {:>8}\n", "to best");
}

}  // namespace

Outcome run_shapes(const RunOptions& options) {
  Outcome outcome;
  const CholeskyOptions& network = options.cholesky;
  outcome.world = fmt::format("a message to many: {} us, {} GB/s", network.latency_us, network.gigabytes);
  std::vector<int> counts(std::begin(destinations), std::end(destinations));
  if (options.ranks > 1) counts = {options.ranks - 1};
  Points points;
  outcome.report = "time until the last rank has it, us\n" + head();
  for (const int count : counts) {
    for (const std::size_t size : sizes) outcome.report += measure_point(options, count, size, &points, &outcome);
  }
  outcome.report += fmt::format("shapes: auto is within {:.0f} % of the best at {} of {} points\n", (near - 1) * 100,
                                points.near_best, points.all);
  if (points.near_best < share * points.all) {
    outcome.complaints.push_back(
        fmt::format("auto is near the best shape at too few points: {} of {}", points.near_best, points.all));
  }
  outcome.good = outcome.complaints.empty();
  return outcome;
}

}  // namespace canele::sim

// SPDX-License-Identifier: BSD-3-Clause
//
// Measurements: the loops through Canelé, and the order of batches.
//
// The inner loops use the C API directly, so that the library is measured and not the C++ layer.
#include "measure.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "floor.hpp"

namespace canele::perf {
namespace {

constexpr std::uint64_t answer_tag = 10, data_tag = 11;  // and above

void send(Job& job, const Turn& turn, const void* data, std::size_t size, canele_request_t* request) {
  must(canele_isend(turn.session, job.peer(), turn.tag, data, size, request), "canele_isend");
}

void receive(Job& job, const Turn& turn, void* data, std::size_t size, canele_request_t* request) {
  must(canele_irecv(turn.session, job.peer(), turn.tag, CANELE_TAG_EXACT, data, size, request), "canele_irecv");
}

/// Converts nanoseconds per message to the unit of the report.
double in_unit(Benchmark benchmark, double ns, std::uint64_t size) {
  switch (benchmark) {
    case Benchmark::latency:
    case Benchmark::sample:
      return ns / 1e3;
    case Benchmark::bandwidth:
      return static_cast<double>(size) * 1e3 / ns;
    case Benchmark::rate:
      return 1e9 / ns;
    case Benchmark::put:  // these have loops of their own
    case Benchmark::get:
    case Benchmark::atomics:
    case Benchmark::am:
    case Benchmark::match:
    case Benchmark::flood:
    case Benchmark::broadcast:
    case Benchmark::callback:
    case Benchmark::progress:
    case Benchmark::nbc:
    case Benchmark::script:
      break;
  }
  return ns;
}

double batch(Job& job, const Options& options, Stream& stream, std::uint64_t size) {
  const int rounds = options.rounds(size);
  const double ns = options.benchmark == Benchmark::latency ? ping_pong(job, stream, size, rounds)
                                                            : one_way(job, stream, size, rounds);
  return in_unit(options.benchmark, ns, size);
}

double bare_engine_batch(Floor& floor, const Options& options, std::uint64_t size, int rounds) {
  const double ns = options.benchmark == Benchmark::latency
                        ? floor.exchange_ping_pong(size, rounds)
                        : floor.exchange(size, options.window(), rounds, options.tags);
  return ns > 0 ? in_unit(options.benchmark, ns, size) : 0;
}

double floor_batch(Floor& floor, const Options& options, std::uint64_t size) {
  const int rounds = options.rounds(size);
  if (options.bare_engine) return bare_engine_batch(floor, options, size, rounds);
  const double ns = options.benchmark == Benchmark::latency ? floor.ping_pong(size, rounds)
                    : options.benchmark == Benchmark::rate  ? floor.ring(size, options.window(), rounds)
                                                            : floor.stream(size, options.window(), rounds);
  return ns > 0 ? in_unit(options.benchmark, ns, size) : 0;
}

Result measure_size(Job& job, const Options& options, Floor* floor, std::uint64_t size) {
  Result result{size, options.rounds(size) * options.window(), {}, {}};
  Stream stream(job, size, options.window(), options.tags, options.sessions, options.memory_of(job.first() ? 0 : 1));
  batch(job, options, stream, size);  // warm-up: connects, maps, fills caches
  if (floor != nullptr) floor_batch(*floor, options, size);
  for (int i = 0; i < options.batches; ++i) {
    result.ours.push_back(batch(job, options, stream, size));
    if (floor != nullptr) result.floor.push_back(floor_batch(*floor, options, size));
  }
  return result;
}

/// Returns the floor that fits the driver. *why gets its name, or the reason why there is none. Both ranks decide
/// alike.
std::unique_ptr<Floor> choose_floor(Job& job, const Options& options, const std::string& driver, std::string* why) {
  *why = "not requested";
  if (!options.floor) return nullptr;
  *why = "the ranks are on two hosts";
  if (!job.same_host()) return nullptr;
  *why = "none for driver " + driver;
  const std::size_t most = *std::max_element(options.sizes.begin(), options.sizes.end());
  std::unique_ptr<Floor> floor;
  if (options.uses_gpu()) {
    *why = "none: the rate of GPU memory has none";
    if (options.benchmark == Benchmark::rate) return nullptr;
    floor = make_gpu_floor(job, options.memory_of(0), options.memory_of(1), most);
    *why = floor->name();
    return floor;
  }
  if (driver == "shm") floor = make_shm_floor(job, most);
  if (driver == "tcp") floor = make_tcp_floor(job, most);
  if (floor != nullptr && options.bare_engine) {
    const bool here = options.benchmark != Benchmark::bandwidth && floor->has_engine(options.window());
    *why = here ? "a bare engine" : "none: the bare engine has no such benchmark";
    return here ? std::move(floor) : nullptr;
  }
  if (floor != nullptr && options.benchmark == Benchmark::rate) {
    *why = floor->ring_name();
    if (why->empty()) {
      *why = "none: how many messages share a packet is the strategy's choice, and large ones need no ring";
      return nullptr;
    }
    return floor;
  }
  if (floor != nullptr) *why = options.benchmark == Benchmark::bandwidth ? floor->stream_name() : floor->name();
  return floor;
}

}  // namespace

Stream::Stream(Job& job, std::size_t size, int window, std::uint64_t tags, int sessions, MemoryKind memory)
    : out(memory, std::max<std::size_t>(size, 1)),
      in(memory, std::max<std::size_t>(size, 1)),
      requests(static_cast<std::size_t>(window)),
      tags_(tags),
      sessions_{job.session.native()} {
  for (auto& request : requests) pointers.push_back(&request);
  for (int i = 1; i < sessions; ++i) {
    opened_.emplace_back(job.engine, ("canele-perf " + std::to_string(i)).c_str());
    sessions_.push_back(opened_.back().native());
  }
}

Turn Stream::next() {
  const Turn turn{sessions_[session_], data_tag + tag_};
  if (++tag_ == tags_) tag_ = 0;
  if (++session_ == sessions_.size()) session_ = 0;
  return turn;
}

// Posts each receive while the other rank still works on its turn, as osu_latency and IMB do.
double ping_pong(Job& job, Stream& stream, std::size_t size, int rounds) {
  canele_request_t out{}, in{};
  const Turn turn = stream.next();
  const std::uint64_t start = job.engine.now();
  for (int i = 0; i < rounds; ++i) {
    if (job.first()) send(job, turn, stream.out.data(), size, &out);
    receive(job, turn, stream.in.data(), size, &in);
    wait(&in);
    if (!job.first()) send(job, turn, stream.out.data(), size, &out);
    wait(&out);
  }
  return static_cast<double>(job.engine.now() - start) / rounds / 2;
}

double one_way(Job& job, Stream& stream, std::size_t size, int rounds) {
  canele_request_t answer{};
  const std::size_t window = stream.requests.size();
  const std::uint64_t start = job.engine.now();
  for (int round = 0; round < rounds; ++round) {
    std::byte* in = stream.in.data();
    for (auto& request : stream.requests) {
      const Turn turn = stream.next();
      job.first() ? send(job, turn, stream.out.data(), size, &request) : receive(job, turn, in, size, &request);
      in += stream.step;
    }
    must(canele_wait_all(window, stream.pointers.data(), nullptr), "canele_wait_all");
    const Turn turn{job.session.native(), answer_tag};
    job.first() ? receive(job, turn, nullptr, 0, &answer) : send(job, turn, nullptr, 0, &answer);
    wait(&answer);
  }
  return static_cast<double>(job.engine.now() - start) / (rounds * static_cast<double>(window));
}

Results measure(Job& job, const Options& options) {
  Results results;
  job.session.barrier();
  results.driver = job.driver();
  check_driver(options, results.driver);
  const auto floor = choose_floor(job, options, results.driver, &results.floor_name);
  for (const std::uint64_t size : options.sizes) {
    results.sizes.push_back(measure_size(job, options, floor.get(), size));
  }
  job.session.barrier();
  return results;
}

}  // namespace canele::perf

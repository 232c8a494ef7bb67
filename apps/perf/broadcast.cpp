// SPDX-License-Identifier: BSD-3-Clause
//
// Broadcast.
//
// Ranks make progress in their waits, as with an MPI: a worker for each rank would need more cores than there are. A
// destination reports to the root when it had the message, by a message. It checks the data only after the root has
// heard of all destinations. Otherwise an early destination would compute on a core that other ranks still need. No
// round begins before all have checked the data and posted their next receives, so nothing else is in progress.
//
// A round allocates nothing and uses the C ABI, as its counterpart does. A rank's own time counts for all ranks on its
// core. The first rounds do not count, because the scheduler may still be placing the ranks.
//
//   root           start ── multicast ──▶ … ◀── times of all ── all have it ──▶ … ◀── all are ready for the next
//   destination    wait: now ── time ──▶ … ◀── checks it ── irecv(next) ── ready ──▶      (last - start: the sample)
#include "broadcast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "job.hpp"
#include "launch.hpp"
#include "statistics.hpp"

namespace canele::perf {
namespace {

constexpr std::uint64_t data_tag = 51, time_tag = 52, done_tag = 53, ready_tag = 54;
constexpr std::size_t word_size = sizeof(std::uint64_t);
constexpr std::uint64_t warm_up = 20, warm_up_ns = 200'000'000;  // rounds of every way, and time, that do not count

constexpr int single_sends = -1;  // else a shape

/// Returns the shape of a way. Called before the clock runs.
int shape_of(const std::string& way) {
  return static_cast<int>(std::find(broadcast_ways.begin(), broadcast_ways.end(), way) - broadcast_ways.begin()) - 1;
}

/// As cheap as the one of peers/mpi_broadcast.c.
constexpr std::uint64_t word_of(std::uint64_t round, std::uint64_t at) { return (round + at) * 0x9e3779b97f4a7c15; }

std::vector<std::string> settings_of(const Options& options) {
  return {"CANELE_DRIVERS=" + options.drivers.front(), "CANELE_WORKER=none"};
}

/// Samples of one size in us, by way.
using Samples = std::map<std::string, std::vector<double>>;

class Broadcast {
 public:
  explicit Broadcast(const Options& options)
      : engine_(join(settings_of(options))), session_(engine_, "canele-perf broadcast"), options_(options) {
    if (engine_.size() < 2)
      throw std::runtime_error("one rank; expected: a root, rank 0, and at least one destination");
    if (engine_.local_size() != engine_.size()) {
      throw std::runtime_error("the ranks are on several hosts; expected: one host, as their clocks are compared");
    }
    for (int rank = 1; rank < engine_.size(); ++rank) destinations_.push_back(rank);
    answers_.resize(destinations_.size());
    sends_.resize(destinations_.size());
    receives_.resize(destinations_.size());
  }

  int run() {
    for (const std::uint64_t size : options_.sizes) {
      engine_.rank() == 0 ? lead(size) : follow(size);
    }
    session_.barrier();
    return 0;
  }
  [[noreturn]] void abort(const char* why) { engine_.abort(1, why); }

 private:
  void lead(std::uint64_t size);
  void follow(std::uint64_t size);
  double round(int shape, std::uint64_t size);
  void send(int rank, std::uint64_t tag, const void* data, std::uint64_t size, canele_request_t& request) const;
  void post(int rank, std::uint64_t tag, void* buffer, std::uint64_t size, canele_request_t& request) const;
  void send_to_all(int shape, std::uint64_t size);
  void let_all_check(std::uint64_t more);
  void report(std::uint64_t size, const Samples& samples) const;

  canele::engine engine_;
  canele::session session_;
  const Options& options_;
  std::vector<int> destinations_;
  std::vector<std::uint64_t> words_, answers_;      ///< the data; a word from each destination
  std::vector<canele_request_t> sends_, receives_;  ///< one for each destination
};

void wait_for(canele_request_t& request) { must(canele_wait(&request, nullptr), "canele_wait"); }

void Broadcast::send(int rank, std::uint64_t tag, const void* data, std::uint64_t size,
                     canele_request_t& request) const {
  must(canele_isend(session_.native(), rank, tag, data, size, &request), "canele_isend");
}

void Broadcast::post(int rank, std::uint64_t tag, void* buffer, std::uint64_t size, canele_request_t& request) const {
  must(canele_irecv(session_.native(), rank, tag, CANELE_TAG_EXACT, buffer, size, &request), "canele_irecv");
}

/// Sends to all destinations. Returns when the data may be reused.
void Broadcast::send_to_all(int shape, std::uint64_t size) {
  if (shape == single_sends) {
    for (std::size_t i = 0; i < sends_.size(); ++i) send(destinations_[i], data_tag, words_.data(), size, sends_[i]);
    for (canele_request_t& request : sends_) wait_for(request);
    return;
  }
  const canele_data_t data = canele_data_contiguous(words_.data(), size);
  canele_multicast_options_t multicast{};
  multicast.struct_size = sizeof multicast;
  multicast.shape = shape;
  canele_request_t request{};
  must(canele_imulticast(session_.native(), destinations_.data(), destinations_.size(), data_tag, &data, &multicast,
                         &request),
       "canele_imulticast");
  wait_for(request);
}

/// Tells all destinations, which have the message now, to check it and to prepare for the next round, if there is one.
void Broadcast::let_all_check(std::uint64_t more) {
  for (std::size_t i = 0; i < destinations_.size(); ++i) {
    post(destinations_[i], ready_tag, &answers_[i], word_size, receives_[i]);
    send(destinations_[i], done_tag, &more, word_size, sends_[i]);
    wait_for(sends_[i]);
  }
  for (canele_request_t& one : receives_) wait_for(one);
}

double Broadcast::round(int shape, std::uint64_t size) {
  for (std::size_t i = 0; i < destinations_.size(); ++i) {
    post(destinations_[i], time_tag, &answers_[i], word_size, receives_[i]);
  }
  const std::uint64_t start = engine_.now();
  send_to_all(shape, size);
  for (canele_request_t& reply : receives_) wait_for(reply);
  return static_cast<double>(*std::max_element(answers_.begin(), answers_.end()) - start) / 1e3;
}

void Broadcast::lead(std::uint64_t size) {
  words_.assign(size / word_size + 1, 0);
  Samples samples;
  session_.barrier();  // the first receives are posted
  const auto& ways = options_.broadcast.ways;
  const std::uint64_t wanted = static_cast<std::uint64_t>(options_.batches) * ways.size();
  const std::uint64_t begin = engine_.now();
  std::uint64_t counted = 0;
  for (std::uint64_t i = 0; counted < wanted; ++i) {
    const bool may_count = counted == 0 && i >= warm_up * ways.size() && i % ways.size() == 0;  // all ways equally
    const bool counts = counted != 0 || (may_count && engine_.now() - begin >= warm_up_ns);
    for (std::size_t k = 0; k < words_.size(); ++k) words_[k] = word_of(i, k);
    const std::string& way = ways[(i + i / ways.size()) % ways.size()];  // else each would keep to one of two buffers
    const double time = round(shape_of(way), size);
    if (counts) samples[way].push_back(time);
    counted += counts ? 1 : 0;
    let_all_check(counted < wanted ? 1 : 0);
  }
  report(size, samples);
}

void Broadcast::follow(std::uint64_t size) {
  std::vector<std::uint64_t> buffers[2];
  canele_request_t request = {}, reply = {}, done = {};
  for (auto& buffer : buffers) buffer.resize(size / word_size + 1);
  post(0, data_tag, buffers[0].data(), size, request);
  session_.barrier();
  std::uint64_t more = 1;
  for (std::uint64_t i = 0; more != 0; ++i) {
    wait_for(request);
    const std::uint64_t now = engine_.now();
    send(0, time_tag, &now, word_size, reply);
    wait_for(reply);
    post(0, done_tag, &more, word_size, done);
    wait_for(done);
    for (std::size_t k = 0; k < size / word_size; ++k) {
      if (buffers[i % 2][k] == word_of(i, k)) continue;
      throw std::runtime_error("broadcast " + std::to_string(i) + " has wrong data at word " + std::to_string(k));
    }
    if (more != 0) post(0, data_tag, buffers[(i + 1) % 2].data(), size, request);
    send(0, ready_tag, &now, word_size, reply);
    wait_for(reply);
  }
}

void Broadcast::report(std::uint64_t size, const Samples& samples) const {
  if (options_.json) {
    nlohmann::json row = {{"benchmark", "broadcast"},
                          {"driver", options_.drivers.front()},
                          {"destinations", destinations_.size()},
                          {"size", size},
                          {"unit", "us"},
                          {"samples", samples}};
    fmt::print("{}\n", row.dump());
    return;
  }
  fmt::print("root to {} rank{} over {}, {} bytes: time until the last rank has it [us]\n", destinations_.size(),
             destinations_.size() == 1 ? "" : "s", options_.drivers.front(), size);
  fmt::print("  {:<10} {:>10} {:>10} {:>10} {:>10}\n", "way", "median", "p10", "p90", "to sends");
  const auto sends = samples.find("sends");
  for (const std::string& way : options_.broadcast.ways) {
    const Summary one = summarise(samples.at(way));
    fmt::print("  {:<10} {:>10.1f} {:>10.1f} {:>10.1f} {:>10}\n", way, one.median, one.p10, one.p90,
               sends == samples.end() ? "" : fmt::format("{:.2f}", one.median / summarise(sends->second).median));
  }
}

std::vector<std::string> arguments_for(const Options& options, const std::string& driver) {
  std::vector<std::string> arguments = {"broadcast", "--driver", driver, "--batches", std::to_string(options.batches)};
  const auto list = [&](const char* option, const auto& values) {
    arguments.emplace_back(option);
    arguments.push_back(fmt::format("{}", fmt::join(values, ",")));
  };
  list("--size", options.sizes);
  list("--shape", options.broadcast.ways);
  if (options.json) arguments.emplace_back("--json");
  return arguments;
}

}  // namespace

int broadcast_each(const Options& options) {
  int code = 0;
  for (const std::string& driver : options.drivers) {
    for (const int destinations : options.broadcast.destinations) {
      const int ended = run_job(arguments_for(options, driver), destinations + 1);
      if (ended == 0) continue;
      std::fprintf(stderr, "canele-perf: the broadcast to %d over %s has failed (exit code %d)\n", destinations,
                   driver.c_str(), ended);
      code = 1;
    }
  }
  return code;
}

int broadcast(const Options& options) {
  if (options.drivers.size() != 1) {
    throw std::runtime_error(
        "in a job, broadcast measures one driver; expected: one --driver (outside of a job it measures all)");
  }
  Broadcast one(options);
  return run_or_abort(one);
}

}  // namespace canele::perf

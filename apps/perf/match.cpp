// SPDX-License-Identifier: BSD-3-Clause
//
// Matching, measured.
//
// The sender uses 64 requests in turn, and the receiver one array of all requests. What grows with N is therefore the
// receiver's cost.
//
//     receiver (rank 0)                                     sender (rank 1)
//     posted:      post N ── go ──▶ [ ◀── N messages ]      waits for go, then sends as fast as it can
//     unexpected:  go ──▶ ◀── N messages, ◀── marker        the marker is synchronous
//                  [ post N, complete N ]                   [ ] is timed
#include "match.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "counter.hpp"
#include "huge_array.hpp"
#include "launch.hpp"
#include "match_floor.hpp"

namespace canele::perf {
namespace {

constexpr std::uint64_t go_tag = 30, marker_tag = 31, figures_tag = 32;  // of the control session
constexpr std::size_t window = 64;
constexpr std::uint64_t messages_per_batch = 4096;  // at least, unless the caches are cold

/// Evicts everything from the caches by writing more than they hold.
class Evictor {
 public:
  explicit Evictor(bool wanted) {
    constexpr long least = 32 << 20;
    if (wanted) memory_.resize(static_cast<std::size_t>(2 * std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), least)));
  }
  void run() {
    constexpr std::size_t line = 64;
    for (std::size_t i = 0; i < memory_.size(); i += line) ++memory_[i];
    asm volatile("" : : "r"(memory_.data()) : "memory");
  }

 private:
  std::vector<unsigned char> memory_;
};

/// One direction, order and N, on one rank.
class Run {
 public:
  Run(Job& job, canele::session& session, Evictor& evictor, const Plan& plan, Direction direction)
      : job_(job),
        session_(session),
        evictor_(evictor),
        plan_(plan),
        direction_(direction),
        requests_(job.first() ? plan.receives.size() : window),
        data_(plan.receives.size()) {
    for (canele_request_t& request : requests_) pointers_.push_back(&request);
    for (std::size_t i = 0; i < data_.size() && !job.first(); ++i) data_[i] = plan.messages[i].entry;
  }

  /// Runs one round. Returns the nanoseconds that the receiver needed; 0 at the sender.
  std::uint64_t round() {
    if (!job_.first()) return send_all(), 0;
    std::fill(data_.begin(), data_.end(), ~std::uint64_t{0});
    const std::uint64_t ns = direction_ == Direction::posted ? posted() : unexpected();
    check_plan(plan_, data_);
    return ns;
  }

 private:
  std::uint64_t posted() {
    post_all();
    evictor_.run();
    const std::uint64_t start = job_.engine.now();
    canele::request go = job_.session.isend(job_.peer(), go_tag, canele::one(go_));
    complete_all();
    const std::uint64_t ns = job_.engine.now() - start;
    go.wait();
    return ns;
  }

  std::uint64_t unexpected() {
    canele::request marker = job_.session.irecv(job_.peer(), marker_tag, canele::one(marker_));
    job_.session.send(job_.peer(), go_tag, canele::one(go_));
    wait_for_messages();
    marker.wait();
    evictor_.run();
    const std::uint64_t start = job_.engine.now();
    post_all();
    complete_all();
    return job_.engine.now() - start;
  }

  /// Waits until all messages have arrived, and perhaps one more: the sender may be at the next barrier by now. If they
  /// stop coming, the engine keeps fewer messages than memory_for() assumes.
  void wait_for_messages() {
    constexpr std::uint64_t patience_ns = 20'000'000'000;
    std::uint64_t last = 0, since = job_.engine.now();
    for (std::uint64_t now = 0; (now = unexpected_now_.read()) < plan_.messages.size(); last = now) {
      if (job_.engine.progress() || now != last) since = job_.engine.now();
      if (job_.engine.now() - since < patience_ns) continue;
      throw std::runtime_error(std::to_string(now) + " of " + std::to_string(plan_.messages.size()) +
                               " messages have arrived, and no more for 20 s: are the others blocked by credit?");
    }
  }

  void post_all() {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      const PlannedReceive& receive = plan_.receives[i];
      must(canele_irecv(session_.native(), receive.any_source ? CANELE_ANY_SOURCE : job_.peer(), receive.tag,
                        receive.any_tag ? CANELE_TAG_ANY : CANELE_TAG_EXACT, &data_[i], sizeof data_[i], &requests_[i]),
           "canele_irecv");
    }
  }
  void complete_all() { must(canele_wait_all(pointers_.size(), pointers_.data(), nullptr), "canele_wait_all"); }

  void send_all() {
    job_.session.recv(job_.peer(), go_tag, canele::one(go_));
    for (std::size_t i = 0; i < plan_.messages.size(); ++i) {
      canele_request_t& request = requests_[i % window];
      if (i >= window) must(canele_wait(&request, nullptr), "canele_wait");
      must(canele_isend(session_.native(), job_.peer(), plan_.messages[i].tag, &data_[i], sizeof data_[i], &request),
           "canele_isend");
    }
    complete_all();
    if (direction_ == Direction::posted) return;
    canele::request marker;
    job_.session.isend(job_.peer(), marker_tag, canele::one(marker_), {.synchronous = true}, marker);
    marker.wait();
  }

  Job& job_;
  canele::session& session_;
  Evictor& evictor_;
  const Plan& plan_;
  Direction direction_;
  HugeArray<canele_request_t> requests_;
  HugeArray<canele_request_t*> pointers_;
  HugeArray<std::uint64_t> data_;
  Counter unexpected_now_{job_.engine, "unexpected_now"};
  int go_ = 0, marker_ = 0;
};

/// Lets the sender tell the receiver how many of its sends had to wait.
std::uint64_t share(Job& job, std::uint64_t stalls) {
  if (!job.first()) {
    job.session.send(job.peer(), figures_tag, canele::one(stalls));
  } else {
    job.session.recv(job.peer(), figures_tag, canele::one(stalls));
  }
  return stalls;
}

MatchResult measure_case(Job& job, canele::session& session, Evictor& evictor, const Options& options,
                         const MatchResult& shape) {
  MatchResult result = shape;
  const Plan plan = make_plan(options.match, shape.direction, shape.order, shape.receives);
  Run run(job, session, evictor, plan, shape.direction);
  const Counter stalls(job.engine, "credit_stalls");
  run.round();  // warm-up: tables grow, memory is touched
  const std::uint64_t before = stalls.read();
  result.rounds = options.match.cold ? 1 : std::max<std::uint64_t>(1, messages_per_batch / shape.receives);
  if (options.iterations > 0)
    result.rounds = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(options.iterations) / shape.receives);
  const auto per_message = [&result](std::uint64_t ns) {
    return static_cast<double>(ns) / static_cast<double>(result.rounds * result.receives);
  };
  std::optional<MatchFloor> floor;
  if (job.first()) floor.emplace(plan, shape.direction).round();
  for (int batch = 0; batch < options.batches; ++batch) {
    std::uint64_t ns = 0;
    for (std::uint64_t round = 0; round < result.rounds; ++round) ns += run.round();
    result.ns.push_back(per_message(ns));
    if (!floor) continue;
    ns = 0;
    for (std::uint64_t round = 0; round < result.rounds; ++round) {
      evictor.run();
      ns += floor->round();
    }
    result.floor_ns.push_back(per_message(ns));
  }
  result.sent = static_cast<std::uint64_t>(options.batches) * result.rounds * shape.receives;
  result.stalls = share(job, stalls.read() - before);
  return result;
}

/// Returns the value of a setting that is in force.
std::string value_of(const nlohmann::json& info, const std::string& variable) {
  for (const auto& one : info.at("settings")) {
    if (one.at("variable") == variable) return one.at("value").get<std::string>();
  }
  throw std::runtime_error("the library has no setting " + variable);
}

/// Returns the credit that the engine will charge for so many messages of 8 bytes. Adds a fourth, because the engine
/// does not grant the last eighth.
std::uint64_t memory_for(std::uint64_t messages) {
  constexpr std::uint64_t charge = 256 + 8, usual = 64 << 20;  // docs/wire-format.md, "Credit"
  return std::max(usual, messages * charge * 5 / 4);
}

}  // namespace

std::vector<std::string> match_settings(const Options& options) {
  std::vector<std::string> settings;
  if (!options.match.matcher.empty()) settings.push_back("CANELE_EXPERT_MATCHER=" + options.match.matcher);
  const auto& directions = options.match.directions;
  if (std::find(directions.begin(), directions.end(), Direction::unexpected) != directions.end()) {
    const std::string bytes =
        std::to_string(memory_for(*std::max_element(options.match.receives.begin(), options.match.receives.end())));
    settings.push_back("CANELE_UNEXPECTED_MEMORY=" + bytes);
    settings.push_back("CANELE_EXPERT_UNEXPECTED_PER_PEER=" + bytes);
  }
  return settings;
}

int match_each(const std::vector<std::string>& arguments) {
  int code = 0;
  for (const std::string& matcher : matchers()) {
    std::vector<std::string> words = arguments;
    words.insert(words.end(), {"--matcher", matcher});
    const int ended = run_job(words);
    if (ended == 0) continue;
    std::fprintf(stderr, "canele-perf: the matcher %s was not measured (exit code %d)\n", matcher.c_str(), ended);
    code = 1;
  }
  return code;
}

MatchResults match(Job& job, const Options& options) {
  MatchResults results;
  canele::session session(job.engine, "canele-perf match");
  Evictor evictor(options.match.cold);
  job.session.barrier();
  results.driver = job.driver();
  check_driver(options, results.driver);
  const nlohmann::json info = nlohmann::json::parse(job.engine.info_json());
  results.matcher = value_of(info, "CANELE_EXPERT_MATCHER");
  results.unexpected_memory = value_of(info, "CANELE_UNEXPECTED_MEMORY");
  for (const Direction direction : options.match.directions) {
    for (const Order order : options.match.orders) {
      for (const std::uint64_t receives : options.match.receives) {
        results.cases.push_back(measure_case(job, session, evictor, options, {direction, order, receives}));
      }
    }
  }
  job.session.barrier();
  for (MatchResult& one : results.cases) {
    if (!job.first() || !options.match.counts) break;
    const Plan plan = make_plan(options.match, one.direction, one.order, one.receives);
    one.counts = count_matches(plan, one.direction, results.matcher);
  }
  return results;
}

}  // namespace canele::perf

// SPDX-License-Identifier: BSD-3-Clause
//
// Flood.
//
// Rank 0 must not learn by a message that all is sent. That message would be blocked like the others, and receiving it
// would request it. A number in shared memory tells it instead.
//
//   all: touch memory, connect ── baseline ── start every send ── board: started
//   receivers: progress until all have started and the own counters stand still ── receive all, in order, checked
#include "flood.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>

#include "board.hpp"
#include "counter.hpp"
#include "flood_report.hpp"
#include "job.hpp"
#include "launch.hpp"
#include "memory.hpp"

namespace canele::perf {
namespace {

constexpr std::uint64_t data_tag = 7, hello_tag = 41, outcome_tag = 42;
constexpr std::size_t window = 16;  // receives posted at a time, for each peer
constexpr std::size_t word_size = sizeof(std::uint64_t);

std::vector<std::string> settings_of(const Options& options) {
  std::vector<std::string> settings = {"CANELE_DRIVERS=" + options.drivers.front(),
                                       "CANELE_UNEXPECTED_MEMORY=" + std::to_string(options.flood.limit)};
  if (options.flood.per_peer != 0) {
    settings.push_back("CANELE_EXPERT_UNEXPECTED_PER_PEER=" + std::to_string(options.flood.per_peer));
  }
  return settings;
}

class Flood {
 public:
  explicit Flood(const Options& options)
      : engine_(join(settings_of(options))),
        control_(engine_, "canele-perf"),
        data_(engine_, "canele-perf flood"),
        options_(options),
        size_(options.sizes.front()),
        rank_(engine_.rank()) {
    if (engine_.size() < 2) throw std::runtime_error("one rank; expected: a receiver, rank 0, and at least one sender");
    messages_ = flood_messages(options.flood, size_);
  }

  int run();

  [[noreturn]] void abort(const char* why) { engine_.abort(1, why); }

 private:
  int senders() const { return engine_.size() - 1; }
  /// Returns the number of messages from one rank to another.
  std::uint64_t planned(int from, int to) const {
    if (from != 0) return to == 0 ? messages_ : 0;
    return to != 0 && options_.flood.both ? messages_ / static_cast<std::uint64_t>(senders()) : 0;
  }
  void prepare();
  void start_sends();
  void wait_until_all_is_sent();
  void quiesce();
  void receive_all();
  void receive_window(std::uint64_t begin);
  void check(int from, std::uint64_t message, const std::uint64_t* words) const;
  void turn() {
    if (!engine_.progress()) sched_yield();
  }

  canele::engine engine_;
  canele::session control_, data_;
  const Options& options_;
  std::uint64_t size_, messages_ = 0;
  int rank_;
  std::vector<int> sources_, destinations_;
  std::vector<canele_request_t> sends_, receives_;
  std::vector<std::uint64_t> words_, received_;
  std::unique_ptr<Board> board_;
  FloodOutcome outcome_;
};

/// Allocates and touches everything that this program needs, before memory is measured.
void Flood::prepare() {
  std::uint64_t sends = 0, longest = 0;
  for (int rank = 0; rank < engine_.size(); ++rank) {
    sends += planned(rank_, rank);
    longest = std::max(longest, planned(rank_, rank));
    if (planned(rank_, rank) != 0) destinations_.push_back(rank);
    if (planned(rank, rank_) != 0) sources_.push_back(rank);
  }
  sends_.resize(sends);
  receives_.resize(sources_.size() * window);
  received_.resize(receives_.size() * size_ / word_size);
  if (sends != 0) words_.resize(longest + size_ / word_size);
  for (std::size_t i = 0; i < words_.size(); ++i) words_[i] = flood_word(rank_, i);
  board_ = std::make_unique<Board>(engine_, control_);
  for (int rank = rank_ == 0 ? 1 : 0; rank < (rank_ == 0 ? engine_.size() : 1); ++rank) {  // connects, both ways
    int out = rank_, in = -1;
    canele::request received = control_.irecv(rank, hello_tag, canele::one(in));
    control_.send(rank, hello_tag, canele::one(out));
    received.wait();
  }
  control_.barrier();
}

void Flood::start_sends() {
  std::size_t next = 0;
  const std::uint64_t rounds = destinations_.empty() ? 0 : planned(rank_, destinations_.front());
  for (std::uint64_t i = 0; i < rounds; ++i) {
    for (const int to : destinations_) {
      must(canele_isend(data_.native(), to, data_tag, &words_[i], size_, &sends_[next++]), "canele_isend");
    }
  }
  ++(*board_)->started;
}

/// Makes progress until no more packets come: the senders have used the credit that they were granted.
void Flood::quiesce() {
  constexpr int polls = 20'000;
  const Counter packets(engine_, "packets_received"), stored(engine_, "unexpected_messages");
  std::array<std::uint64_t, 2> seen{};
  for (int unchanged = 0; unchanged < polls; ++unchanged) {
    turn();
    const std::array<std::uint64_t, 2> now = {packets.read(), stored.read()};
    if (now != seen) unchanged = 0;
    seen = now;
  }
}

void Flood::wait_until_all_is_sent() {
  while ((*board_)->started.load() != engine_.size()) turn();
  quiesce();
  ++(*board_)->quiesced;
  const int receivers = options_.flood.both ? engine_.size() : 1;
  while ((*board_)->quiesced.load() != receivers) turn();
  outcome_.stored = Counter(engine_, "unexpected_now").read();
}

void Flood::check(int from, std::uint64_t message, const std::uint64_t* words) const {
  for (std::size_t k = 0; k < size_ / word_size; ++k) {
    if (words[k] == flood_word(from, message + k)) continue;
    char text[160];
    snprintf(text, sizeof text, "message %llu of rank %d is wrong: word %zu is %llx, not %llx",
             static_cast<unsigned long long>(message), from, k, static_cast<unsigned long long>(words[k]),
             static_cast<unsigned long long>(flood_word(from, message + k)));
    throw std::runtime_error(text);
  }
}

void Flood::receive_window(std::uint64_t begin) {
  const std::uint64_t count = std::min<std::uint64_t>(window, planned(sources_.front(), rank_) - begin);
  const auto place = [&](std::size_t source, std::uint64_t i) { return source * window + i; };
  for (std::uint64_t i = 0; i < count; ++i) {
    for (std::size_t source = 0; source < sources_.size(); ++source) {
      const std::size_t at = place(source, i);
      must(canele_irecv(data_.native(), sources_[source], data_tag, CANELE_TAG_EXACT,
                        &received_[at * size_ / word_size], size_, &receives_[at]),
           "canele_irecv");
    }
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    for (std::size_t source = 0; source < sources_.size(); ++source) {
      const std::size_t at = place(source, i);
      canele_status_t status{};
      must(canele_wait(&receives_[at], &status), "canele_wait");
      if (status.length != size_) throw std::runtime_error("a message has a wrong length");
      check(sources_[source], begin + i, &received_[at * size_ / word_size]);
    }
  }
}

void Flood::receive_all() {
  if (sources_.empty()) return;
  for (std::uint64_t begin = 0; begin < planned(sources_.front(), rank_); begin += window) receive_window(begin);
}

int Flood::run() {
  prepare();
  forget_highest();
  outcome_.before = resident("VmRSS");
  const std::uint64_t start = engine_.now();
  start_sends();
  if (!sources_.empty()) wait_until_all_is_sent();
  outcome_.at_rest = resident("VmRSS");
  const std::uint64_t full = engine_.now();
  receive_all();
  for (canele_request_t& send : sends_) must(canele_wait(&send, nullptr), "canele_wait");
  outcome_.sending_ns = full - start;
  outcome_.receiving_ns = engine_.now() - full;
  outcome_.most = std::max(resident("VmHWM"), resident("VmRSS"));
  outcome_.after = resident("VmRSS");
  outcome_.receives = sources_.empty() ? 0 : 1;
  for (std::size_t i = 0; i < flood_counters.size(); ++i) {
    outcome_.counters[i] = Counter(engine_, flood_counters[i]).read();
  }
  control_.barrier();
  if (rank_ != 0) {
    control_.send(0, outcome_tag, canele::one(outcome_));
    return 0;
  }
  std::vector<FloodOutcome> all = {outcome_};
  for (int rank = 1; rank < engine_.size(); ++rank) control_.recv(rank, outcome_tag, canele::one(all.emplace_back()));
  return print_flood(options_, messages_, all) ? 0 : 1;
}

std::vector<std::string> arguments_for(const Options& options, const std::string& driver, std::uint64_t size) {
  const FloodOptions& flood = options.flood;
  std::vector<std::string> arguments = {"flood", "--driver", driver, "--size", std::to_string(size)};
  const auto add = [&](const char* option, std::uint64_t value) {
    arguments.insert(arguments.end(), {option, std::to_string(value)});
  };
  add("--messages", flood_messages(flood, size));
  add("--limit", flood.limit);
  if (flood.per_peer != 0) add("--per-peer", flood.per_peer);
  if (flood.allow != 0) add("--allow", flood.allow);
  if (flood.both) arguments.emplace_back("--both");
  if (options.json) arguments.emplace_back("--json");
  return arguments;
}

}  // namespace

std::uint64_t flood_messages(const FloodOptions& options, std::uint64_t size) {
  constexpr std::uint64_t large = 32 << 10;
  if (options.messages != 0) return options.messages;
  return size < large ? 1'000'000 : 100'000;
}

int flood_each(const Options& options) {
  int code = 0;
  for (const std::string& driver : options.drivers) {
    for (const int senders : options.flood.senders) {
      for (const std::uint64_t size : options.sizes) {
        const int ended = run_job(arguments_for(options, driver, size), senders + 1);
        if (ended == 0) continue;
        std::fprintf(stderr, "canele-perf: the flood of %d over %s with %llu bytes has failed (exit code %d)\n",
                     senders, driver.c_str(), static_cast<unsigned long long>(size), ended);
        code = 1;
      }
    }
  }
  return code;
}

int flood(const Options& options) {
  if (options.drivers.size() != 1 || options.sizes.size() != 1) {
    throw std::runtime_error(
        "in a job, flood measures one case; expected: one --driver and one --size (outside of a job it measures all)");
  }
  Flood one(options);
  return run_or_abort(one);
}

}  // namespace canele::perf

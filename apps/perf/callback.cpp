// SPDX-License-Identifier: BSD-3-Clause
//
// Callback.
//
// The sender sleeps until the round is over, so that there is an idle core: a waiting thread would occupy it. A round
// does not count if its second message did not arrive during the callback of the first one.
//
//     rank 1 (sender)     ◀── ready ── sleeps ── first ──▶ sleeps ── second: its date ──▶ sleeps until all is over
//     rank 0, worker                            calls back: computes for 5 ms ─────────────────────────▶
//     rank 0, helper                                                          calls back: now - date
#include "callback.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <semaphore>
#include <stdexcept>
#include <thread>

#include "job.hpp"
#include "launch.hpp"
#include "pin.hpp"
#include "statistics.hpp"

namespace canele::perf {
namespace {

constexpr std::uint64_t go_tag = 61, first_tag = 62, second_tag = 63;
constexpr double ns_per_us = 1e3;

struct Way {
  const char* name;
  unsigned workers;
  bool busy;  ///< in the first message's callback
};
constexpr Way ways[] = {{"free", CANELE_WORKER_BOUND, false},
                        {"bound", CANELE_WORKER_BOUND, true},
                        {"bound+idle", CANELE_WORKER_BOUND | CANELE_WORKER_IDLE, true}};

/// What the two callbacks of a round share with the thread that waits for them.
struct Round {
  const canele::engine& engine;
  double busy_ns;
  std::uint64_t entered = 0, left = 0, arrived = 0;
  std::binary_semaphore first_done{0}, second_done{0};
};

void first_arrives(canele_request_t*, unsigned, void* argument) {
  Round& round = *static_cast<Round*>(argument);
  round.entered = round.engine.now();
  do {
    round.left = round.engine.now();
  } while (static_cast<double>(round.left - round.entered) < round.busy_ns);
  round.first_done.release();
}

void second_arrives(canele_request_t*, unsigned, void* argument) {
  Round& round = *static_cast<Round*>(argument);
  round.arrived = round.engine.now();
  round.second_done.release();
}

class Callback {
 public:
  explicit Callback(const Options& options)
      : engine_(join({"CANELE_DRIVERS=" + options.drivers.front(), "CANELE_WORKER=none"})),
        session_(engine_, "canele-perf callback"),
        options_(options) {
    if (engine_.size() != 2 || engine_.local_size() != 2) {
      throw std::runtime_error(std::to_string(engine_.size()) + " ranks, " + std::to_string(engine_.local_size()) +
                               " of them on this host; expected: two on one host");
    }
  }

  int run() {
    engine_.rank() == 0 ? receive_all() : send_all();
    engine_.use_workers(CANELE_WORKER_NONE);
    session_.barrier();
    return 0;
  }
  [[noreturn]] void abort(const char* why) { engine_.abort(1, why); }

 private:
  void receive_all();
  void send_all();
  bool receive(const Way& way, double* delay_us);
  void report(const std::map<std::string, std::vector<double>>& delays) const;

  canele::engine engine_;
  canele::session session_;
  const Options& options_;
};

/// Receives the two messages of a round. Returns false if the round does not count.
bool Callback::receive(const Way& way, double* delay_us) {
  Round round{engine_, way.busy ? options_.busy_us * ns_per_us : 0};
  std::uint64_t ignored = 0, sent = 0, more = 1;
  canele::request first, second;
  session_.irecv(1, first_tag, canele::one(ignored), first);
  session_.irecv(1, second_tag, canele::one(sent), second);
  first.on_event(CANELE_EVENT_FINALIZED, first_arrives, &round);
  second.on_event(CANELE_EVENT_FINALIZED, second_arrives, &round);
  session_.send(1, go_tag, canele::one(more));
  round.first_done.acquire();
  round.second_done.acquire();
  first.wait();
  second.wait();
  *delay_us = static_cast<double>(round.arrived - sent) / ns_per_us;
  return !way.busy || (sent > round.entered && sent < round.left);
}

void Callback::receive_all() {
  const std::vector<int> cores = allowed_cores();
  std::map<std::string, std::vector<double>> delays;
  for (const Way& way : ways) {
    engine_.use_workers(way.workers);
    if (options_.pin && cores.size() > 1) engine_.bind_worker({&cores.back(), 1}, CANELE_INDEX_OS);
    std::vector<double>& samples = delays[way.name];
    for (int i = 0; samples.size() < static_cast<std::size_t>(options_.batches); ++i) {
      if (i > 100 * options_.batches) throw std::runtime_error("no message falls into a callback");
      double delay = 0;
      if (receive(way, &delay)) samples.push_back(delay);
    }
  }
  std::uint64_t no_more = 0;
  session_.send(1, go_tag, canele::one(no_more));
  report(delays);
}

void Callback::send_all() {
  using Micros = std::chrono::duration<double, std::micro>;
  const auto sleep = [](double time_us) { std::this_thread::sleep_for(Micros(time_us)); };
  if (options_.pin) pin_thread({allowed_cores().front()});
  std::minstd_rand random(1);
  std::uniform_real_distribution<double> quiet(0, 2 * options_.busy_us), within(0.05, 0.8);
  for (;;) {
    std::uint64_t more = 0;
    session_.recv(0, go_tag, canele::one(more));
    if (more == 0) return;
    sleep(quiet(random));
    session_.send(0, first_tag, canele::one(more));
    sleep(within(random) * options_.busy_us);
    std::uint64_t now = engine_.now();
    session_.send(0, second_tag, canele::one(now));
    sleep(2 * options_.busy_us);
  }
}

void Callback::report(const std::map<std::string, std::vector<double>>& delays) const {
  if (options_.json) {
    nlohmann::json row = {{"benchmark", "callback"},
                          {"driver", options_.drivers.front()},
                          {"busy", options_.busy_us},
                          {"unit", "us"},
                          {"samples", delays}};
    fmt::print("{}\n", row.dump());
    return;
  }
  fmt::print("a message during a callback of {} us on the bound worker, over {}: time until its own callback [us]\n",
             options_.busy_us, options_.drivers.front());
  fmt::print("  {:<12} {:>10} {:>10} {:>10} {:>10}\n", "workers", "median", "p90", "p99", "longest");
  for (const Way& way : ways) {
    const std::vector<double>& samples = delays.at(way.name);
    fmt::print("  {:<12} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f}\n", way.name, quantile(samples, 0.5),
               quantile(samples, 0.9), quantile(samples, 0.99), quantile(samples, 1));
  }
}

}  // namespace

int callback_each(const Options& options) {
  int code = 0;
  for (const std::string& driver : options.drivers) {
    std::vector<std::string> arguments = {"callback", "--driver", driver};
    const auto add = [&](const char* option, const std::string& value) {
      arguments.insert(arguments.end(), {option, value});
    };
    add("--batches", std::to_string(options.batches));
    add("--busy", fmt::format("{}", options.busy_us));
    if (options.json) arguments.emplace_back("--json");
    if (!options.pin) arguments.emplace_back("--no-pin");
    const int ended = run_job(arguments, 2);
    if (ended == 0) continue;
    std::fprintf(stderr, "canele-perf: callback over %s has failed (exit code %d)\n", driver.c_str(), ended);
    code = 1;
  }
  return code;
}

int callback(const Options& options) {
  if (options.drivers.size() != 1) {
    throw std::runtime_error(
        "in a job, callback measures one driver; expected: one --driver (outside of a job it measures all)");
  }
  Callback one(options);
  return run_or_abort(one);
}

}  // namespace canele::perf

// SPDX-License-Identifier: BSD-3-Clause
//
// LocalJob: n engines in one process, for tests: a bootstrap over a shared map, real or scripted drivers.
//
// The bootstrap is thread-safe; step_all() steps the engines one after the other in the calling thread. Engines are
// created in threads of their own, because create() waits for all ranks.
#pragma once

#include <canele/canele.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "comm/api/api.hpp"
#include "comm/diagnose/hang_collect.hpp"
#include "comm/engine/engine.hpp"
#include "comm/registry/registry.hpp"

namespace canele::test {

/// What the ranks of one job publish.
struct Board {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<int, std::string>, comm::Blob> blobs;
  std::set<int> dead;
  int size = 1, arrived = 0, generation = 0;

  void fence() {
    std::unique_lock guard(mutex);
    const int mine = generation;
    if (++arrived == size) {
      arrived = 0;
      ++generation;
      changed.notify_all();
    } else {
      changed.wait(guard, [&] { return generation != mine; });
    }
  }
};

class LocalBootstrap final : public comm::Bootstrap {
 public:
  LocalBootstrap(std::shared_ptr<Board> board, int rank) : board_(std::move(board)), rank_(rank) {}
  std::string_view name() const override { return "local"; }
  int rank() const override { return rank_; }
  int size() const override { return board_->size; }
  int local_rank() const override { return rank_; }
  int local_size() const override { return board_->size; }
  std::uint64_t job() const override { return 42; }
  const std::string& host() const override { return host_; }
  bool put(std::string_view key, const comm::Blob& blob, std::string*) override {
    const std::lock_guard guard(board_->mutex);
    board_->blobs[{rank_, std::string(key)}] = blob;
    return true;
  }
  bool commit_and_fence(std::uint64_t, std::string*) override {
    board_->fence();
    return true;
  }
  void get(int rank, std::string_view key, std::uint64_t, Deliver deliver) override {
    comm::Blob blob;
    bool found = false;
    {
      const std::lock_guard guard(board_->mutex);
      const auto it = board_->blobs.find({rank, std::string(key)});
      found = it != board_->blobs.end();
      if (found) blob = it->second;
    }
    deliver(found, std::move(blob), found ? "" : "not published");
  }
  bool fence(std::uint64_t, std::string*) override {
    board_->fence();
    return true;
  }
  /// Reports nothing: a launcher may be slow.
  void on_failure(std::function<void(int)>) override {}
  bool has_died(int rank) const override {
    const std::lock_guard guard(board_->mutex);
    return board_->dead.contains(rank);
  }
  void abort(int, std::string_view) override {}
  void finalize() override {}

 private:
  std::shared_ptr<Board> board_;
  int rank_;
  std::string host_ = "here";
};

struct JobOptions {
  int size = 2;
  std::vector<comm::DriverChoice> drivers = {comm::find_driver("self"), comm::find_driver("shm")};
  std::string strategy = "aggregate";
  std::vector<std::string> settings = {};
  const strategies::StrategyFactory* own_strategy = nullptr;  ///< instead of `strategy`
  std::vector<std::string> settings_of_last = {};             ///< of the last rank, instead of `settings`
  Platform* platform = nullptr;                               ///< of all ranks, instead of the real one
};

class LocalJob {
 public:
  explicit LocalJob(const JobOptions& options = {}) : engines_(static_cast<std::size_t>(options.size)) {
    board_->size = options.size;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < options.size; ++rank) {
      threads.emplace_back([&, rank] {
        comm::EngineParts parts;
        parts.platform = options.platform != nullptr ? options.platform : &posix_platform();
        // Copy costs measured on this machine must not decide how a test's messages are sent.
        const auto of_all = [](std::vector<std::string> settings) {
          settings.insert(settings.begin(), "CANELE_EXPERT_SHM_CMA_MIN=0");
          return settings;
        };
        const bool other = !options.settings_of_last.empty() && rank == options.size - 1;
        parts.settings = std::make_unique<comm::Settings>(*parts.platform,
                                                          of_all(other ? options.settings_of_last : options.settings));
        EXPECT_EQ(parts.settings->error(), "");
        parts.bootstrap = std::make_unique<LocalBootstrap>(board_, rank);
        parts.drivers = options.drivers;
        parts.check_hang = comm::hang::check;
        parts.strategy = options.own_strategy != nullptr ? options.own_strategy : comm::find_strategy(options.strategy);
        std::string why;
        engines_[static_cast<std::size_t>(rank)] = comm::Engine::create(std::move(parts), &why);
        EXPECT_TRUE(engines_[static_cast<std::size_t>(rank)]) << why;
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  comm::Engine& engine(int rank) { return *engines_[static_cast<std::size_t>(rank)]; }
  canele_engine_t* handle(int rank) { return comm::api::public_of(engine(rank)); }
  int size() const { return static_cast<int>(engines_.size()); }

  /// Opens the session with this label in every rank.
  std::vector<canele_session_t*> open(const char* label, unsigned flags = 0) {
    std::vector<canele_session_t*> sessions(engines_.size());
    for (int rank = 0; rank < size(); ++rank) {
      EXPECT_EQ(canele_session_open(handle(rank), label, flags, &sessions[static_cast<std::size_t>(rank)]), CANELE_OK)
          << canele_error_detail();
    }
    return sessions;
  }

  int step_all() {
    int did = 0;
    for (auto& engine : engines_) {
      if (engine) did += engine->step();
    }
    return did;
  }

  /// Steps until the condition holds; fails after very many steps.
  template <typename Condition>
  bool until(Condition condition) {
    for (long turn = 0; turn < 20'000'000; ++turn) {
      if (condition()) return true;
      if (step_all() == 0 && turn % 64 == 63) std::this_thread::yield();
    }
    ADD_FAILURE() << "the condition never held";
    return false;
  }

  bool finish(const canele_request_t& request) {
    return until([&] { return comm::request_of(&request).finalized(); });
  }

  /// From now on the launcher knows that the rank has died. So many bytes of its address are still readable; 0: none.
  void bury(int rank, std::size_t address_left) {
    const std::lock_guard guard(board_->mutex);
    board_->dead.insert(rank);
    board_->blobs[{rank, "address"}].resize(address_left);
    if (address_left == 0) board_->blobs.erase({rank, "address"});
  }

  void destroy(int rank) { engines_[static_cast<std::size_t>(rank)].reset(); }

 private:
  std::shared_ptr<Board> board_ = std::make_shared<Board>();
  std::vector<std::unique_ptr<comm::Engine>> engines_;
};

/// Returns the bytes of a message that a test can recognise.
inline std::vector<std::uint8_t> pattern(std::size_t length, unsigned seed) {
  std::vector<std::uint8_t> bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::uint8_t>((i * 131 + i / 251 + seed) & 0xff);
  return bytes;
}

inline canele_status_t status_of(const canele_request_t& request) {
  canele_status_t status{};
  EXPECT_EQ(canele_request_status(&request, &status), CANELE_OK) << canele_error_detail();
  return status;
}

}  // namespace canele::test

// SPDX-License-Identifier: BSD-3-Clause
//
// SimPlatform: the outside world of one simulated process. SimBootstrap: its launcher.
//
// The world makes one of each per rank. Threads: the fibers of that rank. Every call costs virtual time, and the
// calling fiber may lose its core there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "apps/sim/scheduler.hpp"
#include "comm/bootstrap/bootstrap.hpp"
#include "ltask/platform.hpp"

namespace canele::sim {

/// What all processes of the simulated machine share.
struct Machine {
  Timeline& timeline;
  Scheduler& scheduler;
  Bells& bells;
  std::function<void(int rank, LogLevel level, std::string_view text)> log;
  std::map<const void*, std::vector<Scheduler::Thread*>> parked;  ///< by the word on which they sleep
  std::uint64_t timer_factor = 1;                                 ///< factor by which timers are late
  std::uint64_t slowest_answer_ns = 200'000;                      ///< of the launcher
  int ranks_per_node = 1;
  std::vector<std::weak_ptr<std::vector<std::byte>>> shared;  ///< memory of all processes, by descriptor

  std::uint64_t timer(std::uint64_t ns) const {
    return ns > ~std::uint64_t{0} / timer_factor ? ~std::uint64_t{0} : ns * timer_factor;
  }
};

class SimPlatform final : public Platform {
 public:
  SimPlatform(Machine& machine, int rank, Dice dice, unsigned processors)
      : machine_(machine), rank_(rank), dice_(dice), processors_(processors) {}

  std::uint64_t now_ns() noexcept override;
  std::uint64_t random() noexcept override { return dice_.next(); }
  const char* variable(const char*) noexcept override { return nullptr; }
  void each_variable(std::string_view, const std::function<void(std::string_view)>&) override {}
  std::unique_ptr<PlatformThread> start_thread(const char* name, std::function<void()> body) override;
  const void* this_thread() noexcept override { return machine_.scheduler.current(); }
  std::unique_ptr<WakeSet> make_wake_set(std::string* why) override;
  std::unique_ptr<SharedMemory> share_memory(std::size_t size, std::string* why) override;
  std::unique_ptr<SharedMemory> map_memory(const SharedMemoryName& name, std::size_t size) override;
  void relax() noexcept override { machine_.scheduler.spend(10); }
  void yield() noexcept override { machine_.scheduler.pause_for(500 + dice_.under(20'000)); }
  void park(const std::atomic<std::uint32_t>& word, std::uint32_t expected, std::uint64_t timeout_ns) noexcept override;
  void unpark(const std::atomic<std::uint32_t>& word) noexcept override;
  unsigned processors() noexcept override { return processors_; }
  long process() noexcept override { return rank_ + 1; }
  void log(LogLevel level, std::string_view text) noexcept override { machine_.log(rank_, level, text); }

  /// Probability that a lock appears to be busy although it is not.
  double busy_locks = 0;

 private:
  static bool appears_busy(Platform& platform);
  std::uint64_t host() const { return 1 + static_cast<std::uint64_t>(rank_ / machine_.ranks_per_node); }
  Machine& machine_;
  int rank_;
  Dice dice_;
  unsigned processors_;
  friend class World;
};

/// What the ranks of one job publish, and which of them are dead.
struct Board {
  std::map<std::pair<int, std::string>, comm::Blob> blobs;
  std::set<int> dead;  ///< ranks that the launcher reports as dead: for good, even if another process took the place
  std::map<int, std::function<void(int)>> failure_handlers;  ///< by rank: the handler that is told of deaths
  int size = 1, local_size = 1, generation = 0;
  bool deaths_break_fences = false;  ///< a rank in a fence gets an error if another one dies; else the others meet
  bool broken = false;
  std::set<int> arrived;  ///< at the fence
  std::vector<Scheduler::Thread*> waiting;

  /// Releases the ranks at the fence if no other rank is still to come.
  void meet(Scheduler& scheduler);
  void died(int rank, Scheduler& scheduler);
};

class SimBootstrap final : public comm::Bootstrap {
 public:
  SimBootstrap(std::shared_ptr<Board> board, Machine& machine, int rank, Dice dice)
      : board_(std::move(board)),
        machine_(machine),
        rank_(rank),
        dice_(dice),
        host_("node" + std::to_string(rank / board_->local_size)) {}
  std::string_view name() const override { return "sim"; }
  int rank() const override { return rank_; }
  int size() const override { return board_->size; }
  int local_rank() const override { return rank_ % board_->local_size; }
  int local_size() const override { return std::min(board_->local_size, board_->size); }
  std::uint64_t job() const override { return 42; }
  const std::string& host() const override { return host_; }
  bool put(std::string_view key, const comm::Blob& blob, std::string*) override {
    board_->blobs.insert_or_assign({rank_, std::string(key)}, blob);
    return true;
  }
  bool commit_and_fence(std::uint64_t timeout_ns, std::string* why) override { return fence(timeout_ns, why); }
  void get(int rank, std::string_view key, std::uint64_t, Deliver deliver) override;
  bool fence(std::uint64_t, std::string*) override;
  void on_failure(std::function<void(int)> died) override;
  bool has_died(int rank) const override { return board_->dead.contains(rank); }
  void abort(int, std::string_view) override {}
  void finalize() override {
    *listens_ = false;
    board_->failure_handlers.erase(rank_);
  }

 private:
  std::shared_ptr<Board> board_;
  Machine& machine_;
  int rank_;
  Dice dice_;
  std::string host_;
  std::shared_ptr<bool> listens_ = std::make_shared<bool>(true);  ///< no answer is delivered after finalize()
};

}  // namespace canele::sim

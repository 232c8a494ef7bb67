// SPDX-License-Identifier: BSD-3-Clause
//
// One rank of a simulated Cholesky. Its cores are busy for as long as a task takes, and a thread posts messages, like
// StarPU's communication thread.
//
// Threads: run() runs in the main fiber of the rank; arrivals are reported on its worker's fiber. All receives of a
// rank are posted before the first task, as StarPU's are. All of them share one memory, because no task computes with
// the data. Only a head of 16 bytes, which says which tile has arrived, is separate.
//
//     end of a task (timeline) ─▶ Graph ─▶ ready_ ─▶ a free core
//              └─ tile finished ─▶ to_send_ ─▶ main fiber: multicast or sends
//     RECEIVED of a tile (worker) ─▶ Graph ─▶ ready_
#pragma once

#include <canele/canele.h>

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "apps/cholesky/graph.hpp"
#include "apps/cholesky/way.hpp"
#include "apps/sim/cholesky_options.hpp"
#include "apps/sim/start_barrier.hpp"
#include "apps/sim/world.hpp"

namespace canele::sim {

class CholeskyRank {
 public:
  struct Job {
    World& world;
    const cholesky::Layout& layout;
    const CholeskyOptions& options;
    cholesky::Way way;
    StartBarrier& start;
  };

  CholeskyRank(const Job& job, int rank);
  CholeskyRank(const CholeskyRank&) = delete;
  void run(canele_engine_t* engine);

  /// Returns what the rank waits for, as text.
  std::string state() const;
  /// Returns when its last task ended.
  std::uint64_t ended_at() const { return ended_at_; }
  std::uint64_t busy_ns() const { return busy_ns_; }  ///< sum over all cores
  std::size_t receives() const { return receives_.size(); }
  std::uint64_t bytes_sent() const { return bytes_sent_; }
  std::uint64_t bytes_forwarded() const { return bytes_forwarded_; }
  std::uint64_t packets() const { return packets_; }

 private:
  /// Sent in front of each tile.
  struct Head {
    std::int32_t row, column;
    std::uint64_t magic;
  };
  struct Transfer {
    canele_request_t request{};
    CholeskyRank* owner = nullptr;
    cholesky::TileIndex tile{};
    Head head{};
    std::array<iovec, 2> pieces{};
    canele_iov_t vector{};
  };

  void post_receives();
  void send_finished();
  void send(cholesky::TileIndex tile);
  Transfer& new_send(cholesky::TileIndex tile);
  void watch(Transfer& transfer, int code, unsigned events);
  canele_data_t describe(Transfer& transfer);
  static void on_event(canele_request_t* request, unsigned events, void* argument);
  void arrived(Transfer& transfer);
  void ended(Transfer& transfer);
  void start(const std::vector<cholesky::Task>& ready);
  void finish(const cholesky::Task& task);
  std::uint64_t duration_of(const cholesky::Task& task) const;
  bool is_done() const { return graph_.done() && to_send_.empty() && in_flight_ == 0; }
  void serve();
  void read_counters(canele_engine_t* engine);

  const Job job_;
  const int rank_;
  cholesky::Graph graph_;
  int free_cores_;
  cholesky::ReadyTasks ready_;
  std::deque<cholesky::TileIndex> to_send_;
  std::deque<Transfer> receives_, sends_;  ///< deques, because requests must not move
  std::vector<std::byte> values_, sink_;   ///< memory of all tiles sent, and of all tiles received
  std::size_t in_flight_ = 0;
  canele_session_t* session_ = nullptr;
  Scheduler::Thread* thread_ = nullptr;
  std::uint64_t ended_at_ = 0, busy_ns_ = 0, bytes_sent_ = 0, bytes_forwarded_ = 0, packets_ = 0;
};

}  // namespace canele::sim

// SPDX-License-Identifier: BSD-3-Clause
//
// Exchange: finished tiles go to the ranks that read them, and those of others come here.
//
// Who: Factorisation makes one for each run. Threads: send() in compute threads, release() in any, finish() in the
//     main thread; arrivals are told in callbacks of the library, on its worker.
// Surprise: a tile may be read as soon as it is here, while the library still hands it on to others; only its memory
//     must wait for that. So memory of a received tile has two holders:
//
//     posted ──▶ RECEIVED: told to the scheduler ──▶ FINALIZED: the library lets go ─┐
//                                  column_is_done: no task reads it any more ────────┴─▶ its memory serves another
//
//     (Waiting for FINALIZED before a tile is used would make the last rank of a chain as slow as its successor.)
#pragma once

#include <canele/canele.hpp>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "layout.hpp"
#include "way.hpp"

namespace canele::cholesky {

class Exchange {
 public:
  struct Told {
    std::function<void(TileIndex)> arrived;
    std::function<void(const std::string&)> failed;
  };

  /// look_ahead: columns of the factor whose receives are posted at a time; more overlap more and take more memory.
  Exchange(canele::session& session, const Layout& layout, int rank, Way way, int look_ahead, Told told);
  Exchange(const Exchange&) = delete;

  /// Posts the first receives.
  void start();
  /// Sends a finished tile of this rank to all who read it. It must not change until finish().
  void send(TileIndex tile, const double* values, std::size_t count);
  /// A tile that has arrived, for as long as its column is not released.
  const double* values(TileIndex tile) const;
  /// No task reads this column any more.
  void release(int column);
  /// Blocks until the library has let go of all sends and receives.
  void finish();

  /// Tiles sent to three ranks or more, and what all were sent to.
  long wide_sends() const { return wide_sends_; }

 private:
  struct Arrival {
    Arrival(Exchange& owner, TileIndex index) : exchange(owner), tile(index) {}
    canele_request_t request{};
    Exchange& exchange;
    const TileIndex tile;
    std::unique_ptr<double[]> memory;
    int holders = 2;  ///< the library, and the tasks
  };

  static void told(canele_request_t* request, unsigned events, void* argument);
  static void told_of_send(canele_request_t* request, unsigned events, void* argument);
  void post_column(int column);
  void let_go(Arrival& arrival);
  void ended(canele_request_t* request, const char* what);
  canele_request_t& new_request();
  void watch(canele_request_t& request, int code, const char* call);

  canele::session& session_;
  const Layout& layout_;
  const int rank_;
  const Way way_;
  const int look_ahead_;
  const Told told_;
  std::vector<std::vector<std::unique_ptr<Arrival>>> columns_;  ///< by column of the factor
  std::vector<Arrival*> by_place_;

  std::mutex mutex_;  ///< of what follows
  std::condition_variable all_ended_;
  std::vector<std::unique_ptr<double[]>> spare_;
  std::deque<canele_request_t> sends_;  ///< they must not move
  long under_way_ = 0;
  int posted_columns_ = 0;
  long wide_sends_ = 0;
};

}  // namespace canele::cholesky

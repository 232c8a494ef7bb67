// SPDX-License-Identifier: BSD-3-Clause
//
// Exchange: sends finished tiles to the ranks that read them, and receives tiles of other ranks.
//
// Factorisation makes one for each run. Threads: compute threads call send(), any thread calls release(), the main
// thread calls finish(). Arrivals are reported in callbacks of the library, on its worker. A tile may be read as soon
// as it has arrived, while the library still forwards it to other ranks. Only the reuse of its memory has to wait. The
// memory of a received tile therefore has two holders:
//
//     posted ──▶ RECEIVED: reported to the scheduler ──▶ FINALIZED: the library lets go ─┐
//                                  column_is_done: no task reads it any more ────────┴─▶ its memory serves another
//
// Rejected: waiting for FINALIZED before a tile is used. The last rank of a chain would be as slow as its successor.
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
  struct Callbacks {
    std::function<void(TileIndex)> arrived;
    std::function<void(const std::string&)> failed;
  };

  /// look_ahead: columns of the factor whose receives are posted at a time. More columns overlap more and take more
  /// memory.
  Exchange(canele::session& session, const Layout& layout, int rank, Way way, int look_ahead, Callbacks callbacks);
  Exchange(const Exchange&) = delete;

  /// Posts the first receives.
  void start();
  /// Sends a finished tile of this rank to all ranks that read it. The tile must not change until finish().
  void send(TileIndex tile, const double* values, std::size_t count);
  /// Returns a tile that has arrived. Valid until its column is released.
  const double* values(TileIndex tile) const;
  /// Releases a column that no task reads any more.
  void release(int column);
  /// Blocks until the library no longer uses the memory of any send or receive.
  void finish();

  /// Returns how many tiles were sent to three ranks or more.
  long wide_sends() const { return wide_sends_; }

 private:
  struct Arrival {
    Arrival(Exchange& owner, TileIndex index) : exchange(owner), tile(index) {}
    canele_request_t request{};
    Exchange& exchange;
    const TileIndex tile;
    std::unique_ptr<double[]> memory;
    int holders = 2;  ///< the library and the tasks
  };

  static void on_event(canele_request_t* request, unsigned events, void* argument);
  static void on_send_event(canele_request_t* request, unsigned events, void* argument);
  void post_column(int column);
  void release_holder(Arrival& arrival);
  void ended(canele_request_t* request, const char* what);
  canele_request_t& new_request();
  void watch(canele_request_t& request, int code, const char* call);

  canele::session& session_;
  const Layout& layout_;
  const int rank_;
  const Way way_;
  const int look_ahead_;
  const Callbacks callbacks_;
  std::vector<std::vector<std::unique_ptr<Arrival>>> columns_;  ///< by column of the factor
  std::vector<Arrival*> by_place_;

  std::mutex mutex_;  ///< guards the members below
  std::condition_variable all_ended_;
  std::vector<std::unique_ptr<double[]>> spare_;
  std::deque<canele_request_t> sends_;  ///< a deque, because requests must not move
  long in_flight_ = 0;
  int posted_columns_ = 0;
  long wide_sends_ = 0;
};

}  // namespace canele::cholesky

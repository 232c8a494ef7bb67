// SPDX-License-Identifier: BSD-3-Clause
//
// Exchange: posts sends and receives of tiles, and reuses the memory of tiles that are no longer needed.
//
// The tag of a tile is its place in the triangle. Runs need no tags of their own, because a barrier separates them.
#include "exchange.hpp"

#include <algorithm>
#include <cassert>

namespace canele::cholesky {

Exchange::Exchange(canele::session& session, const Layout& layout, int rank, Way way, int look_ahead,
                   Callbacks callbacks)
    : session_(session),
      layout_(layout),
      rank_(rank),
      way_(std::move(way)),
      look_ahead_(look_ahead),
      callbacks_(std::move(callbacks)),
      columns_(static_cast<std::size_t>(layout.tiles())),
      by_place_(static_cast<std::size_t>(layout.places())) {
  for (int column = 0; column < layout.tiles(); ++column) {
    for (int row = column; row < layout.tiles(); ++row) {
      const std::vector<int> readers = layout.readers({row, column});
      if (!std::binary_search(readers.begin(), readers.end(), rank)) continue;
      auto& arrivals = columns_[static_cast<std::size_t>(column)];
      arrivals.push_back(std::make_unique<Arrival>(*this, TileIndex{row, column}));
      by_place_[static_cast<std::size_t>(Layout::place({row, column}))] = arrivals.back().get();
    }
  }
}

void Exchange::start() {
  const int columns = std::min(look_ahead_, layout_.tiles());
  posted_columns_ = columns;
  for (int column = 0; column < columns; ++column) post_column(column);
}

void Exchange::post_column(int column) {
  for (const auto& arrival : columns_[static_cast<std::size_t>(column)]) {
    {
      const std::lock_guard lock(mutex_);
      if (spare_.empty()) {
        const auto side = static_cast<std::size_t>(layout_.tile());
        spare_.push_back(std::make_unique<double[]>(side * side));
      }
      arrival->memory = std::move(spare_.back());
      spare_.pop_back();
      ++in_flight_;
    }
    const TileIndex tile = arrival->tile;
    const std::size_t bytes = sizeof(double) * static_cast<std::size_t>(layout_.extent(tile.row)) *
                              static_cast<std::size_t>(layout_.extent(tile.column));
    canele::detail::check(canele_irecv(session_.native(), layout_.owner(tile), tag_of(tile), CANELE_TAG_EXACT,
                                       arrival->memory.get(), bytes, &arrival->request),
                          "canele_irecv");
    canele::detail::check(canele_request_on_event(&arrival->request, CANELE_EVENT_RECEIVED | CANELE_EVENT_FINALIZED,
                                                  on_event, arrival.get()),
                          "canele_request_on_event");
  }
}

void Exchange::send(TileIndex tile, const double* values, std::size_t count) {
  const std::vector<int> readers = layout_.readers(tile);
  if (readers.empty()) return;
  const canele_data_t data = canele_data_contiguous(values, count * sizeof(double));
  if (readers.size() >= 3) {
    const std::lock_guard lock(mutex_);
    ++wide_sends_;
  }
  if (!way_.sends && readers.size() > 1) {
    canele_multicast_options_t options{};
    options.struct_size = sizeof options;
    options.priority = priority_of(tile);
    options.shape = way_.shape;
    canele_request_t& request = new_request();
    watch(request,
          canele_imulticast(session_.native(), readers.data(), readers.size(), tag_of(tile), &data, &options, &request),
          "canele_imulticast");
    return;
  }
  canele_send_options_t options{};
  options.struct_size = sizeof options;
  options.priority = priority_of(tile);
  for (const int reader : readers) {
    canele_request_t& request = new_request();
    watch(request, canele_isend_data(session_.native(), reader, tag_of(tile), &data, &options, &request),
          "canele_isend_data");
  }
}

canele_request_t& Exchange::new_request() {
  const std::lock_guard lock(mutex_);
  ++in_flight_;
  return sends_.emplace_back();
}

void Exchange::watch(canele_request_t& request, int code, const char* call) {
  canele::detail::check(code, call);
  canele::detail::check(canele_request_on_event(&request, CANELE_EVENT_FINALIZED, on_send_event, this),
                        "canele_request_on_event");
}

const double* Exchange::values(TileIndex tile) const {
  const Arrival* arrival = by_place_[static_cast<std::size_t>(Layout::place(tile))];
  assert(arrival != nullptr && arrival->memory != nullptr);
  return arrival->memory.get();
}

void Exchange::on_event(canele_request_t* request, unsigned events, void* argument) {
  Arrival& arrival = *static_cast<Arrival*>(argument);
  Exchange& exchange = arrival.exchange;
  canele_status_t status{};
  const bool failed = (events & CANELE_EVENT_FINALIZED) != 0 && canele_request_status(request, &status) == CANELE_OK &&
                      status.error != CANELE_OK;
  if ((events & CANELE_EVENT_RECEIVED) != 0 && !failed) exchange.callbacks_.arrived(arrival.tile);
  if ((events & CANELE_EVENT_FINALIZED) == 0) return;
  exchange.release_holder(arrival);
  exchange.ended(request, "a receive");
}

void Exchange::on_send_event(canele_request_t* request, unsigned, void* argument) {
  static_cast<Exchange*>(argument)->ended(request, "a send");
}

/// Counts a request as ended. Must be the last action for a request, because the exchange may be destroyed after it.
void Exchange::ended(canele_request_t* request, const char* what) {
  canele_status_t status{};
  canele_request_status(request, &status);
  if (status.error != CANELE_OK) {
    callbacks_.failed(std::string(what) + " has failed: " + canele_error_string(status.error) + " (rank " +
                      std::to_string(status.source) + ")");
  }
  const std::lock_guard lock(mutex_);
  if (--in_flight_ == 0) all_ended_.notify_all();
}

void Exchange::release_holder(Arrival& arrival) {
  const std::lock_guard lock(mutex_);
  if (--arrival.holders == 0) spare_.push_back(std::move(arrival.memory));
}

void Exchange::release(int column) {
  for (const auto& arrival : columns_[static_cast<std::size_t>(column)]) release_holder(*arrival);
  int next = 0;
  {
    const std::lock_guard lock(mutex_);
    next = posted_columns_++;
  }
  if (next < layout_.tiles()) post_column(next);
}

void Exchange::finish() {
  std::unique_lock lock(mutex_);
  all_ended_.wait(lock, [this] { return in_flight_ == 0; });
}

}  // namespace canele::cholesky

// SPDX-License-Identifier: BSD-3-Clause
//
// The tasks and messages of one rank.
//
// If only its own thread makes progress (`test_ns`), this thread tests each thing it waits for in turn, as a runtime on
// top of MPI_Test does. The more it waits for, the later it notices an event.
#include "apps/sim/cholesky_rank.hpp"

#include <algorithm>
#include <cmath>

#include "apps/sim/tracked_request.hpp"

namespace canele::sim {
namespace {

using cholesky::Layout;
using cholesky::priority_of;
using cholesky::tag_of;
using cholesky::Task;
using cholesky::TileIndex;

constexpr std::uint64_t magic = 0x53454c4954534f4cu;

}  // namespace

CholeskyRank::CholeskyRank(const Job& job, int rank)
    : job_(job),
      rank_(rank),
      graph_(job.layout, rank),
      free_cores_(job.options.cores),
      values_(job.options.tile_bytes()),
      sink_(job.options.tile_bytes()) {}

void CholeskyRank::run(canele_engine_t* engine) {
  thread_ = job_.world.scheduler.current();
  canele_session_open(engine, "cholesky", 0, &session_);
  post_receives();
  job_.start.pass();
  std::vector<Task> ready;
  graph_.start(ready);
  start(ready);
  serve();
  read_counters(engine);
}

/// Runs until all its tasks have run and the library no longer uses any memory of this rank.
void CholeskyRank::serve() {
  Scheduler& scheduler = job_.world.scheduler;
  while (!is_done()) {
    send_finished();
    if (job_.options.test_ns > 0) {
      const double round = job_.options.test_ns * static_cast<double>(in_flight_ + 1);
      scheduler.pause_for(static_cast<std::uint64_t>(std::lround(round)));
      canele_progress(canele_session_engine(session_));
    } else if (to_send_.empty() && !is_done()) {
      scheduler.sleep(~std::uint64_t{0}, "waits for a task or a message");
    }
  }
}

/// Posts the receives of all tiles that this rank reads.
void CholeskyRank::post_receives() {
  const Layout& layout = job_.layout;
  for (int column = 0; column < layout.tiles(); ++column) {
    for (int row = column; row < layout.tiles(); ++row) {
      const TileIndex tile{row, column};
      const std::vector<int> readers = layout.readers(tile);
      if (!std::binary_search(readers.begin(), readers.end(), rank_)) continue;
      Transfer& transfer = receives_.emplace_back();
      transfer.tile = tile;
      transfer.pieces = {iovec{&transfer.head, sizeof transfer.head}, iovec{sink_.data(), sink_.size()}};
    }
  }
  std::vector<Transfer*> order;
  for (Transfer& transfer : receives_) order.push_back(&transfer);
  Dice dice = Dice(job_.world.options().seed).split(static_cast<std::uint64_t>(rank_));
  for (std::size_t i = order.size(); job_.options.shuffled && i > 1; --i) std::swap(order[i - 1], order[dice.under(i)]);
  for (Transfer* const transfer : order) {
    const canele_data_t data = describe(*transfer);
    watch(*transfer,
          canele_irecv_data(session_, layout.owner(transfer->tile), tag_of(transfer->tile), CANELE_TAG_EXACT, &data,
                            &transfer->request),
          CANELE_EVENT_RECEIVED | CANELE_EVENT_FINALIZED);
  }
}

canele_data_t CholeskyRank::describe(Transfer& transfer) {
  transfer.owner = this;
  transfer.vector = {transfer.pieces.data(), static_cast<int>(transfer.pieces.size())};
  return canele_data_iov(&transfer.vector);
}

void CholeskyRank::watch(Transfer& transfer, int code, unsigned events) {
  ++in_flight_;
  if (code == CANELE_OK) code = canele_request_on_event(&transfer.request, events, on_event, &transfer);
  if (code != CANELE_OK) job_.world.complain(state() + ": " + canele_error_string(code));
}

void CholeskyRank::send_finished() {
  while (!to_send_.empty()) {
    const TileIndex tile = to_send_.front();
    to_send_.pop_front();
    send(tile);
  }
}

CholeskyRank::Transfer& CholeskyRank::new_send(TileIndex tile) {
  Transfer& transfer = sends_.emplace_back();
  transfer.tile = tile;
  transfer.head = {tile.row, tile.column, magic};
  transfer.pieces = {iovec{&transfer.head, sizeof transfer.head}, iovec{values_.data(), values_.size()}};
  return transfer;
}

void CholeskyRank::send(TileIndex tile) {
  const std::vector<int> readers = job_.layout.readers(tile);
  if (!job_.way.sends && readers.size() > 1) {
    canele_multicast_options_t options{};
    options.struct_size = sizeof options;
    options.priority = priority_of(tile);
    options.shape = job_.way.shape;
    Transfer& transfer = new_send(tile);
    const canele_data_t data = describe(transfer);
    watch(transfer,
          canele_imulticast(session_, readers.data(), readers.size(), tag_of(tile), &data, &options, &transfer.request),
          CANELE_EVENT_FINALIZED);
    return;
  }
  canele_send_options_t options{};
  options.struct_size = sizeof options;
  options.priority = priority_of(tile);
  for (const int reader : readers) {
    Transfer& transfer = new_send(tile);
    const canele_data_t data = describe(transfer);
    watch(transfer, canele_isend_data(session_, reader, tag_of(tile), &data, &options, &transfer.request),
          CANELE_EVENT_FINALIZED);
  }
}

void CholeskyRank::on_event(canele_request_t*, unsigned events, void* argument) {
  Transfer& transfer = *static_cast<Transfer*>(argument);
  CholeskyRank& rank = *transfer.owner;
  if ((events & CANELE_EVENT_RECEIVED) != 0) rank.arrived(transfer);
  if ((events & CANELE_EVENT_FINALIZED) != 0) rank.ended(transfer);
}

void CholeskyRank::arrived(Transfer& transfer) {
  const auto [row, column] = transfer.tile;
  if (transfer.head.magic != magic || transfer.head.row != row || transfer.head.column != column) {
    job_.world.complain("rank " + std::to_string(rank_) + " got another tile than (" + std::to_string(row) + ", " +
                        std::to_string(column) + ")");
  }
  std::vector<Task> ready;
  graph_.available(transfer.tile, ready);
  start(ready);
}

void CholeskyRank::ended(Transfer& transfer) {
  canele_status_t status{};
  canele_request_status(&transfer.request, &status);
  if (status.error != CANELE_OK) job_.world.complain(state() + ": " + canele_error_string(status.error));
  --in_flight_;
  if (is_done()) job_.world.scheduler.wake(*thread_);
}

void CholeskyRank::start(const std::vector<Task>& ready) {
  for (const Task& task : ready) ready_.push(task);
  while (free_cores_ > 0 && !ready_.empty()) {
    const Task task = ready_.top();
    ready_.pop();
    --free_cores_;
    const std::uint64_t duration = duration_of(task);
    busy_ns_ += duration;
    job_.world.timeline.after(duration, [this, task] { finish(task); });
  }
}

void CholeskyRank::finish(const Task& task) {
  ++free_cores_;
  ended_at_ = job_.world.timeline.now();
  std::vector<Task> ready;
  graph_.finished(task, ready);
  if (task.finishes() && !job_.layout.readers(task.tile).empty()) to_send_.push_back(task.tile);
  start(ready);
  job_.world.scheduler.wake(*thread_);
}

/// Returns the duration of a task: the operations of its kernel, and how well a core performs them relative to dgemm.
std::uint64_t CholeskyRank::duration_of(const Task& task) const {
  const double n = job_.options.tile, cube = n * n * n;
  const bool diagonal = task.tile.row == task.tile.column;
  const double as_gemm =
      task.finishes() ? (diagonal ? cube / 3 / 0.5 : cube / 0.8) : (diagonal ? cube / 0.9 : 2 * cube);
  return static_cast<std::uint64_t>(as_gemm / job_.options.core_gflops);
}

void CholeskyRank::read_counters(canele_engine_t* engine) {
  bytes_sent_ = counter(engine, "bytes_sent");
  bytes_forwarded_ = counter(engine, "bytes_forwarded");
  packets_ = counter(engine, "packets_sent");
}

std::string CholeskyRank::state() const {
  return "rank " + std::to_string(rank_) + ": " + std::to_string(in_flight_) + " requests in flight, " +
         std::to_string(ready_.size()) + " tasks ready, " + std::to_string(job_.options.cores - free_cores_) +
         " running" + (graph_.done() ? ", all have run" : "");
}

}  // namespace canele::sim

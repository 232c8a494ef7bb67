// SPDX-License-Identifier: BSD-3-Clause
//
// Partitioned messages: how pieces are made, posted and counted. See partitioned.hpp.
#include "starpu_glue/mpi/messages/partitioned.hpp"

#include <canele/post.h>

#include <algorithm>
#include <cstddef>
#include <new>

#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/state.hpp"

namespace canele::mpi {
namespace {

constexpr int kBitsOfPiece = 13, kBitsOfChannel = 20;
static_assert(kMostPieces < std::size_t{1} << kBitsOfPiece);

canele_post_options_t call_back(canele_callback_fn callback, void* argument) {
  canele_post_options_t options{};
  options.struct_size = sizeof options;
  options.done.kind = CANELE_COMPLETE_CALLBACK;
  options.done.callback = callback;
  options.done.user = argument;
  return options;
}

int error_of(const canele_request_t* engine) {
  canele_status_t outcome{};
  canele_request_status(engine, &outcome);
  return outcome.error;
}

}  // namespace

PartitionedWork::PartitionedWork(const Endpoint& peer, const Buffer& data, int partitions)
    : peer_(peer),
      partitions_(partitions),
      type_(reference_to(*data.type)),
      data_(data.memory, static_cast<std::size_t>(data.count), *data.type) {}

int PartitionedWork::join(bool receives) {
  if (peer_.is_proc_null()) return MPI_SUCCESS;
  std::uint64_t channel = 0;
  const int tag = static_cast<int>(peer_.tag);
  const int code = peer_.comm->next_partitioned(peer_.world_rank, tag, receives, &session_, &channel);
  channel &= (std::uint64_t{1} << kBitsOfChannel) - 1;
  tags_ = ((peer_.tag << kBitsOfChannel) | channel) << kBitsOfPiece;
  return code;
}

int PartitionedWork::start(Request& request) {
  if (peer_.is_proc_null()) return MPI_SUCCESS;
  request_ = &request;
  is_whole_ = is_outlined_ && outline_.pieces == 1;
  if (is_whole_) return start_whole();
  if (const int code = hold(request); code != MPI_SUCCESS) return code;
  error_.store(CANELE_OK, std::memory_order_relaxed);
  pending_.store(1, std::memory_order_relaxed);
  post();
  ended(CANELE_OK);
  return MPI_SUCCESS;
}

int PartitionedWork::cancel(bool) { return fail(MPI_ERR_REQUEST, "a partitioned message cannot be cancelled"); }

void PartitionedWork::make_pieces() {
  pieces_ = std::make_unique<Piece[]>(outline_.pieces);
  for (std::size_t i = 0; i < outline_.pieces; ++i) {
    Piece& piece = pieces_[i];
    piece.work = this;
    const std::size_t begin = std::min(outline_.begin(i), data_.length);
    piece.data = {&data_, begin, std::min(outline_.end(i), data_.length) - begin};
  }
}

void PartitionedWork::ended(int error) {
  int none = CANELE_OK;
  if (error != CANELE_OK) error_.compare_exchange_strong(none, error, std::memory_order_relaxed);
  // acq_rel: pairs with itself, so that the one that releases the request follows all others. That ends this use, and
  // the program may free the request at once.
  if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) release(*request_, first_error());
}

void PartitionedWork::on_end(canele_request_t* engine, unsigned, void* argument) {
  auto& piece = *static_cast<Piece*>(argument);
  const int error = error_of(engine);
  piece.has_ended.store(true, std::memory_order_release);  // pairs with the acquire load in has_arrived
  piece.work->ended(error);
}

int PartitionedWork::check_partition(int partition) const {
  if (partition >= 0 && partition < partitions_) return MPI_SUCCESS;
  return fail(MPI_ERR_ARG, "partition is %d; the request has %d partitions, which count from 0", partition,
              partitions_);
}

// ---- sends

PartitionedSend::PartitionedSend(const Endpoint& to, const Buffer& data, int partitions)
    : PartitionedWork(to, data, partitions),
      is_ready_(std::make_unique<std::atomic<bool>[]>(static_cast<std::size_t>(partitions))) {
  const auto all = static_cast<std::size_t>(partitions);
  if (all == 0) return;
  const std::size_t each = data_.length / all;
  in_piece_ = each == 0 ? all : std::clamp<std::size_t>((kPieceLength + each - 1) / each, 1, all);
  in_piece_ = std::max(in_piece_, (all + kMostPieces - 1) / kMostPieces);
  outline_ = {data_.length, in_piece_ * each, (all + in_piece_ - 1) / in_piece_};
  make_pieces();
}

/// Notes that no partition is ready.
void PartitionedSend::expect_partitions() {
  const auto all = static_cast<std::size_t>(partitions_);
  for (std::size_t i = 0; i < all; ++i) is_ready_[i].store(false, std::memory_order_relaxed);
  for (std::size_t i = 0; i < outline_.pieces; ++i) {
    const std::size_t partitions = std::min(in_piece_, all - i * in_piece_);
    pieces_[i].missing.store(static_cast<int>(partitions), std::memory_order_relaxed);
  }
}

int PartitionedSend::start_whole() {
  expect_partitions();
  return hold(*request_);
}

void PartitionedSend::post() {
  expect_partitions();
  expect(outline_.pieces + (is_outlined_ ? 0 : 1));
  if (is_outlined_) return;
  is_outlined_ = true;
  const canele_data_t outline{sizeof outline_, &outline_, nullptr, nullptr};
  const canele_post_options_t options = call_back(on_outline, this);
  const int error = canele_post_send(session_, peer_.world_rank, tag_of(0), &outline, &options, &outline_request_);
  if (error != CANELE_OK) ended(error);
}

void PartitionedSend::on_outline(canele_request_t* engine, unsigned, void* work) {
  static_cast<PartitionedSend*>(work)->ended(error_of(engine));
}

int PartitionedSend::describe(const canele_status_t& outcome, MPI_Status* status) {
  if (peer_.is_proc_null()) {
    fill_proc_null_status(status);
    return MPI_SUCCESS;
  }
  fill_empty_status(status);
  return from_status(outcome.error, peer_.world_rank);
}

int PartitionedSend::mark_ready(int first, int last) {
  int code = check_partition(first);
  if (code == MPI_SUCCESS) code = check_partition(last);
  if (code == MPI_SUCCESS && first > last)
    code = fail(MPI_ERR_ARG, "the first partition is %d, the last one %d", first, last);
  if (peer_.is_proc_null()) return code;
  for (int i = first; i <= last && code == MPI_SUCCESS; ++i) {
    std::atomic<bool>& ready = is_ready_[static_cast<std::size_t>(i)];
    if (ready.load(std::memory_order_relaxed)) code = fail(MPI_ERR_ARG, "partition %d is ready already", i);
    ready.store(true, std::memory_order_relaxed);
  }
  return code;
}

int PartitionedSend::make_ready(int first, int last) {
  if (const int code = mark_ready(first, last); code != MPI_SUCCESS || peer_.is_proc_null()) return code;
  const auto end = static_cast<std::size_t>(last) + 1;
  for (auto i = static_cast<std::size_t>(first); i < end;) {
    const std::size_t index = i / in_piece_, next = std::min(end, (index + 1) * in_piece_);
    const int ready = static_cast<int>(next - i);
    // acq_rel: the thread that posts the piece sees what others have written to its partitions.
    if (pieces_[index].missing.fetch_sub(ready, std::memory_order_acq_rel) == ready) send(index);
    i = next;
  }
  return MPI_SUCCESS;
}

void PartitionedSend::send(std::size_t index) {
  Piece& piece = pieces_[index];
  const canele_data_t data = piece.data.describe();
  if (is_whole_) return send_whole(data);
  const canele_post_options_t options = call_back(on_end, &piece);
  const int error = canele_post_send(session_, peer_.world_rank, tag_of(index + 1), &data, &options, &piece.engine);
  if (error != CANELE_OK) ended(error);
}

void PartitionedSend::send_whole(const canele_data_t& data) {
  canele_request_t* const engine = &request_->engine;
  const int error = data.segments == nullptr
                        ? canele_isend(session_, peer_.world_rank, tag_of(1), data.base, data.length, engine)
                        : canele_isend_data(session_, peer_.world_rank, tag_of(1), &data, nullptr, engine);
  if (error != CANELE_OK) canele_request_complete(engine, error);
}

// ---- receives

int PartitionedReceive::start_whole() {
  const canele_data_t data = pieces_[0].data.describe();
  return from_engine(
      canele_irecv_data(session_, peer_.world_rank, tag_of(1), CANELE_TAG_EXACT, &data, &request_->engine));
}

void PartitionedReceive::post() {
  if (is_outlined_) return post_pieces();
  expect(1);
  const canele_data_t outline{sizeof outline_, &outline_, nullptr, nullptr};
  const canele_post_options_t options = call_back(on_outline, this);
  const int error = canele_post_receive(session_, peer_.world_rank, tag_of(0), CANELE_TAG_EXACT, &outline, &options,
                                        &outline_request_);
  if (error != CANELE_OK) ended(error);
}

/// Makes the pieces when the sender has told how it cuts the data.
void PartitionedReceive::on_outline(canele_request_t* engine, unsigned, void* work) {
  auto& self = *static_cast<PartitionedReceive*>(work);
  int error = error_of(engine);
  if (error == CANELE_OK && !self.outline_.is_valid()) error = CANELE_EPROTOCOL;
  if (error == CANELE_OK) {
    try {
      self.make_pieces();
      self.is_outlined_ = true;
      self.post_pieces();
    } catch (const std::bad_alloc&) {
      error = CANELE_ENOMEM;
    }
  }
  self.ended(error);
}

void PartitionedReceive::post_pieces() {
  for (std::size_t i = 0; i < outline_.pieces; ++i) pieces_[i].has_ended.store(false, std::memory_order_relaxed);
  is_posted_.store(true, std::memory_order_release);  // pairs with the acquire load in has_arrived
  expect(outline_.pieces);
  for (std::size_t i = 0; i < outline_.pieces; ++i) {
    Piece& piece = pieces_[i];
    const canele_data_t data = piece.data.describe();
    const canele_post_options_t options = call_back(on_end, &piece);
    const int error = canele_post_receive(session_, peer_.world_rank, tag_of(i + 1), CANELE_TAG_EXACT, &data, &options,
                                          &piece.engine);
    if (error != CANELE_OK) ended(error);
  }
}

int PartitionedReceive::describe(const canele_status_t& of_engine, MPI_Status* status) {
  if (peer_.is_proc_null()) {
    fill_proc_null_status(status);
    return MPI_SUCCESS;
  }
  canele_status_t outcome{};
  outcome.error = of_engine.error;
  outcome.source = peer_.world_rank;
  outcome.tag = peer_.tag;
  outcome.length = outline_.length;
  fill_status(*peer_.comm, outcome, status);
  limit_size(outcome, data_.length, status);
  return from_status(outcome.error, outcome.source);
}

int PartitionedReceive::has_arrived(int partition, bool* arrived) {
  if (const int code = check_partition(partition); code != MPI_SUCCESS) return code;
  *arrived = true;
  if (peer_.is_proc_null()) return MPI_SUCCESS;
  if (is_whole_) {
    canele_request_t* const one = &request_->engine;  // not is_done(): another thread may change the request's flags
    *arrived = canele_find_done(1, &one, 0) == 0;
    return MPI_SUCCESS;
  }
  *arrived = is_posted_.load(std::memory_order_acquire) && have_ended(partition);
  return *arrived ? MPI_SUCCESS : from_status(first_error(), peer_.world_rank);
}

/// Tells whether all pieces with data of the partition have ended.
bool PartitionedReceive::have_ended(int partition) const {
  if (outline_.pieces == 0) return true;
  const std::size_t each = data_.length / static_cast<std::size_t>(partitions_);
  const std::size_t begin = static_cast<std::size_t>(partition) * each, end = std::max(begin + each, begin + 1);
  const auto index_of = [this](std::size_t place) {
    return outline_.piece == 0 ? 0 : std::min(place / outline_.piece, outline_.pieces - 1);
  };
  for (std::size_t i = index_of(begin); i <= index_of(end - 1); ++i) {
    if (!pieces_[i].has_ended.load(std::memory_order_acquire)) return false;
  }
  return true;
}

}  // namespace canele::mpi

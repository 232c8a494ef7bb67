// SPDX-License-Identifier: BSD-3-Clause
//
// Partitioned messages (MPI-4.1, chapter 5): a persistent message that leaves in parts, as the program fills them.
//
// The sender cuts the data into pieces of one length. A piece is as many of its partitions, one after the other, as
// make kPieceLength bytes, at least one. It is a message of the engine, and leaves when its last partition is ready.
// The thread that makes that partition ready posts it:
//
//     MPI_Pready   partitions of the sender     | 0 | 1 | 2 | 3 | 4 | 5 |
//                  pieces                       |   0   |   1   |   2   |      three messages, in any order
//     MPI_Parrived partitions of the receiver   |    0    |     1     |        0 has arrived with the pieces 0 and 1
//
// Only the first start tells the receiver how the data is cut: the sender sends an Outline as a message of its own. The
// receiver posts its pieces when that arrives and, at each later start, at once. So partitions of both sides need not
// agree, and a partition never waits for an answer.
//
// Matching: the k-th MPI_Psend_init to a rank with a tag meets the k-th MPI_Precv_init there. Both sides count, so
// nothing is sent for it. The messages are in a session of the communicator that only they use:
//
//     tag of the engine   | tag of the program: 31 bits | k: 20 bits | 0: the outline, else piece + 1: 13 bits |
//
// The engine keeps messages with one tag in order, and so a piece meets the receive of its own start.
//
// A message of one piece has the request of its piece, like a message that is not partitioned. Otherwise, and at the
// first start, each piece has a request of its own. The program's request is then held, and the last piece to end
// releases it.
//
// Threading: MPI_Pready and MPI_Parrived may be called by several threads at once. Pieces end on any thread.
// Rejected: to put data into the receiver's memory (one-sided). It would need the receiver's answer at each start.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "starpu_glue/mpi/messages/request.hpp"

namespace canele::mpi {

/// Partitions that are shorter leave together: a shorter piece costs more than its early start gains.
constexpr std::size_t kPieceLength = 65536;
/// A message has no more pieces than this: its partitions leave together if there are more.
constexpr std::size_t kMostPieces = 4096;

/// How the sender has cut the data. A message between processes of one job.
struct Outline {
  std::uint64_t length;  ///< bytes in all
  std::uint64_t piece;   ///< bytes of a piece; the last one may be shorter
  std::uint64_t pieces;

  /// Checks one that another process has sent: the pieces are the data. Divides, because a product might not fit.
  bool is_valid() const {
    if (pieces == 0 || pieces > kMostPieces) return pieces == 0 && length == 0;
    if (pieces > 1 && piece > length / (pieces - 1)) return false;
    return piece <= length && length - begin(pieces - 1) <= piece;
  }
  std::size_t begin(std::size_t index) const { return index * piece; }
  std::size_t end(std::size_t index) const { return index + 1 < pieces ? begin(index + 1) : length; }
};

/// What both sides have.
class PartitionedWork : public Work {
 public:
  /// `data` is the whole message. Throws std::bad_alloc.
  PartitionedWork(const Endpoint& peer, const Buffer& data, int partitions);

  int start(Request& request) override;
  int cancel(bool is_done) override;
  /// Opens the session and counts the message among those that it might meet. Returns an MPI code.
  int join(bool receives);

 protected:
  /// A message of the engine.
  struct Piece {
    canele_request_t engine{};
    PartitionedWork* work = nullptr;
    PayloadSlice data;
    std::atomic<bool> has_ended{false};
    std::atomic<int> missing{0};  ///< partitions that are not ready
  };

  /// Posts what a start posts, after which messages may end.
  virtual void post() = 0;
  /// Starts a message of one piece. Returns an MPI code.
  virtual int start_whole() = 0;
  /// Makes the pieces for the outline. Throws std::bad_alloc.
  void make_pieces();
  /// Counts a message that will end. Called before the message that keeps the count up has ended.
  void expect(std::size_t messages) { pending_.fetch_add(messages, std::memory_order_relaxed); }
  /// Called when a message has ended, or could not be posted (`error`).
  void ended(int error);
  /// The completion of a piece.
  static void on_end(canele_request_t* engine, unsigned events, void* piece);
  std::uint64_t tag_of(std::size_t message) const { return tags_ | message; }
  int check_partition(int partition) const;
  int first_error() const { return error_.load(std::memory_order_relaxed); }

  const Endpoint peer_;
  const int partitions_;
  const TypeReference type_;
  const Payload data_;
  canele_session_t* session_ = nullptr;
  Outline outline_{};
  bool is_outlined_ = false;  ///< the other side knows the outline, or this side does
  bool is_whole_ = false;     ///< this use is one message, with the program's request
  Request* request_ = nullptr;
  std::unique_ptr<Piece[]> pieces_;
  canele_request_t outline_request_{};

 private:
  std::uint64_t tags_ = 0;
  std::atomic<std::size_t> pending_{0};  ///< messages that have not ended, and one while they are posted
  std::atomic<int> error_{CANELE_OK};    ///< the first error of a start
};

class PartitionedSend final : public PartitionedWork {
 public:
  PartitionedSend(const Endpoint& to, const Buffer& data, int partitions);

  int describe(const canele_status_t& outcome, MPI_Status* status) override;
  int make_ready(int first, int last) override;

 private:
  void post() override;
  int start_whole() override;
  void expect_partitions();
  int mark_ready(int first, int last);
  void send(std::size_t index);
  void send_whole(const canele_data_t& data);
  static void on_outline(canele_request_t* engine, unsigned events, void* work);

  std::size_t in_piece_ = 1;  ///< partitions of a piece
  std::unique_ptr<std::atomic<bool>[]> is_ready_;
};

class PartitionedReceive final : public PartitionedWork {
 public:
  using PartitionedWork::PartitionedWork;

  int describe(const canele_status_t& outcome, MPI_Status* status) override;
  int has_arrived(int partition, bool* arrived) override;

 private:
  void post() override;
  int start_whole() override;
  void post_pieces();
  bool have_ended(int partition) const;
  static void on_outline(canele_request_t* engine, unsigned events, void* work);

  std::atomic<bool> is_posted_{false};  ///< the pieces of this start exist
};

}  // namespace canele::mpi

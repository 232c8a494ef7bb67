// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives over point-to-point messages. The tag is the number of the call, so neighbouring calls cannot mix.
//
// Who: api_collective.cpp, communicator.cpp. Threads: one call at a time per communicator.
// Surprise: nothing synchronises more than it must: a broadcast's root may leave before a leaf has entered.
#include "starpu_glue/mpi/collectives.hpp"

#include <utility>
#include <vector>

#include "starpu_glue/mpi/error.hpp"

namespace canele::mpi {
namespace {

/// Number of messages that one rank has in flight in a tree over `size` ranks.
std::size_t tree_degree(int size) {
  std::size_t degree = 1;
  while ((std::size_t{1} << degree) < static_cast<std::size_t>(size)) ++degree;
  return degree;
}

Buffer all_parts(const Buffer& part, int size) { return {part.memory, part.count * size, part.type}; }

int send_to(Communicator& comm, std::uint64_t tag, int rank, const Buffer& buffer) {
  Batch batch(comm.collectives(), tag, 1);
  if (const int code = batch.send(comm.world_rank(rank), buffer); code != MPI_SUCCESS) return code;
  return batch.finish();
}

int receive_from(Communicator& comm, std::uint64_t tag, int rank, const Buffer& buffer) {
  Batch batch(comm.collectives(), tag, 1);
  if (const int code = batch.receive(comm.world_rank(rank), buffer); code != MPI_SUCCESS) return code;
  return batch.finish();
}

/// Combines up a binomial tree to rank 0. Rank r holds the ranks [r, r + mask) when it has taken part in `mask`:
///
///   0   1   2   3   4     mask 1: 1 -> 0, 3 -> 2
///   0 <-'   2 <-'   4     mask 2: 2 -> 0
///   0 <-----'       4     mask 4: 4 -> 0
///
/// so the left operand is always the one of the lower ranks.
int reduce_to_zero(Communicator& comm, std::uint64_t tag, Scratch& mine, Scratch& other, const Operator& op) {
  for (int mask = 1; mask < comm.size(); mask <<= 1) {
    if ((comm.rank() & mask) != 0) return send_to(comm, tag, comm.rank() - mask, mine.buffer());
    const int partner = comm.rank() + mask;
    if (partner >= comm.size()) continue;
    const int code = receive_from(comm, tag, partner, other.buffer());
    if (code != MPI_SUCCESS) return code;
    const Buffer right = other.buffer();
    op.apply(mine.buffer().memory, right.memory, right.count, right.type->handle);
    std::swap(mine, other);
  }
  return MPI_SUCCESS;
}

}  // namespace

int barrier(Communicator& comm) {
  const std::uint64_t tag = comm.next_collective();
  const int size = comm.size();
  for (int distance = 1; distance < size; distance <<= 1) {  // dissemination: after round k, 2^k ranks are known
    Batch batch(comm.collectives(), tag, 2);
    int code = batch.receive(comm.world_rank((comm.rank() - distance + size) % size), bytes_buffer(nullptr, 0));
    if (code == MPI_SUCCESS) {
      code = batch.send(comm.world_rank((comm.rank() + distance) % size), bytes_buffer(nullptr, 0));
    }
    if (code == MPI_SUCCESS) code = batch.finish();
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

int broadcast(Communicator& comm, const Buffer& buffer, int root) {
  const std::uint64_t tag = comm.next_collective();
  const int size = comm.size();
  const int relative = (comm.rank() - root + size) % size;
  const auto actual = [&](int rank) { return (rank + root) % size; };
  int mask = 1;
  while (mask < size && (relative & mask) == 0) mask <<= 1;
  if (relative != 0) {
    const int code = receive_from(comm, tag, actual(relative - mask), buffer);
    if (code != MPI_SUCCESS) return code;
  }
  Batch batch(comm.collectives(), tag, tree_degree(size));
  for (mask >>= 1; mask > 0; mask >>= 1) {
    if (relative + mask >= size) continue;
    const int code = batch.send(comm.world_rank(actual(relative + mask)), buffer);
    if (code != MPI_SUCCESS) return code;
  }
  return batch.finish();
}

int reduce(Communicator& comm, const Buffer& send, const Buffer& receive, const Operator& op, int root) {
  const std::uint64_t tag = comm.next_collective();
  const Buffer own = in_place(send) ? receive : send;
  Scratch mine(own.count, *own.type);
  Scratch other(own.count, *own.type);
  int code = copy_local(own, mine.buffer());
  if (code == MPI_SUCCESS) code = reduce_to_zero(comm, tag, mine, other, op);
  if (code != MPI_SUCCESS) return code;
  if (comm.rank() == 0) return root == 0 ? copy_local(mine.buffer(), receive) : send_to(comm, tag, root, mine.buffer());
  return comm.rank() == root ? receive_from(comm, tag, 0, receive) : MPI_SUCCESS;
}

int allreduce(Communicator& comm, const Buffer& send, const Buffer& receive, const Operator& op) {
  // Every rank reads its own part before it receives the result, so MPI_IN_PLACE needs no care on other ranks than 0.
  const Buffer own = in_place(send) ? receive : send;
  if (const int code = reduce(comm, own, receive, op, 0); code != MPI_SUCCESS) return code;
  return broadcast(comm, receive, 0);
}

int gather(Communicator& comm, const Buffer& send, const Buffer& receive, int root) {
  const std::uint64_t tag = comm.next_collective();
  if (comm.rank() != root) return send_to(comm, tag, root, send);
  Batch batch(comm.collectives(), tag, static_cast<std::size_t>(comm.size()));
  for (int rank = 0; rank < comm.size(); ++rank) {
    if (rank == root) continue;
    const int code = batch.receive(comm.world_rank(rank), receive.part(rank));
    if (code != MPI_SUCCESS) return code;
  }
  const int copied = in_place(send) ? MPI_SUCCESS : copy_local(send, receive.part(root));
  const int code = batch.finish();
  return copied != MPI_SUCCESS ? copied : code;
}

int scatter(Communicator& comm, const Buffer& send, const Buffer& receive, int root) {
  const std::uint64_t tag = comm.next_collective();
  if (comm.rank() != root) return receive_from(comm, tag, root, receive);
  Batch batch(comm.collectives(), tag, static_cast<std::size_t>(comm.size()));
  for (int rank = 0; rank < comm.size(); ++rank) {
    if (rank == root) continue;
    const int code = batch.send(comm.world_rank(rank), send.part(rank));
    if (code != MPI_SUCCESS) return code;
  }
  const int copied = in_place(receive) ? MPI_SUCCESS : copy_local(send.part(root), receive);
  const int code = batch.finish();
  return copied != MPI_SUCCESS ? copied : code;
}

int allgather(Communicator& comm, const Buffer& send, const Buffer& receive) {
  Buffer own = send;
  if (in_place(send) && comm.rank() != 0) own = receive.part(comm.rank());
  if (const int code = gather(comm, own, receive, 0); code != MPI_SUCCESS) return code;
  return broadcast(comm, all_parts(receive, comm.size()), 0);
}

int alltoall(Communicator& comm, const Buffer& send, const Buffer& receive) {
  const std::uint64_t tag = comm.next_collective();
  const int size = comm.size();
  const std::size_t part = receive.size();
  std::vector<char> saved;  // MPI_IN_PLACE: what is sent, before receives overwrite it
  if (in_place(send)) {
    saved.resize(part * static_cast<std::size_t>(size));
    pack(Payload(receive.memory, static_cast<std::size_t>(receive.count * size), *receive.type), 0, saved.size(),
         saved.data());
  }
  const auto outgoing = [&](int rank) {
    if (!in_place(send)) return send.part(rank);
    return bytes_buffer(saved.data() + part * static_cast<std::size_t>(rank), part);
  };
  Batch batch(comm.collectives(), tag, 2 * static_cast<std::size_t>(size));
  for (int step = 1; step < size; ++step) {
    const int rank = (comm.rank() - step + size) % size;
    if (const int code = batch.receive(comm.world_rank(rank), receive.part(rank)); code != MPI_SUCCESS) return code;
  }
  for (int step = 1; step < size; ++step) {
    const int rank = (comm.rank() + step) % size;
    if (const int code = batch.send(comm.world_rank(rank), outgoing(rank)); code != MPI_SUCCESS) return code;
  }
  const int copied = copy_local(outgoing(comm.rank()), receive.part(comm.rank()));
  const int code = batch.finish();
  return copied != MPI_SUCCESS ? copied : code;
}

}  // namespace canele::mpi

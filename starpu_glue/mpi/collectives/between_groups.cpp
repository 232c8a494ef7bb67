// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives on intercommunicators: argument checks, exchanges of blocks, and which function is which.
#include "starpu_glue/mpi/collectives/between_groups.hpp"

#include <span>
#include <vector>

#include "starpu_glue/mpi/collectives/plan.hpp"
#include "starpu_glue/mpi/collectives/reduction_between_groups.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/state.hpp"

namespace canele::mpi {
namespace {

/// The blocks of one direction: of the ranks `first` to `first + count - 1` of the remote group. If there is only one
/// block, it is the one of all of them.
struct Direction {
  int first = 0, count = 0;
  std::vector<Buffer> blocks;
};

int check_place(const void* memory) {
  if (memory != MPI_IN_PLACE) return MPI_SUCCESS;
  return fail(MPI_ERR_BUFFER, "MPI_IN_PLACE is not allowed on an intercommunicator");
}

/// Describes one block for each of `ranks` ranks. Returns an MPI code.
template <class Data>
int make_blocks(const Data& asked, int ranks, std::vector<Buffer>* made) {
  Blocks blocks;
  int code = check_place(asked.memory);
  if (code == MPI_SUCCESS) code = resolve(asked, ranks, &blocks);
  for (int rank = 0; rank < ranks && code == MPI_SUCCESS; ++rank) made->push_back(blocks.block(rank));
  return code;
}

/// Takes the block of a rank that a call describes.
int with_rank(const CallBuffer& asked, int rank, Direction* side) {
  side->first = rank;
  side->count = 1;
  return make_blocks(asked, 1, &side->blocks);
}
/// Takes one block for all ranks of the remote group.
int with_all(const Communicator& comm, const CallBuffer& asked, Direction* side) {
  side->count = comm.size();
  return make_blocks(asked, 1, &side->blocks);
}
/// Takes a block for each of them.
template <class Data>
int with_each(const Communicator& comm, const Data& asked, Direction* side) {
  side->count = comm.size();
  return make_blocks(asked, side->count, &side->blocks);
}

std::vector<canele_edge_t> edges_of(const Communicator& comm, const Direction& side, const EngineBlocks& engine) {
  std::vector<canele_edge_t> edges;
  for (int i = 0; i < side.count; ++i) {
    const std::size_t block = side.blocks.size() == 1 ? 0 : static_cast<std::size_t>(i);
    edges.push_back({comm.inter()->remote_begin + side.first + i, engine.offsets[block], engine.lengths[block]});
  }
  return edges;
}

/// Starts the exchange, if `code`, of its preparation, is no error.
template <class How>
int exchange_blocks(int code, const How& start, const Direction& send, const Direction& receive) {
  EngineBlocks input, output;
  if (code == MPI_SUCCESS) code = start.staging->input(std::span<const Buffer>(send.blocks), &input);
  if (code == MPI_SUCCESS) code = start.staging->output(std::span<const Buffer>(receive.blocks), &output);
  if (code != MPI_SUCCESS) return code;
  return start.begin([from = input.memory, to = output.memory, sends = edges_of(start.comm, send, input),
                      receives = edges_of(start.comm, receive, output)](const Execution& at) {
    return canele_ineighbor_exchange(at.group, from, sends.data(), sends.size(), to, receives.data(), receives.size(),
                                     at.options, at.request);
  });
}

template <class How>
int bcast_between(const How& start, CallBuffer data, int root) {
  Direction send, receive;
  int code = check_root_between(start.comm, root);
  if (code == MPI_SUCCESS && root == MPI_ROOT) code = with_all(start.comm, data, &send);
  if (code == MPI_SUCCESS && root >= 0) code = with_rank(data, root, &receive);
  return exchange_blocks(code, start, send, receive);
}

template <class How, class Data>
int gather_between(const How& start, CallBuffer own, Data all, int root) {
  Direction send, receive;
  int code = check_root_between(start.comm, root);
  if (code == MPI_SUCCESS && root == MPI_ROOT) code = with_each(start.comm, all, &receive);
  if (code == MPI_SUCCESS && root >= 0) code = with_rank(own, root, &send);
  return exchange_blocks(code, start, send, receive);
}

template <class How, class Data>
int scatter_between(const How& start, Data all, CallBuffer own, int root) {
  Direction send, receive;
  int code = check_root_between(start.comm, root);
  if (code == MPI_SUCCESS && root == MPI_ROOT) code = with_each(start.comm, all, &send);
  if (code == MPI_SUCCESS && root >= 0) code = with_rank(own, root, &receive);
  return exchange_blocks(code, start, send, receive);
}

template <class How, class Data>
int allgather_between(const How& start, CallBuffer own, Data all) {
  Direction send, receive;
  int code = with_all(start.comm, own, &send);
  if (code == MPI_SUCCESS) code = with_each(start.comm, all, &receive);
  return exchange_blocks(code, start, send, receive);
}

template <class How, class Data>
int alltoall_between(const How& start, Data send, Data receive) {
  Direction out, in;
  int code = with_each(start.comm, send, &out);
  if (code == MPI_SUCCESS) code = with_each(start.comm, receive, &in);
  return exchange_blocks(code, start, out, in);
}

template <class How>
int reject_scan(const How&, const void*, void*, MPI_Count, MPI_Datatype, MPI_Op) {
  return fail(MPI_ERR_COMM, "the communicator is an intercommunicator; scans are for intracommunicators only");
}

struct Forms {
  AnyFunction within, between;
};

/// The compiler checks that both have the same arguments.
template <class Called>
Forms forms_of(Called* within, Called* between) {
  return {erase(within), erase(between)};
}

}  // namespace

int check_root_between(const Communicator& comm, int root) {
  if (root == MPI_ROOT || root == MPI_PROC_NULL || comm.has_rank(root)) return MPI_SUCCESS;
  return fail(MPI_ERR_ROOT, "root is %d; expected: MPI_ROOT, MPI_PROC_NULL, or a rank of the remote group, 0 to %d",
              root, comm.size() - 1);
}

template <class How>
AnyFunction find_between_groups(AnyFunction start) {
  using Placed = const CallBufferV&;
  static const Forms all[] = {
      forms_of(start_barrier<How>, start_barrier<How>),  // the engine's group has the ranks of both groups
      forms_of(start_bcast<How>, bcast_between<How>),
      forms_of(start_gather<How>, gather_between<How, CallBuffer>),
      forms_of(start_gatherv<How>, gather_between<How, Placed>),
      forms_of(start_scatter<How>, scatter_between<How, CallBuffer>),
      forms_of(start_scatterv<How>, scatter_between<How, Placed>),
      forms_of(start_allgather<How>, allgather_between<How, CallBuffer>),
      forms_of(start_allgatherv<How>, allgather_between<How, Placed>),
      forms_of(start_alltoall<How>, alltoall_between<How, CallBuffer>),
      forms_of(start_alltoallv<How>, alltoall_between<How, Placed>),
      forms_of(start_alltoallw<How>, alltoall_between<How, Placed>),
      forms_of(start_reduce<How>, reduce_between<How>),
      forms_of(start_allreduce<How>, allreduce_between<How>),
      forms_of(start_reduce_scatter<How>, reduce_scatter_between<How>),
      forms_of(start_reduce_scatter_block<How>, reduce_scatter_block_between<How>),
      forms_of(start_scan<How>, reject_scan<How>),
      forms_of(start_exscan<How>, reject_scan<How>),
  };
  for (const Forms& forms : all) {
    if (forms.within == start) return forms.between;
  }
  fatal("a collective has no form for intercommunicators");
}

template AnyFunction find_between_groups<Start>(AnyFunction);
template AnyFunction find_between_groups<Plan>(AnyFunction);

}  // namespace canele::mpi

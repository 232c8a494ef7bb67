// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives on intercommunicators: argument checks, exchanges of blocks, and which function is which.
#include "starpu_glue/mpi/collectives/between_groups.hpp"

#include <span>
#include <vector>

#include "starpu_glue/mpi/collectives/reduction_between_groups.hpp"
#include "starpu_glue/mpi/core/state.hpp"

namespace canele::mpi {
namespace {

/// The blocks of one direction: of the ranks `first` to `first + count - 1` of the remote group. If there is only one
/// block, it is the one of all of them.
struct Side {
  int first = 0, count = 0;
  std::vector<Buffer> blocks;
};

int check_place(const void* memory) {
  if (memory != MPI_IN_PLACE) return MPI_SUCCESS;
  return fail(MPI_ERR_BUFFER, "MPI_IN_PLACE is not allowed on an intercommunicator");
}

/// Describes one block for each of `ranks` ranks. Returns an MPI code.
int make_blocks(const CallBuffer& asked, int ranks, std::vector<Buffer>* blocks) {
  Buffer first;
  int code = check_place(asked.memory);
  if (code == MPI_SUCCESS) code = get_buffer(asked.memory, asked.count, asked.type, &first);
  for (int rank = 0; rank < ranks && code == MPI_SUCCESS; ++rank) blocks->push_back(first.block(rank));
  return code;
}

int make_blocks(const CallBufferV& asked, int ranks, std::vector<Buffer>* blocks) {
  int code = check_place(asked.memory);
  if (code == MPI_SUCCESS && (asked.counts == nullptr || asked.places == nullptr))
    code = fail(MPI_ERR_ARG, "the array of %s is NULL", asked.counts == nullptr ? "counts" : "displacements");
  if (code == MPI_SUCCESS && asked.types == nullptr && asked.type == MPI_DATATYPE_NULL)
    code = fail(MPI_ERR_ARG, "the datatype is MPI_DATATYPE_NULL, or the array of datatypes is NULL");
  for (int rank = 0; rank < ranks && code == MPI_SUCCESS; ++rank) {
    Buffer block;
    const MPI_Datatype type = asked.types == nullptr ? asked.type : asked.types[rank];
    code = get_buffer(asked.memory, asked.counts[rank], type, &block);
    if (code != MPI_SUCCESS) return code;
    const std::ptrdiff_t step = asked.types == nullptr ? block.type->extent() : 1;
    block.memory = static_cast<char*>(block.memory) + asked.places[rank] * step;
    blocks->push_back(block);
  }
  return code;
}

/// Takes the block of a rank that a call describes.
int with_rank(const CallBuffer& asked, int rank, Side* side) {
  side->first = rank;
  side->count = 1;
  return make_blocks(asked, 1, &side->blocks);
}
/// Takes one block for all ranks of the remote group.
int with_all(const Start& start, const CallBuffer& asked, Side* side) {
  side->count = start.comm.size();
  return make_blocks(asked, 1, &side->blocks);
}
/// Takes a block for each of them.
template <class Data>
int with_each(const Start& start, const Data& asked, Side* side) {
  side->count = start.comm.size();
  return make_blocks(asked, side->count, &side->blocks);
}

std::vector<canele_edge_t> edges_of(const Start& start, const Side& side, const EngineBlocks& engine) {
  std::vector<canele_edge_t> edges;
  for (int i = 0; i < side.count; ++i) {
    const std::size_t block = side.blocks.size() == 1 ? 0 : static_cast<std::size_t>(i);
    edges.push_back({start.comm.inter()->remote_begin + side.first + i, engine.offsets[block], engine.lengths[block]});
  }
  return edges;
}

/// Starts the exchange, if `code`, of its preparation, is no error.
int exchange_blocks(int code, const Start& start, const Side& send, const Side& receive) {
  EngineBlocks input, output;
  if (code == MPI_SUCCESS) code = start.staging->input(std::span<const Buffer>(send.blocks), &input);
  if (code == MPI_SUCCESS) code = start.staging->output(std::span<const Buffer>(receive.blocks), &output);
  if (code != MPI_SUCCESS) return code;
  const std::vector<canele_edge_t> sends = edges_of(start, send, input);
  const std::vector<canele_edge_t> receives = edges_of(start, receive, output);
  return from_collective(canele_ineighbor_exchange(start.comm.group(), input.memory, sends.data(), sends.size(),
                                                   output.memory, receives.data(), receives.size(), start.options,
                                                   start.request));
}

int bcast_between(const Start& start, CallBuffer data, int root) {
  Side send, receive;
  int code = check_root_between(start.comm, root);
  if (code == MPI_SUCCESS && root == MPI_ROOT) code = with_all(start, data, &send);
  if (code == MPI_SUCCESS && root >= 0) code = with_rank(data, root, &receive);
  return exchange_blocks(code, start, send, receive);
}

template <class Data>
int gather_between(const Start& start, CallBuffer own, Data all, int root) {
  Side send, receive;
  int code = check_root_between(start.comm, root);
  if (code == MPI_SUCCESS && root == MPI_ROOT) code = with_each(start, all, &receive);
  if (code == MPI_SUCCESS && root >= 0) code = with_rank(own, root, &send);
  return exchange_blocks(code, start, send, receive);
}

template <class Data>
int scatter_between(const Start& start, Data all, CallBuffer own, int root) {
  Side send, receive;
  int code = check_root_between(start.comm, root);
  if (code == MPI_SUCCESS && root == MPI_ROOT) code = with_each(start, all, &send);
  if (code == MPI_SUCCESS && root >= 0) code = with_rank(own, root, &receive);
  return exchange_blocks(code, start, send, receive);
}

template <class Data>
int allgather_between(const Start& start, CallBuffer own, Data all) {
  Side send, receive;
  int code = with_all(start, own, &send);
  if (code == MPI_SUCCESS) code = with_each(start, all, &receive);
  return exchange_blocks(code, start, send, receive);
}

template <class Data>
int alltoall_between(const Start& start, Data send, Data receive) {
  Side out, in;
  int code = with_each(start, send, &out);
  if (code == MPI_SUCCESS) code = with_each(start, receive, &in);
  return exchange_blocks(code, start, out, in);
}

int reject_scan(const Start&, const void*, void*, int, MPI_Datatype, MPI_Op) {
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

AnyFunction find_between_groups(AnyFunction start) {
  static const Forms all[] = {
      forms_of(start_barrier, start_barrier),  // the engine's group has the ranks of both groups
      forms_of(start_bcast, bcast_between),
      forms_of(start_gather, gather_between<CallBuffer>),
      forms_of(start_gatherv, gather_between<CallBufferV>),
      forms_of(start_scatter, scatter_between<CallBuffer>),
      forms_of(start_scatterv, scatter_between<CallBufferV>),
      forms_of(start_allgather, allgather_between<CallBuffer>),
      forms_of(start_allgatherv, allgather_between<CallBufferV>),
      forms_of(start_alltoall, alltoall_between<CallBuffer>),
      forms_of(start_alltoallv, alltoall_between<CallBufferV>),
      forms_of(start_reduce, reduce_between),
      forms_of(start_allreduce, allreduce_between),
      forms_of(start_reduce_scatter, reduce_scatter_between),
      forms_of(start_reduce_scatter_block, reduce_scatter_block_between),
      forms_of(start_scan, reject_scan),
      forms_of(start_exscan, reject_scan),
  };
  for (const Forms& forms : all) {
    if (forms.within == start) return forms.between;
  }
  fatal("a collective has no form for intercommunicators");
}

}  // namespace canele::mpi

// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives: argument checks, staging, and the engine's call. Data movement comes first, reductions follow.
//
// One call at a time per communicator. With MPI_Gather all ranks know that the blocks are equal; with MPI_Gatherv only
// the root knows the lengths. The engine must be told which of the two it is, even on ranks where the program's arrays
// are not read.
#include "starpu_glue/mpi/collectives/collectives.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/messages/request.hpp"

namespace canele::mpi {

int from_collective_error(int error) {
  if (error != CANELE_EPROTOCOL) return from_engine(error);
  return fail(MPI_ERR_TRUNCATE,
              "%s; all ranks must make the same calls in the same order, with counts, types and roots that fit",
              canele_error_detail());
}

namespace {

bool in_place(const void* memory) { return memory == MPI_IN_PLACE; }

int reject_in_place(const void* memory, const char* which) {
  if (!in_place(memory)) return MPI_SUCCESS;
  return fail(MPI_ERR_BUFFER, "MPI_IN_PLACE is not allowed as the %s buffer of this rank", which);
}

int check_root(const Communicator& comm, int root) {
  if (comm.has_rank(root)) return MPI_SUCCESS;
  return fail(MPI_ERR_ROOT, "root is %d; the communicator has the ranks 0 to %d", root, comm.size() - 1);
}

/// Checks this rank's block against what it receives from itself. The engine copies it and uses only one of the
/// lengths. If they differ, the collective fails on all ranks, which do not wait for this one.
int check_own(const Start& start, std::size_t sent, std::size_t expected) {
  if (sent == expected) return MPI_SUCCESS;
  canele_group_skip(start.comm.group(), CANELE_EPROTOCOL);
  return fail(MPI_ERR_TRUNCATE, "this rank sends %zu bytes to itself, but receives %zu; expected: equal sizes", sent,
              expected);
}

/// Data that the engine can use in place, as most data is: one block of memory.
struct Block {
  char* memory = nullptr;
  std::size_t length = 0;
};

/// Describes `in_a_row` consecutive repetitions of the data as one block. Returns false if they are not one block, or
/// if an argument is wrong; the slow path finds out which.
[[gnu::always_inline]] inline bool make_block(const CallBuffer& asked, std::size_t in_a_row, Block* each) {
  const Type* type = find_type(asked.type);
  if (type == nullptr || asked.count < 0 || in_place(asked.memory)) [[unlikely]]
    return false;
  if (type->dense) [[likely]] {
    *each = {static_cast<char*>(const_cast<void*>(asked.memory)) + type->single.first,
             type->size * static_cast<std::size_t>(asked.count)};
    return true;
  }
  const Payload all(asked.memory, in_a_row * static_cast<std::size_t>(asked.count), *type);
  *each = {all.base + all.layout.first, all.length / in_a_row};
  return all.contiguous();
}
[[gnu::always_inline]] inline bool is_block(const CallBuffer& asked, Block* block) {
  return make_block(asked, 1, block);
}

/// Checks equal blocks, one for each rank. If two consecutive ones are contiguous, all are.
[[gnu::always_inline]] inline bool are_blocks(const CallBuffer& asked, Block* each) {
  return make_block(asked, 2, each);
}
constexpr bool are_blocks(const CallBufferV&, Block*) { return false; }

/// Tells whether a block lies in the memory of all blocks, which belongs to the other buffer.
[[gnu::always_inline]] inline bool lies_in(const Block& block, const Block& all, int ranks) {
  return static_cast<std::size_t>(block.memory - all.memory) < all.length * static_cast<std::size_t>(ranks);
}

int reject_alias() {
  return fail(MPI_ERR_BUFFER, "the send buffer is also the receive buffer, or a part of it; MPI_IN_PLACE says that");
}
/// Checks that the buffers do not overlap, for equal blocks, if both are contiguous. Data with gaps may share memory.
int check_apart(const CallBuffer& block, const CallBuffer& all, int ranks) {
  Block one, each;
  const bool alias = make_block(block, 1, &one) && make_block(all, 2, &each) && lies_in(one, each, ranks);
  return alias && one.length != 0 ? reject_alias() : MPI_SUCCESS;
}
/// The same for blocks of different lengths: the block must not begin where one of them does. Their types are valid.
int check_apart(const CallBuffer& block, const CallBufferV& all, int ranks) {
  if (block.memory == nullptr || block.count == 0) return MPI_SUCCESS;
  const std::ptrdiff_t step = all.types != nullptr ? 1 : find_type(all.type)->extent();
  for (int rank = 0; rank < ranks; ++rank) {
    if (all.counts[rank] == 0) continue;
    if (block.memory == static_cast<const char*>(all.memory) + all.places[rank] * step) return reject_alias();
  }
  return MPI_SUCCESS;
}
int check_apart(const CallBufferV& one, const CallBufferV& other, int ranks) {
  const auto some = [ranks](const int* counts) {
    return std::any_of(counts, counts + ranks, [](int n) { return n > 0; });
  };
  const bool alias = one.memory == other.memory && one.memory != nullptr;
  return alias && some(one.counts) && some(other.counts) ? reject_alias() : MPI_SUCCESS;
}

int resolve(const CallBuffer& asked, int ranks, Blocks* blocks) {
  Buffer buffer;
  const int code = get_buffer(asked.memory, asked.count, asked.type, &buffer);
  if (code != MPI_SUCCESS) return code;
  *blocks = {static_cast<char*>(buffer.memory), ranks, buffer.count, buffer.type};
  return MPI_SUCCESS;
}

int resolve(const CallBufferV& asked, int ranks, Blocks* blocks) {
  if (asked.counts == nullptr || asked.places == nullptr) {
    return fail(MPI_ERR_ARG, "the array of %s is NULL", asked.counts == nullptr ? "counts" : "displacements");
  }
  if (asked.types == nullptr && asked.type == MPI_DATATYPE_NULL) {
    return fail(MPI_ERR_ARG, "the datatype is MPI_DATATYPE_NULL, or the array of datatypes is NULL");
  }
  Buffer buffer;
  for (int rank = 0; rank < ranks; ++rank) {
    const MPI_Datatype type = asked.types == nullptr ? asked.type : asked.types[rank];
    const int code = get_buffer(asked.memory, asked.counts[rank], type, &buffer);
    if (code != MPI_SUCCESS) return code;
  }
  *blocks = {static_cast<char*>(buffer.memory), ranks, 0, buffer.type, asked.counts, asked.places, asked.types};
  return MPI_SUCCESS;
}

constexpr bool has_equal_blocks(const CallBuffer&) { return true; }
constexpr bool has_equal_blocks(const CallBufferV&) { return false; }

/// Checks what this rank sends, and stages it.
template <class Data>
int take_input(const Start& start, const Data& asked, int ranks, Blocks* blocks, EngineBlocks* engine) {
  const int code = resolve(asked, ranks, blocks);
  return code == MPI_SUCCESS ? start.staging->input(*blocks, engine) : code;
}

/// Checks where this rank receives, and stages it. `filled`: the buffer already holds this rank's own data.
template <class Data>
int take_output(const Start& start, const Data& asked, int ranks, bool filled, Blocks* blocks, EngineBlocks* engine) {
  int code = reject_in_place(asked.memory, "receive");
  if (code == MPI_SUCCESS) code = resolve(asked, ranks, blocks);
  return code == MPI_SUCCESS ? start.staging->output(*blocks, filled, engine) : code;
}

/// Returns the input for the engine. If MPI_IN_PLACE was given, nothing has been staged.
const void* input_of(const void* asked, const EngineBlocks& engine) {
  return in_place(asked) ? CANELE_IN_PLACE : engine.memory;
}

/// Prepares the fast path of a gather or scatter, for which `own` and, at the root, `all` must be blocks. Returns false
/// if the call has to take the slow path.
template <class Data>
bool takes_blocks(const Start& start, const CallBuffer& own, const Data& all, int root, Block* block, Block* blocks) {
  if (!start.comm.has_rank(root) || !has_equal_blocks(all) || !is_block(own, block)) return false;
  return start.comm.rank() != root ||
         (are_blocks(all, blocks) && blocks->length == block->length && !lies_in(*block, *blocks, start.comm.size()));
}

template <class Data>
[[gnu::noinline]] int gather_any(const Start& start, const CallBuffer& own, const Data& all, int root) {
  int code = check_root(start.comm, root);
  const int rank = start.comm.rank();
  Blocks block, blocks;
  EngineBlocks input, output;
  if (code == MPI_SUCCESS && rank != root) code = reject_in_place(own.memory, "send");
  if (code == MPI_SUCCESS && !in_place(own.memory)) code = take_input(start, own, 1, &block, &input);
  if (code == MPI_SUCCESS && rank == root) {
    code = take_output(start, all, start.comm.size(), in_place(own.memory), &blocks, &output);
    if (code == MPI_SUCCESS && in_place(own.memory)) input.parts.length = blocks.block(rank).size();
    if (code == MPI_SUCCESS) code = check_own(start, input.parts.length, blocks.block(rank).size());
    if (code == MPI_SUCCESS) code = check_apart(own, all, start.comm.size());
  }
  if (code != MPI_SUCCESS) return code;
  if (rank != root) output.parts.length = input.parts.length;
  const canele_parts_t* known = rank == root || has_equal_blocks(all) ? &output.parts : nullptr;
  return from_collective(canele_igather(start.comm.group(), input_of(own.memory, input), input.parts.length,
                                        output.memory, known, root, start.options, start.request));
}

template <class Data>
int gather(const Start& start, const CallBuffer& own, const Data& all, int root) {
  if (Block block, blocks; takes_blocks(start, own, all, root, &block, &blocks)) [[likely]] {
    const canele_parts_t known{block.length, nullptr, nullptr};
    return from_collective(canele_igather(start.comm.group(), block.memory, block.length, blocks.memory, &known, root,
                                          start.options, start.request));
  }
  return start.staging == nullptr ? kNeedsStaging : gather_any(start, own, all, root);
}

template <class Data>
[[gnu::noinline]] int scatter_any(const Start& start, const Data& all, const CallBuffer& own, int root) {
  int code = check_root(start.comm, root);
  const int rank = start.comm.rank();
  Blocks block, blocks;
  EngineBlocks input, output;
  if (code == MPI_SUCCESS && (rank != root || !in_place(own.memory))) {
    code = take_output(start, own, 1, false, &block, &output);
  }
  if (code == MPI_SUCCESS && rank == root) {
    code = reject_in_place(all.memory, "send");
    if (code == MPI_SUCCESS) code = take_input(start, all, start.comm.size(), &blocks, &input);
    if (code == MPI_SUCCESS && in_place(own.memory)) output.parts.length = blocks.block(rank).size();
    if (code == MPI_SUCCESS) code = check_own(start, blocks.block(rank).size(), output.parts.length);
    if (code == MPI_SUCCESS) code = check_apart(own, all, start.comm.size());
  }
  if (code != MPI_SUCCESS) return code;
  if (rank != root) input.parts.length = output.parts.length;
  const canele_parts_t* known = rank == root || has_equal_blocks(all) ? &input.parts : nullptr;
  return from_collective(canele_iscatter(start.comm.group(), input.memory, known, output.memory, output.parts.length,
                                         root, start.options, start.request));
}

template <class Data>
int scatter(const Start& start, const Data& all, const CallBuffer& own, int root) {
  if (Block block, blocks; takes_blocks(start, own, all, root, &block, &blocks)) [[likely]] {
    const canele_parts_t known{block.length, nullptr, nullptr};
    return from_collective(canele_iscatter(start.comm.group(), blocks.memory, &known, block.memory, block.length, root,
                                           start.options, start.request));
  }
  return start.staging == nullptr ? kNeedsStaging : scatter_any(start, all, own, root);
}

template <class Data>
[[gnu::noinline]] int allgather_any(const Start& start, const CallBuffer& own, const Data& all) {
  Blocks block, blocks;
  EngineBlocks input, output;
  int code = take_output(start, all, start.comm.size(), in_place(own.memory), &blocks, &output);
  if (code == MPI_SUCCESS && !in_place(own.memory)) {
    code = take_input(start, own, 1, &block, &input);
    if (code == MPI_SUCCESS) code = check_own(start, input.parts.length, blocks.block(start.comm.rank()).size());
    if (code == MPI_SUCCESS) code = check_apart(own, all, start.comm.size());
  }
  if (code != MPI_SUCCESS) return code;
  return from_collective(canele_iallgather(start.comm.group(), input_of(own.memory, input), output.memory,
                                           &output.parts, start.options, start.request));
}

template <class Data>
int allgather(const Start& start, const CallBuffer& own, const Data& all) {
  if (Block block, blocks; is_block(own, &block) && are_blocks(all, &blocks) && block.length == blocks.length &&
                           !lies_in(block, blocks, start.comm.size())) [[likely]] {
    const canele_parts_t known{block.length, nullptr, nullptr};
    return from_collective(
        canele_iallgather(start.comm.group(), block.memory, blocks.memory, &known, start.options, start.request));
  }
  return start.staging == nullptr ? kNeedsStaging : allgather_any(start, own, all);
}

template <class Data>
[[gnu::noinline]] int alltoall_any(const Start& start, const Data& send, const Data& receive) {
  const int rank = start.comm.rank();
  const bool here = in_place(send.memory);
  Blocks sent, received;
  EngineBlocks input, output;
  int code = take_output(start, receive, start.comm.size(), here, &received, &output);
  if (code == MPI_SUCCESS && !here) {
    code = take_input(start, send, start.comm.size(), &sent, &input);
    if (code == MPI_SUCCESS) code = check_own(start, sent.block(rank).size(), received.block(rank).size());
    if (code == MPI_SUCCESS) code = check_apart(send, receive, start.comm.size());
  }
  if (code != MPI_SUCCESS) return code;
  return from_collective(canele_ialltoall(start.comm.group(), input_of(send.memory, input),
                                          here ? &output.parts : &input.parts, output.memory, &output.parts,
                                          start.options, start.request));
}

template <class Data>
int alltoall(const Start& start, const Data& send, const Data& receive) {
  if (Block out, in; are_blocks(send, &out) && are_blocks(receive, &in) && out.length == in.length &&
                     !lies_in(out, in, start.comm.size())) [[likely]] {
    const canele_parts_t known{in.length, nullptr, nullptr};
    return from_collective(
        canele_ialltoall(start.comm.group(), out.memory, &known, in.memory, &known, start.options, start.request));
  }
  return start.staging == nullptr ? kNeedsStaging : alltoall_any(start, send, receive);
}

[[gnu::noinline]] int bcast_any(const Start& start, const CallBuffer& data, int root) {
  int code = check_root(start.comm, root);
  Blocks blocks;
  EngineBlocks engine;
  if (code == MPI_SUCCESS) code = reject_in_place(data.memory, "only");
  if (code == MPI_SUCCESS && start.comm.rank() == root) {
    code = take_input(start, data, 1, &blocks, &engine);
  } else if (code == MPI_SUCCESS) {
    code = take_output(start, data, 1, false, &blocks, &engine);
  }
  if (code != MPI_SUCCESS) return code;
  return from_collective(
      canele_ibcast(start.comm.group(), engine.memory, engine.parts.length, root, start.options, start.request));
}

/// Arguments of a reduction, from any of the MPI calls.
struct Reduction {
  const void* send;
  void* receive;
  std::int64_t count;    ///< elements that each rank contributes
  std::int64_t results;  ///< elements that this rank receives
  MPI_Datatype type;
  MPI_Op op;
  bool receives = true;  ///< false: this rank only sends, and `receive` is not read
};

/// Arguments of a reduction for the engine.
struct EngineReduction {
  const void* input = CANELE_IN_PLACE;
  void* output = nullptr;
  std::size_t count = 0;
  canele_operator_t op{};
};

/// Prepares the fast path: a predefined operator, not in place, and memory that the engine can use directly. Returns
/// false if the call has to take the slow path.
bool is_fast(const Reduction& asked, EngineReduction* engine) {
  const Type* type = find_type(asked.type);
  if (type == nullptr || !type->predefined || type->size != static_cast<std::size_t>(type->upper)) return false;
  const canele_operator_t* op = predefined_operator(asked.op, type->basic);
  if (op == nullptr || in_place(asked.send)) return false;
  if (asked.receives && (in_place(asked.receive) || asked.send == asked.receive)) return false;
  *engine = {asked.send, asked.receives ? asked.receive : nullptr, static_cast<std::size_t>(asked.count), *op};
  return true;
}

[[gnu::noinline]] int take_any_reduction(const Start& start, const Reduction& asked, EngineReduction* engine) {
  Buffer given;
  int code = get_buffer(asked.send, 0, asked.type, &given);
  if (code == MPI_SUCCESS && !asked.receives) code = reject_in_place(asked.send, "send");
  if (code == MPI_SUCCESS && asked.receives) code = reject_in_place(asked.receive, "receive");
  Operator op;
  if (code == MPI_SUCCESS) code = get_operator(asked.op, *given.type, &op);
  if (code != MPI_SUCCESS) return code;
  const bool here = in_place(asked.send);
  if (asked.receives && asked.send == asked.receive && asked.count > 0) {
    return fail(MPI_ERR_BUFFER, "the send buffer is also the receive buffer; MPI_IN_PLACE says that");
  }
  given.count = asked.count;
  const Buffer wanted{asked.receive, here ? asked.count : asked.results, given.type};
  if (!here) code = start.staging->input_slots(given, &engine->input);
  if (code == MPI_SUCCESS && asked.receives) {
    code = start.staging->output_slots(wanted, asked.results, here, &engine->output);
  }
  if (code != MPI_SUCCESS) return code;
  engine->count = given.type->size == 0 ? 0 : static_cast<std::size_t>(asked.count);
  start.staging->combine_with(op, *given.type, &engine->op);
  return MPI_SUCCESS;
}

int take_reduction(const Start& start, const Reduction& asked, EngineReduction* engine) {
  if (is_fast(asked, engine)) [[likely]]
    return MPI_SUCCESS;
  return start.staging == nullptr ? kNeedsStaging : take_any_reduction(start, asked, engine);
}

int check_count(std::int64_t count, const char* what) {
  if (count >= 0) return MPI_SUCCESS;
  return fail(MPI_ERR_COUNT, "%s is %lld; expected: at least 0", what, static_cast<long long>(count));
}

}  // namespace

int start_bcast(const Start& start, CallBuffer data, int root) {
  if (Block block; start.comm.has_rank(root) && is_block(data, &block)) [[likely]] {
    return from_collective(
        canele_ibcast(start.comm.group(), block.memory, block.length, root, start.options, start.request));
  }
  return start.staging == nullptr ? kNeedsStaging : bcast_any(start, data, root);
}

int start_gather(const Start& start, CallBuffer own, CallBuffer all, int root) { return gather(start, own, all, root); }
int start_gatherv(const Start& start, CallBuffer own, CallBufferV all, int root) {
  return gather(start, own, all, root);
}
int start_scatter(const Start& start, CallBuffer all, CallBuffer own, int root) {
  return scatter(start, all, own, root);
}
int start_scatterv(const Start& start, CallBufferV all, CallBuffer own, int root) {
  return scatter(start, all, own, root);
}
int start_allgather(const Start& start, CallBuffer own, CallBuffer all) { return allgather(start, own, all); }
int start_allgatherv(const Start& start, CallBuffer own, CallBufferV all) { return allgather(start, own, all); }
int start_alltoall(const Start& start, CallBuffer send, CallBuffer receive) { return alltoall(start, send, receive); }
int start_alltoallv(const Start& start, CallBufferV send, CallBufferV receive) {
  return alltoall(start, send, receive);
}

int start_reduce(const Start& start, const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                 int root) {
  int code = check_root(start.comm, root);
  if (code == MPI_SUCCESS) code = check_count(count, "count");
  EngineReduction engine;
  if (code == MPI_SUCCESS) {
    code = take_reduction(start, {send, receive, count, count, type, op, start.comm.rank() == root}, &engine);
  }
  if (code != MPI_SUCCESS) return code;
  return from_collective(canele_ireduce(start.comm.group(), engine.input, engine.output, engine.count, &engine.op, root,
                                        start.options, start.request));
}

int start_allreduce(const Start& start, const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op) {
  EngineReduction engine;
  int code = check_count(count, "count");
  if (code == MPI_SUCCESS) code = take_reduction(start, {send, receive, count, count, type, op}, &engine);
  if (code != MPI_SUCCESS) return code;
  return from_collective(canele_iallreduce(start.comm.group(), engine.input, engine.output, engine.count, &engine.op,
                                           start.options, start.request));
}

int start_reduce_scatter(const Start& start, const void* send, void* receive, const int* counts, MPI_Datatype type,
                         MPI_Op op) {
  if (counts == nullptr) return fail(MPI_ERR_ARG, "the array of counts is NULL");
  std::vector<std::size_t> lengths;
  for (int rank = 0; rank < start.comm.size(); ++rank) {
    if (const int code = check_count(counts[rank], "one of the counts"); code != MPI_SUCCESS) return code;
    lengths.push_back(static_cast<std::size_t>(counts[rank]));
  }
  const auto sum = static_cast<std::int64_t>(std::accumulate(lengths.begin(), lengths.end(), std::size_t{0}));
  EngineReduction engine;
  const int code = take_reduction(start, {send, receive, sum, counts[start.comm.rank()], type, op}, &engine);
  if (code != MPI_SUCCESS) return code;
  if (engine.count == 0) lengths.assign(lengths.size(), 0);  // the elements have no bytes
  return from_collective(canele_ireduce_scatter(start.comm.group(), engine.input, engine.output, 0, lengths.data(),
                                                &engine.op, start.options, start.request));
}

int start_reduce_scatter_block(const Start& start, const void* send, void* receive, int count, MPI_Datatype type,
                               MPI_Op op) {
  const int size = start.comm.size();
  EngineReduction engine;
  int code = check_count(count, "count");
  if (code == MPI_SUCCESS) {
    code = take_reduction(start, {send, receive, std::int64_t{count} * size, count, type, op}, &engine);
  }
  if (code != MPI_SUCCESS) return code;
  return from_collective(canele_ireduce_scatter(start.comm.group(), engine.input, engine.output,
                                                engine.count / static_cast<std::size_t>(size), nullptr, &engine.op,
                                                start.options, start.request));
}

int start_scan(const Start& start, const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op) {
  EngineReduction engine;
  int code = check_count(count, "count");
  if (code == MPI_SUCCESS) code = take_reduction(start, {send, receive, count, count, type, op}, &engine);
  if (code != MPI_SUCCESS) return code;
  return from_collective(canele_iscan(start.comm.group(), engine.input, engine.output, engine.count, &engine.op,
                                      start.options, start.request));
}

int start_exscan(const Start& start, const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op) {
  EngineReduction engine;
  int code = check_count(count, "count");
  const int results = start.comm.rank() == 0 ? 0 : count;  // MPI does not touch the first rank's buffer
  if (code == MPI_SUCCESS) code = take_reduction(start, {send, receive, count, results, type, op}, &engine);
  if (code != MPI_SUCCESS) return code;
  return from_collective(canele_iexscan(start.comm.group(), engine.input, engine.output, engine.count, &engine.op,
                                        start.options, start.request));
}

}  // namespace canele::mpi

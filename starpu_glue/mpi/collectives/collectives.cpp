// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives: argument checks, staging, and the engine's call. Data movement comes first, reductions follow.
//
// One call at a time per communicator. With MPI_Gather all ranks know that the blocks are equal; with MPI_Gatherv only
// the root knows the lengths. The engine must be told which of the two it is, even on ranks where the program's arrays
// are not read.
#include "starpu_glue/mpi/collectives/collectives.hpp"

#include <algorithm>
#include <climits>
#include <numeric>
#include <vector>

#include "starpu_glue/mpi/collectives/plan.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/fast_calls.hpp"

namespace canele::mpi {

int from_collective_error(int error) {
  if (error != CANELE_EPROTOCOL) return from_engine(error);
  return fail(MPI_ERR_TRUNCATE,
              "%s; all ranks must make the same calls in the same order, with counts, types and roots that fit",
              canele_error_detail());
}

namespace {

/// Checks that equal blocks for all ranks have a length together.
int check_total(const Buffer& block, int ranks) {
  std::int64_t count = 0;
  if (!__builtin_mul_overflow(block.count, ranks, &count)) return check_size(count, *block.type);
  return fail(MPI_ERR_COUNT, "count is %lld for each of %d ranks, which is more than memory can hold",
              static_cast<long long>(block.count), ranks);
}

}  // namespace

int resolve(const CallBuffer& asked, int ranks, Blocks* blocks) {
  Buffer buffer;
  int code = get_buffer(asked.memory, asked.count, asked.type, &buffer);
  if (code == MPI_SUCCESS) code = check_total(buffer, ranks);
  if (code != MPI_SUCCESS) return code;
  *blocks = {static_cast<char*>(buffer.memory), ranks, buffer.count, buffer.type};
  return MPI_SUCCESS;
}

int resolve(const CallBufferV& asked, int ranks, Blocks* blocks) {
  if (asked.counts.data() == nullptr || asked.places.data() == nullptr) {
    return fail(MPI_ERR_ARG, "the array of %s is NULL", asked.counts.data() == nullptr ? "counts" : "displacements");
  }
  if (asked.types == nullptr && asked.type == MPI_DATATYPE_NULL) {
    return fail(MPI_ERR_ARG, "the datatype is MPI_DATATYPE_NULL, or the array of datatypes is NULL");
  }
  Buffer buffer;
  for (int rank = 0; rank < ranks; ++rank) {
    const MPI_Datatype type = asked.types == nullptr ? asked.type : asked.types[rank];
    const int code = get_buffer(asked.memory, asked.counts[static_cast<std::size_t>(rank)], type, &buffer);
    if (code != MPI_SUCCESS) return code;
  }
  *blocks = {static_cast<char*>(buffer.memory), ranks, 0, buffer.type, asked.counts, asked.places, asked.types};
  return MPI_SUCCESS;
}

int take_counts(const Integers& counts, int ranks, std::vector<std::size_t>* lengths, std::int64_t* sum) {
  if (counts.data() == nullptr) return fail(MPI_ERR_ARG, "the array of counts is NULL");
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
    if (counts[rank] < 0 || __builtin_add_overflow(*sum, counts[rank], sum)) {
      return fail(MPI_ERR_COUNT, "count %zu is %lld; expected: at least 0, and all together less than 2^63", rank,
                  static_cast<long long>(counts[rank]));
    }
    lengths->push_back(static_cast<std::size_t>(counts[rank]));
  }
  return MPI_SUCCESS;
}

int multiply_count(std::int64_t count, int ranks, std::int64_t* sum) {
  if (!__builtin_mul_overflow(count, ranks, sum)) return MPI_SUCCESS;
  return fail(MPI_ERR_COUNT, "count is %lld for each of %d ranks; expected: less than 2^63 together",
              static_cast<long long>(count), ranks);
}

/// Arguments of a reduction for the engine. Plans keep them, so the name is not local to this file.
struct EngineReduction {
  const void* input = CANELE_IN_PLACE;
  void* output = nullptr;
  std::size_t count = 0;
  canele_operator_t op{};
};

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
template <class How>
int check_own(const How& start, std::size_t sent, std::size_t expected) {
  if (sent == expected) return MPI_SUCCESS;
  start.skip(CANELE_EPROTOCOL);
  return fail(MPI_ERR_TRUNCATE, "this rank sends %zu bytes to itself, but receives %zu; expected: equal sizes", sent,
              expected);
}

/// Tells whether a count has at most 31 bits, and is not negative. Others take the slow path, which checks lengths.
bool is_small(std::int64_t count) { return count >= 0 && count <= INT_MAX; }

/// Data that the engine can use in place, as most data is: one block of memory.
struct Block {
  char* memory = nullptr;
  std::size_t length = 0;
};

/// Describes `in_a_row` consecutive repetitions of the data as one block. Returns false if they are not one block, or
/// if an argument is wrong; the slow path finds out which. The count is small.
[[gnu::always_inline]] inline bool make_block(const CallBuffer& asked, std::size_t in_a_row, Block* each) {
  const Type* type = find_type(asked.type);
  if (type == nullptr || in_place(asked.memory)) [[unlikely]]
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
  return is_direct_count(asked.count) && make_block(asked, 1, block);
}

/// Checks equal blocks, one for each rank. If two consecutive ones are contiguous, all are.
[[gnu::always_inline]] inline bool are_blocks(const CallBuffer& asked, Block* each) {
  return is_direct_count(asked.count) && make_block(asked, 2, each);
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
  if (!is_small(block.count) || !is_small(all.count)) return MPI_SUCCESS;
  const bool alias = make_block(block, 1, &one) && make_block(all, 2, &each) && lies_in(one, each, ranks);
  return alias && one.length != 0 ? reject_alias() : MPI_SUCCESS;
}
/// The same for blocks of different lengths: the block must not begin where one of them does. Their types are valid.
int check_apart(const CallBuffer& block, const CallBufferV& all, int ranks) {
  if (block.memory == nullptr || block.count == 0) return MPI_SUCCESS;
  const std::ptrdiff_t step = all.types != nullptr ? 1 : find_type(all.type)->extent();
  for (int rank = 0; rank < ranks; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    if (all.counts[index] == 0) continue;
    if (block.memory == static_cast<const char*>(all.memory) + all.places[index] * step) return reject_alias();
  }
  return MPI_SUCCESS;
}
int check_apart(const CallBufferV& one, const CallBufferV& other, int ranks) {
  const auto some = [ranks](const Integers& counts) {
    std::size_t rank = 0;
    while (rank < static_cast<std::size_t>(ranks) && counts[rank] == 0) ++rank;
    return rank < static_cast<std::size_t>(ranks);
  };
  const bool alias = one.memory == other.memory && one.memory != nullptr;
  return alias && some(one.counts) && some(other.counts) ? reject_alias() : MPI_SUCCESS;
}

constexpr bool has_equal_blocks(const CallBuffer&) { return true; }
constexpr bool has_equal_blocks(const CallBufferV&) { return false; }

/// Checks what this rank sends, and stages it.
template <class How, class Data>
int take_input(const How& start, const Data& asked, int ranks, Blocks* blocks, EngineBlocks* engine) {
  const int code = resolve(asked, ranks, blocks);
  return code == MPI_SUCCESS ? start.staging->input(*blocks, engine) : code;
}

/// Checks where this rank receives, and stages it. `filled`: the buffer already holds this rank's own data.
template <class How, class Data>
int take_output(const How& start, const Data& asked, int ranks, bool filled, Blocks* blocks, EngineBlocks* engine) {
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
template <class How, class Data>
bool takes_blocks(const How& start, const CallBuffer& own, const Data& all, int root, Block* block, Block* blocks) {
  if (!start.comm.has_rank(root) || !has_equal_blocks(all) || !is_block(own, block)) return false;
  return start.comm.rank() != root ||
         (are_blocks(all, blocks) && blocks->length == block->length && !lies_in(*block, *blocks, start.comm.size()));
}

template <class How, class Data>
[[gnu::noinline]] int gather_any(const How& start, const CallBuffer& own, const Data& all, int root) {
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
  const bool is_known = rank == root || has_equal_blocks(all);
  return start.begin([from = input_of(own.memory, input), length = input.parts.length, to = std::move(output), is_known,
                      root](const Execution& at) {
    return canele_igather(at.group, from, length, to.memory, is_known ? &to.parts : nullptr, root, at.options,
                          at.request);
  });
}

template <class How, class Data>
int gather(const How& start, const CallBuffer& own, const Data& all, int root) {
  if (Block block, blocks; takes_blocks(start, own, all, root, &block, &blocks)) [[likely]] {
    return start.begin([block, to = blocks.memory, root](const Execution& at) {
      const canele_parts_t known{block.length, nullptr, nullptr};
      return canele_igather(at.group, block.memory, block.length, to, &known, root, at.options, at.request);
    });
  }
  return start.staging == nullptr ? kNeedsStaging : gather_any(start, own, all, root);
}

template <class How, class Data>
[[gnu::noinline]] int scatter_any(const How& start, const Data& all, const CallBuffer& own, int root) {
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
  const bool is_known = rank == root || has_equal_blocks(all);
  return start.begin(
      [from = std::move(input), to = output.memory, length = output.parts.length, is_known, root](const Execution& at) {
        return canele_iscatter(at.group, from.memory, is_known ? &from.parts : nullptr, to, length, root, at.options,
                               at.request);
      });
}

template <class How, class Data>
int scatter(const How& start, const Data& all, const CallBuffer& own, int root) {
  if (Block block, blocks; takes_blocks(start, own, all, root, &block, &blocks)) [[likely]] {
    return start.begin([block, from = blocks.memory, root](const Execution& at) {
      const canele_parts_t known{block.length, nullptr, nullptr};
      return canele_iscatter(at.group, from, &known, block.memory, block.length, root, at.options, at.request);
    });
  }
  return start.staging == nullptr ? kNeedsStaging : scatter_any(start, all, own, root);
}

template <class How, class Data>
[[gnu::noinline]] int allgather_any(const How& start, const CallBuffer& own, const Data& all) {
  Blocks block, blocks;
  EngineBlocks input, output;
  int code = take_output(start, all, start.comm.size(), in_place(own.memory), &blocks, &output);
  if (code == MPI_SUCCESS && !in_place(own.memory)) {
    code = take_input(start, own, 1, &block, &input);
    if (code == MPI_SUCCESS) code = check_own(start, input.parts.length, blocks.block(start.comm.rank()).size());
    if (code == MPI_SUCCESS) code = check_apart(own, all, start.comm.size());
  }
  if (code != MPI_SUCCESS) return code;
  return start.begin([from = input_of(own.memory, input), to = std::move(output)](const Execution& at) {
    return canele_iallgather(at.group, from, to.memory, &to.parts, at.options, at.request);
  });
}

template <class How, class Data>
int allgather(const How& start, const CallBuffer& own, const Data& all) {
  if (Block block, blocks; is_block(own, &block) && are_blocks(all, &blocks) && block.length == blocks.length &&
                           !lies_in(block, blocks, start.comm.size())) [[likely]] {
    return start.begin([block, to = blocks.memory](const Execution& at) {
      const canele_parts_t known{block.length, nullptr, nullptr};
      return canele_iallgather(at.group, block.memory, to, &known, at.options, at.request);
    });
  }
  return start.staging == nullptr ? kNeedsStaging : allgather_any(start, own, all);
}

template <class How, class Data>
[[gnu::noinline]] int alltoall_any(const How& start, const Data& send, const Data& receive) {
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
  return start.begin([from = std::move(input), to = std::move(output), here](const Execution& at) {
    return canele_ialltoall(at.group, here ? CANELE_IN_PLACE : from.memory, here ? &to.parts : &from.parts, to.memory,
                            &to.parts, at.options, at.request);
  });
}

template <class How, class Data>
int alltoall(const How& start, const Data& send, const Data& receive) {
  if (Block out, in; are_blocks(send, &out) && are_blocks(receive, &in) && out.length == in.length &&
                     !lies_in(out, in, start.comm.size())) [[likely]] {
    return start.begin([from = out.memory, in](const Execution& at) {
      const canele_parts_t known{in.length, nullptr, nullptr};
      return canele_ialltoall(at.group, from, &known, in.memory, &known, at.options, at.request);
    });
  }
  return start.staging == nullptr ? kNeedsStaging : alltoall_any(start, send, receive);
}

template <class How>
[[gnu::always_inline]] inline int begin_bcast(const How& start, const Block& block, int root) {
  return start.begin([block, root](const Execution& at) {
    return canele_ibcast(at.group, block.memory, block.length, root, at.options, at.request);
  });
}

template <class How>
[[gnu::noinline]] int bcast_any(const How& start, const CallBuffer& data, int root) {
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
  return begin_bcast(start, {engine.memory, engine.parts.length}, root);
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

/// Prepares the fast path: a predefined operator, not in place, and memory that the engine can use directly. Returns
/// false if the call has to take the slow path.
bool is_fast(const Reduction& asked, EngineReduction* engine) {
  const Type* type = find_type(asked.type);
  if (type == nullptr || !is_direct_count(asked.count) || !type->predefined ||
      type->size != static_cast<std::size_t>(type->upper))
    return false;
  const canele_operator_t* op = predefined_operator(asked.op, type->basic);
  if (op == nullptr || in_place(asked.send)) return false;
  if (asked.receives && (in_place(asked.receive) || asked.send == asked.receive)) return false;
  *engine = {asked.send, asked.receives ? asked.receive : nullptr, static_cast<std::size_t>(asked.count), *op};
  return true;
}

[[gnu::noinline]] int take_any_reduction(Staging& staging, const Reduction& asked, EngineReduction* engine) {
  Buffer given;
  int code = get_buffer(asked.send, asked.count, asked.type, &given);
  if (code == MPI_SUCCESS && !asked.receives) code = reject_in_place(asked.send, "send");
  if (code == MPI_SUCCESS && asked.receives) code = reject_in_place(asked.receive, "receive");
  Operator op;
  if (code == MPI_SUCCESS) code = get_operator(asked.op, *given.type, &op);
  if (code != MPI_SUCCESS) return code;
  const bool here = in_place(asked.send);
  if (asked.receives && asked.send == asked.receive && asked.count > 0) {
    return fail(MPI_ERR_BUFFER, "the send buffer is also the receive buffer; MPI_IN_PLACE says that");
  }
  const Buffer wanted{asked.receive, here ? asked.count : asked.results, given.type};
  if (!here) code = staging.input_slots(given, &engine->input);
  if (code == MPI_SUCCESS && asked.receives) {
    code = staging.output_slots(wanted, asked.results, here, &engine->output);
  }
  if (code != MPI_SUCCESS) return code;
  engine->count = given.type->size == 0 ? 0 : static_cast<std::size_t>(asked.count);
  staging.combine_with(op, *given.type, &engine->op);
  return MPI_SUCCESS;
}

template <class How>
int take_reduction(const How& start, const Reduction& asked, EngineReduction* engine) {
  if (is_fast(asked, engine)) [[likely]]
    return MPI_SUCCESS;
  return start.staging == nullptr ? kNeedsStaging : take_any_reduction(*start.staging, asked, engine);
}

}  // namespace

template <class How>
int start_bcast(const How& start, CallBuffer data, int root) {
  if (Block block; start.comm.has_rank(root) && is_block(data, &block)) [[likely]] {
    return begin_bcast(start, block, root);
  }
  return start.staging == nullptr ? kNeedsStaging : bcast_any(start, data, root);
}

template <class How>
int start_gather(const How& start, CallBuffer own, CallBuffer all, int root) {
  return gather(start, own, all, root);
}
template <class How>
int start_gatherv(const How& start, CallBuffer own, const CallBufferV& all, int root) {
  return gather(start, own, all, root);
}
template <class How>
int start_scatter(const How& start, CallBuffer all, CallBuffer own, int root) {
  return scatter(start, all, own, root);
}
template <class How>
int start_scatterv(const How& start, const CallBufferV& all, CallBuffer own, int root) {
  return scatter(start, all, own, root);
}
template <class How>
int start_allgather(const How& start, CallBuffer own, CallBuffer all) {
  return allgather(start, own, all);
}
template <class How>
int start_allgatherv(const How& start, CallBuffer own, const CallBufferV& all) {
  return allgather(start, own, all);
}
template <class How>
int start_alltoall(const How& start, CallBuffer send, CallBuffer receive) {
  return alltoall(start, send, receive);
}
template <class How>
int start_alltoallv(const How& start, const CallBufferV& send, const CallBufferV& receive) {
  return alltoall(start, send, receive);
}

template <class How>
int start_reduce(const How& start, const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op,
                 int root) {
  int code = check_root(start.comm, root);
  EngineReduction engine;
  if (code == MPI_SUCCESS) {
    code = take_reduction(start, {send, receive, count, count, type, op, start.comm.rank() == root}, &engine);
  }
  if (code != MPI_SUCCESS) return code;
  return start.begin_with(engine, [root](const EngineReduction& what, const Execution& at) {
    return canele_ireduce(at.group, what.input, what.output, what.count, &what.op, root, at.options, at.request);
  });
}

template <class How>
int start_allreduce(const How& start, const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op) {
  EngineReduction engine;
  const int code = take_reduction(start, {send, receive, count, count, type, op}, &engine);
  if (code != MPI_SUCCESS) return code;
  return start.begin_with(engine, [](const EngineReduction& what, const Execution& at) {
    return canele_iallreduce(at.group, what.input, what.output, what.count, &what.op, at.options, at.request);
  });
}

template <class How>
int start_reduce_scatter(const How& start, const void* send, void* receive, const Integers& counts, MPI_Datatype type,
                         MPI_Op op) {
  std::vector<std::size_t> lengths;
  std::int64_t sum = 0;
  int code = take_counts(counts, start.comm.size(), &lengths, &sum);
  if (code != MPI_SUCCESS) return code;
  EngineReduction engine;
  const std::int64_t own = counts[static_cast<std::size_t>(start.comm.rank())];
  code = take_reduction(start, {send, receive, sum, own, type, op}, &engine);
  if (code != MPI_SUCCESS) return code;
  if (engine.count == 0) lengths.assign(lengths.size(), 0);  // the elements have no bytes
  return start.begin([engine, lengths = std::move(lengths)](const Execution& at) {
    return canele_ireduce_scatter(at.group, engine.input, engine.output, 0, lengths.data(), &engine.op, at.options,
                                  at.request);
  });
}

template <class How>
int start_reduce_scatter_block(const How& start, const void* send, void* receive, MPI_Count count, MPI_Datatype type,
                               MPI_Op op) {
  const int size = start.comm.size();
  std::int64_t all = 0;
  int code = multiply_count(count, size, &all);
  if (code != MPI_SUCCESS) return code;
  EngineReduction engine;
  code = take_reduction(start, {send, receive, all, count, type, op}, &engine);
  if (code != MPI_SUCCESS) return code;
  return start.begin_with(engine, [size](const EngineReduction& what, const Execution& at) {
    return canele_ireduce_scatter(at.group, what.input, what.output, what.count / static_cast<std::size_t>(size),
                                  nullptr, &what.op, at.options, at.request);
  });
}

template <class How>
int start_scan(const How& start, const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op) {
  EngineReduction engine;
  const int code = take_reduction(start, {send, receive, count, count, type, op}, &engine);
  if (code != MPI_SUCCESS) return code;
  return start.begin_with(engine, [](const EngineReduction& what, const Execution& at) {
    return canele_iscan(at.group, what.input, what.output, what.count, &what.op, at.options, at.request);
  });
}

template <class How>
int start_exscan(const How& start, const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op) {
  EngineReduction engine;
  const MPI_Count results = start.comm.rank() == 0 ? 0 : count;  // MPI does not touch the first rank's buffer
  const int code = take_reduction(start, {send, receive, count, results, type, op}, &engine);
  if (code != MPI_SUCCESS) return code;
  return start.begin_with(engine, [](const EngineReduction& what, const Execution& at) {
    return canele_iexscan(at.group, what.input, what.output, what.count, &what.op, at.options, at.request);
  });
}

#define CANELE_MPI_COLLECTIVES(How)                                                                         \
  template int start_bcast(const How&, CallBuffer, int);                                                    \
  template int start_gather(const How&, CallBuffer, CallBuffer, int);                                       \
  template int start_gatherv(const How&, CallBuffer, const CallBufferV&, int);                              \
  template int start_scatter(const How&, CallBuffer, CallBuffer, int);                                      \
  template int start_scatterv(const How&, const CallBufferV&, CallBuffer, int);                             \
  template int start_allgather(const How&, CallBuffer, CallBuffer);                                         \
  template int start_allgatherv(const How&, CallBuffer, const CallBufferV&);                                \
  template int start_alltoall(const How&, CallBuffer, CallBuffer);                                          \
  template int start_alltoallv(const How&, const CallBufferV&, const CallBufferV&);                         \
  template int start_reduce(const How&, const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, int);          \
  template int start_allreduce(const How&, const void*, void*, MPI_Count, MPI_Datatype, MPI_Op);            \
  template int start_reduce_scatter(const How&, const void*, void*, const Integers&, MPI_Datatype, MPI_Op); \
  template int start_reduce_scatter_block(const How&, const void*, void*, MPI_Count, MPI_Datatype, MPI_Op); \
  template int start_scan(const How&, const void*, void*, MPI_Count, MPI_Datatype, MPI_Op);                 \
  template int start_exscan(const How&, const void*, void*, MPI_Count, MPI_Datatype, MPI_Op)

CANELE_MPI_COLLECTIVES(Start);
CANELE_MPI_COLLECTIVES(Plan);

}  // namespace canele::mpi

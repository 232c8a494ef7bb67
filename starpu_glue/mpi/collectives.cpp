// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives: checks, staging, and the engine's call; first those that move data, then those that combine.
//
// Who: api_collective.cpp. Threads: one call at a time per communicator.
// Surprise: with MPI_Gather all ranks know that the parts are equal, with MPI_Gatherv only the root knows what they are
//      like; the engine must be told which of the two it is, also where the program's arrays are not looked at.
#include "starpu_glue/mpi/collectives.hpp"

#include <numeric>
#include <vector>

#include "starpu_glue/mpi/error.hpp"
#include "starpu_glue/mpi/request.hpp"

namespace canele::mpi {
namespace {

bool in_place(const void* memory) { return memory == MPI_IN_PLACE; }

int refuse_in_place(const void* memory, const char* which) {
  if (!in_place(memory)) return MPI_SUCCESS;
  return fail(MPI_ERR_BUFFER, "MPI_IN_PLACE is not allowed as the %s buffer of this rank", which);
}

int check_root(const Communicator& comm, int root) {
  if (root >= 0 && root < comm.size()) return MPI_SUCCESS;
  return fail(MPI_ERR_ROOT, "root is %d; the communicator has the ranks 0 to %d", root, comm.size() - 1);
}

/// The engine copies between this rank's part and what is meant for it, and looks at one length only.
int check_own(std::size_t sent, std::size_t expected) {
  if (sent == expected) return MPI_SUCCESS;
  return fail(MPI_ERR_TRUNCATE, "this rank sends %zu bytes to itself, but receives %zu; they must be the same", sent,
              expected);
}

int resolve(const Asked& asked, int ranks, Parts* parts) {
  Buffer buffer;
  const int code = get_buffer(asked.memory, asked.count, asked.type, &buffer);
  if (code != MPI_SUCCESS) return code;
  *parts = {static_cast<char*>(buffer.memory), ranks, buffer.count, buffer.type};
  return MPI_SUCCESS;
}

int resolve(const AskedEach& asked, int ranks, Parts* parts) {
  if (asked.counts == nullptr || asked.places == nullptr) {
    return fail(MPI_ERR_ARG, "the array of %s is NULL", asked.counts == nullptr ? "counts" : "displacements");
  }
  Buffer buffer;
  for (int rank = 0; rank < ranks; ++rank) {
    const MPI_Datatype type = asked.types == nullptr ? asked.type : asked.types[rank];
    const int code = get_buffer(asked.memory, asked.counts[rank], type, &buffer);
    if (code != MPI_SUCCESS) return code;
  }
  *parts = {static_cast<char*>(buffer.memory), ranks, 0, buffer.type, asked.counts, asked.places, asked.types};
  return MPI_SUCCESS;
}

constexpr bool has_equal_parts(const Asked&) { return true; }
constexpr bool has_equal_parts(const AskedEach&) { return false; }

/// Checks what this rank sends, and stages it.
template <class Data>
int take_input(const Start& start, const Data& asked, int ranks, Parts* parts, EngineParts* engine) {
  const int code = resolve(asked, ranks, parts);
  return code == MPI_SUCCESS ? start.staging.input(*parts, engine) : code;
}

/// Checks where this rank receives, and stages it. `filled`: its own data is there already.
template <class Data>
int take_output(const Start& start, const Data& asked, int ranks, bool filled, Parts* parts, EngineParts* engine) {
  int code = refuse_in_place(asked.memory, "receive");
  if (code == MPI_SUCCESS) code = resolve(asked, ranks, parts);
  return code == MPI_SUCCESS ? start.staging.output(*parts, filled, engine) : code;
}

/// The input for the engine: where MPI_IN_PLACE was given, nothing has been staged.
const void* input_of(const void* asked, const EngineParts& engine) {
  return in_place(asked) ? CANELE_IN_PLACE : engine.memory;
}

template <class Data>
int gather(const Start& start, const Asked& own, const Data& all, int root) {
  int code = check_root(start.comm, root);
  const int rank = start.comm.rank();
  Parts part, parts;
  EngineParts input, output;
  if (code == MPI_SUCCESS && rank != root) code = refuse_in_place(own.memory, "send");
  if (code == MPI_SUCCESS && !in_place(own.memory)) code = take_input(start, own, 1, &part, &input);
  if (code == MPI_SUCCESS && rank == root) {
    code = take_output(start, all, start.comm.size(), in_place(own.memory), &parts, &output);
    if (code == MPI_SUCCESS && in_place(own.memory)) input.parts.length = parts.part(rank).size();
    if (code == MPI_SUCCESS) code = check_own(input.parts.length, parts.part(rank).size());
  }
  if (code != MPI_SUCCESS) return code;
  if (rank != root) output.parts.length = input.parts.length;
  const canele_parts_t* known = rank == root || has_equal_parts(all) ? &output.parts : nullptr;
  return from_engine(canele_igather(start.comm.group(), input_of(own.memory, input), input.parts.length, output.memory,
                                    known, root, start.options, start.request));
}

template <class Data>
int scatter(const Start& start, const Data& all, const Asked& own, int root) {
  int code = check_root(start.comm, root);
  const int rank = start.comm.rank();
  Parts part, parts;
  EngineParts input, output;
  if (code == MPI_SUCCESS && (rank != root || !in_place(own.memory))) {
    code = take_output(start, own, 1, false, &part, &output);
  }
  if (code == MPI_SUCCESS && rank == root) {
    code = refuse_in_place(all.memory, "send");
    if (code == MPI_SUCCESS) code = take_input(start, all, start.comm.size(), &parts, &input);
    if (code == MPI_SUCCESS && in_place(own.memory)) output.parts.length = parts.part(rank).size();
    if (code == MPI_SUCCESS) code = check_own(parts.part(rank).size(), output.parts.length);
  }
  if (code != MPI_SUCCESS) return code;
  if (rank != root) input.parts.length = output.parts.length;
  const canele_parts_t* known = rank == root || has_equal_parts(all) ? &input.parts : nullptr;
  return from_engine(canele_iscatter(start.comm.group(), input.memory, known, output.memory, output.parts.length, root,
                                     start.options, start.request));
}

template <class Data>
int allgather(const Start& start, const Asked& own, const Data& all) {
  Parts part, parts;
  EngineParts input, output;
  int code = take_output(start, all, start.comm.size(), in_place(own.memory), &parts, &output);
  if (code == MPI_SUCCESS && !in_place(own.memory)) {
    code = take_input(start, own, 1, &part, &input);
    if (code == MPI_SUCCESS) code = check_own(input.parts.length, parts.part(start.comm.rank()).size());
  }
  if (code != MPI_SUCCESS) return code;
  return from_engine(canele_iallgather(start.comm.group(), input_of(own.memory, input), output.memory, &output.parts,
                                       start.options, start.request));
}

template <class Data>
int alltoall(const Start& start, const Data& send, const Data& receive) {
  const int rank = start.comm.rank();
  const bool here = in_place(send.memory);
  Parts sent, received;
  EngineParts input, output;
  int code = take_output(start, receive, start.comm.size(), here, &received, &output);
  if (code == MPI_SUCCESS && !here) {
    code = take_input(start, send, start.comm.size(), &sent, &input);
    if (code == MPI_SUCCESS) code = check_own(sent.part(rank).size(), received.part(rank).size());
  }
  if (code != MPI_SUCCESS) return code;
  return from_engine(canele_ialltoall(start.comm.group(), input_of(send.memory, input),
                                      here ? &output.parts : &input.parts, output.memory, &output.parts, start.options,
                                      start.request));
}

/// What a reduction is asked for, by any of the calls.
struct Reduction {
  const void* send;
  void* receive;
  std::int64_t count;    ///< elements that each rank gives
  std::int64_t results;  ///< elements that this rank gets
  MPI_Datatype type;
  MPI_Op op;
  bool receives = true;  ///< false: only sends, and `receive` is not looked at
};

/// The same for the engine.
struct EngineReduction {
  const void* input = CANELE_IN_PLACE;
  void* output = nullptr;
  std::size_t count = 0;
  canele_operator_t op{};
};

int take_reduction(const Start& start, const Reduction& asked, EngineReduction* engine) {
  Buffer given;
  int code = get_buffer(asked.send, 0, asked.type, &given);
  if (code == MPI_SUCCESS && !asked.receives) code = refuse_in_place(asked.send, "send");
  if (code == MPI_SUCCESS && asked.receives) code = refuse_in_place(asked.receive, "receive");
  Operator op;
  if (code == MPI_SUCCESS) code = get_operator(asked.op, *given.type, &op);
  if (code != MPI_SUCCESS) return code;
  const bool here = in_place(asked.send);
  if (asked.receives && asked.send == asked.receive && asked.count > 0) {
    return fail(MPI_ERR_BUFFER, "the send buffer is also the receive buffer; MPI_IN_PLACE says that");
  }
  given.count = asked.count;
  const Buffer wanted{asked.receive, here ? asked.count : asked.results, given.type};
  if (!here) code = start.staging.input_slots(given, &engine->input);
  if (code == MPI_SUCCESS && asked.receives) {
    code = start.staging.output_slots(wanted, asked.results, here, &engine->output);
  }
  if (code != MPI_SUCCESS) return code;
  engine->count = given.type->size == 0 ? 0 : static_cast<std::size_t>(asked.count);
  start.staging.combine_with(op, *given.type, &engine->op);
  return MPI_SUCCESS;
}

int check_count(std::int64_t count, const char* what) {
  if (count >= 0) return MPI_SUCCESS;
  return fail(MPI_ERR_COUNT, "%s is %lld; it must be at least 0", what, static_cast<long long>(count));
}

}  // namespace

int start_barrier(const Start& start) {
  return from_engine(canele_ibarrier(start.comm.group(), start.options, start.request));
}

int start_bcast(const Start& start, Asked data, int root) {
  int code = check_root(start.comm, root);
  Parts parts;
  EngineParts engine;
  if (code == MPI_SUCCESS) code = refuse_in_place(data.memory, "only");
  if (code == MPI_SUCCESS && start.comm.rank() == root) {
    code = take_input(start, data, 1, &parts, &engine);
  } else if (code == MPI_SUCCESS) {
    code = take_output(start, data, 1, false, &parts, &engine);
  }
  if (code != MPI_SUCCESS) return code;
  return from_engine(
      canele_ibcast(start.comm.group(), engine.memory, engine.parts.length, root, start.options, start.request));
}

int start_gather(const Start& start, Asked own, Asked all, int root) { return gather(start, own, all, root); }
int start_gatherv(const Start& start, Asked own, AskedEach all, int root) { return gather(start, own, all, root); }
int start_scatter(const Start& start, Asked all, Asked own, int root) { return scatter(start, all, own, root); }
int start_scatterv(const Start& start, AskedEach all, Asked own, int root) { return scatter(start, all, own, root); }
int start_allgather(const Start& start, Asked own, Asked all) { return allgather(start, own, all); }
int start_allgatherv(const Start& start, Asked own, AskedEach all) { return allgather(start, own, all); }
int start_alltoall(const Start& start, Asked send, Asked receive) { return alltoall(start, send, receive); }
int start_alltoallv(const Start& start, AskedEach send, AskedEach receive) { return alltoall(start, send, receive); }

int start_reduce(const Start& start, const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                 int root) {
  int code = check_root(start.comm, root);
  if (code == MPI_SUCCESS) code = check_count(count, "count");
  EngineReduction engine;
  if (code == MPI_SUCCESS) {
    code = take_reduction(start, {send, receive, count, count, type, op, start.comm.rank() == root}, &engine);
  }
  if (code != MPI_SUCCESS) return code;
  return from_engine(canele_ireduce(start.comm.group(), engine.input, engine.output, engine.count, &engine.op, root,
                                    start.options, start.request));
}

int start_allreduce(const Start& start, const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op) {
  EngineReduction engine;
  int code = check_count(count, "count");
  if (code == MPI_SUCCESS) code = take_reduction(start, {send, receive, count, count, type, op}, &engine);
  if (code != MPI_SUCCESS) return code;
  return from_engine(canele_iallreduce(start.comm.group(), engine.input, engine.output, engine.count, &engine.op,
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
  if (engine.count == 0) lengths.assign(lengths.size(), 0);  // elements of no bytes
  return from_engine(canele_ireduce_scatter(start.comm.group(), engine.input, engine.output, 0, lengths.data(),
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
  return from_engine(canele_ireduce_scatter(start.comm.group(), engine.input, engine.output,
                                            engine.count / static_cast<std::size_t>(size), nullptr, &engine.op,
                                            start.options, start.request));
}

int start_scan(const Start& start, const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op) {
  EngineReduction engine;
  int code = check_count(count, "count");
  if (code == MPI_SUCCESS) code = take_reduction(start, {send, receive, count, count, type, op}, &engine);
  if (code != MPI_SUCCESS) return code;
  return from_engine(canele_iscan(start.comm.group(), engine.input, engine.output, engine.count, &engine.op,
                                  start.options, start.request));
}

int start_exscan(const Start& start, const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op) {
  EngineReduction engine;
  int code = check_count(count, "count");
  const int results = start.comm.rank() == 0 ? 0 : count;  // MPI leaves the first rank's buffer alone
  if (code == MPI_SUCCESS) code = take_reduction(start, {send, receive, count, results, type, op}, &engine);
  if (code != MPI_SUCCESS) return code;
  return from_engine(canele_iexscan(start.comm.group(), engine.input, engine.output, engine.count, &engine.op,
                                    start.options, start.request));
}

}  // namespace canele::mpi

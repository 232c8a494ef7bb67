// SPDX-License-Identifier: BSD-3-Clause
//
// Neighbourhood collectives, called by their entry points: from the arguments of a call to the engine's exchange with
// neighbours.
//
// Blocks of MPI_PROC_NULL are neither read nor written. MPI_IN_PLACE is not allowed. As for all collectives, one call
// at a time on a communicator.
#include <algorithm>
#include <array>
#include <new>
#include <optional>

#include "calls/topologies.hpp"
#include "starpu_glue/mpi/collectives/plan.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/infos/info.hpp"
#include "starpu_glue/mpi/messages/request.hpp"
#include "starpu_glue/mpi/topologies/topology.hpp"

namespace canele::mpi {
namespace {

/// The blocks of a call: of each neighbour, in its order.
struct NeighborBlocks {
  std::vector<Buffer> sends;  ///< a single one: the same for all destinations
  std::vector<Buffer> receives;
};

int check_memory(const void* memory) {
  if (memory != MPI_IN_PLACE) return MPI_SUCCESS;
  return fail(MPI_ERR_BUFFER, "MPI_IN_PLACE is not allowed in a collective of neighbours");
}

/// Describes one block for each neighbour: make(i) returns an MPI code and writes block i. Those of MPI_PROC_NULL have
/// no elements.
template <class Make>
int make_blocks(std::span<const int> neighbors, const void* memory, std::vector<Buffer>* blocks, Make make) {
  int code = check_memory(memory);
  for (std::size_t i = 0; i < neighbors.size() && code == MPI_SUCCESS; ++i) {
    Buffer block;
    code = make(i, &block);
    if (neighbors[i] == MPI_PROC_NULL) block.count = 0;
    blocks->push_back(block);
  }
  return code;
}

char* shifted_by(const void* memory, std::ptrdiff_t bytes) {
  return static_cast<char*>(const_cast<void*>(memory)) + bytes;
}

/// Equal blocks, one after the other.
int equal_blocks(std::span<const int> neighbors, const void* memory, MPI_Count count, const Type& type,
                 std::vector<Buffer>* blocks) {
  const std::ptrdiff_t step = static_cast<std::ptrdiff_t>(count) * type.extent();
  return make_blocks(neighbors, memory, blocks, [&](std::size_t i, Buffer* block) {
    *block = {shifted_by(memory, static_cast<std::ptrdiff_t>(i) * step), count, &type};
    return MPI_SUCCESS;
  });
}

int check_count_of(std::size_t neighbor, std::int64_t count) {
  if (count >= 0) return MPI_SUCCESS;
  return fail(MPI_ERR_COUNT, "count %zu is %lld; expected: at least 0", neighbor, static_cast<long long>(count));
}

/// Blocks with counts and displacements (v calls).
int placed_blocks(std::span<const int> neighbors, const void* memory, const Integers& counts, const Integers& places,
                  const Type& type, std::vector<Buffer>* blocks) {
  const int code = neighbors.empty() ? MPI_SUCCESS : given({{"counts", counts.data()}, {"displs", places.data()}});
  if (code != MPI_SUCCESS) return code;
  return make_blocks(neighbors, memory, blocks, [&](std::size_t i, Buffer* block) {
    *block = {shifted_by(memory, static_cast<std::ptrdiff_t>(places[i]) * type.extent()), counts[i], &type};
    return check_count_of(i, counts[i]);
  });
}

/// Blocks with types of their own, and displacements in bytes (w calls).
int typed_blocks(std::span<const int> neighbors, const void* memory, const Integers& counts, const MPI_Aint* places,
                 const MPI_Datatype* types, std::vector<Buffer>* blocks) {
  const int code =
      neighbors.empty() ? MPI_SUCCESS : given({{"counts", counts.data()}, {"displs", places}, {"types", types}});
  if (code != MPI_SUCCESS) return code;
  return make_blocks(neighbors, memory, blocks, [&](std::size_t i, Buffer* block) {
    Type* type = nullptr;
    const int found = get_type(types[i], &type);
    *block = {shifted_by(memory, places[i]), counts[i], type};
    return found == MPI_SUCCESS ? check_count_of(i, counts[i]) : found;
  });
}

/// Calls visit(neighbor, slot) for each destination that exists, in the order in which the engine meets edges.
template <class Visit>
void each_destination(const Topology& topology, Visit visit) {
  for (std::size_t slot = 0; slot < topology.destinations.size(); ++slot) {
    if (topology.destinations[slot] != MPI_PROC_NULL) visit(topology.destinations[slot], slot);
  }
}

/// The same for sources.
template <class Visit>
void each_source(const Topology& topology, Visit visit) {
  for (std::size_t i = 0; i < topology.sources.size(); ++i) {
    const std::size_t slot = topology.receive_slot(i);
    if (topology.sources[slot] != MPI_PROC_NULL) visit(topology.sources[slot], slot);
  }
}

/// Calls the engine.
int exchange(const Execution& at, const char* from, std::span<const canele_edge_t> sends, char* to,
             std::span<const canele_edge_t> receives) {
  return canele_ineighbor_exchange(at.group, from, sends.data(), sends.size(), to, receives.data(), receives.size(),
                                   at.options, at.request);
}

/// Checks what this rank sends to itself against what it receives from itself. The engine copies it.
int check_own_edges(int rank, std::span<const canele_edge_t> sends, std::span<const canele_edge_t> receives) {
  auto to = receives.begin();
  for (const canele_edge_t& from : sends) {
    if (from.position != rank) continue;
    while (to != receives.end() && to->position != rank) ++to;
    if (to == receives.end()) return MPI_SUCCESS;  // the engine refuses it
    if (from.length != to->length) {
      return fail(MPI_ERR_TRUNCATE, "this rank sends %zu bytes to itself, but receives %zu; expected: equal sizes",
                  from.length, to->length);
    }
    ++to;
  }
  return MPI_SUCCESS;
}

template <class How>
int start_exchange(const How& start, const Topology& topology, const NeighborBlocks& blocks) {
  EngineBlocks input, output;
  int code = start.staging->input(blocks.sends, &input);
  if (code == MPI_SUCCESS) code = start.staging->output(blocks.receives, &output);
  if (code != MPI_SUCCESS) return code;
  const bool is_shared = blocks.sends.size() == 1;
  std::vector<canele_edge_t> sends, receives;
  each_destination(topology, [&](int neighbor, std::size_t slot) {
    const std::size_t part = is_shared ? 0 : slot;
    sends.push_back({neighbor, input.offsets[part], input.lengths[part]});
  });
  each_source(topology, [&](int neighbor, std::size_t slot) {
    receives.push_back({neighbor, output.offsets[slot], output.lengths[slot]});
  });
  code = check_own_edges(start.comm.rank(), sends, receives);
  if (code != MPI_SUCCESS) {
    start.skip(CANELE_EPROTOCOL);  // the other ranks do not wait for this one
    return code;
  }
  return start.begin(
      [from = input.memory, to = output.memory, sends = std::move(sends),
       receives = std::move(receives)](const Execution& at) { return exchange(at, from, sends, to, receives); });
}

/// What a call wants: a blocking collective (no request), one that is started or, if it is persistent, planned.
struct Wanted {
  MPI_Request* request = nullptr;
  bool is_persistent = false;
  MPI_Info info = MPI_INFO_NULL;
};

/// Lets start(how) start or plan the collective.
template <class StartIt>
int carry_out(Communicator& comm, const Wanted& wanted, StartIt start) {
  if (wanted.is_persistent) return make_planned(comm, start, wanted.request);
  if (wanted.request == nullptr) {
    Staging staging;
    const int code = start(Start{comm, nullptr, &staging, &blocking_options});
    if (code == MPI_SUCCESS) staging.deliver();
    return code;
  }
  Request* made = nullptr;
  int code = new_collective(comm, &made);
  if (code != MPI_SUCCESS) return code;
  code = without_memory_error([&] { return start(Start{comm, &made->engine, &made->staging}); });
  return publish_request(*made, code, wanted.request);
}

/// Looks the topology up, lets describe(topology, blocks) describe the blocks, and exchanges them.
template <class Describe>
int with_neighbors(Communicator& comm, const Wanted& wanted, Describe describe) {
  return carry_out(comm, wanted, [&](const auto& how) {
    const Topology* topology = nullptr;
    NeighborBlocks blocks;
    int code = check_hints(wanted.info);
    if (code == MPI_SUCCESS) code = get_topology(comm, MPI_UNDEFINED, &topology);
    if (code == MPI_SUCCESS) code = describe(*topology, blocks);
    return code == MPI_SUCCESS ? start_exchange(how, *topology, blocks) : code;
  });
}

/// The block that an allgather sends to all destinations.
int one_block(const void* memory, MPI_Count count, const Type& type, std::vector<Buffer>* blocks) {
  blocks->push_back({const_cast<void*>(memory), count, &type});
  return check_memory(memory);
}

/// The arguments of one side of a call, as far as all calls have them.
struct Side {
  const void* memory;
  MPI_Count count;
  const Type& type;
};

struct PlacedSide {
  const void* memory;
  Integers counts;
  Integers places;
  const Type& type;
};

struct TypedSide {
  const void* memory;
  Integers counts;
  const MPI_Aint* places;
  const MPI_Datatype* types;
};

int blocks_of(std::span<const int> neighbors, const Side& side, std::vector<Buffer>* blocks) {
  return equal_blocks(neighbors, side.memory, side.count, side.type, blocks);
}
int blocks_of(std::span<const int> neighbors, const PlacedSide& side, std::vector<Buffer>* blocks) {
  return placed_blocks(neighbors, side.memory, side.counts, side.places, side.type, blocks);
}
int blocks_of(std::span<const int> neighbors, const TypedSide& side, std::vector<Buffer>* blocks) {
  return typed_blocks(neighbors, side.memory, side.counts, side.places, side.types, blocks);
}

/// The edges of one side of a call with few neighbours, whose blocks lie one after the other without gaps.
class PlainEdges {
 public:
  static constexpr std::size_t most = 16;

  explicit PlainEdges(const Side& side)
      : memory_(shifted_by(side.memory, side.type.single.first)),
        length_(side.type.size * static_cast<std::size_t>(side.count)) {}
  void add(int neighbor, std::size_t slot) { edges_[count_++] = {neighbor, slot * length_, length_}; }
  char* memory() const { return memory_; }
  std::span<const canele_edge_t> edges() const { return {edges_.data(), count_}; }

 private:
  char* memory_;
  std::size_t length_;
  std::size_t count_ = 0;
  std::array<canele_edge_t, most> edges_;
};

/// Exchanges plain blocks in a call that blocks, without allocating memory. `step`: 1, or 0 if all destinations get the
/// same block. No result: this is not such a call, or it is wrong, and the general path says how.
std::optional<int> exchange_plain(Communicator& comm, const Side& send, std::size_t step, const Side& receive) {
  const auto is_plain = [](const Side& side) { return side.type.dense && side.memory != MPI_IN_PLACE; };
  const Topology* const topology = comm.topology().get();
  if (topology == nullptr || !is_plain(send) || !is_plain(receive)) return std::nullopt;
  if (std::max(topology->destinations.size(), topology->sources.size()) > PlainEdges::most) return std::nullopt;
  PlainEdges sends(send), receives(receive);
  each_destination(*topology, [&](int neighbor, std::size_t slot) { sends.add(neighbor, slot * step); });
  each_source(*topology, [&](int neighbor, std::size_t slot) { receives.add(neighbor, slot); });
  if (send.type.size * static_cast<std::size_t>(send.count) !=
      receive.type.size * static_cast<std::size_t>(receive.count))
    return std::nullopt;  // what a rank sends to itself may not fit
  return Start{comm, nullptr, nullptr, &blocking_options}.begin([&](const Execution& at) {
    return exchange(at, sends.memory(), sends.edges(), receives.memory(), receives.edges());
  });
}

/// Calls that are not for plain blocks.
template <class Send, class Receive>
std::optional<int> exchange_plain(Communicator&, const Send&, std::size_t, const Receive&) {
  return std::nullopt;
}

template <class Receive>
int allgather_neighbors(Communicator& comm, const Side& send, const Receive& receive, const Wanted& wanted) {
  if (wanted.request == nullptr) {
    if (const std::optional<int> code = exchange_plain(comm, send, 0, receive)) return *code;
  }
  return with_neighbors(comm, wanted, [&](const Topology& topology, NeighborBlocks& blocks) {
    const int code = one_block(send.memory, send.count, send.type, &blocks.sends);
    return code == MPI_SUCCESS ? blocks_of(topology.sources, receive, &blocks.receives) : code;
  });
}

template <class Each>
int alltoall_neighbors(Communicator& comm, const Each& send, const Each& receive, const Wanted& wanted) {
  if (wanted.request == nullptr) {
    if (const std::optional<int> code = exchange_plain(comm, send, 1, receive)) return *code;
  }
  return with_neighbors(comm, wanted, [&](const Topology& topology, NeighborBlocks& blocks) {
    const int code = blocks_of(topology.destinations, send, &blocks.sends);
    return code == MPI_SUCCESS ? blocks_of(topology.sources, receive, &blocks.receives) : code;
  });
}

}  // namespace

namespace calls {

int neighbor_allgather(const void* sendbuf, MPI_Count sendcount, Type& sendtype, void* recvbuf, MPI_Count recvcount,
                       Type& recvtype, Communicator& comm) {
  return allgather_neighbors(comm, {sendbuf, sendcount, sendtype}, Side{recvbuf, recvcount, recvtype}, {});
}

int ineighbor_allgather(const void* sendbuf, MPI_Count sendcount, Type& sendtype, void* recvbuf, MPI_Count recvcount,
                        Type& recvtype, Communicator& comm, MPI_Request* request) {
  return allgather_neighbors(comm, {sendbuf, sendcount, sendtype}, Side{recvbuf, recvcount, recvtype}, {request});
}

int neighbor_allgather_init(const void* sendbuf, MPI_Count sendcount, Type& sendtype, void* recvbuf,
                            MPI_Count recvcount, Type& recvtype, Communicator& comm, MPI_Info info,
                            MPI_Request* request) {
  return allgather_neighbors(comm, {sendbuf, sendcount, sendtype}, Side{recvbuf, recvcount, recvtype},
                             {request, true, info});
}

int neighbor_allgatherv(const void* sendbuf, MPI_Count sendcount, Type& sendtype, void* recvbuf,
                        const Integers& recvcounts, const Integers& displs, Type& recvtype, Communicator& comm) {
  return allgather_neighbors(comm, {sendbuf, sendcount, sendtype}, PlacedSide{recvbuf, recvcounts, displs, recvtype},
                             {});
}

int ineighbor_allgatherv(const void* sendbuf, MPI_Count sendcount, Type& sendtype, void* recvbuf,
                         const Integers& recvcounts, const Integers& displs, Type& recvtype, Communicator& comm,
                         MPI_Request* request) {
  return allgather_neighbors(comm, {sendbuf, sendcount, sendtype}, PlacedSide{recvbuf, recvcounts, displs, recvtype},
                             {request});
}

int neighbor_allgatherv_init(const void* sendbuf, MPI_Count sendcount, Type& sendtype, void* recvbuf,
                             const Integers& recvcounts, const Integers& displs, Type& recvtype, Communicator& comm,
                             MPI_Info info, MPI_Request* request) {
  return allgather_neighbors(comm, {sendbuf, sendcount, sendtype}, PlacedSide{recvbuf, recvcounts, displs, recvtype},
                             {request, true, info});
}

int neighbor_alltoall(const void* sendbuf, MPI_Count sendcount, Type& sendtype, void* recvbuf, MPI_Count recvcount,
                      Type& recvtype, Communicator& comm) {
  return alltoall_neighbors(comm, Side{sendbuf, sendcount, sendtype}, Side{recvbuf, recvcount, recvtype}, {});
}

int ineighbor_alltoall(const void* sendbuf, MPI_Count sendcount, Type& sendtype, void* recvbuf, MPI_Count recvcount,
                       Type& recvtype, Communicator& comm, MPI_Request* request) {
  return alltoall_neighbors(comm, Side{sendbuf, sendcount, sendtype}, Side{recvbuf, recvcount, recvtype}, {request});
}

int neighbor_alltoall_init(const void* sendbuf, MPI_Count sendcount, Type& sendtype, void* recvbuf, MPI_Count recvcount,
                           Type& recvtype, Communicator& comm, MPI_Info info, MPI_Request* request) {
  return alltoall_neighbors(comm, Side{sendbuf, sendcount, sendtype}, Side{recvbuf, recvcount, recvtype},
                            {request, true, info});
}

int neighbor_alltoallv(const void* sendbuf, const Integers& sendcounts, const Integers& sdispls, Type& sendtype,
                       void* recvbuf, const Integers& recvcounts, const Integers& rdispls, Type& recvtype,
                       Communicator& comm) {
  return alltoall_neighbors(comm, PlacedSide{sendbuf, sendcounts, sdispls, sendtype},
                            PlacedSide{recvbuf, recvcounts, rdispls, recvtype}, {});
}

int ineighbor_alltoallv(const void* sendbuf, const Integers& sendcounts, const Integers& sdispls, Type& sendtype,
                        void* recvbuf, const Integers& recvcounts, const Integers& rdispls, Type& recvtype,
                        Communicator& comm, MPI_Request* request) {
  return alltoall_neighbors(comm, PlacedSide{sendbuf, sendcounts, sdispls, sendtype},
                            PlacedSide{recvbuf, recvcounts, rdispls, recvtype}, {request});
}

int neighbor_alltoallv_init(const void* sendbuf, const Integers& sendcounts, const Integers& sdispls, Type& sendtype,
                            void* recvbuf, const Integers& recvcounts, const Integers& rdispls, Type& recvtype,
                            Communicator& comm, MPI_Info info, MPI_Request* request) {
  return alltoall_neighbors(comm, PlacedSide{sendbuf, sendcounts, sdispls, sendtype},
                            PlacedSide{recvbuf, recvcounts, rdispls, recvtype}, {request, true, info});
}

int neighbor_alltoallw(const void* sendbuf, const Integers& sendcounts, const MPI_Aint sdispls[],
                       const MPI_Datatype sendtypes[], void* recvbuf, const Integers& recvcounts,
                       const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], Communicator& comm) {
  return alltoall_neighbors(comm, TypedSide{sendbuf, sendcounts, sdispls, sendtypes},
                            TypedSide{recvbuf, recvcounts, rdispls, recvtypes}, {});
}

int ineighbor_alltoallw(const void* sendbuf, const Integers& sendcounts, const MPI_Aint sdispls[],
                        const MPI_Datatype sendtypes[], void* recvbuf, const Integers& recvcounts,
                        const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], Communicator& comm,
                        MPI_Request* request) {
  return alltoall_neighbors(comm, TypedSide{sendbuf, sendcounts, sdispls, sendtypes},
                            TypedSide{recvbuf, recvcounts, rdispls, recvtypes}, {request});
}

int neighbor_alltoallw_init(const void* sendbuf, const Integers& sendcounts, const MPI_Aint sdispls[],
                            const MPI_Datatype sendtypes[], void* recvbuf, const Integers& recvcounts,
                            const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], Communicator& comm, MPI_Info info,
                            MPI_Request* request) {
  return alltoall_neighbors(comm, TypedSide{sendbuf, sendcounts, sdispls, sendtypes},
                            TypedSide{recvbuf, recvcounts, rdispls, recvtypes}, {request, true, info});
}

}  // namespace calls
}  // namespace canele::mpi

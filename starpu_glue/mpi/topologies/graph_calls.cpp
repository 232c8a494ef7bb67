// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI_Graph functions, called by their entry points. Any thread.
//
// Ranks are never reordered.
#include <algorithm>

#include "calls/topologies.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/topologies/topology.hpp"

namespace canele::mpi {
namespace {

/// Reads a graph that a program describes.
int read_graph(const Communicator& comm, int nodes, const int* ends, const int* edges, Graph* graph) {
  if (nodes > comm.size()) return fail(MPI_ERR_ARG, "nnodes is %d; the communicator has %d ranks", nodes, comm.size());
  int code = nodes > 0 ? given({{"indx", ends}}) : MPI_SUCCESS;
  int count = 0;
  for (int i = 0; i < nodes && code == MPI_SUCCESS; ++i) {
    if (ends[i] < count) return fail(MPI_ERR_ARG, "indx[%d] is %d; expected: at least %d", i, ends[i], count);
    count = ends[i];
  }
  if (code == MPI_SUCCESS && count > 0) code = given({{"edges", edges}});
  if (code != MPI_SUCCESS) return code;
  for (int i = 0; i < count; ++i) {
    if (edges[i] < 0 || edges[i] >= nodes)
      return fail(MPI_ERR_ARG, "edges[%d] is %d; expected: 0 to %d", i, edges[i], nodes - 1);
  }
  graph->ends.assign(ends, ends + nodes);
  graph->edges.assign(edges, edges + count);
  return MPI_SUCCESS;
}

int get_graph(const Communicator& comm, const Graph** graph) {
  const Topology* topology = nullptr;
  const int code = get_topology(comm, MPI_GRAPH, &topology);
  if (code == MPI_SUCCESS) *graph = &topology->graph;
  return code;
}

int get_neighbors(const Communicator& comm, int rank, std::span<const int>* neighbors) {
  const Graph* graph = nullptr;
  if (const int code = get_graph(comm, &graph); code != MPI_SUCCESS) return code;
  if (!comm.has_rank(rank)) return fail(MPI_ERR_RANK, "rank %d; expected: 0 to %d", rank, comm.size() - 1);
  *neighbors = graph->neighbors(rank);
  return MPI_SUCCESS;
}

/// Copies a list to an array of the program.
int give_list(const char* name, std::span<const int> list, int room, int* to) {
  if (room < 0 || static_cast<std::size_t>(room) < list.size())
    return fail(MPI_ERR_ARG, "the array %s has %d elements; expected: %zu", name, room, list.size());
  const int code = list.empty() ? MPI_SUCCESS : given({{name, to}});
  if (code == MPI_SUCCESS) std::copy(list.begin(), list.end(), to);
  return code;
}

}  // namespace

namespace calls {

int graph_create(Communicator& comm_old, int nnodes, const int indx[], const int edges[], int /*reorder*/,
                 MPI_Comm* comm_graph) {
  auto topology = std::make_unique<Topology>();
  const int rank = comm_old.rank();
  const int code = read_graph(comm_old, nnodes, indx, edges, &topology->graph);
  if (code != MPI_SUCCESS) return code;
  if (rank < nnodes) {
    const std::span<const int> neighbors = topology->graph.neighbors(rank);
    topology->kind = MPI_GRAPH;
    topology->sources.assign(neighbors.begin(), neighbors.end());
    topology->destinations = topology->sources;
  } else {
    topology.reset();
  }
  return create_with(comm_old, std::move(topology), 0, rank, comm_graph);
}

int graph_map(Communicator& comm, int nnodes, const int indx[], const int edges[], int* newrank) {
  Graph graph;
  const int code = read_graph(comm, nnodes, indx, edges, &graph);
  if (code == MPI_SUCCESS) *newrank = comm.rank() < nnodes ? comm.rank() : MPI_UNDEFINED;
  return code;
}

int graphdims_get(Communicator& comm, int* nnodes, int* nedges) {
  const Graph* graph = nullptr;
  const int code = get_graph(comm, &graph);
  if (code != MPI_SUCCESS) return code;
  *nnodes = static_cast<int>(graph->ends.size());
  *nedges = static_cast<int>(graph->edges.size());
  return MPI_SUCCESS;
}

int graph_get(Communicator& comm, int maxindex, int maxedges, int indx[], int edges[]) {
  const Graph* graph = nullptr;
  int code = get_graph(comm, &graph);
  if (code == MPI_SUCCESS) code = give_list("indx", graph->ends, maxindex, indx);
  if (code == MPI_SUCCESS) code = give_list("edges", graph->edges, maxedges, edges);
  return code;
}

int graph_neighbors(Communicator& comm, int rank, int maxneighbors, int neighbors[]) {
  std::span<const int> found;
  const int code = get_neighbors(comm, rank, &found);
  return code == MPI_SUCCESS ? give_list("neighbors", found, maxneighbors, neighbors) : code;
}

int graph_neighbors_count(Communicator& comm, int rank, int* nneighbors) {
  std::span<const int> found;
  const int code = get_neighbors(comm, rank, &found);
  if (code == MPI_SUCCESS) *nneighbors = static_cast<int>(found.size());
  return code;
}

}  // namespace calls
}  // namespace canele::mpi

// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI_Dist_graph functions, called by their entry points. Any thread.
//
// With MPI_Dist_graph_create a rank may name edges between any ranks. Both ends of an edge are told of it, in two
// all-to-alls: how many edges, and the edges. Each end lists its edges by the rank that named them, and then in the
// order in which that rank did. So edges between two ranks have one order at both ends.
#include <algorithm>
#include <numeric>

#include "calls/topologies.hpp"
#include "starpu_glue/mpi/collectives/collectives.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/infos/info.hpp"
#include "starpu_glue/mpi/topologies/topology.hpp"

namespace canele::mpi {
namespace {

/// What one end of an edge is told.
struct EdgeEnd {
  int other;
  int weight;
  int is_source;  ///< the end that is told of it is the source
};

/// Ranks at the other ends of edges of this rank, as a program gives them.
struct NamedRanks {
  const char* name;
  std::span<const int> ranks;
  const int* weights;
};

bool is_unweighted(const int* weights) { return weights == MPI_UNWEIGHTED; }

int check_ranks(const Communicator& comm, const NamedRanks& named) {
  for (const int rank : named.ranks) {
    if (!comm.has_rank(rank))
      return fail(MPI_ERR_RANK, "%s has rank %d; expected: 0 to %d", named.name, rank, comm.size() - 1);
  }
  if (is_unweighted(named.weights) || named.ranks.empty()) return MPI_SUCCESS;
  if (named.weights == MPI_WEIGHTS_EMPTY || named.weights == nullptr)
    return fail(MPI_ERR_ARG, "%s has no weights; expected: an array, or MPI_UNWEIGHTED", named.name);
  for (std::size_t i = 0; i < named.ranks.size(); ++i) {
    if (named.weights[i] < 0) return fail(MPI_ERR_ARG, "a weight is %d; expected: at least 0", named.weights[i]);
  }
  return MPI_SUCCESS;
}

/// Checks both sides. One that has no edges may give NULL as its weights.
int check_adjacent(const Communicator& comm, const NamedRanks& in, const NamedRanks& out) {
  int code = check_ranks(comm, in);
  if (code == MPI_SUCCESS) code = check_ranks(comm, out);
  if (code != MPI_SUCCESS || in.ranks.empty() || out.ranks.empty()) return code;
  if (is_unweighted(in.weights) == is_unweighted(out.weights)) return code;
  return fail(MPI_ERR_ARG, "only one of both arrays of weights is MPI_UNWEIGHTED");
}

std::vector<int> weights_of(const NamedRanks& named) {
  if (is_unweighted(named.weights) || named.ranks.empty()) return {};
  return {named.weights, named.weights + named.ranks.size()};
}

/// Edges that this rank names, as MPI_Dist_graph_create has them.
struct NamedEdges {
  std::span<const int> sources, degrees;
  const int* destinations;
  const int* weights;

  /// Calls visit(rank, what it is told) for both ends of each edge.
  template <class Visit>
  void each_end(Visit visit) const {
    std::size_t edge = 0;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      for (int k = 0; k < degrees[i]; ++k, ++edge) {
        const int weight = is_unweighted(weights) ? 0 : weights[edge];
        visit(sources[i], EdgeEnd{destinations[edge], weight, 1});
        visit(destinations[edge], EdgeEnd{sources[i], weight, 0});
      }
    }
  }
};

int check_edges(const Communicator& comm, const NamedEdges& edges) {
  std::size_t count = 0;
  for (const int degree : edges.degrees) {
    if (degree < 0) return fail(MPI_ERR_ARG, "a degree is %d; expected: at least 0", degree);
    count += static_cast<std::size_t>(degree);
  }
  int code = check_ranks(comm, {"sources", edges.sources, MPI_UNWEIGHTED});
  if (code == MPI_SUCCESS && count > 0) code = given({{"destinations", edges.destinations}});
  if (code != MPI_SUCCESS) return code;
  return check_ranks(comm, {"destinations", {edges.destinations, count}, edges.weights});
}

/// Tells both ends of each edge of it. *told: what this rank was told.
int exchange_edges(Communicator& comm, const NamedEdges& edges, std::vector<EdgeEnd>* told) {
  const auto size = static_cast<std::size_t>(comm.size());
  std::vector<std::size_t> sent(size), received(size), next(size);
  edges.each_end([&](int rank, const EdgeEnd& /*end*/) { sent[static_cast<std::size_t>(rank)] += sizeof(EdgeEnd); });
  const canele_parts_t one{sizeof(std::size_t), nullptr, nullptr};
  int code = from_collective(
      canele_ialltoall(comm.group(), sent.data(), &one, received.data(), &one, &blocking_options, nullptr));
  if (code != MPI_SUCCESS) return code;
  std::exclusive_scan(sent.begin(), sent.end(), next.begin(), std::size_t{0});
  std::vector<EdgeEnd> ends((next.back() + sent.back()) / sizeof(EdgeEnd));
  edges.each_end([&](int rank, const EdgeEnd& end) {
    std::size_t& at = next[static_cast<std::size_t>(rank)];
    ends[at / sizeof end] = end;
    at += sizeof end;
  });
  told->resize(std::accumulate(received.begin(), received.end(), std::size_t{0}) / sizeof(EdgeEnd));
  const canele_parts_t out{0, sent.data(), nullptr}, in{0, received.data(), nullptr};
  return from_collective(
      canele_ialltoall(comm.group(), ends.data(), &out, told->data(), &in, &blocking_options, nullptr));
}

/// Writes as much of a list as there is room for.
int give_part(const char* name, std::span<const int> list, int room, int* to) {
  if (room < 0) return fail(MPI_ERR_ARG, "the length of %s is %d; expected: at least 0", name, room);
  const std::span<const int> part = list.first(std::min(list.size(), static_cast<std::size_t>(room)));
  const int code = room == 0 ? MPI_SUCCESS : given({{name, to}});
  if (code == MPI_SUCCESS) std::copy(part.begin(), part.end(), to);
  return code;
}

}  // namespace

namespace calls {

int dist_graph_create_adjacent(Communicator& comm_old, int indegree, const int sources[], const int sourceweights[],
                               int outdegree, const int destinations[], const int destweights[], MPI_Info info,
                               int /*reorder*/, MPI_Comm* comm_dist_graph) {
  const NamedRanks in{"sources", {sources, static_cast<std::size_t>(indegree)}, sourceweights};
  const NamedRanks out{"destinations", {destinations, static_cast<std::size_t>(outdegree)}, destweights};
  int code = check_adjacent(comm_old, in, out);
  if (code == MPI_SUCCESS) code = check_hints(info);
  if (code != MPI_SUCCESS) return code;
  auto topology = std::make_unique<Topology>();
  topology->kind = MPI_DIST_GRAPH;
  topology->weighted = !is_unweighted(sourceweights) && !is_unweighted(destweights);
  topology->sources.assign(in.ranks.begin(), in.ranks.end());
  topology->destinations.assign(out.ranks.begin(), out.ranks.end());
  topology->source_weights = weights_of(in);
  topology->destination_weights = weights_of(out);
  return create_with(comm_old, std::move(topology), 0, comm_old.rank(), comm_dist_graph);
}

int dist_graph_create(Communicator& comm_old, int n, const int sources[], const int degrees[], const int destinations[],
                      const int weights[], MPI_Info info, int /*reorder*/, MPI_Comm* comm_dist_graph) {
  const auto count = static_cast<std::size_t>(n);
  const NamedEdges edges{{sources, count}, {degrees, count}, destinations, weights};
  int code = check_edges(comm_old, edges);
  if (code == MPI_SUCCESS) code = check_hints(info);
  std::vector<EdgeEnd> ends;
  if (code == MPI_SUCCESS) code = exchange_edges(comm_old, edges, &ends);
  if (code != MPI_SUCCESS) return code;
  auto topology = std::make_unique<Topology>();
  topology->kind = MPI_DIST_GRAPH;
  topology->weighted = !is_unweighted(weights);
  for (const EdgeEnd& end : ends) {
    (end.is_source != 0 ? topology->destinations : topology->sources).push_back(end.other);
    (end.is_source != 0 ? topology->destination_weights : topology->source_weights).push_back(end.weight);
  }
  return create_with(comm_old, std::move(topology), 0, comm_old.rank(), comm_dist_graph);
}

int dist_graph_neighbors_count(Communicator& comm, int* indegree, int* outdegree, int* weighted) {
  const Topology* topology = nullptr;
  const int code = get_topology(comm, MPI_DIST_GRAPH, &topology);
  if (code != MPI_SUCCESS) return code;
  *indegree = static_cast<int>(topology->sources.size());
  *outdegree = static_cast<int>(topology->destinations.size());
  *weighted = topology->weighted ? 1 : 0;
  return MPI_SUCCESS;
}

int dist_graph_neighbors(Communicator& comm, int maxindegree, int sources[], int sourceweights[], int maxoutdegree,
                         int destinations[], int destweights[]) {
  const Topology* topology = nullptr;
  int code = get_topology(comm, MPI_DIST_GRAPH, &topology);
  if (code == MPI_SUCCESS) code = give_part("sources", topology->sources, maxindegree, sources);
  if (code == MPI_SUCCESS) code = give_part("destinations", topology->destinations, maxoutdegree, destinations);
  if (code != MPI_SUCCESS || !topology->weighted) return code;
  if (!is_unweighted(sourceweights))
    code = give_part("sourceweights", topology->source_weights, maxindegree, sourceweights);
  if (code == MPI_SUCCESS && !is_unweighted(destweights))
    code = give_part("destweights", topology->destination_weights, maxoutdegree, destweights);
  return code;
}

}  // namespace calls
}  // namespace canele::mpi

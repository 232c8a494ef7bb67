/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Neighbourhood collectives, against a model: random graphs with several edges between two ranks and edges of a rank to
 * itself, and all small grids. Run by ctest at 1 to 8 ranks. One thread.
 *
 * All ranks draw the same graph. Edge e carries a pattern that depends on e, so what arrives in a wrong place shows.
 */
#include "check.h"

enum { most_edges = 64, longest = 4000, room = most_edges * longest };

/* A graph: edges from source[e] to dest[e]. The edges of this rank, in their order. */
static int edges, source[most_edges], dest[most_edges];
static int out_count, in_count, out_edge[most_edges], in_edge[most_edges], out_rank[most_edges], in_rank[most_edges];

static unsigned dice_state;
static int dice(int sides) {
  dice_state = dice_state * 1103515245u + 12345u;
  return (int)(dice_state >> 16 & 0x7fff) % sides;
}

static void draw(unsigned seed) {
  dice_state = seed;
  edges = dice(most_edges < 4 * size_ ? most_edges : 4 * size_);
  out_count = in_count = 0;
  for (int e = 0; e < edges; ++e) {
    source[e] = dice(size_);
    dest[e] = dice(size_);
    if (source[e] == rank_) {
      out_edge[out_count] = e;
      out_rank[out_count++] = dest[e];
    }
    if (dest[e] == rank_) {
      in_edge[in_count] = e;
      in_rank[in_count++] = source[e];
    }
  }
}

static MPI_Comm drawn_graph(void) {
  MPI_Comm graph;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in_count, in_rank, MPI_UNWEIGHTED, out_count, out_rank, MPI_UNWEIGHTED,
                                 MPI_INFO_NULL, 0, &graph);
  return graph;
}

static unsigned char sent[room], received[room];
static int counts_out[most_edges], counts_in[most_edges], places_out[most_edges], places_in[most_edges];
static MPI_Aint bytes_out[most_edges], bytes_in[most_edges];
static MPI_Datatype types_out[most_edges], types_in[most_edges];

static void end(int code, MPI_Request *request) {
  CHECK_EQ(code, MPI_SUCCESS);
  if (request != NULL) MPI_Wait(request, MPI_STATUS_IGNORE);
}

/* Ends the call, which has a request if it does not block. */
#define CALL(name, ...)                                             \
  do {                                                              \
    MPI_Request request_;                                           \
    if (blocks) {                                                   \
      end(MPI_Neighbor_##name(__VA_ARGS__), NULL);                  \
    } else {                                                        \
      end(MPI_Ineighbor_##name(__VA_ARGS__, &request_), &request_); \
      CHECK(request_ == MPI_REQUEST_NULL);                          \
    }                                                               \
  } while (0)

static void equal_blocks(MPI_Comm graph, int blocks, int length) {
  memset(received, 0xee, sizeof received);
  for (int i = 0; i < out_count; ++i) fill(sent + i * length, (size_t)length, out_edge[i]);
  CALL(alltoall, sent, length, MPI_BYTE, received, length, MPI_BYTE, graph);
  for (int i = 0; i < in_count; ++i) CHECK(matches(received + i * length, (size_t)length, in_edge[i]));
  CHECK_EQ(received[in_count * length], 0xee);

  memset(received, 0xee, sizeof received);
  fill(sent, (size_t)length, 100 + rank_);
  CALL(allgather, sent, length, MPI_BYTE, received, length, MPI_BYTE, graph);
  for (int i = 0; i < in_count; ++i) CHECK(matches(received + i * length, (size_t)length, 100 + in_rank[i]));
  CHECK_EQ(received[in_count * length], 0xee);
}

static int length_of(int edge, int unit) { return edge * 7 % 5 * unit; }

static void unequal_blocks(MPI_Comm graph, int blocks, int unit) {
  int at = 0;
  for (int i = out_count; i-- > 0; at += counts_out[i] + 1) { /* the last block lies first */
    counts_out[i] = length_of(out_edge[i], unit);
    places_out[i] = at;
    fill(sent + at, (size_t)counts_out[i], out_edge[i]);
  }
  at = 1;
  for (int i = in_count; i-- > 0; at += counts_in[i] + 1) {
    counts_in[i] = length_of(in_edge[i], unit);
    places_in[i] = at;
  }
  memset(received, 0xee, sizeof received);
  CALL(alltoallv, sent, counts_out, places_out, MPI_BYTE, received, counts_in, places_in, MPI_BYTE, graph);
  for (int i = 0; i < in_count; ++i) {
    CHECK(matches(received + places_in[i], (size_t)counts_in[i], in_edge[i]));
    CHECK_EQ(received[places_in[i] - 1], 0xee);
  }
  for (int i = 0; i < in_count; ++i) counts_in[i] = length_of(in_rank[i], unit);
  at = 1;
  for (int i = 0; i < in_count; at += counts_in[i++] + 1) places_in[i] = at;
  fill(sent, (size_t)length_of(rank_, unit), 200 + rank_);
  memset(received, 0xee, sizeof received);
  CALL(allgatherv, sent, length_of(rank_, unit), MPI_BYTE, received, counts_in, places_in, MPI_BYTE, graph);
  for (int i = 0; i < in_count; ++i) {
    CHECK(matches(received + places_in[i], (size_t)counts_in[i], 200 + in_rank[i]));
    CHECK_EQ(received[places_in[i] - 1], 0xee);
  }
}

/* Pairs of ints: dense, or with a gap between them. Which end has the gap depends on the edge. */
static void typed_blocks(MPI_Comm graph, int blocks, MPI_Datatype gap) {
  int *const out = (int *)(void *)sent, *const in = (int *)(void *)received, step = 16;
  for (int i = 0; i < room / (int)sizeof(int); ++i) out[i] = in[i] = -1;
  for (int i = 0; i < out_count; ++i) {
    const int e = out_edge[i], has_gap = e % 2;
    counts_out[i] = has_gap ? 1 : 2;
    types_out[i] = has_gap ? gap : MPI_INT;
    bytes_out[i] = (MPI_Aint)sizeof(int) * step * i;
    out[step * i] = e;
    out[step * i + (has_gap ? 3 : 1)] = 1000 + e;
  }
  for (int i = 0; i < in_count; ++i) {
    const int has_gap = in_edge[i] % 3 == 0;
    counts_in[i] = has_gap ? 1 : 2;
    types_in[i] = has_gap ? gap : MPI_INT;
    bytes_in[i] = (MPI_Aint)sizeof(int) * step * (in_count - 1 - i); /* backwards */
  }
  CALL(alltoallw, sent, counts_out, bytes_out, types_out, received, counts_in, bytes_in, types_in, graph);
  for (int i = 0; i < in_count; ++i) {
    const int e = in_edge[i], has_gap = e % 3 == 0, *const block = in + step * (in_count - 1 - i);
    CHECK_EQ(block[0], e);
    CHECK_EQ(block[has_gap ? 3 : 1], 1000 + e);
    CHECK_EQ(block[has_gap ? 1 : 2], -1);
    CHECK_EQ(block[4], -1);
  }
}

/* An extent below the true one: blocks interleave. */
static void interleaved_blocks(MPI_Comm graph, int blocks, MPI_Datatype gap) {
  MPI_Datatype column;
  MPI_Type_create_resized(gap, 0, sizeof(int), &column);
  MPI_Type_commit(&column);
  int out[2] = {rank_, 500 + rank_}, in[most_edges + 4];
  for (int i = 0; i < most_edges + 4; ++i) in[i] = -1;
  if (in_count <= 3) {
    CALL(allgather, out, 2, MPI_INT, in, 1, column, graph);
    for (int i = 0; i < in_count; ++i) CHECK(in[i] == in_rank[i] && in[i + 3] == 500 + in_rank[i]);
  } else {
    CALL(allgather, out, 2, MPI_INT, in, 2, MPI_INT, graph);
  }
  MPI_Type_free(&column);
}

static void random_graphs(void) {
  MPI_Datatype gap;
  MPI_Type_vector(2, 1, 3, MPI_INT, &gap);
  MPI_Type_commit(&gap);
  for (unsigned seed = 0; seed < 24; ++seed) {
    draw(seed);
    MPI_Comm graph = drawn_graph();
    for (int blocks = 0; blocks < 2; ++blocks) {
      equal_blocks(graph, blocks, seed % 4 == 3 ? longest / 2 : (int)seed % 3);
      unequal_blocks(graph, blocks, seed % 4 == 2 ? longest / 8 : 1);
      typed_blocks(graph, blocks, gap);
      interleaved_blocks(graph, blocks, gap);
    }
    MPI_Comm_free(&graph);
  }
  MPI_Type_free(&gap);
}

/* Several at once, whose requests end in one call. */
static void many_at_once(void) {
  enum { count = 20 };
  draw(99);
  MPI_Comm graph = drawn_graph();
  MPI_Request requests[count];
  static int out[count][most_edges], in[count][most_edges];
  for (int k = 0; k < count; ++k) {
    for (int i = 0; i < out_count; ++i) out[k][i] = 1000 * k + out_edge[i];
    MPI_Ineighbor_alltoall(out[k], 1, MPI_INT, in[k], 1, MPI_INT, graph, &requests[k]);
  }
  MPI_Comm_free(&graph);
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  for (int k = 0; k < count; ++k) {
    for (int i = 0; i < in_count; ++i) CHECK_EQ(in[k][i], 1000 * k + in_edge[i]);
  }
}

/* Edges that other ranks have named. The weight of an edge is its number, so each end knows which one it is. */
static void named_graphs(void) {
  for (unsigned seed = 50; seed < 60; ++seed) {
    draw(seed);
    int n = 0, sources[most_edges], degrees[most_edges], dests[most_edges], weights[most_edges];
    int in[most_edges], out[most_edges], ins, outs, weighted, from[most_edges], to[most_edges], got[most_edges];
    for (int e = 0; e < edges; ++e) {
      if (e * 13 % size_ != rank_) continue;
      sources[n] = source[e];
      degrees[n] = 1;
      dests[n] = dest[e];
      weights[n++] = e;
    }
    MPI_Comm graph, copy;
    MPI_Dist_graph_create(MPI_COMM_WORLD, n, sources, degrees, dests, weights, MPI_INFO_NULL, 0, &graph);
    MPI_Comm_dup(graph, &copy);
    MPI_Comm_free(&graph);
    MPI_Dist_graph_neighbors_count(copy, &ins, &outs, &weighted);
    CHECK(ins == in_count && outs == out_count);
    MPI_Dist_graph_neighbors(copy, ins, from, in, outs, to, out);
    MPI_Neighbor_alltoall(out, 1, MPI_INT, got, 1, MPI_INT, copy);
    for (int i = 0; i < ins; ++i) CHECK(got[i] == in[i] && source[in[i]] == from[i] && dest[in[i]] == rank_);
    MPI_Comm_free(&copy);
  }
}

/* A block sent downwards arrives from above, also where both neighbours are the same rank, or this one. */
static void grid(int ndims, const int *dims, const int *periods) {
  MPI_Comm comm;
  int out[6], in[6], both[6], slots = 2 * ndims, rank, neighbor[6], counts[6], places[6];
  MPI_Cart_create(MPI_COMM_WORLD, ndims, dims, periods, 0, &comm);
  if (comm == MPI_COMM_NULL) return;
  MPI_Comm_rank(comm, &rank);
  for (int i = 0; i < ndims; ++i) MPI_Cart_shift(comm, i, 1, &neighbor[2 * i], &neighbor[2 * i + 1]);
  for (int blocks = 0; blocks < 2; ++blocks) {
    for (int s = 0; s < slots; ++s) {
      out[s] = 10 * rank + s;
      in[s] = both[s] = -1;
      counts[s] = 1;
      places[s] = s;
    }
    CALL(alltoall, out, 1, MPI_INT, in, 1, MPI_INT, comm);
    CALL(alltoallv, out, counts, places, MPI_INT, both, counts, places, MPI_INT, comm);
    for (int s = 0; s < slots; ++s) {
      CHECK_EQ(in[s], neighbor[s] == MPI_PROC_NULL ? -1 : 10 * neighbor[s] + (s ^ 1));
      CHECK_EQ(both[s], in[s]);
      in[s] = -1;
    }
    CALL(allgather, &rank, 1, MPI_INT, in, 1, MPI_INT, comm);
    for (int s = 0; s < slots; ++s) CHECK_EQ(in[s], neighbor[s] == MPI_PROC_NULL ? -1 : neighbor[s]);
  }
  MPI_Comm_free(&comm);
}

static void grids(void) {
  for (int a = 1; a <= size_; ++a) {
    for (int b = 1; a * b <= size_; ++b) {
      for (int c = 1; a * b * c <= size_; ++c) {
        const int dims[3] = {a, b, c};
        for (int which = 0; which < 8; ++which) {
          const int periods[3] = {which & 1, which >> 1 & 1, which >> 2};
          grid(3, dims, periods);
        }
      }
    }
  }
  grid(0, NULL, NULL);
}

/* Two edges between any two ranks, and two of each rank to itself. */
static void graphs(void) {
  int ends[most_edges], all[2 * most_edges * most_edges], degree = 2 * size_, n = 0;
  int out[2 * most_edges], in[2 * most_edges];
  for (int i = 0; i < size_; ++i) {
    for (int k = 0; k < degree; ++k) all[n++] = (i + k) % size_;
    ends[i] = n;
  }
  if (size_ > 8) return;
  MPI_Comm graph;
  MPI_Graph_create(MPI_COMM_WORLD, size_, ends, all, 0, &graph);
  for (int k = 0; k < degree; ++k) out[k] = 100 * rank_ + k / size_;
  MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, graph);
  for (int k = 0; k < degree; ++k) CHECK_EQ(in[k], 100 * ((rank_ + k) % size_) + k / size_);
  MPI_Comm_free(&graph);
}

static void errors(void) {
  const int one[1] = {1}, flag[1] = {1}, negative[2] = {1, -1}, places[2] = {0, 1};
  int out[2] = {1, 2}, in[2], class;
  MPI_Comm comm;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Error_class(MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD), &class);
  CHECK_EQ(class, MPI_ERR_TOPOLOGY);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Cart_create(MPI_COMM_SELF, 1, one, flag, 0, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Error_class(MPI_Neighbor_alltoall(MPI_IN_PLACE, 1, MPI_INT, in, 1, MPI_INT, comm), &class);
  CHECK_EQ(class, MPI_ERR_BUFFER);
  MPI_Error_class(MPI_Neighbor_allgather(out, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, comm), &class);
  CHECK_EQ(class, MPI_ERR_BUFFER);
  MPI_Error_class(MPI_Neighbor_alltoall(out, -1, MPI_INT, in, 1, MPI_INT, comm), &class);
  CHECK_EQ(class, MPI_ERR_COUNT);
  MPI_Error_class(MPI_Neighbor_alltoallv(out, negative, places, MPI_INT, in, negative, places, MPI_INT, comm), &class);
  CHECK_EQ(class, MPI_ERR_COUNT);
  MPI_Error_class(MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 2, MPI_INT, comm), &class);
  CHECK_EQ(class, MPI_ERR_TRUNCATE);
  MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, comm);
  CHECK(in[0] == 2 && in[1] == 1);
  MPI_Comm_free(&comm);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  random_graphs();
  many_at_once();
  named_graphs();
  grids();
  graphs();
  errors();
  return finish();
}
